/*
 * The entries of one list of layers: what each is, and how it is named.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "model/model_reader.h"

struct json_at model__item(const struct json_at *list, const cJSON *node, int index)
{
	return (struct json_at){.file = list->file, .up = list, .node = node, .index = index};
}

struct json_at model__entry_at(const struct model_scope *scope, int entry)
{
	return model__item(&scope->layers, scope->entries[entry].node, entry);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static enum status scope_unknown(const struct json_at *at, const char *class_name, struct err *err)
{
	const char *const *names;
	int count;

	names = layer_names(&count);
	return json_unknown(at, "layer", class_name, names, (size_t)count, err);
}

static enum status scope_class(struct model_entry *entry, const struct json_at *at, struct err *err)
{
	enum status status = model__legacy_class(at, entry->class_name, err);

	if (status != ST_OK)
		return status;
	entry->class_name = model__present_class(entry->class_name);
	entry->ops = layer_find(entry->class_name);
	if (entry->ops)
		entry->kind = MODEL_ENTRY_LAYER;
	else if (!strcmp(entry->class_name, "InputLayer"))
		entry->kind = MODEL_ENTRY_INPUT;
	else if (!strcmp(entry->class_name, "Functional") ||
		 !strcmp(entry->class_name, "Sequential"))
		entry->kind = MODEL_ENTRY_MODEL;
	else
		return scope_unknown(at, entry->class_name, err);
	return ST_OK;
}

static enum status scope_application(struct model_entry *entry, const struct json_at *at,
				     const struct json_at *name, struct err *err)
{
	static const struct model_option options[] = {
		{"application", MODEL_ANY},
		{"config", MODEL_ANY},
		{"name", MODEL_ANY},
		{"inbound_nodes", MODEL_ANY},
	};
	enum status status = model_config_check(at, options, ARRAY_LEN(options), NULL, 0, err);

	entry->kind = MODEL_ENTRY_APPLICATION;
	return status == ST_OK ? json_text(name, &entry->class_name, err) : status;
}

static enum status scope_kind(struct model_entry *entry, const struct json_at *at, struct err *err)
{
	static const struct model_option options[] = {
		{"class_name", MODEL_ANY},    {"config", MODEL_ANY},
		{"name", MODEL_ANY},          {"inbound_nodes", MODEL_ANY},
		{"module", MODEL_ANY},        {"registered_name", MODEL_ANY},
		{"build_config", MODEL_ANY},  {"shared_object_id", MODEL_ANY},
		{"keras_version", MODEL_ANY}, {"compile_config", MODEL_ANY},
		{"backend", MODEL_ANY},
	};
	enum status status = json_object(at, err);
	struct json_at here;

	if (status != ST_OK)
		return status;
	if (json_child(at, "application", &here))
		return scope_application(entry, at, &here, err);
	status = model_config_check(at, options, ARRAY_LEN(options), NULL, 0, err);
	if (status != ST_OK)
		return status;
	if (!json_child(at, "class_name", &here))
		return json_fail(at, err, "\"class_name\" is missing");
	status = json_text(&here, &entry->class_name, err);
	if (status == ST_OK)
		status = scope_class(entry, at, err);
	if (status != ST_OK)
		return status;

	if (!json_child(at, "config", &here) || json_is_null(&here))
		return json_fail(at, err, "\"config\" is missing");
	entry->config = here.node;
	/* Keras before 2.2.3 wrote a Sequential model's config as the list of its layers. */
	if (cJSON_IsArray(here.node) && entry->kind == MODEL_ENTRY_MODEL)
		return ST_OK;
	return json_object(&here, err);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void scope_lower(const char *text, char *out, size_t size)
{
	size_t used = 0;

	for (; text[used] && used + 1 < size; used++)
		out[used] = (char)tolower((unsigned char)text[used]);
	out[used] = '\0';
}

/* "dense", "dense_1", counted over the unnamed entries of the class. */
static const char *scope_default_name(struct model_reader *reader, struct model_names *unnamed,
				      const struct model_entry *entry)
{
	char base[MODEL_NAME_SIZE];
	int *there, number = 0;
	const char *snake;

	if (entry->kind == MODEL_ENTRY_INPUT)
		snprintf(base, sizeof(base), "input");
	else if (!strcmp(entry->class_name, "Functional"))
		snprintf(base, sizeof(base), "model");
	else
		model__snake(entry->class_name, base, sizeof(base));
	if (entry->kind == MODEL_ENTRY_APPLICATION) /* "resnet50" */
		scope_lower(entry->class_name, base, sizeof(base));

	there = model__names_find(unnamed, base);
	if (there)
		number = ++*there;
	snake = arena_strdup(reader->arena, base);
	if (!snake || (!there && model__names_add(unnamed, snake, 0)))
		return NULL;
	if (entry->kind == MODEL_ENTRY_INPUT) /* Keras counts these from 1 */
		return arena_printf(reader->arena, "%s_%d", base, number + 1);
	return number ? arena_printf(reader->arena, "%s_%d", base, number) : snake;
}

/* A name that may be absent or null. */
static enum status scope_read_name(const struct json_at *at, struct json_at *place,
				   const char **name, struct err *err)
{
	struct json_at here;
	enum status status;

	if (!json_child(at, "name", &here) || json_is_null(&here))
		return ST_OK;
	*place = here;
	status = json_text(&here, name, err);
	return status == ST_OK ? model__check_name(&here, *name, err) : status;
}

/* It stands in the entry's config, beside it, in both alike or nowhere. */
static enum status scope_name(struct model_reader *reader, struct model_scope *scope,
			      struct model_names *unnamed, int index)
{
	struct model_entry *entry = &scope->entries[index];
	struct json_at at = model__entry_at(scope, index), place = at, config, other = at;
	const char *inside = NULL, *beside = NULL;
	enum status status = ST_OK;

	if (json_child(&at, "config", &config))
		status = scope_read_name(&config, &place, &inside, reader->err);
	if (status == ST_OK)
		status = scope_read_name(&at, inside ? &other : &place, &beside, reader->err);
	if (status != ST_OK)
		return status;
	if (inside && beside && strcmp(inside, beside) != 0)
		return json_fail(&other, reader->err,
				 "\"%s\" is not the name in its config, \"%s\"", beside, inside);

	if (inside || beside)
		entry->name = arena_strdup(reader->arena, inside ? inside : beside);
	else
		entry->name = scope_default_name(reader, unnamed, entry);
	if (!entry->name)
		return err_nomem(reader->err);
	if (model__names_find(&scope->names, entry->name))
		return json_fail(&place, reader->err,
				 "two layers are named \"%s\": names must be unique", entry->name);
	if (model__names_add(&scope->names, entry->name, index))
		return err_nomem(reader->err);
	return ST_OK;
}

const char *model__layer_name(struct model_reader *reader, const struct model_scope *scope,
			      const char *name)
{
	const char *full = name;

	for (; full && model__names_find(&reader->taken, full) && scope->outer;
	     scope = scope->outer)
		full = arena_printf(reader->arena, "%s/%s", scope->name, full);
	return full;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Two layers of one shared_object_id are one in Keras, with the same weights. */
static enum status scope_shared(struct model_reader *reader, const struct model_scope *scope,
				const struct json_at *at)
{
	struct json_at here;
	const char *key;
	int64_t id;

	if (!json_child(at, "shared_object_id", &here) || json_is_null(&here))
		return ST_OK;
	if (json_int(&here, INT64_MIN, INT64_MAX, &id, reader->err) != ST_OK)
		return ST_INVALID;
	key = arena_printf(&reader->scratch, "%d/%lld", scope->sharing, (long long)id);
	if (!key)
		return err_nomem(reader->err);
	if (model__names_find(&reader->shared, key))
		return model_config_unsupported(
			&here, reader->err,
			"the layer stands in the model before: shared weights are not supported");
	return model__names_add(&reader->shared, key, 0) ? err_nomem(reader->err) : ST_OK;
}

static enum status scope_entries(struct model_reader *reader, struct model_scope *scope,
				 struct model_names *unnamed)
{
	const cJSON *node = scope->layers.node->child;
	enum status status = ST_OK;

	for (int i = 0; i < scope->count && status == ST_OK; i++, node = node->next) {
		struct model_entry *entry = &scope->entries[i];
		struct json_at at = model__item(&scope->layers, node, i);

		entry->node = node;
		status = scope_kind(entry, &at, reader->err);
		if (status == ST_OK)
			status = scope_shared(reader, scope, &at);
		if (status == ST_OK)
			status = scope_name(reader, scope, unnamed, i);
	}
	return status;
}

enum status model__scope_open(struct model_reader *reader, struct model_scope *scope)
{
	enum status status = json_array(&scope->layers, reader->err);
	bool first = scope->functional && !(scope->outer && scope->outer->sharing);
	struct model_names unnamed = {0};

	/* Keras counts anew in each functional model that is not in another one. */
	if (first)
		scope->sharing = ++reader->sharings;
	else if (scope->outer)
		scope->sharing = scope->outer->sharing;

	if (status != ST_OK)
		return status;
	scope->count = json_count(&scope->layers);
	if (scope->count > MODEL_LAYERS - reader->entries)
		return json_fail(&scope->layers, reader->err,
				 "%d layers are more than the limit of %d",
				 reader->entries + scope->count, MODEL_LAYERS);
	reader->entries += scope->count;
	scope->entries =
		arena_alloc(&reader->scratch, (size_t)scope->count + 1, sizeof(*scope->entries));
	if (!scope->entries)
		return err_nomem(reader->err);
	status = scope_entries(reader, scope, &unnamed);
	model__names_free(&unnamed);
	return status;
}

void model__scope_close(struct model_scope *scope)
{
	model__names_free(&scope->names);
}
