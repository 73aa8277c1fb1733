/*
 * ZeroPadding2D: zero padding of images.
 */
#include "trainer/kernels/kernel_pad.h"
#include "trainer/layers/compute_internal.h"

static struct kernel_pad padding_of(const struct layer_pass *pass)
{
	const struct layer_pad *pad = pass->layer->config;

	return (struct kernel_pad){
		.batch = pass->batch,
		.height = layer_side(&pass->layer->input, LAYER_Y),
		.width = layer_side(&pass->layer->input, LAYER_X),
		.channels = layer_last_dim(&pass->layer->input),
		.top = pad->top,
		.bottom = pad->bottom,
		.left = pad->left,
		.right = pad->right,
	};
}

static void padding_forward(const struct layer_pass *pass)
{
	const struct kernel_pad pad = padding_of(pass);

	kernel_pad_forward(&pad, pass->pool, pass->inputs[0], pass->output);
}

static void padding_backward(const struct layer_pass *pass)
{
	const struct kernel_pad pad = padding_of(pass);

	if (pass->grad_inputs[0])
		kernel_pad_grad(&pad, pass->pool, pass->grad_output, pass->grad_inputs[0],
				compute__adds(pass, 0));
}

const struct compute_ops compute_zero_padding2d = {
	.forward = padding_forward,
	.backward = padding_backward,
	.adds = true,
};
