/*
 * Keras's preprocessing layers: a map with two coefficients per channel.
 *
 * Rescaling: y = x scale + offset, each one number or one per channel. Normalization: y = (x -
 * mean) / max(sqrt(variance), 1e-7); mean and variance come from the config, or they are
 * non-trainable parameters (together with count, which only Keras's adapt() reads) that loaded
 * weights provide.
 */
#include <math.h>

#include "common/minmax.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

#define NORMALIZATION_EPSILON 1e-7f /* keras.backend.epsilon() */

struct channel_map {
	/* Compute @count values, with patterns of coefficients of @period. */
	void (*kernel)(const float *x, float *y, size_t count, const float *first,
		       const float *second, size_t period);
	const float *x, *first, *second;
	float *y;
	int64_t channels;
};

static void channels_body(const void *context, int64_t first, int64_t rows)
{
	const struct channel_map *map = context;
	const int64_t at = first * map->channels;

	map->kernel(map->x + at, map->y + at, (size_t)(rows * map->channels), map->first,
		    map->second, (size_t)compute__pattern(map->channels));
}

static void channels_run(const struct layer_pass *pass, struct channel_map *map, bool forward)
{
	const int64_t rows = layer_rows(pass->layer, pass->batch);

	map->x = forward ? pass->inputs[0] : pass->grad_output;
	map->y = forward ? pass->output : pass->grad_inputs[0];
	if (forward)
		compute__share_output(pass, rows, map->channels, channels_body, map);
	else
		compute__share(pass->pool, rows, map->channels, channels_body, map);
}

static void rescaling_run(const struct layer_pass *pass, bool forward)
{
	const struct layer_rescaling *c = pass->layer->config;
	const int64_t channels = layer_last_dim(&pass->layer->output);
	float *scale = pass->scratch, *offset = scale + compute__pattern(channels);
	struct channel_map map = {.kernel = kernel_affine,
				  .first = scale,
				  .second = forward ? offset : NULL,
				  .channels = channels};

	compute__repeat(scale, c->scale, channels);
	compute__repeat(offset, c->offset, channels);
	channels_run(pass, &map, forward);
}

static void rescaling_forward(const struct layer_pass *pass)
{
	rescaling_run(pass, true);
}

static void rescaling_backward(const struct layer_pass *pass)
{
	rescaling_run(pass, false);
}

/* The patterns are built from the config's numbers, or from the current parameters. */
static void normalization_run(const struct layer_pass *pass, bool forward)
{
	const struct layer_normalization *c = pass->layer->config;
	const float *mean = c->mean ? c->mean : compute__weights(pass, LAYER_NORMALIZATION_MEAN);
	const float *variance =
		c->mean ? c->variance : compute__weights(pass, LAYER_NORMALIZATION_VARIANCE);
	const int64_t channels = layer_last_dim(&pass->layer->output);
	float *means = pass->scratch, *deviations = means + compute__pattern(channels);
	struct channel_map map = {.kernel = kernel_standardize,
				  .first = forward ? means : NULL,
				  .second = deviations,
				  .channels = channels};

	compute__repeat(means, mean, channels);
	for (int64_t i = 0; i < channels; i++) {
		const float deviation = sqrtf(variance[i]);

		deviations[i] = max(NORMALIZATION_EPSILON, deviation);
	}
	compute__repeat(deviations, deviations, channels);
	channels_run(pass, &map, forward);
}

static void normalization_forward(const struct layer_pass *pass)
{
	normalization_run(pass, true);
}

static void normalization_backward(const struct layer_pass *pass)
{
	normalization_run(pass, false);
}

#define CHANNELS_OPS .scratch = compute__pattern_pair, .in_place = true, .grad_in_place = true

const struct compute_ops compute_rescaling = {
	CHANNELS_OPS,
	.forward = rescaling_forward,
	.backward = rescaling_backward,
};

const struct compute_ops compute_normalization = {
	CHANNELS_OPS,
	.forward = normalization_forward,
	.backward = normalization_backward,
};
