/*
 * Losses and metrics at work. No state: all is on the caller's memory.
 */
#include "trainer/learn/measure_run.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "common/elementary.h"
#include "trainer/kernels/kernel_elementary.h"

#define LOSS_EPSILON  1e-7f /* Keras's backend.epsilon() */
#define LOSS_LEAST    LOSS_EPSILON
#define LOSS_GREATEST (1.0f - LOSS_EPSILON)

/* ---- losses ---------------------------------------------------------------------------------- */

struct loss_item {
	const float *x; /* [width]: logits, or outputs where the loss is not from logits */
	int64_t width;
	int32_t label;
	const float *y;  /* the targets of the item, @y_step apart: 0 where there is one for all */
	int64_t y_step;  /* 0 or 1 */
	float smoothing; /* of labels */
	float share;     /* of the item in the mean: 1 / batch */
	float *gradient; /* of x; NULL: not wanted */
};

static float loss_clip(float p)
{
	return p < LOSS_LEAST ? LOSS_LEAST : p > LOSS_GREATEST ? LOSS_GREATEST : p;
}

/* false for NaN: it goes through. */
static bool loss_clipped(float p)
{
	return p < LOSS_LEAST || p > LOSS_GREATEST;
}

/* exp(x - the greatest), whose sum is returned; kept in the gradient where there is one. */
static float loss_exponentials(const struct loss_item *item, float *most)
{
	const float *x = item->x;
	float sum = 0.0f;

	*most = x[0];
	for (int64_t j = 1; j < item->width; j++)
		*most = x[j] > *most ? x[j] : *most;
	for (int64_t j = 0; j < item->width; j++) {
		float e = elementary_expf(x[j] - *most);

		sum += e;
		if (item->gradient)
			item->gradient[j] = e;
	}
	return sum;
}

/* ---- sparse_categorical_crossentropy --------------------------------------------------------- */

/* log(sum(exp(x))) - x[label], the greatest taken out first. */
static double sparse_from_logits(const struct loss_item *item)
{
	float most, sum = loss_exponentials(item, &most);

	for (int64_t j = 0; item->gradient && j < item->width; j++) {
		float p = item->gradient[j] / sum;

		item->gradient[j] = (j == item->label ? p - 1.0f : p) * item->share;
	}
	return elementary_log((double)sum) - ((double)item->x[item->label] - (double)most);
}

/* The logarithms of the clipped go through the softmax again: so they are normalised. */
static double sparse_from_outputs(const struct loss_item *item)
{
	float right = loss_clip(item->x[item->label]), sum = 0.0f;

	for (int64_t j = 0; j < item->width; j++)
		sum += loss_clip(item->x[j]);
	for (int64_t j = 0; item->gradient && j < item->width; j++) {
		float slope = 1.0f / sum - (j == item->label ? 1.0f / right : 0.0f);

		item->gradient[j] = loss_clipped(item->x[j]) ? 0.0f : slope * item->share;
	}
	return elementary_log((double)sum) - elementary_log((double)right);
}

/* ---- categorical_crossentropy ---------------------------------------------------------------- */

static float categorical_target(const struct loss_item *item, int64_t j)
{
	float s = item->smoothing;

	return s > 0.0f ? item->y[j] * (1.0f - s) + s / (float)item->width : item->y[j];
}

static double categorical_from_logits(const struct loss_item *item)
{
	float most, sum = loss_exponentials(item, &most);
	double rest = elementary_log((double)sum), value = 0.0;

	for (int64_t j = 0; j < item->width; j++) {
		float y = categorical_target(item, j);

		value += (double)y * (rest - ((double)item->x[j] - (double)most));
		if (item->gradient)
			item->gradient[j] = (item->gradient[j] / sum - y) * item->share;
	}
	return value;
}

/* With q = p / sum p and g the gradient of q, that of p is (g - sum g q) / sum p. */
static double categorical_from_outputs(const struct loss_item *item)
{
	double value = 0.0;
	float sum = 0.0f, flow = 0.0f;

	for (int64_t j = 0; j < item->width; j++)
		sum += item->x[j];
	for (int64_t j = 0; j < item->width; j++) {
		float y = categorical_target(item, j), q = item->x[j] / sum;
		float slope = loss_clipped(q) ? 0.0f : -y / q;

		value -= (double)y * elementary_log((double)loss_clip(q));
		flow += slope * q;
		if (item->gradient)
			item->gradient[j] = slope;
	}
	for (int64_t j = 0; item->gradient && j < item->width; j++)
		item->gradient[j] = (item->gradient[j] - flow) / sum * item->share;
	return value;
}

/* ---- binary_crossentropy --------------------------------------------------------------------- */

static float binary_target(const struct loss_item *item, int64_t j)
{
	float s = item->smoothing, y = item->y[j * item->y_step];

	return s > 0.0f ? y * (1.0f - s) + 0.5f * s : y;
}

static double binary_from_logits(const struct loss_item *item)
{
	float share = item->share / (float)item->width;
	double value = 0.0;

	for (int64_t j = 0; j < item->width; j++) {
		float x = item->x[j], y = binary_target(item, j), e = elementary_expf(-fabsf(x));

		value += (double)(x < 0.0f ? 0.0f : x) - (double)x * (double)y +
			 elementary_log1p((double)e);
		if (item->gradient)
			item->gradient[j] = ((x < 0.0f ? e : 1.0f) / (1.0f + e) - y) * share;
	}
	return value / (double)item->width;
}

static double binary_from_outputs(const struct loss_item *item)
{
	float share = item->share / (float)item->width;
	double value = 0.0;

	for (int64_t j = 0; j < item->width; j++) {
		float y = binary_target(item, j), c = loss_clip(item->x[j]);
		float yes = c + LOSS_EPSILON, no = 1.0f - c + LOSS_EPSILON;
		float slope = (1.0f - y) / no - y / yes;

		value -= (double)y * elementary_log((double)yes) +
			 (double)(1.0f - y) * elementary_log((double)no);
		if (item->gradient)
			item->gradient[j] = loss_clipped(item->x[j]) ? 0.0f : slope * share;
	}
	return value / (double)item->width;
}

/* ---- mean_squared_error ---------------------------------------------------------------------- */

static double squared_error(const struct loss_item *item)
{
	float share = 2.0f * item->share / (float)item->width;
	double value = 0.0;

	for (int64_t j = 0; j < item->width; j++) {
		float apart = item->x[j] - item->y[j * item->y_step];

		value += (double)apart * (double)apart;
		if (item->gradient)
			item->gradient[j] = apart * share;
	}
	return value / (double)item->width;
}

/* ---- running --------------------------------------------------------------------------------- */

/* The loss of an item. */
static const struct loss_passes {
	double (*from_logits)(const struct loss_item *item); /* NULL: there is no such form */
	double (*from_outputs)(const struct loss_item *item);
} loss_passes[LOSS_KINDS] = {
	[LOSS_BINARY_CROSSENTROPY] = {binary_from_logits, binary_from_outputs},
	[LOSS_CATEGORICAL_CROSSENTROPY] = {categorical_from_logits, categorical_from_outputs},
	[LOSS_MEAN_SQUARED_ERROR] = {NULL, squared_error},
	[LOSS_SPARSE_CATEGORICAL_CROSSENTROPY] = {sparse_from_logits, sparse_from_outputs},
};

double loss_run(const struct loss *loss, const float *outputs, const float *logits,
		const struct targets *targets, int64_t batch, int64_t width, float *gradient)
{
	const struct loss_passes *ops = &loss_passes[loss->kind];
	bool from_logits = ops->from_logits && (logits || loss->from_logits);
	const float *x = logits ? logits : outputs;
	double sum = 0.0;

	assert(!logits || ops->from_logits);
	for (int64_t i = 0; i < batch; i++) {
		struct loss_item item = {
			.x = x + i * width,
			.width = width,
			.smoothing = loss->label_smoothing,
			.share = 1.0f / (float)batch,
			.gradient = gradient ? gradient + i * width : NULL,
		};
		float number;

		if (targets->classes) {
			item.label = targets->classes[i];
			number = (float)item.label;
			item.y = &number;
			assert(loss->kind != LOSS_SPARSE_CATEGORICAL_CROSSENTROPY ||
			       (item.label >= 0 && item.label < width));
		} else {
			item.y = targets->values + i * targets->width;
			item.y_step = targets->width > 1;
		}
		sum += from_logits ? ops->from_logits(&item) : ops->from_outputs(&item);
	}
	return sum / (double)batch;
}

/* ---- metrics --------------------------------------------------------------------------------- */

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
	double total = 0.0;

	sum->count += batch;
	if (metric->kind == METRIC_LOSS) {
		sum->total += loss_run(&metric->loss, outputs, NULL, targets, batch, width, NULL) *
			      (double)batch;
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
