/*
 * graph.json: what is known once a model is compiled. docs/json.md lists its paths.
 *
 * Threading: none. Ownership: nothing outlives a call.
 */
#include "common/str.h"
#include "popvision/popvision_internal.h"

/* ---- target ---------------------------------------------------------------------------------- */

static void graph_target(struct popvision *pv)
{
	const struct ips_report_target *t = pv->target;
	const char *text = ips_report_fact(pv->report, "sync_cycles");
	long long cycles; /* of an IPU's sync */

	jsonw_key_object(&pv->w, "target");
	jsonw_key_text(&pv->w, "type", t->name ? "IPU_MODEL" : "CPU");
	jsonw_key_text(&pv->w, "name", t->name);
	jsonw_key_text(&pv->w, "architecture", t->architecture);
	jsonw_key_real(&pv->w, "clockFrequency", t->clock_frequency);
	popvision__int(pv, "numIPUs", t->name ? t->num_ipus : 0);
	popvision__int(pv, "tilesPerIPU", t->tiles_per_ipu);
	popvision__int(pv, "numTiles", t->num_tiles);
	popvision__int(pv, "bytesPerTile", t->bytes_per_tile);
	popvision__int(pv, "bytesPerIPU", t->bytes_per_ipu);
	popvision__int(pv, "totalMemory", t->total_memory);
	popvision__int(pv, "numReplicas", t->num_replicas);
	popvision__int(pv, "ipusPerReplica", t->ipus_per_replica);
	popvision__int(pv, "tilesPerReplica", t->tiles_per_replica);
	popvision__int(pv, "memoryPerReplica", t->memory_per_replica);
	/* In the simulator all tiles of an IPU have the same sync delay. */
	popvision__by_tile(pv, "relativeSyncDelayByTile", NULL);
	popvision__int(pv, "minSyncDelay", text && str_to_int(text, &cycles) ? cycles : IPS_NULL);
	jsonw_end_object(&pv->w);
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Write the ids of the roots that are functions, or of those that are not. */
static void graph_roots(struct popvision *pv, const char *key, bool functions)
{
	jsonw_key_array(&pv->w, key);
	for (int64_t i = ips_report_program_first_root(pv->report); i != IPS_REPORT_NONE;) {
		const struct ips_report_program *root = ips_report_program(pv->report, i);

		if (functions == (root->is_function == 1))
			jsonw_int(&pv->w, root->program_id);
		i = root->next_sibling;
	}
	jsonw_end_array(&pv->w);
}

static void graph_programs(struct popvision *pv)
{
	const int64_t count = ips_report_program_count(pv->report);
	struct jsonw *w = &pv->w;

	jsonw_key_array(w, "programs");
	for (int64_t p = 0; p < count; p++) {
		const struct ips_report_program *program = ips_report_program(pv->report, p);

		jsonw_begin_object(w);
		jsonw_key_int(w, "id", program->program_id);
		jsonw_key_text(w, "type", program->type);
		jsonw_key_text(w, "name", program->name);
		jsonw_key_text(w, "operation", program->operation);
		popvision__int(pv, "count", program->repeat_count);
		popvision__int(pv, "target", program->call_target);
		jsonw_key_array(w, "children");
		for (int64_t i = program->first_child; i != IPS_REPORT_NONE;) {
			const struct ips_report_program *child = ips_report_program(pv->report, i);

			jsonw_int(w, child->program_id);
			i = child->next_sibling;
		}
		jsonw_end_array(w);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
	graph_roots(pv, "controlPrograms", false);
	graph_roots(pv, "functionPrograms", true);
}

/* ---- vertices and compute sets --------------------------------------------------------------- */

/* Vertex types are not recorded. They are named after the kind of the operation and the compute
 * set's name within it, without a trailing number: "matmul::Reduce". */
#define COMPUTE_SETS                                                                               \
	"WITH kinds AS MATERIALIZED (SELECT operation, min(kind) AS kind FROM operations "         \
	"GROUP BY operation), "                                                                    \
	"parts AS (SELECT c.*, ifnull(k.kind, 'copy') AS kind, "                                   \
	"rtrim(substr(compute_set, 1 + length(rtrim(compute_set, replace(compute_set, '/', "       \
	"'')))), '0123456789-') AS part "                                                          \
	"FROM compute_sets c LEFT JOIN kinds k ON k.operation = c.operation), "                    \
	"sets AS (SELECT *, kind || '::' || part AS vertex FROM parts) "
#define SETS_ORDER " ORDER BY program_id, compute_set"

static void graph_compute_sets(struct popvision *pv)
{
	jsonw_key_object(&pv->w, "vertexTypes");
	popvision__column(pv, "names",
			  COMPUTE_SETS "SELECT DISTINCT vertex FROM sets ORDER BY vertex");
	jsonw_end_object(&pv->w);

	jsonw_key_object(&pv->w, "computeSets");
	popvision__column(pv, "names", "SELECT compute_set FROM compute_sets" SETS_ORDER);
	popvision__column(pv, "programs", "SELECT program_id FROM compute_sets" SETS_ORDER);
	popvision__column(pv, "operations", "SELECT operation FROM compute_sets" SETS_ORDER);
	popvision__listed(pv, "vertexTypes",
			  COMPUTE_SETS "SELECT type FROM (SELECT *, dense_rank() OVER (ORDER BY "
				       "vertex) - 1 AS type FROM sets)" SETS_ORDER);
	popvision__listed(pv, "vertexCounts", "SELECT vertices FROM compute_sets" SETS_ORDER);
	popvision__compute_set_cycles(pv, "estimatedCyclesByTile");
	jsonw_end_object(&pv->w);
}

/* ---- file ------------------------------------------------------------------------------------ */

#define EXCHANGES                                                                                  \
	" FROM programs WHERE type IN ('DoExchange', 'GlobalExchange') OR type LIKE "              \
	"'StreamCopy%' ORDER BY program_id"

static void graph_body(struct popvision *pv)
{
	const struct ips_report_graph *graph;

	graph_target(pv);
	jsonw_key_object(&pv->w, "optimizationInfo");
	popvision__objects(
		pv, "plans",
		"SELECT operation, method, split_batch AS splitBatch, split_field AS splitField, "
		"split_in AS splitIn, split_out AS splitOut, split_kernel AS splitKernel, "
		"serial_splits AS serialSplits, temporary_bytes AS temporaryBytes, cycles "
		"FROM plans");
	jsonw_end_object(&pv->w);
	graph = ips_report_graph(pv->report);
	jsonw_key_object(&pv->w, "graph");
	popvision__int(pv, "numComputeSets", graph->num_compute_sets);
	popvision__int(pv, "numVertices", graph->num_vertices);
	popvision__int(pv, "numVars", graph->num_variables);
	popvision__int(pv, "numEdges", graph->num_edges);
	popvision__int(pv, "numPrograms", graph->num_programs);
	popvision__int(pv, "numOperations", graph->num_operations);
	popvision__int(pv, "numLayers", graph->num_layers);
	jsonw_end_object(&pv->w);
	graph_compute_sets(pv);
	jsonw_key_object(&pv->w, "exchanges");
	popvision__column(pv, "names", "SELECT name" EXCHANGES);
	popvision__column(pv, "types",
			  "SELECT CASE type WHEN 'DoExchange' THEN 'internal' "
			  "WHEN 'GlobalExchange' THEN 'external' ELSE 'host' END" EXCHANGES);
	popvision__column(pv, "programs", "SELECT program_id" EXCHANGES);
	popvision__column(pv, "operations", "SELECT operation" EXCHANGES);
	jsonw_end_object(&pv->w);
	graph_programs(pv);
	popvision__objects(
		pv, "layers",
		"SELECT layer AS name, class, stage, output_shape AS outputShape, params, "
		"trainable_params AS trainableParams, flops FROM layers ORDER BY position, layer");
	popvision__objects(
		pv, "operations",
		"SELECT operation AS name, layer, kind, phase, stage, flops, cycles, "
		"compute_cycles AS computeCycles, exchange_cycles AS exchangeCycles, "
		"sync_cycles AS syncCycles, bytes_exchanged AS bytesExchanged, "
		"tiles_used AS tilesUsed, tile_balance AS tileBalance, code_bytes AS codeBytes "
		"FROM operations");
	popvision__memory(pv);
}

enum status popvision_graph(struct ips_report *report, const char *path, struct err *err)
{
	return popvision__write(report, path, POPVISION_ALL_REPLICAS, graph_body, err);
}
