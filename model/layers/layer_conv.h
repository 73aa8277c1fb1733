/*
 * What the convolutions share: their windows over an image, and their options.
 *
 * A dilated kernel has a reach of (kernel - 1) dilation + 1 pixels; for sizes see layer_config.h.
 */
#ifndef LAYER_CONV_H
#define LAYER_CONV_H

#include "model/layers/layer_internal.h"

/* Keras writes the base class's kernel options even for layers whose kernel has another name. */
#define LAYER_CONV_OPTIONS                                                                         \
	{"kernel_size", MODEL_ANY}, {"strides", MODEL_ANY}, {"padding", MODEL_ANY},                \
		{"dilation_rate", MODEL_ANY}, {"data_format", MODEL_CHANNELS_LAST},                \
		{"groups", MODEL_ANY}, {"activation", MODEL_ANY}, {"use_bias", MODEL_ANY},         \
		LAYER_PARAM_OPTIONS("kernel"), LAYER_PARAM_OPTIONS("bias"),                        \
	{                                                                                          \
		"activity_regularizer", MODEL_NULL                                                 \
	}

/*
 * Check the options including @own, and read the window, "use_bias" and "activation" of a layer
 * whose input must be an image or a sequence. layer->config and *@out become the window. The caller
 * sets the output shape, because the channels are not known here. layer__conv_window() also leaves
 * the window's output sides and padding to the caller.
 */
enum status layer__conv_window(struct model *model, struct model_layer *layer,
			       const struct json_at *config, const struct model_option *own,
			       size_t count, struct layer_conv **out, struct err *err);
enum status layer__conv_read(struct model *model, struct model_layer *layer,
			     const struct json_at *config, const struct model_option *own,
			     size_t count, struct layer_conv **out, struct err *err);
/* The shape of a kernel: (height, width, depth, filters), for sequences (steps, depth, filters). */
struct model_shape layer__conv_kernel_shape(const struct model_layer *layer, int64_t depth,
					    int64_t filters);
/* Read "groups": absent (1) or a divisor of the input's channels. */
enum status layer__conv_groups(const struct model_layer *layer, const struct json_at *config,
			       int64_t *out, struct err *err);
/* Read "depth_multiplier"; each channel of the input becomes a group. */
enum status layer__conv_multiplier(const struct model_layer *layer, const struct json_at *config,
				   struct err *err);
/* Add the parameter "depthwise_kernel". */
enum status layer__conv_depthwise(struct model *model, struct model_layer *layer,
				  const struct json_at *config, struct err *err);
/* Read a number of channels ("filters"), bounded so that tensor sizes do not overflow. */
enum status layer__conv_count(const struct json_at *config, const char *key, int64_t absent,
			      int64_t *out, struct err *err);
enum status layer__conv_bias(struct model *model, struct model_layer *layer,
			     const struct json_at *config, struct err *err);

/* FLOPs of sums over @depth values, the bias and the activation; saturating. @depth 0: only the
 * latter. */
int64_t layer__conv_flops(const struct model_layer *layer, int64_t batch, int64_t depth);

/* Set @out to the convolution from @channels to @filters; if it is transposed, from the output's
 * channels to the input's. */
void layer__conv_op(const struct layer_lowering *lowering, enum ipu_pass pass, int64_t channels,
		    int64_t filters, struct ipu_op *out);

#endif /* LAYER_CONV_H */
