/*
 * The runs to compare the open report with: those of the working directory, and of the folder that
 * contains the report.
 *
 * Threading: one thread. Ownership: the list owns its texts.
 */
#ifndef VIEW_RUNS_H
#define VIEW_RUNS_H

#include "common/arena.h"
#include "viewer/view_screen.h"

struct view_run {
	const char *path;
	const char *text;       /* start time, state, name, model */
	int64_t when_ns;        /* since 1970 */
	uint64_t device, inode; /* of the database */
};

/* Start with {0}. */
struct view_runs {
	struct view_run *items; /* the newest first */
	size_t count, capacity;
	struct arena arena;
};

/* Read the list again, without the source; ST_INTERRUPTED: cancelled. On failure the list is empty.
 * If there are too many, only the newest files are listed. */
enum status view_runs_read(struct view_runs *out, const struct view_context *context,
			   struct err *err);
void view_runs_free(struct view_runs *runs);

#endif /* VIEW_RUNS_H */
