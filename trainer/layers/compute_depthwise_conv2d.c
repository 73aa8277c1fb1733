/*
 * DepthwiseConv2D: each channel has depth_multiplier filters; the kernel is
 * [kernel height, width, channels, depth_multiplier].
 */
#include "trainer/kernels/kernel_depthwise.h"
#include "trainer/layers/compute_conv.h"

static const struct compute_conv_kernels depthwise_kernels = {
	.forward = kernel_depthwise_forward,
	.grad_kernel = kernel_depthwise_grad_kernel,
	.grad_input = kernel_depthwise_grad_input,
	.scratch = kernel_depthwise_scratch,
};

const struct compute_ops compute_depthwise_conv2d = {
	.forward = compute__conv_forward,
	.backward = compute__conv_backward,
	.kept = compute__activation_kept,
	.scratch = compute__conv_scratch,
	.own = &depthwise_kernels,
	.adds = true,
	.fuses_relu = true,
};
