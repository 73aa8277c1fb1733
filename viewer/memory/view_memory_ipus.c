/*
 * The IPUs as a table: how full each is, and its fullest, mean and emptiest tile.
 *
 * Threading: the worker's. Ownership: as in view_memory_table.c.
 */
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/str.h"
#include "viewer/draw/view_table.h"
#include "viewer/memory/view_memory_internal.h"

#define KEYS "ipu"

enum {
	IPUS_IPU,
	IPUS_BYTES,
	IPUS_SHARE,
	IPUS_FULLEST_TILE,
	IPUS_FULLEST,
	IPUS_FULLEST_SHARE,
	IPUS_MEAN,
	IPUS_LEAST,
	IPUS_OVER,
	IPUS_EXCESS,
	IPUS_ALWAYS,
	IPUS_NOT_ALWAYS,
	IPUS_TILES,
	IPUS_CAPACITY,
	IPUS_COLUMNS
};

/* Where `ipu-report memory` has it, as it is called there. */
static const struct report_column view_columns[IPUS_COLUMNS] = {
	[IPUS_IPU] = {"ipu", REPORT_NUMBER},
	[IPUS_BYTES] = {"bytes", REPORT_BYTES},
	[IPUS_SHARE] = {"used_share", REPORT_FRACTION},
	[IPUS_FULLEST_TILE] = {"fullest_tile", REPORT_NUMBER},
	[IPUS_FULLEST] = {"fullest_bytes", REPORT_BYTES},
	[IPUS_FULLEST_SHARE] = {"fullest_share", REPORT_FRACTION},
	[IPUS_MEAN] = {"mean_bytes", REPORT_BYTES},
	[IPUS_LEAST] = {"least_bytes", REPORT_BYTES},
	[IPUS_OVER] = {"tiles_over", REPORT_NUMBER},
	[IPUS_EXCESS] = {"excess_bytes", REPORT_BYTES},
	[IPUS_ALWAYS] = {"always_live_bytes", REPORT_BYTES},
	[IPUS_NOT_ALWAYS] = {"not_always_live_bytes", REPORT_BYTES},
	[IPUS_TILES] = {"tiles", REPORT_NUMBER},
	[IPUS_CAPACITY] = {"capacity", REPORT_BYTES},
};

static const struct view_grid_column view_shown[] = {
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

/* ---- rows ------------------------------------------------------------------------------------ */

/* Sums over an IPU's tiles; fullest is an index. */
struct view_ipu_sums {
	int64_t bytes, capacity, always, not_always, tiles, over, excess, least, fullest;
};

static void view_sum_up(const struct view_memory *screen, int side, int at,
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

static void view_fill_row(const struct view_memory *screen, struct report_table *table, int64_t row,
			  int side, int64_t ipu, const struct view_ipu_sums *sums)
{
	const struct view_memory_side *from = &screen->side[side];
	const int64_t fullest = from->total[sums->fullest];

	view_table_int(table, row, IPUS_IPU, ipu);
	view_table_int(table, row, IPUS_BYTES, sums->bytes);
	view_table_real(table, row, IPUS_SHARE, view__memory_share(sums->bytes, sums->capacity));
	view_table_int(table, row, IPUS_FULLEST_TILE, view__memory_tile_of(screen, sums->fullest));
	view_table_int(table, row, IPUS_FULLEST, fullest);
	view_table_real(table, row, IPUS_FULLEST_SHARE,
			view__memory_share(fullest, from->capacity[sums->fullest]));
	view_table_int(table, row, IPUS_MEAN, sums->bytes / sums->tiles);
	view_table_int(table, row, IPUS_LEAST, sums->least);
	view_table_int(table, row, IPUS_OVER, sums->over);
	view_table_int(table, row, IPUS_EXCESS, sums->excess);
	view_table_int(table, row, IPUS_ALWAYS, sums->always);
	view_table_int(table, row, IPUS_NOT_ALWAYS, sums->not_always);
	view_table_int(table, row, IPUS_TILES, sums->tiles);
	view_table_int(table, row, IPUS_CAPACITY, sums->capacity);
}

/* A row for each IPU that the report says something of. */
static enum status view_build(const struct view_memory *screen, int side, const void *none,
			      struct report_table *out, struct err *err)
{
	struct view_ipu_sums sums;
	enum status status;
	int64_t rows = 0;

	(void)none;
	for (int i = 0; i < screen->ipus; i++) {
		view_sum_up(screen, side, i, &sums);
		rows += sums.tiles > 0;
	}
	status = view_table_new(out, "ipus", view_columns, IPUS_COLUMNS, rows, err);
	rows = 0;
	for (int i = 0; i < screen->ipus && status == ST_OK; i++) {
		view_sum_up(screen, side, i, &sums);
		if (sums.tiles > 0)
			view_fill_row(screen, out, rows++, side, screen->ipu_ids[i], &sums);
	}
	return status;
}

enum status view__memory_ipus(const struct view_memory *screen, struct report_table *out,
			      struct err *err)
{
	return view__memory_compare(screen, NULL, view_build, NULL, KEYS, out, err);
}

/* ---- the grid -------------------------------------------------------------------------------- */

enum status view__memory_ipu_grid(struct view_memory *screen, struct view_context *context,
				  struct err *err)
{
	const struct view_rect *area = &screen->areas.picture;
	struct view_grid *grid = &screen->ipu_grid;
	struct report_table table = {0};
	enum status status = view__memory_ipus(screen, &table, err);

	if (status == ST_OK)
		status = view__memory_set_grid(grid, context, &table, view_shown,
					       (int)ARRAY_LEN(view_shown), KEYS, "fullest_bytes",
					       err);
	if (status != ST_OK)
		return status;
	for (int64_t i = 0; i < grid->count; i++)
		if (grid->table.cells[grid->order[i] * grid->table.column_count].integer ==
		    screen->at_ipu)
			grid->at = i;
	view_grid_layout(grid, area->width, area->height);
	return ST_OK;
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
