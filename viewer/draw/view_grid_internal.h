/*
 * Shared by the grid's files: facts about columns and cells, and the steps from rows to a layout.
 *
 * Rows: sort into a sequence, then filter. Columns: form groups (a number with its target and
 * diff), order the groups in a line-up, then assign positions for a width.
 */
#ifndef VIEW_GRID_INTERNAL_H
#define VIEW_GRID_INTERNAL_H

#include "viewer/draw/view_grid.h"

#define VIEW_GRID_TEXT  256  /* bytes of a cell as shown */
#define VIEW_GRID_SLICE 4096 /* rows between two checks for cancellation */

enum view_grid_role {
	VIEW_GRID_PLAIN, /* an ungrouped column, or the first of a group */
	VIEW_GRID_TARGET,
	VIEW_GRID_DIFF
};

struct view_grid_trait {
	const struct view_grid_column *column; /* NULL: it has no entry */
	enum view_grid_role role;
	int group;        /* the first column of its group (possibly itself) */
	int size;         /* columns of the group that begins here */
	bool key;         /* one of the keys */
	bool stays;       /* does not scroll sideways */
	bool hidden;      /* by the user; valid for the first of a group */
	bool before;      /* the previous `hidden`, while another choice is tried */
	bool number;      /* right-aligned */
	int cells;        /* the widest content seen, without bar and percent */
	int percents;     /* the same with percent (of a diff) */
	double greatest;  /* magnitude, of a column with bars */
	int bar_from;     /* width of the number before a bar; 0: no bar */
	int base, wanted; /* widths: the least useful one, and the preferred one */
	int most;         /* of a text: the full width of its contents */
	bool fits;        /* the layout has room for its group at the base width */
	bool alone;       /* the screen is too narrow for its group: it scrolls separately */
};

struct view_grid_key {
	uint64_t key; /* orders like the values; ties need further comparison */
	int64_t row;
};

/* Return true if the work was cancelled. @context NULL: it cannot be. */
static inline bool view__grid_stopped(const struct view_context *context)
{
	return context && view_cancelled(context);
}

/* ---- columns and cells (view_grid_cells.c) --------------------------------------------------- */

static inline const struct report_cell *view__grid_at(const struct view_grid *grid, int64_t row,
						      int column)
{
	return &grid->table.cells[row * grid->table.column_count + column];
}

/* Return true if @name is an element of @list ("a,b,c"). */
bool view__grid_listed(const char *list, const char *name);
bool view__grid_chosen(const struct view_grid *grid, int column); /* not hidden */
/* Where the layout has put the column; NULL: off the screen. */
const struct view_grid_place *view__grid_place(const struct view_grid *grid, int column);
const char *view__grid_title(const struct view_grid *grid, int column);
/* The cell as shown. @percent: a diff includes its share of the larger value. Return @out, or the
 * cell's own text. */
const char *view__grid_text(const struct view_grid *grid, int64_t row, int column, bool percent,
			    char out[VIEW_GRID_TEXT]);
/* The cell's number; NaN: none. */
double view__cell_number(const struct report_cell *cell);
/* Fill the grid's zeroed traits with everything that does not depend on the size. */
void view__grid_traits(struct view_grid *grid, const char *keys);
/* Widen the traits to the texts of a row. */
void view__grid_measure_row(struct view_grid *grid, int64_t row);
/* Return '-' if only the source has the row, '+' if only the target has it, '\0' for both. */
char view__grid_only_mark(const struct view_grid *grid, int64_t row);
/* Return true if the row of a comparison has any difference. */
bool view__grid_differs(const struct view_grid *grid, int64_t row);

/* ---- the order of the rows (view_grid_sort.c) ------------------------------------------------ */

/* Compute `sequence`, all rows in sort order. Return false if cancelled; it is then unchanged. */
bool view__grid_sort(struct view_grid *grid);
/* Return true if sorting by @column puts the greatest value first. */
bool view__grid_descends(const struct view_grid *grid, int column);
void view__grid_reorder(struct view_grid *grid); /* update order and count; keep the cursor's row */

#endif /* VIEW_GRID_INTERNAL_H */
