/*
 * The timeline's two clocks: where one shows what the other does, what of the device's time was
 * traced, and the window that the timeline opens with.
 *
 * Executions tell roughly which device time belongs to a host time. A window that shows a part of
 * one is brought to the same weight update on both: found by bisection, since a lane's updates come
 * in order of time within an execution.
 *
 * Lanes of IPUs have spans of the executions that were traced
 * (autoReport.executionProfileProgramRunCount) and none of the others, which is not idle time. A
 * stretch that was not traced lasts from the start of the first such execution to the end of the
 * last one before the next that was. Executions are read once for each news, in order of time;
 * stretches are retained, not executions.
 *
 * Threading: one thread. Ownership: stretches are the timeline's; spans' texts are the picture's.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/sorted.h"

#define MOST_DARK  65536 /* stretches that are kept; what is beyond counts as idle */
#define TAIL_PART  100 /* less of the run than this part after its last span is not worth a word */
#define FOR_EVER   (INT64_MAX / 4)
#define MOST_LINKS 2000 /* points between the clocks */
#define FINE       256  /* of a window: how exactly an update's beginning is looked for */
#define PERIODS    1.35 /* pipeline runs in the first window */
#define BUSY_LEAST 0.15 /* of the device's lane, to be read in it */

/* ---- units ----------------------------------------------------------------------------------- */

bool view__in_cycles(const struct view_timeline *tl, int clock)
{
	return clock == IPS_DEVICE && tl->choice.cycles && tl->facts.hertz > 0;
}

static int64_t view_cycles(const struct view_timeline *tl, int64_t ns)
{
	return llround((double)ns * tl->facts.hertz / 1e9);
}

struct view_window view__unit_window(const struct view_timeline *tl, int clock)
{
	const struct view_window window = tl->clock[clock].window;

	if (!view__in_cycles(tl, clock))
		return window;
	return (struct view_window){view_cycles(tl, window.from), view_cycles(tl, window.to)};
}

const char *view__moment_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			      int64_t ns, int64_t step)
{
	return view__tick_text(tl, clock, out,
			       view__in_cycles(tl, clock) ? view_cycles(tl, ns) : ns, step);
}

const char *view__tick_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			    int64_t at, int64_t step)
{
	if (!view__in_cycles(tl, clock))
		return view_tick_text(out, at, step, tl->clock[clock].window);
	return fmt_count(out, at);
}

const char *view__length_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			      int64_t ns)
{
	char number[FMT_SIZE];

	if (!view__in_cycles(tl, clock))
		return fmt_ns(out, ns);
	snprintf(out, VIEW_UNIT_SIZE, "%s cycles", fmt_count(number, view_cycles(tl, ns)));
	return out;
}

/* ---- both clocks ----------------------------------------------------------------------------- */

bool view__shows_all(const struct view_clock *clock)
{
	return clock->window.from <= clock->extent.from && clock->window.to >= clock->extent.to;
}

/* Executions, which both clocks know: points where they meet. Device ns follow from cycles. Of one
 * rank alone: each rank's device begins at 0. */
static enum status view_read_links(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	static const char sql[] =
		"SELECT start_ns, start_ns + dur_ns, start_cycle, start_cycle + cycles "
		"FROM executions WHERE start_ns IS NOT NULL AND dur_ns > 0 AND cycles > 0 "
		"AND start_cycle IS NOT NULL AND rank = coalesce((SELECT min(rank) FROM "
		"executions WHERE rank >= :rank), (SELECT min(rank) FROM executions)) "
		"AND execution % (1 + (SELECT max(execution) FROM executions) / 900) = 0 "
		"ORDER BY start_ns LIMIT 1000";
	struct prof_query *query;
	bool row = false;
	enum status status = prof_query_open(&query, db, sql, err);

	tl->links.count = 0;
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":rank", tl->links.rank);
	while ((status = prof_query_step(query, &row, err)) == ST_OK && row &&
	       tl->links.count + 2 <= MOST_LINKS)
		for (int end = 0; end < 2; end++) {
			const struct view_link link = {prof_column_int(query, end),
						       prof_column_int(query, 2 + end)};
			const struct view_link *last =
				tl->links.count ? &tl->links.points[tl->links.count - 1] : NULL;

			if (!last ||
			    (link.host_ns > last->host_ns && link.device_ns > last->device_ns))
				tl->links.points[tl->links.count++] = link;
		}
	prof_query_close(query);
	return status;
}

enum status view__links_load(struct view_timeline *tl, struct prof_db *db, int64_t rank,
			     struct err *err)
{
	const struct view_window host = tl->clock[IPS_HOST].extent,
				 device = tl->clock[IPS_DEVICE].extent;
	enum status status;

	rank = rank == IPS_NULL ? 0 : rank;
	if (tl->links.points && tl->links.rank == rank)
		return ST_OK;
	tl->links.rank = rank;
	tl->links.ns_per_cycle = tl->facts.hertz > 0 ? 1e9 / tl->facts.hertz : 1;
	if (!tl->links.points)
		tl->links.points =
			arena_alloc(&tl->tracks.arena, MOST_LINKS, sizeof(*tl->links.points));
	if (!tl->links.points)
		return err_nomem(err);
	status = view_read_links(tl, db, err);
	if (status != ST_OK)
		return status;
	if (tl->links.count < 2) {
		tl->links.points[0] = (struct view_link){host.from, device.from};
		tl->links.points[1] = (struct view_link){host.to, device.to};
		tl->links.count = 2;
		return ST_OK;
	}
	/* A recording that does not tell its clock: the last execution ends where the lanes end. */
	tl->links.ns_per_cycle =
		tl->facts.hertz > 0
			? 1e9 / tl->facts.hertz
			: (double)device.to /
				  (double)tl->links.points[tl->links.count - 1].device_ns;
	for (int i = 0; i < tl->links.count; i++)
		tl->links.points[i].device_ns =
			sat_real((double)tl->links.points[i].device_ns * tl->links.ns_per_cycle);
	return ST_OK;
}

/* Extents are those of all tracks, shown or not; a clock is present where it has lanes. */
void view__measure_clocks(struct view_timeline *tl)
{
	bool some[2] = {false, false};

	tl->clock[IPS_HOST].present = tl->clock[IPS_DEVICE].present = false;
	for (int i = 0; i < tl->lane_count; i++)
		tl->clock[tl->lanes[i].track->clock == IPS_DEVICE].present = true;
	for (int i = 0; i < tl->tracks.count; i++) {
		const struct prof_track *track = &tl->tracks.all[i];
		const int c = track->clock == IPS_DEVICE;
		struct view_window *extent = &tl->clock[c].extent;

		if (track->depth < 1 || track->first_ns > track->last_ns)
			continue;
		if (!some[c])
			*extent = (struct view_window){track->first_ns, track->last_ns};
		if (track->first_ns < extent->from)
			extent->from = track->first_ns;
		if (track->last_ns > extent->to)
			extent->to = track->last_ns;
		some[c] = true;
	}
	for (int c = 0; c < 2; c++) {
		struct view_window *extent = &tl->clock[c].extent;

		if (extent->to - extent->from < VIEW_WINDOW_LEAST)
			extent->to = extent->from + VIEW_WINDOW_LEAST;
	}
}

/* ---- what was traced ------------------------------------------------------------------------- */

static bool view_is_lane(const struct prof_track *track, int64_t rank)
{
	return track->clock == IPS_DEVICE && track->ipu != IPS_NULL && track->depth > 0 &&
	       track->first_ns <= track->last_ns && track->rank == rank;
}

/* Recorded on any IPU of the rank: from its first span to its last. */
static struct view_window view_recorded(const struct view_timeline *tl, int64_t rank)
{
	struct view_window all = {INT64_MAX, INT64_MIN};

	for (int i = 0; i < tl->tracks.count; i++) {
		const struct prof_track *track = &tl->tracks.all[i];

		if (!view_is_lane(track, rank))
			continue;
		all.from = min(track->first_ns, all.from);
		all.to = max(track->last_ns, all.to);
	}
	return all;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Does a lane of the rank have spans there all the same? Then it knows better. */
static bool view_is_lit(struct view_timeline *tl, struct prof_db *db, const struct view_dark *dark)
{
	for (int i = 0; i < tl->tracks.count; i++) {
		struct prof_span span;
		int64_t id;

		if (view_is_lane(&tl->tracks.all[i], dark->rank))
			return prof_timeline_find(db, tl->tracks.all[i].track_id, 1, NULL,
						  dark->at.from, true, &id, NULL) == ST_OK &&
			       id != IPS_NULL &&
			       prof_timeline_span(db, id, &tl->picture, &span, NULL) == ST_OK &&
			       span.start_ns + 1 < dark->at.to;
	}
	return false;
}

static enum status view_add_dark(struct view_timeline *tl, const struct view_dark *dark,
				 struct err *err)
{
	if (tl->dark.count == MOST_DARK)
		return ST_OK;
	if (mem_grow(&tl->dark.all, &tl->dark.capacity, tl->dark.count + 1, sizeof(*tl->dark.all)))
		return err_nomem(err);
	tl->dark.all[tl->dark.count++] = *dark;
	return ST_OK;
}

/* The next execution in order of time: begin a stretch, lengthen it, or end it. */
static enum status view_take_execution(struct view_timeline *tl, const struct prof_query *query,
				       bool *open, struct err *err)
{
	const int64_t rank = prof_column_int(query, 0), execution = prof_column_int(query, 1);
	const int64_t cycles = prof_column_int(query, 4);
	const int64_t from =
		sat_real(round((double)prof_column_int(query, 3) * tl->links.ns_per_cycle));
	const int64_t to =
		cycles == IPS_NULL
			? FOR_EVER
			: sat_real(round((double)sat_add(prof_column_int(query, 3), cycles) *
					 tl->links.ns_per_cycle));
	struct view_dark *last = tl->dark.count > 0 ? &tl->dark.all[tl->dark.count - 1] : NULL;

	if (prof_column_int(query, 2) != 0) {
		*open = false;
		return ST_OK;
	}
	if (*open && last && last->rank == rank) {
		last->at.to = max(to, last->at.to);
		last->last = execution;
		return ST_OK;
	}
	*open = true;
	return view_add_dark(tl, &(struct view_dark){rank, {from, to}, execution, execution}, err);
}

/* Forget the stretches of ranks whose lanes have spans there. */
static void view_drop_lit(struct view_timeline *tl, struct prof_db *db)
{
	size_t kept = 0;
	bool lit = false;

	for (size_t i = 0; i < tl->dark.count; i++) {
		if (i == 0 || tl->dark.all[i].rank != tl->dark.all[i - 1].rank)
			lit = view_is_lit(tl, db, &tl->dark.all[i]);
		if (!lit)
			tl->dark.all[kept++] = tl->dark.all[i];
	}
	tl->dark.count = kept;
}

/* After the last execution of a rank, where that was not traced, nothing was either. */
static void view_lengthen_last(struct view_timeline *tl)
{
	for (size_t i = 0; i < tl->dark.count; i++) {
		struct view_dark *dark = &tl->dark.all[i];
		const bool last = i + 1 == tl->dark.count || dark[1].rank != dark->rank;

		if (last && view_recorded(tl, dark->rank).to <= dark->at.from)
			dark->at.to = FOR_EVER;
	}
}

enum status view__traced_load(struct view_timeline *tl, struct prof_db *db, struct err *err)
{
	static const char sql[] =
		"SELECT rank, execution, traced, start_cycle, cycles FROM executions WHERE "
		"start_cycle IS NOT NULL AND EXISTS (SELECT 1 FROM executions WHERE traced = 0) "
		"ORDER BY rank, start_cycle";
	struct prof_query *query;
	bool open = false;
	enum status status = prof_query_open(&query, db, sql, err);

	tl->dark.count = 0;
	while (prof_query_next(query, &status, err))
		status = view_take_execution(tl, query, &open, err);
	prof_query_close(query);
	if (status == ST_OK)
		view_drop_lit(tl, db);
	view_lengthen_last(tl);
	return status;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The first stretch of the rank that ends after @time; dark_count: none. */
static size_t view_dark_after(const struct view_timeline *tl, int64_t rank, int64_t time)
{
	const struct view_dark *dark = tl->dark.all;
	size_t at;

	SORTED_FIRST(at, 0, tl->dark.count,
		     dark[at].rank < rank || (dark[at].rank == rank && dark[at].at.to <= time));
	return at < tl->dark.count && dark[at].rank == rank ? at : tl->dark.count;
}

bool view__next_dark(const struct view_timeline *tl, const struct view_lane *lane, int64_t time,
		     struct view_dark *out)
{
	const struct view_window extent = tl->clock[IPS_DEVICE].extent;
	const int64_t rank = lane->track->rank;
	size_t at;

	if (!lane->pipeline || lane->track->clock != IPS_DEVICE)
		return false;
	at = view_dark_after(tl, rank, time);
	if (at < tl->dark.count) {
		*out = tl->dark.all[at];
		return true;
	}
	/* Where executions say nothing: the device has run on after the last span. */
	*out = (struct view_dark){rank, {view_recorded(tl, rank).to, extent.to}, IPS_NULL, 0};
	at = view_dark_after(tl, rank, out->at.from);
	return at == tl->dark.count && out->at.to > time &&
	       out->at.to - out->at.from > (extent.to - extent.from) / TAIL_PART;
}

int64_t view__traced_ns(const struct view_timeline *tl, const struct view_lane *lane,
			struct view_window window)
{
	const struct view_window all = view_recorded(tl, lane->track->rank);
	struct view_dark dark;
	int64_t ns;

	if (lane->pipeline && lane->track->clock == IPS_DEVICE) {
		window.from = max(all.from, window.from);
		window.to = min(all.to, window.to);
	}
	ns = window.to - window.from;
	for (int64_t at = window.from;
	     ns > 0 && view__next_dark(tl, lane, at, &dark) && dark.at.from < window.to;
	     at = dark.at.to)
		ns -= min(dark.at.to, window.to) - max(dark.at.from, window.from);
	return max(ns, 0);
}

bool view__is_dark(const struct view_timeline *tl, const struct view_lane *lane, int64_t time,
		   struct view_dark *out)
{
	return view__next_dark(tl, lane, time, out) && out->at.from <= time;
}

void view__mark_dark(const struct view_timeline *tl, const struct view_lane *lane,
		     struct view_window window, struct view_column *columns)
{
	struct view_dark dark;

	for (int64_t at = window.from;
	     view__next_dark(tl, lane, at, &dark) && dark.at.from < window.to; at = dark.at.to) {
		int64_t x = view_window_column(window, tl->width, dark.at.from);

		/* A cell belongs to the stretch that has its middle. */
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

/* The first, of the rank whose clocks are linked where it has one. */
static int view_pipeline_lane(const struct view_timeline *tl, int clock)
{
	int first = -1;

	for (int i = tl->lane_count - 1; i >= 0; i--) {
		const struct prof_track *track = tl->lanes[i].track;

		if (tl->lanes[i].pipeline &&
		    (track->clock == IPS_DEVICE) == (clock == IPS_DEVICE) &&
		    (first < 0 || track->rank == tl->links.rank ||
		     tl->lanes[first].track->rank != tl->links.rank))
			first = i;
	}
	return first;
}

/* The next span of @lane after @time: its start and weight update. false: none with an update. */
static bool view_update_after(struct view_timeline *tl, struct prof_db *db, int lane, int64_t time,
			      int64_t *start, int64_t *update)
{
	const struct prof_track *track = tl->lanes[lane].track;
	struct prof_span span;
	int64_t id;

	if (prof_timeline_find(db, track->track_id, track->clock, NULL, time, true, &id, NULL) !=
		    ST_OK ||
	    id == IPS_NULL || prof_timeline_span(db, id, &tl->picture, &span, NULL) != ST_OK)
		return false;
	*start = span.start_ns;
	*update = span.weight_update;
	return span.weight_update != IPS_NULL;
}

/* When @update begins on @lane, to @fine ns, looked for in @within. */
static bool view_update_start(struct view_timeline *tl, struct prof_db *db, int lane,
			      struct view_window within, int64_t update, int64_t fine, int64_t *out)
{
	int64_t low = within.from - 1, high = within.to;
	bool found = false;

	while (high - low > max(fine, 1)) {
		const int64_t middle = low + (high - low) / 2;
		int64_t start, of;

		if (!view_update_after(tl, db, lane, middle, &start, &of) || start >= within.to) {
			high = middle;
			continue;
		}
		if (of < update) {
			low = start;
			continue;
		}
		high = middle;
		if (of == update) {
			found = true;
			*out = start;
		}
	}
	return found;
}

/* The piece of the way between the clocks that @time is in, as windows of both. */
static bool view_piece(const struct view_timeline *tl, int lead, int64_t time,
		       struct view_window piece[2])
{
	for (int i = 0; i + 1 < tl->links.count; i++) {
		const struct view_link *a = &tl->links.points[i], *b = &tl->links.points[i + 1];
		const struct view_window host = {a->host_ns, b->host_ns};
		const struct view_window device = {a->device_ns, b->device_ns};
		const struct view_window own = lead ? device : host;

		if (time < own.from || time >= own.to)
			continue;
		piece[0] = host;
		piece[1] = device;
		return true;
	}
	return false;
}

/* Shift @to, which is the other clock's, so that both show the same weight update. */
static void view_link_update(struct view_timeline *tl, struct prof_db *db, int lead,
			     struct view_window from, struct view_window *to)
{
	const int mine = view_pipeline_lane(tl, lead), its = view_pipeline_lane(tl, !lead);
	const int64_t middle = from.from + (from.to - from.from) / 2;
	struct view_window piece[2];
	int64_t start, update, begin[2], shift;

	if (mine < 0 || its < 0 || !view_piece(tl, lead, middle, piece) ||
	    from.to - from.from > (piece[lead].to - piece[lead].from) / 2)
		return;
	if (!view_update_after(tl, db, mine, middle, &start, &update) || start >= piece[lead].to)
		return;
	if (!view_update_start(tl, db, mine, piece[lead], update, (from.to - from.from) / FINE,
			       &begin[lead]) ||
	    !view_update_start(tl, db, its, piece[!lead], update, (to->to - to->from) / FINE,
			       &begin[!lead]))
		return;
	shift = begin[!lead] - to->from -
		sat_real((double)(begin[lead] - from.from) / (double)(from.to - from.from) *
			 (double)(to->to - to->from));
	to->from += shift;
	to->to += shift;
}

void view__link_windows(struct view_timeline *tl, struct prof_db *db)
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
	if (to.to - to.from < VIEW_WINDOW_LEAST)
		to.to = to.from + VIEW_WINDOW_LEAST;
	view_link_update(tl, db, lead, from, &to);
	tl->clock[other].window = view_window_clamp(to, tl->clock[other].extent);
}

/* ---- the first window ------------------------------------------------------------------------ */

/* The second execution of @rank that trains, on the host and where there is one on the device; else
 * the first. @period: of a weight update. */
static bool view_steady(struct prof_db *db, int64_t rank, struct view_window *host, int64_t *period)
{
	static const char sql[] =
		"SELECT start_ns, dur_ns, updates FROM executions WHERE rank = :rank AND mode = "
		"'train' AND "
		"updates > 2 AND dur_ns > 0 AND start_ns >= 0 ORDER BY coalesce(traced, 0) DESC, "
		"start_ns LIMIT 2";
	struct prof_query *query;
	bool row = false, some = false;

	if (prof_query_open(&query, db, sql, NULL) != ST_OK)
		return false;
	prof_query_int(query, ":rank", rank);
	while (prof_query_step(query, &row, NULL) == ST_OK && row) {
		host->from = prof_column_int(query, 0);
		host->to = host->from + prof_column_int(query, 1);
		*period = prof_column_int(query, 1) / prof_column_int(query, 2);
		some = true;
	}
	prof_query_close(query);
	return some && *period > VIEW_WINDOW_LEAST;
}

/* How much of @window the lane is at work, 0 to 1. */
static double view_busy(struct view_timeline *tl, struct prof_db *db, int lane,
			struct view_window window)
{
	const struct prof_track *track = tl->lanes[lane].track;
	struct prof_bar *bars;
	double busy = 0;
	int count;

	if (prof_timeline_bars(db, track->track_id, window.from, window.to, 64, track->last_ns,
			       &tl->picture, &bars, &count, NULL) != ST_OK)
		return 0;
	for (int i = 0; i < count; i++)
		if (bars[i].depth == tl->lanes[lane].work_depth)
			busy += (double)bars[i].busy_ns;
	return busy / (double)(window.to - window.from);
}

/* The beginning of the second pipeline run of that execution on @lane, and how long one takes. */
static bool view_second_run(struct view_timeline *tl, struct prof_db *db, int lane,
			    struct view_window within, int64_t period, int64_t *start,
			    int64_t *length, int64_t *update)
{
	int64_t first, next;

	if (!view_update_after(tl, db, lane, within.from - 1, &first, update) ||
	    !view_update_start(tl, db, lane, within, ++*update, period / FINE, start) ||
	    !view_update_start(tl, db, lane, within, *update + 1, period / FINE, &next))
		return false;
	*length = next - *start;
	return *length > VIEW_WINDOW_LEAST;
}

static bool view_first_runs(struct view_timeline *tl, struct prof_db *db)
{
	const int device = view_pipeline_lane(tl, 1);
	const int lane = view_pipeline_lane(tl, 0);
	int64_t period = 0, start, length, update;
	struct view_window within = {0}, *window;

	if (lane < 0 || !view_steady(db, tl->lanes[lane].track->rank, &within, &period) ||
	    !view_second_run(tl, db, lane, within, period, &start, &length, &update))
		return false;
	tl->cursor.lane = lane;
	window = &tl->clock[IPS_HOST].window;
	window->from = start - length / 20;
	window->to = sat_add(window->from, sat_real((double)length * PERIODS));
	*window = view_window_clamp(*window, tl->clock[IPS_HOST].extent);
	view__link_windows(tl, db);
	tl->cursor.ns = start;
	/* The device leads where its bars are wide enough to be read. */
	if (device >= 0 && view_busy(tl, db, device, tl->clock[IPS_DEVICE].window) >= BUSY_LEAST) {
		tl->cursor.lane = device;
		tl->cursor.ns = tl->clock[IPS_DEVICE].window.from;
		(void)view_update_start(tl, db, device, tl->clock[IPS_DEVICE].window, update,
					length / FINE, &tl->cursor.ns);
	}
	tl->cursor.depth = tl->lanes[tl->cursor.lane].work_depth;
	return true;
}

void view__first_window(struct view_timeline *tl, const struct view_context *context)
{
	struct prof_db *db = context->source->db;
	struct view_clock *clock;

	for (int c = 0; c < 2; c++)
		tl->clock[c].window = tl->clock[c].extent;
	/* The first IPU is what one comes for. */
	tl->cursor.lane = 0;
	for (int i = tl->lane_count - 1; i >= 0; i--)
		if (tl->lanes[i].pipeline)
			tl->cursor.lane = i;
	tl->cursor.depth = tl->lanes[tl->cursor.lane].work_depth;
	clock = view__clock(tl);
	if (context->ranged) {
		if (context->from_ns > clock->extent.from && context->from_ns < clock->extent.to)
			clock->window.from = context->from_ns;
		if (context->to_ns < clock->extent.to && context->to_ns > clock->window.from)
			clock->window.to = context->to_ns;
		if (clock->window.to - clock->window.from < VIEW_WINDOW_LEAST)
			clock->window.to = clock->window.from + VIEW_WINDOW_LEAST;
	}
	tl->cursor.ns = clock->window.from;
	tl->started = true;
	/* On a screen, a pipeline run that can be read; the whole is a key away. */
	if (!context->ranged && !context->whole && !context->follow && view_first_runs(tl, db))
		tl->cursor.track_id = view__lane(tl)->track->track_id;
}
