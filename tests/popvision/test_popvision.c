/*
 * graph.json, execution.json and debug.cbor of a run made by hand, number by number; and what is
 * left where they cannot be written.
 */
#include "support/support.h"

#include <cbor.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sqlite3.h>

#include "common/fs.h"
#include "common/json.h"
#include "common/mem.h"
#include "ipuscope/profiler.h"
#include "support/report_sample.h"
#include "popvision/popvision.h"

/* Two replicas of one IPU of four tiles; one layer, one operation of an exchange and a compute set
 * in a function, which a control program calls; two executions, of which one is traced, of one pass
 * for each replica. */
static void tiny_graph(struct ips_recording *r)
{
	ips_append_layer(r, &(struct ips_layer){"d", "Dense", 0, 0, "(2, 3)", 6, 6, 12});
	ips_append_operation(r, &(struct ips_operation){"d/MatMul", "d", "matmul", "F", 0, 12, 30,
							20, 6, 4, 64, 3, (double)INFINITY, 16});
	ips_append_plan(r, &(struct ips_plan){"d/MatMul", "split", 1, 1, 3, 1, 1, 1, IPS_NULL, 30});
	ips_append_program(r, &(struct ips_program){0, IPS_NULL, 0, "Sequence", "Stage0/F", NULL,
						    IPS_NULL, IPS_NULL});
	ips_append_program(r, &(struct ips_program){1, 0, 1, "OnTileExecute", "d/MatMul/Reduce0",
						    "d/MatMul", IPS_NULL, IPS_NULL});
	ips_append_program(r, &(struct ips_program){2, 0, 0, "DoExchange", "d/MatMul/\"Pre\"",
						    "d/MatMul", IPS_NULL, IPS_NULL});
	ips_append_program(
		r, &(struct ips_program){3, IPS_NULL, 0, "Repeat", "main", NULL, 7, IPS_NULL});
	ips_append_program(r, &(struct ips_program){4, 3, 0, "Call", NULL, NULL, IPS_NULL, 0});
	ips_append_compute_set(
		r, &(struct ips_compute_set){"d/MatMul/Reduce0", "d/MatMul", 1, 5, 3, 20, 12.5});
}

static void tiny_memory(struct ips_recording *r)
{
	ips_append_variable(r, &(struct ips_variable){0, "d/kernel", "d", "weight", "(2, 3)",
						      "float32", 24, 0, 1, IPS_NULL, IPS_NULL});
	ips_append_variable(r, &(struct ips_variable){1, "d/out", "d", "activation", "(2, 3)",
						      "float32", 24, 0, 0, 0, 1});
	ips_append_tile_memory(
		r, &(struct ips_tile_memory){0, 0, "variables", "interleaved", 8, 100, 2});
	ips_append_tile_memory(r, &(struct ips_tile_memory){0, 1, "notAlwaysLiveVariables",
							    "interleaved", 90, 100, 0});
	ips_append_tile_memory(r, &(struct ips_tile_memory){0, 1, "notAlwaysLiveVariables",
							    "overflowed", 6, 100, 0});
	ips_append_tile_memory(
		r, &(struct ips_tile_memory){0, 3, "variables", "nonInterleaved", 1, 100, 0});
	ips_append_liveness(r, &(struct ips_liveness){0, 0, 2, 25, 96});
	ips_append_liveness(r, &(struct ips_liveness){0, 1, IPS_NULL, 25, 0});
}

static void tiny_device(struct ips_recording *r)
{
	struct ips_device_step step = {.phase = "F",
				       .program_id = 2,
				       .type = "DoExchange",
				       .name = "d/MatMul/\"Pre\"",
				       .operation = "d/MatMul",
				       .cycles = 10,
				       .cycles_overlapped = IPS_NULL,
				       .active_tiles = IPS_NULL,
				       .tile_balance = (double)NAN,
				       .active_tile_balance = (double)NAN,
				       .bytes_in = 32,
				       .bytes_out = INT64_MAX};
	struct ips_device_run run = {.mode = IPS_TRAIN, .epoch = 1, .weight_update = 4};

	ips_append_device_trace(r, &(struct ips_device_trace){.clock_hz = 1e9, .name = "train"});
	ips_append_device_step(r, &step);
	step = (struct ips_device_step){.trace_step = 1,
					.phase = "F",
					.program_id = 1,
					.type = "OnTileExecute",
					.name = "d/MatMul/Reduce0",
					.operation = "d/MatMul",
					.start_cycle = 10,
					.cycles = 20,
					.cycles_overlapped = IPS_NULL,
					.active_tiles = 3,
					.tile_balance = 0.375,
					.active_tile_balance = (double)INFINITY};
	ips_append_device_step(r, &step);
	for (run.replica = 0; run.replica < 2; run.replica++) {
		run.first_ipu = run.replica;
		run.first_step = 16;
		run.start_cycle = 1000;
		ips_append_device_run(r, &run);
	}
	ips_append_execution(
		r, &(struct ips_execution){IPS_TRAIN, 1, 0, 16, 4, 1, 1500, 2250, 1000, 30, 1});
	ips_append_execution(
		r, &(struct ips_execution){IPS_TRAIN, 2, 1, 20, 4, 1, 9000, 2000, 2000, 30, 0});
}

static void tiny_write(const char *path)
{
	static const char *const facts[][2] = {{"model", "tiny"},
					       {"target", "ipu2"},
					       {"ipus", "2"},
					       {"replicas", "2"},
					       {"architecture", "Mk2"},
					       {"tiles_per_ipu", "4"},
					       {"bytes_per_tile", "638976"},
					       {"clock_hz", "1000000000"},
					       {"sync_cycles", "126"}};
	struct ips_recording_params params;
	struct ips_recording *r;
	char message[1024] = "";

	ips_recording_params_defaults(&params);
	if (ips_recording_open(&r, path, &params, message, sizeof(message)))
		fail_msg("%s", message);
	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		ips_meta_set(r, facts[i][0], facts[i][1]);
	tiny_graph(r);
	tiny_memory(r);
	tiny_device(r);
	if (ips_recording_close(r, message, sizeof(message)))
		fail_msg("%s", message);
}

#define HEAD                                                                                       \
	"{\"ipuscope\":{\"version\":\"" IPUSCOPE_VERSION                                           \
	"\",\"simulated\":true,\"model\":\"tiny\"},"

static const char tiny_graph_json[] = HEAD
	"\"target\":{\"type\":\"IPU_MODEL\",\"name\":\"ipu2\",\"architecture\":\"Mk2\","
	"\"clockFrequency\":1000000000,"
	"\"numIPUs\":2,\"tilesPerIPU\":4,\"numTiles\":8,\"bytesPerTile\":638976,\"bytesPerIPU\":"
	"2555904,"
	"\"totalMemory\":5111808,\"numReplicas\":2,\"ipusPerReplica\":1,\"tilesPerReplica\":4,"
	"\"memoryPerReplica\":2555904,\"relativeSyncDelayByTile\":{\"runs\":[[4,0]]},"
	"\"minSyncDelay\":126},"
	"\"optimizationInfo\":{\"plans\":[{\"operation\":\"d/MatMul\",\"method\":\"split\","
	"\"splitBatch\":1,\"splitField\":1,\"splitIn\":3,\"splitOut\":1,\"splitKernel\":1,"
	"\"serialSplits\":1,\"temporaryBytes\":null,\"cycles\":30}]},"
	"\"graph\":{\"numComputeSets\":1,\"numVertices\":5,\"numVars\":2,\"numEdges\":null,"
	"\"numPrograms\":5,\"numOperations\":1,\"numLayers\":1},"
	"\"vertexTypes\":{\"names\":[\"matmul::Reduce\"]},"
	"\"computeSets\":{\"names\":[\"d/MatMul/Reduce0\"],\"programs\":[1],"
	"\"operations\":[\"d/MatMul\"],\"vertexTypes\":[[0]],\"vertexCounts\":[[5]],"
	"\"estimatedCyclesByTile\":[{\"tiles\":3,\"max\":20,\"mean\":12.5}]},"
	"\"exchanges\":{\"names\":[\"d/MatMul/\\\"Pre\\\"\"],\"types\":[\"internal\"],"
	"\"programs\":[2],\"operations\":[\"d/MatMul\"]},"
	"\"programs\":["
	"{\"id\":0,\"type\":\"Sequence\",\"name\":\"Stage0/F\",\"operation\":null,\"count\":null,"
	"\"target\":null,\"children\":[2,1]},"
	"{\"id\":1,\"type\":\"OnTileExecute\",\"name\":\"d/MatMul/Reduce0\","
	"\"operation\":\"d/MatMul\",\"count\":null,\"target\":null,\"children\":[]},"
	"{\"id\":2,\"type\":\"DoExchange\",\"name\":\"d/MatMul/\\\"Pre\\\"\","
	"\"operation\":\"d/MatMul\",\"count\":null,\"target\":null,\"children\":[]},"
	"{\"id\":3,\"type\":\"Repeat\",\"name\":\"main\",\"operation\":null,\"count\":7,"
	"\"target\":null,\"children\":[4]},"
	"{\"id\":4,\"type\":\"Call\",\"name\":null,\"operation\":null,\"count\":null,"
	"\"target\":0,\"children\":[]}],"
	"\"controlPrograms\":[3],\"functionPrograms\":[0],"
	"\"layers\":[{\"name\":\"d\",\"class\":\"Dense\",\"stage\":0,\"outputShape\":\"(2, 3)\","
	"\"params\":6,\"trainableParams\":6,\"flops\":12}],"
	"\"operations\":[{\"name\":\"d/MatMul\",\"layer\":\"d\",\"kind\":\"matmul\","
	"\"phase\":\"F\",\"stage\":0,\"flops\":12,\"cycles\":30,\"computeCycles\":20,"
	"\"exchangeCycles\":6,\"syncCycles\":4,\"bytesExchanged\":64,\"tilesUsed\":3,"
	"\"tileBalance\":null,\"tileBalance_nonfinite\":\"inf\",\"codeBytes\":16}],"
	"\"memory\":{\"byTile\":{\"total\":{\"runs\":[[1,8],[1,104],[1,8],[1,1]]},"
	"\"totalIncludingGaps\":{\"runs\":[[1,8],[1,104],[1,8],[1,1]]},"
	"\"overflowed\":{\"runs\":[[1,0],[1,6],[2,0]]}},"
	"\"byCategory\":{\"notAlwaysLiveVariables\":{"
	"\"interleaved\":{\"nonOverlapped\":{\"runs\":[[1,0],[1,90],[2,0]]}},"
	"\"overflowed\":{\"nonOverlapped\":{\"runs\":[[1,0],[1,6],[2,0]]}}},"
	"\"variables\":{\"nonInterleaved\":{\"nonOverlapped\":{\"runs\":[[3,0],[1,1]]}},"
	"\"interleaved\":{\"nonOverlapped\":{\"runs\":[[3,8],[1,0]]}}}},"
	"\"liveness\":{\"alwaysLive\":{\"bytesByTile\":{\"runs\":[[3,8],[1,1]]},"
	"\"variables\":[{\"id\":0,\"name\":\"d/kernel\",\"layer\":\"d\",\"kind\":\"weight\","
	"\"shape\":\"(2, 3)\",\"dtype\":\"float32\",\"bytes\":24,\"ipu\":0}]},"
	"\"notAlwaysLive\":{\"maxBytesByTile\":{\"runs\":[[1,0],[1,96],[2,0]]},"
	"\"variables\":[{\"id\":1,\"name\":\"d/out\",\"layer\":\"d\",\"kind\":\"activation\","
	"\"shape\":\"(2, 3)\",\"dtype\":\"float32\",\"bytes\":24,\"ipu\":0,"
	"\"firstProgramStep\":0,\"lastProgramStep\":1}]},"
	"\"programSteps\":[{\"ipu\":0,\"programStep\":0,\"program\":2,"
	"\"alwaysLiveMemory\":{\"bytes\":25},\"notAlwaysLiveMemory\":{\"bytes\":96}},"
	"{\"ipu\":0,\"programStep\":1,\"program\":null,"
	"\"alwaysLiveMemory\":{\"bytes\":25},\"notAlwaysLiveMemory\":{\"bytes\":0}}]}}}\n";

/* What of execution.json tells replicas apart: the replica, the cycles of compute and exchange, how
 * many passes, the passes. */
#define EXECUTION_JSON(replica, compute, exchange, count, passes)                                  \
	HEAD "\"profilerMode\":\"IPU_MODEL\",\"replicaToProfile\":" replica ","                    \
	     "\"computeSetCyclesByTile\":[{\"tiles\":3,\"max\":20,\"mean\":12.5}],"                \
	     "\"simulation\":{\"cycles\":30,\"tileCycles\":{\"compute\":" compute                  \
	     ",\"doExchange\":" exchange                                                           \
	     ",\"globalExchange\":null,\"streamCopy\":null,\"sync\":null},"                        \
	     "\"runs\":[{\"rank\":0,\"execution\":0,\"mode\":\"train\",\"epoch\":1,"               \
	     "\"firstStep\":16,\"numSteps\":4,\"weightUpdates\":1,\"cyclesFrom\":1000,"            \
	     "\"cyclesTo\":1030,\"cycles\":30,\"microseconds\":{\"start\":1.5,\"end\":3.75}}],"    \
	     "\"traces\":[{\"name\":\"train\",\"clockFrequency\":1000000000,\"firstStep\":0,"      \
	     "\"numSteps\":2,\"numPasses\":" count "}],"                                           \
	     "\"steps\":[{\"trace\":0,\"type\":\"DoExchange\",\"name\":\"d/MatMul/\\\"Pre\\\"\","  \
	     "\"program\":2,\"operation\":\"d/MatMul\",\"ipu\":0,\"stage\":0,\"phase\":\"F\","     \
	     "\"microbatch\":0,\"cyclesFrom\":0,\"cyclesTo\":10,\"cycles\":10,"                    \
	     "\"cyclesOverlapped\":null,\"activeTiles\":null,\"tileBalance\":null,"                \
	     "\"activeTileBalance\":null,\"dataIn\":32,\"dataOut\":9223372036854775807},"          \
	     "{\"trace\":0,\"type\":\"OnTileExecute\",\"name\":\"d/MatMul/Reduce0\","              \
	     "\"program\":1,\"operation\":\"d/MatMul\",\"ipu\":0,\"stage\":0,\"phase\":\"F\","     \
	     "\"microbatch\":0,\"cyclesFrom\":10,\"cyclesTo\":30,\"cycles\":20,"                   \
	     "\"cyclesOverlapped\":null,\"activeTiles\":3,\"tileBalance\":0.375,"                  \
	     "\"activeTileBalance\":null,\"activeTileBalance_nonfinite\":\"inf\",\"dataIn\":0,"    \
	     "\"dataOut\":0}],"                                                                    \
	     "\"passes\":[" passes "]}}\n"
#define PASS(replica)                                                                              \
	"{\"trace\":0,\"rank\":0,\"execution\":0,\"weightUpdate\":4,\"replica\":" replica          \
	",\"firstIpu\":" replica ",\"firstStep\":16,\"firstMicrobatch\":0,\"cyclesFrom\":1000}"

/* ---- the rig --------------------------------------------------------------------------------- */

struct rig {
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 32];
	struct ips_report *report;
};

static int setup(void **state)
{
	static struct rig rig;
	char database[SUPPORT_PATH_SIZE + 32];

	support_tempdir(rig.folder);
	snprintf(database, sizeof(database), "%s/profile.db", rig.folder);
	snprintf(rig.path, sizeof(rig.path), "%s/file", rig.folder);
	tiny_write(database);
	assert_int_equal(report_public_open(&rig.report, database, NULL), ST_OK);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	ips_report_close(rig->report);
	support_tempdir_remove(rig->folder);
	return 0;
}

static void file_is(const char *path, const char *wanted)
{
	char *text = support_read_file(path, NULL);

	assert_non_null(text);
	assert_string_equal(text, wanted);
	free(text);
}

/* ---- the files ------------------------------------------------------------------------------- */

static void test_graph_is_what_was_computed_by_hand(void **state)
{
	const struct rig *rig = *state;

	assert_int_equal(popvision_graph(rig->report, rig->path, NULL), ST_OK);
	file_is(rig->path, tiny_graph_json);
}

static void test_execution_is_what_was_computed_by_hand(void **state)
{
	const struct rig *rig = *state;

	assert_int_equal(popvision_execution(rig->report, rig->path, POPVISION_ALL_REPLICAS, NULL),
			 ST_OK);
	file_is(rig->path, EXECUTION_JSON("null", "40", "20", "2", PASS("0") "," PASS("1")));
}

static void test_execution_of_one_replica_has_nothing_of_others(void **state)
{
	const struct rig *rig = *state;

	assert_int_equal(popvision_execution(rig->report, rig->path, 1, NULL), ST_OK);
	file_is(rig->path, EXECUTION_JSON("1", "20", "10", "1", PASS("1")));
	assert_int_equal(popvision_execution(rig->report, rig->path, 2, NULL), ST_OK);
	file_is(rig->path, EXECUTION_JSON("2", "null", "null", "0", ""));
}

static const cbor_item_t *cbor_get(const cbor_item_t *map, const char *key)
{
	const struct cbor_pair *pairs = cbor_map_handle(map);

	for (size_t i = 0; i < cbor_map_size(map); i++)
		if (cbor_string_length(pairs[i].key) == strlen(key) &&
		    !memcmp(cbor_string_handle(pairs[i].key), key, strlen(key)))
			return pairs[i].value;
	return NULL;
}

static bool cbor_says(const cbor_item_t *map, const char *key, const char *wanted)
{
	const cbor_item_t *value = cbor_get(map, key);

	if (!value || !wanted)
		return !value && !wanted;
	return cbor_isa_string(value) && cbor_string_length(value) == strlen(wanted) &&
	       !memcmp(cbor_string_handle(value), wanted, strlen(wanted));
}

static int64_t cbor_number(const cbor_item_t *map, const char *key)
{
	const cbor_item_t *value = cbor_get(map, key);

	return value ? (int64_t)cbor_get_int(value) : -1;
}

static const struct {
	int64_t parent;
	const char *layer, *name, *type;
} contexts[] = {
	{-1, "keras", "d", NULL},
	{0, "poplibs", "d/MatMul", NULL},
	{-1, "poplar", "Stage0/F", "Sequence"},
	{1, "poplar", "d/MatMul/Reduce0", "OnTileExecute"},
	{1, "poplar", "d/MatMul/\"Pre\"", "DoExchange"},
	{-1, "poplar", "main", "Repeat"},
	{-1, "poplar", NULL, "Call"},
};

static void test_debug_contexts_lead_from_programs_to_layers(void **state)
{
	const struct rig *rig = *state;
	struct cbor_load_result result;
	const cbor_item_t *list;
	cbor_item_t *root;
	size_t length;
	char *data;

	assert_int_equal(popvision_debug(rig->report, rig->path, NULL), ST_OK);
	data = support_read_file(rig->path, &length);
	root = cbor_load((cbor_data)data, length, &result);
	assert_int_equal(result.error.code, CBOR_ERR_NONE);
	assert_int_equal(result.read, length);
	assert_int_equal(cbor_number(root, "version"), 1);
	assert_true(cbor_says(root, "producer", "ipuscope " IPUSCOPE_VERSION));
	list = cbor_get(root, "contexts");
	assert_int_equal(cbor_array_size(list), ARRAY_LEN(contexts));
	for (size_t i = 0; i < ARRAY_LEN(contexts); i++) {
		const cbor_item_t *context = cbor_array_handle(list)[i];

		assert_int_equal(cbor_number(context, "id"), i);
		assert_int_equal(cbor_number(context, "parentId"), contexts[i].parent);
		assert_true(cbor_says(context, "layer", contexts[i].layer));
		assert_true(cbor_says(context, "name", contexts[i].name));
		assert_true(cbor_says(context, "type", contexts[i].type));
	}
	cbor_decref(&root);
	free(data);
}

static void test_an_empty_and_a_killed_run_have_files_too(void **state)
{
	static void (*const write[])(const char *path) = {report_sample_write_empty,
							  report_sample_write_killed};
	const struct rig *rig = *state;

	for (size_t i = 0; i < ARRAY_LEN(write); i++) {
		char path[SUPPORT_PATH_SIZE + 32];
		struct ips_report *report;
		struct err err = {0};

		snprintf(path, sizeof(path), "%s/%zu.db", rig->folder, i);
		write[i](path);
		assert_int_equal(report_public_open(&report, path, NULL), ST_OK);
		if (popvision_graph(report, rig->path, &err) != ST_OK ||
		    popvision_execution(report, rig->path, POPVISION_ALL_REPLICAS, &err) != ST_OK ||
		    popvision_debug(report, rig->path, &err) != ST_OK)
			fail_msg("%s", err.text);
		ips_report_close(report);
	}
}

/* ---- damaged databases ----------------------------------------------------------------------- */

static const char *const damages[] = {
	"UPDATE program_rows SET parent_id = program_id",
	"UPDATE program_rows SET parent_id = (program_id + 1) % 5",
	"UPDATE program_rows SET parent_id = 9223372036854775807, call_target = -1",
	"UPDATE tile_memory_rows SET tile = 9223372036854775807, more_tiles = -1",
	"UPDATE tile_memory_rows SET tile = 0, bytes = 9223372036854775807",
	"UPDATE tile_memory_rows SET ipu = -1, bytes = 'x'",
	"UPDATE meta_facts SET value = '9223372036854775807' WHERE key IN ('ipus', 'replicas')",
	"UPDATE meta_facts SET value = '1000000000' WHERE key = 'ipus'",
	"UPDATE meta_facts SET value = '-1'",
	"UPDATE device_step_rows SET cycles = 9223372036854775807",
	"UPDATE device_run_rows SET trace_id = 77",
	"UPDATE compute_set_rows SET compute_set = '///', program_id = NULL, operation = NULL",
	"UPDATE operation_rows SET operation = cast(x'ff1b41' AS TEXT), kind = NULL",
	"UPDATE strings SET value = cast(x'c0af' AS TEXT)",
	"UPDATE execution_rows SET start_ns = 'x', cycles = 9e999",
	"DELETE FROM meta_facts",
	"DELETE FROM strings",
	"DELETE FROM device_traces",
	"DROP VIEW programs",
	"DROP TABLE device_run_rows",
};

/* Written as JSON, or refused with a reason. */
static void is_json_or_refused(const char *path, enum status status, const struct err *err)
{
	size_t length;
	cJSON *root;
	char *text;

	if (status != ST_OK) {
		assert_true(err->text[0] != '\0');
		return;
	}
	text = support_read_file(path, &length);
	assert_int_equal(json_parse(&root, text, length, path, NULL), ST_OK);
	cJSON_Delete(root);
	free(text);
}

static void damage(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* A text of CBOR must be UTF-8. */
static void test_a_name_that_is_no_utf8_is_a_byte_string(void **state)
{
	static const unsigned char name[] = {'d', 0xc3, 0xa9, 0xff, '!'};
	const struct rig *rig = *state;
	char path[SUPPORT_PATH_SIZE + 32];
	struct cbor_load_result result;
	struct ips_report *report;
	const cbor_item_t *value;
	cbor_item_t *root;
	size_t length;
	char *data;

	snprintf(path, sizeof(path), "%s/bytes.db", rig->folder);
	tiny_write(path);
	damage(path, "UPDATE layer_rows SET layer = CAST(x'64c3a9ff21' AS TEXT)");
	assert_int_equal(report_public_open(&report, path, NULL), ST_OK);
	assert_int_equal(popvision_debug(report, rig->path, NULL), ST_OK);
	ips_report_close(report);
	data = support_read_file(rig->path, &length);
	root = cbor_load((cbor_data)data, length, &result);
	assert_int_equal(result.error.code, CBOR_ERR_NONE);
	value = cbor_get(cbor_array_handle(cbor_get(root, "contexts"))[0], "name");
	assert_true(cbor_isa_bytestring(value));
	assert_int_equal(cbor_bytestring_length(value), sizeof(name));
	assert_memory_equal(cbor_bytestring_handle(value), name, sizeof(name));
	cbor_decref(&root);
	free(data);
}

/* Open the run with @sql done to it. */
static struct ips_report *open_after(const struct rig *rig, const char *sql)
{
	char path[SUPPORT_PATH_SIZE + 32];
	struct ips_report *report;

	snprintf(path, sizeof(path), "%s/changed.db", rig->folder);
	tiny_write(path);
	damage(path, sql);
	assert_int_equal(report_public_open(&report, path, NULL), ST_OK);
	return report;
}

/* CBOR stores a negative number n as -1 - n. */
static void test_a_negative_number_is_one_in_cbor(void **state)
{
	const struct rig *rig = *state;
	struct ips_report *report = open_after(rig, "UPDATE layer_rows SET stage = -7");
	struct cbor_load_result result;
	const cbor_item_t *stage;
	cbor_item_t *root;
	size_t length;
	char *data;

	assert_int_equal(popvision_debug(report, rig->path, NULL), ST_OK);
	ips_report_close(report);
	data = support_read_file(rig->path, &length);
	root = cbor_load((cbor_data)data, length, &result);
	assert_int_equal(result.error.code, CBOR_ERR_NONE);
	stage = cbor_get(cbor_array_handle(cbor_get(root, "contexts"))[0], "stage");
	assert_true(cbor_isa_negint(stage));
	assert_int_equal(cbor_get_int(stage), 6);
	cbor_decref(&root);
	free(data);
}

/* Only tile 0 has bytes, all of them interleaved. */
static void test_a_region_without_bytes_is_left_out(void **state)
{
	const struct rig *rig = *state;
	struct ips_report *report = open_after(
		rig, "DELETE FROM tile_memory_rows WHERE tile <> 0; UPDATE tile_memory_rows "
		     "SET more_tiles = 0");
	char *text;

	assert_int_equal(popvision_graph(report, rig->path, NULL), ST_OK);
	ips_report_close(report);
	text = support_read_file(rig->path, NULL);
	assert_contains(text, "\"byCategory\":{\"variables\":{\"interleaved\":{"
			      "\"nonOverlapped\":{\"runs\":[[1,8],[3,0]]}}}}");
	free(text);
}

static void test_damaged_rows_are_survived(void **state)
{
	const struct rig *rig = *state;

	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		char path[SUPPORT_PATH_SIZE + 32];
		struct err err = {0};
		struct ips_report *report;

		snprintf(path, sizeof(path), "%s/damaged%zu.db", rig->folder, i);
		tiny_write(path);
		damage(path, damages[i]);
		if (report_public_open(&report, path, &err) != ST_OK)
			continue;
		is_json_or_refused(rig->path, popvision_graph(report, rig->path, &err), &err);
		is_json_or_refused(
			rig->path,
			popvision_execution(report, rig->path, POPVISION_ALL_REPLICAS, &err), &err);
		if (popvision_debug(report, rig->path, &err) != ST_OK)
			assert_true(err.text[0] != '\0');
		ips_report_close(report);
	}
}

/* ---- which files, and failures --------------------------------------------------------------- */

static void test_files_that_are_not_asked_for_are_left_alone(void **state)
{
	const struct rig *rig = *state;
	const struct popvision_files wanted = {.debug = true, .replica = POPVISION_ALL_REPLICAS};
	char graph[SUPPORT_PATH_SIZE + 32], execution[SUPPORT_PATH_SIZE + 32];

	snprintf(graph, sizeof(graph), "%s/graph.json", rig->folder);
	snprintf(execution, sizeof(execution), "%s/execution.json", rig->folder);
	support_write_file(graph, "old", 3);
	support_write_file(execution, "older", 5);
	assert_int_equal(popvision_compiled(rig->folder, &wanted, NULL), ST_OK);
	assert_int_equal(popvision_executed(rig->folder, &wanted, NULL), ST_OK);
	file_is(graph, "old");
	file_is(execution, "older");
	snprintf(execution, sizeof(execution), "%s/debug.cbor", rig->folder);
	assert_true(fs_exists(execution));
}

/* Here a folder stands where a file is to be. */
static void test_a_file_that_cannot_be_written_is_named_and_the_others_are_there(void **state)
{
	static const char *const names[] = {"graph.json", "debug.cbor"};
	const struct popvision_files wanted = {
		.graph = true, .debug = true, .replica = POPVISION_ALL_REPLICAS};
	const struct rig *rig = *state;
	struct err err = {0};
	char paths[2][SUPPORT_PATH_SIZE + 32];

	for (int i = 0; i < 2; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", rig->folder, names[i]);
	assert_int_equal(popvision_compiled(rig->folder, &wanted, &err), ST_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(unlink(paths[0]), 0);
		assert_int_equal(unlink(paths[1]), 0);
		assert_int_equal(mkdir(paths[i], 0700), 0);
		err = (struct err){0};
		assert_int_equal(popvision_compiled(rig->folder, &wanted, &err), ST_INVALID);
		assert_contains(err.text, paths[i]);
		assert_contains(err.text, "is a folder");
		assert_true(fs_exists(paths[!i]) && !fs_is_dir(paths[!i]));
		assert_int_equal(rmdir(paths[i]), 0);
		support_write_file(paths[i], "", 0);
	}
	/* Of several the first is named. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(unlink(paths[i]), 0);
		assert_int_equal(mkdir(paths[i], 0700), 0);
	}
	err = (struct err){0};
	assert_int_equal(popvision_compiled(rig->folder, &wanted, &err), ST_INVALID);
	assert_contains(err.text, paths[0]);
}

static void test_there_are_three_files(void **state)
{
	(void)state;
	assert_string_equal(popvision_file_name(0), "graph.json");
	assert_string_equal(popvision_file_name(2), "execution.json");
	assert_null(popvision_file_name(3));
}

static void test_a_full_disk_leaves_what_was_there(void **state)
{
	const struct rig *rig = *state;
	struct err err = {0};
	enum status status;

	support_write_file(rig->path, "old", 3);
	support_limit_files(64);
	status = popvision_graph(rig->report, rig->path, &err);
	support_limit_files(-1);
	assert_int_not_equal(status, ST_OK);
	assert_contains(err.text, rig->path);
	file_is(rig->path, "old");
	assert_int_equal(popvision_graph(rig->report, "/nowhere/graph.json", &err), ST_NOTFOUND);
	assert_contains(err.text, "/nowhere/graph.json");
}

/* A report keeps its first failure: each try has its own. */
static enum status write_graph(const struct rig *rig)
{
	struct ips_report *report;
	enum status status = report_public_open(&report, rig->folder, NULL);

	if (status == ST_OK)
		status = popvision_graph(report, rig->path, NULL);
	ips_report_close(report);
	return status;
}

static void test_no_memory_is_told_and_leaves_what_was_there(void **state)
{
	const struct rig *rig = *state;
	bool failed = true;

	for (long n = 0; failed; n++) {
		enum status status;

		support_write_file(rig->path, "old", 3);
		support_fail_alloc(n);
		status = write_graph(rig);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* An arena that cannot grow as it likes tries with less. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		file_is(rig->path, status == ST_OK ? tiny_graph_json : "old");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_graph_is_what_was_computed_by_hand, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_execution_is_what_was_computed_by_hand, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_execution_of_one_replica_has_nothing_of_others,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_debug_contexts_lead_from_programs_to_layers,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_empty_and_a_killed_run_have_files_too,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_name_that_is_no_utf8_is_a_byte_string, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_negative_number_is_one_in_cbor, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_region_without_bytes_is_left_out, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_damaged_rows_are_survived, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_file_that_cannot_be_written_is_named_and_the_others_are_there, setup,
			teardown),
		cmocka_unit_test(test_there_are_three_files),
		cmocka_unit_test_setup_teardown(test_files_that_are_not_asked_for_are_left_alone,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_full_disk_leaves_what_was_there, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_no_memory_is_told_and_leaves_what_was_there,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
