/*
 * DepthwiseConv2D: each channel has depth_multiplier filters of its own; the kernel is
 * [kernel height, width, channels, depth_multiplier].
 */
#include "common/mem.h"
#include "model/layers/layer_conv.h"

extern const struct layer_ops layer_depthwise_conv2d;

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
	layer->units = layer->output.dim[2] = w->groups * w->multiplier;
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

const struct layer_ops layer_depthwise_conv2d = {
	.class_name = "DepthwiseConv2D",
	.kind = LAYER_KIND_depthwise_conv2d,
	.read = depthwise_read,
	.flops = depthwise_flops,
	.lower = depthwise_lower,
	.reads_inputs = true,
	.reads_output = true,
};
