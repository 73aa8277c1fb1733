/*
 * Add up the writer's sums over their groups.
 *
 * Threading: none. Ownership: the sums own their array of stages.
 */
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "reports/summary/report_summary.h"

typedef void (*sums_row_fn)(struct report_sums *sums, const struct prof_query *query,
			    struct err *err);

/* Add @value. Rows of a damaged file may hold any number: skip it if the sum would overflow. */
static void add_bounded(int64_t *sum, int64_t value)
{
	if (value == IPS_NULL)
		return;
	if (value > 0 ? *sum <= INT64_MAX - value : *sum >= INT64_MIN - value)
		*sum += value;
}

/* ---- stages ---------------------------------------------------------------------------------- */

struct report_stage *report_sums_stage(struct report_sums *sums, int64_t stage)
{
	size_t low;

	SORTED_FIRST(low, 0, sums->count, sums->stage[low].stage < stage);
	if (low < sums->count && sums->stage[low].stage == stage)
		return &sums->stage[low];
	if (mem_grow(&sums->stage, &sums->capacity, sums->count + 1, sizeof(*sums->stage)))
		return NULL;
	memmove(&sums->stage[low + 1], &sums->stage[low],
		(sums->count - low) * sizeof(*sums->stage));
	sums->stage[low] = (struct report_stage){.stage = stage, .ipu = IPS_NULL};
	sums->count++;
	return &sums->stage[low];
}

static const char sql_timings[] =
	"SELECT clock, stage, phase, ipu, mode IS NULL OR mode = 'train', count, total_ns "
	"FROM stage_sum_rows ORDER BY sum_id";

enum {
	TIMING_CLOCK,
	TIMING_STAGE,
	TIMING_PHASE,
	TIMING_IPU,
	TIMING_TRAINING,
	TIMING_COUNT,
	TIMING_NS
};

static void add_timing(struct report_sums *sums, const struct prof_query *query, struct err *err)
{
	const int device = prof_column_int(query, TIMING_CLOCK) != 0;
	const int64_t ns = prof_column_int(query, TIMING_NS);
	const int64_t ipu = prof_column_int(query, TIMING_IPU);
	struct report_stage *stage;
	const char *phase;

	if (prof_column_type(query, TIMING_STAGE) == PROF_NULL)
		return;
	stage = report_sums_stage(sums, prof_column_int(query, TIMING_STAGE));
	if (!stage)
		err_nomem(err);
	phase = prof_column_text(query, TIMING_PHASE);
	if (!stage || !phase || prof_column_int(query, TIMING_TRAINING) != 1)
		return;
	if (ipu != IPS_NULL && (stage->ipu == IPS_NULL || ipu < stage->ipu))
		stage->ipu = ipu;
	if (*phase == IPS_FORWARD && !device)
		add_bounded(&stage->count, prof_column_int(query, TIMING_COUNT));
	if (*phase == IPS_FORWARD)
		add_bounded(&stage->forward_ns[device], ns);
	else if (*phase == IPS_UPDATE)
		add_bounded(&stage->update_ns[device], ns);
	else
		add_bounded(&stage->backward_ns[device], ns); /* B, W and R (recomputation) */
}

/* ---- bubbles --------------------------------------------------------------------------------- */

/* Busy and idle parts add up to IPUs x makespan. Skip single stages, which are no pipeline: older
 * recordings have bubbles of them. */
static const char sql_bubbles[] =
	"SELECT clock, mode IS NULL OR mode = 'train', oversubscribed, idle_fraction, bubble_rate, "
	"bubble_over_ideal, theory_idle_fraction, theory_bubble_rate, theory_bubble_over_ideal, "
	"ramp_up_ns, ramp_down_ns, imbalance_ns, communication_ns, all_ns, runs, idle_fractions, "
	"bubble_rates, bubbles_over_ideal, theory_idle_fractions, theory_bubble_rates, "
	"theory_bubbles_over_ideal FROM bubble_sum_rows WHERE stages IS NOT 1 "
	"ORDER BY sum_id";

enum {
	BUBBLE_CLOCK,
	BUBBLE_TRAINING,
	BUBBLE_OVERSUBSCRIBED,
	BUBBLE_MEAN,
	BUBBLE_TIME = BUBBLE_MEAN + REPORT_BUBBLE_MEANS,
	BUBBLE_TOTAL = BUBBLE_TIME + REPORT_BUBBLE_TIMES,
	BUBBLE_RUNS,
	BUBBLE_KNOWN
};

static void add_bubble(struct report_sums *sums, const struct prof_query *query, struct err *err)
{
	struct report_bubble_sum *bubble = &sums->bubble[prof_column_int(query, BUBBLE_CLOCK) != 0];

	(void)err;
	if (prof_column_int(query, BUBBLE_TRAINING) != 1)
		return;
	add_bounded(&bubble->runs, prof_column_int(query, BUBBLE_RUNS));
	for (int i = 0; i < REPORT_BUBBLE_MEANS; i++)
		if (prof_column_type(query, BUBBLE_MEAN + i) != PROF_NULL) {
			bubble->mean[i] += prof_column_real(query, BUBBLE_MEAN + i);
			add_bounded(&bubble->known[i], prof_column_int(query, BUBBLE_KNOWN + i));
		}
	for (int i = 0; i < REPORT_BUBBLE_TIMES; i++)
		add_bounded(&bubble->time_ns[i], prof_column_int(query, BUBBLE_TIME + i));
	add_bounded(&bubble->total_ns, prof_column_int(query, BUBBLE_TOTAL));
	if (prof_column_int(query, BUBBLE_OVERSUBSCRIBED) > 0)
		bubble->oversubscribed = true;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void for_each_row(struct report_sums *sums, struct prof_db *db, const char *sql,
			 sums_row_fn add_row, struct err *err)
{
	struct prof_query *query;

	if (err_stuck(err))
		return;
	prof_query_open(&query, db, sql, err);
	while (prof_query_next(query, &err->status, err))
		add_row(sums, query, err);
	prof_query_close(query);
}

void report_sums_read(struct report_sums *sums, struct prof_db *db, struct err *err)
{
	*sums = (struct report_sums){0};
	for_each_row(sums, db, sql_bubbles, add_bubble, err);
	for_each_row(sums, db, sql_timings, add_timing, err);
}

void report_sums_free(struct report_sums *sums)
{
	mem_free(sums->stage);
	*sums = (struct report_sums){0};
}
