/*
 * Drawing the screen Metrics: the list, a small picture of each, and the curves of one.
 *
 * Threading: where screens draw. Ownership: none.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/minmax.h"
#include "viewer/metrics/view_metrics_internal.h"
#include "viewer/view_layout.h"

#define BESIDE_FROM 140 /* columns; from there on the chart stands beside the list */
#define CHART_LEAST 60
#define LIST_LEAST  80
#define LIST_MOST   96
#define SPARK_FROM  64 /* columns of the list with pictures */
#define SPARK       14

struct view_metrics_areas view__metrics_areas(struct view_rect body, int64_t rows, bool large)
{
	struct view_metrics_areas areas = {.chart = body};
	const int wanted = rows + 1 < body.height / 3 ? (int)rows + 1 : body.height / 3;
	const int half = body.width / 2;
	const int list = half < LIST_LEAST ? LIST_LEAST : half < LIST_MOST ? half : LIST_MOST;

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

static struct view_pane view_sub(const struct view_pane *pane, struct view_rect rect)
{
	rect.x += pane->rect.x;
	rect.y += pane->rect.y;
	return view_pane_at(pane->canvas, rect);
}

static void view_draw_trends(const struct view_metrics *screen, int side, const char *title,
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
static void view_draw_sparks(const struct view_metrics *screen, bool compared,
			     struct view_pane *pane)
{
	struct view_rect half = {0, 0, (pane->rect.width - 1) / 2, pane->rect.height};
	struct view_pane part = view_sub(pane, half);

	if (!compared) {
		view_draw_trends(screen, VIEW_METRICS_SOURCE, "trend", VIEW_CURVE, pane);
		return;
	}
	half.x = half.width + 1;
	half.width = pane->rect.width - half.x;
	view_draw_trends(screen, VIEW_METRICS_SOURCE, "Source", VIEW_SOURCE, &part);
	part = view_sub(pane, half);
	view_draw_trends(screen, VIEW_METRICS_TARGET, "Target", VIEW_TARGET, &part);
}

/* ---- the chart ------------------------------------------------------------------------------- */

/* A mark where a number was none. */
static void view_draw_bad(const struct view_metrics *screen, const struct view_metrics_curve *curve,
			  struct view_pane *plot)
{
	for (int64_t i = 0; i < curve->count && curve->bad > 0; i++) {
		const double part = view_axis_part(&screen->axis_x, curve->at[i]);
		const int x = (int)(part * (plot->rect.width - 1) + 0.5);

		if (!isfinite(curve->values[i]))
			view_put(plot, x, plot->rect.height - 1, VIEW_BAD, '!');
	}
}

static void view_draw_curve(const struct view_metrics *screen, int side, struct view_pane *plot)
{
	const struct view_metrics_curve *curve = &screen->curves[side];
	const enum view_style style = side == VIEW_METRICS_TARGET ? VIEW_TARGET : VIEW_SOURCE;
	struct view_series series = {curve->values, curve->at, curve->count, style};

	if (curve->count == 0)
		return;
	/* What is smoothed stays behind, faintly, where faint can be seen. */
	if (curve->smooth && !plot->canvas->plain && !plot->canvas->ascii) {
		series.style = VIEW_DIM;
		view_chart_line(plot, &series, &screen->axis_x, &screen->axis_y);
	}
	series.style = style;
	if (curve->smooth)
		series.values = curve->smooth;
	view_chart_line(plot, &series, &screen->axis_x, &screen->axis_y);
	view_draw_bad(screen, curve, plot);
}

static void view_draw_chart(const struct view_metrics *screen, const struct view_context *context,
			    struct view_pane *pane)
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
		view_draw_curve(screen, side, &plot);
	if (context->whole || isnan(screen->cursor))
		return;
	if (view__metrics_moment(screen, &at))
		view_chart_marker(
			&plot,
			(int)(view_axis_part(&screen->axis_x, at) * (plot.rect.width - 1) + 0.5));
}

void view__metrics_draw(const void *state, const struct view_context *context,
			struct view_pane *pane)
{
	const struct view_metrics *screen = state;
	struct view_pane part;

	if (screen->grid.table.row_count == 0) {
		view_nothing(pane, "No metrics have been recorded: ipu-train does so with each",
			     "step's loss and what compile.metrics of its run file names.");
		return;
	}
	part = view_sub(pane, screen->areas.list);
	if (part.rect.height > 0)
		view_grid_draw(&screen->grid, &part, !context->whole);
	part = view_sub(pane, screen->areas.sparks);
	if (part.rect.height > 0 && part.rect.width > 0)
		view_draw_sparks(screen, context->target != NULL, &part);
	if (screen->grid.count == 0)
		return;
	part = view_sub(pane, screen->areas.heading);
	view__metrics_heading(screen, &part);
	part = view_sub(pane, screen->areas.chart);
	view_draw_chart(screen, context, &part);
}

/* ---- the status line ------------------------------------------------------------------------- */

void view__metrics_status(const void *state, const struct view_context *context, char *out,
			  size_t size)
{
	const struct view_metrics *screen = state;
	const struct view_metrics_curve *curve = &screen->curves[VIEW_METRICS_SOURCE];
	const struct view_metric_point *point;
	char shown[FMT_SIZE], all[FMT_SIZE], scale[VIEW_SCALE_TEXT];
	size_t length;
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
	length = strlen(out);
	if (view__metrics_mean(screen) > 1)
		snprintf(out + length, size - length, ", means of %d", view__metrics_mean(screen));
	length = strlen(out);
	snprintf(out + length, size - length, "%s", view_scale_text(&screen->axis_y, scale));
	length = strlen(out);
	if (curve->bad > 0)
		snprintf(out + length, size - length, ", %s NaN or Inf (!)",
			 fmt_count(shown, curve->bad));
	length = strlen(out);
	point = view__metrics_point(screen, VIEW_METRICS_SOURCE, &at);
	if (!point)
		point = view__metrics_point(screen, VIEW_METRICS_TARGET, &at);
	if (point && point->epoch != IPS_NULL)
		snprintf(out + length, size - length, "; epoch %lld", (long long)point->epoch);
	length = strlen(out);
	if (point && point->execution != IPS_NULL)
		snprintf(out + length, size - length, ", execution %lld",
			 (long long)point->execution);
}
