/*
 * The screen Timeline: its state, its load, its status line, its rows for CSV and JSON with their
 * statement, and its row of functions.
 *
 * Ids of spans increase with the start on each track, so a window is a range of ids. Each load
 * finds it (one bisection per lane), so that the statement is quick on a file of any size.
 *
 * Threading: one thread. Ownership: view_timeline_state.h says which arena holds what.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "viewer/draw/view_table.h"

#define TABLE_LIMIT 100000
#define TABLE_FROM  20 /* least rows of a body with the table; otherwise one line */
#define DETAIL_ROWS 6
#define DETAIL_FROM 24

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
	tl->rows_of[0] = tl->rows_of[1] = VIEW_NO_WINDOW;
	for (int i = 0; i < tl->lane_count; i++) {
		const struct view_lane *lane = &tl->lanes[i];
		const int c = lane->track->clock;
		struct view_window rows = VIEW_NO_WINDOW, of;
		bool spans = lane->bar_count > 0;

		if (lane->rows == 0 && !tl->context->whole)
			continue;
		if (view__stopped(tl))
			return;
		for (int b = 0; b < lane->bar_count && spans; b++) {
			spans = lane->bars[b].span_id != IPS_NULL;
			view__include(&rows, lane->bars[b].span_id, lane->bars[b].span_id);
		}
		if (!spans)
			rows = VIEW_NO_WINDOW;
		for (int m = 0; m < lane->member_count && !spans; m++)
			if (view__lane_rows(tl, lane->members[m], tl->clock[c].window, &of))
				view__include(&rows, of.from, of.to);
		view__include(&tl->rows_of[c], rows.from, rows.to);
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
		view__path_load(tl);
		view__picture_load(tl);
		if (tl->status == ST_OK)
			view_load_rows(tl);
		view__detail_load(tl);
		view__arrows_load(tl);
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
	const bool sums = tl->choice.by_name;
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
	/* The same counter has the same scale in both reports. */
	for (int i = 0; i < tl->counters.strip_count; i++)
		for (int j = 0; j < target->counters.strip_count; j++) {
			struct view_strip *a = &tl->counters.strips[i];
			struct view_strip *b = &target->counters.strips[j];

			if (strcmp(a->counter->name, b->counter->name) != 0 ||
			    strcmp(a->counter->track, b->counter->track) != 0 || a->low > a->high ||
			    b->low > b->high)
				continue;
			a->low = b->low = fmin(a->low, b->low);
			a->high = b->high = fmax(a->high, b->high);
		}
	return status;
}

static enum status view_timeline_load(void *state, struct view_context *context, bool news,
				      struct err *err)
{
	struct view_timeline *tl = state;
	const bool first = !tl->started;
	struct view_context its;
	enum status status;

	if (context->target && !tl->target) {
		tl->target = mem_calloc(1, sizeof(*tl->target));
		if (!tl->target)
			return err_nomem(err);
		view_timeline_init(tl->target);
		tl->mark = 'S';
		tl->target->mark = 'T';
		tl->target->hiding.list = &tl->hiding.own;
		tl->target->under.wanted = false;
	}
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

/* The spans in the windows: of each report those of the device, then those of the host. */
static enum status view_timeline_table(void *state, struct view_context *context,
				       struct report_table *out, struct err *err)
{
	static const char *const reports[] = {", 'source' AS report", ", 'target' AS report"};
	const struct view_timeline *tl = state;
	const bool two = tl->target && context->target;
	const int columns = (int)ARRAY_LEN(view_span_columns) - !two;
	struct report_table parts[4] = {{0}};
	enum status status = ST_OK;
	int64_t rows = 0, row = 0;
	bool more;

	if (tl->choice.by_name && tl->sums.known)
		return view_grid_table(&tl->sums.grid, out, err);
	for (int i = 0; i < (two ? 4 : 2) && rows <= TABLE_LIMIT && status == ST_OK; i++) {
		const struct view_source *source = i < 2 ? context->source : context->target;
		struct str sql = {0};

		if (!view_clock_query(i < 2 ? tl : tl->target, i % 2 == 0 ? IPS_DEVICE : IPS_HOST,
				      two ? reports[i / 2] : "", &sql))
			continue;
		/* One row more than can be: then there are more. */
		status = sql.failed
				 ? err_nomem(err)
				 : report_table_query_most(&parts[i], source->db, "timeline",
							   str_peek(&sql), TABLE_LIMIT + 1 - rows,
							   0, &more, err);
		str_free(&sql);
		rows += parts[i].row_count;
	}
	more = rows > TABLE_LIMIT;
	rows = min(rows, (int64_t)TABLE_LIMIT);
	if (status == ST_OK)
		status = view_table_new(out, "timeline", view_span_columns, columns, rows, err);
	if (more)
		out->note = "there are more rows: zoom in, or narrow the time with --from and --to";
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		for (int64_t r = 0; r < parts[i].row_count && row < rows && status == ST_OK; r++) {
			status = view_table_row(out, row++, &parts[i].cells[r * columns], err);
			if (status != ST_OK)
				report_table_free(out);
		}
		report_table_free(&parts[i]);
	}
	return status;
}

static void view_device_query(const struct view_timeline *tl, struct str *out)
{
	const struct view_window ns = tl->clock[IPS_DEVICE].window;
	struct view_window of = VIEW_NO_WINDOW; /* executions */

	for (int i = 0; i < tl->run_count; i++)
		view__include(&of, tl->runs[i].execution, tl->runs[i].execution);
	str_add(out, "SELECT ipu, trace_step, type, name, operation, start_cycle, cycles, "
		     "active_tiles, tile_balance, weight_update, microbatch\nFROM device_steps\n"
		     "WHERE ");
	if (of.from <= of.to && of.from != IPS_NULL)
		str_addf(out, "execution BETWEEN %lld AND %lld AND ", (long long)of.from,
			 (long long)of.to);
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
	if (tl->choice.by_name)
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
