/*
 * The bubble of the pipeline runs in the window: of few runs their own rows of the view bubbles, of
 * many the sums of bubble_sums.
 *
 * Of several runs idle time and its causes are those of all runs together (sums over sums, so that
 * causes add up to the bubble and a run counts for as long as it took); theory is the mean of runs.
 *
 * Rows are read an execution at a time and kept until the next news, so that panning within one
 * asks nothing.
 *
 * Threading: one thread. Ownership: rows live in an arena of their own.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

#define MOST_ROWS 8192 /* of bubbles that are kept */
#define MOST_RUNS 64   /* that are few */

const char *const view__cause_names[VIEW_CAUSES] = {"", "ramp-up", "ramp-down", "imbalance",
						    "communication"};

/* ---- means ----------------------------------------------------------------------------------- */

#define MEANS                                                                                      \
	"SELECT sum(runs), 1.0 * sum(total_ns - total_busy_ns) / sum(total_ns), "                  \
	"sum(mean_theory_idle_fraction * runs) / sum(runs), "                                      \
	"1.0 * sum(total_ramp_up_ns) / sum(total_ns), "                                            \
	"1.0 * sum(total_ramp_down_ns) / sum(total_ns), "                                          \
	"1.0 * sum(total_imbalance_ns) / sum(total_ns), "                                          \
	"1.0 * sum(total_communication_ns) / sum(total_ns), max(greatest_makespan_ns), "           \
	"sum(total_makespan_ns) / sum(runs)\n"                                                     \
	"FROM bubble_sums WHERE clock = "

/* Of all modes those of training, if it has any. */
#define MODE " AND mode = (SELECT max(mode) FROM bubble_sums)"

static enum status view_read_means(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	for (int c = 0; c < 2; c++) {
		struct view_bubble *mean = &tl->mean_bubble[c];
		struct prof_query *query;
		enum status status = prof_query_open(&query, db, MEANS ":clock" MODE, err);

		*mean = (struct view_bubble){.mean = true};
		prof_query_text(query, ":clock", c ? "device" : "host");
		if (prof_query_next(query, &status, err) && prof_column_int(query, 0) > 0) {
			mean->runs = prof_column_int(query, 0);
			mean->idle = prof_column_real(query, 1);
			mean->theory = prof_column_real(query, 2);
			for (int i = VIEW_CAUSE_RAMP_UP; i < VIEW_CAUSES; i++)
				mean->part[i] = prof_column_real(query, 2 + i);
			mean->makespan_ns = prof_column_int(query, 7);
			mean->mean_makespan_ns = prof_column_int(query, 8);
		}
		prof_query_close(query);
		if (status != ST_OK)
			return status;
	}
	return ST_OK;
}

/* How many stages there are, and which IPU works on which. */
static enum status view_read_stages(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	static const char sql[] = "SELECT clock = 'device', rank, ipu, stage FROM stage_sums "
				  "GROUP BY 1, 2, 3, 4";
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	tl->stages[0] = tl->stages[1] = 0;
	while (prof_query_next(query, &status, err)) {
		const int c = prof_column_int(query, 0) == 1;
		const int64_t stage = prof_column_int(query, 3);

		if (stage >= 0 && stage < INT64_MAX)
			tl->stages[c] = stage >= tl->stages[c] ? stage + 1 : tl->stages[c];
		for (int i = 0; i < tl->all_lanes && stage >= 0 && stage < 64; i++)
			if ((tl->lanes[i].track->clock == IPS_DEVICE) == c &&
			    tl->lanes[i].track->rank == prof_column_int(query, 1) &&
			    tl->lanes[i].track->ipu == prof_column_int(query, 2))
				tl->lanes[i].stages |= UINT64_C(1) << stage;
	}
	prof_query_close(query);
	return status;
}

enum status view__bubbles_forget(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	const enum status status = view_read_stages(tl, db, err);

	arena_reset(&tl->bubble_arena);
	tl->bubbles = NULL;
	tl->bubble_count = 0;
	tl->bubble_first = 0;
	tl->bubble_last = -1;
	return status == ST_OK ? view_read_means(tl, db, err) : status;
}

/* ---- of the window --------------------------------------------------------------------------- */

/* Does the picture know each work of the clock, or only buckets of them? */
static bool view_knows_works(const struct view_timeline *tl, int clock)
{
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		if (lane->rows == 0 || !lane->pipeline ||
		    (lane->track->clock == IPS_DEVICE) != clock)
			continue;
		for (int b = 0; b < lane->bar_count; b++)
			if (lane->bars[b].depth == lane->work_depth &&
			    lane->bars[b].span_id == IPS_NULL)
				return false;
	}
	return true;
}

static int view_run_clock(const struct view_timeline *tl, const struct view_run *run)
{
	return tl->lanes[run->group].track->clock == IPS_DEVICE;
}

/* The executions of the runs in the window, which must be of one process; false: none, or many. */
static bool view_executions(const struct view_timeline *tl, int64_t *rank, int64_t *first,
			    int64_t *last)
{
	if (tl->run_count == 0 || tl->run_count > 2 * MOST_RUNS)
		return false;
	*rank = tl->lanes[tl->runs[0].group].track->rank;
	*first = INT64_MAX;
	*last = IPS_NULL;
	for (int i = 0; i < tl->run_count; i++) {
		const int64_t execution = tl->runs[i].execution;

		if (execution == IPS_NULL || tl->lanes[tl->runs[i].group].track->rank != *rank)
			return false;
		*first = execution < *first ? execution : *first;
		*last = execution > *last ? execution : *last;
	}
	return true;
}

static enum status view_read_bubbles(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	int64_t rank = 0, first = 0, last = -1;
	bool more;

	tl->bubbles_known = view_executions(tl, &rank, &first, &last);
	if (!tl->bubbles_known ||
	    (first >= tl->bubble_first && last <= tl->bubble_last && rank == tl->bubble_rank))
		return ST_OK;
	arena_reset(&tl->bubble_arena);
	tl->bubble_count = 0;
	tl->bubble_rank = rank;
	tl->bubble_first = first;
	tl->bubble_last = last;
	return prof_timeline_bubbles(db, rank, first, last, MOST_ROWS, &tl->bubble_arena,
				     &tl->bubbles, &tl->bubble_count, &more, err);
}

const struct prof_bubble *view__bubble_of(const struct view_timeline *tl,
					  const struct view_run *run)
{
	const int64_t replica = view__replica_of(tl, tl->lanes[run->group].track->ipu);

	for (int i = 0; i < tl->bubble_count && tl->bubbles_known; i++) {
		const struct prof_bubble *row = &tl->bubbles[i];

		if (row->clock == view_run_clock(tl, run) && row->execution == run->execution &&
		    row->weight_update == run->weight_update &&
		    (replica == IPS_NULL || row->replica == IPS_NULL || row->replica == replica))
			return row;
	}
	return NULL;
}

/* Is there training on the clock in the window? Then its bubble is that of the training alone. */
static bool view_trains(const struct view_timeline *tl, int clock)
{
	for (int i = 0; i < tl->run_count; i++)
		if (view_run_clock(tl, &tl->runs[i]) == clock &&
		    tl->runs[i].weight_update != IPS_NULL)
			return true;
	return false;
}

static bool view_run_counts(const struct view_timeline *tl, const struct view_run *run, int clock,
			    bool trains)
{
	return view_run_clock(tl, run) == clock && (run->weight_update != IPS_NULL) == trains;
}

static void view_add_row(struct view_bubble *out, double *total, const struct prof_bubble *row)
{
	out->runs++;
	out->update = row->weight_update;
	out->theory += row->theory_idle_fraction;
	out->part[VIEW_CAUSE_RAMP_UP] += (double)row->ramp_up_ns;
	out->part[VIEW_CAUSE_RAMP_DOWN] += (double)row->ramp_down_ns;
	out->part[VIEW_CAUSE_IMBALANCE] += (double)row->imbalance_ns;
	out->part[VIEW_CAUSE_COMMUNICATION] += (double)row->communication_ns;
	out->mean_makespan_ns += row->makespan_ns;
	*total += (double)row->busy_ns;
	if (row->makespan_ns > out->makespan_ns)
		out->makespan_ns = row->makespan_ns;
}

/* Add up the rows of the clock's runs; false: one of them has none (it has not ended yet). */
static bool view_sum_runs(const struct view_timeline *tl, int clock, struct view_bubble *out)
{
	const bool trains = view_trains(tl, clock);
	double total = 0;

	*out = (struct view_bubble){.update = IPS_NULL};
	for (int i = 0; i < tl->run_count; i++) {
		const struct prof_bubble *row = view_run_counts(tl, &tl->runs[i], clock, trains)
							? view__bubble_of(tl, &tl->runs[i])
							: NULL;

		if (row)
			view_add_row(out, &total, row);
	}
	for (int i = VIEW_CAUSE_RAMP_UP; i < VIEW_CAUSES; i++)
		total += out->part[i];
	for (int i = VIEW_CAUSE_RAMP_UP; i < VIEW_CAUSES; i++) {
		out->part[i] = total > 0 ? out->part[i] / total : NAN;
		out->idle += out->part[i];
	}
	out->mean_makespan_ns /= out->runs > 0 ? out->runs : 1;
	out->theory /= (double)out->runs;
	return out->runs > 0;
}

enum status view__bubble_load(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	const enum status status = view_read_bubbles(tl, db, err);

	for (int c = 0; c < 2; c++)
		if (!tl->bubbles_known || !view_knows_works(tl, c) ||
		    !view_sum_runs(tl, c, &tl->bubble[c]))
			tl->bubble[c] = tl->mean_bubble[c];
	return status;
}

/* ---- the query ------------------------------------------------------------------------------- */

void view__bubble_query(const struct view_timeline *tl, int clock, struct str *out)
{
	const struct view_bubble *bubble = &tl->bubble[clock];
	const bool trains = view_trains(tl, clock);
	int64_t first = INT64_MAX, last = INT64_MIN;

	if (bubble->runs < 1)
		return;
	if (bubble->mean) {
		str_addf(out, MEANS "'%s'" MODE ";\n", clock ? "device" : "host");
		return;
	}
	for (int i = 0; i < tl->run_count; i++)
		if (view_run_counts(tl, &tl->runs[i], clock, trains)) {
			const int64_t at =
				trains ? tl->runs[i].weight_update : tl->runs[i].execution;

			first = min(at, first);
			last = max(at, last);
		}
	str_addf(out,
		 "SELECT weight_update, idle_fraction, theory_idle_fraction, makespan_ns, busy_ns, "
		 "ramp_up_ns, ramp_down_ns, imbalance_ns, communication_ns\nFROM bubbles WHERE "
		 "clock = '%s' AND %s BETWEEN %lld AND %lld;\n",
		 clock ? "device" : "host",
		 bubble->update == IPS_NULL ? "weight_update IS NULL AND execution"
					    : "weight_update",
		 (long long)first, (long long)last);
}
