/*
 * Evaluation of losses (value and gradient in one pass over the outputs) and metrics (sums over the
 * rows of batches). See model/learn/loss.h and metric.h for the formulas. No state, no allocation.
 */
#ifndef MEASURE_RUN_H
#define MEASURE_RUN_H

#include "common/err.h"
#include "model/learn/loss.h"
#include "model/learn/metric.h"
#include "model/learn/targets.h"

/* Return the targets of a row, which lie *@step apart; 0: one for all outputs. A class number is
 * stored in *@number. */
static inline const float *measure_targets(const struct targets *targets, int64_t row,
					   float *number, int64_t *step)
{
	*step = !targets->classes && targets->width > 1;
	if (!targets->classes)
		return targets->values + row * targets->width;
	*number = (float)targets->classes[row];
	return number;
}

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

/* ---- classes --------------------------------------------------------------------------------- */

/* The index of the greatest value: the first of equals, NaN is skipped (0 if all are NaN). */
int64_t class_greatest(const float *x, int64_t count);

/*
 * How often each class was a target, and how often it was mispredicted: input of the health rule
 * for class imbalance.
 *
 * Counts are exact, and merging adds them, so each replica (or thread) has separate counts. Adding
 * a batch allocates nothing. No locks: one thread at a time.
 */

/* Minimum items per class, on average, to report imbalance: where 50 are expected, random draws
 * hardly ever give fewer than 25 or more than 80. For 10 classes that is 500, SageMaker Debugger's
 * number. */
#define CLASS_ITEMS_LEAST 50

struct class_counts {
	int64_t *targets, *missed; /* [classes] */
	int64_t classes, items;
	int64_t predicted; /* items whose prediction is known */
};

/* @classes >= 1, numbered from 0. On failure *@out is empty. */
enum status class_counts_init(struct class_counts *out, int64_t classes, struct err *err);
void class_counts_fini(struct class_counts *counts); /* accepts an empty one */
void class_counts_clear(struct class_counts *counts);

/* Add the items of a batch. @outputs [batch, width]: the index of the greatest is the prediction
 * (the first of equals; NaN is skipped). @targets: class numbers, also as single values, or
 * vectors of `width` whose greatest is the class. Masked items and items of no class are not
 * counted. If @width is not the number of classes (a single output) there is no prediction. */
void class_counts_add(struct class_counts *counts, const float *outputs,
		      const struct targets *targets, int64_t batch, int64_t width);
void class_counts_merge(struct class_counts *into, const struct class_counts *from);

struct class_figures {
	int64_t items;
	/* The most frequent class over the least frequent one that occurred; NaN below
	 * CLASS_ITEMS_LEAST items per class on average. */
	double imbalance;
	/* Over the classes, the greatest fraction of items that were mispredicted; NaN: unknown. */
	double misprediction;
};
struct class_figures class_counts_figures(const struct class_counts *counts);

#endif /* MEASURE_RUN_H */
