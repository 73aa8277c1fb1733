/*
 * Bubbles by execution. See prof_timeline.h.
 *
 * Rows are stored in order of rank and execution; within an execution those of both clocks and all
 * replicas come as they were known, so an execution is read as a whole.
 *
 * One thread per database handle. Results are the caller's arena's.
 */
#include "profiler/prof_timeline_internal.h"

#include "common/sorted.h"

#define BUBBLE_COLUMNS                                                                             \
	"SELECT b.clock, c.rank, c.execution, c.weight_update, c.replica, b.stages, "              \
	"b.microbatches, b.makespan_ns, b.busy_ns, b.ramp_up_ns, b.ramp_down_ns, "                 \
	"b.imbalance_ns, b.communication_ns, b.idle_fraction, b.theory_idle_fraction "             \
	"FROM bubble_rows b LEFT JOIN contexts c ON c.context_id = b.context_id "

/* Whether the row is of a rank before @rank, or of an earlier execution of it. */
static bool is_before(struct prof_db *db, int64_t row, int64_t rank, int64_t execution,
		      enum status *status, struct err *err)
{
	struct prof_query *query;
	bool before = false;

	if (*status == ST_OK)
		*status = prof_query_open(
			&query, db,
			"SELECT c.rank, c.execution FROM bubble_rows b LEFT JOIN contexts c ON "
			"c.context_id = b.context_id WHERE b.row_id = :row",
			err);
	if (*status != ST_OK)
		return false;
	prof_query_int(query, ":row", row);
	if (prof_query_next(query, status, err))
		before =
			prof_column_int(query, 0) < rank || (prof_column_int(query, 0) == rank &&
							     prof_column_int(query, 1) < execution);
	prof_query_close(query);
	return before;
}

/* The first row of @rank with @execution or a later one: *@out; @rows + 1: none. */
static enum status first_of(struct prof_db *db, int64_t rank, int64_t execution, int64_t rows,
			    int64_t *out, struct err *err)
{
	enum status status = ST_OK;

	SORTED_FIRST(*out, 1, rows + 1, is_before(db, *out, rank, execution, &status, err));
	return status;
}

static void read_bubble(const struct prof_query *query, struct prof_bubble *out)
{
	*out = (struct prof_bubble){
		.clock = prof_column_int(query, 0) == 1,
		.rank = prof_column_int(query, 1),
		.execution = prof_column_int(query, 2),
		.weight_update = prof_column_int(query, 3),
		.replica = prof_column_int(query, 4),
		.stages = prof_column_int(query, 5),
		.microbatches = prof_column_int(query, 6),
		.makespan_ns = prof_column_int(query, 7),
		.busy_ns = prof_column_int(query, 8),
		.ramp_up_ns = prof_column_int(query, 9),
		.ramp_down_ns = prof_column_int(query, 10),
		.imbalance_ns = prof_column_int(query, 11),
		.communication_ns = prof_column_int(query, 12),
		.idle_fraction = prof_column_real(query, 13),
		.theory_idle_fraction = prof_column_real(query, 14),
	};
}

static enum status read_rows(struct prof_db *db, int64_t first, int64_t end,
			     struct prof_bubble *out, int *count, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, db,
		BUBBLE_COLUMNS "WHERE b.row_id >= :first AND b.row_id < :end ORDER BY b.row_id",
		err);

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":first", first);
	prof_query_int(query, ":end", end);
	while (*count < end - first && prof_query_next(query, &status, err))
		read_bubble(query, &out[(*count)++]);
	prof_query_close(query);
	return status;
}

enum status prof_timeline_bubbles(struct prof_db *db, int64_t rank, int64_t first, int64_t last,
				  int most, struct arena *arena, struct prof_bubble **out,
				  int *count, bool *more, struct err *err)
{
	int64_t rows, low = 0, high = 0;
	enum status status;

	*out = NULL;
	*count = 0;
	*more = false;
	status = prof__timeline_begin(db, err);
	if (status != ST_OK)
		return status;
	status = prof_db_number(db, "SELECT ifnull(max(row_id), 0) FROM bubble_rows", &rows, err);
	rows = prof__within(rows, 0, PROF_TIME_MOST);
	if (status == ST_OK)
		status = first_of(db, rank, first, rows, &low, err);
	if (status == ST_OK)
		status = first_of(db, rank, last + 1, rows, &high, err);
	*more = high - low > most;
	if (status == ST_OK && !*more) {
		*out = arena_alloc(arena, (size_t)(high - low) + 1, sizeof(**out));
		status = !*out ? err_nomem(err) : read_rows(db, low, high, *out, count, err);
	}
	prof__timeline_end(db);
	return status;
}
