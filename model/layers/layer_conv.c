/*
 * Convolutions: their options, sizes and device operations. No state.
 */
#include "model/layers/layer_conv.h"

#define CONV_SIDE  4096      /* limit on a kernel, a stride, a dilation */
#define CONV_REACH 65536     /* limit on the reach of a dilated kernel */
#define CONV_COUNT INT32_MAX /* limit on channels */

/* ---- reading --------------------------------------------------------------------------------- */

static void conv_size(const struct json_at *config, int64_t size, int way, struct layer_conv *w,
		      struct err *err)
{
	static const char *const names[] = {"high", "wide"};
	int64_t reach = (w->kernel[way] - 1) * w->dilation[way] + 1;

	if (err_stuck(err))
		return;
	if (reach > CONV_REACH) {
		json_fail(config, err, "the dilated kernel is %lld %s, more than the limit of %d",
			  (long long)reach, names[way], CONV_REACH);
		return;
	}
	w->out[way] = layer__windows(size, reach, w->stride[way], w->same, &w->pad[way]);
	if (!w->out[way])
		json_fail(
			config, err,
			"the kernel is %lld %s, but the image only %lld: there would be no output "
			"(\"padding\" is \"valid\")",
			(long long)reach, names[way], (long long)size);
}

enum status layer__conv_window(struct model *model, struct model_layer *layer,
			       const struct json_at *config, const struct model_option *own,
			       size_t count, struct layer_conv **out, struct err *err)
{
	struct layer_conv *w;
	struct json_at here;

	layer__begin(model, layer, config, own, count, sizeof(*w), err);
	*out = w = layer->config;
	if (layer__check_images(layer, config, err) != ST_OK)
		return err->status;
	w->groups = w->multiplier = 1;
	layer__window_option(layer, config, "kernel_size", 1, CONV_SIDE, 0, w->kernel, err);
	layer__window_option(layer, config, "strides", 1, CONV_SIDE, 1, w->stride, err);
	layer__window_option(layer, config, "dilation_rate", 1, CONV_SIDE, 1, w->dilation, err);
	layer__padding(config, &w->same, err);
	if ((w->stride[LAYER_Y] > 1 || w->stride[LAYER_X] > 1) &&
	    (w->dilation[LAYER_Y] > 1 || w->dilation[LAYER_X] > 1) &&
	    model_option_given(config, "dilation_rate", &here, err))
		model_config_unsupported(&here, err,
					 "not supported together with \"strides\" above 1 (nor is "
					 "it in TensorFlow)");
	return layer__read_finish(layer, config, err);
}

enum status layer__conv_read(struct model *model, struct model_layer *layer,
			     const struct json_at *config, const struct model_option *own,
			     size_t count, struct layer_conv **out, struct err *err)
{
	layer__conv_window(model, layer, config, own, count, out, err);
	for (int way = 0; way < LAYER_WAYS && !err_stuck(err); way++)
		conv_size(config, layer_side(&layer->input, way), way, *out, err);
	return err->status;
}

struct model_shape layer__conv_kernel_shape(const struct model_layer *layer, int64_t depth,
					    int64_t filters)
{
	const struct layer_conv *w = layer->config;

	if (layer->ops->sequence)
		return (struct model_shape){.ndim = 3, .dim = {w->kernel[LAYER_X], depth, filters}};
	return (struct model_shape){
		.ndim = 4, .dim = {w->kernel[LAYER_Y], w->kernel[LAYER_X], depth, filters}};
}

enum status layer__conv_groups(const struct model_layer *layer, const struct json_at *config,
			       int64_t *out, struct err *err)
{
	int64_t channels = layer_last_dim(&layer->input);
	struct json_at here;

	*out = 1;
	if (model_option_given(config, "groups", &here, err) &&
	    json_int(&here, 1, CONV_COUNT, out, err) == ST_OK && channels % *out)
		json_fail(&here, err, "%lld groups do not divide the input's %lld channels",
			  (long long)*out, (long long)channels);
	return err->status;
}

enum status layer__conv_count(const struct json_at *config, const char *key, int64_t absent,
			      int64_t *out, struct err *err)
{
	struct json_at here;

	*out = absent;
	if (absent ? model_option_given(config, key, &here, err)
		   : model_option_need(config, key, &here, err))
		json_int(&here, 1, CONV_COUNT, out, err);
	return err->status;
}

enum status layer__conv_multiplier(const struct model_layer *layer, const struct json_at *config,
				   struct err *err)
{
	struct layer_conv *w = layer->config;
	struct json_at here;
	int64_t groups = 1;

	if (err_stuck(err))
		return err->status;
	w->groups = layer_last_dim(&layer->input);
	layer__conv_count(config, "depth_multiplier", 1, &w->multiplier, err);
	if (model_option_given(config, "groups", &here, err) &&
	    json_int(&here, 1, CONV_COUNT, &groups, err) == ST_OK && groups != 1)
		model_config_unsupported(&here, err, "not supported: it must be 1 here");
	if (w->multiplier > CONV_COUNT / w->groups &&
	    model_option_given(config, "depth_multiplier", &here, err))
		json_fail(&here, err, "%lld outputs of each of %lld channels are too many",
			  (long long)w->multiplier, (long long)w->groups);
	return err->status;
}

enum status layer__conv_depthwise(struct model *model, struct model_layer *layer,
				  const struct json_at *config, struct err *err)
{
	const struct layer_conv *w = layer->config;
	struct layer_param kernel = {
		.name = "depthwise_kernel", .option = "depthwise", .initializer = "GlorotUniform"};
	int64_t taps;

	if (err_stuck(err))
		return err->status;
	taps = w->kernel[LAYER_Y] * w->kernel[LAYER_X];
	kernel.shape = layer__conv_kernel_shape(layer, w->groups, w->multiplier);
	kernel.fan_in = taps * w->groups;
	kernel.fan_out = taps * w->multiplier;
	return layer__add_param(model, layer, config, &kernel, err);
}

enum status layer__conv_bias(struct model *model, struct model_layer *layer,
			     const struct json_at *config, struct err *err)
{
	int64_t filters = layer_last_dim(&layer->output);
	const struct layer_param bias = {.name = "bias",
					 .initializer = "Zeros",
					 .shape = {.ndim = 1, .dim = {filters}},
					 .fan_in = filters,
					 .fan_out = filters};

	return layer->use_bias ? layer__add_param(model, layer, config, &bias, err) : ST_OK;
}

/* ---- costs ----------------------------------------------------------------------------------- */

int64_t layer_conv_pixels(const struct model_layer *layer, int64_t batch)
{
	return batch * layer_side(&layer->output, LAYER_Y) * layer_side(&layer->output, LAYER_X);
}

int64_t layer__conv_flops(const struct model_layer *layer, int64_t batch, int64_t depth)
{
	int64_t outputs = layer_conv_pixels(layer, batch) * layer_last_dim(&layer->output);
	int64_t each = 2 * depth + layer->use_bias + layer__activation_work(layer->activation);
	int64_t flops;

	return __builtin_mul_overflow(outputs, each, &flops) ? INT64_MAX : flops;
}

void layer__conv_op(const struct layer_lowering *lowering, enum ipu_pass pass, int64_t channels,
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
