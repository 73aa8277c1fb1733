/*
 * The state of the screen Metrics, shared by its files.
 *
 * Invariant after a load: the grid's rows are the metrics of both reports; the curves are those of
 * the row under its cursor.
 */
#ifndef VIEW_METRICS_INTERNAL_H
#define VIEW_METRICS_INTERNAL_H

#include "viewer/draw/view_chart.h"
#include "viewer/draw/view_grid.h"
#include "reports/table/report_axis.h"
#include "viewer/metrics/view_metrics_read.h"

#define VIEW_METRICS_SPARK 64 /* points of a line's picture */

/* What a curve is drawn over. */
enum view_metrics_x {
	VIEW_METRICS_STEP,
	VIEW_METRICS_EPOCH,
	VIEW_METRICS_TIME,
	VIEW_METRICS_ORDER, /* the first, the second ... */
	VIEW_METRICS_XS
};

enum {
	VIEW_METRICS_SOURCE,
	VIEW_METRICS_TARGET,
	VIEW_METRICS_SIDES
};

/* The keys of the grid's rows, its first columns. */
enum {
	VIEW_METRICS_MODE,
	VIEW_METRICS_NAME,
	VIEW_METRICS_PER,
	VIEW_METRICS_RANK
};

struct view_metrics_areas {
	struct view_rect list, sparks, heading, chart;
};

/* A metric's points within the window. */
struct view_metrics_curve {
	const struct view_metric_point *points; /* the metric's */
	double *at, *values, *smooth;           /* smooth NULL: as it is */
	int64_t count, bad;                     /* bad: NaN and Inf among them */
	int64_t recorded;
};

/* How a metric went; no points: the report does not have it. */
struct view_metrics_spark {
	struct view_chart_point points[VIEW_METRICS_SPARK];
	int count;
};

struct view_metrics {
	struct view_grid grid; /* first: view_state_grid() */
	struct view_metrics_list lists[VIEW_METRICS_SIDES];
	struct view_metrics_list detail[VIEW_METRICS_SIDES]; /* the window of a sampled metric */
	bool loaded;
	struct view_metrics_areas areas;
	bool large; /* the chart alone */

	enum view_metrics_x wanted, x; /* x: what the metric has */
	bool has_x[VIEW_METRICS_XS];
	int smoothing;   /* index of the widths of means */
	bool chosen;     /* by a key; else a curve of few points stays as it is */
	bool zoomed;     /* from .. to, else all */
	double from, to; /* x */
	double least_x, greatest_x;
	struct arena arena; /* of the curves */
	struct view_metrics_curve curves[VIEW_METRICS_SIDES];
	struct report_axis axis_x, axis_y;
	enum report_scale scale; /* of y, as chosen */
	struct report_spread spread;
	double cursor;                                         /* x; NaN: the newest */
	struct view_metrics_spark *sparks[VIEW_METRICS_SIDES]; /* a row each, in the arena below */
	struct arena spark_arena;
};

/* view_metrics_curve.c */
/* The curves of the row under the cursor, for the window; nothing after a failure, which @err (not
 * NULL) keeps. */
void view__metrics_curves(struct view_metrics *screen, struct view_context *context,
			  struct err *err);
struct view_metric *view__metrics_at(const struct view_metrics *screen, int side, int64_t row);
/* A report's point at the cursor; NULL: it has none. For host times, which never coincide, and if
 * points are sampled: the nearest one; @x: its position. */
const struct view_metric_point *view__metrics_point(const struct view_metrics *screen, int side,
						    double *x);
int view__metrics_mean(const struct view_metrics *screen); /* points; 1: none */
/* How far the cursor moves by a column. */
double view__metrics_column(const struct view_metrics *screen);
void view__metrics_move(struct view_metrics *screen, int by);    /* points */
double view__metrics_closest(const struct view_metrics *screen); /* the shortest window */
enum view_answer view__metrics_zoom(struct view_metrics *screen, enum view_request request);
struct view_metrics_areas view__metrics_areas(struct view_rect body, int64_t rows, bool large);
/* The list uses @used columns: give the rest of its width to the sparklines. */
void view__metrics_fill(struct view_metrics_areas *areas, int used);
void view__metrics_draw(const void *state, const struct view_context *context,
			struct view_pane *pane);
void view__metrics_status(const void *state, const struct view_context *context, char *out,
			  size_t size);

#endif /* VIEW_METRICS_INTERNAL_H */
