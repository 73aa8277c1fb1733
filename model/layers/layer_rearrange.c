/*
 * Layers that move values and compute nothing: Flatten and Reshape; Cropping1D and 2D,
 * UpSampling1D, Permute, RepeatVector, and InputLayer of a model that has several inputs;
 * ZeroPadding1D and 2D; Concatenate; Outfeed and MaybeOutfeed. No state.
 */
#include <string.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"

/* ---- Flatten and Reshape --------------------------------------------------------------------- */

static const struct model_option flatten_options[] = {{"data_format", .rule = MODEL_CHANNELS_LAST}};

static enum status flatten_read(const struct layer_reading *in)
{
	in->layer->output =
		(struct model_shape){.ndim = 1, .dim = {model_shape_count(&in->layer->input)}};
	return ST_OK;
}

const struct layer_ops layer_flatten = {
	.class_name = "Flatten",
	.kind = LAYER_KIND_flatten,
	.options = MODEL_OPTIONS(flatten_options),
	.read = flatten_read,
	.pass_through = true,
};

/* Read the dimensions, with 1 for a -1; *@open receives the index of that one, or -1. */
static enum status reshape_dims(const struct json_at *at, struct model_shape *out, int *open,
				struct err *err)
{
	enum status status = json_array(at, err);
	struct json_at item;

	*open = -1;
	if (status != ST_OK)
		return status;
	if (json_count(at) > MODEL_DIMS)
		return json_fail(at, err, "a shape has at most %d dimensions without the batch",
				 MODEL_DIMS);
	*out = (struct model_shape){.ndim = json_count(at)};
	for (int i = 0; json_item(at, i, &item); i++) {
		status = json_int(&item, -1, INT32_MAX, &out->dim[i], err);
		if (status != ST_OK)
			return status;
		if (out->dim[i] > 0)
			continue;
		if (!out->dim[i] || *open >= 0)
			return json_fail(&item, err,
					 "dimensions are at least 1; one of them may be -1, for "
					 "what is left");
		*open = i;
		out->dim[i] = 1;
	}
	return ST_OK;
}

static enum status report_mismatch(const struct model_layer *layer, const struct json_at *at,
				   struct err *err)
{
	char text[192];

	model_shape_text(&layer->input, 0, text, sizeof(text));
	return json_fail(at, err, "%s has %lld values for each item, which do not fill this shape",
			 text, (long long)model_shape_count(&layer->input));
}

static const struct model_option reshape_options[] = {{"target_shape", .rule = MODEL_ANY}};

static enum status reshape_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	int64_t count = model_shape_count(&layer->input), filled = 1;
	struct json_at here;
	int open;

	if (!model_option_need(in->config, "target_shape", &here, in->err) ||
	    reshape_dims(&here, &layer->output, &open, in->err) != ST_OK)
		return in->err->status;
	for (int i = 0; i < layer->output.ndim; i++)
		if (__builtin_mul_overflow(filled, layer->output.dim[i], &filled))
			return report_mismatch(layer, &here, in->err);
	if (open >= 0 ? count % filled != 0 : count != filled)
		return report_mismatch(layer, &here, in->err);
	if (open >= 0)
		layer->output.dim[open] = count / filled;
	return ST_OK;
}

const struct layer_ops layer_reshape = {
	.class_name = "Reshape",
	.kind = LAYER_KIND_reshape,
	.options = MODEL_OPTIONS(reshape_options),
	.read = reshape_read,
	.pass_through = true,
};

/* ---- cropping, repeating, permuting ---------------------------------------------------------- */

/* Each output value is a copy of an input value. */

#define SIZE_MOST 65536 /* limit on an upsampling, and on repetitions */

/* The identity over the dimensions of @shape. */
static struct layer_rearrange rearrange_none(const struct model_shape *shape)
{
	struct layer_rearrange r = {.ndim = shape->ndim};
	int64_t stride = 1;

	for (int d = r.ndim - 1; d >= 0; d--) {
		r.dim[d] = (struct layer_rearrange_dim){shape->dim[d], stride, 1, 0};
		stride *= shape->dim[d];
	}
	return r;
}

/* Make layer->config the identity over the input. */
static struct layer_rearrange *rearrange_begin(const struct model_layer *layer)
{
	struct layer_rearrange *r = layer->config;

	*r = rearrange_none(&layer->input);
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
static const struct model_option cropping_options[] = {
	{"cropping", .rule = MODEL_ANY}, {"data_format", .rule = MODEL_CHANNELS_LAST}};

static enum status cropping_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_rearrange *r = rearrange_begin(layer);
	const int ways = layer->ops->sequence ? 1 : 2;
	struct json_at here, item;

	for (int way = 0; way < ways && !err_stuck(in->err); way++) {
		int64_t sides[2] = {1, 1};

		if (!layer->ops->sequence)
			sides[0] = sides[1] = 0;
		if (json_child(in->config, "cropping", &here)) {
			item = here;
			if (ways == 2 && cJSON_IsArray(here.node) && !json_item(&here, way, &item))
				return json_fail(&here, in->err,
						 "must be a whole number, [height, "
						 "width] or [[top, bottom], [left, "
						 "right]]");
			layer__pair(&item, 0, INT32_MAX, sides, in->err);
		}
		if (!err_stuck(in->err) && sides[0] + sides[1] >= r->dim[way].size)
			return json_fail(in->config, in->err,
					 "nothing is left of %lld after %lld and %lld are cropped",
					 (long long)r->dim[way].size, (long long)sides[0],
					 (long long)sides[1]);
		r->dim[way].first = sides[0];
		r->dim[way].size -= sides[0] + sides[1];
	}
	return rearrange_end(layer, r, in->err);
}

/* For sequences only; UpSampling2D, which may interpolate, is in layer_sampling.c. */
static const struct model_option up_sampling_options[] = {{"size", .rule = MODEL_ANY}};

static enum status up_sampling_read(const struct layer_reading *in)
{
	struct layer_rearrange *r = rearrange_begin(in->layer);
	int64_t size[LAYER_WAYS];

	if (layer__window_option(in, "size", 1, SIZE_MOST, 2, size) != ST_OK)
		return in->err->status;
	r->dim[0].repeat = size[LAYER_X];
	r->dim[0].size *= r->dim[0].repeat;
	return rearrange_end(in->layer, r, in->err);
}

/* "dims": the input's dimensions in their new order, numbered from 1. */
static const struct model_option permute_options[] = {{"dims", .rule = MODEL_ANY}};

static enum status permute_read(const struct layer_reading *in)
{
	struct layer_rearrange *r = rearrange_begin(in->layer);
	struct layer_rearrange before;
	struct json_at here, item = {0};
	unsigned seen = 0;

	if (!model_option_need(in->config, "dims", &here, in->err) ||
	    json_array(&here, in->err) != ST_OK)
		return in->err->status;
	before = *r;
	while (!err_stuck(in->err) && json_next(&here, &item)) {
		int64_t from;

		if (json_int(&item, 1, r->ndim, &from, in->err) != ST_OK)
			return in->err->status;
		if (item.index < r->ndim)
			r->dim[item.index] = before.dim[from - 1];
		seen |= 1u << from;
	}
	if (json_count(&here) != r->ndim || seen != (2u << r->ndim) - 2u)
		return json_fail(&here, in->err,
				 "must have each of the input's %d dimensions once, from 1",
				 r->ndim);
	return rearrange_end(in->layer, r, in->err);
}

static const struct model_option repeat_vector_options[] = {{"n", .rule = MODEL_ANY}};

static enum status repeat_vector_read(const struct layer_reading *in)
{
	struct layer_rearrange *r = rearrange_begin(in->layer);
	struct json_at here;
	int64_t n = 1;

	if (!model_option_need(in->config, "n", &here, in->err) ||
	    json_int(&here, 1, SIZE_MOST, &n, in->err) != ST_OK)
		return in->err->status;
	if (r->ndim != 1)
		return json_fail(in->config, in->err,
				 "RepeatVector needs a vector, but its input has %d dimensions",
				 r->ndim);
	r->ndim = 2;
	r->dim[1] = r->dim[0];
	r->dim[0] = (struct layer_rearrange_dim){n, 0, 1, 0};
	return rearrange_end(in->layer, r, in->err);
}

enum status layer_part(struct model *model, struct model_layer *part,
		       const struct model_shape *shape, int64_t first, struct err *err)
{
	struct layer_rearrange *r = model__alloc(model, 1, sizeof(*r));

	if (!r)
		return err_nomem(err);
	*r = rearrange_none(shape);
	part->config = r;
	part->ops = &layer_input;
	r->dim[r->ndim - 1].first = first;
	return rearrange_end(part, r, err);
}

static const struct model_option input_options[] = {
	{"name", .rule = MODEL_ANY},        {"batch_input_shape", .rule = MODEL_ANY},
	{"batch_shape", .rule = MODEL_ANY}, {"dtype", .rule = MODEL_INPUT_DTYPE},
	{"sparse", .rule = MODEL_FALSE},    {"ragged", .rule = MODEL_FALSE},
	{"trainable", .rule = MODEL_ANY},   {"optional", .rule = MODEL_FALSE},
	{"type_spec", .rule = MODEL_NULL},  {"input_tensor", .rule = MODEL_NULL},
};

/* A part of the model's input; the model reader has already read its shape. */
static enum status input_read(const struct layer_reading *in)
{
	const struct model_part *part = in->model->parts;

	while (strcmp(part->name, in->layer->name) != 0)
		part++;
	return layer_part(in->model, in->layer, &part->shape, part->first, in->err);
}

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

#define REARRANGE_LAYER(row, name, how, of_images, is_sequence)                                    \
	const struct layer_ops layer_##row = {.class_name = (name),                                \
					      .kind = LAYER_KIND_##row,                            \
					      .options = MODEL_OPTIONS(how##_options),             \
					      .config_size = sizeof(struct layer_rearrange),       \
					      .images = (of_images),                               \
					      .read = how##_read,                                  \
					      .lower = rearrange_lower,                            \
					      .sequence = (is_sequence)}

REARRANGE_LAYER(cropping1d, "Cropping1D", cropping, true, true);
REARRANGE_LAYER(cropping2d, "Cropping2D", cropping, true, false);
REARRANGE_LAYER(up_sampling1d, "UpSampling1D", up_sampling, true, true);
REARRANGE_LAYER(permute, "Permute", permute, false, false);
REARRANGE_LAYER(repeat_vector, "RepeatVector", repeat_vector, false, false);

const struct layer_ops layer_input = {
	.class_name = "InputLayer",
	.kind = LAYER_KIND_input,
	.options = MODEL_OPTIONS(input_options),
	.read = input_read,
	.lower = rearrange_lower,
};

/* ---- ZeroPadding2D and ZeroPadding1D --------------------------------------------------------- */

/* On the device the output is a view of the input and a constant (popops::pad), which the layer
 * after it reads. */

#define PADDING_MOST 65536 /* pixels of zeros on a side */

/* "padding" is a number, [height, width] or [[top, bottom], [left, right]]; for a sequence a number
 * or [left, right]. */
static const struct model_option padding_options[] = {{"padding", .rule = MODEL_ANY},
						      {"data_format", .rule = MODEL_CHANNELS_LAST}};

static enum status padding_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	const bool sequence = layer->ops->sequence;
	int64_t sides[LAYER_WAYS][2] = {{!sequence, !sequence}, {1, 1}};
	struct json_at here, item;

	if (json_child(in->config, "padding", &here) && sequence) {
		layer__pair(&here, 0, PADDING_MOST, sides[LAYER_X], in->err);
	} else if (json_child(in->config, "padding", &here)) {
		if (cJSON_IsArray(here.node) && json_count(&here) != LAYER_WAYS)
			return json_fail(&here, in->err,
					 "must be a whole number, [height, width] or [[top, "
					 "bottom], [left, right]]");
		for (int way = 0; way < LAYER_WAYS; way++) {
			if (!json_item(&here, way, &item))
				item = here;
			layer__pair(&item, 0, PADDING_MOST, sides[way], in->err);
		}
	}
	*(struct layer_pad *)layer->config = (struct layer_pad){
		.top = sides[LAYER_Y][0],
		.bottom = sides[LAYER_Y][1],
		.left = sides[LAYER_X][0],
		.right = sides[LAYER_X][1],
	};
	for (int way = 0; way < LAYER_WAYS; way++)
		sides[way][0] += sides[way][1] + layer_side(&layer->input, way);
	layer__set_output(layer, (const int64_t[]){sides[LAYER_Y][0], sides[LAYER_X][0]},
			  layer_last_dim(&layer->input));
	return in->err->status;
}

#define PADDING_LAYER(row, name, is_sequence)                                                      \
	const struct layer_ops layer_##row = {.class_name = (name),                                \
					      .kind = LAYER_KIND_##row,                            \
					      .options = MODEL_OPTIONS(padding_options),           \
					      .config_size = sizeof(struct layer_pad),             \
					      .images = true,                                      \
					      .read = padding_read,                                \
					      .sequence = (is_sequence)}

PADDING_LAYER(zero_padding1d, "ZeroPadding1D", true);
PADDING_LAYER(zero_padding2d, "ZeroPadding2D", false);

/* ---- Concatenate ----------------------------------------------------------------------------- */

#define CONCATENATE_INPUTS 1024

static const struct model_option concatenate_options[] = {{"axis", .rule = MODEL_ANY}};

static enum status concatenate_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	const int last = layer->input.ndim - 1;
	char first_text[192], other_text[192];

	if (layer__check_last_axis(in) != ST_OK)
		return in->err->status;
	if (!layer->input.ndim)
		return json_fail(in->config, in->err,
				 "Concatenate needs inputs of at least one dimension");
	for (int i = 1; i < layer->input_count; i++) {
		const struct model_shape *shape = model_input_shape(in->model, layer, i);
		bool fits = shape->ndim == layer->input.ndim;

		for (int d = 0; fits && d < last; d++)
			fits = shape->dim[d] == layer->input.dim[d];
		if (fits) {
			layer->output.dim[last] += shape->dim[last];
			continue;
		}
		model_shape_text(&layer->input, 0, first_text, sizeof(first_text));
		model_shape_text(shape, 0, other_text, sizeof(other_text));
		return json_fail(in->config, in->err,
				 "the inputs of Concatenate must agree in all but the last "
				 "dimension: the first is %s, but input %d is %s",
				 first_text, i, other_text);
	}
	return ST_OK;
}

/* The atom is the channels of the narrowest input; backward, of those whose gradient is wanted. */
static void concatenate_lower(struct layer_lowering *lowering)
{
	const struct model_layer *layer = lowering->layer;
	const bool forward = lowering->phase == IPU_PHASE_F;
	struct layer_op op = layer__copy(0, layer_last_dim(&layer->output),
					 forward ? LAYER_INPUT : LAYER_GRAD_OUTPUT,
					 forward ? LAYER_OUTPUT : LAYER_GRAD_INPUT);

	for (int i = 0; i < layer->input_count; i++) {
		const struct model_shape *shape = model_input_shape(lowering->model, layer, i);

		if (!forward && !layer__wants(lowering, i))
			continue;
		op.op.copy.count += lowering->batch * model_shape_count(shape);
		if (layer_last_dim(shape) < op.op.copy.atom)
			op.op.copy.atom = layer_last_dim(shape);
	}
	if (op.op.copy.count > 0)
		layer__lower(lowering, forward ? "ConcatV2" : "Slice", &op);
}

const struct layer_ops layer_concatenate = {
	.class_name = "Concatenate",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_concatenate,
	.options = MODEL_OPTIONS(concatenate_options),
	.read = concatenate_read,
	.lower = concatenate_lower,
	.least_inputs = 2,
	.most_inputs = CONCATENATE_INPUTS,
};

/* ---- Outfeed and MaybeOutfeed ---------------------------------------------------------------- */

/* They pass their input on and also send it to the host. "queue" is an option of ours (Keras's
 * layers get the queue object), "final_outfeed" is MaybeOutfeed's. */
#define QUEUE                                                                                      \
	{                                                                                          \
		"queue", MODEL_TEXT, LAYER_FIELD(outfeed_queue)                                    \
	}
static const struct model_option outfeed_options[] = {QUEUE};
static const struct model_option maybe_outfeed_options[] = {QUEUE,
							    {"final_outfeed", MODEL_BOOL,
							     LAYER_FIELD(final_outfeed),
							     .strict = true, .fallback = true}};

static enum status outfeed_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	const char *text = layer->outfeed_queue;
	struct json_at here;

	if (!text || !json_child(in->config, "queue", &here))
		return ST_OK;
	if (text[0] == '\0')
		return json_fail(&here, in->err, "is no name of a queue; null: chosen for it");
	layer->outfeed_queue = arena_printf(model__arena(in->model), "%s", text);
	return layer->outfeed_queue ? ST_OK : err_nomem(in->err);
}

#define OUTFEED_LAYER(row, name, what)                                                             \
	const struct layer_ops layer_##row = {.class_name = (name),                                \
					      .masks = LAYER_MASKS_PASS,                           \
					      .kind = LAYER_KIND_##row,                            \
					      .options = MODEL_OPTIONS(row##_options),             \
					      .read = outfeed_read,                                \
					      .pass_through = true,                                \
					      .outfeed = (what)}

OUTFEED_LAYER(outfeed, "Outfeed", MODEL_OUTFEED);
OUTFEED_LAYER(maybe_outfeed, "MaybeOutfeed", MODEL_MAYBE_OUTFEED);
