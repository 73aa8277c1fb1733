/*
 * The inputs of what-if: facts, options, layers, what was measured.
 *
 * Threading: read by one thread, then unchanged. Ownership: one arena, and the lists that grow.
 */
#include "reports/whatif/report_whatif.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/whatif/report_whatif_internal.h"

#define FACT_SIZE 256

static const char *const assumption_texts[] = {
	[REPORT_WHATIF_NO_EXECUTION_HOST] =
		"The host's part of each Engine::run (2.5 ms, simulated) is in no figure.",
	[REPORT_WHATIF_FIFO_MODEL] =
		"FIFOs that the run does not have, or not so, cost what the cost model has for the "
		"bytes that its backward passes read.",
	[REPORT_WHATIF_FIFO_UNKNOWN] = "The run has no FIFOs and recorded no variables: what FIFOs "
				       "would cost is left out.",
	[REPORT_WHATIF_NO_FIFO] = "Copies into and out of FIFOs are left out: the schedule needs "
				  "none.",
	[REPORT_WHATIF_REDUCE_MODEL] = "Sums of gradients over replicas cost what the cost model "
				       "has for each accumulator.",
	[REPORT_WHATIF_REDUCE_LAYERS] = "Variables were not recorded: gradients are taken to be "
					"one float32 tensor for each "
					"layer.",
	[REPORT_WHATIF_REDUCE_DROPPED] = "The sums of gradients over replicas are left out.",
	[REPORT_WHATIF_CLOCK_SCALED] = "Programs take as many cycles as on the recorded target, "
				       "which differs in its clock "
				       "alone; streams and links keep their bytes a second.",
	[REPORT_WHATIF_MACHINE_SCALED] =
		"Cycles are scaled by the targets' tiles and rates (products by flops, the rest by "
		"vectors, exchanges by bytes a cycle), not planned anew: rough.",
	[REPORT_WHATIF_ACCUMULATION_MODEL] =
		"Clearing accumulators, and adding to them where the run has none, costs what the "
		"cost model plans for it.",
	[REPORT_WHATIF_SPLIT_CYCLES] = "A layer takes the same cycles in whatever stage it is.",
	[REPORT_WHATIF_SPLIT_CHAIN] =
		"The run file does not say which layer reads which: each is taken to read the one "
		"before it, skip connections are not counted.",
	[REPORT_WHATIF_REPLAY_ALL] = "Of layers that leave the last stage all of the forward is "
				     "computed again.",
	[REPORT_WHATIF_COMPARISON] = "Not a schedule of the IPU: every stage goes on as soon as "
				     "its input is there, a hop "
				     "takes the longest recorded exchange and a sync.",
	[REPORT_WHATIF_BACKWARD_NAMES] = "The backward's part for the weights is that of "
					 "operations that make or add up their "
					 "gradients.",
	[REPORT_WHATIF_MEMORY_UNCHECKED] = "Whether it fits the tiles' memory is not looked at.",
	[REPORT_WHATIF_HOST_MEANS] =
		"Every stage takes its mean time on the host, whatever runs beside it.",
	[REPORT_WHATIF_HOST_WAITS] = "Waits beyond theory grow in proportion, what is beside the "
				     "pipeline does not change.",
	[REPORT_WHATIF_HOST_CORES] =
		"There were more workers than cores: host times include waiting "
		"for a core.",
	[REPORT_WHATIF_HOST_COMPARISON] = "Not a schedule of the IPU: hops are free, and half of a "
					  "backward is for the weights.",
	[REPORT_WHATIF_REPLAY_DIFFERS] = "Put together again unchanged, the recorded run takes "
					 "another time: the recording is "
					 "not all there.",
};
_Static_assert(ARRAY_LEN(assumption_texts) == REPORT_WHATIF_ASSUMPTIONS, "texts out of step");
_Static_assert(REPORT_WHATIF_ASSUMPTIONS <= 32, "assumptions are bits of 32");

const char *report_whatif_assumption(enum report_whatif_assumption assumption)
{
	assert((unsigned)assumption < REPORT_WHATIF_ASSUMPTIONS);
	return assumption_texts[assumption];
}

const struct report_whatif_prediction *report_whatif_measured(const struct report_whatif *whatif)
{
	return &whatif->measured;
}

enum ipu_schedule_kind report__whatif_schedule(enum ipu_schedule_kind kind)
{
	return ipu_schedule_lockstep(kind) ? kind : IPU_GROUPED;
}

enum status report__whatif_rows(struct report_whatif *whatif, struct prof_db *db, const char *sql,
				whatif_row_fn take, void *user, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	while (prof_query_next(query, &status, err))
		status = take(whatif, query, user, err);
	prof_query_close(query);
	return status;
}

int report__whatif_layer(const struct report_whatif *whatif, const char *name)
{
	int found = -1;
	size_t longest = 0;

	if (str_starts_with(name, "infeed"))
		return 0;
	for (int i = 0; i < whatif->layer_count; i++) {
		const char *layer = whatif->layers[i].name;
		const size_t length = strlen(layer);

		if (length >= longest && str_starts_with(name, layer) &&
		    (name[length] == '/' || name[length] == '\0')) {
			found = i;
			longest = length;
		}
	}
	return found;
}

/* ---- facts ----------------------------------------------------------------------------------- */

/* A whole number among the facts; 0: there is none in range. */
static int64_t fact_number(struct prof_db *db, const char *key, int64_t greatest)
{
	char text[FACT_SIZE];
	long long value;

	if (!prof_db_meta(db, key, text, sizeof(text)) || !str_to_int(text, &value) || value < 1 ||
	    value > greatest)
		return 0;
	return value;
}

/* The facts that both clocks need. */
static enum status read_facts(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	struct report_whatif_prediction *measured = &whatif->measured;
	char schedule[FACT_SIZE] = "";

	whatif->stages = (int)fact_number(db, "stages", IPU_PIPELINE_STAGES_MAX);
	measured->microbatches = fact_number(db, "gradient_accumulation", 1 << 20);
	measured->replicas = fact_number(db, "replicas", WHATIF_REPLICAS_MAX);
	measured->batch = fact_number(db, "batch_size", INT64_C(1) << 31);
	prof_db_meta(db, "schedule", schedule, sizeof(schedule));
	if (!whatif->stages || !measured->microbatches || !measured->replicas || !measured->batch ||
	    !*schedule)
		return err_set(
			err, ST_NOTFOUND,
			"no run of ipu-train: it does not say its schedule, stages, replicas, "
			"batch size and gradient accumulation");
	measured->pipelined = strcmp(schedule, "none") != 0;
	measured->stages = whatif->stages;
	if (!measured->pipelined)
		whatif->schedule = IPU_SEQUENTIAL;
	else if (ipu_schedule_kind_get(schedule, &whatif->schedule, err) != ST_OK)
		return ST_NOTFOUND;
	if (!ipu_schedule_lockstep(whatif->schedule))
		return err_set(err, ST_NOTFOUND,
			       "no prediction from a run of the schedule %s: it is made from runs "
			       "of Grouped, Interleaved and Sequential",
			       schedule);
	return ipu_schedule_kind_get(ipu_schedule_name(whatif->schedule), &measured->schedule, err);
}

/* A run file's key that is not there has the default. */
static int64_t option_or(const struct prof_query *query, int column, int64_t fallback,
			 int64_t greatest)
{
	const int64_t value = prof_column_int(query, column);

	return value < 0 || value > greatest ? fallback : value;
}

static enum status take_options(struct report_whatif *whatif, const struct prof_query *query,
				void *user, struct err *err)
{
	struct whatif_options *options = &whatif->options;
	const char *mode = prof_column_text(query, 5);

	(void)user;
	(void)err;
	options->tiles = option_or(query, 0, 0, 1 << 20);
	options->io_tiles = option_or(query, 1, 0, 1 << 20);
	options->overlap = options->io_tiles > 0 && option_or(query, 2, 0, 1) == 1;
	options->prefetch_depth = option_or(query, 3, 3, 1 << 20);
	options->recompute = option_or(query, 4, 0, 1) == 1 && whatif->measured.pipelined;
	options->recompute_auto = !mode || !strcmp(mode, "Auto");
	options->recompute_late = mode && !strcmp(mode, "RecomputeAndBackpropagateInterleaved");
	options->offload_activations = option_or(query, 6, 0, 1) == 1;
	options->sharded = option_or(query, 7, 0, 1) == 1 || option_or(query, 8, 0, 1) == 1;
	return ST_OK;
}

static const char sql_options[] =
	"SELECT json_extract(value, '$.ipu.tiles_per_ipu'), "
	"json_extract(value, '$.ipu.io_tiles.num_io_tiles'), "
	"json_extract(value, '$.ipu.io_tiles.place_ops_on_io_tiles'), "
	"json_extract(value, '$.infeed.prefetch_depth'), "
	"json_extract(value, '$.ipu.allow_recompute'), "
	"json_extract(value, '$.pipeline.recomputation_mode'), "
	"json_extract(value, '$.pipeline.offload_activations'), "
	"json_extract(value, '$.pipeline.replicated_optimizer_state_sharding'), "
	"json_extract(value, '$.pipeline.replicated_weight_sharding') "
	"FROM meta WHERE key = 'run' AND json_valid(value)";

/* ---- layers ---------------------------------------------------------------------------------- */

/*
 * Layers that only hand on, and those with weights or maxima, whose gradients need what they read.
 */
static void layer_kind(struct whatif_layer *layer, const char *class_name)
{
	static const char *const idle[] = {"Flatten", "Reshape", "InputLayer", "MaybeOutfeed",
					   "Outfeed"};
	const char *name = class_name ? class_name : "";

	layer->computes = true;
	for (size_t i = 0; i < ARRAY_LEN(idle); i++)
		layer->computes &= strcmp(name, idle[i]) != 0;
	layer->reads_input = layer->parameters > 0 || strstr(name, "MaxPool");
	layer->joined = !strcmp(name, "MaybeOutfeed");
}

/* Of "(32, 256)". */
static int64_t shape_elements(const char *shape)
{
	int64_t product = 1;

	while (shape && *shape) {
		char *end;
		const long long value = strtoll(shape, &end, 10);

		if (end == shape) {
			shape++;
			continue;
		}
		if (value < 0 || value > WHATIF_BYTES_MAX || product > WHATIF_BYTES_MAX / 8)
			return 0;
		product *= value;
		shape = end;
	}
	return product > WHATIF_BYTES_MAX / 8 ? 0 : product;
}

static enum status take_layer(struct report_whatif *whatif, const struct prof_query *query,
			      void *user, struct err *err)
{
	size_t *capacity = user;
	const char *name = prof_column_text(query, 0);
	const int64_t stage = prof_column_int(query, 1);
	struct whatif_layer *layer;

	if (!name || whatif->layer_count >= WHATIF_LAYERS_MAX)
		return ST_OK;
	if (mem_grow(&whatif->layers, capacity, (size_t)whatif->layer_count + 1, sizeof(*layer)))
		return err_nomem(err);
	layer = &whatif->layers[whatif->layer_count];
	*layer = (struct whatif_layer){
		.name = arena_strdup(&whatif->arena, name),
		.stage = stage < 0 || stage >= whatif->stages ? 0 : (int)stage,
		.output_bytes =
			shape_elements(prof_column_text(query, 2)) * (whatif->options.half ? 2 : 4),
		.parameters = option_or(query, 3, 0, WHATIF_BYTES_MAX / 8),
		.input = -1,
	};
	layer_kind(layer, prof_column_text(query, 4));
	if (!layer->name)
		return err_nomem(err);
	whatif->layer_count++;
	return ST_OK;
}

static enum status read_layers(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	size_t capacity = 0;
	enum status status = report__whatif_rows(
		whatif, db,
		"SELECT layer, stage, output_shape, trainable_params, class FROM layers "
		"WHERE position IS NOT NULL GROUP BY position ORDER BY position",
		take_layer, &capacity, err);

	if (status == ST_OK && whatif->layer_count == 0)
		return err_set(err, ST_NOTFOUND, "no layers were recorded");
	return status;
}

/* ---- the device clock ------------------------------------------------------------------------ */

static enum status take_execution(struct report_whatif *whatif, const struct prof_query *query,
				  void *user, struct err *err)
{
	const int64_t cycles = prof_column_int(query, 0), updates = prof_column_int(query, 1);

	(void)user;
	(void)err;
	if (cycles < 0 || cycles / updates > WHATIF_CYCLES_MAX * 1024)
		return err_set(err, ST_FORMAT, "an execution takes %lld cycles", (long long)cycles);
	whatif->measured.run_ns = ipu_target_ns(&whatif->target, cycles / updates);
	return ST_OK;
}

static enum status take_bubble(struct report_whatif *whatif, const struct prof_query *query,
			       void *user, struct err *err)
{
	struct report_whatif_prediction *measured = &whatif->measured;

	(void)user;
	(void)err;
	measured->makespan_ns = prof_column_int(query, 0);
	measured->busy_ns = prof_column_int(query, 1);
	measured->idle_fraction = prof_column_real(query, 2);
	measured->bubble_rate = prof_column_real(query, 3);
	measured->bubble_over_ideal = prof_column_real(query, 4);
	return ST_OK;
}

static enum status take_ipus(struct report_whatif *whatif, const struct prof_query *query,
			     void *user, struct err *err)
{
	const int64_t ipus = prof_column_int(query, 0);

	(void)user;
	if (ipus < 1)
		return err_set(err, ST_NOTFOUND,
			       "no execution was traced: its steps are needed "
			       "(autoReport.executionProfileProgramRunCount, 2 by default)");
	if (ipus > IPU_PIPELINE_STAGES_MAX)
		return err_set(err, ST_FORMAT, "device steps are on %lld IPUs", (long long)ipus);
	whatif->ipus = (int)ipus;
	return ST_OK;
}

static enum status read_target(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	char target[FACT_SIZE];

	if (!prof_db_meta(db, "target", target, sizeof(target)))
		return err_set(err, ST_NOTFOUND,
			       "the run has no device clock (it ran without \"ipu\"): --clock host "
			       "predicts from the host's times");
	return ipu_target_get(target, whatif->options.tiles, &whatif->target, err);
}

/* What the rates are of, and the slowest stage, once the pieces are there. */
static void sum_measured(struct report_whatif *whatif)
{
	struct report_whatif_prediction *measured = &whatif->measured;

	measured->step_ns = (double)measured->run_ns / (double)measured->microbatches;
	measured->samples_second = (double)measured->batch * (double)measured->microbatches *
				   (double)measured->replicas / ((double)measured->run_ns * 1e-9);
}

static enum status read_device(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	enum status status = read_target(whatif, db, err);

	if (status == ST_OK)
		status =
			report__whatif_rows(whatif, db, "SELECT max(ipu) + 1 FROM device_step_rows",
					    take_ipus, NULL, err);
	if (status == ST_OK)
		status = report__whatif_rows(
			whatif, db,
			"SELECT cycles, updates FROM executions WHERE mode = 'train' AND "
			"cycles > 0 AND updates > 0 LIMIT 1",
			take_execution, NULL, err);
	if (status == ST_OK && whatif->measured.run_ns == 0)
		status = err_set(err, ST_NOTFOUND,
				 "no execution of a training was finished: nothing to go by");
	if (status == ST_OK)
		status = report__whatif_rows(
			whatif, db,
			"SELECT makespan_ns, busy_ns, idle_fraction, bubble_rate, "
			"bubble_over_ideal FROM bubbles WHERE clock = 'device' AND mode = 'train' "
			"LIMIT 1",
			take_bubble, NULL, err);
	if (status == ST_OK)
		status = report__whatif_trace(whatif, db, err);
	if (status == ST_OK)
		status = report__whatif_tensors(whatif, db, err);
	return status;
}

/*
 * What the run would be put together again: what it measures of itself, and whether all is there.
 */
static enum status replay(struct report_whatif *whatif, struct err *err)
{
	struct report_whatif_prediction *measured = &whatif->measured, again;
	const struct report_whatif_change none = {0};
	enum status status;

	measured->target = whatif->target.name;
	status = report_whatif_predict(&again, whatif, &none, err);
	if (status != ST_OK)
		return status;
	measured->update_ns = again.update_ns;
	measured->slowest = again.slowest;
	measured->slowest_ns = again.slowest_ns;
	if (llabs(again.run_ns - measured->run_ns) > 1)
		whatif->assumptions |= 1u << REPORT_WHATIF_REPLAY_DIFFERS;
	return ST_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status read_all(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	char dtype[FACT_SIZE] = "";
	enum status status = read_facts(whatif, db, err);

	if (status == ST_OK)
		status = report__whatif_rows(whatif, db, sql_options, take_options, NULL, err);
	if (status != ST_OK)
		return status;
	prof_db_meta(db, "dtype_policy", dtype, sizeof(dtype));
	whatif->options.half = !strcmp(dtype, "mixed_float16");
	status = read_layers(whatif, db, err);
	if (status != ST_OK)
		return status;
	if (whatif->clock == REPORT_WHATIF_HOST) {
		status = report__whatif_host(whatif, db, err);
	} else {
		whatif->assumptions = 1u << REPORT_WHATIF_NO_EXECUTION_HOST;
		status = read_device(whatif, db, err);
	}
	if (status != ST_OK)
		return status;
	sum_measured(whatif);
	return whatif->clock == REPORT_WHATIF_HOST ? ST_OK : replay(whatif, err);
}

enum status report_whatif_open(struct report_whatif **out, struct prof_db *db,
			       enum report_whatif_clock clock, struct err *err)
{
	struct report_whatif *whatif = mem_calloc(1, sizeof(*whatif));
	enum status status;

	*out = NULL;
	if (!whatif || arena_init(&whatif->arena, 0)) {
		mem_free(whatif);
		return err_nomem(err);
	}
	whatif->clock = clock;
	whatif->options.prefetch_depth = 3;
	whatif->measured.idle_fraction = whatif->measured.bubble_rate = NAN;
	whatif->measured.bubble_over_ideal = NAN;
	status = read_all(whatif, db, err);
	if (status != ST_OK) {
		report_whatif_close(whatif);
		err_prefix(err, "%s", prof_db_path(db));
		return status;
	}
	*out = whatif;
	return ST_OK;
}

void report_whatif_close(struct report_whatif *whatif)
{
	if (!whatif)
		return;
	mem_free(whatif->layers);
	mem_free(whatif->programs);
	mem_free(whatif->pieces);
	mem_free(whatif->gradients);
	mem_free(whatif->stashes);
	mem_free(whatif->edges);
	arena_fini(&whatif->arena);
	mem_free(whatif);
}
