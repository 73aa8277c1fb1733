/*
 * Reading the memory of tiles: rows that stand for neighbouring tiles, added into arrays by tile.
 *
 * Two reports are brought to the same IPUs, tiles and categories.
 *
 * Threading: the worker's. Ownership: data_arena, and subject_arena for the subject's arrays.
 */
#include <string.h>

#include "common/mem.h"
#include "viewer/memory/view_memory_internal.h"

#define IPUS_MOST   4096
#define TILE_MOST   65536 /* numbers beyond are damage */
#define LOOK_EVERY  4096  /* rows between two looks whether it is still wanted */
#define OTHERS      "others"
#define REGION_TEXT 32

const char *const view__memory_regions[VIEW_MEMORY_REGIONS] = {
	[VIEW_MEMORY_NON_INTERLEAVED] = "nonInterleaved",
	[VIEW_MEMORY_INTERLEAVED] = "interleaved",
	[VIEW_MEMORY_OVERFLOWED] = "overflowed",
};

/* ---- statements ------------------------------------------------------------------------------ */

static const char sql_extent[] =
	"SELECT ipu, max(tile + min(coalesce(more_tiles, 0), 65536)) FROM tile_memory_rows "
	"WHERE tile BETWEEN 0 AND 65535 AND ipu IS NOT NULL GROUP BY ipu ORDER BY ipu";

static const char sql_memory[] =
	"SELECT m.ipu, m.tile, coalesce(m.more_tiles, 0), m.bytes, m.capacity, c.value, r.value "
	"FROM tile_memory_rows m LEFT JOIN strings c ON c.string_id = m.category_id "
	"LEFT JOIN strings r ON r.string_id = m.region_id ORDER BY m.row_id";

static const char sql_variable[] =
	"SELECT ipu, tile, coalesce(more_tiles, 0), bytes FROM variable_tile_rows "
	"WHERE variable_id IN (SELECT variable_id FROM variables WHERE variable = :name)";

static const char sql_layer[] =
	"SELECT ipu, tile, coalesce(more_tiles, 0), bytes FROM variable_tile_rows "
	"WHERE variable_id IN (SELECT variable_id FROM variables WHERE layer = :name)";

/* ---- adding ---------------------------------------------------------------------------------- */

bool view__memory_run(const struct view_memory *screen, const struct prof_query *query,
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

static void view_add(int64_t *array, const struct view_memory_run *run)
{
	for (int64_t i = run->index; i <= run->index + run->more; i++)
		if (__builtin_add_overflow(array[i], run->bytes, &array[i]))
			array[i] = INT64_MAX;
}

static int64_t *view_array(struct view_memory *screen, struct arena *arena, struct err *err)
{
	int64_t *array = arena_alloc(arena, (size_t)screen->ipus * (size_t)screen->tiles + 1,
				     sizeof(*array));

	if (!array)
		err_nomem(err);
	return array;
}

/* Its array for @side; NULL: no memory. */
static int64_t *view_category(struct view_memory *screen, struct view_memory_side *side,
			      const char *name, struct err *err)
{
	int at = 0;

	if (!name)
		name = OTHERS;
	while (at < screen->categories && strcmp(screen->category[at], name) != 0)
		at++;
	if (at >= VIEW_MEMORY_CATEGORIES - 1 && at == screen->categories)
		name = OTHERS, at = VIEW_MEMORY_CATEGORIES - 1;
	if (at >= screen->categories) {
		screen->category[at] = arena_strdup(&screen->data_arena, name);
		if (!screen->category[at]) {
			err_nomem(err);
			return NULL;
		}
		screen->categories = at + 1;
	}
	if (!side->category[at])
		side->category[at] = view_array(screen, &screen->data_arena, err);
	return side->category[at];
}

static int view_region(const char *name)
{
	for (int r = 0; r < VIEW_MEMORY_REGIONS; r++)
		if (name && strcmp(name, view__memory_regions[r]) == 0)
			return r;
	return VIEW_MEMORY_NON_INTERLEAVED;
}

static enum status view_add_row(struct view_memory *screen, struct view_memory_side *side,
				const struct prof_query *query, struct err *err)
{
	const int64_t capacity = prof_column_int(query, 4);
	const char *name = prof_column_text(query, 5);
	const bool live = !name || strcmp(name, "notAlwaysLiveVariables") != 0;
	struct view_memory_run run;
	int64_t *category;

	if (!view__memory_run(screen, query, &run))
		return ST_OK;
	category = view_category(screen, side, name, err);
	if (!category)
		return ST_NOMEM;
	view_add(category, &run);
	view_add(side->total, &run);
	view_add(live ? side->always : side->not_always, &run);
	view_add(side->region[view_region(prof_column_text(query, 6))], &run);
	for (int64_t i = run.index; i <= run.index + run.more; i++)
		if (capacity > side->capacity[i])
			side->capacity[i] = capacity;
	return ST_OK;
}

/* ---- what there is --------------------------------------------------------------------------- */

static enum status view_add_ipu(struct view_memory *screen, int64_t ipu, int64_t tiles)
{
	int at = 0;

	if (tiles > TILE_MOST)
		tiles = TILE_MOST;
	if (tiles > screen->tiles)
		screen->tiles = tiles;
	while (at < screen->ipus && screen->ipu_ids[at] < ipu)
		at++;
	if ((at < screen->ipus && screen->ipu_ids[at] == ipu) || screen->ipus == IPUS_MOST)
		return ST_OK;
	memmove(&screen->ipu_ids[at + 1], &screen->ipu_ids[at],
		(size_t)(screen->ipus - at) * sizeof(*screen->ipu_ids));
	screen->ipu_ids[at] = ipu;
	screen->ipus++;
	return ST_OK;
}

static enum status view_read_extent(struct view_memory *screen, struct prof_db *db, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql_extent, err);

	while (prof_query_next(query, &status, err)) {
		status = view_add_ipu(screen, prof_column_int(query, 0),
				      prof_column_int(query, 1) + 1);
	}
	prof_query_close(query);
	return status;
}

static enum status view_make_arrays(struct view_memory *screen, struct view_memory_side *side,
				    struct err *err)
{
	int64_t **const arrays[] = {&side->total,
				    &side->capacity,
				    &side->always,
				    &side->not_always,
				    &side->region[VIEW_MEMORY_NON_INTERLEAVED],
				    &side->region[VIEW_MEMORY_INTERLEAVED],
				    &side->region[VIEW_MEMORY_OVERFLOWED]};

	for (size_t i = 0; i < ARRAY_LEN(arrays); i++) {
		*arrays[i] = view_array(screen, &screen->data_arena, err);
		if (!*arrays[i])
			return ST_NOMEM;
	}
	return ST_OK;
}

static enum status view_read_side(struct view_memory *screen, struct view_context *context,
				  struct view_memory_side *side, struct prof_db *db,
				  struct err *err)
{
	struct prof_query *query = NULL;
	enum status status = view_make_arrays(screen, side, err);
	int64_t rows = 0;
	bool row;

	if (status == ST_OK)
		status = prof_query_open(&query, db, sql_memory, err);
	while (status == ST_OK) {
		if (++rows % LOOK_EVERY == 0 && view_cancelled(context))
			status = err_set(err, ST_INTERRUPTED, "stopped");
		else
			status = prof_query_step(query, &row, err);
		if (status != ST_OK || !row)
			break;
		status = view_add_row(screen, side, query, err);
	}
	prof_query_close(query);
	return status;
}

/* ---- merged reports -------------------------------------------------------------------------- */

static void view_read_ranks(struct view_memory_side *side, struct prof_db *db)
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

/* ---- all of it ------------------------------------------------------------------------------- */

enum status view__memory_read(struct view_memory *screen, struct view_context *context,
			      struct err *err)
{
	struct prof_db *const db[VIEW_MEMORY_SIDES] = {
		context->source->db, context->target ? context->target->db : NULL};
	enum status status = ST_OK;

	arena_reset(&screen->data_arena);
	for (int s = 0; s < VIEW_MEMORY_SIDES; s++)
		view__memory_rows_fini(&screen->side[s].rows);
	memset(screen->side, 0, sizeof(screen->side));
	screen->sides = context->target ? 2 : 1;
	screen->ipus = screen->categories = 0;
	screen->tiles = screen->all_ipus = 0;
	screen->subject_stale = true;
	screen->ipu_ids = arena_alloc(&screen->data_arena, IPUS_MOST + 1, sizeof(*screen->ipu_ids));
	if (!screen->ipu_ids)
		return err_nomem(err);
	for (int s = 0; s < screen->sides && status == ST_OK; s++)
		status = view_read_extent(screen, db[s], err);
	screen->all_ipus = screen->ipus;
	if (screen->tiles <= 0)
		screen->ipus = 0;
	else if (screen->tiles > VIEW_MEMORY_TILES / (screen->ipus > 0 ? screen->ipus : 1))
		screen->ipus = (int)(VIEW_MEMORY_TILES / screen->tiles);
	for (int s = 0; s < screen->sides && status == ST_OK && screen->ipus > 0; s++) {
		view_read_ranks(&screen->side[s], db[s]);
		status = view_read_side(screen, context, &screen->side[s], db[s], err);
		if (status == ST_OK)
			status = view__memory_read_apart(screen, &screen->side[s], db[s], err);
	}
	if (status != ST_OK)
		screen->ipus = 0;
	return status;
}

static enum status view_read_subject(struct view_memory *screen, struct view_context *context,
				     int64_t *array, struct prof_db *db, struct err *err)
{
	const bool layer = screen->subject.variable_id == IPS_NULL;
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, layer ? sql_layer : sql_variable, err);
	struct view_memory_run run;
	int64_t rows = 0;
	bool row;

	if (status != ST_OK)
		return status;
	prof_query_text(query, ":name", screen->subject.name);
	while (status == ST_OK) {
		if (++rows % LOOK_EVERY == 0 && view_cancelled(context))
			status = err_set(err, ST_INTERRUPTED, "stopped");
		else
			status = prof_query_step(query, &row, err);
		if (status != ST_OK || !row)
			break;
		if (view__memory_run(screen, query, &run))
			view_add(array, &run);
	}
	prof_query_close(query);
	return status;
}

enum status view__memory_subject(struct view_memory *screen, struct view_context *context,
				 struct err *err)
{
	struct prof_db *const db[VIEW_MEMORY_SIDES] = {
		context->source->db, context->target ? context->target->db : NULL};
	enum status status = ST_OK;

	arena_reset(&screen->subject_arena);
	for (int s = 0; s < VIEW_MEMORY_SIDES; s++)
		screen->side[s].subject = NULL;
	screen->subject_stale = false;
	for (int s = 0; s < screen->sides && screen->subject.name[0] && status == ST_OK; s++) {
		int64_t *array = view_array(screen, &screen->subject_arena, err);

		if (!array)
			status = ST_NOMEM;
		else
			status = view_read_subject(screen, context, array, db[s], err);
		screen->side[s].subject = status == ST_OK ? array : NULL;
	}
	screen->subject_stale = status != ST_OK;
	return status;
}
