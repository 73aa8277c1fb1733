/*
 * Pools over NHWC images: MaxPooling2D and AveragePooling2D over windows, with TensorFlow's
 * paddings; GlobalAveragePooling2D and GlobalMaxPooling2D over whole images. The 1D kinds pool over
 * sequences. No state.
 */
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/layers/layer_internal.h"

/* ---- windows --------------------------------------------------------------------------------- */

/* For sizes see layer_config.h. An average is over the cells inside the image. The position of a
 * maximum is retained as a byte for the backward pass, so that neither input nor output is read
 * again. */
#define POOLING_SIDE 65535 /* limit on pool and stride */

static const struct model_option pooling_options[] = {
	{"pool_size", .rule = MODEL_ANY},
	{"strides", .rule = MODEL_ANY},
	{"padding", .rule = MODEL_ANY},
	{"data_format", .rule = MODEL_CHANNELS_LAST},
};

static enum status pooling_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	int64_t pool[LAYER_WAYS], strides[LAYER_WAYS];
	struct layer_pool *c = layer->config;
	struct json_at here;
	bool same;

	layer__window_option(in, "pool_size", 1, POOLING_SIDE, 2, pool);
	memcpy(strides, pool, sizeof(strides));
	if (model_option_at(in->config, "strides", &here, in->err))
		layer__window_option(in, "strides", 1, POOLING_SIDE, 1, strides);
	if (layer__padding(in, &same) != ST_OK)
		return in->err->status;
	*c = (struct layer_pool){
		.height = layer_side(&layer->input, LAYER_Y),
		.width = layer_side(&layer->input, LAYER_X),
		.channels = layer_last_dim(&layer->input),
		.pool_height = pool[0],
		.pool_width = pool[1],
		.stride_height = strides[0],
		.stride_width = strides[1],
	};
	c->out_height = layer__windows(c->height, pool[0], strides[0], same, &c->top);
	c->out_width = layer__windows(c->width, pool[1], strides[1], same, &c->left);
	if (!c->out_height || !c->out_width)
		return json_fail(in->config, in->err,
				 "a pool of %lldx%lld does not fit into an image of %lldx%lld "
				 "(padding \"same\" would make it fit)",
				 (long long)pool[0], (long long)pool[1], (long long)c->height,
				 (long long)c->width);
	layer__set_output(layer, (const int64_t[]){c->out_height, c->out_width}, c->channels);
	return ST_OK;
}

static int64_t pooling_flops(const struct model_layer *layer, int64_t batch)
{
	const struct layer_pool *pool = layer->config;
	const int64_t cells =
		min(pool->pool_height, pool->height) * min(pool->pool_width, pool->width);
	int64_t flops;

	/* Overlapping windows can make this arbitrarily large. */
	if (__builtin_mul_overflow(batch * model_shape_count(&layer->output), cells, &flops))
		return INT64_MAX;
	return flops;
}

/* popnn's gradient of a maximum finds its position again, from input and output. */
static void lower_pool(struct layer_lowering *lowering, bool max)
{
	const struct layer_pool *pool = lowering->layer->config;
	const bool forward = lowering->phase == IPU_PHASE_F;
	const struct layer_op op = {
		.op = {.kind = IPU_OP_POOL,
		       .pool = {.max = max,
				.backward = !forward,
				.batch = lowering->batch,
				.channels = pool->channels,
				.in = {pool->height, pool->width},
				.out = {pool->out_height, pool->out_width},
				.kernel = {pool->pool_height, pool->pool_width},
				.stride = {pool->stride_height, pool->stride_width}}},
		.reads = forward ? (unsigned)LAYER_INPUT
			 : max   ? LAYER_INPUT | LAYER_OUTPUT | LAYER_GRAD_OUTPUT
				 : (unsigned)LAYER_GRAD_OUTPUT,
		.writes = forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT,
	};

	if (forward || layer__wants_any(lowering))
		layer__lower(lowering,
			     max       ? forward ? "MaxPool" : "MaxPool/Grad"
			     : forward ? "AvgPool"
				       : "AvgPool/Grad",
			     &op);
}

static void max_lower(struct layer_lowering *lowering)
{
	lower_pool(lowering, true);
}

static void average_lower(struct layer_lowering *lowering)
{
	lower_pool(lowering, false);
}

#define POOLING_LAYER(row, name, how, is_sequence)                                                 \
	const struct layer_ops layer_##row = {.class_name = (name),                                \
					      .kind = LAYER_KIND_##row,                            \
					      .options = MODEL_OPTIONS(pooling_options),           \
					      .config_size = sizeof(struct layer_pool),            \
					      .images = true,                                      \
					      .read = pooling_read,                                \
					      .flops = pooling_flops,                              \
					      .lower = how##_lower,                                \
					      .sequence = (is_sequence)}

POOLING_LAYER(max_pooling1d, "MaxPooling1D", max, true);
POOLING_LAYER(max_pooling2d, "MaxPooling2D", max, false);
POOLING_LAYER(average_pooling1d, "AveragePooling1D", average, true);
POOLING_LAYER(average_pooling2d, "AveragePooling2D", average, false);

/* ---- whole images ---------------------------------------------------------------------------- */

/* One value per channel. The average of a sequence with a mask (1 or 0 per step, the second input)
 * is over the valid steps, and 0 / 0 if there are none, as in Keras. The gradient of a maximum is
 * divided evenly among the cells that equal it, as in TensorFlow's reduce_max (MaxPooling2D gives
 * it to the first). */
static const struct model_option global_options[] = {{"data_format", .rule = MODEL_CHANNELS_LAST},
						     {"keepdims", .rule = MODEL_ANY}};

static enum status global_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	bool keepdims = false;

	model_option_bool(in->config, "keepdims", &keepdims, in->err);
	layer->output = (struct model_shape){.ndim = 1, .dim = {layer_last_dim(&layer->input)}};
	if (keepdims)
		layer__set_output(layer, (const int64_t[]){1, 1}, layer_last_dim(&layer->input));
	return in->err->status;
}

static int64_t global_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->input);
}

static void global_average_lower(struct layer_lowering *lowering)
{
	const int64_t count = global_flops(lowering->layer, lowering->batch);
	const int64_t outputs = layer__lower_count(lowering);
	const bool masked = lowering->layer->mask != 0;
	struct ipu_elements each = {.count = count, .times = {[IPU_FN_ADD] = 1}};
	struct layer_op op;

	if (lowering->phase != IPU_PHASE_F) {
		each.broadcast = outputs;
		op = layer__map(&each, LAYER_GRAD_OUTPUT, LAYER_GRAD_INPUT);
		if (layer__wants_any(lowering))
			layer__lower(lowering, "Mean/Grad", &op);
		return;
	}
	if (masked) {
		each.operands = 1;
		each.broadcast = lowering->batch * lowering->layer->input.dim[0];
		op = layer__map(&each, LAYER_INPUT, LAYER_BETWEEN);
		op.makes = count;
		layer__lower(lowering, "Mask/Mul", &op);
	}
	/* The scale of a mean is part of the reduction. */
	op = layer__reduce(count, outputs, LAYER_INPUT | (masked ? LAYER_BETWEEN : 0u),
			   LAYER_OUTPUT);
	layer__lower(lowering, masked ? "Mask/Mean" : "Mean", &op);
}

/* Backward: find the cells that equal the maximum, count them, and divide the gradient. */
static void global_max_lower(struct layer_lowering *lowering)
{
	const int64_t count = global_flops(lowering->layer, lowering->batch);
	const int64_t outputs = layer__lower_count(lowering);
	struct ipu_elements each = {.count = count,
				    .operands = 1,
				    .broadcast = outputs,
				    .times = {[IPU_FN_SELECT] = 1}};
	struct layer_op op = layer__map(&each, LAYER_INPUT | LAYER_OUTPUT, LAYER_BETWEEN);

	if (lowering->phase == IPU_PHASE_F) {
		op = layer__reduce(count, outputs, LAYER_INPUT, LAYER_OUTPUT);
		layer__lower(lowering, "Max", &op);
		return;
	}
	if (!layer__wants_any(lowering))
		return;
	op.makes = count;
	layer__lower(lowering, "Max/Grad/Equal", &op);
	op = layer__reduce(count, outputs, LAYER_BETWEEN, LAYER_BETWEEN_TOO);
	layer__lower(lowering, "Max/Grad/Sum", &op);
	each.times[IPU_FN_SELECT] = 0;
	each.times[IPU_FN_ADD] = each.times[IPU_FN_DIVIDE] = 1;
	op = layer__map(&each, LAYER_BETWEEN | LAYER_BETWEEN_TOO | LAYER_GRAD_OUTPUT,
			LAYER_GRAD_INPUT);
	layer__lower(lowering, "Max/Grad", &op);
}

#define GLOBAL_OPS(row, name, how)                                                                 \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = global_read,                       \
	.options = MODEL_OPTIONS(global_options), .images = true, .flops = global_flops,           \
	.lower = global_##how##_lower

const struct layer_ops layer_global_average_pooling1d = {
	GLOBAL_OPS(global_average_pooling1d, "GlobalAveragePooling1D", average),
	.sequence = true,
	.masks = LAYER_MASKS_USED,
};

const struct layer_ops layer_global_average_pooling2d = {
	GLOBAL_OPS(global_average_pooling2d, "GlobalAveragePooling2D", average),
};

const struct layer_ops layer_global_max_pooling1d = {
	GLOBAL_OPS(global_max_pooling1d, "GlobalMaxPooling1D", max),
	.sequence = true,
	.reads_inputs = true,
	.reads_output = true,
};

const struct layer_ops layer_global_max_pooling2d = {
	GLOBAL_OPS(global_max_pooling2d, "GlobalMaxPooling2D", max),
	.reads_inputs = true,
	.reads_output = true,
};
