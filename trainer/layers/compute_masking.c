/*
 * Masking, and the mask itself: see model/layers/layer_masking.c. A step is an item's row of
 * features; for word indexes (rank 1) a row has one feature.
 */
#include <string.h>

#include "trainer/layers/compute_internal.h"

/* Features of a step: the product of all dimensions after the steps'. */
static int64_t features_of(const struct layer_pass *pass)
{
	const struct model_shape *input = &pass->layer->input;

	return input->ndim == 1 ? 1 : model_shape_count(input) / input->dim[0];
}

static bool is_unmasked(const float *x, int64_t features, float value)
{
	for (int64_t j = 0; j < features; j++)
		if (x[j] != value)
			return true;
	return false;
}

static void forward_body(const void *context, int64_t first, int64_t rows)
{
	const struct layer_pass *pass = context;
	const struct layer_masking *c = pass->layer->config;
	const int64_t features = features_of(pass);

	for (int64_t row = first; row < first + rows; row++) {
		const float *x = pass->inputs[0] + row * features;
		const bool unmasked = is_unmasked(x, features, c->value);

		if (c->alone)
			pass->output[row] = unmasked ? 1.0f : 0.0f;
		else if (unmasked)
			memcpy(pass->output + row * features, x, (size_t)features * sizeof(*x));
		else
			memset(pass->output + row * features, 0, (size_t)features * sizeof(*x));
	}
}

static void grad_body(const void *context, int64_t first, int64_t rows)
{
	const struct layer_pass *pass = context;
	const struct layer_masking *c = pass->layer->config;
	const int64_t features = features_of(pass);

	for (int64_t row = first; row < first + rows; row++) {
		float *dx = pass->grad_inputs[0] + row * features;

		if (!c->alone && is_unmasked(pass->inputs[0] + row * features, features, c->value))
			memcpy(dx, pass->grad_output + row * features,
			       (size_t)features * sizeof(*dx));
		else
			memset(dx, 0, (size_t)features * sizeof(*dx));
	}
}

static int64_t rows_of(const struct layer_pass *pass)
{
	return pass->batch * model_shape_count(&pass->layer->input) / features_of(pass);
}

static void masking_forward(const struct layer_pass *pass)
{
	compute__share(pass->pool, rows_of(pass), features_of(pass), forward_body, pass);
}

static void masking_backward(const struct layer_pass *pass)
{
	compute__share(pass->pool, rows_of(pass), features_of(pass), grad_body, pass);
}

const struct compute_ops compute_masking = {
	.forward = masking_forward,
	.backward = masking_backward,
};
