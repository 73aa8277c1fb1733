/*
 * Line and area charts as inline SVG, and curves of bounded length.
 *
 * Threading: none. Ownership: the caller owns the points.
 */
#include "reports/html/report_html.h"

#include <math.h>
#include <string.h>

#define PLOT_LEFT   72.0
#define PLOT_TOP    12.0
#define PLOT_RIGHT  (HTML_CHART_WIDTH - 12.0)
#define PLOT_BOTTOM (HTML_CHART_HEIGHT - 32.0)
#define TICKS_X     6
#define TICKS_Y     4
#define GREATEST    1e300 /* larger values would overflow a difference */

const char *html_format_real(char out[FMT_SIZE], double value)
{
	return fmt_real(out, value);
}

const char *html_format_bytes(char out[FMT_SIZE], double value)
{
	return fmt_bytes(out, value > 0 ? (uint64_t)value : 0);
}

const char *html_format_count(char out[FMT_SIZE], double value)
{
	return fmt_count(out, fabs(value) < 9e18 ? llround(value) : 0);
}

const char *html_format_ns(char out[FMT_SIZE], double value)
{
	return fmt_ns(out, fabs(value) < 9e18 ? llround(value) : 0);
}

double html_tick_step(double low, double high, int count, bool bytes)
{
	const double least = (high - low) / count;
	double unit = 1, power, round = 1;

	if (!(least > 0) || !isfinite(least))
		return 1;
	while (bytes && unit * 1024 <= least)
		unit *= 1024;
	power = pow(10, floor(log10(least / unit)));
	while (power * round < least / unit && round < 10)
		round = round < 2 ? 2 : round < 5 ? 5 : 10;
	/* 1,000 kB is not a round number of bytes, 1 MB is. */
	return bytes && power * round > 999 ? unit * 1024 : unit * power * round;
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

static void merge_pairs(struct html_curve *curve)
{
	for (size_t i = 0; i < HTML_POINTS / 2; i++) {
		curve->points[i] = curve->points[2 * i];
		merge_points(&curve->points[i], &curve->points[2 * i + 1]);
	}
	curve->count = HTML_POINTS / 2;
	curve->per *= 2;
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
		merge_pairs(curve);
		html_curve_add_range(curve, x, y, low, high);
		return;
	}
	curve->points[curve->count++] = value;
}

void html_curve_add(struct html_curve *curve, double x, double y)
{
	html_curve_add_range(curve, x, y, y, y);
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

struct range {
	double low, high;
};

static void extend_range(struct range *range, double value)
{
	if (!isfinite(value))
		return;
	range->low = fmin(range->low, value);
	range->high = fmax(range->high, value);
}

/* Widen an empty range so that it can be drawn. */
static void widen_empty_range(struct range *range)
{
	if (range->low > range->high)
		*range = (struct range){0, 1};
	if (range->low == range->high) {
		const double half = range->low == 0 ? 1 : fabs(range->low) / 2;

		range->high += half;
		range->low -= range->low == 0 ? 0 : half;
	}
}

static void chart_ranges(const struct html_chart *chart, struct range *x, struct range *y)
{
	*x = *y = (struct range){INFINITY, -INFINITY};
	for (int s = 0; s < chart->count; s++) {
		const struct html_series *series = &chart->series[s];

		for (size_t i = 0; i < series->count; i++) {
			extend_range(x, series->x[i]);
			extend_range(y, series->low ? series->low[i] : series->y[i]);
			extend_range(y, series->high ? series->high[i] : series->y[i]);
		}
	}
	if (chart->from_zero)
		extend_range(y, 0);
	widen_empty_range(x);
	widen_empty_range(y);
}

static double position_x(const struct range *range, double value)
{
	return PLOT_LEFT +
	       (value - range->low) / (range->high - range->low) * (PLOT_RIGHT - PLOT_LEFT);
}

static double position_y(const struct range *range, double value)
{
	return PLOT_BOTTOM -
	       (value - range->low) / (range->high - range->low) * (PLOT_BOTTOM - PLOT_TOP);
}

static void draw_axes(struct report_html *page, const struct html_chart *chart,
		      const struct range *x, const struct range *y)
{
	const bool bytes = chart->format_y == html_format_bytes;
	const double step_x = html_tick_step(x->low, x->high, TICKS_X, false);
	const double step_y = html_tick_step(y->low, y->high, TICKS_Y, bytes);
	char text[FMT_SIZE];

	for (double at = ceil(y->low / step_y), n = 0; at * step_y <= y->high && n <= 3 * TICKS_Y;
	     at++, n++) {
		const double value = at * step_y + 0.0; /* turns -0 into 0 */
		const double down = position_y(y, value);

		html_addf(page, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", PLOT_LEFT, down,
			  PLOT_RIGHT);
		html_addf(page, "<text class=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
			  PLOT_LEFT - 6, down + 4, chart->format_y(text, value));
	}
	for (double at = ceil(x->low / step_x), n = 0; at * step_x <= x->high && n <= 3 * TICKS_X;
	     at++, n++)
		html_addf(page, "<text class=\"mid\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
			  position_x(x, at * step_x), PLOT_BOTTOM + 14,
			  chart->format_x(text, at * step_x + 0.0));
	html_addf(page, "<text class=\"end\" x=\"%.1f\" y=\"%.1f\">", PLOT_RIGHT, PLOT_BOTTOM + 28);
	html_text(page, chart->x_name);
	html_add(page, "</text>\n");
}

static void draw_band(struct report_html *page, const struct html_series *series, int colour,
		      const struct range *x, const struct range *y)
{
	for (size_t i = 0; i < series->count; i++) {
		const double left = position_x(x, series->x[i]);

		if (isfinite(series->low[i]) && series->high[i] > series->low[i])
			html_addf(page, "<path class=\"band s%d\" d=\"M%.1f %.1fV%.1f\"/>", colour,
				  left, position_y(y, series->low[i]),
				  position_y(y, series->high[i]));
	}
	html_add(page, "\n");
}

static void draw_area(struct report_html *page, const struct html_series *series, int colour,
		      const struct range *x, const struct range *y)
{
	if (series->count == 0)
		return;
	html_addf(page, "<path class=\"area s%d\" d=\"M%.1f %.1f", colour,
		  position_x(x, series->x[0]), position_y(y, 0));
	for (size_t i = 0; i < series->count; i++) {
		const double next = i + 1 < series->count ? series->x[i + 1] : series->x[i] + 1;

		html_addf(page, "V%.1fH%.1f",
			  position_y(y, isfinite(series->y[i]) ? series->y[i] : 0),
			  fmin(position_x(x, next), PLOT_RIGHT));
	}
	html_addf(page, "V%.1fZ\"/>\n", position_y(y, 0));
}

static void draw_line(struct report_html *page, const struct html_series *series, int colour,
		      const struct range *x, const struct range *y)
{
	bool pen = false;

	html_addf(page, "<path class=\"line s%d\" d=\"", colour);
	for (size_t i = 0; i < series->count; i++) {
		if (isfinite(series->y[i]))
			/* "h.1" makes a point between two gaps visible as a dot. */
			html_addf(page, pen ? "L%.1f %.1f" : "M%.1f %.1fh.1",
				  position_x(x, series->x[i]), position_y(y, series->y[i]));
		pen = isfinite(series->y[i]);
	}
	html_add(page, "\"/>\n");
}

static void draw_legend(struct report_html *page, const struct html_chart *chart)
{
	html_add(page, "<figcaption>");
	html_text(page, chart->title);
	for (int s = 0; chart->count > 1 && s < chart->count; s++) {
		html_addf(page, " <span class=\"key s%d\">&#9632;</span> ",
			  s % HTML_SERIES_COLOURS);
		html_text(page, chart->series[s].name);
	}
	html_add(page, "</figcaption>\n");
}

void html_chart(struct report_html *page, const struct html_chart *chart)
{
	struct range x, y;

	chart_ranges(chart, &x, &y);
	html_add(page, "<figure>");
	draw_legend(page, chart);
	html_addf(page, "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
		  HTML_CHART_WIDTH, HTML_CHART_HEIGHT);
	html_text(page, chart->title);
	html_add(page, "</title>\n");
	draw_axes(page, chart, &x, &y);
	for (int s = 0; s < chart->count; s++) {
		const struct html_series *series = &chart->series[s];
		const int colour = s % HTML_SERIES_COLOURS;

		if (series->low)
			draw_band(page, series, colour, &x, &y);
		if (series->area)
			draw_area(page, series, colour, &x, &y);
		else
			draw_line(page, series, colour, &x, &y);
	}
	html_add(page, "</svg></figure>\n");
}
