/*
 * The state of the screen Summary, shared by the files that load and fill it.
 */
#ifndef VIEW_SUMMARY_INTERNAL_H
#define VIEW_SUMMARY_INTERNAL_H

#include <stdio.h>

#include "reports/diff/report_diff.h"
#include "reports/monitor/report_announce.h"
#include "reports/summary/report_summary.h"
#include "viewer/draw/view_blocks.h"
#include "viewer/draw/view_grid.h"

#define VIEW_SUMMARY_LINKS 64
#define VIEW_LATEST        6 /* tensors whose last statistics are shown */
#define VIEW_LATEST_NAME   96

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
		int64_t step, weight_update; /* INT64_MIN: none */
		int64_t bad;                 /* NaN and infinite elements */
		double mean, std;
	} latest[VIEW_LATEST];
	int latest_count;
	double loss; /* the last that is known; NaN: none */
	int64_t loss_step, loss_epoch;
};

struct view_summary {
	struct report_summary summary;
	struct report_sums sums;
	struct view_blocks blocks;
	struct view_now now;
	bool started; /* has been loaded */
	struct view_place links[VIEW_SUMMARY_LINKS];
	int link_count;

	/* Beside another report. */
	struct report_diff diff;
	struct view_grid grid;
	bool all_compared; /* tensors by step, too */
};

/* view_summary_blocks.c */
void view__summary_fill(struct view_summary *screen, enum view_state state);
/* The line added last leads to this place; NULL: there are enough. */
struct view_place *view__summary_link(struct view_summary *screen);

/* view_summary_live.c: read how far the run is, and its block. */
enum status view__summary_now(struct view_summary *screen, struct view_context *context,
			      struct err *err);
void view__summary_live(struct view_summary *screen);

/* view_summary_compare.c: two reports. */
#define VIEW_COMPARE_HEAD 2 /* rows above the table */
enum status view__compare_load(struct view_summary *screen, struct view_context *context, bool news,
			       struct err *err);
void view__compare_fini(struct view_summary *screen);
void view__compare_draw(const struct view_summary *screen, const struct view_context *context,
			struct view_pane *pane);
int view__compare_height(int height); /* of the table in a body of @height */
bool view__compare_place(const struct view_summary *screen, struct view_place *out);

#endif /* VIEW_SUMMARY_INTERNAL_H */
