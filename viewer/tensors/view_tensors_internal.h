/*
 * The state of the screen Tensors, shared by the files that load it, order it and draw it.
 *
 * Invariant after a load: `order` has `count` rows; those on the screen have their statistics.
 */
#ifndef VIEW_TENSORS_INTERNAL_H
#define VIEW_TENSORS_INTERNAL_H

#include "common/arena.h"
#include "common/fmt.h"
#include "reports/named/report_tensors.h"
#include "viewer/draw/view_chart.h"
#include "viewer/view_layout.h"
#include "viewer/view_screen.h"

#define VIEW_SPARK_POINTS 40
#define VIEW_NO_SORT      (-1)

struct view_tensor {
	const struct report_tensor *tensor;
	bool loaded; /* the statistics below are there, for the chosen one */
	struct view_chart_point points[VIEW_SPARK_POINTS];
	int point_count;
	double first, last, least, greatest;
};

struct view_tensors {
	struct arena list_arena, curve_arena;
	struct report_tensor *tensors;
	struct view_tensor *rows;
	int *order;       /* rows as shown */
	int count, all;   /* shown; recorded */
	char filter[128]; /* keys that contain it are shown; "": all */
	int at, scroll;   /* in order */
	int64_t selected_id;
	int sort; /* column, or VIEW_NO_SORT: as recorded */
	bool reverse;
	int statistic;
	struct view_tensors_layout areas;

	struct view_chart_point *curve;
	int curve_count;
	int64_t first_step, last_step, first_update, last_update, bad;
	double low, high;
};

enum {
	VIEW_COLUMN_KEY,
	VIEW_COLUMN_KIND,
	VIEW_COLUMN_STAGE,
	VIEW_COLUMN_SHAPE,
	VIEW_COLUMN_ROWS,
	VIEW_COLUMN_NAN,
	VIEW_COLUMN_INF,
	VIEW_COLUMN_FIRST,
	VIEW_COLUMN_LAST,
	VIEW_COLUMN_LEAST,
	VIEW_COLUMN_GREATEST,
	VIEW_COLUMN_TREND,
	VIEW_COLUMNS
};

struct view_tensor_column {
	const char *title; /* NULL: the statistic's name stands above */
	int width;         /* 0: what is left */
	int from_width;    /* shown on screens as wide as that */
	bool right;
	bool statistic; /* needs the curves of all rows to sort by */
};

/* view_tensors.c */
const char *view__statistic(const struct view_tensors *screen);

/* view_tensors_columns.c */
extern const struct view_tensor_column view__columns[VIEW_COLUMNS];
bool view__column_shown(int column, int width);
int view__column_width(int column, int width);
/* What numbers of @row @column sorts by and shows; NaN: unknown, or not a number. */
double view__sort_number(const struct view_tensor *row, int column);
/* For qsort_r() on view_tensors.order; @user is the screen. */
int view__compare(const void *a, const void *b, void *user);

/* view_tensors_draw.c */
void view__tensors_draw(const void *state, const struct view_context *context,
			struct view_pane *pane);

#endif /* VIEW_TENSORS_INTERNAL_H */
