/*
 * Converting a graph of nodes to the JSON of a model: Keras's order of layers, and their
 * connections.
 *
 * Threading and ownership: see application_graph.c.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "model/applications/application_graph.h"

/* Like Keras, number layers in depth-first order from the output, the first input's branch
 * first. */
static enum status number_layers(struct application_graph *graph, int output)
{
	int *stack, top = 0, number = 0, edges = 1;

	for (int i = 0; i < graph->count; i++) {
		edges += graph->nodes[i].input_count;
		graph->nodes[i].index = -1;
		graph->nodes[i].depth = 0;
	}
	stack = mem_calloc((size_t)edges, sizeof(*stack));
	if (!stack)
		return ST_NOMEM;
	stack[top++] = output;
	while (top > 0) {
		struct application_node *node = &graph->nodes[stack[--top]];

		if (node->index >= 0)
			continue;
		node->index = number++;
		for (int i = node->input_count - 1; i >= 0; i--)
			stack[top++] = node->inputs[i];
	}
	mem_free(stack);

	/* Inputs precede their consumers. */
	for (int i = graph->count - 1; i >= 0; i--)
		for (int k = 0; k < graph->nodes[i].input_count; k++) {
			struct application_node *from = &graph->nodes[graph->nodes[i].inputs[k]];

			if (from->depth <= graph->nodes[i].depth)
				from->depth = graph->nodes[i].depth + 1;
		}
	return ST_OK;
}

static int compare_layers(const void *a, const void *b)
{
	const struct application_node *x = *(const struct application_node *const *)a;
	const struct application_node *y = *(const struct application_node *const *)b;

	return x->depth != y->depth ? SORTED_BY(y, x, depth) : SORTED_BY(x, y, index);
}

/* ["NAME", 0, 0] */
static cJSON *tensor_of(const struct application_node *node)
{
	cJSON *tensor = cJSON_CreateArray();

	if (application__append(tensor, cJSON_CreateString(node->name)) &&
	    application__append_numbers(tensor, (int64_t[]){0, 0}, 2))
		return tensor;
	cJSON_Delete(tensor);
	return NULL;
}

static bool put_inbound(const struct application_graph *graph, const struct application_node *node,
			cJSON *layer)
{
	cJSON *calls = cJSON_AddArrayToObject(layer, "inbound_nodes"), *call;

	if (!calls || !node->input_count)
		return calls;
	call = cJSON_CreateArray();
	if (!application__append(calls, call))
		return false;
	for (int i = 0; i < node->input_count; i++) {
		cJSON *tensor = tensor_of(&graph->nodes[node->inputs[i]]);

		if (!application__append(call, tensor) ||
		    !application__append(tensor, cJSON_CreateObject()))
			return false;
	}
	return true;
}

static bool put_layer(const struct application_graph *graph, struct application_node *node,
		      cJSON *layers)
{
	cJSON *layer = cJSON_CreateObject();

	if (!application__append(layers, layer) ||
	    !cJSON_AddStringToObject(layer, "class_name", node->class_name) ||
	    !cJSON_AddItemToObject(layer, "config", node->config))
		return false;
	node->config = NULL;
	return cJSON_AddStringToObject(layer, "name", node->name) &&
	       put_inbound(graph, node, layer);
}

static bool put_ends(const struct application_graph *graph, int output, cJSON *config)
{
	cJSON *in = cJSON_AddArrayToObject(config, "input_layers");
	cJSON *out = cJSON_AddArrayToObject(config, "output_layers");

	return in && out && application__append(in, tensor_of(&graph->nodes[0])) &&
	       application__append(out, tensor_of(&graph->nodes[output]));
}

static bool put_layers(const struct application_graph *graph, cJSON *config)
{
	cJSON *layers = cJSON_AddArrayToObject(config, "layers");
	struct application_node **order = mem_calloc((size_t)graph->count, sizeof(*order));
	bool done = layers && order;

	for (int i = 0; done && i < graph->count; i++)
		order[i] = &graph->nodes[i];
	if (done)
		qsort(order, (size_t)graph->count, sizeof(*order), compare_layers);
	for (int i = 0; done && i < graph->count; i++)
		done = put_layer(graph, order[i], layers);
	mem_free(order);
	return done;
}

enum status application_graph_finish(struct application_graph *graph, const char *model_name,
				     int output, cJSON **out, struct err *err)
{
	cJSON *model, *config;

	*out = NULL;
	if (graph->status == ST_INVALID)
		return err_set(err, ST_INVALID,
			       "the image is too small: nothing is left of it at layer \"%s\"",
			       graph->small);
	if (graph->status != ST_OK || number_layers(graph, output) != ST_OK)
		return err_nomem(err);

	model = cJSON_CreateObject();
	cJSON_AddStringToObject(model, "class_name", "Functional");
	config = cJSON_AddObjectToObject(model, "config");
	if (!config || cJSON_GetArraySize(model) != 2 ||
	    !cJSON_AddStringToObject(config, "name", model_name) || !put_layers(graph, config) ||
	    !put_ends(graph, output, config)) {
		cJSON_Delete(model);
		return err_nomem(err);
	}
	*out = model;
	return ST_OK;
}
