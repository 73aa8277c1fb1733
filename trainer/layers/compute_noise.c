/*
 * GaussianNoise, GaussianDropout and AlphaDropout: see model/layers/layer_noise.c for the
 * formulas.
 *
 * An element's random number is keyed by its index i in the micro-batch: the first or second half
 * of the stream's block i / 2. The element's factor is kept for the backward pass.
 */
#include <string.h>

#include "common/rng.h"
#include "trainer/layers/compute_internal.h"

#define NOISE_EACH 2 /* elements per block of random numbers */

_Static_assert(COMPUTE_GRAIN % NOISE_EACH == 0, "slices begin where blocks do");

static size_t noise_kept(const struct model *model, const struct model_layer *layer, int64_t batch)
{
	const struct layer_noise *c = layer->config;

	(void)model;
	if (layer->ops->kind == LAYER_KIND_gaussian_noise || !(c->rate > 0.0))
		return 0;
	return (size_t)(batch * model_shape_count(&layer->output)) * sizeof(float);
}

static bool noise_applies(const struct layer_pass *pass)
{
	const struct layer_noise *c = pass->layer->config;

	return compute__is_random(pass) && c->rate > 0.0;
}

static void forward_body(const void *context, int64_t first, int64_t count)
{
	const struct layer_pass *pass = context;
	const struct layer_noise *c = pass->layer->config;
	const float *x = pass->inputs[0];
	float *y = pass->output, *factors = pass->kept;
	struct rng rng;

	rng_init(&rng, pass->seed, rng_stream(pass->layer->name) ^ c->seed, pass->step,
		 pass->replica);
	rng.counter[0] = (uint32_t)(first / NOISE_EACH);
	for (int64_t i = first; i < first + count; i++) {
		if (pass->layer->ops->kind == LAYER_KIND_gaussian_noise) {
			y[i] = x[i] + c->spread * rng_normal(&rng);
		} else if (pass->layer->ops->kind == LAYER_KIND_gaussian_dropout) {
			factors[i] = 1.0f + c->spread * rng_normal(&rng);
			y[i] = x[i] * factors[i];
		} else {
			const bool keep = rng_u32(&rng) >= c->threshold;

			rng_u32(&rng);
			factors[i] = keep ? c->keep_factor : 0.0f;
			y[i] = keep ? x[i] * c->keep_factor + c->keep_offset : c->drop_offset;
		}
	}
}

static void noise_forward(const struct layer_pass *pass)
{
	const int64_t count = compute__count(pass);

	if (noise_applies(pass))
		compute__share_output(pass, count, 1, forward_body, pass);
	else
		compute__activate(pass, MODEL_LINEAR, pass->inputs[0], count, 1);
}

static void backward_body(const void *context, int64_t first, int64_t count)
{
	const struct layer_pass *pass = context;
	const float *factors = pass->kept, *dy = pass->grad_output;
	float *dx = pass->grad_inputs[0];

	if (noise_applies(pass) && pass->layer->ops->kind != LAYER_KIND_gaussian_noise)
		for (int64_t i = first; i < first + count; i++)
			dx[i] = dy[i] * factors[i];
	else if (dx != dy)
		memcpy(dx + first, dy + first, (size_t)count * sizeof(float));
}

static void noise_backward(const struct layer_pass *pass)
{
	if (pass->grad_inputs[0])
		compute__share(pass->pool, compute__count(pass), 1, backward_body, pass);
}

const struct compute_ops compute_noise = {
	.forward = noise_forward,
	.backward = noise_backward,
	.kept = noise_kept,
	.in_place = true,
	.grad_in_place = true,
};
