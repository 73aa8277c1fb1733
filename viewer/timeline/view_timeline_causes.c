/*
 * Why IPUs are idle within pipeline runs: each gap between two works of a lane by its cause, as
 * docs/cost-model.md (Bubbles) defines them, so that the gaps of a run add up to its row of the
 * view bubbles.
 *
 * A run at the window's edge needs its works beyond the edge: the picture's reach is widened by the
 * longest makespan there is. Runs of more than MOST_WORKS works are not split.
 *
 * Threading: one thread. Ownership: the arena of the picture.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/sat.h"

#define MOST_WORKS   2048  /* of a pipeline run */
#define MOST_LANES   64    /* of IPUs on a clock */
#define MOST_COLUMNS 16384 /* of the wider look */

/* One work of a lane within a pipeline run. */
struct view_work {
	int run, lane;
	int64_t from, to, stage, microbatch;
	char phase;
};

struct view_causes {
	struct view_timeline *tl;
	struct view_work *works; /* by run, lane and start */
	size_t count, capacity;
	struct view_window *cover; /* of the present run: when any of its IPUs works */
	int cover_count;
	int64_t first, last; /* of the present run */
	int stages;
	bool lockstep; /* the device */
};

/* --- works ------------------------------------------------------------------------------------ */

static int view_by_run(const void *left, const void *right)
{
	const struct view_work *a = left, *b = right;

	if (a->run != b->run)
		return a->run < b->run ? -1 : 1;
	if (a->lane != b->lane)
		return a->lane < b->lane ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

static int view_by_time(const void *left, const void *right)
{
	const struct view_window *a = left, *b = right;

	return a->from < b->from ? -1 : a->from > b->from;
}

static int view_run_of(const struct view_timeline *tl, int64_t group, const struct prof_bar *bar)
{
	for (int i = 0; i < tl->run_count; i++)
		if (tl->runs[i].group == group && tl->runs[i].execution == bar->execution &&
		    tl->runs[i].weight_update == bar->weight_update)
			return i;
	return -1;
}

/* The works of @lane in @reach that belong to runs of the window; false: they cannot be told one
 * from another. */
static bool view_read_works(struct view_causes *causes, struct prof_db *db, int index,
			    struct view_window reach, int columns)
{
	struct view_timeline *tl = causes->tl;
	const struct view_lane *lane = &tl->lanes[index];
	const int64_t group = view__group(tl, lane);
	struct prof_bar *bars;
	int count;

	if (prof_timeline_bars(db, lane->track->track_id, reach.from, reach.to, columns, reach.to,
			       &tl->picture, &bars, &count, NULL) != ST_OK)
		return false;
	for (int i = 0; i < count; i++) {
		int run;

		if (bars[i].depth != lane->work_depth)
			continue;
		if (bars[i].span_id == VIEW_NONE_ID)
			return false;
		if (!view__is_work(tl, lane, &bars[i]) ||
		    (run = view_run_of(tl, group, &bars[i])) < 0)
			continue;
		if (causes->count == causes->capacity)
			return false;
		causes->works[causes->count++] = (struct view_work){
			.run = run,
			.lane = index,
			.from = bars[i].start_ns,
			.to = bars[i].start_ns + bars[i].dur_ns,
			.stage = bars[i].stage,
			.microbatch = bars[i].microbatch,
			.phase = view__phase(tl, &bars[i]),
		};
	}
	return true;
}

/* --- blame ------------------------------------------------------------------------------------ */

static void view_add_gap(struct view_causes *causes, int run, int lane, int64_t from, int64_t to,
			 enum view_cause cause)
{
	struct view_timeline *tl = causes->tl;

	if (to > from && tl->gap_count < tl->gap_capacity)
		tl->gaps[tl->gap_count++] = (struct view_gap){run, lane, cause, {from, to}};
}

/* When the input of @work was made; INT64_MAX where it comes from no other IPU. */
static int64_t view_made(const struct view_causes *causes, const struct view_work *works, int count,
			 const struct view_work *work)
{
	const bool turn = work->phase == 'B' && work->stage == causes->stages - 1;
	const char phase = turn ? 'F' : work->phase;
	const int64_t stage = turn                 ? work->stage
			      : work->phase == 'F' ? sat_sub(work->stage, 1)
						   : sat_add(work->stage, 1);

	if (work->phase != 'F' && work->phase != 'B')
		return INT64_MAX;
	for (int i = 0; i < count; i++)
		if (works[i].phase == phase && works[i].stage == stage &&
		    works[i].microbatch == work->microbatch)
			return works[i].lane == work->lane ? INT64_MAX : works[i].to;
	return INT64_MAX;
}

/* On the device: while no IPU works it is communication, else imbalance. */
static void view_split_lockstep(struct view_causes *causes, int run, int lane, int64_t from,
				int64_t to)
{
	for (int i = 0; i < causes->cover_count && from < to; i++) {
		const struct view_window *busy = &causes->cover[i];

		if (busy->to <= from)
			continue;
		if (busy->from > from)
			view_add_gap(causes, run, lane, from, busy->from < to ? busy->from : to,
				     VIEW_CAUSE_COMMUNICATION);
		if (busy->from >= to)
			return;
		from = busy->from > from ? busy->from : from;
		view_add_gap(causes, run, lane, from, busy->to < to ? busy->to : to,
			     VIEW_CAUSE_IMBALANCE);
		from = busy->to;
	}
	view_add_gap(causes, run, lane, from, to, VIEW_CAUSE_COMMUNICATION);
}

static void view_split_wait(struct view_causes *causes, const struct view_work *works, int count,
			    const struct view_work *next, int64_t from)
{
	int64_t made;

	if (causes->lockstep) {
		view_split_lockstep(causes, next->run, next->lane, from, next->from);
		return;
	}
	made = view_made(causes, works, count, next);
	made = made < from ? from : made > next->from ? next->from : made;
	view_add_gap(causes, next->run, next->lane, from, made, VIEW_CAUSE_IMBALANCE);
	view_add_gap(causes, next->run, next->lane, made, next->from, VIEW_CAUSE_COMMUNICATION);
}

/* When any IPU of the run works, as disjoint windows. */
static bool view_cover(struct view_causes *causes, const struct view_work *works, int count)
{
	int used = 0;

	causes->cover = arena_alloc(&causes->tl->picture, (size_t)count, sizeof(*causes->cover));
	if (!causes->cover)
		return false;
	for (int i = 0; i < count; i++)
		causes->cover[i] = (struct view_window){works[i].from, works[i].to};
	qsort(causes->cover, (size_t)count, sizeof(*causes->cover), view_by_time);
	for (int i = 1; i < count; i++) {
		if (causes->cover[i].from > causes->cover[used].to)
			causes->cover[++used] = causes->cover[i];
		else if (causes->cover[i].to > causes->cover[used].to)
			causes->cover[used].to = causes->cover[i].to;
	}
	causes->cover_count = used + 1;
	causes->first = causes->cover[0].from;
	causes->last = causes->cover[used].to;
	return true;
}

/* One lane of one run: @count works by start, of the run's @all. */
static void view_blame_lane(struct view_causes *causes, const struct view_work *works, int count,
			    const struct view_work *all, int all_count)
{
	int64_t at = works[0].from;

	view_add_gap(causes, works[0].run, works[0].lane, causes->first, at, VIEW_CAUSE_RAMP_UP);
	for (int i = 0; i < count; i++) {
		if (works[i].from > at)
			view_split_wait(causes, all, all_count, &works[i], at);
		at = works[i].to > at ? works[i].to : at;
	}
	view_add_gap(causes, works[0].run, works[0].lane, at, causes->last, VIEW_CAUSE_RAMP_DOWN);
}

/* One run: @works, by lane. An IPU that does nothing is in ramp-up throughout. */
static bool view_blame_run(struct view_causes *causes, const struct view_work *works, int count)
{
	struct view_timeline *tl = causes->tl;
	const int64_t group = tl->runs[works[0].run].group;

	causes->stages = 0;
	for (int i = 0; i < count; i++)
		if (works[i].stage >= causes->stages)
			causes->stages = (int)works[i].stage + 1;
	if (!view_cover(causes, works, count))
		return false;
	for (int lane = 0, from = 0; lane < tl->all_lanes; lane++) {
		int to = from;

		if (!tl->lanes[lane].pipeline || view__group(tl, &tl->lanes[lane]) != group)
			continue;
		while (to < count && works[to].lane == lane)
			to++;
		if (to > from)
			view_blame_lane(causes, works + from, to - from, works, count);
		else
			view_add_gap(causes, works[0].run, lane, causes->first, causes->last,
				     VIEW_CAUSE_RAMP_UP);
		from = to;
	}
	/* What the window has shown of it may have been less. */
	tl->runs[works[0].run].from = causes->first;
	tl->runs[works[0].run].to = causes->last;
	return true;
}

/* --- a clock ---------------------------------------------------------------------------------- */

/* So far beyond the window the runs at its edges may reach; -1: unknown, or too much to read. */
static int64_t view_reach(const struct view_timeline *tl, int clock)
{
	int64_t most = -1;

	for (int i = 0; i < tl->run_count; i++) {
		const struct view_run *run = &tl->runs[i];
		const struct prof_bubble *bubble;

		if ((tl->lanes[run->group].track->clock == 1) != clock)
			continue;
		bubble = view__bubble_of(tl, run);
		if (bubble && bubble->stages * bubble->microbatches * 2 > MOST_WORKS)
			return -1;
		if (bubble && bubble->makespan_ns > most)
			most = bubble->makespan_ns;
	}
	return most >= 0 ? most : tl->mean_bubble[clock].makespan_ns;
}

static bool view_split_clock(struct view_causes *causes, struct prof_db *db, int clock)
{
	struct view_timeline *tl = causes->tl;
	const struct view_window window = tl->clock[clock].window;
	const int64_t beyond = view_reach(tl, clock);
	const struct view_window reach = {window.from - beyond, window.to + beyond};
	const int64_t cells = (reach.to - reach.from) / ((window.to - window.from) / tl->width + 1);
	int lanes = 0;

	if (beyond < 0)
		return false;
	causes->count = 0;
	causes->lockstep = clock == 1;
	for (int i = 0; i < tl->all_lanes; i++) {
		if (!tl->lanes[i].pipeline || (tl->lanes[i].track->clock == 1) != clock)
			continue;
		if (++lanes > MOST_LANES ||
		    !view_read_works(causes, db, i, reach,
				     (int)(cells * 2 < MOST_COLUMNS ? cells * 2 : MOST_COLUMNS)))
			return false;
	}
	if (causes->count == 0)
		return false;
	qsort(causes->works, causes->count, sizeof(*causes->works), view_by_run);
	for (size_t from = 0, to; from < causes->count; from = to) {
		for (to = from;
		     to < causes->count && causes->works[to].run == causes->works[from].run;)
			to++;
		if (!view_blame_run(causes, causes->works + from, (int)(to - from)))
			return false;
	}
	return true;
}

/* --- cells ------------------------------------------------------------------------------------ */

/* The cause that half of a cell or more is idle for. */
static void view_lay_gaps(struct view_timeline *tl, int index, int64_t *ns)
{
	struct view_lane *lane = &tl->lanes[index];
	const struct view_window window = tl->clock[lane->track->clock == 1].window;
	struct view_column *columns = &lane->columns[(size_t)lane->work_row * (size_t)tl->width];

	memset(ns, 0, (size_t)tl->width * VIEW_CAUSES * sizeof(*ns));
	for (int i = 0; i < tl->gap_count; i++) {
		const struct view_gap *gap = &tl->gaps[i];
		int64_t x, end;

		if (gap->lane != index || gap->at.to <= window.from || gap->at.from >= window.to)
			continue;
		x = view_window_column(window, tl->width, gap->at.from);
		end = view_window_column(window, tl->width, gap->at.to - 1);
		for (x = x < 0 ? 0 : x; x <= end && x < tl->width; x++) {
			const int64_t left = view_window_time(window, tl->width, x);
			const int64_t right = view_window_time(window, tl->width, x + 1);

			ns[x * VIEW_CAUSES + gap->cause] +=
				(gap->at.to < right ? gap->at.to : right) -
				(gap->at.from > left ? gap->at.from : left);
		}
	}
	for (int x = 0; x < tl->width; x++) {
		const int64_t *of = &ns[x * VIEW_CAUSES];
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

enum status view__causes_load(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	struct view_causes causes = {.tl = tl};
	int64_t *ns;

	tl->gap_count = 0;
	tl->split[0] = tl->split[1] = false;
	if (!tl->by_cause || tl->way != VIEW_GANTT || tl->run_count == 0 ||
	    tl->run_count > MOST_WORKS)
		return ST_OK;
	causes.capacity = (size_t)MOST_WORKS * 4;
	tl->gap_capacity = MOST_WORKS * 8;
	causes.works = arena_alloc(&tl->picture, causes.capacity, sizeof(*causes.works));
	tl->gaps = arena_alloc(&tl->picture, (size_t)tl->gap_capacity, sizeof(*tl->gaps));
	ns = arena_alloc(&tl->picture, (size_t)tl->width * VIEW_CAUSES, sizeof(*ns));
	if (!causes.works || !tl->gaps || !ns)
		return err_nomem(err);
	for (int c = 0; c < 2; c++)
		tl->split[c] = tl->clock[c].present && view_split_clock(&causes, db, c);
	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].rows > 0 && tl->lanes[i].pipeline && tl->lanes[i].work_row >= 0)
			view_lay_gaps(tl, i, ns);
	return ST_OK;
}

enum view_cause view__cause_at(const struct view_timeline *tl, int lane, int64_t time)
{
	for (int i = 0; i < tl->gap_count; i++)
		if (tl->gaps[i].lane == lane && time >= tl->gaps[i].at.from &&
		    time < tl->gaps[i].at.to)
			return tl->gaps[i].cause;
	return VIEW_NO_CAUSE;
}
