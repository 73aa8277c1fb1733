/*
 * The calls of a model's list of layers: what comes into each, its shape and masks, and the layers
 * that it becomes: one, those of a mask or of states beside it, or another call of one that is
 * there.
 *
 * Threading and ownership: see model_reader.h.
 */
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/model_reader.h"

#define READ_FIRST_LAYERS 64

/* ---- shapes of what comes in ----------------------------------------------------------------- */

/* The shape of @tensor, a layer's output or the model's input; NULL: not known so far. */
const struct model_shape *model__tensor_shape(const struct model_reader *reader, int tensor)
{
	if (tensor != MODEL_INPUT)
		return &reader->model->layers[tensor].output;
	return reader->input_known ? &reader->model->input : reader->data;
}

static int read_call_output(const struct model_call *call, int output)
{
	return call->sources ? call->sources[output] : call->source + output;
}

int model__end(const struct model_scope *scope, int index)
{
	const struct model_end *end = &scope->outputs[index];

	return read_call_output(&scope->calls[end->call], end->output);
}

/* What comes into @call as its input @index: a layer's output or the model's input. */
int model__tensor(const struct model_scope *scope, const struct model_call *call, int index)
{
	if (call->inputs[index] == MODEL_OUTSIDE)
		return scope->tensors[0];
	return read_call_output(&scope->calls[call->inputs[index]],
				call->from ? call->from[index].output : 0);
}

/* Alike but, where @loose, for dimensions of 1 at the end: data of images of one channel come with
 * and without it. */
static bool read_same_shape(const struct model_shape *a, const struct model_shape *b, bool loose)
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
 * agree. Dimensions that it leaves open are those that come in. */
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
	if (present && !read_same_shape(&shape, present, loose)) {
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

/* From here on the shape of what comes in has to be known. */
static void read_need_shape(struct model_reader *reader, const struct json_at *at)
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
	static const struct model_option options[] = {
		{"name", MODEL_ANY},        {"batch_input_shape", MODEL_ANY},
		{"batch_shape", MODEL_ANY}, {"dtype", MODEL_INPUT_DTYPE},
		{"sparse", MODEL_FALSE},    {"ragged", MODEL_FALSE},
		{"trainable", MODEL_ANY},   {"optional", MODEL_FALSE},
		{"type_spec", MODEL_NULL},  {"input_tensor", MODEL_NULL},
	};

	json_child(at, "config", config);
	model_config_check(config, options, ARRAY_LEN(options), NULL, 0, reader->err);
}

/* What comes into a scope, through its InputLayer. */
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

/* The shape of an InputLayer beside others: all of it stands there. */
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

/* The model's input is one row of all of them, and their InputLayers become layers. */
void model__read_parts(struct model_reader *reader, struct model_scope *scope,
		       const struct json_at *config)
{
	struct model *model = reader->model;
	int *outside = arena_alloc(&reader->scratch, 1, sizeof(*outside));
	struct model_part *parts =
		arena_alloc(reader->arena, (size_t)scope->input_count, sizeof(*parts));
	struct json_at place;
	int64_t total = 0;

	if (!parts || !outside) {
		err_nomem(reader->err);
		return;
	}
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
	    !read_same_shape(reader->data, &model->input, false))
		json_fail(&place, reader->err,
			  "the data have items of %lld numbers, the model's %d inputs %lld: "
			  "data.inputs names an array for each input",
			  (long long)model_shape_count(reader->data), model->part_count,
			  (long long)total);
}

/* ---- a layer --------------------------------------------------------------------------------- */

/* The list doubles whenever its length is a power of two, so no capacity is kept. */
struct model_layer *model__new_layer(struct model_reader *reader)
{
	struct model *model = reader->model;
	size_t count = (size_t)model->layer_count;
	struct model_layer *layers;

	if (!count || (count >= READ_FIRST_LAYERS && !(count & (count - 1)))) {
		layers = arena_alloc(reader->arena, count ? 2 * count : READ_FIRST_LAYERS,
				     sizeof(*layers));
		if (!layers)
			return NULL;
		if (count)
			memcpy(layers, model->layers, count * sizeof(*layers));
		model->layers = layers;
	}
	return &model->layers[count];
}

/* The name of a layer in the whole model. The model's own layers have been noted all at once, for
 * nested ones to give way. */
static void read_layer_name(struct model_reader *reader, const struct model_scope *scope,
			    const struct model_entry *entry, struct model_layer *layer,
			    const struct json_at *at)
{
	const bool nested = scope->outer;
	const char *full = entry->name;

	for (; full && model__names_find(&reader->taken, full) && scope->outer;
	     scope = scope->outer)
		full = arena_printf(reader->arena, "%s/%s", scope->name, full);
	layer->name = full;
	if (full && nested && model__names_find(&reader->taken, full))
		json_fail(at, reader->err, "two layers are named \"%s\": names must be unique",
			  full);
	else if (!full || (nested && model__names_add(&reader->taken, full, 0)))
		err_nomem(reader->err);
}

/* ---- further calls --------------------------------------------------------------------------- */

static void read_note(struct model_reader *reader, int layer, int first, int mask)
{
	if (mem_grow(&reader->notes, &reader->note_capacity, (size_t)layer + 1,
		     sizeof(*reader->notes)))
		err_nomem(reader->err);
	else
		reader->notes[layer] = (struct model_note){.mask = mask, .first = first};
}

/* The layer of which the one that comes next is a call; itself, where it is the first. */
static int read_first_call(struct model_reader *reader, const struct model_entry *entry,
			   const struct json_at *at)
{
	const int next = reader->model->layer_count;
	const int first = reader->again ? reader->notes[next - reader->again].first : next;

	if (first < next && reader->model->layers[first].ops != entry->ops)
		model_config_unsupported(
			at, reader->err,
			"the model is called again with an input of another shape, "
			"for which its layers are others");
	return first;
}

/* Keras's names of a layer's calls: NAME, NAME_1, NAME_2; here the next that is free. */
static void read_call_name(struct model_reader *reader, struct model_layer *layer, int first)
{
	do
		layer->name =
			arena_printf(reader->arena, "%s_%d", reader->model->layers[first].name,
				     ++reader->notes[first].calls);
	while (layer->name && model__names_find(&reader->taken, layer->name));
	if (!layer->name || model__names_add(&reader->taken, layer->name, 0))
		err_nomem(reader->err);
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* The mask of inputs @first to @end of @layer. Where several have one, it must be the same. */
static int read_mask(struct model_reader *reader, const struct model_layer *layer, int first,
		     int end, const struct json_at *at)
{
	int mask = MODEL_UNMASKED;

	for (int i = first; i < end; i++) {
		const int from = layer->inputs[i];
		const int its = from == MODEL_INPUT ? MODEL_UNMASKED : reader->notes[from].mask;

		if (its == MODEL_UNMASKED || its == mask)
			continue;
		if (mask != MODEL_UNMASKED && layer->ops->masks != LAYER_MASKS_END)
			model_config_unsupported(
				at, reader->err,
				"\"%s\": the masks of two layers come in, \"%s\" and "
				"\"%s\": joining them is not supported",
				layer->name, reader->model->layers[mask].name,
				reader->model->layers[its].name);
		mask = its;
	}
	return mask;
}

/* Are the steps of @shape those of the mask? */
static bool read_mask_fits(const struct model_reader *reader, int mask,
			   const struct model_shape *shape)
{
	return mask != MODEL_UNMASKED && shape->ndim > 1 &&
	       reader->model->layers[mask].output.dim[0] == shape->dim[0];
}

/* The layer MAKER/PART, of one input, which is to be counted when it is whole. NULL: a failure. */
static struct model_layer *read_beside(struct model_reader *reader, int maker, const char *part,
				       const int *inputs, const struct json_at *at)
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
	else if (model__names_add(&reader->taken, name, 0))
		err_nomem(reader->err);
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

/* Parts of the row that the last layer, @maker, puts out: its output, which has @mask where its
 * steps are the mask's, and its states. */
static void read_make_states(struct model_reader *reader, int maker, int states, int mask,
			     const struct json_at *at)
{
	static const char *const names[] = {"output", "h", "c"};
	struct model *model = reader->model;
	int *inputs = arena_alloc(reader->arena, 1, sizeof(*inputs));

	if (inputs)
		*inputs = maker;
	for (int i = 0; i <= states && !err_stuck(reader->err); i++) {
		struct model_layer *part = read_beside(reader, maker, names[i], inputs, at);

		if (!part ||
		    layer_state(model, &model->layers[maker], i, part, reader->err) != ST_OK)
			return;
		read_note(reader, part->position, part->position,
			  i == 0 && read_mask_fits(reader, mask, &part->output) ? mask
										: MODEL_UNMASKED);
		model->layer_count++;
	}
}

/* The layer NAME/mask beside the last one, which makes a mask of the same input. */
static void read_make_mask(struct model_reader *reader, const struct json_at *at)
{
	struct model *model = reader->model;
	const int position = model->layer_count - 1;
	struct model_layer *mask =
		read_beside(reader, position, "mask", model->layers[position].inputs, at);
	const struct model_layer *maker = &model->layers[position];

	if (!mask)
		return;
	if (!err_stuck(reader->err) && layer_mask(model, maker, mask, reader->err) == ST_OK) {
		reader->notes[maker->position].mask = mask->position;
		read_note(reader, mask->position, mask->position, MODEL_UNMASKED);
		model->layer_count++;
	}
}

/* Padding is left out of the loss where the output still has a mask; 0: it has not. */
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

/* Has @mask come into @layer, after the inputs that are its own; the input that it is, or 0. */
static int read_add_mask(const struct model_reader *reader, struct model_layer *layer, int *inputs,
			 int mask, const struct model_shape *shape)
{
	if (!read_mask_fits(reader, mask, shape))
		return 0;
	layer->reads_inputs = true;
	for (int i = layer_own_inputs(layer); i < layer->input_count; i++)
		if (inputs[i] == mask)
			return i;
	inputs[layer->input_count] = mask;
	return layer->input_count++;
}

/* The masks that @layer looks at come in; returns that of the output, where its steps are the
 * first input's. */
static int read_layer_masks(struct model_reader *reader, struct model_layer *layer, int *inputs,
			    const struct json_at *at)
{
	const int own = layer->input_count;
	const bool attends = layer->ops->masks == LAYER_MASKS_ATTEND;
	const int mask = read_mask(reader, layer, 0, attends ? 1 : own, at);
	const int keys = attends && own > 1 ? read_mask(reader, layer, 1, own, at) : mask;

	if (err_stuck(reader->err) || layer->ops->masks == LAYER_MASKS_END)
		return MODEL_UNMASKED;
	if (attends)
		layer->key_mask = read_add_mask(reader, layer, inputs, keys,
						model__tensor_shape(reader, inputs[own > 1]));
	if (attends || layer->ops->masks == LAYER_MASKS_USED)
		layer->mask = read_add_mask(reader, layer, inputs, mask, &layer->input);
	return mask;
}

void model__read_layer(struct model_reader *reader, const struct model_scope *scope,
		       struct model_call *call, const struct json_at *at)
{
	const struct model_entry *entry = &scope->entries[call->entry];
	struct model *model = reader->model;
	struct model_layer *layer = model__new_layer(reader);
	/* Two more for masks. */
	int *inputs = arena_alloc(reader->arena, (size_t)call->input_count + 2, sizeof(*inputs));
	const int first = read_first_call(reader, entry, at);
	struct json_at config;
	int mask;

	if (err_stuck(reader->err))
		return;
	if (!layer || !inputs) {
		err_nomem(reader->err);
		return;
	}
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
		.hands_state = entry->hands_state,
		.inference = scope->inference || call->inference,
		.policy = entry->kind == MODEL_ENTRY_INPUT ? MODEL_POLICY_TEXT
							   : model__read_policy(&config),
	};
	for (int i = 0; i < call->input_count; i++)
		inputs[i] = model__tensor(scope, call, i);
	if (first < model->layer_count)
		read_call_name(reader, layer, first);
	else
		read_layer_name(reader, scope, entry, layer, at);
	model_option_bool(&config, "trainable", &layer->trainable, reader->err);
	layer->trainable = layer->trainable && scope->trainable;
	/* Keras looks at a layer's own input shape where nothing before it says one. */
	if (entry->kind == MODEL_ENTRY_LAYER && inputs[0] == MODEL_INPUT && !reader->input_known)
		read_given_shape(reader, &config, MODEL_INPUT);
	for (int i = 0; i < layer->input_count; i++)
		if (inputs[i] == MODEL_INPUT)
			read_need_shape(reader, at);
	if (err_stuck(reader->err))
		return;
	layer->input = *model__tensor_shape(reader, inputs[0]);
	mask = read_layer_masks(reader, layer, inputs, at);
	if (layer->ops->read(model, layer, &config, reader->err) == ST_OK)
		model__check_shape(at, &layer->output, reader->err);
	read_note(reader, layer->position, first,
		  read_mask_fits(reader, mask, &layer->output) ? mask : MODEL_UNMASKED);
	call->source = layer->position;
	model->layer_count++;
	if (layer->makes_mask && !err_stuck(reader->err))
		read_make_mask(reader, at);
	if (entry->hands_state && !err_stuck(reader->err)) {
		read_make_states(reader, call->source, layer_states(entry->ops, entry->config),
				 mask, at);
		call->source++;
	}
}
