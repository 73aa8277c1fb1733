/*
 * Metrics of a recording: what there is, and the points of their curves.
 *
 * Metrics of all kinds share one table in order of time. A short table is read whole; of a long one
 * short ranges of rows are read, evenly spread, and the rows around the ends of epochs, which have
 * the values of a whole epoch: the number of rows read does not grow with the run.
 */
#ifndef VIEW_METRICS_READ_H
#define VIEW_METRICS_READ_H

#include "common/arena.h"
#include "viewer/view_screen.h"

struct view_metric_point {
	int64_t row, epoch, execution, step, time_ns; /* IPS_NULL: none */
	double value;                                 /* NaN where it was one */
};

struct view_metric {
	int64_t rank;
	const char *mode, *name;
	bool per_step; /* or per epoch or evaluation */
	int64_t count; /* recorded */
	double last, least, greatest;
	struct view_metric_point *points; /* in order of rows; owned */
	size_t point_count, capacity;
};

struct view_metrics_list {
	struct view_metric *items;
	int count;
	int64_t rows; /* of all metrics together */
	bool sampled; /* not all points are there */
	struct arena arena;
};

/* Read the list, by mode and name, without points. On failure it is empty. Both functions do
 * nothing after a failure, which @err (not NULL) keeps. */
void view_metrics_list(struct view_metrics_list *list, struct prof_db *db, struct err *err);
/* The points of rows @from .. @to. */
void view_metrics_read(struct view_metrics_list *list, struct prof_db *db,
		       const struct view_context *context, int64_t from, int64_t to,
		       struct err *err);
void view_metrics_fini(struct view_metrics_list *list); /* accepts a zeroed list */

/* NULL: none. @mode may be NULL, as in a row without one. */
struct view_metric *view_metrics_find(const struct view_metrics_list *list, int64_t rank,
				      const char *mode, const char *name, bool per_step);

/*
 * The trend of a metric: the mean of the last quarter of its values compared with that of the
 * quarter before. A difference below twice its standard error is level.
 */

enum view_trend_way {
	VIEW_TREND_UNKNOWN, /* fewer than two values, or one of them no number */
	VIEW_TREND_FALLING,
	VIEW_TREND_LEVEL,
	VIEW_TREND_RISING
};

struct view_trend {
	enum view_trend_way way;
	double first;
	double before, last; /* the means; of fewer than 8 values the last two themselves */
	bool risen;          /* since the first, by more than the last quarter's values differ */
};

struct view_trend view_metrics_trend(const struct view_metric *metric);

/* "falling" ...; "" where it is not known. */
const char *view_trend_text(enum view_trend_way way);

#endif /* VIEW_METRICS_READ_H */
