/*
 * Wrappers of a layer: build the nested model that each stands for, as JSON that the reader
 * reads like a model of the file.
 *
 *	Bidirectional    NAME/forward_LAYER and NAME/backward_LAYER of the same input, and NAME/merge;
 *	                 initial and final states: the forward layer's, then the backward layer's
 *	TimeDistributed  the layer, named NAME, if it works along the last axis only
 *
 * Threading: any. No state.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/model_reader.h"

#define DIRECTION_STATES 2 /* maximum of one direction (LSTM) */

static const char *const wrappers[] = {"Bidirectional", "TimeDistributed"};

bool model__is_wrapper(const char *class_name)
{
	for (size_t i = 0; i < ARRAY_LEN(wrappers); i++)
		if (!strcmp(class_name, wrappers[i]))
			return true;
	return false;
}

/* ---- the wrapped layer ----------------------------------------------------------------------- */

struct wrapped {
	const struct json_at *at; /* the wrapper */
	struct json_at config;    /* of the wrapper */
	struct json_at layer;     /* the wrapped layer; below its class, name and config */
	const char *class_name, *name;
	const cJSON *inside;
	cJSON *layers, *ends[2]; /* the new model's layers, inputs and outputs */
	int starts;              /* initial states per direction */
	int states;              /* final states per direction */
	bool unmerged;           /* the directions' outputs are not merged */
	struct arena *arena;
	struct err *err; /* sticky: after a failure, nothing is added */
};

/* End an addition to the tree: return @item if it was @added; otherwise free it, record a failure
 * and return NULL. */
static cJSON *keep(const struct wrapped *w, cJSON *item, bool added)
{
	if (added)
		return item;
	cJSON_Delete(item);
	if (!err_stuck(w->err))
		err_nomem(w->err);
	return NULL;
}

/* Append @item, which is taken over; a NULL @list or @item counts as lack of memory. */
static cJSON *append(const struct wrapped *w, cJSON *list, cJSON *item)
{
	return keep(w, item, !err_stuck(w->err) && item && cJSON_AddItemToArray(list, item));
}

/* Add @item likewise as the member @key of @object, in place of an old one. */
static cJSON *put(const struct wrapped *w, cJSON *object, const char *key, cJSON *item)
{
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	return keep(w, item,
		    !err_stuck(w->err) && item && cJSON_AddItemToObject(object, key, item));
}

/* Append ["NAME", 0, @output] to @list; @call: add the empty arguments that a call has. */
static void append_tensor(const struct wrapped *w, cJSON *list, const char *name, int output,
			  bool call)
{
	cJSON *tensor = append(w, list, cJSON_CreateArray());

	append(w, tensor, cJSON_CreateString(name));
	append(w, tensor, cJSON_CreateNumber(0));
	append(w, tensor, cJSON_CreateNumber(output));
	if (call)
		append(w, tensor, cJSON_CreateObject());
}

/* Append a layer with inputs @from (NULL-terminated), and return it. Takes ownership of @config and
 * names it. */
static cJSON *add_layer(const struct wrapped *w, const char *class_name, cJSON *config,
			const char *name, const char *const *from)
{
	cJSON *layer = append(w, w->layers, cJSON_CreateObject()), *calls, *call = NULL;

	config = put(w, layer, "config", config);
	put(w, config, "name", cJSON_CreateString(name));
	put(w, layer, "class_name", cJSON_CreateString(class_name));
	put(w, layer, "name", cJSON_CreateString(name));
	calls = put(w, layer, "inbound_nodes", cJSON_CreateArray());
	if (*from)
		call = append(w, calls, cJSON_CreateArray());
	for (; *from; from++)
		append_tensor(w, call, *from, 0, true);
	return layer;
}

static void read_wrapped(struct wrapped *w)
{
	static const struct model_option options[] = {
		{"name", .rule = MODEL_ANY},         {"trainable", .rule = MODEL_ANY},
		{"dtype", .rule = MODEL_DTYPE},      {"batch_input_shape", .rule = MODEL_ANY},
		{"batch_shape", .rule = MODEL_ANY},  {"layer", .rule = MODEL_ANY},
		{"merge_mode", .rule = MODEL_ANY},   {"backward_layer", .rule = MODEL_ANY},
		{"build_config", .rule = MODEL_ANY}, {"module", .rule = MODEL_ANY},
	};
	struct json_at here;

	if (!json_child(w->at, "config", &w->config) || json_object(&w->config, w->err) != ST_OK)
		return;
	model_config_check(&w->config, options, ARRAY_LEN(options), NULL, 0, w->err);
	if (!model_option_need(&w->config, "layer", &w->layer, w->err) ||
	    json_object(&w->layer, w->err) != ST_OK ||
	    !model_option_need(&w->layer, "class_name", &here, w->err) ||
	    json_text(&here, &w->class_name, w->err) != ST_OK ||
	    !model_option_need(&w->layer, "config", &here, w->err) ||
	    json_object(&here, w->err) != ST_OK)
		return;
	w->inside = here.node;
	model_option_text(&here, "name", &w->name, w->err);
	if (!w->name) {
		char snake[MODEL_NAME_SIZE];

		model__snake(w->class_name, snake, sizeof(snake));
		w->name = arena_strdup(w->arena, snake);
		if (!w->name)
			err_nomem(w->err);
	}
}

/* Copy the wrapped layer's config and apply the wrapper's "trainable". The copy drops the input
 * shape, which is that of one step or is given by the wrapper. */
static cJSON *inner_config(const struct wrapped *w, const cJSON *from)
{
	cJSON *config = cJSON_Duplicate(from, true);
	const cJSON *trainable = cJSON_GetObjectItemCaseSensitive(w->config.node, "trainable");

	cJSON_DeleteItemFromObjectCaseSensitive(config, "batch_input_shape");
	cJSON_DeleteItemFromObjectCaseSensitive(config, "batch_shape");
	if (cJSON_IsFalse(trainable))
		put(w, config, "trainable", cJSON_CreateFalse());
	return config;
}

/* Add the nested model's InputLayer, with the wrapper's input shape if it has one. */
static void add_input(const struct wrapped *w, const char *name)
{
	static const char *const keys[] = {"batch_input_shape", "batch_shape"};
	cJSON *config = cJSON_CreateObject();
	const char *const none[] = {NULL};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const cJSON *shape = cJSON_GetObjectItemCaseSensitive(w->config.node, keys[i]);

		if (shape)
			put(w, config, keys[i], cJSON_Duplicate(shape, true));
	}
	add_layer(w, "InputLayer", config, name, none);
}

/* ---- TimeDistributed ------------------------------------------------------------------------- */

static void add_distributed(const struct wrapped *w, const char *name, const char *input)
{
	static const char *const object[] = {"shared_object_id", "module"};
	const char *const from[] = {input, NULL};
	const struct layer_ops *ops = layer_find(w->class_name);
	cJSON *layer;

	if (!ops || !ops->each_step) {
		model_config_unsupported(
			&w->layer, w->err,
			"\"%s\": TimeDistributed of %s is not supported: it may hold what works "
			"along the last axis (Dense, Activation, LayerNormalization, Dropout and "
			"the like); Conv1D and Conv2D see all steps at once",
			name, w->class_name);
		return;
	}
	layer = add_layer(w, w->class_name, inner_config(w, w->inside), name, from);
	/* Keras wraps the layer itself, which another model may list, too. */
	for (size_t i = 0; i < ARRAY_LEN(object); i++) {
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(w->layer.node, object[i]);

		if (item)
			put(w, layer, object[i], cJSON_Duplicate(item, true));
	}
}

/* ---- Bidirectional --------------------------------------------------------------------------- */

/* The class of the layer that merges both directions; NULL: a failure. */
static const char *merge_class(const struct wrapped *w)
{
	static const char *const modes[] = {"concat", "sum", "mul", "ave"};
	static const char *const classes[] = {"Concatenate", "Add", "Multiply", "Average"};
	const char *mode = modes[0];
	struct json_at here;

	model_option_text(&w->config, "merge_mode", &mode, w->err);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (!strcmp(mode, modes[i]))
			return classes[i];
	if (!err_stuck(w->err) && model_option_at(&w->config, "merge_mode", &here, w->err))
		json_unknown(&here, "merge_mode", mode, modes, ARRAY_LEN(modes), w->err);
	return NULL;
}

/* Add the layer @name of one direction, and return its config; NULL: a failure. Its initial states
 * follow @input; their numbers begin at @first. Takes ownership of @config. */
static cJSON *add_direction(const struct wrapped *w, cJSON *config, const char *name,
			    const char *input, int first)
{
	const char *from[2 + DIRECTION_STATES] = {input};
	const cJSON *sequences;

	for (int i = 0; i < w->starts; i++) {
		from[1 + i] = arena_printf(w->arena, "%s/state_%d", name, first + i);
		append_tensor(w, w->ends[0], from[1 + i], 0, false);
		add_layer(w, "InputLayer", cJSON_CreateObject(), from[1 + i],
			  &from[1 + DIRECTION_STATES]);
	}
	config = cJSON_GetObjectItemCaseSensitive(add_layer(w, w->class_name, config, name, from),
						  "config");
	/* Keras's Bidirectional outputs zeros at masked steps of sequences. */
	sequences = cJSON_GetObjectItemCaseSensitive(config, "return_sequences");
	put(w, config, "zero_output_for_mask", cJSON_CreateBool(cJSON_IsTrue(sequences)));
	return config;
}

/* Add the outputs: the merged output or both, then the final states of each direction. */
static void add_outputs(const struct wrapped *w, const char *merged, const char *const *both)
{
	if (!w->unmerged)
		append_tensor(w, w->ends[1], merged, 0, false);
	for (int d = 0; w->unmerged && d < 2; d++)
		append_tensor(w, w->ends[1], both[d], 0, false);
	for (int d = 0; d < 2; d++)
		for (int i = 0; i < w->states; i++)
			append_tensor(w, w->ends[1], both[d], 1 + i, false);
}

static void add_directions(const struct wrapped *w, const char *name, const char *input)
{
	const char *merge = w->unmerged ? NULL : merge_class(w);
	const char *forward = arena_printf(w->arena, "%s/forward_%s", name, w->name);
	const char *backward = arena_printf(w->arena, "%s/backward_%s", name, w->name);
	const char *merged = arena_printf(w->arena, "%s/merge", name);
	const cJSON *reversed = cJSON_GetObjectItemCaseSensitive(w->inside, "go_backwards");
	const cJSON *other = cJSON_GetObjectItemCaseSensitive(w->config.node, "backward_layer");
	const cJSON *own = cJSON_GetObjectItemCaseSensitive(other, "config");
	const char *const both[] = {forward, backward, NULL};
	cJSON *second;

	if (!err_stuck(w->err) && strcmp(w->class_name, "LSTM") != 0 &&
	    strcmp(w->class_name, "GRU") != 0 && strcmp(w->class_name, "SimpleRNN") != 0)
		model_config_unsupported(&w->layer, w->err,
					 "\"%s\": Bidirectional of %s is not supported: it must be "
					 "LSTM, GRU or SimpleRNN",
					 name, w->class_name);
	else if (!err_stuck(w->err) && (!forward || !backward || !merged))
		err_nomem(w->err);
	if (err_stuck(w->err))
		return;
	add_direction(w, inner_config(w, w->inside), forward, input, 0);
	second = add_direction(w, inner_config(w, own ? own : w->inside), backward, input,
			       w->starts);
	put(w, second, "go_backwards", cJSON_CreateBool(!cJSON_IsTrue(reversed)));
	put(w, second, "return_reversed", cJSON_CreateTrue());
	add_outputs(w, merged, both);
	if (!w->unmerged)
		add_layer(w, merge, cJSON_CreateObject(), merged, both);
}

/* ---- the model ------------------------------------------------------------------------------- */

int model__wrap_states(const struct model_entry *entry, bool handed)
{
	const cJSON *layer = cJSON_GetObjectItemCaseSensitive(entry->config, "layer");
	const char *name =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(layer, "class_name"));
	const cJSON *config = cJSON_GetObjectItemCaseSensitive(layer, "config");
	const struct layer_ops *ops;

	if (entry->kind != MODEL_ENTRY_WRAPPER || !name ||
	    strcmp(entry->class_name, wrappers[0]) != 0)
		return 0;
	ops = layer_find(model_legacy_present(name));
	if (!ops)
		return 0;
	return 2 * (handed ? layer_states(ops, config) : layer_state_count(ops));
}

bool model__wrap_is_unmerged(const struct model_entry *entry)
{
	return entry->kind == MODEL_ENTRY_WRAPPER && !strcmp(entry->class_name, wrappers[0]) &&
	       cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(entry->config, "merge_mode"));
}

const char *model__wrap_place(const char *wrapper, const char *model, const char *name)
{
	const size_t length = strlen(model);

	if (strcmp(wrapper, wrappers[0]) != 0)
		return !strcmp(name, model) ? "layer" : NULL;
	if (strncmp(name, model, length) != 0)
		return NULL;
	if (str_starts_with(name + length, "/forward_"))
		return "forward_layer";
	return str_starts_with(name + length, "/backward_") ? "backward_layer" : NULL;
}

enum status model__wrap_build(cJSON **out, const struct json_at *at,
			      const struct model_entry *entry, int inputs, struct arena *arena,
			      struct err *err)
{
	const int states = model__wrap_states(entry, false);
	struct wrapped w = {.at = at,
			    .arena = arena,
			    .err = err,
			    .starts = inputs > 1 ? states / 2 : 0,
			    .states =
				    entry->returns_state ? model__wrap_states(entry, true) / 2 : 0,
			    .unmerged = model__wrap_is_unmerged(entry)};
	const bool bidirectional = !strcmp(entry->class_name, wrappers[0]);
	const char *name = entry->name, *input = arena_printf(arena, "%s/input", name);
	cJSON *model = cJSON_CreateObject(), *config;

	*out = NULL;
	if (inputs > 1 && inputs - 1 != states)
		json_fail(at, err, "%d initial state%s in: \"%s\" has %d, of both directions",
			  inputs - 1, inputs == 2 ? " comes" : "s come", name, states);
	read_wrapped(&w);
	config = put(&w, model, "config", cJSON_CreateObject());
	w.layers = put(&w, config, "layers", cJSON_CreateArray());
	w.ends[0] = put(&w, config, "input_layers", cJSON_CreateArray());
	w.ends[1] = put(&w, config, "output_layers", cJSON_CreateArray());
	put(&w, config, "name", cJSON_CreateString(name));
	append_tensor(&w, w.ends[0], input, 0, false);
	if (!err_stuck(err))
		add_input(&w, input);
	if (!err_stuck(err) && bidirectional) {
		add_directions(&w, name, input);
	} else if (!err_stuck(err)) {
		append_tensor(&w, w.ends[1], name, 0, false);
		add_distributed(&w, name, input);
	}
	if (err_stuck(err))
		cJSON_Delete(model);
	else
		*out = model;
	return err->status;
}
