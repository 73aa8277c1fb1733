/*
 * The bubble of the pipeline runs in the window, and its causes.
 *
 * For few runs in the window the bubble comes from their own rows of the view bubbles, for many
 * from bubble_sums. For several runs, idle time and its causes are totals over all runs (sums over
 * sums, so that causes add up to the bubble and each run is weighted by its duration); theory is
 * the mean of the runs. Rows are read by execution and retained until the next news, so that
 * panning within one execution reads nothing.
 *
 * Each gap between two works of a lane has the cause that docs/cost-model.md (Bubbles) defines, so
 * that the gaps of a run add up to its row of the view bubbles. Only the window is read, however
 * long its runs are: a piece holds the works in it, and on each lane the work before and the one
 * after, which decide the cause of an idle time. A window with many works is read piece by piece,
 * so that memory is bounded; one with more than MOST_SPLIT spans is not split.
 *
 * Threading: one thread. Ownership: rows have an arena of their own; cells are in the picture's
 * arena; a piece's works are freed after it.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"

#define MOST_ROWS  8192   /* retained rows of bubbles */
#define MOST_RUNS  64     /* most runs that count as few */
#define MOST_TRIES 64     /* spans skipped, at most, in search of a work */
#define MOST_SPLIT 150000 /* spans of the window; these take some tenths of a second */
#define PIECE_ROWS 8192

const char *const view__cause_names[VIEW_CAUSES] = {"", "ramp-up", "ramp-down", "imbalance",
						    "communication"};

/* ---- the whole run --------------------------------------------------------------------------- */

#define MEANS                                                                                      \
	"SELECT sum(runs), 1.0 * sum(total_ns - total_busy_ns) / sum(total_ns), "                  \
	"sum(mean_theory_idle_fraction * runs) / sum(runs), "                                      \
	"1.0 * sum(total_ramp_up_ns) / sum(total_ns), "                                            \
	"1.0 * sum(total_ramp_down_ns) / sum(total_ns), "                                          \
	"1.0 * sum(total_imbalance_ns) / sum(total_ns), "                                          \
	"1.0 * sum(total_communication_ns) / sum(total_ns), max(greatest_makespan_ns), "           \
	"sum(total_makespan_ns) / sum(runs)\n"                                                     \
	"FROM bubble_sums WHERE stages IS NOT 1 AND clock = "

/* Restrict to training if the run has any. */
#define MODE " AND mode = (SELECT max(mode) FROM bubble_sums)"

/* Record that the clock, and @lane if it is not NULL, works on @stage. */
static void view_add_stage(struct view_timeline *tl, int clock, int64_t stage,
			   struct view_lane *lane)
{
	if (stage >= 0 && stage < INT64_MAX)
		tl->bubbles.stages[clock] = max(tl->bubbles.stages[clock], stage + 1);
	if (lane && stage >= 0 && stage < 64)
		lane->stages |= UINT64_C(1) << stage;
}

void view__bubbles_read(struct view_timeline *tl)
{
	static const char stages[] = "SELECT clock = 'device', rank, ipu, stage FROM stage_sums "
				     "GROUP BY 1, 2, 3, 4";
	struct view_bubbles *bubbles = &tl->bubbles;
	struct prof_query *query;

	arena_reset(&bubbles->arena);
	bubbles->rows = NULL;
	bubbles->count = 0;
	bubbles->first = 0;
	bubbles->last = -1;
	if (tl->status != ST_OK)
		return;
	bubbles->stages[0] = bubbles->stages[1] = 0;
	tl->status = prof_query_open(&query, tl->db, stages, &tl->err);
	while (prof_query_next(query, &tl->status, &tl->err)) {
		const int clock = prof_column_int(query, 0) == 1;

		view_add_stage(tl, clock, prof_column_int(query, 3), NULL);
		for (int i = 0; i < tl->all_lanes; i++)
			if (tl->lanes[i].track->clock == clock &&
			    tl->lanes[i].track->rank == prof_column_int(query, 1) &&
			    tl->lanes[i].track->ipu == prof_column_int(query, 2))
				view_add_stage(tl, clock, prof_column_int(query, 3), &tl->lanes[i]);
	}
	prof_query_close(query);
	for (int c = 0; c < 2 && tl->status == ST_OK; c++) {
		struct view_bubble *mean = &bubbles->mean[c];

		*mean = (struct view_bubble){.mean = true};
		tl->status = prof_query_open(&query, tl->db, MEANS ":clock" MODE, &tl->err);
		prof_query_text(query, ":clock", c ? "device" : "host");
		if (prof_query_next(query, &tl->status, &tl->err) &&
		    prof_column_int(query, 0) > 0) {
			mean->runs = prof_column_int(query, 0);
			mean->idle = prof_column_real(query, 1);
			mean->theory = prof_column_real(query, 2);
			for (int i = VIEW_CAUSE_RAMP_UP; i < VIEW_CAUSES; i++)
				mean->part[i] = prof_column_real(query, 2 + i);
			mean->makespan_ns = prof_column_int(query, 7);
			mean->mean_makespan_ns = prof_column_int(query, 8);
		}
		prof_query_close(query);
	}
}

/* ---- the window ------------------------------------------------------------------------------ */

/* Estimate the number of spans of the clock's pipeline lanes in the window; *@exact: the picture
 * has every work of the visible lanes. */
static int64_t view_count_spans(const struct view_timeline *tl, int clock, bool *exact)
{
	int64_t spans = 0, lanes = 0, all = 0;

	*exact = true;
	for (int i = 0; i < tl->all_lanes; i++) {
		const struct view_lane *lane = &tl->lanes[i];

		if (!lane->pipeline || lane->track->clock != clock)
			continue;
		all++;
		lanes += lane->rows > 0;
		for (int b = 0; b < lane->bar_count && lane->rows > 0; b++) {
			spans = sat_add(spans, lane->bars[b].count);
			*exact = *exact && (lane->bars[b].span_id != IPS_NULL ||
					    lane->bars[b].depth != lane->work_depth);
		}
	}
	return lanes > 0 ? (int64_t)fmin((double)spans * (double)all / (double)lanes, 1e18)
			 : INT64_MAX;
}

static const struct prof_track *view_run_track(const struct view_timeline *tl,
					       const struct view_pipeline_run *run)
{
	return tl->lanes[run->group].track;
}

/* Read the rows for the executions of the window's runs, if these are few and of one rank. */
static void view_read_rows(struct view_timeline *tl)
{
	struct view_bubbles *bubbles = &tl->bubbles;
	struct view_window of = VIEW_NO_WINDOW; /* executions */
	int64_t rank = 0;
	bool more;

	bubbles->known = tl->run_count > 0 && tl->run_count <= 2 * MOST_RUNS;
	for (int i = 0; i < tl->run_count && bubbles->known; i++) {
		const struct view_pipeline_run *run = &tl->runs[i];

		rank = view_run_track(tl, &tl->runs[0])->rank;
		view__include(&of, run->execution, run->execution);
		bubbles->known =
			run->execution != IPS_NULL && view_run_track(tl, run)->rank == rank;
	}
	if (!bubbles->known || tl->status != ST_OK ||
	    (of.from >= bubbles->first && of.to <= bubbles->last && rank == bubbles->rank))
		return;
	arena_reset(&bubbles->arena);
	bubbles->count = 0;
	bubbles->rank = rank;
	bubbles->first = of.from;
	bubbles->last = of.to;
	tl->status = prof_timeline_bubbles(tl->db, rank, of.from, of.to, MOST_ROWS, &bubbles->arena,
					   &bubbles->rows, &bubbles->count, &more, &tl->err);
}

/* Find the run's row of bubbles; NULL: unknown. */
static const struct prof_bubble *view_row_of_run(const struct view_timeline *tl,
						 const struct view_pipeline_run *run)
{
	const struct prof_track *track = view_run_track(tl, run);
	const int64_t replica = view__replica_of(tl, track->ipu);

	for (int i = 0; i < tl->bubbles.count && tl->bubbles.known; i++) {
		const struct prof_bubble *row = &tl->bubbles.rows[i];

		if (row->clock == track->clock && row->execution == run->execution &&
		    row->weight_update == run->weight_update &&
		    (replica == IPS_NULL || row->replica == IPS_NULL || row->replica == replica))
			return row;
	}
	return NULL;
}

/* Is there training on the clock in the window? Then the bubble is that of training only. */
static bool view_has_training(const struct view_timeline *tl, int clock)
{
	for (int i = 0; i < tl->run_count; i++)
		if (view_run_track(tl, &tl->runs[i])->clock == clock &&
		    tl->runs[i].weight_update != IPS_NULL)
			return true;
	return false;
}

static bool view_run_counts(const struct view_timeline *tl, const struct view_pipeline_run *run,
			    int clock, bool trains)
{
	return view_run_track(tl, run)->clock == clock &&
	       (run->weight_update != IPS_NULL) == trains;
}

/* Add up the rows of the clock's runs; runs 0: none has a row (they have not ended yet). */
static struct view_bubble view_sum_runs(const struct view_timeline *tl, int clock)
{
	const bool trains = view_has_training(tl, clock);
	struct view_bubble out = {.update = IPS_NULL};
	double total = 0;

	for (int i = 0; i < tl->run_count; i++) {
		const struct prof_bubble *row = view_run_counts(tl, &tl->runs[i], clock, trains)
							? view_row_of_run(tl, &tl->runs[i])
							: NULL;

		if (!row)
			continue;
		out.runs++;
		out.update = row->weight_update;
		out.theory += row->theory_idle_fraction;
		out.part[VIEW_CAUSE_RAMP_UP] += (double)row->ramp_up_ns;
		out.part[VIEW_CAUSE_RAMP_DOWN] += (double)row->ramp_down_ns;
		out.part[VIEW_CAUSE_IMBALANCE] += (double)row->imbalance_ns;
		out.part[VIEW_CAUSE_COMMUNICATION] += (double)row->communication_ns;
		out.mean_makespan_ns += row->makespan_ns;
		out.makespan_ns = max(row->makespan_ns, out.makespan_ns);
		total += (double)row->busy_ns;
	}
	for (int i = VIEW_CAUSE_RAMP_UP; i < VIEW_CAUSES; i++)
		total += out.part[i];
	for (int i = VIEW_CAUSE_RAMP_UP; i < VIEW_CAUSES; i++) {
		out.part[i] = total > 0 ? out.part[i] / total : NAN;
		out.idle += out.part[i];
	}
	out.mean_makespan_ns /= max(out.runs, 1);
	out.theory /= (double)out.runs;
	return out;
}

/* ---- the works of a piece -------------------------------------------------------------------- */

/* One work of a lane within a pipeline run (group, execution, weight update). */
struct view_work {
	int64_t lane, group, execution, weight_update;
	int64_t from, to, stage, microbatch;
	char phase;
};

/* A piece of the window with the works of all IPUs of a clock: those that overlap it, and on each
 * lane the one before and the one after. */
struct view_work_piece {
	struct view_timeline *tl;
	int clock, level;          /* level: for reading bars; -1: spans */
	struct arena bars;         /* reset for each lane */
	struct view_window window; /* of the piece */
	int64_t group;
	struct view_work *works; /* owned; sorted by run, lane and start */
	size_t count, capacity;
	/* The run being split. */
	const struct view_work *run_works; /* sorted by lane, then start */
	size_t run_count;
	struct view_pipeline_run *run; /* of the picture; NULL: the picture does not have it */
	const struct view_work **made; /* owned; sorted by phase, stage, micro-batch */
	struct view_window *cover;     /* owned; times when any of its IPUs works */
	size_t cover_count;
	int64_t first, last; /* of the cover; may lie outside the piece */
};

static void view_add_work(struct view_work_piece *piece, const struct view_work *work)
{
	struct view_timeline *tl = piece->tl;

	if (mem_grow(&piece->works, &piece->capacity, piece->count + 1, sizeof(*piece->works))) {
		tl->status = err_nomem(&tl->err);
		return;
	}
	view_add_stage(tl, piece->clock, work->stage, &tl->lanes[work->lane]);
	piece->works[piece->count++] = *work;
}

/* Add the works of lane @index that overlap @window. */
static void view_read_works(struct view_work_piece *piece, int index, struct view_window window)
{
	struct view_timeline *tl = piece->tl;
	const struct view_lane *lane = &tl->lanes[index];
	struct prof_bar *bars = NULL;
	const int levels[] = {piece->level, -1};
	bool spans = false;
	int count = 0;

	for (size_t i = 0; i < ARRAY_LEN(levels) && tl->status == ST_OK && !spans; i++) {
		arena_reset(&piece->bars);
		tl->status = prof_timeline_bars_at(
			tl->db, lane->track->track_id, levels[i], window.from, window.to,
			tl->clock[piece->clock].extent.to, &piece->bars, &bars, &count, &tl->err);
		/* Bars at a coarser level may contain buckets of work: then read spans. */
		spans = tl->status == ST_OK;
		for (int b = 0; b < count && spans; b++)
			spans = bars[b].depth != lane->work_depth || bars[b].span_id != IPS_NULL;
	}
	for (int i = 0; i < count && tl->status == ST_OK; i++) {
		const struct prof_bar *bar = &bars[i];

		if (view__is_work(tl, lane, bar))
			view_add_work(piece,
				      &(struct view_work){index, piece->group, bar->execution,
							  bar->weight_update, bar->start_ns,
							  bar->start_ns + bar->dur_ns, bar->stage,
							  bar->microbatch, view__phase(tl, bar)});
	}
}

/* Find the work of lane @index before @window, or after it; false: none within MOST_TRIES spans. */
static bool view_find_neighbour(struct view_work_piece *piece, int index, struct view_window window,
				bool forward, struct view_work *out)
{
	const struct view_lane *lane = &piece->tl->lanes[index];
	int64_t time = forward ? window.to - 1 : window.from;

	for (int i = 0; i < MOST_TRIES; i++) {
		struct prof_span span;
		int64_t end;

		/* The next span, or the one at work_depth that contains it. */
		if (!view__next_span(piece->tl, lane->track, time, forward, &piece->bars, &span) ||
		    (span.depth > lane->work_depth &&
		     !view__span_at(piece->tl, lane->track, span.start_ns, lane->work_depth,
				    &piece->bars, &span)))
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
		/* Spans inside a span that is not work are not work either. */
		if (forward)
			time = span.depth == lane->work_depth && end > time + 1
				       ? end - 1
				       : max(span.start_ns, time + 1);
		else
			time = min(span.start_ns, time - 1);
	}
	return false;
}

static bool view_same_run(const struct view_work *a, const struct view_work *b)
{
	return a->group == b->group && a->execution == b->execution &&
	       a->weight_update == b->weight_update;
}

/* Read the lane's works. *@waits: extended to the end of its last idle time in the window if that
 * is within a run. */
static void view_read_lane(struct view_work_piece *piece, int index, int64_t *waits)
{
	const struct view_window window = piece->window;
	const size_t first = piece->count;
	struct view_work before, after;

	view_read_works(piece, index, window);
	if (piece->tl->status != ST_OK)
		return;
	if (view_find_neighbour(piece, index, window, false, &before) && before.to <= window.from)
		view_add_work(piece, &before);
	if (!view_find_neighbour(piece, index, window, true, &after))
		return;
	for (size_t i = first; i < piece->count; i++)
		if (view_same_run(&piece->works[i], &after))
			*waits = max(after.from, *waits);
	view_add_work(piece, &after);
}

static int view_compare_run(const void *left, const void *right)
{
	const struct view_work *a = left, *b = right;

	return SORTED_BY(a, b, group, execution, weight_update, lane, from, to);
}

/* Replace piece->works by those of piece->window, without duplicates. */
static void view_read_piece(struct view_work_piece *piece)
{
	struct view_timeline *tl = piece->tl;
	int64_t waits = piece->window.to;
	size_t used = 0;

	piece->count = 0;
	/* Two passes on the host: a lane that waits beyond the window waits for works beyond it. */
	for (int pass = 0; pass < 2; pass++) {
		const struct view_window beyond = {piece->window.to, waits};

		if (pass == 1 && (piece->clock == IPS_DEVICE || waits <= piece->window.to))
			break;
		for (int i = 0; i < tl->all_lanes; i++) {
			if (!tl->lanes[i].pipeline || tl->lanes[i].track->clock != piece->clock)
				continue;
			if (view__stopped(tl))
				return;
			piece->group = view__group(tl, &tl->lanes[i]);
			if (pass == 0)
				view_read_lane(piece, i, &waits);
			else
				view_read_works(piece, i, beyond);
		}
	}
	if (piece->count == 0)
		return;
	qsort(piece->works, piece->count, sizeof(*piece->works), view_compare_run);
	for (size_t i = 1; i < piece->count; i++)
		if (view_compare_run(&piece->works[i], &piece->works[used]) != 0 ||
		    piece->works[i].microbatch != piece->works[used].microbatch)
			piece->works[++used] = piece->works[i];
	piece->count = used + 1;
}

/* ---- causes ---------------------------------------------------------------------------------- */

/* Add the part of a lane's idle time that is in the piece to the sums and to the lane's cells. */
static void view_add_gap(const struct view_work_piece *piece, int64_t index, int64_t from,
			 int64_t to, enum view_cause cause)
{
	struct view_timeline *tl = piece->tl;
	struct view_lane *lane = &tl->lanes[index];
	const struct view_window window = tl->clock[piece->clock].window;

	from = max(from, piece->window.from);
	to = min(to, piece->window.to);
	if (to <= from)
		return;
	tl->bubbles.cause_ns[piece->clock][cause] += to - from;
	if (piece->run)
		piece->run->idle_ns[cause] += to - from;
	if (index == tl->cursor.lane && tl->cursor.ns >= from && tl->cursor.ns < to)
		tl->bubbles.at_cursor = cause;
	if (!lane->cause_ns)
		return;
	for (int64_t x = max(0, view_window_column(window, tl->width, from)),
		     end = view_window_column(window, tl->width, to - 1);
	     x <= end && x < tl->width; x++)
		lane->cause_ns[x * VIEW_CAUSES + cause] +=
			min(to, view_window_time(window, tl->width, x + 1)) -
			max(from, view_window_time(window, tl->width, x));
}

static int view_compare_key(const void *left, const void *right)
{
	const struct view_work *a = *(const struct view_work *const *)left;
	const struct view_work *b = *(const struct view_work *const *)right;

	return SORTED_BY(a, b, phase, stage, microbatch);
}

/* Return when the input of @work was ready; INT64_MAX: it comes from no other IPU; IPS_NULL: before
 * the works of the piece. */
static int64_t view_input_ready(const struct view_work_piece *piece, const struct view_work *work)
{
	const int64_t stages = piece->tl->bubbles.stages[piece->clock];
	const bool turn = work->phase == IPS_BACKWARD && work->stage == stages - 1;
	const struct view_work key = {.phase = turn ? IPS_FORWARD : work->phase,
				      .stage = turn ? work->stage
					       : work->phase == IPS_FORWARD
						       ? sat_sub(work->stage, 1)
						       : sat_add(work->stage, 1),
				      .microbatch = work->microbatch};
	const struct view_work *wanted = &key;
	const struct view_work **found;

	if (work->phase != IPS_FORWARD && work->phase != IPS_BACKWARD)
		return INT64_MAX;
	found = bsearch(&wanted, piece->made, piece->run_count, sizeof(*piece->made),
			view_compare_key);
	if (found)
		return (*found)->lane == work->lane ? INT64_MAX : (*found)->to;
	/* No other IPU makes it: the lane works on that stage as well, or no such stage exists. */
	if (key.stage < 0 || key.stage >= stages ||
	    (key.stage < 64 && piece->tl->lanes[work->lane].stages & UINT64_C(1) << key.stage))
		return INT64_MAX;
	return IPS_NULL;
}

/* Split the idle time from @from until @next. Host: imbalance until the input is ready, then
 * communication. Device: communication while no IPU works, else imbalance. */
static void view_split_wait(const struct view_work_piece *piece, const struct view_work *next,
			    int64_t from)
{
	const int64_t to = next->from;
	size_t low;

	if (piece->clock == IPS_HOST) {
		const int64_t made = min(max(view_input_ready(piece, next), from), to);

		view_add_gap(piece, next->lane, from, made, VIEW_CAUSE_IMBALANCE);
		view_add_gap(piece, next->lane, made, to, VIEW_CAUSE_COMMUNICATION);
		return;
	}
	SORTED_FIRST(low, 0, piece->cover_count, piece->cover[low].to <= from);
	for (; low < piece->cover_count && piece->cover[low].from < to; low++) {
		const struct view_window *busy = &piece->cover[low];

		view_add_gap(piece, next->lane, from, busy->from, VIEW_CAUSE_COMMUNICATION);
		from = max(busy->from, from);
		view_add_gap(piece, next->lane, from, min(busy->to, to), VIEW_CAUSE_IMBALANCE);
		from = busy->to;
	}
	view_add_gap(piece, next->lane, from, to, VIEW_CAUSE_COMMUNICATION);
}

/* Split one lane of the run: its @count works, sorted by start. An IPU without works is in ramp-up,
 * or in ramp-down if it already works on a later run. */
static void view_split_lane(const struct view_work_piece *piece, int64_t lane,
			    const struct view_work *works, size_t count)
{
	int64_t at;

	if (count == 0) {
		bool later = false;

		for (size_t i = 0; i < piece->count; i++)
			later |= piece->works[i].lane == lane &&
				 piece->works[i].from < piece->window.to &&
				 piece->works[i].from > piece->first;
		view_add_gap(piece, lane, piece->first, piece->last,
			     later ? VIEW_CAUSE_RAMP_DOWN : VIEW_CAUSE_RAMP_UP);
		return;
	}
	at = works[0].from;
	view_add_gap(piece, lane, piece->first, at, VIEW_CAUSE_RAMP_UP);
	for (size_t i = 0; i < count; i++) {
		if (works[i].from > at)
			view_split_wait(piece, &works[i], at);
		at = max(works[i].to, at);
	}
	view_add_gap(piece, lane, at, piece->last, VIEW_CAUSE_RAMP_DOWN);
}

static int view_compare_time(const void *left, const void *right)
{
	const struct view_window *a = left, *b = right;

	return SORTED_BY(a, b, from);
}

/* Collect when any IPU of the run works, as disjoint windows, and sort the works by key. */
static void view_index_run(struct view_work_piece *piece)
{
	struct view_window *cover = piece->cover;
	size_t used = 0;

	for (size_t i = 0; i < piece->run_count; i++) {
		cover[i] = (struct view_window){piece->run_works[i].from, piece->run_works[i].to};
		piece->made[i] = &piece->run_works[i];
	}
	qsort(piece->made, piece->run_count, sizeof(*piece->made), view_compare_key);
	qsort(cover, piece->run_count, sizeof(*cover), view_compare_time);
	for (size_t i = 1; i < piece->run_count; i++) {
		if (cover[i].from > cover[used].to)
			cover[++used] = cover[i];
		else
			cover[used].to = max(cover[i].to, cover[used].to);
	}
	piece->cover_count = used + 1;
	piece->first = cover[0].from;
	piece->last = cover[used].to;
}

static void view_split_run(struct view_work_piece *piece)
{
	struct view_timeline *tl = piece->tl;
	const struct view_work *works = piece->run_works;

	piece->run = NULL;
	for (int i = 0; i < tl->run_count && !piece->run; i++)
		if (tl->runs[i].group == works->group &&
		    tl->runs[i].execution == works->execution &&
		    tl->runs[i].weight_update == works->weight_update)
			piece->run = &tl->runs[i];
	view_index_run(piece);
	for (int lane = 0; lane < tl->all_lanes; lane++) {
		size_t from = 0, to;

		if (!tl->lanes[lane].pipeline || view__group(tl, &tl->lanes[lane]) != works->group)
			continue;
		while (from < piece->run_count && works[from].lane < lane)
			from++;
		for (to = from; to < piece->run_count && works[to].lane == lane;)
			to++;
		view_split_lane(piece, lane, works + from, to - from);
	}
	if (!piece->run)
		return;
	/* The visible lanes may have shown only a part of the run. */
	piece->run->from = min(piece->first, piece->run->from);
	piece->run->to = max(piece->last, piece->run->to);
}

/* Split the idle time of a clock's runs in the window, piece by piece. */
static void view_split_clock(struct view_timeline *tl, int clock)
{
	const struct view_window window = tl->clock[clock].window;
	struct view_work_piece piece = {.tl = tl, .clock = clock, .level = -1};
	bool exact;
	const int64_t spans = view_count_spans(tl, clock, &exact);
	const int64_t pieces = exact ? 1 : spans / PIECE_ROWS + 1;

	tl->bubbles.split[clock] = exact || spans <= MOST_SPLIT;
	if (!tl->bubbles.split[clock])
		return;
	if (exact)
		piece.level = prof_timeline_level(window.to - window.from, tl->width);
	(void)arena_init(&piece.bars, 0);
	for (int64_t i = 0; i < pieces && tl->status == ST_OK; i++) {
		piece.window.from = view_window_time(window, (int)pieces, i);
		piece.window.to =
			i + 1 < pieces ? view_window_time(window, (int)pieces, i + 1) : window.to;
		view_read_piece(&piece);
		piece.cover = mem_calloc(piece.count + 1, sizeof(*piece.cover));
		piece.made = mem_calloc(piece.count + 1, sizeof(*piece.made));
		if (tl->status == ST_OK && (!piece.cover || !piece.made))
			tl->status = err_nomem(&tl->err);
		for (size_t from = 0, to = 0; from < piece.count && tl->status == ST_OK;
		     from = to) {
			while (to < piece.count &&
			       view_same_run(&piece.works[to], &piece.works[from]))
				to++;
			piece.run_works = &piece.works[from];
			piece.run_count = to - from;
			view_split_run(&piece);
		}
		mem_free(piece.cover);
		mem_free(piece.made);
	}
	mem_free(piece.works);
	arena_fini(&piece.bars);
}

/* Mark cells that are idle for at least half of their time with their main cause. */
static void view_mark_causes(struct view_timeline *tl, struct view_lane *lane)
{
	const struct view_window window = tl->clock[lane->track->clock].window;
	struct view_lane_cell *columns = &lane->columns[(size_t)lane->work_row * (size_t)tl->width];

	for (int x = 0; x < tl->width; x++) {
		const int64_t *of = &lane->cause_ns[x * VIEW_CAUSES];
		const int64_t ns = view_window_time(window, tl->width, x + 1) -
				   view_window_time(window, tl->width, x);
		int64_t sum = 0;
		int best = VIEW_CAUSE_RAMP_UP;

		for (int c = VIEW_CAUSE_RAMP_UP; c < VIEW_CAUSES; c++) {
			sum += of[c];
			best = of[c] > of[best] ? c : best;
		}
		if (sum > 0 && sum * 2 >= ns)
			columns[x].cause = (uint8_t)best;
	}
}

static void view_load_causes(struct view_timeline *tl)
{
	struct view_bubbles *bubbles = &tl->bubbles;

	bubbles->split[0] = bubbles->split[1] = false;
	bubbles->at_cursor = VIEW_NO_CAUSE;
	memset(bubbles->cause_ns, 0, sizeof(bubbles->cause_ns));
	for (int i = 0; i < tl->all_lanes; i++)
		tl->lanes[i].cause_ns = NULL;
	if (!tl->choice.by_cause || tl->choice.way != VIEW_GANTT)
		return;
	for (int i = 0; i < tl->lane_count; i++) {
		struct view_lane *lane = &tl->lanes[i];

		if (lane->rows > 0 && lane->pipeline && lane->work_row >= 0)
			lane->cause_ns =
				view__alloc(tl, &tl->picture, (size_t)tl->width * VIEW_CAUSES,
					    sizeof(*lane->cause_ns));
	}
	for (int c = 0; c < 2 && tl->status == ST_OK; c++)
		if (tl->clock[c].present)
			view_split_clock(tl, c);
	for (int i = 0; i < tl->lane_count && tl->status == ST_OK; i++)
		if (tl->lanes[i].cause_ns)
			view_mark_causes(tl, &tl->lanes[i]);
}

void view__bubble_load(struct view_timeline *tl)
{
	view_read_rows(tl);
	for (int c = 0; c < 2; c++) {
		bool exact;

		(void)view_count_spans(tl, c, &exact);
		tl->bubbles.shown[c] = exact ? view_sum_runs(tl, c) : (struct view_bubble){0};
		if (tl->bubbles.shown[c].runs == 0)
			tl->bubbles.shown[c] = tl->bubbles.mean[c];
	}
	if (tl->status == ST_OK)
		view_load_causes(tl);
}

/* ---- the query ------------------------------------------------------------------------------- */

void view__bubble_query(const struct view_timeline *tl, int clock, struct str *out)
{
	const struct view_bubble *bubble = &tl->bubbles.shown[clock];
	const bool trains = view_has_training(tl, clock);
	struct view_window of = VIEW_NO_WINDOW; /* weight updates or executions */

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

			view__include(&of, at, at);
		}
	str_addf(out,
		 "SELECT weight_update, idle_fraction, theory_idle_fraction, makespan_ns, busy_ns, "
		 "ramp_up_ns, ramp_down_ns, imbalance_ns, communication_ns\nFROM bubbles WHERE "
		 "clock = '%s' AND %s BETWEEN %lld AND %lld;\n",
		 clock ? "device" : "host",
		 bubble->update == IPS_NULL ? "weight_update IS NULL AND execution"
					    : "weight_update",
		 (long long)of.from, (long long)of.to);
}
