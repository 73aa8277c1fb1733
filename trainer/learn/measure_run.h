/*
 * Losses at work, value and gradient in one pass over the outputs, and metrics, sums over the rows
 * of batches. model/learn/loss.h and metric.h say what each is and have the formulas. No state,
 * nothing is allocated.
 */
#ifndef MEASURE_RUN_H
#define MEASURE_RUN_H

#include "model/learn/loss.h"
#include "model/learn/metric.h"

/* ---- losses ---------------------------------------------------------------------------------- */

/* Is the row one of those that the mean is of? */
bool loss_counts(const struct loss *loss, const struct targets *targets, int64_t row);

/*
 * The mean loss of the rows that count (loss.h), 0 where none does. @outputs [rows, width]: what
 * the model gives. @logits: the input of its last activation when loss_takes_logits(), else NULL.
 * @targets: as loss_check() allowed; a single value per row (or a class number, where the loss
 * takes values) is compared with every output of the row. @gradient [rows, width]: of the logits
 * when given, else of the outputs; NULL: not wanted. @each [rows]: the loss of each row, weighed, 0
 * of one that does not count; NULL: not wanted.
 */
double loss_run_each(const struct loss *loss, const float *outputs, const float *logits,
		     const struct targets *targets, int64_t rows, int64_t width, float *gradient,
		     float *each);

static inline double loss_run(const struct loss *loss, const float *outputs, const float *logits,
			      const struct targets *targets, int64_t rows, int64_t width,
			      float *gradient)
{
	return loss_run_each(loss, outputs, logits, targets, rows, width, gradient, NULL);
}

/* ---- metrics --------------------------------------------------------------------------------- */

/*
 * Add the rows of a batch to the metric's states (metric.h): @outputs [rows, width], @targets as
 * metric_get() allowed. States of several batches and replicas are added up one by one.
 */
void metric_run(const struct metric *metric, const float *outputs, const struct targets *targets,
		int64_t rows, int64_t width, double *states);
/* What is shown; NaN: a mean of nothing. */
double metric_result(const struct metric *metric, const double *states);

/* The place of the greatest: the first of equals, NaN is passed over (0 where there is nothing
 * else). */
int64_t metric_greatest(const float *x, int64_t count);

#endif /* MEASURE_RUN_H */
