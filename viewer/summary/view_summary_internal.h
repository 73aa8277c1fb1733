/*
 * The state of the screen Summary, shared by the files that load and fill it.
 */
#ifndef VIEW_SUMMARY_INTERNAL_H
#define VIEW_SUMMARY_INTERNAL_H

#include <stdio.h>

#include "reports/diff/report_diff.h"
#include "reports/insights/report_insights.h"
#include "profiler/prof_announce.h"
#include "reports/summary/report_summary.h"
#include "viewer/draw/view_blocks.h"
#include "viewer/draw/view_grid.h"
#include "viewer/metrics/view_metrics_read.h"

#define VIEW_SUMMARY_LINKS 64
#define VIEW_LATEST        6 /* tensors whose last statistics are shown */
#define VIEW_LATEST_NAME   96
#define VIEW_WORST_SIZE    512

/* A run that is recording: how far it is. */
struct view_now {
	bool live;
	bool told; /* by its announcement */
	struct report_progress progress;
	int64_t runs; /* the last pipeline runs that the bubble below is of */
	const char *clock;
	double idle_fraction, theory_idle_fraction;
	struct view_latest {
		char key[VIEW_LATEST_NAME];
		int64_t step, weight_update; /* IPS_NULL: none */
		int64_t bad;                 /* NaN and infinite elements */
		double mean, std;
	} latest[VIEW_LATEST];
	int latest_count;
	double loss; /* the last that is known; NaN: none */
	int64_t loss_step, loss_epoch;
	int64_t device_cycles; /* at the end of the last execution; not positive: no device */
};

/* What is said of the run at a glance, and of insights what they find. */
struct view_glance {
	bool begun; /* a picture without what is looked for has been there, where that takes long */
	bool looked; /* for insights and the trend */
	enum view_state state;
	uint64_t looked_ns;
	int problems, advice;
	char worst[VIEW_WORST_SIZE]; /* the first problem or advice; "": there is none */
	enum report_insight_severity worst_severity;
	struct view_place worst_place;
	double memory; /* of the fullest tile, as a share of what it has; NaN: unknown */
	int64_t memory_ipu, memory_tile;
	int64_t memory_bytes, memory_capacity, memory_tiles; /* of all; not positive: unknown */
	struct view_trend trend;
	/* Of training: what is done, what it took, and steps in all (not positive: unknown). */
	int64_t steps, host_ns, cycles, steps_of, trained_ns;
};

/* The simulated machine and the program that was compiled for it; not positive: unknown. */
struct view_machine {
	int64_t tiles, tile_bytes; /* of an IPU, of a tile */
	int64_t programs, operations, compute_sets, vertices, variables;
	double clock_hz;
	bool traced; /* steps of the device are recorded, tile by tile */
};

struct view_summary {
	struct report_summary summary;
	struct view_blocks blocks;
	struct view_now now;
	struct view_glance glance;
	struct view_machine machine;
	struct report_table run; /* settings of the run file: key, value */
	int width;               /* that the lines are for */
	bool started;            /* has been loaded */
	int64_t large_bytes;     /* of a database: the first picture does not wait for the glance */
	struct view_place links[VIEW_SUMMARY_LINKS];
	int leads[VIEW_SUMMARY_LINKS]; /* enum view_screen; VIEW_SCREENS: to any of them */
	int link_count;

	/* Beside another report. */
	struct report_diff diff;
	struct view_grid grid;
	bool all_compared; /* tensors by step, too */
	int whole_rows;    /* below the table: what it cuts of the cursor's row */
};

/* Two reports. */
#define VIEW_COMPARE_HEAD 3 /* rows above the table */

/* view_summary.c */
void view__summary_live(struct view_summary *screen);

/* view_summary_blocks.c */
void view__summary_fill(struct view_summary *screen, const struct view_source *source);
/* The line added last leads to this place, on the screen @leads (VIEW_SCREENS: one of those that
 * know it); NULL: there are enough. */
struct view_place *view__summary_link(struct view_summary *screen, enum view_screen leads);
/* The stage with most time on a clock; -1: there is no other to be slower than. */
int64_t view__summary_slowest(const struct report_summary *summary, int clock);
/* Read what the run was made of, and its blocks. */
enum status view__summary_machine(struct view_summary *screen, struct prof_db *db, struct err *err);

/* view_summary_compare.c */
enum status view__compare_load(struct view_summary *screen, struct view_context *context, bool news,
			       struct err *err);
void view__compare_fini(struct view_summary *screen);
void view__compare_draw(const struct view_summary *screen, const struct view_context *context,
			struct view_pane *pane);
/* Of the table in a body of @height. */
int view__compare_height(const struct view_summary *screen, int height);
/* What the row under the cursor is about (@out is clear), and the screen
 * that shows it; false and VIEW_SCREENS: it leads nowhere. */
bool view__compare_place(const struct view_summary *screen, struct view_place *out);
enum view_screen view__compare_leads(const struct view_summary *screen);

/* view_summary_glance.c */
/* Find out what is worth saying, and its block. */
enum status view__summary_check(struct view_summary *screen, struct view_context *context,
				struct err *err);
void view__summary_glance(struct view_summary *screen);
/* Until training ends, at its pace so far; -1: unknown. */
int64_t view__summary_left_ns(const struct view_glance *glance);

#endif /* VIEW_SUMMARY_INTERNAL_H */
