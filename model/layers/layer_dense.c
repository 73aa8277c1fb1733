/*
 * Dense: y = activation(x W + b) over the last axis; W is [inputs, units]. No state.
 */
#include <limits.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"

/* ---- reading --------------------------------------------------------------------------------- */

static const struct model_option dense_options[] = {
	{"units", MODEL_INT, LAYER_FIELD(units), .required = true, .strict = true, .least = 1,
	 .most = 0x1p63},
	{"activation", .rule = MODEL_ANY},
	LAYER_USE_BIAS,
	LAYER_PARAM_OPTIONS("kernel"),
	LAYER_PARAM_OPTIONS("bias"),
	{"activity_regularizer", .rule = MODEL_NULL},
	{"quantization_config", .rule = MODEL_NULL},
	{"quantization_mode", .rule = MODEL_NULL},
	{"lora_rank", .rule = MODEL_NULL},
	{"lora_alpha", .rule = MODEL_NULL},
};

static enum status dense_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	const int64_t inputs = layer_last_dim(&layer->input);
	struct layer_param kernel = {
		.name = "kernel", .initializer = "GlorotUniform", .fan_in = inputs};
	struct layer_param bias = {.name = "bias", .initializer = "Zeros"};
	struct json_at here;

	if (!layer->input.ndim)
		return json_fail(in->config, in->err,
				 "Dense needs an input of at least one dimension");
	if (layer->units > INT_MAX && json_child(in->config, "units", &here))
		return model_config_limit(
			&here, in->err,
			"%lld units are beyond the limit of %d: this layer's kernel would take "
			"%.0f GB",
			(long long)layer->units, INT_MAX,
			(double)layer->units * (double)inputs * 4e-9);
	layer__read_activation(in);
	layer->output.dim[layer->output.ndim - 1] = layer->units;
	layer->reads_inputs = layer->trainable; /* for the kernel's gradient */
	kernel.shape = (struct model_shape){.ndim = 2, .dim = {inputs, layer->units}};
	bias.shape = (struct model_shape){.ndim = 1, .dim = {layer->units}};
	kernel.fan_out = bias.fan_in = bias.fan_out = layer->units;
	layer__add_param(in, &kernel);
	if (layer->use_bias)
		layer__add_param(in, &bias);
	return in->err->status;
}

struct layer_dense_sizes layer_dense_sizes(const struct model_layer *layer, int64_t batch)
{
	int64_t inputs = layer_last_dim(&layer->input);

	return (struct layer_dense_sizes){
		.rows = batch * (model_shape_count(&layer->input) / inputs),
		.inputs = inputs,
		.units = layer->units,
	};
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t dense_flops(const struct model_layer *layer, int64_t batch)
{
	struct layer_dense_sizes s = layer_dense_sizes(layer, batch);
	int64_t each = 2 * s.inputs + layer->use_bias + layer__activation_work(layer->activation);
	int64_t flops;

	/* Each side is bounded, but not their product. */
	if (__builtin_mul_overflow(s.rows * s.units, each, &flops))
		return INT64_MAX;
	return flops;
}

static void dense_product(const struct layer_lowering *lowering, enum ipu_pass pass,
			  struct ipu_op *out)
{
	const struct layer_dense_sizes s = layer_dense_sizes(lowering->layer, lowering->batch);
	const struct ipu_matmul products[] = {
		[IPU_FORWARD] = {.m = s.rows, .k = s.inputs, .n = s.units},
		[IPU_BACKWARD_DATA] = {.m = s.rows, .k = s.units, .n = s.inputs},
		[IPU_BACKWARD_WEIGHTS] = {.m = s.inputs, .k = s.rows, .n = s.units},
	};

	out->kind = IPU_OP_MATMUL;
	out->pass = pass;
	out->trained = lowering->phase != IPU_PHASE_F || lowering->retains;
	out->matmul = products[pass];
}

static void dense_lower(struct layer_lowering *lowering)
{
	layer__lower_product(lowering, "MatMul", dense_product);
}

const struct layer_ops layer_dense = {
	.class_name = "Dense",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_dense,
	.options = MODEL_OPTIONS(dense_options),
	.read = dense_read,
	.flops = dense_flops,
	.lower = dense_lower,
	.each_step = true,
	.reads_inputs = true,
	.reads_output = true,
};
