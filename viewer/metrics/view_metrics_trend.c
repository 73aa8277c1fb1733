/*
 * The trend of a metric.
 *
 * Threading: pure functions. Ownership: none.
 */
#include "viewer/metrics/view_metrics_trend.h"

#include <math.h>

#define QUARTERS_FROM 8 /* values; of fewer the last two are compared */
#define ERRORS        2 /* standard errors that tell a way from noise */

/* The mean of @count points and the square of its standard error. */
static double view_mean(const struct view_metric_point *points, size_t count, double *error)
{
	double sum = 0, squares = 0, mean;

	for (size_t i = 0; i < count; i++)
		sum += points[i].value;
	mean = sum / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += (points[i].value - mean) * (points[i].value - mean);
	*error = count > 1 ? squares / (double)(count - 1) / (double)count : 0;
	return mean;
}

struct view_trend view_metrics_trend(const struct view_metric *metric)
{
	const size_t quarter = metric->point_count >= QUARTERS_FROM ? metric->point_count / 4 : 1;
	struct view_trend out = {.before = NAN, .last = NAN};
	const struct view_metric_point *end;
	double errors[2], change;

	if (metric->point_count < 2)
		return out;
	end = metric->points + metric->point_count;
	out.before = view_mean(end - 2 * quarter, quarter, &errors[0]);
	out.last = view_mean(end - quarter, quarter, &errors[1]);
	change = out.last - out.before;
	if (!isfinite(change))
		return out;
	if (fabs(change) <= ERRORS * sqrt(errors[0] + errors[1]))
		out.way = VIEW_TREND_LEVEL;
	else
		out.way = change < 0 ? VIEW_TREND_FALLING : VIEW_TREND_RISING;
	return out;
}

const char *view_trend_text(enum view_trend_way way)
{
	static const char *const texts[] = {[VIEW_TREND_UNKNOWN] = "",
					    [VIEW_TREND_FALLING] = "falling",
					    [VIEW_TREND_LEVEL] = "level",
					    [VIEW_TREND_RISING] = "rising"};

	return texts[way];
}
