/*
 * A recording of metrics alone: a loss per step and epoch, accuracies per epoch, evaluations.
 */
#ifndef SUPPORT_VIEW_FIXTURE_METRICS_H
#define SUPPORT_VIEW_FIXTURE_METRICS_H

#include <stdbool.h>

struct view_fixture_metrics {
	int epochs, steps; /* steps of each epoch */
	double factor;     /* of every loss */
	int nan_every; /* of the steps' losses every so many-th is NaN, the next one Inf; 0: none */
};

/* Write @path, which must not exist. The loss of step s is factor / (1 + s). */
bool view_fixture_metrics_write(const char *path, const struct view_fixture_metrics *params);

#endif /* SUPPORT_VIEW_FIXTURE_METRICS_H */
