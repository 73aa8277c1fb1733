/*
 * The screen Metrics: one line for each metric, and the curves of the one under the cursor over
 * steps, epochs or time.
 *
 * Threading: that of the session. Ownership: view_metrics_internal.h.
 */
#include "viewer/metrics/view_metrics_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_table.h"

/* ---- other screens --------------------------------------------------------------------------- */

static bool metrics_place(const void *state, struct view_place *out)
{
	const struct view_metrics *screen = state;
	const struct view_metric_point *point;
	double at;

	view_place_clear(out);
	if (screen->grid.count == 0)
		return false;
	view_grid_place(&screen->grid, "metric,mode,rank", "", out);
	point = view__metrics_point(screen, VIEW_METRICS_SOURCE, &at);
	if (!point)
		return true;
	out->epoch = point->epoch;
	out->execution = point->execution;
	out->step = point->step;
	out->time_ns = point->time_ns;
	view_place_text(out->clock, "host");
	return true;
}

static bool metrics_offers(const struct view_place *place, char *out, size_t size)
{
	if (place->metric[0] && place->step != IPS_NULL)
		snprintf(out, size, "%s at step %lld", place->metric, (long long)place->step);
	else if (place->metric[0] && place->epoch != IPS_NULL)
		snprintf(out, size, "the curve of %s, epoch %lld", place->metric,
			 (long long)place->epoch);
	else if (place->metric[0])
		snprintf(out, size, "the curve of %s", place->metric);
	else if (place->step != IPS_NULL)
		snprintf(out, size, "metrics at step %lld", (long long)place->step);
	else
		return false;
	return true;
}

/* Score how well row @row matches @place; 0: not at all. */
static int metrics_fits(const struct view_metrics *screen, const struct view_place *place,
			int64_t row)
{
	const struct report_cell *cells =
		&screen->grid.table.cells[row * screen->grid.table.column_count];
	const char *mode = cells[VIEW_METRICS_MODE].text, *name = cells[VIEW_METRICS_NAME].text;
	const bool step = strcmp(cells[VIEW_METRICS_PER].text, "step") == 0;
	int fits = 1;

	if (place->metric[0] && (!name || strcmp(place->metric, name) != 0))
		return 0;
	if (place->mode[0] && (!mode || strcmp(place->mode, mode) != 0))
		return 0;
	if (!place->metric[0] && !step)
		return 0;
	fits += step == (place->step != IPS_NULL);
	fits += place->rank == cells[VIEW_METRICS_RANK].integer;
	return fits;
}

static enum status metrics_go(void *state, struct view_context *context,
			      const struct view_place *place, struct err *err)
{
	struct view_metrics *screen = state;
	int64_t best = -1;
	int fit = 0;
	struct err own;

	err = err_start(err, &own);
	view_grid_filter(&screen->grid, "");
	for (int64_t i = 0; i < screen->grid.count; i++) {
		const int fits = metrics_fits(screen, place, screen->grid.order[i]);

		if (fits > fit) {
			fit = fits;
			best = i;
		}
	}
	if (best < 0)
		return err_set(err, ST_NOTFOUND, "no metric of that %s is recorded",
			       place->metric[0] ? "name" : "mode");
	screen->grid.at = best;
	screen->zoomed = false;
	screen->cursor = NAN;
	if (place->step != IPS_NULL)
		screen->wanted = VIEW_METRICS_STEP;
	view__metrics_curves(screen, context, err);
	if (err_stuck(err))
		return err->status;
	if (screen->x == VIEW_METRICS_STEP && place->step != IPS_NULL)
		screen->cursor = (double)place->step;
	else if (screen->x == VIEW_METRICS_EPOCH && place->epoch != IPS_NULL)
		screen->cursor = (double)place->epoch;
	return ST_OK;
}

static void metrics_add_quoted(struct str *out, const char *column, const char *text)
{
	str_addf(out, text ? " AND %s = " : " AND %s IS NULL", column);
	if (text)
		str_add_sql(out, text);
}

static void metrics_query(const void *state, const struct view_context *context, struct str *out)
{
	const struct view_metrics *screen = state;
	const struct report_cell *rank = view_grid_cell(&screen->grid, "rank");
	const char *per = view_grid_text(&screen->grid, "per");

	(void)context;
	str_add(out, "SELECT rank, mode, name, per_step, count, last_value, least, greatest\n"
		     "FROM metric_sums ORDER BY mode, name, per_step, rank;\n");
	if (screen->grid.count == 0 || !rank)
		return;
	str_addf(out,
		 "SELECT epoch, execution, step, time_ns, value FROM metrics\n"
		 "WHERE rank = %lld AND step IS %sNULL",
		 (long long)rank->integer, per && strcmp(per, "step") == 0 ? "NOT " : "");
	metrics_add_quoted(out, "mode", view_grid_text(&screen->grid, "mode"));
	metrics_add_quoted(out, "name", view_grid_text(&screen->grid, "metric"));
	str_add(out, ";\n");
}

/* ---- the screen ------------------------------------------------------------------------------ */

#define KEYS                      "mode,metric,per,rank"
#define METRICS_SCREEN_WHOLE_ROWS 20 /* of the chart in a file */

static const struct report_column metrics_columns[] = {
	{"mode", REPORT_TEXT},     {"metric", REPORT_TEXT}, {"per", REPORT_TEXT},
	{"rank", REPORT_NUMBER},   {"last", REPORT_REAL},   {"least", REPORT_REAL},
	{"greatest", REPORT_REAL}, {"count", REPORT_COUNT}};

static const struct view_grid_column metrics_shown[] = {
	{.name = "mode", .importance = 8, .least = 5},
	{.name = "metric", .importance = 9},
	{.name = "per", .importance = 6},
	{.name = "rank", .importance = 2},
	{.name = "last", .importance = 7},
	{.name = "least", .importance = 5},
	{.name = "greatest", .importance = 4},
	{.name = "count", .importance = 3},
};

static void metrics_init(void *state)
{
	struct view_metrics *screen = state;

	screen->cursor = NAN;
	screen->smoothing = 1; /* single steps of a loss hide where it goes */
}

static void metrics_fini(void *state)
{
	struct view_metrics *screen = state;

	for (int side = 0; side < VIEW_METRICS_SIDES; side++) {
		view_metrics_fini(&screen->lists[side]);
		view_metrics_fini(&screen->detail[side]);
	}
	view_grid_fini(&screen->grid);
	arena_fini(&screen->arena);
	arena_fini(&screen->spark_arena);
}

/* ---- loading --------------------------------------------------------------------------------- */

static void metrics_read_side(struct view_metrics *screen, struct view_context *context, int side,
			      struct report_table *out, struct err *err)
{
	const struct view_source *source =
		side == VIEW_METRICS_SOURCE ? context->source : context->target;
	struct view_metrics_list *list = &screen->lists[side];

	view_metrics_list(list, source->db, err);
	view_metrics_read(list, source->db, context, 1, list->rows, err);
	if (!err_stuck(err))
		view_table_new(out, "metrics", metrics_columns, ARRAY_LEN(metrics_columns),
			       list->count, err);
	for (int i = 0; i < list->count && !err_stuck(err); i++) {
		const struct view_metric *item = &list->items[i];
		/* REAL with NaN: the metric was NaN. NULL would mean unknown. */
		const struct report_cell last = {.type = PROF_REAL, .real = item->last};
		const struct report_cell cells[] = {
			view_text_cell(item->mode),
			view_text_cell(item->name),
			view_text_cell(item->per_step ? "step" : "epoch"),
			view_int(item->rank),
			last,
			view_real(item->least),
			view_real(item->greatest),
			view_int(item->count),
		};

		view_table_row(out, i, cells, err);
	}
	if (err_stuck(err))
		report_table_free(out);
}

static void metrics_grid(struct view_metrics *screen, struct view_context *context, struct err *err)
{
	struct report_table source = {0}, target = {0}, both = {0};

	metrics_read_side(screen, context, VIEW_METRICS_SOURCE, &source, err);
	if (!err_stuck(err) && context->target) {
		metrics_read_side(screen, context, VIEW_METRICS_TARGET, &target, err);
		if (!err_stuck(err))
			view_grid_compare(&both, context, &source, &target, KEYS, err);
		report_table_free(&source);
		report_table_free(&target);
	} else {
		both = source;
	}
	if (err_stuck(err))
		return;
	screen->grid.differ = context->target && context->differ;
	screen->grid.still = true;
	view_grid_set(&screen->grid, context, &both, metrics_shown, ARRAY_LEN(metrics_shown), KEYS,
		      err);
}

static void metrics_spark(const struct view_metric *metric, struct view_metrics_spark *out)
{
	const size_t points = metric ? metric->point_count : 0;

	out->count = points < VIEW_METRICS_SPARK ? (int)points : VIEW_METRICS_SPARK;
	for (int i = 0; i < out->count; i++) {
		const size_t from = points * (size_t)i / (size_t)out->count;
		const size_t to = points * (size_t)(i + 1) / (size_t)out->count;
		struct view_chart_point *point = &out->points[i];
		double sum = 0;
		int numbers = 0;

		*point = (struct view_chart_point){NAN, NAN, NAN, false};
		for (size_t p = from; p < to; p++) {
			const double value = metric->points[p].value;

			point->bad = point->bad || !isfinite(value);
			if (!isfinite(value))
				continue;
			sum += value;
			numbers++;
			point->least = fmin(point->least, value);
			point->greatest = fmax(point->greatest, value);
		}
		if (numbers > 0)
			point->value = sum / numbers;
	}
}

static void metrics_sparks(struct view_metrics *screen, struct err *err)
{
	const size_t rows = (size_t)screen->grid.table.row_count;

	arena_reset(&screen->spark_arena);
	for (int side = 0; side < VIEW_METRICS_SIDES; side++) {
		screen->sparks[side] =
			view_alloc(&screen->spark_arena, rows, sizeof(*screen->sparks[side]), err);
		for (size_t row = 0; row < rows && !err_stuck(err); row++)
			metrics_spark(view__metrics_at(screen, side, (int64_t)row),
				      &screen->sparks[side][row]);
	}
}

static enum status metrics_load(void *state, struct view_context *context, bool news,
				struct err *err)
{
	struct view_metrics *screen = state;
	const struct view_rect body = {0, 0, context->body.width, context->body.height};
	struct err own;

	err = err_start(err, &own);
	if (news || !screen->loaded) {
		metrics_grid(screen, context, err);
		metrics_sparks(screen, err);
		screen->loaded = !err_stuck(err);
	}
	if (err_stuck(err))
		return err->status;
	screen->areas = view__metrics_areas(body, screen->grid.count, screen->large);
	view_grid_layout(&screen->grid, screen->areas.list);
	view__metrics_fill(&screen->areas, view_grid_used(&screen->grid));
	view__metrics_curves(screen, context, err);
	return err->status;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Another metric has another x axis: show its whole curve and its newest point. */
static enum view_answer metrics_select(struct view_metrics *screen, int64_t before)
{
	if (screen->grid.at != before && screen->x != VIEW_METRICS_TIME) {
		screen->zoomed = false;
		screen->cursor = NAN;
	}
	return VIEW_LOAD;
}

static enum view_answer metrics_list_request(struct view_metrics *screen, enum view_request request)
{
	const int64_t before = screen->grid.at;
	const enum view_answer answer = view_grid_request(&screen->grid, request);

	return answer == VIEW_UNHANDLED ? answer : metrics_select(screen, before);
}

static enum view_answer metrics_request(void *state, struct view_context *context,
					enum view_request request)
{
	struct view_metrics *screen = state;
	const int column = (int)view__metrics_column(screen);
	const int64_t at = screen->grid.at;

	switch (request) {
	case VIEW_LEFT_REQUEST:
	case VIEW_RIGHT_REQUEST:
		view__metrics_move(screen, request == VIEW_LEFT_REQUEST ? -column : column);
		return VIEW_DRAW;
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		view__metrics_move(screen, request == VIEW_END_REQUEST ? INT32_MAX : -INT32_MAX);
		return VIEW_DRAW;
	case VIEW_ZOOM_IN_REQUEST:
	case VIEW_ZOOM_OUT_REQUEST:
	case VIEW_ZOOM_ALL_REQUEST:
	case VIEW_PAGE_LEFT_REQUEST:
	case VIEW_PAGE_RIGHT_REQUEST:
		return view__metrics_zoom(screen, request);
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST: {
		int x = (int)screen->x;

		do {
			x = view_next_choice(x, VIEW_METRICS_XS, request);
		} while (!screen->has_x[x]);
		screen->wanted = (enum view_metrics_x)x;
		screen->zoomed = false;
		screen->cursor = NAN;
		return VIEW_LOAD;
	}
	case VIEW_STATISTIC_REQUEST:
	case VIEW_STATISTIC_BACK_REQUEST:
		if (screen->grid.count > 0)
			screen->grid.at =
				view_next_choice((int)at, (int)screen->grid.count, request);
		return metrics_select(screen, at);
	case VIEW_BREAKDOWN_REQUEST:
		screen->smoothing = (screen->smoothing + 1) % 3;
		screen->chosen = true;
		view_messagef(context,
			      screen->smoothing ? "the mean of the last %d points" : "every point",
			      view__metrics_mean(screen));
		return VIEW_LOAD;
	case VIEW_UNIT_REQUEST:
		view_message(context,
			     report_scale_turn(&screen->scale, &screen->axis_y, &screen->spread),
			     NULL);
		return VIEW_LOAD;
	case VIEW_ENTER_REQUEST:
		screen->large = !screen->large;
		return VIEW_LOAD;
	case VIEW_BACK_REQUEST:
		if (!screen->large)
			return metrics_list_request(screen, request);
		screen->large = false;
		return VIEW_LOAD;
	default:
		return metrics_list_request(screen, request);
	}
}

static bool metrics_search(void *state, struct view_context *context, const char *text,
			   bool forward)
{
	struct view_metrics *screen = state;
	const int64_t before = screen->grid.at;
	const bool found = view_grid_search(&screen->grid, context, text, forward);

	metrics_select(screen, before);
	return found;
}

static int metrics_height(const void *state, const struct view_context *context)
{
	const struct view_metrics *screen = state;
	const int list = (int)screen->grid.count + 1;

	if (screen->grid.count == 0)
		return VIEW_NOTHING_ROWS;
	if (context->body.width >= 140)
		return max(list, METRICS_SCREEN_WHOLE_ROWS);
	/* The list gets a third. */
	return 3 * list > list + 1 + METRICS_SCREEN_WHOLE_ROWS
		       ? 3 * list
		       : list + 1 + METRICS_SCREEN_WHOLE_ROWS;
}

static enum view_answer metrics_click(void *state, struct view_context *context, int x, int y)
{
	struct view_metrics *screen = state;
	const struct view_rect *chart = &screen->areas.chart;
	const int64_t before = screen->grid.at;
	const int scale = view_chart_scale_width(&screen->axis_y, chart->height) + 2;

	(void)context;
	if (view_grid_click(&screen->grid, x, y) != VIEW_UNHANDLED)
		return metrics_select(screen, before);
	if (y < chart->y || x < chart->x + scale || chart->width <= scale + 1)
		return VIEW_UNHANDLED;
	screen->cursor = screen->from + (screen->to - screen->from) * (x - chart->x - scale) /
						(chart->width - scale - 1);
	return VIEW_DRAW;
}

static const char *metrics_word(const void *state, enum view_request request)
{
	const struct view_metrics *screen = state;
	int ways = 0;

	if (screen->grid.table.row_count == 0)
		return "";
	for (int x = 0; x < VIEW_METRICS_XS; x++)
		ways += screen->has_x[x];
	switch (request) {
	case VIEW_ENTER_REQUEST:
		return screen->large ? "list" : "curve";
	case VIEW_VIEW_REQUEST:
		return ways > 1 ? NULL : "";
	case VIEW_BREAKDOWN_REQUEST:
		return screen->curves[0].count > 1 || screen->curves[1].count > 1 ? "smooth" : "";
	case VIEW_STATISTIC_REQUEST:
		return screen->grid.count > 1 ? "metric" : "";
	case VIEW_ZOOM_IN_REQUEST:
		return view__metrics_closest(screen) < screen->to - screen->from ? NULL : "";
	case VIEW_ZOOM_ALL_REQUEST:
		return screen->zoomed ? NULL : "";
	case VIEW_SORT_NEXT_REQUEST:
	case VIEW_REVERSE_REQUEST:
		return screen->large ? "" : NULL;
	default:
		return NULL;
	}
}

const struct view_screen_ops view_metrics_ops = {
	.name = "metrics",
	.title = "Metrics",
	.brief = "Met",
	.key = '9',
	.where = VIEW_ON_METRICS,
	.least_ns = 1000 * UINT64_C(1000000),
	.size = sizeof(struct view_metrics),
	.init = metrics_init,
	.fini = metrics_fini,
	.grid = view_state_grid,
	.load = metrics_load,
	.draw = view__metrics_draw,
	.request = metrics_request,
	.search = metrics_search,
	.word = metrics_word,
	.status = view__metrics_status,
	.height = metrics_height,
	.place = metrics_place,
	.offers = metrics_offers,
	.go = metrics_go,
	.query = metrics_query,
	.click = metrics_click,
};
