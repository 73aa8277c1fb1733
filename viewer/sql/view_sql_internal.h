/*
 * The state of the screen SQL, shared by its files.
 *
 * A statement above, and under it what it found, or the views there are; wide screens have the
 * views beside. One of the three takes the keys.
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
	struct view_rect prompt;  /* the statement, and what is wrong with it */
	struct view_rect heading; /* what stands below */
	struct view_rect main; /* the result; without one, or where there is no side: the views */
	struct view_rect row;  /* of the result: what it has no room for; empty: it has for all */
	struct view_rect side; /* the views on a wide screen */
	struct view_rect columns; /* of the view under the cursor, under the views */
};

struct view_sql {
	struct view_edit edit;
	enum view_sql_focus focus;
	struct view_sql_areas areas;
	bool has_views; /* the names are there, and the grid of views */
	struct view_sql_names names;
	struct view_grid views;

	bool ran; /* result, statement, more and took_ns are of a run that went well */
	struct view_grid result;
	char statement[VIEW_PLACE_SQL];
	bool more;
	uint64_t took_ns;
	int runs;           /* the context's, of that time */
	struct err trouble; /* of the last run; ST_OK: none */
	int wrong_at;       /* byte of the text being edited; -1: unknown */

	struct view_sql_history history;
	bool told;  /* that the history's file cannot be read or written */
	int recall; /* an index into the history; its count: what was typed */
	char draft[VIEW_PLACE_SQL];
	bool seeking; /* the key before was Ctrl-R, too: what it looks for is `needle` */
	char needle[VIEW_PLACE_SQL];
	struct view_sql_offers offers; /* Tab again takes the next one */
	int offer;                     /* -1: none was taken */
};

/* view_sql.c */
/* Run what stands in the prompt; also a failed run leaves the screen in order. */
void view__sql_run(struct view_sql *screen, struct view_context *context);
bool view__sql_shows_result(const struct view_sql *screen);
extern const struct view_bar_key view__sql_typing_keys[];

/* view_sql_draw.c */
struct view_sql_areas view__sql_areas(struct view_rect body, int prompt, bool wide);
/* The foot of the result for a row's cells, where there is room. */
void view__sql_areas_row(struct view_sql_areas *areas);
int view__sql_prompt_rows(const struct view_sql *screen, int width);
void view__sql_draw(const void *state, const struct view_context *context, struct view_pane *pane);
void view__sql_status(const void *state, const struct view_context *context, char *out,
		      size_t size);

#endif /* VIEW_SQL_INTERNAL_H */
