/*
 * The state of the screen Tensors, shared by the files that load it, draw it and lead elsewhere.
 *
 * A list of tensors stands above one of several pages about the tensor under its cursor; opened,
 * the page has all of the body and the cursor moves in it. The list is made of sums; pages read
 * no more rows than the limits below, and say how many those are of how many.
 */
#ifndef VIEW_TENSORS_INTERNAL_H
#define VIEW_TENSORS_INTERNAL_H

#include "common/arena.h"
#include "common/fmt.h"
#include "reports/named/report_tensors.h"
#include "viewer/draw/view_axis.h"
#include "viewer/draw/view_chart.h"
#include "viewer/draw/view_grid.h"
#include "viewer/view_layout.h"
#include "viewer/view_screen.h"

#define VIEW_TENSORS_SPARKS     20000   /* rows of all tensors looked at for the sparklines */
#define VIEW_TENSORS_CURVE      100000  /* rows of all tensors looked at for a curve */
#define VIEW_TENSORS_HISTOGRAMS 300000  /* rows of all histograms looked at */
#define VIEW_TENSORS_CAPTURES   4096    /* rows of all captures looked at */
#define VIEW_TENSORS_PAGE       2000    /* rows in a table */
#define VIEW_TENSORS_SLICE      4194304 /* values of a capture looked at for its picture */
#define VIEW_SPARK_POINTS       40
#define VIEW_TENSORS_NDIM       8
#define VIEW_TENSORS_SQL        4096

/* X(page, title) */
#define VIEW_TENSOR_PAGES(X)                                                                       \
	X(CURVE, "curve")                                                                          \
	X(HISTOGRAM, "histograms")                                                                 \
	X(VALUES, "values")                                                                        \
	X(RULES, "rules broken")                                                                   \
	X(ROWS, "rows")

enum view_tensor_page {
#define VIEW_TENSOR_PAGE_ENUM(page, title) VIEW_TENSOR_##page,
	VIEW_TENSOR_PAGES(VIEW_TENSOR_PAGE_ENUM)
#undef VIEW_TENSOR_PAGE_ENUM
	VIEW_TENSOR_PAGE_COUNT
};

struct view_spark {
	int64_t tensor_id, rank, rows;
	struct view_chart_point points[VIEW_SPARK_POINTS];
	int count;
};

/* The statistic of the chosen tensor in one report. */
struct view_tensor_curve {
	struct report_tensor_rows rows;
	double *values, *at; /* in the arena of the curves; as many as rows */
};

/* What the curve's rows stand on the x axis by. */
enum view_tensor_axis {
	VIEW_BY_STEP,
	VIEW_BY_UPDATE,
	VIEW_BY_ROW
};

struct view_tensor_histogram {
	int columns, bins;
	double *count; /* bins x columns, the greatest values first; NaN: none */
	double *low, *high;
	int *bin;
	int64_t *step; /* of each column's first */
	int64_t found, looked, all;
	double greatest;
};

struct view_tensor_capture {
	int64_t row_id, context_id, step, weight_update, time_ns;
};

struct view_tensor_values {
	struct view_tensor_capture *list;
	int count, at;
	size_t capacity;
	int64_t looked, all; /* rows of captures */
	char dtype[16], shape_text[64];
	int64_t shape[VIEW_TENSORS_NDIM], first[VIEW_TENSORS_NDIM]; /* first: of what is shown */
	int ndim;
	int64_t rows, columns; /* of the slice that is shown */
	int64_t row, column;   /* its first ones on the screen */
	int shown_rows, shown_columns;
	double *cell; /* shown_rows x shown_columns */
	bool picture; /* as a heat map: cells are the greatest magnitude of their share */
	struct view_axis scale;
	int64_t cut; /* values of the slice that are not in the picture */
	double *numbers;
	size_t number_capacity;
};

struct view_tensors {
	int statistic;
	bool opened;
	enum view_tensor_page page;
	struct view_grid list;
	bool ranked;

	struct report_tensor_rows sampled;
	struct view_spark *sparks; /* a row of the list's table each */
	int64_t spark_count;
	struct arena spark_arena;

	/* The tensor under the cursor. */
	char queue[VIEW_PLACE_NAME], key[VIEW_PLACE_NAME];
	bool has_queue;
	int64_t rank, id, target_id; /* ids: INT64_MIN: not there */
	int64_t row_count;           /* of its statistics */

	struct arena curve_arena;
	struct view_tensor_curve source, target;
	enum view_tensor_axis by;
	struct view_axis x, y;
	bool known;                         /* a row has the statistic */
	int64_t cursor;                     /* row of source, -1: none */
	int64_t wanted_step, wanted_update; /* to go to at the next load; INT64_MIN: not */

	struct arena page_arena;
	struct view_tensor_histogram histogram;
	struct view_tensor_values values;
	struct view_grid grid; /* of the pages that are tables */
	int64_t grid_from;     /* first row id looked at for it */
	int64_t grid_of;       /* the tensor it is of */
	enum view_tensor_page grid_page;
	char sql[VIEW_TENSORS_SQL]; /* behind it */

	struct view_rect table, heading, body; /* areas; empty where there is no room */
};

/* view_tensors.c */
const char *view__statistic(const struct view_tensors *screen);
/* Two areas of the body: the list, and the page under a heading. */
void view__tensors_areas(struct view_tensors *screen, const struct view_context *context);
/* The tensor under the list's cursor is the chosen one now. */
enum status view__tensors_choose(struct view_tensors *screen, struct view_context *context,
				 struct err *err);
enum status view__tensors_load(void *state, struct view_context *context, bool news,
			       struct err *err);

/* view_tensors_list.c */
enum status view__tensors_list(struct view_tensors *screen, struct view_context *context,
			       struct err *err);
void view__tensors_list_sql(const struct view_tensors *screen, bool compared, struct str *out);
void view__tensors_list_draw(const struct view_tensors *screen, const struct view_context *context,
			     struct view_pane *pane);
enum status view__tensors_table(void *state, struct view_context *context, struct report_table *out,
				struct err *err);

/* view_tensors_curve.c */
enum status view__curve_load(struct view_tensors *screen, struct view_context *context,
			     struct err *err);
void view__curve_draw(const struct view_tensors *screen, const struct view_context *context,
		      struct view_pane *pane);
enum view_answer view__curve_request(struct view_tensors *screen, enum view_request request);
/* The row under the cursor; NULL: none. */
const struct report_tensor_row *view__curve_row(const struct view_tensors *screen);
/* The cursor to the row of the step, or else of the weight update, that is wanted, or to the one
 * before it. */
void view__curve_go(struct view_tensors *screen);

/* view_tensors_histogram.c */
enum status view__histogram_load(struct view_tensors *screen, struct view_context *context,
				 struct err *err);
void view__histogram_draw(const struct view_tensors *screen, struct view_pane *pane);

/* view_tensors_values.c */
enum status view__values_load(struct view_tensors *screen, struct view_context *context,
			      struct err *err);
enum view_answer view__values_request(struct view_tensors *screen, struct view_context *context,
				      enum view_request request);
void view__values_status(const struct view_tensors *screen, char *out, size_t size);

/* view_tensors_matrix.c: reading and drawing the numbers */
enum status view__matrix_load(struct view_tensors *screen, struct view_context *context,
			      struct err *err);
void view__values_draw(const struct view_tensors *screen, struct view_pane *pane);

/* view_tensors_grids.c */
enum status view__grids_load(struct view_tensors *screen, struct view_context *context,
			     struct err *err);
enum view_answer view__grids_request(struct view_tensors *screen, enum view_request request);

/* view_tensors_draw.c */
void view__tensors_draw(const void *state, const struct view_context *context,
			struct view_pane *pane);

/* view_tensors_join.c */
bool view__tensors_place(const void *state, const struct view_context *context,
			 struct view_place *out);
bool view__tensors_offers(const struct view_place *place, char *out, size_t size);
enum status view__tensors_go(void *state, struct view_context *context,
			     const struct view_place *place, struct err *err);
void view__tensors_query(const void *state, const struct view_context *context, struct str *out);

/* view_tensors_values.c: the number that the query behind @sql gives; 0 where there is none. */
enum status view__last_row(struct prof_db *db, const char *sql, int64_t *out, struct err *err);

#endif /* VIEW_TENSORS_INTERNAL_H */
