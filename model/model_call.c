/*
 * The calls of a model's list of layers: the inputs, shape and masks of each, and the layers
 * that it becomes. A call becomes one layer, possibly followed by layers for its mask or states,
 * or a repeated call of an existing layer.
 *
 * Threading and ownership: see model_reader.h.
 */
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/model_reader.h"

#define READ_FIRST_LAYERS 64

/* ---- input shapes ---------------------------------------------------------------------------- */

const struct model_shape *model__tensor_shape(const struct model_reader *reader, int tensor)
{
	if (tensor != MODEL_INPUT)
		return &reader->model->layers[tensor].output;
	return reader->input_known ? &reader->model->input : reader->data;
}

static int call_output(const struct model_call *call, int output)
{
	return call->sources ? call->sources[output] : call->source + output;
}

int model__output_tensor(const struct model_scope *scope, int index)
{
	const struct model_end *end = &scope->outputs[index];

	return call_output(&scope->calls[end->call], end->output);
}

int model__input_tensor(const struct model_scope *scope, const struct model_call *call, int index)
{
	if (call->inputs[index] == MODEL_OUTSIDE)
		return scope->tensors[0];
	return call_output(&scope->calls[call->inputs[index]],
			   call->from ? call->from[index].output : 0);
}

/* Whether two shapes are equal. @loose: trailing dimensions of 1 are ignored, because images of one
 * channel exist with and without that dimension. */
static bool same_shape(const struct model_shape *a, const struct model_shape *b, bool loose)
{
	int most = max(a->ndim, b->ndim);

	if (a->ndim != b->ndim && !loose)
		return false;
	for (int i = 0; i < most; i++)
		if ((i < a->ndim ? a->dim[i] : 1) != (i < b->ndim ? b->dim[i] : 1))
			return false;
	return true;
}

/* Read the shape at @at, which is that of @tensor. The first shape of the model's input defines it;
 * any other must agree. Dimensions that the JSON leaves open are copied from the known shape. */
static void read_shape(struct model_reader *reader, const struct json_at *at, int tensor)
{
	const struct model_shape *present = model__tensor_shape(reader, tensor);
	bool loose = tensor == MODEL_INPUT && !reader->input_known, open = false;
	char here_text[192], other_text[192];
	struct model_shape shape;
	int64_t batch;

	if (model__read_shape(at, &shape, &batch, reader->err) != ST_OK)
		return;
	model_shape_text(&shape, 0, here_text, sizeof(here_text));
	for (int i = 0; i < shape.ndim; i++) {
		if (!shape.dim[i] && present && i < present->ndim)
			shape.dim[i] = present->dim[i];
		open = open || !shape.dim[i];
	}
	if (present && !same_shape(&shape, present, loose)) {
		model_shape_text(present, 0, other_text, sizeof(other_text));
		json_fail(at, reader->err, "the input shape %s does not fit %s, which comes in",
			  here_text, other_text);
		return;
	}
	if (open) {
		model_config_unsupported(
			at, reader->err,
			"not supported: only the batch may be unknown (null) where "
			"no data give the rest");
		return;
	}
	if (loose) {
		reader->model->input = shape;
		reader->model->batch = batch;
		reader->input_known = true;
	}
	model__check_shape(at, &shape, reader->err);
}

static void read_given_shape(struct model_reader *reader, const struct json_at *config, int tensor)
{
	static const char *const keys[] = {"batch_input_shape", "batch_shape"};
	struct json_at here;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (model_option_at(config, keys[i], &here, reader->err))
			read_shape(reader, &here, tensor);
}

/* Fix the shape of the model's input to the data's if no layer has stated it so far. */
static void require_input_shape(struct model_reader *reader, const struct json_at *at)
{
	if (reader->input_known || err_stuck(reader->err))
		return;
	if (!reader->data) {
		json_fail(at, reader->err,
			  "the input's shape is not known: begin with an InputLayer or give "
			  "\"batch_input_shape\"");
		return;
	}
	reader->model->input = *reader->data;
	reader->input_known = true;
	model__check_shape(at, &reader->model->input, reader->err);
}

static void read_input_config(struct model_reader *reader, const struct json_at *at,
			      struct json_at *config)
{
	const struct model_options *options = &layer_find("InputLayer")->options;

	json_child(at, "config", config);
	model_config_check(config, options->rows, options->count, NULL, 0, reader->err);
}

void model__read_input(struct model_reader *reader, const struct model_scope *scope,
		       struct model_call *call, const struct json_at *at)
{
	struct json_at config;
	int number = 0;

	if (!scope->functional && call != scope->calls)
		json_fail(at, reader->err, "InputLayer must be the first layer");
	while (scope->functional && &scope->calls[scope->inputs[number]] != call)
		number++;
	call->source = scope->tensors[number];
	read_input_config(reader, at, &config);
	read_given_shape(reader, &config, call->source);
}

/* ---- several inputs -------------------------------------------------------------------------- */

bool model__is_part(const struct model_scope *scope, const struct model_entry *entry)
{
	return entry->kind == MODEL_ENTRY_INPUT && scope->calls[entry->first_call].input_count;
}

/* Read the shape of one of several InputLayers, which must be complete. */
static void read_part_shape(struct model_reader *reader, const struct json_at *at,
			    struct model_part *part)
{
	struct json_at config, here;
	int64_t batch = 0;

	read_input_config(reader, at, &config);
	if (!model_option_at(&config, "batch_input_shape", &here, reader->err) &&
	    !model_option_at(&config, "batch_shape", &here, reader->err)) {
		json_fail(at, reader->err,
			  "an input beside others needs its \"batch_input_shape\"");
		return;
	}
	if (err_stuck(reader->err) ||
	    model__read_shape(&here, &part->shape, &batch, reader->err) != ST_OK)
		return;
	if (!part->shape.ndim)
		json_fail(&here, reader->err, "an input needs a dimension after the batch");
	for (int i = 0; i < part->shape.ndim; i++)
		if (!part->shape.dim[i]) {
			model_config_unsupported(&here, reader->err,
						 "not supported: of an input beside others only "
						 "the batch may be unknown (null)");
			return;
		}
	model__check_shape(&here, &part->shape, reader->err);
	if (batch && reader->model->batch && batch != reader->model->batch)
		json_fail(&here, reader->err, "another input has a batch of %lld",
			  (long long)reader->model->batch);
	reader->model->batch = batch ? batch : reader->model->batch;
}

void model__read_parts(struct model_reader *reader, struct model_scope *scope,
		       const struct json_at *config)
{
	struct model *model = reader->model;
	int *outside = model__scratch(reader, 1, sizeof(*outside));
	struct model_part *parts = model__kept(reader, (size_t)scope->input_count, sizeof(*parts));
	struct json_at place;
	int64_t total = 0;

	if (err_stuck(reader->err))
		return;
	*outside = MODEL_OUTSIDE;
	json_child(config, "input_layers", &place);
	for (int i = 0; i < scope->input_count && !err_stuck(reader->err); i++) {
		struct model_call *call = &scope->calls[scope->inputs[i]];
		const struct json_at at = model__entry_at(scope, call->entry);

		parts[i] = (struct model_part){.name = scope->entries[call->entry].name,
					       .first = total};
		read_part_shape(reader, &at, &parts[i]);
		if (!err_stuck(reader->err))
			total += model_shape_count(&parts[i].shape);
		call->inputs = outside;
		call->input_count = 1;
	}
	model->parts = parts;
	model->part_count = scope->input_count;
	model->input = (struct model_shape){.ndim = 1, .dim = {total}};
	reader->input_known = true;
	if (!err_stuck(reader->err))
		model__check_shape(&place, &model->input, reader->err);
	if (!err_stuck(reader->err) && reader->data &&
	    !same_shape(reader->data, &model->input, false))
		json_fail(&place, reader->err,
			  "the data have items of %lld numbers, the model's %d inputs %lld: "
			  "data.inputs names an array for each input",
			  (long long)model_shape_count(reader->data), model->part_count,
			  (long long)total);
}

/* ---- a layer --------------------------------------------------------------------------------- */

/* The capacity follows from the count: the list doubles when the count reaches a power of two. */
struct model_layer *model__new_layer(struct model_reader *reader)
{
	struct model *model = reader->model;
	size_t count = (size_t)model->layer_count;
	struct model_layer *layers;

	if (!count || (count >= READ_FIRST_LAYERS && !(count & (count - 1)))) {
		layers =
			model__kept(reader, count ? 2 * count : READ_FIRST_LAYERS, sizeof(*layers));
		if (!layers)
			return NULL;
		if (count)
			memcpy(layers, model->layers, count * sizeof(*layers));
		model->layers = layers;
	}
	return &model->layers[count];
}

/* Whether the outermost model lists the same object under the same name. */
static bool is_listed_outside(const struct model_scope *scope, const struct model_entry *entry)
{
	const int *found;

	while (scope->outer)
		scope = scope->outer;
	found = model__names_find(&scope->names, entry->name);
	return entry->object && found && scope->entries[*found].object &&
	       !strcmp(scope->entries[*found].object, entry->object);
}

/* Set a name that is unique in the whole model. The outermost model's layer names have been
 * reserved already, so nested layers are the ones that get a prefix. */
static void read_layer_name(struct model_reader *reader, const struct model_scope *scope,
			    const struct model_entry *entry, struct model_layer *layer,
			    const struct json_at *at)
{
	const bool nested = scope->outer && !is_listed_outside(scope, entry);
	const char *full = entry->name;

	for (; full && nested && model__names_find(&reader->taken, full) && scope->outer;
	     scope = scope->outer)
		full = arena_printf(reader->arena, "%s/%s", scope->name, full);
	layer->name = full;
	if (full && nested && model__names_find(&reader->taken, full))
		json_fail(at, reader->err, "two layers are named \"%s\": names must be unique",
			  full);
	else if (nested || !full)
		model__add_name(reader, &reader->taken, full, 0);
}

/* ---- repeated calls -------------------------------------------------------------------------- */

static void add_note(struct model_reader *reader, int layer, int first, int mask)
{
	if (mem_grow(&reader->notes, &reader->note_capacity, (size_t)layer + 1,
		     sizeof(*reader->notes)))
		err_nomem(reader->err);
	else
		reader->notes[layer] = (struct model_note){.mask = mask, .first = first};
}

/* The layer of the first call of the entry about to be read; the next layer if this is the
 * first. */
static int find_first_call(struct model_reader *reader, const struct model_entry *entry,
			   const struct json_at *at)
{
	const int next = reader->model->layer_count;
	const int first = reader->again ? reader->notes[next - reader->again].first : next;

	if (first < next && reader->model->layers[first].ops != entry->ops && entry->object)
		json_fail(
			at, reader->err,
			"\"%s\" has the shared_object_id of \"%s\", a %s: one layer has one class",
			entry->name, reader->model->layers[first].name,
			model_layer_class(&reader->model->layers[first]));
	else if (first < next && reader->model->layers[first].ops != entry->ops)
		model_config_unsupported(
			at, reader->err,
			"the model is called again with an input of another shape, "
			"for which its layers are others");
	return first;
}

/* Keras names a layer's calls NAME, NAME_1, NAME_2; use the next free one. */
static void read_call_name(struct model_reader *reader, struct model_layer *layer, int first)
{
	do
		layer->name =
			arena_printf(reader->arena, "%s_%d", reader->model->layers[first].name,
				     ++reader->notes[first].calls);
	while (layer->name && model__names_find(&reader->taken, layer->name));
	model__add_name(reader, &reader->taken, layer->name, 0);
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* The mask of inputs @first to @end of @layer. If several inputs have a mask, it must be the
 * same. */
static int find_mask(struct model_reader *reader, const struct model_layer *layer, int first,
		     int end, const struct json_at *at)
{
	int mask = MODEL_UNMASKED;

	for (int i = first; i < end; i++) {
		const int from = layer->inputs[i];
		const int input_mask =
			from == MODEL_INPUT ? MODEL_UNMASKED : reader->notes[from].mask;

		if (input_mask == MODEL_UNMASKED || input_mask == mask)
			continue;
		if (mask != MODEL_UNMASKED && layer->ops->masks != LAYER_MASKS_END)
			model_config_unsupported(
				at, reader->err,
				"\"%s\": the masks of two layers come in, \"%s\" and "
				"\"%s\": joining them is not supported",
				layer->name, reader->model->layers[mask].name,
				reader->model->layers[input_mask].name);
		mask = input_mask;
	}
	return mask;
}

/* Whether @shape has as many steps as the mask. */
static bool mask_fits(const struct model_reader *reader, int mask, const struct model_shape *shape)
{
	return mask != MODEL_UNMASKED && shape->ndim > 1 &&
	       reader->model->layers[mask].output.dim[0] == shape->dim[0];
}

/* Begin the layer MAKER/PART of one input. The caller completes and counts it. NULL: a failure. */
static struct model_layer *begin_side_layer(struct model_reader *reader, int maker,
					    const char *part, const int *inputs,
					    const struct json_at *at)
{
	struct model *model = reader->model;
	struct model_layer *beside = model__new_layer(reader);
	const struct model_layer *of = &model->layers[maker];
	const char *name = arena_printf(reader->arena, "%s/%s", of->name, part);

	if (!beside || !name || !inputs) {
		err_nomem(reader->err);
		return NULL;
	}
	if (model__names_find(&reader->taken, name))
		json_fail(at, reader->err, "two layers are named \"%s\": names must be unique",
			  name);
	model__add_name(reader, &reader->taken, name, 0);
	*beside = (struct model_layer){
		.name = name,
		.position = model->layer_count,
		.inputs = inputs,
		.input_count = 1,
		.input = *model__tensor_shape(reader, inputs[0]),
		.first_param = model->param_count,
		.row = of->row,
		.home = of->home,
		.policy = of->policy,
	};
	return err_stuck(reader->err) ? NULL : beside;
}

/* Append layers that slice the row that layer @maker outputs: its output, which keeps @mask if the
 * steps agree, and its states. */
static void add_state_layers(struct model_reader *reader, int maker, int states, int mask,
			     const struct json_at *at)
{
	static const char *const names[] = {"output", "h", "c"};
	struct model *model = reader->model;
	int *inputs = model__kept(reader, 1, sizeof(*inputs));

	if (inputs)
		*inputs = maker;
	for (int i = 0; i <= states && !err_stuck(reader->err); i++) {
		struct model_layer *part = begin_side_layer(reader, maker, names[i], inputs, at);

		if (!part ||
		    layer_state(model, &model->layers[maker], i, part, reader->err) != ST_OK)
			return;
		add_note(reader, part->position, part->position,
			 i == 0 && mask_fits(reader, mask, &part->output) ? mask : MODEL_UNMASKED);
		model->layer_count++;
	}
}

/* Append the layer NAME/mask, which computes a mask from the inputs of the last layer. */
static void add_mask_layer(struct model_reader *reader, const struct json_at *at)
{
	struct model *model = reader->model;
	const int position = model->layer_count - 1;
	struct model_layer *mask =
		begin_side_layer(reader, position, "mask", model->layers[position].inputs, at);
	const struct model_layer *maker = &model->layers[position];

	if (!mask || layer_mask(model, maker, mask, reader->err) != ST_OK)
		return;
	reader->notes[maker->position].mask = mask->position;
	add_note(reader, mask->position, mask->position, MODEL_UNMASKED);
	model->layer_count++;
}

/* If the output still has a mask, the loss ignores padding. */
int model__output_mask(struct model_reader *reader, const struct json_at *at, int output)
{
	struct model *model = reader->model;
	const int mask = output == MODEL_INPUT ? MODEL_UNMASKED : reader->notes[output].mask;

	if (mask == MODEL_UNMASKED)
		return 0;
	if (model->layers[output].output.ndim > 2)
		model_config_unsupported(at, reader->err,
					 "the mask \"%s\" comes as far as the output, whose steps "
					 "are of more than one dimension: a loss that leaves "
					 "padding out is of (steps, numbers)",
					 model->layers[mask].name);
	return mask;
}

/* Add @mask as an input of @layer after its regular inputs. Returns the input's index, or 0. */
static int add_mask_input(const struct model_reader *reader, struct model_layer *layer, int *inputs,
			  int mask, const struct model_shape *shape)
{
	if (!mask_fits(reader, mask, shape))
		return 0;
	layer->reads_inputs = true;
	for (int i = layer_own_inputs(layer); i < layer->input_count; i++)
		if (inputs[i] == mask)
			return i;
	inputs[layer->input_count] = mask;
	return layer->input_count++;
}

/* Add the masks that @layer uses as inputs. Returns the mask of the output, which is the first
 * input's if the steps agree. */
static int connect_masks(struct model_reader *reader, struct model_layer *layer, int *inputs,
			 const struct json_at *at)
{
	const int own = layer->input_count;
	const bool attends = layer->ops->masks == LAYER_MASKS_ATTEND;
	const int mask = find_mask(reader, layer, 0, attends ? 1 : own, at);
	const int keys = attends && own > 1 ? find_mask(reader, layer, 1, own, at) : mask;

	if (err_stuck(reader->err) || layer->ops->masks == LAYER_MASKS_END)
		return MODEL_UNMASKED;
	if (attends)
		layer->key_mask = add_mask_input(reader, layer, inputs, keys,
						 model__tensor_shape(reader, inputs[own > 1]));
	if (attends || layer->ops->masks == LAYER_MASKS_USED)
		layer->mask = add_mask_input(reader, layer, inputs, mask, &layer->input);
	return mask;
}

void model__read_layer(struct model_reader *reader, const struct model_scope *scope,
		       struct model_call *call, const struct json_at *at)
{
	const struct model_entry *entry = &scope->entries[call->entry];
	struct model *model = reader->model;
	struct model_layer *layer = model__new_layer(reader);
	/* Space for two masks. */
	int *inputs = model__kept(reader, (size_t)call->input_count + 2, sizeof(*inputs));
	const int first = find_first_call(reader, entry, at);
	struct json_at config;
	int mask;

	if (err_stuck(reader->err))
		return;
	json_child(at, "config", &config);
	*layer = (struct model_layer){
		.ops = entry->ops,
		.position = model->layer_count,
		.inputs = inputs,
		.input_count = call->input_count,
		.first_param = first < model->layer_count ? model->layers[first].first_param
							  : model->param_count,
		.trainable = true,
		.reads_inputs = entry->ops->reads_inputs,
		.reads_output = entry->ops->reads_output,
		.row = entry->row,
		.home = entry->home,
		.causal_mask = call->causal_mask,
		.returns_state = entry->returns_state,
		.inference = scope->inference || call->inference,
		.policy = entry->kind == MODEL_ENTRY_INPUT ? MODEL_POLICY_TEXT
							   : model__read_policy(&config),
	};
	for (int i = 0; i < call->input_count; i++)
		inputs[i] = model__input_tensor(scope, call, i);
	if (first < model->layer_count)
		read_call_name(reader, layer, first);
	else
		read_layer_name(reader, scope, entry, layer, at);
	model_option_bool(&config, "trainable", &layer->trainable, reader->err);
	layer->trainable = layer->trainable && scope->trainable;
	/* Keras uses a layer's own input shape only if nothing before the layer states one. */
	if (entry->kind == MODEL_ENTRY_LAYER && inputs[0] == MODEL_INPUT && !reader->input_known)
		read_given_shape(reader, &config, MODEL_INPUT);
	for (int i = 0; i < layer->input_count; i++)
		if (inputs[i] == MODEL_INPUT)
			require_input_shape(reader, at);
	if (err_stuck(reader->err))
		return;
	layer->input = *model__tensor_shape(reader, inputs[0]);
	mask = connect_masks(reader, layer, inputs, at);
	if (layer_read(model, layer, &config, reader->err) == ST_OK)
		model__check_shape(at, &layer->output, reader->err);
	if (first < layer->position && !err_stuck(reader->err) &&
	    layer->param_count != model->layers[first].param_count)
		json_fail(at, reader->err,
			  "\"%s\" has the shared_object_id of \"%s\", but other weights: one layer "
			  "has one config",
			  entry->name, model->layers[first].name);
	add_note(reader, layer->position, first,
		 mask_fits(reader, mask, &layer->output) ? mask : MODEL_UNMASKED);
	call->source = layer->position;
	model->layer_count++;
	if (layer->makes_mask && !err_stuck(reader->err))
		add_mask_layer(reader, at);
	if (entry->returns_state && !err_stuck(reader->err)) {
		add_state_layers(reader, call->source, layer_states(entry->ops, entry->config),
				 mask, at);
		call->source++;
	}
}
