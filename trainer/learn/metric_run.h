/*
 * Metrics at work: sums over the items of batches. model/learn/metric.h says what each is.
 */
#ifndef METRIC_RUN_H
#define METRIC_RUN_H

#include "model/learn/metric.h"

struct metric_sum {
	double total;
	int64_t count; /* items */
};

/* Add the items of a batch to *@sum: @outputs [batch, width], @targets as metric_get() allowed. */
void metric_run(const struct metric *metric, const float *outputs, const struct targets *targets,
		int64_t batch, int64_t width, struct metric_sum *sum);

/* The place of the greatest: the first of equals, NaN is passed over (0 where there is nothing
 * else). */
int64_t metric_greatest(const float *x, int64_t count);

#endif /* METRIC_RUN_H */
