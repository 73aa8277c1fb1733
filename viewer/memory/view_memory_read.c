/*
 * Read the memory of tiles. Rows that cover neighbouring tiles are added into arrays by tile. Rows
 * of variables are kept in memory, so that moving to another tile needs no query.
 *
 * Threading: the session's. Ownership: the screen's arenas.
 */
#include "viewer/memory/view_memory_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"

/* ---- tiles ----------------------------------------------------------------------------------- */

#define IPUS_MOST   4096
#define TILE_MOST   65536 /* greater numbers mean a damaged file */
#define CHECK_EVERY 4096  /* rows between two checks for cancellation */
#define OTHERS      "others"

const char *const view__memory_regions[VIEW_MEMORY_REGIONS] = {"nonInterleaved", "interleaved",
							       "overflowed"};

/* ---- statements ------------------------------------------------------------------------------ */

static const char memory_sql_extent[] =
	"SELECT ipu, max(tile + min(coalesce(more_tiles, 0), 65536)) FROM tile_memory_rows "
	"WHERE tile BETWEEN 0 AND 65535 AND ipu IS NOT NULL GROUP BY ipu ORDER BY ipu";

static const char memory_sql_memory[] =
	"SELECT m.ipu, m.tile, coalesce(m.more_tiles, 0), m.bytes, m.capacity, c.value, r.value "
	"FROM tile_memory_rows m LEFT JOIN strings c ON c.string_id = m.category_id "
	"LEFT JOIN strings r ON r.string_id = m.region_id ORDER BY m.row_id";

#define SQL_SUBJECT                                                                                \
	"SELECT ipu, tile, coalesce(more_tiles, 0), bytes FROM variable_tile_rows "                \
	"WHERE variable_id IN (SELECT variable_id FROM variables WHERE "

/* total() instead of sum(): SQLite reports integer overflow as an error, which damaged files
 * cause. */
static const char memory_sql_apart[] =
	"SELECT ipu, total(bytes) FROM variables WHERE always_live = 0 "
	"AND ipu IS NOT NULL GROUP BY ipu";

/* ---- adding ---------------------------------------------------------------------------------- */

/*
 * Read a run from the first columns of a row: ipu, tile, more tiles, bytes. Return false if the
 * tile is out of range or the run is empty.
 */
static bool memory_read_run(const struct view_memory *screen, const struct prof_query *query,
			    struct view_memory_run *run)
{
	const int64_t tile = prof_column_int(query, 1), more = prof_column_int(query, 2);
	const int64_t index = view__memory_index(screen, prof_column_int(query, 0), tile);

	run->bytes = prof_column_int(query, 3);
	if (index < 0 || run->bytes <= 0)
		return false;
	run->index = (int32_t)index;
	run->more = (uint16_t)(more < 0                      ? 0
			       : more < screen->tiles - tile ? more
							     : screen->tiles - tile - 1);
	return true;
}

_Static_assert(VIEW_MEMORY_TILES <= INT32_MAX, "indexes of tiles are 32 bits");
_Static_assert(TILE_MOST <= UINT16_MAX + 1, "the tiles after one of an IPU are 16 bits");

static void memory_add_run(int64_t *array, const struct view_memory_run *run)
{
	for (int64_t i = run->index; i <= run->index + run->more; i++)
		if (__builtin_add_overflow(array[i], run->bytes, &array[i]))
			array[i] = INT64_MAX;
}

/* Zeroed bytes by index; NULL only after a failure. */
static int64_t *memory_tile_array(struct view_memory *screen, struct arena *arena)
{
	return view_alloc(arena, (size_t)screen->ipus * (size_t)screen->tiles, sizeof(int64_t),
			  &screen->err);
}

/* Find or add the category. Those that are too many become the last one. */
static int memory_category(struct view_memory *screen, const char *name)
{
	int at = 0;

	while (at < screen->categories && strcmp(screen->category[at], name) != 0)
		at++;
	if (at >= VIEW_MEMORY_CATEGORIES - 1 && at == screen->categories) {
		name = OTHERS;
		at = VIEW_MEMORY_CATEGORIES - 1;
	}
	if (at < screen->categories)
		return at;
	screen->category[at] = arena_strdup(&screen->data_arena, name);
	if (screen->category[at])
		screen->categories = at + 1;
	else
		err_nomem(&screen->err);
	return at;
}

/* Add a row of tile_memory_rows to the arrays that it belongs to. */
static void memory_add_row(struct view_memory *screen, int side, const struct prof_query *query)
{
	int64_t **bytes = screen->side[side].bytes;
	const int64_t capacity = prof_column_int(query, 4);
	const char *category = prof_column_text(query, 5), *region = prof_column_text(query, 6);
	const bool live = !category || strcmp(category, "notAlwaysLiveVariables") != 0;
	int numbers[] = {VIEW_MEMORY_TOTAL,
			 live ? VIEW_MEMORY_ALWAYS_LIVE : VIEW_MEMORY_NOT_ALWAYS_LIVE,
			 VIEW_MEMORY_REGION, VIEW_MEMORY_CATEGORY};
	struct view_memory_run run;

	if (!memory_read_run(screen, query, &run))
		return;
	for (int r = 0; r < VIEW_MEMORY_REGIONS; r++)
		if (region && strcmp(region, view__memory_regions[r]) == 0)
			numbers[2] = VIEW_MEMORY_REGION + r;
	numbers[3] += memory_category(screen, category ? category : OTHERS);
	if (!bytes[numbers[3]])
		bytes[numbers[3]] = memory_tile_array(screen, &screen->data_arena);
	if (err_stuck(&screen->err))
		return;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		memory_add_run(bytes[numbers[i]], &run);
	for (int64_t i = run.index; i <= run.index + run.more; i++)
		bytes[VIEW_MEMORY_CAPACITY][i] = max(capacity, bytes[VIEW_MEMORY_CAPACITY][i]);
}

/* ---- extent ---------------------------------------------------------------------------------- */

/* Read the IPUs of a report, in order, and the greatest number of tiles of an IPU. */
static void memory_read_extent(struct view_memory *screen, struct prof_db *db)
{
	struct prof_query *query = view_query_open(db, memory_sql_extent, &screen->err);

	while (view_query_next(query, &screen->err)) {
		const int64_t ipu = prof_column_int(query, 0);
		const int64_t tiles = min(prof_column_int(query, 1) + 1, TILE_MOST);
		int at = (int)sorted_place(screen->ipu_ids, (size_t)screen->ipus,
					   sizeof(*screen->ipu_ids), 0, ipu);

		screen->tiles = max(screen->tiles, tiles);
		if ((at < screen->ipus && screen->ipu_ids[at] == ipu) || screen->ipus == IPUS_MOST)
			continue;
		memmove(&screen->ipu_ids[at + 1], &screen->ipu_ids[at],
			(size_t)(screen->ipus - at) * sizeof(*screen->ipu_ids));
		screen->ipu_ids[at] = ipu;
		screen->ipus++;
	}
	prof_query_close(query);
}

/* view_query_next() that fails if the user cancelled. @rows: those asked for so far. */
static bool memory_next_row(struct view_memory *screen, struct prof_query *query, int64_t *rows)
{
	struct err *err = &screen->err;

	if (!err_stuck(err) && ++*rows % CHECK_EVERY == 0 && view_cancelled(screen->context))
		err_set(err, ST_INTERRUPTED, "stopped");
	return view_query_next(query, err);
}

/* ---- merged reports -------------------------------------------------------------------------- */

static void memory_read_ranks(struct view_memory_side *side, struct prof_db *db)
{
	char key[64], text[32];
	long long number;

	side->ranks = 1;
	side->first_other = IPS_NULL;
	if (!prof_db_meta(db, "ranks", text, sizeof(text)) || !str_to_int(text, &number))
		return;
	side->ranks = number;
	for (int64_t rank = 1; rank < side->ranks && rank < IPUS_MOST; rank++) {
		snprintf(key, sizeof(key), "merge.%lld.memory_first_ipu", (long long)rank);
		if (!prof_db_meta(db, key, text, sizeof(text)) || !str_to_int(text, &number) ||
		    number <= 0)
			continue;
		side->first_other = number;
		return;
	}
}

/* ---- tiles and subject ----------------------------------------------------------------------- */

void view__memory_rows_fini(struct view_memory_rows *rows)
{
	mem_free(rows->runs);
	*rows = (struct view_memory_rows){0};
}

/* Read, by IPU, the bytes that not-always-live variables would need without overlap. */
static void memory_read_apart(struct view_memory *screen, struct view_memory_side *side,
			      struct prof_db *db)
{
	struct err *err = &screen->err;
	struct prof_query *query;

	side->apart =
		view_alloc(&screen->data_arena, (size_t)screen->ipus, sizeof(*side->apart), err);
	query = view_query_open(db, memory_sql_apart, err);
	while (view_query_next(query, err)) {
		const int at = view__memory_ipu_at(screen, prof_column_int(query, 0));

		if (at >= 0)
			side->apart[at] = sat_real(prof_column_real(query, 1));
	}
	prof_query_close(query);
}

void view__memory_read(struct view_memory *screen)
{
	struct err *err = &screen->err;

	arena_reset(&screen->data_arena);
	for (int s = 0; s < VIEW_MEMORY_SIDES; s++)
		view__memory_rows_fini(&screen->side[s].rows);
	memset(screen->side, 0, sizeof(screen->side));
	screen->sides = screen->context->target ? 2 : 1;
	screen->ipus = screen->categories = 0;
	screen->tiles = screen->all_ipus = 0;
	screen->subject_stale = true;
	screen->ipu_ids = view_alloc(&screen->data_arena, IPUS_MOST, sizeof(*screen->ipu_ids), err);
	for (int s = 0; s < screen->sides && !err_stuck(err); s++)
		memory_read_extent(screen, view__memory_db(screen, s));
	screen->all_ipus = screen->ipus;
	if (screen->tiles <= 0)
		screen->ipus = 0;
	else if (screen->tiles > VIEW_MEMORY_TILES / max(screen->ipus, 1))
		screen->ipus = (int)(VIEW_MEMORY_TILES / screen->tiles);
	for (int s = 0; s < screen->sides && !err_stuck(err) && screen->ipus > 0; s++) {
		struct prof_db *db = view__memory_db(screen, s);
		struct prof_query *query;
		int64_t rows = 0;

		memory_read_ranks(&screen->side[s], db);
		for (int n = 0; n < VIEW_MEMORY_CATEGORY; n++)
			screen->side[s].bytes[n] = memory_tile_array(screen, &screen->data_arena);
		query = view_query_open(db, memory_sql_memory, err);
		while (memory_next_row(screen, query, &rows))
			memory_add_row(screen, s, query);
		prof_query_close(query);
		memory_read_apart(screen, &screen->side[s], db);
	}
	if (err_stuck(err))
		screen->ipus = 0;
}

void view__memory_subject(struct view_memory *screen)
{
	const bool layer = screen->subject.variable_id == IPS_NULL;
	struct err *err = &screen->err;

	arena_reset(&screen->subject_arena);
	for (int s = 0; s < VIEW_MEMORY_SIDES; s++)
		screen->side[s].bytes[VIEW_MEMORY_SUBJECT] = NULL;
	for (int s = 0; s < screen->sides && screen->subject.name[0] && !err_stuck(err); s++) {
		int64_t *array = memory_tile_array(screen, &screen->subject_arena);
		struct view_memory_run run;
		struct prof_query *query = view_query_open(view__memory_db(screen, s),
							   layer ? SQL_SUBJECT "layer = :name)"
								 : SQL_SUBJECT "variable = :name)",
							   err);
		int64_t rows = 0;

		prof_query_text(query, ":name", screen->subject.name);
		while (memory_next_row(screen, query, &rows))
			if (memory_read_run(screen, query, &run))
				memory_add_run(array, &run);
		prof_query_close(query);
		screen->side[s].bytes[VIEW_MEMORY_SUBJECT] = err_stuck(err) ? NULL : array;
	}
	screen->subject_stale = err_stuck(err);
}

/* ---- rows of variables ----------------------------------------------------------------------- */

#define SQL_PASSING "variable_id IN (SELECT variable_id FROM variables WHERE always_live = 0)"

static const char memory_sql_rows[] =
	"SELECT ipu, tile, coalesce(more_tiles, 0), bytes, variable_id, " SQL_PASSING
	" FROM variable_tile_rows WHERE ipu BETWEEN :ipu AND :last_ipu AND tile <= :last_tile "
	"AND tile + coalesce(more_tiles, 0) >= :tile";

/* The range around a tile that is read; if it has too many rows, the next smaller one is used. */
enum view_reach {
	REACH_ALL,
	REACH_IPU,
	REACH_TILE,
	REACHES
};

static int memory_by_index(const void *a, const void *b)
{
	const struct view_memory_run *x = a, *y = b;

	return SORTED_BY(x, y, index);
}

/* Read the runs within @reach of tile @index. false: they are too many, or it failed. */
static bool memory_read_reach(struct view_memory *screen, int side, enum view_reach reach,
			      int64_t index)
{
	struct view_memory_rows *rows = &screen->side[side].rows;
	const int64_t base = index / screen->tiles * screen->tiles;
	const int64_t from = reach == REACH_ALL ? 0 : reach == REACH_IPU ? base : index;
	const int64_t to = reach == REACH_ALL   ? (int64_t)screen->ipus * screen->tiles
			   : reach == REACH_IPU ? base + screen->tiles
						: index + 1;
	struct err *err = &screen->err;
	struct prof_query *query;
	struct view_memory_run run;
	int64_t read = 0;
	bool row = true;

	if (prof_query_open(&query, view__memory_db(screen, side), memory_sql_rows, err) != ST_OK)
		return false;
	prof_query_int(query, ":ipu", view__memory_ipu_of(screen, from));
	prof_query_int(query, ":last_ipu", view__memory_ipu_of(screen, to - 1));
	prof_query_int(query, ":tile", reach == REACH_TILE ? index % screen->tiles : 0);
	prof_query_int(query, ":last_tile", (to - 1) % screen->tiles);
	rows->count = 0;
	/* Allocate the limit at once: untouched pages cost nothing, but growing leaves freed
	 * blocks. */
	if (reach == REACH_ALL &&
	    mem_grow(&rows->runs, &rows->capacity, screen->runs_most, sizeof(*rows->runs)) != 0)
		err_nomem(err);
	while (rows->count < screen->runs_most && (row = memory_next_row(screen, query, &read))) {
		if (!memory_read_run(screen, query, &run))
			continue;
		run.variable_id = prof_column_int(query, 4);
		run.passing = prof_column_int(query, 5) == 1;
		if (mem_grow(&rows->runs, &rows->capacity, rows->count + 1, sizeof(*rows->runs)))
			err_nomem(err);
		else
			rows->runs[rows->count++] = run;
	}
	prof_query_close(query);
	rows->from = from;
	rows->to = err_stuck(err) ? from : to;
	rows->many |= row && !err_stuck(err);
	return !row && !err_stuck(err);
}

/* Read the runs around tile @index, unless they are known. */
static void memory_load_rows(struct view_memory *screen, int side, int64_t index)
{
	struct view_memory_rows *rows = &screen->side[side].rows;
	int reach = rows->many || !rows->begun ? REACH_IPU : REACH_ALL;
	bool ordered = true;

	if (err_stuck(&screen->err) || (index >= rows->from && index < rows->to))
		return;
	while (reach < REACHES && !memory_read_reach(screen, side, (enum view_reach)reach, index) &&
	       !err_stuck(&screen->err))
		reach++;
	rows->begun = !err_stuck(&screen->err);
	/* ipuscope writes rows IPU by IPU; other programs may not. */
	for (size_t i = 1; i < rows->count && ordered; i++)
		ordered = rows->runs[i].index / screen->tiles >=
			  rows->runs[i - 1].index / screen->tiles;
	if (!ordered)
		qsort(rows->runs, rows->count, sizeof(*rows->runs), memory_by_index);
}

const struct view_memory_run *view__memory_next_run(struct view_memory *screen, int side,
						    int64_t index,
						    const struct view_memory_run *run)
{
	const struct view_memory_rows *rows = &screen->side[side].rows;
	const int64_t base = index / screen->tiles * screen->tiles;
	size_t at = 0;

	/* Begin with the first run of the IPU: runs do not extend across IPUs. */
	if (!run) {
		memory_load_rows(screen, side, index);
		SORTED_FIRST(at, 0, rows->count, rows->runs[at].index < base);
	} else {
		at = (size_t)(run - rows->runs) + 1;
	}
	if (err_stuck(&screen->err))
		return NULL;
	for (; at < rows->count && rows->runs[at].index < base + screen->tiles; at++)
		if (rows->runs[at].index <= index &&
		    rows->runs[at].index + rows->runs[at].more >= index)
			return &rows->runs[at];
	return NULL;
}
