/*
 * Conv2DTranspose and Conv1DTranspose: y = activation(z + b). z is the input gradient of a
 * convolution W from y's shape to x's, for the output gradient x. W is [kernel height, width,
 * filters, channels], or [kernel, filters, channels].
 *
 * Sides are Keras's (deconv_output_length): for n pixels, stride s, a kernel with a reach of r
 * pixels and an output_padding p, "same" gives n s or, with p, (n - 1) s + r - 2 floor(r / 2) + p;
 * "valid" gives n s + max(r - s, 0) or (n - 1) s + r + p. No state.
 */
#include "common/mem.h"
#include "common/minmax.h"
#include "model/layers/layer_conv.h"

extern const struct layer_ops layer_conv1d_transpose, layer_conv2d_transpose;

#define SIDE_MOST INT32_MAX

static void transposed_side(const struct model_layer *layer, const struct json_at *config, int way,
			    int64_t more, struct err *err)
{
	struct layer_conv *w = layer->config;
	const int64_t side = layer_side(&layer->input, way), stride = w->stride[way];
	const int64_t reach = (w->kernel[way] - 1) * w->dilation[way] + 1;
	int64_t *out = &w->out[way];

	if (side > SIDE_MOST / stride - reach) {
		json_fail(config, err, "an output of %lld x %lld pixels is too large",
			  (long long)side, (long long)stride);
		return;
	}
	if (more < 0)
		*out = side * stride + (w->same ? 0 : max(reach - stride, (int64_t)0));
	else
		*out = (side - 1) * stride + reach + more - (w->same ? reach / 2 * 2 : 0);
	/* Fails if the convolution would not give this side back. */
	if (*out < 1 || layer__windows(*out, reach, stride, w->same, &w->pad[way]) != side)
		json_fail(config, err,
			  "no image of %lld pixels has %lld places of this kernel: leave "
			  "\"output_padding\" out, or choose another below the stride",
			  (long long)*out, (long long)side);
}

static enum status transposed_read(struct model *model, struct model_layer *layer,
				   const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		LAYER_CONV_OPTIONS, {"filters", MODEL_ANY}, {"output_padding", MODEL_ANY}};
	struct layer_param kernel = {.name = "kernel", .initializer = "GlorotUniform"};
	int64_t more[LAYER_WAYS] = {-1, -1}, groups, taps;
	struct layer_conv *w;
	struct json_at here;

	if (layer__conv_window(model, layer, config, own, ARRAY_LEN(own), &w, err) != ST_OK)
		return err->status;
	w->transposed = true;
	layer__conv_count(config, "filters", 0, &layer->units, err);
	if (model_option_given(config, "groups", &here, err) &&
	    json_int(&here, 1, INT32_MAX, &groups, err) == ST_OK && groups != 1)
		model_config_unsupported(&here, err, "not supported: it must be 1 here");
	if (model_option_at(config, "output_padding", &here, err))
		layer__window_option(layer, config, "output_padding", 0, SIDE_MOST, 0, more, err);
	if (layer->ops->sequence)
		more[LAYER_Y] = -1;
	for (int way = 0; way < LAYER_WAYS && !err_stuck(err); way++)
		if (more[way] >= w->stride[way] &&
		    model_option_at(config, "output_padding", &here, err))
			json_fail(&here, err, "must be below the stride, %lld",
				  (long long)w->stride[way]);
		else
			transposed_side(layer, config, way, more[way], err);
	if (err_stuck(err))
		return err->status;
	taps = w->kernel[LAYER_Y] * w->kernel[LAYER_X];
	layer__set_output(layer, w->out, layer->units);
	kernel.shape = layer__conv_kernel_shape(layer, layer->units, layer_last_dim(&layer->input));
	/* Keras counts fans by position in the shape. */
	kernel.fan_in = taps * layer->units;
	kernel.fan_out = taps * layer_last_dim(&layer->input);
	layer__add_param(model, layer, config, &kernel, err);
	return layer__conv_bias(model, layer, config, err);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t transposed_flops(const struct model_layer *layer, int64_t batch)
{
	const struct layer_conv *w = layer->config;
	const int64_t inputs = batch * model_shape_count(&layer->input);
	int64_t sums, flops;

	if (__builtin_mul_overflow(2 * w->kernel[LAYER_Y] * w->kernel[LAYER_X] * layer->units,
				   inputs, &sums) ||
	    __builtin_add_overflow(sums, layer__conv_flops(layer, batch, 0), &flops))
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

	layer__conv_op(lowering, passes[pass], layer->units, layer_last_dim(&layer->input), out);
}

static void transposed_lower(struct layer_lowering *lowering)
{
	layer__lower_product(lowering, lowering->layer->ops->class_name, transposed_product);
}

/* What both layers share. */
#define TRANSPOSED_OPS(row, name)                                                                  \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = transposed_read,                   \
	.flops = transposed_flops, .lower = transposed_lower, .reads_inputs = true,                \
	.reads_output = true

const struct layer_ops layer_conv2d_transpose = {
	TRANSPOSED_OPS(conv2d_transpose, "Conv2DTranspose"),
};

const struct layer_ops layer_conv1d_transpose = {
	TRANSPOSED_OPS(conv1d_transpose, "Conv1DTranspose"),
	.sequence = true,
};
