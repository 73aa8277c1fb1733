/*
 * A table that is looked at: scrolled, sorted, filtered, searched; columns chosen by what fits.
 *
 * The rows are a report's table (reports/table/report_table.h), which the grid owns; the same rows
 * are what the screen writes as CSV and JSON. Comparing, two tables become one by
 * view_grid_compare() and each number three columns: its name, `target`, `diff`; rows that only one
 * report has are marked - (only the source) and + (only the target) at their beginning.
 *
 * Work that is cancelled (view_cancelled) stops within some thousand rows: the order, the filter
 * and the columns are then as they were, and the context's message says so.
 *
 * Threading: none of its own: set and request where screens load, draw where they draw. Drawing
 * allocates nothing.
 */
#ifndef VIEW_GRID_H
#define VIEW_GRID_H

#include "common/arena.h"
#include "reports/table/report_table.h"
#include "viewer/view_screen.h"

/* How a column is shown. Columns without an entry follow from their name and quantity; of an entry
 * `x` follow those of `x_target` and `x_diff`, too. */
struct view_grid_column {
	const char *name;  /* the table's column */
	const char *title; /* NULL: the name */
	int width;      /* cells; 0: as wide as its contents need, texts at most 40 and more where
			 * there is room left */
	int least;      /* a text may be cut down to this; 0: 12 */
	int importance; /* the least important column is left out first; 0: it is shown only if
			 * chosen (|); columns without an entry: 1 */
	bool bar;       /* a bar of the value's share of the column's greatest stands behind */
};

/* The style of a cell, unless the cursor is on its row. */
typedef enum view_style (*view_grid_style)(const struct report_table *table, int64_t row,
					   int column);

struct view_grid_trait; /* facts about a column; view_grid_internal.h */
struct view_grid_key;

struct view_grid {
	struct report_table table;
	const struct view_grid_column *columns; /* constant data; NULL: all as they are */
	int column_count;
	view_grid_style style; /* NULL: as usual; set once, before the first rows */
	const char *null_text; /* of a cell without value; NULL: "-"; set before the rows */
	int64_t *order;        /* rows as shown */
	int64_t count;         /* of those; what the filter lets through */
	int64_t at, scroll;
	int column; /* columns scrolled sideways, without those that stay */
	int sort;   /* the table's column; -1: as the rows came */
	bool reverse;
	bool every;       /* columns of importance 0, too */
	bool still;       /* Left and Right are the screen's own; set by the screen */
	char filter[128]; /* a regular expression; "!" before it: what does not match; "": all */
	char trouble[96]; /* why the filter cannot be used; "" */
	bool compared;    /* the rows are two reports'; set by view_grid_set() */
	bool differ;      /* only rows that differ; set by the screen */
	/* Made by the layout for a width. */
	struct view_grid_place {
		int column, x, width;
	} * places;
	int place_count, width;
	bool before, after;           /* there are more columns to the left, to the right */
	struct view_context *context; /* says whether to go on, and takes messages; or NULL */
	/* All of these are in the arena, as large as the rows need it, until the next ones. */
	struct view_grid_trait *traits;
	struct view_grid_key *keys, *spare; /* while rows are sorted */
	int64_t *sequence;                  /* all rows, in their order */
	bool *passes, *tried; /* what the filter lets through; the same while another is tried */
	int *lineup;          /* columns that scroll, in the order of the screen */
	int lineup_count;
	struct arena arena;
};

void view_grid_fini(struct view_grid *grid); /* accepts a zeroed grid */

/* Make @table the grid's (it is emptied; a failure leaves the grid as it was); @context
 * (NULL: nobody stops anything) stays known until the next rows. ST_INTERRUPTED: stopped. Cursor,
 * order, filter and columns of the rows before stay as far as the new ones have them: the cursor by
 * the values of @keys ("ipu,tile"), NULL: by number. Of the first columns those that are keys, and
 * the very first, stay where the others are scrolled sideways. @columns: constant data. */
enum status view_grid_set(struct view_grid *grid, struct view_context *context,
			  struct report_table *table, const struct view_grid_column *columns,
			  int column_count, const char *keys, struct err *err);

#define VIEW_GRID_VERDICT "verdict"
/* Join @source and @target by the columns @keys into @out, in the order of the source and then of
 * what only the target has; equal keys pair up in order. Keys are as they are; each number has
 * `name`, `name_target`, `name_diff`; texts and identifiers `name`, and where they differ anywhere
 * `name_target`. The last column, `verdict`, says what each row comes to: "only source" and "only
 * target" without a partner, "faster" and "slower" by the first time that differs, else "changed",
 * "same" (below what is printed) or "equal". A missing row's cells are NULL. Numbers that both
 * have: diff = target - source. Takes neither. ST_INTERRUPTED: @context (or NULL) says that nobody
 * waits. */
enum status view_grid_compare(struct report_table *out, const struct view_context *context,
			      const struct report_table *source, const struct report_table *target,
			      const char *keys, struct err *err);

/* The table behind both databases (or the one): the query's rows, compared where @context has a
 * target. */
enum status view_grid_query(struct view_grid *grid, struct view_context *context, const char *name,
			    const char *sql, const char *keys,
			    const struct view_grid_column *columns, int column_count, int64_t limit,
			    struct err *err);

/* Order by the column @name ("": as the rows came): numbers greatest first, identifiers least
 * first, texts from a to z; @reverse the other way round. NULL and NaN are always last. For a
 * screen's first order: call it after the first view_grid_set(). Stopped: false, as it was. */
bool view_grid_sort(struct view_grid *grid, const char *name, bool reverse);

/* The same where no other order was chosen; the cursor stays on its row. */
void view_grid_sort_first(struct view_grid *grid, const char *name);

/*
 * Heights below are the pane's, the row of headings included.
 */

/* Place the columns and scroll to the cursor: in a load, after view_grid_set() and whenever the
 * size has changed. Widths follow from the rows on the screen and a sample of the others. */
void view_grid_layout(struct view_grid *grid, int width, int height);
/* The cells of the width that are in use, up to the end of the last column. */
int view_grid_used(const struct view_grid *grid);
/* Headings in the first row, rows below, a scroll mark at the right where there are more. Not
 * @active: without a cursor. */
void view_grid_draw(const struct view_grid *grid, struct view_pane *pane, bool active);
/* Are cells of the rows cut, or columns off the screen? */
bool view_grid_is_cut(const struct view_grid *grid);
/* Of the cursor's row: the cells that are cut or off the screen, whole and with their titles, from
 * line to line as far as there are any; false: none is cut. */
bool view_grid_draw_row(const struct view_grid *grid, struct view_pane *pane);
/* The same below a line that says which row it is. */
void view_grid_draw_whole(const struct view_grid *grid, struct view_pane *pane);
/* Moves, sorts, reverses, hides columns; Back takes the filter away. VIEW_DRAW where it did, and
 * the layout is up to date; what it does not know: VIEW_UNHANDLED. */
enum view_answer view_grid_request(struct view_grid *grid, int height, enum view_request request);
/* Goes to the next row of which a cell as shown contains @text, case aside, and around the end. */
bool view_grid_search(struct view_grid *grid, struct view_context *context, int height,
		      const char *text, bool forward);
void view_grid_filter(struct view_grid *grid, const char *text);
/* What keys of tables do, for the line at the foot: "" where there is too little to be ordered or
 * filtered; NULL: what they always do. */
const char *view_grid_word(const struct view_grid *grid, enum view_request request);
/* "row 3 of 120, filter conv, +2 columns: l, by cycles"; what is wrong with a filter, alone. */
void view_grid_status(const struct view_grid *grid, char *out, size_t size);
/* A row: becomes the cursor's. A heading: the order, and the other way round. */
enum view_answer view_grid_click(struct view_grid *grid, int height, int x, int y);
/* The cell at the cursor's row; NULL: no row, or no such column. */
const struct report_cell *view_grid_cell(const struct view_grid *grid, const char *column);
/* The first row whose @column holds @text (NULL: @number) becomes the cursor's; a filter that hides
 * it is taken away. false: none. */
bool view_grid_go(struct view_grid *grid, int height, const char *column, const char *text,
		  int64_t number);
/* What is shown, in its order and filter, with all columns, for CSV and JSON. ST_INTERRUPTED:
 * stopped. */
enum status view_grid_table(const struct view_grid *grid, struct report_table *out,
			    struct err *err);

#endif /* VIEW_GRID_H */
