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

/* ---- traces ---------------------------------------------------------------------------------- */

#define STEP_COLUMNS                                                                               \
	"SELECT d.ipu, d.start_cycle, d.cycles, d.trace_step, d.stage, d.microbatch, "             \
	"d.program_id, d.cycles_overlapped, d.active_tiles, d.bytes_in, d.bytes_out, "             \
	"d.tile_balance, d.active_tile_balance, t.value, n.value, o.value, d.phase "               \
	"FROM device_step_rows d LEFT JOIN strings t ON t.string_id = d.type_id "                  \
	"LEFT JOIN strings n ON n.string_id = d.name_id "                                          \
	"LEFT JOIN strings o ON o.string_id = d.operation_id "                                     \
	"WHERE d.trace_id = :trace ORDER BY d.ipu, d.start_cycle, d.row_id"

static void read_step(struct prof_timeline *t, const struct prof_query *query, struct arena *arena,
		      struct prof_step *out)
{
	const char *phase = prof_column_text(query, 16);

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
	out->type = prof__timeline_text(t, arena, prof_column_text(query, 13));
	out->name = prof__timeline_text(t, arena, prof_column_text(query, 14));
	out->operation = prof__timeline_text(t, arena, prof_column_text(query, 15));
}

static void read_steps(struct prof_timeline *t, struct arena *arena, int64_t most,
		       struct prof_trace *out)
{
	struct prof_query *query = prof__timeline_ask(t, STEP_COLUMNS);

	prof_query_int(query, ":trace", out->trace_id);
	while (out->count < most && prof__timeline_next(t, query)) {
		struct prof_step *step = &out->steps[out->count];

		read_step(t, query, arena, step);
		if (step->start_cycle + step->cycles > out->cycles)
			out->cycles = step->start_cycle + step->cycles;
		out->count++;
	}
	prof_query_close(query);
}

enum status prof_timeline_trace(struct prof_db *db, int64_t trace_id, struct arena *arena,
				struct prof_trace *out, struct err *err)
{
	struct prof_timeline t = prof__timeline_begin(db, err);
	struct prof_query *query = prof__timeline_ask(
		&t, "SELECT clock_hz, name FROM device_traces WHERE trace_id = :trace");
	int64_t rows;

	*out = (struct prof_trace){.trace_id = trace_id, .clock_hz = NAN};
	prof_query_int(query, ":trace", trace_id);
	if (prof__timeline_next(&t, query)) {
		const char *name = prof_column_text(query, 1);

		out->clock_hz = prof_column_real(query, 0);
		out->name = prof__timeline_text(&t, arena, !name ? "" : name);
	}
	prof_query_close(query);
	rows = prof__timeline_number(
		&t, "SELECT count(*) FROM device_step_rows WHERE trace_id = :id", trace_id);
	if (rows > INT32_MAX) {
		t.status = err_set(err, ST_LIMIT, "trace %lld has too many steps",
				   (long long)trace_id);
	} else if (rows > 0) {
		out->steps = arena_alloc(arena, (size_t)rows, sizeof(*out->steps));
		if (out->steps)
			read_steps(&t, arena, rows, out);
		else
			prof__timeline_nomem(&t);
	}
	return prof__timeline_end(&t);
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

/* Read the run @row; false: it does not exist. */
static bool get_run(struct prof_timeline *t, int64_t row, struct prof_run *out)
{
	struct prof_query *query = prof__timeline_ask(t, RUN_COLUMNS "WHERE row_id = :row");
	bool found;

	*out = (struct prof_run){0};
	prof_query_int(query, ":row", row);
	found = prof__timeline_next(t, query);
	if (found) {
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
	return found;
}

static bool is_run_before(struct prof_timeline *t, int64_t row, const struct run_key *key)
{
	struct prof_run run;

	return get_run(t, row, &run) && is_before(&run, key);
}

/* Find the first row of [@low, @high) that is not before @key; @high if there is none. */
static int64_t bisect(struct prof_timeline *t, const struct run_key *key, int64_t low, int64_t high)
{
	int64_t row;

	SORTED_FIRST(row, low, high, is_run_before(t, row, key));
	return row;
}

struct run_range {
	int64_t first, end; /* rows */
};

/* Find whole pipeline runs: from the one that contains cycle @from to the last before @to. */
static struct run_range find_range(struct prof_timeline *t, int64_t rank, int64_t from, int64_t to)
{
	struct run_key key = {.rank = rank, .cycle = from + 1, .by = BY_TIME};
	const int64_t rows = prof__within(
		prof__timeline_number(t, "SELECT ifnull(max(row_id), 0) FROM device_run_rows",
				      IPS_NULL),
		0, PROF_TIME_MOST);
	struct run_range range;
	struct prof_run run;

	range.first = bisect(t, &key, 1, rows + 1);
	key.cycle = to;
	range.end = bisect(t, &key, range.first, rows + 1);
	if (range.first > 1 && get_run(t, range.first - 1, &run) && run.rank == rank) {
		key = (struct run_key){rank,     run.execution, run.weight_update,
				       IPS_NULL, IPS_NULL,      BY_PART};
		range.first = bisect(t, &key, 1, range.first);
	}
	if (range.end > range.first && get_run(t, range.end - 1, &run)) {
		key = (struct run_key){rank, run.execution, run.weight_update, INT64_MAX,
				       0,    BY_RUN};
		range.end = bisect(t, &key, range.end, rows + 1);
	}
	return range;
}

/* Of one pipeline run, whose rows are @range, find the rows of the replica at @range.first that may
 * overlap cycles [@from, @to), and in *@next the first row of the next replica. */
static struct run_range find_part(struct prof_timeline *t, struct run_range range, int64_t from,
				  int64_t to, int64_t *next)
{
	struct run_range part = range;
	struct prof_run run;
	struct run_key key;

	*next = range.end;
	if (!get_run(t, range.first, &run))
		return part;
	key = (struct run_key){run.rank, run.execution, run.weight_update, run.replica, 0, BY_RUN};
	*next = bisect(t, &key, range.first, range.end);
	key.by = BY_PART;
	key.cycle = from + 1;
	part.first = bisect(t, &key, range.first, *next);
	part.first -= part.first > range.first;
	key.cycle = to;
	part.end = bisect(t, &key, part.first, *next);
	return part;
}

/* Read every @stride-th row of @range that begins before @to. */
static void read_runs(struct prof_timeline *t, struct run_range range, int64_t to, int64_t stride,
		      struct prof_run *runs, int most, int *count)
{
	for (int64_t row = range.first, n = 0;
	     row < range.end && t->status == ST_OK && *count < most; row += stride, n++) {
		/* Vary the offset within the stride, so that no replica is skipped periodically. */
		const int64_t at = row + (stride > 1 ? n * 7919 % stride : 0);

		if (get_run(t, at < range.end ? at : range.end - 1, &runs[*count]) &&
		    runs[*count].start_cycle < to)
			++*count;
	}
}

/* For a pipeline run of very many parts (an evaluation): read the window's runs per replica. */
static void read_parts(struct prof_timeline *t, struct run_range range, int64_t from, int64_t to,
		       int most, struct prof_run *runs, int *count, int64_t *stride)
{
	struct run_range parts[MOST_REPLICAS];
	int64_t rows = 0;
	int used = 0;

	while (range.first < range.end && used < MOST_REPLICAS && t->status == ST_OK) {
		parts[used] = find_part(t, range, from, to, &range.first);
		rows += parts[used].end - parts[used].first;
		used++;
	}
	*stride = rows / most + 1;
	for (int i = 0; i < used; i++)
		read_runs(t, parts[i], to, *stride, runs, most, count);
}

enum status prof_timeline_runs(struct prof_db *db, int64_t rank, int64_t from, int64_t to, int most,
			       struct arena *arena, struct prof_run **out, int *count,
			       int64_t *stride, struct err *err)
{
	struct prof_run first, last;
	struct prof_timeline t;
	struct run_range range;

	*count = 0;
	*stride = 1;
	*out = arena_alloc(arena, (size_t)most, sizeof(**out));
	if (!*out)
		return err_nomem(err);
	t = prof__timeline_begin(db, err);
	range = find_range(&t, rank, from, to);
	if (range.end - range.first > most && get_run(&t, range.first, &first) &&
	    get_run(&t, range.end - 1, &last) && first.execution == last.execution &&
	    first.weight_update == last.weight_update) {
		read_parts(&t, range, from, to, most, *out, count, stride);
	} else {
		*stride = (range.end - range.first) / most + 1;
		read_runs(&t, range, to, *stride, *out, most, count);
	}
	return prof__timeline_end(&t);
}

/* ---- bubbles --------------------------------------------------------------------------------- */

#define BUBBLE_COLUMNS                                                                             \
	"SELECT b.clock, c.rank, c.execution, c.weight_update, c.replica, b.stages, "              \
	"b.microbatches, b.makespan_ns, b.busy_ns, b.ramp_up_ns, b.ramp_down_ns, "                 \
	"b.imbalance_ns, b.communication_ns, b.idle_fraction, b.theory_idle_fraction "             \
	"FROM bubble_rows b LEFT JOIN contexts c ON c.context_id = b.context_id "

/* Return whether the row has a rank before @rank, or @rank and an earlier execution. */
static bool bubble_is_before(struct prof_timeline *t, int64_t row, int64_t rank, int64_t execution)
{
	struct prof_query *query = prof__timeline_ask(
		t, "SELECT c.rank, c.execution FROM bubble_rows b LEFT JOIN contexts c ON "
		   "c.context_id = b.context_id WHERE b.row_id = :row");
	bool before = false;

	prof_query_int(query, ":row", row);
	if (prof__timeline_next(t, query))
		before =
			prof_column_int(query, 0) < rank || (prof_column_int(query, 0) == rank &&
							     prof_column_int(query, 1) < execution);
	prof_query_close(query);
	return before;
}

/* Find the first row of @rank with @execution or a later one; @rows + 1 if there is none. */
static int64_t first_bubble(struct prof_timeline *t, int64_t rank, int64_t execution, int64_t rows)
{
	int64_t row;

	SORTED_FIRST(row, 1, rows + 1, bubble_is_before(t, row, rank, execution));
	return row;
}

static void read_rows(struct prof_timeline *t, int64_t first, int64_t end, struct prof_bubble *out,
		      int *count)
{
	struct prof_query *query = prof__timeline_ask(
		t, BUBBLE_COLUMNS "WHERE b.row_id >= :first AND b.row_id < :end AND b.stages IS "
				  "NOT 1 ORDER BY b.row_id");

	prof_query_int(query, ":first", first);
	prof_query_int(query, ":end", end);
	while (*count < end - first && prof__timeline_next(t, query)) {
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
}

enum status prof_timeline_bubbles(struct prof_db *db, int64_t rank, int64_t first, int64_t last,
				  int most, struct arena *arena, struct prof_bubble **out,
				  int *count, bool *more, struct err *err)
{
	struct prof_timeline t = prof__timeline_begin(db, err);
	const int64_t rows = prof__within(
		prof__timeline_number(&t, "SELECT ifnull(max(row_id), 0) FROM bubble_rows",
				      IPS_NULL),
		0, PROF_TIME_MOST);
	const int64_t low = first_bubble(&t, rank, first, rows);
	const int64_t high = first_bubble(&t, rank, last + 1, rows);

	*out = NULL;
	*count = 0;
	*more = high - low > most;
	if (t.status == ST_OK && !*more) {
		*out = arena_alloc(arena, (size_t)(high - low) + 1, sizeof(**out));
		if (*out)
			read_rows(&t, low, high, *out, count);
		else
			prof__timeline_nomem(&t);
	}
	return prof__timeline_end(&t);
}
