/*
 * Reading a Keras model: Sequential or Functional; nested models are flattened into their layers. A
 * list of layers is a scope: its entries are read (class and name), connected (model_graph.c) and
 * turned into layers in execution order (model_call.c), nested models included.
 *
 * Threading and ownership: see model_reader.h. Recursion is as deep as models are nested, at most
 * MODEL_DEPTH.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "model/applications/application.h"
#include "model/model_reader.h"

/* ---- names ----------------------------------------------------------------------------------- */

/* Names crafted to collide make lookups linear; MODEL_LAYERS bounds the total time. */
struct model_name {
	const char *name;
	int value;
};

int *model__names_find(const struct model_names *names, const char *name)
{
	size_t at;

	MAP_FIND(at, &names->map, map_text(MAP_SEED, name),
		 strcmp(names->items[at].name, name) == 0);
	return at == MAP_NONE ? NULL : &names->items[at].value;
}

int model__names_add(struct model_names *names, const char *name, int value)
{
	const size_t at = names->map.count;
	int *known = model__names_find(names, name);

	if (known) {
		*known = value;
		return 0;
	}
	if (mem_grow(&names->items, &names->capacity, at + 1, sizeof(*names->items)) != 0 ||
	    map_add(&names->map, map_text(MAP_SEED, name), at) != 0)
		return -1;
	names->items[at] = (struct model_name){name, value};
	return 0;
}

void model__names_free(struct model_names *names)
{
	mem_free(names->items);
	map_fini(&names->map);
	*names = (struct model_names){0};
}

/* Insert an underscore before each capital that begins a word: "MaxPooling2D" becomes
 * "max_pooling2d", "ReLU" becomes "re_lu". */
void model__snake(const char *class_name, char *out, size_t size)
{
	size_t used = 0;

	for (const char *c = class_name; *c && used + 2 < size; c++) {
		bool begins = c != class_name && isupper((unsigned char)*c) &&
			      (islower((unsigned char)c[-1]) || islower((unsigned char)c[1]) ||
			       isdigit((unsigned char)c[1]));

		if (begins && out[used - 1] != '_')
			out[used++] = '_';
		out[used++] = (char)tolower((unsigned char)*c);
	}
	out[used] = '\0';
}

static void read_check_name(const struct json_at *at, const char *name, struct err *err)
{
	if (!*name)
		json_fail(at, err, "a name must not be empty");
	else if (strlen(name) >= MODEL_NAME_SIZE)
		json_fail(at, err, "a name has at most %d bytes", MODEL_NAME_SIZE - 1);
	for (const char *c = name; *c && !err_stuck(err); c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			json_fail(at, err, "a name must not hold control characters");
}

/* Read a name that may be absent or null; *@place receives its position. */
static void read_name(const struct json_at *at, struct json_at *place, const char **name,
		      struct err *err)
{
	struct json_at here;

	if (!model_option_at(at, "name", &here, err))
		return;
	*place = here;
	if (json_text(&here, name, err) == ST_OK)
		read_check_name(&here, *name, err);
}

/* ---- an entry's kind and names --------------------------------------------------------------- */

struct json_at model__item(const struct json_at *list, const cJSON *node, int index)
{
	return (struct json_at){.file = list->file, .up = list, .node = node, .index = index};
}

struct json_at model__entry_at(const struct model_scope *scope, int entry)
{
	return model__item(&scope->layers, scope->entries[entry].node, entry);
}

static void read_class(struct model_entry *entry, const struct json_at *at, struct err *err)
{
	const char *const *known, *layer = model_legacy_function(at->node);
	const char *module =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(at->node, "module"));
	int count;

	if (layer)
		entry->class_name = layer;
	model_legacy_class(at, entry->class_name, err);
	if (err_stuck(err))
		return;
	entry->class_name = model_legacy_present(entry->class_name);
	entry->ops = layer_find(entry->class_name);
	if (!strcmp(entry->class_name, "InputLayer")) {
		entry->kind = MODEL_ENTRY_INPUT;
	} else if (entry->ops) {
		entry->kind = MODEL_ENTRY_LAYER;
	} else if (!strcmp(entry->class_name, "Functional") ||
		   !strcmp(entry->class_name, "Sequential")) {
		entry->kind = MODEL_ENTRY_MODEL;
	} else if (model__is_wrapper(entry->class_name)) {
		entry->kind = MODEL_ENTRY_WRAPPER;
	} else {
		known = layer_names(&count);
		if (module && str_starts_with(module, "keras.src.ops"))
			model_config_unsupported(
				at, err,
				"\"%s\" is a function of Keras called on a layer's "
				"output: use a layer instead (\"Add\" for x + y)",
				entry->class_name);
		else if (str_nearest(entry->class_name, known, (size_t)count))
			json_unknown(at, "layer", entry->class_name, known, (size_t)count, err);
		else
			json_fail(at, err,
				  "unknown layer \"%s\": a class of one's own has its code "
				  "elsewhere; "
				  "put layers that are known in its place (ipu-train --list), or "
				  "leave "
				  "it out",
				  entry->class_name);
	}
}

static void read_kind(struct model_entry *entry, const struct json_at *at, struct err *err)
{
	static const struct model_option application[] = {
		{"application", .rule = MODEL_ANY},
		{"config", .rule = MODEL_ANY},
		{"name", .rule = MODEL_ANY},
		{"inbound_nodes", .rule = MODEL_ANY},
	};
	static const struct model_option options[] = {
		{"class_name", .rule = MODEL_ANY},    {"config", .rule = MODEL_ANY},
		{"name", .rule = MODEL_ANY},          {"inbound_nodes", .rule = MODEL_ANY},
		{"module", .rule = MODEL_ANY},        {"registered_name", .rule = MODEL_ANY},
		{"build_config", .rule = MODEL_ANY},  {"shared_object_id", .rule = MODEL_ANY},
		{"keras_version", .rule = MODEL_ANY}, {"compile_config", .rule = MODEL_ANY},
		{"backend", .rule = MODEL_ANY},
	};
	struct json_at here;

	if (err_stuck(err) || json_object(at, err) != ST_OK)
		return;
	if (json_child(at, "application", &here)) {
		entry->kind = MODEL_ENTRY_APPLICATION;
		if (model_config_check(at, application, ARRAY_LEN(application), NULL, 0, err) ==
		    ST_OK)
			json_text(&here, &entry->class_name, err);
		return;
	}
	model_config_check(at, options, ARRAY_LEN(options), NULL, 0, err);
	if (!model_option_need(at, "class_name", &here, err) ||
	    json_text(&here, &entry->class_name, err) != ST_OK)
		return;
	read_class(entry, at, err);
	if (err_stuck(err))
		return;
	if (!model_option_at(at, "config", &here, err)) {
		json_fail(at, err, "\"config\" is missing");
		return;
	}
	entry->config = here.node;
	/* Keras before 2.2.3 wrote a Sequential model's config as the list of its layers. */
	if (!cJSON_IsArray(here.node) || entry->kind != MODEL_ENTRY_MODEL)
		json_object(&here, err);
}

/* Return "dense", "dense_1" and so on, counted over the unnamed entries of the class. */
static const char *read_default_name(struct model_reader *reader, struct model_names *unnamed,
				     const struct model_entry *entry)
{
	char base[MODEL_NAME_SIZE];
	int *counter, number = 0;
	const char *snake;

	if (entry->kind == MODEL_ENTRY_INPUT) {
		snprintf(base, sizeof(base), "input");
	} else if (!strcmp(entry->class_name, "Functional")) {
		snprintf(base, sizeof(base), "model");
	} else if (entry->kind == MODEL_ENTRY_APPLICATION) { /* "resnet50" */
		str_copy(base, sizeof(base), entry->class_name);
		for (char *c = base; *c; c++)
			*c = (char)tolower((unsigned char)*c);
	} else {
		model__snake(entry->class_name, base, sizeof(base));
	}

	counter = model__names_find(unnamed, base);
	if (counter)
		number = ++*counter;
	snake = arena_strdup(reader->arena, base);
	if (!snake || (!counter && model__names_add(unnamed, snake, 0)))
		return NULL;
	if (entry->kind == MODEL_ENTRY_INPUT) /* Keras counts these from 1 */
		return arena_printf(reader->arena, "%s_%d", base, number + 1);
	return number ? arena_printf(reader->arena, "%s_%d", base, number) : snake;
}

/* Read an entry's name, which may be in its config, beside it, in both (alike) or absent. */
static void read_entry_name(struct model_reader *reader, struct model_scope *scope,
			    struct model_names *unnamed, int index)
{
	struct model_entry *entry = &scope->entries[index];
	struct json_at at = model__entry_at(scope, index), place = at, config, other = at;
	const char *inside = NULL, *beside = NULL;
	struct err *err = reader->err;

	if (json_child(&at, "config", &config))
		read_name(&config, &place, &inside, err);
	read_name(&at, inside ? &other : &place, &beside, err);
	if (err_stuck(err))
		return;
	if (inside && beside && strcmp(inside, beside) != 0) {
		json_fail(&other, err, "\"%s\" is not the name in its config, \"%s\"", beside,
			  inside);
		return;
	}
	entry->name = inside || beside ? arena_strdup(reader->arena, inside ? inside : beside)
				       : read_default_name(reader, unnamed, entry);
	if (entry->name && model__names_find(&scope->names, entry->name))
		json_fail(&place, err, "two layers are named \"%s\": names must be unique",
			  entry->name);
	else if (!entry->name || model__names_add(&scope->names, entry->name, index))
		err_nomem(err);
}

/* Set the entry's path in Keras 3's weight files. It counts classes within the list and ignores
 * user-chosen names. Source: keras/src/saving/saving_lib.py, naming.py. */
static void read_entry_home(struct model_reader *reader, const struct model_scope *scope,
			    struct model_names *classes, struct model_entry *entry)
{
	const bool application = entry->kind == MODEL_ENTRY_APPLICATION;
	const char *outer = scope->home ? scope->home : "", *slash = scope->home ? "/" : "", *key,
		   *place;
	char snake[MODEL_NAME_SIZE];
	int *counter, number = 0;

	if (err_stuck(reader->err))
		return;
	if (scope->wrapper) {
		place = model__wrap_place(scope->wrapper, scope->name, entry->name);
		entry->home = place ? arena_printf(reader->arena, "%s/%s", outer, place) : outer;
		if (!entry->home)
			err_nomem(reader->err);
		return;
	}
	model__snake(application ? "Functional" : entry->class_name, snake, sizeof(snake));
	counter = model__names_find(classes, snake);
	if (counter)
		number = ++*counter;
	key = counter ? snake : arena_strdup(&reader->scratch, snake);
	entry->home = number ? arena_printf(reader->arena, "%s%slayers/%s_%d", outer, slash, snake,
					    number)
			     : arena_printf(reader->arena, "%s%slayers/%s", outer, slash, snake);
	if (!key || !entry->home || (!counter && model__names_add(classes, key, 0)))
		err_nomem(reader->err);
}

/* Read the entry's shared_object_id. Entries with the same one are one object in Keras, with one
 * set of weights. Keras 3, which also writes "module", uses addresses: one namespace in a file. */
static void read_shared(struct model_reader *reader, const struct model_scope *scope,
			struct model_entry *entry, const struct json_at *at)
{
	const bool keras3 = cJSON_GetObjectItemCaseSensitive(entry->node, "module");
	struct json_at here;
	int64_t id;

	if (entry->kind == MODEL_ENTRY_INPUT ||
	    !model_option_at(at, "shared_object_id", &here, reader->err) ||
	    json_int(&here, INT64_MIN, INT64_MAX, &id, reader->err) != ST_OK)
		return;
	entry->object = arena_printf(&reader->scratch, "%d/%lld", keras3 ? -1 : scope->sharing,
				     (long long)id);
	if (!entry->object || (!model__names_find(&reader->shared, entry->object) &&
			       model__names_add(&reader->shared, entry->object, -1)))
		err_nomem(reader->err);
}

/* Read kinds and names of all entries in the list scope->layers. */
static void read_entry_list(struct model_reader *reader, struct model_scope *scope)
{
	struct model_names unnamed = {0}, classes = {0};
	struct err *err = reader->err;
	const cJSON *node;

	/* In Keras, each functional model that is not inside another one begins a new namespace. */
	if (scope->functional && !(scope->outer && scope->outer->sharing))
		scope->sharing = ++reader->sharings;
	else if (scope->outer)
		scope->sharing = scope->outer->sharing;

	if (err_stuck(err) || json_array(&scope->layers, err) != ST_OK)
		return;
	scope->count = json_count(&scope->layers);
	if (scope->count > MODEL_LAYERS - reader->entries) {
		json_fail(&scope->layers, err, "%d layers are more than the limit of %d",
			  reader->entries + scope->count, MODEL_LAYERS);
		return;
	}
	reader->entries += scope->count;
	scope->entries =
		arena_alloc(&reader->scratch, (size_t)scope->count + 1, sizeof(*scope->entries));
	if (!scope->entries) {
		err_nomem(err);
		return;
	}
	node = scope->layers.node->child;
	for (int i = 0; i < scope->count && !err_stuck(err); i++, node = node->next) {
		struct json_at at = model__item(&scope->layers, node, i);

		scope->entries[i].node = node;
		scope->entries[i].first_layer = -1;
		read_kind(&scope->entries[i], &at, err);
		read_shared(reader, scope, &scope->entries[i], &at);
		if (!err_stuck(err))
			read_entry_name(reader, scope, &unnamed, i);
		read_entry_home(reader, scope, &classes, &scope->entries[i]);
	}
	model__names_free(&unnamed);
	model__names_free(&classes);
	if (!err_stuck(err) && !scope->count)
		json_fail(&scope->layers, err, "a model needs at least one layer");
}

/* ---- nested models --------------------------------------------------------------------------- */

static void read_scope(struct model_reader *reader, struct model_scope *scope,
		       const struct json_at *config);

static void read_nested(struct model_reader *reader, const struct model_scope *scope,
			struct model_call *call, const struct json_at *config, bool functional)
{
	const struct model_entry *entry = &scope->entries[call->entry];
	int *tensors = arena_alloc(&reader->scratch, (size_t)call->input_count, sizeof(*tensors));
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

	if (!tensors) {
		err_nomem(reader->err);
		return;
	}
	for (int i = 0; i < call->input_count; i++)
		tensors[i] = model__input_tensor(scope, call, i);
	if (inner.depth > MODEL_DEPTH) {
		json_fail(config, reader->err,
			  "models are nested more than %d deep: that is beyond the limit",
			  MODEL_DEPTH);
		return;
	}
	read_scope(reader, &inner, config);
	model__names_free(&inner.names);
	if (!err_stuck(reader->err))
		call->source = model__output_tensor(&inner, 0);
	if (err_stuck(reader->err) || inner.output_count == 1)
		return;
	call->sources = arena_alloc(&reader->scratch, (size_t)inner.output_count, sizeof(int));
	if (!call->sources)
		err_nomem(reader->err);
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
	inputs = arena_alloc(reader->arena, count, sizeof(*inputs));
	calls = arena_alloc(reader->arena, count, sizeof(*calls));
	if (!inputs || !calls) {
		err_nomem(reader->err);
		return;
	}
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

static bool read_input_is_open(const cJSON *layer)
{
	const cJSON *config = cJSON_GetObjectItemCaseSensitive(layer, "config");
	const cJSON *shape = cJSON_GetObjectItemCaseSensitive(config, "batch_input_shape");

	if (!shape)
		shape = cJSON_GetObjectItemCaseSensitive(config, "batch_shape");
	return cJSON_IsNull(cJSON_GetArrayItem(shape, 1));
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
		*open = read_input_is_open(layer);
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
	int *numbers;

	if (err_stuck(reader->err))
		return;
	numbers = arena_alloc(&reader->scratch, 2 * (size_t)scope->count + 1, sizeof(*numbers));
	scope->outputs = arena_alloc(&reader->scratch, 1, sizeof(*scope->outputs));
	scope->calls =
		arena_alloc(&reader->scratch, (size_t)scope->count + 1, sizeof(*scope->calls));
	if (!numbers || !scope->outputs || !scope->calls) {
		err_nomem(reader->err);
		return;
	}
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
	model->rows = arena_alloc(reader->arena, (size_t)scope->count + 1, sizeof(*model->rows));
	if (!model->rows)
		err_nomem(reader->err);
	for (int i = 0; i < scope->count && !err_stuck(reader->err); i++)
		if ((scope->entries[i].kind == MODEL_ENTRY_LAYER ||
		     model__is_part(scope, &scope->entries[i])) &&
		    model__names_add(&reader->taken, scope->entries[i].name, 0))
			err_nomem(reader->err);
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

/* scope->layers is linked to @config and is valid only during this call. */
/* Return the copy of @config without the operations that compute masks; the reader keeps it. After
 * a failure it is @config. */
static const struct json_at *leave_masks_out(struct model_reader *reader,
					     const struct json_at *config)
{
	struct json_at *out = arena_alloc(&reader->scratch, 1, sizeof(*out));
	cJSON *copy;

	if (!out)
		err_nomem(reader->err);
	if (err_stuck(reader->err) || model__leave_masks_out(&copy, config, reader->err) != ST_OK)
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
	read_entry_list(reader, scope);
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
	int *inputs = arena_alloc(reader->arena, (size_t)scope->output_count, sizeof(*inputs));
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
	struct model_output *outputs;

	if (err_stuck(reader->err))
		return;
	outputs = arena_alloc(reader->arena, (size_t)scope->output_count, sizeof(*outputs));
	if (!outputs)
		err_nomem(reader->err);
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

	read_name(config, &place, &scope.name, err);
	read_name(outer, &place, &scope.name, err);
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

void model__read(struct model_reader *reader, const struct json_at *at)
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
