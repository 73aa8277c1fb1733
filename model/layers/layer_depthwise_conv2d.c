/*
 * DepthwiseConv2D and DepthwiseConv1D: each channel has depth_multiplier separate filters; the
 * kernel is [kernel height, width, channels, depth_multiplier], in 1D without the height.
 */
#include "common/mem.h"
#include "model/layers/layer_conv.h"

extern const struct layer_ops layer_depthwise_conv1d, layer_depthwise_conv2d;

static enum status depthwise_read(struct model *model, struct model_layer *layer,
				  const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		LAYER_CONV_OPTIONS,
		{"depth_multiplier", MODEL_ANY},
		LAYER_PARAM_OPTIONS("depthwise"),
	};
	struct layer_conv *w;

	layer__conv_read(model, layer, config, own, ARRAY_LEN(own), &w, err);
	layer__conv_multiplier(layer, config, err);
	if (layer__conv_depthwise(model, layer, config, err) != ST_OK)
		return err->status;
	layer->units = w->groups * w->multiplier;
	layer__set_output(layer, w->out, layer->units);
	return layer__conv_bias(model, layer, config, err);
}

static int64_t depthwise_flops(const struct model_layer *layer, int64_t batch)
{
	const struct layer_conv *w = layer->config;

	return layer__conv_flops(layer, batch, w->kernel[LAYER_Y] * w->kernel[LAYER_X]);
}

static void depthwise_product(const struct layer_lowering *lowering, enum ipu_pass pass,
			      struct ipu_op *out)
{
	const struct model_layer *layer = lowering->layer;

	layer__conv_op(lowering, pass, layer_last_dim(&layer->input), layer->units, out);
}

static void depthwise_lower(struct layer_lowering *lowering)
{
	layer__lower_product(lowering, "depthwise", depthwise_product);
}

/* What both layers share. */
#define DEPTHWISE_OPS(row, name)                                                                   \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = depthwise_read,                    \
	.flops = depthwise_flops, .lower = depthwise_lower, .reads_inputs = true,                  \
	.reads_output = true

const struct layer_ops layer_depthwise_conv2d = {
	DEPTHWISE_OPS(depthwise_conv2d, "DepthwiseConv2D"),
};

const struct layer_ops layer_depthwise_conv1d = {
	DEPTHWISE_OPS(depthwise_conv1d, "DepthwiseConv1D"),
	.sequence = true,
};
