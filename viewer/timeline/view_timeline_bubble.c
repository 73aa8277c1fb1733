/*
 * The bubble of the pipeline runs in the window, and its causes.
 *
 * Of few runs the bubble is that of their own rows of the view bubbles, of many the sums of
 * bubble_sums. Of several runs idle time and its causes are those of all runs together (sums over
 * sums, so that causes add up to the bubble and a run counts for as long as it took); theory is the
 * mean of runs. Rows are read an execution at a time and retained until the next news, so that
 * panning within one asks nothing.
 *
 * Each gap between two works of a lane has the cause that docs/cost-model.md (Bubbles) defines, so
 * that the gaps of a run add up to its row of the view bubbles. Only the window is read, however
 * long its runs are: a piece of it knows what works there, and on each lane what came before and
 * what comes after, which decides what an idle time in it is for. A window of many works is read
 * piece by piece, so that memory is bounded; one of more spans than MOST_SPLIT is not split.
 *
 * Threading: one thread. Ownership: rows live in an arena of their own; cells are the picture's; a
 * piece's works are freed after it.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"

#define MOST_ROWS  8192   /* of bubbles that are kept */
#define MOST_RUNS  64     /* that are few */
#define MOST_TRIES 64     /* spans that are no work, before the one that is */
#define MOST_SPLIT 150000 /* spans of the window: some tenths of a second */
#define PIECE_ROWS 8192

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
		struct view_bubble *mean = &tl->bubbles.mean[c];
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

	tl->bubbles.stages[0] = tl->bubbles.stages[1] = 0;
	while (prof_query_next(query, &status, err)) {
		const int c = prof_column_int(query, 0) == 1;
		const int64_t stage = prof_column_int(query, 3);

		if (stage >= 0 && stage < INT64_MAX)
			tl->bubbles.stages[c] =
				stage >= tl->bubbles.stages[c] ? stage + 1 : tl->bubbles.stages[c];
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

	arena_reset(&tl->bubbles.arena);
	tl->bubbles.rows = NULL;
	tl->bubbles.count = 0;
	tl->bubbles.first = 0;
	tl->bubbles.last = -1;
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

	tl->bubbles.known = view_executions(tl, &rank, &first, &last);
	if (!tl->bubbles.known ||
	    (first >= tl->bubbles.first && last <= tl->bubbles.last && rank == tl->bubbles.rank))
		return ST_OK;
	arena_reset(&tl->bubbles.arena);
	tl->bubbles.count = 0;
	tl->bubbles.rank = rank;
	tl->bubbles.first = first;
	tl->bubbles.last = last;
	return prof_timeline_bubbles(db, rank, first, last, MOST_ROWS, &tl->bubbles.arena,
				     &tl->bubbles.rows, &tl->bubbles.count, &more, err);
}

static const struct prof_bubble *view_bubble_of(const struct view_timeline *tl,
						const struct view_run *run)
{
	const int64_t replica = view__replica_of(tl, tl->lanes[run->group].track->ipu);

	for (int i = 0; i < tl->bubbles.count && tl->bubbles.known; i++) {
		const struct prof_bubble *row = &tl->bubbles.rows[i];

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
							? view_bubble_of(tl, &tl->runs[i])
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
		if (!tl->bubbles.known || !view_knows_works(tl, c) ||
		    !view_sum_runs(tl, c, &tl->bubbles.shown[c]))
			tl->bubbles.shown[c] = tl->bubbles.mean[c];
	return status;
}

/* ---- the query ------------------------------------------------------------------------------- */

void view__bubble_query(const struct view_timeline *tl, int clock, struct str *out)
{
	const struct view_bubble *bubble = &tl->bubbles.shown[clock];
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

/* One work of a lane within a pipeline run (group, execution, weight update). */
struct view_work {
	int64_t lane, group, execution, weight_update;
	int64_t from, to, stage, microbatch;
	char phase;
};

struct view_piece {
	struct view_timeline *tl;
	int clock, level;          /* the level that bars are read at; -1: spans */
	struct arena bars;         /* until the next lane */
	struct view_window window; /* of the piece */
	int64_t group;
	struct view_work *works; /* owned; by run, lane and start */
	size_t count, capacity;
};

static enum status view_add_work(struct view_piece *piece, const struct view_work *work,
				 struct err *err)
{
	struct view_timeline *tl = piece->tl;
	const int64_t stage = work->stage;

	if (mem_grow(&piece->works, &piece->capacity, piece->count + 1, sizeof(*piece->works)))
		return err_nomem(err);
	if (stage >= tl->bubbles.stages[piece->clock] && stage < INT64_MAX)
		tl->bubbles.stages[piece->clock] = stage + 1;
	if (stage >= 0 && stage < 64)
		tl->lanes[work->lane].stages |= UINT64_C(1) << stage;
	piece->works[piece->count++] = *work;
	return ST_OK;
}

/* Are the lane's bars of work spans, or are there buckets among them? */
static bool view_are_spans(const struct view_lane *lane, const struct prof_bar *bars, int count)
{
	for (int i = 0; i < count; i++)
		if (bars[i].depth == lane->work_depth && bars[i].span_id == IPS_NULL)
			return false;
	return true;
}

/* The works of lane @index that overlap @window. */
static enum status view_read_works(struct view_piece *piece, struct prof_db *db, int index,
				   struct view_window window, struct err *err)
{
	struct view_timeline *tl = piece->tl;
	const struct view_lane *lane = &tl->lanes[index];
	struct prof_bar *bars = NULL;
	const int levels[] = {piece->level, -1};
	bool spans = false;
	int count = 0;
	enum status status = ST_OK;

	for (size_t i = 0; i < ARRAY_LEN(levels) && status == ST_OK && !spans; i++) {
		arena_reset(&piece->bars);
		status = prof_timeline_bars_at(db, lane->track->track_id, levels[i], window.from,
					       window.to, tl->clock[piece->clock].extent.to,
					       &piece->bars, &bars, &count, err);
		spans = status == ST_OK && view_are_spans(lane, bars, count);
	}
	for (int i = 0; i < count && status == ST_OK; i++) {
		const struct prof_bar *bar = &bars[i];

		if (view__is_work(tl, lane, bar))
			status = view_add_work(
				piece,
				&(struct view_work){index, piece->group, bar->execution,
						    bar->weight_update, bar->start_ns,
						    bar->start_ns + bar->dur_ns, bar->stage,
						    bar->microbatch, view__phase(tl, bar)},
				err);
	}
	return status;
}

/* ---- neighbours ------------------------------------------------------------------------------ */

/* The span at the lane's depth of work that holds the next span from @time on; false: none. */
static bool view_next_span(struct view_piece *piece, struct prof_db *db,
			   const struct view_lane *lane, int64_t time, bool forward,
			   struct prof_span *out)
{
	const int64_t track = lane->track->track_id;
	int64_t id;

	if (prof_timeline_find(db, track, lane->track->clock, NULL, time, forward, &id, NULL) !=
		    ST_OK ||
	    id == IPS_NULL || prof_timeline_span(db, id, &piece->bars, out, NULL) != ST_OK)
		return false;
	return out->depth <= lane->work_depth ||
	       (prof_timeline_at(db, track, out->start_ns, lane->work_depth, &id, NULL) == ST_OK &&
		id != IPS_NULL && prof_timeline_span(db, id, &piece->bars, out, NULL) == ST_OK);
}

/* The work of lane @index before @window, or after it; false: none near by. */
static bool view_neighbour(struct view_piece *piece, struct prof_db *db, int index,
			   struct view_window window, bool forward, struct view_work *out)
{
	const struct view_lane *lane = &piece->tl->lanes[index];
	int64_t time = forward ? window.to - 1 : window.from;

	for (int i = 0; i < MOST_TRIES; i++) {
		struct prof_span span;
		int64_t end;

		if (!view_next_span(piece, db, lane, time, forward, &span))
			return false;
		end = span.start_ns + max(span.dur_ns, 0);
		if (span.depth == lane->work_depth && span.phase && strchr("FBWR", span.phase) &&
		    (forward ? span.start_ns >= window.to : span.start_ns < window.from)) {
			*out = (struct view_work){
				index,         piece->group, span.execution, span.weight_update,
				span.start_ns, end,          span.stage,     span.microbatch,
				span.phase};
			return true;
		}
		/* What is inside of it is none, either. */
		if (forward)
			time = span.depth == lane->work_depth && end > time + 1 ? end - 1
			       : span.start_ns > time                           ? span.start_ns
										: time + 1;
		else
			time = span.start_ns < time ? span.start_ns : time - 1;
	}
	return false;
}

static bool view_same_run(const struct view_work *a, const struct view_work *b)
{
	return a->group == b->group && a->execution == b->execution &&
	       a->weight_update == b->weight_update;
}

/* The lane's works, and *@waits: until when its last idle time in the window lasts, if that is
 * within a run. */
static enum status view_read_lane(struct view_piece *piece, struct prof_db *db, int index,
				  struct view_window window, int64_t *waits, struct err *err)
{
	const size_t first = piece->count;
	struct view_work before, after;
	enum status status = view_read_works(piece, db, index, window, err);

	if (status == ST_OK && view_neighbour(piece, db, index, window, false, &before) &&
	    before.to <= window.from)
		status = view_add_work(piece, &before, err);
	if (status != ST_OK || !view_neighbour(piece, db, index, window, true, &after))
		return status;
	for (size_t i = first; i < piece->count; i++)
		if (view_same_run(&piece->works[i], &after) && after.from > *waits)
			*waits = after.from;
	return view_add_work(piece, &after, err);
}

/* ---- a piece --------------------------------------------------------------------------------- */

/* By run, lane and start. */
static int view_by_run(const void *left, const void *right)
{
	const struct view_work *a = left, *b = right;

	return SORTED_BY(a, b, group, execution, weight_update, lane, from, to);
}

static void view_drop_doubles(struct view_piece *piece)
{
	size_t used = 0;

	if (piece->count == 0)
		return;
	qsort(piece->works, piece->count, sizeof(*piece->works), view_by_run);
	for (size_t i = 1; i < piece->count; i++)
		if (view_by_run(&piece->works[i], &piece->works[used]) != 0 ||
		    piece->works[i].microbatch != piece->works[used].microbatch)
			piece->works[++used] = piece->works[i];
	piece->count = used + 1;
}

static enum status view_piece_load(struct view_piece *piece, struct view_context *context,
				   struct view_window window, struct err *err)
{
	struct view_timeline *tl = piece->tl;
	struct prof_db *db = context->source->db;
	int64_t waits = window.to;
	enum status status = ST_OK;

	piece->count = 0;
	piece->window = window;
	/* Twice on the host: who waits beyond the window waits for works beyond it. */
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < tl->all_lanes && status == ST_OK; i++) {
			const struct view_lane *lane = &tl->lanes[i];

			if (!lane->pipeline || (lane->track->clock == IPS_DEVICE) != piece->clock)
				continue;
			if (view_cancelled(context))
				return err_set(err, ST_INTERRUPTED, "interrupted");
			piece->group = view__group(tl, lane);
			status = pass == 0 ? view_read_lane(piece, db, i, window, &waits, err)
					   : view_read_works(piece, db, i,
							     (struct view_window){window.to, waits},
							     err);
		}
		if (status != ST_OK || piece->clock == IPS_DEVICE || waits <= window.to)
			break;
	}
	view_drop_doubles(piece);
	return status;
}

/* One run, as far as its piece knows it. */
struct view_blame {
	struct view_piece *piece;
	const struct view_work *works; /* by lane, then start */
	size_t count;
	struct view_run *run;          /* of the picture; NULL: it has no such run */
	const struct view_work **made; /* by phase, stage, micro-batch */
	struct view_window *cover;     /* when any of its IPUs works */
	size_t cover_count;
	int64_t first, last; /* in the piece, or beyond it */
};

/* ---- adding up ------------------------------------------------------------------------------- */

static void view_add_cells(const struct view_timeline *tl, struct view_lane *lane,
			   struct view_window window, struct view_window at, enum view_cause cause)
{
	int64_t x = view_window_column(window, tl->width, at.from);
	const int64_t end = view_window_column(window, tl->width, at.to - 1);

	for (x = max(0, x); x <= end && x < tl->width; x++) {
		const int64_t left = view_window_time(window, tl->width, x);
		const int64_t right = view_window_time(window, tl->width, x + 1);

		lane->cause_ns[x * VIEW_CAUSES + cause] += min(at.to, right) - max(at.from, left);
	}
}

/* Idle time of a lane, as far as it is in the piece. */
static void view_add_gap(const struct view_blame *blame, int64_t index, int64_t from, int64_t to,
			 enum view_cause cause)
{
	const struct view_piece *piece = blame->piece;
	struct view_timeline *tl = piece->tl;
	struct view_lane *lane = &tl->lanes[index];

	from = max(from, piece->window.from);
	to = min(to, piece->window.to);
	if (to <= from)
		return;
	tl->bubbles.cause_ns[piece->clock][cause] += to - from;
	if (blame->run)
		blame->run->idle_ns[cause] += to - from;
	if (index == tl->cursor.lane && tl->cursor.ns >= from && tl->cursor.ns < to)
		tl->bubbles.at_cursor = cause;
	if (lane->cause_ns)
		view_add_cells(tl, lane, tl->clock[piece->clock].window,
			       (struct view_window){from, to}, cause);
}

/* ---- blame ----------------------------------------------------------------------------------- */

static int view_by_key(const void *left, const void *right)
{
	const struct view_work *a = *(const struct view_work *const *)left;
	const struct view_work *b = *(const struct view_work *const *)right;

	return SORTED_BY(a, b, phase, stage, microbatch);
}

/* Does the lane have works of @stage, as far as is known? */
static bool view_has_stage(const struct view_blame *blame, int64_t lane, int64_t stage)
{
	return stage < 64 && blame->piece->tl->lanes[lane].stages & UINT64_C(1) << stage;
}

/* When the input of @work was made; INT64_MAX where it comes from no other IPU, IPS_NULL: before
 * what the piece knows. */
static int64_t view_made(const struct view_blame *blame, const struct view_work *work)
{
	const int64_t stages = blame->piece->tl->bubbles.stages[blame->piece->clock];
	const bool turn = work->phase == IPS_BACKWARD && work->stage == stages - 1;
	struct view_work key = {.phase = turn ? IPS_FORWARD : work->phase,
				.stage = turn                         ? work->stage
					 : work->phase == IPS_FORWARD ? sat_sub(work->stage, 1)
								      : sat_add(work->stage, 1),
				.microbatch = work->microbatch};
	const struct view_work *wanted = &key;
	const struct view_work **found;

	if (work->phase != IPS_FORWARD && work->phase != IPS_BACKWARD)
		return INT64_MAX;
	found = bsearch(&wanted, blame->made, blame->count, sizeof(*blame->made), view_by_key);
	if (found)
		return (*found)->lane == work->lane ? INT64_MAX : (*found)->to;
	if (key.stage < 0 || key.stage >= stages || view_has_stage(blame, work->lane, key.stage))
		return INT64_MAX;
	return IPS_NULL;
}

/* On the device: while no IPU works it is communication, else imbalance. */
static void view_split_lockstep(const struct view_blame *blame, int64_t lane, int64_t from,
				int64_t to)
{
	size_t low;

	SORTED_FIRST(low, 0, blame->cover_count, blame->cover[low].to <= from);
	for (; low < blame->cover_count && blame->cover[low].from < to; low++) {
		const struct view_window *busy = &blame->cover[low];

		view_add_gap(blame, lane, from, busy->from, VIEW_CAUSE_COMMUNICATION);
		from = max(busy->from, from);
		view_add_gap(blame, lane, from, min(busy->to, to), VIEW_CAUSE_IMBALANCE);
		from = busy->to;
	}
	view_add_gap(blame, lane, from, to, VIEW_CAUSE_COMMUNICATION);
}

static void view_split_wait(const struct view_blame *blame, const struct view_work *next,
			    int64_t from)
{
	int64_t made;

	if (blame->piece->clock == IPS_DEVICE) {
		view_split_lockstep(blame, next->lane, from, next->from);
		return;
	}
	made = view_made(blame, next);
	made = made < from ? from : made > next->from ? next->from : made;
	view_add_gap(blame, next->lane, from, made, VIEW_CAUSE_IMBALANCE);
	view_add_gap(blame, next->lane, made, next->from, VIEW_CAUSE_COMMUNICATION);
}

static int view_by_time(const void *left, const void *right)
{
	const struct view_window *a = left, *b = right;

	return SORTED_BY(a, b, from);
}

/* When any IPU of the run works, as disjoint windows. */
static void view_cover(struct view_blame *blame)
{
	size_t used = 0;

	for (size_t i = 0; i < blame->count; i++)
		blame->cover[i] = (struct view_window){blame->works[i].from, blame->works[i].to};
	qsort(blame->cover, blame->count, sizeof(*blame->cover), view_by_time);
	for (size_t i = 1; i < blame->count; i++) {
		if (blame->cover[i].from > blame->cover[used].to)
			blame->cover[++used] = blame->cover[i];
		else if (blame->cover[i].to > blame->cover[used].to)
			blame->cover[used].to = blame->cover[i].to;
	}
	blame->cover_count = used + 1;
	blame->first = blame->cover[0].from;
	blame->last = blame->cover[used].to;
}

/* Has the lane gone on to a later run than this one, which is then over for it? */
static bool view_has_gone_on(const struct view_blame *blame, int64_t lane)
{
	const struct view_piece *piece = blame->piece;

	for (size_t i = 0; i < piece->count; i++)
		if (piece->works[i].lane == lane && piece->works[i].from < piece->window.to &&
		    piece->works[i].from > blame->first)
			return true;
	return false;
}

/* One lane of the run: its @count works by start. An IPU that does nothing is in ramp-up. */
static void view_blame_lane(const struct view_blame *blame, int64_t lane,
			    const struct view_work *works, size_t count)
{
	int64_t at;

	if (count == 0) {
		view_add_gap(blame, lane, blame->first, blame->last,
			     view_has_gone_on(blame, lane) ? VIEW_CAUSE_RAMP_DOWN
							   : VIEW_CAUSE_RAMP_UP);
		return;
	}
	at = works[0].from;
	view_add_gap(blame, lane, blame->first, at, VIEW_CAUSE_RAMP_UP);
	for (size_t i = 0; i < count; i++) {
		if (works[i].from > at)
			view_split_wait(blame, &works[i], at);
		at = max(works[i].to, at);
	}
	view_add_gap(blame, lane, at, blame->last, VIEW_CAUSE_RAMP_DOWN);
}

static struct view_run *view_run_of(struct view_timeline *tl, const struct view_work *work)
{
	for (int i = 0; i < tl->run_count; i++)
		if (tl->runs[i].group == work->group && tl->runs[i].execution == work->execution &&
		    tl->runs[i].weight_update == work->weight_update)
			return &tl->runs[i];
	return NULL;
}

static void view_blame_run(struct view_blame *blame)
{
	struct view_timeline *tl = blame->piece->tl;

	blame->run = view_run_of(tl, &blame->works[0]);
	view_cover(blame);
	for (size_t i = 0; i < blame->count; i++)
		blame->made[i] = &blame->works[i];
	qsort(blame->made, blame->count, sizeof(*blame->made), view_by_key);
	for (int lane = 0; lane < tl->all_lanes; lane++) {
		size_t from = 0, to;

		if (!tl->lanes[lane].pipeline ||
		    view__group(tl, &tl->lanes[lane]) != blame->works[0].group)
			continue;
		while (from < blame->count && blame->works[from].lane < lane)
			from++;
		for (to = from; to < blame->count && blame->works[to].lane == lane;)
			to++;
		view_blame_lane(blame, lane, blame->works + from, to - from);
	}
	if (!blame->run)
		return;
	/* What the lanes in sight have shown of it may have been less. */
	blame->run->from = min(blame->first, blame->run->from);
	blame->run->to = max(blame->last, blame->run->to);
}

/* ---- a clock --------------------------------------------------------------------------------- */

static enum status view_blame_piece(struct view_piece *piece, struct err *err)
{
	struct view_blame blame = {.piece = piece};
	enum status status = ST_OK;

	blame.cover = mem_calloc(piece->count + 1, sizeof(*blame.cover));
	blame.made = mem_calloc(piece->count + 1, sizeof(*blame.made));
	if (!blame.cover || !blame.made)
		status = err_nomem(err);
	for (size_t from = 0, to; from < piece->count && status == ST_OK; from = to) {
		const struct view_work *works = &piece->works[from];

		for (to = from; to < piece->count && piece->works[to].group == works->group &&
				piece->works[to].execution == works->execution &&
				piece->works[to].weight_update == works->weight_update;)
			to++;
		blame.works = works;
		blame.count = to - from;
		view_blame_run(&blame);
	}
	mem_free(blame.cover);
	mem_free(blame.made);
	return status;
}

/* Spans of the clock's lanes in the window, about; *@exact: the picture has each work. */
static int64_t view_count_rows(const struct view_timeline *tl, int clock, bool *exact)
{
	int64_t rows = 0, lanes = 0, all = 0;

	*exact = true;
	for (int i = 0; i < tl->all_lanes; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		if (!lane->pipeline || (lane->track->clock == IPS_DEVICE) != clock)
			continue;
		all++;
		if (lane->rows == 0)
			continue;
		lanes++;
		for (int b = 0; b < lane->bar_count; b++) {
			rows = sat_add(rows, lane->bars[b].count);
			*exact = *exact && (lane->bars[b].span_id != IPS_NULL ||
					    lane->bars[b].depth != lane->work_depth);
		}
	}
	return lanes > 0 ? (int64_t)fmin((double)rows * (double)all / (double)lanes, 1e18)
			 : INT64_MAX;
}

static enum status view_split_clock(struct view_timeline *tl, struct view_context *context,
				    int clock, struct err *err)
{
	const struct view_window window = tl->clock[clock].window;
	struct view_piece piece = {.tl = tl, .clock = clock, .level = -1};
	bool exact;
	const int64_t rows = view_count_rows(tl, clock, &exact);
	const int64_t pieces = exact ? 1 : rows / PIECE_ROWS + 1;
	enum status status = ST_OK;

	tl->bubbles.split[clock] = exact || rows <= MOST_SPLIT;
	if (!tl->bubbles.split[clock])
		return ST_OK;
	if (exact)
		piece.level = prof_timeline_level(window.to - window.from, tl->width);
	(void)arena_init(&piece.bars, 0);
	for (int64_t i = 0; i < pieces && status == ST_OK; i++) {
		const struct view_window part = {
			view_window_time(window, (int)pieces, i),
			i + 1 < pieces ? view_window_time(window, (int)pieces, i + 1) : window.to};

		status = view_piece_load(&piece, context, part, err);
		if (status == ST_OK)
			status = view_blame_piece(&piece, err);
	}
	mem_free(piece.works);
	arena_fini(&piece.bars);
	return status;
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* The cause that half of a cell or more is idle for. */
static void view_lay_causes(struct view_timeline *tl, struct view_lane *lane)
{
	const struct view_window window = tl->clock[lane->track->clock == IPS_DEVICE].window;
	struct view_column *columns = &lane->columns[(size_t)lane->work_row * (size_t)tl->width];

	for (int x = 0; x < tl->width; x++) {
		const int64_t *of = &lane->cause_ns[x * VIEW_CAUSES];
		int64_t sum = 0;
		int best = VIEW_CAUSE_RAMP_UP;

		for (int c = VIEW_CAUSE_RAMP_UP; c < VIEW_CAUSES; c++) {
			sum += of[c];
			best = of[c] > of[best] ? c : best;
		}
		if (sum * 2 >= view_window_time(window, tl->width, x + 1) -
				       view_window_time(window, tl->width, x) &&
		    sum > 0)
			columns[x].cause = (uint8_t)best;
	}
}

enum status view__causes_load(struct view_timeline *tl, struct view_context *context,
			      struct err *err)
{
	const size_t cells = (size_t)tl->width * VIEW_CAUSES;
	enum status status = ST_OK;

	tl->bubbles.split[0] = tl->bubbles.split[1] = false;
	tl->bubbles.at_cursor = VIEW_NO_CAUSE;
	memset(tl->bubbles.cause_ns, 0, sizeof(tl->bubbles.cause_ns));
	for (int i = 0; i < tl->all_lanes; i++)
		tl->lanes[i].cause_ns = NULL;
	if (!tl->choice.by_cause || tl->choice.way != VIEW_GANTT)
		return ST_OK;
	for (int i = 0; i < tl->lane_count; i++) {
		struct view_lane *lane = &tl->lanes[i];

		if (lane->rows == 0 || !lane->pipeline || lane->work_row < 0)
			continue;
		lane->cause_ns = arena_alloc(&tl->picture, cells, sizeof(*lane->cause_ns));
		if (!lane->cause_ns)
			return err_nomem(err);
		memset(lane->cause_ns, 0, cells * sizeof(*lane->cause_ns));
	}
	for (int c = 0; c < 2 && status == ST_OK; c++)
		if (tl->clock[c].present)
			status = view_split_clock(tl, context, c, err);
	for (int i = 0; i < tl->lane_count && status == ST_OK; i++)
		if (tl->lanes[i].cause_ns)
			view_lay_causes(tl, &tl->lanes[i]);
	return status;
}
