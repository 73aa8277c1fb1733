/*
 * The connections between the entries of a functional model, and the execution order.
 *
 * A layer's inputs are in its "inbound_nodes"; the model's inputs and outputs are in
 * "input_layers" and "output_layers". Keras 2 writes a call as [["conv", 0, 0, {}], ...]: name,
 * call, output, other arguments. Keras 3 writes {"args": [...], "kwargs": {...}} whose tensors
 * have a keras_history ["conv", 0, 0].
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "model/model_reader.h"

#define CALL_TENSOR "__keras_tensor__"

/* State while the calls of an entry are read. */
struct call {
	struct model_reader *reader;
	struct model_scope *scope;
	struct model_entry *entry;
	struct model_call *to;
	bool keras3;
	struct err *err;
};

/* ---- one tensor ------------------------------------------------------------------------------ */

static bool is_nested(const struct model_entry *entry)
{
	return entry->kind != MODEL_ENTRY_LAYER && entry->kind != MODEL_ENTRY_INPUT;
}

/* Read the numbers of a reference. Keras counts the construction of a nested model as its call
 * 0, so the calls in this file may be numbered from 1. */
static struct model_reference call_read_reference(const struct model_scope *scope, int entry,
						  const struct json_at *call,
						  const struct json_at *output, struct err *err)
{
	const struct model_reference none = {0, 0, 0};
	struct model_entry *from = &scope->entries[entry];
	const int64_t most = from->call_count - !is_nested(from);
	const int states =
		from->kind == MODEL_ENTRY_LAYER ? layer_states(from->ops, from->config) : 0;
	const int further =
		from->kind == MODEL_ENTRY_LAYER ? states : model__entry_outputs(from) - 1;
	int64_t number, other = 0;

	if (json_int(call, 0, INT64_MAX, &number, err) != ST_OK)
		return none;
	if (number > most)
		json_fail(call, err, "\"%s\" has %d call%s here: there is none of number %lld",
			  from->name, from->call_count, from->call_count == 1 ? "" : "s",
			  (long long)number);
	else if (json_int(output, 0, INT64_MAX, &other, err) == ST_OK && other > 0 && !further)
		model_config_unsupported(output, err,
					 "\"%s\" has one output here: only number 0 is supported",
					 from->name);
	else if (other > further)
		json_fail(output, err, "\"%s\" has outputs 0 to %d", from->name, further);
	else if (other > 0 && states && from->call_count > 1)
		model_config_unsupported(output, err,
					 "\"%s\" is called more than once: its states cannot be "
					 "read then",
					 from->name);
	from->most_number = max(from->most_number, number);
	from->returns_state = from->returns_state || other > 0;
	return (struct model_reference){entry, number, err_stuck(err) ? 0 : (int)other};
}

/* Read a reference ["conv", 0, 0] at @at; more items may follow. */
static struct model_reference call_read_history(struct model_reader *reader,
						const struct model_scope *scope,
						const struct json_at *at)
{
	const struct model_reference none = {0, 0, 0};
	struct json_at name_at, call, output;
	struct err *err = reader->err;
	const char *name, **known;
	const int *found;

	if (err_stuck(err) || json_array(at, err) != ST_OK)
		return none;
	if (!json_item(at, 0, &name_at) || !json_item(at, 1, &call) || !json_item(at, 2, &output)) {
		json_fail(at, err, "must be [\"layer\", 0, 0]: a name, a call and an output");
		return none;
	}
	if (json_text(&name_at, &name, err) != ST_OK)
		return none;
	if (!strcmp(name, "_CONSTANT_VALUE")) {
		model_config_unsupported(&name_at, err,
					 "a constant as a layer's input is not supported");
		return none;
	}
	found = model__names_find(&scope->names, name);
	if (found)
		return call_read_reference(scope, *found, &call, &output, err);
	known = model__scratch(reader, (size_t)scope->count + 1, sizeof(*known));
	if (!known)
		return none;
	for (int i = 0; i < scope->count; i++)
		known[i] = scope->entries[i].name;
	json_unknown(&name_at, "layer", name, known, (size_t)scope->count, err);
	return none;
}

static void call_add_input(const struct call *call, const struct json_at *history)
{
	struct model_reader *reader = call->reader;
	const struct model_reference from = call_read_history(reader, call->scope, history);

	if (err_stuck(call->err))
		return;
	if (mem_grow(&reader->list, &reader->list_capacity, (size_t)reader->list_count + 1,
		     sizeof(*reader->list)))
		err_nomem(call->err);
	else
		reader->list[reader->list_count++] = from;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* A tensor, null, or a list of them. */
static void call_argument(const struct call *call, const struct json_at *at)
{
	struct json_at item = {0};

	if (err_stuck(call->err) || cJSON_IsNull(at->node))
		return;
	if (cJSON_IsObject(at->node)) {
		struct json_at here, config;
		const char *class_name;

		if (model_config_class(at, &class_name, &here, call->err) == ST_OK) {
			if (strcmp(class_name, CALL_TENSOR) != 0)
				model_config_unsupported(&here, call->err,
							 "only layers' outputs (\"" CALL_TENSOR
							 "\") are supported as inputs, not \"%s\"",
							 class_name);
			else if (!json_child(at, "config", &config) ||
				 !json_child(&config, "keras_history", &here))
				json_fail(at, call->err, "\"config.keras_history\" is missing");
			else
				call_add_input(call, &here);
		}
		return;
	}
	if (!cJSON_IsArray(at->node))
		model_config_unsupported(at, call->err,
					 "a constant as a layer's input is not supported");
	while (!err_stuck(call->err) && json_next(at, &item)) {
		if (cJSON_IsArray(item.node))
			model_config_unsupported(&item, call->err,
						 "lists of lists of inputs are not supported");
		call_argument(call, &item);
	}
}

static bool call_is_empty(const cJSON *node)
{
	if (!cJSON_IsArray(node))
		return cJSON_IsNull(node);
	for (const cJSON *item = node->child; item; item = item->next)
		if (!cJSON_IsNull(item))
			return false;
	return true;
}

/* Read an argument that only calls of attention have: a causal mask, further inputs by name, and
 * return_attention_scores, which must be false. */
static bool call_attention(const struct call *call, const struct json_at *at)
{
	const struct layer_ops *ops =
		call->entry->kind == MODEL_ENTRY_LAYER ? call->entry->ops : NULL;

	if (!ops ||
	    (ops->kind != LAYER_KIND_attention && ops->kind != LAYER_KIND_multi_head_attention))
		return false;
	if (!strcmp(at->key, "use_causal_mask"))
		json_bool(at, &call->to->causal_mask, call->err);
	else if (!strcmp(at->key, "value") ||
		 (!strcmp(at->key, "key") && call->reader->list_count == 2))
		(call->keras3 ? call_argument : call_add_input)(call, at);
	else
		return !strcmp(at->key, "return_attention_scores") && cJSON_IsFalse(at->node);
	return true;
}

/* Read the second operand of one of TensorFlow's functions that became a layer: x + y. */
static bool call_operand(const struct call *call, const struct json_at *at)
{
	if (strcmp(at->key, "y") != 0 || !model_legacy_function(call->entry->node))
		return false;
	if (cJSON_IsArray(at->node))
		call_add_input(call, at);
	else
		call_argument(call, at);
	return true;
}

/* Number of initial states that a call of the entry may have. */
static int call_states(const struct model_entry *entry)
{
	return entry->kind == MODEL_ENTRY_LAYER ? layer_state_count(entry->ops)
						: model__wrap_states(entry, false);
}

/* Read the initial state of a recurrent layer: a tensor or a list of tensors. */
static bool call_initial_state(const struct call *call, const struct json_at *at)
{
	const cJSON *node = at->node->child;

	if (strcmp(at->key, "initial_state") != 0 || !call_states(call->entry))
		return false;
	if (call->keras3 || !cJSON_IsArray(node))
		(call->keras3 ? call_argument : call_add_input)(call, at);
	else
		for (int i = 0; node && !err_stuck(call->err); node = node->next, i++) {
			const struct json_at here = model__item(at, node, i);

			call_add_input(call, &here);
		}
	return true;
}

/*
 * training: false, which fit() does not override. Keras 3 also writes the false that is the default
 * of most layers' call(), which fit() does override. The default of BatchNormalization and of a
 * model is null, so false in their calls is the user's.
 */
static bool call_inference(const struct call *call, const cJSON *node)
{
	const struct model_entry *entry = call->entry;

	if (strcmp(node->string, "training") != 0 || !cJSON_IsFalse(node))
		return false;
	call->to->inference = !call->keras3 || entry->kind == MODEL_ENTRY_MODEL ||
			      entry->kind == MODEL_ENTRY_APPLICATION ||
			      (entry->kind == MODEL_ENTRY_LAYER &&
			       entry->ops->kind == LAYER_KIND_batch_normalization);
	return true;
}

static void call_kwargs(const struct call *call, const struct json_at *at)
{
	struct json_at here = {0};

	if (err_stuck(call->err) || json_object(at, call->err) != ST_OK)
		return;
	while (!err_stuck(call->err) && json_next(at, &here)) {
		if (call->keras3 && !strcmp(here.key, "inputs")) {
			call_argument(call, &here);
			continue;
		}
		if (call_is_empty(here.node) || call_attention(call, &here) ||
		    call_operand(call, &here) || call_initial_state(call, &here) ||
		    call_inference(call, here.node))
			continue;
		model_config_unsupported(
			&here, call->err,
			!strcmp(here.key, "training")
				? "not supported: it must be null or false"
				: "not supported: it must be null for this argument of the call");
	}
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void call_keras3(struct call *call, const struct json_at *at)
{
	static const struct model_option options[] = {{"args", .rule = MODEL_ANY},
						      {"kwargs", .rule = MODEL_ANY}};
	struct json_at here, argument = {0};

	call->keras3 = true;
	model_config_check(at, options, ARRAY_LEN(options), NULL, 0, call->err);
	if (model_option_given(at, "args", &here, call->err) &&
	    json_array(&here, call->err) == ST_OK)
		while (json_next(&here, &argument))
			call_argument(call, &argument);
	if (model_option_given(at, "kwargs", &here, call->err))
		call_kwargs(call, &here);
}

static void call_keras2_tensor(const struct call *call, const struct json_at *at)
{
	struct json_at here;

	call_add_input(call, at);
	if (json_item(at, 3, &here))
		call_kwargs(call, &here);
}

static void call_keras2(const struct call *call, const struct json_at *at)
{
	struct json_at here = {0};

	if (cJSON_IsString(at->node->child)) /* one tensor, not in a list */
		call_keras2_tensor(call, at);
	else
		while (!err_stuck(call->err) && json_next(at, &here))
			call_keras2_tensor(call, &here);
}

/* Number of "input_layers" or "output_layers" of a nested model; ["input_1", 0, 0] alone counts
 * 1. */
static int call_model_ends(const struct model_entry *entry, const char *key)
{
	const cJSON *ends = cJSON_GetObjectItemCaseSensitive(entry->config, key);

	if (entry->kind != MODEL_ENTRY_MODEL || strcmp(entry->class_name, "Functional") != 0 ||
	    !ends || !ends->child || cJSON_IsString(ends->child))
		return 1;
	return cJSON_GetArraySize(ends);
}

int model__entry_outputs(const struct model_entry *entry)
{
	if (entry->kind == MODEL_ENTRY_WRAPPER)
		return 1 + model__wrap_is_unmerged(entry) + model__wrap_states(entry, true);
	return call_model_ends(entry, "output_layers");
}

/* Check the number of inputs. */
static void call_check_count(const struct call *call, const struct json_at *at)
{
	const struct model_entry *entry = call->entry;
	int count = call->reader->list_count, least = 1, most = 1, wanted;

	if (entry->kind == MODEL_ENTRY_LAYER && entry->ops->most_inputs) {
		least = entry->ops->least_inputs;
		most = entry->ops->most_inputs;
	} else if (is_nested(entry)) {
		least = call_model_ends(entry, "input_layers");
		most = least + call_states(entry);
	}
	if (err_stuck(call->err) || (count >= least && count <= most))
		return;
	wanted = count < least ? least : most;
	json_fail(at, call->err, "\"%s\" (%s) takes %s%d input%s, but %d come%s in", entry->name,
		  entry->class_name,
		  least == most   ? ""
		  : count < least ? "at least "
				  : "at most ",
		  wanted, wanted == 1 ? "" : "s", count, count == 1 ? "s" : "");
}

/* Find the list of an entry's calls; false: it has none, like an InputLayer. */
static bool call_nodes(const struct model_entry *entry, const struct json_at *at,
		       struct json_at *nodes, struct err *err)
{
	const bool input = entry->kind == MODEL_ENTRY_INPUT;

	if (err_stuck(err) || (input && !json_child(at, "inbound_nodes", nodes)) ||
	    !model_option_need(at, "inbound_nodes", nodes, err) ||
	    json_array(nodes, err) != ST_OK || (input && !json_count(nodes)))
		return false;
	if (input)
		json_fail(nodes, err, "nothing can come into an InputLayer");
	else if (!json_count(nodes))
		json_fail(nodes, err, "nothing comes into \"%s\"", entry->name);
	return !err_stuck(err);
}

/* Count the calls of each entry. */
static void call_count(struct model_reader *reader, struct model_scope *scope)
{
	struct err *err = reader->err;

	for (int i = 0; i < scope->count && !err_stuck(err); i++) {
		struct model_entry *entry = &scope->entries[i];
		struct json_at at = model__entry_at(scope, i), nodes = at;

		entry->first_call = scope->call_count;
		entry->call_count = 1;
		if (call_nodes(entry, &at, &nodes, err))
			entry->call_count = json_count(&nodes);
		if (entry->call_count - 1 > MODEL_LAYERS - reader->entries)
			json_fail(&nodes, err, "%d calls are more than the limit of %d layers",
				  entry->call_count, MODEL_LAYERS);
		scope->call_count += entry->call_count;
		reader->entries += entry->call_count - 1;
	}
	scope->calls = model__scratch(reader, (size_t)scope->call_count + 1, sizeof(*scope->calls));
}

/* Read all calls of entry @number. */
static void call_read(struct model_reader *reader, struct model_scope *scope, int number)
{
	struct model_entry *entry = &scope->entries[number];
	struct json_at at = model__entry_at(scope, number), nodes, here = {0};
	struct err *err = reader->err;

	if (err_stuck(err))
		return;
	scope->calls[entry->first_call].entry = number;
	if (!call_nodes(entry, &at, &nodes, err))
		return;
	while (!err_stuck(err) && json_next(&nodes, &here)) {
		struct call call = {.reader = reader,
				    .scope = scope,
				    .entry = entry,
				    .to = &scope->calls[entry->first_call + here.index],
				    .err = err};

		reader->list_count = 0;
		call.to->entry = number;
		if (cJSON_IsObject(here.node))
			call_keras3(&call, &here);
		else if (cJSON_IsArray(here.node))
			call_keras2(&call, &here);
		else
			json_fail(&here, err,
				  "must be an array or an object {\"args\", \"kwargs\"}");
		call_check_count(&call, &nodes);
		if (!err_stuck(err)) {
			/* The references of the reader's list are the inputs. */
			const size_t count = (size_t)reader->list_count;

			call.to->input_count = reader->list_count;
			call.to->from = model__scratch(reader, count, sizeof(*call.to->from));
			call.to->inputs = model__scratch(reader, count, sizeof(*call.to->inputs));
			if (!err_stuck(err))
				memcpy(call.to->from, reader->list, count * sizeof(*call.to->from));
		}
	}
}

/* Resolve a reference to a call of the scope. Needs all references: the greatest call number shows
 * whether the numbers of a nested model begin at 0 or at 1. */
static int call_resolve(struct model_reader *reader, const struct model_scope *scope,
			const struct model_reference *from)
{
	const struct model_entry *entry = &scope->entries[from->entry];
	const int64_t base = entry->most_number == entry->call_count;
	const struct json_at at = model__entry_at(scope, from->entry);

	if (from->number < base)
		json_fail(&at, reader->err,
			  "\"%s\" has %d call%s, which count from 0 or from 1: both 0 and %d are "
			  "read",
			  entry->name, entry->call_count, entry->call_count == 1 ? "" : "s",
			  entry->call_count);
	return entry->first_call + (int)(from->number - base);
}

/* ---- the model's inputs and outputs ---------------------------------------------------------- */

/* Read [["input_1", 0, 0], ...], an object of such values, or ["input_1", 0, 0]; at most @most.
 * Returns the number of references added to the reader's list. */
static int call_read_ends(const struct call *call, const struct json_at *config, const char *key,
			  int most)
{
	struct model_reader *reader = call->reader;
	struct json_at list;

	reader->list_count = 0;
	if (!model_option_need(config, key, &list, call->err))
		return 0;
	if (cJSON_IsString(list.node->child) && cJSON_IsArray(list.node)) {
		call_add_input(call, &list);
		return reader->list_count;
	}
	if (!cJSON_IsObject(list.node) && json_array(&list, call->err) != ST_OK)
		return 0;
	if (!json_count(&list))
		json_fail(&list, call->err, "must name a layer");
	else if (json_count(&list) > most)
		model_config_unsupported(&list, call->err,
					 "%d of them are not supported: there must be %s%d",
					 json_count(&list), most == 1 ? "" : "at most ", most);
	for (const cJSON *node = list.node->child; node && !err_stuck(call->err);
	     node = node->next) {
		struct json_at here = model__item(&list, node, reader->list_count);

		call_add_input(call, &here);
	}
	return reader->list_count;
}

/* Read "input_layers": it must name each InputLayer of the model exactly once. */
static void call_inputs(const struct call *call, struct model_scope *scope,
			const struct json_at *config)
{
	struct model_reader *reader = call->reader;
	const int count = call_read_ends(call, config, "input_layers", MODEL_PARTS);
	bool *named = model__scratch(reader, (size_t)scope->count + 1, sizeof(*named));
	int *inputs = model__scratch(reader, (size_t)count + 1, sizeof(*inputs));
	struct json_at at;

	for (int i = 0; i < count && !err_stuck(call->err); i++) {
		const struct model_entry *entry = &scope->entries[reader->list[i].entry];

		json_child(config, "input_layers", &at);
		if (entry->kind != MODEL_ENTRY_INPUT)
			json_fail(&at, call->err, "\"%s\" is not an InputLayer", entry->name);
		else if (named[reader->list[i].entry])
			json_fail(&at, call->err, "names \"%s\" twice", entry->name);
		named[reader->list[i].entry] = true;
		inputs[i] = entry->first_call;
	}
	for (int i = 0; i < scope->count && !err_stuck(call->err); i++) {
		at = model__entry_at(scope, i);
		if (scope->entries[i].kind == MODEL_ENTRY_INPUT && !named[i])
			json_fail(&at, call->err,
				  "the InputLayer \"%s\" is not among \"input_layers\"",
				  scope->entries[i].name);
	}
	scope->inputs = inputs;
	scope->input_count = count;
}

/* Read "output_layers" as references, to be resolved when all references have been read. */
static struct model_reference *call_outputs(const struct call *call, struct model_scope *scope,
					    const struct json_at *config)
{
	struct model_reader *reader = call->reader;
	const int count = call_read_ends(call, config, "output_layers", MODEL_OUTPUTS);
	struct model_reference *references =
		model__scratch(reader, (size_t)count + 1, sizeof(*references));

	scope->outputs = model__scratch(reader, (size_t)count + 1, sizeof(*scope->outputs));
	if (count && references)
		memcpy(references, reader->list, (size_t)count * sizeof(*references));
	scope->output_count = count;
	return references;
}

void model__read_calls(struct model_reader *reader, struct model_scope *scope,
		       const struct json_at *config)
{
	const struct call ends = {.reader = reader, .scope = scope, .err = reader->err};
	struct model_reference *outputs = NULL;
	struct err *err = reader->err;
	struct json_at at;

	if (err_stuck(err))
		return;
	call_count(reader, scope);
	if (!err_stuck(err))
		call_inputs(&ends, scope, config);
	if (!err_stuck(err))
		outputs = call_outputs(&ends, scope, config);
	for (int i = 0; i < scope->count; i++)
		call_read(reader, scope, i);
	for (int i = 0; i < scope->call_count && !err_stuck(err); i++)
		for (int k = 0; k < scope->calls[i].input_count; k++)
			scope->calls[i].inputs[k] =
				call_resolve(reader, scope, &scope->calls[i].from[k]);
	for (int i = 0; i < scope->output_count && !err_stuck(err); i++)
		scope->outputs[i] = (struct model_end){call_resolve(reader, scope, &outputs[i]),
						       outputs[i].output};
	if (err_stuck(err) || !json_child(config, "output_layers", &at))
		return;
	for (int i = 0; i < scope->output_count && scope->output_count > 1; i++) {
		const struct model_entry *entry =
			&scope->entries[scope->calls[scope->outputs[i].call].entry];

		if (entry->kind == MODEL_ENTRY_INPUT)
			json_fail(&at, err, "\"%s\" is an InputLayer", entry->name);
		for (int k = 0; k < i && !err_stuck(err); k++)
			if (scope->outputs[k].call == scope->outputs[i].call &&
			    scope->outputs[k].output == scope->outputs[i].output)
				json_fail(&at, err, "names \"%s\" twice", entry->name);
	}
}

/* ---- the order of execution ------------------------------------------------------------------ */

/* Topological sort: each call follows its inputs; among the calls that are ready, the one listed
 * first is next. A list that is already sorted does not change. */
struct graph {
	const struct model_scope *scope;
	int *waiting; /* by call: number of inputs that are not ordered yet */
	int *first;   /* by call, plus one: start of its range in `readers` */
	int *readers;
	int *ready; /* a min-heap of calls */
	int ready_count;
	bool *reaches_output; /* by call: reaches_output to an output */
};

static void graph_alloc(struct graph *graph, struct model_reader *reader)
{
	size_t count = (size_t)graph->scope->call_count, edges = 0;

	for (size_t i = 0; i < count; i++)
		edges += (size_t)graph->scope->calls[i].input_count;
	graph->waiting = model__scratch(reader, count, sizeof(int));
	graph->first = model__scratch(reader, count + 2, sizeof(int));
	graph->readers = model__scratch(reader, edges + 1, sizeof(int));
	graph->ready = model__scratch(reader, count, sizeof(int));
	graph->reaches_output = model__scratch(reader, count, sizeof(bool));
}

/* Build the lists of calls that read each call's output. */
static void graph_link(struct graph *graph)
{
	const struct model_scope *scope = graph->scope;

	for (int i = 0; i < scope->call_count; i++) {
		graph->waiting[i] = scope->calls[i].input_count;
		for (int j = 0; j < scope->calls[i].input_count; j++)
			graph->first[scope->calls[i].inputs[j] + 2]++;
	}
	for (int i = 1; i <= scope->call_count; i++)
		graph->first[i + 1] += graph->first[i];
	/* Filling advances each start to its end, which is the start of the next. */
	for (int i = 0; i < scope->call_count; i++)
		for (int j = 0; j < scope->calls[i].input_count; j++)
			graph->readers[graph->first[scope->calls[i].inputs[j] + 1]++] = i;
}

static void graph_push(struct graph *graph, int call)
{
	int at = graph->ready_count++;

	for (; at > 0 && graph->ready[(at - 1) / 2] > call; at = (at - 1) / 2)
		graph->ready[at] = graph->ready[(at - 1) / 2];
	graph->ready[at] = call;
}

static int graph_pop(struct graph *graph)
{
	int least = graph->ready[0], last = graph->ready[--graph->ready_count], at = 0;

	for (;;) {
		int child = 2 * at + 1;

		if (child + 1 < graph->ready_count && graph->ready[child + 1] < graph->ready[child])
			child++;
		if (child >= graph->ready_count || graph->ready[child] >= last)
			break;
		graph->ready[at] = graph->ready[child];
		at = child;
	}
	graph->ready[at] = last;
	return least;
}

/* Returns the number of calls that could be ordered. */
static int graph_order(struct graph *graph, int *order)
{
	int placed = 0;

	for (int i = 0; i < graph->scope->call_count; i++)
		if (!graph->waiting[i])
			graph_push(graph, i);
	while (graph->ready_count) {
		int call = graph_pop(graph);

		order[placed++] = call;
		for (int i = graph->first[call]; i < graph->first[call + 1]; i++)
			if (!--graph->waiting[graph->readers[i]])
				graph_push(graph, graph->readers[i]);
	}
	return placed;
}

/* An input of @call that is not ordered either. */
static int graph_blocking_input(const struct graph *graph, int call)
{
	const struct model_call *at = &graph->scope->calls[call];

	for (int i = 0; i < at->input_count; i++)
		if (graph->waiting[at->inputs[i]])
			return at->inputs[i];
	return call;
}

static const char *graph_name(const struct model_scope *scope, int call)
{
	return scope->entries[scope->calls[call].entry].name;
}

/* Report a cycle: walking back as many steps as there are calls must end on one. */
static void graph_cycle(const struct graph *graph, struct err *err)
{
	const struct model_scope *scope = graph->scope;
	struct json_at at;
	int call = 0;

	while (!graph->waiting[call])
		call++;
	for (int i = 0; i < scope->call_count; i++)
		call = graph_blocking_input(graph, call);
	at = model__entry_at(scope, scope->calls[call].entry);
	json_fail(&at, err,
		  "the layers form a cycle: \"%s\" needs \"%s\", which needs what comes "
		  "out of it",
		  graph_name(scope, call), graph_name(scope, graph_blocking_input(graph, call)));
}

/* Mark calls in reverse order, so that all readers of a call are visited before it. */
static void graph_check_reachable(const struct graph *graph, struct err *err)
{
	const struct model_scope *scope = graph->scope;

	for (int i = 0; i < scope->output_count; i++)
		graph->reaches_output[scope->outputs[i].call] = true;
	for (int i = scope->call_count - 1; i >= 0; i--) {
		const struct model_call *call = &scope->calls[scope->order[i]];

		for (int j = 0; graph->reaches_output[scope->order[i]] && j < call->input_count;
		     j++)
			graph->reaches_output[call->inputs[j]] = true;
	}
	for (int i = 0; i < scope->call_count && !err_stuck(err); i++) {
		const struct model_entry *entry = &scope->entries[scope->calls[i].entry];
		struct json_at at = model__entry_at(scope, scope->calls[i].entry);
		char number[24] = "";

		if (entry->call_count > 1)
			snprintf(number, sizeof(number), ", call %d,", i - entry->first_call);
		if (!graph->reaches_output[i])
			json_fail(&at, err,
				  "\"%s\"%s does not lead to the model's output, \"%s\"%s: "
				  "leave it out",
				  graph_name(scope, i), number,
				  graph_name(scope, scope->outputs[0].call),
				  scope->output_count > 1 ? ", or another" : "");
	}
}

void model__sort(struct model_reader *reader, struct model_scope *scope)
{
	struct graph graph = {.scope = scope};

	if (err_stuck(reader->err))
		return;
	scope->order = model__scratch(reader, (size_t)scope->call_count + 1, sizeof(*scope->order));
	graph_alloc(&graph, reader);
	if (err_stuck(reader->err))
		return;
	graph_link(&graph);
	if (graph_order(&graph, scope->order) < scope->call_count)
		graph_cycle(&graph, reader->err);
	else
		graph_check_reachable(&graph, reader->err);
}
