/*
 * Lanes that are hidden, by the names that are unique in a rank: so they stay hidden over news, and
 * between two reports in both.
 *
 * Never are all lanes hidden: the last one that is shown stays, and where a report has no others,
 * all of its lanes are shown.
 *
 * Threading: one thread. Ownership: the names are the list's; in a comparison the source's
 * timeline has the list of both.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"

static bool view_is_listed(const struct view_hidden *hidden, const struct prof_track *track)
{
	for (size_t i = 0; i < hidden->count && track->track; i++)
		if (hidden->lanes[i].rank == track->rank &&
		    strcmp(hidden->lanes[i].track, track->track) == 0)
			return true;
	return false;
}

bool view__is_hidden(const struct view_timeline *tl, const struct prof_track *track)
{
	return !tl->hides_all && view_is_listed(tl->hidden, track);
}

void view__hidden_count(struct view_timeline *tl)
{
	bool some = false;

	tl->hides_all = false;
	tl->hidden_lanes = 0;
	for (int i = 0; i < tl->track_count; i++) {
		const struct prof_track *track = &tl->tracks[i];

		if (track->depth < 1 || track->first_ns > track->last_ns)
			continue;
		some |= !view__is_hidden(tl, track);
		tl->hidden_lanes += view__is_hidden(tl, track);
	}
	if (some)
		return;
	tl->hides_all = true;
	tl->hidden_lanes = 0;
}

void view__hidden_forget(struct view_timeline *tl)
{
	struct view_hidden *own = &tl->own_hidden;

	for (size_t i = 0; i < own->count; i++)
		mem_free(own->lanes[i].track);
	mem_free(own->lanes);
	*own = (struct view_hidden){0};
}

/* What has no name, and what there is no memory for, is not hidden. */
static void view_hide(struct view_timeline *tl, const struct prof_track *track)
{
	struct view_hidden *hidden = tl->hidden;
	char *name;

	if (!track->track || view_is_listed(hidden, track) ||
	    mem_grow(&hidden->lanes, &hidden->capacity, hidden->count + 1, sizeof(*hidden->lanes)))
		return;
	name = mem_strdup(track->track);
	if (name)
		hidden->lanes[hidden->count++] = (struct view_hidden_lane){track->rank, name};
}

/* The cursor's lane: the cursor goes to the next one of its clock, or the one before. */
static void view_hide_lane(struct view_timeline *tl, struct view_context *context)
{
	const struct view_lane *lane = view__lane(tl);

	view_hide(tl, lane->track);
	view_message(context, lane->track->name, " is hidden: E shows all lanes again");
	for (int by = 1; by >= -1; by -= 2) {
		const int next = tl->lane + by;

		if (next < 0 || next >= tl->lane_count ||
		    tl->lanes[next].track->clock != lane->track->clock)
			continue;
		tl->lane_id = tl->lanes[next].track->track_id;
		tl->depth = tl->lanes[next].work_depth;
		return;
	}
	tl->lane_id = IPS_NULL;
}

/* All of @tl that are shown but the cursor's. */
static void view_hide_others(struct view_timeline *tl, const struct prof_track *kept)
{
	for (int i = 0; i < tl->lane_count; i++) {
		const struct prof_track *track = tl->lanes[i].track;

		if (track->rank != kept->rank || !track->track || !kept->track ||
		    strcmp(track->track, kept->track) != 0)
			view_hide(tl, track);
	}
}

bool view__hide_request(struct view_timeline *tl, struct view_context *context,
			enum view_request request)
{
	if (request != VIEW_COLLAPSE_REQUEST && request != VIEW_COLLAPSE_ALL_REQUEST &&
	    request != VIEW_EXPAND_ALL_REQUEST)
		return false;
	if (request == VIEW_EXPAND_ALL_REQUEST) {
		view_message(context,
			     tl->hidden->count ? "all lanes are shown" : "no lane is hidden", NULL);
		view__hidden_forget(tl);
	} else if (tl->lane_count == 1) {
		view_message(context, "the only lane that is shown stays", NULL);
	} else if (request == VIEW_COLLAPSE_REQUEST) {
		view_hide_lane(tl, context);
	} else {
		view_message(context, "only this lane: E shows all again", NULL);
		view_hide_others(tl, view__lane(tl)->track);
		if (tl->target)
			view_hide_others(tl->target, view__lane(tl)->track);
	}
	tl->pinned = IPS_NULL;
	tl->relane = true;
	if (tl->target)
		tl->target->relane = true;
	return true;
}

void view__hidden_query(const struct view_timeline *tl, struct str *out)
{
	for (size_t i = 0; i < tl->hidden->count && !tl->hides_all; i++) {
		const struct view_hidden_lane *lane = &tl->hidden->lanes[i];

		str_add(out, "\n  AND NOT (track IS ");
		str_add_sql(out, lane->track);
		if (lane->rank == IPS_NULL)
			str_add(out, " AND rank IS NULL)");
		else
			str_addf(out, " AND rank IS %lld)", (long long)lane->rank);
	}
}

const char *view__hidden_text(const struct view_timeline *tl, char out[VIEW_UNIT_SIZE])
{
	const int count = tl->hidden_lanes;

	out[0] = '\0';
	if (count > 0)
		snprintf(out, VIEW_UNIT_SIZE, "%d lane%s hidden", count, count == 1 ? "" : "s");
	return out;
}
