/*
 * The tiles as a table: a row each with what it holds, by the breakdown that is chosen.
 *
 * Threading: the worker's. Ownership: tables own their cells and the names of their columns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "viewer/draw/view_table.h"
#include "viewer/memory/view_memory_internal.h"

#define KEYS "ipu,tile"

enum {
	TABLE_IPU,
	TABLE_TILE,
	TABLE_BYTES,
	TABLE_SHARE,
	TABLE_CAPACITY,
	TABLE_ALWAYS,
	TABLE_NOT_ALWAYS,
	TABLE_NON_INTERLEAVED,
	TABLE_INTERLEAVED,
	TABLE_OVERFLOWED,
	TABLE_COLUMNS
};

/* As `ipu-report memory --by tile` names them. */
static const struct report_column view_columns[TABLE_COLUMNS] = {
	[TABLE_IPU] = {"ipu", REPORT_NUMBER},
	[TABLE_TILE] = {"tile", REPORT_NUMBER},
	[TABLE_BYTES] = {"bytes", REPORT_BYTES},
	[TABLE_SHARE] = {"used_share", REPORT_FRACTION},
	[TABLE_CAPACITY] = {"capacity", REPORT_BYTES},
	[TABLE_ALWAYS] = {"always_live_bytes", REPORT_BYTES},
	[TABLE_NOT_ALWAYS] = {"not_always_live_bytes", REPORT_BYTES},
	[TABLE_NON_INTERLEAVED] = {"non_interleaved_bytes", REPORT_BYTES},
	[TABLE_INTERLEAVED] = {"interleaved_bytes", REPORT_BYTES},
	[TABLE_OVERFLOWED] = {"overflowed_bytes", REPORT_BYTES},
};

static const struct view_grid_column view_shown[] = {
	{"ipu", "IPU", 0, 0, 20, false},
	{"tile", NULL, 0, 0, 20, false},
	{"bytes", "in use", 0, 0, 19, true},
	{"used_share", "of tile", 0, 0, 18, false},
	{"shown_bytes", "shown", 0, 0, 17, true},
	{"always_live_bytes", "always live", 11, 0, 16, false},
	{"not_always_live_bytes", "not always", 10, 0, 15, false},
	{"non_interleaved_bytes", "non-interl.", 11, 0, 5, false},
	{"interleaved_bytes", "interleaved", 11, 0, 5, false},
	{"overflowed_bytes", "overflowed", 10, 0, 6, false},
	{"capacity", NULL, 0, 0, 4, false},
};

/* What is chosen, or the categories, after the columns that are always there. */
static int view_more_columns(const struct view_memory *screen)
{
	if (screen->subject.name[0] || screen->chosen >= 0)
		return 1;
	return screen->breakdown == VIEW_MEMORY_BY_CATEGORY ? screen->series_count : 0;
}

static void view_fill_row(const struct view_memory *screen, struct report_table *table, int64_t row,
			  int side, int64_t index)
{
	const struct view_memory_side *from = &screen->side[side];
	const int64_t capacity = from->capacity[index], more = view_more_columns(screen);

	view_table_int(table, row, TABLE_IPU, view__memory_ipu_of(screen, index));
	view_table_int(table, row, TABLE_TILE, view__memory_tile_of(screen, index));
	view_table_int(table, row, TABLE_BYTES, from->total[index]);
	view_table_real(table, row, TABLE_SHARE, view__memory_share(from->total[index], capacity));
	view_table_int(table, row, TABLE_CAPACITY, capacity > 0 ? capacity : IPS_NULL);
	view_table_int(table, row, TABLE_ALWAYS, from->always[index]);
	view_table_int(table, row, TABLE_NOT_ALWAYS, from->not_always[index]);
	for (int r = 0; r < VIEW_MEMORY_REGIONS; r++)
		view_table_int(table, row, TABLE_NON_INTERLEAVED + r, from->region[r][index]);
	if (screen->subject.name[0] || screen->chosen >= 0) {
		view_table_int(table, row, TABLE_COLUMNS, view__memory_value(screen, side, index));
		return;
	}
	for (int i = 0; i < more; i++) {
		const int64_t *bytes = screen->series[i].bytes[side];

		view_table_int(table, row, TABLE_COLUMNS + i, bytes ? bytes[index] : 0);
	}
}

static int64_t view_greater_total(const struct view_memory *screen, int64_t index)
{
	int64_t greater = 0;

	for (int s = 0; s < screen->sides; s++)
		if (screen->side[s].total[index] > greater)
			greater = screen->side[s].total[index];
	return greater;
}

static int view_descending(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x < y) - (x > y);
}

/* Which tiles are rows: those with more than `least` bytes, and so many that have just that. */
struct view_choice {
	bool all;
	int64_t least, ties;
};

/* The ROWS_MOST fullest tiles. */
static enum status view_choose(const struct view_memory *screen, struct view_choice *out,
			       struct err *err)
{
	const int64_t shown = view__memory_shown(screen);
	int64_t *totals;

	*out = (struct view_choice){.all = shown <= VIEW_MEMORY_ROWS};
	if (out->all)
		return ST_OK;
	totals = mem_calloc((size_t)shown, sizeof(*totals));
	if (!totals)
		return err_nomem(err);
	for (int64_t p = 0; p < shown; p++)
		totals[p] = view_greater_total(screen, view__memory_at(screen, p));
	qsort(totals, (size_t)shown, sizeof(*totals), view_descending);
	out->least = totals[VIEW_MEMORY_ROWS - 1];
	for (int64_t i = VIEW_MEMORY_ROWS; i-- > 0 && totals[i] == out->least;)
		out->ties++;
	mem_free(totals);
	return ST_OK;
}

/* Is the tile a row? Asked in the order of positions, about each. */
static bool view_takes(const struct view_memory *screen, struct view_choice *choice, int side,
		       int64_t index)
{
	const int64_t total = view_greater_total(screen, index);

	if (!choice->all &&
	    (total < choice->least || (total == choice->least && choice->ties-- <= 0)))
		return false;
	return screen->side[side].capacity[index] > 0 || screen->side[side].total[index] > 0;
}

static enum status view_name_columns(const struct view_memory *screen, struct report_table *table,
				     struct err *err)
{
	for (int i = TABLE_COLUMNS; i < table->column_count; i++) {
		const char *name = screen->chosen < 0 && !screen->subject.name[0]
					   ? arena_printf(&table->arena, "%s_bytes",
							  screen->series[i - TABLE_COLUMNS].name)
					   : "shown_bytes";

		if (!name)
			return err_nomem(err);
		table->columns[i] = (struct report_column){name, REPORT_BYTES};
	}
	return ST_OK;
}

static enum status view_build(const struct view_memory *screen, int side, const void *choice,
			      struct report_table *out, struct err *err)
{
	struct report_column columns[TABLE_COLUMNS + VIEW_MEMORY_CATEGORIES] = {{0}};
	const int64_t shown = view__memory_shown(screen);
	struct view_choice left = *(const struct view_choice *)choice;
	enum status status;
	int64_t rows = 0;

	for (int64_t p = 0; p < shown; p++)
		rows += view_takes(screen, &left, side, view__memory_at(screen, p));
	memcpy(columns, view_columns, sizeof(view_columns));
	status = view_table_new(out, "tiles", columns, TABLE_COLUMNS + view_more_columns(screen),
				rows, err);
	if (status != ST_OK)
		return status;
	status = view_name_columns(screen, out, err);
	if (status != ST_OK) {
		report_table_free(out);
		memset(out, 0, sizeof(*out));
		return status;
	}
	left = *(const struct view_choice *)choice;
	rows = 0;
	for (int64_t p = 0; p < shown; p++) {
		const int64_t index = view__memory_at(screen, p);

		if (view_takes(screen, &left, side, index))
			view_fill_row(screen, out, rows++, side, index);
	}
	return ST_OK;
}

/* ---- also the table of IPUs' ----------------------------------------------------------------- */

enum status view__memory_compare(const struct view_memory *screen,
				 const struct view_context *context, view_memory_build build,
				 const void *rows, const char *keys, struct report_table *out,
				 struct err *err)
{
	struct report_table tables[VIEW_MEMORY_SIDES] = {{0}};
	enum status status = build(screen, 0, rows, &tables[0], err);

	if (status != ST_OK || screen->sides == 1) {
		*out = tables[0];
		return status;
	}
	status = build(screen, 1, rows, &tables[1], err);
	if (status == ST_OK)
		status = view_grid_compare(out, context, &tables[0], &tables[1], keys, err);
	for (int s = 0; s < VIEW_MEMORY_SIDES; s++)
		report_table_free(&tables[s]);
	return status;
}

enum status view__memory_set_grid(struct view_grid *grid, struct view_context *context,
				  struct report_table *table,
				  const struct view_grid_column *columns, int count,
				  const char *keys, const char *sort, struct err *err)
{
	const bool first = grid->table.column_count == 0;
	enum status status;

	grid->differ = context->differ;
	status = view_grid_set(grid, context, table, columns, count, keys, err);
	if (status == ST_OK && first)
		view_grid_sort(grid, sort, false);
	return status;
}

/* ---- the grid -------------------------------------------------------------------------------- */

/* The cursor's tile becomes the cursor's row. */
static void view_sync(struct view_memory *screen)
{
	struct view_grid *grid = &screen->grid;

	for (int64_t i = 0; i < grid->count; i++) {
		const struct report_cell *row =
			&grid->table.cells[grid->order[i] * grid->table.column_count];

		if (row[TABLE_IPU].integer == screen->at_ipu &&
		    row[TABLE_TILE].integer == screen->at_tile) {
			grid->at = i;
			return;
		}
	}
}

enum status view__memory_grid(struct view_memory *screen, struct view_context *context,
			      struct err *err)
{
	const struct view_rect *area = &screen->areas.picture;
	struct view_grid *grid = &screen->grid;
	struct report_table table = {0};
	enum status status = ST_OK;
	struct view_choice choice;

	if (screen->grid_stale || grid->differ != context->differ) {
		status = view_choose(screen, &choice, err);
		if (status == ST_OK)
			status = view__memory_compare(screen, context, view_build, &choice, KEYS,
						      &table, err);
		if (status == ST_OK)
			status = view__memory_set_grid(grid, context, &table, view_shown,
						       (int)ARRAY_LEN(view_shown), KEYS, "bytes",
						       err);
		if (status != ST_OK)
			return status;
		screen->grid_stale = false;
	}
	view_sync(screen);
	view_grid_layout(grid, area->width, area->height);
	return ST_OK;
}

struct view_grid *view__memory_shown_grid(struct view_memory *screen)
{
	return screen->view == VIEW_MEMORY_TABLE  ? &screen->grid
	       : screen->view == VIEW_MEMORY_IPUS ? &screen->ipu_grid
						  : NULL;
}

enum status view__memory_load_grid(struct view_memory *screen, struct view_context *context,
				   struct err *err)
{
	if (screen->view == VIEW_MEMORY_TABLE)
		return view__memory_grid(screen, context, err);
	return screen->view == VIEW_MEMORY_IPUS ? view__memory_ipu_grid(screen, context, err)
						: ST_OK;
}

enum status view__memory_table(void *state, struct view_context *context, struct report_table *out,
			       struct err *err)
{
	const struct view_choice all = {.all = true};
	struct view_memory *screen = state;

	if (screen->view == VIEW_MEMORY_IPUS)
		return view__memory_ipus(screen, out, err);
	if (screen->view == VIEW_MEMORY_TABLE && !screen->grid_stale &&
	    view__memory_shown(screen) <= VIEW_MEMORY_ROWS)
		return view_grid_table(&screen->grid, out, err);
	return view__memory_compare(screen, context, view_build, &all, KEYS, out, err);
}
