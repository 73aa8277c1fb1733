/*
 * PReLU: x if x > 0, else alpha x; the alphas repeat along rows of their number.
 *
 * An alpha's sum runs over the rows from first to last, on one thread.
 */
#include "trainer/layers/compute_internal.h"

static int64_t alphas_of(const struct layer_pass *pass)
{
	return model_shape_count(&pass->model->params[pass->layer->first_param].shape);
}

static int64_t rows_of(const struct layer_pass *pass)
{
	return compute__count(pass) / alphas_of(pass);
}

static void forward_body(const void *context, int64_t first, int64_t rows)
{
	const struct layer_pass *pass = context;
	const int64_t count = alphas_of(pass);
	const float *alpha = compute__weights(pass, 0);

	for (int64_t row = first; row < first + rows; row++) {
		const float *x = pass->inputs[0] + row * count;
		float *y = pass->output + row * count;

		for (int64_t i = 0; i < count; i++)
			y[i] = x[i] > 0.0f ? x[i] : alpha[i] * x[i];
	}
}

/* The gradients of alphas @first .. @first + @alphas - 1. */
static void alpha_body(const void *context, int64_t first, int64_t alphas)
{
	const struct layer_pass *pass = context;
	const int64_t count = alphas_of(pass), rows = rows_of(pass);
	float *sums = compute__gradients(pass, 0);

	for (int64_t i = first; i < first + alphas; i++)
		sums[i] = 0.0f;
	for (int64_t row = 0; row < rows; row++) {
		const float *x = pass->inputs[0] + row * count;
		const float *dy = pass->grad_output + row * count;

		for (int64_t i = first; i < first + alphas; i++)
			sums[i] += x[i] > 0.0f ? 0.0f : dy[i] * x[i];
	}
}

static void backward_body(const void *context, int64_t first, int64_t rows)
{
	const struct layer_pass *pass = context;
	const int64_t count = alphas_of(pass);
	const float *alpha = compute__weights(pass, 0);

	for (int64_t row = first; row < first + rows; row++) {
		const float *x = pass->inputs[0] + row * count;
		const float *dy = pass->grad_output + row * count;
		float *dx = pass->grad_inputs[0] + row * count;

		for (int64_t i = 0; i < count; i++)
			dx[i] = x[i] > 0.0f ? dy[i] : dy[i] * alpha[i];
	}
}

static void p_relu_forward(const struct layer_pass *pass)
{
	compute__share_output(pass, rows_of(pass), alphas_of(pass), forward_body, pass);
}

static void p_relu_backward(const struct layer_pass *pass)
{
	if (compute__learns(pass))
		compute__share(pass->pool, alphas_of(pass), rows_of(pass), alpha_body, pass);
	if (pass->grad_inputs[0])
		compute__share(pass->pool, rows_of(pass), alphas_of(pass), backward_body, pass);
}

const struct compute_ops compute_p_relu = {
	.forward = p_relu_forward,
	.backward = p_relu_backward,
	.grad_in_place = true,
};
