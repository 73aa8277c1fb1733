/*
 * The table of tiles and the table of IPUs.
 *
 * Threading: the session's. Ownership: the grids own their rows.
 */
#include "viewer/memory/view_memory_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"
#include "common/str.h"
#include "viewer/draw/view_table.h"

/* ---- tiles ----------------------------------------------------------------------------------- */

#define MEMORY_TABLE_KEYS "ipu,tile"

#define TABLE_COLUMNS 10 /* without those of the selected quantity or the categories */

/* Named as in `ipu-report memory --by tile`. */
static const struct report_column memory_table_columns[TABLE_COLUMNS] = {
	{"ipu", REPORT_NUMBER},
	{"tile", REPORT_NUMBER},
	{"bytes", REPORT_BYTES},
	{"used_share", REPORT_FRACTION},
	{"capacity", REPORT_BYTES},
	{"always_live_bytes", REPORT_BYTES},
	{"not_always_live_bytes", REPORT_BYTES},
	{"non_interleaved_bytes", REPORT_BYTES},
	{"interleaved_bytes", REPORT_BYTES},
	{"overflowed_bytes", REPORT_BYTES},
};

static const struct view_grid_column memory_table_shown[] = {
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

/* Number of columns after the fixed ones: the selected quantity, or the categories. */
static int memory_extra_columns(const struct view_memory *screen)
{
	if (screen->subject.name[0] || screen->chosen >= 0)
		return 1;
	return screen->breakdown == VIEW_MEMORY_BY_CATEGORY ? screen->series_count : 0;
}

static enum status memory_table_fill_row(const struct view_memory *screen,
					 struct report_table *table, int64_t row, int side,
					 int64_t index, struct err *err)
{
	const struct view_memory_side *from = &screen->side[side];
	const int64_t capacity = from->capacity[index];
	const int more = memory_extra_columns(screen);
	struct report_cell cells[TABLE_COLUMNS + VIEW_MEMORY_CATEGORIES] = {
		view_int(view__memory_ipu_of(screen, index)),
		view_int(view__memory_tile_of(screen, index)),
		view_int(from->total[index]),
		view_real(view__memory_share(from->total[index], capacity)),
		view_int(capacity > 0 ? capacity : IPS_NULL),
		view_int(from->always[index]),
		view_int(from->not_always[index]),
		view_int(from->region[VIEW_MEMORY_NON_INTERLEAVED][index]),
		view_int(from->region[VIEW_MEMORY_INTERLEAVED][index]),
		view_int(from->region[VIEW_MEMORY_OVERFLOWED][index]),
	};

	if (screen->subject.name[0] || screen->chosen >= 0)
		cells[TABLE_COLUMNS] = view_int(view__memory_value(screen, side, index));
	else
		for (int i = 0; i < more; i++) {
			const int64_t *bytes = screen->series[i].bytes[side];

			cells[TABLE_COLUMNS + i] = view_int(bytes ? bytes[index] : 0);
		}
	return view_table_row(table, row, cells, err);
}

static int64_t memory_greater_total(const struct view_memory *screen, int64_t index)
{
	int64_t greater = 0;

	for (int s = 0; s < screen->sides; s++)
		if (screen->side[s].total[index] > greater)
			greater = screen->side[s].total[index];
	return greater;
}

static int memory_descending(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return SORTED_ORDER(y, x);
}

/* The tiles that become rows: those with more than `least` bytes, and the first `ties` tiles with
 * exactly `least` bytes. */
struct view_choice {
	bool all;
	int64_t least, ties;
};

/* Choose the VIEW_MEMORY_ROWS fullest tiles. */
static enum status memory_choose_rows(const struct view_memory *screen, struct view_choice *out,
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
		totals[p] = memory_greater_total(screen, view__memory_at(screen, p));
	qsort(totals, (size_t)shown, sizeof(*totals), memory_descending);
	out->least = totals[VIEW_MEMORY_ROWS - 1];
	for (int64_t i = VIEW_MEMORY_ROWS; i-- > 0 && totals[i] == out->least;)
		out->ties++;
	mem_free(totals);
	return ST_OK;
}

/* Return true if the tile is a row. Must be called once for each tile, in the order of
 * positions. */
static bool memory_is_row(const struct view_memory *screen, struct view_choice *choice, int side,
			  int64_t index)
{
	const int64_t total = memory_greater_total(screen, index);

	if (!choice->all &&
	    (total < choice->least || (total == choice->least && choice->ties-- <= 0)))
		return false;
	return screen->side[side].capacity[index] > 0 || screen->side[side].total[index] > 0;
}

static enum status memory_table_build(const struct view_memory *screen, int side,
				      const void *choice, struct report_table *out, struct err *err)
{
	struct report_column columns[TABLE_COLUMNS + VIEW_MEMORY_CATEGORIES] = {{0}};
	const int64_t shown = view__memory_shown(screen);
	struct view_choice left = *(const struct view_choice *)choice;
	enum status status;
	int64_t rows = 0;

	for (int64_t p = 0; p < shown; p++)
		rows += memory_is_row(screen, &left, side, view__memory_at(screen, p));
	memcpy(columns, memory_table_columns, sizeof(memory_table_columns));
	status = view_table_new(out, "tiles", columns, TABLE_COLUMNS + memory_extra_columns(screen),
				rows, err);
	if (status != ST_OK)
		return status;
	for (int i = TABLE_COLUMNS; i < out->column_count; i++) {
		const char *name = screen->chosen < 0 && !screen->subject.name[0]
					   ? arena_printf(&out->arena, "%s_bytes",
							  screen->series[i - TABLE_COLUMNS].name)
					   : "shown_bytes";

		out->columns[i] = (struct report_column){name, REPORT_BYTES};
		if (name)
			continue;
		report_table_free(out);
		memset(out, 0, sizeof(*out));
		return err_nomem(err);
	}
	left = *(const struct view_choice *)choice;
	rows = 0;
	for (int64_t p = 0; p < shown && status == ST_OK; p++) {
		const int64_t index = view__memory_at(screen, p);

		if (memory_is_row(screen, &left, side, index))
			status = memory_table_fill_row(screen, out, rows++, side, index, err);
	}
	return status;
}

/* ---- both tables ----------------------------------------------------------------------------- */

/* Build the Source's table, or join both reports' tables. */
static enum status memory_build_tables(const struct view_memory *screen,
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

/* Move @table into the grid; sort the first one by @sort. */
static enum status memory_set_grid(struct view_grid *grid, struct view_context *context,
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

static enum status memory_load_tile_grid(struct view_memory *screen, struct view_context *context,
					 struct err *err)
{
	struct view_grid *grid = &screen->grid;
	struct report_table table = {0};
	enum status status = ST_OK;
	struct view_choice choice;

	if (screen->grid_stale || grid->differ != context->differ) {
		status = memory_choose_rows(screen, &choice, err);
		if (status == ST_OK)
			status = memory_build_tables(screen, context, memory_table_build, &choice,
						     MEMORY_TABLE_KEYS, &table, err);
		if (status == ST_OK)
			status = memory_set_grid(grid, context, &table, memory_table_shown,
						 (int)ARRAY_LEN(memory_table_shown),
						 MEMORY_TABLE_KEYS, "bytes", err);
		if (status != ST_OK)
			return status;
		screen->grid_stale = false;
	}
	for (int64_t i = 0; i < grid->count; i++) {
		const struct report_cell *row =
			&grid->table.cells[grid->order[i] * grid->table.column_count];

		if (row[0].integer != screen->at_ipu || row[1].integer != screen->at_tile)
			continue;
		grid->at = i;
		break;
	}
	view_grid_layout(grid, screen->areas.picture);
	return ST_OK;
}

struct view_grid *view__memory_shown_grid(struct view_memory *screen)
{
	return screen->view == VIEW_MEMORY_TABLE  ? &screen->grid
	       : screen->view == VIEW_MEMORY_IPUS ? &screen->ipu_grid
						  : NULL;
}

/* ---- IPUs ------------------------------------------------------------------------------------ */

#define MEMORY_IPUS_KEYS "ipu"

static const struct view_grid_column memory_ipus_shown[] = {
	{"ipu", "IPU", 0, 0, 20, false},
	{"bytes", "in use", 0, 0, 19, true},
	{"used_share", "of IPU", 0, 0, 18, false},
	{"fullest_tile", "fullest", 0, 0, 17, false},
	{"fullest_bytes", "holds", 0, 0, 17, false},
	{"fullest_share", "of tile", 0, 0, 16, false},
	{"mean_bytes", "mean", 0, 0, 15, false},
	{"least_bytes", "min", 0, 0, 14, false},
	{"tiles_over", "over", 0, 0, 13, false},
	{"excess_bytes", "too much", 0, 0, 8, false},
	{"always_live_bytes", "always live", 11, 0, 12, false},
	{"not_always_live_bytes", "not always", 10, 0, 11, false},
	{"tiles", NULL, 0, 0, 5, false},
	{"capacity", NULL, 0, 0, 4, false},
};

/* Named as in `ipu-report memory`. */
static const struct report_column memory_ipus_columns[] = {
	{"ipu", REPORT_NUMBER},
	{"bytes", REPORT_BYTES},
	{"used_share", REPORT_FRACTION},
	{"fullest_tile", REPORT_NUMBER},
	{"fullest_bytes", REPORT_BYTES},
	{"fullest_share", REPORT_FRACTION},
	{"mean_bytes", REPORT_BYTES},
	{"least_bytes", REPORT_BYTES},
	{"tiles_over", REPORT_NUMBER},
	{"excess_bytes", REPORT_BYTES},
	{"always_live_bytes", REPORT_BYTES},
	{"not_always_live_bytes", REPORT_BYTES},
	{"tiles", REPORT_NUMBER},
	{"capacity", REPORT_BYTES},
};

/* Sums over an IPU's tiles; fullest is an index. */
struct view_ipu_sums {
	int64_t bytes, capacity, always, not_always, tiles, over, excess, least, fullest;
};

static void memory_sum_ipu(const struct view_memory *screen, int side, int at,
			   struct view_ipu_sums *sums)
{
	const struct view_memory_side *from = &screen->side[side];

	*sums = (struct view_ipu_sums){.fullest = -1, .least = INT64_MAX};
	for (int64_t i = at * screen->tiles; i < (at + 1) * screen->tiles; i++) {
		const int64_t total = from->total[i], excess = view__memory_excess(from, i);

		if (total <= 0)
			continue;
		sums->tiles++;
		sums->bytes = sat_add(sums->bytes, total);
		sums->capacity = sat_add(sums->capacity, from->capacity[i]);
		sums->always = sat_add(sums->always, from->always[i]);
		sums->not_always = sat_add(sums->not_always, from->not_always[i]);
		sums->excess = sat_add(sums->excess, excess);
		sums->over += excess > 0;
		sums->least = min(total, sums->least);
		if (sums->fullest < 0 || total > from->total[sums->fullest])
			sums->fullest = i;
	}
}

static enum status memory_ipus_fill_row(const struct view_memory *screen,
					struct report_table *table, int64_t row, int side,
					int64_t ipu, const struct view_ipu_sums *sums,
					struct err *err)
{
	const struct view_memory_side *from = &screen->side[side];
	const int64_t fullest = from->total[sums->fullest];
	const struct report_cell cells[] = {
		view_int(ipu),
		view_int(sums->bytes),
		view_real(view__memory_share(sums->bytes, sums->capacity)),
		view_int(view__memory_tile_of(screen, sums->fullest)),
		view_int(fullest),
		view_real(view__memory_share(fullest, from->capacity[sums->fullest])),
		view_int(sums->bytes / sums->tiles),
		view_int(sums->least),
		view_int(sums->over),
		view_int(sums->excess),
		view_int(sums->always),
		view_int(sums->not_always),
		view_int(sums->tiles),
		view_int(sums->capacity),
	};

	return view_table_row(table, row, cells, err);
}

/* Build a row for each IPU with memory in the report. */
static enum status memory_ipus_build(const struct view_memory *screen, int side, const void *none,
				     struct report_table *out, struct err *err)
{
	struct view_ipu_sums sums;
	enum status status;
	int64_t rows = 0;

	(void)none;
	for (int i = 0; i < screen->ipus; i++) {
		memory_sum_ipu(screen, side, i, &sums);
		rows += sums.tiles > 0;
	}
	status = view_table_new(out, "ipus", memory_ipus_columns, ARRAY_LEN(memory_ipus_columns),
				rows, err);
	rows = 0;
	for (int i = 0; i < screen->ipus && status == ST_OK; i++) {
		memory_sum_ipu(screen, side, i, &sums);
		if (sums.tiles > 0)
			status = memory_ipus_fill_row(screen, out, rows++, side, screen->ipu_ids[i],
						      &sums, err);
	}
	return status;
}

static enum status memory_build_ipus(const struct view_memory *screen, struct report_table *out,
				     struct err *err)
{
	return memory_build_tables(screen, NULL, memory_ipus_build, NULL, MEMORY_IPUS_KEYS, out,
				   err);
}

static enum status memory_load_ipu_grid(struct view_memory *screen, struct view_context *context,
					struct err *err)
{
	struct view_grid *grid = &screen->ipu_grid;
	struct report_table table = {0};
	enum status status = memory_build_ipus(screen, &table, err);

	if (status == ST_OK)
		status = memory_set_grid(grid, context, &table, memory_ipus_shown,
					 (int)ARRAY_LEN(memory_ipus_shown), MEMORY_IPUS_KEYS,
					 "fullest_bytes", err);
	if (status != ST_OK)
		return status;
	for (int64_t i = 0; i < grid->count; i++)
		if (grid->table.cells[grid->order[i] * grid->table.column_count].integer ==
		    screen->at_ipu)
			grid->at = i;
	view_grid_layout(grid, screen->areas.picture);
	return ST_OK;
}

enum status view__memory_load_grid(struct view_memory *screen, struct view_context *context,
				   struct err *err)
{
	if (screen->view == VIEW_MEMORY_TABLE)
		return memory_load_tile_grid(screen, context, err);
	return screen->view == VIEW_MEMORY_IPUS ? memory_load_ipu_grid(screen, context, err)
						: ST_OK;
}

enum status view__memory_table(void *state, struct view_context *context, struct report_table *out,
			       struct err *err)
{
	const struct view_choice all = {.all = true};
	struct view_memory *screen = state;

	if (screen->view == VIEW_MEMORY_IPUS)
		return memory_build_ipus(screen, out, err);
	if (screen->view == VIEW_MEMORY_TABLE && !screen->grid_stale &&
	    view__memory_shown(screen) <= VIEW_MEMORY_ROWS)
		return view_grid_table(&screen->grid, out, err);
	return memory_build_tables(screen, context, memory_table_build, &all, MEMORY_TABLE_KEYS,
				   out, err);
}

void view__memory_query_ipus(struct str *out)
{
	str_add(out, "SELECT ipu, sum(bytes) AS bytes,\n"
		     "  1.0 * sum(bytes) / sum(capacity) AS used_share,\n"
		     "  max(bytes) AS fullest_bytes, sum(bytes) / count(*) AS mean_bytes,\n"
		     "  min(bytes) AS least_bytes, sum(bytes > capacity) AS tiles_over,\n"
		     "  sum(always) AS always_live_bytes, count(*) AS tiles\n"
		     "FROM (SELECT ipu, tile, sum(bytes) AS bytes, max(capacity) AS capacity,\n"
		     "    sum(CASE WHEN category <> 'notAlwaysLiveVariables' THEN bytes ELSE 0\n"
		     "      END) AS always FROM tile_memory GROUP BY ipu, tile)\n"
		     "GROUP BY ipu ORDER BY max(bytes) DESC, ipu;\n");
}
