/*
 * Which way a metric goes at its end: the mean of the last quarter of its values beside that of the
 * quarter before. What is less than twice the standard error of their difference is level.
 */
#ifndef VIEW_METRICS_TREND_H
#define VIEW_METRICS_TREND_H

#include "viewer/metrics/view_metrics_read.h"

enum view_trend_way {
	VIEW_TREND_UNKNOWN, /* fewer than two values, or one of them no number */
	VIEW_TREND_FALLING,
	VIEW_TREND_LEVEL,
	VIEW_TREND_RISING
};

struct view_trend {
	enum view_trend_way way;
	double before, last; /* the means; of fewer than 8 values the last two themselves */
};

struct view_trend view_metrics_trend(const struct view_metric *metric);

/* "falling" ...; "" where it is not known. */
const char *view_trend_text(enum view_trend_way way);

#endif /* VIEW_METRICS_TREND_H */
