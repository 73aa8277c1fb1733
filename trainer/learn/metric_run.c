/*
 * Evaluation of metrics: means over rows, and results of counts over all rows. No state: everything
 * is in the caller's memory.
 */
#include <math.h>

#include "common/elementary.h"
#include "common/minmax.h"
#include "trainer/learn/measure_run.h"

#define AUC_EPSILON 1e-7f /* Keras's backend.epsilon() */

struct metric_item {
	const struct metric *metric;
	const float *p; /* [width]: outputs */
	int64_t width;
	const float *y; /* targets, @y_step apart; a class number is one float */
	int64_t y_step; /* 1; 0: one target for all outputs */
	double weight;
};

/* ---- the measures ---------------------------------------------------------------------------- */

static bool metric_same(float a, float b)
{
	return !(a < b) && !(a > b) && !isnan(a) && !isnan(b);
}

static double metric_binary(const struct metric_item *item)
{
	int64_t right = 0;

	for (int64_t j = 0; j < item->width; j++) {
		float predicted = item->p[j] > item->metric->threshold ? 1.0f : 0.0f;

		right += metric_same(predicted, item->y[j * item->y_step]);
	}
	return (double)right / (double)item->width;
}

static double metric_categorical(const struct metric_item *item)
{
	return class_greatest(item->p, item->width) == class_greatest(item->y, item->width);
}

static double metric_sparse(const struct metric_item *item)
{
	return metric_same((float)class_greatest(item->p, item->width), item->y[0]);
}

/* TensorFlow's in_top_k, which stops once more than k outputs are greater. */
static double metric_in_top_k(const struct metric_item *item, int64_t label)
{
	int64_t above = 0;

	if (label < 0 || label >= item->width || !isfinite(item->p[label]))
		return 0.0;
	for (int64_t j = 0; j < item->width && above <= item->metric->k; j++) {
		if (!isfinite(item->p[j]))
			return 0.0;
		above += item->p[j] > item->p[label];
	}
	return above < item->metric->k;
}

static double metric_top_k(const struct metric_item *item)
{
	return metric_in_top_k(item, class_greatest(item->y, item->width));
}

static double metric_sparse_top_k(const struct metric_item *item)
{
	float label = item->y[0];

	return label >= 0.0f && label < (float)item->width ? metric_in_top_k(item, (int64_t)label)
							   : 0.0;
}

/* ---- means ----------------------------------------------------------------------------------- */

static double (*const metric_items[METRIC_KINDS])(const struct metric_item *item) = {
	[METRIC_BINARY] = metric_binary,
	[METRIC_CATEGORICAL] = metric_categorical,
	[METRIC_SPARSE_CATEGORICAL] = metric_sparse,
	[METRIC_TOP_K] = metric_top_k,
	[METRIC_SPARSE_TOP_K] = metric_sparse_top_k,
};

/* Like Keras's divide_no_nan, return 0 if the weights sum to 0. */
static double mean_result(const struct metric *metric, const double *states)
{
	if (states[1] > 0.0 || states[1] < 0.0)
		return states[0] / states[1];
	return metric->weighted ? 0.0 : (double)NAN;
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* Keras's divide_no_nan. */
static double ratio(double part, double whole)
{
	return whole > 0.0 ? part / whole : 0.0;
}

enum {
	COUNT_TRUE_POSITIVE,
	COUNT_PREDICTED,
	COUNT_ACTUAL
};

static void count_positives(const struct metric_item *item, double *counts)
{
	for (int64_t j = 0; j < item->width; j++) {
		const bool predicted = item->p[j] > item->metric->threshold;
		const bool actual = item->y[j * item->y_step] != 0.0f;

		counts[COUNT_TRUE_POSITIVE] += predicted && actual ? item->weight : 0.0;
		counts[COUNT_PREDICTED] += predicted ? item->weight : 0.0;
		counts[COUNT_ACTUAL] += actual ? item->weight : 0.0;
	}
}

static double precision_result(const struct metric *metric, const double *counts)
{
	(void)metric;
	return ratio(counts[COUNT_TRUE_POSITIVE], counts[COUNT_PREDICTED]);
}

static double recall_result(const struct metric *metric, const double *counts)
{
	(void)metric;
	return ratio(counts[COUNT_TRUE_POSITIVE], counts[COUNT_ACTUAL]);
}

/* The class of an item's target; -1: none. */
static int64_t class_of(const struct metric_item *item)
{
	const double label = (double)item->y[0];

	if (item->y_step > 0)
		return class_greatest(item->y, item->width);
	return label >= 0.0 && label < (double)item->metric->classes ? (int64_t)label : -1;
}

/* Rows of COUNT_..., one per class. Without a threshold the greatest output is the prediction. */
static void count_classes(const struct metric_item *item, double *counts)
{
	const bool greatest = isnan(item->metric->threshold);
	const int64_t best = class_greatest(item->p, item->width);
	const int64_t label = item->y_step > 0 ? -1 : class_of(item);

	for (int64_t c = 0; c < item->width; c++, counts += 3) {
		const bool predicted = greatest ? c == best : item->p[c] > item->metric->threshold;
		const bool actual = item->y_step > 0 ? item->y[c] != 0.0f : c == label;

		counts[COUNT_TRUE_POSITIVE] += predicted && actual ? item->weight : 0.0;
		counts[COUNT_PREDICTED] += predicted ? item->weight : 0.0;
		counts[COUNT_ACTUAL] += actual ? item->weight : 0.0;
	}
}

/* The F1 of a class is 2 true positives / (predicted + actual). */
static double f1_result(const struct metric *metric, const double *counts)
{
	double right = 0.0, both = 0.0, actual = 0.0, mean = 0.0, weighted = 0.0;

	for (int64_t c = 0; c < metric->classes; c++, counts += 3) {
		const double sum = counts[COUNT_PREDICTED] + counts[COUNT_ACTUAL];
		const double f1 = ratio(2.0 * counts[COUNT_TRUE_POSITIVE], sum);

		right += counts[COUNT_TRUE_POSITIVE];
		both += sum;
		actual += counts[COUNT_ACTUAL];
		mean += f1 / (double)metric->classes;
		weighted += f1 * counts[COUNT_ACTUAL];
	}
	if (metric->average == METRIC_MICRO)
		return ratio(2.0 * right, both);
	return metric->average == METRIC_MACRO ? mean : ratio(weighted, actual);
}

/* Update a confusion matrix: rows are the targets' classes, columns the predicted ones. */
static void count_confusions(const struct metric_item *item, double *counts)
{
	const int64_t label = class_of(item), predicted = class_greatest(item->p, item->width);

	if (label >= 0 && label < item->metric->classes && predicted < item->metric->classes)
		counts[label * item->metric->classes + predicted] += item->weight;
}

/* Mean over the classes that occur or are predicted: intersection over union. */
static double iou_result(const struct metric *metric, const double *counts)
{
	const int64_t classes = metric->classes;
	double sum = 0.0;
	int64_t valid = 0;

	for (int64_t c = 0; c < classes; c++) {
		const double right = counts[c * classes + c];
		double either = -right;

		for (int64_t other = 0; other < classes; other++)
			either += counts[c * classes + other] + counts[other * classes + c];
		sum += ratio(right, either);
		valid += either > 0.0;
	}
	return ratio(sum, (double)valid);
}

/* The fraction of the counts on the diagonal. */
static double diagonal_result(const struct metric *metric, const double *counts)
{
	double right = 0.0, all = 0.0;

	for (int64_t i = 0; i < metric->classes * metric->classes; i++) {
		all += counts[i];
		right += i % (metric->classes + 1) == 0 ? counts[i] : 0.0;
	}
	return ratio(right, all);
}

/* ---- AUC ------------------------------------------------------------------------------------- */

/* Keras's thresholds: slightly below 0, i / (count - 1), slightly above 1. */
static float auc_threshold(const struct metric *metric, int64_t i)
{
	if (i == 0)
		return -AUC_EPSILON;
	if (i == metric->thresholds - 1)
		return 1.0f + AUC_EPSILON;
	return (float)((double)i / (double)(metric->thresholds - 1));
}

/* The number of thresholds below @p; 0 for NaN. */
static int64_t auc_above(const struct metric *metric, float p)
{
	const int64_t count = metric->thresholds;
	int64_t at;

	if (!(p > auc_threshold(metric, 0)))
		return 0;
	at = p >= 1.0f ? count - 2 : (int64_t)((double)p * (double)(count - 1));
	at = max(at, 0);
	while (at < count && p > auc_threshold(metric, at))
		at++;
	while (at > 0 && !(p > auc_threshold(metric, at - 1)))
		at--;
	return at;
}

/* Count outputs by the thresholds below them: of negative targets, then of positive ones. */
static void count_thresholds(const struct metric_item *item, double *counts)
{
	const int64_t bins = item->metric->thresholds + 1;

	for (int64_t j = 0; j < item->width; j++)
		counts[(item->y[j * item->y_step] != 0.0f ? bins : 0) +
		       auc_above(item->metric, item->p[j])] += item->weight;
}

/* The counts above a threshold. */
struct auc_point {
	double right, wrong; /* true and false positives */
};

/* The area between two thresholds of the precision-recall curve, by Davis and Goadrich: between
 * them true positives grow in proportion to predicted positives. */
static double auc_pr_step(struct auc_point low, struct auc_point high, double actual)
{
	const double predicted_low = low.right + low.wrong,
		     predicted_high = high.right + high.wrong;
	const double slope = ratio(low.right - high.right, predicted_low - predicted_high);
	const double intercept = high.right - slope * predicted_high;
	const double part =
		predicted_low > 0.0 && predicted_high > 0.0 ? predicted_low / predicted_high : 1.0;

	return ratio(slope * (low.right - high.right + intercept * elementary_log(part)), actual);
}

static double auc_roc_step(struct auc_point low, struct auc_point high, double actual,
			   double not_actual)
{
	return (ratio(low.wrong, not_actual) - ratio(high.wrong, not_actual)) *
	       (ratio(low.right, actual) + ratio(high.right, actual)) / 2.0;
}

static double auc_result(const struct metric *metric, const double *counts)
{
	const int64_t bins = metric->thresholds + 1;
	const double *negatives = counts, *positives = counts + bins;
	struct auc_point high = {0.0, 0.0}, low;
	double actual = 0.0, not_actual = 0.0, area = 0.0;

	for (int64_t b = 0; b < bins; b++) {
		actual += positives[b];
		not_actual += negatives[b];
	}
	for (int64_t t = metric->thresholds - 1; t >= 0; t--, high = low) {
		low = (struct auc_point){high.right + positives[t + 1],
					 high.wrong + negatives[t + 1]};
		if (t < metric->thresholds - 1)
			area += metric->pr ? auc_pr_step(low, high, actual)
					   : auc_roc_step(low, high, actual, not_actual);
	}
	return area;
}

/* ---- running --------------------------------------------------------------------------------- */

static const struct {
	void (*count)(const struct metric_item *item, double *counts);
	double (*result)(const struct metric *metric, const double *counts);
} metric_counts[METRIC_KINDS] = {
	[METRIC_PRECISION] = {count_positives, precision_result},
	[METRIC_RECALL] = {count_positives, recall_result},
	[METRIC_AUC] = {count_thresholds, auc_result},
	[METRIC_F1] = {count_classes, f1_result},
	[METRIC_MEAN_IOU] = {count_confusions, iou_result},
	[METRIC_ONE_HOT_MEAN_IOU] = {count_confusions, iou_result},
	[METRIC_CONFUSION] = {count_confusions, diagonal_result},
};

double metric_result(const struct metric *metric, const double *states)
{
	if (metric->kind < METRIC_KINDS && metric_counts[metric->kind].result)
		return metric_counts[metric->kind].result(metric, states);
	if (metric->kind == METRIC_PERPLEXITY)
		return elementary_pow(M_E, mean_result(metric, states));
	return mean_result(metric, states);
}

void metric_run(const struct metric *metric, const float *outputs, const struct targets *targets,
		int64_t rows, int64_t width, double *states)
{
	double total = 0.0, weights = 0.0;
	int64_t counted = 0;

	for (int64_t i = 0; i < rows; i++) {
		if (!loss_counts(&metric->loss, targets, i))
			continue;
		counted++;
		weights += targets->weights ? (double)targets->weights[i] : 1.0;
	}
	if (metric->kind == METRIC_LOSS || metric->kind == METRIC_PERPLEXITY) {
		states[0] += loss_run(&metric->loss, outputs, NULL, targets, rows, width, NULL) *
			     (double)counted;
		states[1] += weights;
		return;
	}
	for (int64_t i = 0; i < rows; i++) {
		struct metric_item item = {.metric = metric,
					   .p = outputs + i * width,
					   .width = width,
					   .weight = targets->weights ? (double)targets->weights[i]
								      : 1.0};
		float number;

		if (!loss_counts(&metric->loss, targets, i))
			continue;
		item.y = measure_targets(targets, i, &number, &item.y_step);
		if (metric_counts[metric->kind].count)
			metric_counts[metric->kind].count(&item, states);
		else
			total += item.weight * metric_items[metric->kind](&item);
	}
	if (metric_items[metric->kind]) {
		states[0] += total;
		states[1] += weights;
	}
}
