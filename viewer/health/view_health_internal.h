/*
 * The state of the screen Health, shared by the files that load it and draw it.
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

/* X(way to look, title) */
#define VIEW_HEALTH_WAYS(X)                                                                        \
	X(RULES, "rules")                                                                          \
	X(HITS, "hits")                                                                            \
	X(PARTS, "by layer")                                                                       \
	X(ORIGIN, "where bad numbers began")

enum view_health_way {
#define VIEW_HEALTH_WAY_ENUM(way, title) VIEW_HEALTH_##way,
	VIEW_HEALTH_WAYS(VIEW_HEALTH_WAY_ENUM)
#undef VIEW_HEALTH_WAY_ENUM
	VIEW_HEALTH_WAY_COUNT
};

/* X(column of `health`, title) */
#define VIEW_HEALTH_PARTS_OF(X)                                                                    \
	X(layer, "by layer")                                                                       \
	X(key, "by tensor")                                                                        \
	X(stage, "by stage")                                                                       \
	X(phase, "by phase")                                                                       \
	X(epoch, "by epoch")

enum view_health_part {
#define VIEW_HEALTH_PART_ENUM(part, title) VIEW_HEALTH_BY_##part,
	VIEW_HEALTH_PARTS_OF(VIEW_HEALTH_PART_ENUM)
#undef VIEW_HEALTH_PART_ENUM
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
	enum view_health_way way;
	enum view_health_part part;
	struct view_grid grid;
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

/* view_health.c */
/* Compute the number of rows above and below the grid, for a body of @context's size. */
void view__health_layout(struct view_health *screen, const struct view_context *context);

/* view_health_load.c */
enum status view__health_load(void *state, struct view_context *context, bool news,
			      struct err *err);
/* Switch to another way, with a new grid. */
void view__health_way(struct view_health *screen, enum view_health_way way);
/* Choose the page with the first hit at or after @time_ns, in the source or the @target. */
enum status view__health_page_at(struct view_health *screen, const struct view_context *context,
				 bool target, int64_t time_ns, struct err *err);
const char *view__health_title(const struct view_health *screen, enum view_health_way way);

#endif /* VIEW_HEALTH_INTERNAL_H */
