/*
 * Editor of a statement: lines of UTF-8 and a cursor.
 *
 * A plain value: nothing to free. Not thread safe.
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
	size_t at; /* bytes before the cursor; never inside a character */
};

void view_edit_set(struct view_edit *edit, const char *text); /* with the cursor at its end */
/* Insert @text at the cursor. Return false, without any change, if it does not fit. */
bool view_edit_insert(struct view_edit *edit, const char *text);
/* Replace the @count bytes before the cursor with @text. Return false as above. */
bool view_edit_replace(struct view_edit *edit, size_t count, const char *text);

/* Handle an editing or moving key. Return false if it has no effect here, as Up in the first
 * line. */
bool view_edit_key(struct view_edit *edit, uint32_t key);

int view_edit_lines(const struct view_edit *edit); /* at least 1 */
/* The line of byte @at, and the byte at which it begins. */
int view_edit_line(const struct view_edit *edit, size_t at, size_t *begin);
/* The text of line @line, and its length without the newline. */
const char *view_edit_peek(const struct view_edit *edit, int line, size_t *length);

/*
 * History of executed statements, stored in $XDG_STATE_HOME/ipuscope/sql_history.
 *
 * The file is private to the user (view_config.h) and bounded. If it cannot be read or written,
 * the history lasts until the program ends. Not thread safe.
 */

#define VIEW_SQL_HISTORY_MOST 200

struct view_sql_history {
	char *items[VIEW_SQL_HISTORY_MOST]; /* oldest first; owned */
	int count;
};

/* Read the file; a missing file is no error. */
enum status view_sql_history_read(struct view_sql_history *history, struct err *err);
/* Add @text as the newest statement, remove older equal ones, and merge statements that other
 * viewers wrote meanwhile. On failure the file is unchanged, but @history has the statement. */
enum status view_sql_history_add(struct view_sql_history *history, const char *text,
				 struct err *err);
void view_sql_history_fini(struct view_sql_history *history);

#endif /* VIEW_SQL_EDIT_H */
