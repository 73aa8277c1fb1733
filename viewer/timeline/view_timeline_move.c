/*
 * The timeline's requests: moving the window, the cursor and the lane; jumps to spans, idle times,
 * children, parents and names.
 *
 * Only jumps read; the load after a request reads the rest. Each jump runs a bounded number of
 * bounded queries; if the target is further away, the message says so and what to do. The edges of
 * an idle time are looked up with one search each way, not taken from the picture, whose buckets
 * and window do not have exact edges.
 *
 * Threading: one thread. Ownership: bars are in the picture's arena.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"

#define MOST_TRIES    64
#define SCAN_COLUMNS  256
#define CHILD_LEVELS  12
#define MOST_WINDOWS  32
#define MOST_UNTRACED 1024    /* untraced ranges in a window */
#define MOST_SEARCH   4000000 /* spans that one search reads */
#define IDLE_COLUMNS  1024
#define MOST_SCANS    12
#define MOST_PROBES   40 /* scans and edge searches */
#define MOST_GUESSES  256

static bool view_read_span(struct view_timeline *tl, int64_t id, struct prof_span *out)
{
	return id != IPS_NULL &&
	       prof_timeline_span(tl->db, id, &tl->under.arena, out, NULL) == ST_OK;
}

/* Read the bars of the cursor's lane in @window; false: failed. */
static bool view_read_part(struct view_timeline *tl, struct view_window window, int columns,
			   struct prof_bar **bars, int *count)
{
	return prof_timeline_bars(tl->db, view__lane(tl)->track->track_id, window.from, window.to,
				  columns, view__clock(tl)->extent.to, &tl->picture, bars, count,
				  NULL) == ST_OK;
}

/* ---- the longest idle time ------------------------------------------------------------------- */

/* A range that may contain a long idle time, and an upper bound of its length. */
struct view_guess {
	struct view_window at;
	int64_t most;
	bool bucket; /* the range is of buckets, to be scanned; else it is between bars */
};

struct view_worst {
	struct view_window window, gap; /* gap: the longest found so far, not clipped */
	int64_t length;                 /* of the gap within the window; 0: none found yet */
	struct view_guess guesses[MOST_GUESSES];
	int count, scans;
	int64_t forgotten; /* greatest bound of the guesses dropped for lack of space */
};

static int64_t view_clipped_length(struct view_window gap, struct view_window window)
{
	return max(min(gap.to, window.to) - max(gap.from, window.from), 0);
}

static void view_add_guess(struct view_worst *worst, struct view_guess guess)
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

/* Add guesses for the traced parts between busy times. @slack: idle time that the neighbours may
 * add. */
static void view_guess_between(const struct view_timeline *tl, struct view_worst *worst,
			       int64_t from, int64_t to, int64_t slack)
{
	struct view_dark dark;

	while (from < to && view__next_untraced(tl, &tl->lanes[tl->cursor.lane], from, &dark) &&
	       dark.at.from < to) {
		view_add_guess(worst, (struct view_guess){{from, dark.at.from},
							  dark.at.from - from + slack,
							  false});
		from = dark.at.to;
	}
	view_add_guess(worst, (struct view_guess){{from, to}, to - from + slack, false});
}

/* Add guesses from the lane's bars in @window; @slack: upper bound of the idle time beyond its
 * edges. A bucket's idle time may continue in the next one, so the emptier of two has at least half
 * of it. */
static bool view_scan_idle(struct view_timeline *tl, struct view_worst *worst,
			   struct view_window window, int64_t slack)
{
	int64_t covered = window.from, before = slack;
	struct prof_bar *bars;
	int count;

	if (!view_read_part(tl, window, IDLE_COLUMNS, &bars, &count))
		return false;
	for (int i = 0; i < count; i++) {
		const struct view_window bar = {bars[i].start_ns,
						bars[i].start_ns + bars[i].dur_ns};
		const bool bucket = bars[i].span_id == IPS_NULL;
		const int64_t idle = bucket ? bars[i].dur_ns - bars[i].busy_ns : 0;

		if (bars[i].depth != view__lane(tl)->work_depth || bars[i].busy_ns <= 0)
			continue;
		view_guess_between(tl, worst, covered, min(bar.from, window.to), before + idle);
		/* Scanning a bucket as long as the window would find nothing new. */
		if (bucket &&
		    view_clipped_length(bar, window) < view_clipped_length(window, window))
			view_add_guess(worst, (struct view_guess){{max(bar.from, window.from),
								   min(bar.to, window.to)},
								  2 * idle,
								  true});
		covered = max(bar.to, covered);
		before = idle;
	}
	view_guess_between(tl, worst, covered, window.to, before + slack);
	return true;
}

/* Remove the guess with the greatest bound; false: no bound exceeds the length found. */
static bool view_pop_guess(struct view_worst *worst, struct view_guess *out)
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

static void view_jump_worst(struct view_timeline *tl)
{
	struct view_context *context = tl->context;
	const struct view_window window = view__clock(tl)->window;
	struct view_worst worst = {.window = window};
	const char *kind = tl->choice.way == VIEW_BSP ? "time without stage work" : "idle time";
	struct view_guess guess = {window, 0, true};
	char length[VIEW_UNIT_SIZE];
	bool all = view_scan_idle(tl, &worst, window, 0), more;

	for (int i = 0; (more = view_pop_guess(&worst, &guess)) && i < MOST_PROBES; i++) {
		struct view_gap gap;

		if (view_cancelled(context))
			break;
		/* Check the guess: scan a bucket, or look up the edges of the idle time. */
		if (guess.bucket) {
			if (worst.scans++ < MOST_SCANS)
				(void)view_scan_idle(tl, &worst, guess.at, guess.most);
			else
				worst.forgotten = max(guess.most, worst.forgotten);
			continue;
		}
		if (!view__gap_at(tl, guess.at.from + (guess.at.to - guess.at.from) / 2, &gap) ||
		    gap.dark || view_clipped_length(gap.at, worst.window) <= worst.length)
			continue;
		worst.length = view_clipped_length(gap.at, worst.window);
		worst.gap = gap.at;
	}
	all = all && !more && worst.forgotten <= worst.length;
	if (worst.length == 0) {
		view_messagef(context,
			      all ? "no %s of this lane in the window"
				  : "no %s of this lane found: zoom in",
			      kind);
		return;
	}
	view__go(tl, tl->cursor.lane, view__lane(tl)->work_depth,
		 max(worst.gap.from, window.from) + worst.length / 2, IPS_NULL);
	view_messagef(context, "the longest %s of %s %s: %s", kind, view__lane(tl)->track->name,
		      all ? "in the window" : "that was found",
		      view__length_text(tl, view__lead(tl), length, worst.gap.to - worst.gap.from));
}

/* ---- the next idle time ---------------------------------------------------------------------- */

static int view_compare_windows(const void *a, const void *b)
{
	const struct view_window *left = a, *right = b;

	return SORTED_BY(left, right, from);
}

/* Collect the windows of the lane in @window that are untraced or busy, sorted by time in the
 * direction: backward, times are negated. Return their count; -1: failed. */
static int view_read_busy(struct view_timeline *tl, struct view_window window, bool forward,
			  struct view_window **out)
{
	const struct view_lane *lane = view__lane(tl);
	struct view_window *busy;
	struct view_dark dark;
	struct prof_bar *bars;
	int count, used = 0;

	if (!view_read_part(tl, window, SCAN_COLUMNS, &bars, &count))
		return -1;
	busy = arena_alloc(&tl->picture, (size_t)count + MOST_UNTRACED, sizeof(*busy));
	if (!busy)
		return -1;
	for (int64_t at = window.from;
	     used < MOST_UNTRACED && view__next_untraced(tl, lane, at, &dark) &&
	     dark.at.from < window.to;
	     at = dark.at.to)
		busy[used++] = dark.at;
	for (int i = 0; i < count; i++)
		if (bars[i].depth == lane->work_depth && bars[i].busy_ns > 0)
			busy[used++] = (struct view_window){bars[i].start_ns,
							    bars[i].start_ns + bars[i].dur_ns};
	for (int i = 0; i < used && !forward; i++)
		busy[i] = (struct view_window){-busy[i].to, -busy[i].from};
	qsort(busy, (size_t)used, sizeof(*busy), view_compare_windows);
	*out = busy;
	return used;
}

static void view_jump_gap(struct view_timeline *tl, bool forward)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t length = clock->window.to - clock->window.from;
	const int64_t least = length / max(tl->width, 1) + 1; /* shortest visible gap */
	int64_t at = tl->cursor.ns;
	int64_t covered = forward ? at : -at; /* busy or read up to here, in the direction */
	bool started = !tl->under.in_gap;     /* past the gap under the cursor */

	for (int i = 0; i < MOST_WINDOWS; i++) {
		const struct view_window window = {forward ? at : at - length,
						   forward ? at + length : at};
		struct view_window *busy;
		const int count = view_read_busy(tl, window, forward, &busy);

		if (view_cancelled(tl->context)) {
			view__say(tl, "interrupted");
			return;
		}
		if (count < 0) {
			view__say(tl, "the database cannot be read");
			return;
		}
		for (int b = 0; b < count; b++) {
			const int64_t middle = covered + (busy[b].from - covered) / 2;

			if (busy[b].to <= covered)
				continue;
			if (started && busy[b].from - covered >= least) {
				view__go(tl, tl->cursor.lane, view__lane(tl)->work_depth,
					 forward ? middle : -middle, IPS_NULL);
				return;
			}
			started = true;
			covered = busy[b].to;
		}
		/* An untraced range may be longer than many windows. */
		at = forward ? max(covered, at + length) : min(-covered, at - length);
		if (at > clock->extent.to || at < clock->extent.from)
			break;
	}
	view__say(tl, forward ? "no idle time after this that shows at this zoom"
			      : "no idle time before this that shows at this zoom");
}

/* ---- spans ----------------------------------------------------------------------------------- */

static bool view_go_span(struct view_timeline *tl, const struct prof_span *span)
{
	const int lane = view__lane_of(tl, span->track_id);

	if (lane < 0)
		return false;
	view__go(tl, lane, span->depth, span->start_ns, span->span_id);
	/* The span's first step starts within a cycle of the span. */
	if (tl->choice.way == VIEW_BSP && span->dur_ns > 1)
		tl->cursor.ns += min((int64_t)tl->links.ns_per_cycle + 1, span->dur_ns / 2);
	return true;
}

/*
 * Jump to the next span of the lane at the cursor's depth. Forward, start at the end of the current
 * span to skip what is inside it; a span found at another depth is tried as parent of the wanted
 * one.
 */
static void view_jump_span(struct view_timeline *tl, bool forward)
{
	const struct prof_track *track = view__lane(tl)->track;
	const int depth = tl->cursor.depth;
	int64_t time = tl->cursor.ns;
	struct prof_span span;

	if (tl->under.selected != IPS_NULL && tl->under.span.depth == depth) {
		time = tl->under.span.start_ns;
		if (forward && tl->under.span.dur_ns > 0)
			time += tl->under.span.dur_ns - 1;
	}
	for (int i = 0; i < MOST_TRIES; i++) {
		if (!view__next_span(tl, track, time, forward, &tl->under.arena, &span)) {
			view__say(tl,
				  forward ? "no span after this one" : "no span before this one");
			return;
		}
		time = span.start_ns;
		if (span.depth != depth &&
		    !view__span_at(tl, track, time, depth, &tl->under.arena, &span))
			continue;
		if (span.depth == depth && (!forward || span.start_ns > tl->cursor.ns)) {
			(void)view_go_span(tl, &span);
			return;
		}
	}
	view__say(tl, "no span of this depth near by");
}

/* Jump to the longest child. While there are only buckets, continue in the window of the fullest
 * one. */
static void view_jump_child(struct view_timeline *tl)
{
	const struct prof_span *parent = &tl->under.span;
	const int64_t end = view__clock(tl)->extent.to;
	struct view_window window = {parent->start_ns, parent->dur_ns == IPS_NULL
							       ? end
							       : parent->start_ns + parent->dur_ns};
	struct prof_span span;

	for (int i = 0; i < CHILD_LEVELS && window.to > window.from; i++) {
		const int64_t length = window.to - window.from;
		const struct prof_bar *best = NULL, *fullest = NULL;
		struct prof_bar *bars;
		int count;

		if (prof_timeline_bars(tl->db, parent->track_id, window.from, window.to,
				       2 * SCAN_COLUMNS, end, &tl->picture, &bars, &count,
				       NULL) != ST_OK)
			break;
		for (int b = 0; b < count; b++) {
			if (bars[b].depth != parent->depth + 1)
				continue;
			if (bars[b].span_id == IPS_NULL) {
				if (!fullest || bars[b].busy_ns > fullest->busy_ns)
					fullest = &bars[b];
			} else if (!best || bars[b].dur_ns > best->dur_ns) {
				best = &bars[b];
			}
		}
		if (best && (!fullest || best->dur_ns >= fullest->busy_ns)) {
			if (view_read_span(tl, best->span_id, &span))
				(void)view_go_span(tl, &span);
			return;
		}
		if (fullest)
			window = (struct view_window){fullest->start_ns,
						      fullest->start_ns + fullest->dur_ns};
		if (window.to - window.from >= length)
			break;
	}
	view__say(tl, "no span inside this one");
}

/* Search the cursor's lane, then any lane of its clock, from the cursor on and then from the other
 * end; then the other clock. Reads MOST_SEARCH spans at most. */
bool view__jump_name(struct view_timeline *tl, const char *text, bool forward)
{
	const struct prof_track *track = view__lane(tl)->track;
	const int64_t edge = forward ? INT64_MIN / 2 : INT64_MAX / 2;
	/* Backward, search from the start of the selected span: the cursor is behind it. */
	const int64_t here =
		!forward && tl->cursor.pinned != IPS_NULL && tl->under.selected == tl->cursor.pinned
			? tl->under.span.start_ns
			: tl->cursor.ns;
	const struct {
		int64_t track;
		int clock;
		int64_t time;
		const char *message;
	} tries[] = {
		{track->track_id, track->clock, here, ""},
		{IPS_NULL, track->clock, tl->cursor.ns, "found on another lane"},
		{track->track_id, track->clock, edge, "went round the end"},
		{IPS_NULL, track->clock, edge, "went round the end, found on another lane"},
		{IPS_NULL, 1 - track->clock, edge, "found on the other clock"},
	};
	int64_t budget = MOST_SEARCH;

	for (size_t i = 0; i < ARRAY_LEN(tries) && budget > 0; i++) {
		struct prof_span span;
		int64_t id;

		if (view_cancelled(tl->context)) {
			view__say(tl, "interrupted");
			return false;
		}
		if (prof_timeline_find_near(tl->db, tries[i].track, tries[i].clock, text,
					    tries[i].time, forward, &budget, &id, NULL) == ST_OK &&
		    view_read_span(tl, id, &span) && view_go_span(tl, &span)) {
			struct view_context *context = tl->context;

			/* Unless there are more than MOST_SEARCH to read. */
			(void)prof_timeline_hits(tl->db, &span, text, MOST_SEARCH, &context->hit,
						 &context->hits, NULL);
			view__say(tl, tries[i].message);
			return true;
		}
	}
	if (budget <= 0)
		view__say(tl, "not among the next 4 million spans: go on from further along");
	return false;
}

/* Select the span that contains the step under the cursor. */
static void view_jump_out_of_step(struct view_timeline *tl)
{
	const struct view_step *at = &tl->device.at_cursor;
	struct prof_span span;
	int64_t id = IPS_NULL;

	(void)prof_timeline_at(tl->db, view__lane(tl)->track->track_id,
			       at->from_ns + (at->to_ns - at->from_ns) / 2, INT_MAX, &id, NULL);
	if (!view_read_span(tl, id, &span) || !view_go_span(tl, &span))
		view__say(tl, "no span around this step");
}

/* Jump to the longest step of the selected span, or else of the window. */
static void view_jump_longest_step(struct view_timeline *tl)
{
	const struct prof_span *span = &tl->under.span;
	const bool within = tl->under.selected != IPS_NULL && span->dur_ns != IPS_NULL;
	const struct view_window window =
		within ? (struct view_window){span->start_ns, span->start_ns + span->dur_ns}
		       : view__clock(tl)->window;
	int64_t time;

	if (view__longest_step(tl, window, &time))
		view__go(tl, tl->cursor.lane, tl->cursor.depth, time, IPS_NULL);
	else
		view__say(tl, "no step in it");
	if (!within)
		view__say(tl, "the longest step of the window");
}

static bool view_handle_jump(struct view_timeline *tl, enum view_request request)
{
	struct prof_span span;

	switch (request) {
	case VIEW_NEXT_SPAN_REQUEST:
	case VIEW_PREVIOUS_SPAN_REQUEST:
		view_jump_span(tl, request == VIEW_NEXT_SPAN_REQUEST);
		return true;
	case VIEW_NEXT_GAP_REQUEST:
	case VIEW_PREVIOUS_GAP_REQUEST:
		view_jump_gap(tl, request == VIEW_NEXT_GAP_REQUEST);
		return true;
	case VIEW_LONGEST_GAP_REQUEST:
		view_jump_worst(tl);
		return true;
	case VIEW_ALWAYS_LIVE_REQUEST:
		view__follow_arrow(tl);
		return true;
	case VIEW_LONGEST_CHILD_REQUEST:
	case VIEW_PARENT_REQUEST:
		if (tl->device.at_cursor.step && request == VIEW_PARENT_REQUEST)
			view_jump_out_of_step(tl);
		else if (tl->choice.way == VIEW_BSP && request == VIEW_LONGEST_CHILD_REQUEST)
			view_jump_longest_step(tl);
		else if (tl->under.selected == IPS_NULL)
			view__say(tl, "no span under the cursor");
		else if (request == VIEW_LONGEST_CHILD_REQUEST)
			view_jump_child(tl);
		else if (view_read_span(tl, tl->under.span.parent_id, &span))
			(void)view_go_span(tl, &span);
		else
			view__say(tl, "this span has no parent");
		return true;
	default:
		return false;
	}
}

/* ---- moving the cursor and the window -------------------------------------------------------- */

static void view_clamp_cursor(struct view_timeline *tl)
{
	const struct view_window extent = view__clock(tl)->extent;

	tl->cursor.ns = min(max(tl->cursor.ns, extent.from), extent.to - 1);
	tl->cursor.pinned = IPS_NULL;
}

static void view_pan(struct view_timeline *tl, int numerator, int denominator)
{
	struct view_clock *clock = view__clock(tl);
	const int64_t before = clock->window.from;
	int64_t shift;

	clock->window = view_window_pan(clock->window, numerator, denominator, clock->extent);
	shift = clock->window.from - before;
	/* At the end of the run the window stays and only the cursor moves. */
	if (shift == 0)
		shift = (int64_t)((double)(clock->window.to - clock->window.from) * numerator /
				  denominator / 2);
	tl->cursor.ns += shift;
	view_clamp_cursor(tl);
}

/* Step by one row, or to the next lane. On another clock the cursor keeps its column. */
static void view_step_lane(struct view_timeline *tl, int by)
{
	const struct view_lane *lane = view__lane(tl);
	const struct view_clock *from = view__clock(tl), *to;
	const enum view_way way = tl->choice.way;
	const int depth = tl->cursor.depth + by, next = tl->cursor.lane + by;
	const int depths = lane->fold          ? 0
			   : way == VIEW_FLAME ? lane->track->depth
			   : way == VIEW_GANTT ? lane->rows
					       : 0;

	if (depth >= lane->first_depth && depth < lane->first_depth + depths) {
		tl->cursor.depth = depth;
		tl->cursor.pinned = IPS_NULL;
		return;
	}
	if (next < 0 || next >= tl->lane_count)
		return;
	tl->cursor.lane = next;
	tl->cursor.depth = view__lane(tl)->work_depth;
	tl->cursor.pinned = IPS_NULL;
	to = view__clock(tl);
	if (to != from)
		tl->cursor.ns =
			to->window.from + (int64_t)((double)(tl->cursor.ns - from->window.from) /
						    (double)(from->window.to - from->window.from) *
						    (double)(to->window.to - to->window.from));
}

bool view__span_window(const struct view_timeline *tl, struct view_window *out)
{
	const struct prof_span *span = &tl->under.span;
	const struct view_clock *clock = &tl->clock[view__lead(tl)];
	struct view_window to;

	if (tl->device.at_cursor.step) {
		to = (struct view_window){tl->device.at_cursor.from_ns, tl->device.at_cursor.to_ns};
	} else if (tl->under.in_gap) {
		to = tl->under.gap.at;
	} else if (tl->under.selected != IPS_NULL) {
		to.from = span->start_ns;
		to.to = span->dur_ns == IPS_NULL ? clock->extent.to : to.from + span->dur_ns;
	} else {
		return false;
	}
	/* Add an eighth on both sides. */
	to.from -= (to.to - to.from) / 8;
	to.to += (to.to - to.from) / 8;
	to.to = max(to.to, to.from + VIEW_WINDOW_LEAST);
	*out = view_window_clamp(to, clock->extent);
	return true;
}

static bool view_handle_move(struct view_timeline *tl, enum view_request request)
{
	struct view_clock *clock = view__clock(tl);
	const struct view_window extent = clock->extent;
	const int64_t length = clock->window.to - clock->window.from;
	const bool down = request == VIEW_DOWN_REQUEST || request == VIEW_PAGE_DOWN_REQUEST;

	switch (request) {
	case VIEW_UP_REQUEST:
	case VIEW_DOWN_REQUEST:
		view_step_lane(tl, down ? 1 : -1);
		return true;
	case VIEW_PAGE_UP_REQUEST:
	case VIEW_PAGE_DOWN_REQUEST:
		for (int i = tl->areas.lanes.height; i > 0; i--)
			view_step_lane(tl, down ? 1 : -1);
		return true;
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
		tl->cursor.ns += (request == VIEW_CURSOR_LEFT_REQUEST ? -1 : 1) *
				 max(length / max(tl->width, 1), 1);
		view_clamp_cursor(tl);
		clock->window = view_window_show(clock->window, tl->cursor.ns, extent);
		return true;
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		tl->cursor.ns = request == VIEW_HOME_REQUEST ? extent.from : extent.to - 1;
		tl->cursor.pinned = IPS_NULL;
		view__move_window(clock,
				  request == VIEW_HOME_REQUEST ? extent.from : extent.to - length);
		return true;
	case VIEW_ZOOM_IN_REQUEST:
		clock->window = view_window_zoom(clock->window, tl->cursor.ns, 1, 2, extent);
		return true;
	case VIEW_ZOOM_OUT_REQUEST:
		clock->window = view_window_zoom(clock->window, tl->cursor.ns, 2, 1, extent);
		return true;
	case VIEW_ZOOM_ALL_REQUEST:
		clock->window = extent;
		return true;
	case VIEW_ZOOM_SPAN_REQUEST:
		if (!view__span_window(tl, &clock->window))
			view__say(tl, "no span under the cursor");
		return true;
	case VIEW_CENTRE_REQUEST:
		view__move_window(clock, tl->cursor.ns - length / 2);
		return true;
	case VIEW_MARK_ROW_REQUEST:
		view__say(tl, tl->cursor.x_ns == IPS_NULL
				      ? "lengths are counted from x; x again ends that"
				      : "lengths are no longer counted from x");
		tl->cursor.x_ns = tl->cursor.x_ns == IPS_NULL ? tl->cursor.ns : IPS_NULL;
		tl->cursor.x_clock = view__lead(tl);
		return true;
	case VIEW_ENTER_REQUEST:
		tl->under.wanted = !tl->under.wanted;
		return true;
	default:
		return false;
	}
}

/* Handle a movement; if nothing changed, report why. */
static bool view_move(struct view_timeline *tl, enum view_request request)
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

	if (!view_handle_move(tl, request))
		return false;
	if (tl->cursor.ns != cursor || after->from != before.from || after->to != before.to)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i].request == request)
			view__say(tl, steps[i].limit);
	return true;
}

/* ---- what to show ---------------------------------------------------------------------------- */

/* Choose the next breakdown: the bubble as a whole, by cause, the critical path, or sums by name.
 * In VIEW_BSP: active tiles, balances, or the cycles of each IPU by kind. */
static void view_next_breakdown(struct view_timeline *tl)
{
	struct view_chosen *choice = &tl->choice;
	struct view_context *context = tl->context;

	if (choice->way == VIEW_BSP) {
		choice->by_name = choice->balance && !choice->by_name;
		choice->balance = choice->by_name || !choice->balance;
		tl->under.wanted |= choice->by_name;
		if (!view__sums_lack_room(tl, context, context->message, sizeof(context->message)))
			view_message(context,
				     choice->by_name ? "cycles of each IPU: its proportions, tile "
						       "balance, bytes"
				     : choice->balance ? "heights are tile balances"
						       : "heights are tiles at work",
				     NULL);
		return;
	}
	if (choice->by_name) {
		choice->by_name = false;
	} else if (!choice->by_cause && !choice->critical &&
		   (tl->bubbles.mean[0].runs > 0 || tl->bubbles.mean[1].runs > 0)) {
		choice->by_cause = true;
		choice->way = VIEW_GANTT;
	} else if (!choice->critical && view__has_path(tl)) {
		choice->by_cause = false;
		choice->critical = true;
	} else {
		choice->by_cause = choice->critical = false;
		choice->by_name = tl->under.wanted = true;
	}
	if (!view__sums_lack_room(tl, context, context->message, sizeof(context->message)))
		view_message(context,
			     choice->by_name    ? "sums by name, of this lane"
			     : choice->by_cause ? "the bubble by its causes"
			     : choice->critical ? "the critical path; other spans are thin lines"
						: "the bubble as a whole",
			     NULL);
}

static bool view_change_choice(struct view_timeline *tl, enum view_request request)
{
	if (request == VIEW_BREAKDOWN_REQUEST) {
		view_next_breakdown(tl);
		return true;
	}
	if (request == VIEW_UNIT_REQUEST && tl->facts.hertz <= 0) {
		view__say(tl, "the recording does not tell the device's clock");
		return true;
	}
	if (request == VIEW_UNIT_REQUEST) {
		tl->choice.cycles = !tl->choice.cycles;
		view_message(tl->context, "device times in ", tl->choice.cycles ? "cycles" : "ns");
		return true;
	}
	if (request == VIEW_BACK_REQUEST && tl->filter.text[0]) {
		view__timeline_filter(tl, "");
		return true;
	}
	return false;
}

/* Is it one of the timeline's own requests? The session handles the others. */
static bool view_is_movement(enum view_request request)
{
	static const char *const own[] = {"Moving", "Timeline", "Zooming", "Looking closer"};
	const char *group = view_request_info(request)->group;

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (strcmp(group, own[i]) == 0)
			return true;
	return false;
}

enum view_answer view__timeline_request(void *state, struct view_context *context,
					enum view_request request)
{
	struct view_timeline *tl = state;

	if (!(view_request_info(request)->screens & VIEW_ON_TIMELINE))
		return VIEW_UNHANDLED;
	view__begin(tl, context);
	if (tl->lane_count == 0) {
		if (!view_is_movement(request))
			return VIEW_UNHANDLED;
		view_message(context, "no spans recorded", NULL);
		return VIEW_DRAW;
	}
	if (view_move(tl, request) || view_change_choice(tl, request) ||
	    view__lanes_request(tl, request) || view__counters_request(tl, request))
		return VIEW_LOAD;
	if (!tl->db && view_is_movement(request)) {
		view_message(context, "the run is being closed: a moment", NULL);
		return VIEW_DRAW;
	}
	return view_handle_jump(tl, request) ? VIEW_LOAD : VIEW_UNHANDLED;
}

/* ---- clicks ---------------------------------------------------------------------------------- */

/* Move the cursor to the lane, the row and the time of the cell. After a drag from another cell of
 * the same clock, measure lengths from there. */
enum view_answer view__timeline_click(void *state, struct view_context *context, int x, int y)
{
	struct view_timeline *tl = state;
	const int column = x - tl->areas.lanes.x, row = y - tl->areas.lanes.y;
	const struct view_rect *overview = &tl->areas.overview;

	if (tl->lane_count == 0 || column < 0 || column >= tl->width)
		return VIEW_UNHANDLED;
	view__begin(tl, context);
	if (overview->height > 0 && y == overview->y) {
		struct view_clock *clock = view__clock(tl);
		const int64_t length = clock->window.to - clock->window.from;

		/* Move the window to the clicked time of the whole run. */
		tl->cursor.ns = view_window_time(clock->extent, tl->width, column);
		tl->cursor.pinned = IPS_NULL;
		view__move_window(clock, tl->cursor.ns - length / 2);
		return VIEW_LOAD;
	}
	for (int i = 0; i < tl->lane_count && row < tl->areas.lanes.height; i++) {
		const struct view_lane *lane = &tl->lanes[i];
		const int clock = lane->track->clock;
		int depth = 0;

		if (lane->rows == 0 || row < lane->y || row >= lane->y + view__lane_height(lane))
			continue;
		if (context->dragged && clock == view__lead(tl)) {
			tl->cursor.x_ns = tl->cursor.ns;
			tl->cursor.x_clock = clock;
		}
		while (depth + 1 < lane->rows && row >= view__row_y(lane, depth + 1))
			depth++;
		view__go(tl, i, lane->first_depth + depth,
			 view_window_time(tl->clock[clock].window, tl->width, column), IPS_NULL);
		return VIEW_LOAD;
	}
	return VIEW_UNHANDLED;
}
