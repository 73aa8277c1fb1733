/*
 * Metrics at work. No state.
 */
#include "trainer/learn/metric_run.h"

#include <float.h>
#include <math.h>

#include "trainer/learn/loss_run.h"

struct metric_item {
	const struct metric *metric;
	const float *p; /* [width]: outputs */
	int64_t width;
	const float *y; /* targets, @y_step apart; of a class number: one float */
	int64_t y_step; /* 0: one for all outputs */
};

/* ---- the measures ---------------------------------------------------------------------------- */

int64_t metric_greatest(const float *x, int64_t count)
{
	float most = -FLT_MAX;
	int64_t at = 0;

	for (int64_t j = 0; j < count; j++) {
		if (x[j] > most) {
			most = x[j];
			at = j;
		}
	}
	return at;
}

static bool metric_same(float a, float b)
{
	return !(a < b) && !(a > b) && !isnan(a) && !isnan(b);
}

static double metric_binary(const struct metric_item *item)
{
	int64_t right = 0;

	for (int64_t j = 0; j < item->width; j++) {
		float said = item->p[j] > item->metric->threshold ? 1.0f : 0.0f;

		right += metric_same(said, item->y[j * item->y_step]);
	}
	return (double)right / (double)item->width;
}

static double metric_categorical(const struct metric_item *item)
{
	return metric_greatest(item->p, item->width) == metric_greatest(item->y, item->width);
}

static double metric_sparse(const struct metric_item *item)
{
	return metric_same((float)metric_greatest(item->p, item->width), item->y[0]);
}

/* TensorFlow's in_top_k: it stops looking where more than k are above. */
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
	return metric_in_top_k(item, metric_greatest(item->y, item->width));
}

static double metric_sparse_top_k(const struct metric_item *item)
{
	float label = item->y[0];

	return label >= 0.0f && label < (float)item->width ? metric_in_top_k(item, (int64_t)label)
							   : 0.0;
}

static double metric_absolute_error(const struct metric_item *item)
{
	double sum = 0.0;

	for (int64_t j = 0; j < item->width; j++)
		sum += (double)fabsf(item->p[j] - item->y[j * item->y_step]);
	return sum / (double)item->width;
}

/* ---- running --------------------------------------------------------------------------------- */

static double (*const metric_items[METRIC_KINDS])(const struct metric_item *item) = {
	[METRIC_BINARY] = metric_binary,
	[METRIC_CATEGORICAL] = metric_categorical,
	[METRIC_SPARSE_CATEGORICAL] = metric_sparse,
	[METRIC_TOP_K] = metric_top_k,
	[METRIC_SPARSE_TOP_K] = metric_sparse_top_k,
	[METRIC_ABSOLUTE_ERROR] = metric_absolute_error,
};

void metric_run(const struct metric *metric, const float *outputs, const struct targets *targets,
		int64_t batch, int64_t width, struct metric_sum *sum)
{
	struct loss_result result;
	double total = 0.0;

	sum->count += batch;
	if (metric->kind == METRIC_LOSS) {
		loss_run(&metric->loss, outputs, NULL, targets, batch, width, NULL, &result);
		sum->total += result.loss * (double)batch;
		return;
	}
	for (int64_t i = 0; i < batch; i++) {
		struct metric_item item = {
			.metric = metric, .p = outputs + i * width, .width = width};
		float number;

		if (targets->classes) {
			number = (float)targets->classes[i];
			item.y = &number;
		} else {
			item.y = targets->values + i * targets->width;
			item.y_step = targets->width > 1;
		}
		total += metric_items[metric->kind](&item);
	}
	sum->total += total;
}
