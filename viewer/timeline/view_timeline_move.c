/*
 * The timeline's requests: what a key does to the window, the cursor and the lane; jumps to spans,
 * idle times, children, parents and names.
 *
 * Only jumps read; the load that follows a request reads the rest. Each jump asks a bounded number
 * of bounded questions; what is further away is reported to be not there, with what to do. The
 * edges of an idle time are looked up, not read off the picture, whose buckets and window are wider
 * or narrower than what they show: one search each way.
 *
 * Threading: one thread. Ownership: bars are the picture's arena's.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"

#define EDGE_TRIES    16 /* spans of other depths on the way to an edge */
#define IDLE_COLUMNS  1024
#define MOST_SCANS    12
#define MOST_LOOKS    40 /* scans and edges */
#define MOST_GUESSES  256
#define MOST_TRIES    64
#define SCAN_COLUMNS  256
#define CHILD_LEVELS  12
#define MOST_WINDOWS  32
#define MOST_UNTRACED 1024    /* stretches in a window */
#define MOST_SEARCH   4000000 /* spans that one search looks at */

/* ---- around a moment ------------------------------------------------------------------------- */

/* The deepest span of the lane at @time, no deeper than work is; false: none. */
static bool view_work_at(struct view_timeline *tl, struct prof_db *db, int64_t time,
			 struct prof_span *out)
{
	const struct view_lane *lane = view__lane(tl);
	int64_t id;

	return prof_timeline_at(db, lane->track->track_id, time, lane->work_depth, &id, NULL) ==
		       ST_OK &&
	       id != IPS_NULL && prof_timeline_span(db, id, &tl->under.arena, out, NULL) == ST_OK;
}

/*
 * Where the next work after @time begins, or the last one before it ends; without any, the clock's
 * extent. false: too many spans of other depths on the way, *@edge is how far it is idle at least.
 */
static bool view_edge(struct view_timeline *tl, struct prof_db *db, int64_t time, bool forward,
		      int64_t *edge)
{
	const struct view_lane *lane = view__lane(tl);
	const struct view_clock *clock = view__clock(tl);
	int64_t from = forward ? time : time + 1; /* what begins at @time lies before it */

	*edge = time;
	for (int i = 0; i < EDGE_TRIES; i++) {
		struct prof_span span;
		int64_t id;

		if (prof_timeline_find(db, lane->track->track_id, lane->track->clock, NULL, from,
				       forward, &id, NULL) != ST_OK)
			return false;
		if (id == IPS_NULL) {
			*edge = forward ? clock->extent.to : clock->extent.from;
			return true;
		}
		if (prof_timeline_span(db, id, &tl->under.arena, &span, NULL) != ST_OK)
			return false;
		from = span.start_ns;
		if (span.depth != lane->work_depth)
			(void)view_work_at(tl, db, from, &span);
		if (span.depth == lane->work_depth && span.dur_ns != 0) {
			*edge = forward                   ? span.start_ns
				: span.dur_ns == IPS_NULL ? clock->extent.to
							  : span.start_ns + span.dur_ns;
			return true;
		}
		*edge = from;
	}
	return false;
}

/* What was not traced is no idle time: the gap is the one or the other. */
static void view_cut_dark(const struct view_timeline *tl, int64_t time, struct view_gap *gap)
{
	const struct view_lane *lane = &tl->lanes[tl->cursor.lane];
	struct view_window *at = &gap->at;
	struct view_dark dark;

	gap->dark = view__is_dark(tl, lane, time, &dark);
	if (gap->dark) {
		at->from = max(dark.at.from, at->from);
		at->to = min(dark.at.to, at->to);
		return;
	}
	for (int64_t next = at->from;
	     view__next_dark(tl, lane, next, &dark) && dark.at.from < at->to; next = dark.at.to) {
		if (dark.at.to <= time)
			at->from = dark.at.to;
		else
			at->to = dark.at.from;
	}
}

bool view__gap_at(struct view_timeline *tl, struct prof_db *db, int64_t time, struct view_gap *out)
{
	struct prof_span span;

	if (view_work_at(tl, db, time, &span) && span.depth == view__lane(tl)->work_depth)
		return false;
	out->begun = view_edge(tl, db, time, false, &out->at.from);
	out->ended = view_edge(tl, db, time, true, &out->at.to);
	if (out->at.from > time || out->at.to <= time)
		return false;
	view_cut_dark(tl, time, out);
	return true;
}

/* ---- the longest ----------------------------------------------------------------------------- */

/* Where a long idle time may be, and how long at most. */
struct view_guess {
	struct view_window at;
	int64_t most;
	bool bucket; /* within or around these spans; else between spans */
};

struct view_worst {
	struct view_window window, gap; /* gap: the longest in it so far; all of it */
	int64_t length;                 /* of it in the window; 0: none yet */
	struct view_guess guesses[MOST_GUESSES];
	int count, scans;
	int64_t forgotten; /* the most of those that there was no room for */
};

static int64_t view_clipped(struct view_window gap, struct view_window window)
{
	const int64_t from = max(gap.from, window.from);
	const int64_t to = min(gap.to, window.to);

	return to > from ? to - from : 0;
}

static void view_guess(struct view_worst *worst, struct view_guess guess)
{
	int least = 0;

	if (guess.at.to <= guess.at.from || guess.most <= worst->length)
		return;
	if (worst->count < MOST_GUESSES) {
		worst->guesses[worst->count++] = guess;
		return;
	}
	for (int i = 1; i < worst->count; i++)
		if (worst->guesses[i].most < worst->guesses[least].most)
			least = i;
	if (guess.most > worst->guesses[least].most) {
		const struct view_guess lesser = worst->guesses[least];

		worst->guesses[least] = guess;
		guess = lesser;
	}
	worst->forgotten = max(guess.most, worst->forgotten);
}

/* Between what is busy: the parts of it that were traced. @slack: what the neighbours may add. */
static void view_guess_between(const struct view_timeline *tl, struct view_worst *worst,
			       struct view_window at, int64_t slack)
{
	struct view_dark dark;

	while (at.from < at.to &&
	       view__next_dark(tl, &tl->lanes[tl->cursor.lane], at.from, &dark) &&
	       dark.at.from < at.to) {
		view_guess(worst, (struct view_guess){{at.from, dark.at.from},
						      dark.at.from - at.from + slack,
						      false});
		at.from = dark.at.to;
	}
	view_guess(worst, (struct view_guess){at, at.to - at.from + slack, false});
}

/* What the lane's bars in @window leave room for; @slack: what is idle beyond its edges at most. A
 * bucket's idle time may go on in the next one, so the emptier of two has at least half of it. */
static bool view_scan_idle(struct view_timeline *tl, struct prof_db *db, struct view_worst *worst,
			   struct view_window window, int64_t slack)
{
	const struct view_lane *lane = view__lane(tl);
	int64_t covered = window.from, before = slack;
	struct prof_bar *bars;
	int count;

	if (prof_timeline_bars(db, lane->track->track_id, window.from, window.to, IDLE_COLUMNS,
			       view__clock(tl)->extent.to, &tl->picture, &bars, &count,
			       NULL) != ST_OK)
		return false;
	for (int i = 0; i < count; i++) {
		const struct view_window bar = {bars[i].start_ns,
						bars[i].start_ns + bars[i].dur_ns};
		const bool bucket = bars[i].span_id == IPS_NULL;
		const int64_t idle = bucket ? bars[i].dur_ns - bars[i].busy_ns : 0;

		if (bars[i].depth != lane->work_depth || bars[i].busy_ns <= 0)
			continue;
		view_guess_between(tl, worst,
				   (struct view_window){covered, min(bar.from, window.to)},
				   before + idle);
		/* One that is no smaller than the window is known no better by looking into it. */
		if (bucket && view_clipped(bar, window) < view_clipped(window, window))
			view_guess(worst, (struct view_guess){{max(bar.from, window.from),
							       min(bar.to, window.to)},
							      2 * idle,
							      true});
		covered = max(bar.to, covered);
		before = idle;
	}
	view_guess_between(tl, worst, (struct view_window){covered, window.to}, before + slack);
	return true;
}

/* Take out the guess that promises most; false: none promises more than is known. */
static bool view_best_guess(struct view_worst *worst, struct view_guess *out)
{
	int best = 0;

	for (int i = 1; i < worst->count; i++)
		if (worst->guesses[i].most > worst->guesses[best].most)
			best = i;
	if (worst->count == 0 || worst->guesses[best].most <= worst->length)
		return false;
	*out = worst->guesses[best];
	worst->guesses[best] = worst->guesses[--worst->count];
	return true;
}

static void view_look(struct view_timeline *tl, struct prof_db *db, struct view_worst *worst,
		      const struct view_guess *guess)
{
	struct view_gap gap;
	int64_t length;

	if (guess->bucket) {
		if (worst->scans++ < MOST_SCANS)
			(void)view_scan_idle(tl, db, worst, guess->at, guess->most);
		else if (guess->most > worst->forgotten)
			worst->forgotten = guess->most;
		return;
	}
	if (!view__gap_at(tl, db, guess->at.from + (guess->at.to - guess->at.from) / 2, &gap) ||
	    gap.dark)
		return;
	length = view_clipped(gap.at, worst->window);
	if (length > worst->length) {
		worst->length = length;
		worst->gap = gap.at;
	}
}

static const char *view_kind_of_gap(const struct view_timeline *tl)
{
	return tl->choice.way == VIEW_BSP ? "time without stage work" : "idle time";
}

static bool view_jump_worst(struct view_timeline *tl, struct view_context *context)
{
	struct view_worst worst = {.window = view__clock(tl)->window};
	const struct view_window window = worst.window;
	const char *lane = view__lane(tl)->track->name, *kind = view_kind_of_gap(tl);
	struct view_guess guess = {window, 0, true};
	char length[VIEW_UNIT_SIZE];
	bool all = view_scan_idle(tl, context->source->db, &worst, window, 0), more;

	for (int i = 0; (more = view_best_guess(&worst, &guess)) && i < MOST_LOOKS; i++) {
		if (view_cancelled(context))
			break;
		view_look(tl, context->source->db, &worst, &guess);
	}
	all = all && !more && worst.forgotten <= worst.length;
	if (worst.length == 0) {
		snprintf(context->message, sizeof(context->message),
			 all ? "no %s of this lane in the window"
			     : "no %s of this lane found: zoom in",
			 kind);
		return false;
	}
	view__go(tl, tl->cursor.lane, view__lane(tl)->work_depth,
		 max(worst.gap.from, window.from) + worst.length / 2, IPS_NULL);
	snprintf(context->message, sizeof(context->message), "the longest %s of %s %s: %s", kind,
		 lane, all ? "in the window" : "that was found",
		 view__length_text(tl, view__lead(tl), length, worst.gap.to - worst.gap.from));
	return true;
}

static bool view_say(struct view_context *context, const char *text)
{
	snprintf(context->message, sizeof(context->message), "%s", text);
	return false;
}

static bool view_span_of(struct view_timeline *tl, struct prof_db *db, int64_t id,
			 struct prof_span *out)
{
	return id != IPS_NULL && prof_timeline_span(db, id, &tl->under.arena, out, NULL) == ST_OK;
}

static bool view_go_span(struct view_timeline *tl, const struct prof_span *span)
{
	const int lane = view__lane_of(tl, span->track_id);

	if (lane < 0)
		return false;
	view__go(tl, lane, span->depth, span->start_ns, span->span_id);
	return true;
}

/* ---- neighbours ------------------------------------------------------------------------------ */

/*
 * The next span of the lane at the cursor's depth. Forward, what lies inside the present one is
 * skipped by starting at its end; a parent that begins on the way is looked into.
 */
static bool view_jump_span(struct view_timeline *tl, struct view_context *context, bool forward)
{
	struct prof_db *db = context->source->db;
	const struct prof_track *track = view__lane(tl)->track;
	int64_t time = tl->cursor.ns, id;
	struct prof_span span;

	if (tl->under.selected != IPS_NULL && tl->under.span.depth == tl->cursor.depth) {
		time = tl->under.span.start_ns;
		if (forward && tl->under.span.dur_ns > 0)
			time += tl->under.span.dur_ns - 1;
	}
	for (int i = 0; i < MOST_TRIES; i++) {
		if (prof_timeline_find(db, track->track_id, track->clock, NULL, time, forward, &id,
				       NULL) != ST_OK ||
		    !view_span_of(tl, db, id, &span))
			return view_say(context, forward ? "no span after this one"
							 : "no span before this one");
		time = span.start_ns;
		if (span.depth != tl->cursor.depth &&
		    prof_timeline_at(db, track->track_id, time, tl->cursor.depth, &id, NULL) ==
			    ST_OK &&
		    !view_span_of(tl, db, id, &span))
			continue;
		if (span.depth == tl->cursor.depth && (!forward || span.start_ns > tl->cursor.ns))
			return view_go_span(tl, &span);
	}
	return view_say(context, "no span of this depth near by");
}

static bool view_jump_parent(struct view_timeline *tl, struct view_context *context)
{
	struct prof_span span;

	if (tl->under.selected == IPS_NULL)
		return view_say(context, "no span under the cursor");
	if (!view_span_of(tl, context->source->db, tl->under.span.parent_id, &span))
		return view_say(context, "this span has no parent");
	return view_go_span(tl, &span);
}

/* ---- the longest child ----------------------------------------------------------------------- */

/*
 * The child with most time in the window; where there are only buckets, the window of the fullest.
 */
static const struct prof_bar *view_longest(const struct prof_bar *bars, int count, int depth,
					   struct view_window *window)
{
	const struct prof_bar *best = NULL, *fullest = NULL;

	for (int i = 0; i < count; i++) {
		if (bars[i].depth != depth)
			continue;
		if (bars[i].span_id == IPS_NULL) {
			if (!fullest || bars[i].busy_ns > fullest->busy_ns)
				fullest = &bars[i];
		} else if (!best || bars[i].dur_ns > best->dur_ns) {
			best = &bars[i];
		}
	}
	if (best && (!fullest || best->dur_ns >= fullest->busy_ns))
		return best;
	if (fullest)
		*window = (struct view_window){fullest->start_ns,
					       fullest->start_ns + fullest->dur_ns};
	return best && !fullest ? best : NULL;
}

static bool view_jump_child(struct view_timeline *tl, struct view_context *context)
{
	struct prof_db *db = context->source->db;
	const struct view_clock *clock = view__clock(tl);
	struct view_window window;
	struct prof_span span;

	if (tl->under.selected == IPS_NULL)
		return view_say(context, "no span under the cursor");
	window.from = tl->under.span.start_ns;
	window.to = tl->under.span.dur_ns == IPS_NULL ? clock->extent.to
						      : window.from + tl->under.span.dur_ns;
	for (int i = 0; i < CHILD_LEVELS && window.to > window.from; i++) {
		const int64_t length = window.to - window.from;
		const struct prof_bar *best;
		struct prof_bar *bars;
		int count;

		if (prof_timeline_bars(db, tl->under.span.track_id, window.from, window.to,
				       2 * SCAN_COLUMNS, clock->extent.to, &tl->picture, &bars,
				       &count, NULL) != ST_OK)
			break;
		best = view_longest(bars, count, tl->under.span.depth + 1, &window);
		if (best)
			return view_span_of(tl, db, best->span_id, &span) &&
			       view_go_span(tl, &span);
		if (window.to - window.from >= length)
			break;
	}
	return view_say(context, "no span inside this one");
}

/* ---- gaps ------------------------------------------------------------------------------------ */

/* Busy intervals of the scan, in the direction of the jump: backward, times are negated. */
struct view_scan {
	int64_t covered; /* busy or looked at up to here */
	int64_t least;   /* a gap is at least that long, ns */
	bool started;    /* the cursor's own gap has been left */
	struct view_window gap;
};

static int view_compare_windows(const void *a, const void *b)
{
	const struct view_window *left = a, *right = b;

	return SORTED_BY(left, right, from);
}

/* The first gap before one of the @count busy windows; true: found. */
static bool view_scan_gaps(struct view_scan *scan, const struct view_window *busy, int count)
{
	for (int i = 0; i < count; i++) {
		if (busy[i].to <= scan->covered)
			continue;
		if (scan->started && busy[i].from - scan->covered >= scan->least) {
			scan->gap = (struct view_window){scan->covered, busy[i].from};
			return true;
		}
		scan->started = true;
		scan->covered = busy[i].to;
	}
	return false;
}

/* What of the lane in @window was not traced, as windows like those of view_busy(). */
static int view_untraced(const struct view_timeline *tl, struct view_window window, bool forward,
			 struct view_window *out, int most)
{
	struct view_dark dark;
	int used = 0;

	for (int64_t at = window.from;
	     used < most && view__next_dark(tl, &tl->lanes[tl->cursor.lane], at, &dark) &&
	     dark.at.from < window.to;
	     at = dark.at.to)
		out[used++] = forward ? dark.at : (struct view_window){-dark.at.to, -dark.at.from};
	return used;
}

/* The windows of the lane in @window that no idle time is in, by time in the direction; -1 on
 * failure. */
static int view_busy(struct view_timeline *tl, struct prof_db *db, struct view_window window,
		     bool forward, struct view_window **out)
{
	const struct view_lane *lane = view__lane(tl);
	struct prof_bar *bars;
	int count, used = 0;

	if (prof_timeline_bars(db, lane->track->track_id, window.from, window.to, SCAN_COLUMNS,
			       view__clock(tl)->extent.to, &tl->picture, &bars, &count,
			       NULL) != ST_OK)
		return -1;
	*out = arena_alloc(&tl->picture, (size_t)count + MOST_UNTRACED, sizeof(**out));
	if (!*out)
		return -1;
	used = view_untraced(tl, window, forward, *out, MOST_UNTRACED);
	for (int i = 0; i < count; i++) {
		const int64_t end = bars[i].start_ns + bars[i].dur_ns;

		if (bars[i].depth != lane->work_depth || bars[i].busy_ns <= 0)
			continue;
		(*out)[used++] = forward ? (struct view_window){bars[i].start_ns, end}
					 : (struct view_window){-end, -bars[i].start_ns};
	}
	qsort(*out, (size_t)used, sizeof(**out), view_compare_windows);
	return used;
}

static bool view_jump_gap(struct view_timeline *tl, struct view_context *context, bool forward)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t length = clock->window.to - clock->window.from;
	struct view_scan scan = {.least = length / (tl->width > 0 ? tl->width : 1) + 1};
	int64_t at = tl->cursor.ns;

	scan.covered = forward ? at : -at;
	scan.started = !tl->under.in_gap;
	for (int i = 0; i < MOST_WINDOWS; i++) {
		struct view_window window = forward ? (struct view_window){at, at + length}
						    : (struct view_window){at - length, at};
		struct view_window *busy;
		const int count = view_busy(tl, context->source->db, window, forward, &busy);

		if (view_cancelled(context))
			return view_say(context, "interrupted");
		if (count < 0)
			return view_say(context, "the database cannot be read");
		if (view_scan_gaps(&scan, busy, count)) {
			const int64_t middle = scan.gap.from + (scan.gap.to - scan.gap.from) / 2;

			view__go(tl, tl->cursor.lane, view__lane(tl)->work_depth,
				 forward ? middle : -middle, IPS_NULL);
			return true;
		}
		at += forward ? length : -length;
		/* What was not traced may be longer than many windows. */
		if (forward)
			at = max(scan.covered, at);
		else
			at = -scan.covered < at ? -scan.covered : at;
		if (at > clock->extent.to || at < clock->extent.from)
			break;
	}
	return view_say(context, forward ? "no idle time after this that shows at this zoom"
					 : "no idle time before this that shows at this zoom");
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool view_find_name(struct view_timeline *tl, struct prof_db *db, int64_t track, int clock,
			   const char *text, int64_t time, bool forward, int64_t *budget)
{
	struct prof_span span;
	int64_t id;

	return prof_timeline_find_near(db, track, clock, text, time, forward, budget, &id, NULL) ==
		       ST_OK &&
	       view_span_of(tl, db, id, &span) && view_go_span(tl, &span);
}

/* First on the lane of the cursor, then on any of its clock, from the cursor on and then around;
 * then on the other clock. All of it looks at MOST_SEARCH spans at most. */
bool view__jump_name(struct view_timeline *tl, struct view_context *context, const char *text,
		     bool forward)
{
	struct prof_db *db = context->source->db;
	const struct prof_track *track = view__lane(tl)->track;
	const int64_t edge = forward ? INT64_MIN / 2 : INT64_MAX / 2;
	const struct {
		int64_t track;
		int clock;
		int64_t time;
		const char *message;
	} tries[] = {
		{track->track_id, track->clock, tl->cursor.ns, ""},
		{IPS_NULL, track->clock, tl->cursor.ns, "found on another lane"},
		{track->track_id, track->clock, edge, "went round the end"},
		{IPS_NULL, track->clock, edge, "went round the end, found on another lane"},
		{IPS_NULL, 1 - track->clock, edge, "found on the other clock"},
	};
	int64_t budget = MOST_SEARCH;

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]) && budget > 0; i++) {
		if (view_cancelled(context))
			return view_say(context, "interrupted");
		if (view_find_name(tl, db, tries[i].track, tries[i].clock, text, tries[i].time,
				   forward, &budget)) {
			view_say(context, tries[i].message);
			return true;
		}
	}
	if (budget <= 0)
		view_say(context, "not among the next 4 million spans: go on from further along");
	return false;
}

void view__go(struct view_timeline *tl, int lane, int depth, int64_t time, int64_t span_id)
{
	struct view_clock *clock;

	tl->cursor.lane = lane;
	tl->cursor.track_id = tl->lanes[lane].track->track_id;
	tl->cursor.depth = depth;
	clock = view__clock(tl);
	tl->cursor.ns = time;
	clock->window = view_window_show(clock->window, time, clock->extent);
	tl->cursor.pinned = span_id;
}

static void view_keep_inside(struct view_timeline *tl)
{
	const struct view_window extent = view__clock(tl)->extent;

	if (tl->cursor.ns < extent.from)
		tl->cursor.ns = extent.from;
	if (tl->cursor.ns >= extent.to)
		tl->cursor.ns = extent.to - 1;
}

static void view_pan(struct view_timeline *tl, int numerator, int denominator)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t before = clock->window.from;
	int64_t shift;

	clock->window = view_window_pan(clock->window, numerator, denominator, clock->extent);
	shift = clock->window.from - before;
	/* At the end of the run the window stays and the cursor goes on. */
	if (shift == 0)
		shift = (int64_t)((double)(clock->window.to - clock->window.from) * numerator /
				  denominator / 2);
	tl->cursor.ns += shift;
	view_keep_inside(tl);
	tl->cursor.pinned = IPS_NULL;
}

static void view_step_column(struct view_timeline *tl, int by)
{
	struct view_clock *clock = view__clock(tl);
	int64_t step = (clock->window.to - clock->window.from) / (tl->width > 0 ? tl->width : 1);

	if (step < 1)
		step = 1;
	tl->cursor.ns += by * step;
	view_keep_inside(tl);
	clock->window = view_window_show(clock->window, tl->cursor.ns, clock->extent);
	tl->cursor.pinned = IPS_NULL;
}

/*
 * From lane to lane by way of the rows of each. On a change of clock the cursor keeps its column.
 */
static void view_step_lane(struct view_timeline *tl, int by)
{
	const struct view_lane *lane = view__lane(tl);
	const struct view_clock *from = view__clock(tl), *to;
	const int depth = tl->cursor.depth + by;
	int next = tl->cursor.lane;

	if (tl->choice.way != VIEW_FLAT && tl->choice.way != VIEW_BSP &&
	    depth >= lane->first_depth &&
	    depth < lane->first_depth +
			    (tl->choice.way == VIEW_FLAME ? lane->track->depth : lane->rows)) {
		tl->cursor.depth = depth;
		tl->cursor.pinned = IPS_NULL;
		return;
	}
	next += by;
	if (next < 0 || next >= tl->lane_count)
		return;
	tl->cursor.lane = next;
	lane = view__lane(tl);
	tl->cursor.depth = lane->work_depth;
	to = view__clock(tl);
	if (to != from)
		tl->cursor.ns =
			to->window.from + (int64_t)((double)(tl->cursor.ns - from->window.from) /
						    (double)(from->window.to - from->window.from) *
						    (double)(to->window.to - to->window.from));
	tl->cursor.pinned = IPS_NULL;
}

static void view_go_end(struct view_timeline *tl, bool last)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t length = clock->window.to - clock->window.from;

	clock->window =
		last ? (struct view_window){clock->extent.to - length, clock->extent.to}
		     : (struct view_window){clock->extent.from, clock->extent.from + length};
	clock->window = view_window_clamp(clock->window, clock->extent);
	tl->cursor.ns = last ? clock->extent.to - 1 : clock->extent.from;
	tl->cursor.pinned = IPS_NULL;
}

static void view_zoom_span(struct view_timeline *tl, struct view_context *context)
{
	struct view_clock *clock = view__clock(tl);
	struct view_window to;

	if (tl->under.selected == IPS_NULL && !tl->under.in_gap) {
		snprintf(context->message, sizeof(context->message), "no span under the cursor");
		return;
	}
	if (tl->under.in_gap) {
		to = tl->under.gap.at;
	} else {
		to.from = tl->under.span.start_ns;
		to.to = tl->under.span.dur_ns == IPS_NULL ? clock->extent.to
							  : to.from + tl->under.span.dur_ns;
	}
	/* A little of what is around it. */
	to.from -= (to.to - to.from) / 8;
	to.to += (to.to - to.from) / 8;
	if (to.to - to.from < VIEW_WINDOW_LEAST)
		to.to = to.from + VIEW_WINDOW_LEAST;
	clock->window = view_window_clamp(to, clock->extent);
}

static void view_zoom(struct view_timeline *tl, int numerator, int denominator)
{
	struct view_clock *clock = view__clock(tl);

	clock->window = view_window_zoom(clock->window, tl->cursor.ns, numerator, denominator,
					 clock->extent);
}

static void view_centre(struct view_timeline *tl)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t half = (clock->window.to - clock->window.from) / 2;

	clock->window = view_window_clamp(
		(struct view_window){tl->cursor.ns - half,
				     tl->cursor.ns - half +
					     (clock->window.to - clock->window.from)},
		clock->extent);
}

/* Count lengths from the cursor on; again: no longer. */
static void view_measure(struct view_timeline *tl, struct view_context *context)
{
	if (tl->cursor.x_ns != IPS_NULL) {
		tl->cursor.x_ns = IPS_NULL;
		snprintf(context->message, sizeof(context->message),
			 "lengths are no longer counted from x");
		return;
	}
	tl->cursor.x_ns = tl->cursor.ns;
	tl->cursor.x_clock = view__lead(tl);
	snprintf(context->message, sizeof(context->message),
		 "lengths are counted from x; x again ends that");
}

/* Jumps ask the database; @done tells whether the request was one. */
static bool view_jump(struct view_timeline *tl, struct view_context *context,
		      enum view_request request)
{
	switch (request) {
	case VIEW_NEXT_SPAN_REQUEST:
	case VIEW_PREVIOUS_SPAN_REQUEST:
		view_jump_span(tl, context, request == VIEW_NEXT_SPAN_REQUEST);
		return true;
	case VIEW_NEXT_GAP_REQUEST:
	case VIEW_PREVIOUS_GAP_REQUEST:
		view_jump_gap(tl, context, request == VIEW_NEXT_GAP_REQUEST);
		return true;
	case VIEW_LONGEST_GAP_REQUEST:
		view_jump_worst(tl, context);
		return true;
	case VIEW_LONGEST_CHILD_REQUEST:
		view_jump_child(tl, context);
		return true;
	case VIEW_PARENT_REQUEST:
		view_jump_parent(tl, context);
		return true;
	default:
		return false;
	}
}

/* From lane to lane, by one or as many as there is room for. */
static bool view_move_lane(struct view_timeline *tl, enum view_request request)
{
	const bool page = request == VIEW_PAGE_UP_REQUEST || request == VIEW_PAGE_DOWN_REQUEST;
	const bool up = request == VIEW_PAGE_UP_REQUEST || request == VIEW_UP_REQUEST;

	for (int i = page ? tl->areas.lanes.height : 1; i > 0; i--)
		view_step_lane(tl, up ? -1 : 1);
	return true;
}

static bool view_make_move(struct view_timeline *tl, struct view_context *context,
			   enum view_request request)
{
	switch (request) {
	case VIEW_UP_REQUEST:
	case VIEW_DOWN_REQUEST:
	case VIEW_PAGE_UP_REQUEST:
	case VIEW_PAGE_DOWN_REQUEST:
		return view_move_lane(tl, request);
	case VIEW_LEFT_REQUEST:
	case VIEW_RIGHT_REQUEST:
		view_pan(tl, request == VIEW_LEFT_REQUEST ? -1 : 1, 8);
		return true;
	case VIEW_PAGE_LEFT_REQUEST:
	case VIEW_PAGE_RIGHT_REQUEST:
		view_pan(tl, request == VIEW_PAGE_LEFT_REQUEST ? -1 : 1, 1);
		return true;
	case VIEW_CURSOR_LEFT_REQUEST:
	case VIEW_CURSOR_RIGHT_REQUEST:
		view_step_column(tl, request == VIEW_CURSOR_LEFT_REQUEST ? -1 : 1);
		return true;
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		view_go_end(tl, request == VIEW_END_REQUEST);
		return true;
	case VIEW_ZOOM_IN_REQUEST:
	case VIEW_ZOOM_OUT_REQUEST:
		view_zoom(tl, request == VIEW_ZOOM_IN_REQUEST ? 1 : 2,
			  request == VIEW_ZOOM_IN_REQUEST ? 2 : 1);
		return true;
	case VIEW_ZOOM_ALL_REQUEST:
		view__clock(tl)->window = view__clock(tl)->extent;
		return true;
	case VIEW_ZOOM_SPAN_REQUEST:
		view_zoom_span(tl, context);
		return true;
	case VIEW_CENTRE_REQUEST:
		view_centre(tl);
		return true;
	case VIEW_MARK_ROW_REQUEST:
		view_measure(tl, context);
		return true;
	case VIEW_ENTER_REQUEST:
		tl->under.wanted = !tl->under.wanted;
		return true;
	default:
		return false;
	}
}

/* A step that leads nowhere says why. */
static bool view_move(struct view_timeline *tl, struct view_context *context,
		      enum view_request request)
{
	static const struct {
		enum view_request request;
		const char *limit;
	} steps[] = {{VIEW_LEFT_REQUEST, "this is the beginning of the run"},
		     {VIEW_PAGE_LEFT_REQUEST, "this is the beginning of the run"},
		     {VIEW_CURSOR_LEFT_REQUEST, "this is the beginning of the run"},
		     {VIEW_RIGHT_REQUEST, "this is the end of the run"},
		     {VIEW_PAGE_RIGHT_REQUEST, "this is the end of the run"},
		     {VIEW_CURSOR_RIGHT_REQUEST, "this is the end of the run"},
		     {VIEW_ZOOM_OUT_REQUEST, "this is the whole run"},
		     {VIEW_ZOOM_IN_REQUEST, "this is as close as it goes"}};
	const struct view_window before = view__clock(tl)->window,
				 *after = &view__clock(tl)->window;
	const int64_t cursor = tl->cursor.ns;

	if (!view_make_move(tl, context, request))
		return false;
	if (tl->cursor.ns != cursor || after->from != before.from || after->to != before.to)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i].request == request)
			snprintf(context->message, sizeof(context->message), "%s", steps[i].limit);
	return true;
}

/* The timeline's own requests; the rest are the session's. */
static bool view_is_movement(enum view_request request)
{
	const char *group = view_request_info(request)->group;

	return strcmp(group, "Moving") == 0 || strcmp(group, "Timeline") == 0 ||
	       strcmp(group, "Zooming") == 0 || strcmp(group, "Looking closer") == 0;
}

static bool view_end_filter(struct view_timeline *tl, enum view_request request)
{
	if (request != VIEW_BACK_REQUEST || !tl->filter.text[0])
		return false;
	view__timeline_filter(tl, "");
	return true;
}

enum view_answer view__timeline_request(void *state, struct view_context *context,
					enum view_request request)
{
	struct view_timeline *tl = state;

	if (!(view_request_info(request)->screens & VIEW_ON_TIMELINE))
		return VIEW_UNHANDLED;
	if (tl->lane_count == 0) {
		if (!view_is_movement(request))
			return VIEW_UNHANDLED;
		snprintf(context->message, sizeof(context->message), "no spans recorded");
		return VIEW_DRAW;
	}
	if (view_move(tl, context, request) || view_end_filter(tl, request))
		return VIEW_LOAD;
	if (view__way_request(tl, context, request) || view__hide_request(tl, context, request) ||
	    view__counters_request(tl, context, request))
		return VIEW_LOAD;
	if (!context->source->db && view_is_movement(request)) {
		snprintf(context->message, sizeof(context->message),
			 "the run is being closed: a moment");
		return VIEW_DRAW;
	}
	return view_jump(tl, context, request) ? VIEW_LOAD : VIEW_UNHANDLED;
}
