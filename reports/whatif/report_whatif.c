/*
 * Read a recording for what-if, and predict a change.
 *
 * On the device's clock a change is planned; on the host's clock the measured mean times of stages
 * are rearranged, assuming a core per IPU.
 *
 * Threading: read by one thread, then constant. Ownership: an arena, and the plan.
 */
#include "reports/whatif/report_whatif.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/summary/report_summary.h"
#include "reports/table/report_internal.h"
#include "reports/whatif/report_whatif_internal.h"

/* Upper bound of plausible cycles: a recording may be damaged. */
#define CYCLES_MAX (INT64_C(1) << 50)

static const char *const assumption_texts[] = {
	[REPORT_WHATIF_NO_EXECUTION_HOST] =
		"The host's part of each Engine::run (2.5 ms, simulated) is in no figure.",
	[REPORT_WHATIF_STEPS_SUITED] =
		"Steps and executions are taken as they suit the change: figures are of a weight "
		"update.",
	[REPORT_WHATIF_PLAN_DIFFERS] =
		"Planned again unchanged, the recorded run takes another time: it was made with "
		"another cost model, or the recording is not all there.",
	[REPORT_WHATIF_HOST_MEANS] =
		"Every stage takes its mean time on the host, whatever runs beside it.",
	[REPORT_WHATIF_HOST_WAITS] = "Waits beyond theory grow in proportion, what is beside the "
				     "pipeline does not change.",
	[REPORT_WHATIF_HOST_CORES] =
		"There were more workers than cores: host times include waiting "
		"for a core.",
	[REPORT_WHATIF_HOST_HALF] = "Half of a backward on the host is for the weights.",
	[REPORT_WHATIF_RANKS_ALIKE] =
		"Every instance has the replicas that one had, and computes as fast as the slowest "
		"of the recorded ones.",
	[REPORT_WHATIF_RANKS_NETWORK] =
		"Every instance has a link of its own; 94 % of a bandwidth are data (TCP over "
		"Ethernet), a message of more than 64 KiB is announced and answered before it is "
		"sent.",
	[REPORT_WHATIF_RANKS_SUMS] =
		"Gradients of other instances are summed at 5 GB/s: one process "
		"has nothing to sum.",
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

/* ---- rows of measurements -------------------------------------------------------------------- */

/* Read the first @count columns of the first row of @sql (NULL: NaN). Return false if there is
 * none, or after a failure, which is in @err. */
static bool read_row(double *out, int count, struct prof_db *db, const char *sql, struct err *err)
{
	struct prof_query *query;
	bool found;

	if (err_stuck(err))
		return false;
	prof_query_open(&query, db, sql, err);
	found = prof_query_next(query, &err->status, err);
	for (int i = 0; i < count && found; i++)
		out[i] = prof_column_real(query, i);
	prof_query_close(query);
	return found;
}

/* Set the measured bubble of a clock from the row of its means: ns of the makespan, busy ns, and
 * the three forms of the bubble. */
static void set_bubble(struct report_whatif_prediction *measured, const double row[5])
{
	measured->makespan_ns = llround(row[0]);
	measured->busy_ns = llround(row[1]);
	measured->idle_fraction = row[2];
	measured->bubble_rate = row[3];
	measured->bubble_over_ideal = row[4];
}

/* ---- the device's clock ---------------------------------------------------------------------- */

/* Read the measured device times, and compare them with the plan of the same run. */
static enum status read_device(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	struct report_whatif_prediction *measured = &whatif->measured;
	double row[5];
	int64_t planned_ns;

	if (!whatif->plan.device)
		return err_set(err, ST_NOTFOUND,
			       "the run has no device clock (it ran without \"ipu\"): --clock host "
			       "predicts from the host's times");
	report__whatif_figures(measured, &whatif->plan);
	planned_ns = measured->run_ns;
	measured->run_ns = measured->makespan_ns = measured->busy_ns = 0;
	measured->idle_fraction = measured->bubble_rate = measured->bubble_over_ideal = NAN;
	if (read_row(row, 2, db,
		     "SELECT cycles, updates FROM executions WHERE mode = 'train' AND "
		     "cycles > 0 AND updates > 0 LIMIT 1",
		     err)) {
		const int64_t cycles = (int64_t)fmin(row[0], 0x1p62);
		const int64_t updates = (int64_t)fmin(fmax(row[1], 1), 0x1p62);

		if (cycles / updates > CYCLES_MAX)
			return err_set(err, ST_FORMAT, "an execution takes %lld cycles",
				       (long long)cycles);
		measured->run_ns = ipu_target_ns(&whatif->plan.device->target, cycles / updates);
	}
	if (!err_stuck(err) && measured->run_ns == 0)
		err_set(err, ST_NOTFOUND,
			"no execution of a training was finished: nothing to go by");
	if (read_row(row, 5, db,
		     "SELECT total_makespan_ns / runs, total_busy_ns / runs, "
		     "1 - 1.0 * total_busy_ns / total_ns, mean_bubble_rate, "
		     "mean_bubble_over_ideal FROM bubble_sums WHERE stages IS NOT 1 AND clock = "
		     "'device' AND mode = 'train' ORDER BY runs DESC LIMIT 1",
		     err))
		set_bubble(measured, row);
	whatif->assumptions = 1u << REPORT_WHATIF_NO_EXECUTION_HOST;
	if (llabs(planned_ns - measured->run_ns) > 1)
		whatif->assumptions |= 1u << REPORT_WHATIF_PLAN_DIFFERS;
	return err->status;
}

/* ---- the host's clock ------------------------------------------------------------------------ */

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
		const struct report_stage *sum = report_sums_stage(sums, s);
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

	if (status != ST_OK)
		goto done;
	if (schedule->splits) {
		for (int s = 0; s < layout->stages; s++)
			half[s] = host->backward[s] / 2;
		costs.backward = costs.weight = half;
		*halved = true;
	}
	status = ipu_bubble_theory(schedule, &costs, out, err);
done:
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

/* Read the mean times of stages, and compare the measured run with theory. */
static enum status read_host(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	struct report_whatif_prediction *measured = &whatif->measured;
	struct report_sums sums = {0};
	double row[6];

	report_sums_read(&sums, db, err);
	if (!err_stuck(err))
		read_stage_times(whatif, &sums, err);
	report_sums_free(&sums);
	if (read_row(row, 1, db,
		     "SELECT sum(dur_ns) * 1.0 / sum(updates) FROM executions "
		     "WHERE mode = 'train' AND updates > 0 AND dur_ns > 0 "
		     "HAVING sum(updates) > 0",
		     err))
		measured->run_ns = llround(row[0]);
	if (!err_stuck(err) && measured->run_ns < 1)
		err_set(err, ST_NOTFOUND,
			"no execution of a training was finished: nothing to go by");
	if (read_row(row, 6, db,
		     "SELECT 1.0 * total_makespan_ns / runs, 1.0 * total_busy_ns / runs, "
		     "1 - 1.0 * total_busy_ns / total_ns, mean_bubble_rate, "
		     "mean_bubble_over_ideal, oversubscribed_runs FROM bubble_sums WHERE "
		     "stages IS NOT 1 AND clock = 'host' AND mode = 'train' ORDER BY runs DESC "
		     "LIMIT 1",
		     err)) {
		set_bubble(measured, row);
		whatif->host.oversubscribed = row[5] > 0;
	}
	return err_stuck(err) ? err->status : compare_with_theory(whatif, err);
}

static enum status predict_host(struct report_whatif_prediction *out,
				const struct report_whatif *whatif, const struct plan_run *plan,
				struct err *err)
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

/* ---- common to both clocks ------------------------------------------------------------------- */

static void set_shape(struct report_whatif_prediction *out, const struct plan_run *plan)
{
	const struct run_layout *layout = plan->layout;

	out->pipelined = plan->run->pipeline.wanted;
	out->schedule = out->pipelined ? plan->run->pipeline.schedule : IPU_SEQUENTIAL;
	out->stages = layout->stages;
	out->microbatches = layout->accumulation;
	out->replicas = layout->replicas;
	out->batch = plan->run->data.batch_size;
}

static void set_rates(struct report_whatif_prediction *out)
{
	out->step_ns = (double)out->run_ns / (double)out->microbatches;
	out->samples_second = (double)out->batch * (double)out->microbatches *
			      (double)out->replicas / ((double)out->run_ns * 1e-9);
}

/* Describe the split by the layers that begin stages, if it differs from the recorded one. */
static enum status describe_split(struct report_whatif_prediction *out, const struct plan_run *was,
				  const struct plan_run *plan, struct err *err)
{
	const struct model *model = plan->model;
	struct str text = {0};
	bool other = was->layout->stages != plan->layout->stages, failed;

	for (int i = 0; i < model->layer_count; i++) {
		const int stage = plan->layout->stage[i];

		other = other || strcmp(model->layers[i].name, was->model->layers[i].name) != 0 ||
			stage != was->layout->stage[i];
		if (i == 0 || stage != plan->layout->stage[i - 1])
			str_addf(&text, "%s%s", i > 0 ? "," : "", model->layers[i].name);
	}
	if (other)
		str_copy(out->split, sizeof(out->split), str_peek(&text));
	failed = text.failed;
	str_free(&text);
	return failed ? err_nomem(err) : ST_OK;
}

/* ---- opening and predicting ------------------------------------------------------------------ */

static enum status read_all(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	const struct report_whatif_change none = {0};
	enum status status;
	const char *data;
	bool suited;

	report__fact(&whatif->text, &whatif->arena, db, "run", err);
	report__fact(&data, &whatif->arena, db, "data", err);
	if (!err_stuck(err) && (!whatif->text || !data))
		err_set(err, ST_NOTFOUND,
			"no run of ipu-train: it has no run file that could be planned again");
	if (err_stuck(err) || run_data_read(&whatif->data, data, "meta: data", err) != ST_OK)
		return err->status;
	status = report__whatif_plan(&whatif->plan, whatif, &none, &suited, whatif->measured.flags,
				     err);
	if (status != ST_OK)
		return status;
	if (whatif->plan.layout->steps_per_epoch == 0)
		return err_set(err, ST_NOTFOUND, "the run trained nothing (\"fit\": null)");
	set_shape(&whatif->measured, &whatif->plan);
	status = whatif->clock == REPORT_WHATIF_HOST ? read_host(whatif, db, err)
						     : read_device(whatif, db, err);
	if (status == ST_OK)
		set_rates(&whatif->measured);
	return status;
}

enum status report_whatif_open(struct report_whatif **out, struct prof_db *db,
			       enum report_whatif_clock clock, struct err *err)
{
	struct report_whatif *whatif = mem_calloc(1, sizeof(*whatif));
	enum status status;
	struct err own;

	err = err_start(err, &own);
	*out = NULL;
	if (!whatif || arena_init(&whatif->arena, 0)) {
		mem_free(whatif);
		return err_nomem(err);
	}
	whatif->clock = clock;
	whatif->measured.idle_fraction = whatif->measured.bubble_rate = NAN;
	whatif->measured.bubble_over_ideal = NAN;
	whatif->name = arena_strdup(&whatif->arena, prof_db_path(db));
	status = whatif->name ? read_all(whatif, db, err) : err_nomem(err);
	if (status != ST_OK) {
		report_whatif_close(whatif);
		if (!str_starts_with(err->text, prof_db_path(db)))
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
	plan_run_fini(&whatif->plan);
	arena_fini(&whatif->arena);
	mem_free(whatif);
}

enum status report_whatif_predict(struct report_whatif_prediction *out,
				  const struct report_whatif *whatif,
				  const struct report_whatif_change *change, struct err *err)
{
	struct plan_run plan = {0};
	bool suited = false;
	enum status status;

	*out = (struct report_whatif_prediction){0};
	if (whatif->clock == REPORT_WHATIF_HOST && change->target)
		return err_set(err, ST_INVALID,
			       "--target: the host's times do not depend on it (--clock device)");
	if (change->instances && whatif->ranks.ranks == 0)
		return err_set(err, ST_INVALID,
			       "--instances: of the host's clock; simulated IPUs of several "
			       "replicas: ipu-plan scale");
	if (change->instances && change->replicas)
		return err_set(err, ST_INVALID,
			       "--instances: each has the replicas that it had: --replicas cannot "
			       "be given too");
	status = report__whatif_plan(&plan, whatif, change, &suited, out->flags, err);
	if (status != ST_OK)
		goto done;
	if (suited)
		out->assumptions |= 1u << REPORT_WHATIF_STEPS_SUITED;
	set_shape(out, &plan);
	out->memory_fits = true;
	if (plan.layout->steps_per_epoch == 0)
		status = err_set(err, ST_INVALID, "fit: null trains nothing");
	else if (whatif->clock == REPORT_WHATIF_HOST)
		status = predict_host(out, whatif, &plan, err);
	else if (!plan.device)
		status = err_set(err, ST_INVALID, "without \"ipu\" there is no device to plan for");
	else
		report__whatif_figures(out, &plan);
	if (status == ST_OK && change->instances)
		status = report__whatif_ranks_predict(out, whatif, change, err);
	if (status != ST_OK)
		goto done;
	set_rates(out);
	out->assumptions |= whatif->assumptions;
	status = describe_split(out, &whatif->plan, &plan, err);
done:
	plan_run_fini(&plan);
	return status;
}
