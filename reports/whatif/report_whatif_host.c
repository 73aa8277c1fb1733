/*
 * The host clock: rearrange the measured mean times of stages, assuming a core per IPU.
 *
 * Threading: any thread after reading. Ownership: the recording's arena.
 */
#include <math.h>

#include "common/mem.h"
#include "reports/summary/report_summary.h"
#include "reports/whatif/report_whatif_internal.h"

/* ---- reading --------------------------------------------------------------------------------- */

static enum status read_stage_times(struct report_whatif *whatif, struct report_sums *sums,
				    struct err *err)
{
	struct whatif_host *host = &whatif->host;
	const size_t stages = (size_t)whatif->plan.layout->stages;

	host->forward = arena_alloc(&whatif->arena, stages, sizeof(*host->forward));
	host->backward = arena_alloc(&whatif->arena, stages, sizeof(*host->backward));
	if (!host->forward || !host->backward)
		return err_nomem(err);
	for (int s = 0; s < (int)stages; s++) {
		const struct report_stage_sum *sum = report_sums_stage(sums, s);
		double count, update;

		if (!sum)
			return err_nomem(err);
		if (sum->count < 1)
			return err_set(err, ST_NOTFOUND,
				       "the recording has no host times of stage %d", s);
		count = (double)sum->count;
		host->forward[s] = (double)sum->forward_ns[0] / count;
		host->backward[s] = (double)sum->backward_ns[0] / count;
		update = (double)sum->update_ns[0] / count * (double)whatif->measured.microbatches;
		host->update = fmax(host->update, update);
	}
	return ST_OK;
}

/* The theoretical bubble of a plan: no IPU waits except for its input. */
static enum status compute_theory(struct ipu_bubble *out, const struct plan_run *plan,
				  const struct whatif_host *host, bool *halved, struct err *err)
{
	const struct run_layout *layout = plan->layout;
	const struct ipu_schedule_params params = {
		.kind = plan->run->pipeline.wanted ? plan->run->pipeline.schedule : IPU_SEQUENTIAL,
		.stages = layout->stages,
		.microbatches = (int)layout->accumulation,
		.training = true,
		.ipus = layout->ipus_used,
		.device = layout->device};
	double *half = mem_calloc((size_t)layout->stages, sizeof(*half));
	struct ipu_schedule_costs costs = {.forward = host->forward, .backward = host->backward};
	struct ipu_schedule *schedule = NULL;
	enum status status = half ? ipu_schedule_new(&schedule, &params, err) : err_nomem(err);

	if (status == ST_OK && schedule->splits) {
		for (int s = 0; s < layout->stages; s++)
			half[s] = host->backward[s] / 2;
		costs.backward = costs.weight = half;
		*halved = true;
	}
	if (status == ST_OK)
		status = ipu_bubble_theory(schedule, &costs, out, err);
	ipu_schedule_free(schedule);
	mem_free(half);
	return status;
}

/* Compare the measured run with theory. */
static enum status compare_with_theory(struct report_whatif *whatif, struct err *err)
{
	struct whatif_host *host = &whatif->host;
	struct report_whatif_prediction *measured = &whatif->measured;
	struct ipu_bubble ideal;
	int64_t makespan;
	bool halved = false;
	enum status status = compute_theory(&ideal, &whatif->plan, host, &halved, err);

	if (status != ST_OK)
		return status;
	/* The makespan of a single stage is not recorded: it is what theory says. */
	makespan = measured->makespan_ns > 0 ? measured->makespan_ns : ideal.makespan_ns;
	host->waits = ideal.makespan_ns > 0 ? (double)makespan / (double)ideal.makespan_ns : 1;
	host->rest_ns = fmax(0, (double)measured->run_ns - (double)makespan);
	measured->update_ns = llround(host->update);
	for (int s = 0; s < whatif->plan.layout->stages; s++) {
		const int64_t both = llround(host->forward[s] + host->backward[s]);

		if (both <= measured->slowest_ns)
			continue;
		measured->slowest_ns = both;
		measured->slowest = s;
	}
	whatif->assumptions = 1u << REPORT_WHATIF_HOST_MEANS | 1u << REPORT_WHATIF_HOST_WAITS;
	if (host->oversubscribed)
		whatif->assumptions |= 1u << REPORT_WHATIF_HOST_CORES;
	return ST_OK;
}

enum status report__whatif_host(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	struct report_whatif_prediction *measured = &whatif->measured;
	struct report_sums sums = {0};
	double row[6];

	if (report_sums_read(&sums, db, err) == ST_OK)
		read_stage_times(whatif, &sums, err);
	report_sums_free(&sums);
	if (report__whatif_row(row, 1, db,
			       "SELECT sum(dur_ns) * 1.0 / sum(updates) FROM executions "
			       "WHERE mode = 'train' AND updates > 0 AND dur_ns > 0 "
			       "HAVING sum(updates) > 0",
			       err))
		measured->run_ns = llround(row[0]);
	if (!err_stuck(err) && measured->run_ns < 1)
		err_set(err, ST_NOTFOUND,
			"no execution of a training was finished: nothing to go by");
	if (report__whatif_row(
		    row, 6, db,
		    "SELECT 1.0 * total_makespan_ns / runs, 1.0 * total_busy_ns / runs, "
		    "1 - 1.0 * total_busy_ns / total_ns, mean_bubble_rate, "
		    "mean_bubble_over_ideal, oversubscribed_runs FROM bubble_sums WHERE "
		    "stages IS NOT 1 AND clock = 'host' AND mode = 'train' ORDER BY runs DESC "
		    "LIMIT 1",
		    err)) {
		report__whatif_bubble(measured, row);
		whatif->host.oversubscribed = row[5] > 0;
	}
	return err_stuck(err) ? err->status : compare_with_theory(whatif, err);
}

/* ---- predicting ------------------------------------------------------------------------------ */

enum status report__whatif_host_predict(struct report_whatif_prediction *out,
					const struct report_whatif *whatif,
					const struct plan_run *plan, struct err *err)
{
	const struct whatif_host *host = &whatif->host;
	struct ipu_bubble ideal;
	bool halved = false;
	double whole;
	enum status status;
	bool same = whatif->plan.layout->stages == plan->layout->stages &&
		    whatif->plan.model->layer_count == plan->model->layer_count &&
		    whatif->plan.run->data.batch_size == plan->run->data.batch_size;

	/* Whether the plan has the measured stages. */
	for (int i = 0; same && i < plan->model->layer_count; i++)
		same = whatif->plan.layout->stage[i] == plan->layout->stage[i];
	if (!same)
		return err_set(err, ST_INVALID,
			       "--split: the host's times are not known by layer (--clock device)");
	status = compute_theory(&ideal, plan, host, &halved, err);
	if (status != ST_OK)
		return status;
	if (halved)
		out->assumptions |= 1u << REPORT_WHATIF_HOST_HALF;
	/* Assume the same ratio to theory as measured. */
	out->makespan_ns = llround((double)ideal.makespan_ns * host->waits);
	out->busy_ns = ideal.busy_ns;
	out->bubble_rate = 1 - (1 - ideal.bubble_rate) / host->waits;
	whole = (double)out->makespan_ns * plan->layout->ipus_used;
	out->idle_fraction = 1 - (double)out->busy_ns / whole;
	out->bubble_over_ideal = (whole - (double)out->busy_ns) / (double)out->busy_ns;
	out->run_ns = out->makespan_ns + llround(host->rest_ns);
	out->update_ns = llround(host->update);
	out->slowest = whatif->measured.slowest;
	out->slowest_ns = whatif->measured.slowest_ns;
	return ST_OK;
}
