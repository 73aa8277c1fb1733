/*
 * Evaluation of losses. No state: everything is in the caller's memory.
 */
#include "trainer/learn/measure_run.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/elementary.h"
#include "trainer/kernels/kernel_elementary.h"

#define LOSS_EPSILON  1e-7f /* Keras's backend.epsilon() */
#define LOSS_LEAST    LOSS_EPSILON
#define LOSS_GREATEST (1.0f - LOSS_EPSILON)

/* ---- losses ---------------------------------------------------------------------------------- */

struct loss_item {
	const float *x; /* [width]: logits, or outputs if the loss is not from logits */
	int64_t width;
	int32_t label;
	const float *y; /* the row's targets, @y_step apart */
	int64_t y_step; /* 1; 0: one target for all outputs */
	const struct loss *loss;
	float smoothing; /* of labels */
	float share;     /* of the row in the mean: its weight / rows */
	float *gradient; /* with respect to x; NULL: not wanted */
};

static float loss_clip(float p)
{
	return p < LOSS_LEAST ? LOSS_LEAST : p > LOSS_GREATEST ? LOSS_GREATEST : p;
}

/* false for NaN, which propagates. */
static bool loss_clipped(float p)
{
	return p < LOSS_LEAST || p > LOSS_GREATEST;
}

/* Return the sum of exp(x - max); store the exponentials in the gradient, if there is one. */
static float loss_exponentials(const struct loss_item *item, float *maximum)
{
	const float *x = item->x;
	float sum = 0.0f;

	*maximum = x[0];
	for (int64_t j = 1; j < item->width; j++)
		*maximum = x[j] > *maximum ? x[j] : *maximum;
	for (int64_t j = 0; j < item->width; j++) {
		float e = elementary_expf(x[j] - *maximum);

		sum += e;
		if (item->gradient)
			item->gradient[j] = e;
	}
	return sum;
}

/* ---- sparse_categorical_crossentropy --------------------------------------------------------- */

/* log(sum(exp(x))) - x[label], with the maximum subtracted first. */
static double sparse_from_logits(const struct loss_item *item)
{
	float maximum, sum = loss_exponentials(item, &maximum);

	for (int64_t j = 0; item->gradient && j < item->width; j++) {
		float p = item->gradient[j] / sum;

		item->gradient[j] = (j == item->label ? p - 1.0f : p) * item->share;
	}
	return elementary_log((double)sum) - ((double)item->x[item->label] - (double)maximum);
}

/* Keras applies softmax to the logarithms of the clipped outputs, which normalizes them. */
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
	float maximum, sum = loss_exponentials(item, &maximum);
	double rest = elementary_log((double)sum), value = 0.0;

	for (int64_t j = 0; j < item->width; j++) {
		float y = categorical_target(item, j);

		value += (double)y * (rest - ((double)item->x[j] - (double)maximum));
		if (item->gradient)
			item->gradient[j] = (item->gradient[j] / sum - y) * item->share;
	}
	return value;
}

/* With q = p / sum p and g the gradient with respect to q, that of p is (g - sum g q) / sum p. */
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
		float difference = item->x[j] - item->y[j * item->y_step];

		value += (double)difference * (double)difference;
		if (item->gradient)
			item->gradient[j] = difference * share;
	}
	return value / (double)item->width;
}

/* ---- means of element-wise losses ------------------------------------------------------------ */

/* The value for output @x and target @y, and its derivative by x. */
typedef double loss_element(const struct loss *loss, double x, double y, double *slope);

static double mean_of_elements(const struct loss_item *item, loss_element *element)
{
	const double share = (double)item->share / (double)item->width;
	double value = 0.0, slope;

	for (int64_t j = 0; j < item->width; j++) {
		value += element(item->loss, (double)item->x[j], (double)binary_target(item, j),
				 &slope);
		if (item->gradient)
			item->gradient[j] = (float)(slope * share);
	}
	return value / (double)item->width;
}

/* The sign of NaN is NaN. */
static double sign_of(double x)
{
	return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
}

static double absolute_element(const struct loss *loss, double x, double y, double *slope)
{
	(void)loss;
	*slope = sign_of(x - y);
	return fabs(x - y);
}

static double huber_element(const struct loss *loss, double x, double y, double *slope)
{
	const double difference = x - y;

	if (fabs(difference) > loss->delta) {
		*slope = loss->delta * sign_of(difference);
		return loss->delta * (fabs(difference) - 0.5 * loss->delta);
	}
	*slope = difference;
	return 0.5 * difference * difference;
}

/* log cosh x = |x| + log(1 + exp(-2 |x|)) - log 2 */
static double log_cosh_element(const struct loss *loss, double x, double y, double *slope)
{
	const double difference = x - y;
	const double e = (double)elementary_expf(-2.0f * fabsf((float)difference));

	(void)loss;
	*slope = sign_of(difference) * (1.0 - e) / (1.0 + e);
	return fabs(difference) + elementary_log1p(e) - M_LN2;
}

/* max(1 - y p, 0); NaN propagates. */
static double hinge_margin(double x, double y, double *label)
{
	*label = y == 0.0 ? -1.0 : y;
	return 1.0 - *label * x <= 0.0 ? 0.0 : 1.0 - *label * x;
}

static double hinge_element(const struct loss *loss, double x, double y, double *slope)
{
	double label, margin = hinge_margin(x, y, &label);

	(void)loss;
	*slope = isnan(margin) ? margin : margin > 0.0 ? -label : 0.0;
	return margin;
}

static double squared_hinge_element(const struct loss *loss, double x, double y, double *slope)
{
	double label, margin = hinge_margin(x, y, &label);

	(void)loss;
	*slope = -2.0 * label * margin;
	return margin * margin;
}

/* For a clipped probability: (1 - q)^gamma times the crossentropy. */
static double focal_of(const struct loss *loss, double p, double y, double *slope)
{
	const double yes = p + (double)LOSS_EPSILON, no = 1.0 - p + (double)LOSS_EPSILON;
	const double entropy = -y * elementary_log(yes) - (1.0 - y) * elementary_log(no);
	const double wrong = y * (1.0 - p) + (1.0 - y) * p;
	const double factor = elementary_pow(wrong, loss->gamma);
	const double weight = !loss->apply_class_balancing
				      ? 1.0
				      : y * loss->alpha + (1.0 - y) * (1.0 - loss->alpha);

	*slope = weight * (factor * ((1.0 - y) / no - y / yes) +
			   loss->gamma * factor / wrong * (1.0 - 2.0 * y) * entropy);
	return weight * factor * entropy;
}

static double focal_output(const struct loss *loss, double x, double y, double *slope)
{
	const double value = focal_of(loss, (double)loss_clip((float)x), y, slope);

	if (loss_clipped((float)x))
		*slope = 0.0;
	return value;
}

static double focal_logit(const struct loss *loss, double x, double y, double *slope)
{
	const float p = elementary_sigmoidf((float)x);
	const double value = focal_of(loss, (double)loss_clip(p), y, slope);

	*slope = loss_clipped(p) ? 0.0 : *slope * (double)p * (1.0 - (double)p);
	return value;
}

/* ---- losses of whole rows -------------------------------------------------------------------- */

static double kl_divergence(const struct loss_item *item)
{
	double value = 0.0;

	for (int64_t j = 0; j < item->width; j++) {
		const float x = item->x[j], y = item->y[j];
		const float p = x < LOSS_EPSILON ? LOSS_EPSILON : x > 1.0f ? 1.0f : x;
		const float q = y < LOSS_EPSILON ? LOSS_EPSILON : y > 1.0f ? 1.0f : y;

		value += (double)q * (elementary_log((double)q) - elementary_log((double)p));
		if (item->gradient)
			item->gradient[j] =
				x < LOSS_EPSILON || x > 1.0f ? 0.0f : -q / p * item->share;
	}
	return value;
}

/* The gradient raises the greatest wrong output and lowers the right one. */
static double categorical_hinge(const struct loss_item *item)
{
	double right = 0.0, maximum = -INFINITY, value;
	int64_t at = 0;

	for (int64_t j = 0; j < item->width; j++) {
		const double x = (double)item->x[j], y = (double)item->y[j];

		right += y * x;
		if (!((1.0 - y) * x <= maximum)) {
			maximum = (1.0 - y) * x;
			at = j;
		}
	}
	value = maximum - right + 1.0 <= 0.0 ? 0.0 : maximum - right + 1.0;
	for (int64_t j = 0; item->gradient && j < item->width; j++) {
		const float slope = (j == at ? 1.0f - item->y[j] : 0.0f) - item->y[j];

		item->gradient[j] = isnan(value) ? NAN : value > 0.0 ? slope * item->share : 0.0f;
	}
	return value;
}

/* The value for one class's probability, and its derivative by it. */
static double categorical_focal(const struct loss_item *item, int64_t j, double q, double *slope)
{
	const struct loss *loss = item->loss;
	const double y = (double)categorical_target(item, j), c = (double)loss_clip((float)q);
	const double factor = elementary_pow(1.0 - c, loss->gamma), log_c = elementary_log(c);

	*slope =
		loss_clipped((float)q)
			? 0.0
			: loss->alpha * y * (loss->gamma * factor / (1.0 - c) * log_c - factor / c);
	return -loss->alpha * factor * y * log_c;
}

/*
 * The derivative by an output of sum s, with q = p / s, is (slope - flow) / s. By a logit, with
 * q = exp x / s, it is q (slope - flow). flow is the sum of q times slope.
 */
static double categorical_focal_row(const struct loss_item *item, bool from_logits)
{
	double value = 0.0, sum = 0.0, flow = 0.0, slope;
	float maximum = 0.0f;

	if (from_logits)
		sum = (double)loss_exponentials(item, &maximum);
	for (int64_t j = 0; j < item->width && !from_logits; j++)
		sum += (double)item->x[j];
	for (int pass = 0; pass < 2; pass++) {
		for (int64_t j = 0; j < item->width; j++) {
			const double part = from_logits
						    ? (double)elementary_expf(item->x[j] - maximum)
						    : (double)item->x[j];
			const double q = part / sum;
			const double here = categorical_focal(item, j, q, &slope);

			if (pass == 0) {
				value += here;
				flow += q * slope;
			} else if (item->gradient) {
				slope = (slope - flow) * (from_logits ? q : 1.0 / sum);
				item->gradient[j] = (float)(slope * (double)item->share);
			}
		}
	}
	return value;
}

static double categorical_focal_from_logits(const struct loss_item *item)
{
	return categorical_focal_row(item, true);
}

static double categorical_focal_from_outputs(const struct loss_item *item)
{
	return categorical_focal_row(item, false);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The functions that compute a row's loss. */
static const struct loss_passes {
	double (*from_logits)(const struct loss_item *item); /* NULL: no such form */
	double (*from_outputs)(const struct loss_item *item);
	loss_element *logit, *output; /* alternative to the two above: the mean over elements */
} loss_passes[LOSS_KINDS] = {
	[LOSS_BINARY_CROSSENTROPY] = {.from_logits = binary_from_logits,
				      .from_outputs = binary_from_outputs},
	[LOSS_BINARY_FOCAL_CROSSENTROPY] = {.logit = focal_logit, .output = focal_output},
	[LOSS_CATEGORICAL_CROSSENTROPY] = {.from_logits = categorical_from_logits,
					   .from_outputs = categorical_from_outputs},
	[LOSS_CATEGORICAL_FOCAL_CROSSENTROPY] = {.from_logits = categorical_focal_from_logits,
						 .from_outputs = categorical_focal_from_outputs},
	[LOSS_CATEGORICAL_HINGE] = {.from_outputs = categorical_hinge},
	[LOSS_HINGE] = {.output = hinge_element},
	[LOSS_HUBER] = {.output = huber_element},
	[LOSS_KL_DIVERGENCE] = {.from_outputs = kl_divergence},
	[LOSS_LOG_COSH] = {.output = log_cosh_element},
	[LOSS_MEAN_ABSOLUTE_ERROR] = {.output = absolute_element},
	[LOSS_MEAN_SQUARED_ERROR] = {.from_outputs = squared_error},
	[LOSS_SQUARED_HINGE] = {.output = squared_hinge_element},
	[LOSS_SPARSE_CATEGORICAL_CROSSENTROPY] = {.from_logits = sparse_from_logits,
						  .from_outputs = sparse_from_outputs},
};

bool loss_counts(const struct loss *loss, const struct targets *targets, int64_t row)
{
	const float *values;
	int64_t label;

	if (targets->mask && targets->mask[row] == 0.0f)
		return false;
	if (!loss->ignores)
		return true;
	if (targets->classes)
		return targets->classes[row] != loss->ignore_class;
	values = targets->values + row * targets->width;
	label = targets->width > 1 ? class_greatest(values, targets->width) : (int64_t)values[0];
	return label != loss->ignore_class;
}

double loss_run_each(const struct loss *loss, const float *outputs, const float *logits,
		     const struct targets *targets, int64_t rows, int64_t width, float *gradient,
		     float *each)
{
	const struct loss_passes *ops = &loss_passes[loss->kind];
	const bool from_logits = (ops->from_logits || ops->logit) && (logits || loss->from_logits);
	loss_element *element = from_logits ? ops->logit : ops->output;
	const float *x = logits ? logits : outputs;
	double sum = 0.0;
	int64_t counted = 0;

	assert(!logits || ops->from_logits);
	for (int64_t i = 0; i < rows; i++)
		counted += loss_counts(loss, targets, i);
	for (int64_t i = 0; i < rows; i++) {
		struct loss_item item = {
			.x = x + i * width,
			.width = width,
			.loss = loss,
			.smoothing = loss->label_smoothing,
			.share = 1.0f / (float)counted,
			.gradient = gradient ? gradient + i * width : NULL,
		};
		float number;
		double value;

		if (!loss_counts(loss, targets, i)) {
			if (gradient)
				memset(item.gradient, 0, (size_t)width * sizeof(float));
			if (each)
				each[i] = 0.0f;
			continue;
		}
		item.y = measure_targets(targets, i, &number, &item.y_step);
		if (loss->kind == LOSS_SPARSE_CATEGORICAL_CROSSENTROPY)
			item.label = (int32_t)item.y[0];
		if (targets->weights)
			item.share *= targets->weights[i];
		/* A metric that ignores no class may meet the class that the loss ignores. */
		value = item.label < 0 || item.label >= width ? (double)NAN
			: element                             ? mean_of_elements(&item, element)
			: from_logits                         ? ops->from_logits(&item)
							      : ops->from_outputs(&item);
		if (targets->weights)
			value *= (double)targets->weights[i];
		if (each)
			each[i] = (float)value;
		sum += value;
	}
	return counted > 0 ? sum / (double)counted : 0.0;
}
