/*
 * Evaluation of losses (value and gradient in one pass over the outputs) and metrics (sums over the
 * rows of batches). See model/learn/loss.h and metric.h for the formulas. No state, no allocation.
 */
#ifndef MEASURE_RUN_H
#define MEASURE_RUN_H

#include "model/learn/loss.h"
#include "model/learn/metric.h"

/* ---- losses ---------------------------------------------------------------------------------- */

/* Whether the row is included in the mean. */
bool loss_counts(const struct loss *loss, const struct targets *targets, int64_t row);

/*
 * Return the mean loss of the included rows (loss.h), 0 if there are none. @outputs [rows, width]:
 * the model's. @logits: the input of its last activation if loss_takes_logits(), else NULL.
 * @targets: as loss_check() allowed; a single value per row (or a class number, if the loss takes
 * values) is compared with every output of the row. @gradient [rows, width]: with respect to the
 * logits if given, else to the outputs; NULL: not wanted. @each [rows]: the weighted loss of each
 * row, 0 for rows not included; NULL: not wanted.
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
 * Add the rows of a batch to the metric's states (metric.h). @outputs [rows, width], @targets: as
 * metric_get() allowed. The states of several batches and replicas are added element by element.
 */
void metric_run(const struct metric *metric, const float *outputs, const struct targets *targets,
		int64_t rows, int64_t width, double *states);
/* The metric's value; NaN: the mean of no values. */
double metric_result(const struct metric *metric, const double *states);

/* The index of the greatest value: the first of equals, NaN is skipped (0 if all are NaN). */
int64_t metric_greatest(const float *x, int64_t count);

#endif /* MEASURE_RUN_H */
