/*
 * graph.json: what is known once a model is compiled. docs/json.md lists its paths.
 *
 * Threading: none. Ownership: nothing outlives a call.
 */
#include <string.h>

#include "reports/report_popvision_internal.h"

/* --- target ------------------------------------------------------------------------------------
 */

/* INT64_MIN: unknown. */
static int64_t graph_product(int64_t a, int64_t b)
{
	int64_t product;

	if (a == INT64_MIN || b == INT64_MIN || __builtin_mul_overflow(a, b, &product))
		return INT64_MIN;
	return product;
}

static void graph_int(struct report_pv *pv, const char *key, int64_t value)
{
	jsonw_key(&pv->w, key);
	if (value == INT64_MIN)
		jsonw_null(&pv->w);
	else
		jsonw_int(&pv->w, value);
}

static void graph_target(struct report_pv *pv, const struct report_pv_target *t)
{
	const int64_t ipus = t->replicas > 0 && t->ipus > 0 ? t->ipus / t->replicas : INT64_MIN;
	const int64_t bytes_per_ipu = graph_product(t->tiles_per_ipu, t->bytes_per_tile);

	jsonw_key(&pv->w, "target");
	jsonw_begin_object(&pv->w);
	jsonw_key_text(&pv->w, "type", *t->name ? "IPU_MODEL" : "CPU");
	jsonw_key_text(&pv->w, "name", *t->name ? t->name : NULL);
	graph_int(pv, "clockFrequency", t->clock_hz);
	graph_int(pv, "numIPUs", t->ipus);
	graph_int(pv, "tilesPerIPU", t->tiles_per_ipu);
	graph_int(pv, "numTiles", graph_product(t->ipus, t->tiles_per_ipu));
	graph_int(pv, "bytesPerTile", t->bytes_per_tile);
	graph_int(pv, "bytesPerIPU", bytes_per_ipu);
	graph_int(pv, "totalMemory", graph_product(t->ipus, bytes_per_ipu));
	graph_int(pv, "numReplicas", t->replicas);
	graph_int(pv, "ipusPerReplica", ipus);
	graph_int(pv, "tilesPerReplica", graph_product(ipus, t->tiles_per_ipu));
	graph_int(pv, "memoryPerReplica", graph_product(ipus, bytes_per_ipu));
	/* All tiles of an IPU are as near to its sync as each other. */
	report__pv_by_tile(pv, "relativeSyncDelayByTile", NULL);
	graph_int(pv, "minSyncDelay", t->sync_cycles);
	jsonw_end_object(&pv->w);
}

/* --- programs ----------------------------------------------------------------------------------
 */

#define PROGRAMS                                                                                   \
	"SELECT program_id AS id, type, name, operation, repeat_count AS count, "                  \
	"call_target AS target FROM programs ORDER BY program_id"
#define CHILDREN                                                                                   \
	"SELECT parent_id, program_id FROM programs WHERE parent_id IS NOT NULL "                  \
	"ORDER BY parent_id, position, program_id"
#define CALLED "(SELECT call_target FROM programs WHERE call_target IS NOT NULL)"

/* Of program @id; @children stands, in the order of parents, at the first not yet written. */
static bool graph_children(struct report_pv *pv, int64_t id, struct prof_query *children, bool more)
{
	jsonw_key(&pv->w, "children");
	jsonw_begin_array(&pv->w);
	while (more && prof_column_int(children, 0) <= id) {
		if (prof_column_int(children, 0) == id)
			jsonw_int(&pv->w, prof_column_int(children, 1));
		more = report__pv_step(pv, children);
	}
	jsonw_end_array(&pv->w);
	return more;
}

static void graph_programs(struct report_pv *pv)
{
	struct prof_query *programs = report__pv_open(pv, PROGRAMS);
	struct prof_query *children = report__pv_open(pv, CHILDREN);
	bool more = report__pv_step(pv, children);

	jsonw_key(&pv->w, "programs");
	jsonw_begin_array(&pv->w);
	while (report__pv_step(pv, programs)) {
		jsonw_begin_object(&pv->w);
		report__pv_columns(pv, programs);
		more = graph_children(pv, prof_column_int(programs, 0), children, more);
		jsonw_end_object(&pv->w);
	}
	jsonw_end_array(&pv->w);
	prof_query_close(children);
	prof_query_close(programs);

	report__pv_column(pv, "controlPrograms",
			  "SELECT program_id FROM programs WHERE parent_id IS NULL "
			  "AND program_id NOT IN " CALLED " ORDER BY program_id");
	report__pv_column(pv, "functionPrograms",
			  "SELECT program_id FROM programs WHERE parent_id IS NULL "
			  "AND program_id IN " CALLED " ORDER BY program_id");
}

/* --- vertices, compute sets, exchanges ---------------------------------------------------------
 */

/* A vertex's type is not recorded: what stands for it is the kind of its operation and what the
 * compute set is called in it, without a number at the end: "matmul::Reduce". */
#define COMPUTE_SETS                                                                               \
	"WITH kinds AS MATERIALIZED (SELECT operation, min(kind) AS kind FROM operations "         \
	"GROUP BY operation), "                                                                    \
	"parts AS (SELECT c.*, ifnull(k.kind, 'copy') AS kind, "                                   \
	"rtrim(substr(compute_set, 1 + length(rtrim(compute_set, replace(compute_set, '/', "       \
	"'')))), '0123456789-') AS part "                                                          \
	"FROM compute_sets c LEFT JOIN kinds k ON k.operation = c.operation), "                    \
	"sets AS (SELECT *, kind || '::' || part AS vertex FROM parts) "
#define SETS_ORDER " ORDER BY program_id, compute_set"

static void graph_compute_sets(struct report_pv *pv)
{
	jsonw_key(&pv->w, "vertexTypes");
	jsonw_begin_object(&pv->w);
	report__pv_column(pv, "names",
			  COMPUTE_SETS "SELECT DISTINCT vertex FROM sets ORDER BY vertex");
	jsonw_end_object(&pv->w);

	jsonw_key(&pv->w, "computeSets");
	jsonw_begin_object(&pv->w);
	report__pv_column(pv, "names", "SELECT compute_set FROM compute_sets" SETS_ORDER);
	report__pv_column(pv, "programs", "SELECT program_id FROM compute_sets" SETS_ORDER);
	report__pv_column(pv, "operations", "SELECT operation FROM compute_sets" SETS_ORDER);
	report__pv_listed(pv, "vertexTypes",
			  COMPUTE_SETS "SELECT type FROM (SELECT *, dense_rank() OVER (ORDER BY "
				       "vertex) - 1 AS type FROM sets)" SETS_ORDER);
	report__pv_listed(pv, "vertexCounts", "SELECT vertices FROM compute_sets" SETS_ORDER);
	report__pv_compute_set_cycles(pv, "estimatedCyclesByTile");
	jsonw_end_object(&pv->w);
}

#define EXCHANGES                                                                                  \
	" FROM programs WHERE type IN ('DoExchange', 'GlobalExchange') OR type LIKE "              \
	"'StreamCopy%' ORDER BY program_id"

static void graph_exchanges(struct report_pv *pv)
{
	jsonw_key(&pv->w, "exchanges");
	jsonw_begin_object(&pv->w);
	report__pv_column(pv, "names", "SELECT name" EXCHANGES);
	report__pv_column(pv, "types",
			  "SELECT CASE type WHEN 'DoExchange' THEN 'internal' "
			  "WHEN 'GlobalExchange' THEN 'external' ELSE 'host' END" EXCHANGES);
	report__pv_column(pv, "programs", "SELECT program_id" EXCHANGES);
	report__pv_column(pv, "operations", "SELECT operation" EXCHANGES);
	jsonw_end_object(&pv->w);
}

/* --- the whole ---------------------------------------------------------------------------------
 */

static void graph_plans(struct report_pv *pv)
{
	jsonw_key(&pv->w, "optimizationInfo");
	jsonw_begin_object(&pv->w);
	report__pv_objects(
		pv, "plans",
		"SELECT operation, method, split_batch AS splitBatch, split_field AS splitField, "
		"split_in AS splitIn, split_out AS splitOut, split_kernel AS splitKernel, "
		"serial_splits AS serialSplits, temporary_bytes AS temporaryBytes, cycles "
		"FROM plans");
	jsonw_end_object(&pv->w);
}

static void graph_counts(struct report_pv *pv)
{
	jsonw_key(&pv->w, "graph");
	jsonw_begin_object(&pv->w);
	report__pv_fields(pv, "SELECT (SELECT count(*) FROM compute_sets) AS numComputeSets, "
			      "(SELECT sum(vertices) FROM compute_sets) AS numVertices, "
			      "(SELECT count(*) FROM variables) AS numVars, NULL AS numEdges, "
			      "(SELECT count(*) FROM programs) AS numPrograms, "
			      "(SELECT count(*) FROM operations) AS numOperations, "
			      "(SELECT count(*) FROM layers) AS numLayers");
	jsonw_end_object(&pv->w);
}

static void graph_operations(struct report_pv *pv)
{
	report__pv_objects(
		pv, "layers",
		"SELECT layer AS name, class, stage, output_shape AS outputShape, params, "
		"trainable_params AS trainableParams, flops FROM layers ORDER BY position, layer");
	report__pv_objects(
		pv, "operations",
		"SELECT operation AS name, layer, kind, phase, stage, flops, cycles, "
		"compute_cycles AS computeCycles, exchange_cycles AS exchangeCycles, "
		"sync_cycles AS syncCycles, bytes_exchanged AS bytesExchanged, "
		"tiles_used AS tilesUsed, tile_balance AS tileBalance, code_bytes AS codeBytes "
		"FROM operations");
}

static void graph_body(struct report_pv *pv, const struct report_pv_target *target)
{
	graph_target(pv, target);
	graph_plans(pv);
	graph_counts(pv);
	graph_compute_sets(pv);
	graph_exchanges(pv);
	graph_programs(pv);
	graph_operations(pv);
	report__pv_memory(pv);
}

enum status report_popvision_graph(struct prof_db *db, const char *path, struct err *err)
{
	return report__pv_write(db, path, REPORT_ALL_REPLICAS, graph_body, err);
}
