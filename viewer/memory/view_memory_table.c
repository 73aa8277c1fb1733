/*
 * The table of tiles and the table of IPUs.
 *
 * Threading: the session's. Ownership: the grids own their rows.
 */
#include "viewer/memory/view_memory_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "viewer/draw/view_table.h"

/* ---- columns --------------------------------------------------------------------------------- */

#define TILES_KEYS "ipu,tile"
#define IPUS_KEYS  "ipu"

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

/* Number of columns after the fixed ones: the selected quantity, or the categories. */
static int memory_extra_columns(const struct view_memory *screen)
{
	if (screen->subject.name[0] || screen->chosen >= 0)
		return 1;
	return screen->breakdown == VIEW_MEMORY_BY_CATEGORY ? screen->series_count : 0;
}

static int64_t memory_greater_total(const struct view_memory *screen, int64_t index)
{
	int64_t greater = 0;

	for (int s = 0; s < screen->sides; s++)
		greater = max(view__memory_bytes(screen, s, VIEW_MEMORY_TOTAL, index), greater);
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
static void memory_choose_rows(struct view_memory *screen, struct view_choice *out)
{
	const int64_t shown = view__memory_shown(screen);
	int64_t *totals;

	*out = (struct view_choice){.all = shown <= VIEW_MEMORY_ROWS};
	if (out->all)
		return;
	totals = mem_calloc((size_t)shown, sizeof(*totals));
	if (!totals) {
		err_nomem(&screen->err);
		return;
	}
	for (int64_t p = 0; p < shown; p++)
		totals[p] = memory_greater_total(screen, view__memory_at(screen, p));
	qsort(totals, (size_t)shown, sizeof(*totals), memory_descending);
	out->least = totals[VIEW_MEMORY_ROWS - 1];
	for (int64_t i = VIEW_MEMORY_ROWS; i-- > 0 && totals[i] == out->least;)
		out->ties++;
	mem_free(totals);
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
	return view__memory_bytes(screen, side, VIEW_MEMORY_CAPACITY, index) > 0 ||
	       view__memory_bytes(screen, side, VIEW_MEMORY_TOTAL, index) > 0;
}

/* Build the table of a report's tiles that are chosen. */
static void memory_build_tiles(struct view_memory *screen, int side,
			       const struct view_choice *choice, struct report_table *out)
{
	const bool selected = screen->subject.name[0] || screen->chosen >= 0;
	const int more = memory_extra_columns(screen);
	const int64_t shown = view__memory_shown(screen);
	int64_t *const *bytes = screen->side[side].bytes;
	struct report_column columns[TABLE_COLUMNS + VIEW_MEMORY_CATEGORIES] = {{0}};
	struct view_choice left = *choice;
	struct err *err = &screen->err;
	int64_t rows = 0;

	for (int64_t p = 0; p < shown; p++)
		rows += memory_is_row(screen, &left, side, view__memory_at(screen, p));
	memcpy(columns, memory_table_columns, sizeof(memory_table_columns));
	if (view_table_new(out, "tiles", columns, TABLE_COLUMNS + more, rows, err) != ST_OK)
		return;
	for (int i = 0; i < more; i++) {
		const char *name =
			selected ? "shown_bytes"
				 : arena_printf(&out->arena, "%s_bytes", screen->series[i].name);

		if (!name)
			err_nomem(err);
		out->columns[TABLE_COLUMNS + i] = (struct report_column){name, REPORT_BYTES};
	}
	left = *choice;
	rows = 0;
	for (int64_t p = 0; p < shown && !err_stuck(err); p++) {
		const int64_t i = view__memory_at(screen, p);
		const int64_t total = bytes[VIEW_MEMORY_TOTAL][i];
		const int64_t capacity = bytes[VIEW_MEMORY_CAPACITY][i];
		struct report_cell cells[TABLE_COLUMNS + VIEW_MEMORY_CATEGORIES] = {
			view_int(view__memory_ipu_of(screen, i)),
			view_int(view__memory_tile_of(screen, i)),
			view_int(total),
			view_real(view__memory_share(total, capacity)),
			view_int(capacity > 0 ? capacity : IPS_NULL),
			view_int(bytes[VIEW_MEMORY_ALWAYS_LIVE][i]),
			view_int(bytes[VIEW_MEMORY_NOT_ALWAYS_LIVE][i]),
			view_int(bytes[VIEW_MEMORY_REGION][i]),
			view_int(bytes[VIEW_MEMORY_REGION + 1][i]),
			view_int(bytes[VIEW_MEMORY_OVERFLOWED][i]),
		};

		if (!memory_is_row(screen, &left, side, i))
			continue;
		for (int m = 0; m < more; m++)
			cells[TABLE_COLUMNS + m] = view_int(
				selected ? view__memory_value(screen, side, i)
					 : view__memory_bytes(screen, side,
							      screen->series[m].number, i));
		view_table_row(out, rows++, cells, err);
	}
}

/* Build the table of a report's IPUs that have memory. */
static void memory_build_ipus(struct view_memory *screen, int side, struct report_table *out)
{
	struct err *err = &screen->err;

	if (view_table_new(out, "ipus", memory_ipus_columns, ARRAY_LEN(memory_ipus_columns),
			   screen->ipus, err) != ST_OK)
		return;
	out->row_count = 0;
	for (int i = 0; i < screen->ipus && !err_stuck(err); i++) {
		struct view_memory_sums sums;
		int64_t fullest, capacity;

		view__memory_sum(screen, side, i * screen->tiles, screen->tiles, &sums);
		if (sums.tiles == 0)
			continue;
		fullest = view__memory_bytes(screen, side, VIEW_MEMORY_TOTAL, sums.fullest);
		capacity = view__memory_bytes(screen, side, VIEW_MEMORY_CAPACITY, sums.fullest);
		view_table_row(out, out->row_count++,
			       (const struct report_cell[]){
				       view_int(screen->ipu_ids[i]),
				       view_int(sums.bytes),
				       view_real(view__memory_share(sums.bytes, sums.capacity)),
				       view_int(view__memory_tile_of(screen, sums.fullest)),
				       view_int(fullest),
				       view_real(view__memory_share(fullest, capacity)),
				       view_int(sums.bytes / sums.tiles),
				       view_int(sums.least),
				       view_int(sums.over),
				       view_int(sums.shrink),
				       view_int(sums.always),
				       view_int(sums.not_always),
				       view_int(sums.tiles),
				       view_int(sums.capacity),
			       },
			       err);
	}
}

/* Build the table of the chosen tiles (NULL: of the IPUs), joined with the target's. */
static void memory_build_table(struct view_memory *screen, const struct view_choice *choice,
			       struct report_table *out)
{
	struct report_table tables[VIEW_MEMORY_SIDES] = {{0}};
	struct err *err = &screen->err;

	*out = tables[0];
	for (int s = 0; s < screen->sides && !err_stuck(err); s++) {
		if (choice)
			memory_build_tiles(screen, s, choice, &tables[s]);
		else
			memory_build_ipus(screen, s, &tables[s]);
	}
	if (!err_stuck(err) && screen->sides == 1) {
		*out = tables[0];
		return;
	}
	if (!err_stuck(err))
		view_grid_compare(out, screen->context, &tables[0], &tables[1],
				  choice ? TILES_KEYS : IPUS_KEYS, err);
	for (int s = 0; s < VIEW_MEMORY_SIDES; s++)
		report_table_free(&tables[s]);
}

/* ---- the grid -------------------------------------------------------------------------------- */

struct view_grid *view__memory_shown_grid(const struct view_memory *screen)
{
	const struct view_grid *grid = screen->view == VIEW_MEMORY_TABLE  ? &screen->grid
				       : screen->view == VIEW_MEMORY_IPUS ? &screen->ipu_grid
									  : NULL;

	return (struct view_grid *)grid;
}

/* Fill the grid of tiles or IPUs; its first rows get an order. */
static void memory_fill_grid(struct view_memory *screen, struct view_grid *grid, bool tiles)
{
	const bool first = grid->table.column_count == 0;
	struct err *err = &screen->err;
	struct report_table table;
	struct view_choice choice;

	if (tiles)
		memory_choose_rows(screen, &choice);
	if (!err_stuck(err))
		memory_build_table(screen, tiles ? &choice : NULL, &table);
	if (err_stuck(err))
		return;
	grid->differ = screen->context->differ;
	if (tiles)
		view_grid_set(grid, screen->context, &table, memory_table_shown,
			      ARRAY_LEN(memory_table_shown), TILES_KEYS, err);
	else
		view_grid_set(grid, screen->context, &table, memory_ipus_shown,
			      ARRAY_LEN(memory_ipus_shown), IPUS_KEYS, err);
	if (!err_stuck(err) && first)
		view_grid_sort(grid, tiles ? "bytes" : "fullest_bytes", false);
}

void view__memory_load_grid(struct view_memory *screen)
{
	const bool tiles = screen->view == VIEW_MEMORY_TABLE;
	struct view_grid *grid = view__memory_shown_grid(screen);

	if (!grid || err_stuck(&screen->err))
		return;
	if (!tiles || screen->grid_stale || grid->differ != screen->context->differ)
		memory_fill_grid(screen, grid, tiles);
	if (err_stuck(&screen->err))
		return;
	screen->grid_stale &= !tiles;
	/* The cursor is on the screen's tile, or its IPU. */
	for (int64_t i = 0; i < grid->count; i++) {
		const struct report_cell *row =
			&grid->table.cells[grid->order[i] * grid->table.column_count];

		if (row[0].integer != screen->at_ipu ||
		    (tiles && row[1].integer != screen->at_tile))
			continue;
		grid->at = i;
		break;
	}
	view_grid_layout(grid, screen->areas.picture);
}

enum status view__memory_table(void *state, struct view_context *context, struct report_table *out,
			       struct err *err)
{
	const struct view_choice all = {.all = true};
	struct view_memory *screen = state;

	if (screen->view == VIEW_MEMORY_TABLE && !screen->grid_stale &&
	    view__memory_shown(screen) <= VIEW_MEMORY_ROWS)
		return view_grid_table(&screen->grid, out, err);
	view__memory_begin(screen, context);
	memory_build_table(screen, screen->view == VIEW_MEMORY_IPUS ? NULL : &all, out);
	return view__memory_end(screen, err);
}
