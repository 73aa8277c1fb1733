/*
 * Memory of IPUs and tiles in the public report, summed from the database for the tiles of one IPU
 * at a time.
 *
 * Threading and ownership: as ipuscope/report.h says.
 */
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "popvision/public/report_public_internal.h"

/* Limits beyond any machine: rows above them are damaged. */
#define TILES_MAX      4096
#define IPUS_MAX       4096
#define CATEGORIES_MAX 256

enum region {
	NON_INTERLEAVED,
	INTERLEAVED,
	OVERFLOWED,
	REGIONS
};

/* A tile's memory in total and by category. */
struct tile {
	struct ips_report_memory memory;
	struct ips_report_category *categories;
};

struct report_public__memory {
	struct err err; /* failure to read it */
	int64_t ipus, tiles;
	const char **names; /* of the categories, sorted; texts of the report */
	size_t name_count;
	int64_t held; /* the IPU whose tiles are loaded, or -1 */
	struct tile *held_tiles;
	struct ips_report_category *held_categories; /* of all loaded tiles */
	struct tile *sums;                           /* by IPU; the last is the sum over all */
	struct ips_report_category *sum_categories;
	bool *summed;
};

void report_public__memory_free(struct report_public__memory *memory)
{
	if (!memory)
		return;
	mem_free(memory->names);
	mem_free(memory->held_tiles);
	mem_free(memory->held_categories);
	mem_free(memory->sums);
	mem_free(memory->sum_categories);
	mem_free(memory->summed);
	mem_free(memory);
}

/* ---- extent ---------------------------------------------------------------------------------- */

/* Read the categories in the file. */
static void read_category_names(struct ips_report *report, struct report_public__memory *memory)
{
	struct err *err = &memory->err;
	struct prof_query *query;

	prof_query_open(
		&query, report->db,
		"SELECT DISTINCT s.value FROM tile_memory_rows m "
		"JOIN strings s ON s.string_id = m.category_id ORDER BY s.value LIMIT :most",
		err);
	prof_query_int(query, ":most", CATEGORIES_MAX);
	memory->names = mem_calloc(CATEGORIES_MAX, sizeof(*memory->names));
	if (!memory->names && !err_stuck(err))
		err_nomem(err);
	while (prof_query_next(query, &err->status, err)) {
		const char *name = report_public__text(report, prof_column_text(query, 0), err);

		memory->names[memory->name_count] = name;
		memory->name_count += name != NULL;
	}
	prof_query_close(query);
}

/* Read the numbers of IPUs and tiles in the rows. */
static void read_extent(struct ips_report *report, struct report_public__memory *memory)
{
	const struct ips_report_target *target = ips_report_target(report);
	struct err *err = &memory->err;
	struct prof_query *query;

	prof_query_open(&query, report->db,
			"SELECT max(ipu) + 1, "
			"max(min(tile + max(ifnull(more_tiles, 0), 0), :tiles - 1)) + 1 "
			"FROM tile_memory_rows "
			"WHERE ipu >= 0 AND ipu < :ipus AND tile >= 0 AND tile < :tiles",
			err);
	prof_query_int(query, ":ipus", IPUS_MAX);
	prof_query_int(query, ":tiles", TILES_MAX);
	if (prof_query_next(query, &err->status, err) && prof_column_int(query, 0) != IPS_NULL) {
		memory->ipus = prof_column_int(query, 0);
		memory->tiles = prof_column_int(query, 1);
	}
	prof_query_close(query);
	if (memory->ipus > 0 && target->tiles_per_ipu > memory->tiles)
		memory->tiles = min(target->tiles_per_ipu, TILES_MAX);
}

static void allocate_tiles(struct report_public__memory *memory)
{
	const size_t tiles = (size_t)memory->tiles, sums = (size_t)memory->ipus + 1;
	const size_t row = memory->name_count * sizeof(struct ips_report_category);

	memory->held_tiles = mem_calloc(tiles + 1, sizeof(struct tile));
	memory->held_categories = mem_calloc(tiles + 1, row + 1);
	memory->sums = mem_calloc(sums, sizeof(struct tile));
	memory->sum_categories = mem_calloc(sums, row + 1);
	memory->summed = mem_calloc(sums, sizeof(bool));
	if (!memory->held_tiles || !memory->held_categories || !memory->sums ||
	    !memory->sum_categories || !memory->summed) {
		err_nomem(&memory->err);
		return;
	}
	for (size_t i = 0; i < tiles; i++)
		memory->held_tiles[i].categories = memory->held_categories + i * memory->name_count;
	for (size_t i = 0; i < sums; i++)
		memory->sums[i].categories = memory->sum_categories + i * memory->name_count;
}

/* Load the memory on first use. NULL: out of memory; otherwise `err` has the status. */
static struct report_public__memory *load_memory(struct ips_report *report)
{
	struct err short_of = {ST_OK, ""};
	struct report_public__memory *memory;

	if (report->memory)
		return report->memory;
	memory = report->memory = mem_calloc(1, sizeof(*memory));
	if (!memory) {
		err_nomem(&short_of);
		report_public__status(report, &short_of, NULL, 0);
		return NULL;
	}
	memory->held = -1;
	read_category_names(report, memory);
	if (!err_stuck(&memory->err))
		read_extent(report, memory);
	if (!err_stuck(&memory->err))
		allocate_tiles(memory);
	if (err_stuck(&memory->err)) {
		memory->ipus = memory->tiles = -1;
		err_prefix(&memory->err, "%s: memory of tiles", prof_db_path(report->db));
		report_public__status(report, &memory->err, NULL, 0);
	}
	return memory;
}

int64_t ips_report_ipu_count(struct ips_report *report)
{
	const struct report_public__memory *memory = !report ? NULL : load_memory(report);

	return !memory ? -1 : memory->ipus;
}

int64_t ips_report_tile_count(struct ips_report *report)
{
	const struct report_public__memory *memory = !report ? NULL : load_memory(report);

	return !memory ? -1 : memory->tiles;
}

/* ---- tiles of an IPU ------------------------------------------------------------------------- */

/* Not sat_add(): IPS_NULL, its least number, is no sum. */
static void saturating_add(int64_t *to, int64_t bytes)
{
	if (__builtin_add_overflow(*to, bytes, to))
		*to = bytes < 0 ? -INT64_MAX : INT64_MAX;
}

static void tile_clear(const struct report_public__memory *memory, struct tile *tile)
{
	memset(&tile->memory, 0, sizeof(tile->memory));
	for (size_t i = 0; i < memory->name_count; i++)
		tile->categories[i] = (struct ips_report_category){.name = memory->names[i]};
	tile->memory.categories = tile->categories;
	tile->memory.num_categories = (int64_t)memory->name_count;
}

static enum region region_of(const char *region)
{
	static const char *const names[REGIONS] = {[NON_INTERLEAVED] = "nonInterleaved",
						   [INTERLEAVED] = "interleaved",
						   [OVERFLOWED] = "overflowed"};

	for (int i = 0; region && i < REGIONS; i++)
		if (strcmp(names[i], region) == 0)
			return (enum region)i;
	return NON_INTERLEAVED;
}

/* Add the bytes of a row with category @index. */
static void tile_add(struct tile *tile, size_t index, enum region region, int64_t bytes)
{
	struct ips_report_category *category = &tile->categories[index];
	struct ips_report_memory *memory = &tile->memory;
	int64_t *const of_category[REGIONS] = {&category->non_interleaved, &category->interleaved,
					       &category->overflowed};
	int64_t *const of_tile[REGIONS] = {&memory->non_interleaved, &memory->interleaved,
					   &memory->overflowed_excluding_gaps};

	saturating_add(of_category[region], bytes);
	saturating_add(of_tile[region], bytes);
	saturating_add(&category->total, bytes);
	saturating_add(&memory->total_excluding_gaps, bytes);
	if (strcmp(category->name, "notAlwaysLiveVariables") == 0)
		saturating_add(&memory->not_always_live_bytes, bytes);
	else
		saturating_add(&memory->always_live_bytes, bytes);
	memory->total_including_gaps = memory->total_excluding_gaps;
	memory->overflowed_including_gaps = memory->overflowed_excluding_gaps;
}

/* Add the current row of @query: tile, category, region, bytes, capacity, and the number of
 * following tiles with the same values. */
static void add_row(struct report_public__memory *memory, const struct prof_query *query)
{
	const int64_t at = prof_column_int(query, 0), bytes = prof_column_int(query, 3);
	const int64_t capacity = prof_column_int(query, 4), more = prof_column_int(query, 5);
	const char *category = prof_column_text(query, 1);
	const enum region region = region_of(prof_column_text(query, 2));
	size_t index = 0;
	int64_t tiles;

	if (at < 0 || at >= memory->tiles || !category || bytes == IPS_NULL)
		return;
	while (index < memory->name_count && strcmp(memory->names[index], category) != 0)
		index++;
	tiles = more <= 0 ? 1 : more < memory->tiles - at ? more + 1 : memory->tiles - at;
	for (struct tile *tile = &memory->held_tiles[at], *end = tile + tiles; tile < end; tile++) {
		if (capacity > tile->memory.capacity)
			tile->memory.capacity = capacity;
		if (index < memory->name_count)
			tile_add(tile, index, region, bytes);
	}
}

/* Load the tiles of IPU @ipu. NULL: they cannot be read, or there is no such IPU. */
static struct report_public__memory *load_tiles(struct ips_report *report, int64_t ipu)
{
	struct report_public__memory *memory = load_memory(report);
	struct err err = {ST_OK, ""};
	struct prof_query *query;
	int64_t capacity;

	if (!memory || ipu < 0 || ipu >= memory->ipus)
		return NULL;
	if (memory->held == ipu)
		return memory;
	memory->held = -1;
	capacity = ips_report_target(report)->bytes_per_tile;
	for (int64_t i = 0; i < memory->tiles; i++) {
		struct tile *tile = &memory->held_tiles[i];

		tile_clear(memory, tile);
		tile->memory.ipu = ipu;
		tile->memory.tile = i;
		tile->memory.num_tiles = 1;
		tile->memory.capacity = capacity;
	}
	prof_query_open(&query, report->db,
			"SELECT m.tile, c.value, r.value, m.bytes, m.capacity, "
			"m.more_tiles FROM tile_memory_rows m "
			"LEFT JOIN strings c ON c.string_id = m.category_id "
			"LEFT JOIN strings r ON r.string_id = m.region_id "
			"WHERE m.ipu = :ipu",
			&err);
	prof_query_int(query, ":ipu", ipu);
	while (prof_query_next(query, &err.status, &err))
		add_row(memory, query);
	prof_query_close(query);
	if (report_public__status(report, &err, NULL, 0) != 0)
		return NULL;
	memory->held = ipu;
	return memory;
}

const struct ips_report_memory *ips_report_tile_memory(struct ips_report *report, int64_t ipu,
						       int64_t tile)
{
	const struct report_public__memory *memory = !report ? NULL : load_tiles(report, ipu);

	return !memory || tile < 0 || tile >= memory->tiles ? NULL
							    : &memory->held_tiles[tile].memory;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void sum_add(struct tile *sum, const struct tile *from)
{
	static const size_t members[] = {
		offsetof(struct ips_report_memory, num_tiles),
		offsetof(struct ips_report_memory, total_including_gaps),
		offsetof(struct ips_report_memory, total_excluding_gaps),
		offsetof(struct ips_report_memory, overflowed_including_gaps),
		offsetof(struct ips_report_memory, overflowed_excluding_gaps),
		offsetof(struct ips_report_memory, always_live_bytes),
		offsetof(struct ips_report_memory, not_always_live_bytes),
		offsetof(struct ips_report_memory, non_interleaved),
		offsetof(struct ips_report_memory, interleaved),
	};

	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		saturating_add(
			(int64_t *)(void *)((char *)&sum->memory + members[i]),
			*(const int64_t *)(const void *)((const char *)&from->memory + members[i]));
	if (sum->memory.capacity == IPS_NULL || from->memory.capacity == IPS_NULL)
		sum->memory.capacity = IPS_NULL;
	else
		saturating_add(&sum->memory.capacity, from->memory.capacity);
	for (int64_t i = 0; i < sum->memory.num_categories; i++) {
		struct ips_report_category *to = &sum->categories[i];
		const struct ips_report_category *category = &from->categories[i];

		saturating_add(&to->total, category->total);
		saturating_add(&to->non_interleaved, category->non_interleaved);
		saturating_add(&to->interleaved, category->interleaved);
		saturating_add(&to->overflowed, category->overflowed);
	}
}

/* The sum over IPU @ipu, or over all if @ipu is their number; NULL on failure. */
static const struct tile *sum_of(struct ips_report *report, int64_t ipu)
{
	struct report_public__memory *memory = load_memory(report);
	const bool all = ipu == memory->ipus;
	const int64_t count = all ? memory->ipus : memory->tiles;
	struct tile *sum = &memory->sums[ipu];

	if (memory->summed[ipu])
		return sum;
	if (!all && !load_tiles(report, ipu))
		return NULL;
	tile_clear(memory, sum);
	sum->memory.ipu = all ? IPS_NULL : ipu;
	sum->memory.tile = IPS_NULL;
	for (int64_t i = 0; i < count; i++) {
		const struct tile *part = all ? sum_of(report, i) : &memory->held_tiles[i];

		if (!part)
			return NULL;
		sum_add(sum, part);
	}
	memory->summed[ipu] = true;
	return sum;
}

const struct ips_report_memory *ips_report_ipu_memory(struct ips_report *report, int64_t ipu)
{
	const struct tile *sum;

	if (ips_report_ipu_count(report) <= 0 ||
	    (ipu != IPS_NULL && (ipu < 0 || ipu >= report->memory->ipus)))
		return NULL;
	sum = sum_of(report, ipu == IPS_NULL ? report->memory->ipus : ipu);
	return !sum ? NULL : &sum->memory;
}
