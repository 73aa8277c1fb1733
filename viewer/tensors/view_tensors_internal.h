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
#include "reports/sequence/report_sequence.h"
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
#define VIEW_REPLICAS_MOST      256 /* a greater number is not believed */
#define VIEW_TENSORS_NDIM       8
#define VIEW_TENSORS_SIDES      2   /* the Source, the Target */
#define VIEW_TENSORS_WIDE       100 /* two pictures stand beside each other, not above */
#define VIEW_TENSORS_HIGH       12  /* less: beside each other, too */
#define VIEW_TENSORS_SQL        4096
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
	int64_t most; /* rows of the replica that has most */
	struct view_chart_point points[VIEW_SPARK_POINTS];
	int count;
};

/* The rows of one replica: a line. */
struct view_tensor_line {
	int64_t replica;
	int first, count; /* in line_values and line_at */
};

/* The statistic of the chosen tensor in one report, of the chosen replica or of all. Arrays are in
 * the arena of the curves. */
struct view_tensor_curve {
	struct report_tensor_rows rows; /* in the order of the x axis */
	double *values, *at;            /* as many as rows */
	double *line_values, *line_at;  /* the same, one replica after the other */
	struct view_tensor_line *lines;
	int line_count;
};

/* What the curve's rows stand on the x axis by. */
enum view_tensor_axis {
	VIEW_BY_STEP,
	VIEW_BY_UPDATE,
	VIEW_BY_ROW
};

/* The histograms of one report; arrays are in the arena of the page. */
struct view_tensor_histograms {
	int columns;            /* that have some; a column is one or several moments */
	double *count;          /* bins x columns of both, the greatest values first; NaN: none */
	int64_t *step, *update; /* of each column's first */
	int64_t last_step, last_update;
	int64_t found, looked, all;
};

/* Both reports' have the same bins and as many columns, so that pictures can be compared. */
struct view_tensor_histogram {
	int columns, bins;
	double *low, *high;
	int *bin;
	double greatest;
	bool differs; /* with D: a count does */
	struct view_tensor_histograms side[VIEW_TENSORS_SIDES];
};

/* A moment at which values were kept, in one report or in both. */
struct view_tensor_capture {
	int64_t row_id[VIEW_TENSORS_SIDES], context_id[VIEW_TENSORS_SIDES]; /* IPS_NULL: none */
	int64_t step, weight_update, microbatch, replica;
	char mode[12];
};

struct view_tensor_captures {
	struct view_tensor_capture *list;
	int count;
	size_t capacity;
	int64_t looked, all; /* rows of captures */
};

enum view_tensor_share {
	VIEW_OF_SOURCE,
	VIEW_OF_TARGET,
	VIEW_OF_DIFF,
	VIEW_TENSOR_SHARES
};

/* What is shown of a capture, or of the difference of two. */
struct view_tensor_matrix {
	char dtype[16], shape_text[64];
	int64_t shape[VIEW_TENSORS_NDIM];
	int ndim;              /* 0: there is no capture */
	int64_t rows, columns; /* of the slice */
	double *cell;          /* shown_rows x shown_columns; NULL: none; NaN beyond the slice */
	double *numbers;       /* what cells are in */
	size_t capacity;
};

/* What is known of the dimensions of a tensor, to be shown as what it is. */
enum view_sequence_kind {
	VIEW_SEQUENCE_NONE,
	VIEW_SEQUENCE_SCORES, /* of attention: a picture with tokens at its sides */
	VIEW_SEQUENCE_LOSSES, /* of tokens: the text */
	VIEW_SEQUENCE_ROWS    /* of an Embedding: norms */
};

/* Of the capture that is shown, where one report alone has it; arrays are in the page's arena. */
struct view_tensor_sequence {
	enum view_sequence_kind kind;
	char dims[64]; /* "" : not known */
	struct report_tokens tokens;
	const float *of_rows, *of_columns; /* numbers of tokens; NULL: not known */
	struct report_head head;
	bool headed;             /* that is known */
	struct report_kept kept; /* losses, a kernel */
	double *by_position;     /* losses: means over samples */
	struct report_row *rows; /* the largest norm first */
	int64_t still;           /* rows that never changed */
	char note[96];           /* why it is not shown; "" */
};

struct view_tensor_values {
	struct view_tensor_captures found[VIEW_TENSORS_SIDES];
	struct view_tensor_captures both; /* those of the two, paired */
	int at;                           /* of those; -1: to be found */
	int64_t wanted;                   /* the step of it, or the weight update */
	int64_t first[VIEW_TENSORS_NDIM]; /* of the slice that is shown */
	int64_t row, column;              /* its first ones on the screen */
	int64_t rows, columns;            /* of the larger slice */
	int shown_rows, shown_columns;
	bool picture;          /* as heat maps: cells are the greatest of their share */
	bool paged;            /* as a text, or as norms */
	bool by_row;           /* a map of attention: each row has shades of its own */
	int64_t sample, token; /* of that text, and the first of it on the screen */
	struct view_tensor_sequence sequence;
	struct view_tensor_matrix part[VIEW_TENSOR_SHARES];
	struct view_axis scale, diff_scale;
	bool *equals;      /* cells that do not differ */
	const bool *equal; /* with D the same; NULL: all are shown */
	size_t equal_capacity;
	bool differs;  /* a cell does */
	int64_t cut;   /* values of the slice that are not in the picture */
	char note[96]; /* what there is nothing of; "" */
};

struct view_tensors {
	int statistic;
	bool begun; /* with the tensor of the command line */
	bool opened;
	enum view_tensor_page page;
	struct view_grid list;
	bool ranked;
	char kind[VIEW_TENSORS_KIND]; /* of those that are listed; "": all */

	struct report_tensor_rows sampled;
	struct view_spark *sparks; /* a row of the list's table each */
	int64_t spark_count;
	struct arena spark_arena;

	/* The tensor under the cursor. */
	char queue[VIEW_PLACE_NAME], key[VIEW_PLACE_NAME];
	bool has_queue;
	int64_t rank, id[VIEW_TENSORS_SIDES]; /* ids: IPS_NULL: not there */
	int64_t row_count;                    /* of its statistics */
	int replicas;                         /* seen so far; 0: none is recorded */
	int replica;                          /* the one that is shown; -1: all */

	struct arena curve_arena;
	struct view_tensor_curve curve[VIEW_TENSORS_SIDES];
	enum view_tensor_axis by;
	struct view_axis x, y;
	enum view_scale scale; /* of y, as chosen */
	struct view_spread spread;
	bool known;                         /* a row has the statistic */
	int64_t cursor;                     /* row of the curve's first side, -1: none */
	int64_t wanted_step, wanted_update; /* to go to at the next load; IPS_NULL: not */

	struct arena page_arena;
	struct view_tensor_histogram histogram;
	struct view_tensor_values values;
	struct view_grid grid;               /* of the pages that are tables */
	int64_t grid_from;                   /* first row id looked at for it */
	int64_t grid_of[VIEW_TENSORS_SIDES]; /* the tensor it is of */
	enum view_tensor_page grid_page;
	int grid_replica;
	char sql[VIEW_TENSORS_SQL]; /* behind it */

	struct view_rect table, heading, body; /* areas; empty where there is no room */
};

/* The database of a side; NULL: there is none. */
static inline struct prof_db *view__tensors_db(const struct view_context *context, int side)
{
	const struct view_source *source = side ? context->target : context->source;

	return source ? source->db : NULL;
}
#define VIEW_MATRIX_CELL  10
#define VIEW_MATRIX_INDEX 7

/* view_tensors.c */
const char *view__statistic(const struct view_tensors *screen);
/* The number that @replica counts as; where none is said: 0. */
int view__replica_number(int64_t replica);
/* A row of @replica was read: is it one of those that are shown? */
bool view__replica_shows(struct view_tensors *screen, int64_t replica);
/* ", replica 1"; "" where there is one. */
void view__replica_text(const struct view_tensors *screen, char *out, size_t size);
/* Ask @sql for the rows :from to before :to, of the tensor of @side (:tensor) and its process
 * (:rank, NULL: any). */
enum status view__tensors_rows(struct prof_query **out, const struct view_tensors *screen, int side,
			       struct prof_db *db, const char *sql, int64_t from, int64_t to,
			       struct err *err);
/* " WHERE ..." of the tensor, its process and the replica that is shown. @key, @queue: the columns,
 * @context: what stands before "rank" and "replica". @queue NULL: any; two runs may have the same
 * keys in other queues. */
void view__tensors_where(const struct view_tensors *screen, const char *key, const char *queue,
			 const char *context, struct str *out);
/* Two or three pictures of a page: beside each other where it is wide or low, else one above the
 * other; @at: which. */
struct view_rect view__tensors_share(struct view_rect area, int count, int at);

/* view_tensors_curve.c */
enum status view__curve_load(struct view_tensors *screen, struct view_context *context,
			     struct err *err);
enum view_answer view__curve_request(struct view_tensors *screen, enum view_request request);
/* The row under the cursor; NULL: none. */
const struct report_tensor_row *view__curve_row(const struct view_tensors *screen);
void view__curve_draw(const struct view_tensors *screen, const struct view_context *context,
		      struct view_pane *pane);
/* In the first row of the pane what the cursor is on: "step 812: std 0.0123, 7 NaN or Inf", or of
 * both reports. Returns the columns used. */
int view__curve_readout(const struct view_tensors *screen, const struct view_context *context,
			struct view_pane *pane);

/* view_tensors_histogram.c */
enum status view__histogram_load(struct view_tensors *screen, struct view_context *context,
				 struct err *err);
void view__histogram_draw(const struct view_tensors *screen, const struct view_context *context,
			  struct view_pane *pane);

/* view_tensors_list.c */
enum status view__tensors_list(struct view_tensors *screen, struct view_context *context,
			       struct err *err);
void view__tensors_list_sql(const struct view_tensors *screen, bool compared, struct str *out);
/* List tensors of @kind alone, "": of all; on failure all is as it was. */
enum status view__tensors_list_kind(struct view_tensors *screen, struct view_context *context,
				    const char *kind, struct err *err);
/* The same of the next kind, and after the last of all. */
enum view_answer view__tensors_next_kind(struct view_tensors *screen, struct view_context *context);
void view__tensors_list_draw(const struct view_tensors *screen, const struct view_context *context,
			     struct view_pane *pane);
/* All statistics, in the order and filter of the list. */
enum status view__tensors_list_table(const struct view_tensors *screen,
				     struct view_context *context, struct report_table *out,
				     struct err *err);

/* view_tensors_matrix.c */
/* The shades of the picture are for its cells as they are now. */
void view__matrix_scale(struct view_tensor_values *values);
/* Reads the numbers. */
enum status view__matrix_load(struct view_tensors *screen, struct view_context *context,
			      struct err *err);
void view__values_draw(const struct view_tensors *screen, struct view_pane *pane);

/* view_tensors_sequence.c */
/* What the chosen tensor is, and how it is shown at first. */
void view__sequence_choose(struct view_tensors *screen, const struct view_context *context);
enum status view__sequence_load(struct view_tensors *screen, struct view_context *context,
				struct err *err);
/* What was in the page's arena. */
void view__sequence_reset(struct view_tensor_sequence *sequence);
bool view__sequence_has_page(const struct view_tensor_values *values);
void view__sequence_draw(const struct view_tensors *screen, struct view_pane *pane, int y);
/* Rows of the page below what the values are of. */
int64_t view__sequence_height(const struct view_tensor_sequence *sequence, int width);
/* The rows of a text or of norms. */
enum status view__sequence_table(const struct view_tensor_values *values, struct report_table *out,
				 struct err *err);
/* "sample 0, head 1: entropy 2.55 ..." */
void view__sequence_draw_head(const struct view_tensor_values *values, struct view_pane *pane,
			      int y);
/* Tokens beside and above a map in @area, of which what is left for the map. */
struct view_rect view__sequence_sides(const struct view_tensor_values *values,
				      struct view_rect area, struct view_pane *pane);

/* view_tensors_table.c */
enum status view__grids_load(struct view_tensors *screen, struct view_context *context,
			     struct err *err);
enum view_answer view__grids_request(struct view_tensors *screen, enum view_request request);
/* The rows of what is shown */
enum status view__tensors_table(void *state, struct view_context *context, struct report_table *out,
				struct err *err);
void view__tensors_query(const void *state, const struct view_context *context, struct str *out);

/* view_tensors_values.c */
/* The number that the query behind @sql gives; 0 where there is none. */
enum status view__last_row(struct prof_db *db, const char *sql, int64_t *out, struct err *err);
enum status view__values_load(struct view_tensors *screen, struct view_context *context,
			      struct err *err);
enum view_answer view__values_request(struct view_tensors *screen, enum view_request request);
/* What the values become with b: "picture"; "": none are kept. */
const char *view__values_next(const struct view_tensor_values *values);
/* Rows that show all of the capture in @width columns. */
int view__values_height(const struct view_tensor_values *values, int width);
void view__values_status(const struct view_tensors *screen, char *out, size_t size);
/* NULL: there is none. */
const struct view_tensor_capture *view__values_capture(const struct view_tensors *screen);
/* Matrices with numbers, 0 .. 3. */
int view__values_parts(const struct view_tensor_values *values);
/* Is the value that is shown at @row, @column within the slice of @matrix? */
bool view__values_has(const struct view_tensor_values *values,
		      const struct view_tensor_matrix *matrix, int row, int column);

#endif /* VIEW_TENSORS_INTERNAL_H */
