/*
 * What the convolutions share: their windows over an image, their options, and what comes after
 * the sums.
 *
 * A dilated kernel reaches (kernel - 1) dilation + 1 pixels far; sizes are layer_window.h's.
 */
#ifndef LAYER_CONV_H
#define LAYER_CONV_H

#include "trainer/kernels/kernel_conv.h"
#include "trainer/layers/layer_internal.h"
#include "trainer/layers/layer_window.h"

/* How the sums are made, and their gradients: kernel_conv_forward() and the like. */
struct layer_conv_kernels {
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

/* A layer's config, in the model's arena. */
struct layer_conv {
	const struct layer_conv_kernels *kernels; /* of layer__conv_forward() and its like */
	int64_t kernel[LAYER_WAYS], stride[LAYER_WAYS], dilation[LAYER_WAYS];
	bool same;
	int64_t out[LAYER_WAYS], pad[LAYER_WAYS]; /* outputs; zeros above and to the left */
	int64_t groups;
	int64_t multiplier; /* outputs of a channel, of depthwise ones */
};

/* Keras writes what the base class has for a kernel where a layer's kernel is another, too. */
#define LAYER_CONV_OPTIONS                                                                         \
	{"kernel_size", MODEL_ANY}, {"strides", MODEL_ANY}, {"padding", MODEL_ANY},                \
		{"dilation_rate", MODEL_ANY}, {"data_format", MODEL_CHANNELS_LAST},                \
		{"groups", MODEL_ANY}, {"activation", MODEL_ANY}, {"use_bias", MODEL_ANY},         \
		LAYER_PARAM_OPTIONS("kernel"), LAYER_PARAM_OPTIONS("bias"),                        \
	{                                                                                          \
		"activity_regularizer", MODEL_NULL                                                 \
	}

/*
 * Check the options, @own, and read the window, "use_bias" and "activation" of a layer over an
 * image, which layer->input must be; layer->output is set but for its channels. The window is
 * layer->config, and @out.
 */
enum status layer__conv_read(struct model *model, struct model_layer *layer,
			     const struct json_at *config, const struct model_option *own,
			     size_t count, struct layer_conv **out, struct err *err);
/* "groups": absent or a divisor of the input's channels. */
enum status layer__conv_groups(const struct model_layer *layer, const struct json_at *config,
			       int64_t *out, struct err *err);
/* "depth_multiplier"; every channel of the input becomes a group. */
enum status layer__conv_multiplier(const struct model_layer *layer, const struct json_at *config,
				   struct err *err);
/* The parameter "depthwise_kernel". */
enum status layer__conv_depthwise(struct model *model, struct model_layer *layer,
				  const struct json_at *config, struct err *err);
/* A count of channels ("filters") of which tensors can still be counted. */
enum status layer__conv_count(const struct json_at *config, const char *key, int64_t absent,
			      int64_t *out, struct err *err);
enum status layer__conv_bias(struct model *model, struct model_layer *layer,
			     const struct json_at *config, struct err *err);

/* The window over a batch of the layer's input. */
struct kernel_conv layer__conv_kernel(const struct model_layer *layer, int64_t channels,
				      int64_t filters, int64_t batch);

/*
 * The passes and the scratch of a layer whose parameters are its window's kernel and, after it, the
 * bias: rows of its layer_ops.
 */
void layer__conv_forward(const struct layer_pass *pass);
void layer__conv_backward(const struct layer_pass *pass);
size_t layer__conv_scratch(const struct model *model, const struct model_layer *layer,
			   int64_t batch, unsigned lanes, bool training);

/* The part of the activation that is done where sums are stored, and the rest of it. */
struct kernel_conv_finish layer__conv_finish(const struct layer_pass *pass, int bias);
float *layer__conv_sums(const struct layer_pass *pass); /* where the sums go */
void layer__conv_activate(const struct layer_pass *pass);
/* The activation's gradient on pass->grad_output, but for what a ReLU leaves to the kernels. */
struct kernel_conv_relu layer__conv_gradient(const struct layer_pass *pass);
size_t layer__conv_outputs(const struct layer_pass *pass); /* floats */

int64_t layer__conv_pixels(const struct model_layer *layer, int64_t batch); /* of the output */
/* What the layer does after its sums, or a multiplication of sums of @depth by it; saturating. */
int64_t layer__conv_flops(const struct model_layer *layer, int64_t batch, int64_t depth);

/* The device's operation of such a convolution from @channels to @filters. */
void layer__conv_op(const struct layer_lowering *lowering, enum ipu_pass pass, int64_t channels,
		    int64_t filters, struct ipu_op *out);

#endif /* LAYER_CONV_H */
