/*
 * The curves of one metric: the points in the window, the x axis, the cursor, and drawing.
 *
 * Threading: that of the session; drawing on the terminal's thread. Ownership: the curve's arena.
 */
#include "viewer/metrics/view_metrics_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "common/str.h"
#include "viewer/metrics/view_metrics_read.h"
#include "viewer/view_layout.h"

#define ZOOM_LEAST  1e-9 /* of all of x */
#define SMOOTH_FROM 50   /* points of a curve that opens as means of ten */

static const int metrics_means[] = {1, 10, 100};

int view__metrics_mean(const struct view_metrics *screen)
{
	return metrics_means[(size_t)screen->smoothing % ARRAY_LEN(metrics_means)];
}

/* ---- which metric ---------------------------------------------------------------------------- */

static const struct report_cell *metrics_key(const struct view_metrics *screen, int64_t row,
					     int column)
{
	return &screen->grid.table.cells[row * screen->grid.table.column_count + column];
}

struct view_metric *view__metrics_at(const struct view_metrics *screen, int side, int64_t row)
{
	const struct report_cell *rank = metrics_key(screen, row, VIEW_METRICS_RANK);
	const struct report_cell *per = metrics_key(screen, row, VIEW_METRICS_PER);

	return view_metrics_find(&screen->lists[side], rank->integer,
				 metrics_key(screen, row, VIEW_METRICS_MODE)->text,
				 metrics_key(screen, row, VIEW_METRICS_NAME)->text,
				 per->text && strcmp(per->text, "step") == 0);
}

/* ---- over what ------------------------------------------------------------------------------- */

static double metrics_x_of(const struct view_metric_point *point, enum view_metrics_x x,
			   int64_t index)
{
	const int64_t numbers[VIEW_METRICS_XS] = {[VIEW_METRICS_STEP] = point->step,
						  [VIEW_METRICS_EPOCH] = point->epoch,
						  [VIEW_METRICS_TIME] = point->time_ns,
						  [VIEW_METRICS_ORDER] = index + 1};

	return numbers[x] == IPS_NULL ? (double)NAN : (double)numbers[x];
}

/* Does every point have this x, in ascending order? Epochs must increase strictly: a curve of steps
 * over epochs would consist of vertical lines. */
static bool metrics_has_x(const struct view_metric *metric, enum view_metrics_x x)
{
	double before = -INFINITY;

	for (size_t i = 0; i < metric->point_count; i++) {
		const double at = metrics_x_of(&metric->points[i], x, (int64_t)i);

		if (isnan(at) || at < before || (x == VIEW_METRICS_EPOCH && at == before))
			return false;
		before = at;
	}
	return true;
}

/* ---- the window ------------------------------------------------------------------------------ */

static void metrics_finish_window(struct view_metrics *screen, bool follow)
{
	const double width = screen->to - screen->from;

	if (screen->zoomed && follow) {
		screen->to = screen->greatest_x;
		screen->from = screen->to - width;
	}
	if (screen->zoomed && width >= screen->greatest_x - screen->least_x)
		screen->zoomed = false;
	if (!screen->zoomed) {
		screen->from = screen->least_x;
		screen->to = screen->greatest_x;
	} else if (screen->from < screen->least_x) {
		screen->from = screen->least_x;
		screen->to = screen->from + width;
	} else if (screen->to > screen->greatest_x) {
		screen->to = screen->greatest_x;
		screen->from = screen->to - width;
	}
}

/* Read the window of a sampled metric in full, from the last known row before it to the first after
 * it. */
static void metrics_read_detail(struct view_metrics *screen, struct view_context *context, int side,
				struct view_metric **metric, struct err *err)
{
	const struct view_source *source =
		side == VIEW_METRICS_SOURCE ? context->source : context->target;
	struct view_metrics_list *detail = &screen->detail[side];
	const struct view_metric whole = **metric;
	int64_t from = 1, to = screen->lists[side].rows;

	for (size_t i = 0; i < whole.point_count; i++) {
		const double x = metrics_x_of(&whole.points[i], screen->x, (int64_t)i);

		if (x <= screen->from)
			from = whole.points[i].row;
		if (x >= screen->to) {
			to = whole.points[i].row;
			break;
		}
	}
	view_metrics_fini(detail);
	detail->items = view_alloc(&detail->arena, 1, sizeof(*detail->items), err);
	if (!detail->items)
		return;
	detail->items[0] = whole;
	detail->items[0].points = NULL;
	detail->items[0].point_count = detail->items[0].capacity = 0;
	detail->count = 1;
	view_metrics_read(detail, source->db, context, from, to, err);
	if (!err_stuck(err))
		*metric = &detail->items[0];
}

/* Compute moving means of the finite values. */
static double *metrics_smooth(struct view_metrics *screen, const struct view_metric *metric,
			      size_t first, size_t count, struct err *err)
{
	const size_t width = (size_t)view__metrics_mean(screen);
	double *out = view_alloc(&screen->arena, count, sizeof(*out), err);

	for (size_t i = 0; out && i < count; i++) {
		const size_t end = first + i + 1;
		double sum = 0;
		int numbers = 0;

		for (size_t p = end > width ? end - width : 0; p < end; p++)
			if (isfinite(metric->points[p].value)) {
				sum += metric->points[p].value;
				numbers++;
			}
		out[i] = numbers > 0 ? sum / numbers : (double)NAN;
	}
	return out;
}

static void metrics_cut_curve(struct view_metrics *screen, const struct view_metric *metric,
			      struct view_metrics_curve *curve, struct err *err)
{
	size_t first = 0, end;

	while (first < metric->point_count &&
	       metrics_x_of(&metric->points[first], screen->x, (int64_t)first) < screen->from)
		first++;
	for (end = first; end < metric->point_count; end++)
		if (metrics_x_of(&metric->points[end], screen->x, (int64_t)end) > screen->to)
			break;
	curve->points = metric->points ? metric->points + first : NULL;
	curve->at = view_alloc(&screen->arena, end - first, sizeof(double), err);
	curve->values = view_alloc(&screen->arena, end - first, sizeof(double), err);
	if (err_stuck(err))
		return;
	for (size_t i = first; i < end; i++) {
		curve->at[i - first] = metrics_x_of(&metric->points[i], screen->x, (int64_t)i);
		curve->values[i - first] = metric->points[i].value;
		curve->bad += !isfinite(metric->points[i].value);
	}
	curve->count = (int64_t)(end - first);
	curve->recorded = metric->count;
	if (view__metrics_mean(screen) > 1 &&
	    (screen->chosen || metric->point_count >= SMOOTH_FROM))
		curve->smooth = metrics_smooth(screen, metric, first, end - first, err);
}

static void metrics_finish_axes(struct view_metrics *screen)
{
	static const char *const titles[VIEW_METRICS_XS] = {[VIEW_METRICS_STEP] = "step",
							    [VIEW_METRICS_EPOCH] = "epoch",
							    [VIEW_METRICS_TIME] = "time",
							    [VIEW_METRICS_ORDER] = "value"};

	screen->axis_x = (struct report_axis){
		.low = screen->from,
		.high = screen->to,
		.quantity = screen->x == VIEW_METRICS_TIME ? REPORT_NS : REPORT_COUNT,
		.title = titles[screen->x]};
	if (screen->axis_x.low >= screen->axis_x.high)
		screen->axis_x.high = screen->axis_x.low + 1;
	screen->axis_y = (struct report_axis){.quantity = REPORT_REAL};
	screen->spread = (struct report_spread){0};
	report_axis_begin(&screen->axis_y);
	for (int side = 0; side < VIEW_METRICS_SIDES; side++) {
		const struct view_metrics_curve *curve = &screen->curves[side];

		report_axis_include(&screen->axis_y, curve->values, curve->count);
		report_spread_include(&screen->spread, curve->values, curve->count);
	}
	report_axis_scale(&screen->axis_y, &screen->spread, screen->scale);
	(void)report_axis_finish(&screen->axis_y);
}

void view__metrics_curves(struct view_metrics *screen, struct view_context *context,
			  struct err *err)
{
	struct view_metric *metrics[VIEW_METRICS_SIDES] = {NULL};
	const int sides = context->target ? VIEW_METRICS_SIDES : 1;

	arena_reset(&screen->arena);
	memset(screen->curves, 0, sizeof(screen->curves));
	for (int side = 0; side < sides && screen->grid.count > 0; side++)
		metrics[side] = view__metrics_at(screen, side, screen->grid.order[screen->grid.at]);

	for (int x = 0; x < VIEW_METRICS_XS; x++) {
		screen->has_x[x] = true;
		for (int side = 0; side < VIEW_METRICS_SIDES; side++)
			if (metrics[side] && !metrics_has_x(metrics[side], (enum view_metrics_x)x))
				screen->has_x[x] = false;
	}
	screen->x = screen->wanted;
	while (!screen->has_x[screen->x])
		screen->x = (enum view_metrics_x)((screen->x + 1) % VIEW_METRICS_XS);
	screen->least_x = INFINITY;
	screen->greatest_x = -INFINITY;
	for (int side = 0; side < VIEW_METRICS_SIDES; side++) {
		const struct view_metric *metric = metrics[side];

		if (!metric || metric->point_count == 0)
			continue;
		screen->least_x =
			fmin(screen->least_x, metrics_x_of(&metric->points[0], screen->x, 0));
		screen->greatest_x =
			fmax(screen->greatest_x,
			     metrics_x_of(&metric->points[metric->point_count - 1], screen->x,
					  (int64_t)metric->point_count - 1));
	}
	if (screen->least_x > screen->greatest_x)
		screen->least_x = screen->greatest_x = 0;
	metrics_finish_window(screen, context->follow);
	for (int side = 0; side < sides && !err_stuck(err); side++) {
		if (!metrics[side])
			continue;
		/* A sampled metric does not know the index of its points. */
		if (screen->lists[side].sampled && screen->zoomed &&
		    screen->x != VIEW_METRICS_ORDER)
			metrics_read_detail(screen, context, side, &metrics[side], err);
		metrics_cut_curve(screen, metrics[side], &screen->curves[side], err);
	}
	metrics_finish_axes(screen);
}

/* ---- the cursor ------------------------------------------------------------------------------ */

/* The index of the point nearest to @x, for NaN the last; -1: the curve is empty. */
static int64_t metrics_nearest(const struct view_metrics_curve *curve, double x)
{
	int64_t low;

	if (curve->count == 0 || isnan(x))
		return curve->count - 1;
	SORTED_FIRST(low, 0, curve->count - 1, curve->at[low] < x);
	if (low > 0 && x - curve->at[low - 1] < curve->at[low] - x)
		low--;
	return low;
}

/* The curve that the cursor moves along. */
static const struct view_metrics_curve *metrics_main(const struct view_metrics *screen)
{
	const struct view_metrics_curve *source = &screen->curves[VIEW_METRICS_SOURCE];
	const struct view_metrics_curve *target = &screen->curves[VIEW_METRICS_TARGET];

	if (source->count == 0 || target->count == 0)
		return source->count > 0 ? source : target;
	return target->at[target->count - 1] > source->at[source->count - 1] ? target : source;
}

/* Get the cursor's x: at a point of the report whose curve ends later, or of the Source if both end
 * together; false: no points. */
static bool metrics_moment(const struct view_metrics *screen, double *x)
{
	const struct view_metrics_curve *curve = metrics_main(screen);
	const int64_t at = metrics_nearest(curve, screen->cursor);

	if (at >= 0)
		*x = curve->at[at];
	return at >= 0;
}

const struct view_metric_point *view__metrics_point(const struct view_metrics *screen, int side,
						    double *x)
{
	const struct view_metrics_curve *curve = &screen->curves[side];
	double moment;
	int64_t at;
	bool beyond;

	if (curve->count == 0 || !metrics_moment(screen, &moment))
		return NULL;
	at = metrics_nearest(curve, moment);
	*x = curve->at[at];
	beyond = moment < curve->at[0] || moment > curve->at[curve->count - 1];
	if ((*x < moment || *x > moment) && screen->x != VIEW_METRICS_TIME &&
	    (beyond || !screen->lists[side].sampled))
		return NULL;
	return &curve->points[at];
}

double view__metrics_column(const struct view_metrics *screen)
{
	const int width = screen->areas.chart.width - 8;
	const int64_t count = metrics_main(screen)->count;

	return width > 0 && count > width ? (double)(count / width) : 1;
}

void view__metrics_move(struct view_metrics *screen, int by)
{
	const struct view_metrics_curve *curve = metrics_main(screen);
	const int sign = by < 0 ? -1 : 1;
	int64_t from = metrics_nearest(curve, screen->cursor), to = from + by;

	if (from < 0)
		return;
	/* Skip points with the same x. */
	while (to > 0 && to < curve->count - 1 && curve->at[to] == curve->at[from])
		to += sign;
	to = to < 0 ? 0 : to >= curve->count ? curve->count - 1 : to;
	screen->cursor = curve->at[to];
	/* At the end the cursor follows the run. */
	if (to == curve->count - 1 && curve->at[to] >= screen->greatest_x)
		screen->cursor = NAN;
}

/* ---- zooming --------------------------------------------------------------------------------- */

double view__metrics_closest(const struct view_metrics *screen)
{
	return fmax((screen->greatest_x - screen->least_x) * ZOOM_LEAST, 1);
}

enum view_answer view__metrics_zoom(struct view_metrics *screen, enum view_request request)
{
	const double width = screen->to - screen->from;
	const double about = isnan(screen->cursor) ? screen->to : screen->cursor;
	const double all = screen->greatest_x - screen->least_x;
	double part = width > 0 ? (about - screen->from) / width : 0.5, wanted = width;

	if (request == VIEW_ZOOM_ALL_REQUEST || all <= 0) {
		screen->zoomed = false;
		return VIEW_LOAD;
	}
	part = part < 0 ? 0 : part > 1 ? 1 : part;
	if (request == VIEW_ZOOM_IN_REQUEST)
		wanted = fmax(width / 2, view__metrics_closest(screen));
	else if (request == VIEW_ZOOM_OUT_REQUEST)
		wanted = fmin(width * 2, all);
	if (request == VIEW_PAGE_LEFT_REQUEST)
		screen->from -= width;
	else if (request == VIEW_PAGE_RIGHT_REQUEST)
		screen->from += width;
	else
		screen->from = about - part * wanted;
	screen->to = screen->from + wanted;
	screen->zoomed = true;
	if (request == VIEW_PAGE_LEFT_REQUEST || request == VIEW_PAGE_RIGHT_REQUEST) {
		metrics_finish_window(screen, false);
		screen->cursor = screen->from + part * (screen->to - screen->from);
	}
	return VIEW_LOAD;
}

/* ---- the line above the curves --------------------------------------------------------------- */

#define NAMES_FROM 76 /* columns that have room for "Source", not "S" */

static const char *metrics_cell(const struct view_grid *grid, const char *column)
{
	const char *text = view_grid_text(grid, column);

	return text ? text : "-";
}

/* ---- the values under the cursor ------------------------------------------------------------- */

struct view_metrics_value {
	enum view_style style;
	const char *name;
	bool finite;
	char text[2 * FMT_SIZE + 8]; /* "0.25", of another moment "0.25 at 12 ms", "-" */
};

static bool metrics_is_compared(const struct view_metrics *screen)
{
	return screen->curves[VIEW_METRICS_TARGET].recorded > 0;
}

/* Collect the values under the cursor, of one report or two. Return their number. */
static int metrics_values(const struct view_metrics *screen, double moment,
			  struct view_metrics_value out[VIEW_METRICS_SIDES])
{
	static const char *const names[VIEW_METRICS_SIDES] = {"Source", "Target"};
	static const char *const letters[VIEW_METRICS_SIDES] = {"S", "T"};
	static const enum view_style styles[VIEW_METRICS_SIDES] = {VIEW_SOURCE, VIEW_TARGET};
	const bool wide = screen->areas.heading.width >= NAMES_FROM;
	const int count = metrics_is_compared(screen) ? VIEW_METRICS_SIDES : 1;

	for (int side = 0; side < count; side++) {
		struct view_metrics_value *value = &out[side];
		const struct view_metric_point *point;
		char text[FMT_SIZE];
		double at;

		value->style = styles[side];
		value->name = wide ? names[side] : letters[side];
		point = view__metrics_point(screen, side, &at);
		value->finite = !point || isfinite(point->value);
		if (!point)
			snprintf(value->text, sizeof(value->text), "-");
		else if (wide || count == 1)
			snprintf(value->text, sizeof(value->text), "%s",
				 fmt_real(text, point->value));
		else
			snprintf(value->text, sizeof(value->text), "%.4g", point->value);
		if (point && (at < moment || at > moment))
			view_append(value->text, sizeof(value->text), " at %s",
				    report_axis_text(&screen->axis_x, at, text));
	}
	return count;
}

static int metrics_draw_values(const struct view_metrics *screen, double moment,
			       struct view_pane *pane, int x)
{
	struct view_metrics_value values[VIEW_METRICS_SIDES];
	const int count = metrics_values(screen, moment, values);

	for (int i = 0; i < count; i++) {
		const enum view_style style = values[i].finite ? VIEW_BOLD : VIEW_BAD;

		/* A blank less than beside other names: the value belongs to its own. */
		if (count > 1 && x < pane->rect.width)
			x += view_chart_key(pane, x, 0, pane->rect.width - x, values[i].style,
					    values[i].name) -
			     1;
		x += view_textf(pane, x, 0, style, "%s ", values[i].text);
	}
	return x;
}

static int metrics_values_width(const struct view_metrics *screen, double moment)
{
	struct view_metrics_value values[VIEW_METRICS_SIDES];
	const int count = metrics_values(screen, moment, values);
	int width = 0;

	for (int i = 0; i < count; i++) {
		width += utf8_columns(values[i].text) + 1;
		width += count > 1 ? utf8_columns(values[i].name) + 3 : 0;
	}
	return width;
}

/* ---- the line -------------------------------------------------------------------------------- */

/* Draw the trend of the metric at the right edge, if it fits. */
static void metrics_draw_trend(const struct view_metrics *screen, struct view_pane *pane, int x)
{
	static const char *const names[VIEW_METRICS_SIDES] = {"Source ", "Target "};
	char line[160] = "", before[FMT_SIZE], last[FMT_SIZE];

	for (int side = 0; side < VIEW_METRICS_SIDES; side++) {
		const struct view_metric *metric =
			view__metrics_at(screen, side, screen->grid.order[screen->grid.at]);
		const struct view_trend trend =
			metric ? view_metrics_trend(metric) : (struct view_trend){0};

		if (trend.way == VIEW_TREND_UNKNOWN)
			continue;
		if (metrics_is_compared(screen))
			view_append(line, sizeof(line), "%s%s%s", line[0] ? ", " : " ", names[side],
				    view_trend_text(trend.way));
		else
			snprintf(line, sizeof(line), " %s, mean from %s to %s",
				 view_trend_text(trend.way), fmt_real(before, trend.before),
				 fmt_real(last, trend.last));
	}
	if (!line[0] || x + utf8_columns(line) + 4 > pane->rect.width)
		return;
	strcat(line, " ");
	view_text_right(pane, x, 0, pane->rect.width - x - 1, VIEW_BOLD, line);
}

static void metrics_heading(const struct view_metrics *screen, struct view_pane *pane)
{
	char what[2 * VIEW_PLACE_NAME], moment[FMT_SIZE + 32] = "", text[FMT_SIZE];
	double at = 0;
	const bool any = metrics_moment(screen, &at);
	int x = 1, room = pane->rect.width - x;
	const char *metric = metrics_cell(&screen->grid, "metric");
	const char *mode = metrics_cell(&screen->grid, "mode");

	view_glyphs(pane, 0, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, 1);
	if (any) {
		snprintf(moment, sizeof(moment),
			 "%s%s %s: ", screen->x == VIEW_METRICS_TIME ? "host " : "",
			 screen->axis_x.title, report_axis_text(&screen->axis_x, at, text));
		room -= utf8_columns(moment) + metrics_values_width(screen, at);
	}
	/* The curve is described as completely as fits. */
	snprintf(what, sizeof(what), " %s, %s, by %s: ", metric, mode,
		 metrics_cell(&screen->grid, "per"));
	if (utf8_columns(what) > room)
		snprintf(what, sizeof(what), " %s, %s, ", metric, mode);
	if (utf8_columns(what) > room)
		snprintf(what, sizeof(what), " %s, ", metric);
	if (utf8_columns(what) > room)
		snprintf(what, sizeof(what), " ");
	x += view_text_cut(pane, x, 0, pane->rect.width - 2, VIEW_BOLD, what);
	if (any) {
		x += view_text(pane, x, 0, VIEW_DIM, moment);
		x = metrics_draw_values(screen, at, pane, x);
	}
	view_glyphs(pane, x, 0, VIEW_DIM, VIEW_GLYPH_HORIZONTAL, pane->rect.width - x);
	metrics_draw_trend(screen, pane, x);
}

/* ---- drawing --------------------------------------------------------------------------------- */

#define BESIDE_FROM            140 /* columns; from there on the chart stands beside the list */
#define CHART_LEAST            60
#define LIST_LEAST             80
#define METRICS_DRAW_LIST_MOST 96
#define SPARK_FROM             64 /* columns of the list with pictures */
#define SPARK                  14

struct view_metrics_areas view__metrics_areas(struct view_rect body, int64_t rows, bool large)
{
	struct view_metrics_areas areas = {.chart = body};
	const int wanted = rows + 1 < body.height / 3 ? (int)rows + 1 : body.height / 3;
	const int half = body.width / 2;
	const int list = half < LIST_LEAST               ? LIST_LEAST
			 : half < METRICS_DRAW_LIST_MOST ? half
							 : METRICS_DRAW_LIST_MOST;

	if (!large && body.width >= BESIDE_FROM) {
		areas.list = body;
		areas.list.width = list;
		areas.chart.x += list + 1;
		areas.chart.width -= list + 1;
	} else if (!large) {
		const struct view_split split = view_split_rows(body, max(wanted, 3), 3);

		areas.list = split.upper;
		areas.heading = split.heading;
		areas.chart = split.lower;
	}
	/* Beside the list, and alone, the heading is the chart's first row. */
	if (areas.heading.height == 0 && areas.chart.height > 1) {
		areas.heading = areas.chart;
		areas.heading.height = 1;
		areas.chart.y++;
		areas.chart.height--;
	}
	if (areas.list.width >= SPARK_FROM) {
		areas.sparks = areas.list;
		areas.sparks.width = SPARK;
		areas.sparks.x += areas.list.width - SPARK;
		areas.list.width -= SPARK + 1;
	}
	return areas;
}

void view__metrics_fill(struct view_metrics_areas *areas, int used)
{
	const int free = areas->list.width - used;

	if (areas->sparks.width == 0 || used <= 0 || free <= 0)
		return;
	areas->list.width -= free;
	areas->sparks.x -= free;
	areas->sparks.width += free;
}

static void metrics_draw_trends(const struct view_metrics *screen, int side, const char *title,
				enum view_style style, struct view_pane *pane)
{
	const struct view_grid *grid = &screen->grid;

	view_text(pane, 0, 0, VIEW_DIM, title);
	for (int y = 1; y < pane->rect.height && grid->scroll + y - 1 < grid->count; y++) {
		const int64_t row = grid->order[grid->scroll + y - 1];
		const struct view_metrics_spark *spark = &screen->sparks[side][row];

		view_chart_spark(pane, 0, y, pane->rect.width, style, spark->points, spark->count);
	}
}

/* One report's, or those of two beside each other. */
static void metrics_draw_sparks(const struct view_metrics *screen, bool compared,
				struct view_pane *pane)
{
	struct view_rect half = {0, 0, (pane->rect.width - 1) / 2, pane->rect.height};
	struct view_pane part = view_pane_sub(pane, half);

	if (!compared) {
		metrics_draw_trends(screen, VIEW_METRICS_SOURCE, "trend", VIEW_CURVE, pane);
		return;
	}
	half.x = half.width + 1;
	half.width = pane->rect.width - half.x;
	metrics_draw_trends(screen, VIEW_METRICS_SOURCE, "Source", VIEW_SOURCE, &part);
	part = view_pane_sub(pane, half);
	metrics_draw_trends(screen, VIEW_METRICS_TARGET, "Target", VIEW_TARGET, &part);
}

/* ---- the chart ------------------------------------------------------------------------------- */

static void metrics_draw_curve(const struct view_metrics *screen, int side, struct view_pane *plot)
{
	const struct view_metrics_curve *curve = &screen->curves[side];
	const enum view_style style = side == VIEW_METRICS_TARGET ? VIEW_TARGET : VIEW_SOURCE;
	struct view_series series = {curve->values, curve->at, curve->count, style};

	if (curve->count == 0)
		return;
	/* Draw the unsmoothed curve dimmed behind, if the terminal can. */
	if (curve->smooth && !plot->canvas->plain && !plot->canvas->ascii) {
		series.style = VIEW_DIM;
		view_chart_line(plot, &series, &screen->axis_x, &screen->axis_y);
	}
	series.style = style;
	if (curve->smooth)
		series.values = curve->smooth;
	view_chart_line(plot, &series, &screen->axis_x, &screen->axis_y);
	/* Mark NaN and infinities. */
	for (int64_t i = 0; i < curve->count && curve->bad > 0; i++) {
		const double part = report_axis_part(&screen->axis_x, curve->at[i]);
		const int x = (int)(part * (plot->rect.width - 1) + 0.5);

		if (!isfinite(curve->values[i]))
			view_put(plot, x, plot->rect.height - 1, VIEW_BAD, '!');
	}
}

static void metrics_draw_chart(const struct view_metrics *screen,
			       const struct view_context *context, struct view_pane *pane)
{
	struct view_pane plot;
	double at;
	bool any = false;

	for (int side = 0; side < VIEW_METRICS_SIDES; side++)
		any = any || screen->curves[side].count > 0;
	if (pane->rect.height < 1)
		return;
	if (!any) {
		view_text(pane, 2, 0, VIEW_DIM, "no values in this window: 0 shows all");
		return;
	}
	plot = view_chart_axes(pane, &screen->axis_x, &screen->axis_y, 0);
	for (int side = 0; side < VIEW_METRICS_SIDES; side++)
		metrics_draw_curve(screen, side, &plot);
	if (context->whole || isnan(screen->cursor))
		return;
	if (metrics_moment(screen, &at))
		view_chart_marker(
			&plot,
			(int)(report_axis_part(&screen->axis_x, at) * (plot.rect.width - 1) + 0.5));
}

void view__metrics_draw(const void *state, const struct view_context *context,
			struct view_pane *pane)
{
	const struct view_metrics *screen = state;
	struct view_pane part;

	if (screen->grid.table.row_count == 0) {
		view_nothing(pane, "No metrics have been recorded:",
			     "ipu-train does so with each step's loss and what compile.metrics of "
			     "its run file names.",
			     context->source->none);
		return;
	}
	/* The sparklines have the columns that the list does not need. */
	part = view_pane_sub(
		pane, (struct view_rect){0, 0, screen->areas.list.x + screen->areas.list.width,
					 pane->rect.height});
	if (screen->areas.list.height > 0)
		view_grid_draw(&screen->grid, &part, !context->whole);
	part = view_pane_sub(pane, screen->areas.sparks);
	if (part.rect.height > 0 && part.rect.width > 0)
		metrics_draw_sparks(screen, context->target != NULL, &part);
	if (screen->grid.count == 0)
		return;
	part = view_pane_sub(pane, screen->areas.heading);
	metrics_heading(screen, &part);
	part = view_pane_sub(pane, screen->areas.chart);
	metrics_draw_chart(screen, context, &part);
}

/* ---- the status line ------------------------------------------------------------------------- */

void view__metrics_status(const void *state, const struct view_context *context, char *out,
			  size_t size)
{
	const struct view_metrics *screen = state;
	const struct view_metrics_curve *curve = &screen->curves[VIEW_METRICS_SOURCE];
	const struct view_metric_point *point;
	char shown[FMT_SIZE], all[FMT_SIZE], scale[REPORT_SCALE_TEXT];
	double at;

	(void)context;
	if (screen->grid.count == 0) {
		view_grid_status(&screen->grid, out, size);
		return;
	}
	if (curve->recorded == 0)
		curve = &screen->curves[VIEW_METRICS_TARGET];
	snprintf(out, size, "%s of %s rows shown", fmt_count(shown, curve->count),
		 fmt_count(all, curve->recorded));
	if (curve->smooth)
		view_append(out, size, ", means of %d", view__metrics_mean(screen));
	view_append(out, size, "%s", report_scale_text(&screen->axis_y, scale));
	if (curve->bad > 0)
		view_append(out, size, ", %s NaN or Inf (!)", fmt_count(shown, curve->bad));
	point = view__metrics_point(screen, VIEW_METRICS_SOURCE, &at);
	if (!point)
		point = view__metrics_point(screen, VIEW_METRICS_TARGET, &at);
	if (point && point->epoch != IPS_NULL)
		view_append(out, size, "; epoch %lld", (long long)point->epoch);
	if (point && point->execution != IPS_NULL)
		view_append(out, size, ", execution %lld", (long long)point->execution);
}
