/*
 * Jumps on the timeline: to spans, gaps, children, parents and names.
 *
 * Each asks a bounded number of bounded questions; what is further away than that is said to be not
 * there, with what to do.
 *
 * Threading: one thread. Ownership: bars live in an arena of the jump.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/minmax.h"
#include "common/sorted.h"
#include "viewer/timeline/view_timeline_internal.h"

#define MOST_TRIES    64
#define SCAN_COLUMNS  256
#define CHILD_LEVELS  12
#define MOST_WINDOWS  32
#define MOST_UNTRACED 1024    /* stretches in a window */
#define MOST_SEARCH   4000000 /* spans that one search looks at */

static bool view_say(struct view_context *context, const char *text)
{
	snprintf(context->message, sizeof(context->message), "%s", text);
	return false;
}

static bool view_span_of(struct view_timeline *tl, struct prof_db *db, int64_t id,
			 struct prof_span *out)
{
	return id != IPS_NULL && prof_timeline_span(db, id, &tl->detail, out, NULL) == ST_OK;
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
bool view__jump_span(struct view_timeline *tl, struct view_context *context, bool forward)
{
	struct prof_db *db = context->source->db;
	const struct prof_track *track = view__lane(tl)->track;
	int64_t time = tl->cursor_ns, id;
	struct prof_span span;

	if (tl->selected != IPS_NULL && tl->span.depth == tl->depth) {
		time = tl->span.start_ns;
		if (forward && tl->span.dur_ns > 0)
			time += tl->span.dur_ns - 1;
	}
	for (int i = 0; i < MOST_TRIES; i++) {
		if (prof_timeline_find(db, track->track_id, track->clock, NULL, time, forward, &id,
				       NULL) != ST_OK ||
		    !view_span_of(tl, db, id, &span))
			return view_say(context, forward ? "no span after this one"
							 : "no span before this one");
		time = span.start_ns;
		if (span.depth != tl->depth &&
		    prof_timeline_at(db, track->track_id, time, tl->depth, &id, NULL) == ST_OK &&
		    !view_span_of(tl, db, id, &span))
			continue;
		if (span.depth == tl->depth && (!forward || span.start_ns > tl->cursor_ns))
			return view_go_span(tl, &span);
	}
	return view_say(context, "no span of this depth near by");
}

bool view__jump_parent(struct view_timeline *tl, struct view_context *context)
{
	struct prof_span span;

	if (tl->selected == IPS_NULL)
		return view_say(context, "no span under the cursor");
	if (!view_span_of(tl, context->source->db, tl->span.parent_id, &span))
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

bool view__jump_child(struct view_timeline *tl, struct view_context *context)
{
	struct prof_db *db = context->source->db;
	const struct view_clock *clock = view__clock(tl);
	struct view_window window;
	struct prof_span span;

	if (tl->selected == IPS_NULL)
		return view_say(context, "no span under the cursor");
	window.from = tl->span.start_ns;
	window.to = tl->span.dur_ns == IPS_NULL ? clock->extent.to : window.from + tl->span.dur_ns;
	for (int i = 0; i < CHILD_LEVELS && window.to > window.from; i++) {
		const int64_t length = window.to - window.from;
		const struct prof_bar *best;
		struct prof_bar *bars;
		int count;

		if (prof_timeline_bars(db, tl->span.track_id, window.from, window.to,
				       2 * SCAN_COLUMNS, clock->extent.to, &tl->picture, &bars,
				       &count, NULL) != ST_OK)
			break;
		best = view_longest(bars, count, tl->span.depth + 1, &window);
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
	     used < most && view__next_dark(tl, &tl->lanes[tl->lane], at, &dark) &&
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

bool view__jump_gap(struct view_timeline *tl, struct view_context *context, bool forward)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t length = clock->window.to - clock->window.from;
	struct view_scan scan = {.least = length / (tl->width > 0 ? tl->width : 1) + 1};
	int64_t at = tl->cursor_ns;

	scan.covered = forward ? at : -at;
	scan.started = !tl->in_gap;
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

			view__go(tl, tl->lane, view__lane(tl)->work_depth,
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
		{track->track_id, track->clock, tl->cursor_ns, ""},
		{IPS_NULL, track->clock, tl->cursor_ns, "found on another lane"},
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
