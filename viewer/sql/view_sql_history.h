/*
 * Statements that were run, kept from one look to the next in $XDG_STATE_HOME/ipuscope/sql_history.
 *
 * The file is the user's own (view_own.h) and bounded. Where it cannot be read or written,
 * statements are kept as long as the program runs. Not thread safe.
 */
#ifndef VIEW_SQL_HISTORY_H
#define VIEW_SQL_HISTORY_H

#include "common/err.h"

#define VIEW_SQL_HISTORY_MOST 200

struct view_sql_history {
	char *items[VIEW_SQL_HISTORY_MOST]; /* the oldest first; owned */
	int count;
};

/* What is in the file; none is no failure. */
enum status view_sql_history_read(struct view_sql_history *history, struct err *err);
/* As the newest; the same text further back goes. With what other viewers wrote meanwhile. On
 * failure the file is as it was, and @history has the statement all the same. */
enum status view_sql_history_add(struct view_sql_history *history, const char *text,
				 struct err *err);
void view_sql_history_fini(struct view_sql_history *history);

#endif /* VIEW_SQL_HISTORY_H */
