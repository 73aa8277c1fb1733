/*
 * Rescaling: y = x scale + offset, each one number or one per channel.
 */
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/compute_internal.h"

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
