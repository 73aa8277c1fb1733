/*
 * Line and area charts as inline SVG, and curves of bounded length.
 *
 * Threading: none. Ownership: the caller owns the points.
 */
#include "reports/html/report_html.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "reports/table/report_axis.h"

#define PLOT_LEFT   72.0
#define PLOT_TOP    12.0
#define PLOT_RIGHT  (HTML_CHART_WIDTH - 12.0)
#define PLOT_BOTTOM (HTML_CHART_HEIGHT - 32.0)
#define TICKS_X     8
#define TICKS_Y     5
#define TICKS_TIME  10
#define GREATEST    1e300 /* larger values would overflow a difference */

void html_time_axis(struct report_html *page, int64_t span_ns, int left, int width, int y)
{
	const struct report_axis axis = {.high = (double)span_ns, .quantity = REPORT_NS};
	double ticks[REPORT_AXIS_TICKS];
	const int count = report_axis_ticks(&axis, TICKS_TIME, ticks);
	char text[FMT_SIZE];

	html_add(page, "<g class=\"axis\">");
	for (int i = 0; i < count; i++)
		html_addf(page, "<text class=\"mid\" x=\"%.1f\" y=\"%d\">%s</text>",
			  left + report_axis_part(&axis, ticks[i]) * width, y,
			  report_axis_text(&axis, ticks[i], text));
	html_add(page, "</g>\n");
}

/* ---- curves ---------------------------------------------------------------------------------- */

void html_curve_begin(struct html_curve *curve)
{
	curve->count = 0;
	curve->per = 1;
}

static void merge_points(struct html_point *point, const struct html_point *next)
{
	if (next->finite > 0) {
		point->low = point->finite ? fmin(point->low, next->low) : next->low;
		point->high = point->finite ? fmax(point->high, next->high) : next->high;
	}
	point->sum += next->sum;
	point->held += next->held;
	point->finite += next->finite;
}

void html_curve_add_range(struct html_curve *curve, double x, double y, double low, double high)
{
	const bool finite = fabs(y) < GREATEST && fabs(low) < GREATEST && fabs(high) < GREATEST;
	const struct html_point value = {.x = x,
					 .sum = finite ? y : 0,
					 .low = finite ? low : 0,
					 .high = finite ? high : 0,
					 .held = 1,
					 .finite = finite};

	if (curve->count > 0 && curve->points[curve->count - 1].held < curve->per) {
		merge_points(&curve->points[curve->count - 1], &value);
		return;
	}
	if (curve->count == HTML_POINTS) {
		for (size_t i = 0; i < HTML_POINTS / 2; i++) {
			curve->points[i] = curve->points[2 * i];
			merge_points(&curve->points[i], &curve->points[2 * i + 1]);
		}
		curve->count = HTML_POINTS / 2;
		curve->per *= 2;
		html_curve_add_range(curve, x, y, low, high);
		return;
	}
	curve->points[curve->count++] = value;
}

void html_curve_add(struct html_curve *curve, double x, double y)
{
	html_curve_add_range(curve, x, y, y, y);
}

int64_t html_curve_bad(const struct html_curve *curve, double *first)
{
	int64_t bad = 0;

	*first = NAN;
	for (size_t i = 0; i < curve->count; i++) {
		const struct html_point *point = &curve->points[i];

		if (point->held > point->finite && bad == 0)
			*first = point->x;
		bad += point->held - point->finite;
	}
	return bad;
}

void html_curve_series(struct html_curve *curve, const char *name, bool range,
		       struct html_series *out)
{
	for (size_t i = 0; i < curve->count; i++) {
		const struct html_point *point = &curve->points[i];
		const bool any = point->finite > 0;

		curve->x[i] = point->x;
		curve->y[i] = any ? point->sum / (double)point->finite : NAN;
		curve->low[i] = any ? point->low : NAN;
		curve->high[i] = any ? point->high : NAN;
	}
	*out = (struct html_series){.name = name,
				    .x = curve->x,
				    .y = curve->y,
				    .low = range ? curve->low : NULL,
				    .high = range ? curve->high : NULL,
				    .count = curve->count};
}

/* ---- drawing --------------------------------------------------------------------------------- */

struct axes {
	struct report_axis x, y;
};

/* Return false if no series has a finite value. */
static bool measure_chart(const struct html_chart *chart, struct axes *axes)
{
	const double zero = 0;
	struct report_spread spread = {0};

	*axes = (struct axes){.x = {.quantity = REPORT_COUNT}, .y = {.quantity = chart->quantity}};
	report_axis_begin(&axes->x);
	report_axis_begin(&axes->y);
	for (int s = 0; s < chart->count; s++) {
		const struct html_series *series = &chart->series[s];
		const double *values[] = {series->y, series->low, series->high};

		report_axis_include(&axes->x, series->x, (int64_t)series->count);
		for (size_t v = 0; v < ARRAY_LEN(values); v++) {
			if (!values[v])
				continue;
			report_axis_include(&axes->y, values[v], (int64_t)series->count);
			report_spread_include(&spread, values[v], (int64_t)series->count);
		}
	}
	if (chart->from_zero)
		report_axis_include(&axes->y, &zero, 1);
	else
		report_axis_scale(&axes->y, &spread, REPORT_SCALE_BY_SPREAD);
	return report_axis_finish(&axes->x) && report_axis_finish(&axes->y);
}

static double position_x(const struct axes *axes, double value)
{
	return PLOT_LEFT + report_axis_part(&axes->x, value) * (PLOT_RIGHT - PLOT_LEFT);
}

static double position_y(const struct axes *axes, double value)
{
	return PLOT_BOTTOM - report_axis_part(&axes->y, value) * (PLOT_BOTTOM - PLOT_TOP);
}

static void draw_axes(struct report_html *page, const struct html_chart *chart,
		      const struct axes *axes)
{
	double ticks[REPORT_AXIS_TICKS];
	int count = report_axis_ticks(&axes->y, TICKS_Y, ticks);
	char text[FMT_SIZE];

	for (int i = 0; i < count; i++) {
		const double down = position_y(axes, ticks[i]);

		html_addf(page, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", PLOT_LEFT, down,
			  PLOT_RIGHT);
		html_addf(page, "<text class=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
			  PLOT_LEFT - 6, down + 4,
			  report_axis_text(&axes->y, ticks[i] + 0.0, text)); /* -0 becomes 0 */
	}
	count = report_axis_ticks(&axes->x, TICKS_X, ticks);
	for (int i = 0; i < count; i++)
		html_addf(page, "<text class=\"mid\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
			  position_x(axes, ticks[i]), PLOT_BOTTOM + 14,
			  report_axis_text(&axes->x, ticks[i] + 0.0, text));
	html_addf(page, "<text class=\"end\" x=\"%.1f\" y=\"%.1f\">", PLOT_RIGHT, PLOT_BOTTOM + 28);
	html_text(page, chart->x_name);
	html_add(page, "</text>\n");
}

static void draw_band(struct report_html *page, const struct html_series *series, int colour,
		      const struct axes *axes)
{
	for (size_t i = 0; i < series->count; i++) {
		const double left = position_x(axes, series->x[i]);

		if (isfinite(series->low[i]) && series->high[i] > series->low[i])
			html_addf(page, "<path class=\"band s%d\" d=\"M%.1f %.1fV%.1f\"/>", colour,
				  left, position_y(axes, series->low[i]),
				  position_y(axes, series->high[i]));
	}
	html_add(page, "\n");
}

static void draw_area(struct report_html *page, const struct html_series *series, int colour,
		      const struct axes *axes)
{
	if (series->count == 0)
		return;
	html_addf(page, "<path class=\"area s%d\" d=\"M%.1f %.1f", colour,
		  position_x(axes, series->x[0]), position_y(axes, 0));
	for (size_t i = 0; i < series->count; i++) {
		const double next = i + 1 < series->count ? series->x[i + 1] : series->x[i] + 1;

		html_addf(page, "V%.1fH%.1f",
			  position_y(axes, isfinite(series->y[i]) ? series->y[i] : 0),
			  fmin(position_x(axes, next), PLOT_RIGHT));
	}
	html_addf(page, "V%.1fZ\"/>\n", position_y(axes, 0));
}

static void draw_line(struct report_html *page, const struct html_series *series, int colour,
		      const struct axes *axes)
{
	bool pen = false;

	html_addf(page, "<path class=\"line s%d\" d=\"", colour);
	for (size_t i = 0; i < series->count; i++) {
		if (isfinite(series->y[i]))
			/* "h.1" makes a point between two gaps visible as a dot. */
			html_addf(page, pen ? "L%.1f %.1f" : "M%.1f %.1fh.1",
				  position_x(axes, series->x[i]), position_y(axes, series->y[i]));
		pen = isfinite(series->y[i]);
	}
	html_add(page, "\"/>\n");
}

static void draw_chart(struct report_html *page, const struct html_chart *chart,
		       const struct axes *axes)
{
	html_addf(page, "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
		  HTML_CHART_WIDTH, HTML_CHART_HEIGHT);
	html_text(page, chart->title);
	html_add(page, "</title>\n");
	draw_axes(page, chart, axes);
	for (int s = 0; s < chart->count; s++) {
		const struct html_series *series = &chart->series[s];
		const int colour = s % HTML_SERIES_COLOURS;

		if (series->low)
			draw_band(page, series, colour, axes);
		if (series->area)
			draw_area(page, series, colour, axes);
		else
			draw_line(page, series, colour, axes);
		if (s == 0) {
			/* Marks at the foot of the chart: there the curve has no number. */
			html_add(page, "<path class=\"gaps\" d=\"");
			for (size_t i = 0; i < series->count; i++)
				if (!isfinite(series->y[i]))
					html_addf(page, "M%.1f %.1fv-6",
						  position_x(axes, series->x[i]), PLOT_BOTTOM);
			html_add(page, "\"/>\n");
		}
	}
	html_add(page, "</svg>");
}

void html_chart(struct report_html *page, const struct html_chart *chart)
{
	struct axes axes;
	const bool any = measure_chart(chart, &axes);
	char scale[REPORT_SCALE_TEXT];

	html_add(page, "<figure>");
	html_add(page, "<figcaption>");
	html_text(page, chart->title);
	html_text(page, report_scale_text(&axes.y, scale));
	for (int s = 0; chart->count > 1 && s < chart->count; s++) {
		html_addf(page, " <span class=\"key s%d\">&#9632;</span> ",
			  s % HTML_SERIES_COLOURS);
		html_text(page, chart->series[s].name);
	}
	html_add(page, "</figcaption>\n");
	if (any)
		draw_chart(page, chart, &axes);
	if (chart->note)
		html_note(page, "%s", chart->note);
	html_add(page, "</figure>\n");
}
