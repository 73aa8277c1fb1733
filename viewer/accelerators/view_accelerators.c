/*
 * The screen Accelerators: the named reports on recordings of GPUs (kernels, temporal, launch,
 * critical-path, steps, ranges, memory-timeline) as tables, one at a time, with the curve of a
 * device's memory above the last one. Enter leads from a row to the timeline: to the row's span, or
 * to the longest one of its name, device, thread or step.
 *
 * Threading: that of the session; the span of a row is looked up on the worker. Ownership: the
 * screen owns the grid; the curve's points are in an array of the screen.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "reports/named/report_named.h"
#include "viewer/draw/view_chart.h"
#include "viewer/draw/view_grid.h"
#include "viewer/view_layout.h"

#define MOST_ROWS   100000
#define ROW_ROWS    4  /* under the table: the cursor's row in full */
#define ROW_FROM    16 /* least rows of a body with it */
#define CURVE_FROM  14 /* least rows of a body with the curve of memory */
#define CURVE_WIDTH 512

/* A report, the columns that tell its rows apart for each grouping, and how a row's span is found:
 * by the first of these columns that the table has. */
struct accelerator_report {
	const struct report_named *named;
	const char *title;
	const char *keys[REPORT_GROUPINGS];
	struct accelerator_way {
		const char *column, *sql; /* :text or :number is the cell */
	} ways[4];
};

#define LONGEST(what, view, where)                                                                 \
	"SELECT " what " FROM " view " WHERE " where " ORDER BY dur_ns DESC LIMIT 1"

static const struct accelerator_report reports[] = {
	{&report_named_kernels,
	 "kernels",
	 {"kind,name", "kind", "rank,device", "rank,device,stream", "rank,step"},
	 {{"name", LONGEST("span_id", "kernels", "name = :text")},
	  {"kind", LONGEST("span_id", "kernels", "kind = :text")},
	  {"device", LONGEST("span_id", "kernels", "device = :text")},
	  {"step", LONGEST("span_id", "kernels", "step = :number")}}},
	{&report_named_temporal,
	 "temporal",
	 {"rank,device", "rank,device,step", "rank,device,stream"},
	 {{"step", LONGEST("span_id", "kernels", "step = :number")},
	  {"device", LONGEST("span_id", "kernels", "device = :text")}}},
	{&report_named_launch,
	 "launch",
	 {"call", "name", "rank,device,stream", "rank,track"},
	 {{"call", LONGEST("launch_span_id", "launches", "call = :text")},
	  {"name", LONGEST("span_id", "launches", "name = :text")},
	  {"device", LONGEST("launch_span_id", "launches", "device = :text")},
	  {"track", LONGEST("launch_span_id", "launches", "track = :text")}}},
	{&report_named_critical_path,
	 "critical path",
	 {"kind,name", "kind", "rank,track", "rank,step", "rank,step,position"},
	 {{"name", LONGEST("span_id", "critical_path", REPORT_RANGE_NAME " = :text")},
	  {"kind", LONGEST("span_id", "critical_path", "kind = :text")},
	  {"track", LONGEST("span_id", "critical_path", "track = :text")},
	  {"step", LONGEST("span_id", "critical_path", "step = :number")}}},
	{&report_named_steps,
	 "steps",
	 {"rank,step", "span_id"},
	 {{"span_id", LONGEST("span_id", "ranges", "span_id = :number")},
	  {"start_ns", LONGEST("span_id", "ranges", "kind = 'step' AND start_ns = :number")}}},
	{&report_named_ranges,
	 "ranges",
	 {"kind,domain,name", "span_id"},
	 {{"name", LONGEST("span_id", "ranges", REPORT_RANGE_NAME " = :text")}}},
	{&report_named_memory_timeline, "memory", {"rank,device", "rank,device,time_ns"}, {{0}}},
};
#define REPORTS       ((int)ARRAY_LEN(reports))
#define MEMORY_REPORT (REPORTS - 1)

/* The columns of all these reports. */
static const struct view_grid_column columns[] = {
	{.name = "name", .least = 20, .importance = 20},
	{.name = "call", .least = 16, .importance = 20},
	{.name = "range", .least = 16, .importance = 20},
	{.name = "track", .least = 12, .importance = 20},
	{.name = "device", .importance = 20},
	{.name = "stream", .importance = 19},
	{.name = "step", .importance = 19},
	{.name = "number", .importance = 19},
	{.name = "kind", .importance = 12},
	{.name = "rank", .importance = 2},
	{.name = "total_ns", .title = "total", .importance = 19},
	{.name = "share", .importance = 18, .bar = true},
	{.name = "count", .importance = 15},
	{.name = "spans", .importance = 15},
	{.name = "mean_ns", .title = "mean", .importance = 14},
	{.name = "greatest_ns", .title = "longest", .importance = 11},
	{.name = "self_ns", .title = "self", .importance = 10},
	{.name = "least_ns", .title = "shortest"},
	{.name = "idle_share", .title = "idle", .importance = 18, .bar = true},
	{.name = "compute_share", .title = "compute", .importance = 17},
	{.name = "communication_ns", .title = "communication", .importance = 14},
	{.name = "overlap_share", .title = "overlap", .importance = 13},
	{.name = "copy_ns", .title = "copies", .importance = 12},
	{.name = "idle_ns", .title = "idle", .importance = 11},
	{.name = "busy_ns", .title = "busy", .importance = 16},
	{.name = "busy_share", .title = "busy share", .importance = 15, .bar = true},
	{.name = "non_compute_ns", .title = "no compute"},
	{.name = "host_wait_share", .title = "host late", .importance = 17, .bar = true},
	{.name = "other_wait_share", .title = "other", .importance = 15},
	{.name = "kernel_wait_share", .title = "between kernels", .importance = 14},
	{.name = "mean_device_ns", .title = "mean on device", .importance = 16},
	{.name = "mean_delay_ns", .title = "mean delay", .importance = 17},
	{.name = "short_share", .title = "short", .importance = 16, .bar = true},
	{.name = "slow_calls", .title = "slow calls", .importance = 9},
	{.name = "late", .importance = 9},
	{.name = "path_ns", .title = "path", .importance = 18},
	{.name = "length_ns", .title = "length"},
	{.name = "host_share", .title = "host", .importance = 17, .bar = true},
	{.name = "communication_share", .title = "communication", .importance = 16},
	{.name = "memory_share", .title = "memory", .importance = 15},
	{.name = "launch_share", .title = "launch", .importance = 15},
	{.name = "start_ns", .title = "start", .importance = 13},
	{.name = "dur_ns", .title = "time", .importance = 18},
	{.name = "imbalance", .importance = 12},
	{.name = "kernels", .importance = 14},
	{.name = "device_ns", .title = "on device", .importance = 13},
	{.name = "peak_bytes", .title = "peak", .importance = 19},
	{.name = "peak_time_ns", .title = "at", .importance = 18},
	{.name = "peak_reserved_bytes", .title = "reserved", .importance = 17},
	{.name = "time_ns", .title = "at", .importance = 19},
	{.name = "bytes", .importance = 18},
	{.name = "total_bytes", .title = "allocated", .importance = 17},
	{.name = "reserved_bytes", .title = "reserved", .importance = 16},
	{.name = "events"},
	{.name = "allocations", .importance = 9},
	{.name = "releases", .importance = 8},
	{.name = "reserved_at_peak_bytes"},
	{.name = "span_id"},
	{.name = "position"},
	{.name = "domain"},
	{.name = "repeats"},
	{.name = "range_ns"},
	{.name = "address"},
};

struct view_accelerators {
	struct view_grid grid; /* first: view_state_grid() */
	int report, by[ARRAY_LEN(reports)];
	int listed_report, listed_by; /* of the grid's rows; -1: none, or they are old */
	bool any;                     /* the recording has kernels, ranges or allocations */
	int row_height, curve_height;
	int64_t found_row, found; /* the span of a row of the grid's table; IPS_NULL: none */
	/* The memory of the cursor's device: allocated bytes over the time of all. */
	struct view_chart_point curve[CURVE_WIDTH];
	int curve_count;
	int64_t curve_from, curve_to;
	char curve_of[64];
};

static const struct report_grouping *grouping_of(const struct view_accelerators *screen)
{
	return &reports[screen->report].named->groupings[screen->by[screen->report]];
}

static int64_t row_of(const struct view_accelerators *screen)
{
	const struct view_grid *grid = &screen->grid;

	return grid->at < grid->count ? grid->order[grid->at] : -1;
}

/* ---- loading --------------------------------------------------------------------------------- */

static void accelerators_init(void *state)
{
	struct view_accelerators *screen = state;

	screen->listed_report = -1;
	screen->found_row = -1;
}

/* Read the bytes allocated on the device of the cursor's row: the least and the greatest of each
 * column's time, the last of the columns before where nothing happened. */
static void read_curve(struct view_accelerators *screen, struct view_context *context,
		       struct err *err)
{
	static const char sql[] =
		"SELECT min(:last, (time_ns - :from) * :width / max(:length, 1)) AS x, "
		"min(total_bytes), max(total_bytes), total_bytes, max(time_ns) "
		"FROM memory_events WHERE device IS :device AND rank = :rank "
		"AND total_bytes IS NOT NULL GROUP BY x ORDER BY x";
	const struct report_cell *device = view_grid_cell(&screen->grid, "device");
	const struct report_cell *rank = view_grid_cell(&screen->grid, "rank");
	const int width = (int)min((int64_t)max(context->body.width, 1), (int64_t)CURVE_WIDTH);
	struct prof_db *db = context->source->db;
	struct prof_query *query;
	double before = NAN;
	int x = 0;

	screen->curve_count = 0;
	if (!device || !rank || !db)
		return;
	screen->curve_from = view_query_number(db, "SELECT min(time_ns) FROM memory_events", err);
	screen->curve_to = view_query_number(db, "SELECT max(time_ns) FROM memory_events", err);
	query = view_query_open(db, sql, err);
	if (!query)
		return;
	prof_query_int(query, ":from", screen->curve_from);
	prof_query_int(query, ":length", sat_sub(screen->curve_to, screen->curve_from));
	prof_query_int(query, ":width", width);
	prof_query_int(query, ":last", width - 1);
	prof_query_int(query, ":rank", rank->integer);
	if (device->type == PROF_TEXT)
		prof_query_text(query, ":device", device->text);
	while (view_query_next(query, err)) {
		const int at =
			(int)max(INT64_C(0), min(prof_column_int(query, 0), (int64_t)width - 1));

		for (; x < at; x++)
			screen->curve[x] = (struct view_chart_point){before, before, before, false};
		before = prof_column_real(query, 3);
		screen->curve[at] = (struct view_chart_point){before, prof_column_real(query, 1),
							      prof_column_real(query, 2), false};
		x = at + 1;
	}
	prof_query_close(query);
	for (; x < width; x++)
		screen->curve[x] = (struct view_chart_point){before, before, before, false};
	screen->curve_count = width;
	snprintf(screen->curve_of, sizeof(screen->curve_of), "%s",
		 device->type == PROF_TEXT ? device->text : "the host");
}

static enum status accelerators_load(void *state, struct view_context *context, bool news,
				     struct err *err)
{
	struct view_accelerators *screen = state;
	const int report = screen->report, by = screen->by[report], height = context->body.height;
	const struct report_grouping *grouping = grouping_of(screen);
	const char *sort = grouping->sort;
	struct err own;
	char first[32];

	err = err_start(err, &own);
	if (news && context->source->db) {
		screen->listed_report = -1;
		screen->any =
			view_query_number(context->source->db, view_accelerators_ops.has, err) == 1;
	}
	if (!err_stuck(err) && screen->any && context->source->db &&
	    (screen->listed_report != report || screen->listed_by != by)) {
		const bool other = screen->listed_report != -1,
			   fresh = other || screen->grid.count == 0;

		screen->listed_report = -1;
		screen->found_row = -1;
		if (other)
			view_grid_fini(&screen->grid);
		if (view_grid_query(&screen->grid, context, reports[report].named->entry.name,
				    grouping->sql, reports[report].keys[by], columns,
				    ARRAY_LEN(columns), MOST_ROWS, err) != ST_OK)
			return err->status;
		screen->listed_report = report;
		screen->listed_by = by;
		snprintf(first, sizeof(first), "%.*s", (int)strcspn(sort, ","),
			 sort + (sort[0] == '-'));
		first[strcspn(first, ",")] = '\0';
		/* The device with most memory, not the host. */
		view_grid_sort_first(&screen->grid,
				     report == MEMORY_REPORT && by == 0 ? "peak_bytes" : first);
		if (fresh)
			screen->grid.at = screen->grid.scroll = 0;
	}
	if (!err_stuck(err) && report == MEMORY_REPORT && screen->any)
		read_curve(screen, context, err);
	screen->curve_height =
		report == MEMORY_REPORT && screen->grid.count > 0 && height >= CURVE_FROM
			? min(height / 2, 16)
			: 0;
	screen->row_height = height >= ROW_FROM && !context->whole ? ROW_ROWS : 0;
	view_grid_layout(
		&screen->grid,
		(struct view_rect){0, 1 + screen->curve_height, context->body.width,
				   max(height - 1 - screen->curve_height - screen->row_height, 0)});
	return err->status;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void draw_curve(const struct view_accelerators *screen, struct view_pane *pane)
{
	const struct view_rect rect = {0, 1, pane->rect.width, screen->curve_height};
	struct view_pane area = view_pane_sub(pane, rect), plot;
	struct report_axis x = {.low = (double)screen->curve_from,
				.high = (double)screen->curve_to,
				.quantity = REPORT_NS};
	struct report_axis y = {.low = 0, .high = 1, .quantity = REPORT_BYTES};
	double low;

	if (screen->curve_count == 0 ||
	    !view_chart_range(screen->curve, screen->curve_count, &low, &y.high))
		return;
	x.high = max(x.high, x.low + 1);
	plot = view_chart_axes(&area, &x, &y, 0);
	view_chart_curve(&plot, VIEW_CURVE, screen->curve, screen->curve_count, y.low, y.high);
	view_text_right(&plot, 0, 0, plot.rect.width, VIEW_DIM, screen->curve_of);
}

static void accelerators_draw(const void *state, const struct view_context *context,
			      struct view_pane *pane)
{
	const struct view_accelerators *screen = state;
	const struct report_named *named = reports[screen->report].named;
	const struct view_rect table = screen->grid.area;
	const struct report_grouping *grouping = grouping_of(screen);
	const bool wide = pane->rect.width >= 84;
	struct view_pane part;
	int x = 1;

	if (!screen->any) {
		view_nothing(pane, "Nothing ran on a GPU or another accelerator.",
			     "Recordings of GPUs are imported: `ipu-view trace.json`.", NULL);
		return;
	}
	for (int i = 0; i < REPORTS; i++) {
		const bool here = i == screen->report;

		if (wide || here)
			x += view_textf(pane, x, 0, here ? VIEW_TITLE : VIEW_DIM,
					here && wide ? "[%s]" : " %s ", reports[i].title);
	}
	if (grouping->by)
		view_textf(pane, x + 1, 0, VIEW_NORMAL, "by %s", grouping->by);
	if (screen->grid.table.row_count == 0) {
		view_text_folded(pane,
				 (struct view_rect){2, 2, pane->rect.width - 3,
						    max(pane->rect.height - 2, 1)},
				 VIEW_DIM, named->none);
		return;
	}
	if (screen->curve_height > 0)
		draw_curve(screen, pane);
	view_grid_draw(&screen->grid, pane, !context->whole);
	if (screen->row_height > 0) {
		part = view_pane_sub(pane,
				     (struct view_rect){0, table.y + table.height, pane->rect.width,
							screen->row_height});
		view_grid_draw_whole(&screen->grid, &part);
	}
}

/* ---- from a row to the timeline -------------------------------------------------------------- */

/* Find a span of the row under the cursor, unless the row names one. */
static void find_span(struct view_accelerators *screen, struct view_context *context)
{
	const struct accelerator_report *report = &reports[screen->report];

	screen->found_row = row_of(screen);
	screen->found = IPS_NULL;
	for (size_t i = 0; i < ARRAY_LEN(report->ways) && report->ways[i].column; i++) {
		const struct report_cell *cell =
			view_grid_cell(&screen->grid, report->ways[i].column);
		struct prof_query *query;
		enum status status;

		if (!cell || cell->type == PROF_NULL || !context->source->db)
			continue;
		status = prof_query_open(&query, context->source->db, report->ways[i].sql, NULL);
		if (cell->type == PROF_TEXT)
			prof_query_text(query, ":text", cell->text);
		else
			prof_query_int(query, ":number", cell->integer);
		if (prof_query_next(query, &status, NULL))
			screen->found = prof_column_int(query, 0);
		prof_query_close(query);
		return;
	}
}

static bool accelerators_place(const void *state, struct view_place *out)
{
	static const char *const times[] = {"start_ns", "time_ns", "peak_time_ns"};
	const struct view_accelerators *screen = state;

	view_place_clear(out);
	if (row_of(screen) < 0)
		return false;
	view_place_text(out->clock, "host");
	view_grid_place(&screen->grid, "rank,step,span_id", "", out);
	for (size_t i = 0; i < ARRAY_LEN(times) && out->time_ns == IPS_NULL; i++)
		out->time_ns = view_grid_int(&screen->grid, times[i]);
	if (out->span_id == IPS_NULL && screen->found_row == row_of(screen))
		out->span_id = screen->found;
	return true;
}

static void accelerators_query(const void *state, const struct view_context *context,
			       struct str *out)
{
	(void)context;
	str_addf(out, "%s;\n", grouping_of(state)->sql);
}

/* ---- requests -------------------------------------------------------------------------------- */

static enum view_answer accelerators_request(void *state, struct view_context *context,
					     enum view_request request)
{
	struct view_accelerators *screen = state;
	int *by = &screen->by[screen->report];
	const int64_t before = screen->grid.at;
	enum view_answer answer;

	if (!screen->any && (request == VIEW_VIEW_REQUEST || request == VIEW_VIEW_BACK_REQUEST ||
			     request == VIEW_BREAKDOWN_REQUEST || request == VIEW_ENTER_REQUEST)) {
		view_message(context, "no kernels, ranges or allocations recorded", NULL);
		return VIEW_DRAW;
	}
	switch (request) {
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		screen->report =
			(screen->report + (request == VIEW_VIEW_REQUEST ? 1 : REPORTS - 1)) %
			REPORTS;
		view_message(context, reports[screen->report].named->entry.usage, NULL);
		return VIEW_LOAD;
	case VIEW_BREAKDOWN_REQUEST:
		*by = (*by + 1) % REPORT_GROUPINGS;
		if (!reports[screen->report].named->groupings[*by].sql)
			*by = 0;
		view_message(context, grouping_of(screen)->by ? "by " : "one row each",
			     grouping_of(screen)->by);
		return VIEW_LOAD;
	case VIEW_ENTER_REQUEST:
		find_span(screen, context);
		context->leads = VIEW_TIMELINE;
		return VIEW_LEAD;
	default:
		answer = view_grid_request(&screen->grid, request);
		/* The curve is of the cursor's device. */
		return answer == VIEW_DRAW && screen->report == MEMORY_REPORT &&
				       screen->grid.at != before
			       ? VIEW_LOAD
			       : answer;
	}
}

static enum view_answer accelerators_click(void *state, struct view_context *context, int x, int y)
{
	struct view_accelerators *screen = state;

	(void)context;
	return view_grid_click(&screen->grid, x, y) == VIEW_UNHANDLED ? VIEW_UNHANDLED : VIEW_LOAD;
}

static const char *accelerators_word(const void *state, enum view_request request)
{
	const struct view_accelerators *screen = state;

	if (!screen->any)
		return "";
	switch (request) {
	case VIEW_VIEW_REQUEST:
		return "report";
	case VIEW_BREAKDOWN_REQUEST:
		return reports[screen->report].named->groupings[1].sql ? "rows by" : "";
	case VIEW_ENTER_REQUEST:
		return screen->grid.count > 0 ? "timeline" : "";
	default:
		return NULL;
	}
}

static void accelerators_status(const void *state, const struct view_context *context, char *out,
				size_t size)
{
	const struct view_accelerators *screen = state;
	char rows[160];

	(void)context;
	if (!screen->any) {
		snprintf(out, size, "no kernels, ranges or allocations recorded");
		return;
	}
	view_grid_status(&screen->grid, rows, sizeof(rows));
	snprintf(out, size, "%s: %s", reports[screen->report].title, rows);
}

static int accelerators_height(const void *state, const struct view_context *context)
{
	const struct view_accelerators *screen = state;

	(void)context;
	return screen->any ? (int)min(screen->grid.count, (int64_t)MOST_ROWS) + 2
			   : VIEW_NOTHING_ROWS;
}

const struct view_screen_ops view_accelerators_ops = {
	.name = "accelerators",
	.title = "Accelerators",
	.brief = "Acc",
	.key = 'A',
	.where = VIEW_ON_ACCELERATORS,
	.has = "SELECT EXISTS (SELECT 1 FROM kernel_rows) OR EXISTS (SELECT 1 FROM copy_rows) OR "
	       "EXISTS (SELECT 1 FROM range_rows) OR EXISTS (SELECT 1 FROM memory_event_rows)",
	.least_ns = 5 * UINT64_C(1000000000),
	.size = sizeof(struct view_accelerators),
	.init = accelerators_init,
	.fini = view_state_grid_fini,
	.grid = view_state_grid,
	.load = accelerators_load,
	.draw = accelerators_draw,
	.request = accelerators_request,
	.word = accelerators_word,
	.status = accelerators_status,
	.height = accelerators_height,
	.place = accelerators_place,
	.query = accelerators_query,
	.click = accelerators_click,
};
