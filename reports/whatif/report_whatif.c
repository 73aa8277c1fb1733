/*
 * Read a recording for what-if, and predict a change.
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

bool report__whatif_row(double *out, int count, struct prof_db *db, const char *sql,
			struct err *err)
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

void report__whatif_bubble(struct report_whatif_prediction *measured, const double row[5])
{
	measured->makespan_ns = llround(row[0]);
	measured->busy_ns = llround(row[1]);
	measured->idle_fraction = row[2];
	measured->bubble_rate = row[3];
	measured->bubble_over_ideal = row[4];
}

/* ---- the measured run ------------------------------------------------------------------------ */

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
	if (report__whatif_row(row, 2, db,
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
	if (report__whatif_row(
		    row, 5, db,
		    "SELECT total_makespan_ns / runs, total_busy_ns / runs, "
		    "1 - 1.0 * total_busy_ns / total_ns, mean_bubble_rate, "
		    "mean_bubble_over_ideal FROM bubble_sums WHERE stages IS NOT 1 AND clock = "
		    "'device' AND mode = 'train' ORDER BY runs DESC LIMIT 1",
		    err))
		report__whatif_bubble(measured, row);
	whatif->assumptions = 1u << REPORT_WHATIF_NO_EXECUTION_HOST;
	if (llabs(planned_ns - measured->run_ns) > 1)
		whatif->assumptions |= 1u << REPORT_WHATIF_PLAN_DIFFERS;
	return err->status;
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
	status = whatif->clock == REPORT_WHATIF_HOST ? report__whatif_host(whatif, db, err)
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

static enum status predict(struct report_whatif_prediction *out, const struct report_whatif *whatif,
			   const struct report_whatif_change *change, const struct plan_run *plan,
			   struct err *err)
{
	enum status status = ST_OK;

	set_shape(out, plan);
	out->memory_fits = true;
	if (whatif->clock == REPORT_WHATIF_HOST)
		status = report__whatif_host_predict(out, whatif, plan, err);
	else if (!plan->device)
		status = err_set(err, ST_INVALID, "without \"ipu\" there is no device to plan for");
	else
		report__whatif_figures(out, plan);
	if (status != ST_OK)
		return status;
	if (change->instances)
		status = report__whatif_ranks_predict(out, whatif, change, err);
	if (status != ST_OK)
		return status;
	set_rates(out);
	out->assumptions |= whatif->assumptions;
	return describe_split(out, &whatif->plan, plan, err);
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
	if (status == ST_OK && suited)
		out->assumptions |= 1u << REPORT_WHATIF_STEPS_SUITED;
	if (status == ST_OK && plan.layout->steps_per_epoch == 0)
		status = err_set(err, ST_INVALID, "fit: null trains nothing");
	if (status == ST_OK)
		status = predict(out, whatif, change, &plan, err);
	plan_run_fini(&plan);
	return status;
}
