/*
 * Why IPUs are idle within pipeline runs: each gap between two works of a lane by its cause, as
 * docs/cost-model.md (Bubbles) defines them, so that the gaps of a run add up to its row of the
 * view bubbles.
 *
 * Of the window only, however long its runs are: a piece of it knows what works there, and on each
 * lane what came before and what comes after (view_timeline_works.c), which decides what an idle
 * time in it is for. A window of many works is looked at piece by piece, so that memory is bounded;
 * one of more spans than MOST_ROWS is not split.
 *
 * Threading: one thread. Ownership: cells are the picture's; a piece's works are let go after it.
 */
#include "viewer/timeline/view_timeline_causes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"

#define MOST_ROWS  150000 /* spans of the window: some tenths of a second */
#define PIECE_ROWS 8192

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
	tl->cause_ns[piece->clock][cause] += to - from;
	if (blame->run)
		blame->run->idle_ns[cause] += to - from;
	if (index == tl->lane && tl->cursor_ns >= from && tl->cursor_ns < to)
		tl->cursor_cause = cause;
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
	const int64_t stages = blame->piece->tl->stages[blame->piece->clock];
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

	tl->split[clock] = exact || rows <= MOST_ROWS;
	if (!tl->split[clock])
		return ST_OK;
	if (exact)
		piece.level = prof_timeline_level(window.to - window.from, tl->width);
	(void)arena_init(&piece.bars, 0);
	for (int64_t i = 0; i < pieces && status == ST_OK; i++) {
		const struct view_window part = {
			view_window_time(window, (int)pieces, i),
			i + 1 < pieces ? view_window_time(window, (int)pieces, i + 1) : window.to};

		status = view__piece_load(&piece, context, part, err);
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

	tl->split[0] = tl->split[1] = false;
	tl->cursor_cause = VIEW_NO_CAUSE;
	memset(tl->cause_ns, 0, sizeof(tl->cause_ns));
	for (int i = 0; i < tl->all_lanes; i++)
		tl->lanes[i].cause_ns = NULL;
	if (!tl->by_cause || tl->way != VIEW_GANTT)
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
