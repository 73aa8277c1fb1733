/*
 * State of the Liveness screen, shared by the files that read, navigate and draw it.
 *
 * The live bytes of all program steps are read once, when the recording has changed, and then
 * looked up, so showing another window costs no query. The variables below the chart are queried
 * for each step.
 *
 * Invariant after a load: bands, overview, facts of the step and the grid match the cursor, the
 * window and the body's size.
 */
#ifndef VIEW_LIVENESS_INTERNAL_H
#define VIEW_LIVENESS_INTERNAL_H

#include "common/arena.h"
#include "common/str.h"
#include "viewer/draw/view_chart.h"
#include "viewer/draw/view_grid.h"
#include "viewer/draw/view_time.h"
#include "viewer/view_screen.h"

#define VIEW_LIVE_STEPS 500000 /* most steps read per report; the status reports any more */
#define VIEW_LIVE_ROWS  5000   /* of the table */
#define VIEW_LIVE_MARKS 4      /* steps selected besides the cursor's */
#define VIEW_LIVE_ALL   (-1)   /* all IPUs instead of an index */

struct view_live_step {
	int64_t ipu, step, program_id, always, rest; /* bytes */
};

/* The steps of one IPU, by step. */
struct view_live_curve {
	int64_t ipu;
	const struct view_live_step *steps;
	size_t count;
	size_t peak[2];   /* first step with the most bytes: [0] not always live, [1] all */
	int64_t capacity; /* bytes of its tiles; IPS_NULL: not recorded */
};

struct view_live_report {
	struct view_live_step *steps;
	size_t count, capacity;
	struct view_live_curve *curves; /* by IPU */
	size_t curve_count, curve_capacity;
	int64_t rows, variables; /* counts in the database when it was read */
	bool cut;                /* more steps exist */
};

enum view_live_show {
	VIEW_LIVE_VARIABLES, /* chart and variables */
	VIEW_LIVE_LAYERS,    /* chart and sums of layers */
	VIEW_LIVE_CHART,
	VIEW_LIVE_SHOWS
};

enum view_live_group {
	VIEW_LIVE_BOTH,
	VIEW_LIVE_NOT_ALWAYS,
	VIEW_LIVE_ALWAYS,
	VIEW_LIVE_GROUPS
};

/* Areas within the body; those that do not fit or are not wanted are empty. */
struct view_liveness_layout {
	struct view_rect legend;   /* the colours and the peak */
	struct view_rect overview; /* the whole program */
	struct view_rect chart;    /* all bands, including axes */
	struct view_rect life;     /* lifetime of the variable under the cursor */
	struct view_rect heading;  /* facts of the step */
	struct view_rect table;
};

/* The chart of one IPU. A point is a step of the window, or a column of several steps. */
struct view_live_band {
	int64_t ipu;
	struct view_rect rect;                  /* relative to the chart */
	double *always[2], *rest[2], *total[2]; /* by report; NULL: it has no such IPU */
	double *line;                           /* the Target's total, two values per column */
	struct report_axis y;
	double limit; /* bytes of the IPU's tiles; NaN: unknown, or far above the peak */
};

/* Live bytes at a step of the shown IPU. Unknown with several IPUs, as each has its own steps. */
struct view_live_facts {
	bool known;
	int64_t program_id, always, rest;
};

#define VIEW_LIVE_COLUMNS 11 /* of the table, without those of selected steps */

struct view_liveness {
	struct view_context *context; /* of the current call, whose first failure is in err */
	struct err err;

	struct view_live_report report[2]; /* Source and Target */
	int64_t *ipus;                     /* of both reports, ascending */
	size_t ipu_count, ipu_capacity;
	int ipu; /* the shown one: index into `ipus`, or VIEW_LIVE_ALL */
	bool compared, begun;
	bool always_live; /* the chart includes always live bytes */
	enum view_live_show show;
	enum view_live_group group;

	struct view_window window, extent; /* program steps; `to` is exclusive */
	int64_t cursor;
	int64_t marks[VIEW_LIVE_MARKS];
	int mark_count;
	int64_t wanted; /* the variable to select at the next load; IPS_NULL */

	struct view_liveness_layout areas;
	struct arena arena; /* of the picture, until the next load */
	struct view_live_band *bands;
	int band_count;
	int scale;                         /* columns of the y axis's numbers */
	int plot;                          /* columns of the plot */
	int points;                        /* of a band */
	struct view_chart_point *overview; /* one per column */
	int overview_count;
	struct view_live_facts facts[2];
	char program[VIEW_PLACE_NAME]; /* name of the step's program; "" */

	struct view_grid grid;
	/* Columns of the grid; name and title of a selected step's column contain its number. */
	struct view_grid_column columns[VIEW_LIVE_COLUMNS + VIEW_LIVE_MARKS];
	char names[VIEW_LIVE_MARKS][32], titles[VIEW_LIVE_MARKS + 1][32];
	struct str sql; /* of the table; "": none */
	bool listed;    /* the grid's rows match the choices and this step: */
	int64_t listed_at;
};

/* view_liveness.c */
struct view_liveness_layout view_liveness_areas(struct view_rect body, bool table);

/* view_liveness_draw.c */
void view__live_picture(struct view_liveness *live);
/* The steps @from .. @to - 1 of a point. */
void view__live_point(const struct view_liveness *live, int point, int64_t *from, int64_t *to);
int view__live_point_of(const struct view_liveness *live, int64_t step); /* -1: outside */
void view__live_draw(const void *state, const struct view_context *context, struct view_pane *pane);

/* view_liveness_read.c */
void view__live_read(struct view_liveness *live);
void view__live_report_fini(struct view_live_report *report);
/* The curve of @ipu; NULL: the report has none. */
const struct view_live_curve *view__live_curve(const struct view_liveness *live, int report,
					       int64_t ipu);
/* The step with the most bytes on @ipu, all or without those that are always live; NULL: none. */
const struct view_live_step *view__live_peak(const struct view_liveness *live, int report,
					     int64_t ipu, bool all);
/* The last step up to @step; NULL: before the first or after the last one, or no curve. */
const struct view_live_step *view__live_at(const struct view_live_curve *curve, int64_t step);
/* Return true if IPU @ipu is shown. */
bool view__live_shown(const struct view_liveness *live, int64_t ipu);
void view__live_list(struct view_liveness *live);
void view__live_query(const void *state, const struct view_context *context, struct str *out);
enum status view__live_table(void *state, struct view_context *context, struct report_table *out,
			     struct err *err);

static inline void view__live_begin(struct view_liveness *live, struct view_context *context)
{
	live->context = context;
	err_start(&live->err, NULL);
}

/* Return the status of the call and copy its error. */
static inline enum status view__live_end(const struct view_liveness *live, struct err *err)
{
	if (err && err_stuck(&live->err))
		*err = live->err;
	return live->err.status;
}

/* All bytes of a step, or those that the chart includes. */
static inline int64_t view__live_all(const struct view_live_step *step)
{
	return step->always + step->rest;
}

static inline int64_t view__live_bytes(const struct view_liveness *live,
				       const struct view_live_step *step)
{
	return step->rest + (live->always_live ? step->always : 0);
}

/* The window is the whole program. */
static inline bool view__live_shows_all(const struct view_liveness *live)
{
	return live->window.from == live->extent.from && live->window.to == live->extent.to;
}

#endif /* VIEW_LIVENESS_INTERNAL_H */
