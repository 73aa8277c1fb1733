/*
 * What of the device's time was recorded: lanes of IPUs have spans of the executions that were
 * traced (autoReport.executionProfileProgramRunCount) and none of the others, which is not idle
 * time. A stretch that was not traced lasts from the start of the first such execution to the end
 * of the last one before the next that was.
 *
 * Executions are read once for each news, in order of time; stretches are kept, not executions.
 *
 * Threading: one thread. Ownership: stretches are the timeline's.
 */
#include "common/minmax.h"
#include "common/sat.h"
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>

#include "common/mem.h"
#include "common/sorted.h"

#define MOST_DARK 65536 /* stretches that are kept; what is beyond counts as idle */
#define TAIL_PART 100   /* less of the run than this part after its last span is not worth a word */
#define FOR_EVER  (INT64_MAX / 4)

static bool view_is_lane(const struct prof_track *track, int64_t rank)
{
	return track->clock == IPS_DEVICE && track->ipu != IPS_NULL && track->depth > 0 &&
	       track->first_ns <= track->last_ns && track->rank == rank;
}

/* Recorded on any IPU of the rank: from its first span to its last. */
static struct view_window view_recorded(const struct view_timeline *tl, int64_t rank)
{
	struct view_window all = {INT64_MAX, INT64_MIN};

	for (int i = 0; i < tl->track_count; i++) {
		const struct prof_track *track = &tl->tracks[i];

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
	for (int i = 0; i < tl->track_count; i++) {
		struct prof_span span;
		int64_t id;

		if (view_is_lane(&tl->tracks[i], dark->rank))
			return prof_timeline_find(db, tl->tracks[i].track_id, 1, NULL,
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
	if (tl->dark_count == MOST_DARK)
		return ST_OK;
	if (mem_grow(&tl->dark, &tl->dark_capacity, tl->dark_count + 1, sizeof(*tl->dark)))
		return err_nomem(err);
	tl->dark[tl->dark_count++] = *dark;
	return ST_OK;
}

/* The next execution in order of time: begin a stretch, lengthen it, or end it. */
static enum status view_take_execution(struct view_timeline *tl, const struct prof_query *query,
				       bool *open, struct err *err)
{
	const int64_t rank = prof_column_int(query, 0), execution = prof_column_int(query, 1);
	const int64_t cycles = prof_column_int(query, 4);
	const int64_t from = sat_real(round((double)prof_column_int(query, 3) * tl->ns_per_cycle));
	const int64_t to =
		cycles == IPS_NULL
			? FOR_EVER
			: sat_real(round((double)sat_add(prof_column_int(query, 3), cycles) *
					 tl->ns_per_cycle));
	struct view_dark *last = tl->dark_count > 0 ? &tl->dark[tl->dark_count - 1] : NULL;

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

	for (size_t i = 0; i < tl->dark_count; i++) {
		if (i == 0 || tl->dark[i].rank != tl->dark[i - 1].rank)
			lit = view_is_lit(tl, db, &tl->dark[i]);
		if (!lit)
			tl->dark[kept++] = tl->dark[i];
	}
	tl->dark_count = kept;
}

/* After the last execution of a rank, where that was not traced, nothing was either. */
static void view_lengthen_last(struct view_timeline *tl)
{
	for (size_t i = 0; i < tl->dark_count; i++) {
		struct view_dark *dark = &tl->dark[i];
		const bool last = i + 1 == tl->dark_count || dark[1].rank != dark->rank;

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

	tl->dark_count = 0;
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
	const struct view_dark *dark = tl->dark;
	size_t at;

	SORTED_FIRST(at, 0, tl->dark_count,
		     dark[at].rank < rank || (dark[at].rank == rank && dark[at].at.to <= time));
	return at < tl->dark_count && dark[at].rank == rank ? at : tl->dark_count;
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
	if (at < tl->dark_count) {
		*out = tl->dark[at];
		return true;
	}
	/* Where executions say nothing: the device has run on after the last span. */
	*out = (struct view_dark){rank, {view_recorded(tl, rank).to, extent.to}, IPS_NULL, 0};
	at = view_dark_after(tl, rank, out->at.from);
	return at == tl->dark_count && out->at.to > time &&
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
