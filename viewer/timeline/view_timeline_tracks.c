/*
 * The timeline's lanes, clocks and call sites: what stays while one pans and zooms.
 *
 * Threading: one thread. Ownership: the arena of tracks (until the next news), that of call sites
 * (for good).
 */
#include "common/sat.h"
#include "viewer/timeline/view_timeline_internal.h"

#include <stddef.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "common/str.h"

#define MOST_LINKS 2000 /* points between the clocks */

/* What is known of a lane and stays so when the tracks are read afresh. */
struct view_kept {
	int64_t track_id;
	int work_depth;
	bool work_known;
};

/* ---- call sites ------------------------------------------------------------------------------ */

/* Where @site_id is in the order of the sites, or would be. */
static size_t view_site_place(const struct view_timeline *tl, int64_t site_id)
{
	size_t low;

	SORTED_FIRST(low, 0, tl->site_count, tl->sites[low].site_id < site_id);
	return low;
}

const struct view_site *view__site(const struct view_timeline *tl, int64_t site_id)
{
	const size_t place = view_site_place(tl, site_id);

	if (place == tl->site_count || tl->sites[place].site_id != site_id)
		return NULL;
	return &tl->sites[place];
}

/* Buckets have no phase of their own; the name of their site tells it where it is one of ours. */
static char view_phase_of_name(const char *category, const char *name)
{
	static const struct {
		const char *word;
		char phase;
	} words[] = {{"forward", IPS_FORWARD},         {"backward", IPS_BACKWARD},
		     {"weight update", IPS_UPDATE},    {"update", IPS_UPDATE},
		     {"recompute", IPS_RECOMPUTATION}, {"weight", IPS_WEIGHTS}};

	if (!name || !category || strcmp(category, "stage") != 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(name, words[i].word))
			return words[i].phase;
	return 0;
}

enum status view__learn_site(struct view_timeline *tl, struct prof_db *db,
			     const struct prof_bar *bar, struct err *err)
{
	const size_t place = view_site_place(tl, bar->site_id);
	struct view_site site = {.site_id = bar->site_id};
	enum status status;

	if (bar->site_id == IPS_NULL)
		return ST_OK;
	if (place < tl->site_count && tl->sites[place].site_id == bar->site_id) {
		if (bar->phase)
			tl->sites[place].phase = bar->phase;
		return ST_OK;
	}
	status = prof_timeline_site(db, bar->site_id, &tl->sites_arena, &site.category, &site.name,
				    err);
	if (status != ST_OK)
		return status;
	site.phase = bar->phase ? bar->phase : view_phase_of_name(site.category, site.name);
	view__judge_site(tl, &site);
	if (mem_grow(&tl->sites, &tl->site_capacity, tl->site_count + 1, sizeof(*tl->sites)))
		return err_nomem(err);
	memmove(&tl->sites[place + 1], &tl->sites[place],
		(tl->site_count - place) * sizeof(*tl->sites));
	tl->sites[place] = site;
	tl->site_count++;
	return ST_OK;
}

char view__phase(const struct view_timeline *tl, const struct prof_bar *bar)
{
	const struct view_site *site;

	if (bar->phase)
		return bar->phase;
	site = view__site(tl, bar->site_id);
	return site ? site->phase : 0;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

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

	tl->link_count = 0;
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":rank", tl->links_rank);
	while ((status = prof_query_step(query, &row, err)) == ST_OK && row &&
	       tl->link_count + 2 <= MOST_LINKS)
		for (int end = 0; end < 2; end++) {
			const struct view_link link = {prof_column_int(query, end),
						       prof_column_int(query, 2 + end)};
			const struct view_link *last =
				tl->link_count ? &tl->links[tl->link_count - 1] : NULL;

			if (!last ||
			    (link.host_ns > last->host_ns && link.device_ns > last->device_ns))
				tl->links[tl->link_count++] = link;
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
	if (tl->links && tl->links_rank == rank)
		return ST_OK;
	tl->links_rank = rank;
	tl->ns_per_cycle = tl->hertz > 0 ? 1e9 / tl->hertz : 1;
	if (!tl->links)
		tl->links = arena_alloc(&tl->tracks_arena, MOST_LINKS, sizeof(*tl->links));
	if (!tl->links)
		return err_nomem(err);
	status = view_read_links(tl, db, err);
	if (status != ST_OK)
		return status;
	if (tl->link_count < 2) {
		tl->links[0] = (struct view_link){host.from, device.from};
		tl->links[1] = (struct view_link){host.to, device.to};
		tl->link_count = 2;
		return ST_OK;
	}
	/* A recording that does not tell its clock: the last execution ends where the lanes end. */
	tl->ns_per_cycle =
		tl->hertz > 0 ? 1e9 / tl->hertz
			      : (double)device.to / (double)tl->links[tl->link_count - 1].device_ns;
	for (int i = 0; i < tl->link_count; i++)
		tl->links[i].device_ns =
			sat_real((double)tl->links[i].device_ns * tl->ns_per_cycle);
	return ST_OK;
}

/* Extents are those of all tracks, shown or not; a clock is present where it has lanes. */
static void view_measure_clocks(struct view_timeline *tl)
{
	bool some[2] = {false, false};

	tl->clock[IPS_HOST].present = tl->clock[IPS_DEVICE].present = false;
	for (int i = 0; i < tl->lane_count; i++)
		tl->clock[tl->lanes[i].track->clock == IPS_DEVICE].present = true;
	for (int i = 0; i < tl->track_count; i++) {
		const struct prof_track *track = &tl->tracks[i];
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

/* What the whole run is like. */
static void view_read_facts(struct view_timeline *tl, struct prof_db *db)
{
	static const struct {
		const char *key;
		size_t offset;
	} facts[] = {{"replicas", offsetof(struct view_timeline, replicas)},
		     {"ipus", offsetof(struct view_timeline, ipus)}};
	char text[64];
	double number;

	tl->hertz = 0;
	if (prof_db_meta(db, "clock_hz", text, sizeof(text)) && str_to_double(text, &number) &&
	    number > 0)
		tl->hertz = number;
	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		int64_t *out = (int64_t *)(void *)((char *)tl + facts[i].offset);

		*out = 0;
		if (prof_db_meta(db, facts[i].key, text, sizeof(text)) &&
		    str_to_double(text, &number) && number > 0 && number < 1e6)
			*out = (int64_t)number;
	}
}

bool view__shows_all(const struct view_clock *clock)
{
	return clock->window.from <= clock->extent.from && clock->window.to >= clock->extent.to;
}

static void view_add_lane(struct view_timeline *tl, const struct prof_track *track,
			  const struct view_kept *kept, int kept_count)
{
	struct view_lane *lane = &tl->lanes[tl->all_lanes++];

	lane->track = track;
	lane->pipeline = track->ipu != IPS_NULL;
	for (int i = 0; i < kept_count; i++)
		if (kept[i].track_id == track->track_id) {
			lane->work_depth = kept[i].work_depth;
			lane->work_known = kept[i].work_known;
		}
}

/* Lanes are the tracks with spans, those that are shown first. What is known of a lane stays with
 * its track_id. */
static enum status view_make_lanes(struct view_timeline *tl, const struct view_kept *kept,
				   int kept_count, struct err *err)
{
	tl->lane_count = tl->all_lanes = 0;
	tl->lanes = arena_alloc(&tl->tracks_arena, (size_t)tl->track_count + 1, sizeof(*tl->lanes));
	if (!tl->lanes)
		return err_nomem(err);
	for (int shown = 1; shown >= 0; shown--) {
		for (int i = 0; i < tl->track_count; i++) {
			const struct prof_track *track = &tl->tracks[i];

			if (track->depth < 1 || track->first_ns > track->last_ns ||
			    view__shows_track(tl, track) != (shown == 1))
				continue;
			view_add_lane(tl, track, kept, kept_count);
			tl->lane_count += shown;
		}
	}
	return ST_OK;
}

/* Where stages are on a lane: looked for in a short window around a span in its middle. */
static enum status view_sample(struct view_timeline *tl, struct view_lane *lane, struct prof_db *db,
			       struct err *err)
{
	const struct prof_track *track = lane->track;
	const int64_t middle = track->first_ns + (track->last_ns - track->first_ns) / 2;
	struct prof_bar *bars;
	struct prof_span span;
	int64_t id;
	int count;
	enum status status;

	status =
		prof_timeline_find(db, track->track_id, track->clock, NULL, middle, true, &id, err);
	if (status != ST_OK || id == IPS_NULL)
		return status;
	status = prof_timeline_span(db, id, &tl->picture, &span, err);
	if (status != ST_OK)
		return status;
	status = prof_timeline_bars(db, track->track_id, span.start_ns,
				    span.start_ns + (span.dur_ns > 0 ? span.dur_ns : 1), 64,
				    track->last_ns, &tl->picture, &bars, &count, err);
	for (int i = 0; i < count && status == ST_OK; i++) {
		status = view__learn_site(tl, db, &bars[i], err);
		if (view__phase(tl, &bars[i]) && !lane->work_known) {
			lane->work_known = true;
			lane->work_depth = bars[i].depth;
		}
	}
	return status;
}

/* In the picture's arena, since the arena of tracks is about to be emptied. NULL: no memory. */
static struct view_kept *view_keep(struct view_timeline *tl)
{
	struct view_kept *kept =
		arena_alloc(&tl->picture, (size_t)tl->all_lanes + 1, sizeof(*kept));

	for (int i = 0; kept && i < tl->all_lanes; i++)
		kept[i] = (struct view_kept){tl->lanes[i].track->track_id, tl->lanes[i].work_depth,
					     tl->lanes[i].work_known};
	return kept;
}

static void view_first_window(struct view_timeline *tl, const struct view_context *context)
{
	struct prof_db *db = context->source->db;
	struct view_clock *clock;

	for (int c = 0; c < 2; c++)
		tl->clock[c].window = tl->clock[c].extent;
	/* The first IPU is what one comes for. */
	tl->lane = 0;
	for (int i = tl->lane_count - 1; i >= 0; i--)
		if (tl->lanes[i].pipeline)
			tl->lane = i;
	tl->depth = tl->lanes[tl->lane].work_depth;
	clock = view__clock(tl);
	if (context->ranged) {
		if (context->from_ns > clock->extent.from && context->from_ns < clock->extent.to)
			clock->window.from = context->from_ns;
		if (context->to_ns < clock->extent.to && context->to_ns > clock->window.from)
			clock->window.to = context->to_ns;
		if (clock->window.to - clock->window.from < VIEW_WINDOW_LEAST)
			clock->window.to = clock->window.from + VIEW_WINDOW_LEAST;
	}
	tl->cursor_ns = clock->window.from;
	tl->started = true;
	/* On a screen, a pipeline run that can be read; the whole is a key away. */
	if (!context->ranged && !context->whole && !context->follow && view__first_runs(tl, db))
		tl->lane_id = view__lane(tl)->track->track_id;
}

/* A lane for the cursor whose own is not shown: of the same clock if there is one, of an IPU if
 * there is one. */
static void view_choose_lane(struct view_timeline *tl)
{
	const int clock = tl->lane_clock;
	int best = 0, best_score = -1;

	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];
		const int score =
			2 * ((lane->track->clock == IPS_DEVICE) == (clock == IPS_DEVICE)) +
			(lane->pipeline ? 1 : 0);

		if (score > best_score) {
			best = i;
			best_score = score;
		}
	}
	tl->lane = best;
	if (tl->lane_count == 0)
		return;
	tl->depth = tl->lanes[best].work_depth;
	if (view__lead(tl) == clock || !tl->started)
		return;
	tl->cursor_ns = view_link_map(tl->links, tl->link_count, tl->cursor_ns, view__lead(tl));
	tl->clock[view__lead(tl)].window = view_window_show(
		tl->clock[view__lead(tl)].window, tl->cursor_ns, tl->clock[view__lead(tl)].extent);
}

/* What was all stays all; what is followed stays at the end. */
static void view_keep_windows(struct view_timeline *tl, const struct view_context *context,
			      const bool all[2])
{
	for (int c = 0; c < 2; c++) {
		struct view_clock *clock = &tl->clock[c];
		const int64_t length = clock->window.to - clock->window.from;

		if (all[c])
			clock->window = clock->extent;
		else if (context->follow)
			clock->window = view_window_clamp(
				(struct view_window){clock->extent.to - length, clock->extent.to},
				clock->extent);
	}
}

enum status view__tracks_load(struct view_timeline *tl, struct view_context *context,
			      struct err *err)
{
	struct prof_db *db = context->source->db;
	const int kept_count = tl->all_lanes;
	const bool first = !tl->started;
	const bool all[2] = {view__shows_all(&tl->clock[IPS_HOST]),
			     view__shows_all(&tl->clock[IPS_DEVICE])};
	const struct view_kept *kept = view_keep(tl);
	enum status status;

	if (!kept)
		return err_nomem(err);
	arena_reset(&tl->tracks_arena);
	view__bars_forget(tl);
	tl->lane_count = tl->all_lanes = tl->track_count = tl->link_count = 0;
	tl->counters.known = false;
	tl->links = NULL;
	tl->belongs.of[0] = '\0';
	tl->overview_lane = IPS_NULL;
	view_read_facts(tl, db);
	status = prof_timeline_tracks(db, &tl->tracks_arena, &tl->tracks, &tl->track_count, err);
	view__hidden_count(tl);
	if (status == ST_OK)
		status = view_make_lanes(tl, kept, kept_count, err);
	if (status != ST_OK)
		return status;
	view_measure_clocks(tl);
	status = view__links_load(tl, db, tl->links_rank, err);
	if (status == ST_OK)
		status = view__traced_load(tl, db, err);
	if (status == ST_OK)
		status = view__bubbles_forget(tl, db, err);
	for (int i = 0; i < tl->all_lanes && status == ST_OK; i++)
		if (!tl->lanes[i].work_known)
			status = view_sample(tl, &tl->lanes[i], db, err);
	if (status != ST_OK)
		return status;

	tl->lane = view__lane_of(tl, tl->lane_id);
	if (!tl->started && tl->lane_count > 0)
		view_first_window(tl, context);
	if (tl->lane < 0)
		view_choose_lane(tl);
	if (!first)
		view_keep_windows(tl, context, all);
	tl->relane = false;
	return ST_OK;
}
