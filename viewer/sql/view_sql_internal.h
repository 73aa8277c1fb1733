/*
 * State of the SQL screen, shared by its files.
 *
 * The screen shows a statement and, below it, its result or the list of views; wide screens show
 * the views beside the result. One of the three has the focus.
 */
#ifndef VIEW_SQL_INTERNAL_H
#define VIEW_SQL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/err.h"
#include "profiler/prof_db.h"
#include "reports/table/report_table.h"
#include "viewer/draw/view_grid.h"
#include "viewer/view_place.h"
#include "viewer/view_screen.h"

/* ---- the editor (view_sql_edit.c) ------------------------------------------------------------ */

/* A statement as lines of UTF-8, and a cursor: a plain value, nothing to free. */
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

/* ---- statements (view_sql_run.c) ------------------------------------------------------------- */

/*
 * Names for statements: the contract's views and their columns, SQL keywords and functions. Used
 * for completion and for suggestions after errors.
 */
#define VIEW_SQL_OFFERS 32

struct view_sql_view {
	const char *name, *usage; /* usage: describes a row */
	const char **columns;
	int column_count;
};

/* The arena owns everything until the next load. Start with {0}. */
struct view_sql_names {
	struct view_sql_view *views;
	int count;
	struct arena arena;
};

/* On failure, which @err (not NULL) keeps, @names is empty. */
void view_sql_names_load(struct view_sql_names *names, struct prof_db *db, struct err *err);
void view_sql_names_fini(struct view_sql_names *names);
const struct view_sql_view *view_sql_names_find(const struct view_sql_names *names,
						const char *view); /* NULL: none */

/* Completions of the word before byte @at of @sql, most likely first: columns of the views that the
 * statement names, views, keywords, functions, all other columns. */
struct view_sql_offers {
	size_t length; /* bytes of the word before the cursor */
	const char *items[VIEW_SQL_OFFERS];
	int count;
};

void view_sql_complete(const struct view_sql_names *names, const char *sql, size_t at,
		       struct view_sql_offers *out);

/* Extract the unknown name of SQLite's @message into @word, and return the most similar known name;
 * NULL: none. */
const char *view_sql_nearest(const struct view_sql_names *names, const char *sql,
			     const char *message, char word[128]);

bool view_sql_is_word(const char *text, size_t length); /* an SQL keyword */

/*
 * Run a statement typed by the user: guarded, bounded, cancellable.
 *
 * Each run opens the report and closes it again, so a recording run can close its file meanwhile.
 */

#define VIEW_SQL_ROWS  100000
#define VIEW_SQL_BYTES (64 << 20)

struct view_sql_answer {
	struct report_table table; /* owned by the caller; column names are unique */
	char keys[512];            /* key columns of the table, for the grid; "": none */
	bool more;                 /* the bounds cut off rows */
	uint64_t took_ns;
	int offset; /* byte of the error in the statement; -1: unknown */
};

/* Run @sql. If @context has a target, run it on both reports and join the results by the first
 * columns as long as those are texts or identifiers, otherwise by row number. On failure there is
 * no table. ST_INTERRUPTED: the user cancelled. */
enum status view_sql_run(struct view_sql_answer *out, struct view_context *context, const char *sql,
			 struct err *err);

/* Make a statement for the rows of a view that an insight names: "clock=device type=StreamCopy*".
 * ST_NOTFOUND: there is no such view. */
enum status view_sql_rows_of(char out[VIEW_PLACE_SQL], const char *view, const char *keys,
			     struct err *err);

/* ---- the screen ------------------------------------------------------------------------------ */

#define VIEW_SQL_MARGIN 5 /* columns of "sql> " */

enum view_sql_focus {
	VIEW_SQL_EDIT,
	VIEW_SQL_RESULT,
	VIEW_SQL_VIEWS
};

struct view_sql_areas {
	struct view_rect prompt;  /* the statement and its error */
	struct view_rect heading; /* title of the part below */
	struct view_rect main; /* the result; without a result, or if there is no side: the views */
	struct view_rect row;  /* cells of the cursor's row that are cut; empty: none is */
	struct view_rect side; /* the views on a wide screen */
	struct view_rect columns; /* columns of the view under the cursor, below the views */
};

struct view_sql {
	struct view_edit edit;
	enum view_sql_focus focus;
	struct view_sql_areas areas;
	bool has_views; /* `names` and the grid of views are loaded */
	struct view_sql_names names;
	struct view_grid views;

	bool ran; /* result, statement, more and took_ns belong to a successful run */
	struct view_grid result;
	char statement[VIEW_PLACE_SQL];
	bool more;
	uint64_t took_ns;
	int runs;           /* the context's count at the last load */
	struct err trouble; /* of the last run; ST_OK: none */
	int wrong_at;       /* byte of the error in the edited text; -1: unknown */

	struct view_sql_history history;
	bool told;  /* already reported that the history file cannot be read or written */
	int recall; /* index into the history; its count: the typed text */
	char draft[VIEW_PLACE_SQL];
	bool seeking; /* the previous key was Ctrl-R, too; it searches for `needle` */
	char needle[VIEW_PLACE_SQL];
	struct view_sql_offers offers; /* pressing Tab again inserts the next one */
	int offer;                     /* index of the inserted one; -1: none */
};

/* view_sql.c */
/* Run the statement in the prompt. The screen stays usable if the run fails. */
void view__sql_run(struct view_sql *screen, struct view_context *context);
extern const struct view_bar_key view__sql_typing_keys[];

/* view_sql_draw.c */
struct view_sql_areas view__sql_areas(struct view_rect body, int prompt, bool wide);
/* Reserve rows below the result for the cells of the cursor's row, if there is room. */
void view__sql_areas_row(struct view_sql_areas *areas);
/* Return true if the result has an area, false if the views take its place. */
bool view__sql_shows_result(const struct view_sql *screen);
int view__sql_prompt_rows(const struct view_sql *screen, int width);
void view__sql_draw(const void *state, const struct view_context *context, struct view_pane *pane);
void view__sql_status(const void *state, const struct view_context *context, char *out,
		      size_t size);

#endif /* VIEW_SQL_INTERNAL_H */
