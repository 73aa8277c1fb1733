/*
 * Keras's preprocessing layers Rescaling and Normalization: a map with two coefficients per channel.
 */
#include <math.h>

#include "common/minmax.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

@@COM compute_rescaling.c
/*
 * Rescaling: y = x scale + offset, each one number or one per channel.
 */
struct rescaling_work {
	const float *x, *scale, *offset;
	float *y;
	int64_t channels;
};

static void rescaling_body(const void *context, int64_t first, int64_t rows)
{
	const struct rescaling_work *w = context;

	kernel_affine(w->x + first * w->channels, w->y + first * w->channels,
		      (size_t)(rows * w->channels), w->scale, w->offset,
		      (size_t)compute__pattern(w->channels));
}

static void rescaling_run(const struct layer_pass *pass, const float *x, float *y, bool forward)
{
	const struct layer_rescaling *c = pass->layer->config;
	int64_t channels = layer_last_dim(&pass->layer->output);
	float *scale = pass->scratch, *offset = scale + compute__pattern(channels);
	const struct rescaling_work work = {x, scale, forward ? offset : NULL, y, channels};
	int64_t rows = pass->batch * (model_shape_count(&pass->layer->output) / channels);

	compute__repeat(scale, c->scale, channels);
	compute__repeat(offset, c->offset, channels);
	if (forward)
		compute__share_output(pass, rows, channels, rescaling_body, &work);
	else
		compute__share(pass->pool, rows, channels, rescaling_body, &work);
}

static void rescaling_forward(const struct layer_pass *pass)
{
	rescaling_run(pass, pass->inputs[0], pass->output, true);
}

static void rescaling_backward(const struct layer_pass *pass)
{
	if (pass->grad_inputs[0])
		rescaling_run(pass, pass->grad_output, pass->grad_inputs[0], false);
}

const struct compute_ops compute_rescaling = {
	.forward = rescaling_forward,
	.backward = rescaling_backward,
	.scratch = compute__pattern_pair,
	.in_place = true,
	.grad_in_place = true,
};

@@COM compute_normalization.c
/*
 * Keras's preprocessing layer Normalization: y = (x - mean) / max(sqrt(variance), 1e-7) per
 * channel.
 *
 * Mean and variance come from the config, or they are non-trainable parameters (together with
 * count, which only Keras's adapt() reads) that loaded weights provide.
 */
#define NORMALIZATION_EPSILON 1e-7f /* keras.backend.epsilon() */

static float normalization_deviation(float variance)
{
	float deviation = sqrtf(variance);

	return max(NORMALIZATION_EPSILON, deviation);
}

struct normalization_work {
	const float *mean, *deviation, *x;
	float *y;
	int64_t channels;
};

static void normalization_body(const void *context, int64_t first, int64_t rows)
{
	const struct normalization_work *w = context;

	kernel_standardize(w->x + first * w->channels, w->y + first * w->channels,
			   (size_t)(rows * w->channels), w->mean, w->deviation,
			   (size_t)compute__pattern(w->channels));
}

/* Build the patterns from the config's numbers, or from the current parameters. */
static void normalization_patterns(const struct layer_pass *pass, struct normalization_work *w)
{
	const struct layer_normalization *c = pass->layer->config;
	const float *mean = c->mean ? c->mean : compute__weights(pass, LAYER_NORMALIZATION_MEAN);
	const float *variance =
		c->mean ? c->variance : compute__weights(pass, LAYER_NORMALIZATION_VARIANCE);
	float *means = pass->scratch, *deviations = means + compute__pattern(w->channels);

	compute__repeat(means, mean, w->channels);
	for (int64_t i = 0; i < w->channels; i++)
		deviations[i] = normalization_deviation(variance[i]);
	compute__repeat(deviations, deviations, w->channels);
	w->mean = means;
	w->deviation = deviations;
}

static void normalization_run(const struct layer_pass *pass, const float *x, float *y, bool forward)
{
	int64_t channels = layer_last_dim(&pass->layer->output);
	struct normalization_work work = {.x = x, .y = y, .channels = channels};
	int64_t rows = pass->batch * (model_shape_count(&pass->layer->output) / channels);

	normalization_patterns(pass, &work);
	if (forward) {
		compute__share_output(pass, rows, channels, normalization_body, &work);
		return;
	}
	work.mean = NULL;
	compute__share(pass->pool, rows, channels, normalization_body, &work);
}

static void normalization_forward(const struct layer_pass *pass)
{
	normalization_run(pass, pass->inputs[0], pass->output, true);
}

static void normalization_backward(const struct layer_pass *pass)
{
	if (pass->grad_inputs[0])
		normalization_run(pass, pass->grad_output, pass->grad_inputs[0], false);
}

const struct compute_ops compute_normalization = {
	.forward = normalization_forward,
	.backward = normalization_backward,
	.scratch = compute__pattern_pair,
	.in_place = true,
	.grad_in_place = true,
};
