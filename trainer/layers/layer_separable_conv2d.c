/*
 * SeparableConv2D: a depthwise convolution without bias, then a 1 x 1 convolution over its
 * channels with bias and activation.
 *
 * What lies between the two is kept for the backward pass; its gradient is scratch.
 */
#include "common/mem.h"
#include "trainer/kernels/kernel_depthwise.h"
#include "trainer/layers/layer_conv.h"

extern const struct layer_ops layer_separable_conv2d;

enum {
	SEPARABLE_DEPTHWISE,
	SEPARABLE_POINTWISE,
	SEPARABLE_BIAS
};

static int64_t separable_between(const struct model_layer *layer) /* channels */
{
	const struct layer_conv *w = layer->config;

	return w->groups * w->multiplier;
}

static enum status separable_pointwise(struct model *model, struct model_layer *layer,
				       const struct json_at *config, struct err *err)
{
	int64_t between = separable_between(layer);
	const struct layer_param kernel = {
		.name = "pointwise_kernel",
		.option = "pointwise",
		.initializer = "GlorotUniform",
		.shape = {.ndim = 4, .dim = {1, 1, between, layer->units}},
		.fan_in = between,
		.fan_out = layer->units,
	};

	return layer__add_param(model, layer, config, &kernel, err);
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
	struct layer_conv *w;
	enum status status = layer__conv_read(model, layer, config, own, ARRAY_LEN(own), &w, err);

	if (status == ST_OK)
		status = layer__conv_count(config, "filters", 0, &layer->units, err);
	if (status == ST_OK)
		status = layer__conv_multiplier(layer, config, err);
	if (status == ST_OK)
		status = layer__conv_depthwise(model, layer, config, err);
	if (status == ST_OK)
		status = separable_pointwise(model, layer, config, err);
	if (status != ST_OK)
		return status;
	layer->output.dim[2] = layer->units;
	return layer__conv_bias(model, layer, config, err);
}

/* ---- running --------------------------------------------------------------------------------- */

struct separable {
	struct kernel_conv depthwise, pointwise;
	struct kernel_room room;
	float *between, *grad; /* what lies between the two, and its gradient */
};

static struct separable separable_of(const struct model_layer *layer, int64_t batch)
{
	struct separable s = {
		.depthwise = layer__conv_kernel(layer, layer__last_dim(&layer->input),
						separable_between(layer), batch),
	};

	s.pointwise = (struct kernel_conv){
		.batch = batch,
		.height = s.depthwise.out_height,
		.width = s.depthwise.out_width,
		.channels = s.depthwise.filters,
		.out_height = s.depthwise.out_height,
		.out_width = s.depthwise.out_width,
		.filters = layer->units,
		.kernel_height = 1,
		.kernel_width = 1,
		.stride_y = 1,
		.stride_x = 1,
		.dilation_y = 1,
		.dilation_x = 1,
		.groups = 1,
	};
	return s;
}

/* Floats of what lies between, whole cache lines. */
static size_t separable_floats(const struct model_layer *layer, int64_t batch)
{
	return model__align((size_t)(layer__conv_pixels(layer, batch) * separable_between(layer)));
}

/* Floats that the activation keeps, before what lies between. */
static size_t separable_first(const struct model *model, const struct model_layer *layer,
			      int64_t batch)
{
	return model__align(layer__activation_kept(model, layer, batch) / sizeof(float));
}

static struct separable separable_pass(const struct layer_pass *pass)
{
	struct separable s = separable_of(pass->layer, pass->batch);

	s.between = (float *)pass->kept + separable_first(pass->model, pass->layer, pass->batch);
	s.grad = pass->scratch;
	s.room = (struct kernel_room){pass->pool, pass->scratch};
	return s;
}

static void separable_forward(const struct layer_pass *pass)
{
	const struct kernel_conv_finish plain = {0};
	struct kernel_conv_finish finish = layer__conv_finish(pass, SEPARABLE_BIAS);
	struct separable s = separable_pass(pass);

	kernel_depthwise_forward(&s.depthwise, &s.room, pass->inputs[0],
				 layer__weights(pass, SEPARABLE_DEPTHWISE), &plain, s.between);
	kernel_conv_forward(&s.pointwise, &s.room, s.between,
			    layer__weights(pass, SEPARABLE_POINTWISE), &finish,
			    layer__conv_sums(pass));
	layer__conv_activate(pass);
}

static void separable_backward(const struct layer_pass *pass)
{
	const struct kernel_conv_relu none = {0};
	const struct model_layer *layer = pass->layer;
	struct kernel_conv_relu relu = layer__conv_gradient(pass);
	struct separable s = separable_pass(pass);

	s.room.scratch = s.grad + separable_floats(layer, pass->batch);
	relu.keep = true;
	if (!layer->trainable)
		kernel_conv_grad_relu(&relu, pass->pool, pass->grad_output,
				      layer__conv_outputs(pass));
	else
		kernel_conv_grad_kernel(&s.pointwise, &s.room, s.between, pass->grad_output, &relu,
					layer__gradients(pass, SEPARABLE_POINTWISE),
					layer->use_bias ? layer__gradients(pass, SEPARABLE_BIAS)
							: NULL);
	if (!layer->trainable && !pass->grad_inputs[0])
		return;
	kernel_conv_grad_input(&s.pointwise, &s.room, pass->grad_output,
			       layer__weights(pass, SEPARABLE_POINTWISE), s.grad, false);
	if (layer->trainable)
		kernel_depthwise_grad_kernel(&s.depthwise, &s.room, pass->inputs[0], s.grad, &none,
					     layer__gradients(pass, SEPARABLE_DEPTHWISE), NULL);
	if (pass->grad_inputs[0])
		kernel_depthwise_grad_input(&s.depthwise, &s.room, s.grad,
					    layer__weights(pass, SEPARABLE_DEPTHWISE),
					    pass->grad_inputs[0], pass->add && pass->add[0]);
}

static size_t separable_kept(const struct model *model, const struct model_layer *layer,
			     int64_t batch)
{
	return (separable_first(model, layer, batch) + separable_floats(layer, batch)) *
	       sizeof(float);
}

static size_t separable_scratch(const struct model *model, const struct model_layer *layer,
				int64_t batch, unsigned lanes, bool training)
{
	struct separable s = separable_of(layer, batch);
	size_t depthwise = kernel_depthwise_scratch(&s.depthwise, lanes, training);
	size_t pointwise = kernel_conv_scratch(&s.pointwise, lanes, training);
	size_t grad = training ? separable_floats(layer, batch) * sizeof(float) : 0;

	(void)model;
	return grad + (depthwise > pointwise ? depthwise : pointwise);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t separable_flops(const struct model_layer *layer, int64_t batch)
{
	const struct layer_conv *w = layer->config;
	int64_t between = separable_between(layer), flops, depthwise;
	int64_t taps = w->kernel[LAYER_Y] * w->kernel[LAYER_X];

	flops = layer__conv_flops(layer, batch, between);
	if (__builtin_mul_overflow(layer__conv_pixels(layer, batch) * between, 2 * taps,
				   &depthwise) ||
	    __builtin_add_overflow(flops, depthwise, &flops))
		return INT64_MAX;
	return flops;
}

static void separable_depthwise_op(const struct layer_lowering *lowering, enum ipu_pass pass,
				   struct layer_op *out)
{
	layer__conv_op(lowering, pass, layer__last_dim(&lowering->layer->input),
		       separable_between(lowering->layer), &out->op);
}

/* A product of single pixels. */
static void separable_pointwise_op(const struct layer_lowering *lowering, enum ipu_pass pass,
				   struct layer_op *out)
{
	struct ipu_conv *conv = &out->op.conv;

	out->op.kind = IPU_OP_CONV;
	*conv = (struct ipu_conv){
		.pass = pass,
		.batch = lowering->batch,
		.groups = 1,
		.in_channels = separable_between(lowering->layer),
		.out_channels = lowering->layer->units,
	};
	for (int way = 0; way < LAYER_WAYS; way++) {
		conv->in[way] = conv->out[way] = lowering->layer->output.dim[way];
		conv->kernel[way] = conv->stride[way] = conv->dilation[way] = 1;
	}
}

/* What lies between is kept; so are the sums where the activation's gradient reads them: one after
 * the other. */
static void separable_lower_forward(struct layer_lowering *lowering)
{
	const unsigned between = lowering->keeps ? LAYER_KEPT : LAYER_BETWEEN_TOO;
	struct layer_op op = {.reads = LAYER_INPUT | LAYER_PARAM(SEPARABLE_DEPTHWISE),
			      .writes = between};

	op.makes = layer__conv_pixels(lowering->layer, lowering->batch) *
		   separable_between(lowering->layer);
	if (layer__lower_sums(lowering) == LAYER_KEPT)
		op.makes += layer__lower_count(lowering);
	separable_depthwise_op(lowering, IPU_FORWARD, &op);
	layer__lower(lowering, "separable_conv2d/depthwise", &op);

	op.reads = between | LAYER_PARAM(SEPARABLE_POINTWISE);
	op.writes = layer__lower_sums(lowering);
	op.makes = op.writes == LAYER_BETWEEN ? layer__lower_count(lowering) : 0;
	separable_pointwise_op(lowering, IPU_FORWARD, &op);
	layer__lower(lowering, "separable_conv2d", &op);
	layer__lower_bias(lowering, SEPARABLE_BIAS);
	layer__lower_activation(lowering);
}

static void separable_lower_depthwise_backward(struct layer_lowering *lowering)
{
	struct layer_op op = {.reads = LAYER_INPUT | LAYER_BETWEEN,
			      .writes = LAYER_GRAD_PARAM(SEPARABLE_DEPTHWISE)};

	separable_depthwise_op(lowering, IPU_BACKWARD_WEIGHTS, &op);
	if (lowering->layer->trainable)
		layer__lower(lowering, "separable_conv2d/depthwise/GradW", &op);
	op.reads = LAYER_BETWEEN | LAYER_PARAM(SEPARABLE_DEPTHWISE);
	op.writes = LAYER_GRAD_INPUT;
	separable_depthwise_op(lowering, IPU_BACKWARD_DATA, &op);
	if (layer__wants_any(lowering))
		layer__lower(lowering, "separable_conv2d/depthwise/GradX", &op);
}

static void separable_lower(struct layer_lowering *lowering)
{
	struct layer_op op = {.reads = LAYER_KEPT | LAYER_GRAD_OUTPUT,
			      .writes = LAYER_GRAD_PARAM(SEPARABLE_POINTWISE)};

	if (lowering->phase == 'F') {
		separable_lower_forward(lowering);
		return;
	}
	layer__lower_activation(lowering);
	separable_pointwise_op(lowering, IPU_BACKWARD_WEIGHTS, &op);
	if (lowering->layer->trainable)
		layer__lower(lowering, "separable_conv2d/GradW", &op);
	layer__lower_bias_grad(lowering, SEPARABLE_BIAS);
	op.reads = LAYER_GRAD_OUTPUT | LAYER_PARAM(SEPARABLE_POINTWISE);
	op.writes = LAYER_BETWEEN;
	op.makes = layer__conv_pixels(lowering->layer, lowering->batch) *
		   separable_between(lowering->layer);
	separable_pointwise_op(lowering, IPU_BACKWARD_DATA, &op);
	layer__lower(lowering, "separable_conv2d/GradX", &op);
	separable_lower_depthwise_backward(lowering);
}

const struct layer_ops layer_separable_conv2d = {
	.class_name = "SeparableConv2D",
	.read = separable_read,
	.forward = separable_forward,
	.backward = separable_backward,
	.kept = separable_kept,
	.scratch = separable_scratch,
	.flops = separable_flops,
	.lower = separable_lower,
	.reads_inputs = true,
	.reads_output = true,
	.adds = true,
	.fuses_relu = true,
};
