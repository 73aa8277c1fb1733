/*
 * Merging: sums, where a source is of a schema that had none: made of the rows just copied. See
 * prof_merge.h and, for the same as views, prof_schema_old.c.
 */
#include "profiler/prof_merge_internal.h"

#include "common/mem.h"
#include "profiler/prof_sums.h"

#define OF_SOURCE " IN (SELECT new FROM temp.rank_map)"

#define RANGE_NAMES(name) ", least_" #name ", greatest_" #name
#define RANGE_OF(name)    ", min(" #name "), max(" #name ")"
#define TENSOR_NAMES      PROF_SUM_TENSOR_MAP(RANGE_NAMES)
#define TENSOR_RANGES     PROF_SUM_TENSOR_MAP(RANGE_OF)

static const char tensor_sums[] =
	"INSERT INTO tensor_sum_rows (rank, tensor_id, rows, nonfinite_rows, n_nan, n_pos_inf, "
	"n_neg_inf, first_ns, last_ns, first_row, last_row" TENSOR_NAMES ") "
	"SELECT rank, tensor_id, count(*), sum(n_nan > 0 OR n_pos_inf > 0 OR n_neg_inf > 0), "
	"sum(n_nan), sum(n_pos_inf), sum(n_neg_inf), min(first_ns), max(time_ns), "
	"min(first_row), min(last_row)" TENSOR_RANGES " FROM (SELECT c.rank AS rank, s.*, "
	"first_value(s.time_ns) OVER (alike ORDER BY s.time_ns, s.row_id) AS first_ns, "
	"first_value(s.row_id) OVER (alike ORDER BY s.time_ns, s.row_id) AS first_row, "
	"first_value(s.row_id) OVER (alike ORDER BY s.time_ns DESC, s.row_id DESC) AS last_row "
	"FROM tensor_stat_rows s JOIN contexts c USING (context_id) WHERE c.rank" OF_SOURCE
	" WINDOW alike AS (PARTITION BY c.rank, s.tensor_id)) GROUP BY 1, 2";

static const struct {
	const char *table, *sql;
} sums[] = {
	{"stage_sum_rows",
	 "INSERT INTO stage_sum_rows (rank, clock, mode, replica, ipu, stage, phase, count, "
	 "total_ns, least_ns, greatest_ns, first_start_ns, last_end_ns, cpu_ns) "
	 "SELECT c.rank, s.clock, c.mode, c.replica, c.ipu, c.stage, c.phase, count(*), "
	 "sum(s.dur_ns), min(s.dur_ns), max(s.dur_ns), min(s.start_ns), "
	 "max(s.start_ns + s.dur_ns), sum(s.cpu_ns) "
	 "FROM stage_timing_rows s JOIN contexts c USING (context_id) WHERE c.rank" OF_SOURCE
	 " GROUP BY 1, 2, 3, 4, 5, 6, 7"},
	{"bubble_sum_rows",
	 "INSERT INTO bubble_sum_rows (rank, clock, mode, replica, schedule_id, stages, "
	 "microbatches, runs, makespan_ns, least_makespan_ns, greatest_makespan_ns, busy_ns, "
	 "ramp_up_ns, ramp_down_ns, imbalance_ns, communication_ns, all_ns, oversubscribed, "
	 "idle_fraction, bubble_rate, bubble_over_ideal, theory_idle_fraction, "
	 "theory_bubble_rate, theory_bubble_over_ideal, idle_fractions, bubble_rates, "
	 "bubbles_over_ideal, theory_idle_fractions, theory_bubble_rates, "
	 "theory_bubbles_over_ideal) "
	 "SELECT c.rank, b.clock, c.mode, c.replica, t.id, b.stages, b.microbatches, count(*), "
	 "sum(b.makespan_ns), min(b.makespan_ns), max(b.makespan_ns), sum(b.busy_ns), "
	 "sum(b.ramp_up_ns), sum(b.ramp_down_ns), sum(b.imbalance_ns), sum(b.communication_ns), "
	 "sum(b.busy_ns + b.ramp_up_ns + b.ramp_down_ns + b.imbalance_ns + b.communication_ns), "
	 "sum(b.oversubscribed > 0), sum(b.idle_fraction), sum(b.bubble_rate), "
	 "sum(b.bubble_over_ideal), sum(b.theory_idle_fraction), sum(b.theory_bubble_rate), "
	 "sum(b.theory_bubble_over_ideal), count(b.idle_fraction), count(b.bubble_rate), "
	 "count(b.bubble_over_ideal), count(b.theory_idle_fraction), count(b.theory_bubble_rate), "
	 "count(b.theory_bubble_over_ideal) "
	 "FROM bubble_rows b JOIN contexts c USING (context_id) "
	 "LEFT JOIN temp.texts t ON t.value = b.schedule WHERE c.rank" OF_SOURCE
	 " GROUP BY 1, 2, 3, 4, 5, 6, 7"},
	{"execution_sum_rows",
	 "INSERT INTO execution_sum_rows (rank, mode, epoch, executions, steps, updates, traced, "
	 "untraced, first_start_ns, last_end_ns, total_ns, cycles) "
	 "SELECT rank, mode, epoch, count(*), sum(steps), sum(updates), sum(traced = 1), "
	 "sum(traced = 0), min(start_ns), max(start_ns + dur_ns), sum(dur_ns), sum(cycles) "
	 "FROM execution_rows WHERE rank" OF_SOURCE " GROUP BY 1, 2, 3"},
	{"metric_sum_rows",
	 "INSERT INTO metric_sum_rows (rank, mode, name_id, per_step, count, least, greatest, "
	 "last_epoch, last_execution, last_step, last_time_ns, last_value) "
	 "SELECT rank, mode, name_id, step IS NOT NULL, count, least, greatest, epoch, execution, "
	 "step, time_ns, value FROM (SELECT *, "
	 "row_number() OVER (alike ORDER BY execution IS NULL DESC, time_ns DESC, epoch DESC) "
	 "AS place, count(*) OVER alike AS count, min(value) OVER alike AS least, "
	 "max(value) OVER alike AS greatest FROM metric_rows WHERE rank" OF_SOURCE
	 " WINDOW alike AS (PARTITION BY rank, mode, name_id, step IS NULL)) WHERE place = 1"},
	/* With min() SQLite takes row_id from the row that has the least. */
	{"health_sum_rows",
	 "INSERT INTO health_sum_rows (rank, rule_id, hits, first_ns, first_row) "
	 "SELECT rank, rule_id, hits, first_ns, row_id FROM (SELECT c.rank AS rank, "
	 "t.id AS rule_id, count(*) AS hits, min(h.time_ns) AS first_ns, h.row_id AS row_id "
	 "FROM health_rows h JOIN contexts c USING (context_id) "
	 "LEFT JOIN temp.texts t ON t.value = h.rule WHERE c.rank" OF_SOURCE " GROUP BY 1, 2)"},
	{"tensor_sum_rows", tensor_sums},
	{"overhead_sum_rows",
	 "INSERT INTO overhead_sum_rows (rank, commits, time_ns, events, rows, bytes, dropped, "
	 "record_ns_estimate, write_ns) "
	 "SELECT rank, count(*), max(time_ns), sum(events), sum(rows), sum(bytes), sum(dropped), "
	 "sum(record_ns_estimate), sum(write_ns) FROM overhead_rows WHERE rank" OF_SOURCE
	 " GROUP BY 1"},
};

/* Schedules and rules are texts in their rows and names in the sums. */
static enum status add_names(struct merge *m, struct err *err)
{
	enum status status = prof__merge_run(m,
					     "INSERT OR IGNORE INTO temp.texts (value) "
					     "SELECT DISTINCT schedule FROM src.bubble_rows",
					     err);

	if (status != ST_OK)
		return status;
	return prof__merge_run(m,
			       "INSERT OR IGNORE INTO temp.texts (value) "
			       "SELECT DISTINCT rule FROM src.health_rows",
			       err);
}

enum status prof__merge_sums(struct merge *m, struct err *err)
{
	enum status status = ST_OK;

	for (size_t i = 0; i < ARRAY_LEN(sums) && status == ST_OK; i++) {
		if (prof__merge_has(m, sums[i].table, "sum_id"))
			continue;
		if (!m->source->made_sums)
			status = add_names(m, err);
		m->source->made_sums = true;
		m->what = sums[i].table;
		if (status == ST_OK)
			status = prof__merge_run(m, sums[i].sql, err);
	}
	return status;
}
