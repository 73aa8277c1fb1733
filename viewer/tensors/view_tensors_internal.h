/*
 * The state of the screen Tensors, shared by the files that load it, draw it and handle its keys.
 *
 * A list of tensors is above one of several pages about the tensor under its cursor; an opened page
 * fills the body and the cursor moves in it. The list shows sums; pages read at most as many rows
 * as the limits below, and show how many of how many that is.
 */
#ifndef VIEW_TENSORS_INTERNAL_H
#define VIEW_TENSORS_INTERNAL_H

#include "common/arena.h"
#include "common/fmt.h"
#include "reports/named/report_tensors.h"
#include "reports/sequence/report_sequence.h"
#include "reports/table/report_axis.h"
#include "viewer/draw/view_chart.h"
#include "viewer/draw/view_grid.h"
#include "viewer/view_layout.h"
#include "viewer/view_screen.h"

#define VIEW_TENSORS_SPARKS     20000   /* rows of all tensors read for the sparklines */
#define VIEW_TENSORS_CURVE      100000  /* rows of all tensors read for a curve */
#define VIEW_TENSORS_HISTOGRAMS 300000  /* rows of all histograms read */
#define VIEW_TENSORS_CAPTURES   4096    /* rows of all captures read */
#define VIEW_TENSORS_PAGE       2000    /* rows in a table */
#define VIEW_TENSORS_SLICE      4194304 /* values of a capture read for its picture */
#define VIEW_SPARK_POINTS       40
#define VIEW_REPLICAS_MOST      256 /* higher replica numbers count as 0 */
#define VIEW_TENSORS_NDIM       8
#define VIEW_TENSORS_SIDES      2 /* the Source and the Target */
#define VIEW_TENSORS_KIND       48

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
	int64_t tensor_id, rank;
	int64_t most; /* rows of the replica with most rows */
	struct view_chart_point points[VIEW_SPARK_POINTS];
	int count;
};

/* The rows of one replica, drawn as one line. */
struct view_tensor_line {
	int64_t replica;
	int first, count; /* in line_values and line_at */
};

/* The statistic of the chosen tensor in one report, for the chosen replica or all. Arrays are in
 * the arena of the curves. */
struct view_tensor_curve {
	struct report_tensor_rows rows; /* in the order of the x axis */
	double *values, *at;            /* one per row */
	double *line_values, *line_at;  /* the same, grouped by replica */
	struct view_tensor_line *lines;
	int line_count;
};

/* The x axis of the curve. */
enum view_tensor_axis {
	VIEW_BY_STEP,
	VIEW_BY_UPDATE,
	VIEW_BY_ROW
};

/* The histograms of one report; arrays are in the arena of the page. */
struct view_tensor_histograms {
	int columns;            /* columns with histograms, each of one or more moments */
	double *count;          /* bins x columns, greatest values first; NaN: none */
	int64_t *step, *update; /* of each column's first histogram */
	int64_t last_step, last_update;
	int64_t found, looked, all;
};

/* Both reports' histograms, with the same bins and columns, so that they can be compared. */
struct view_tensor_histogram {
	int columns, bins;
	double *low, *high;
	int *bin;
	double greatest;
	bool differs; /* only differences are shown, and there are some */
	struct view_tensor_histograms side[VIEW_TENSORS_SIDES];
};

/* A captured set of values, of one report or paired from both. */
struct view_tensor_capture {
	int64_t row_id[VIEW_TENSORS_SIDES], context_id[VIEW_TENSORS_SIDES]; /* IPS_NULL: none */
	int64_t step, weight_update, microbatch, replica;
	char mode[12];
};

struct view_tensor_captures {
	struct view_tensor_capture *list;
	int count;
	size_t capacity;
	int64_t looked, all; /* rows of captures: read, and in the file */
};

enum view_tensor_share {
	VIEW_OF_SOURCE,
	VIEW_OF_TARGET,
	VIEW_OF_DIFF,
	VIEW_TENSOR_SHARES
};

/* The shown part of a capture, or of the difference of two. */
struct view_tensor_matrix {
	char dtype[16], shape_text[64];
	int64_t shape[VIEW_TENSORS_NDIM];
	int ndim;              /* 0: no capture */
	int64_t rows, columns; /* of the slice */
	double *cell;          /* shown_rows x shown_columns; NULL: none; NaN outside the slice */
	double *numbers;       /* storage of `cell` */
	size_t capacity;
};

/* What the dimensions of a tensor mean, which selects how it is shown. */
enum view_sequence_kind {
	VIEW_SEQUENCE_NONE,
	VIEW_SEQUENCE_SCORES, /* of attention: a picture with tokens on two sides */
	VIEW_SEQUENCE_LOSSES, /* of tokens: a text */
	VIEW_SEQUENCE_ROWS    /* of an Embedding: norms */
};

/* Of the shown capture, if only one report has it; arrays are in the page's arena. */
struct view_tensor_sequence {
	enum view_sequence_kind kind;
	char dims[64]; /* "": unknown */
	struct report_tokens tokens;
	const float *of_rows, *of_columns; /* token ids; NULL: unknown */
	struct report_head head;
	bool headed;             /* `head` is known */
	struct report_kept kept; /* losses, a kernel */
	double *by_position;     /* losses: mean over samples */
	struct report_row *rows; /* sorted by norm, largest first */
	int64_t still;           /* number of rows that never changed */
	char note[96];           /* why it is not shown; "" */
};

struct view_tensor_values {
	struct view_tensor_captures found[VIEW_TENSORS_SIDES];
	struct view_tensor_captures both; /* the captures of both reports, paired */
	int at;                           /* index in both; -1: not chosen yet */
	int64_t wanted;                   /* step or weight update to choose by */
	int64_t first[VIEW_TENSORS_NDIM]; /* indexes of the shown slice in the leading axes */
	int64_t row, column;              /* first ones on the screen */
	int64_t rows, columns;            /* of the larger slice */
	int shown_rows, shown_columns;
	bool picture;          /* heat maps; a cell shows the greatest value of its share */
	bool paged;            /* as a text or as norms */
	bool by_row;           /* map of attention: each row is scaled to its greatest */
	int64_t sample, token; /* of the text, and its first token on the screen */
	struct view_tensor_sequence sequence;
	struct view_tensor_matrix part[VIEW_TENSOR_SHARES];
	struct report_axis scale, diff_scale;
	bool *equals;      /* per cell: both reports have the same value */
	const bool *equal; /* `equals` if only differences are shown; else NULL */
	size_t equal_capacity;
	bool differs;  /* a cell differs */
	int64_t cut;   /* number of values of the slice that are not in the picture */
	char note[96]; /* what is missing; "" */
};

struct view_tensors {
	int statistic;
	bool begun; /* the tensor of the command line has been opened */
	bool opened;
	enum view_tensor_page page;
	struct view_grid list;
	bool ranked;
	char kind[VIEW_TENSORS_KIND]; /* of the listed tensors; "": all */

	struct report_tensor_rows sampled;
	struct view_spark *sparks; /* one per row of the list's table */
	int64_t spark_count;
	struct arena spark_arena;

	/* The tensor under the cursor. */
	char queue[VIEW_PLACE_NAME], key[VIEW_PLACE_NAME];
	bool has_queue;
	int64_t rank, id[VIEW_TENSORS_SIDES]; /* ids: IPS_NULL: not in that report */
	int64_t row_count;                    /* of its statistics */
	int replicas;                         /* number seen so far; 0: none recorded */
	int replica;                          /* the shown one; -1: all */

	struct arena curve_arena;
	struct view_tensor_curve curve[VIEW_TENSORS_SIDES];
	enum view_tensor_axis by;
	struct report_axis x, y;
	enum report_scale scale; /* of y, as chosen */
	struct report_spread spread;
	bool known;                         /* a row has the statistic */
	int64_t cursor;                     /* row of curve_side(); -1: none */
	int64_t wanted_step, wanted_update; /* where the next load goes; IPS_NULL: stay */

	struct arena page_arena;
	struct view_tensor_histogram histogram;
	struct view_tensor_values values;
	struct view_grid grid;               /* of the pages that are tables */
	int64_t grid_from;                   /* first row id read for it */
	int64_t grid_of[VIEW_TENSORS_SIDES]; /* its tensor */
	enum view_tensor_page grid_page;
	int grid_replica;

	struct view_rect table, heading, body; /* areas; empty if they do not fit */
};

/* The database of a side; NULL: none. */
static inline struct prof_db *view__tensors_db(const struct view_context *context, int side)
{
	const struct view_source *source = side ? context->target : context->source;

	return source ? source->db : NULL;
}

/* The number used for @replica; 0 if it is unknown or too high. */
static inline int view__replica_number(int64_t replica)
{
	return replica >= 0 && replica < VIEW_REPLICAS_MOST ? (int)replica : 0;
}

/* Is the cell @row, @column of the screen within the slice of @matrix? */
static inline bool view__values_has(const struct view_tensor_values *values,
				    const struct view_tensor_matrix *matrix, int row, int column)
{
	return values->row + row < matrix->rows && values->column + column < matrix->columns;
}

#define VIEW_MATRIX_CELL  10
#define VIEW_MATRIX_INDEX 7

/* The functions that read do nothing after a failure, which @err (not NULL) keeps. */

/* view_tensors_choice.c */
const char *view__statistic(const struct view_tensors *screen);
/* Count the replica of a row that was read. Is it shown? */
bool view__replica_shows(struct view_tensors *screen, int64_t replica);
/* ", replica 1"; "" if there is only one. */
void view__replica_text(const struct view_tensors *screen, char *out, size_t size);
/* Open @sql for the rows from :from to before :to, of @side's tensor (:tensor) and its rank (:rank,
 * NULL: any). */
struct prof_query *view__tensors_rows(const struct view_tensors *screen, int side,
				      struct prof_db *db, const char *sql, int64_t from, int64_t to,
				      struct err *err);
/* The chosen capture; NULL: none. */
const struct view_tensor_capture *view__values_capture(const struct view_tensors *screen);
/* Number of matrices with values, 0 to 3. */
int view__values_parts(const struct view_tensor_values *values);

/* view_tensors_curve.c */
void view__curve_load(struct view_tensors *screen, struct view_context *context, struct err *err);
enum view_answer view__curve_request(struct view_tensors *screen, enum view_request request);
/* The row under the cursor; NULL: none. */
const struct report_tensor_row *view__curve_row(const struct view_tensors *screen);
void view__curve_draw(const struct view_tensors *screen, const struct view_context *context,
		      struct view_pane *pane);
/* Draw the row under the cursor in the pane's first row: "step 812: std 0.0123, 7 NaN or Inf", or
 * of both reports. Return the columns used. */
int view__curve_readout(const struct view_tensors *screen, const struct view_context *context,
			struct view_pane *pane);

/* view_tensors_histogram.c */
void view__histogram_load(struct view_tensors *screen, struct view_context *context,
			  struct err *err);
void view__histogram_draw(const struct view_tensors *screen, const struct view_context *context,
			  struct view_pane *pane);

/* view_tensors_list.c */
void view__tensors_list(struct view_tensors *screen, struct view_context *context, struct err *err);
void view__tensors_list_sql(const struct view_tensors *screen, bool compared, struct str *out);
/* List only tensors of @kind, "": all; on failure nothing changes. */
void view__tensors_list_kind(struct view_tensors *screen, struct view_context *context,
			     const char *kind, struct err *err);
/* List the tensors of the next kind, and after the last kind all. */
enum view_answer view__tensors_next_kind(struct view_tensors *screen, struct view_context *context);
void view__tensors_list_draw(const struct view_tensors *screen, const struct view_context *context,
			     struct view_pane *pane);
/* All statistics as a table, with the order and filter of the list. */
void view__tensors_list_table(const struct view_tensors *screen, struct view_context *context,
			      struct report_table *out, struct err *err);

/* view_tensors_matrix.c */
/* Read the values of the slice. */
void view__matrix_load(struct view_tensors *screen, struct view_context *context, struct err *err);
void view__values_draw(const struct view_tensors *screen, struct view_pane *pane);
/* Find out what the chosen tensor is, and choose how it is shown first. */
void view__sequence_choose(struct view_tensors *screen, const struct view_context *context);
void view__sequence_load(struct view_tensors *screen, struct view_context *context,
			 struct err *err);
/* Clear pointers into the page's arena. */
void view__sequence_reset(struct view_tensor_sequence *sequence);
bool view__sequence_has_page(const struct view_tensor_values *values);
/* Rows of the page below its title. */
int64_t view__sequence_height(const struct view_tensor_sequence *sequence, int width);
/* Make the rows of a text or of norms. */
void view__sequence_table(const struct view_tensor_values *values, struct report_table *out,
			  struct err *err);

/* view_tensors_table.c */
void view__grids_load(struct view_tensors *screen, struct view_context *context, struct err *err);
enum view_answer view__grids_request(struct view_tensors *screen, enum view_request request);
/* The rows of the shown page. */
enum status view__tensors_table(void *state, struct view_context *context, struct report_table *out,
				struct err *err);
void view__tensors_query(const void *state, const struct view_context *context, struct str *out);

/* view_tensors_values.c */
void view__values_load(struct view_tensors *screen, struct view_context *context, struct err *err);
enum view_answer view__values_request(struct view_tensors *screen, enum view_request request);
/* What the key b changes the values to: "picture"; "": there are none. */
const char *view__values_next(const struct view_tensor_values *values);
/* Number of rows that show all of the capture in @width columns. */
int view__values_height(const struct view_tensor_values *values, int width);
void view__values_status(const struct view_tensors *screen, char *out, size_t size);

#endif /* VIEW_TENSORS_INTERNAL_H */
