/*
 * State of the Summary screen, shared by the files that load and fill it.
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
#define VIEW_LATEST        6 /* tensors whose latest statistics are shown */
#define VIEW_LATEST_NAME   96
#define VIEW_WORST_SIZE    512

/* Progress of a recording run. */
struct view_now {
	bool live;
	bool announced; /* progress comes from the run's announcement */
	struct report_progress progress;
	int64_t runs; /* number of latest pipeline runs behind the bubble below */
	const char *clock;
	double idle_fraction, theory_idle_fraction;
	struct view_latest {
		char key[VIEW_LATEST_NAME];
		int64_t step, weight_update; /* IPS_NULL: none */
		int64_t bad;                 /* NaN and infinite elements */
		double mean, std;
	} latest[VIEW_LATEST];
	int latest_count;
	double loss; /* the latest one; NaN: none */
	int64_t loss_step, loss_epoch;
	int64_t device_cycles; /* at the end of the last execution; <= 0: no device */
};

/* The run at a glance, with the main result of the insights. */
struct view_glance {
	bool begun;   /* of a large file, a first picture without the checks has been shown */
	bool checked; /* insights, trend, memory and machine have been read */
	enum view_state state;
	uint64_t checked_ns;
	int problems, advice;
	char worst[VIEW_WORST_SIZE]; /* the first problem or advice; "": none */
	enum report_insight_severity worst_severity;
	struct view_place worst_place;
	double memory; /* used share of the fullest tile; NaN: unknown */
	int64_t memory_ipu, memory_tile;
	int64_t memory_bytes, memory_capacity, memory_tiles; /* of all tiles; <= 0: unknown */
	int devices; /* GPUs and other accelerators; 0: none */
	/* The one with the longest time from its first kernel to its last; its texts are NULL. */
	struct report_accelerator device;
	char device_name[128];
	struct view_trend trend;
	/* Training: steps done, their cost, and the planned steps (<= 0: unknown). */
	int64_t steps, host_ns, cycles, steps_of, trained_ns;
};

/* The simulated machine and its compiled program; values <= 0: unknown. */
struct view_machine {
	int64_t tiles, tile_bytes; /* per IPU, per tile */
	int64_t programs, operations, compute_sets, vertices, variables;
	double clock_hz;
	bool traced; /* the device's steps are recorded by tile */
};

struct view_summary {
	struct report_summary summary;
	struct view_blocks blocks;
	struct view_now now;
	struct view_glance glance;
	struct view_machine machine;
	struct report_table run; /* settings of the run file: key, value */
	int width;               /* for which the lines are wrapped */
	bool started;            /* has been loaded */
	int64_t large_bytes;     /* databases above this size show a first picture without checks */
	struct view_place links[VIEW_SUMMARY_LINKS + 1]; /* the last: of lines without a link */
	int leads[VIEW_SUMMARY_LINKS]; /* enum view_screen; VIEW_SCREENS: the user chooses */
	int link_count;

	/* Comparison with another report. */
	bool compared; /* since the last load */
	struct report_diff diff;
	struct view_grid grid;
	bool all_compared; /* including tensors by step */
};

/* Comparison of two reports. */
#define VIEW_COMPARE_HEAD 3 /* rows above the table */

/* The functions that read do nothing after a failure, which @err (not NULL) keeps. */

/* view_summary_blocks.c */
/* Add the blocks of what the run achieved, and of what it was. */
void view__summary_results(struct view_summary *screen);
void view__summary_facts(struct view_summary *screen, const struct view_source *source);
/* Link the line added last to a place, which the caller fills in, on the screen @leads
 * (VIEW_SCREENS: one of those that know the place). With too many links the place leads
 * nowhere. */
struct view_place *view__summary_link(struct view_summary *screen, enum view_screen leads);
/* The stage with the most time on a clock; -1 with fewer than two stages. */
int64_t view__summary_slowest(const struct report_summary *summary, int clock);
/* Read the facts of the machine, the program and the run file. */
void view__summary_machine(struct view_summary *screen, struct prof_db *db, struct err *err);

/* view_summary_compare.c */
void view__compare_load(struct view_summary *screen, struct view_context *context, bool news,
			struct err *err);
void view__compare_fini(struct view_summary *screen);
void view__compare_draw(const struct view_summary *screen, const struct view_context *context,
			struct view_pane *pane);
/* Write the place of the row under the cursor to @out (cleared by the caller), or return the screen
 * that shows it. false and VIEW_SCREENS: the row has no link. */
bool view__compare_place(const struct view_summary *screen, struct view_place *out);
enum view_screen view__compare_leads(const struct view_summary *screen);

/* view_summary_glance.c */
/* Read what the glance shows. Repeated only occasionally while the run records. */
void view__summary_check(struct view_summary *screen, struct view_context *context,
			 struct err *err);
void view__summary_glance(struct view_summary *screen);
/* Time until training ends, at its pace so far; -1: unknown. */
int64_t view__summary_left_ns(const struct view_glance *glance);

#endif /* VIEW_SUMMARY_INTERNAL_H */
