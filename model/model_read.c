/*
 * Reading a Keras model: Sequential or Functional; nested models are flattened into their layers. A
 * list of layers is a scope: its entries are read (model_entries.c), connected (model_graph.c) and
 * turned into layers in execution order (model_call.c), nested models included.
 *
 * Threading and ownership: see model_reader.h. Recursion is as deep as models are nested, at most
 * MODEL_DEPTH.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/applications/application.h"
#include "model/model_reader.h"

/* ---- nested models --------------------------------------------------------------------------- */

static void read_scope(struct model_reader *reader, struct model_scope *scope,
		       const struct json_at *config);

static void read_nested(struct model_reader *reader, const struct model_scope *scope,
			struct model_call *call, const struct json_at *config, bool functional)
{
	const struct model_entry *entry = &scope->entries[call->entry];
	int *tensors = model__scratch(reader, (size_t)call->input_count, sizeof(*tensors));
	struct model_scope inner = {
		.outer = scope,
		.name = entry->name,
		.home = entry->home,
		.wrapper = entry->kind == MODEL_ENTRY_WRAPPER ? entry->class_name : NULL,
		.functional = functional,
		.trainable = scope->trainable,
		.inference = scope->inference || call->inference,
		.tensors = tensors,
		.tensor_count = call->input_count,
		.row = entry->row,
		.depth = scope->depth + 1,
	};

	for (int i = 0; tensors && i < call->input_count; i++)
		tensors[i] = model__input_tensor(scope, call, i);
	if (!err_stuck(reader->err) && inner.depth > MODEL_DEPTH)
		json_fail(config, reader->err,
			  "models are nested more than %d deep: that is beyond the limit",
			  MODEL_DEPTH);
	if (err_stuck(reader->err))
		return;
	read_scope(reader, &inner, config);
	model__names_free(&inner.names);
	if (!err_stuck(reader->err))
		call->source = model__output_tensor(&inner, 0);
	if (err_stuck(reader->err) || inner.output_count == 1)
		return;
	call->sources = model__scratch(reader, (size_t)inner.output_count, sizeof(int));
	for (int i = 0; call->sources && i < inner.output_count; i++)
		call->sources[i] = model__output_tensor(&inner, i);
}

/* Build the application at @at; errors show it under its name: "layers[2].resnet50". Returns
 * false on failure; otherwise the caller deletes *@built. */
static bool read_build_application(const struct json_at *at, const char *name,
				   const struct model_shape *input, cJSON **built,
				   struct json_at *place, struct json_at *config, struct err *err)
{
	if (application_build(built, at, input, 0, err) != ST_OK)
		return false;
	*place = (struct json_at){
		.file = at->file, .up = at, .node = *built, .key = name, .index = -1};
	model_option_need(place, "config", config, err);
	return true;
}

static void read_call(struct model_reader *reader, const struct model_scope *scope,
		      struct model_call *call, const struct json_at *at)
{
	const struct model_entry *entry = &scope->entries[call->entry];
	struct json_at place, config;
	cJSON *built;

	switch (entry->kind) {
	case MODEL_ENTRY_INPUT:
		if (!model__is_part(scope, entry)) {
			model__read_input(reader, scope, call, at);
			break;
		}
		/* fall through */
	case MODEL_ENTRY_LAYER:
		model__read_layer(reader, scope, call, at);
		break;
	case MODEL_ENTRY_APPLICATION:
		if (!read_build_application(
			    at, entry->class_name,
			    model__tensor_shape(reader, model__input_tensor(scope, call, 0)),
			    &built, &place, &config, reader->err))
			break;
		if (!err_stuck(reader->err))
			read_nested(reader, scope, call, &config, true);
		cJSON_Delete(built);
		break;
	case MODEL_ENTRY_WRAPPER:
		if (model__wrap_build(&built, at, entry, call->input_count, reader->arena,
				      reader->err) != ST_OK)
			break;
		place = (struct json_at){
			.file = at->file, .up = at, .node = built, .key = entry->name, .index = -1};
		if (model_option_need(&place, "config", &config, reader->err))
			read_nested(reader, scope, call, &config, true);
		cJSON_Delete(built);
		break;
	case MODEL_ENTRY_MODEL:
		json_child(at, "config", &config);
		read_nested(reader, scope, call, &config, !strcmp(entry->class_name, "Functional"));
		break;
	}
}

/* ---- rows of the summary --------------------------------------------------------------------- */

/* Create the summary row of an entry of the outermost model. A Sequential model's InputLayer has no
 * row. */
static void read_row(struct model_reader *reader, const struct model_scope *scope,
		     struct model_entry *entry)
{
	struct model *model = reader->model;
	struct model_row *row = &model->rows[model->row_count];
	size_t count = 1;
	int *inputs, *calls;

	entry->row = -1;
	if (!scope->functional && entry->kind == MODEL_ENTRY_INPUT)
		return;
	for (int i = 0; i < entry->call_count; i++)
		count += (size_t)scope->calls[entry->first_call + i].input_count;
	inputs = model__kept(reader, count, sizeof(*inputs));
	calls = model__kept(reader, count, sizeof(*calls));
	*row = (struct model_row){
		.name = entry->name, .class_name = "Functional", .inputs = inputs, .calls = calls};
	if (entry->kind == MODEL_ENTRY_LAYER)
		row->class_name = entry->ops->class_name;
	else if (entry->kind == MODEL_ENTRY_WRAPPER)
		row->class_name = arena_strdup(reader->arena, entry->class_name);
	else if (entry->kind == MODEL_ENTRY_INPUT)
		row->class_name = "InputLayer";
	else if (entry->kind == MODEL_ENTRY_MODEL && strcmp(entry->class_name, "Functional") != 0)
		row->class_name = "Sequential";
	if (!row->class_name)
		err_nomem(reader->err);
	entry->row = model->row_count++;
}

/* Add the inputs of @call to the row of its entry. */
static void read_row_inputs(const struct model_reader *reader, const struct model_scope *scope,
			    const struct model_call *call)
{
	const int number = scope->entries[call->entry].row;
	struct model_row *row = &reader->model->rows[number];

	for (int i = 0; number >= 0 && i < call->input_count; i++) {
		const int from = call->inputs[i];
		const struct model_entry *its =
			from == MODEL_OUTSIDE ? NULL : &scope->entries[scope->calls[from].entry];

		if (!its || its->row < 0)
			continue;
		row->inputs[row->input_count] = its->row;
		row->calls[row->input_count++] = from - its->first_call;
	}
}

/* Whether the nested model contains an input layer; *@open: that layer leaves its sizes open. */
static bool read_nested_input(const struct model_entry *entry, bool *open)
{
	const cJSON *config = cJSON_GetObjectItemCaseSensitive(entry->node, "config");
	const cJSON *shape = cJSON_GetObjectItemCaseSensitive(config, "input_shape");
	const cJSON *layer;

	*open = false;
	if (entry->kind == MODEL_ENTRY_APPLICATION) {
		*open = (!shape || cJSON_IsNull(shape)) &&
			cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(config, "include_top"));
		return true;
	}
	cJSON_ArrayForEach(layer, cJSON_GetObjectItemCaseSensitive(config, "layers"))
	{
		const cJSON *name = cJSON_GetObjectItemCaseSensitive(layer, "class_name");

		if (!cJSON_IsString(name) || strcmp(name->valuestring, "InputLayer") != 0)
			continue;
		config = cJSON_GetObjectItemCaseSensitive(layer, "config");
		shape = cJSON_GetObjectItemCaseSensitive(config, "batch_input_shape");
		if (!shape)
			shape = cJSON_GetObjectItemCaseSensitive(config, "batch_shape");
		*open = cJSON_IsNull(cJSON_GetArrayItem(shape, 1));
		return true;
	}
	return false;
}

/* Set the output shape of each row. This runs last because an InputLayer's shape may come from the
 * first layer. */
static void read_row_shapes(struct model_reader *reader, const struct model_scope *scope)
{
	for (int i = 0; i < scope->count; i++) {
		const struct model_entry *entry = &scope->entries[i];
		struct model_row *row;
		bool open;

		if (entry->row < 0)
			continue;
		row = &reader->model->rows[entry->row];
		row->output = *model__tensor_shape(reader, scope->calls[entry->first_call].source);
		if (entry->kind != MODEL_ENTRY_APPLICATION && entry->kind != MODEL_ENTRY_MODEL)
			continue;
		row->any_batch = read_nested_input(entry, &open);
		if (open && row->output.ndim == 3)
			row->output.dim[0] = row->output.dim[1] = 0;
	}
}

/* ---- a model's config ------------------------------------------------------------------------ */

/* Connect the entries of a Sequential model: the input of each is the entry before. */
static void read_sequential(struct model_reader *reader, struct model_scope *scope)
{
	int *numbers = model__scratch(reader, 2 * (size_t)scope->count + 1, sizeof(*numbers));

	scope->outputs = model__scratch(reader, 1, sizeof(*scope->outputs));
	scope->calls = model__scratch(reader, (size_t)scope->count + 1, sizeof(*scope->calls));
	if (err_stuck(reader->err))
		return;
	scope->order = numbers + scope->count;
	scope->output_count = 1;
	scope->outputs[0] = (struct model_end){.call = scope->count - 1};
	scope->call_count = scope->count;
	for (int i = 0; i < scope->count && !err_stuck(reader->err); i++) {
		struct model_entry *entry = &scope->entries[i];
		struct json_at at = model__entry_at(scope, i);

		numbers[i] = i ? i - 1 : MODEL_OUTSIDE;
		scope->order[i] = i;
		entry->first_call = i;
		entry->call_count = 1;
		scope->calls[i] = (struct model_call){
			.entry = i,
			.inputs = &numbers[i],
			.input_count = entry->kind != MODEL_ENTRY_INPUT,
		};
		if (entry->kind == MODEL_ENTRY_LAYER && entry->ops->least_inputs > 1)
			json_fail(&at, reader->err,
				  "\"%s\" (%s) takes at least %d inputs: that needs a functional "
				  "model",
				  entry->name, entry->class_name, entry->ops->least_inputs);
		if (model__entry_outputs(entry) > 1)
			json_fail(&at, reader->err,
				  "\"%s\" has %d outputs: that needs a functional model",
				  entry->name, model__entry_outputs(entry));
	}
}

/* Allocate the rows of the outermost model, and reserve its layers' names before nested models are
 * read. */
static void read_prepare_rows(struct model_reader *reader, const struct model_scope *scope)
{
	struct model *model = reader->model;

	if (err_stuck(reader->err))
		return;
	model->functional = scope->functional;
	model->rows = model__kept(reader, (size_t)scope->count + 1, sizeof(*model->rows));
	for (int i = 0; i < scope->count; i++)
		if (scope->entries[i].kind == MODEL_ENTRY_LAYER ||
		    model__is_part(scope, &scope->entries[i]))
			model__add_name(reader, &reader->taken, scope->entries[i].name, 0);
}

static void read_options(struct model_reader *reader, struct model_scope *scope,
			 const struct json_at *config)
{
	static const struct model_option options[] = {
		{"name", .rule = MODEL_ANY},
		{"layers", .rule = MODEL_ANY},
		{"trainable", .rule = MODEL_ANY},
		{"dtype", .rule = MODEL_DTYPE},
		{"build_input_shape", .rule = MODEL_ANY},
	};
	static const struct model_option ends[] = {{"input_layers", .rule = MODEL_ANY},
						   {"output_layers", .rule = MODEL_ANY}};
	struct err *err = reader->err;
	bool trainable = true;

	if (json_object(config, err) != ST_OK)
		return;
	model_legacy_keys(config, err);
	model_config_check(config, options, ARRAY_LEN(options), ends,
			   scope->functional ? ARRAY_LEN(ends) : 0, err);
	model_option_bool(config, "trainable", &trainable, err);
	scope->trainable = scope->trainable && trainable;
	model_option_need(config, "layers", &scope->layers, err);
}

/* Return the copy of @config without the operations that compute masks; the reader keeps it. After
 * a failure it is @config. */
static const struct json_at *leave_masks_out(struct model_reader *reader,
					     const struct json_at *config)
{
	struct json_at *out = model__scratch(reader, 1, sizeof(*out));
	cJSON *copy;

	if (!out || model__leave_masks_out(&copy, config, reader->err) != ST_OK)
		return config;
	if (!reader->copies)
		reader->copies = cJSON_CreateArray();
	if (!reader->copies || !cJSON_AddItemToArray(reader->copies, copy)) {
		cJSON_Delete(copy);
		err_nomem(reader->err);
		return config;
	}
	*out = *config;
	out->node = copy;
	return out;
}

/* scope->layers is linked to @config and is valid only during this call. */
static void read_scope(struct model_reader *reader, struct model_scope *scope,
		       const struct json_at *config)
{
	int again, *first;

	if (scope->functional && model__lists_masks(config->node))
		config = leave_masks_out(reader, config);
	if (!scope->functional && cJSON_IsArray(config->node)) /* the form before Keras 2.2.3 */
		scope->layers = *config;
	else
		read_options(reader, scope, config);
	model__read_entries(reader, scope);
	if (scope->functional) {
		model__read_calls(reader, scope, config);
		model__sort(reader, scope);
	} else {
		read_sequential(reader, scope);
	}
	if (reader->ends)
		return;
	if (!err_stuck(reader->err) && !scope->outer && scope->input_count > 1)
		model__read_parts(reader, scope, config);
	if (!scope->outer)
		read_prepare_rows(reader, scope);
	again = reader->again;
	for (int i = 0; i < scope->call_count && !err_stuck(reader->err); i++) {
		struct model_call *call = &scope->calls[scope->order[i]];
		struct model_entry *entry = &scope->entries[call->entry];
		struct json_at at = model__entry_at(scope, call->entry);

		if (scope->outer)
			entry->row = scope->row;
		else if (entry->first_layer < 0)
			read_row(reader, scope, entry);
		if (err_stuck(reader->err))
			break;
		if (!scope->outer)
			read_row_inputs(reader, scope, call);
		first = entry->object ? model__names_find(&reader->shared, entry->object)
				      : &entry->first_layer;
		if (*first < 0)
			*first = reader->model->layer_count;
		else
			reader->again = reader->model->layer_count - *first;
		entry->first_layer = *first;
		read_call(reader, scope, call, &at);
		reader->again = again;
	}
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Append a last layer after the model's own layers: a Concatenate, which joins several outputs as
 * vectors, or an identity if the single output is not the last layer's. */
static void read_append_join(struct model_reader *reader, const struct model_scope *scope,
			     const struct model_output *outputs)
{
	struct model *model = reader->model;
	struct model_layer *join = model__new_layer(reader), *from;
	int *inputs = model__kept(reader, (size_t)scope->output_count, sizeof(*inputs));
	const char *name = "outputs";

	if (model__names_find(&reader->taken, name))
		name = arena_printf(reader->arena, "%s/outputs", scope->name);
	if (!join || !inputs || !name) {
		err_nomem(reader->err);
		return;
	}
	*join = (struct model_layer){
		.name = name,
		.ops = layer_find(scope->output_count > 1 ? "Concatenate" : "Activation"),
		.position = model->layer_count,
		.inputs = inputs,
		.input_count = scope->output_count,
		.first_param = model->param_count,
	};
	for (int i = 0; i < scope->output_count; i++) {
		inputs[i] = model__output_tensor(scope, i);
		from = &model->layers[inputs[i]];
		/* A half-precision policy applies only if all outputs have it, so none is
		 * rounded. */
		if (i == 0 || join->policy == MODEL_POLICY_MIXED ||
		    join->policy == MODEL_POLICY_MIXED_BFLOAT16)
			join->policy = from->policy;
		join->row = from->row;
		join->home = from->home;
		join->output.dim[0] += model_shape_count(&outputs[i].shape);
	}
	join->output.ndim = 1;
	join->input = outputs[0].shape;
	if (scope->output_count == 1)
		join->output = join->input;
	model->layer_count++;
	model__check_shape(&scope->layers, &join->output, reader->err);
}

static void read_output_names(struct model_reader *reader, const struct model_scope *scope)
{
	struct model *model = reader->model;
	struct model_output *outputs =
		model__kept(reader, (size_t)scope->output_count, sizeof(*outputs));

	for (int i = 0; i < scope->output_count && !err_stuck(reader->err); i++) {
		const int entry = scope->calls[scope->outputs[i].call].entry;
		const char *name = scope->entries[entry].name;
		int before = 0;

		/* The layer's name; if the layer has several outputs, the later ones get a number,
		 * as in Keras. */
		for (int j = 0; j < i; j++)
			before += scope->calls[scope->outputs[j].call].entry == entry;
		outputs[i].name = before ? arena_printf(reader->arena, "%s_%d", name, before)
					 : arena_strdup(reader->arena, name);

		if (!outputs[i].name)
			err_nomem(reader->err);
		for (int o = 0; o < i && !err_stuck(reader->err); o++)
			if (!strcmp(outputs[o].name, outputs[i].name))
				json_fail(&scope->layers, reader->err,
					  "two outputs would be called \"%s\": rename the layer",
					  outputs[i].name);
	}
	model->outputs = outputs;
	model->output_count = scope->output_count;
}

/* Set shape, offset and mask of the model's outputs, for losses and metrics. */
static void read_outputs(struct model_reader *reader, const struct model_scope *scope)
{
	struct model *model = reader->model;
	struct model_output *outputs = model->outputs;
	int64_t first = 0;

	for (int i = 0; i < scope->output_count && !err_stuck(reader->err); i++) {
		const int source = model__output_tensor(scope, i);

		outputs[i].shape = *model__tensor_shape(reader, source);
		outputs[i].first = first;
		first += model_shape_count(&outputs[i].shape);
		outputs[i].mask = model__output_mask(reader, &scope->layers, source);
		if (scope->output_count > 1 && source == MODEL_INPUT)
			json_fail(&scope->layers, reader->err,
				  "the output \"%s\" is the model's input", outputs[i].name);
	}
	if (!err_stuck(reader->err) &&
	    (scope->output_count > 1 || model__output_tensor(scope, 0) != model->layer_count - 1))
		read_append_join(reader, scope, outputs);
}

/* ---- the model itself ------------------------------------------------------------------------ */

/* @outer: the object that may hold a name beside the config. */
static void read_model_config(struct model_reader *reader, const struct json_at *outer,
			      const struct json_at *config, bool functional)
{
	const int input = MODEL_INPUT;
	struct model_scope scope = {
		.name = functional ? "model" : "sequential",
		.functional = functional,
		.trainable = true,
		.tensors = &input,
		.tensor_count = 1,
		.row = -1,
	};
	struct err *err = reader->err;
	struct json_at place;

	model__read_name(config, &place, &scope.name, err);
	model__read_name(outer, &place, &scope.name, err);
	if (err_stuck(err))
		return;
	scope.name = reader->model->name = arena_strdup(reader->arena, scope.name);
	if (!scope.name) {
		err_nomem(err);
		return;
	}
	read_scope(reader, &scope, config);
	if (!err_stuck(err) && !reader->ends && !reader->model->layer_count)
		json_fail(&scope.layers, err, "a model needs at least one layer");
	read_output_names(reader, &scope);
	if (!err_stuck(err) && !reader->ends)
		read_outputs(reader, &scope);
	if (!err_stuck(err) && !reader->ends)
		read_row_shapes(reader, &scope);
	model__names_free(&scope.names);
}

static void read_whole_application(struct model_reader *reader, const struct json_at *at)
{
	static const struct model_option options[] = {
		{"application", .rule = MODEL_ANY},
		{"config", .rule = MODEL_ANY},
		{"name", .rule = MODEL_ANY},
	};
	struct json_at place, config;
	cJSON *built;

	if (model_config_check(at, options, ARRAY_LEN(options), NULL, 0, reader->err) != ST_OK ||
	    !read_build_application(at, "application", reader->data, &built, &place, &config,
				    reader->err))
		return;
	if (!err_stuck(reader->err))
		read_model_config(reader, at, &config, true);
	cJSON_Delete(built);
}

/* Whether the model is functional; false also on failure. */
static bool read_is_functional(const struct json_at *at, struct err *err)
{
	static const char *const known[] = {"Sequential", "Functional", "Model"};
	struct json_at here;
	const char *class_name;

	if (err_stuck(err))
		return false;
	if (!json_child(at, "class_name", &here)) {
		json_fail(at, err, "\"class_name\" is missing (\"Sequential\" or \"Functional\")");
		return false;
	}
	if (json_text(&here, &class_name, err) != ST_OK)
		return false;
	model_legacy_class(&here, class_name, err);
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(class_name, known[i]))
			return i > 0;
	if (err_stuck(err))
		return false;
	if (str_nearest(class_name, known, ARRAY_LEN(known)))
		json_unknown(&here, "model class", class_name, known, ARRAY_LEN(known), err);
	else
		json_fail(
			&here, err,
			"unknown model class \"%s\": a class of one's own has its code elsewhere; "
			"save each Sequential or Functional model in it alone, as "
			"model.encoder.save(\"encoder.keras\")",
			class_name);
	return false;
}

/* Read the object at @at: a model, a config alone, or an application. */
static void read_model(struct model_reader *reader, const struct json_at *at)
{
	static const struct model_option options[] = {
		{"class_name", .rule = MODEL_ANY},   {"config", .rule = MODEL_ANY},
		{"module", .rule = MODEL_ANY},       {"registered_name", .rule = MODEL_ANY},
		{"backend", .rule = MODEL_ANY},      {"keras_version", .rule = MODEL_ANY},
		{"build_config", .rule = MODEL_ANY}, {"compile_config", .rule = MODEL_ANY},
		{"name", .rule = MODEL_ANY},         {"shared_object_id", .rule = MODEL_ANY},
	};
	struct err *err = reader->err;
	const char *version;
	struct json_at here;
	bool functional;

	if (json_object(at, err) != ST_OK)
		return;
	if (json_child(at, "application", &here)) {
		if (!reader->ends)
			read_whole_application(reader, at);
		return;
	}
	/* The config alone, the form that is convenient by hand. */
	if (json_child(at, "layers", &here) &&
	    !cJSON_GetObjectItemCaseSensitive(at->node, "config")) {
		read_model_config(reader, at, at,
				  json_child(at, "input_layers", &here) ||
					  json_child(at, "output_layers", &here));
		return;
	}

	/* Keras 1 models use the same layer names with other meanings. */
	if (model_option_at(at, "keras_version", &here, err) &&
	    json_text(&here, &version, err) == ST_OK &&
	    (!strncmp(version, "1.", 2) || !strncmp(version, "0.", 2)))
		model_config_unsupported(
			&here, err,
			"Keras %s wrote this: load and save the model with Keras 2 first", version);
	functional = read_is_functional(at, err);
	if (!err_stuck(err))
		model_legacy_keys(at, err);
	model_config_check(at, options, ARRAY_LEN(options), NULL, 0, err);
	if (model_option_need(at, "config", &here, err))
		read_model_config(reader, at, &here, functional);
}

/* ---- creating a model ------------------------------------------------------------------------ */

static enum status model_create(struct model **out, const struct json_at *at,
				const struct model_shape *input, bool ends, struct err *err)
{
	struct model_reader reader = {.data = input, .ends = ends};
	struct err own;

	*out = NULL;
	err = err_start(err, &own);
	reader.err = err;
	if (model__new(&reader.model, err) != ST_OK)
		return err->status;
	reader.arena = model__arena(reader.model);
	if (arena_init(&reader.scratch, 0) == 0) {
		read_model(&reader, at);
		arena_fini(&reader.scratch);
		model__names_free(&reader.taken);
		model__names_free(&reader.shared);
		mem_free(reader.list);
		cJSON_Delete(reader.copies);
		mem_free(reader.notes);
	} else {
		err_nomem(err);
	}
	if (err_stuck(err)) {
		model_free(reader.model);
		return err->status;
	}
	model_set_policy(reader.model, MODEL_POLICY_TEXT);
	*out = reader.model;
	return ST_OK;
}

enum status model_new(struct model **out, const struct json_at *at, const struct model_shape *input,
		      struct err *err)
{
	return model_create(out, at, input, false, err);
}

enum status model_new_outputs(struct model **out, const struct json_at *at, struct err *err)
{
	return model_create(out, at, NULL, true, err);
}
