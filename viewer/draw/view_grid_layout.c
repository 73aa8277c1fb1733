/*
 * Which columns of a grid are on the screen, and where.
 *
 * The first column, and keys next to it, stay. The others stand in a line-up that Left and Right
 * scroll: those that fit, chosen by importance, in the order of the table, then those that do not.
 * A column is at least as wide as it needs to be of use; what is left over goes to those that want
 * more (a long text, a bar, a percentage). Comparing, a number goes with its target and diff; where
 * the line-up has no room for the three, each stands for itself, and the others are scrolled to.
 *
 * Threading: the screen's. Ownership: the grid's arrays.
 */
#include "viewer/draw/view_grid_internal.h"

#include <limits.h>

#include "common/minmax.h"

#define GRID_TEXT_MOST  40
#define GRID_TEXT_LEAST 12
#define GRID_HEAD_LEAST 10 /* a heading is not cut shorter than that */
#define GRID_HEAD_MORE  2  /* of a group: " S" */
#define GRID_BAR_LEAST  6  /* with the blank before it */
#define GRID_BAR_MOST   13
#define GRID_BAR_FROM   60 /* narrower screens do without unless there is room left */
#define GRID_STAY_LEAST 8  /* a text that stays is cut down to that where nothing else has room */
#define GRID_EDGES      2  /* marks at the left and at the right */

static int grid_most(int a, int b)
{
	return max(a, b);
}

/* ---- widths ---------------------------------------------------------------------------------- */

/* @head: of its heading, short and long. Percentages say more than a long heading does. */
static void grid_number_width(const struct view_grid *grid, struct view_grid_trait *trait,
			      const int head[2])
{
	const bool bar = trait->column && trait->column->bar && trait->role == VIEW_GRID_PLAIN;
	const int most = GRID_HEAD_LEAST + (trait->size > 1 ? GRID_HEAD_MORE : 0);
	const int number = grid_most(trait->cells, min(head[0], most));

	trait->base = number;
	trait->wanted = grid_most(number, head[0]);
	if (trait->role == VIEW_GRID_DIFF)
		trait->wanted = grid_most(trait->wanted, trait->percents);
	/* What has bars is what the table is about: its percentages are, too. */
	if (trait->role == VIEW_GRID_DIFF && trait->column && trait->column->bar &&
	    grid->width >= GRID_BAR_FROM)
		trait->base = trait->wanted;
	trait->bar_from = bar ? number : 0;
	if (bar) {
		trait->base += grid->width >= GRID_BAR_FROM ? GRID_BAR_LEAST : 0;
		trait->wanted = grid_most(
			trait->wanted, number + (trait->size > 1 ? GRID_BAR_LEAST : GRID_BAR_MOST));
	}
	trait->most = bar ? trait->wanted : grid_most(trait->wanted, head[1]);
}

static void grid_text_width(struct view_grid_trait *trait, int head)
{
	const int least =
		trait->column && trait->column->least > 0 ? trait->column->least : GRID_TEXT_LEAST;

	trait->most = grid_most(trait->cells, head);
	trait->wanted = min(trait->most, GRID_TEXT_MOST);
	trait->base = min(trait->most, least);
}

static void grid_head_width(const struct view_grid *grid, int column, int head[2])
{
	char text[VIEW_GRID_TEXT];

	for (int i = 0; i < 2; i++)
		head[i] = view_text_width(view__grid_head(grid, column, i * VIEW_GRID_TEXT, text)) +
			  (grid->sort == column);
}

static void grid_widths(struct view_grid *grid)
{
	for (int i = 0; i < grid->table.column_count; i++) {
		struct view_grid_trait *trait = &grid->traits[i];
		int head[2];

		grid_head_width(grid, i, head);
		trait->stays = trait->fits = trait->alone = false;
		if (trait->number)
			grid_number_width(grid, trait, head);
		else
			grid_text_width(trait, head[1]);
		if (trait->column && trait->column->width > 0 && trait->role != VIEW_GRID_DIFF)
			trait->base = trait->wanted = trait->most = trait->column->width;
	}
}

/* Columns of the table that stand or go together with @column. */
static int grid_together(const struct view_grid *grid, int column)
{
	return grid->traits[column].alone ? 1 : grid->traits[column].size;
}

/* The columns that begin at @column, with a blank after each. */
static int grid_group_width(const struct view_grid *grid, int column)
{
	int width = 0;

	for (int i = column; i < column + grid_together(grid, column); i++)
		width += grid->traits[i].base + 1;
	return width;
}

/* ---- the line-up ----------------------------------------------------------------------------- */

static bool grid_scrolls(const struct view_grid *grid, int column)
{
	const struct view_grid_trait *trait = &grid->traits[column];

	return (trait->role == VIEW_GRID_PLAIN || trait->alone) && !trait->stays &&
	       view__grid_chosen(grid, column);
}

/* The first column, and keys that follow while they leave half of the screen. Returns the width. */
static int grid_stay(struct view_grid *grid, int room)
{
	int used = 0;

	for (int i = 0; i < grid->table.column_count; i++) {
		const int width = grid_group_width(grid, i);

		if (!view__grid_chosen(grid, i))
			continue;
		if (used > 0 && (!grid->traits[i].key || used + width > room / 2))
			break;
		if (grid->traits[i].size > 1)
			break;
		grid->traits[i].stays = true;
		used += width;
	}
	return used;
}

/* Groups that are wider than @room. */
static void grid_part(struct view_grid *grid, int room)
{
	for (int i = 0; i < grid->table.column_count; i++) {
		const int size = grid->traits[i].size;

		if (size < 2 || grid_group_width(grid, i) <= room)
			continue;
		for (int of = i; of < i + size; of++)
			grid->traits[of].alone = true;
	}
}

/* Comparing, what the rows are ordered by comes before all else. */
static int grid_importance(const struct view_grid *grid, int column)
{
	const struct view_grid_trait *trait = &grid->traits[column];

	if (grid->compared && grid->sort >= 0 && grid->traits[grid->sort].group == trait->group)
		return INT_MAX;
	return trait->column ? trait->column->importance : 1;
}

/* The most important of those that are not in yet; -1: none. */
static int grid_next_fit(const struct view_grid *grid)
{
	int best = -1, importance = 0;

	for (int i = 0; i < grid->table.column_count; i++) {
		const int own = grid_importance(grid, i);

		if (!grid_scrolls(grid, i) || grid->traits[i].fits)
			continue;
		if (best < 0 || own > importance) {
			best = i;
			importance = own;
		}
	}
	return best;
}

/* The widest text among those that stay; -1: none can be cut. */
static int grid_widest(const struct view_grid *grid)
{
	int widest = -1;

	for (int i = 0; i < grid->table.column_count; i++) {
		const struct view_grid_trait *trait = &grid->traits[i];

		if (!trait->stays || trait->number || trait->base <= GRID_STAY_LEAST)
			continue;
		if (widest < 0 || trait->base > grid->traits[widest].base)
			widest = i;
	}
	return widest;
}

/* A table of names alone says nothing: these are cut for what matters most. Of two reports, where
 * that is too little still, Diff has no place, then Target. Returns the columns gained. */
static int grid_make_room(struct view_grid *grid, int group, int room)
{
	int slack = 0, size = grid->traits[group].size;
	int need = grid_group_width(grid, group) - room;

	for (int i = 0; i < grid->table.column_count; i++)
		if (grid->traits[i].stays && !grid->traits[i].number)
			slack += grid_most(grid->traits[i].base - GRID_STAY_LEAST, 0);
	while (need > slack && size > 1)
		need -= grid->traits[group + --size].base + 1;
	need = grid_most(min(need, slack), 0);
	for (int i = 0; i < need; i++)
		grid->traits[grid_widest(grid)].base--;
	return need;
}

/* What matters most is there in any case; of a group that was parted the rest is next. */
static void grid_choose(struct view_grid *grid, int room)
{
	int next = grid_next_fit(grid), group = -1;

	if (next >= 0 && grid_group_width(grid, next) > room)
		room += grid_make_room(grid, next, room);
	grid_part(grid, room);
	for (; next >= 0; next = grid_next_fit(grid)) {
		room -= grid_group_width(grid, next);
		if (room < 0 && group >= 0 && grid->traits[next].group != group)
			return;
		group = grid->traits[next].group;
		grid->traits[next].fits = true;
	}
}

static void grid_line_up(struct view_grid *grid)
{
	grid->lineup_count = 0;
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < grid->table.column_count; i++)
			if (grid_scrolls(grid, i) && grid->traits[i].fits == (pass == 0))
				grid->lineup[grid->lineup_count++] = i;
}

/* The first of the line-up from which all the rest fits. */
static int grid_last_start(const struct view_grid *grid, int room)
{
	int start = grid->lineup_count;

	while (start > 0) {
		room -= grid_group_width(grid, grid->lineup[start - 1]);
		if (room < 0)
			break;
		start--;
	}
	return start == grid->lineup_count && start > 0 ? start - 1 : start;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* A group's columns, as far as they fit; only the first may be cut. Returns false where something
 * was left out. */
static bool grid_place_group(struct view_grid *grid, int column, int *room)
{
	for (int i = column; i < column + grid_together(grid, column); i++) {
		const int width = min(grid->traits[i].base, *room - 1);

		if (width < 1 || (i > column && width < grid->traits[i].base))
			return false;
		grid->places[grid->place_count++] =
			(struct view_grid_place){.column = i, .width = width};
		*room -= width + 1;
	}
	return true;
}

static void grid_place_lineup(struct view_grid *grid, int *room)
{
	bool first = true;

	grid->after = false;
	for (int i = grid->column; i < grid->lineup_count; i++) {
		/* One is there in any case, cut; or nothing would move. */
		if (!first && grid_group_width(grid, grid->lineup[i]) > *room)
			grid->after = true;
		if (grid->after || !grid_place_group(grid, grid->lineup[i], room)) {
			grid->after = true;
			return;
		}
		first = false;
	}
}

/* What is left over goes to those that want more, the first ones first. */
static void grid_spread(struct view_grid *grid, int room)
{
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < grid->place_count; i++) {
			struct view_grid_place *place = &grid->places[i];
			const struct view_grid_trait *trait = &grid->traits[place->column];
			const int want = pass == 0 ? trait->wanted : trait->most;
			const int more = min(want - place->width, room);

			if (more <= 0)
				continue;
			place->width += more;
			room -= more;
		}
}

void view_grid_layout(struct view_grid *grid, int width, int height)
{
	/* Each column has a blank after it; that of the last one is needed beside a scroll mark. */
	int room = width - GRID_EDGES + (grid->count < height), x = 1;

	grid->width = width;
	grid->place_count = 0;
	if (!grid->traits)
		return;
	view__grid_scroll(grid, height);
	view__grid_measure(grid, height);
	grid_widths(grid);
	grid_choose(grid, room - grid_stay(grid, room));
	grid_line_up(grid);
	for (int i = 0; i < grid->table.column_count; i++)
		if (grid->traits[i].stays)
			grid_place_group(grid, i, &room);
	grid->column = min(grid->column, grid_last_start(grid, room));
	grid->column = grid_most(grid->column, 0);
	grid->before = grid->column > 0;
	grid_place_lineup(grid, &room);
	grid_spread(grid, room);
	for (int i = 0; i < grid->place_count; i++) {
		grid->places[i].x = x;
		x += grid->places[i].width + 1;
	}
}

int view_grid_used(const struct view_grid *grid)
{
	const struct view_grid_place *last;

	if (grid->place_count == 0)
		return 0;
	last = &grid->places[grid->place_count - 1];
	return min(last->x + last->width + 1, grid->width);
}
