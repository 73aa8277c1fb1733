/*
 * An interactive table: scrolled, sorted, filtered and searched; columns are chosen by what fits.
 *
 * The rows are a report's table (reports/table/report_table.h), which the grid owns. Screens
 * write the same rows as CSV and JSON. In a comparison view_grid_compare() joins two tables, and
 * each number becomes three columns: its name, `target`, `diff`. Rows that only one report has
 * begin with a mark: - (only the source) or + (only the target).
 *
 * Cancelled work (view_cancelled) stops within a few thousand rows. Order, filter and columns
 * then remain unchanged, and the context's message says so.
 *
 * Threading: none. Set and request run where screens load, draw where they draw. Drawing
 * allocates nothing.
 */
#ifndef VIEW_GRID_H
#define VIEW_GRID_H

#include <regex.h>

#include "common/arena.h"
#include "reports/table/report_table.h"
#include "viewer/view_screen.h"

/* How a column is shown. Without an entry, defaults follow from the column's name and quantity. The
 * entry of `x` also applies to `x_target` and `x_diff`. A last entry without a name is that of all
 * other columns, except a comparison's verdict. */
struct view_grid_column {
	const char *name;  /* the table's column */
	const char *title; /* NULL: the name */
	int width;      /* cells; 0: as wide as the contents need, texts at most 40 unless columns
			 * remain unused */
	int least;      /* a text may be cut down to this width; 0: 12 */
	int importance; /* the least important column is dropped first; 0: shown only if the user
			 * asks for all (|); columns without an entry: 1 */
	bool bar;       /* draw a bar after the value: its share of the column's greatest */
};

/* Return the style of a cell. Not called for the cursor's row. */
typedef enum view_style (*view_grid_style)(const struct report_table *table, int64_t row,
					   int column);

struct view_grid_trait; /* facts about a column; view_grid_internal.h */
struct view_grid_key;

struct view_grid {
	struct report_table table;
	const struct view_grid_column *columns; /* constant data; NULL: defaults for all */
	int column_count;
	view_grid_style style; /* NULL: default styles; set once, before the first rows */
	const char *null_text; /* of a cell without value; NULL: "-"; set before the rows */
	int64_t *order;        /* rows as shown */
	int64_t count;         /* of `order`: rows that pass the filter */
	int64_t at, scroll;
	int column; /* columns scrolled sideways, without the fixed ones */
	int sort;   /* the table's column; -1: original order */
	bool reverse;
	bool every;       /* show columns of importance 0, too */
	bool still;       /* the screen itself handles Left and Right; set by the screen */
	char filter[128]; /* a regular expression; after "!": rows that do not match; "": all */
	char trouble[96]; /* why the filter is invalid; "" */
	bool compared;    /* the rows come from two reports; set by view_grid_set() */
	bool differ;      /* show only rows that differ; set by the screen */
	/* Computed by the layout for a width. */
	struct view_grid_place {
		int column, x, width;
	} * places;
	int place_count;
	struct view_rect area;        /* of the last layout, in the screen's body */
	bool before, after;           /* more columns exist to the left, to the right */
	struct view_context *context; /* for cancelling and messages; or NULL */
	/* The arrays below are in the arena, sized for the current rows. */
	struct view_grid_trait *traits;
	struct view_grid_key *keys, *spare; /* while sorting */
	int64_t *sequence;                  /* all rows, in sort order */
	bool *passes,
		*tried; /* per row: passes the filter; the same while another filter is tried */
	int *lineup;    /* scrolling columns, in screen order */
	int lineup_count;
	struct arena arena;
};

void view_grid_fini(struct view_grid *grid); /* accepts a zeroed grid */

/* .grid of a screen whose state begins with its table, and .fini if it owns nothing else. */
struct view_grid *view_state_grid(void *state);
void view_state_grid_fini(void *state);

/* Compile a filter, whose leading "!" the caller handles; *@out is freed with regfree(). Return
 * false with the reason in @trouble if it is no expression. */
bool view_filter_compile(regex_t *out, const char *filter, char *trouble, size_t size);

/* Move @table into the grid: *@table is emptied, and on failure the grid is unchanged. The grid
 * keeps @context (NULL: not cancellable) until the next call. ST_INTERRUPTED: cancelled. Cursor,
 * order, filter and hidden columns carry over if the new rows allow it; the cursor is matched by
 * the values of @keys ("ipu,tile"; NULL: by row number). The first column, and leading key
 * columns after it, do not scroll sideways. @columns: constant data. */
enum status view_grid_set(struct view_grid *grid, struct view_context *context,
			  struct report_table *table, const struct view_grid_column *columns,
			  int column_count, const char *keys, struct err *err);

#define VIEW_GRID_VERDICT "verdict"
/* Join @source and @target by the columns @keys into @out. Rows are in the source's order, then
 * come those that only the target has; rows with equal keys pair up in order. Keys stay single
 * columns; each number becomes `name`, `name_target`, `name_diff`; texts and identifiers become
 * `name`, and `name_target` if they differ in any row. The last column, `verdict`, classifies
 * each row: "only source" or "only target" without a partner; "faster" or "slower" by the first
 * duration that differs; otherwise "changed", "same" (the difference is below the printed
 * precision) or "equal". A missing row's cells are NULL. If both numbers exist, diff = target -
 * source. @source and @target are not consumed. ST_INTERRUPTED: @context (may be NULL) was
 * cancelled. */
enum status view_grid_compare(struct report_table *out, const struct view_context *context,
			      const struct report_table *source, const struct report_table *target,
			      const char *keys, struct err *err);

/* Set the grid to the rows of @sql, compared with those of the target if @context has one. */
enum status view_grid_query(struct view_grid *grid, struct view_context *context, const char *name,
			    const char *sql, const char *keys,
			    const struct view_grid_column *columns, int column_count, int64_t limit,
			    struct err *err);

/* Sort by column @name ("": original order): numbers descending, identifiers ascending, texts
 * from a to z; @reverse inverts this. NULL and NaN are always last. For a screen's initial order:
 * call it after the first view_grid_set(). Return false if cancelled; the order is then
 * unchanged. */
bool view_grid_sort(struct view_grid *grid, const char *name, bool reverse);

/* The same, but only if no order has been chosen; the cursor stays on its row. */
void view_grid_sort_first(struct view_grid *grid, const char *name);

/* Position the columns and scroll to the cursor. Call it while loading, after view_grid_set() and
 * after each change of size. Widths follow from the rows on the screen and a sample of the others.
 * @area: in the screen's body, with the heading row; the grid draws there and takes clicks
 * there. */
void view_grid_layout(struct view_grid *grid, struct view_rect area);
/* Cells in use, up to the end of the last column. */
int view_grid_used(const struct view_grid *grid);
/* Draw headings in the first row, rows below, and a scroll mark at the right if not all rows fit.
 * If not @active, draw no cursor. */
void view_grid_draw(const struct view_grid *grid, const struct view_pane *body, bool active);
/* Return true if cells are cut or columns are off the screen. */
bool view_grid_is_cut(const struct view_grid *grid);
/* Draw the complete cells of the cursor's row that are cut or off the screen, with their titles,
 * wrapped into the rows of @pane. Return false if no cell is cut. */
bool view_grid_draw_row(const struct view_grid *grid, struct view_pane *pane);
/* The same below a line that names the row. */
void view_grid_draw_whole(const struct view_grid *grid, struct view_pane *pane);
/* Move, sort, reverse, or hide columns; Back removes the filter. Return VIEW_DRAW if handled (the
 * layout is then up to date), otherwise VIEW_UNHANDLED. */
enum view_answer view_grid_request(struct view_grid *grid, enum view_request request);
/* Move to the next row with a shown cell that contains @text, ignoring case, wrapping around. */
bool view_grid_search(struct view_grid *grid, struct view_context *context, const char *text,
		      bool forward);
void view_grid_filter(struct view_grid *grid, const char *text);
/* Label of a table key for the bottom line: "" if there are too few rows to sort or filter; NULL:
 * the default. */
const char *view_grid_word(const struct view_grid *grid, enum view_request request);
/* "row 3 of 120, filter conv, +2 columns: l, by cycles", or only the error of an invalid filter. */
void view_grid_status(const struct view_grid *grid, char *out, size_t size);
/* A click at @x, @y of the body: on a row it moves the cursor; on a heading it sorts, and a second
 * time reverses. */
enum view_answer view_grid_click(struct view_grid *grid, int x, int y);
/* The cell of @column in the cursor's row; NULL: no row, or no such column. */
const struct report_cell *view_grid_cell(const struct view_grid *grid, const char *column);
/* Its integer, or its text; IPS_NULL, NULL: it has none. */
int64_t view_grid_int(const struct view_grid *grid, const char *column);
const char *view_grid_text(const struct view_grid *grid, const char *column);
/* Set the unknown fields of @place that the cursor's row has columns for; @names: of these alone
 * ("key,layer"; NULL: of all); @suffix: "", or of a comparison's columns "_target". */
void view_grid_place(const struct view_grid *grid, const char *names, const char *suffix,
		     struct view_place *place);
/* Move the cursor to the first row whose @column holds @text (NULL: @number). A filter that hides
 * that row is removed. Return false if there is no such row. */
bool view_grid_go(struct view_grid *grid, const char *column, const char *text, int64_t number);
/* Copy the shown rows in their order, with all columns, for CSV and JSON. ST_INTERRUPTED:
 * cancelled. */
enum status view_grid_table(const struct view_grid *grid, struct report_table *out,
			    struct err *err);

#endif /* VIEW_GRID_H */
