/*
 * The state of the screen Health, which its tests look into.
 *
 * There may be many hits: one page of them is read by row id; totals come from the sums, or from a
 * sample of every n-th hit.
 */
#ifndef VIEW_HEALTH_INTERNAL_H
#define VIEW_HEALTH_INTERNAL_H

#include "viewer/draw/view_grid.h"
#include "viewer/view_screen.h"

#define VIEW_HEALTH_PAGE    2000 /* hits of the table at a time */
#define VIEW_HEALTH_SAMPLE  8192 /* hits looked at for the strip and the breakdown */
#define VIEW_HEALTH_BUCKETS 240  /* of time, in the strip */
#define VIEW_HEALTH_SQL     4096

enum view_health_way {
	VIEW_HEALTH_RULES,
	VIEW_HEALTH_HITS,
	VIEW_HEALTH_PARTS,
	VIEW_HEALTH_ORIGIN,
	VIEW_HEALTH_WAY_COUNT
};

enum view_health_part {
	VIEW_HEALTH_BY_LAYER,
	VIEW_HEALTH_BY_KEY,
	VIEW_HEALTH_BY_STAGE,
	VIEW_HEALTH_BY_PHASE,
	VIEW_HEALTH_BY_EPOCH,
	VIEW_HEALTH_PART_COUNT
};

/* The hits of one report over its run. */
struct view_health_strip {
	int64_t hits;  /* rows of hits */
	int64_t every; /* of those each such one was looked at; 1: all */
	int64_t until_ns;
	double bucket[VIEW_HEALTH_BUCKETS]; /* hits, by time from 0 to until_ns */
};

struct view_health {
	struct view_grid grid; /* first: view_state_grid() */
	enum view_health_way way;
	enum view_health_part part;
	bool ranked[VIEW_HEALTH_WAY_COUNT]; /* its first order has been set */
	int64_t page;                       /* first row id of the hits shown */
	struct view_health_strip source, target;
	char origin[320];          /* where bad numbers began, in words; "": nowhere */
	bool bad;                  /* there are bad numbers */
	char sql[VIEW_HEALTH_SQL]; /* behind the grid */
	int head, foot;            /* rows above the grid and under it ... */
	int why_rows;              /* ... of the latter, those that explain a rule */
	int grid_height;
};

#endif /* VIEW_HEALTH_INTERNAL_H */
