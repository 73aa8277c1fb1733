/*
 * MaxPooling2D and AveragePooling2D: windows over NHWC images, with TensorFlow's paddings; the 1D
 * kinds pool over sequences.
 *
 * For sizes see layer_config.h. An average is over the cells inside the image. The position of a
 * maximum is retained as a byte for the backward pass, so that neither input nor output is read
 * again. Slices are rows.
 */
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_max_pooling1d, layer_max_pooling2d;
extern const struct layer_ops layer_average_pooling1d, layer_average_pooling2d;

#define POOLING_SIDE 65535 /* limit on pool and stride */

/* ---- reading --------------------------------------------------------------------------------- */

static enum status pooling_read(struct model *model, struct model_layer *layer,
				const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		{"pool_size", MODEL_ANY},
		{"strides", MODEL_ANY},
		{"padding", MODEL_ANY},
		{"data_format", MODEL_CHANNELS_LAST},
	};
	int64_t pool[LAYER_WAYS], strides[LAYER_WAYS];
	struct layer_pool *c;
	struct json_at here;
	bool same;

	layer__begin(model, layer, config, own, ARRAY_LEN(own), sizeof(*c), err);
	layer__check_images(layer, config, err);
	layer__window_option(layer, config, "pool_size", 1, POOLING_SIDE, 2, pool, err);
	memcpy(strides, pool, sizeof(strides));
	if (model_option_at(config, "strides", &here, err))
		layer__window_option(layer, config, "strides", 1, POOLING_SIDE, 1, strides, err);
	if (layer__padding(config, &same, err) != ST_OK)
		return err->status;

	c = layer->config;
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
		return json_fail(config, err,
				 "a pool of %lldx%lld does not fit into an image of %lldx%lld "
				 "(padding \"same\" would make it fit)",
				 (long long)pool[0], (long long)pool[1], (long long)c->height,
				 (long long)c->width);
	layer__set_output(layer, (const int64_t[]){c->out_height, c->out_width}, c->channels);
	return ST_OK;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t pooling_cells(const struct model_layer *layer)
{
	const struct layer_pool *pool = layer->config;
	int64_t height = min(pool->pool_height, pool->height);
	int64_t width = min(pool->pool_width, pool->width);

	return height * width;
}

static int64_t pooling_flops(const struct model_layer *layer, int64_t batch)
{
	int64_t flops;

	/* Overlapping windows can make this arbitrarily large. */
	if (__builtin_mul_overflow(batch * model_shape_count(&layer->output), pooling_cells(layer),
				   &flops))
		return INT64_MAX;
	return flops;
}

/* popnn's gradient of a maximum finds its position again, from input and output. */
static void pooling_lower(struct layer_lowering *lowering, bool max, const char *part,
			  const char *grad_part)
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
		layer__lower(lowering, forward ? part : grad_part, &op);
}

static void max_lower(struct layer_lowering *lowering)
{
	pooling_lower(lowering, true, "MaxPool", "MaxPool/Grad");
}

static void average_lower(struct layer_lowering *lowering)
{
	pooling_lower(lowering, false, "AvgPool", "AvgPool/Grad");
}

/* What all of these layers share. */
#define POOLING_OPS(row, name, how)                                                                \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = pooling_read,                      \
	.flops = pooling_flops, .lower = (how)

const struct layer_ops layer_max_pooling2d = {
	POOLING_OPS(max_pooling2d, "MaxPooling2D", max_lower),
};

const struct layer_ops layer_max_pooling1d = {
	POOLING_OPS(max_pooling1d, "MaxPooling1D", max_lower),
	.sequence = true,
};

const struct layer_ops layer_average_pooling2d = {
	POOLING_OPS(average_pooling2d, "AveragePooling2D", average_lower),
};

const struct layer_ops layer_average_pooling1d = {
	POOLING_OPS(average_pooling1d, "AveragePooling1D", average_lower),
	.sequence = true,
};
