/*
 * Idle time by cause, a piece of the window at a time: what its parts share.
 */
#ifndef VIEW_TIMELINE_CAUSES_H
#define VIEW_TIMELINE_CAUSES_H

#include "viewer/timeline/view_timeline_internal.h"

/* One work of a lane within a pipeline run (group, execution, weight update). */
struct view_work {
	int64_t lane, group, execution, weight_update;
	int64_t from, to, stage, microbatch;
	char phase;
};

struct view_piece {
	struct view_timeline *tl;
	int clock, level;          /* the level that bars are read at; -1: spans */
	struct arena bars;         /* until the next lane */
	struct view_window window; /* of the piece */
	int64_t group;
	struct view_work *works; /* owned; by run, lane and start */
	size_t count, capacity;
};

/* view_timeline_works.c: the works of @window, in place of those of the piece before. */
enum status view__piece_load(struct view_piece *piece, struct view_context *context,
			     struct view_window window, struct err *err);

#endif /* VIEW_TIMELINE_CAUSES_H */
