/*
 * What the files of the grid share: facts about columns, and the steps from rows to a picture.
 *
 * Rows become an order (sort), of which a filter lets some through; columns become groups (a number
 * with its target and diff), groups a line-up, and that places for a width.
 */
#ifndef VIEW_GRID_INTERNAL_H
#define VIEW_GRID_INTERNAL_H

#include "viewer/draw/view_grid.h"

#define VIEW_GRID_TEXT  256  /* bytes of a cell as shown */
#define VIEW_GRID_SLICE 4096 /* rows between two checks whether the work was cancelled */

enum view_grid_role {
	VIEW_GRID_PLAIN, /* a column of its own, or the first of a group */
	VIEW_GRID_TARGET,
	VIEW_GRID_DIFF
};

struct view_grid_trait {
	const struct view_grid_column *column; /* NULL: it has no entry */
	enum view_grid_role role;
	int group;        /* the first column of its group; its own number where it is that */
	int size;         /* columns of the group that begins here */
	bool key;         /* one of the keys */
	bool stays;       /* is not scrolled sideways */
	bool hidden;      /* by the user; counts for the first of a group */
	bool before;      /* the same, while another choice is tried */
	bool number;      /* stands at the right of its column */
	int cells;        /* the widest content seen, without bar and percent */
	int percents;     /* the same with percent (of a diff) */
	double greatest;  /* magnitude, of a column with bars */
	int bar_from;     /* width of the number before a bar; 0: it has none */
	int base, wanted; /* widths: the least of use, and as wide as pays */
	int most;         /* a text: as wide as its contents */
	bool fits;        /* the layout has room for its group at the base width */
	bool alone;       /* the screen is too narrow for its group: it stands for itself */
};

struct view_grid_key {
	uint64_t key; /* in the order of the values, as far as it goes */
	int64_t row;
};

/* Was the work cancelled? NULL: it cannot be. */
static inline bool view__grid_stopped(const struct view_context *context)
{
	return context && view_cancelled(context);
}

/* ---- cells ----------------------------------------------------------------------------------- */

static inline const struct report_cell *view__grid_at(const struct view_grid *grid, int64_t row,
						      int column)
{
	return &grid->table.cells[row * grid->table.column_count + column];
}

/* Is @name one of "a,b,c"? */
bool view__grid_listed(const char *list, const char *name);
bool view__grid_chosen(const struct view_grid *grid, int column); /* hidden by nobody */
const char *view__grid_title(const struct view_grid *grid, int column);
/* The cell as it is shown. @percent: a diff with its share of the larger one. Returns @out, or the
 * cell's text. */
const char *view__grid_text(const struct view_grid *grid, int64_t row, int column, bool percent,
			    char out[VIEW_GRID_TEXT]);
/* NaN: no number. */
double view__cell_number(const struct report_cell *cell);
/* Does the row of a comparison have a difference? */
bool view__grid_differs(const struct view_grid *grid, int64_t row);

/* ---- steps ----------------------------------------------------------------------------------- */

/* Fill the grid's traits, which are cleared, with all that does not depend on the size. */
void view__grid_traits(struct view_grid *grid, const char *keys);
/* `sequence`: all rows in their order. false: stopped, and the sequence is what it was. */
bool view__grid_sort(struct view_grid *grid);
/* Is the greatest first, ordered by @column? */
bool view__grid_descends(const struct view_grid *grid, int column);
void view__grid_reorder(struct view_grid *grid); /* order, count; the cursor stays on its row */
void view__grid_scroll(struct view_grid *grid, int height); /* the cursor into view */

#endif /* VIEW_GRID_INTERNAL_H */
