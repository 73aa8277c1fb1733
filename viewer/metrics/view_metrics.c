/*
 * The screen Metrics: loss, accuracy and what else was measured, a line each, and the curves of the
 * one under the cursor over steps, epochs or time.
 *
 * Threading: as view_screen.h says. Ownership: the state owns its lists, its grid and its arenas.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_table.h"
#include "viewer/metrics/view_metrics_internal.h"

#define KEYS       "mode,metric,per,rank"
#define WHOLE_ROWS 20 /* of the chart in a file */

static const struct report_column view_metrics_columns[] = {
	{"mode", REPORT_TEXT},     {"metric", REPORT_TEXT}, {"per", REPORT_TEXT},
	{"rank", REPORT_NUMBER},   {"last", REPORT_REAL},   {"least", REPORT_REAL},
	{"greatest", REPORT_REAL}, {"count", REPORT_COUNT}};

static const struct view_grid_column view_metrics_shown[] = {
	{.name = "mode", .importance = 8, .least = 5},
	{.name = "metric", .importance = 9},
	{.name = "per", .importance = 6},
	{.name = "rank", .importance = 2},
	{.name = "last", .importance = 7},
	{.name = "least", .importance = 5},
	{.name = "greatest", .importance = 4},
	{.name = "count", .importance = 3},
};

static enum status view_metrics_open(void **state, struct view_context *context, struct err *err)
{
	struct view_metrics *screen = mem_calloc(1, sizeof(*screen));

	(void)context;
	*state = screen;
	if (!screen)
		return err_nomem(err);
	screen->cursor = NAN;
	(void)arena_init(&screen->arena, 0);
	(void)arena_init(&screen->spark_arena, 0);
	return ST_OK;
}

static void view_metrics_close(void *state)
{
	struct view_metrics *screen = state;

	if (!screen)
		return;
	for (int side = 0; side < VIEW_METRICS_SIDES; side++) {
		view_metrics_fini(&screen->lists[side]);
		view_metrics_fini(&screen->detail[side]);
	}
	view_grid_fini(&screen->grid);
	arena_fini(&screen->arena);
	arena_fini(&screen->spark_arena);
	mem_free(screen);
}

/* ---- loading --------------------------------------------------------------------------------- */

static enum status view_metrics_rows(struct report_table *out, const struct view_metrics_list *list,
				     struct err *err)
{
	enum status status = view_table_new(out, "metrics", view_metrics_columns,
					    ARRAY_LEN(view_metrics_columns), list->count, err);

	for (int i = 0; i < list->count && status == ST_OK; i++) {
		const struct view_metric *item = &list->items[i];

		status = view_table_text(out, i, VIEW_METRICS_MODE, item->mode, err);
		if (status == ST_OK)
			status = view_table_text(out, i, VIEW_METRICS_NAME, item->name, err);
		if (status == ST_OK)
			status = view_table_text(out, i, VIEW_METRICS_PER,
						 item->per_step ? "step" : "epoch", err);
		view_table_int(out, i, VIEW_METRICS_RANK, item->rank);
		/* NaN was measured, where an unknown number would be NULL. */
		out->cells[i * out->column_count + 4] =
			(struct report_cell){.type = PROF_REAL, .real = item->last};
		view_table_real(out, i, 5, item->least);
		view_table_real(out, i, 6, item->greatest);
		view_table_int(out, i, 7, item->count);
		if (status != ST_OK)
			report_table_free(out);
	}
	return status;
}

static enum status view_metrics_read_side(struct view_metrics *screen, struct view_context *context,
					  int side, struct report_table *out, struct err *err)
{
	const struct view_source *source =
		side == VIEW_METRICS_SOURCE ? context->source : context->target;
	struct view_metrics_list *list = &screen->lists[side];
	enum status status = view_metrics_list(list, source->db, err);

	if (status == ST_OK)
		status = view_metrics_read(list, source->db, context, 1, list->rows, err);
	return status == ST_OK ? view_metrics_rows(out, list, err) : status;
}

static enum status view_metrics_grid(struct view_metrics *screen, struct view_context *context,
				     struct err *err)
{
	struct report_table source = {0}, target = {0}, both = {0};
	enum status status =
		view_metrics_read_side(screen, context, VIEW_METRICS_SOURCE, &source, err);

	if (status == ST_OK && context->target) {
		status = view_metrics_read_side(screen, context, VIEW_METRICS_TARGET, &target, err);
		if (status == ST_OK)
			status = view_grid_compare(&both, context, &source, &target, KEYS, err);
		report_table_free(&source);
		report_table_free(&target);
	} else {
		both = source;
	}
	if (status != ST_OK)
		return status;
	screen->grid.differ = context->target && context->differ;
	screen->grid.still = true;
	return view_grid_set(&screen->grid, context, &both, view_metrics_shown,
			     ARRAY_LEN(view_metrics_shown), KEYS, err);
}

static void view_metrics_spark(const struct view_metric *metric, struct view_metrics_spark *out)
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

static enum status view_metrics_sparks(struct view_metrics *screen, struct err *err)
{
	const size_t rows = (size_t)screen->grid.table.row_count;

	arena_reset(&screen->spark_arena);
	for (int side = 0; side < VIEW_METRICS_SIDES; side++) {
		screen->sparks[side] =
			arena_alloc(&screen->spark_arena, rows + 1, sizeof(*screen->sparks[side]));
		if (!screen->sparks[side])
			return err_nomem(err);
		for (size_t row = 0; row < rows; row++)
			view_metrics_spark(view__metrics_at(screen, side, (int64_t)row),
					   &screen->sparks[side][row]);
	}
	return ST_OK;
}

static void view_metrics_layout(struct view_metrics *screen, const struct view_context *context)
{
	const struct view_rect body = {0, 0, context->body.width, context->body.height};

	screen->areas = view__metrics_areas(body, screen->grid.count, screen->large);
	view_grid_layout(&screen->grid, screen->areas.list.width, screen->areas.list.height);
	view__metrics_fill(&screen->areas, view_grid_used(&screen->grid));
}

static enum status view_metrics_load(void *state, struct view_context *context, bool news,
				     struct err *err)
{
	struct view_metrics *screen = state;
	enum status status = ST_OK;

	if (news || !screen->loaded) {
		screen->loaded = false;
		status = view_metrics_grid(screen, context, err);
		if (status == ST_OK)
			status = view_metrics_sparks(screen, err);
		if (status != ST_OK)
			return status;
		screen->loaded = true;
	}
	view_metrics_layout(screen, context);
	return view__metrics_curves(screen, context, err);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Another metric has another x: its whole curve, and the newest. */
static enum view_answer view_metrics_select(struct view_metrics *screen, int64_t before)
{
	if (screen->grid.at != before && screen->x != VIEW_METRICS_TIME) {
		screen->zoomed = false;
		screen->cursor = NAN;
	}
	return VIEW_LOAD;
}

static enum view_answer view_metrics_step(struct view_metrics *screen, int by)
{
	const int64_t before = screen->grid.at;

	if (screen->grid.count > 0)
		screen->grid.at = (before + by + screen->grid.count) % screen->grid.count;
	return view_metrics_select(screen, before);
}

static enum view_answer view_metrics_next_x(struct view_metrics *screen, int by)
{
	int x = (int)screen->x;

	do {
		x = (x + by + VIEW_METRICS_XS) % VIEW_METRICS_XS;
	} while (!screen->has_x[x]);
	screen->wanted = (enum view_metrics_x)x;
	screen->zoomed = false;
	screen->cursor = NAN;
	return VIEW_LOAD;
}

static enum view_answer view_metrics_end(struct view_metrics *screen, bool last)
{
	view__metrics_move(screen, last ? INT32_MAX : -INT32_MAX);
	return VIEW_DRAW;
}

static enum view_answer view_metrics_back(struct view_metrics *screen)
{
	if (!screen->large)
		return VIEW_UNHANDLED;
	screen->large = false;
	return VIEW_LOAD;
}

static enum view_answer view_metrics_list_request(struct view_metrics *screen,
						  enum view_request request)
{
	const int64_t before = screen->grid.at;
	const enum view_answer answer =
		view_grid_request(&screen->grid, screen->areas.list.height, request);

	return answer == VIEW_UNHANDLED ? answer : view_metrics_select(screen, before);
}

static enum view_answer view_metrics_request(void *state, struct view_context *context,
					     enum view_request request)
{
	struct view_metrics *screen = state;
	const int column = (int)view__metrics_column(screen);

	switch (request) {
	case VIEW_LEFT_REQUEST:
	case VIEW_RIGHT_REQUEST:
		view__metrics_move(screen, request == VIEW_LEFT_REQUEST ? -column : column);
		return VIEW_DRAW;
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		return view_metrics_end(screen, request == VIEW_END_REQUEST);
	case VIEW_ZOOM_IN_REQUEST:
	case VIEW_ZOOM_OUT_REQUEST:
	case VIEW_ZOOM_ALL_REQUEST:
	case VIEW_PAGE_LEFT_REQUEST:
	case VIEW_PAGE_RIGHT_REQUEST:
		return view__metrics_zoom(screen, request);
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		return view_metrics_next_x(screen, request == VIEW_VIEW_REQUEST ? 1 : -1);
	case VIEW_STATISTIC_REQUEST:
	case VIEW_STATISTIC_BACK_REQUEST:
		return view_metrics_step(screen, request == VIEW_STATISTIC_REQUEST ? 1 : -1);
	case VIEW_BREAKDOWN_REQUEST:
		screen->smoothing = (screen->smoothing + 1) % 3;
		snprintf(context->message, sizeof(context->message),
			 screen->smoothing ? "the mean of the last %d points" : "every point",
			 view__metrics_mean(screen));
		return VIEW_LOAD;
	case VIEW_UNIT_REQUEST:
		snprintf(context->message, sizeof(context->message), "%s",
			 view_scale_turn(&screen->scale, &screen->axis_y, &screen->spread));
		return VIEW_LOAD;
	case VIEW_ENTER_REQUEST:
		screen->large = !screen->large;
		return VIEW_LOAD;
	case VIEW_BACK_REQUEST:
		if (view_metrics_back(screen) == VIEW_LOAD)
			return VIEW_LOAD;
		return view_metrics_list_request(screen, request);
	default:
		return view_metrics_list_request(screen, request);
	}
}

static bool view_metrics_search(void *state, struct view_context *context, const char *text,
				bool forward)
{
	struct view_metrics *screen = state;
	const int64_t before = screen->grid.at;
	const bool found =
		view_grid_search(&screen->grid, screen->areas.list.height, text, forward);

	(void)context;
	view_metrics_select(screen, before);
	return found;
}

static void view_metrics_filter(void *state, const char *text)
{
	view_grid_filter(&((struct view_metrics *)state)->grid, text);
}

static int view_metrics_height(const void *state, const struct view_context *context)
{
	const struct view_metrics *screen = state;
	const int list = (int)screen->grid.count + 1;

	if (screen->grid.count == 0)
		return VIEW_NOTHING_ROWS;
	if (context->body.width >= 140)
		return max(list, WHOLE_ROWS);
	/* The list gets a third. */
	return 3 * list > list + 1 + WHOLE_ROWS ? 3 * list : list + 1 + WHOLE_ROWS;
}

static enum status view_metrics_table(void *state, struct view_context *context,
				      struct report_table *out, struct err *err)
{
	(void)context;
	return view_grid_table(&((struct view_metrics *)state)->grid, out, err);
}

static enum view_answer view_metrics_click(void *state, struct view_context *context, int x, int y)
{
	struct view_metrics *screen = state;
	const struct view_rect *list = &screen->areas.list, *chart = &screen->areas.chart;
	const int64_t before = screen->grid.at;
	const int scale = view_chart_scale_width(&screen->axis_y, chart->height) + 2;

	(void)context;
	if (y < list->y + list->height && x < list->x + list->width && list->height > 0) {
		(void)view_grid_click(&screen->grid, list->height, x - list->x, y - list->y);
		return view_metrics_select(screen, before);
	}
	if (y < chart->y || x < chart->x + scale || chart->width <= scale + 1)
		return VIEW_UNHANDLED;
	screen->cursor = screen->from + (screen->to - screen->from) * (x - chart->x - scale) /
						(chart->width - scale - 1);
	return VIEW_DRAW;
}

const struct view_screen_ops view_metrics_ops = {
	.name = "metrics",
	.title = "Metrics",
	.brief = "Met",
	.key = '9',
	.where = VIEW_ON_METRICS,
	.least_ns = 1000 * UINT64_C(1000000),
	.open = view_metrics_open,
	.close = view_metrics_close,
	.load = view_metrics_load,
	.draw = view__metrics_draw,
	.request = view_metrics_request,
	.search = view_metrics_search,
	.filter = view_metrics_filter,
	.status = view__metrics_status,
	.height = view_metrics_height,
	.table = view_metrics_table,
	.place = view__metrics_place,
	.offers = view__metrics_offers,
	.go = view__metrics_go,
	.query = view__metrics_query,
	.click = view_metrics_click,
};
