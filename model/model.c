/*
 * A model: its memory, shapes and parameters, sorting by stages, and queries.
 *
 * Threading: a model is read-only after model_new() and model_order(). Ownership: the model and
 * everything it points to are in one arena, which the model refers to by `memory`.
 */
#include "model/model.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "model/layers/layer.h"
#include "model/model_config.h"
#include "model/model_reader.h"

#define MODEL_FIRST_PARAMS 8
#define MODEL_VALUES       (INT64_C(1) << 39) /* limit on a model's values */
#define MODEL_ITEM_VALUES  (INT64_C(1) << 40) /* limit on the values of one item in a layer */

/* The target of `memory`. */
struct model_box {
	struct arena arena;
	struct model model;
};

/* ---- memory ---------------------------------------------------------------------------------- */

enum status model__new(struct model **out, struct err *err)
{
	struct model_box *box = mem_calloc(1, sizeof(*box));

	*out = NULL;
	/* The arena allocates its first block on the first request. */
	if (!box || arena_init(&box->arena, 0)) {
		mem_free(box);
		return err_nomem(err);
	}
	box->model.memory = box;
	*out = &box->model;
	return ST_OK;
}

void model_free(struct model *model)
{
	struct model_box *box;

	if (!model)
		return;
	box = model->memory;
	arena_fini(&box->arena);
	mem_free(box);
}

struct arena *model__arena(struct model *model)
{
	struct model_box *box = model->memory;

	return &box->arena;
}

void *model__alloc(struct model *model, size_t count, size_t size)
{
	return arena_alloc(model__arena(model), count, size);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

int64_t model_shape_count(const struct model_shape *shape)
{
	int64_t count = 1;

	for (int i = 0; i < shape->ndim; i++)
		count *= shape->dim[i];
	return count;
}

bool model__same_shape(const struct model_shape *a, const struct model_shape *b)
{
	bool same = a->ndim == b->ndim;

	for (int i = 0; same && i < a->ndim; i++)
		same = a->dim[i] == b->dim[i];
	return same;
}

void model_shape_text(const struct model_shape *shape, int64_t batch, char *out, size_t size)
{
	size_t used;
	int put;

	if (batch > 0)
		put = snprintf(out, size, "(%lld", (long long)batch);
	else
		put = snprintf(out, size, "(None");
	for (int i = 0; i < shape->ndim; i++) {
		used = put > 0 ? (size_t)put : 0;
		if (used >= size)
			return;
		if (shape->dim[i])
			put += snprintf(out + used, size - used, ", %lld",
					(long long)shape->dim[i]);
		else
			put += snprintf(out + used, size - used, ", None");
	}
	used = put > 0 ? (size_t)put : 0;
	if (used < size)
		snprintf(out + used, size - used, "%s", shape->ndim ? ")" : ",)");
}

enum status model__check_shape(const struct json_at *at, const struct model_shape *shape,
			       struct err *err)
{
	double count = 1.0;
	bool wide = false;

	for (int i = 0; i < shape->ndim; i++) {
		count *= (double)shape->dim[i];
		wide = wide || shape->dim[i] > INT_MAX;
	}
	if (wide || count > (double)MODEL_ITEM_VALUES)
		return model_config_limit(at, err,
					  "the shape is beyond the limit: it would take %.1f GB",
					  4.0 * count * 1e-9);
	return ST_OK;
}

enum status model__read_shape(const struct json_at *at, struct model_shape *out, int64_t *batch,
			      struct err *err)
{
	enum status status = json_array(at, err);
	struct json_at here;

	if (status != ST_OK)
		return status;
	if (json_count(at) < 1 || json_count(at) > MODEL_DIMS + 1)
		return json_fail(at, err,
				 "a shape has the batch (null) and at most %d more dimensions",
				 MODEL_DIMS);

	*out = (struct model_shape){.ndim = json_count(at) - 1};
	*batch = 0;
	for (int i = 0; json_item(at, i, &here); i++) {
		if (json_is_null(&here))
			continue;
		status = json_int(&here, 1, INT64_MAX, i ? &out->dim[i - 1] : batch, err);
		if (status != ST_OK)
			return status;
	}
	return model__check_shape(at, out, err);
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* The capacity follows from the count: the list doubles when the count reaches a power of two. */
static int model_grow_params(struct model *model)
{
	size_t count = (size_t)model->param_count;
	struct model_param *params;

	if (count && (count < MODEL_FIRST_PARAMS || (count & (count - 1))))
		return 0;
	params = model__alloc(model, count ? 2 * count : MODEL_FIRST_PARAMS, sizeof(*params));
	if (!params)
		return -1;
	if (count)
		memcpy(params, model->params, count * sizeof(*params));
	model->params = params;
	return 0;
}

/* This is not a check that the machine can train the model: it may be read only for planning. */
static enum status model_check_size(const struct model *model, const struct json_at *at,
				    const struct model_shape *shape, struct err *err)
{
	double added = 1.0, count;

	for (int i = 0; i < shape->ndim; i++)
		added *= (double)shape->dim[i];
	count = (double)model->weights + added;
	if (count <= (double)MODEL_VALUES)
		return ST_OK;
	return model_config_limit(
		at, err, "the weights up to this layer would take %.1f TB: more than is planned",
		4.0 * count * 1e-12);
}

/* Return a parameter that the first call of the layer has created. */
static enum status model_shared_param(const struct model *model, struct model_layer *layer,
				      const struct json_at *at, const struct model_shape *shape,
				      struct model_param **out, struct err *err)
{
	struct model_param *param = &model->params[layer->first_param + layer->param_count];
	char first_input[192], this_input[192];

	if (!model__same_shape(shape, &param->shape)) {
		model_shape_text(&model->layers[param->layer].input, 0, first_input,
				 sizeof(first_input));
		model_shape_text(&layer->input, 0, this_input, sizeof(this_input));
		return json_fail(at, err,
				 "\"%s\" is another call of \"%s\", for whose %s its input does "
				 "not fit: %s comes in there, and %s here",
				 layer->name, model->layers[param->layer].name, param->short_name,
				 first_input, this_input);
	}
	layer->param_count++;
	*out = param;
	return ST_OK;
}

enum status model__add_param(struct model *model, struct model_layer *layer,
			     const struct json_at *at, const char *short_name,
			     const struct model_shape *shape, const struct model_init *init,
			     struct model_param **out, struct err *err)
{
	enum status status = model_check_size(model, at, shape, err);
	struct model_param *param;
	const char *name;

	*out = NULL;
	if (status != ST_OK)
		return status;
	if (layer->first_param + layer->param_count < model->param_count)
		return model_shared_param(model, layer, at, shape, out, err);
	name = arena_printf(model__arena(model), "%s/%s:0", layer->name, short_name);
	if (!name || model_grow_params(model))
		return err_nomem(err);

	param = &model->params[model->param_count++];
	*param = (struct model_param){
		.name = name,
		.short_name = short_name,
		.layer = layer->position,
		.shape = *shape,
		.offset = model->weights,
		.count = (size_t)model_shape_count(shape),
		.init = *init,
		.trainable = layer->trainable,
		.autocast = true,
	};
	model->weights += model_align(param->count);
	layer->param_count++;
	*out = param;
	return ST_OK;
}

/* ---- sorting by stages ----------------------------------------------------------------------- */

struct order_key {
	int stage, position;
};

static int order_compare(const void *a, const void *b)
{
	const struct order_key *x = a, *y = b;

	return SORTED_BY(x, y, stage, position);
}

static enum status order_check(const struct model *model, const int *stage, struct err *err)
{
	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		for (int j = 0; j < layer->input_count; j++) {
			int from = layer->inputs[j];

			if (from != MODEL_INPUT && stage[from] > stage[i])
				return err_set(
					err, ST_INVALID,
					"layer \"%s\" of stage %d needs the output of \"%s\" "
					"of stage %d: a layer can only depend on layers of its "
					"own stage and of those before",
					layer->name, stage[i], model->layers[from].name,
					stage[from]);
		}
	}
	return ST_OK;
}

static bool order_is_sorted(const struct model *model, const int *stage)
{
	for (int i = 1; i < model->layer_count; i++)
		if (stage[i] < stage[i - 1])
			return false;
	return true;
}

/* Move layers, each with its parameters, to their new positions. The new arrays are built beside
 * the old ones and installed last, so that a failure changes nothing. */
static enum status order_apply(struct model *model, const struct order_key *keys, int *new_position,
			       struct err *err)
{
	struct model_layer *layers =
		model__alloc(model, (size_t)model->layer_count, sizeof(*layers));
	struct model_param *params =
		model__alloc(model, (size_t)model->param_count + 1, sizeof(*params));
	size_t offset = 0;
	int count = 0;

	if (!layers || !params)
		return err_nomem(err);
	for (int i = 0; i < model->layer_count; i++)
		new_position[keys[i].position] = i;
	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *old = &model->layers[keys[i].position];
		int *inputs = model__alloc(model, (size_t)old->input_count, sizeof(*inputs));

		if (!inputs)
			return err_nomem(err);
		for (int j = 0; j < old->input_count; j++)
			inputs[j] = old->inputs[j] == MODEL_INPUT ? MODEL_INPUT
								  : new_position[old->inputs[j]];
		layers[i] = *old;
		layers[i].position = i;
		layers[i].inputs = inputs;
		layers[i].first_param = count;
		if (model_layer_again(model,
				      old)) { /* the first call is earlier, in the same stage */
			const int first = model->params[old->first_param].layer;

			layers[i].first_param = layers[new_position[first]].first_param;
			continue;
		}
		for (int j = 0; j < old->param_count; j++) {
			struct model_param *param = &params[count++];

			*param = model->params[old->first_param + j];
			param->layer = i;
			param->offset = offset;
			offset += model_align(param->count);
		}
	}
	model->layers = layers;
	model->params = params;
	for (int o = 0; o < model->output_count; o++)
		if (model->outputs[o].mask)
			model->outputs[o].mask = new_position[model->outputs[o].mask];
	return ST_OK;
}

enum status model_order(struct model *model, const int *stage, struct err *err)
{
	size_t count = (size_t)model->layer_count;
	enum status status = order_check(model, stage, err);
	struct order_key *keys;
	int *new_position;

	if (status != ST_OK || order_is_sorted(model, stage))
		return status;
	keys = mem_calloc(count, sizeof(*keys));
	new_position = mem_calloc(count, sizeof(*new_position));
	if (keys && new_position) {
		for (int i = 0; i < model->layer_count; i++)
			keys[i] = (struct order_key){stage[i], i};
		qsort(keys, count, sizeof(*keys), order_compare);
		status = order_apply(model, keys, new_position, err);
	} else {
		status = err_nomem(err);
	}
	mem_free(keys);
	mem_free(new_position);
	return status;
}

/* ---- which layers compute in less than float32 ----------------------------------------------- */

void model_set_policy(struct model *model, enum model_policy global)
{
	bool present[MODEL_POLICIES] = {false}, mixed;
	bool follows_global[MODEL_POLICIES] = {false};

	for (int i = 0; i < model->layer_count; i++)
		if (model_layer_outfeed(&model->layers[i]) == MODEL_NO_OUTFEED)
			present[model->layers[i].policy] = true;
	mixed = present[MODEL_POLICY_MIXED] || present[MODEL_POLICY_MIXED_BFLOAT16];
	follows_global[MODEL_POLICY_OPEN] = true;
	follows_global[MODEL_POLICY_TEXT] = !mixed;
	follows_global[MODEL_POLICY_FLOAT32] =
		!present[MODEL_POLICY_OPEN] && !present[MODEL_POLICY_TEXT] && !mixed;

	for (int i = 0; i < model->layer_count; i++) {
		struct model_layer *layer = &model->layers[i];
		const enum model_policy policy =
			follows_global[layer->policy] ? global : layer->policy;

		layer->half = policy == MODEL_POLICY_MIXED;
		layer->bfloat16 = policy == MODEL_POLICY_MIXED_BFLOAT16;
	}
	for (int i = 0; i < model->param_count; i++) {
		struct model_param *param = &model->params[i];

		param->half = param->autocast && model->layers[param->layer].half;
		param->bfloat16 = param->autocast && model->layers[param->layer].bfloat16;
	}
}

enum model_policy model_policy(const struct model *model)
{
	for (int i = 0; i < model->layer_count; i++) {
		if (model->layers[i].half)
			return MODEL_POLICY_MIXED;
		if (model->layers[i].bfloat16)
			return MODEL_POLICY_MIXED_BFLOAT16;
	}
	return MODEL_POLICY_TEXT;
}

const char *model_policy_name(enum model_policy policy)
{
	if (policy == MODEL_POLICY_MIXED_BFLOAT16)
		return "mixed_bfloat16";
	return policy == MODEL_POLICY_MIXED ? "mixed_float16" : "float32";
}

/* ---- queries --------------------------------------------------------------------------------- */

const struct model_shape *model_input_shape(const struct model *model,
					    const struct model_layer *layer, int index)
{
	int from = layer->inputs[index];

	return from == MODEL_INPUT ? &model->input : &model->layers[from].output;
}

int64_t model_layer_flops(const struct model *model, int layer, int64_t batch)
{
	const struct model_layer *at = &model->layers[layer];

	return at->ops->flops ? at->ops->flops(at, batch) : 0;
}

const char *model_layer_class(const struct model_layer *layer)
{
	return layer->ops->class_name;
}

enum model_outfeed model_layer_outfeed(const struct model_layer *layer)
{
	return layer->ops->outfeed;
}

bool model_layer_looks_up(const struct model *model, int layer, const struct model_part **part)
{
	const struct model_layer *at = &model->layers[layer];

	*part = NULL;
	if (!at->ops->looks_up)
		return false;
	while (at->inputs[0] != MODEL_INPUT) {
		at = &model->layers[at->inputs[0]];
		if (!at->ops->pass_through && at->ops->kind != LAYER_KIND_input)
			return false;
	}
	for (int i = 0; i < model->part_count; i++)
		if (at->ops->kind == LAYER_KIND_input && !strcmp(at->name, model->parts[i].name))
			*part = &model->parts[i];
	return true;
}

bool model_input_is_rows(const struct model *model)
{
	const struct model_part *part;

	for (int i = 0; i < model->layer_count; i++)
		if (model_layer_looks_up(model, i, &part))
			return true;
	return false;
}

bool model_layer_again(const struct model *model, const struct model_layer *layer)
{
	return layer->param_count > 0 && model->params[layer->first_param].layer != layer->position;
}

bool model_layer_again_in_row(const struct model *model, const struct model_layer *layer)
{
	if (!model_layer_again(model, layer))
		return false;
	for (int i = 0; i < layer->position; i++)
		if (model->layers[i].row == layer->row &&
		    model->layers[i].first_param == layer->first_param &&
		    model->layers[i].param_count)
			return true;
	return false;
}

int model_find_layer(const struct model *model, const char *name)
{
	for (int i = 0; i < model->layer_count; i++)
		if (!strcmp(model->layers[i].name, name))
			return i;
	return -1;
}

enum status model_unknown_layer(const struct model *model, const struct json_at *at,
				const char *name, struct err *err)
{
	const char **names = mem_calloc((size_t)model->layer_count + 1, sizeof(*names));
	enum status status;

	if (!names)
		return err_nomem(err);
	for (int i = 0; i < model->layer_count; i++)
		names[i] = model->layers[i].name;
	status = json_unknown(at, "layer", name, names, (size_t)model->layer_count, err);
	mem_free(names);
	return status;
}

int64_t model_layer_params(const struct model *model, int layer)
{
	const struct model_layer *at = &model->layers[layer];
	size_t count = 0;

	for (int i = 0; i < at->param_count && !model_layer_again(model, at); i++)
		count += model->params[at->first_param + i].count;
	return (int64_t)count;
}

int model_final_activation(const struct model *model)
{
	int last = model->layer_count - 1;
	enum model_activation activation;

	while (last >= 0 && model->layers[last].ops->outfeed != MODEL_NO_OUTFEED)
		last = model->layers[last].inputs[0];
	if (last < 0)
		return -1;
	activation = model->layers[last].activation;
	return activation == MODEL_SOFTMAX || activation == MODEL_SIGMOID ? last : -1;
}
