/*
 * Cropping1D and 2D, UpSampling1D, Permute, RepeatVector, and InputLayer of a model that has
 * several inputs: each output value is a copy of an input value. No state.
 */
#include <string.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_cropping1d, layer_cropping2d, layer_input, layer_permute;
extern const struct layer_ops layer_repeat_vector, layer_up_sampling1d;

#define SIZE_MOST 65536 /* limit on an upsampling, and on repetitions */

/* ---- reading --------------------------------------------------------------------------------- */

/* Set layer->config to the identity. NULL: a failure. */
static struct layer_rearrange *rearrange_begin(struct model *model, struct model_layer *layer,
					       const struct json_at *config,
					       const struct model_option *own, size_t count,
					       struct err *err)
{
	struct layer_rearrange *r;
	int64_t stride = 1;

	layer__begin(model, layer, config, own, count, sizeof(*r), err);
	if (err_stuck(err))
		return NULL;
	r = layer->config;
	r->ndim = layer->input.ndim;
	for (int d = r->ndim - 1; d >= 0; d--) {
		r->dim[d] = (struct layer_rearrange_dim){layer->input.dim[d], stride, 1, 0};
		stride *= layer->input.dim[d];
	}
	return r;
}

/* Set the output's shape from the dimensions. */
static enum status rearrange_end(struct model_layer *layer, const struct layer_rearrange *r,
				 const struct err *err)
{
	layer->output.ndim = r->ndim;
	for (int d = 0; d < r->ndim; d++)
		layer->output.dim[d] = r->dim[d].size;
	return err->status;
}

/* "cropping" is a number, [first, second] or, for images, [[top, bottom], [left, right]]. */
static enum status cropping_read(struct model *model, struct model_layer *layer,
				 const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		{"cropping", MODEL_ANY},
		{"data_format", MODEL_CHANNELS_LAST},
	};
	struct layer_rearrange *r = rearrange_begin(model, layer, config, own, ARRAY_LEN(own), err);
	const int ways = layer->ops->sequence ? 1 : 2;
	struct json_at here, item;

	if (layer__check_images(layer, config, err) != ST_OK)
		return err->status;
	for (int way = 0; way < ways && !err_stuck(err); way++) {
		int64_t sides[2] = {1, 1};

		if (!layer->ops->sequence)
			sides[0] = sides[1] = 0;
		if (json_child(config, "cropping", &here)) {
			item = here;
			if (ways == 2 && cJSON_IsArray(here.node) && !json_item(&here, way, &item))
				return json_fail(&here, err,
						 "must be a whole number, [height, "
						 "width] or [[top, bottom], [left, "
						 "right]]");
			layer__pair(&item, 0, INT32_MAX, sides, err);
		}
		if (!err_stuck(err) && sides[0] + sides[1] >= r->dim[way].size)
			return json_fail(config, err,
					 "nothing is left of %lld after %lld and %lld are cropped",
					 (long long)r->dim[way].size, (long long)sides[0],
					 (long long)sides[1]);
		r->dim[way].first = sides[0];
		r->dim[way].size -= sides[0] + sides[1];
	}
	return rearrange_end(layer, r, err);
}

/* For sequences only; UpSampling2D, which may interpolate, is in layer_sampling.c. */
static enum status up_sampling_read(struct model *model, struct model_layer *layer,
				    const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"size", MODEL_ANY}};
	struct layer_rearrange *r = rearrange_begin(model, layer, config, own, ARRAY_LEN(own), err);
	int64_t size[LAYER_WAYS];

	layer__check_images(layer, config, err);
	layer__window_option(layer, config, "size", 1, SIZE_MOST, 2, size, err);
	if (err_stuck(err))
		return err->status;
	r->dim[0].repeat = size[LAYER_X];
	r->dim[0].size *= r->dim[0].repeat;
	return rearrange_end(layer, r, err);
}

/* "dims": the input's dimensions in their new order, numbered from 1. */
static enum status permute_read(struct model *model, struct model_layer *layer,
				const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"dims", MODEL_ANY}};
	struct layer_rearrange *r = rearrange_begin(model, layer, config, own, ARRAY_LEN(own), err);
	struct layer_rearrange before;
	struct json_at here, item = {0};
	unsigned seen = 0;

	if (!r || !model_option_need(config, "dims", &here, err) || json_array(&here, err) != ST_OK)
		return err->status;
	before = *r;
	while (!err_stuck(err) && json_next(&here, &item)) {
		int64_t from;

		if (json_int(&item, 1, r->ndim, &from, err) != ST_OK)
			return err->status;
		if (item.index < r->ndim)
			r->dim[item.index] = before.dim[from - 1];
		seen |= 1u << from;
	}
	if (json_count(&here) != r->ndim || seen != (2u << r->ndim) - 2u)
		return json_fail(&here, err,
				 "must have each of the input's %d dimensions once, from 1",
				 r->ndim);
	return rearrange_end(layer, r, err);
}

static enum status repeat_vector_read(struct model *model, struct model_layer *layer,
				      const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"n", MODEL_ANY}};
	struct layer_rearrange *r = rearrange_begin(model, layer, config, own, ARRAY_LEN(own), err);
	struct json_at here;
	int64_t n = 1;

	if (!r || !model_option_need(config, "n", &here, err) ||
	    json_int(&here, 1, SIZE_MOST, &n, err) != ST_OK)
		return err->status;
	if (r->ndim != 1)
		return json_fail(config, err,
				 "RepeatVector needs a vector, but its input has %d dimensions",
				 r->ndim);
	r->ndim = 2;
	r->dim[1] = r->dim[0];
	r->dim[0] = (struct layer_rearrange_dim){n, 0, 1, 0};
	return rearrange_end(layer, r, err);
}

enum status layer_part(struct model *model, struct model_layer *part,
		       const struct model_shape *shape, int64_t first, struct err *err)
{
	struct layer_rearrange *r = model__alloc(model, 1, sizeof(*r));
	int64_t stride = 1;

	if (!r)
		return err_nomem(err);
	part->ops = &layer_input;
	part->config = r;
	r->ndim = shape->ndim;
	for (int d = r->ndim - 1; d >= 0; d--) {
		r->dim[d] = (struct layer_rearrange_dim){shape->dim[d], stride, 1, 0};
		stride *= shape->dim[d];
	}
	r->dim[r->ndim - 1].first = first;
	return rearrange_end(part, r, err);
}

/* A part of the model's input; the model reader has already read its config. */
static enum status input_read(struct model *model, struct model_layer *layer,
			      const struct json_at *config, struct err *err)
{
	const struct model_part *part = model->parts;

	(void)config;
	while (strcmp(part->name, layer->name) != 0)
		part++;
	return layer_part(model, layer, &part->shape, part->first, err);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* The gradient sums the copies of a value that occurs several times in the output. */
static void rearrange_lower(struct layer_lowering *lowering)
{
	const struct model_layer *layer = lowering->layer;
	const char *part = layer->ops->class_name;
	const int64_t in = lowering->batch * model_shape_count(&layer->input);
	const int64_t out = layer__lower_count(lowering);
	const int64_t atom =
		layer->ops->kind == LAYER_KIND_permute ? 1 : layer_last_dim(&layer->output);
	struct layer_op op = layer__copy(out, atom, LAYER_INPUT, LAYER_OUTPUT);

	if (lowering->phase == IPU_PHASE_F) {
		layer__lower(lowering, part, &op);
		return;
	}
	if (!layer__wants_any(lowering))
		return;
	op = out > in ? layer__reduce(out, in, LAYER_GRAD_OUTPUT, LAYER_GRAD_INPUT)
		      : layer__copy(in, atom, LAYER_GRAD_OUTPUT, LAYER_GRAD_INPUT);
	op.makes = 0;
	part = arena_printf(lowering->arena, "%s/Grad", part);
	lowering->failed = lowering->failed || !part;
	layer__lower(lowering, part, &op);
}

/* What all of these layers share. */
#define REARRANGE_OPS(row, name, how)                                                              \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = (how), .lower = rearrange_lower

const struct layer_ops layer_cropping1d = {
	REARRANGE_OPS(cropping1d, "Cropping1D", cropping_read),
	.sequence = true,
};

const struct layer_ops layer_cropping2d = {
	REARRANGE_OPS(cropping2d, "Cropping2D", cropping_read),
};

const struct layer_ops layer_up_sampling1d = {
	REARRANGE_OPS(up_sampling1d, "UpSampling1D", up_sampling_read),
	.sequence = true,
};

const struct layer_ops layer_input = {
	REARRANGE_OPS(input, "InputLayer", input_read),
};

const struct layer_ops layer_permute = {
	REARRANGE_OPS(permute, "Permute", permute_read),
};

const struct layer_ops layer_repeat_vector = {
	REARRANGE_OPS(repeat_vector, "RepeatVector", repeat_vector_read),
};
