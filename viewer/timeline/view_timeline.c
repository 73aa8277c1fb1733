/*
 * The screen Timeline: what it shows, loaded by range (view_timeline_tracks.c and
 * view_timeline_picture.c), and its row of functions.
 *
 * Threading: one thread. Ownership: four arenas: tracks (until the next news), call sites (for
 * good), the picture (until the next load), the details (until the next selection).
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "viewer/draw/view_table.h"

#define TABLE_LIMIT 100000

int view__lead(const struct view_timeline *tl)
{
	return tl->lane < tl->lane_count && tl->lanes[tl->lane].track->clock == 1 ? 1 : 0;
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

static enum status view_timeline_load(void *state, struct view_context *context, bool news,
				      struct err *err)
{
	struct view_timeline *tl = state;
	struct prof_db *db = context->source->db;
	struct view_clock *clock;
	enum status status = ST_OK;

	arena_reset(&tl->picture);
	if (news)
		status = view__tracks_load(tl, context, err);
	if (status != ST_OK) {
		tl->lane_count = 0;
		return status;
	}
	if (tl->lane_count == 0)
		return view__place_lanes(tl, context, err);
	clock = view__clock(tl);
	if (context->follow)
		tl->cursor_ns = clock->window.to - 1;
	if (tl->cursor_ns < clock->window.from)
		tl->cursor_ns = clock->window.from;
	if (tl->cursor_ns >= clock->window.to)
		tl->cursor_ns = clock->window.to - 1;
	tl->lane_id = view__lane(tl)->track->track_id;
	view__link_windows(tl, db);
	status = view__place_lanes(tl, context, err);
	if (status == ST_OK && tl->width > 0)
		status = view__picture_load(tl, db, err);
	if (status != ST_OK)
		for (int i = 0; i < tl->lane_count; i++)
			tl->lanes[i].rows = 0;
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

static enum status view_timeline_open(void **state, struct view_context *context, struct err *err)
{
	struct view_timeline *tl = mem_calloc(1, sizeof(*tl));

	(void)context;
	*state = NULL;
	if (!tl)
		return err_nomem(err);
	/* An arena of capacity 0 allocates nothing and cannot fail. */
	(void)arena_init(&tl->tracks_arena, 0);
	(void)arena_init(&tl->sites_arena, 0);
	(void)arena_init(&tl->picture, 0);
	(void)arena_init(&tl->detail, 0);
	tl->details = true;
	tl->selected = tl->pinned = tl->lane_id = tl->gap_run = VIEW_NONE_ID;
	*state = tl;
	return ST_OK;
}

static void view_timeline_close(void *state)
{
	struct view_timeline *tl = state;

	if (!tl)
		return;
	arena_fini(&tl->tracks_arena);
	arena_fini(&tl->sites_arena);
	arena_fini(&tl->picture);
	arena_fini(&tl->detail);
	mem_free(tl->sites);
	mem_free(tl);
}

static void view_timeline_status(const void *state, const struct view_context *context, char *out,
				 size_t size)
{
	const struct view_timeline *tl = state;
	const struct view_clock *clock = &tl->clock[view__lead(tl)];
	char from[VIEW_TICK_SIZE], to[VIEW_TICK_SIZE], cursor[VIEW_TICK_SIZE], shown[FMT_SIZE],
		all[FMT_SIZE];
	const int64_t step = view_tick_step(clock->window, 100, 1);

	(void)context;
	if (tl->lane_count == 0) {
		snprintf(out, size, "no spans recorded");
		return;
	}
	if (tl->hint[0]) {
		snprintf(out, size, "%s", tl->hint);
		return;
	}
	snprintf(out, size, "%s %s to %s (%s of %s) cursor %s",
		 clock == &tl->clock[1] ? "device" : "host",
		 view_tick_text(from, clock->window.from, step, clock->window),
		 view_tick_text(to, clock->window.to, step, clock->window),
		 fmt_ns(shown, clock->window.to - clock->window.from),
		 fmt_ns(all, clock->extent.to - clock->extent.from),
		 view_tick_text(cursor, tl->cursor_ns, step, clock->window));
}

static int view_timeline_height(const void *state, const struct view_context *context)
{
	const struct view_timeline *tl = state;
	int rows = 3;

	(void)context;
	for (int i = 0; i < tl->lane_count; i++)
		rows += 1 + (tl->lanes[i].track->depth < VIEW_MOST_DEPTH ? tl->lanes[i].track->depth
									 : VIEW_MOST_DEPTH);
	return rows;
}

static const struct report_column view_span_columns[] = {
	{"clock", REPORT_TEXT},
	{"track", REPORT_TEXT},
	{"span_id", REPORT_NUMBER},
	{"parent_id", REPORT_NUMBER},
	{"depth", REPORT_NUMBER},
	{"category", REPORT_TEXT},
	{"name", REPORT_TEXT},
	{"start_ns", REPORT_NS},
	{"dur_ns", REPORT_NS},
	{"mode", REPORT_TEXT},
	{"epoch", REPORT_NUMBER},
	{"execution", REPORT_NUMBER},
	{"weight_update", REPORT_NUMBER},
	{"step", REPORT_NUMBER},
	{"microbatch", REPORT_NUMBER},
	{"replica", REPORT_NUMBER},
	{"ipu", REPORT_NUMBER},
	{"stage", REPORT_NUMBER},
	{"phase", REPORT_TEXT},
	{"operation", REPORT_TEXT},
};

/* The spans that overlap the windows, device first. */
static enum status view_timeline_table(void *state, struct view_context *context,
				       struct report_table *out, struct err *err)
{
	static const char sql[] =
		"SELECT clock, track, span_id, parent_id, depth, category, name, start_ns, dur_ns, "
		"mode, epoch, execution, weight_update, step, microbatch, replica, ipu, stage, "
		"phase, operation FROM spans WHERE clock = :clock AND start_ns < :to "
		"AND coalesce(start_ns + dur_ns, :to) > :from";
	const struct view_timeline *tl = state;
	struct view_rows rows = {0};
	enum status status = ST_OK;

	for (int c = 1; c >= 0 && status == ST_OK; c--) {
		struct prof_query *query;

		if (!tl->clock[c].present)
			continue;
		status = prof_query_open(&query, context->source->db, sql, err);
		if (status != ST_OK)
			break;
		prof_query_text(query, ":clock", c ? "device" : "host");
		prof_query_int(query, ":from", tl->clock[c].window.from);
		prof_query_int(query, ":to", tl->clock[c].window.to);
		status = view_rows_add(&rows, query, (int)ARRAY_LEN(view_span_columns), TABLE_LIMIT,
				       err);
		prof_query_close(query);
	}
	if (status == ST_OK)
		status = view_rows_table(&rows, out, "timeline", view_span_columns,
					 (int)ARRAY_LEN(view_span_columns), err);
	view_rows_fini(&rows);
	return status;
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
	.status = view_timeline_status,
	.height = view_timeline_height,
	.table = view_timeline_table,
};
