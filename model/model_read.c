/*
 * Reading a Keras model: Sequential or Functional, nested ones dissolved into their layers.
 *
 * Threading and ownership: see model_reader.h. Recursion goes as deep as models are nested, which
 * MODEL_DEPTH bounds.
 */
#include <string.h>

#include "common/mem.h"
#include "model/applications/application.h"
#include "model/model_reader.h"

static enum status read_scope(struct model_reader *reader, struct model_scope *scope,
			      const struct json_at *config);

/* ---- nested models --------------------------------------------------------------------------- */

static const struct model_shape *read_tensor_shape(const struct model_reader *reader,
						   const struct model_scope *scope,
						   const struct model_entry *entry)
{
	int from = entry->inputs[0];

	return model__tensor_shape(reader, from == MODEL_OUTSIDE ? scope->tensor
								 : scope->entries[from].source);
}

static enum status read_nested_config(struct model_reader *reader, const struct model_scope *scope,
				      struct model_entry *entry, const struct json_at *config,
				      bool functional)
{
	int from = entry->inputs[0];
	struct model_scope inner = {
		.outer = scope,
		.name = entry->name,
		.functional = functional,
		.trainable = scope->trainable,
		.tensor = from == MODEL_OUTSIDE ? scope->tensor : scope->entries[from].source,
		.row = entry->row,
		.depth = scope->depth + 1,
	};
	enum status status;

	if (inner.depth > MODEL_DEPTH)
		return json_fail(config, reader->err,
				 "models are nested more than %d deep: that is beyond the limit",
				 MODEL_DEPTH);
	status = read_scope(reader, &inner, config);
	model__scope_close(&inner);
	if (status == ST_OK)
		entry->source = inner.entries[inner.output].source;
	return status;
}

/* What an application is built from stands at the place of its name: "layers[2].resnet50". */
static enum status read_built(const struct json_at *at, const char *name, cJSON *built,
			      struct json_at *place, struct json_at *config, struct err *err)
{
	*place = (struct json_at){
		.file = at->file, .up = at, .node = built, .key = name, .index = -1};
	return json_child(place, "config", config) ? ST_OK
						   : json_fail(place, err, "\"config\" is missing");
}

static enum status read_application(struct model_reader *reader, const struct model_scope *scope,
				    struct model_entry *entry, const struct json_at *at)
{
	const struct model_shape *input = read_tensor_shape(reader, scope, entry);
	struct json_at place, config;
	enum status status;
	cJSON *built;

	status = application_build(&built, at, input, 0, reader->err);
	if (status != ST_OK)
		return status;
	status = read_built(at, entry->class_name, built, &place, &config, reader->err);
	if (status == ST_OK)
		status = read_nested_config(reader, scope, entry, &config, true);
	cJSON_Delete(built);
	return status;
}

static enum status read_entry(struct model_reader *reader, const struct model_scope *scope,
			      struct model_entry *entry, const struct json_at *at)
{
	struct json_at config;

	switch (entry->kind) {
	case MODEL_ENTRY_INPUT:
		entry->source = scope->tensor;
		return model__read_input(reader, scope, entry, at);
	case MODEL_ENTRY_LAYER:
		return model__read_layer(reader, scope, entry, at);
	case MODEL_ENTRY_APPLICATION:
		return read_application(reader, scope, entry, at);
	case MODEL_ENTRY_MODEL:
		break;
	}
	json_child(at, "config", &config);
	return read_nested_config(reader, scope, entry, &config,
				  !strcmp(entry->class_name, "Functional"));
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool read_input_is_open(const cJSON *layer)
{
	const cJSON *config = cJSON_GetObjectItemCaseSensitive(layer, "config");
	const cJSON *shape = cJSON_GetObjectItemCaseSensitive(config, "batch_input_shape");

	if (!shape)
		shape = cJSON_GetObjectItemCaseSensitive(config, "batch_shape");
	return cJSON_IsNull(cJSON_GetArrayItem(shape, 1));
}

/* Does the nested model have an input layer of its own (true), and does that leave sizes open? */
static bool read_own_input(const struct model_entry *entry, bool *open)
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
		*open = read_input_is_open(layer);
		return true;
	}
	return false;
}

/* What the summary says of a nested model's output. */
static void read_nested_shape(const struct model_entry *entry, struct model_row *row)
{
	bool open;

	row->any_batch = read_own_input(entry, &open);
	if (open && row->output.ndim == 3)
		row->output.dim[0] = row->output.dim[1] = 0;
}

/* The line of an entry of the model itself; a Sequential model's InputLayer has none. */
static enum status read_row(struct model_reader *reader, const struct model_scope *scope,
			    struct model_entry *entry)
{
	struct model *model = reader->model;
	struct model_row *row = &model->rows[model->row_count];
	int *inputs;

	entry->row = -1;
	if (!scope->functional && entry->kind == MODEL_ENTRY_INPUT)
		return ST_OK;
	inputs = arena_alloc(reader->arena, (size_t)entry->input_count + 1, sizeof(*inputs));
	if (!inputs)
		return err_nomem(reader->err);
	*row = (struct model_row){.name = entry->name,
				  .class_name = entry->kind == MODEL_ENTRY_LAYER
							? entry->ops->class_name
							: "InputLayer",
				  .inputs = inputs};
	if (entry->kind == MODEL_ENTRY_APPLICATION)
		row->class_name = "Functional";
	else if (entry->kind == MODEL_ENTRY_MODEL)
		row->class_name =
			strcmp(entry->class_name, "Functional") != 0 ? "Sequential" : "Functional";
	for (int i = 0; i < entry->input_count; i++) {
		int from = entry->inputs[i];

		if (from != MODEL_OUTSIDE && scope->entries[from].row >= 0)
			inputs[row->input_count++] = scope->entries[from].row;
	}
	entry->row = model->row_count++;
	return ST_OK;
}

static enum status read_prepare_rows(struct model_reader *reader, const struct model_scope *scope)
{
	reader->model->functional = scope->functional;
	reader->model->rows =
		arena_alloc(reader->arena, (size_t)scope->count + 1, sizeof(*reader->model->rows));
	if (!reader->model->rows)
		return err_nomem(reader->err);
	for (int i = 0; i < scope->count; i++)
		if (scope->entries[i].kind == MODEL_ENTRY_LAYER &&
		    model__names_add(&reader->taken, scope->entries[i].name, 0))
			return err_nomem(reader->err);
	return ST_OK;
}

/* ---- a model's config ------------------------------------------------------------------------ */

/* Each entry's input is the one before. */
static enum status read_chain(struct model_reader *reader, struct model_scope *scope)
{
	int *numbers =
		arena_alloc(&reader->scratch, 2 * (size_t)scope->count + 1, sizeof(*numbers));

	if (!numbers)
		return err_nomem(reader->err);
	scope->order = numbers + scope->count;
	for (int i = 0; i < scope->count; i++) {
		numbers[i] = i ? i - 1 : MODEL_OUTSIDE;
		scope->order[i] = i;
		scope->entries[i].inputs = &numbers[i];
		scope->entries[i].input_count = scope->entries[i].kind != MODEL_ENTRY_INPUT;
	}
	scope->output = scope->count - 1;
	return ST_OK;
}

static enum status read_check_chain(struct model_reader *reader, const struct model_scope *scope)
{
	for (int i = 0; i < scope->count; i++) {
		const struct model_entry *entry = &scope->entries[i];
		struct json_at at = model__entry_at(scope, i);

		if (entry->kind == MODEL_ENTRY_LAYER && entry->ops->least_inputs > 1)
			return json_fail(&at, reader->err,
					 "\"%s\" (%s) takes at least %d inputs: that needs a "
					 "functional model",
					 entry->name, entry->class_name, entry->ops->least_inputs);
	}
	return ST_OK;
}

/* An InputLayer's shape may come from the first layer, so all are asked at the end. */
static void read_row_shapes(struct model_reader *reader, const struct model_scope *scope)
{
	for (int i = 0; i < scope->count; i++) {
		const struct model_entry *entry = &scope->entries[i];

		struct model_row *row;

		if (entry->row < 0)
			continue;
		row = &reader->model->rows[entry->row];
		row->output = *model__tensor_shape(reader, entry->source);
		if (entry->kind == MODEL_ENTRY_APPLICATION || entry->kind == MODEL_ENTRY_MODEL)
			read_nested_shape(entry, row);
	}
}

static enum status read_entries(struct model_reader *reader, struct model_scope *scope)
{
	enum status status = ST_OK;

	for (int i = 0; i < scope->count && status == ST_OK; i++) {
		struct model_entry *entry = &scope->entries[scope->order[i]];
		struct json_at at = model__entry_at(scope, scope->order[i]);

		entry->row = scope->row;
		if (!scope->outer)
			status = read_row(reader, scope, entry);
		if (status == ST_OK)
			status = read_entry(reader, scope, entry, &at);
	}
	return status;
}

static enum status read_options(struct model_reader *reader, struct model_scope *scope,
				const struct json_at *config)
{
	static const struct model_option options[] = {
		{"name", MODEL_ANY},
		{"layers", MODEL_ANY},
		{"trainable", MODEL_ANY},
		{"dtype", MODEL_DTYPE},
		{"build_input_shape", MODEL_ANY},
	};
	static const struct model_option ends[] = {{"input_layers", MODEL_ANY},
						   {"output_layers", MODEL_ANY}};
	enum status status = json_object(config, reader->err);
	bool trainable = true;
	struct json_at here;

	if (status == ST_OK)
		status = model__legacy_keys(config, reader->err);
	if (status == ST_OK)
		status = model_config_check(config, options, ARRAY_LEN(options), ends,
					    scope->functional ? ARRAY_LEN(ends) : 0, reader->err);
	if (status == ST_OK && json_child(config, "trainable", &here) && !json_is_null(&here))
		status = json_bool(&here, &trainable, reader->err);
	scope->trainable = scope->trainable && trainable;
	if (status == ST_OK && !json_child(config, "layers", &scope->layers))
		status = json_fail(config, reader->err, "\"layers\" is missing");
	return status;
}

/* scope->layers points to @config: it is good for as long as this runs. */
static enum status read_scope(struct model_reader *reader, struct model_scope *scope,
			      const struct json_at *config)
{
	bool list = !scope->functional && cJSON_IsArray(config->node);
	enum status status = ST_OK;

	if (list) /* as Keras before 2.2.3 wrote it */
		scope->layers = *config;
	else
		status = read_options(reader, scope, config);
	if (status == ST_OK)
		status = model__scope_open(reader, scope);
	if (status == ST_OK && !scope->count)
		status = json_fail(&scope->layers, reader->err, "a model needs at least one layer");
	if (status == ST_OK && scope->functional) {
		status = model__read_calls(reader, scope, config);
		if (status == ST_OK)
			status = model__sort(reader, scope);
	} else if (status == ST_OK) {
		status = read_chain(reader, scope);
		if (status == ST_OK)
			status = read_check_chain(reader, scope);
	}
	if (status == ST_OK && !scope->outer)
		status = read_prepare_rows(reader, scope);
	return status == ST_OK ? read_entries(reader, scope) : status;
}

/* ---- the model itself ------------------------------------------------------------------------ */

static enum status read_model_name(struct model_reader *reader, const struct json_at *outer,
				   const struct json_at *config, bool functional)
{
	const struct json_at *places[] = {config, outer};
	const char *name = functional ? "model" : "sequential";
	struct json_at here;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		enum status status;

		if (!json_child(places[i], "name", &here) || json_is_null(&here))
			continue;
		status = json_text(&here, &name, reader->err);
		if (status == ST_OK)
			status = model__check_name(&here, name, reader->err);
		if (status != ST_OK)
			return status;
	}
	reader->model->name = arena_strdup(reader->arena, name);
	return reader->model->name ? ST_OK : err_nomem(reader->err);
}

/* @outer: where a name may stand beside the config. */
static enum status read_config(struct model_reader *reader, const struct json_at *outer,
			       const struct json_at *config, bool functional)
{
	enum status status = read_model_name(reader, outer, config, functional);
	struct model_scope scope = {
		.name = reader->model->name,
		.functional = functional,
		.trainable = true,
		.tensor = MODEL_INPUT,
		.row = -1,
	};

	if (status != ST_OK)
		return status;
	status = read_scope(reader, &scope, config);
	if (status == ST_OK && !reader->model->layer_count)
		status = json_fail(&scope.layers, reader->err, "a model needs at least one layer");
	if (status == ST_OK)
		read_row_shapes(reader, &scope);
	model__scope_close(&scope);
	return status;
}

static enum status read_whole_application(struct model_reader *reader, const struct json_at *at)
{
	static const struct model_option options[] = {
		{"application", MODEL_ANY},
		{"config", MODEL_ANY},
		{"name", MODEL_ANY},
	};
	enum status status =
		model_config_check(at, options, ARRAY_LEN(options), NULL, 0, reader->err);
	struct json_at place, config;
	cJSON *built;

	if (status != ST_OK)
		return status;
	status = application_build(&built, at, reader->data, 0, reader->err);
	if (status != ST_OK)
		return status;
	status = read_built(at, "application", built, &place, &config, reader->err);
	if (status == ST_OK)
		status = read_config(reader, at, &config, true);
	cJSON_Delete(built);
	return status;
}

static enum status read_class(const struct json_at *at, bool *functional, struct err *err)
{
	static const char *const known[] = {"Sequential", "Functional", "Model"};
	struct json_at here;
	const char *class_name;
	enum status status;

	if (!json_child(at, "class_name", &here))
		return json_fail(at, err,
				 "\"class_name\" is missing (\"Sequential\" or \"Functional\")");
	status = json_text(&here, &class_name, err);
	if (status == ST_OK)
		status = model__legacy_class(&here, class_name, err);
	if (status != ST_OK)
		return status;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		*functional = i > 0;
		if (!strcmp(class_name, known[i]))
			return ST_OK;
	}
	return json_unknown(&here, "model class", class_name, known, ARRAY_LEN(known), err);
}

/* A Keras 1 model has layers of the same names that mean something else. */
static enum status read_version(const struct json_at *at, struct err *err)
{
	struct json_at here;
	const char *version;
	enum status status;

	if (!json_child(at, "keras_version", &here) || json_is_null(&here))
		return ST_OK;
	status = json_text(&here, &version, err);
	if (status == ST_OK && (!strncmp(version, "1.", 2) || !strncmp(version, "0.", 2)))
		return model_config_unsupported(
			&here, err,
			"Keras %s wrote this: load and save the model with Keras 2 first", version);
	return status;
}

enum status model__read(struct model_reader *reader, const struct json_at *at)
{
	static const struct model_option options[] = {
		{"class_name", MODEL_ANY},   {"config", MODEL_ANY},
		{"module", MODEL_ANY},       {"registered_name", MODEL_ANY},
		{"backend", MODEL_ANY},      {"keras_version", MODEL_ANY},
		{"build_config", MODEL_ANY}, {"compile_config", MODEL_ANY},
		{"name", MODEL_ANY},         {"shared_object_id", MODEL_ANY},
	};
	enum status status = json_object(at, reader->err);
	bool functional = false;
	struct json_at here;

	if (status != ST_OK)
		return status;
	if (json_child(at, "application", &here))
		return read_whole_application(reader, at);
	/* The config alone, as one writes it by hand. */
	if (json_child(at, "layers", &here) &&
	    !cJSON_GetObjectItemCaseSensitive(at->node, "config"))
		return read_config(reader, at, at,
				   json_child(at, "input_layers", &here) ||
					   json_child(at, "output_layers", &here));

	status = read_version(at, reader->err);
	if (status == ST_OK)
		status = read_class(at, &functional, reader->err);
	if (status == ST_OK)
		status = model__legacy_keys(at, reader->err);
	if (status == ST_OK)
		status = model_config_check(at, options, ARRAY_LEN(options), NULL, 0, reader->err);
	if (status != ST_OK)
		return status;
	if (!json_child(at, "config", &here))
		return json_fail(at, reader->err, "\"config\" is missing");
	return read_config(reader, at, &here, functional);
}
