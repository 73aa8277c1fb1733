/*
 * A table that is looked at: scrolled, sorted, filtered, searched; columns chosen by what fits.
 *
 * The rows are a report's table (reports/table/report_table.h), which the grid owns; the same rows
 * are what the screen writes as CSV and JSON. Comparing, two tables become one by
 * view_grid_compare() and each number three columns: Source, Target, Diff.
 *
 * Threading: none of its own: set and request where screens load, draw where they draw. Drawing
 * allocates nothing.
 */
#ifndef VIEW_GRID_H
#define VIEW_GRID_H

#include "common/arena.h"
#include "reports/table/report_table.h"
#include "viewer/view_screen.h"

/* How a column is shown. Columns without an entry follow from their name and quantity. */
struct view_grid_column {
	const char *name;  /* the table's column */
	const char *title; /* NULL: the name */
	int width;         /* cells; 0: as wide as its contents need, at most 40 */
	int least;         /* a text may be cut down to this; 0: 12 */
	int importance;    /* what goes first where there is no room: the least; 0: not shown at all
			    * unless chosen */
	bool bar;          /* a bar of the value's share of the column's greatest stands behind */
};

struct view_grid {
	struct report_table table;
	const struct view_grid_column *columns; /* constant data; NULL: all as they are */
	int column_count;
	int64_t *order; /* rows as shown */
	int64_t count;  /* of those; what the filter lets through */
	int64_t at, scroll;
	int column; /* first column shown after those that stay, for tables that are too wide */
	int sort;   /* the table's column; -1: as the rows came */
	bool reverse;
	char filter[128]; /* a regular expression; "!" before it: what does not match; "": all */
	char trouble[96]; /* why the filter cannot be used; "" */
	bool compared, differ;
	/* Made by the layout for a width. */
	struct view_grid_place {
		int column, x, width;
	} * places;
	int place_count, width;
	struct arena arena;
};

void view_grid_fini(struct view_grid *grid); /* accepts a zeroed grid */

/* Take @table over (it is emptied, also on failure); cursor, order, filter and columns of the
 * rows before stay as far as the new ones have them: the cursor by the values of @keys
 * ("ipu,tile"), NULL: by number. @columns: constant data. */
enum status view_grid_set(struct view_grid *grid, struct report_table *table,
			  const struct view_grid_column *columns, int column_count,
			  const char *keys, struct err *err);

/* Join @source and @target by the columns @keys into @out, in the order of the source and then of
 * what only the target has: keys as they are, of each number `name`, `name_target`, `name_diff`; of
 * each text that differs both. A missing row's cells are NULL. Takes neither. Numbers whose row is
 * in both: diff = target - source. */
enum status view_grid_compare(struct report_table *out, const struct report_table *source,
			      const struct report_table *target, const char *keys, struct err *err);

/* The table behind both databases (or the one): the query's rows, compared where @context has a
 * target. */
enum status view_grid_query(struct view_grid *grid, struct view_context *context, const char *name,
			    const char *sql, const char *keys,
			    const struct view_grid_column *columns, int column_count, int64_t limit,
			    struct err *err);

/* Where columns go; called by draw's caller after a change of width (a load). */
void view_grid_layout(struct view_grid *grid, int width, int height);
/* Headings in the first row, rows below, a scroll mark at the right where there are more. */
void view_grid_draw(const struct view_grid *grid, struct view_pane *pane, bool active);
/* Moves, sorts, reverses, chooses columns; what it does not know: VIEW_UNHANDLED. */
enum view_answer view_grid_request(struct view_grid *grid, int height, enum view_request request);
bool view_grid_search(struct view_grid *grid, int height, const char *text, bool forward);
void view_grid_filter(struct view_grid *grid, const char *text);
/* "row 3 of 120, sorted by cycles, filter conv". */
void view_grid_status(const struct view_grid *grid, char *out, size_t size);
enum view_answer view_grid_click(struct view_grid *grid, int height, int x, int y);
/* The cell at the cursor's row; NULL: no row, or no such column. */
const struct report_cell *view_grid_cell(const struct view_grid *grid, const char *column);
/* The first row whose @column holds @text or @number becomes the cursor's; false: none. */
bool view_grid_go(struct view_grid *grid, int height, const char *column, const char *text,
		  int64_t number);
/* What is shown, in its order and filter, for CSV and JSON. */
enum status view_grid_table(const struct view_grid *grid, struct report_table *out,
			    struct err *err);

#endif /* VIEW_GRID_H */
