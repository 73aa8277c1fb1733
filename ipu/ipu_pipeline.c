/*
 * Pipeline schedules to compare with: the table of them, their rules, and the simulation's results.
 *
 * No state besides the pipeline, which does not change after ipu_pipeline_new(): readable by any
 * number of threads. The pipeline owns its arrays.
 */
#include "ipu/ipu_pipeline.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "ipu/ipu_pipeline_internal.h"

#define SUM_MAX_NS 0x1p61 /* all works after one another, with all hops, stay below an int64_t */

const struct ipu__pipeline_rules ipu__pipeline_rules[] = {
	[IPU_PIPELINE_GPIPE] = {.name = "gpipe",
				.about = "all forwards, then all backwards",
				.order = ipu__order_gpipe},
	[IPU_PIPELINE_1F1B] = {.name = "1f1b",
			       .about = "one forward, one backward in turn",
			       .order = ipu__order_1f1b},
	[IPU_PIPELINE_1F1B_INTERLEAVED] = {.name = "1f1b-interleaved",
					   .about = "1f1b with several chunks of the model on "
						    "each device, in Megatron's order",
					   .chunked = true,
					   .order = ipu__order_1f1b_interleaved},
	[IPU_PIPELINE_ZB_H1] = {.name = "zb-h1",
				.about = "weight gradients fill the bubbles, memory of 1f1b",
				.splits = true,
				.order = ipu__order_zb_h1},
	[IPU_PIPELINE_ZB_H2] = {.name = "zb-h2",
				.about = "weight gradients fill the bubbles, twice the memory",
				.splits = true,
				.order = ipu__order_zb_h2},
	[IPU_PIPELINE_GROUPED] = {.name = "Grouped",
				  .about = "of the IPU: all stages in every step, in lockstep",
				  .lockstep = IPU_GROUPED},
	[IPU_PIPELINE_INTERLEAVED] = {.name = "Interleaved",
				      .about = "of the IPU: forward and backward steps in turn, in "
					       "lockstep",
				      .lockstep = IPU_INTERLEAVED},
	[IPU_PIPELINE_SEQUENTIAL] = {.name = "Sequential",
				     .about = "of the IPU: one stage at a time",
				     .lockstep = IPU_SEQUENTIAL},
};

static const struct ipu__pipeline_rules *rules_of(enum ipu_pipeline_kind kind)
{
	assert((unsigned)kind < IPU_PIPELINE_KINDS);
	return &ipu__pipeline_rules[kind];
}

const char *ipu_pipeline_name(enum ipu_pipeline_kind kind)
{
	return rules_of(kind)->name;
}

const char *ipu_pipeline_about(enum ipu_pipeline_kind kind)
{
	return rules_of(kind)->about;
}

bool ipu_pipeline_splits(enum ipu_pipeline_kind kind)
{
	return rules_of(kind)->splits;
}

enum status ipu_pipeline_kind_get(const char *name, enum ipu_pipeline_kind *out, struct err *err)
{
	const char *names[IPU_PIPELINE_KINDS], *nearest;

	for (int i = 0; i < IPU_PIPELINE_KINDS; i++) {
		names[i] = ipu__pipeline_rules[i].name;
		if (strcmp(names[i], name) == 0) {
			*out = (enum ipu_pipeline_kind)i;
			return ST_OK;
		}
	}
	nearest = str_nearest(name, names, ARRAY_LEN(names));
	if (nearest)
		return err_set(err, ST_NOTFOUND, "unknown schedule \"%s\" (did you mean \"%s\"?)",
			       name, nearest);
	return err_set(err, ST_NOTFOUND,
		       "unknown schedule \"%s\" (there are gpipe, 1f1b, 1f1b-interleaved, zb-h1, "
		       "zb-h2, Grouped, Interleaved, Sequential)",
		       name);
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* What one micro-batch makes a stage do. */
static int works_of_stage(const struct ipu__pipeline_rules *rules, int chunks)
{
	return (rules->splits ? 3 : 2) * (chunks > 1 ? chunks : 1);
}

static enum status check_sizes(const struct ipu_pipeline_params *params, struct err *err)
{
	const struct ipu__pipeline_rules *rules = rules_of(params->kind);
	int64_t most;

	if (params->stages < 1 || params->stages > IPU_PIPELINE_STAGES_MAX)
		return err_set(err, params->stages < 1 ? ST_INVALID : ST_LIMIT,
			       "a pipeline has 1 to %d stages: it has %d", IPU_PIPELINE_STAGES_MAX,
			       params->stages);
	if (params->microbatches < 1)
		return err_set(err, ST_INVALID,
			       "the number of micro-batches must be at least 1: it is %d",
			       params->microbatches);
	if (params->chunks < 0 || params->chunks > IPU_PIPELINE_STAGES_MAX)
		return err_set(err, ST_INVALID, "a stage has 1 to %d chunks: it has %d",
			       IPU_PIPELINE_STAGES_MAX, params->chunks);
	most = IPU_PIPELINE_WORKS_MAX / params->stages / works_of_stage(rules, params->chunks);
	if (params->microbatches > most)
		return err_set(err, ST_LIMIT,
			       "%s with %d stages takes at most %lld micro-batches (%d works in "
			       "all): there are %d",
			       rules->name, params->stages, (long long)most, IPU_PIPELINE_WORKS_MAX,
			       params->microbatches);
	return ST_OK;
}

static enum status check_times(const struct ipu_pipeline_params *params, struct err *err)
{
	double hops = (double)works_of_stage(rules_of(params->kind), params->chunks) *
		      params->stages * params->microbatches;
	double sum = (double)params->communication_ns * hops;

	if (params->communication_ns < 0)
		return err_set(err, ST_INVALID, "communication takes a time below 0");
	for (int s = 0; s < params->stages; s++) {
		if (params->forward_ns[s] < 0 || params->backward_input_ns[s] < 0 ||
		    params->backward_weight_ns[s] < 0)
			return err_set(err, ST_INVALID, "stage %d takes a time below 0", s);
		sum += ((double)params->forward_ns[s] + (double)params->backward_input_ns[s] +
			(double)params->backward_weight_ns[s]) *
		       params->microbatches;
	}
	if (!(sum < SUM_MAX_NS))
		return err_set(err, ST_LIMIT, "the works take too long: in sum more than 73 years");
	return ST_OK;
}

static enum status check_chunks(const struct ipu_pipeline_params *params, struct err *err)
{
	const struct ipu__pipeline_rules *rules = rules_of(params->kind);

	if (!rules->chunked && params->chunks > 1)
		return err_set(err, ST_INVALID,
			       "%s has one chunk on each stage, not %d: chunks are for "
			       "1f1b-interleaved",
			       rules->name, params->chunks);
	if (!rules->chunked)
		return ST_OK;
	if (params->chunks < 2)
		return err_set(err, ST_INVALID,
			       "%s needs at least 2 chunks on each stage: it has %d", rules->name,
			       params->chunks);
	if (params->microbatches % params->stages != 0)
		return err_set(err, ST_INVALID,
			       "%s needs the number of micro-batches to be a multiple of the "
			       "number of stages (= %d): it is %d",
			       rules->name, params->stages, params->microbatches);
	return ST_OK;
}

static struct ipu_schedule_params lockstep_params(const struct ipu_pipeline_params *params)
{
	return (struct ipu_schedule_params){
		.kind = rules_of(params->kind)->lockstep,
		.stages = params->stages,
		.microbatches = params->microbatches,
		.training = true,
	};
}

enum status ipu_pipeline_check(const struct ipu_pipeline_params *params, struct err *err)
{
	struct ipu_schedule_params lockstep;
	enum status status;

	if ((unsigned)params->kind >= IPU_PIPELINE_KINDS)
		return err_set(err, ST_INVALID, "there is no schedule number %d",
			       (int)params->kind);
	status = check_sizes(params, err);
	if (status == ST_OK)
		status = check_chunks(params, err);
	if (status == ST_OK)
		status = check_times(params, err);
	if (status != ST_OK || rules_of(params->kind)->order)
		return status;
	lockstep = lockstep_params(params);
	return ipu_schedule_check(&lockstep, "the number of micro-batches", err);
}

/* ---- works ----------------------------------------------------------------------------------- */

static enum status make_arrays(struct ipu_pipeline *pipeline, struct err *err)
{
	size_t stages = (size_t)pipeline->stages;
	int each =
		works_of_stage(rules_of(pipeline->kind), pipeline->chunks) * pipeline->microbatches;

	pipeline->works = mem_calloc(stages * (size_t)each, sizeof(*pipeline->works));
	pipeline->first = mem_calloc(stages + 1, sizeof(*pipeline->first));
	pipeline->peak_activations = mem_calloc(stages, sizeof(*pipeline->peak_activations));
	pipeline->peak_weights = mem_calloc(stages, sizeof(*pipeline->peak_weights));
	if (!pipeline->works || !pipeline->first || !pipeline->peak_activations ||
	    !pipeline->peak_weights)
		return err_nomem(err);
	for (int s = 0; s <= pipeline->stages; s++)
		pipeline->first[s] = s * each;
	return ST_OK;
}

static enum status run_events(struct ipu_pipeline *pipeline,
			      const struct ipu_pipeline_params *params, struct err *err)
{
	for (int s = 0; s < pipeline->stages; s++)
		rules_of(pipeline->kind)->order(pipeline, s, pipeline->works + pipeline->first[s]);
	return ipu__pipeline_events(pipeline, params, err);
}

static enum status run_lockstep(struct ipu_pipeline *pipeline,
				const struct ipu_pipeline_params *params, struct err *err)
{
	const struct ipu_schedule_params lockstep = lockstep_params(params);
	struct ipu_schedule *schedule;
	enum status status = ipu_schedule_new(&schedule, &lockstep, err);

	if (status != ST_OK)
		return status;
	for (int i = 0; i < schedule->first[schedule->ipus]; i++)
		pipeline->works[i] =
			(struct ipu_pipeline_work){.stage = schedule->works[i].stage,
						   .microbatch = schedule->works[i].microbatch,
						   .phase = schedule->works[i].phase};
	status = ipu__pipeline_lockstep(pipeline, params, schedule, err);
	ipu_schedule_free(schedule);
	return status;
}

/* ---- measures -------------------------------------------------------------------------------- */

static void measure_peaks(struct ipu_pipeline *pipeline)
{
	for (int s = 0; s < pipeline->stages; s++) {
		int live = 0, held = 0, live_most = 0, held_most = 0;

		for (int i = pipeline->first[s]; i < pipeline->first[s + 1]; i++) {
			live += pipeline->works[i].phase == 'F';
			live_most = live > live_most ? live : live_most;
			live -= pipeline->works[i].phase == 'B';
			held += pipeline->works[i].phase == 'B';
			held_most = held > held_most ? held : held_most;
			held -= pipeline->works[i].phase == 'W';
		}
		pipeline->peak_activations[s] = (double)live_most / pipeline->chunks;
		pipeline->peak_weights[s] = ipu_pipeline_splits(pipeline->kind) ? held_most : 0;
	}
}

static enum status measure_bubble(struct ipu_pipeline *pipeline, struct err *err)
{
	int count = pipeline->first[pipeline->stages];
	struct ipu_interval *intervals = mem_calloc((size_t)count, sizeof(*intervals));
	enum status status;

	if (!intervals)
		return err_nomem(err);
	for (int i = 0; i < count; i++) {
		const struct ipu_pipeline_work *work = &pipeline->works[i];

		intervals[i] = (struct ipu_interval){
			.ipu = work->stage,
			.stage = work->stage,
			.microbatch = work->chunk * pipeline->microbatches + work->microbatch,
			.phase = work->phase,
			.start_ns = work->start_ns,
			.dur_ns = work->end_ns - work->start_ns,
		};
	}
	status = rules_of(pipeline->kind)->order
			 ? ipu_bubble_measure(intervals, count, pipeline->stages, pipeline->stages,
					      &pipeline->bubble, err)
			 : ipu_bubble_measure_lockstep(intervals, count, pipeline->stages,
						       pipeline->stages, &pipeline->bubble, err);
	mem_free(intervals);
	return status;
}

enum status ipu_pipeline_new(struct ipu_pipeline **out, const struct ipu_pipeline_params *params,
			     struct err *err)
{
	struct ipu_pipeline *pipeline;
	enum status status;

	*out = NULL;
	status = ipu_pipeline_check(params, err);
	if (status != ST_OK)
		return status;
	pipeline = mem_calloc(1, sizeof(*pipeline));
	if (!pipeline)
		return err_nomem(err);
	pipeline->kind = params->kind;
	pipeline->stages = params->stages;
	pipeline->microbatches = params->microbatches;
	pipeline->chunks = params->chunks > 1 ? params->chunks : 1;
	status = make_arrays(pipeline, err);
	if (status == ST_OK)
		status = rules_of(params->kind)->order ? run_events(pipeline, params, err)
						       : run_lockstep(pipeline, params, err);
	if (status == ST_OK)
		status = measure_bubble(pipeline, err);
	if (status != ST_OK) {
		ipu_pipeline_free(pipeline);
		return status;
	}
	measure_peaks(pipeline);
	ipu_pipeline_closed_get(params, &pipeline->closed);
	*out = pipeline;
	return ST_OK;
}

void ipu_pipeline_free(struct ipu_pipeline *pipeline)
{
	if (!pipeline)
		return;
	mem_free(pipeline->works);
	mem_free(pipeline->first);
	mem_free(pipeline->peak_activations);
	mem_free(pipeline->peak_weights);
	mem_free(pipeline);
}
