/*
 * Which outputs come into a layer of a functional model: "inbound_nodes", "input_layers" and
 * "output_layers".
 *
 * Keras 2 writes a call as [["conv", 0, 0, {}], ...]: name, call, output, other arguments. Keras 3
 * writes {"args": [...], "kwargs": {...}} of tensors that know their ["conv", 0, 0].
 */
#include <string.h>

#include "common/mem.h"
#include "model/model_reader.h"

#define CALL_TENSOR "__keras_tensor__"

/* What it takes to read an entry's calls. */
struct call {
	struct model_reader *reader;
	struct model_scope *scope;
	const struct model_entry *entry;
	bool keras3;
};

/* ---- one tensor ------------------------------------------------------------------------------ */

static enum status call_unknown(const struct model_scope *scope, const struct json_at *at,
				const char *name, struct arena *scratch, struct err *err)
{
	const char **known = arena_alloc(scratch, (size_t)scope->count + 1, sizeof(*known));

	if (!known)
		return err_nomem(err);
	for (int i = 0; i < scope->count; i++)
		known[i] = scope->entries[i].name;
	return json_unknown(at, "layer", name, known, (size_t)scope->count, err);
}

/* Keras counts the call that made a nested model as 0, so its call in this one may be 1. */
static enum status call_numbers(const struct model_reader *reader, const struct model_entry *from,
				const struct json_at *call, const struct json_at *output)
{
	int64_t most = from->kind == MODEL_ENTRY_LAYER || from->kind == MODEL_ENTRY_INPUT ? 0 : 1;
	enum status status;
	int64_t number;

	status = json_int(call, 0, INT64_MAX, &number, reader->err);
	if (status != ST_OK)
		return status;
	if (number > most)
		return model_config_unsupported(call, reader->err,
						"\"%s\" is called more than once: shared weights "
						"are not supported",
						from->name);
	status = json_int(output, 0, INT64_MAX, &number, reader->err);
	if (status != ST_OK)
		return status;
	if (number > 0)
		return model_config_unsupported(output, reader->err,
						"\"%s\" has one output here: only number 0 is "
						"supported",
						from->name);
	return ST_OK;
}

/* ["conv", 0, 0], as @count items at @at (more may follow), to the entry's number. */
static enum status call_history(struct model_reader *reader, const struct model_scope *scope,
				const struct json_at *at, int *out)
{
	struct json_at name_at, call, output;
	const char *name;
	enum status status = json_array(at, reader->err);
	const int *found;

	if (status != ST_OK)
		return status;
	if (!json_item(at, 0, &name_at) || !json_item(at, 1, &call) || !json_item(at, 2, &output))
		return json_fail(at, reader->err,
				 "must be [\"layer\", 0, 0]: a name, a call and an output");
	status = json_text(&name_at, &name, reader->err);
	if (status != ST_OK)
		return status;
	if (!strcmp(name, "_CONSTANT_VALUE"))
		return model_config_unsupported(&name_at, reader->err,
						"a constant as a layer's input is not supported");
	found = model__names_find(&scope->names, name);
	if (!found)
		return call_unknown(scope, &name_at, name, &reader->scratch, reader->err);
	*out = *found;
	return call_numbers(reader, &scope->entries[*found], &call, &output);
}

static enum status call_add(const struct call *call, const struct json_at *history)
{
	struct model_reader *reader = call->reader;
	enum status status;
	int from = 0;

	status = call_history(reader, call->scope, history, &from);
	if (status != ST_OK)
		return status;
	if (mem_grow(&reader->list, &reader->list_capacity, (size_t)reader->list_count + 1,
		     sizeof(*reader->list)))
		return err_nomem(reader->err);
	reader->list[reader->list_count++] = from;
	return ST_OK;
}

/* ---- Keras 3 --------------------------------------------------------------------------------- */

static enum status call_keras_tensor(const struct call *call, const struct json_at *at)
{
	struct err *err = call->reader->err;
	struct json_at here, config;
	const char *class_name;
	enum status status = model_config_class(at, &class_name, &here, err);

	if (status != ST_OK)
		return status;
	if (strcmp(class_name, CALL_TENSOR) != 0)
		return model_config_unsupported(&here, err,
						"only layers' outputs (\"" CALL_TENSOR
						"\") are supported as inputs, not \"%s\"",
						class_name);
	if (!json_child(at, "config", &config) || !json_child(&config, "keras_history", &here))
		return json_fail(at, err, "\"config.keras_history\" is missing");
	return call_add(call, &here);
}

/* A tensor, null, or a list of them. */
static enum status call_argument(const struct call *call, const struct json_at *at)
{
	const cJSON *node = at->node->child;
	enum status status = ST_OK;

	if (cJSON_IsNull(at->node))
		return ST_OK;
	if (cJSON_IsObject(at->node))
		return call_keras_tensor(call, at);
	if (!cJSON_IsArray(at->node))
		return model_config_unsupported(at, call->reader->err,
						"a constant as a layer's input is not supported");
	for (int i = 0; node && status == ST_OK; node = node->next, i++) {
		struct json_at here = model__item(at, node, i);

		if (cJSON_IsArray(node))
			return model_config_unsupported(
				&here, call->reader->err,
				"lists of lists of inputs are not supported");
		status = call_argument(call, &here);
	}
	return status;
}

/* ---- other arguments ------------------------------------------------------------------------- */

static bool call_is_empty(const cJSON *node)
{
	if (!cJSON_IsArray(node))
		return cJSON_IsNull(node);
	for (const cJSON *item = node->child; item; item = item->next)
		if (!cJSON_IsNull(item))
			return false;
	return true;
}

/* Keras 3 writes down the false that a layer's call() has by itself, which fit() overrules. */
static bool call_says_nothing(const struct call *call, const cJSON *node)
{
	return call_is_empty(node) || (call->keras3 && call->entry->kind == MODEL_ENTRY_LAYER &&
				       cJSON_IsFalse(node) && !strcmp(node->string, "training"));
}

static enum status call_kwargs(const struct call *call, const struct json_at *at)
{
	enum status status = json_object(at, call->reader->err);

	if (status != ST_OK)
		return status;
	for (const cJSON *node = at->node->child; node && status == ST_OK; node = node->next) {
		struct json_at here = {.file = at->file, .up = at, .node = node, .index = -1};

		here.key = node->string;
		if (call->keras3 && !strcmp(node->string, "inputs"))
			status = call_argument(call, &here);
		else if (!call_says_nothing(call, node) && !strcmp(node->string, "training"))
			status = model_config_unsupported(
				&here, call->reader->err,
				"not supported: it must be null (a normalisation that is not "
				"\"trainable\" uses its moving statistics without it)");
		else if (!call_says_nothing(call, node))
			status = model_config_unsupported(
				&here, call->reader->err,
				"not supported: it must be null for this argument of the call");
	}
	return status;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static enum status call_keras3(struct call *call, const struct json_at *at)
{
	static const struct model_option options[] = {{"args", MODEL_ANY}, {"kwargs", MODEL_ANY}};
	enum status status =
		model_config_check(at, options, ARRAY_LEN(options), NULL, 0, call->reader->err);
	struct json_at here;
	const cJSON *node;

	call->keras3 = true;
	if (status != ST_OK)
		return status;
	if (json_child(at, "args", &here)) {
		status = json_array(&here, call->reader->err);
		node = here.node->child;
		for (int i = 0; node && status == ST_OK; node = node->next, i++) {
			struct json_at argument = model__item(&here, node, i);

			status = call_argument(call, &argument);
		}
	}
	if (status == ST_OK && json_child(at, "kwargs", &here))
		status = call_kwargs(call, &here);
	return status;
}

static enum status call_keras2_tensor(const struct call *call, const struct json_at *at)
{
	enum status status = call_add(call, at);
	struct json_at here;

	if (status == ST_OK && json_item(at, 3, &here))
		status = call_kwargs(call, &here);
	return status;
}

static enum status call_keras2(const struct call *call, const struct json_at *at)
{
	const cJSON *node = at->node->child;
	enum status status = ST_OK;

	if (cJSON_IsString(node)) /* one tensor, not in a list */
		return call_keras2_tensor(call, at);
	for (int i = 0; node && status == ST_OK; node = node->next, i++) {
		struct json_at here = model__item(at, node, i);

		status = call_keras2_tensor(call, &here);
	}
	return status;
}

static enum status call_first(struct call *call, const struct json_at *nodes)
{
	struct err *err = call->reader->err;
	struct json_at first, second;

	if (!json_item(nodes, 0, &first))
		return json_fail(nodes, err, "nothing comes into \"%s\"", call->entry->name);
	if (json_item(nodes, 1, &second))
		return model_config_unsupported(&second, err,
						"\"%s\" is called more than once: shared weights "
						"are not supported",
						call->entry->name);
	if (cJSON_IsObject(first.node))
		return call_keras3(call, &first);
	if (cJSON_IsArray(first.node))
		return call_keras2(call, &first);
	return json_fail(&first, err, "must be an array or an object {\"args\", \"kwargs\"}");
}

/* ---- an entry -------------------------------------------------------------------------------- */

/* How many inputs does it take? */
static enum status call_check_count(const struct call *call, const struct json_at *at)
{
	const struct model_entry *entry = call->entry;
	int count = call->reader->list_count, least = 1, most = 1;

	if (entry->kind == MODEL_ENTRY_LAYER && entry->ops->most_inputs) {
		least = entry->ops->least_inputs;
		most = entry->ops->most_inputs;
	}
	if (count >= least && count <= most)
		return ST_OK;
	if (entry->kind != MODEL_ENTRY_LAYER && count > 1)
		return model_config_unsupported(
			at, call->reader->err,
			"models of several inputs are not supported: %d come into \"%s\"", count,
			entry->name);
	return json_fail(at, call->reader->err, "\"%s\" (%s) takes %s%d input%s, but %d come%s in",
			 entry->name, entry->class_name,
			 least == most   ? ""
			 : count < least ? "at least "
					 : "at most ",
			 count < least ? least : most,
			 (count < least ? least : most) == 1 ? "" : "s", count,
			 count == 1 ? "s" : "");
}

static enum status call_read(struct call *call, struct model_entry *entry, const struct json_at *at)
{
	struct model_reader *reader = call->reader;
	struct json_at nodes;
	enum status status;

	reader->list_count = 0;
	if (!json_child(at, "inbound_nodes", &nodes))
		return entry->kind == MODEL_ENTRY_INPUT
			       ? ST_OK
			       : json_fail(at, reader->err, "\"inbound_nodes\" is missing");
	status = json_array(&nodes, reader->err);
	if (status != ST_OK)
		return status;
	if (entry->kind == MODEL_ENTRY_INPUT)
		return json_count(&nodes) ? json_fail(&nodes, reader->err,
						      "nothing can come into an InputLayer")
					  : ST_OK;
	status = call_first(call, &nodes);
	if (status == ST_OK)
		status = call_check_count(call, &nodes);
	if (status != ST_OK)
		return status;

	entry->input_count = reader->list_count;
	entry->inputs =
		arena_alloc(&reader->scratch, (size_t)entry->input_count, sizeof(*entry->inputs));
	if (!entry->inputs)
		return err_nomem(reader->err);
	memcpy(entry->inputs, reader->list, (size_t)entry->input_count * sizeof(*entry->inputs));
	return ST_OK;
}

/* ---- the model's own ------------------------------------------------------------------------- */

/* [["input_1", 0, 0]], or ["input_1", 0, 0]: exactly one. */
static enum status call_end(struct model_reader *reader, const struct model_scope *scope,
			    const struct json_at *config, const char *key, int *out)
{
	struct json_at list, first;
	enum status status;

	if (!json_child(config, key, &list))
		return json_fail(config, reader->err, "\"%s\" is missing", key);
	if (cJSON_IsObject(list.node))
		return model_config_unsupported(&list, reader->err,
						"inputs and outputs with keys are not supported: "
						"give one as [\"layer\", 0, 0]");
	status = json_array(&list, reader->err);
	if (status != ST_OK)
		return status;
	if (!json_item(&list, 0, &first))
		return json_fail(&list, reader->err, "must name one layer");
	if (cJSON_IsString(first.node))
		return call_history(reader, scope, &list, out);
	if (json_count(&list) > 1)
		return model_config_unsupported(&list, reader->err,
						"%d of them are not supported: there must be one",
						json_count(&list));
	return call_history(reader, scope, &first, out);
}

static enum status call_check_inputs(struct model_reader *reader, const struct model_scope *scope)
{
	for (int i = 0; i < scope->count; i++) {
		struct json_at at = model__entry_at(scope, i);

		if (scope->entries[i].kind == MODEL_ENTRY_INPUT && i != scope->input)
			return json_fail(&at, reader->err,
					 "the InputLayer \"%s\" is not among \"input_layers\"",
					 scope->entries[i].name);
	}
	return ST_OK;
}

enum status model__read_calls(struct model_reader *reader, struct model_scope *scope,
			      const struct json_at *config)
{
	enum status status = call_end(reader, scope, config, "input_layers", &scope->input);
	struct json_at at;

	if (status == ST_OK)
		status = call_end(reader, scope, config, "output_layers", &scope->output);
	if (status != ST_OK)
		return status;
	if (scope->entries[scope->input].kind != MODEL_ENTRY_INPUT) {
		json_child(config, "input_layers", &at);
		return json_fail(&at, reader->err, "\"%s\" is not an InputLayer",
				 scope->entries[scope->input].name);
	}
	status = call_check_inputs(reader, scope);
	for (int i = 0; i < scope->count && status == ST_OK; i++) {
		struct call call = {.reader = reader, .scope = scope, .entry = &scope->entries[i]};

		at = model__entry_at(scope, i);
		status = call_read(&call, &scope->entries[i], &at);
	}
	return status;
}
