/*
 * Indexes at the end of a recording. See prof_finish.h. On the thread that owns the connection.
 */
#include "profiler/prof_finish.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/minmax.h"

#define NS_PER_ROW 500    /* estimate for an index of 1 or 2 columns (measured: about 400) */
#define LEAST_ROWS 500000 /* smaller tables are scanned in a tenth of a second */

/* For joins by key and for the flows of a span, the most useful first. No query of this repository
 * needs an index: reports and views read ranges of rows. */
static const struct {
	const char *create, *last_row;
} indexes[] = {
	{"CREATE INDEX IF NOT EXISTS contexts_update ON contexts (weight_update, microbatch)",
	 "SELECT coalesce(max(context_id), 0) FROM contexts"},
	{"CREATE INDEX IF NOT EXISTS stage_timing_contexts ON stage_timing_rows (context_id)",
	 "SELECT coalesce(max(row_id), 0) FROM stage_timing_rows"},
	{"CREATE INDEX IF NOT EXISTS span_contexts ON span_rows (context_id)",
	 "SELECT coalesce(max(span_id), 0) FROM span_rows"},
	{"CREATE INDEX IF NOT EXISTS device_run_updates ON device_run_rows (weight_update)",
	 "SELECT coalesce(max(row_id), 0) FROM device_run_rows"},
	{"CREATE INDEX IF NOT EXISTS flow_from ON flow_rows (from_span_id)",
	 "SELECT coalesce(max(row_id), 0) FROM flow_rows"},
	{"CREATE INDEX IF NOT EXISTS flow_to ON flow_rows (to_span_id)",
	 "SELECT coalesce(max(row_id), 0) FROM flow_rows"},
	{"CREATE INDEX IF NOT EXISTS variable_tile_variables ON variable_tile_rows (variable_id)",
	 "SELECT coalesce(max(row_id), 0) FROM variable_tile_rows"},
};

static int64_t row_count(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement;
	int64_t rows = INT64_MAX / NS_PER_ROW;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		return rows;
	if (sqlite3_step(statement) == SQLITE_ROW)
		rows = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return rows;
}

struct budget {
	uint64_t deadline;
	int (*stop)(void *user);
	void *user;
	bool stopped;
};

static int on_tick(void *data)
{
	struct budget *budget = data;

	if (budget->stop && budget->stop(budget->user))
		budget->stopped = true;
	return budget->stopped || clock_ns() > budget->deadline;
}

bool prof_index_build(sqlite3 *db, int64_t budget_ms, int (*stop)(void *user), void *user)
{
	struct budget budget = {clock_ns() + (uint64_t)max(0, budget_ms) * 1000000u, stop, user,
				false};
	bool all = true;

	sqlite3_progress_handler(db, 100000, on_tick, &budget);
	for (size_t i = 0; i < ARRAY_LEN(indexes) && !budget.stopped; i++) {
		int64_t left = (int64_t)(budget.deadline - clock_ns());
		int64_t rows = row_count(db, indexes[i].last_row);

		if (rows < LEAST_ROWS)
			continue;
		if (rows > left / NS_PER_ROW ||
		    sqlite3_exec(db, indexes[i].create, NULL, NULL, NULL) != SQLITE_OK)
			all = false;
	}
	sqlite3_progress_handler(db, 0, NULL, NULL);
	return all;
}
