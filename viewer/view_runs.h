/*
 * The runs that one may want beside the report that is looked at: those of the working directory,
 * and of the folder that the report lies in.
 *
 * Threading: one thread. Ownership: the list owns its texts.
 */
#ifndef VIEW_RUNS_H
#define VIEW_RUNS_H

#include "common/arena.h"
#include "viewer/view_screen.h"

struct view_run {
	const char *path;
	const char *text; /* when it was recorded, its state, its model, its name */
	int64_t when_ns;  /* since 1970 */
};

/* Start with {0}. */
struct view_runs {
	struct view_run *items; /* the newest first */
	size_t count, capacity;
	struct arena arena;
};

/* Read them anew, all but the source; ST_INTERRUPTED: nobody waits. On failure the list is empty.
 * Of very many the newest files are looked at. */
enum status view_runs_read(struct view_runs *out, const struct view_context *context,
			   struct err *err);
void view_runs_free(struct view_runs *runs);

#endif /* VIEW_RUNS_H */
