/*
 * The timeline's two clocks: units and axes, the mapping from one to the other, the untraced ranges
 * of device time, the first window, and the move of the cursor with its window.
 *
 * Executions give an approximate mapping between host and device time. A window that shows a part
 * of an execution is aligned to the same weight update on both clocks, found by bisection, since a
 * lane's updates are in order of time within an execution.
 *
 * Lanes of IPUs have spans only of the executions that were traced
 * (autoReport.executionProfileProgramRunCount); the rest is not idle time. An untraced range
 * extends from the start of its first execution to the end of the last one before the next traced
 * one. Executions are read once after news, in order of time; only ranges are retained.
 *
 * Threading: one thread. Ownership: the timeline owns the ranges; links are in the arena of tracks;
 * texts of spans in the picture's arena.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"
#include "common/str.h"

#define MOST_LINKS  2000  /* points that link the clocks */
#define MOST_DARK   65536 /* retained untraced ranges; time beyond them counts as idle */
#define TAIL_PART   100   /* a tail below 1/100 of the run after the last span is ignored */
#define FOR_EVER    (INT64_MAX / 4)
#define EDGE_TRIES  16   /* spans of other depths skipped, at most, in search of an edge */
#define FINE        256  /* an update's start is found to 1/256 of the window */
#define PERIODS     1.35 /* pipeline runs in the first window */
#define BUSY_LEAST  0.15 /* least busy share of a device lane for the device to lead */
#define TICKS_APART 14

/* ---- units ----------------------------------------------------------------------------------- */

static bool view_in_cycles(const struct view_timeline *tl, int clock)
{
	return clock == IPS_DEVICE && tl->choice.cycles && tl->facts.hertz > 0;
}

/* Convert @ns of @clock to the chosen unit. */
static int64_t view_to_unit(const struct view_timeline *tl, int clock, int64_t ns)
{
	return view_in_cycles(tl, clock) ? llround((double)ns * tl->facts.hertz / 1e9) : ns;
}

/* Format the time @at, which is in the chosen unit. */
static const char *view_unit_text(const struct view_timeline *tl, int clock,
				  char out[VIEW_UNIT_SIZE], int64_t at, int64_t step)
{
	return view_in_cycles(tl, clock) ? fmt_count(out, at)
					 : view_tick_text(out, at, step, tl->clock[clock].window);
}

const char *view__time_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			    int64_t ns, int64_t step)
{
	return view_unit_text(tl, clock, out, view_to_unit(tl, clock, ns), step);
}

const char *view__length_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			      int64_t ns)
{
	char number[FMT_SIZE];

	if (!view_in_cycles(tl, clock))
		return fmt_ns(out, ns);
	snprintf(out, VIEW_UNIT_SIZE, "%s cycles", fmt_count(number, view_to_unit(tl, clock, ns)));
	return out;
}

/* ---- axes ------------------------------------------------------------------------------------ */

int view__cursor_column(const struct view_timeline *tl, int clock)
{
	return view__lead(tl) == clock
		       ? (int)view_window_column(tl->clock[clock].window, tl->width, tl->cursor.ns)
		       : -1;
}

/* Draw a tick's label. A mark moves it by a column or suppresses it, since a cut number would be
 * wrong. */
static void view_draw_tick(const struct view_timeline *tl, struct view_pane *pane, int y, int x,
			   const int marks[2], const char *text)
{
	const int width = utf8_columns(text);

	for (int i = 0; i < 2; i++)
		x += marks[i] == x + 1;
	for (int i = 0; i < 2; i++)
		if (marks[i] > x && marks[i] <= x + width)
			return;
	if (x + 1 + width < tl->width)
		view_text(pane, x + 1, y, VIEW_DIM, text);
}

void view__draw_axis(const struct view_timeline *tl, int clock, struct view_pane *pane)
{
	const struct view_window window = tl->clock[clock].window;
	const struct view_window unit = {view_to_unit(tl, clock, window.from),
					 view_to_unit(tl, clock, window.to)};
	const int y = tl->clock[clock].axis_y;
	char text[VIEW_UNIT_SIZE];
	const int widest = utf8_columns(
		view_unit_text(tl, clock, text, unit.to, view_tick_step(unit, tl->width, 8)));
	const int64_t step = view_tick_step(unit, tl->width, max(widest + 3, TICKS_APART));
	int marks[2] = {-1, -1}; /* columns of x and of the cursor */

	if (tl->cursor.x_ns != IPS_NULL && tl->cursor.x_clock == clock) {
		const int64_t x = view_window_column(window, tl->width, tl->cursor.x_ns);

		marks[0] = x >= 0 && x < tl->width ? (int)x : -1;
	}
	if (!pane->canvas->plain)
		marks[1] = view__cursor_column(tl, clock);
	view_glyphs(pane, 0, y, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, tl->width);
	for (int64_t at = unit.from - unit.from % step; at <= unit.to && at < INT64_MAX;
	     at = sat_add(at, step)) {
		const int64_t x = view_window_column(unit, tl->width, at);

		if (at < unit.from || x + 2 >= tl->width)
			continue;
		view_glyphs(pane, (int)x, y, VIEW_DIM, VIEW_GLYPH_TICK, 1);
		view_draw_tick(tl, pane, y, (int)x, marks,
			       view_unit_text(tl, clock, text, at, step));
	}
	if (marks[0] >= 0)
		view_put(pane, marks[0], y, VIEW_KEY, 'x');
	if (marks[1] >= 0)
		view_glyphs(pane, marks[1], y, VIEW_TITLE, VIEW_GLYPH_CURSOR, 1);
}

/* ---- from clock to clock --------------------------------------------------------------------- */

/* Read the links from executions, which both clocks record, in ns and cycles. Of one rank only,
 * since each rank's device starts at 0. */
static void view_read_links(struct view_timeline *tl)
{
	static const char sql[] =
		"SELECT start_ns, start_ns + dur_ns, start_cycle, start_cycle + cycles "
		"FROM executions WHERE start_ns IS NOT NULL AND dur_ns > 0 AND cycles > 0 "
		"AND start_cycle IS NOT NULL AND rank = coalesce((SELECT min(rank) FROM "
		"executions WHERE rank >= :rank), (SELECT min(rank) FROM executions)) "
		"AND execution % (1 + (SELECT max(execution) FROM executions) / 900) = 0 "
		"ORDER BY start_ns LIMIT 1000";
	struct view_links *links = &tl->links;
	struct prof_query *query;

	links->count = 0;
	tl->status = prof_query_open(&query, tl->db, sql, &tl->err);
	prof_query_int(query, ":rank", links->rank);
	while (links->count + 2 <= MOST_LINKS && prof_query_next(query, &tl->status, &tl->err))
		for (int end = 0; end < 2; end++) {
			const struct view_link link = {prof_column_int(query, end),
						       prof_column_int(query, 2 + end)};
			const struct view_link *last =
				links->count ? &links->points[links->count - 1] : NULL;

			if (!last ||
			    (link.host_ns > last->host_ns && link.device_ns > last->device_ns))
				links->points[links->count++] = link;
		}
	prof_query_close(query);
}

/* Read the links of @rank, unless they are known. */
static void view_load_links(struct view_timeline *tl, int64_t rank)
{
	const struct view_window host = tl->clock[IPS_HOST].extent,
				 device = tl->clock[IPS_DEVICE].extent;
	struct view_links *links = &tl->links;

	rank = rank == IPS_NULL ? 0 : rank;
	if (tl->status != ST_OK || (links->points && links->rank == rank))
		return;
	links->rank = rank;
	links->ns_per_cycle = tl->facts.hertz > 0 ? 1e9 / tl->facts.hertz : 1;
	if (!links->points)
		links->points =
			view__alloc(tl, &tl->tracks.arena, MOST_LINKS, sizeof(*links->points));
	if (!links->points)
		return;
	view_read_links(tl);
	if (tl->status != ST_OK)
		return;
	if (links->count < 2) {
		links->points[0] = (struct view_link){host.from, device.from};
		links->points[1] = (struct view_link){host.to, device.to};
		links->count = 2;
		return;
	}
	/* If the clock rate is unknown, assume that the last execution ends when the lanes end. */
	if (tl->facts.hertz <= 0)
		links->ns_per_cycle =
			(double)device.to / (double)links->points[links->count - 1].device_ns;
	for (int i = 0; i < links->count; i++)
		links->points[i].device_ns =
			sat_real((double)links->points[i].device_ns * links->ns_per_cycle);
}

/* The first pipeline lane of @clock, preferably of the rank whose clocks are linked; -1: none. */
static int view_pipeline_lane(const struct view_timeline *tl, int clock)
{
	int first = -1;

	for (int i = tl->lane_count - 1; i >= 0; i--) {
		const struct prof_track *track = tl->lanes[i].track;

		if (tl->lanes[i].pipeline && track->clock == clock &&
		    (first < 0 || track->rank == tl->links.rank ||
		     tl->lanes[first].track->rank != tl->links.rank))
			first = i;
	}
	return first;
}

/* Get start and weight update of @lane's next span after @time. false: none, or it has no
 * update. */
static bool view_update_after(struct view_timeline *tl, int lane, int64_t time, int64_t *start,
			      int64_t *update)
{
	struct prof_span span;

	if (!view__next_span(tl, tl->lanes[lane].track, time, true, &tl->picture, &span))
		return false;
	*start = span.start_ns;
	*update = span.weight_update;
	return span.weight_update != IPS_NULL;
}

/* Find the start of @update on @lane within @within, to @fine ns, by bisection. */
static bool view_find_update(struct view_timeline *tl, int lane, struct view_window within,
			     int64_t update, int64_t fine, int64_t *out)
{
	int64_t low = within.from - 1, high = within.to;
	bool found = false;

	while (high - low > max(fine, 1)) {
		const int64_t middle = low + (high - low) / 2;
		int64_t start, of;

		if (!view_update_after(tl, lane, middle, &start, &of) || start >= within.to) {
			high = middle;
		} else if (of < update) {
			low = start;
		} else {
			high = middle;
			if (of == update) {
				found = true;
				*out = start;
			}
		}
	}
	return found;
}

/* Shift @to, the other clock's window, so that both clocks show the same weight update. */
static void view_link_update(struct view_timeline *tl, int lead, struct view_window from,
			     struct view_window *to)
{
	const int mine = view_pipeline_lane(tl, lead), its = view_pipeline_lane(tl, !lead);
	const int64_t length = from.to - from.from, middle = from.from + length / 2;
	struct view_window piece[2]; /* between the two adjacent links, on both clocks */
	int64_t start, update, begin[2], shift;
	int i = 0;

	for (; i + 1 < tl->links.count; i++) {
		const struct view_link *a = &tl->links.points[i], *b = a + 1;

		piece[0] = (struct view_window){a->host_ns, b->host_ns};
		piece[1] = (struct view_window){a->device_ns, b->device_ns};
		if (middle >= piece[lead].from && middle < piece[lead].to)
			break;
	}
	if (mine < 0 || its < 0 || i + 1 >= tl->links.count ||
	    length > (piece[lead].to - piece[lead].from) / 2 ||
	    !view_update_after(tl, mine, middle, &start, &update) || start >= piece[lead].to ||
	    !view_find_update(tl, mine, piece[lead], update, length / FINE, &begin[lead]) ||
	    !view_find_update(tl, its, piece[!lead], update, (to->to - to->from) / FINE,
			      &begin[!lead]))
		return;
	shift = begin[!lead] - to->from -
		sat_real((double)(begin[lead] - from.from) / (double)length *
			 (double)(to->to - to->from));
	to->from += shift;
	to->to += shift;
}

static void view_link_windows(struct view_timeline *tl)
{
	const int lead = view__lead(tl), other = !lead;
	const struct view_window from = tl->clock[lead].window;
	struct view_window to;

	if (!tl->clock[IPS_HOST].present || !tl->clock[IPS_DEVICE].present)
		return;
	if (view__shows_all(&tl->clock[lead])) {
		tl->clock[other].window = tl->clock[other].extent;
		return;
	}
	to.from = view_link_map(tl->links.points, tl->links.count, from.from, other);
	to.to = view_link_map(tl->links.points, tl->links.count, from.to, other);
	to.to = max(to.to, to.from + VIEW_WINDOW_LEAST);
	view_link_update(tl, lead, from, &to);
	tl->clock[other].window = view_window_clamp(to, tl->clock[other].extent);
}

void view__link_windows(struct view_timeline *tl)
{
	view_load_links(tl, view__lane(tl)->track->rank);
	if (tl->status == ST_OK)
		view_link_windows(tl);
}

/* ---- untraced ranges ------------------------------------------------------------------------- */

static bool view_is_ipu_of(const struct prof_track *track, int64_t rank)
{
	return track->clock == IPS_DEVICE && track->ipu != IPS_NULL && track->rank == rank &&
	       view__has_spans(track);
}

/* The range from the first to the last span of the rank's IPUs. */
static struct view_window view_recorded_range(const struct view_timeline *tl, int64_t rank)
{
	struct view_window all = VIEW_NO_WINDOW;

	for (int i = 0; i < tl->tracks.count; i++) {
		const struct prof_track *track = &tl->tracks.all[i];

		if (view_is_ipu_of(track, rank))
			view__include(&all, track->first_ns, track->last_ns);
	}
	return all;
}

/* Does a lane of the rank have spans in the range? Then it was traced after all. */
static bool view_has_spans_in(struct view_timeline *tl, const struct view_dark *dark)
{
	for (int i = 0; i < tl->tracks.count; i++) {
		const struct prof_track *track = &tl->tracks.all[i];
		struct prof_span span;

		if (view_is_ipu_of(track, dark->rank))
			return view__next_span(tl, track, dark->at.from, true, &tl->picture,
					       &span) &&
			       span.start_ns + 1 < dark->at.to;
	}
	return false;
}

/* Process the next execution in order of time: start a range, extend it, or end it. */
static void view_add_execution(struct view_timeline *tl, const struct prof_query *query, bool *open)
{
	struct view_untraced *dark = &tl->dark;
	struct view_dark *last = dark->count > 0 ? &dark->all[dark->count - 1] : NULL;
	const int64_t rank = prof_column_int(query, 0), execution = prof_column_int(query, 1);
	const int64_t start = prof_column_int(query, 3), cycles = prof_column_int(query, 4);
	const double ns = tl->links.ns_per_cycle;
	const int64_t from = sat_real(round((double)start * ns));
	const int64_t to = cycles == IPS_NULL
				   ? FOR_EVER
				   : sat_real(round((double)sat_add(start, cycles) * ns));

	if (prof_column_int(query, 2) != 0) {
		*open = false;
		return;
	}
	if (*open && last && last->rank == rank) {
		last->at.to = max(to, last->at.to);
		last->last = execution;
		return;
	}
	/* Ranges beyond the most are lost; they do not extend the last one. */
	*open = dark->count < MOST_DARK;
	if (!*open)
		return;
	if (mem_grow(&dark->all, &dark->capacity, dark->count + 1, sizeof(*dark->all)))
		tl->status = err_nomem(&tl->err);
	else
		dark->all[dark->count++] =
			(struct view_dark){rank, {from, to}, execution, execution};
}

static void view_load_untraced(struct view_timeline *tl)
{
	static const char sql[] =
		"SELECT rank, execution, traced, start_cycle, cycles FROM executions WHERE "
		"start_cycle IS NOT NULL AND EXISTS (SELECT 1 FROM executions WHERE traced = 0) "
		"ORDER BY rank, start_cycle";
	struct view_untraced *dark = &tl->dark;
	struct prof_query *query;
	bool open = false, lit = false;
	size_t used = 0;

	tl->status = prof_query_open(&query, tl->db, sql, &tl->err);
	dark->count = 0;
	while (prof_query_next(query, &tl->status, &tl->err))
		view_add_execution(tl, query, &open);
	prof_query_close(query);
	/* If a rank's lanes have spans in its first range, drop the rank's ranges. */
	for (size_t i = 0; i < dark->count && tl->status == ST_OK; i++) {
		if (i == 0 || dark->all[i].rank != dark->all[i - 1].rank)
			lit = view_has_spans_in(tl, &dark->all[i]);
		if (!lit)
			dark->all[used++] = dark->all[i];
	}
	dark->count = used;
	/* If a rank's last execution was not traced, nothing after it was. */
	for (size_t i = 0; i < dark->count; i++) {
		struct view_dark *at = &dark->all[i];

		if ((i + 1 == dark->count || at[1].rank != at->rank) &&
		    view_recorded_range(tl, at->rank).to <= at->at.from)
			at->at.to = FOR_EVER;
	}
}

/* The first range of the rank that ends after @time; NULL: none. */
static const struct view_dark *view_untraced_after(const struct view_timeline *tl, int64_t rank,
						   int64_t time)
{
	const struct view_dark *dark = tl->dark.all;
	size_t at;

	SORTED_FIRST(at, 0, tl->dark.count,
		     dark[at].rank < rank || (dark[at].rank == rank && dark[at].at.to <= time));
	return at < tl->dark.count && dark[at].rank == rank ? &dark[at] : NULL;
}

bool view__next_untraced(const struct view_timeline *tl, const struct view_lane *lane, int64_t time,
			 struct view_dark *out)
{
	const struct view_window extent = tl->clock[IPS_DEVICE].extent;
	const int64_t rank = lane->track->rank;
	const struct view_dark *dark;

	if (!lane->pipeline || lane->track->clock != IPS_DEVICE)
		return false;
	dark = view_untraced_after(tl, rank, time);
	if (dark) {
		*out = *dark;
		return true;
	}
	/* No execution covers that time: the device ran on after the last span. */
	*out = (struct view_dark){rank, {view_recorded_range(tl, rank).to, extent.to}, IPS_NULL, 0};
	return !view_untraced_after(tl, rank, out->at.from) && out->at.to > time &&
	       out->at.to - out->at.from > (extent.to - extent.from) / TAIL_PART;
}

int64_t view__traced_ns(const struct view_timeline *tl, const struct view_lane *lane,
			struct view_window window)
{
	const struct view_window all = view_recorded_range(tl, lane->track->rank);
	struct view_dark dark;
	int64_t ns;

	if (lane->pipeline && lane->track->clock == IPS_DEVICE) {
		window.from = max(all.from, window.from);
		window.to = min(all.to, window.to);
	}
	ns = window.to - window.from;
	for (int64_t at = window.from;
	     ns > 0 && view__next_untraced(tl, lane, at, &dark) && dark.at.from < window.to;
	     at = dark.at.to)
		ns -= min(dark.at.to, window.to) - max(dark.at.from, window.from);
	return max(ns, 0);
}

void view__mark_untraced(const struct view_timeline *tl, const struct view_lane *lane,
			 struct view_window window, struct view_lane_cell *columns)
{
	struct view_dark dark;

	for (int64_t at = window.from;
	     view__next_untraced(tl, lane, at, &dark) && dark.at.from < window.to;
	     at = dark.at.to) {
		int64_t x = view_window_column(window, tl->width, dark.at.from);

		/* A cell is untraced if its middle is. */
		for (x = max(0, x); x < tl->width; x++) {
			const int64_t left = view_window_time(window, tl->width, x);
			const int64_t middle =
				left + (view_window_time(window, tl->width, x + 1) - left) / 2;

			if (middle >= dark.at.to)
				break;
			columns[x].dark = middle >= dark.at.from;
		}
	}
}

/* ---- idle time at a given time --------------------------------------------------------------- */

/*
 * Find when the next work after @time starts, or the last one before it ends; without any, return
 * the clock's extent. false: too many spans of other depths; it is idle at least up to *@edge.
 */
static bool view_find_edge(struct view_timeline *tl, int64_t time, bool forward, int64_t *edge)
{
	const struct view_lane *lane = view__lane(tl);
	const struct view_window extent = view__clock(tl)->extent;
	int64_t from = forward ? time : time + 1; /* a span that starts at @time is before it */

	*edge = time;
	for (int i = 0; i < EDGE_TRIES; i++) {
		struct prof_span span;
		int64_t id;

		if (prof_timeline_find(tl->db, lane->track->track_id, lane->track->clock, NULL,
				       from, forward, &id, NULL) != ST_OK)
			return false;
		if (id == IPS_NULL) {
			*edge = forward ? extent.to : extent.from;
			return true;
		}
		if (prof_timeline_span(tl->db, id, &tl->under.arena, &span, NULL) != ST_OK)
			return false;
		from = span.start_ns;
		if (span.depth != lane->work_depth)
			(void)view__span_at(tl, lane->track, from, lane->work_depth,
					    &tl->under.arena, &span);
		if (span.depth == lane->work_depth && span.dur_ns != 0) {
			*edge = forward                   ? span.start_ns
				: span.dur_ns == IPS_NULL ? extent.to
							  : span.start_ns + span.dur_ns;
			return true;
		}
		*edge = from;
	}
	return false;
}

bool view__gap_at(struct view_timeline *tl, int64_t time, struct view_gap *out)
{
	const struct view_lane *lane = view__lane(tl);
	struct view_window *at = &out->at;
	struct prof_span span;
	struct view_dark dark;

	if (view__span_at(tl, lane->track, time, lane->work_depth, &tl->under.arena, &span) &&
	    span.depth == lane->work_depth)
		return false;
	out->begun = view_find_edge(tl, time, false, &at->from);
	out->ended = view_find_edge(tl, time, true, &at->to);
	if (at->from > time || at->to <= time)
		return false;
	/* Untraced time is not idle time: the gap is entirely one or the other. */
	out->dark = view__next_untraced(tl, lane, time, &dark) && dark.at.from <= time;
	if (out->dark) {
		at->from = max(dark.at.from, at->from);
		at->to = min(dark.at.to, at->to);
		return true;
	}
	for (int64_t next = at->from;
	     view__next_untraced(tl, lane, next, &dark) && dark.at.from < at->to;
	     next = dark.at.to) {
		if (dark.at.to <= time)
			at->from = dark.at.to;
		else
			at->to = dark.at.from;
	}
	return true;
}

/* ---- loading --------------------------------------------------------------------------------- */

static void view_load_clocks(struct view_timeline *tl)
{
	struct view_window all[2] = {VIEW_NO_WINDOW, VIEW_NO_WINDOW};

	if (tl->status != ST_OK)
		return;
	/* Extents are of all tracks, shown or not; a clock is present if it has shown lanes. */
	tl->clock[IPS_HOST].present = tl->clock[IPS_DEVICE].present = false;
	for (int i = 0; i < tl->lane_count; i++)
		tl->clock[tl->lanes[i].track->clock].present = true;
	for (int i = 0; i < tl->tracks.count; i++)
		if (view__has_spans(&tl->tracks.all[i]))
			view__include(&all[tl->tracks.all[i].clock], tl->tracks.all[i].first_ns,
				      tl->tracks.all[i].last_ns);
	for (int c = 0; c < 2; c++) {
		struct view_window *extent = &tl->clock[c].extent;

		if (all[c].from <= all[c].to)
			*extent = all[c];
		extent->to = max(extent->to, extent->from + VIEW_WINDOW_LEAST);
	}
	view_load_links(tl, tl->links.rank);
	if (tl->status == ST_OK)
		view_load_untraced(tl);
}

/* ---- the first window ------------------------------------------------------------------------ */

/* Find the second training execution of @rank, preferring traced ones, or else the first. @host:
 * its time; @period: ns per weight update. */
static bool view_find_steady(struct prof_db *db, int64_t rank, struct view_window *host,
			     int64_t *period)
{
	static const char sql[] =
		"SELECT start_ns, dur_ns, updates FROM executions WHERE rank = :rank AND mode = "
		"'train' AND "
		"updates > 2 AND dur_ns > 0 AND start_ns >= 0 ORDER BY coalesce(traced, 0) DESC, "
		"start_ns LIMIT 2";
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, NULL);
	bool some = false;

	prof_query_int(query, ":rank", rank);
	while (prof_query_next(query, &status, NULL)) {
		host->from = prof_column_int(query, 0);
		host->to = host->from + prof_column_int(query, 1);
		*period = prof_column_int(query, 1) / prof_column_int(query, 2);
		some = true;
	}
	prof_query_close(query);
	return some && *period > VIEW_WINDOW_LEAST;
}

/* The busy share of the lane in @window, 0 to 1. */
static double view_busy_part(struct view_timeline *tl, int lane, struct view_window window)
{
	const struct prof_track *track = tl->lanes[lane].track;
	struct prof_bar *bars;
	double busy = 0;
	int count;

	if (prof_timeline_bars(tl->db, track->track_id, window.from, window.to, 64, track->last_ns,
			       &tl->picture, &bars, &count, NULL) != ST_OK)
		return 0;
	for (int i = 0; i < count; i++)
		if (bars[i].depth == tl->lanes[lane].work_depth)
			busy += (double)bars[i].busy_ns;
	return busy / (double)(window.to - window.from);
}

/* Show the second pipeline run of that execution; false: there is no steady state. */
static bool view_show_steady_run(struct view_timeline *tl)
{
	const int device = view_pipeline_lane(tl, IPS_DEVICE);
	const int lane = view_pipeline_lane(tl, IPS_HOST);
	int64_t period = 0, first, start, next, length, update;
	struct view_window within = {0}, *window = &tl->clock[IPS_HOST].window;

	if (lane < 0 || !view_find_steady(tl->db, tl->lanes[lane].track->rank, &within, &period) ||
	    !view_update_after(tl, lane, within.from - 1, &first, &update) ||
	    !view_find_update(tl, lane, within, ++update, period / FINE, &start) ||
	    !view_find_update(tl, lane, within, update + 1, period / FINE, &next) ||
	    next - start <= VIEW_WINDOW_LEAST)
		return false;
	length = next - start;
	tl->cursor.lane = lane;
	window->from = start - length / 20;
	window->to = sat_add(window->from, sat_real((double)length * PERIODS));
	*window = view_window_clamp(*window, tl->clock[IPS_HOST].extent);
	view_link_windows(tl);
	tl->cursor.ns = start;
	/* The device leads if its bars are wide enough to read. */
	window = &tl->clock[IPS_DEVICE].window;
	if (device >= 0 && view_busy_part(tl, device, *window) >= BUSY_LEAST) {
		tl->cursor.lane = device;
		tl->cursor.ns = window->from;
		(void)view_find_update(tl, device, *window, update, length / FINE, &tl->cursor.ns);
	}
	tl->cursor.depth = view__lane(tl)->work_depth;
	return true;
}

static void view_first_window(struct view_timeline *tl)
{
	const struct view_context *context = tl->context;
	struct view_clock *clock;

	for (int c = 0; c < 2; c++)
		tl->clock[c].window = tl->clock[c].extent;
	/* Start on the first IPU. */
	tl->cursor.lane = 0;
	for (int i = tl->lane_count - 1; i >= 0; i--)
		if (tl->lanes[i].pipeline)
			tl->cursor.lane = i;
	tl->cursor.depth = view__lane(tl)->work_depth;
	clock = view__clock(tl);
	if (context->ranged) {
		if (context->from_ns > clock->extent.from && context->from_ns < clock->extent.to)
			clock->window.from = context->from_ns;
		if (context->to_ns < clock->extent.to && context->to_ns > clock->window.from)
			clock->window.to = context->to_ns;
		clock->window.to = max(clock->window.to, clock->window.from + VIEW_WINDOW_LEAST);
	}
	tl->cursor.ns = clock->window.from;
	tl->started = true;
	/* On a screen show a readable pipeline run; a key shows the whole. */
	if (!context->ranged && !context->whole && !context->follow && view_show_steady_run(tl))
		tl->cursor.track_id = view__lane(tl)->track->track_id;
}

/* ---- after news, or another choice of lanes -------------------------------------------------- */

/* Choose a lane for the cursor if its own is not shown: preferably of the same clock, then of an
 * IPU. */
static void view_select_fallback_lane(struct view_timeline *tl)
{
	int best_score = -1;
	struct view_clock *clock;

	tl->cursor.lane = 0;
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];
		const int score = 2 * (lane->track->clock == tl->cursor.clock) + lane->pipeline;

		if (score > best_score) {
			tl->cursor.lane = i;
			best_score = score;
		}
	}
	if (tl->lane_count == 0)
		return;
	tl->cursor.depth = view__lane(tl)->work_depth;
	if (view__lead(tl) == tl->cursor.clock || !tl->started)
		return;
	clock = view__clock(tl);
	tl->cursor.ns =
		view_link_map(tl->links.points, tl->links.count, tl->cursor.ns, view__lead(tl));
	clock->window = view_window_show(clock->window, tl->cursor.ns, clock->extent);
}

void view__lanes_load(struct view_timeline *tl)
{
	const bool first = !tl->started;
	const bool all[2] = {view__shows_all(&tl->clock[IPS_HOST]),
			     view__shows_all(&tl->clock[IPS_DEVICE])};

	view__make_lanes(tl);
	view_load_clocks(tl);
	view__bubbles_read(tl);
	if (tl->status != ST_OK)
		return;
	tl->cursor.lane = view__lane_of(tl, tl->cursor.track_id);
	if (first && tl->lane_count > 0)
		view_first_window(tl);
	if (tl->cursor.lane < 0)
		view_select_fallback_lane(tl);
	/* A window of the whole run stays one; when following, show the end. */
	for (int c = 0; c < 2 && !first; c++) {
		struct view_clock *clock = &tl->clock[c];

		if (all[c])
			clock->window = clock->extent;
		else if (tl->context->follow)
			view__move_window(clock,
					  clock->extent.to - clock->window.to + clock->window.from);
	}
	tl->relane = false;
}

bool view__show_hidden(struct view_timeline *tl)
{
	if (tl->hiding.lanes == 0)
		return false;
	view__hidden_free(tl);
	if (tl->target)
		tl->target->relane = true;
	view__lanes_load(tl);
	return tl->status == ST_OK;
}

/* ---- the cursor ------------------------------------------------------------------------------ */

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
