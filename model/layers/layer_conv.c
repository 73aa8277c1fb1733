/*
 * Convolutions over images and sequences: Conv, ConvTranspose, DepthwiseConv and SeparableConv in
 * 2D and 1D. Kernels have Keras's shapes; those of sequences lack the height.
 *
 * A dilated kernel has a reach of (kernel - 1) dilation + 1 pixels; for sizes see layer_config.h.
 * Bias and ReLU, the layer's or that of a following layer, are fused into the store of the sums. No
 * state.
 */
#include "common/mem.h"
#include "common/minmax.h"
#include "model/layers/layer_internal.h"

#define CONV_SIDE  4096      /* limit on a kernel, a stride, a dilation */
#define CONV_REACH 65536     /* limit on the reach of a dilated kernel */
#define CONV_COUNT INT32_MAX /* limit on channels, so that tensor sizes do not overflow */

/* clang-format off */
/* Keras writes the base class's kernel options even for layers whose kernel has another name. */
#define CONV_OPTIONS \
	{"kernel_size", .rule = MODEL_ANY}, {"strides", .rule = MODEL_ANY}, {"padding", .rule = MODEL_ANY}, \
	{"dilation_rate", .rule = MODEL_ANY}, {"data_format", .rule = MODEL_CHANNELS_LAST}, \
	{"activation", .rule = MODEL_ANY}, LAYER_USE_BIAS, LAYER_PARAM_OPTIONS("kernel"), \
	LAYER_PARAM_OPTIONS("bias"), {"activity_regularizer", .rule = MODEL_NULL}, \
	{"groups", MODEL_INT, LAYER_CONFIG(conv, groups), .strict = true, .least = 1, .most = CONV_COUNT, .fallback = 1}
#define FILTERS \
	{"filters", MODEL_INT, LAYER_FIELD(units), .strict = true, .required = true, .least = 1, .most = CONV_COUNT}
#define MULTIPLIER \
	{"depth_multiplier", MODEL_INT, LAYER_CONFIG(conv, multiplier), .strict = true, .least = 1, .most = CONV_COUNT, \
	 .fallback = 1}
static const struct model_option conv2d_options[] = {CONV_OPTIONS, FILTERS};
static const struct model_option depthwise_options[] = {CONV_OPTIONS, MULTIPLIER, LAYER_PARAM_OPTIONS("depthwise")};
static const struct model_option transposed_options[] = {CONV_OPTIONS, FILTERS, {"output_padding", .rule = MODEL_ANY}};
static const struct model_option separable_options[] = {
	CONV_OPTIONS, FILTERS, MULTIPLIER, LAYER_PARAM_OPTIONS("depthwise"), LAYER_PARAM_OPTIONS("pointwise"),
};
/* clang-format on */

/* Read the window and "activation"; output sides and padding are left to the caller. */
static enum status conv_window(const struct layer_reading *in)
{
	struct layer_conv *w = in->layer->config;
	struct json_at here;

	if (!w->multiplier)
		w->multiplier = 1;
	layer__window_option(in, "kernel_size", 1, CONV_SIDE, 0, w->kernel);
	layer__window_option(in, "strides", 1, CONV_SIDE, 1, w->stride);
	layer__window_option(in, "dilation_rate", 1, CONV_SIDE, 1, w->dilation);
	layer__padding(in, &w->same);
	if ((w->stride[LAYER_Y] > 1 || w->stride[LAYER_X] > 1) &&
	    (w->dilation[LAYER_Y] > 1 || w->dilation[LAYER_X] > 1) &&
	    model_option_given(in->config, "dilation_rate", &here, in->err))
		model_config_unsupported(&here, in->err,
					 "not supported together with \"strides\" above 1 (nor is "
					 "it in TensorFlow)");
	return layer__read_activation(in);
}

/* The same, with output sides and padding; the output shape is left to the caller. */
static enum status conv_begin(const struct layer_reading *in)
{
	static const char *const names[] = {"high", "wide"};

	conv_window(in);
	for (int way = 0; way < LAYER_WAYS && !err_stuck(in->err); way++) {
		const int64_t size = layer_side(&in->layer->input, way);
		struct layer_conv *w = in->layer->config;
		int64_t reach = (w->kernel[way] - 1) * w->dilation[way] + 1;

		if (reach > CONV_REACH) {
			json_fail(in->config, in->err,
				  "the dilated kernel is %lld %s, more than the limit of %d",
				  (long long)reach, names[way], CONV_REACH);
			break;
		}
		w->out[way] = layer__windows(size, reach, w->stride[way], w->same, &w->pad[way]);
		if (!w->out[way])
			json_fail(in->config, in->err,
				  "the kernel is %lld %s, but the image only %lld: there would be "
				  "no output (\"padding\" is \"valid\")",
				  (long long)reach, names[way], (long long)size);
	}
	return in->err->status;
}

/* (height, width, depth, filters), for sequences (steps, depth, filters). */
static struct model_shape conv_kernel_shape(const struct model_layer *layer, int64_t depth,
					    int64_t filters)
{
	const struct layer_conv *w = layer->config;

	if (layer->ops->sequence)
		return (struct model_shape){.ndim = 3, .dim = {w->kernel[LAYER_X], depth, filters}};
	return (struct model_shape){
		.ndim = 4, .dim = {w->kernel[LAYER_Y], w->kernel[LAYER_X], depth, filters}};
}

/* "groups" must be 1. */
static void conv_no_groups(const struct layer_reading *in)
{
	const struct layer_conv *w = in->layer->config;
	struct json_at here;

	if (w->groups != 1 && model_option_given(in->config, "groups", &here, in->err))
		model_config_unsupported(&here, in->err, "not supported: it must be 1 here");
}

/* Each channel of the input becomes a group. */
static enum status conv_multiplier(const struct layer_reading *in)
{
	struct layer_conv *w = in->layer->config;
	struct json_at here;

	conv_no_groups(in);
	w->groups = layer_last_dim(&in->layer->input);
	if (w->multiplier > CONV_COUNT / w->groups &&
	    model_option_given(in->config, "depth_multiplier", &here, in->err))
		json_fail(&here, in->err, "%lld outputs of each of %lld channels are too many",
			  (long long)w->multiplier, (long long)w->groups);
	return in->err->status;
}

static enum status conv_depthwise(const struct layer_reading *in)
{
	const struct layer_conv *w = in->layer->config;
	struct layer_param kernel = {
		.name = "depthwise_kernel", .option = "depthwise", .initializer = "GlorotUniform"};
	int64_t taps;

	if (err_stuck(in->err))
		return in->err->status;
	taps = w->kernel[LAYER_Y] * w->kernel[LAYER_X];
	kernel.shape = conv_kernel_shape(in->layer, w->groups, w->multiplier);
	kernel.fan_in = taps * w->groups;
	kernel.fan_out = taps * w->multiplier;
	return layer__add_param(in, &kernel);
}

static enum status conv_bias(const struct layer_reading *in)
{
	int64_t filters = layer_last_dim(&in->layer->output);
	const struct layer_param bias = {.name = "bias",
					 .initializer = "Zeros",
					 .shape = {.ndim = 1, .dim = {filters}},
					 .fan_in = filters,
					 .fan_out = filters};

	return in->layer->use_bias ? layer__add_param(in, &bias) : ST_OK;
}

int64_t layer_conv_pixels(const struct model_layer *layer, int64_t batch)
{
	return batch * layer_side(&layer->output, LAYER_Y) * layer_side(&layer->output, LAYER_X);
}

/* FLOPs of sums over @depth values (0: none), the bias and the activation; saturating. */
static int64_t conv_flops(const struct model_layer *layer, int64_t batch, int64_t depth)
{
	int64_t outputs = layer_conv_pixels(layer, batch) * layer_last_dim(&layer->output);
	int64_t each = 2 * depth + layer->use_bias + layer__activation_work(layer->activation);
	int64_t flops;

	return __builtin_mul_overflow(outputs, each, &flops) ? INT64_MAX : flops;
}

/* The convolution from @channels to @filters; if it is transposed, from the output's channels to
 * the input's. */
static void conv_op(const struct layer_lowering *lowering, enum ipu_pass pass, int64_t channels,
		    int64_t filters, struct ipu_op *out)
{
	const struct layer_conv *w = lowering->layer->config;
	const bool transposed = w->transposed;
	struct ipu_conv *conv = &out->conv;

	out->kind = IPU_OP_CONV;
	*conv = (struct ipu_conv){
		.pass = pass,
		.batch = lowering->batch,
		.groups = w->groups,
		.in_channels = channels / w->groups,
		.out_channels = filters / w->groups,
	};
	for (int way = 0; way < LAYER_WAYS; way++) {
		const int64_t side = layer_side(&lowering->layer->input, way);

		conv->in[way] = transposed ? w->out[way] : side;
		conv->out[way] = transposed ? side : w->out[way];
		conv->kernel[way] = w->kernel[way];
		conv->stride[way] = w->stride[way];
		conv->dilation[way] = w->dilation[way];
	}
}

/* ---- Conv2D and Conv1D ----------------------------------------------------------------------- */

/* y = activation(x * W + b); W is [kernel height, width, channels / groups, filters]. */
static enum status conv2d_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_param kernel = {.name = "kernel", .initializer = "GlorotUniform"};
	const int64_t channels = layer_last_dim(&layer->input);
	const struct layer_conv *w = layer->config;
	int64_t depth, taps;
	struct json_at here;

	if (conv_begin(in) != ST_OK)
		return in->err->status;
	if (model_option_given(in->config, "groups", &here, in->err)) {
		if (channels % w->groups)
			json_fail(&here, in->err,
				  "%lld groups do not divide the input's %lld channels",
				  (long long)w->groups, (long long)channels);
		else if (layer->units % w->groups)
			json_fail(&here, in->err, "%lld groups do not divide the %lld filters",
				  (long long)w->groups, (long long)layer->units);
	}
	depth = channels / w->groups;
	taps = w->kernel[LAYER_Y] * w->kernel[LAYER_X];
	layer__set_output(layer, w->out, layer->units);
	kernel.shape = conv_kernel_shape(layer, depth, layer->units);
	kernel.fan_in = taps * depth;
	kernel.fan_out = taps * layer->units;
	layer__add_param(in, &kernel);
	return conv_bias(in);
}

static int64_t conv2d_flops(const struct model_layer *layer, int64_t batch)
{
	const struct layer_conv *w = layer->config;
	const int64_t taps = w->kernel[LAYER_Y] * w->kernel[LAYER_X];

	return conv_flops(layer, batch, taps * layer_last_dim(&layer->input) / w->groups);
}

static void conv2d_product(const struct layer_lowering *lowering, enum ipu_pass pass,
			   struct ipu_op *out)
{
	const struct model_layer *layer = lowering->layer;

	conv_op(lowering, pass, layer_last_dim(&layer->input), layer->units, out);
}

static void conv2d_lower(struct layer_lowering *lowering)
{
	layer__lower_product(lowering, lowering->layer->ops->class_name, conv2d_product);
}

/* ---- DepthwiseConv2D and DepthwiseConv1D ----------------------------------------------------- */

/* Each channel has depth_multiplier separate filters; the kernel is [kernel height, width,
 * channels, depth_multiplier]. */
static enum status depthwise_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	const struct layer_conv *w = layer->config;

	conv_begin(in);
	conv_multiplier(in);
	if (conv_depthwise(in) != ST_OK)
		return in->err->status;
	layer->units = w->groups * w->multiplier;
	layer__set_output(layer, w->out, layer->units);
	return conv_bias(in);
}

static int64_t depthwise_flops(const struct model_layer *layer, int64_t batch)
{
	const struct layer_conv *w = layer->config;

	return conv_flops(layer, batch, w->kernel[LAYER_Y] * w->kernel[LAYER_X]);
}

static void depthwise_lower(struct layer_lowering *lowering)
{
	layer__lower_product(lowering, "depthwise", conv2d_product);
}

/* ---- Conv2DTranspose and Conv1DTranspose ----------------------------------------------------- */

/*
 * y = activation(z + b). z is the input gradient of a convolution W from y's shape to x's, for the
 * output gradient x. W is [kernel height, width, filters, channels].
 *
 * Sides are Keras's (deconv_output_length): for n pixels, stride s, a kernel with a reach of r
 * pixels and an output_padding p, "same" gives n s or, with p, (n - 1) s + r - 2 floor(r / 2) + p;
 * "valid" gives n s + max(r - s, 0) or (n - 1) s + r + p.
 */
static void transposed_side(const struct layer_reading *in, int way, int64_t more)
{
	struct layer_conv *w = in->layer->config;
	const int64_t side = layer_side(&in->layer->input, way), stride = w->stride[way];
	const int64_t reach = (w->kernel[way] - 1) * w->dilation[way] + 1;
	int64_t *out = &w->out[way];

	if (side > CONV_COUNT / stride - reach) {
		json_fail(in->config, in->err, "an output of %lld x %lld pixels is too large",
			  (long long)side, (long long)stride);
		return;
	}
	if (more < 0)
		*out = side * stride + (w->same ? 0 : max(reach - stride, (int64_t)0));
	else
		*out = (side - 1) * stride + reach + more - (w->same ? reach / 2 * 2 : 0);
	/* Fails if the convolution would not give this side back. */
	if (*out < 1 || layer__windows(*out, reach, stride, w->same, &w->pad[way]) != side)
		json_fail(in->config, in->err,
			  "no image of %lld pixels has %lld places of this kernel: leave "
			  "\"output_padding\" out, or choose another below the stride",
			  (long long)*out, (long long)side);
}

static enum status transposed_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_param kernel = {.name = "kernel", .initializer = "GlorotUniform"};
	int64_t more[LAYER_WAYS] = {-1, -1}, taps;
	struct layer_conv *w = layer->config;
	struct json_at here;

	if (conv_window(in) != ST_OK)
		return in->err->status;
	w->transposed = true;
	conv_no_groups(in);
	if (model_option_at(in->config, "output_padding", &here, in->err))
		layer__window_option(in, "output_padding", 0, CONV_COUNT, 0, more);
	if (layer->ops->sequence)
		more[LAYER_Y] = -1;
	for (int way = 0; way < LAYER_WAYS && !err_stuck(in->err); way++)
		if (more[way] >= w->stride[way] &&
		    model_option_at(in->config, "output_padding", &here, in->err))
			json_fail(&here, in->err, "must be below the stride, %lld",
				  (long long)w->stride[way]);
		else
			transposed_side(in, way, more[way]);
	if (err_stuck(in->err))
		return in->err->status;
	taps = w->kernel[LAYER_Y] * w->kernel[LAYER_X];
	layer__set_output(layer, w->out, layer->units);
	kernel.shape = conv_kernel_shape(layer, layer->units, layer_last_dim(&layer->input));
	/* Keras counts fans by position in the shape. */
	kernel.fan_in = taps * layer->units;
	kernel.fan_out = taps * layer_last_dim(&layer->input);
	layer__add_param(in, &kernel);
	return conv_bias(in);
}

static int64_t transposed_flops(const struct model_layer *layer, int64_t batch)
{
	const struct layer_conv *w = layer->config;
	const int64_t inputs = batch * model_shape_count(&layer->input);
	int64_t sums, flops;

	if (__builtin_mul_overflow(2 * w->kernel[LAYER_Y] * w->kernel[LAYER_X] * layer->units,
				   inputs, &sums) ||
	    __builtin_add_overflow(sums, conv_flops(layer, batch, 0), &flops))
		return INT64_MAX;
	return flops;
}

/* Each pass is a different pass of the convolution from the output to the input. */
static void transposed_product(const struct layer_lowering *lowering, enum ipu_pass pass,
			       struct ipu_op *out)
{
	static const enum ipu_pass passes[IPU_PASSES] = {
		[IPU_FORWARD] = IPU_BACKWARD_DATA,
		[IPU_BACKWARD_DATA] = IPU_FORWARD,
		[IPU_BACKWARD_WEIGHTS] = IPU_BACKWARD_WEIGHTS,
	};
	const struct model_layer *layer = lowering->layer;

	conv_op(lowering, passes[pass], layer->units, layer_last_dim(&layer->input), out);
}

static void transposed_lower(struct layer_lowering *lowering)
{
	layer__lower_product(lowering, lowering->layer->ops->class_name, transposed_product);
}

/* ---- SeparableConv2D and SeparableConv1D ----------------------------------------------------- */

/* A depthwise convolution without bias, then a 1 x 1 convolution over its channels with bias and
 * activation. The intermediate tensor is retained for the backward pass; its gradient is scratch.
 */
int64_t layer_separable_between(const struct model_layer *layer)
{
	const struct layer_conv *w = layer->config;

	return w->groups * w->multiplier;
}

static enum status separable_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_param kernel = {
		.name = "pointwise_kernel", .option = "pointwise", .initializer = "GlorotUniform"};
	const struct layer_conv *w = layer->config;

	conv_begin(in);
	conv_multiplier(in);
	if (conv_depthwise(in) != ST_OK)
		return in->err->status;
	kernel.fan_in = layer_separable_between(layer);
	kernel.fan_out = layer->units;
	layer__set_output(layer, w->out, layer->units);
	kernel.shape =
		layer->ops->sequence
			? (struct model_shape){.ndim = 3, .dim = {1, kernel.fan_in, kernel.fan_out}}
			: (struct model_shape){.ndim = 4,
					       .dim = {1, 1, kernel.fan_in, kernel.fan_out}};
	layer__add_param(in, &kernel);
	return conv_bias(in);
}

static int64_t separable_flops(const struct model_layer *layer, int64_t batch)
{
	const struct layer_conv *w = layer->config;
	int64_t between = layer_separable_between(layer), flops, depthwise;
	int64_t taps = w->kernel[LAYER_Y] * w->kernel[LAYER_X];

	flops = conv_flops(layer, batch, between);
	if (__builtin_mul_overflow(layer_conv_pixels(layer, batch) * between, 2 * taps,
				   &depthwise) ||
	    __builtin_add_overflow(flops, depthwise, &flops))
		return INT64_MAX;
	return flops;
}

static void separable_depthwise_op(const struct layer_lowering *lowering, enum ipu_pass pass,
				   struct layer_op *out)
{
	conv_op(lowering, pass, layer_last_dim(&lowering->layer->input),
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
	const unsigned between = lowering->retains ? LAYER_KEPT : LAYER_BETWEEN_TOO;
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

	op = (struct layer_op){.reads = LAYER_INPUT | LAYER_BETWEEN,
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

/* ---- rows of the table ----------------------------------------------------------------------- */

#define CONV_LAYER(row, name, how, is_sequence)                                                    \
	const struct layer_ops layer_##row = {.class_name = (name),                                \
					      .kind = LAYER_KIND_##row,                            \
					      .options = MODEL_OPTIONS(how##_options),             \
					      .config_size = sizeof(struct layer_conv),            \
					      .images = true,                                      \
					      .read = how##_read,                                  \
					      .flops = how##_flops,                                \
					      .lower = how##_lower,                                \
					      .reads_inputs = true,                                \
					      .reads_output = true,                                \
					      .sequence = (is_sequence)}

CONV_LAYER(conv1d, "Conv1D", conv2d, true);
CONV_LAYER(conv2d, "Conv2D", conv2d, false);
CONV_LAYER(conv1d_transpose, "Conv1DTranspose", transposed, true);
CONV_LAYER(conv2d_transpose, "Conv2DTranspose", transposed, false);
CONV_LAYER(depthwise_conv1d, "DepthwiseConv1D", depthwise, true);
CONV_LAYER(depthwise_conv2d, "DepthwiseConv2D", depthwise, false);
CONV_LAYER(separable_conv1d, "SeparableConv1D", separable, true);
CONV_LAYER(separable_conv2d, "SeparableConv2D", separable, false);
