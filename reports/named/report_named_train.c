/*
 * Named reports on the training: its executions, its metrics, and what recording it cost.
 *
 * Threading: constant data only. Ownership: literals.
 */
#include "reports/named/report_named.h"

/* ---- runs ------------------------------------------------------------------------------------ */

/* Of the rank's process: a merged file has what differs from rank 0's under a key of the rank. */
#define FACT_OF_RANK(fact)                                                                         \
	"(SELECT CAST(value AS REAL) FROM meta\n"                                                  \
	"               WHERE key IN ('" fact "', 'merge.' || e.rank || '." fact "')\n"            \
	"               ORDER BY key = '" fact "' LIMIT 1)"
#define BATCH_SIZE FACT_OF_RANK("batch_size")
#define REPLICAS   FACT_OF_RANK("replicas")
#define CLOCK_HZ   FACT_OF_RANK("clock_hz")

static const char runs_sql[] =
	"SELECT rank, mode, epoch, execution, first_step, steps, updates, start_ns,\n"
	"       dur_ns, start_cycle, cycles, traced, CAST(samples AS INTEGER) AS samples,\n"
	"       1.0 * dur_ns / nullif(steps, 0) AS step_ns,\n"
	"       samples * 1e9 / nullif(dur_ns, 0) AS samples_per_s, device_ns,\n"
	"       samples * 1e9 / nullif(device_ns, 0) AS device_samples_per_s,\n"
	"       row_number() OVER (PARTITION BY rank, mode ORDER BY execution) = 1\n"
	"         AS warm_up\n"
	"FROM (SELECT e.*,\n"
	"             e.steps * " BATCH_SIZE "\n"
	"               * coalesce(" REPLICAS ", 1) AS samples,\n"
	"             CAST(round(e.cycles * 1e9 / " CLOCK_HZ ") AS INTEGER) AS device_ns\n"
	"      FROM executions e)";

const struct report_named report_named_runs = {
	REPORT_NAMED("runs", "every Engine::run with its throughput; the first of a mode warms up"),
	{{NULL, runs_sql,
	  "execution,mode,epoch,steps,dur_ns,step_ns,samples_per_s,device_samples_per_s,warm_up",
	  "rank,execution,start_ns"}},
	"No executions: the run ended before its first Engine::run.",
};

/* ---- metrics --------------------------------------------------------------------------------- */

/* As Keras prints them: the loss first, those of validation last. round tells several evaluations
 * apart. */
static const char metrics_epoch_sql[] =
	"SELECT m.rank, m.mode, m.epoch, m.execution, e.steps, e.total_ns AS dur_ns,\n"
	"       1.0 * e.total_ns / nullif(e.steps, 0) AS step_ns, m.loss, m.metrics\n"
	"FROM (SELECT rank, mode, epoch, execution, round,\n"
	"             max(CASE name WHEN 'loss' THEN value END) AS loss,\n"
	"             group_concat(name || ': ' || CASE WHEN value IS NULL THEN 'nan'\n"
	"               ELSE printf('%.4f', value) END, ' - ') AS metrics\n"
	"      FROM (SELECT *, row_number() OVER (\n"
	"                     PARTITION BY rank, mode, epoch, execution, name\n"
	"                     ORDER BY time_ns) AS round\n"
	"            FROM metrics WHERE step IS NULL\n"
	"            ORDER BY name <> 'loss', name LIKE 'val_%', name)\n"
	"      GROUP BY rank, mode, epoch, execution, round) m\n"
	"LEFT JOIN execution_sums e\n"
	"  ON e.rank = m.rank AND e.mode = m.mode AND e.epoch IS m.epoch";

static const char metrics_metric_sql[] =
	"SELECT rank, mode, name, per_step, count, least, greatest, last_value,\n"
	"       last_epoch, last_execution, last_step, last_time_ns\n"
	"FROM metric_sums";

const struct report_named report_named_metrics = {
	REPORT_NAMED("metrics", "the metrics of each epoch and evaluation; or of each metric "
				"its range"),
	{{"epoch", metrics_epoch_sql, "mode,epoch,steps,step_ns,metrics",
	  "rank,-mode,epoch,execution"},
	 {"metric", metrics_metric_sql,
	  "mode,name,per_step,count,least,greatest,last_value,last_epoch",
	  "rank,-mode,per_step,name"}},
	"No metrics: the run ended before its first epoch.",
};

/* ---- overhead -------------------------------------------------------------------------------- */

static const char overhead_sql[] =
	"SELECT rank, commits, time_ns AS recorded_ns, events, rows, bytes, dropped,\n"
	"       record_ns_estimate AS record_ns, write_ns,\n"
	"       1.0 * record_ns_estimate / nullif(time_ns, 0) AS record_share,\n"
	"       1.0 * write_ns / nullif(time_ns, 0) AS write_share,\n"
	"       events * 1e9 / nullif(time_ns, 0) AS events_per_s,\n"
	"       rows * 1e9 / nullif(time_ns, 0) AS rows_per_s,\n"
	"       bytes * 1e9 / nullif(time_ns, 0) AS bytes_per_s\n"
	"FROM overhead_sums";

const struct report_named report_named_overhead = {
	REPORT_NAMED("overhead", "what recording cost in all and per second"),
	{{NULL, overhead_sql,
	  "rank,recorded_ns,events,events_per_s,bytes,dropped,record_share,write_share", "rank"}},
	"No commits: nothing was recorded.",
};
