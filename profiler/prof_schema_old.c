/*
 * Older files read as new ones. See prof_schema_old.h. On the connection's thread.
 *
 * A name without a schema means the temporary view first, so no query has to know. What the file
 * has decides, not its user_version: a file need not be what it says it is.
 */
#include "profiler/prof_schema_old.h"

#include <stdbool.h>
#include <string.h>

#include "common/mem.h"
#include "profiler/prof_sql.h"
#include "profiler/prof_sums.h"

#define NO_KEYS                                                                                    \
	"NULL AS rank, NULL AS mode, NULL AS epoch, NULL AS execution, NULL AS weight_update, "    \
	"NULL AS step, NULL AS microbatch, NULL AS replica, "

/* Sums since schema 5, those of tensors since 6. Here they are made of the rows, which are all read
 * and sorted for that. */

static const char stage_sums[] =
	"SELECT clock, rank, mode, replica, ipu, stage, phase, count(*) AS count, "
	"sum(dur_ns) AS total_ns, 1.0 * sum(dur_ns) / count(*) AS mean_ns, "
	"min(dur_ns) AS least_ns, max(dur_ns) AS greatest_ns, sum(cpu_ns) AS cpu_ns, "
	"min(start_ns) AS first_start_ns, max(start_ns + dur_ns) AS last_end_ns "
	"FROM main.stage_timings "
	"GROUP BY clock = 'device', rank, mode, replica, ipu, stage, phase";

static const char bubble_sums[] =
	"SELECT clock, rank, mode, replica, schedule, stages, microbatches, count(*) AS runs, "
	"avg(idle_fraction) AS mean_idle_fraction, avg(bubble_rate) AS mean_bubble_rate, "
	"avg(bubble_over_ideal) AS mean_bubble_over_ideal, "
	"avg(theory_idle_fraction) AS mean_theory_idle_fraction, "
	"avg(theory_bubble_rate) AS mean_theory_bubble_rate, "
	"avg(theory_bubble_over_ideal) AS mean_theory_bubble_over_ideal, "
	"sum(makespan_ns) AS total_makespan_ns, min(makespan_ns) AS least_makespan_ns, "
	"max(makespan_ns) AS greatest_makespan_ns, sum(busy_ns + ramp_up_ns + ramp_down_ns + "
	"imbalance_ns + communication_ns) AS total_ns, sum(busy_ns) AS total_busy_ns, "
	"sum(ramp_up_ns) AS total_ramp_up_ns, sum(ramp_down_ns) AS total_ramp_down_ns, "
	"sum(imbalance_ns) AS total_imbalance_ns, "
	"sum(communication_ns) AS total_communication_ns, "
	"sum(oversubscribed > 0) AS oversubscribed_runs "
	"FROM main.bubbles "
	"GROUP BY clock = 'device', rank, mode, replica, schedule, stages, microbatches";

static const char execution_sums[] =
	"SELECT rank, mode, epoch, count(*) AS executions, sum(steps) AS steps, "
	"sum(updates) AS updates, count(CASE traced WHEN 1 THEN 1 END) AS traced, "
	"count(CASE traced WHEN 0 THEN 1 END) AS untraced, min(start_ns) AS first_start_ns, "
	"max(start_ns + dur_ns) AS last_end_ns, sum(dur_ns) AS total_ns, "
	"sum(cycles) AS total_cycles FROM main.executions GROUP BY rank, mode, epoch";

static const char metric_sums[] =
	"SELECT rank, mode, name, step IS NOT NULL AS per_step, count, least, greatest, "
	"epoch AS last_epoch, execution AS last_execution, step AS last_step, "
	"time_ns AS last_time_ns, value AS last_value FROM (SELECT *, "
	"row_number() OVER (alike ORDER BY execution IS NULL DESC, time_ns DESC, epoch DESC) "
	"AS place, count(*) OVER alike AS count, min(value) OVER alike AS least, "
	"max(value) OVER alike AS greatest FROM main.metrics "
	"WINDOW alike AS (PARTITION BY rank, mode, name, step IS NULL)) WHERE place = 1";

/* With min() SQLite takes the other columns from the row that has the least. */
static const char health_sums[] =
	"SELECT rule, count(*) AS hits, queue, key, layer, stage, phase, rank, mode, epoch, "
	"execution, weight_update, step, microbatch, replica, min(time_ns) AS time_ns, value, "
	"threshold FROM main.health GROUP BY rank, rule";

static const char overhead_sums[] =
	"SELECT rank, count(*) AS commits, max(time_ns) AS time_ns, sum(events) AS events, "
	"sum(rows) AS rows, sum(bytes) AS bytes, sum(dropped) AS dropped, "
	"sum(record_ns_estimate) AS record_ns_estimate, sum(write_ns) AS write_ns "
	"FROM main.overhead GROUP BY rank";

#define TENSOR_OUT(name) ", first_" #name ", last_" #name ", least_" #name ", greatest_" #name
#define TENSOR_OF(name)                                                                            \
	", first_value(" #name ") OVER by_time AS first_" #name ", " #name " AS last_" #name       \
	", min(" #name ") OVER alike AS least_" #name ", max(" #name                               \
	") OVER alike AS greatest_" #name
#define TENSOR_COLUMNS PROF_SUM_TENSOR_MAP(TENSOR_OUT)
#define TENSOR_VALUES  PROF_SUM_TENSOR_MAP(TENSOR_OF)

/* Of the view without a schema: its last columns may be temporary ones. */
static const char tensor_sums[] =
	"SELECT queue, key, kind, layer, stage, (SELECT shape FROM main.tensors t "
	"WHERE t.queue IS w.queue AND t.key IS w.key) AS shape, rank, rows, nonfinite_rows, "
	"n_nan, n_pos_inf, n_neg_inf, first_ns, first_mode, first_epoch, first_weight_update, "
	"first_step, time_ns AS last_ns, mode AS last_mode, epoch AS last_epoch, "
	"weight_update AS last_weight_update, step AS last_step" TENSOR_COLUMNS
	" FROM (SELECT queue, key, kind, layer, stage, rank, mode, epoch, weight_update, step, "
	"time_ns, row_number() OVER (alike ORDER BY time_ns DESC) AS place, "
	"count(*) OVER alike AS rows, "
	"sum(n_nan > 0 OR n_pos_inf > 0 OR n_neg_inf > 0) OVER alike AS nonfinite_rows, "
	"sum(n_nan) OVER alike AS n_nan, sum(n_pos_inf) OVER alike AS n_pos_inf, "
	"sum(n_neg_inf) OVER alike AS n_neg_inf, first_value(time_ns) OVER by_time AS first_ns, "
	"first_value(mode) OVER by_time AS first_mode, "
	"first_value(epoch) OVER by_time AS first_epoch, "
	"first_value(weight_update) OVER by_time AS first_weight_update, "
	"first_value(step) OVER by_time AS first_step" TENSOR_VALUES
	" FROM tensor_stats WINDOW alike AS (PARTITION BY rank, queue, key), "
	"by_time AS (alike ORDER BY time_ns)) w WHERE place = 1";

/* Views since schema 4, and columns since then (@column: one that shows whether they are there). */
static const struct {
	const char *view, *column, *select;
} late[] = {
	{"tensor_tiers", NULL,
	 "SELECT NULL AS queue, NULL AS key, NULL AS kind, NULL AS layer, NULL AS tier, "
	 "NULL AS every, NULL AS keep, " NO_KEYS "NULL AS time_ns, NULL AS why WHERE 0"},
	{"nonfinite_trail", NULL,
	 "SELECT NULL AS position, NULL AS role, NULL AS queue, NULL AS key, NULL AS kind, "
	 "NULL AS layer, NULL AS stage, NULL AS phase, " NO_KEYS
	 "NULL AS time_ns, NULL AS n, NULL AS n_nan, NULL AS n_pos_inf, NULL AS n_neg_inf, "
	 "NULL AS n_zero, NULL AS n_neg, NULL AS n_pos, NULL AS min, NULL AS max, NULL AS mean, "
	 "NULL AS std, NULL AS l1, NULL AS l2, NULL AS abs_min_nonzero, NULL AS abs_max WHERE 0"},
	{"tensors", "activity", "SELECT *, NULL AS activity FROM main.tensors"},
	{"tensor_stats", "inactive",
	 "SELECT *, NULL AS inactive, NULL AS update_ratio, NULL AS n_changed "
	 "FROM main.tensor_stats"},
	{"health_rules", "parameters", "SELECT *, NULL AS parameters FROM main.health_rules"},
	{"stage_sums", NULL, stage_sums},
	{"bubble_sums", NULL, bubble_sums},
	{"execution_sums", NULL, execution_sums},
	{"metric_sums", NULL, metric_sums},
	{"health_sums", NULL, health_sums},
	{"overhead_sums", NULL, overhead_sums},
	{"tensor_sums", NULL, tensor_sums},
};

/* *@count: columns of the file's @view; 0: it has no such view that works. *@found: @column is one.
 * SQLITE_OK, or why that cannot be told. */
static int columns_of(sqlite3 *db, const char *view, const char *column, int *count, bool *found)
{
	char sql[96];
	sqlite3_stmt *statement;
	int code;

	*count = 0;
	*found = false;
	sqlite3_snprintf(sizeof(sql), sql, "SELECT * FROM main.%s", view);
	code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
	if ((code & 0xff) == SQLITE_ERROR || (code & 0xff) == SQLITE_CORRUPT)
		return SQLITE_OK;
	if (code != SQLITE_OK)
		return code;
	*count = sqlite3_column_count(statement);
	for (int i = 0; i < *count && column && code == SQLITE_OK; i++) {
		const char *name = sqlite3_column_name(statement, i);

		*found |= name && strcmp(name, column) == 0;
		code = !name ? SQLITE_NOMEM : SQLITE_OK;
	}
	sqlite3_finalize(statement);
	return code;
}

enum status prof_schema_complete(sqlite3 *db, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(late); i++) {
		char sql[8192];
		bool found;
		int columns, code = columns_of(db, late[i].view, late[i].column, &columns, &found);

		if (code != SQLITE_OK)
			return prof_sql_error(db, code, err, late[i].view);
		/* There already, or nothing to add the columns to. */
		if (found || (columns == 0) != (!late[i].column))
			continue;
		sqlite3_snprintf(sizeof(sql), sql, "CREATE TEMP VIEW %s AS %s", late[i].view,
				 late[i].select);
		code = sqlite3_exec(db, sql, NULL, NULL, NULL);
		if (code != SQLITE_OK)
			return prof_sql_error(db, code, err, late[i].view);
	}
	return ST_OK;
}
