/*
 * The screen Timeline: its state, its load, its status line, its rows for CSV and JSON with the
 * statement that gives them, and its row of functions.
 *
 * Ids of spans rise in order of start on each track, so a window is a range of ids: looked up with
 * each picture (a bisection per lane), it makes the statement quick on a file of any size.
 *
 * Threading: one thread. Ownership: view_timeline_state.h says which arena holds what.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "viewer/draw/view_table.h"

#define TABLE_LIMIT 100000

/* The same from the picture, where it has all of the lane's spans; false: it has buckets. */
static bool view_picture_rows(const struct view_lane *lane, int64_t *first, int64_t *last)
{
	*first = INT64_MAX;
	*last = IPS_NULL;
	for (int i = 0; i < lane->bar_count; i++) {
		const int64_t id = lane->bars[i].span_id;

		if (id == IPS_NULL)
			return false;
		*first = id < *first ? id : *first;
		*last = id > *last ? id : *last;
	}
	return lane->bar_count > 0;
}

bool view__lane_rows(const struct view_lane *lane, struct prof_db *db, struct view_window window,
		     int64_t *first, int64_t *last)
{
	const struct prof_track *track = lane->track;

	if (prof_timeline_at(db, track->track_id, window.from, 0, first, NULL) != ST_OK)
		return false;
	if (*first == IPS_NULL && prof_timeline_find(db, track->track_id, track->clock, NULL,
						     window.from - 1, true, first, NULL) != ST_OK)
		return false;
	if (prof_timeline_find(db, track->track_id, track->clock, NULL, window.to, false, last,
			       NULL) != ST_OK)
		return false;
	return *first != IPS_NULL && *last != IPS_NULL && *first <= *last;
}

static enum status view_half_load(struct view_timeline *tl, struct prof_db *db,
				  struct view_context *context, struct err *err)
{
	for (int c = 0; c < 2; c++)
		tl->rows_of[c] = (struct view_window){0, -1};
	for (int i = 0; i < tl->lane_count; i++) {
		const int c = tl->lanes[i].track->clock == IPS_DEVICE;
		struct view_window *rows = &tl->rows_of[c];
		int64_t first, last;

		if (tl->lanes[i].rows == 0 && !context->whole)
			continue;
		if (view_cancelled(context))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		if (!view_picture_rows(&tl->lanes[i], &first, &last) &&
		    !view__lane_rows(&tl->lanes[i], db, tl->clock[c].window, &first, &last))
			continue;
		if (rows->to < rows->from)
			*rows = (struct view_window){first, last};
		rows->from = min(first, rows->from);
		rows->to = max(last, rows->to);
	}
	return ST_OK;
}

enum status view__rows_load(struct view_timeline *tl, struct view_context *context, struct err *err)
{
	enum status status = view_half_load(tl, context->source->db, context, err);

	if (status == ST_OK && tl->target && context->target)
		status = view_half_load(tl->target, context->target->db, context, err);
	return status;
}

#define SPAN_COLUMNS                                                                               \
	"clock, track, span_id, parent_id, depth, category, name, start_ns, dur_ns, mode, "        \
	"epoch, execution, weight_update, step, microbatch, replica, ipu, stage, phase, operation"

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
	{"report", REPORT_TEXT}, /* comparing: "source", "target" */
};

/* The lanes that are shown, as a condition on spans. */
static void view_lanes_condition(const struct view_timeline *tl, struct str *out)
{
	const int64_t each = tl->facts.replicas > 0 ? tl->facts.ipus / tl->facts.replicas : 0;

	if (tl->choice.only_ipu != IPS_NULL)
		str_addf(out, " AND ipu = %lld", (long long)tl->choice.only_ipu);
	else if (tl->choice.only_replica != IPS_NULL)
		str_addf(out, " AND ipu BETWEEN %lld AND %lld",
			 (long long)(tl->choice.only_replica * each),
			 (long long)((tl->choice.only_replica + 1) * each - 1));
	view__hidden_query(tl, out);
}

/* The spans of a clock that overlap its window, as far as ids tell: nothing else is looked at. */
static void view_clock_query(const struct view_timeline *tl, int c, const char *more,
			     struct str *out)
{
	const struct view_window window = tl->clock[c].window;

	str_addf(out,
		 "SELECT " SPAN_COLUMNS "%s\nFROM spans\nWHERE span_id BETWEEN %lld AND %lld AND "
		 "clock = '%s'",
		 more, (long long)tl->rows_of[c].from, (long long)tl->rows_of[c].to,
		 c ? "device" : "host");
	str_addf(out, " AND start_ns < %lld AND ifnull(start_ns + dur_ns, %lld) > %lld",
		 (long long)window.to, (long long)window.to, (long long)window.from);
	view_lanes_condition(tl, out);
	view__filter_query(tl, out);
	str_add(out, "\nORDER BY span_id");
}

/* The spans of one report's window; @more: a further column. */
static enum status view_half_rows(const struct view_timeline *tl, struct prof_db *db,
				  const char *more, int columns, struct view_rows *rows,
				  struct err *err)
{
	enum status status = ST_OK;

	for (int c = 1; c >= 0 && status == ST_OK; c--) {
		struct prof_query *query = NULL;
		struct str sql = {0};

		if (!tl->clock[c].present || tl->rows_of[c].to < tl->rows_of[c].from)
			continue;
		view_clock_query(tl, c, more, &sql);
		status = sql.failed ? err_nomem(err)
				    : prof_query_open(&query, db, str_peek(&sql), err);
		str_free(&sql);
		if (status == ST_OK)
			status = view_rows_add(rows, query, columns, TABLE_LIMIT, err);
		prof_query_close(query);
	}
	return status;
}

static enum status view_timeline_table(void *state, struct view_context *context,
				       struct report_table *out, struct err *err)
{
	const struct view_timeline *tl = state;
	const bool two = tl->target && context->target;
	const int columns = (int)ARRAY_LEN(view_span_columns) - !two;
	struct view_rows rows = {0};
	enum status status;

	if (view__shows_sums(tl) && tl->sums.known)
		return view_grid_table(&tl->sums.grid, out, err);
	status = view_half_rows(tl, context->source->db, two ? ", 'source' AS report" : "", columns,
				&rows, err);

	if (status == ST_OK && two)
		status = view_half_rows(tl->target, context->target->db, ", 'target' AS report",
					columns, &rows, err);
	if (status == ST_OK)
		status = view_rows_table(&rows, out, "timeline", view_span_columns, columns, err);
	view_rows_fini(&rows);
	return status;
}

/* The statements of one report: of its own file. */
static void view_half_query(const struct view_timeline *tl, struct str *out)
{
	if (tl->choice.way == VIEW_BSP)
		view__bsp_query(tl, out);
	if (view__shows_sums(tl))
		view__sums_query(tl, out);
	for (int i = 0; i < 2; i++) {
		const int c = i == 0 ? view__lead(tl) : !view__lead(tl);

		if (!tl->clock[c].present || tl->rows_of[c].to < tl->rows_of[c].from)
			continue;
		view_clock_query(tl, c, "", out);
		str_add(out, ";\n");
	}
	view__strips_query(tl, out);
	for (int c = 1; c >= 0; c--)
		view__bubble_query(tl, c, out);
}

/* A comment; of a file that is closed for a moment, what it was opened as. */
static void view_name_report(const char *name, const struct view_source *source, struct str *out)
{
	str_addf(out, "-- %s: %s\n", name, source->db ? prof_db_path(source->db) : source->path);
}

static void view_timeline_query(const void *state, const struct view_context *context,
				struct str *out)
{
	const struct view_timeline *tl = state;

	if (tl->target && context->target)
		view_name_report("Source", context->source, out);
	view_half_query(tl, out);
	if (!tl->target || !context->target)
		return;
	view_name_report("Target", context->target, out);
	view_half_query(tl->target, out);
}

int view__lead(const struct view_timeline *tl)
{
	return tl->cursor.lane < tl->lane_count &&
			       tl->lanes[tl->cursor.lane].track->clock == IPS_DEVICE
		       ? 1
		       : 0;
}

struct view_clock *view__clock(struct view_timeline *tl)
{
	return &tl->clock[view__lead(tl)];
}

struct view_lane *view__lane(struct view_timeline *tl)
{
	return tl->cursor.lane >= 0 && tl->cursor.lane < tl->lane_count
		       ? &tl->lanes[tl->cursor.lane]
		       : NULL;
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
		tl->cursor.ns = clock->window.to - 1;
	if (tl->cursor.ns < clock->window.from)
		tl->cursor.ns = clock->window.from;
	if (tl->cursor.ns >= clock->window.to)
		tl->cursor.ns = clock->window.to - 1;
	tl->cursor.track_id = view__lane(tl)->track->track_id;
	tl->cursor.clock = view__lead(tl);
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
	(void)arena_init(&tl->tracks.arena, 0);
	(void)arena_init(&tl->sites.arena, 0);
	(void)arena_init(&tl->picture, 0);
	(void)arena_init(&tl->under.arena, 0);
	(void)arena_init(&tl->bubbles.arena, 0);
	(void)arena_init(&tl->overview.arena, 0);
	(void)arena_init(&tl->device.arena, 0);
	tl->under.wanted = true;
	tl->cursor.x_ns = IPS_NULL;
	tl->under.selected = tl->cursor.pinned = tl->cursor.track_id = IPS_NULL;
	tl->choice.only_ipu = tl->choice.only_replica = IPS_NULL;
	tl->beside.at.number = tl->overview.track_id = IPS_NULL;
	tl->under.gap_run = -1;
	tl->hiding.list = &tl->hiding.own;
	return tl;
}

static void view_timeline_free(struct view_timeline *tl)
{
	if (!tl)
		return;
	arena_fini(&tl->tracks.arena);
	arena_fini(&tl->sites.arena);
	arena_fini(&tl->picture);
	arena_fini(&tl->under.arena);
	arena_fini(&tl->bubbles.arena);
	arena_fini(&tl->overview.arena);
	arena_fini(&tl->device.arena);
	view__bars_forget(tl);
	view__filter_free(tl);
	view__hidden_forget(tl);
	view_grid_fini(&tl->sums.grid);
	mem_free(tl->kept.lanes);
	mem_free(tl->device.traces);
	mem_free(tl->sites.all);
	mem_free(tl->dark.all);
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
		tl->target->hiding.list = &tl->hiding.own;
		tl->target->under.wanted = false;
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
	if (tl->under.hint[0]) {
		snprintf(out, size, "%s", tl->under.hint);
		return;
	}
	if (view__sums_lack_room(tl, context, out, size))
		return;
	if (tl->heading.height == 0 && tl->choice.by_cause && tl->bubbles.shown[c].runs > 0) {
		snprintf(out, size, "bubble %.1f %% (theory %.1f %%)",
			 tl->bubbles.shown[c].idle * 100, tl->bubbles.shown[c].theory * 100);
		return;
	}
	if (tl->heading.height == 0 && tl->areas.overview.height == 0 && !tl->mark &&
	    tl->bubbles.shown[c].runs > 0 && size > VIEW_UNIT_SIZE) {
		const int used =
			snprintf(out, size, "bubble %.1f %%, ", tl->bubbles.shown[c].idle * 100);

		out += used;
		size -= (size_t)used;
	}
	if (tl->beside.text[0] && size > sizeof(tl->beside.text) + 2) {
		const int used = snprintf(out, size, "%s: ", tl->beside.text);

		out += used;
		size -= (size_t)used;
	}
	if (tl->cursor.x_ns != IPS_NULL && tl->cursor.x_clock == c) {
		snprintf(out, size, "%s from x to the cursor: %s to %s",
			 view__length_text(tl, c, shown, llabs(tl->cursor.ns - tl->cursor.x_ns)),
			 view__moment_text(tl, c, from, tl->cursor.x_ns, step),
			 view__moment_text(tl, c, cursor, tl->cursor.ns, step));
		return;
	}
	if (view__filter_status(tl, out, size))
		return;
	if (tl->choice.by_cause && tl->choice.way == VIEW_GANTT && !tl->bubbles.split[c] &&
	    tl->bubbles.shown[c].runs > 0) {
		snprintf(out, size, "too many spans for the causes on the lanes: zoom in");
		return;
	}
	snprintf(out, size, "%s %s to %s (%s of %s) cursor %s", c ? "device" : "host",
		 view__moment_text(tl, c, from, clock->window.from, step),
		 view__moment_text(tl, c, to, clock->window.to, step),
		 view__length_text(tl, c, shown, clock->window.to - clock->window.from),
		 view__length_text(tl, c, all, clock->extent.to - clock->extent.from),
		 view__moment_text(tl, c, cursor, tl->cursor.ns, step));
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
	.table = view_timeline_table,
	.place = view__timeline_place,
	.offers = view__timeline_offers,
	.go = view__timeline_go,
	.query = view_timeline_query,
};
