/*
 * The merged recording of ranks that exchange gradients, by formulas.
 */
#ifndef SUPPORT_VIEW_FIXTURE_RANKS_H
#define SUPPORT_VIEW_FIXTURE_RANKS_H

#include <stdbool.h>

struct view_fixture_ranks {
	int ranks, updates, buckets;
	bool plain; /* calls of a program that knows no weight updates */
};

/* Write @path, which must not exist; false: it could not be written. */
bool view_fixture_ranks_write(const char *path, const struct view_fixture_ranks *params);

#endif /* SUPPORT_VIEW_FIXTURE_RANKS_H */
