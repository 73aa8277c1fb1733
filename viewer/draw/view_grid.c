/*
 * The rows of a grid: taken over, found again, handed out.
 *
 * Threading: the screen's. Ownership: the grid owns its table and, in an arena, what is made of it.
 */
#include "viewer/draw/view_grid_internal.h"

#include <string.h>

#include "viewer/draw/view_table.h"

#define GRID_KEYS 8

void view_grid_fini(struct view_grid *grid)
{
	report_table_free(&grid->table);
	arena_fini(&grid->arena);
	memset(grid, 0, sizeof(*grid));
}

static enum status grid_make(struct view_grid *grid, struct err *err)
{
	const size_t rows = (size_t)grid->table.row_count + 1;
	const size_t columns = (size_t)grid->table.column_count + 1;

	if (arena_init(&grid->arena, 0))
		return err_nomem(err);
	grid->order = arena_alloc(&grid->arena, rows, sizeof(*grid->order));
	grid->keys = arena_alloc(&grid->arena, rows, sizeof(*grid->keys));
	grid->spare = arena_alloc(&grid->arena, rows, sizeof(*grid->spare));
	grid->sequence = arena_alloc(&grid->arena, rows, sizeof(*grid->sequence));
	grid->passes = arena_alloc(&grid->arena, rows, sizeof(*grid->passes));
	grid->judged = arena_alloc(&grid->arena, rows, sizeof(*grid->judged));
	grid->places = arena_alloc(&grid->arena, columns, sizeof(*grid->places));
	grid->lineup = arena_alloc(&grid->arena, columns, sizeof(*grid->lineup));
	grid->traits = arena_alloc(&grid->arena, columns, sizeof(*grid->traits));
	if (grid->order && grid->keys && grid->spare && grid->sequence && grid->passes &&
	    grid->judged && grid->places && grid->lineup && grid->traits)
		return ST_OK;
	arena_fini(&grid->arena);
	return err_nomem(err);
}

static bool grid_same(const struct report_cell *a, const struct report_cell *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case PROF_INT:
		return a->integer == b->integer;
	case PROF_REAL:
		return a->real == b->real;
	case PROF_TEXT:
		return strcmp(a->text, b->text) == 0;
	default:
		return true;
	}
}

/* The columns of keys in both tables; 0: not all are there. */
static int grid_key_columns(const struct view_grid *old, const struct view_grid *grid,
			    int from[GRID_KEYS], int to[GRID_KEYS])
{
	int count = 0;

	for (int i = 0; i < grid->table.column_count && count < GRID_KEYS; i++) {
		if (!grid->traits[i].key)
			continue;
		from[count] = view_table_column(&old->table, grid->table.columns[i].name);
		to[count] = i;
		if (from[count++] < 0)
			return 0;
	}
	return count;
}

/* The cursor of @old's rows among those of @grid; by number where it is not there. */
static int64_t grid_find(const struct view_grid *old, const struct view_grid *grid)
{
	int from[GRID_KEYS], to[GRID_KEYS];
	const int keys = grid_key_columns(old, grid, from, to);

	if (old->at >= old->count || keys == 0)
		return old->at;
	for (int64_t i = 0; i < grid->count; i++) {
		int same = 0;

		while (same < keys && grid_same(view__grid_at(old, old->order[old->at], from[same]),
						view__grid_at(grid, grid->order[i], to[same])))
			same++;
		if (same == keys)
			return i;
		if (i % VIEW_GRID_SLICE == 0 && view__grid_stopped(grid->context))
			break;
	}
	return old->at;
}

/* What was chosen of @old's columns, by name. */
static void grid_keep_columns(const struct view_grid *old, struct view_grid *grid)
{
	grid->sort = -1;
	if (old->sort >= 0 && old->sort < old->table.column_count)
		grid->sort = view_table_column(&grid->table, old->table.columns[old->sort].name);
	for (int i = 0; i < old->table.column_count; i++) {
		const int at = old->traits[i].hidden
				       ? view_table_column(&grid->table, old->table.columns[i].name)
				       : -1;

		if (at >= 0)
			grid->traits[at].hidden = true;
	}
}

/* Rows to order; the cursor and what is shown around it. false: stopped. */
static bool grid_arrange(const struct view_grid *old, struct view_grid *grid)
{
	if (!view__grid_sort(grid) || !view__grid_pass(grid))
		return false;
	view__grid_reorder(grid);
	grid->at = grid_find(old, grid);
	grid->scroll = grid->at - (old->at - old->scroll);
	return !view__grid_stopped(grid->context);
}

enum status view_grid_set(struct view_grid *grid, struct view_context *context,
			  struct report_table *table, const struct view_grid_column *columns,
			  int column_count, const char *keys, struct err *err)
{
	struct view_grid next = *grid;
	enum status status;

	next.context = context;
	next.table = *table;
	memset(table, 0, sizeof(*table));
	next.count = 0;
	next.place_count = next.lineup_count = 0;
	status = grid_make(&next, err);
	if (status != ST_OK) {
		report_table_free(&next.table);
		return status;
	}
	next.columns = columns;
	next.column_count = column_count;
	view__grid_traits(&next, keys);
	grid_keep_columns(grid, &next);
	if (!grid_arrange(grid, &next)) {
		arena_fini(&next.arena);
		report_table_free(&next.table);
		return err_set(err, ST_INTERRUPTED, "stopped");
	}

	report_table_free(&grid->table);
	arena_fini(&grid->arena);
	*grid = next;
	return ST_OK;
}

const struct report_cell *view_grid_cell(const struct view_grid *grid, const char *column)
{
	const int at = view_table_column(&grid->table, column);

	return at >= 0 && grid->at < grid->count ? view__grid_at(grid, grid->order[grid->at], at)
						 : NULL;
}

/* The place of the row in the order; -1: it is not shown. */
static int64_t grid_row_of(const struct view_grid *grid, int column, const char *text,
			   int64_t number)
{
	for (int64_t i = 0; i < grid->count; i++) {
		const struct report_cell *cell = view__grid_at(grid, grid->order[i], column);

		if (text ? cell->type == PROF_TEXT && strcmp(cell->text, text) == 0
			 : cell->type == PROF_INT && cell->integer == number)
			return i;
	}
	return -1;
}

bool view_grid_go(struct view_grid *grid, int height, const char *column, const char *text,
		  int64_t number)
{
	const int at = view_table_column(&grid->table, column);
	int64_t row = at >= 0 ? grid_row_of(grid, at, text, number) : -1;
	char filter[sizeof(grid->filter)];

	if (row < 0 && at >= 0 && grid->filter[0]) {
		memcpy(filter, grid->filter, sizeof(filter));
		view_grid_filter(grid, "");
		row = grid_row_of(grid, at, text, number);
		if (row < 0)
			view_grid_filter(grid, filter);
	}
	if (row < 0)
		return false;
	view__grid_move(grid, height, row);
	return true;
}

/* @text becomes the table's own; NULL stays NULL. */
static enum status grid_own(struct report_table *table, const char **text, struct err *err)
{
	if (!*text)
		return ST_OK;
	*text = arena_strdup(&table->arena, *text);
	return *text ? ST_OK : err_nomem(err);
}

enum status view_grid_table(const struct view_grid *grid, struct report_table *out, struct err *err)
{
	const int columns = grid->table.column_count;
	enum status status = view_table_new(out, grid->table.name ? grid->table.name : "table",
					    grid->table.columns, columns, grid->count, err);

	if (status != ST_OK)
		return status;
	out->note = grid->table.note;
	status = grid_own(out, &out->name, err);
	if (status == ST_OK)
		status = grid_own(out, &out->note, err);
	for (int i = 0; status == ST_OK && i < columns; i++)
		status = grid_own(out, &out->columns[i].name, err);
	for (int64_t i = 0; status == ST_OK && i < grid->count * columns; i++) {
		if (i % VIEW_GRID_SLICE == 0 && view__grid_stopped(grid->context)) {
			status = err_set(err, ST_INTERRUPTED, "stopped");
			break;
		}
		out->cells[i] = *view__grid_at(grid, grid->order[i / columns], (int)(i % columns));
		status = grid_own(out, &out->cells[i].text, err);
	}
	if (status != ST_OK)
		report_table_free(out);
	return status;
}
