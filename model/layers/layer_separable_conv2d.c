/*
 * SeparableConv2D and SeparableConv1D: a depthwise convolution without bias, then a 1 x 1
 * convolution over its channels with bias and activation.
 *
 * The intermediate tensor is retained for the backward pass; its gradient is scratch.
 */
#include "common/mem.h"
#include "model/layers/layer_conv.h"

extern const struct layer_ops layer_separable_conv1d, layer_separable_conv2d;

int64_t layer_separable_between(const struct model_layer *layer)
{
	const struct layer_conv *w = layer->config;

	return w->groups * w->multiplier;
}

static enum status separable_read(struct model *model, struct model_layer *layer,
				  const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		LAYER_CONV_OPTIONS,
		{"filters", MODEL_ANY},
		{"depth_multiplier", MODEL_ANY},
		LAYER_PARAM_OPTIONS("depthwise"),
		LAYER_PARAM_OPTIONS("pointwise"),
	};
	struct layer_param kernel = {
		.name = "pointwise_kernel", .option = "pointwise", .initializer = "GlorotUniform"};
	struct layer_conv *w;

	layer__conv_read(model, layer, config, own, ARRAY_LEN(own), &w, err);
	layer__conv_count(config, "filters", 0, &layer->units, err);
	layer__conv_multiplier(layer, config, err);
	if (layer__conv_depthwise(model, layer, config, err) != ST_OK)
		return err->status;
	kernel.fan_in = layer_separable_between(layer);
	kernel.fan_out = layer->units;
	layer__set_output(layer, w->out, layer->units);
	kernel.shape =
		layer->ops->sequence
			? (struct model_shape){.ndim = 3, .dim = {1, kernel.fan_in, kernel.fan_out}}
			: (struct model_shape){.ndim = 4,
					       .dim = {1, 1, kernel.fan_in, kernel.fan_out}};
	layer__add_param(model, layer, config, &kernel, err);
	return layer__conv_bias(model, layer, config, err);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t separable_flops(const struct model_layer *layer, int64_t batch)
{
	const struct layer_conv *w = layer->config;
	int64_t between = layer_separable_between(layer), flops, depthwise;
	int64_t taps = w->kernel[LAYER_Y] * w->kernel[LAYER_X];

	flops = layer__conv_flops(layer, batch, between);
	if (__builtin_mul_overflow(layer_conv_pixels(layer, batch) * between, 2 * taps,
				   &depthwise) ||
	    __builtin_add_overflow(flops, depthwise, &flops))
		return INT64_MAX;
	return flops;
}

static void separable_depthwise_op(const struct layer_lowering *lowering, enum ipu_pass pass,
				   struct layer_op *out)
{
	layer__conv_op(lowering, pass, layer_last_dim(&lowering->layer->input),
		       layer_separable_between(lowering->layer), &out->op);
}

/* The 1 x 1 convolution. */
static void separable_pointwise_op(const struct layer_lowering *lowering, enum ipu_pass pass,
				   struct layer_op *out)
{
	struct ipu_conv *conv = &out->op.conv;

	out->op.kind = IPU_OP_CONV;
	*conv = (struct ipu_conv){
		.pass = pass,
		.batch = lowering->batch,
		.groups = 1,
		.in_channels = layer_separable_between(lowering->layer),
		.out_channels = lowering->layer->units,
	};
	for (int way = 0; way < LAYER_WAYS; way++) {
		conv->in[way] = conv->out[way] = layer_side(&lowering->layer->output, way);
		conv->kernel[way] = conv->stride[way] = conv->dilation[way] = 1;
	}
}

/* One retained tensor holds the intermediate values, followed by the sums if the activation's
 * gradient reads them. */
static void separable_lower_forward(struct layer_lowering *lowering)
{
	const unsigned between = lowering->keeps ? LAYER_KEPT : LAYER_BETWEEN_TOO;
	struct layer_op op = {.reads = LAYER_INPUT | LAYER_PARAM(LAYER_SEPARABLE_DEPTHWISE),
			      .writes = between};

	op.makes = layer_conv_pixels(lowering->layer, lowering->batch) *
		   layer_separable_between(lowering->layer);
	if (layer__lower_sums(lowering) == LAYER_KEPT)
		op.makes += layer__lower_count(lowering);
	separable_depthwise_op(lowering, IPU_FORWARD, &op);
	layer__lower(lowering, "separable_conv2d/depthwise", &op);

	op.reads = between | LAYER_PARAM(LAYER_SEPARABLE_POINTWISE);
	op.writes = layer__lower_sums(lowering);
	op.makes = op.writes == LAYER_BETWEEN ? layer__lower_count(lowering) : 0;
	separable_pointwise_op(lowering, IPU_FORWARD, &op);
	layer__lower(lowering, "separable_conv2d", &op);
	layer__lower_bias(lowering, LAYER_SEPARABLE_BIAS);
	layer__lower_activation(lowering);
}

static void separable_lower_depthwise_backward(struct layer_lowering *lowering)
{
	struct layer_op op = {.reads = LAYER_INPUT | LAYER_BETWEEN,
			      .writes = LAYER_GRAD_PARAM(LAYER_SEPARABLE_DEPTHWISE)};

	separable_depthwise_op(lowering, IPU_BACKWARD_WEIGHTS, &op);
	if (lowering->layer->trainable)
		layer__lower(lowering, "separable_conv2d/depthwise/GradW", &op);
	op.reads = LAYER_BETWEEN | LAYER_PARAM(LAYER_SEPARABLE_DEPTHWISE);
	op.writes = LAYER_GRAD_INPUT;
	separable_depthwise_op(lowering, IPU_BACKWARD_DATA, &op);
	if (layer__wants_any(lowering))
		layer__lower(lowering, "separable_conv2d/depthwise/GradX", &op);
}

static void separable_lower(struct layer_lowering *lowering)
{
	struct layer_op op = {.reads = LAYER_KEPT | LAYER_GRAD_OUTPUT,
			      .writes = LAYER_GRAD_PARAM(LAYER_SEPARABLE_POINTWISE)};

	if (lowering->phase == IPU_PHASE_F) {
		separable_lower_forward(lowering);
		return;
	}
	layer__lower_activation(lowering);
	separable_pointwise_op(lowering, IPU_BACKWARD_WEIGHTS, &op);
	if (lowering->layer->trainable)
		layer__lower(lowering, "separable_conv2d/GradW", &op);
	layer__lower_bias_grad(lowering, LAYER_SEPARABLE_BIAS);
	op.reads = LAYER_GRAD_OUTPUT | LAYER_PARAM(LAYER_SEPARABLE_POINTWISE);
	op.writes = LAYER_BETWEEN;
	op.makes = layer_conv_pixels(lowering->layer, lowering->batch) *
		   layer_separable_between(lowering->layer);
	separable_pointwise_op(lowering, IPU_BACKWARD_DATA, &op);
	layer__lower(lowering, "separable_conv2d/GradX", &op);
	separable_lower_depthwise_backward(lowering);
}

/* What both layers share. */
#define SEPARABLE_OPS(row, name)                                                                   \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = separable_read,                    \
	.flops = separable_flops, .lower = separable_lower, .reads_inputs = true,                  \
	.reads_output = true

const struct layer_ops layer_separable_conv2d = {
	SEPARABLE_OPS(separable_conv2d, "SeparableConv2D"),
};

const struct layer_ops layer_separable_conv1d = {
	SEPARABLE_OPS(separable_conv1d, "SeparableConv1D"),
	.sequence = true,
};
