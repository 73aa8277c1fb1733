/*
 * Stand-alone pipelines: validation, simulation and closed forms.
 *
 * No state besides the pipeline, which is immutable after ipu_pipeline_new(): any number of threads
 * may read it. The pipeline owns its arrays.
 */
#include "ipu/ipu_pipeline.h"

#include <assert.h>
#include <math.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/ipu_schedule_internal.h"

#define SUM_MAX_NS 0x1p61 /* limit of all works in sequence with all hops; fits an int64_t */

bool ipu_pipeline_chunked(enum ipu_schedule_kind kind)
{
	return ipu_schedule_row(kind)->sharing == IPU_SHARE_IN_TURN;
}

/* ---- validation ------------------------------------------------------------------------------ */

/* Number of works of a stage for one micro-batch. */
static int works_per_microbatch(const struct ipu_pipeline_params *params)
{
	return (ipu_schedule_row(params->kind)->splits ? 3 : 2) *
	       (params->chunks > 1 ? params->chunks : 1);
}

static enum status check_sizes(const struct ipu_pipeline_params *params, struct err *err)
{
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
	most = IPU_PIPELINE_WORKS_MAX / params->stages / works_per_microbatch(params);
	if (params->microbatches > most)
		return err_set(err, ST_LIMIT,
			       "%s with %d stages takes at most %lld micro-batches (%d works in "
			       "all): there are %d",
			       ipu_schedule_name(params->kind), params->stages, (long long)most,
			       IPU_PIPELINE_WORKS_MAX, params->microbatches);
	return ST_OK;
}

static enum status check_times(const struct ipu_pipeline_params *params, struct err *err)
{
	double hops = (double)works_per_microbatch(params) * params->stages * params->microbatches;
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
	const bool chunked = ipu_pipeline_chunked(params->kind);

	if (!chunked && params->chunks > 1)
		return err_set(err, ST_INVALID,
			       "%s has one chunk on each stage, not %d: chunks are for "
			       "1f1b-interleaved",
			       ipu_schedule_name(params->kind), params->chunks);
	if (!chunked)
		return ST_OK;
	if (params->chunks < 2)
		return err_set(err, ST_INVALID,
			       "%s needs at least 2 chunks on each stage: it has %d",
			       ipu_schedule_name(params->kind), params->chunks);
	if (params->microbatches % params->stages != 0)
		return err_set(err, ST_INVALID,
			       "%s needs the number of micro-batches to be a multiple of the "
			       "number of stages (= %d): it is %d",
			       ipu_schedule_name(params->kind), params->stages,
			       params->microbatches);
	return ST_OK;
}

enum status ipu_pipeline_check(const struct ipu_pipeline_params *params, struct err *err)
{
	const struct ipu_schedule_params count = {.kind = params->kind,
						  .stages = params->stages,
						  .microbatches = params->microbatches,
						  .training = true};
	struct err own;

	err = err_start(err, &own);
	if ((unsigned)params->kind >= IPU_SCHEDULE_KINDS)
		return err_set(err, ST_INVALID, "there is no schedule number %d",
			       (int)params->kind);
	if (check_sizes(params, err) != ST_OK || check_chunks(params, err) != ST_OK ||
	    check_times(params, err) != ST_OK || ipu_pipeline_chunked(params->kind))
		return err->status;
	return ipu_schedule_check(&count, "the number of micro-batches", err);
}

/* ---- works ----------------------------------------------------------------------------------- */

/* A chunk's share of a stage's time; shares add up exactly. */
static double share(int64_t whole, int chunk, int chunks)
{
	return (double)(whole / chunks + (chunk < whole % chunks));
}

static void fill_costs(double *costs, const struct ipu_pipeline_params *params,
		       const struct ipu_schedule *schedule)
{
	const int count = schedule->stages, chunks = count / params->stages;

	for (int s = 0; s < count; s++) {
		const int of = s % params->stages, chunk = s / params->stages;
		const int64_t weight = params->backward_weight_ns[of];

		costs[s] = share(params->forward_ns[of], chunk, chunks);
		costs[count + s] =
			share(params->backward_input_ns[of] + (schedule->splits ? 0 : weight),
			      chunk, chunks);
		costs[2 * count + s] = share(weight, chunk, chunks);
	}
}

static enum status make_arrays(struct ipu_pipeline *pipeline, int works, struct err *err)
{
	const size_t stages = (size_t)pipeline->stages;

	pipeline->works = mem_calloc((size_t)works, sizeof(*pipeline->works));
	pipeline->first = mem_calloc(stages + 1, sizeof(*pipeline->first));
	pipeline->peak_activations = mem_calloc(stages, sizeof(*pipeline->peak_activations));
	pipeline->peak_weights = mem_calloc(stages, sizeof(*pipeline->peak_weights));
	if (!pipeline->works || !pipeline->first || !pipeline->peak_activations ||
	    !pipeline->peak_weights)
		return err_nomem(err);
	return ST_OK;
}

/* Compute works and bubble under @schedule. */
static enum status simulate(struct ipu_pipeline *pipeline, const struct ipu_schedule *schedule,
			    const struct ipu_pipeline_params *params, struct err *err)
{
	const int count = schedule->first[schedule->ipus];
	const size_t stages = (size_t)schedule->stages;
	double *times = mem_calloc(2 * (size_t)count + 3 * stages, sizeof(*times));
	struct ipu_interval *intervals = mem_calloc((size_t)count, sizeof(*intervals));
	double *forward = times + 2 * (size_t)count;
	const struct ipu_schedule_costs costs = {.forward = forward,
						 .backward = forward + stages,
						 .weight = forward + 2 * stages,
						 .hop = (double)params->communication_ns,
						 .lockstep = ipu_schedule_lockstep(params->kind)};
	enum status status = ST_NOMEM;

	if (!times || !intervals) {
		err_nomem(err);
		goto end;
	}
	fill_costs(forward, params, schedule);
	status = ipu_schedule_run(schedule, &costs, times, times + count, err);
	if (status == ST_OK)
		status = make_arrays(pipeline, count, err);
	if (status != ST_OK)
		goto end;
	for (int s = 0; s <= pipeline->stages; s++)
		pipeline->first[s] = schedule->first[s];
	for (int i = 0; i < count; i++) {
		const struct ipu_work *work = &schedule->works[i];
		const int64_t start = (int64_t)times[i], stop = (int64_t)times[count + i];

		pipeline->works[i] = (struct ipu_pipeline_work){work->stage % pipeline->stages,
								work->stage / pipeline->stages,
								work->microbatch,
								work->phase,
								start,
								stop};
		intervals[i] = (struct ipu_interval){.ipu = work->stage % pipeline->stages,
						     .stage = work->stage,
						     .microbatch = work->microbatch,
						     .phase = work->phase,
						     .start_ns = start,
						     .dur_ns = stop - start};
	}
	status = (costs.lockstep ? ipu_bubble_measure_lockstep : ipu_bubble_measure)(
		intervals, count, pipeline->stages, schedule->stages, &pipeline->bubble, err);
end:
	mem_free(times);
	mem_free(intervals);
	return status;
}

static void measure_peaks(struct ipu_pipeline *pipeline)
{
	for (int s = 0; s < pipeline->stages; s++) {
		int live = 0, held = 0, live_most = 0, held_most = 0;

		for (int i = pipeline->first[s]; i < pipeline->first[s + 1]; i++) {
			live += pipeline->works[i].phase == IPU_PHASE_F;
			live_most = max(live, live_most);
			live -= pipeline->works[i].phase == IPU_PHASE_B;
			held += pipeline->works[i].phase == IPU_PHASE_B;
			held_most = max(held, held_most);
			held -= pipeline->works[i].phase == IPU_PHASE_W;
		}
		pipeline->peak_activations[s] = (double)live_most / pipeline->chunks;
		pipeline->peak_weights[s] =
			ipu_schedule_row(pipeline->kind)->splits ? held_most : 0;
	}
}

enum status ipu_pipeline_new(struct ipu_pipeline **out, const struct ipu_pipeline_params *params,
			     struct err *err)
{
	struct ipu_schedule *schedule = NULL;
	struct ipu_schedule_shape shape;
	struct ipu_pipeline *pipeline;
	enum ipu_schedule_kind kind = params->kind;
	enum status status;
	int chunks;

	*out = NULL;
	status = ipu_pipeline_check(params, err);
	if (status != ST_OK)
		return status;
	/* In the schedule table each chunk is a stage. */
	chunks = params->chunks > 1 ? params->chunks : 1;
	shape = (struct ipu_schedule_shape){.stages = params->stages * chunks,
					    .microbatches = params->microbatches,
					    .places = params->stages,
					    .chunks = chunks,
					    .ipus = params->stages,
					    .training = true};
	if (params->stages == 1 && ipu_schedule_lockstep(kind))
		kind = IPU_SEQUENTIAL;
	pipeline = mem_calloc(1, sizeof(*pipeline));
	if (!pipeline)
		return err_nomem(err);
	pipeline->kind = params->kind;
	pipeline->stages = params->stages;
	pipeline->microbatches = params->microbatches;
	pipeline->chunks = shape.chunks;
	status = ipu__schedule_make(&schedule, kind, &shape, err);
	if (status == ST_OK)
		status = simulate(pipeline, schedule, params, err);
	ipu_schedule_free(schedule);
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

/* ---- closed forms ---------------------------------------------------------------------------- */

void ipu_pipeline_closed_get(const struct ipu_pipeline_params *params,
			     struct ipu_pipeline_closed *out)
{
	struct ipu__form form;
	struct ipu__times t = {
		.equal = true,
		.p = params->stages,
		.m = params->microbatches,
		.v = params->chunks > 1 ? params->chunks : 1,
		.f = (double)params->forward_ns[0],
		.b = (double)params->backward_input_ns[0],
		.w = (double)params->backward_weight_ns[0],
		.c = (double)params->communication_ns,
	};
	double busy; /* of a stage, on average */

	for (int s = 0; s < params->stages; s++) {
		double forward = (double)params->forward_ns[s];
		double input = (double)params->backward_input_ns[s];
		double weight = (double)params->backward_weight_ns[s];

		t.equal = t.equal && forward == t.f && input == t.b && weight == t.w;
		t.forward_sum += forward;
		t.backward_sum += input + weight;
		t.forward_most = fmax(t.forward_most, forward);
		t.backward_most = fmax(t.backward_most, input + weight);
	}
	busy = t.m * (t.forward_sum + t.backward_sum) / t.p;
	form = ipu_schedule_row(params->kind)->closed(&t);
	*out = (struct ipu_pipeline_closed){
		.makespan_ns = form.makespan,
		.idle_fraction = form.makespan > 0 ? 1 - busy / form.makespan : NAN,
		.bubble_rate = form.span > 0 ? 1 - busy / form.span : NAN,
		.bubble_over_ideal = busy > 0 ? form.makespan / busy - 1 : NAN,
	};
}
