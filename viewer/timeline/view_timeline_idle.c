/*
 * Idle times of the cursor's lane: the one around a moment, from span to span, and the longest in
 * the window.
 *
 * Edges are looked up, not read off the picture, whose buckets and window are wider or narrower
 * than what they show: one search each way.
 *
 * Threading: one thread. Ownership: bars are the picture's arena's.
 */
#include <stdio.h>

#include "common/minmax.h"
#include "viewer/timeline/view_timeline_internal.h"

#define MOST_TRIES   16 /* spans of other depths on the way to an edge */
#define SCAN_COLUMNS 1024
#define MOST_SCANS   12
#define MOST_LOOKS   40 /* scans and edges */
#define MOST_GUESSES 256

/* ---- around a moment ------------------------------------------------------------------------- */

/* The deepest span of the lane at @time, no deeper than work is; false: none. */
static bool view_work_at(struct view_timeline *tl, struct prof_db *db, int64_t time,
			 struct prof_span *out)
{
	const struct view_lane *lane = view__lane(tl);
	int64_t id;

	return prof_timeline_at(db, lane->track->track_id, time, lane->work_depth, &id, NULL) ==
		       ST_OK &&
	       id != IPS_NULL && prof_timeline_span(db, id, &tl->detail, out, NULL) == ST_OK;
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
	for (int i = 0; i < MOST_TRIES; i++) {
		struct prof_span span;
		int64_t id;

		if (prof_timeline_find(db, lane->track->track_id, lane->track->clock, NULL, from,
				       forward, &id, NULL) != ST_OK)
			return false;
		if (id == IPS_NULL) {
			*edge = forward ? clock->extent.to : clock->extent.from;
			return true;
		}
		if (prof_timeline_span(db, id, &tl->detail, &span, NULL) != ST_OK)
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
	const struct view_lane *lane = &tl->lanes[tl->lane];
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

	while (at.from < at.to && view__next_dark(tl, &tl->lanes[tl->lane], at.from, &dark) &&
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
static bool view_scan(struct view_timeline *tl, struct prof_db *db, struct view_worst *worst,
		      struct view_window window, int64_t slack)
{
	const struct view_lane *lane = view__lane(tl);
	int64_t covered = window.from, before = slack;
	struct prof_bar *bars;
	int count;

	if (prof_timeline_bars(db, lane->track->track_id, window.from, window.to, SCAN_COLUMNS,
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
			(void)view_scan(tl, db, worst, guess->at, guess->most);
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
	return tl->way == VIEW_BSP ? "time without stage work" : "idle time";
}

bool view__jump_worst(struct view_timeline *tl, struct view_context *context)
{
	struct view_worst worst = {.window = view__clock(tl)->window};
	const struct view_window window = worst.window;
	const char *lane = view__lane(tl)->track->name, *kind = view_kind_of_gap(tl);
	struct view_guess guess = {window, 0, true};
	char length[VIEW_UNIT_SIZE];
	bool all = view_scan(tl, context->source->db, &worst, window, 0), more;

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
	view__go(tl, tl->lane, view__lane(tl)->work_depth,
		 max(worst.gap.from, window.from) + worst.length / 2, IPS_NULL);
	snprintf(context->message, sizeof(context->message), "the longest %s of %s %s: %s", kind,
		 lane, all ? "in the window" : "that was found",
		 view__length_text(tl, view__lead(tl), length, worst.gap.to - worst.gap.from));
	return true;
}
