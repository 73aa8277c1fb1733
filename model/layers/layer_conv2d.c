/*
 * Conv2D and Conv1D: y = activation(x * W + b); W is [kernel height, width, channels / groups,
 * filters], or [kernel, channels / groups, filters].
 *
 * Bias and ReLU, the layer's or that of a following layer, are fused into the store of the sums.
 */
#include "common/mem.h"
#include "model/layers/layer_conv.h"

extern const struct layer_ops layer_conv1d, layer_conv2d;

static enum status conv2d_read(struct model *model, struct model_layer *layer,
			       const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {LAYER_CONV_OPTIONS, {"filters", MODEL_ANY}};
	struct layer_param kernel = {.name = "kernel", .initializer = "GlorotUniform"};
	int64_t depth, taps;
	struct layer_conv *w;
	struct json_at here;

	if (layer__conv_read(model, layer, config, own, ARRAY_LEN(own), &w, err) != ST_OK)
		return err->status;
	layer__conv_count(config, "filters", 0, &layer->units, err);
	layer__conv_groups(layer, config, &w->groups, err);
	if (layer->units % w->groups && model_option_given(config, "groups", &here, err))
		json_fail(&here, err, "%lld groups do not divide the %lld filters",
			  (long long)w->groups, (long long)layer->units);
	depth = layer_last_dim(&layer->input) / w->groups;
	taps = w->kernel[LAYER_Y] * w->kernel[LAYER_X];
	layer__set_output(layer, w->out, layer->units);
	kernel.shape = layer__conv_kernel_shape(layer, depth, layer->units);
	kernel.fan_in = taps * depth;
	kernel.fan_out = taps * layer->units;
	layer__add_param(model, layer, config, &kernel, err);
	return layer__conv_bias(model, layer, config, err);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t conv2d_depth(const struct model_layer *layer)
{
	const struct layer_conv *w = layer->config;

	return w->kernel[LAYER_Y] * w->kernel[LAYER_X] * layer_last_dim(&layer->input) / w->groups;
}

static int64_t conv2d_flops(const struct model_layer *layer, int64_t batch)
{
	return layer__conv_flops(layer, batch, conv2d_depth(layer));
}

static void conv2d_product(const struct layer_lowering *lowering, enum ipu_pass pass,
			   struct ipu_op *out)
{
	const struct model_layer *layer = lowering->layer;

	layer__conv_op(lowering, pass, layer_last_dim(&layer->input), layer->units, out);
}

static void conv2d_lower(struct layer_lowering *lowering)
{
	layer__lower_product(lowering, lowering->layer->ops->class_name, conv2d_product);
}

/* What both layers share. */
#define CONV_OPS(row, name)                                                                        \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = conv2d_read,                       \
	.flops = conv2d_flops, .lower = conv2d_lower, .reads_inputs = true, .reads_output = true

const struct layer_ops layer_conv2d = {
	CONV_OPS(conv2d, "Conv2D"),
};

const struct layer_ops layer_conv1d = {
	CONV_OPS(conv1d, "Conv1D"),
	.sequence = true,
};
