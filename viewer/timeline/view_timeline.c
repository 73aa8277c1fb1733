/*
 * The screen Timeline: what it shows, loaded by range (view_timeline_tracks.c and
 * view_timeline_picture.c), and its row of functions.
 *
 * Threading: one thread. Ownership: arenas: tracks (until the next news), call sites and templates
 * of device steps (for good), the picture (until the next load), the details (until the next
 * selection), bubbles and the overview (until the next news).
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

int view__lead(const struct view_timeline *tl)
{
	return tl->lane < tl->lane_count && tl->lanes[tl->lane].track->clock == IPS_DEVICE ? 1 : 0;
}

struct view_clock *view__clock(struct view_timeline *tl)
{
	return &tl->clock[view__lead(tl)];
}

struct view_lane *view__lane(struct view_timeline *tl)
{
	return tl->lane >= 0 && tl->lane < tl->lane_count ? &tl->lanes[tl->lane] : NULL;
}

int view__lane_of(const struct view_timeline *tl, int64_t track_id)
{
	for (int i = 0; i < tl->lane_count; i++)
		if (tl->lanes[i].track->track_id == track_id)
			return i;
	return -1;
}

enum status view__timeline_load(struct view_timeline *tl, struct view_context *context, bool news,
				struct err *err)
{
	struct prof_db *db = context->source->db;
	struct view_clock *clock;
	enum status status = ST_OK;

	view__picture_forget(tl);
	if (news || tl->relane)
		status = view__tracks_load(tl, context, err);
	if (status != ST_OK) {
		tl->lane_count = tl->all_lanes = 0;
		return status;
	}
	if (tl->lane_count == 0) {
		view__place_lanes(tl, context);
		return ST_OK;
	}
	clock = view__clock(tl);
	if (context->follow)
		tl->cursor_ns = clock->window.to - 1;
	if (tl->cursor_ns < clock->window.from)
		tl->cursor_ns = clock->window.from;
	if (tl->cursor_ns >= clock->window.to)
		tl->cursor_ns = clock->window.to - 1;
	tl->lane_id = view__lane(tl)->track->track_id;
	tl->lane_clock = view__lead(tl);
	status = view__links_load(tl, db, view__lane(tl)->track->rank, err);
	if (status == ST_OK)
		view__link_windows(tl, db);
	if (status == ST_OK)
		status = view__series_load(tl, db, err);
	view__place_lanes(tl, context);
	if (tl->width > 0 && status == ST_OK)
		status = view__picture_load(tl, context, err);
	if (status == ST_OK)
		status = view__filter_load(tl, db, news, err);
	view__filter_count(tl);
	if (status != ST_OK)
		for (int i = 0; i < tl->lane_count; i++)
			tl->lanes[i].rows = 0;
	return status;
}

static enum status view_timeline_load(void *state, struct view_context *context, bool news,
				      struct err *err)
{
	struct view_timeline *tl = state;
	const bool first = !tl->started;
	enum status status = tl->target ? view__timeline_compare(tl, context, news, err)
					: view__timeline_load(tl, context, news, err);

	if (status == ST_OK)
		status = view__sums_load(tl, context, news, err);
	/* The first windows are chosen from all there is, not from what was read before a stop. */
	if (first && view_cancelled(context)) {
		tl->started = false;
		if (tl->target)
			tl->target->started = false;
	}
	return status;
}

static bool view_timeline_search(void *state, struct view_context *context, const char *text,
				 bool forward)
{
	struct view_timeline *tl = state;

	if (tl->lane_count == 0 || !context->source->db)
		return false;
	return view__jump_name(tl, context, text, forward);
}

static struct view_timeline *view_timeline_new(void)
{
	struct view_timeline *tl = mem_calloc(1, sizeof(*tl));

	if (!tl)
		return NULL;
	/* An arena of capacity 0 allocates nothing and cannot fail. */
	(void)arena_init(&tl->tracks_arena, 0);
	(void)arena_init(&tl->sites_arena, 0);
	(void)arena_init(&tl->picture, 0);
	(void)arena_init(&tl->detail, 0);
	(void)arena_init(&tl->bubble_arena, 0);
	(void)arena_init(&tl->overview_arena, 0);
	(void)arena_init(&tl->steps_arena, 0);
	tl->details = true;
	tl->measured_ns = IPS_NULL;
	tl->selected = tl->pinned = tl->lane_id = IPS_NULL;
	tl->only_ipu = tl->only_replica = IPS_NULL;
	tl->aligned.number = tl->overview_lane = IPS_NULL;
	tl->gap_run = -1;
	tl->hidden = &tl->own_hidden;
	return tl;
}

static void view_timeline_free(struct view_timeline *tl)
{
	if (!tl)
		return;
	arena_fini(&tl->tracks_arena);
	arena_fini(&tl->sites_arena);
	arena_fini(&tl->picture);
	arena_fini(&tl->detail);
	arena_fini(&tl->bubble_arena);
	arena_fini(&tl->overview_arena);
	arena_fini(&tl->steps_arena);
	view__bars_forget(tl);
	view__filter_free(tl);
	view__hidden_forget(tl);
	view_grid_fini(&tl->sums.grid);
	mem_free(tl->bars);
	mem_free(tl->traces);
	mem_free(tl->sites);
	mem_free(tl->dark);
	mem_free(tl);
}

static void view_timeline_close(void *state)
{
	struct view_timeline *tl = state;

	if (tl)
		view_timeline_free(tl->target);
	view_timeline_free(tl);
}

static enum status view_timeline_open(void **state, struct view_context *context, struct err *err)
{
	struct view_timeline *tl = view_timeline_new();

	*state = NULL;
	if (tl && context->target) {
		tl->target = view_timeline_new();
		if (!tl->target) {
			view_timeline_free(tl);
			return err_nomem(err);
		}
		tl->mark = 'S';
		tl->target->mark = 'T';
		tl->target->hidden = &tl->own_hidden;
		tl->target->details = false;
	}
	*state = tl;
	return tl ? ST_OK : err_nomem(err);
}

/* The window and the cursor, in the unit that is shown. */
static void view_timeline_status(const void *state, const struct view_context *context, char *out,
				 size_t size)
{
	const struct view_timeline *tl = state;
	const int c = view__lead(tl);
	const struct view_clock *clock = &tl->clock[c];
	char from[VIEW_UNIT_SIZE], to[VIEW_UNIT_SIZE], cursor[VIEW_UNIT_SIZE],
		shown[VIEW_UNIT_SIZE], all[VIEW_UNIT_SIZE];
	const int64_t step = view_tick_step(clock->window, 100, 1);

	if (tl->lane_count == 0) {
		snprintf(out, size, "no spans recorded");
		return;
	}
	if (view__hidden_text(tl, shown)[0] && size > VIEW_UNIT_SIZE) {
		const int used = snprintf(out, size, "%s, ", shown);

		out += used;
		size -= (size_t)used;
	}
	if (tl->hint[0]) {
		snprintf(out, size, "%s", tl->hint);
		return;
	}
	if (view__sums_lack_room(tl, context, out, size))
		return;
	if (tl->heading.height == 0 && tl->by_cause && tl->bubble[c].runs > 0) {
		snprintf(out, size, "bubble %.1f %% (theory %.1f %%)", tl->bubble[c].idle * 100,
			 tl->bubble[c].theory * 100);
		return;
	}
	if (tl->heading.height == 0 && tl->areas.overview.height == 0 && !tl->mark &&
	    tl->bubble[c].runs > 0 && size > VIEW_UNIT_SIZE) {
		const int used = snprintf(out, size, "bubble %.1f %%, ", tl->bubble[c].idle * 100);

		out += used;
		size -= (size_t)used;
	}
	if (tl->alignment[0] && size > sizeof(tl->alignment) + 2) {
		const int used = snprintf(out, size, "%s: ", tl->alignment);

		out += used;
		size -= (size_t)used;
	}
	if (tl->measured_ns != IPS_NULL && tl->measured_clock == c) {
		snprintf(out, size, "%s from x to the cursor: %s to %s",
			 view__length_text(tl, c, shown, llabs(tl->cursor_ns - tl->measured_ns)),
			 view__moment_text(tl, c, from, tl->measured_ns, step),
			 view__moment_text(tl, c, cursor, tl->cursor_ns, step));
		return;
	}
	if (view__filter_status(tl, out, size))
		return;
	if (tl->by_cause && tl->way == VIEW_GANTT && !tl->split[c] && tl->bubble[c].runs > 0) {
		snprintf(out, size, "too many spans for the causes on the lanes: zoom in");
		return;
	}
	snprintf(out, size, "%s %s to %s (%s of %s) cursor %s", c ? "device" : "host",
		 view__moment_text(tl, c, from, clock->window.from, step),
		 view__moment_text(tl, c, to, clock->window.to, step),
		 view__length_text(tl, c, shown, clock->window.to - clock->window.from),
		 view__length_text(tl, c, all, clock->extent.to - clock->extent.from),
		 view__moment_text(tl, c, cursor, tl->cursor_ns, step));
}

static int view_timeline_height(const void *state, const struct view_context *context)
{
	const struct view_timeline *tl = state;
	int rows = 4;

	(void)context;
	if (tl->target)
		rows += view_timeline_height(tl->target, context);
	for (int i = 0; i < tl->lane_count; i++)
		rows += 1 + min(tl->lanes[i].track->depth, VIEW_MOST_DEPTH);
	return rows;
}

const struct view_screen_ops view_timeline_ops = {
	.name = "timeline",
	.title = "Timeline",
	.brief = "Time",
	.key = '7',
	.where = VIEW_ON_TIMELINE,
	.least_ns = 250 * UINT64_C(1000000),
	.open = view_timeline_open,
	.close = view_timeline_close,
	.load = view_timeline_load,
	.draw = view__timeline_draw,
	.request = view__timeline_request,
	.search = view_timeline_search,
	.filter = view__timeline_filter,
	.status = view_timeline_status,
	.height = view_timeline_height,
	.table = view__timeline_table,
	.place = view__timeline_place,
	.offers = view__timeline_offers,
	.go = view__timeline_go,
	.query = view__timeline_query,
};
