/*
 * The state of the screen Insights, and what others take of it.
 *
 * Invariant after a load: the grid's rows are the insights found that match the choices; the text
 * describes the one under the cursor.
 */
#ifndef VIEW_INSIGHTS_INTERNAL_H
#define VIEW_INSIGHTS_INTERNAL_H

#include "reports/insights/report_insights.h"
#include "viewer/draw/view_blocks.h"
#include "viewer/draw/view_grid.h"
#include "viewer/view_layout.h"
#include "viewer/view_screen.h"

enum view_insights_show {
	VIEW_INSIGHTS_BOTH, /* the list and what the selected one says */
	VIEW_INSIGHTS_TOLD,
	VIEW_INSIGHTS_LIST,
	VIEW_INSIGHTS_SHOWS
};

#define VIEW_ALL_SEVERITIES REPORT_INSIGHT_SEVERITIES

/* The areas within the body; one that does not fit, or is not wanted, is empty. */
struct view_insights_layout {
	struct view_rect list, rule, told;
	bool beside; /* `rule` is a column */
};

struct view_insights {
	struct view_grid grid;           /* first: view_state_grid() */
	struct report_insights found[2]; /* in the Source and, comparing, in the Target */
	struct view_blocks told;
	struct view_insights_layout areas;
	enum view_insights_show show;
	unsigned severity; /* shown alone, or VIEW_ALL_SEVERITIES */
	int64_t ipu;       /* shown alone, or IPS_NULL */
	bool chosen;       /* the choices are others than those of the list */
	bool compared;
	const struct report_insight *selected[2]; /* NULL: not in that report */
};

/* view_insights.c */
struct view_insights_layout view_insights_areas(struct view_rect body, int rows,
						enum view_insights_show show);
/* Get the place that @insight is about. */
void view__insight_place(const struct report_insight *insight, struct view_place *out);

#endif /* VIEW_INSIGHTS_INTERNAL_H */
