/*
 * Keras for IPU's rules: derive the layout of a run (stages, IPUs, steps, executions), or report
 * why it is invalid. The assignment of layers to stages is in run_stages.c.
 *
 * Threading: none. A failed rule names the key at fault and a valid value. Numbers stay within
 * 2^53 because of the ranges in the run file's table.
 */
#include "model/run/run_rules.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "common/str.h"
#include "ipu/ipu_target.h"
#include "model/layers/layer.h"

/* A layout while it is being derived. */
struct run_rules {
	const struct run_file *run;
	struct model *model;
	int64_t train_items, test_items;
	const struct run_splitter *splitter;
	struct run_layout *layout;
	struct str warnings, notes;
	bool advised;    /* the note about executions of one step was given */
	struct err *err; /* not NULL */
};

/* The steps and executions of one mode. */
struct run_span {
	const char *mode;      /* "fit", "evaluate" */
	const char *steps_key; /* "fit.steps_per_epoch" */
	const char *execution_key;
	const char *images;           /* "training images" */
	int64_t items, given, wanted; /* images; requested batches, 0: all; steps per execution */
	int64_t unit;                 /* an execution is a multiple of this number of steps */
};

/* Fail with "FILE: @key: ..."; returns ST_INVALID. */
static enum status run_fail(const struct run_rules *rules, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static enum status run_fail(const struct run_rules *rules, const char *key, const char *format, ...)
{
	char text[ERR_TEXT_SIZE];
	va_list args;

	va_start(args, format);
	if (vsnprintf(text, sizeof(text), format, args) < 0)
		str_copy(text, sizeof(text), status_text(ST_INVALID));
	va_end(args);
	return err_set(rules->err, ST_INVALID, "%s: %s: %s", rules->run->path, key, text);
}

/* ---- stages, batches ------------------------------------------------------------------------- */

static int run_compare_stages(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return SORTED_ORDER(*x, *y);
}

/* Assign layers to stages, and sort the layers by stage. */
static enum status run_rule_stages(struct run_rules *rules)
{
	struct run_layout *layout = rules->layout;
	struct model *model = rules->model;

	if (run_stages(rules->run, model, rules->splitter, layout->stage, &layout->stages,
		       rules->err) != ST_OK ||
	    model_order(model, layout->stage, rules->err) != ST_OK)
		return rules->err->status;
	qsort(layout->stage, (size_t)model->layer_count, sizeof(*layout->stage),
	      run_compare_stages);
	return ST_OK;
}

/* A run without training must evaluate, predict or generate. */
static enum status run_rule_work(struct run_rules *rules)
{
	const struct run_file *run = rules->run;

	if (run->fit.wanted || run->evaluate.wanted || run->predict.wanted || run->generate.wanted)
		return ST_OK;
	return run_fail(rules, "fit",
			"is null, and so are evaluate, predict and generate: give one");
}

/* An input layer may fix the micro-batch size. */
static enum status run_rule_batch(struct run_rules *rules)
{
	int64_t batch = rules->run->data.batch_size, wanted = rules->model->batch;

	if (!wanted || wanted == batch)
		return ST_OK;
	return run_fail(rules, "data.batch_size",
			"%" PRId64 ", but the model's input layer asks for batches of %" PRId64,
			batch, wanted);
}

/* With a stateful layer, an item continues the item at the same index of the batch before. */
static enum status run_rule_stateful(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	bool stateful = false;

	for (int i = 0; i < rules->model->layer_count; i++)
		stateful = stateful || rules->model->layers[i].state > 0;
	if (!stateful)
		return ST_OK;
	if (!run->data.drop_remainder)
		return run_fail(rules, "data.drop_remainder",
				"is false, but a stateful layer needs batches of one size; leave "
				"it true");
	if (run->data.pad_remainder)
		return run_fail(rules, "data.pad_remainder",
				"is true, but a stateful layer would go on from what is padded; "
				"leave it false");
	if (run->generate.wanted)
		return run_fail(rules, "generate",
				"a stateful layer would see each window of the text after the "
				"one before; set generate to null");
	if (run->data.shuffle && run->fit.wanted)
		str_addf(&rules->warnings,
			 "data.shuffle: is on, but a stateful layer goes on with each item where "
			 "the one at its place of the batch before has ended: set it to false.\n");
	return ST_OK;
}

/* Batches must have one size if a program is compiled or the model fixes the size. Accumulated
 * gradients must have equal weight. */
static enum status run_rule_remainder(struct run_rules *rules)
{
	const struct run_file *run = rules->run;

	if (run->data.pad_remainder && run->pipeline.accumulate_outfeed)
		return run_fail(rules, "data.pad_remainder",
				"is true, but pipeline.accumulate_outfeed sends means in which "
				"what is padded counts; leave one of them false");
	if (run->data.drop_remainder)
		return ST_OK;
	if (run->data.pad_remainder)
		return run_fail(rules, "data.drop_remainder",
				"is false, but data.pad_remainder makes whole batches of all; "
				"leave it true");
	if (rules->model->batch)
		return run_fail(rules, "data.drop_remainder",
				"is false, but the model's input layer asks for batches of "
				"%" PRId64 "; leave it true",
				rules->model->batch);
	if (!run->ipu.wanted && !run->accumulation.wanted)
		return ST_OK;
	return run_fail(rules, "data.drop_remainder", "is false, but %s; leave it true, or %s",
			run->ipu.wanted ? "every batch on an IPU is a whole one"
					: "gradients of a short batch cannot be accumulated",
			run->ipu.wanted ? "train on the CPU alone (\"ipu\": null)"
					: "set gradient_accumulation to null");
}

/* ---- stages on IPUs -------------------------------------------------------------------------- */

/* The schedule of @microbatches (0: still unknown) on the layout's stages and IPUs. */
static struct ipu_schedule_params run_schedule(const struct run_rules *rules, bool training,
					       int64_t microbatches)
{
	const struct run_file *run = rules->run;

	return (struct ipu_schedule_params){
		.kind = run->pipeline.wanted ? run->pipeline.schedule : IPU_SEQUENTIAL,
		.stages = rules->layout->stages,
		.microbatches = (int)microbatches,
		.training = training,
		.ipus = rules->layout->ipus_used,
		.device = rules->layout->device,
	};
}

/* The schedule decides which stages may share an IPU. */
static enum status run_mapping_shared(struct run_rules *rules)
{
	const struct ipu_schedule_params params = run_schedule(rules, rules->run->fit.wanted, 0);
	struct err why;

	if (ipu_schedule_check_stages(&params, &why) == ST_OK)
		return ST_OK;
	for (int s = 0;
	     ipu_schedule_row(params.kind)->sharing != IPU_SHARE_IN_TURN && s < params.stages; s++)
		for (int other = 0; other < s; other++)
			if (params.device[other] == params.device[s])
				return run_fail(rules, "pipeline.device_mapping",
						"stages %d and %d are both on IPU %d, but "
						"%s training needs an IPU for each stage; give "
						"each its own, or take Grouped or Sequential",
						other, s, params.device[s],
						ipu_schedule_name(params.kind));
	return run_fail(rules, "pipeline.device_mapping", "%s", why.text);
}

/* Default number of IPUs to which stages are dealt in turn: all IPUs, but at least two stages to
 * each. 0: the schedule does not deal stages, or they cannot be dealt evenly. */
static int run_dealt_ipus(const struct run_file *run, int stages)
{
	int ipus = (int)min(run->ipu.auto_select_ipus, stages / 2);

	if (!run->pipeline.wanted ||
	    ipu_schedule_row(run->pipeline.schedule)->sharing != IPU_SHARE_IN_TURN)
		return 0;
	while (ipus > 1 && stages % ipus != 0)
		ipus--;
	return ipus > 1 ? ipus : 0;
}

void run_stage_devices(const struct run_file *run, int stages, int *device)
{
	const struct run_ints *mapping = &run->pipeline.device_mapping;
	const bool mapped = run->pipeline.wanted && mapping->given && mapping->count == stages;
	const int dealt = run_dealt_ipus(run, stages);

	for (int s = 0; s < stages; s++)
		device[s] = mapped ? mapping->items[s] : dealt > 0 ? s % dealt : s;
}

static enum status run_rule_mapping(struct run_rules *rules)
{
	const struct run_ints *mapping = &rules->run->pipeline.device_mapping;
	struct run_layout *layout = rules->layout;

	if (rules->run->pipeline.wanted && mapping->given && mapping->count != layout->stages)
		return run_fail(rules, "pipeline.device_mapping",
				"has %d entr%s, but the pipeline has %d stages; give each its "
				"IPU",
				mapping->count, mapping->count == 1 ? "y" : "ies", layout->stages);
	run_stage_devices(rules->run, layout->stages, layout->device);
	for (int s = 0; s < layout->stages; s++)
		layout->ipus_used = max(layout->ipus_used, layout->device[s] + 1);
	return rules->run->pipeline.wanted ? run_mapping_shared(rules) : ST_OK;
}

/* ---- IPUs and replicas ----------------------------------------------------------------------- */

/* Set the IPUs for distribution.replicas; ipu.auto_select_ipus may be the number of one replica. */
static enum status run_distributed_ipus(struct run_rules *rules)
{
	const int64_t replicas = rules->run->distribution.replicas;
	const int64_t each = rules->layout->ipus_per_replica,
		      attached = rules->run->ipu.auto_select_ipus;
	const int64_t ipus = replicas * each;

	if (ipus > RUN_IPUS_MOST)
		return run_fail(
			rules, "distribution.replicas",
			"%lld replicas of %lld IPUs are %lld IPUs, and there are at most %d: "
			"at most %lld replicas would do",
			(long long)replicas, (long long)each, (long long)ipus, RUN_IPUS_MOST,
			RUN_IPUS_MOST / (long long)each);
	if (attached > each && attached != ipus)
		str_addf(&rules->warnings,
			 "ipu.auto_select_ipus: %lld is not followed: the %lld replicas of "
			 "distribution.replicas take %lld IPUs, %lld each.\n",
			 (long long)attached, (long long)replicas, (long long)ipus,
			 (long long)each);
	rules->layout->ipus = (int)ipus;
	return ST_OK;
}

static enum status run_rule_ipus(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	struct run_layout *layout = rules->layout;
	int unused;

	layout->replicas = 1;
	layout->ipus_per_replica = 1;
	if (!run->ipu.wanted) {
		if (run->pipeline.wanted)
			return run_fail(rules, "pipeline",
					"needs IPUs, but \"ipu\" is null: set pipeline to null "
					"too, or give ipu.auto_select_ipus");
		return run->distribution.replicas <= 1
			       ? ST_OK
			       : run_fail(rules, "distribution.replicas",
					  "%lld replicas need IPUs, but \"ipu\" is null: give "
					  "ipu, or "
					  "set it to 1",
					  (long long)run->distribution.replicas);
	}

	while (layout->ipus_per_replica < layout->ipus_used)
		layout->ipus_per_replica *= 2;
	layout->ipus = (int)run->ipu.auto_select_ipus;
	if (run->distribution.replicas > 0 && run_distributed_ipus(rules) != ST_OK)
		return rules->err->status;
	layout->replicas = layout->ipus / layout->ipus_per_replica;
	if (!layout->replicas) {
		if (run->pipeline.device_mapping.given)
			return run_fail(
				rules, "ipu.auto_select_ipus",
				"%d attached, but pipeline.device_mapping goes up to IPU %d and so "
				"needs %d (rounded up to a power of two): give a multiple of %d",
				layout->ipus, layout->ipus_used - 1, layout->ipus_per_replica,
				layout->ipus_per_replica);
		return run_fail(rules, "ipu.auto_select_ipus",
				"%d attached, but a pipeline of %d stages needs %d (stages rounded "
				"up to a power of two): give a multiple of %d",
				layout->ipus, layout->stages, layout->ipus_per_replica,
				layout->ipus_per_replica);
	}

	unused = layout->ipus - layout->replicas * layout->ipus_per_replica;
	if (unused)
		str_addf(&rules->warnings,
			 "ipu.auto_select_ipus: %d of %d IPUs stay idle: each replica takes %d.\n",
			 unused, layout->ipus, layout->ipus_per_replica);
	return ST_OK;
}

/* ---- I/O tiles ------------------------------------------------------------------------------- */

static enum status run_rule_io_tiles(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	const int64_t tiles = run->ipu.io_tiles.num_io_tiles;
	struct ipu_target target;

	if (!run->ipu.wanted)
		return ST_OK;
	if (!tiles)
		return !run->ipu.io_tiles.place_ops_on_io_tiles
			       ? ST_OK
			       : run_fail(rules, "ipu.io_tiles.place_ops_on_io_tiles",
					  "is true, but there are no I/O tiles: give "
					  "ipu.io_tiles.num_io_tiles (32, for one)");
	if (ipu_target_get(run->ipu.target, run->ipu.tiles_per_ipu, &target, rules->err) != ST_OK)
		return rules->err->status;
	if (tiles >= target.tiles)
		return run_fail(rules, "ipu.io_tiles.num_io_tiles",
				"%lld of the %lld tiles of an IPU leave none to compute; at "
				"most %lld would do",
				(long long)tiles, (long long)target.tiles,
				(long long)target.tiles - 1);
	if (run->pipeline.wanted && ipu_schedule_row(run->pipeline.schedule)->pace != IPU_PACE_BOTH)
		return run_fail(rules, "ipu.io_tiles.num_io_tiles",
				"a pipeline has I/O tiles with the schedule Grouped alone, not "
				"with %s; set it to 0, or take Grouped",
				ipu_schedule_name(run->pipeline.schedule));
	return ST_OK;
}

/* ---- the schedule ---------------------------------------------------------------------------- */

static enum status run_rule_pipeline(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	struct run_layout *layout = rules->layout;
	struct ipu_schedule_params params = run_schedule(rules, true, 0);
	enum status status;

	layout->accumulation = run->accumulation.wanted ? run->accumulation.steps_per_replica : 1;
	if (!run->fit.wanted)
		return ST_OK;
	if (run->pipeline.wanted && !run->accumulation.wanted)
		return ipu_schedule_lockstep(params.kind)
			       ? run_fail(rules, "pipeline",
					  "training needs "
					  "gradient_accumulation.steps_per_replica (Grouped: "
					  "a multiple of %d, Interleaved: of %d)",
					  2 * layout->stages, layout->stages)
			       : run_fail(rules, "pipeline",
					  "training needs "
					  "gradient_accumulation.steps_per_replica (%s: a "
					  "multiple of %d; the more, the smaller the bubble)",
					  ipu_schedule_name(params.kind),
					  ipu_schedule_multiple(&params));

	params.microbatches = (int)layout->accumulation;
	status = ipu_schedule_check(&params, "gradient_accumulation.steps_per_replica", rules->err);
	if (status != ST_OK)
		err_prefix(rules->err, run->pipeline.wanted ? "%s: pipeline.schedule" : "%s",
			   run->path);
	return status;
}

/* ---- recomputation --------------------------------------------------------------------------- */

enum run_recomputation run_recomputation(const struct run_file *run)
{
	if (!run->pipeline.wanted || !run->ipu.wanted || !run->ipu.allow_recompute)
		return RUN_RECOMPUTE_NOTHING;
	if (run->pipeline.recomputation_mode != RUN_RECOMPUTE_AUTO)
		return run->pipeline.recomputation_mode;
	return ipu_schedule_row(run->pipeline.schedule)->replays & IPU_REPLAY_AHEAD
		       ? RUN_RECOMPUTE_THEN_BACKPROPAGATE
		       : RUN_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED;
}

static enum status run_rule_recompute(struct run_rules *rules)
{
	static const struct {
		const char *name;
		unsigned replay;
	} modes[] = {
		[RUN_RECOMPUTE_AUTO] = {"Auto", IPU_REPLAY_AHEAD | IPU_REPLAY_LATE},
		[RUN_RECOMPUTE_THEN_BACKPROPAGATE] = {"RecomputeThenBackpropagate",
						      IPU_REPLAY_AHEAD},
		[RUN_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED] =
			{"RecomputeAndBackpropagateInterleaved", IPU_REPLAY_LATE},
	};
	const struct run_file *run = rules->run;
	const enum run_recomputation mode = run->pipeline.recomputation_mode;
	const unsigned replays = ipu_schedule_row(run->pipeline.schedule)->replays;
	const int other = replays & IPU_REPLAY_AHEAD ? RUN_RECOMPUTE_THEN_BACKPROPAGATE
						     : RUN_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED;
	struct str names = {0};
	enum status status;

	if (run->ipu.wanted && run->ipu.allow_recompute && !run->pipeline.wanted)
		str_addf(&rules->warnings, "ipu.allow_recompute: has no effect without a pipeline: "
					   "all activations are kept.\n");
	if (!run->pipeline.wanted || (mode == RUN_RECOMPUTE_AUTO && !run->ipu.allow_recompute))
		return ST_OK;
	if (!run->ipu.allow_recompute)
		return run_fail(rules, "pipeline.recomputation_mode",
				"%s needs ipu.allow_recompute to be true", modes[mode].name);
	if (replays == 0)
		return run_fail(rules, "ipu.allow_recompute",
				"is true, but the schedule %s reads activations once more for "
				"the gradients of the weights, so none can be let go; set it to "
				"false, or take Grouped",
				ipu_schedule_name(run->pipeline.schedule));
	if (replays & modes[mode].replay)
		return ST_OK;
	for (int k = 0; k < IPU_SCHEDULE_KINDS; k++)
		if (ipu_schedule_row((enum ipu_schedule_kind)k)->replays & modes[mode].replay)
			str_addf(&names, "%s%s", names.length > 0 ? ", " : "",
				 ipu_schedule_name((enum ipu_schedule_kind)k));
	status = run_fail(rules, "pipeline.recomputation_mode",
			  "%s is for the schedules %s, not for %s; take %s", modes[mode].name,
			  str_peek(&names), ipu_schedule_name(run->pipeline.schedule),
			  modes[other].name);
	str_free(&names);
	return status;
}

/* ---- offloading and sharding ----------------------------------------------------------------- */

/* With one replica, its shard is the whole. */
static void run_warn_sharding(struct run_rules *rules, const char *key, enum run_maybe asked)
{
	if (asked == RUN_YES && rules->layout->replicas == 1)
		str_addf(&rules->warnings,
			 "%s: has no effect: there is one replica, which keeps all.\n", key);
}

/* The host computes the values, and does update the statistics. */
static void run_warn_moving_statistics(struct run_rules *rules)
{
	const struct model *model = rules->model;

	for (int i = 0; i < model->layer_count; i++) {
		if (strcmp(model_layer_class(&model->layers[i]), "BatchNormalization") != 0)
			continue;
		str_addf(&rules->warnings,
			 "pipeline: BatchNormalization (layer \"%s\") does not update its moving "
			 "statistics properly in a pipeline of Keras for IPUs; here they are "
			 "updated in the order of the micro-batches.\n",
			 model->layers[i].name);
		return;
	}
}

static enum status run_rule_offloading(struct run_rules *rules)
{
	const struct run_file *run = rules->run;

	if (!run->pipeline.wanted)
		return ST_OK;
	if (run->pipeline.offload_activations == RUN_YES &&
	    ipu_schedule_row(run->pipeline.schedule)->pace == IPU_PACE_ALONE)
		return run_fail(rules, "pipeline.offload_activations",
				"the schedule %s has no activations that wait: set it to false, "
				"or take Grouped or Interleaved",
				ipu_schedule_name(run->pipeline.schedule));
	run_warn_sharding(rules, "pipeline.replicated_optimizer_state_sharding",
			  run->pipeline.replicated_optimizer_state_sharding);
	run_warn_sharding(rules, "pipeline.replicated_weight_sharding",
			  run->pipeline.replicated_weight_sharding);
	if (run->pipeline.accumulate_outfeed && run->fit.wanted && run->fit.asynchronous_callbacks)
		str_addf(
			&rules->warnings,
			"fit.asynchronous_callbacks: is ignored: pipeline.accumulate_outfeed sends "
			"no results of single steps.\n");
	if (run->fit.wanted)
		run_warn_moving_statistics(rules);
	return ST_OK;
}

/* ---- options of single stages ---------------------------------------------------------------- */

static enum status run_rule_plans(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	const struct {
		const char *key;
		const struct run_poplars *poplars;
	} lists[] = {
		{"pipeline.forward_propagation_stages_poplar_options",
		 &run->pipeline.forward_options},
		{"pipeline.backward_propagation_stages_poplar_options",
		 &run->pipeline.backward_options},
	};

	for (size_t i = 0; run->pipeline.wanted && i < 2; i++)
		if (lists[i].poplars->given && lists[i].poplars->count != rules->layout->stages)
			return run_fail(rules, lists[i].key,
					"has %d entr%s, but the pipeline has %d stages; give "
					"each an object or null",
					lists[i].poplars->count,
					lists[i].poplars->count == 1 ? "y" : "ies",
					rules->layout->stages);
	return ST_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Number of batches of a pass over @items; padding rounds up so that each replica has a multiple of
 * @unit. */
static int64_t run_pass_batches(const struct run_rules *rules, int64_t items, int64_t unit)
{
	const struct run_file *run = rules->run;
	const int64_t multiple = rules->layout->replicas * unit;
	const int64_t whole = items / run->data.batch_size;
	const int64_t all = whole + (items % run->data.batch_size > 0);

	if (run->data.pad_remainder)
		return (all + multiple - 1) / multiple * multiple;
	return run->data.drop_remainder ? whole : all;
}

/* The number of batches: as requested, or all of the set. */
static enum status run_rule_batches(struct run_rules *rules, const struct run_span *span,
				    int64_t *batches)
{
	int64_t batch = rules->run->data.batch_size;
	const bool drops = rules->run->data.drop_remainder && !rules->run->data.pad_remainder;
	char count[FMT_SIZE];

	fmt_count(count, span->items);
	if (!span->items)
		return run_fail(rules, span->mode, "the data set has no %s", span->images);
	if (batch > span->items && drops)
		return run_fail(rules, "data.batch_size",
				"%" PRId64 " is beyond the %s %s; give at most %" PRId64 "%s",
				batch, count, span->images, span->items,
				rules->run->data.limit ? " or a greater data.limit" : "");

	*batches = span->given ? span->given : run_pass_batches(rules, span->items, span->unit);
	if (!span->given && drops && span->items % batch)
		str_addf(&rules->warnings,
			 "%s: %" PRId64 " of the %s %s do not fill a batch of %" PRId64
			 " and are left out of each pass.\n",
			 span->mode, span->items % batch, count, span->images, batch);
	return ST_OK;
}

/* "epoch" without a number of steps: round @steps down to whole executions. */
static enum status run_rule_round(struct run_rules *rules, const struct run_span *span,
				  int64_t *steps)
{
	int64_t rest = *steps % span->unit;

	if (span->given || span->wanted != RUN_WHOLE_EPOCH || !rest)
		return ST_OK;
	if (rest == *steps)
		return run_fail(rules, span->execution_key,
				"\"epoch\" needs at least %" PRId64
				" steps on each replica; the set has %" PRId64,
				span->unit, *steps);
	str_addf(&rules->warnings,
		 "%s: the last %" PRId64 " of %" PRId64
		 " steps are left out, so that an execution of the whole epoch is a multiple of "
		 "%" PRId64 ": %" PRId64 " are done.\n",
		 span->mode, rest, *steps, span->unit, *steps - rest);
	*steps -= rest;
	return ST_OK;
}

static enum status run_rule_steps(struct run_rules *rules, const struct run_span *span,
				  int64_t *steps)
{
	int64_t replicas = rules->layout->replicas, batches = 0;

	if (run_rule_batches(rules, span, &batches) != ST_OK)
		return rules->err->status;
	*steps = batches / replicas;
	if (!*steps)
		return run_fail(rules, span->steps_key,
				"%" PRId64 " batches leave none for each of %" PRId64
				" replicas; %" PRId64 " are the least",
				batches, replicas, replicas);
	if (batches % replicas)
		str_addf(&rules->warnings,
			 "%s: %" PRId64 " of %" PRId64
			 " batches are dropped: they do not divide among %" PRId64 " replicas.\n",
			 span->steps_key, batches % replicas, batches, replicas);
	return run_rule_round(rules, span, steps);
}

/* ---- executions ------------------------------------------------------------------------------ */

/* The divisor of @steps that is a multiple of @unit and nearest to @wanted; 0: there is none. */
static int64_t run_nearest_divisor(int64_t steps, int64_t unit, int64_t wanted)
{
	int64_t best = 0;

	for (int64_t low = 1; low <= steps / low; low++) {
		const int64_t pair[] = {low, steps / low};

		if (steps % low)
			continue;
		for (size_t i = 0; i < ARRAY_LEN(pair); i++) {
			int64_t distance = pair[i] > wanted ? pair[i] - wanted : wanted - pair[i];
			int64_t least = best > wanted ? best - wanted : wanted - best;

			if (pair[i] % unit == 0 && (!best || distance < least))
				best = pair[i];
		}
	}
	return best;
}

/* Write "500 would do", or which number of steps would. */
static void run_remedy(const struct run_rules *rules, const struct run_span *span, int64_t steps,
		       int64_t execution, char *out, size_t size)
{
	int64_t good = run_nearest_divisor(steps, span->unit, execution);

	if (good) {
		snprintf(out, size, "%" PRId64 " would do", good);
		return;
	}
	good = steps / span->unit * span->unit;
	if (!good)
		good = span->unit;
	snprintf(out, size, "%s %" PRId64 " with %s %" PRId64 " would do", span->steps_key,
		 good * rules->layout->replicas, span->execution_key, good);
}

static enum status run_rule_execution(struct run_rules *rules, const struct run_span *span,
				      int64_t steps, int64_t *execution)
{
	char remedy[256];

	*execution = span->wanted == RUN_WHOLE_EPOCH ? steps : span->wanted;
	if (*execution > steps) {
		str_addf(&rules->warnings,
			 "%s: %" PRId64 " is more than the %" PRId64 " steps there are%s: %" PRId64
			 " is used.\n",
			 span->execution_key, *execution, steps,
			 rules->layout->replicas > 1 ? " for each replica" : "", steps);
		*execution = steps;
	}
	run_remedy(rules, span, steps, *execution, remedy, sizeof(remedy));
	if (steps % *execution)
		return run_fail(rules, span->execution_key,
				"%" PRId64 " is not a divisor of the %" PRId64 " steps%s; %s",
				*execution, steps,
				rules->layout->replicas > 1 ? " of each replica" : "", remedy);

	/* The host has to act in each step: said once, for the first mode that it applies to. */
	if (rules->run->ipu.wanted && *execution == 1 && steps != 1 && !rules->advised) {
		rules->advised = true;
		str_addf(&rules->notes,
			 "%s is 1, so the host has a part in every step: a greater one, up to "
			 "%" PRId64 " (\"epoch\"), is faster.\n",
			 span->execution_key, steps);
	}
	return ST_OK;
}

/* ---- training -------------------------------------------------------------------------------- */

static enum status run_rule_fit(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	struct run_layout *layout = rules->layout;
	const struct run_span span = {.mode = "fit",
				      .steps_key = "fit.steps_per_epoch",
				      .execution_key = "compile.steps_per_execution",
				      .images = "training images",
				      .items = rules->train_items,
				      .given = run->fit.steps_per_epoch,
				      .wanted = run->compile.steps_per_execution,
				      .unit = layout->accumulation};
	const int64_t batch = run->data.batch_size;
	char remedy[256];

	if (!run->fit.wanted)
		return ST_OK;
	if (run_rule_steps(rules, &span, &layout->steps_per_epoch) != ST_OK ||
	    run_rule_execution(rules, &span, layout->steps_per_epoch,
			       &layout->steps_per_execution) != ST_OK)
		return rules->err->status;

	run_remedy(rules, &span, layout->steps_per_epoch, layout->steps_per_execution, remedy,
		   sizeof(remedy));
	if (layout->steps_per_execution % layout->accumulation)
		return run_fail(rules, span.execution_key,
				"%" PRId64 " is not a multiple of "
				"gradient_accumulation.steps_per_replica %" PRId64 "; %s",
				layout->steps_per_execution, layout->accumulation, remedy);
	layout->executions_per_epoch = layout->steps_per_epoch / layout->steps_per_execution;
	layout->updates_per_execution = layout->steps_per_execution / layout->accumulation;

	/* Keras, too, says the effective batch size if it differs from that of the data. */
	if (layout->accumulation != 1 || layout->replicas != 1) {
		str_addf(&rules->notes,
			 "Training is %sdistributed over replicas; the effective batch size is "
			 "%" PRId64 " (batch %" PRId64 " x %" PRId64
			 " accumulated x %d replica%s). Weight updates of "
			 "each replica: %" PRId64 " in an execution, %" PRId64 " in an epoch.\n",
			 layout->replicas == 1 ? "not " : "",
			 batch * layout->accumulation * layout->replicas, batch,
			 layout->accumulation, layout->replicas, layout->replicas == 1 ? "" : "s",
			 layout->updates_per_execution,
			 layout->updates_per_execution * layout->executions_per_epoch);
	}
	return ST_OK;
}

/* Without data.repeat, the set must have all batches that steps_per_epoch requests. */
static enum status run_rule_repeat(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	int64_t batches = run->fit.steps_per_epoch * run->fit.epochs;
	int64_t available =
		run_pass_batches(rules, rules->train_items, rules->layout->accumulation);

	if (run->data.repeat || !run->fit.steps_per_epoch || batches <= available)
		return ST_OK;
	return run_fail(rules, "data.repeat",
			"is false, but %" PRId64 " epochs of %" PRId64 " steps need %" PRId64
			" batches and the set has %" PRId64
			"; set data.repeat to true, or take fewer steps",
			run->fit.epochs, run->fit.steps_per_epoch, batches, available);
}

/* ---- evaluation and prediction --------------------------------------------------------------- */

/* Without backward passes, the pipeline runs all micro-batches of an execution at once. */
static enum status run_rule_depth(struct run_rules *rules, const struct run_span *span,
				  int64_t steps, int64_t execution)
{
	const struct run_file *run = rules->run;
	const struct ipu_schedule_params params = run_schedule(rules, false, execution);
	int64_t good = steps / span->unit * span->unit;
	struct err why;
	enum status status = ipu_schedule_check(&params, span->execution_key, &why);

	if (status == ST_OK)
		return ST_OK;
	if (!good)
		good = span->unit;
	if (status != ST_INVALID)
		return err_set(rules->err, status, "%s: %s%s", run->path,
			       run->pipeline.wanted ? "pipeline.schedule: " : "", why.text);
	return run_fail(rules, "pipeline.schedule",
			"%s; %s %" PRId64 " with %s %" PRId64 " would do", why.text,
			span->steps_key, good * rules->layout->replicas, span->execution_key, good);
}

/* The smallest such depth; valid depths are its multiples. Stages that share an IPU leave
 * Interleaved fewer parallel micro-batches. */
static int64_t run_least_depth(const struct run_rules *rules)
{
	const struct ipu_schedule_params params = run_schedule(rules, false, 0);
	const int multiple = rules->run->pipeline.wanted ? ipu_schedule_multiple(&params) : 1;

	return multiple > 0 ? multiple : rules->layout->stages;
}

/* Without data.repeat, the set must have all requested batches. */
static enum status run_rule_forward_repeat(struct run_rules *rules, const struct run_span *span)
{
	int64_t available = run_pass_batches(rules, span->items, span->unit);

	if (rules->run->data.repeat || span->given <= available)
		return ST_OK;
	return run_fail(rules, "data.repeat",
			"is false, but %s %" PRId64 " is more than the %" PRId64
			" batches of the set; set data.repeat to true, or take fewer steps",
			span->steps_key, span->given, available);
}

/* Derive a mode without backward passes; completes @span with what both modes share. */
static enum status run_rule_forward(struct run_rules *rules, struct run_span *span, int64_t *steps,
				    int64_t *execution)
{
	span->images = "test images";
	span->items = rules->test_items;
	span->unit = run_least_depth(rules);
	if (!span->wanted)
		span->wanted = rules->run->compile.steps_per_execution;

	if (run_rule_steps(rules, span, steps) != ST_OK ||
	    run_rule_forward_repeat(rules, span) != ST_OK ||
	    run_rule_execution(rules, span, *steps, execution) != ST_OK)
		return rules->err->status;
	return run_rule_depth(rules, span, *steps, *execution);
}

/* The validation after an epoch uses the settings of the evaluation. */
static enum status run_rule_evaluate(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	struct run_layout *layout = rules->layout;
	struct run_span span = {.mode = run->evaluate.wanted ? "evaluate" : "fit.validation",
				.steps_key = "evaluate.steps",
				.execution_key = "evaluate.steps_per_execution",
				.given = run->evaluate.steps,
				.wanted = run->evaluate.steps_per_execution};

	if (!run->evaluate.wanted && !(run->fit.wanted && run->fit.validation))
		return ST_OK;
	return run_rule_forward(rules, &span, &layout->evaluate_steps,
				&layout->evaluate_steps_per_execution);
}

static enum status run_rule_predict(struct run_rules *rules)
{
	const struct run_file *run = rules->run;
	struct run_layout *layout = rules->layout;
	struct run_span span = {.mode = "predict",
				.steps_key = "predict.steps",
				.execution_key = "predict.steps_per_execution",
				.given = run->predict.steps,
				.wanted = run->predict.steps_per_execution};

	if (!run->predict.wanted)
		return ST_OK;
	return run_rule_forward(rules, &span, &layout->predict_steps,
				&layout->predict_steps_per_execution);
}

/* ---- applying the rules ---------------------------------------------------------------------- */

enum status run_layout_new(struct run_layout **out, const struct run_file *run, struct model *model,
			   int64_t train_items, int64_t test_items,
			   const struct run_splitter *splitter, struct err *err)
{
	static enum status (*const table[])(struct run_rules *) = {
		run_rule_stages,   run_rule_work,      run_rule_batch,      run_rule_remainder,
		run_rule_stateful, run_rule_mapping,   run_rule_ipus,       run_rule_io_tiles,
		run_rule_pipeline, run_rule_recompute, run_rule_offloading, run_rule_plans,
		run_rule_fit,      run_rule_repeat,    run_rule_evaluate,   run_rule_predict,
	};
	struct err own;
	struct run_layout *layout = mem_calloc(1, sizeof(*layout));
	struct run_rules rules = {.run = run,
				  .model = model,
				  .train_items = train_items,
				  .test_items = test_items,
				  .splitter = splitter,
				  .layout = layout,
				  .err = err_start(err, &own)};

	assert(model->layer_count > 0);
	*out = NULL;
	err = rules.err;
	if (layout)
		layout->stage = mem_calloc((size_t)model->layer_count, sizeof(*layout->stage));
	if (layout)
		layout->device = mem_calloc((size_t)model->layer_count, sizeof(*layout->device));
	if (!layout || !layout->stage || !layout->device)
		err_nomem(err);
	for (size_t i = 0; i < ARRAY_LEN(table) && !err_stuck(err); i++)
		table[i](&rules);
	if (!err_stuck(err) && (rules.warnings.failed || rules.notes.failed))
		err_nomem(err);
	if (err_stuck(err)) {
		str_free(&rules.warnings);
		str_free(&rules.notes);
		run_layout_free(layout);
		return err->status;
	}

	layout->warnings = rules.warnings.text;
	layout->notes = rules.notes.text;
	*out = layout;
	return ST_OK;
}

void run_layout_free(struct run_layout *layout)
{
	if (!layout)
		return;
	mem_free(layout->stage);
	mem_free(layout->device);
	mem_free(layout->warnings);
	mem_free(layout->notes);
	mem_free(layout);
}
