/*
 * ReLU with its bound, slope and threshold; LeakyReLU; ELU with its alpha.
 *
 * The gradient of a ReLU without slope and threshold is computed from its output, and the preceding
 * layer may apply such a ReLU. With a slope or a threshold the input is read again.
 */
#include "trainer/kernels/kernel_activation.h"
#include "trainer/layers/compute_internal.h"

static void relu_forward_body(const void *context, int64_t first, int64_t count)
{
	const struct layer_pass *pass = context;
	const struct layer_relu *c = pass->layer->config;
	const struct kernel_relu_shape shape = {c->threshold, c->slope, c->most};
	const float *x = pass->inputs[0] + first;
	float *y = pass->output + first;

	if (pass->layer->ops->kind == LAYER_KIND_elu)
		kernel_alpha_elu(x, y, c->alpha, (size_t)count);
	else if (layer_relu_is_plain(pass->layer))
		kernel_bounded_relu(x, y, c->most, (size_t)count);
	else
		kernel_shaped_relu(x, y, &shape, (size_t)count);
}

static void relu_backward_body(const void *context, int64_t first, int64_t count)
{
	const struct layer_pass *pass = context;
	const struct layer_relu *c = pass->layer->config;
	const struct kernel_relu_shape shape = {c->threshold, c->slope, c->most};
	const float *dy = pass->grad_output + first;
	float *dx = pass->grad_inputs[0] + first;

	if (pass->layer->ops->kind == LAYER_KIND_elu)
		kernel_alpha_elu_grad(pass->output + first, dy, dx, c->alpha, (size_t)count);
	else if (layer_relu_is_plain(pass->layer))
		kernel_bounded_relu_grad(pass->output + first, dy, dx, c->most, (size_t)count);
	else
		kernel_shaped_relu_grad(pass->inputs[0] + first, dy, dx, &shape, (size_t)count);
}

static void relu_forward(const struct layer_pass *pass)
{
	compute__share_output(pass, compute__count(pass), 1, relu_forward_body, pass);
}

static void relu_backward(const struct layer_pass *pass)
{
	if (pass->grad_inputs[0])
		compute__share(pass->pool, compute__count(pass), 1, relu_backward_body, pass);
}

const struct compute_ops compute_relu = {
	.forward = relu_forward,
	.backward = relu_backward,
	.in_place = true,
	.grad_in_place = true,
};
