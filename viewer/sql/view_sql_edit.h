/*
 * A statement being typed: some lines of UTF-8 and a cursor among them.
 *
 * A value: nothing to free. Not thread safe.
 */
#ifndef VIEW_SQL_EDIT_H
#define VIEW_SQL_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "viewer/view_place.h"

struct view_edit {
	char text[VIEW_PLACE_SQL];
	size_t at; /* bytes before the cursor, which is never within a character */
};

void view_edit_set(struct view_edit *edit, const char *text); /* the cursor at its end */
/* At the cursor; false: there is no room, and nothing has changed. */
bool view_edit_insert(struct view_edit *edit, const char *text);
/* The @count bytes before the cursor are @text from now on; false: as above. */
bool view_edit_replace(struct view_edit *edit, size_t count, const char *text);

/* A key that edits or moves within; false: it does neither, as Up in the first line. */
bool view_edit_key(struct view_edit *edit, uint32_t key);

int view_edit_lines(const struct view_edit *edit); /* at least 1 */
/* The line that byte @at is in, and where that begins. */
int view_edit_line(const struct view_edit *edit, size_t at, size_t *begin);
/* Where line @line begins, and its length without the line's end. */
const char *view_edit_peek(const struct view_edit *edit, int line, size_t *length);

/*
 * Statements that were run, kept from one look to the next in $XDG_STATE_HOME/ipuscope/sql_history.
 *
 * The file is the user's own (view_config.h) and bounded. Where it cannot be read or written,
 * statements are kept as long as the program runs. Not thread safe.
 */

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

#endif /* VIEW_SQL_EDIT_H */
