/*
 * graph.json: memory by tile, by category and over program steps.
 *
 * Threading: none. Ownership: nothing outlives a call.
 */
#include "common/mem.h"
#include "popvision/popvision_internal.h"

/* ---- by tile --------------------------------------------------------------------------------- */

enum region {
	NON_INTERLEAVED,
	INTERLEAVED,
	OVERFLOWED,
	REGIONS
};

static const char *const region_names[REGIONS] = {
	[NON_INTERLEAVED] = "nonInterleaved",
	[INTERLEAVED] = "interleaved",
	[OVERFLOWED] = "overflowed",
};

enum sum {
	SUM_TOTAL,
	SUM_OVERFLOWED,
	SUM_ALWAYS_LIVE,
	SUM_NOT_ALWAYS_LIVE,
	SUMS
};

/* Consecutive arrays by tile: the sums, then the regions of each category. */
struct memory {
	struct popvision *pv;
	const struct ips_report_category *names; /* borrowed from the report; NULL: no memory */
	int64_t categories;
	int64_t *bytes;
};

static int64_t *memory_array(const struct memory *m, int64_t number)
{
	return m->bytes + number * m->pv->tiles;
}

static int64_t *memory_region(const struct memory *m, int64_t category, int region)
{
	return memory_array(m, SUMS + category * REGIONS + region);
}

static void memory_read(struct memory *m)
{
	struct popvision *pv = m->pv;
	const struct ips_report_memory *first = ips_report_ipu_memory(pv->report, 0);
	const int64_t per_ipu = pv->target->tiles_per_ipu;
	size_t size;

	/* All IPUs name the same categories; the report now holds the tiles of the first IPU. */
	if (first) {
		m->names = first->categories;
		m->categories = first->num_categories;
	}
	if (__builtin_mul_overflow(SUMS + REGIONS * (size_t)m->categories, (size_t)pv->tiles,
				   &size) ||
	    !(m->bytes = mem_calloc(size + 1, sizeof(*m->bytes)))) {
		if (!err_stuck(pv->err))
			err_nomem(pv->err);
		return;
	}
	/* Ignore recorded tiles beyond those of the target. */
	for (int64_t at = 0; at < pv->tiles; at++) {
		const struct ips_report_memory *tile =
			ips_report_tile_memory(pv->report, at / per_ipu, at % per_ipu);

		if (!tile)
			continue;
		memory_array(m, SUM_TOTAL)[at] = tile->total_excluding_gaps;
		memory_array(m, SUM_OVERFLOWED)[at] = tile->overflowed_excluding_gaps;
		memory_array(m, SUM_ALWAYS_LIVE)[at] = tile->always_live_bytes;
		memory_array(m, SUM_NOT_ALWAYS_LIVE)[at] = tile->not_always_live_bytes;
		for (int64_t c = 0; c < m->categories; c++) {
			const struct ips_report_category *from = &tile->categories[c];

			memory_region(m, c, NON_INTERLEAVED)[at] = from->non_interleaved;
			memory_region(m, c, INTERLEAVED)[at] = from->interleaved;
			memory_region(m, c, OVERFLOWED)[at] = from->overflowed;
		}
	}
}

static void memory_sum(const struct memory *m, const char *key, enum sum sum)
{
	if (m->bytes)
		popvision__by_tile(m->pv, key, memory_array(m, sum));
}

/* Return whether the category has bytes in @region on any tile. */
static bool memory_has_region(const struct memory *m, int64_t category, int region)
{
	const int64_t *bytes = memory_region(m, category, region);

	for (int64_t i = 0; i < m->pv->tiles; i++)
		if (bytes[i])
			return true;
	return false;
}

static void memory_categories(const struct memory *m)
{
	struct jsonw *w = &m->pv->w;

	jsonw_key_object(w, "byCategory");
	for (int64_t c = 0; c < m->categories && m->bytes; c++) {
		jsonw_key_object(w, m->names[c].name);
		for (int r = 0; r < REGIONS; r++) {
			if (!memory_has_region(m, c, r))
				continue;
			jsonw_key_object(w, region_names[r]);
			popvision__by_tile(m->pv, "nonOverlapped", memory_region(m, c, r));
			jsonw_end_object(w);
		}
		jsonw_end_object(w);
	}
	jsonw_end_object(w);
}

/* ---- liveness -------------------------------------------------------------------------------- */

#define VARIABLE "SELECT variable_id AS id, variable AS name, layer, kind, shape, dtype, bytes, ipu"

static void memory_liveness(const struct memory *m)
{
	struct popvision *pv = m->pv;
	struct jsonw *w = &pv->w;

	jsonw_key_object(w, "liveness");
	jsonw_key_object(w, "alwaysLive");
	memory_sum(m, "bytesByTile", SUM_ALWAYS_LIVE);
	popvision__objects(pv, "variables",
			   VARIABLE " FROM variables WHERE always_live ORDER BY variable_id");
	jsonw_end_object(w);

	jsonw_key_object(w, "notAlwaysLive");
	memory_sum(m, "maxBytesByTile", SUM_NOT_ALWAYS_LIVE);
	popvision__objects(pv, "variables",
			   VARIABLE ", first_program_step AS firstProgramStep, last_program_step "
				    "AS lastProgramStep FROM variables WHERE NOT "
				    "ifnull(always_live, 0) ORDER BY variable_id");
	jsonw_end_object(w);

	popvision__objects(pv, "programSteps",
			   "SELECT ipu, program_step AS programStep, program_id AS program, "
			   "always_live_bytes AS \"alwaysLiveMemory.bytes\", "
			   "not_always_live_bytes AS \"notAlwaysLiveMemory.bytes\" "
			   "FROM liveness ORDER BY ipu, program_step");
	jsonw_end_object(w);
}

void popvision__memory(struct popvision *pv)
{
	struct memory m = {.pv = pv};
	struct jsonw *w = &pv->w;

	memory_read(&m);
	jsonw_key_object(w, "memory");
	jsonw_key_object(w, "byTile");
	memory_sum(&m, "total", SUM_TOTAL);
	memory_sum(&m, "totalIncludingGaps", SUM_TOTAL);
	memory_sum(&m, "overflowed", SUM_OVERFLOWED);
	jsonw_end_object(w);
	memory_categories(&m);
	memory_liveness(&m);
	jsonw_end_object(w);
	mem_free(m.bytes);
}
