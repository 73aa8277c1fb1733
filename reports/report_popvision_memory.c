/*
 * graph.json: memory by tile, by category and over the program's steps.
 *
 * Threading: none. Ownership: nothing outlives a call.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/report_popvision_internal.h"

#define CATEGORIES_MAX 256 /* with their regions; a file with more is damaged */

/* The most that all but the always-live variables take at once is a category of its own. */
#define TAKES_TURNS "notAlwaysLiveVariables"

/* --- rows by tile ------------------------------------------------------------------------------
 */

struct category {
	char *name, *region;
	int64_t *bytes; /* by tile */
};

struct memory {
	struct report_pv *pv;
	struct category category[CATEGORIES_MAX]; /* sorted once all are there */
	int count;
	int64_t *sum; /* by tile, of some categories */
};

static void memory_fini(struct memory *m)
{
	for (int i = 0; i < m->count; i++) {
		mem_free(m->category[i].name);
		mem_free(m->category[i].region);
		mem_free(m->category[i].bytes);
	}
	mem_free(m->sum);
}

/* What is unknown adds nothing; a damaged file's sums may go round. */
static void add(int64_t *sum, int64_t bytes)
{
	if (bytes != INT64_MIN && __builtin_add_overflow(*sum, bytes, sum))
		return;
}

/* NULL: failed. */
static struct category *memory_add(struct memory *m, const char *name, const char *region)
{
	struct category *c = &m->category[m->count];
	struct report_pv *pv = m->pv;

	if (m->count == CATEGORIES_MAX) {
		pv->status = err_set(pv->err, ST_FORMAT, "%s: more than %d categories of memory",
				     prof_db_path(pv->db), CATEGORIES_MAX);
		return NULL;
	}
	c->name = mem_strdup(name);
	c->region = mem_strdup(region);
	c->bytes = mem_calloc((size_t)pv->tiles + 1, sizeof(*c->bytes));
	m->count++;
	if (c->name && c->region && c->bytes)
		return c;
	pv->status = err_nomem(pv->err);
	return NULL;
}

static struct category *memory_find(struct memory *m, const char *name, const char *region)
{
	for (int i = 0; i < m->count; i++)
		if (!strcmp(m->category[i].name, name) && !strcmp(m->category[i].region, region))
			return &m->category[i];
	return memory_add(m, name, region);
}

static int compare_categories(const void *a, const void *b)
{
	const struct category *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : strcmp(x->region, y->region);
}

static void memory_read(struct memory *m)
{
	struct report_pv *pv = m->pv;
	struct prof_query *query =
		report__pv_open(pv, "SELECT category, region, ipu, tile, bytes FROM tile_memory "
				    "WHERE category <> '' AND region <> ''");

	while (report__pv_step(pv, query)) {
		const int64_t ipu = prof_column_int(query, 2), tile = prof_column_int(query, 3);
		struct category *c =
			memory_find(m, prof_column_text(query, 0), prof_column_text(query, 1));

		/* What no tile of the target has is no tile's. */
		if (c && ipu >= 0 && tile >= 0 && tile < pv->tiles_per_ipu &&
		    ipu < pv->tiles / pv->tiles_per_ipu)
			add(&c->bytes[ipu * pv->tiles_per_ipu + tile], prof_column_int(query, 4));
	}
	prof_query_close(query);
	if (pv->status != ST_OK)
		return;
	qsort(m->category, (size_t)m->count, sizeof(m->category[0]), compare_categories);
	m->sum = mem_calloc((size_t)pv->tiles + 1, sizeof(*m->sum));
	if (!m->sum)
		pv->status = err_nomem(pv->err);
}

/* --- what is made of them ----------------------------------------------------------------------
 */

static bool is_any(const struct category *c)
{
	(void)c;
	return true;
}

static bool is_overflowed(const struct category *c)
{
	return !strcmp(c->region, "overflowed");
}

static bool takes_turns(const struct category *c)
{
	return !strcmp(c->name, TAKES_TURNS);
}

static bool is_always_live(const struct category *c)
{
	return !takes_turns(c);
}

static void memory_sum(struct memory *m, const char *key, bool (*is_in)(const struct category *c))
{
	const int64_t tiles = m->pv->tiles;

	if (m->pv->status != ST_OK)
		return;
	memset(m->sum, 0, (size_t)tiles * sizeof(*m->sum));
	for (int i = 0; i < m->count; i++)
		for (int64_t t = 0; t < tiles && is_in(&m->category[i]); t++)
			add(&m->sum[t], m->category[i].bytes[t]);
	report__pv_by_tile(m->pv, key, m->sum);
}

static void memory_categories(struct memory *m)
{
	struct jsonw *w = &m->pv->w;

	jsonw_key(w, "byCategory");
	jsonw_begin_object(w);
	for (int i = 0; i < m->count && m->pv->status == ST_OK; i++) {
		const struct category *c = &m->category[i];

		if (!i || strcmp(c[-1].name, c->name) != 0) {
			jsonw_key(w, c->name);
			jsonw_begin_object(w);
		}
		jsonw_key(w, c->region);
		jsonw_begin_object(w);
		report__pv_by_tile(m->pv, "nonOverlapped", c->bytes);
		jsonw_end_object(w);
		if (i + 1 == m->count || strcmp(c[1].name, c->name) != 0)
			jsonw_end_object(w);
	}
	jsonw_end_object(w);
}

/* --- liveness ----------------------------------------------------------------------------------
 */

#define VARIABLE "SELECT variable_id AS id, variable AS name, layer, kind, shape, dtype, bytes, ipu"

static void memory_liveness(struct memory *m)
{
	struct report_pv *pv = m->pv;
	struct jsonw *w = &pv->w;

	jsonw_key(w, "liveness");
	jsonw_begin_object(w);
	jsonw_key(w, "alwaysLive");
	jsonw_begin_object(w);
	memory_sum(m, "bytesByTile", is_always_live);
	report__pv_objects(pv, "variables",
			   VARIABLE " FROM variables WHERE always_live ORDER BY variable_id");
	jsonw_end_object(w);

	jsonw_key(w, "notAlwaysLive");
	jsonw_begin_object(w);
	memory_sum(m, "maxBytesByTile", takes_turns);
	report__pv_objects(pv, "variables",
			   VARIABLE ", first_program_step AS firstProgramStep, last_program_step "
				    "AS lastProgramStep FROM variables WHERE NOT "
				    "ifnull(always_live, 0) ORDER BY variable_id");
	jsonw_end_object(w);

	report__pv_objects(pv, "programSteps",
			   "SELECT ipu, program_step AS programStep, program_id AS program, "
			   "always_live_bytes AS \"alwaysLiveMemory.bytes\", "
			   "not_always_live_bytes AS \"notAlwaysLiveMemory.bytes\" "
			   "FROM liveness ORDER BY ipu, program_step");
	jsonw_end_object(w);
}

void report__pv_memory(struct report_pv *pv)
{
	struct memory m = {.pv = pv};
	struct jsonw *w = &pv->w;

	memory_read(&m);
	jsonw_key(w, "memory");
	jsonw_begin_object(w);
	jsonw_key(w, "byTile");
	jsonw_begin_object(w);
	memory_sum(&m, "total", is_any);
	memory_sum(&m, "totalIncludingGaps", is_any);
	memory_sum(&m, "overflowed", is_overflowed);
	jsonw_end_object(w);
	memory_categories(&m);
	memory_liveness(&m);
	jsonw_end_object(w);
	memory_fini(&m);
}
