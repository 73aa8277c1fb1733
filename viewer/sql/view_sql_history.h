/*
 * Statements that were run, kept from one look to the next in $XDG_STATE_HOME/ipuscope/sql_history.
 *
 * The file is the user's own (mode 0600), bounded, and written whole or not at all. Where it cannot
 * be read or written, statements are kept as long as the program runs, and nothing is said: nobody
 * asked for the file. Not thread safe.
 */
#ifndef VIEW_SQL_HISTORY_H
#define VIEW_SQL_HISTORY_H

#define VIEW_SQL_HISTORY_MOST 200

struct view_sql_history {
	char *items[VIEW_SQL_HISTORY_MOST]; /* the oldest first; owned */
	int count;
};

void view_sql_history_read(struct view_sql_history *history);
/* As the newest; the same text further back goes. With what other viewers wrote meanwhile. */
void view_sql_history_add(struct view_sql_history *history, const char *text);
void view_sql_history_fini(struct view_sql_history *history);

#endif /* VIEW_SQL_HISTORY_H */
