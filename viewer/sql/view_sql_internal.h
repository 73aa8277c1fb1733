/*
 * State of the SQL screen, shared by its files.
 *
 * The screen shows a statement and, below it, its result or the list of views; wide screens show
 * the views beside the result. One of the three has the focus.
 */
#ifndef VIEW_SQL_INTERNAL_H
#define VIEW_SQL_INTERNAL_H

#include "viewer/draw/view_grid.h"
#include "viewer/sql/view_sql_edit.h"
#include "viewer/sql/view_sql_run.h"

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
bool view__sql_shows_result(const struct view_sql *screen);
extern const struct view_bar_key view__sql_typing_keys[];

/* view_sql_draw.c */
struct view_sql_areas view__sql_areas(struct view_rect body, int prompt, bool wide);
/* Reserve rows below the result for the cells of the cursor's row, if there is room. */
void view__sql_areas_row(struct view_sql_areas *areas);
int view__sql_prompt_rows(const struct view_sql *screen, int width);
void view__sql_draw(const void *state, const struct view_context *context, struct view_pane *pane);
void view__sql_status(const void *state, const struct view_context *context, char *out,
		      size_t size);

#endif /* VIEW_SQL_INTERNAL_H */
