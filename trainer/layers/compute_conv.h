/*
 * Shared by the convolution layers: how their sums are computed, and what follows the sums.
 */
#ifndef COMPUTE_CONV_H
#define COMPUTE_CONV_H

#include "trainer/kernels/kernel_conv.h"
#include "trainer/layers/compute_internal.h"

/* The kernels that compute the sums and their gradients: kernel_conv_forward() and the like. */
struct compute_conv_kernels {
	void (*forward)(const struct kernel_conv *conv, const struct kernel_room *room,
			const float *x, const float *kernel,
			const struct kernel_conv_finish *finish, float *y);
	void (*grad_kernel)(const struct kernel_conv *conv, const struct kernel_room *room,
			    const float *x, float *dy, const struct kernel_conv_relu *relu,
			    float *dkernel, float *dbias);
	void (*grad_input)(const struct kernel_conv *conv, const struct kernel_room *room,
			   const float *dy, const float *kernel, float *dx, bool add);
	size_t (*scratch)(const struct kernel_conv *conv, unsigned lanes, bool training);
};

/* The convolution over a batch of the layer's input; a transposed layer's is over its output. */
struct kernel_conv compute__conv_kernel(const struct model_layer *layer, int64_t channels,
					int64_t filters, int64_t batch);

/*
 * The passes and scratch of a layer whose parameters are the kernel and, after it, the bias. They
 * belong into its compute_ops, whose `own` points to the kernels.
 */
void compute__conv_forward(const struct layer_pass *pass);
void compute__conv_backward(const struct layer_pass *pass);
size_t compute__conv_scratch(const struct model *model, const struct model_layer *layer,
			     int64_t batch, unsigned lanes, bool training);

/* The part of the activation that is applied when sums are stored, and the rest of it. */
struct kernel_conv_finish compute__conv_finish(const struct layer_pass *pass, int bias);
void compute__conv_activate(const struct layer_pass *pass);
/* Apply the activation's gradient to pass->grad_output; a ReLU's is left to the kernels. */
struct kernel_conv_relu compute__conv_gradient(const struct layer_pass *pass);

#endif /* COMPUTE_CONV_H */
