/*
 * Predicting: a change settled against the rules, its stages' costs run on the device clock, or as
 * a schedule to compare with.
 *
 * Threading: any; the inputs are only read. Ownership: an arena for the length of a prediction.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/whatif/report_whatif_internal.h"

#define CHUNKS_DEFAULT 2

/* ---- the change ------------------------------------------------------------------------------ */

static enum status settle_target(struct whatif_plan *plan, const struct report_whatif *whatif,
				 const struct report_whatif_change *change, struct err *err)
{
	const char *name = change->target;
	enum status status;

	plan->target = whatif->target;
	if (!name)
		return ST_OK;
	if (whatif->clock == REPORT_WHATIF_HOST)
		return err_set(err, ST_INVALID,
			       "--target: the host's times do not depend on it (--clock device)");
	if (!strcmp(name, "bow"))
		name = "ipu21";
	status = ipu_target_get(name, whatif->options.tiles, &plan->target, err);
	if (status == ST_OK && plan->target.tiles <= whatif->options.io_tiles)
		status = err_set(err, ST_INVALID, "%s has no tiles beside the run's %lld I/O tiles",
				 name, (long long)whatif->options.io_tiles);
	if (status != ST_OK)
		err_prefix(err, "--target");
	return status;
}

static enum status settle_schedule(struct whatif_plan *plan, const struct report_whatif *whatif,
				   const struct report_whatif_change *change, struct err *err)
{
	enum status status;

	/* What was no pipeline becomes one with the schedule that is the default. */
	plan->kind = whatif->measured.pipelined ? whatif->measured.schedule : IPU_GROUPED;
	plan->chunks = change->chunks > 0 ? change->chunks : CHUNKS_DEFAULT;
	if (!change->schedule)
		return ST_OK;
	status = ipu_schedule_kind_get(change->schedule, &plan->kind, err);
	if (status != ST_OK)
		err_prefix(err, "--schedule");
	plan->comparison = !ipu_schedule_lockstep(plan->kind);
	return status;
}

static enum status settle_counts(struct whatif_plan *plan, const struct report_whatif *whatif,
				 const struct report_whatif_change *change, struct err *err)
{
	plan->microbatches =
		change->microbatches ? change->microbatches : whatif->measured.microbatches;
	plan->replicas = change->replicas ? change->replicas : whatif->measured.replicas;
	if (plan->microbatches < 1 || plan->microbatches > INT_MAX)
		return err_set(err, ST_INVALID, "--micro-batches: %lld is not a number from 1",
			       (long long)plan->microbatches);
	if (plan->replicas < 1 || plan->replicas > WHATIF_REPLICAS_MAX)
		return err_set(err, ST_INVALID, "--replicas: %lld is not a number from 1 to %d",
			       (long long)plan->replicas, WHATIF_REPLICAS_MAX);
	return ST_OK;
}

static struct ipu_schedule_params schedule_params(const struct whatif_plan *plan)
{
	return (struct ipu_schedule_params){.kind = report__whatif_schedule(plan->kind),
					    .stages = plan->stages,
					    .microbatches = (int)plan->microbatches,
					    .training = true,
					    .ipus = plan->ipus,
					    .device = plan->device};
}

static enum status settle(struct whatif_plan *plan, const struct report_whatif *whatif,
			  const struct report_whatif_change *change, struct err *err)
{
	struct ipu_schedule_params params;
	enum status status = settle_target(plan, whatif, change, err);

	if (status == ST_OK)
		status = settle_schedule(plan, whatif, change, err);
	if (status == ST_OK)
		status = settle_counts(plan, whatif, change, err);
	if (status == ST_OK)
		status = report__whatif_split(plan, whatif, change, err);
	if (status != ST_OK)
		return status;
	if (plan->stages == 1 && change->schedule)
		return err_set(err, ST_INVALID,
			       "--schedule: one stage is no pipeline (--stages 2 cuts the model)");
	params = schedule_params(plan);
	return plan->comparison ? ST_OK : ipu_schedule_check(&params, "--micro-batches", err);
}

/* ---- the device clock ------------------------------------------------------------------------ */

static bool recomputes_late(const struct whatif_plan *plan, const struct report_whatif *whatif)
{
	if (!whatif->options.recompute)
		return false;
	return whatif->options.recompute_auto ? plan->kind == IPU_SEQUENTIAL
					      : whatif->options.recompute_late;
}

static enum status measure_bubble(struct report_whatif_prediction *out,
				  const struct whatif_plan *plan,
				  const struct ipu_timeline *timeline, struct err *err)
{
	struct ipu_interval *intervals =
		mem_calloc((size_t)timeline->count + 1, sizeof(*intervals));
	struct ipu_bubble bubble;
	enum status status;
	int count;

	if (!intervals)
		return err_nomem(err);
	count = ipu_timeline_intervals(timeline, &plan->target, intervals);
	status = ipu_bubble_measure_lockstep(intervals, count, plan->ipus, plan->stages, &bubble,
					     err);
	mem_free(intervals);
	if (status != ST_OK)
		return status;
	out->makespan_ns = bubble.makespan_ns;
	out->busy_ns = bubble.busy_ns;
	out->idle_fraction = bubble.idle_fraction;
	out->bubble_rate = bubble.bubble_rate;
	out->bubble_over_ideal = bubble.bubble_over_ideal;
	return ST_OK;
}

static enum status predict_timeline(struct report_whatif_prediction *out,
				    const struct report_whatif *whatif,
				    const struct whatif_plan *plan, struct err *err)
{
	const struct ipu_schedule_params schedule = schedule_params(plan);
	struct ipu_timeline_params params = {
		.target = &plan->target,
		.stages = plan->costs,
		.sends = plan->sends,
		.send_count = plan->send_count,
		.replicas = (int)plan->replicas,
		.io_tiles = whatif->options.overlap ? whatif->options.io_tiles : 0,
		.prefetch_depth = whatif->options.prefetch_depth,
		.recompute_late = recomputes_late(plan, whatif),
		.forward = IPU_FUNCTION_F,
	};
	struct ipu_schedule *made;
	struct ipu_timeline *timeline = NULL;
	enum status status = ipu_schedule_new(&made, &schedule, err);

	if (status != ST_OK)
		return status;
	params.schedule = made;
	status = ipu_timeline_new(&timeline, &params, err);
	if (status == ST_OK) {
		out->run_ns = ipu_target_ns(&plan->target, timeline->cycles);
		status = measure_bubble(out, plan, timeline, err);
	}
	ipu_timeline_free(timeline);
	ipu_schedule_free(made);
	return status;
}

/* ---- a schedule to compare with -------------------------------------------------------------- */

static int64_t stage_cycles(const struct ipu_stage_cost *cost, bool backward)
{
	const struct ipu_function_cost *of = cost->function;

	return backward ? of[IPU_FUNCTION_B].cycles + of[IPU_FUNCTION_R].cycles
			: of[IPU_FUNCTION_F].cycles + of[IPU_FUNCTION_PUSH].cycles;
}

static double cycles_ns(const struct whatif_plan *plan, int64_t cycles)
{
	return (double)cycles * 1e9 / plan->target.clock_hz;
}

/* The stream copies of a forward, nobody else on the link. */
static double streams_ns(const struct whatif_plan *plan, const struct report_whatif *whatif,
			 const struct ipu_stage_cost *cost)
{
	const struct ipu_target *target = &plan->target;
	int64_t cycles = 0;

	if (whatif->options.overlap)
		return 0;
	if (cost->infeed_bytes > 0)
		cycles += ipu_stream_copy(target, (double)cost->infeed_bytes,
					  target->host_bytes_second)
				  .cycles;
	if (cost->outfeed_bytes > 0)
		cycles += ipu_stream_copy(target, (double)cost->outfeed_bytes,
					  target->host_bytes_second)
				  .cycles;
	return cycles_ns(plan, cycles);
}

static double hop_ns(const struct whatif_plan *plan)
{
	int64_t most = 0;

	for (int i = 0; i < plan->send_count; i++)
		if (plan->sends[i].bytes > most)
			most = plan->sends[i].bytes;
	return (double)most / plan->target.link_bytes_second * 1e9 +
	       cycles_ns(plan, ipu_sync_cycles(&plan->target, plan->ipus));
}

/* Of the functions of a run that no micro-batch has: the longest of all stages. */
static double once_ns(const struct whatif_plan *plan, enum ipu_function_phase function)
{
	int64_t most = 0;

	for (int s = 0; s < plan->stages; s++)
		if (plan->costs[s].function[function].cycles > most)
			most = plan->costs[s].function[function].cycles;
	return cycles_ns(plan, most);
}

/* Times by stage: forward, backward's two parts. */
static enum status run_pipeline(struct ipu_pipeline **out, const struct whatif_plan *plan,
				const double *forward, const double *backward, const double *weight,
				double communication, struct err *err)
{
	const size_t stages = (size_t)plan->stages;
	int64_t *times = arena_alloc(plan->arena, 3 * stages, sizeof(*times));
	const struct ipu_pipeline_params params = {
		.kind = plan->kind,
		.stages = plan->stages,
		.microbatches = (int)plan->microbatches,
		.chunks = ipu_pipeline_chunked(plan->kind) ? plan->chunks : 0,
		.forward_ns = times,
		.backward_input_ns = times + stages,
		.backward_weight_ns = times + 2 * stages,
		.communication_ns = llround(communication)};
	enum status status;

	*out = NULL;
	if (!times)
		return err_nomem(err);
	for (size_t s = 0; s < stages; s++) {
		times[s] = llround(forward[s]);
		times[stages + s] = llround(backward[s] - weight[s]);
		times[2 * stages + s] = llround(weight[s]);
	}
	status = ipu_pipeline_check(&params, err);
	return status == ST_OK ? ipu_pipeline_new(out, &params, err) : status;
}

enum status report__whatif_pipeline(struct report_whatif_prediction *out,
				    const struct whatif_plan *plan, const double *forward_ns,
				    const double *backward_ns, const double *weight_ns,
				    double communication_ns, struct err *err)
{
	struct ipu_pipeline *pipeline;
	enum status status = run_pipeline(&pipeline, plan, forward_ns, backward_ns, weight_ns,
					  communication_ns, err);

	if (status != ST_OK)
		return status;
	out->makespan_ns = pipeline->bubble.makespan_ns;
	out->busy_ns = pipeline->bubble.busy_ns;
	out->idle_fraction = pipeline->bubble.idle_fraction;
	out->bubble_rate = pipeline->bubble.bubble_rate;
	out->bubble_over_ideal = pipeline->bubble.bubble_over_ideal;
	ipu_pipeline_free(pipeline);
	return ST_OK;
}

static enum status predict_comparison(struct report_whatif_prediction *out,
				      const struct report_whatif *whatif,
				      const struct whatif_plan *plan, struct err *err)
{
	const size_t stages = (size_t)plan->stages;
	double *times = arena_alloc(plan->arena, 3 * stages, sizeof(*times));
	enum status status;

	if (!times)
		return err_nomem(err);
	for (int s = 0; s < plan->stages; s++) {
		times[s] = cycles_ns(plan, stage_cycles(&plan->costs[s], false)) +
			   streams_ns(plan, whatif, &plan->costs[s]);
		times[stages + (size_t)s] = cycles_ns(plan, stage_cycles(&plan->costs[s], true));
		times[2 * stages + (size_t)s] = cycles_ns(plan, plan->weights[s]);
	}
	status = report__whatif_pipeline(out, plan, times, times + stages, times + 2 * stages,
					 hop_ns(plan), err);
	out->run_ns = out->makespan_ns +
		      llround(once_ns(plan, IPU_FUNCTION_START) + once_ns(plan, IPU_FUNCTION_U) +
			      cycles_ns(plan, ipu_sync_cycles(&plan->target, plan->ipus)));
	return status;
}

static enum status predict_device(struct report_whatif_prediction *out,
				  const struct report_whatif *whatif, struct whatif_plan *plan,
				  struct err *err)
{
	int64_t most = -1;
	enum status status = report__whatif_costs(plan, whatif, err);

	if (status == ST_OK)
		status = plan->comparison ? predict_comparison(out, whatif, plan, err)
					  : predict_timeline(out, whatif, plan, err);
	for (int s = 0; status == ST_OK && s < plan->stages; s++) {
		const int64_t cycles =
			stage_cycles(&plan->costs[s], false) + stage_cycles(&plan->costs[s], true);

		if (cycles <= most)
			continue;
		most = cycles;
		out->slowest = s;
	}
	if (status != ST_OK)
		return status;
	out->target = plan->target.name;
	out->slowest_ns = ipu_target_ns(&plan->target, most);
	out->update_ns = llround(once_ns(plan, IPU_FUNCTION_U));
	return ST_OK;
}

/* ---- a prediction ---------------------------------------------------------------------------- */

/* The layers that begin stages. */
static enum status say_split(struct report_whatif_prediction *out,
			     const struct report_whatif *whatif, const struct whatif_plan *plan,
			     struct err *err)
{
	struct str text = {0};
	bool failed;

	if (!plan->resplit)
		return ST_OK;

	for (int i = 0; i < whatif->layer_count; i++)
		if (i == 0 || plan->stage[i] != plan->stage[i - 1])
			str_addf(&text, "%s%s", i > 0 ? "," : "", whatif->layers[i].name);
	str_copy(out->split, sizeof(out->split), str_peek(&text));
	failed = text.failed;
	str_free(&text);
	return failed ? err_nomem(err) : ST_OK;
}

static uint32_t comparison_assumptions(const struct report_whatif *whatif,
				       const struct whatif_plan *plan)
{
	if (!plan->comparison)
		return 0;
	if (whatif->clock == REPORT_WHATIF_HOST)
		return 1u << REPORT_WHATIF_HOST_COMPARISON;
	return 1u << REPORT_WHATIF_COMPARISON |
	       (ipu_schedule_row(plan->kind)->splits ? 1u << REPORT_WHATIF_BACKWARD_NAMES : 0);
}

static void finish(struct report_whatif_prediction *out, const struct report_whatif *whatif,
		   const struct whatif_plan *plan)
{
	out->schedule = plan->kind;
	out->comparison = plan->comparison;
	out->pipelined = plan->stages > 1;
	out->stages = plan->stages;
	out->microbatches = plan->microbatches;
	out->replicas = plan->replicas;
	out->batch = whatif->measured.batch;
	out->step_ns = (double)out->run_ns / (double)out->microbatches;
	out->samples_second = (double)out->batch * (double)out->microbatches *
			      (double)out->replicas / ((double)out->run_ns * 1e-9);
	out->assumptions = whatif->assumptions | plan->assumptions;
	out->assumptions |= comparison_assumptions(whatif, plan);
}

enum status report_whatif_predict(struct report_whatif_prediction *out,
				  const struct report_whatif *whatif,
				  const struct report_whatif_change *change, struct err *err)
{
	struct arena arena;
	struct whatif_plan plan = {.arena = &arena};
	enum status status;

	*out = (struct report_whatif_prediction){0};
	if (arena_init(&arena, 0))
		return err_nomem(err);
	status = settle(&plan, whatif, change, err);
	if (status == ST_OK)
		status = whatif->clock == REPORT_WHATIF_HOST
				 ? report__whatif_host_predict(out, whatif, &plan, err)
				 : predict_device(out, whatif, &plan, err);
	if (status == ST_OK)
		status = say_split(out, whatif, &plan, err);
	if (status == ST_OK)
		finish(out, whatif, &plan);
	arena_fini(&arena);
	return status;
}
