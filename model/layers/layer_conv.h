/*
 * What the convolutions share: their windows over an image, and their options.
 *
 * A dilated kernel reaches (kernel - 1) dilation + 1 pixels far; sizes are layer_config.h's.
 */
#ifndef LAYER_CONV_H
#define LAYER_CONV_H

#include "model/layers/layer_internal.h"

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
 * image or a sequence, which layer->input must be. The window is layer->config, and @out; its user
 * sets the output, whose channels are not known here. layer__conv_window() leaves the window's
 * sides and zeros to its user, too.
 */
enum status layer__conv_window(struct model *model, struct model_layer *layer,
			       const struct json_at *config, const struct model_option *own,
			       size_t count, struct layer_conv **out, struct err *err);
enum status layer__conv_read(struct model *model, struct model_layer *layer,
			     const struct json_at *config, const struct model_option *own,
			     size_t count, struct layer_conv **out, struct err *err);
/* Of a kernel: (height, width, depth, filters), of a sequence's (steps, depth, filters). */
struct model_shape layer__conv_kernel_shape(const struct model_layer *layer, int64_t depth,
					    int64_t filters);
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

/* What the layer does after its sums, or a multiplication of sums of @depth by it; saturating. */
int64_t layer__conv_flops(const struct model_layer *layer, int64_t batch, int64_t depth);

/* The device's operation of such a convolution from @channels to @filters; of a transposed one,
 * from the output's channels to the input's. */
void layer__conv_op(const struct layer_lowering *lowering, enum ipu_pass pass, int64_t channels,
		    int64_t filters, struct ipu_op *out);

#endif /* LAYER_CONV_H */
