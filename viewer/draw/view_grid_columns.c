/*
 * Which columns of a grid are chosen, and what the grid says of itself.
 *
 * Threading: the screen's. Ownership: none.
 */
#include "viewer/draw/view_grid_internal.h"

#include <stdio.h>

#include "common/fmt.h"

/* ---- choosing columns ------------------------------------------------------------------------ */

enum grid_choice {
	GRID_ALL,   /* those of no importance, too */
	GRID_FEWER, /* without the one that orders the rows */
	GRID_USUAL  /* those of some importance */
};

/* Columns that are nowhere, however wide the screen is; a group counts as one. */
static int grid_left_out(const struct view_grid *grid)
{
	int count = 0;

	for (int i = 0; i < grid->table.column_count; i++)
		count += grid->traits[i].role == VIEW_GRID_PLAIN && !view__grid_chosen(grid, i);
	return count;
}

/* Columns for which there is no room: to the left and to the right. */
static int grid_off_screen(const struct view_grid *grid)
{
	int count = grid->lineup_count;

	for (int i = 0; i < grid->place_count; i++) {
		const struct view_grid_trait *trait = &grid->traits[grid->places[i].column];

		count -= (trait->role == VIEW_GRID_PLAIN || trait->alone) && !trait->stays;
	}
	return count;
}

static bool grid_hides_some(const struct view_grid *grid)
{
	for (int i = 0; i < grid->table.column_count; i++)
		if (grid->traits[i].hidden)
			return true;
	return false;
}

/* The first of the group that orders the rows, where it can be hidden; -1. */
static int grid_to_hide(const struct view_grid *grid)
{
	const int group = grid->sort >= 0 ? grid->traits[grid->sort].group : -1;

	return group >= 0 && !grid->traits[group].stays && view__grid_chosen(grid, group) ? group
											  : -1;
}

static enum grid_choice grid_next_choice(const struct view_grid *grid)
{
	if (!grid_hides_some(grid) && grid_left_out(grid) > 0)
		return GRID_ALL;
	return grid_to_hide(grid) >= 0 ? GRID_FEWER : GRID_USUAL;
}

static void grid_say_choice(struct view_grid *grid, enum grid_choice choice, int hidden,
			    bool changed)
{
	char text[VIEW_MESSAGE_SIZE];

	if (choice == GRID_FEWER)
		snprintf(text, sizeof(text), "%.40s is hidden; | again: the usual columns",
			 view__grid_title(grid, hidden));
	else if (choice == GRID_USUAL && changed)
		snprintf(text, sizeof(text), "the usual columns again");
	else if (grid_off_screen(grid) > 0)
		snprintf(text, sizeof(text), "all columns are shown: %s",
			 grid->still ? "> goes through them" : "l and h go sideways");
	else
		snprintf(text, sizeof(text), "all columns are shown; %s",
			 choice == GRID_ALL ? "| again: fewer" : "> orders by one, and | hides it");
	view__grid_say(grid, text);
}

/* What is filtered are the cells that are shown. */
static bool grid_apply(struct view_grid *grid)
{
	if (grid->filter[0] && !view__grid_pass(grid))
		return false;
	view__grid_reorder(grid);
	return true;
}

void view__grid_columns(struct view_grid *grid, int height)
{
	const enum grid_choice choice = grid_next_choice(grid);
	const bool every = grid->every, changed = every || grid_hides_some(grid);
	const int hidden = choice == GRID_FEWER ? grid_to_hide(grid) : -1;

	for (int i = 0; i < grid->table.column_count; i++) {
		struct view_grid_trait *trait = &grid->traits[i];

		trait->before = trait->hidden;
		trait->hidden = i == hidden || (choice == GRID_FEWER && trait->hidden);
	}
	grid->every = choice == GRID_ALL || (choice == GRID_FEWER && every);
	if (!grid_apply(grid)) {
		for (int i = 0; i < grid->table.column_count; i++)
			grid->traits[i].hidden = grid->traits[i].before;
		grid->every = every;
		view__grid_say(grid, "stopped: the columns are those of before");
		return;
	}
	grid->column = 0;
	view_grid_layout(grid, grid->width, height);
	grid_say_choice(grid, choice, hidden, changed);
}

/* ---- the status line ------------------------------------------------------------------------- */

static void grid_status_order(const struct view_grid *grid, char *out, size_t size)
{
	const int group = grid->sort >= 0 ? grid->traits[grid->sort].group : -1;

	out[0] = '\0';
	if (grid->sort >= 0)
		snprintf(out, size, ", by %.60s%s%s%s", view__grid_title(grid, group),
			 group == grid->sort ? "" : " ",
			 group == grid->sort ? "" : view__grid_title(grid, grid->sort),
			 grid->reverse ? " reversed" : "");
	else if (grid->reverse)
		snprintf(out, size, ", reversed");
}

/* "+3 columns: l, +12: |": how many more there are, and the keys that show them. */
static void grid_status_columns(const struct view_grid *grid, char *out, size_t size)
{
	const int off = grid_off_screen(grid), out_of_all = grid_left_out(grid);
	/* Where the screen has other use for these: an order by a column brings it into view. */
	const char *keys = grid->still ? ">" : !grid->before ? "l" : grid->after ? "h l" : "h";
	char sideways[40] = "", more[40] = "";

	if (off > 0)
		snprintf(sideways, sizeof(sideways), ", +%d column%s: %s", off, off == 1 ? "" : "s",
			 keys);
	if (out_of_all > 0)
		snprintf(more, sizeof(more), ", +%d%s: |", out_of_all,
			 off > 0           ? ""
			 : out_of_all == 1 ? " column"
					   : " columns");
	snprintf(out, size, "%s%s", sideways, more);
}

void view_grid_status(const struct view_grid *grid, char *out, size_t size)
{
	char at[FMT_SIZE], count[FMT_SIZE], number[FMT_SIZE];
	char row[2 * FMT_SIZE + 16] = "no rows", all[FMT_SIZE + 16] = "", order[160] = "",
				columns[80] = "";

	if (grid->trouble[0]) {
		snprintf(out, size, "filter: %s", grid->trouble);
		return;
	}
	if (grid->count < grid->table.row_count)
		snprintf(all, sizeof(all), " (%s in all)",
			 fmt_count(number, grid->table.row_count));
	if (grid->traits) {
		grid_status_order(grid, order, sizeof(order));
		grid_status_columns(grid, columns, sizeof(columns));
	}
	if (grid->count > 0)
		snprintf(row, sizeof(row), "row %s of %s", fmt_count(at, grid->at + 1),
			 fmt_count(count, grid->count));
	/* The order last: where it is cut off, the headings show it. */
	snprintf(out, size, "%s%s%s%s%s%s", row, all, grid->filter[0] ? ", filter " : "",
		 grid->filter, grid->count > 0 ? columns : "", order);
}
