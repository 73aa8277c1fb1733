/*
 * The timeline's two clocks side by side, and the window it opens with.
 *
 * Executions tell roughly which device time belongs to a host time. A window that shows a part of
 * one is brought to the same weight update on both: found by bisection, since a lane's updates come
 * in order of time within an execution.
 *
 * Threading: one thread. Ownership: none; spans' texts are the picture's.
 */
#include "common/minmax.h"
#include "common/sat.h"
#include "viewer/timeline/view_timeline_internal.h"

#define FINE       256  /* of a window: how exactly an update's beginning is looked for */
#define PERIODS    1.35 /* pipeline runs in the first window */
#define BUSY_LEAST 0.15 /* of the device's lane, to be read in it */

/* The first, of the rank whose clocks are linked where it has one. */
static int view_pipeline_lane(const struct view_timeline *tl, int clock)
{
	int first = -1;

	for (int i = tl->lane_count - 1; i >= 0; i--) {
		const struct prof_track *track = tl->lanes[i].track;

		if (tl->lanes[i].pipeline &&
		    (track->clock == IPS_DEVICE) == (clock == IPS_DEVICE) &&
		    (first < 0 || track->rank == tl->links_rank ||
		     tl->lanes[first].track->rank != tl->links_rank))
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
	for (int i = 0; i + 1 < tl->link_count; i++) {
		const struct view_link *a = &tl->links[i], *b = &tl->links[i + 1];
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
	to.from = view_link_map(tl->links, tl->link_count, from.from, other);
	to.to = view_link_map(tl->links, tl->link_count, from.to, other);
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

bool view__first_runs(struct view_timeline *tl, struct prof_db *db)
{
	const int device = view_pipeline_lane(tl, 1);
	const int lane = view_pipeline_lane(tl, 0);
	int64_t period = 0, start, length, update;
	struct view_window within = {0}, *window;

	if (lane < 0 || !view_steady(db, tl->lanes[lane].track->rank, &within, &period) ||
	    !view_second_run(tl, db, lane, within, period, &start, &length, &update))
		return false;
	tl->lane = lane;
	window = &tl->clock[IPS_HOST].window;
	window->from = start - length / 20;
	window->to = sat_add(window->from, sat_real((double)length * PERIODS));
	*window = view_window_clamp(*window, tl->clock[IPS_HOST].extent);
	view__link_windows(tl, db);
	tl->cursor_ns = start;
	/* The device leads where its bars are wide enough to be read. */
	if (device >= 0 && view_busy(tl, db, device, tl->clock[IPS_DEVICE].window) >= BUSY_LEAST) {
		tl->lane = device;
		tl->cursor_ns = tl->clock[IPS_DEVICE].window.from;
		(void)view_update_start(tl, db, device, tl->clock[IPS_DEVICE].window, update,
					length / FINE, &tl->cursor_ns);
	}
	tl->depth = tl->lanes[tl->lane].work_depth;
	return true;
}
