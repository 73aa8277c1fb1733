/*
 * One layer of a model, and the model's input.
 *
 * Threading and ownership: see model_reader.h.
 */
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/model_reader.h"

#define ENTRY_FIRST_LAYERS 64

/* ---- what comes in --------------------------------------------------------------------------- */

const struct model_shape *model__tensor_shape(const struct model_reader *reader, int tensor)
{
	if (tensor != MODEL_INPUT)
		return &reader->model->layers[tensor].output;
	return reader->input_known ? &reader->model->input : reader->data;
}

/* Dimensions that @shape leaves open are those that come in. */
static void entry_fill_shape(struct model_shape *shape, const struct model_shape *present)
{
	for (int i = 0; present && i < shape->ndim && i < present->ndim; i++)
		if (!shape->dim[i])
			shape->dim[i] = present->dim[i];
}

static bool entry_is_open(const struct model_shape *shape)
{
	for (int i = 0; i < shape->ndim; i++)
		if (!shape->dim[i])
			return true;
	return false;
}

/* Alike but, where @loose, for dimensions of 1 at the end: data of images of one channel come with
 * and without it. */
static bool entry_same_shape(const struct model_shape *a, const struct model_shape *b, bool loose)
{
	int most = max(a->ndim, b->ndim);

	if (a->ndim != b->ndim && !loose)
		return false;
	for (int i = 0; i < most; i++)
		if ((i < a->ndim ? a->dim[i] : 1) != (i < b->ndim ? b->dim[i] : 1))
			return false;
	return true;
}

/* The shape at @at is that of @tensor: the first such one is the model's input, any other must
 * agree. */
static enum status entry_shape(struct model_reader *reader, const struct json_at *at, int tensor)
{
	const struct model_shape *present = model__tensor_shape(reader, tensor);
	bool loose = tensor == MODEL_INPUT && !reader->input_known;
	char here_text[192], other_text[192];
	struct model_shape shape;
	int64_t batch;
	enum status status = model__read_shape(at, &shape, &batch, reader->err);

	if (status != ST_OK)
		return status;
	model_shape_text(&shape, 0, here_text, sizeof(here_text));
	entry_fill_shape(&shape, present);
	if (present && !entry_same_shape(&shape, present, loose)) {
		model_shape_text(present, 0, other_text, sizeof(other_text));
		return json_fail(at, reader->err,
				 "the input shape %s does not fit %s, which comes in", here_text,
				 other_text);
	}
	if (entry_is_open(&shape))
		return model_config_unsupported(at, reader->err,
						"not supported: only the batch may be unknown "
						"(null) where no data give the rest");
	if (loose) {
		reader->model->input = shape;
		reader->model->batch = batch;
		reader->input_known = true;
	}
	return model__check_shape(at, &shape, reader->err);
}

static enum status entry_given_shape(struct model_reader *reader, const struct json_at *config,
				     int tensor)
{
	static const char *const keys[] = {"batch_input_shape", "batch_shape"};
	enum status status = ST_OK;
	struct json_at here;

	for (size_t i = 0; i < ARRAY_LEN(keys) && status == ST_OK; i++)
		if (json_child(config, keys[i], &here) && !json_is_null(&here))
			status = entry_shape(reader, &here, tensor);
	return status;
}

/* From here on the shape of what comes in has to be known. */
static enum status entry_need_shape(struct model_reader *reader, const struct json_at *at)
{
	if (reader->input_known)
		return ST_OK;
	if (!reader->data)
		return json_fail(at, reader->err,
				 "the input's shape is not known: begin with an InputLayer or give "
				 "\"batch_input_shape\"");
	reader->model->input = *reader->data;
	reader->input_known = true;
	return model__check_shape(at, &reader->model->input, reader->err);
}

enum status model__read_input(struct model_reader *reader, const struct model_scope *scope,
			      const struct model_entry *entry, const struct json_at *at)
{
	static const struct model_option options[] = {
		{"name", MODEL_ANY},        {"batch_input_shape", MODEL_ANY},
		{"batch_shape", MODEL_ANY}, {"dtype", MODEL_INPUT_DTYPE},
		{"sparse", MODEL_FALSE},    {"ragged", MODEL_FALSE},
		{"trainable", MODEL_ANY},   {"optional", MODEL_FALSE},
		{"type_spec", MODEL_NULL},  {"input_tensor", MODEL_NULL},
	};
	struct json_at config;
	enum status status;

	if (!scope->functional && entry != scope->entries)
		return json_fail(at, reader->err, "InputLayer must be the first layer");
	json_child(at, "config", &config);
	status = model_config_check(&config, options, ARRAY_LEN(options), NULL, 0, reader->err);
	return status == ST_OK ? entry_given_shape(reader, &config, scope->tensor) : status;
}

/* ---- a layer --------------------------------------------------------------------------------- */

/* The list doubles whenever its length is a power of two, so no capacity is kept. */
static struct model_layer *entry_new_layer(struct model_reader *reader)
{
	struct model *model = reader->model;
	size_t count = (size_t)model->layer_count;
	struct model_layer *layers;

	if (!count || (count >= ENTRY_FIRST_LAYERS && !(count & (count - 1)))) {
		layers = arena_alloc(reader->arena, count ? 2 * count : ENTRY_FIRST_LAYERS,
				     sizeof(*layers));
		if (!layers)
			return NULL;
		if (count)
			memcpy(layers, model->layers, count * sizeof(*layers));
		model->layers = layers;
	}
	return &model->layers[count];
}

static enum status entry_inputs(struct model_reader *reader, const struct model_scope *scope,
				const struct model_entry *entry, struct model_layer *layer)
{
	int *inputs = arena_alloc(reader->arena, (size_t)entry->input_count, sizeof(*inputs));

	if (!inputs)
		return err_nomem(reader->err);
	for (int i = 0; i < entry->input_count; i++)
		inputs[i] = entry->inputs[i] == MODEL_OUTSIDE
				    ? scope->tensor
				    : scope->entries[entry->inputs[i]].source;
	layer->inputs = inputs;
	layer->input_count = entry->input_count;
	return ST_OK;
}

/* "trainable": of the layer and of all models around it. */
static enum status entry_trainable(const struct model_scope *scope, const struct json_at *config,
				   struct model_layer *layer, struct err *err)
{
	enum status status = ST_OK;
	struct json_at here;

	layer->trainable = true;
	if (json_child(config, "trainable", &here) && !json_is_null(&here))
		status = json_bool(&here, &layer->trainable, err);
	layer->trainable = layer->trainable && scope->trainable;
	return status;
}

static enum status entry_input_shape(struct model_reader *reader, struct model_layer *layer,
				     const struct json_at *at, const struct json_at *config)
{
	enum status status = entry_given_shape(reader, config, layer->inputs[0]);

	for (int i = 0; i < layer->input_count && status == ST_OK; i++)
		if (layer->inputs[i] == MODEL_INPUT)
			status = entry_need_shape(reader, at);
	if (status == ST_OK)
		layer->input = *model__tensor_shape(reader, layer->inputs[0]);
	return status;
}

static enum status entry_layer_name(struct model_reader *reader, const struct model_scope *scope,
				    const struct model_entry *entry, struct model_layer *layer,
				    const struct json_at *at)
{
	layer->name = model__layer_name(reader, scope, entry->name);
	if (!layer->name)
		return err_nomem(reader->err);
	/* The model's own layers have been noted all at once, for nested ones to give way. */
	if (!scope->outer)
		return ST_OK;
	if (model__names_find(&reader->taken, layer->name))
		return json_fail(at, reader->err,
				 "two layers are named \"%s\": names must be unique", layer->name);
	return model__names_add(&reader->taken, layer->name, 0) ? err_nomem(reader->err) : ST_OK;
}

enum status model__read_layer(struct model_reader *reader, const struct model_scope *scope,
			      struct model_entry *entry, const struct json_at *at)
{
	struct model *model = reader->model;
	struct model_layer *layer = entry_new_layer(reader);
	struct json_at config;
	enum status status;

	if (!layer)
		return err_nomem(reader->err);
	json_child(at, "config", &config);
	*layer = (struct model_layer){
		.ops = entry->ops,
		.position = model->layer_count,
		.first_param = model->param_count,
		.reads_inputs = entry->ops->reads_inputs,
		.reads_output = entry->ops->reads_output,
		.row = entry->row,
	};
	status = entry_layer_name(reader, scope, entry, layer, at);
	if (status == ST_OK)
		status = entry_inputs(reader, scope, entry, layer);
	if (status == ST_OK)
		status = entry_trainable(scope, &config, layer, reader->err);
	if (status == ST_OK)
		status = entry_input_shape(reader, layer, at, &config);
	if (status == ST_OK)
		status = layer->ops->read(model, layer, &config, reader->err);
	if (status == ST_OK)
		status = model__check_shape(at, &layer->output, reader->err);
	layer->policy = model__read_policy(&config);
	entry->source = layer->position;
	model->layer_count++;
	return status;
}
