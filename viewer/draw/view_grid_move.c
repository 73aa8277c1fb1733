/*
 * What keys and clicks do to a grid.
 *
 * Threading: the screen's. Ownership: none.
 */
#include "viewer/draw/view_grid_internal.h"

#include "common/str.h"
#include "viewer/draw/view_table.h"

/* ---- rows ------------------------------------------------------------------------------------ */

void view__grid_scroll(struct view_grid *grid, int height)
{
	const int64_t rows = height > 2 ? height - 1 : 1;

	if (grid->at >= grid->count)
		grid->at = grid->count - 1;
	if (grid->at < 0)
		grid->at = 0;
	if (grid->at < grid->scroll)
		grid->scroll = grid->at;
	if (grid->at >= grid->scroll + rows)
		grid->scroll = grid->at - rows + 1;
	if (grid->scroll > grid->count - rows)
		grid->scroll = grid->count - rows;
	if (grid->scroll < 0)
		grid->scroll = 0;
}

void view__grid_move(struct view_grid *grid, int height, int64_t at)
{
	grid->at = at;
	view_grid_layout(grid, grid->width, height);
}

void view__grid_say(struct view_grid *grid, const char *text)
{
	if (grid->context)
		str_copy(grid->context->message, sizeof(grid->context->message), text);
}

/* ---- columns --------------------------------------------------------------------------------- */

static bool grid_order_by(struct view_grid *grid, int column, bool reverse)
{
	const int column_before = grid->sort;
	const bool reverse_before = grid->reverse;

	grid->sort = column;
	grid->reverse = reverse;
	if (view__grid_sort(grid)) {
		view__grid_reorder(grid);
		return true;
	}
	grid->sort = column_before;
	grid->reverse = reverse_before;
	view__grid_say(grid, "stopped: the order is the one of before");
	return false;
}

bool view_grid_sort(struct view_grid *grid, const char *name, bool reverse)
{
	if (!grid->traits)
		return true;
	if (!grid_order_by(grid, name[0] ? view_table_column(&grid->table, name) : -1, reverse))
		return false;
	grid->at = grid->scroll = 0;
	return true;
}

void view_grid_sort_first(struct view_grid *grid, const char *name)
{
	if (grid->traits && grid->sort < 0 && !grid->reverse)
		grid_order_by(grid, view_table_column(&grid->table, name), false);
}

static bool grid_on_screen(const struct view_grid *grid, int column)
{
	for (int i = 0; i < grid->place_count; i++)
		if (grid->places[i].column == column)
			return true;
	return false;
}

/* By another order the first row is what is looked for; the column is brought into view. */
static void grid_sort_to(struct view_grid *grid, int height, int column, bool reverse)
{
	if (!grid_order_by(grid, column, reverse))
		return;
	view__grid_move(grid, height, 0);
	for (int i = 0; column >= 0 && i < grid->lineup_count; i++)
		if ((grid->lineup[i] == column || grid->lineup[i] == grid->traits[column].group) &&
		    !grid_on_screen(grid, column)) {
			grid->column = i;
			view__grid_move(grid, height, 0);
			return;
		}
}

/* -1 stands between the last column and the first. */
static void grid_sort_step(struct view_grid *grid, int height, int by)
{
	const int columns = grid->table.column_count;
	int column = grid->sort;

	do {
		column += by;
		if (column >= columns)
			column = -1;
		if (column < -1)
			column = columns - 1;
	} while (column >= 0 && !view__grid_chosen(grid, column));
	grid_sort_to(grid, height, column, false);
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool grid_moves(struct view_grid *grid, int height, enum view_request request)
{
	const int64_t page = height > 3 ? height - 2 : 1;
	int64_t at = grid->at;

	switch (request) {
	case VIEW_UP_REQUEST:
		at--;
		break;
	case VIEW_DOWN_REQUEST:
		at++;
		break;
	case VIEW_PAGE_UP_REQUEST:
		at -= page;
		break;
	case VIEW_PAGE_DOWN_REQUEST:
		at += page;
		break;
	case VIEW_HOME_REQUEST:
		at = 0;
		break;
	case VIEW_END_REQUEST:
		at = grid->count - 1;
		break;
	case VIEW_LEFT_REQUEST:
		grid->column -= grid->column > 0;
		break;
	case VIEW_RIGHT_REQUEST:
		grid->column += grid->after;
		break;
	default:
		return false;
	}
	view__grid_move(grid, height, at);
	return true;
}

/* Without rows there is nothing to move or to order; the keys are the grid's all the same. */
static enum view_answer grid_nothing(enum view_request request)
{
	static const enum view_request own[] = {
		VIEW_UP_REQUEST,        VIEW_DOWN_REQUEST,    VIEW_PAGE_UP_REQUEST,
		VIEW_PAGE_DOWN_REQUEST, VIEW_HOME_REQUEST,    VIEW_END_REQUEST,
		VIEW_LEFT_REQUEST,      VIEW_RIGHT_REQUEST,   VIEW_SORT_NEXT_REQUEST,
		VIEW_SORT_BACK_REQUEST, VIEW_REVERSE_REQUEST, VIEW_COLUMNS_REQUEST};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i] == request)
			return VIEW_DRAW;
	return VIEW_UNHANDLED;
}

enum view_answer view_grid_request(struct view_grid *grid, int height, enum view_request request)
{
	if (!grid->traits)
		return grid_nothing(request);
	if (grid_moves(grid, height, request))
		return VIEW_DRAW;
	switch (request) {
	case VIEW_SORT_NEXT_REQUEST:
		grid_sort_step(grid, height, 1);
		return VIEW_DRAW;
	case VIEW_SORT_BACK_REQUEST:
		grid_sort_step(grid, height, -1);
		return VIEW_DRAW;
	case VIEW_REVERSE_REQUEST:
		grid_sort_to(grid, height, grid->sort, !grid->reverse);
		return VIEW_DRAW;
	case VIEW_COLUMNS_REQUEST:
		view__grid_columns(grid, height);
		return VIEW_DRAW;
	case VIEW_BACK_REQUEST:
		if (!grid->filter[0] && !grid->trouble[0])
			return VIEW_UNHANDLED;
		view_grid_filter(grid, "");
		view_grid_layout(grid, grid->width, height);
		return VIEW_DRAW;
	default:
		return VIEW_UNHANDLED;
	}
}

enum view_answer view_grid_click(struct view_grid *grid, int height, int x, int y)
{
	if (y < 0 || y >= height || !grid->traits)
		return VIEW_UNHANDLED;
	if (y > 0) {
		if (grid->scroll + y - 1 >= grid->count)
			return VIEW_UNHANDLED;
		view__grid_move(grid, height, grid->scroll + y - 1);
		return VIEW_DRAW;
	}
	for (int i = 0; i < grid->place_count; i++) {
		const struct view_grid_place *place = &grid->places[i];

		if (x < place->x || x >= place->x + place->width)
			continue;
		grid_sort_to(grid, height, place->column,
			     place->column == grid->sort && !grid->reverse);
		return VIEW_DRAW;
	}
	return VIEW_UNHANDLED;
}
