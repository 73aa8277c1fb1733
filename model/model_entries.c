/*
 * Reading a list of layers: the kind of each entry, its name, its path in weight files, and the
 * object that it shares with other entries.
 *
 * Threading and ownership: see model_reader.h.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/model_reader.h"

void model__read_name(const struct json_at *at, struct json_at *place, const char **name,
		      struct err *err)
{
	struct json_at here;

	if (!model_option_at(at, "name", &here, err))
		return;
	*place = here;
	if (json_text(&here, name, err) != ST_OK)
		return;
	if (!**name)
		json_fail(&here, err, "a name must not be empty");
	else if (strlen(*name) >= MODEL_NAME_SIZE)
		json_fail(&here, err, "a name has at most %d bytes", MODEL_NAME_SIZE - 1);
	for (const char *c = *name; *c && !err_stuck(err); c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			json_fail(&here, err, "a name must not hold control characters");
}

/* ---- kinds ----------------------------------------------------------------------------------- */

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
				  "elsewhere; put layers that are known in its place "
				  "(ipu-train --list), or leave it out",
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

/* ---- names of entries ------------------------------------------------------------------------ */

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
		model__read_name(&config, &place, &inside, err);
	model__read_name(&at, inside ? &other : &place, &beside, err);
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
	model__add_name(reader, &scope->names, entry->name, index);
}

/* Set the entry's path in Keras 3's weight files. It counts classes within the list and ignores
 * user-chosen names. Source: keras/src/saving/saving_lib.py, naming.py. */
static void read_entry_home(struct model_reader *reader, const struct model_scope *scope,
			    struct model_names *classes, struct model_entry *entry)
{
	const bool application = entry->kind == MODEL_ENTRY_APPLICATION;
	const char *outer = scope->home ? scope->home : "", *slash = scope->home ? "/" : "", *place;
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
	entry->home = number ? arena_printf(reader->arena, "%s%slayers/%s_%d", outer, slash, snake,
					    number)
			     : arena_printf(reader->arena, "%s%slayers/%s", outer, slash, snake);
	if (!entry->home)
		err_nomem(reader->err);
	if (!counter)
		model__add_name(reader, classes, arena_strdup(&reader->scratch, snake), 0);
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
	if (!entry->object || !model__names_find(&reader->shared, entry->object))
		model__add_name(reader, &reader->shared, entry->object, -1);
}

/* ---- the list -------------------------------------------------------------------------------- */

void model__read_entries(struct model_reader *reader, struct model_scope *scope)
{
	struct model_names unnamed = {0}, classes = {0};
	struct err *err = reader->err;
	struct json_at at = {0};

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
	scope->entries = model__scratch(reader, (size_t)scope->count + 1, sizeof(*scope->entries));
	while (!err_stuck(err) && json_next(&scope->layers, &at)) {
		struct model_entry *entry = &scope->entries[at.index];

		entry->node = at.node;
		entry->first_layer = -1;
		read_kind(entry, &at, err);
		read_shared(reader, scope, entry, &at);
		if (!err_stuck(err))
			read_entry_name(reader, scope, &unnamed, at.index);
		read_entry_home(reader, scope, &classes, entry);
	}
	model__names_free(&unnamed);
	model__names_free(&classes);
	if (!err_stuck(err) && !scope->count)
		json_fail(&scope->layers, err, "a model needs at least one layer");
}
