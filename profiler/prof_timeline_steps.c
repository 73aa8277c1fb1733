/*
 * Device steps by range, and bubbles by execution. See prof_timeline.h.
 *
 * Steps are stored as traces (templates) and the runs that repeat them. Runs are stored in order
 * of (rank, execution, weight update, replica, cycle). Start cycles are not sorted across
 * replicas of one pipeline run; but whole pipeline runs are sorted by time, so bisection by time
 * finds the right one, and bisection by keys finds its bounds.
 *
 * Rows of bubbles are stored in order of rank and execution. Within an execution, those of both
 * clocks and all replicas are stored as they were computed, so an execution is read as a whole.
 *
 * One thread per database handle. The caller's arena owns the results.
 */
#include <math.h>

#include "common/sorted.h"
#include "profiler/prof_timeline_internal.h"

#define RUN_COLUMNS                                                                                \
	"SELECT row_id, trace_id, rank, execution, weight_update, first_step, first_microbatch, "  \
	"replica, first_ipu, start_cycle FROM device_run_rows "

/* Of one pipeline run, whose parts are found one by one. */
#define MOST_REPLICAS 4096

static char *copy_text(struct arena *arena, const char *text, bool *failed)
{
	char *copy = !text ? NULL : arena_strdup(arena, text);

	*failed |= text && !copy;
	return copy;
}

/* ---- traces ---------------------------------------------------------------------------------- */

#define STEP_COLUMNS                                                                               \
	"SELECT d.ipu, d.start_cycle, d.cycles, d.trace_step, d.stage, d.microbatch, "             \
	"d.program_id, d.cycles_overlapped, d.active_tiles, d.bytes_in, d.bytes_out, "             \
	"d.tile_balance, d.active_tile_balance, t.value, n.value, o.value, d.phase "               \
	"FROM device_step_rows d LEFT JOIN strings t ON t.string_id = d.type_id "                  \
	"LEFT JOIN strings n ON n.string_id = d.name_id "                                          \
	"LEFT JOIN strings o ON o.string_id = d.operation_id "                                     \
	"WHERE d.trace_id = :trace ORDER BY d.ipu, d.start_cycle, d.row_id"

static bool read_step(const struct prof_query *query, struct arena *arena, struct prof_step *out)
{
	const char *phase = prof_column_text(query, 16);
	bool failed = false;

	*out = (struct prof_step){
		.ipu = prof_column_int(query, 0),
		.start_cycle =
			prof__within(prof_column_int(query, 1), -PROF_TIME_MOST, PROF_TIME_MOST),
		.cycles = prof__within(prof_column_int(query, 2), 0, PROF_TIME_MOST),
		.trace_step = prof_column_int(query, 3),
		.stage = prof_column_int(query, 4),
		.microbatch = prof_column_int(query, 5),
		.program_id = prof_column_int(query, 6),
		.overlapped = prof_column_int(query, 7),
		.active_tiles = prof_column_int(query, 8),
		.bytes_in = prof_column_int(query, 9),
		.bytes_out = prof_column_int(query, 10),
		.tile_balance = prof_column_real(query, 11),
		.active_tile_balance = prof_column_real(query, 12),
		.phase = !phase ? 0 : phase[0],
	};
	out->type = copy_text(arena, prof_column_text(query, 13), &failed);
	out->name = copy_text(arena, prof_column_text(query, 14), &failed);
	out->operation = copy_text(arena, prof_column_text(query, 15), &failed);
	return !failed;
}

static enum status read_steps(struct prof_db *db, struct arena *arena, int64_t most,
			      struct prof_trace *out, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, STEP_COLUMNS, err);

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":trace", out->trace_id);
	while (out->count < most && prof_query_next(query, &status, err)) {
		struct prof_step *step = &out->steps[out->count];

		if (!read_step(query, arena, step)) {
			status = err_nomem(err);
			break;
		}
		if (step->start_cycle + step->cycles > out->cycles)
			out->cycles = step->start_cycle + step->cycles;
		out->count++;
	}
	prof_query_close(query);
	return status;
}

enum status prof_timeline_trace(struct prof_db *db, int64_t trace_id, struct arena *arena,
				struct prof_trace *out, struct err *err)
{
	struct prof_query *query;
	bool failed = false;
	int64_t rows = 0;
	enum status status;

	*out = (struct prof_trace){.trace_id = trace_id, .clock_hz = NAN};
	status = prof__timeline_begin(db, err);
	if (status != ST_OK)
		return status;
	status = prof_query_open(&query, db,
				 "SELECT clock_hz, name FROM device_traces WHERE trace_id = :trace",
				 err);
	prof_query_int(query, ":trace", trace_id);
	if (prof_query_next(query, &status, err)) {
		const char *name = prof_column_text(query, 1);

		out->clock_hz = prof_column_real(query, 0);
		out->name = copy_text(arena, !name ? "" : name, &failed);
	}
	prof_query_close(query);
	if (failed)
		status = err_nomem(err);
	if (status == ST_OK)
		status = prof__timeline_number(
			db, "SELECT count(*) FROM device_step_rows WHERE trace_id = :id", trace_id,
			&rows, err);
	if (status == ST_OK && rows > INT32_MAX)
		status = err_set(err, ST_LIMIT, "trace %lld has too many steps",
				 (long long)trace_id);
	if (status == ST_OK && rows > 0) {
		out->steps = arena_alloc(arena, (size_t)rows, sizeof(*out->steps));
		status = !out->steps ? err_nomem(err) : read_steps(db, arena, rows, out, err);
	}
	prof__timeline_end(db);
	return status;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Key of a bisection for the first row that is not before it. NULL sorts first, as IPS_NULL. */
struct run_key {
	int64_t rank, execution, weight_update, replica, cycle;
	enum {
		BY_TIME, /* rank, cycle */
		BY_RUN,  /* all but the cycle, taken as infinite */
		BY_PART  /* all */
	} by;
};

static bool is_before(const struct prof_run *run, const struct run_key *key)
{
	if (run->rank != key->rank)
		return run->rank < key->rank;
	if (key->by == BY_TIME)
		return run->start_cycle < key->cycle;
	if (run->execution != key->execution)
		return run->execution < key->execution;
	if (run->weight_update != key->weight_update)
		return run->weight_update < key->weight_update;
	if (run->replica != key->replica)
		return run->replica < key->replica;
	return key->by == BY_RUN || run->start_cycle < key->cycle;
}

/* Read the run @row; *@found is false if it does not exist. */
static enum status get_run(struct prof_db *db, int64_t row, struct prof_run *out, bool *found,
			   struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, RUN_COLUMNS "WHERE row_id = :row", err);

	*found = false;
	*out = (struct prof_run){0};
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":row", row);
	*found = prof_query_next(query, &status, err);
	if (*found) {
		*out = (struct prof_run){
			.run_id = prof_column_int(query, 0),
			.trace_id = prof_column_int(query, 1),
			.rank = prof_column_int(query, 2),
			.execution = prof_column_int(query, 3),
			.weight_update = prof_column_int(query, 4),
			.first_step = prof_column_int(query, 5),
			.first_microbatch = prof_column_int(query, 6),
			.replica = prof_column_int(query, 7),
			.first_ipu = prof_column_int(query, 8),
			.start_cycle = prof__within(prof_column_int(query, 9), 0, PROF_TIME_MOST),
		};
	}
	prof_query_close(query);
	return status;
}

static bool is_run_before(struct prof_db *db, int64_t row, const struct run_key *key,
			  enum status *status, struct err *err)
{
	struct prof_run run;
	bool found = false;

	if (*status == ST_OK)
		*status = get_run(db, row, &run, &found, err);
	return found && is_before(&run, key);
}

/* Find the first row of [@low, @high) that is not before @key; @high if there is none. */
static enum status bisect(struct prof_db *db, const struct run_key *key, int64_t low, int64_t high,
			  int64_t *out, struct err *err)
{
	enum status status = ST_OK;

	SORTED_FIRST(*out, low, high, is_run_before(db, *out, key, &status, err));
	return status;
}

struct run_range {
	int64_t first, end; /* rows */
};

/* Find whole pipeline runs: from the one that contains cycle @from to the last before @to. */
static enum status find_range(struct prof_db *db, int64_t rank, int64_t from, int64_t to,
			      struct run_range *out, struct err *err)
{
	struct run_key key = {.rank = rank, .cycle = from + 1, .by = BY_TIME};
	int64_t last = 0, rows;
	struct prof_run run;
	bool found = false;
	enum status status = prof_db_number(
		db, "SELECT ifnull(max(row_id), 0) FROM device_run_rows", &rows, err);

	rows = prof__within(rows, 0, PROF_TIME_MOST);
	if (status == ST_OK)
		status = bisect(db, &key, 1, rows + 1, &out->first, err);
	key.cycle = to;
	if (status == ST_OK)
		status = bisect(db, &key, out->first, rows + 1, &last, err);
	if (status == ST_OK && out->first > 1)
		status = get_run(db, out->first - 1, &run, &found, err);
	if (status == ST_OK && found && run.rank == rank) {
		key = (struct run_key){rank,     run.execution, run.weight_update,
				       IPS_NULL, IPS_NULL,      BY_PART};
		status = bisect(db, &key, 1, out->first, &out->first, err);
	}
	out->end = last;
	if (status == ST_OK && last > out->first)
		status = get_run(db, last - 1, &run, &found, err);
	if (status == ST_OK && last > out->first && found) {
		key = (struct run_key){rank, run.execution, run.weight_update, INT64_MAX,
				       0,    BY_RUN};
		status = bisect(db, &key, last, rows + 1, &out->end, err);
	}
	return status;
}

/* Of one pipeline run, whose rows are @range, find the rows of the replica at @range.first that may
 * overlap cycles [@from, @to), and in *@next the first row of the next replica. */
static enum status find_part(struct prof_db *db, struct run_range range, int64_t from, int64_t to,
			     struct run_range *part, int64_t *next, struct err *err)
{
	struct prof_run run;
	struct run_key key;
	bool found;
	enum status status = get_run(db, range.first, &run, &found, err);

	*part = range;
	*next = range.end;
	if (status != ST_OK || !found)
		return status;
	key = (struct run_key){run.rank, run.execution, run.weight_update, run.replica, 0, BY_RUN};
	status = bisect(db, &key, range.first, range.end, next, err);
	key.by = BY_PART;
	key.cycle = from + 1;
	if (status == ST_OK)
		status = bisect(db, &key, range.first, *next, &part->first, err);
	part->first -= part->first > range.first;
	key.cycle = to;
	if (status == ST_OK)
		status = bisect(db, &key, part->first, *next, &part->end, err);
	return status;
}

/* Read every @stride-th row of @range that begins before @to. */
static enum status read_runs(struct prof_db *db, struct run_range range, int64_t to, int64_t stride,
			     struct prof_run *runs, int most, int *count, struct err *err)
{
	enum status status = ST_OK;

	for (int64_t row = range.first, n = 0; row < range.end && status == ST_OK && *count < most;
	     row += stride, n++) {
		/* Vary the offset within the stride, so that no replica is skipped periodically. */
		const int64_t at = row + (stride > 1 ? n * 7919 % stride : 0);
		bool found;

		status = get_run(db, at < range.end ? at : range.end - 1, &runs[*count], &found,
				 err);
		if (status == ST_OK && found && runs[*count].start_cycle < to)
			++*count;
	}
	return status;
}

/* For a pipeline run of very many parts (an evaluation): read the window's runs per replica. */
static enum status read_parts(struct prof_db *db, struct run_range range, int64_t from, int64_t to,
			      int most, struct prof_run *runs, int *count, int64_t *stride,
			      struct err *err)
{
	struct run_range parts[MOST_REPLICAS];
	int64_t rows = 0;
	int used = 0;
	enum status status = ST_OK;

	while (range.first < range.end && used < MOST_REPLICAS && status == ST_OK) {
		status = find_part(db, range, from, to, &parts[used], &range.first, err);
		rows += parts[used].end - parts[used].first;
		used++;
	}
	*stride = rows / most + 1;
	for (int i = 0; i < used && status == ST_OK; i++)
		status = read_runs(db, parts[i], to, *stride, runs, most, count, err);
	return status;
}

enum status prof_timeline_runs(struct prof_db *db, int64_t rank, int64_t from, int64_t to, int most,
			       struct arena *arena, struct prof_run **out, int *count,
			       int64_t *stride, struct err *err)
{
	struct run_range range = {0, 0};
	struct prof_run first = {0}, last = {0};
	bool some = false, same = false;
	enum status status;

	*count = 0;
	*stride = 1;
	*out = arena_alloc(arena, (size_t)most, sizeof(**out));
	if (!*out)
		return err_nomem(err);
	status = prof__timeline_begin(db, err);
	if (status != ST_OK)
		return status;
	status = find_range(db, rank, from, to, &range, err);
	if (status == ST_OK && range.end - range.first > most)
		status = get_run(db, range.first, &first, &some, err);
	if (status == ST_OK && some)
		status = get_run(db, range.end - 1, &last, &same, err);
	same = same && first.execution == last.execution &&
	       first.weight_update == last.weight_update;
	if (status == ST_OK && same) {
		status = read_parts(db, range, from, to, most, *out, count, stride, err);
	} else if (status == ST_OK) {
		*stride = (range.end - range.first) / most + 1;
		status = read_runs(db, range, to, *stride, *out, most, count, err);
	}
	prof__timeline_end(db);
	return status;
}

/* ---- bubbles --------------------------------------------------------------------------------- */

#define BUBBLE_COLUMNS                                                                             \
	"SELECT b.clock, c.rank, c.execution, c.weight_update, c.replica, b.stages, "              \
	"b.microbatches, b.makespan_ns, b.busy_ns, b.ramp_up_ns, b.ramp_down_ns, "                 \
	"b.imbalance_ns, b.communication_ns, b.idle_fraction, b.theory_idle_fraction "             \
	"FROM bubble_rows b LEFT JOIN contexts c ON c.context_id = b.context_id "

/* Return whether the row has a rank before @rank, or @rank and an earlier execution. */
static bool bubble_is_before(struct prof_db *db, int64_t row, int64_t rank, int64_t execution,
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

/* Find the first row of @rank with @execution or a later one; @rows + 1 if there is none. */
static enum status first_bubble(struct prof_db *db, int64_t rank, int64_t execution, int64_t rows,
				int64_t *out, struct err *err)
{
	enum status status = ST_OK;

	SORTED_FIRST(*out, 1, rows + 1, bubble_is_before(db, *out, rank, execution, &status, err));
	return status;
}

static enum status read_rows(struct prof_db *db, int64_t first, int64_t end,
			     struct prof_bubble *out, int *count, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(
		&query, db,
		BUBBLE_COLUMNS "WHERE b.row_id >= :first AND b.row_id < :end AND b.stages IS NOT 1 "
			       "ORDER BY b.row_id",
		err);

	if (status != ST_OK)
		return status;
	prof_query_int(query, ":first", first);
	prof_query_int(query, ":end", end);
	while (*count < end - first && prof_query_next(query, &status, err)) {
		struct prof_bubble *bubble = &out[(*count)++];

		*bubble = (struct prof_bubble){
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
		status = first_bubble(db, rank, first, rows, &low, err);
	if (status == ST_OK)
		status = first_bubble(db, rank, last + 1, rows, &high, err);
	*more = high - low > most;
	if (status == ST_OK && !*more) {
		*out = arena_alloc(arena, (size_t)(high - low) + 1, sizeof(**out));
		status = !*out ? err_nomem(err) : read_rows(db, low, high, *out, count, err);
	}
	prof__timeline_end(db);
	return status;
}
