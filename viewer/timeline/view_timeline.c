/*
 * The screen Timeline: its state, its load, its status line, its rows for CSV and JSON with their
 * statement, and its row of functions; arrows between spans, such as from the launch of a kernel to
 * the kernel, and the critical path of steps of a GPU program, both as the recording has them.
 *
 * The arrows of the selected span are drawn over what is empty between the lanes, and a key follows
 * them: from the call to what it launched, and back; from a call that launched many, to the next
 * one each time. If the critical path is chosen, spans that are not on it are drawn as those that a
 * filter excludes. A cell of many spans is on it if the path leads through its lane then.
 *
 * Ids of spans increase with the start on each track, so a window is a range of ids. Each load
 * finds it (one bisection per lane), so that the statement is quick on a file of any size.
 *
 * Threading: one thread. Ownership: view_timeline_state.h says which arena holds what. Arrows are
 * in the arena of what is under the cursor; the path's edges are owned, and read once until news.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "viewer/draw/view_table.h"

#define TABLE_LIMIT 100000
#define TABLE_FROM  20 /* least rows of a body with the table; otherwise one line */
#define DETAIL_ROWS 6
#define DETAIL_FROM 24
#define MOST_ARROWS 64
#define MOST_EDGES  1000000

/* ---- arrows ---------------------------------------------------------------------------------- */

/* Without an index the arrows of a span are looked for only if there are few. */
static bool view_has_arrows(struct view_timeline *tl)
{
	static const char sql[] =
		"SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'index' AND "
		"name = 'flow_to') OR (SELECT ifnull(max(row_id), 0) FROM flow_rows) "
		"< 1000000";
	int64_t has = 0;

	return tl->db && prof_db_number(tl->db, sql, &has, NULL) == ST_OK && has == 1;
}

static void view_read_arrows(struct view_timeline *tl, bool in)
{
	static const char *const sql[] = {
		"SELECT to_span_id FROM flows WHERE from_span_id = :span ORDER BY 1 LIMIT :most",
		"SELECT from_span_id FROM flows WHERE to_span_id = :span ORDER BY 1 LIMIT :most"};
	struct view_arrows *arrows = &tl->arrows;
	struct prof_query *query;
	enum status status = prof_query_open(&query, tl->db, sql[in], NULL);

	prof_query_int(query, ":span", tl->under.selected);
	prof_query_int(query, ":most", MOST_ARROWS);
	while (arrows->count < MOST_ARROWS && prof_query_next(query, &status, NULL)) {
		struct view_arrow *arrow = &arrows->all[arrows->count];

		if (prof_timeline_span(tl->db, prof_column_int(query, 0), &tl->under.arena,
				       &arrow->other, NULL) != ST_OK)
			continue;
		arrow->in = in;
		arrows->count++;
	}
	prof_query_close(query);
}

/* Read the arrows of the selected span, after the details. */
static void view_arrows_load(struct view_timeline *tl)
{
	tl->arrows.count = 0;
	tl->arrows.all = NULL;
	if (tl->status != ST_OK || tl->under.selected == IPS_NULL || tl->under.in_gap ||
	    !view_has_arrows(tl))
		return;
	tl->arrows.all = view__alloc(tl, &tl->under.arena, MOST_ARROWS, sizeof(*tl->arrows.all));
	for (int in = 0; in < 2 && tl->arrows.all; in++)
		view_read_arrows(tl, in);
}

/* Find where an arrow from the selected span leads: behind the one followed last, or else first. */
static int64_t view_next_arrow(struct view_timeline *tl, bool in, int64_t behind, int64_t *nth,
			       int64_t *count)
{
	static const char *const sql[] = {
		"SELECT coalesce(min(iif(to_span_id > :behind, to_span_id, NULL)), "
		"min(to_span_id)), count(*), sum(to_span_id <= :behind) FROM flows "
		"WHERE from_span_id = :span",
		"SELECT min(from_span_id), count(*), 0 FROM flows WHERE to_span_id = :span"};
	struct prof_query *query;
	enum status status = prof_query_open(&query, tl->db, sql[in], NULL);
	int64_t to = IPS_NULL;

	prof_query_int(query, ":span", tl->under.selected);
	if (!in)
		prof_query_int(query, ":behind", behind);
	if (prof_query_next(query, &status, NULL)) {
		to = prof_column_int(query, 0);
		*count = prof_column_int(query, 1);
		*nth = prof_column_int(query, 2) % max(*count, 1) + 1;
	}
	prof_query_close(query);
	return to;
}

void view__follow_arrow(struct view_timeline *tl)
{
	struct view_arrows *arrows = &tl->arrows;
	const int64_t here = tl->under.selected;
	const bool back = here != IPS_NULL && here == arrows->to;
	int64_t to = back ? arrows->from : IPS_NULL, nth = 1, count = 1;
	bool in = back;
	struct prof_span span;
	char text[64], number[FMT_SIZE], of[FMT_SIZE];
	int lane;

	if (to == IPS_NULL && here != IPS_NULL && view_has_arrows(tl)) {
		to = view_next_arrow(tl, false, here == arrows->from ? arrows->to : INT64_MIN + 1,
				     &nth, &count);
		in = to == IPS_NULL;
		if (in)
			to = view_next_arrow(tl, true, 0, &nth, &count);
	}
	if (to == IPS_NULL ||
	    prof_timeline_span(tl->db, to, &tl->under.arena, &span, NULL) != ST_OK) {
		view_message(tl->context, "no arrow leads from or to this span", NULL);
		return;
	}
	lane = view__lane_of(tl, span.track_id);
	if (lane < 0 && view__show_hidden(tl))
		lane = view__lane_of(tl, span.track_id);
	if (lane < 0)
		return;
	/* Back at the arrow's start, its end is kept: the key goes on to the next one. */
	arrows->from = in ? to : here;
	arrows->to = in ? here : to;
	view__go(tl, lane, span.depth, span.start_ns, to);
	if (!in && count > 1) {
		snprintf(text, sizeof(text), "%s of %s", fmt_count(number, nth),
			 fmt_count(of, count));
		view_message(tl->context, "arrow ", text);
	}
}

/* ---- the critical path ----------------------------------------------------------------------- */

static int view_edge_order(const void *a, const void *b)
{
	const struct view_edge *x = a, *y = b;

	if (x->track_id != y->track_id)
		return x->track_id < y->track_id ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

static int view_id_order(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

bool view__has_path(struct view_timeline *tl)
{
	int64_t has;

	return tl->db &&
	       prof_db_number(tl->db, "SELECT EXISTS (SELECT 1 FROM critical_rows)", &has, NULL) ==
		       ST_OK &&
	       has == 1;
}

/* Read the critical path, if it is chosen and not known. */
static void view_path_load(struct view_timeline *tl)
{
	static const char sql[] =
		"SELECT r.track_id, p.span_id, p.time_ns, p.time_ns + p.dur_ns "
		"FROM critical_rows p JOIN span_rows r ON r.span_id = p.span_id LIMIT :most";
	struct view_path *path = &tl->path;
	struct prof_query *query;

	if (!tl->choice.critical || path->known || tl->status != ST_OK)
		return;
	path->count = 0;
	path->known = true;
	if (!view__has_path(tl))
		return;
	tl->status = prof_query_open(&query, tl->db, sql, &tl->err);
	prof_query_int(query, ":most", MOST_EDGES);
	while (prof_query_next(query, &tl->status, &tl->err)) {
		if (mem_grow(&path->edges, &path->capacity, path->count + 1,
			     sizeof(*path->edges)) != 0) {
			tl->status = err_nomem(&tl->err);
			break;
		}
		path->edges[path->count++] =
			(struct view_edge){prof_column_int(query, 0), prof_column_int(query, 1),
					   prof_column_int(query, 2), prof_column_int(query, 3)};
	}
	prof_query_close(query);
	mem_free(path->ids);
	path->ids = mem_alloc((path->count + 1) * sizeof(*path->ids));
	if (!path->ids)
		tl->status = err_nomem(&tl->err);
	if (tl->status != ST_OK) {
		path->known = false;
		path->count = 0;
		return;
	}
	for (size_t i = 0; i < path->count; i++)
		path->ids[i] = path->edges[i].span_id;
	if (path->count == 0)
		return;
	qsort(path->ids, path->count, sizeof(*path->ids), view_id_order);
	qsort(path->edges, path->count, sizeof(*path->edges), view_edge_order);
}

bool view__is_off_path(const struct view_timeline *tl, int64_t track_id, const struct prof_bar *bar)
{
	const struct view_path *path = &tl->path;
	size_t low = 0, high = path->count;

	if (!tl->choice.critical || !path->known)
		return false;
	if (bar->span_id != IPS_NULL)
		return path->count == 0 || !bsearch(&bar->span_id, path->ids, path->count,
						    sizeof(*path->ids), view_id_order);
	/* Edges of a lane do not overlap: the last that begins before the bucket ends. */
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct view_edge *edge = &path->edges[middle];

		if (edge->track_id < track_id ||
		    (edge->track_id == track_id && edge->from < bar->start_ns + bar->dur_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low == 0 || path->edges[low - 1].track_id != track_id ||
	       path->edges[low - 1].to < bar->start_ns;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void view_timeline_init(void *state)
{
	struct view_timeline *tl = state;

	tl->under.wanted = true;
	tl->cursor.x_ns = IPS_NULL;
	tl->under.selected = tl->cursor.pinned = tl->cursor.track_id = IPS_NULL;
	tl->choice.only_ipu = tl->choice.only_replica = IPS_NULL;
	tl->beside.at.number = tl->overview.track_id = IPS_NULL;
	tl->under.gap_run = -1;
	tl->arrows.from = tl->arrows.to = IPS_NULL;
	tl->hiding.list = &tl->hiding.own;
}

/* Make the second timeline, of the target. */
static enum status view_timeline_pair(struct view_timeline *tl, struct err *err)
{
	struct view_timeline *target = mem_calloc(1, sizeof(*target));

	if (!target)
		return err_nomem(err);
	view_timeline_init(target);
	tl->target = target;
	tl->mark = 'S';
	target->mark = 'T';
	target->hiding.list = &tl->hiding.own;
	target->under.wanted = false;
	return ST_OK;
}

static void view_timeline_fini(void *state)
{
	struct view_timeline *tl = state;

	if (tl->target)
		view_timeline_fini(tl->target);
	mem_free(tl->target);
	arena_fini(&tl->tracks.arena);
	arena_fini(&tl->sites.arena);
	arena_fini(&tl->picture);
	arena_fini(&tl->under.arena);
	arena_fini(&tl->bubbles.arena);
	arena_fini(&tl->overview.arena);
	arena_fini(&tl->device.arena);
	view__bars_free(tl);
	mem_free(tl->path.edges);
	mem_free(tl->path.ids);
	tl->path = (struct view_path){0};
	view__filter_free(tl);
	view__hidden_free(tl);
	view_grid_fini(&tl->sums.grid);
	mem_free(tl->kept.lanes);
	mem_free(tl->device.traces);
	mem_free(tl->sites.all);
	mem_free(tl->dark.all);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Find the span ids that the windows show: from the bars if these are all spans of a lane. */
static void view_load_rows(struct view_timeline *tl)
{
	for (int c = 0; c < 2; c++)
		tl->rows_of[c] = (struct view_window){0, -1};
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];
		const int c = lane->track->clock;
		struct view_window *rows = &tl->rows_of[c];
		int64_t first = INT64_MAX, last = IPS_NULL, from, to;
		bool spans = lane->bar_count > 0, some;

		if (lane->rows == 0 && !tl->context->whole)
			continue;
		if (view__stopped(tl))
			return;
		for (int b = 0; b < lane->bar_count && spans; b++) {
			spans = lane->bars[b].span_id != IPS_NULL;
			first = min(lane->bars[b].span_id, first);
			last = max(lane->bars[b].span_id, last);
		}
		some = spans;
		for (int m = 0; m < lane->member_count && !spans; m++) {
			if (!view__lane_rows(tl, lane->members[m], tl->clock[c].window, &from, &to))
				continue;
			first = min(from, some ? first : from);
			last = max(to, some ? last : to);
			some = true;
		}
		if (!some)
			continue;
		if (rows->to < rows->from)
			*rows = (struct view_window){first, last};
		rows->from = min(first, rows->from);
		rows->to = max(last, rows->to);
	}
}

enum status view__timeline_load(struct view_timeline *tl, struct view_context *context, bool news,
				struct err *err)
{
	struct view_clock *clock;

	view__begin(tl, context);
	view__picture_reset(tl);
	if (news || tl->relane)
		view__lanes_load(tl);
	if (tl->status != ST_OK) {
		tl->lane_count = tl->all_lanes = 0;
		return view__end(tl, err);
	}
	if (tl->lane_count == 0) {
		view__layout(tl);
		return ST_OK;
	}
	clock = view__clock(tl);
	if (context->follow)
		tl->cursor.ns = clock->window.to - 1;
	tl->cursor.ns = min(max(tl->cursor.ns, clock->window.from), clock->window.to - 1);
	tl->cursor.track_id = view__lane(tl)->track->track_id;
	tl->cursor.clock = view__lead(tl);
	view__link_windows(tl);
	view__layout(tl);
	if (tl->width > 0) {
		view_path_load(tl);
		view__picture_load(tl);
		if (tl->status == ST_OK)
			view_load_rows(tl);
		view__detail_load(tl);
		view_arrows_load(tl);
	}
	view__filter_load(tl, news);
	for (int i = 0; i < tl->lane_count && tl->status != ST_OK; i++)
		tl->lanes[i].rows = 0;
	return view__end(tl, err);
}

/* Load the source, then the target aligned with it. @its: the target's context, which must outlive
 * the load of sums by name. */
static enum status view_load_both(struct view_timeline *tl, struct view_context *context,
				  struct view_context *its, bool news, struct err *err)
{
	struct view_timeline *target = tl->target;
	const int width = context->body.width, height = context->body.height;
	const int head = height >= TABLE_FROM ? VIEW_TABLE_ROWS : height >= 4 ? 1 : 0;
	const bool sums = view__shows_sums(tl);
	const bool details = tl->under.wanted && !context->whole &&
			     height >= (sums ? VIEW_SUMS_FROM_TWO : DETAIL_FROM);
	const int foot = !details ? 0 : sums ? height / 3 : DETAIL_ROWS;
	const int rest = height - head - foot, upper = (rest + 1) / 2;
	enum status status;

	/* The table, the two timelines and the details share the body. */
	tl->beside.head = (struct view_rect){0, 0, width, head};
	tl->beside.half = (struct view_rect){0, head, width, upper};
	tl->beside.foot = (struct view_rect){0, head + rest, width, foot};
	target->beside.half = (struct view_rect){0, head + upper, width, rest - upper};
	target->beside.foot = (struct view_rect){0, head + rest, 0, 0};
	view__copy_choices(tl);
	target->filter.stale |= news;
	status = view__timeline_load(tl, context, news, err);
	if (status != ST_OK || tl->lane_count == 0)
		return status;
	view__begin(target, its);
	view__picture_reset(target);
	if (news || target->relane || !target->started)
		view__lanes_load(target);
	if (target->status != ST_OK || target->lane_count == 0)
		return view__end(target, err);
	view__align(tl);
	status = view__timeline_load(target, its, false, err);
	view__strips_match(tl);
	return status;
}

static enum status view_timeline_load(void *state, struct view_context *context, bool news,
				      struct err *err)
{
	struct view_timeline *tl = state;
	const bool first = !tl->started;
	struct view_context its;
	enum status status;

	if (context->target && !tl->target && view_timeline_pair(tl, err) != ST_OK)
		return ST_NOMEM;
	if (tl->target) {
		its = view_context_of_target(context);
		status = view_load_both(tl, context, &its, news, err);
	} else {
		status = view__timeline_load(tl, context, news, err);
	}
	if (status == ST_OK) {
		view__sums_load(tl, news);
		status = view__end(tl, err);
	}
	/* After a cancelled first load, choose the first windows again from complete data. */
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

	view__begin(tl, context);
	return tl->lane_count > 0 && tl->db && view__jump_name(tl, text, forward);
}

/* ---- the status line ------------------------------------------------------------------------- */

/* Show the window and the cursor in the chosen unit, or something more important. */
static void view_timeline_status(const void *state, const struct view_context *context, char *out,
				 size_t size)
{
	const struct view_timeline *tl = state;
	const int c = view__lead(tl);
	const struct view_clock *clock = &tl->clock[c];
	const struct view_bubble *bubble = &tl->bubbles.shown[c];
	const int64_t step = view_tick_step(clock->window, 100, 1), x_ns = tl->cursor.x_ns;
	char from[VIEW_UNIT_SIZE], to[VIEW_UNIT_SIZE], cursor[VIEW_UNIT_SIZE],
		shown[VIEW_UNIT_SIZE], all[VIEW_UNIT_SIZE];
	int used = 0;

	if (tl->lane_count == 0) {
		snprintf(out, size, "no spans recorded");
		return;
	}
	if (tl->hiding.lanes > 0 && size > VIEW_UNIT_SIZE)
		used = snprintf(out, size, "%d lane%s hidden, ", tl->hiding.lanes,
				tl->hiding.lanes == 1 ? "" : "s");
	out += used;
	size -= (size_t)used;
	if (tl->under.hint[0]) {
		snprintf(out, size, "%s", tl->under.hint);
		return;
	}
	if (view__sums_lack_room(tl, context, out, size))
		return;
	if (tl->heading.height == 0 && tl->choice.by_cause && bubble->runs > 0) {
		if (isnan(bubble->theory))
			snprintf(out, size, "bubble %.1f %%", bubble->idle * 100);
		else
			snprintf(out, size, "bubble %.1f %% (theory %.1f %%)", bubble->idle * 100,
				 bubble->theory * 100);
		return;
	}
	used = 0;
	if (tl->heading.height == 0 && tl->areas.overview.height == 0 && !tl->mark &&
	    bubble->runs > 0 && size > VIEW_UNIT_SIZE)
		used = snprintf(out, size, "bubble %.1f %%, ", bubble->idle * 100);
	if (tl->beside.text[0] && size > sizeof(tl->beside.text) + 2)
		used = snprintf(out, size, "%s: ", tl->beside.text);
	out += used;
	size -= (size_t)used;
	if (x_ns != IPS_NULL && tl->cursor.x_clock == c) {
		snprintf(out, size, "%s from x to the cursor: %s to %s",
			 view__length_text(tl, c, shown, llabs(tl->cursor.ns - x_ns)),
			 view__time_text(tl, c, from, x_ns, step),
			 view__time_text(tl, c, cursor, tl->cursor.ns, step));
		return;
	}
	if (view__filter_status(tl, out, size))
		return;
	if (tl->choice.by_cause && tl->choice.way == VIEW_GANTT && !tl->bubbles.split[c] &&
	    bubble->runs > 0) {
		snprintf(out, size, "too many spans for the causes on the lanes: zoom in");
		return;
	}
	view__time_text(tl, c, from, clock->window.from, step);
	view__time_text(tl, c, to, clock->window.to, step);
	view__length_text(tl, c, shown, clock->window.to - clock->window.from);
	view__length_text(tl, c, all, clock->extent.to - clock->extent.from);
	/* Two timelines may have no room for details: the cursor alone says which span is next. */
	if (tl->beside.text[0])
		snprintf(out, size, "cursor %s, %s %s to %s (%s of %s)",
			 view__time_text(tl, c, cursor, tl->cursor.ns, max(step / 100, 1)),
			 c ? "device" : "host", from, to, shown, all);
	else
		snprintf(out, size, "%s %s to %s (%s of %s) cursor %s", c ? "device" : "host", from,
			 to, shown, all, view__time_text(tl, c, cursor, tl->cursor.ns, step));
}

static int view_timeline_height(const void *state, const struct view_context *context)
{
	const struct view_timeline *tl = state;
	int rows = 4;

	(void)context;
	if (tl->target)
		rows += view_timeline_height(tl->target, context);
	for (int i = 0; i < tl->lane_count; i++)
		rows += 1 +
			(tl->lanes[i].fold ? 1 : min(tl->lanes[i].track->depth, VIEW_MOST_DEPTH));
	return rows;
}

/* ---- rows ------------------------------------------------------------------------------------ */

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

/* Append the query of a clock's spans that overlap its window, limited by span ids so that nothing
 * else is read. @more: a further column. false: there are none. */
static bool view_clock_query(const struct view_timeline *tl, int c, const char *more,
			     struct str *out)
{
	const struct view_window window = tl->clock[c].window, rows = tl->rows_of[c];

	if (!tl->clock[c].present || rows.to < rows.from)
		return false;
	for (size_t i = 0; i + 1 < ARRAY_LEN(view_span_columns); i++)
		str_addf(out, "%s%s", i ? ", " : "SELECT ", view_span_columns[i].name);
	str_addf(out,
		 "%s\nFROM spans\nWHERE span_id BETWEEN %lld AND %lld AND "
		 "clock = '%s' AND start_ns < %lld AND ifnull(start_ns + dur_ns, %lld) > %lld",
		 more, (long long)rows.from, (long long)rows.to, c ? "device" : "host",
		 (long long)window.to, (long long)window.to, (long long)window.from);
	view__lanes_query(tl, out);
	view__filter_query(tl, out);
	if (tl->choice.critical)
		str_add(out, "\n  AND span_id IN (SELECT span_id FROM critical_path)");
	str_add(out, "\nORDER BY span_id");
	return true;
}

/* Add the spans of one report's windows. */
static enum status view_add_rows(const struct view_timeline *tl, struct prof_db *db,
				 const char *more, int columns, struct view_rows *rows,
				 struct err *err)
{
	enum status status = ST_OK;

	for (int c = 1; c >= 0 && status == ST_OK; c--) {
		struct prof_query *query = NULL;
		struct str sql = {0};

		if (!view_clock_query(tl, c, more, &sql))
			continue;
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
	status = view_add_rows(tl, context->source->db, two ? ", 'source' AS report" : "", columns,
			       &rows, err);
	if (status == ST_OK && two)
		status = view_add_rows(tl->target, context->target->db, ", 'target' AS report",
				       columns, &rows, err);
	if (status == ST_OK)
		status = view_rows_table(&rows, out, "timeline", view_span_columns, columns, err);
	view_rows_fini(&rows);
	return status;
}

static void view_device_query(const struct view_timeline *tl, struct str *out)
{
	const struct view_window ns = tl->clock[IPS_DEVICE].window;
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (int i = 0; i < tl->run_count; i++) {
		first = min(tl->runs[i].execution, first);
		last = max(tl->runs[i].execution, last);
	}
	str_add(out, "SELECT ipu, trace_step, type, name, operation, start_cycle, cycles, "
		     "active_tiles, tile_balance, weight_update, microbatch\nFROM device_steps\n"
		     "WHERE ");
	if (first <= last && first != IPS_NULL)
		str_addf(out, "execution BETWEEN %lld AND %lld AND ", (long long)first,
			 (long long)last);
	str_addf(out, "start_ns < %lld AND start_ns + dur_ns > %lld\nORDER BY ipu, start_cycle;\n",
		 (long long)ns.to, (long long)ns.from);
}

/* Append the statements of one report. With two reports a comment names the file: its database, or
 * while that is closed the path it was opened with. */
static void view_report_query(const struct view_timeline *tl, const char *name,
			      const struct view_source *source, struct str *out)
{
	const int lead = view__lead(tl);

	if (name)
		str_addf(out, "-- %s: %s\n", name,
			 source->db ? prof_db_path(source->db) : source->path);
	if (tl->choice.way == VIEW_BSP)
		view_device_query(tl, out);
	if (view__shows_sums(tl))
		view__sums_query(tl, out);
	for (int i = 0; i < 2; i++)
		if (view_clock_query(tl, i == 0 ? lead : !lead, "", out))
			str_add(out, ";\n");
	for (int i = 0; i < tl->counters.strip_count; i++) {
		const struct prof_counter *counter = tl->counters.strips[i].counter;
		const struct view_window window = tl->clock[counter->clock].window;

		str_add(out, "SELECT time_ns, value FROM counters WHERE track = ");
		str_add_sql(out, counter->track);
		str_add(out, " AND name = ");
		str_add_sql(out, counter->name);
		str_addf(out, " AND time_ns >= %lld AND time_ns < %lld;\n", (long long)window.from,
			 (long long)window.to);
	}
	for (int c = 1; c >= 0; c--)
		view__bubble_query(tl, c, out);
}

static void view_timeline_query(const void *state, const struct view_context *context,
				struct str *out)
{
	const struct view_timeline *tl = state;
	const bool two = tl->target && context->target;

	view_report_query(tl, two ? "Source" : NULL, context->source, out);
	if (two)
		view_report_query(tl->target, "Target", context->target, out);
}

static const char *timeline_word(const void *state, enum view_request request)
{
	const struct view_timeline *tl = state;
	const struct view_clock *clock;
	struct view_window span;

	if (tl->lane_count == 0)
		return "";
	clock = &tl->clock[view__lead(tl)];
	switch (request) {
	case VIEW_ALWAYS_LIVE_REQUEST:
		return tl->arrows.count > 0 ? "arrow" : "";
	case VIEW_EXPAND_REQUEST:
		return tl->folds ? "fold" : "";
	case VIEW_SELECT_REQUEST:
		return view__lanes_have_ipu(tl) ? NULL : "";
	case VIEW_ENTER_REQUEST:
		return tl->under.wanted && tl->areas.details.height == 0 ? "" : "details";
	case VIEW_ZOOM_IN_REQUEST:
		return clock->window.to - clock->window.from > VIEW_WINDOW_LEAST ? NULL : "";
	case VIEW_ZOOM_ALL_REQUEST:
		return view__shows_all(clock) ? "" : NULL;
	case VIEW_ZOOM_SPAN_REQUEST:
		return view__span_window(tl, &span) && (span.from != clock->window.from ||
							span.to != clock->window.to)
			       ? NULL
			       : "";
	default:
		return NULL;
	}
}

const struct view_screen_ops view_timeline_ops = {
	.name = "timeline",
	.title = "Timeline",
	.brief = "Time",
	.key = '7',
	.where = VIEW_ON_TIMELINE,
	.least_ns = 250 * UINT64_C(1000000),
	.size = sizeof(struct view_timeline),
	.init = view_timeline_init,
	.fini = view_timeline_fini,
	.load = view_timeline_load,
	.draw = view__timeline_draw,
	.request = view__timeline_request,
	.search = view_timeline_search,
	.click = view__timeline_click,
	.drags = true,
	.wheels = true,
	.filter = view__timeline_filter,
	.word = timeline_word,
	.status = view_timeline_status,
	.height = view_timeline_height,
	.table = view_timeline_table,
	.place = view__timeline_place,
	.offers = view__timeline_offers,
	.go = view__timeline_go,
	.query = view_timeline_query,
};
