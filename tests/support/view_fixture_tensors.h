/*
 * A recording of tensors for the viewer's tests: statistics, histograms, captures in pieces with
 * bad numbers, rules and their hits.
 */
#ifndef SUPPORT_VIEW_FIXTURE_TENSORS_H
#define SUPPORT_VIEW_FIXTURE_TENSORS_H

#include <stdbool.h>

#define VIEW_FIXTURE_TENSORS 4   /* the last one is watched without rows */
#define VIEW_FIXTURE_EVERY   10  /* steps between captures */
#define VIEW_FIXTURE_PIECE   100 /* bytes of a capture's piece */
#define VIEW_FIXTURE_BAD     7   /* the step with NaN and Inf */

struct view_fixture_tensors {
	int steps;
	int hits;     /* of rules; 0: no bad number either */
	double scale; /* of statistics and kept values */
	/* What another run may have otherwise; all 0: as usual. */
	int replicas;     /* 0: one. Replica r's statistics are 1 + r times those of the first */
	int microbatches; /* of a weight update; 0: none are told */
	int more;         /* in each bin of each histogram */
	bool nan;         /* no statistic is a number */
	bool histograms_none, captures_none;
	bool captures_empty; /* of no bytes */
	const char *shape;   /* of captures; NULL: (3, 4, 5) */
	const char *suffix;  /* of all keys; NULL: none */
};

/* Write @path, which must not exist; false: it could not be written. */
bool view_fixture_tensors_write(const char *path, const struct view_fixture_tensors *params);

#endif /* SUPPORT_VIEW_FIXTURE_TENSORS_H */
