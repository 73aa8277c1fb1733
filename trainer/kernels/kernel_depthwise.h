/*
 * Depthwise convolutions, NHWC: every channel has its own filters.
 *
 * struct kernel_conv describes them with groups = channels. A channel's multiplier is
 * filters / channels, filter f reads channel f / multiplier, and the kernel is
 * [kernel height, kernel width, channels, multiplier]. Each image row is computed in blocks of
 * channels, reading the pixels in place. With a ReLU dy is always overwritten. The guarantees are
 * those of kernel_conv.h, which calls these functions if every channel is a group.
 */
#ifndef KERNEL_DEPTHWISE_H
#define KERNEL_DEPTHWISE_H

#include "trainer/kernels/kernel_conv.h"

static inline bool kernel_is_depthwise(const struct kernel_conv *conv)
{
	return conv->groups == conv->channels && conv->groups > 1;
}

size_t kernel_depthwise_scratch(const struct kernel_conv *conv, unsigned lanes, bool training);

void kernel_depthwise_forward(const struct kernel_conv *conv, const struct kernel_room *room,
			      const float *x, const float *kernel,
			      const struct kernel_conv_finish *finish, float *y);
void kernel_depthwise_grad_input(const struct kernel_conv *conv, const struct kernel_room *room,
				 const float *dy, const float *kernel, float *dx, bool add);
void kernel_depthwise_grad_kernel(const struct kernel_conv *conv, const struct kernel_room *room,
				  const float *x, float *dy, const struct kernel_conv_relu *relu,
				  float *dkernel, float *dbias);

#endif /* KERNEL_DEPTHWISE_H */
