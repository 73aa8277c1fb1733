/*
 * Conv2D: y = activation(x * W + b); W is [kernel height, width, channels / groups, filters].
 *
 * The bias and a ReLU (its own or a following layer's) are applied when sums are stored.
 */
#include "trainer/layers/compute_conv.h"

static const struct compute_conv_kernels conv2d_kernels = {
	.forward = kernel_conv_forward,
	.grad_kernel = kernel_conv_grad_kernel,
	.grad_input = kernel_conv_grad_input,
	.scratch = kernel_conv_scratch,
};

const struct compute_ops compute_conv2d = {
	.forward = compute__conv_forward,
	.backward = compute__conv_backward,
	.kept = compute__activation_kept,
	.scratch = compute__conv_scratch,
	.own = &conv2d_kernels,
	.adds = true,
	.fuses_relu = true,
};
