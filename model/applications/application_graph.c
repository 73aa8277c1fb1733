/*
 * Keras's JSON of a functional model, built node by node.
 *
 * Threading: a graph is used by one thread. Ownership: the graph owns its nodes and their configs
 * until application_graph_finish() moves them to the model.
 */
#include "model/applications/application_graph.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

bool application__append(cJSON *list, cJSON *item)
{
	if (item && cJSON_AddItemToArray(list, item))
		return true;
	cJSON_Delete(item);
	return false;
}

bool application__append_numbers(cJSON *list, const int64_t *values, int count)
{
	bool done = list;

	for (int i = 0; done && i < count; i++)
		done = application__append(list, cJSON_CreateNumber((double)values[i]));
	return done;
}

void application_graph_init(struct application_graph *graph, int64_t height, int64_t width,
			    int64_t channels, int64_t batch)
{
	cJSON *shape;
	int input;

	*graph = (struct application_graph){0};
	if (arena_init(&graph->arena, 0)) {
		graph->status = ST_NOMEM;
		return;
	}
	input = application_merge(graph, "InputLayer", "input_1", NULL, 0);
	if (graph->status != ST_OK)
		return;
	graph->nodes[input].height = height;
	graph->nodes[input].width = width;
	graph->nodes[input].channels = channels;
	shape = cJSON_AddArrayToObject(graph->nodes[input].config, "batch_input_shape");
	if (!application__append(shape,
				 batch ? cJSON_CreateNumber((double)batch) : cJSON_CreateNull()) ||
	    !application__append_numbers(shape, (int64_t[]){height, width, channels}, 3))
		graph->status = ST_NOMEM;
}

void application_graph_fini(struct application_graph *graph)
{
	for (int i = 0; i < graph->count; i++)
		cJSON_Delete(graph->nodes[i].config);
	mem_free(graph->nodes);
	arena_fini(&graph->arena);
}

const char *application_name(struct application_graph *graph, const char *format, ...)
{
	char text[128];
	const char *name;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	name = arena_strdup(&graph->arena, text);
	if (!name)
		graph->status = ST_NOMEM;
	return name ? name : "";
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* "ZeroPadding2D" becomes "zero_padding2d"; from the second of the class on, a number is added. */
static const char *default_name(struct application_graph *graph, const char *class_name)
{
	char base[64];
	size_t used = 0;
	int before = 0;

	for (const char *c = class_name; *c && used + 2 < sizeof(base); c++) {
		bool joint = c > class_name && isupper((unsigned char)*c) &&
			     islower((unsigned char)c[-1]);

		if (joint)
			base[used++] = '_';
		base[used++] = (char)tolower((unsigned char)*c);
	}
	base[used] = '\0';
	for (int i = 0; i < graph->count; i++) {
		const char *name = graph->nodes[i].name;

		before += !strcmp(graph->nodes[i].class_name, class_name) &&
			  !strncmp(name, base, used) && (!name[used] || name[used] == '_');
	}
	return before ? application_name(graph, "%s_%d", base, before)
		      : application_name(graph, "%s", base);
}

static int add_node(struct application_graph *graph, const char *class_name, const char *name,
		    const int *from, int count)
{
	struct application_node *node;

	if (graph->status != ST_OK)
		return 0;
	if (mem_grow(&graph->nodes, &graph->capacity, (size_t)graph->count + 1, sizeof(*node))) {
		graph->status = ST_NOMEM;
		return 0;
	}
	node = &graph->nodes[graph->count];
	*node = (struct application_node){.class_name = class_name, .input_count = count};
	node->name = name ? application_name(graph, "%s", name) : default_name(graph, class_name);
	node->inputs = arena_alloc(&graph->arena, (size_t)count + 1, sizeof(*node->inputs));
	node->config = cJSON_CreateObject();
	if (!node->inputs || !node->config ||
	    !cJSON_AddStringToObject(node->config, "name", node->name)) {
		cJSON_Delete(node->config);
		graph->status = ST_NOMEM;
		return 0;
	}
	for (int i = 0; i < count; i++)
		node->inputs[i] = from[i];
	if (count > 0) {
		node->height = graph->nodes[from[0]].height;
		node->width = graph->nodes[from[0]].width;
		node->channels = graph->nodes[from[0]].channels;
	}
	return graph->count++;
}

static int add_one(struct application_graph *graph, int from, const char *class_name,
		   const char *name)
{
	return add_node(graph, class_name, name, &from, 1);
}

static void put_number(struct application_graph *graph, int node, const char *key, double value)
{
	if (graph->status == ST_OK &&
	    !cJSON_AddNumberToObject(graph->nodes[node].config, key, value))
		graph->status = ST_NOMEM;
}

static void put_bool(struct application_graph *graph, int node, const char *key, bool value)
{
	if (graph->status == ST_OK && !cJSON_AddBoolToObject(graph->nodes[node].config, key, value))
		graph->status = ST_NOMEM;
}

static void put_text(struct application_graph *graph, int node, const char *key, const char *value)
{
	if (graph->status == ST_OK &&
	    !cJSON_AddStringToObject(graph->nodes[node].config, key, value))
		graph->status = ST_NOMEM;
}

/* @text is JSON; NULL: add nothing. */
static void put_json(struct application_graph *graph, int node, const char *key, const char *text)
{
	cJSON *value;

	if (graph->status != ST_OK || !text)
		return;
	value = cJSON_Parse(text);
	if (!value || !cJSON_AddItemToObject(graph->nodes[node].config, key, value)) {
		cJSON_Delete(value);
		graph->status = ST_NOMEM;
	}
}

static void put_pair(struct application_graph *graph, int node, const char *key, int first,
		     int second)
{
	put_json(graph, node, key, application_name(graph, "[%d,%d]", first, second));
}

/* Set the image size after a sliding window. */
static void put_window(struct application_graph *graph, int node, int rows, int columns, int stride,
		       bool same)
{
	struct application_node *at = &graph->nodes[node];

	if (graph->status != ST_OK)
		return;
	at->height =
		same ? (at->height + stride - 1) / stride : (at->height - rows + stride) / stride;
	at->width =
		same ? (at->width + stride - 1) / stride : (at->width - columns + stride) / stride;
	if ((at->height < 1 || at->width < 1) && !graph->small) {
		graph->small = at->name;
		graph->status = ST_INVALID;
	}
}

/* ---- layers ---------------------------------------------------------------------------------- */

static void put_conv(struct application_graph *graph, int node, const struct application_conv *conv,
		     const char *initializer)
{
	int side = conv->kernel ? conv->kernel : 1, stride = conv->stride ? conv->stride : 1;
	int rows = conv->rows ? conv->rows : side, columns = conv->columns ? conv->columns : side;

	put_pair(graph, node, "kernel_size", rows, columns);
	put_pair(graph, node, "strides", stride, stride);
	put_text(graph, node, "padding", conv->same ? "same" : "valid");
	put_text(graph, node, "activation", conv->activation ? conv->activation : "linear");
	put_bool(graph, node, "use_bias", conv->bias);
	put_json(graph, node, initializer, conv->initializer);
	put_window(graph, node, rows, columns, stride, conv->same);
}

int application_conv(struct application_graph *graph, int from, const char *name,
		     const struct application_conv *conv)
{
	int node = add_one(graph, from, "Conv2D", name);

	put_number(graph, node, "filters", (double)conv->filters);
	put_conv(graph, node, conv, "kernel_initializer");
	if (graph->status == ST_OK)
		graph->nodes[node].channels = conv->filters;
	return node;
}

int application_depthwise(struct application_graph *graph, int from, const char *name,
			  const struct application_conv *conv)
{
	int node = add_one(graph, from, "DepthwiseConv2D", name);

	put_conv(graph, node, conv, "depthwise_initializer");
	return node;
}

int application_separable(struct application_graph *graph, int from, const char *name,
			  const struct application_conv *conv)
{
	int node = add_one(graph, from, "SeparableConv2D", name);

	put_number(graph, node, "filters", (double)conv->filters);
	put_conv(graph, node, conv, "depthwise_initializer");
	if (graph->status == ST_OK)
		graph->nodes[node].channels = conv->filters;
	return node;
}

int application_norm(struct application_graph *graph, int from, const char *name, double epsilon,
		     double momentum, bool scale)
{
	int node = add_one(graph, from, "BatchNormalization", name);

	if (epsilon > 0.0)
		put_number(graph, node, "epsilon", epsilon);
	if (momentum > 0.0)
		put_number(graph, node, "momentum", momentum);
	if (!scale)
		put_bool(graph, node, "scale", false);
	return node;
}

int application_activation(struct application_graph *graph, int from, const char *name,
			   const char *activation)
{
	int node = add_one(graph, from, "Activation", name);

	put_text(graph, node, "activation", activation);
	return node;
}

int application_relu(struct application_graph *graph, int from, const char *name)
{
	return add_one(graph, from, "ReLU", name);
}

int application_relu6(struct application_graph *graph, int from, const char *name)
{
	int node = application_relu(graph, from, name);

	put_number(graph, node, "max_value", 6.0);
	return node;
}

/* Grow (@sign 1) or shrink (-1) the image at its sides. */
static void put_sides(struct application_graph *graph, int node, const char *key, int sign,
		      struct application_side rows, struct application_side columns)
{
	put_json(graph, node, key,
		 application_name(graph, "[[%d,%d],[%d,%d]]", rows.before, rows.after,
				  columns.before, columns.after));
	if (graph->status == ST_OK) {
		graph->nodes[node].height += sign * (rows.before + rows.after);
		graph->nodes[node].width += sign * (columns.before + columns.after);
	}
}

int application_pad(struct application_graph *graph, int from, const char *name,
		    struct application_side rows, struct application_side columns)
{
	int node = add_one(graph, from, "ZeroPadding2D", name);

	put_sides(graph, node, "padding", 1, rows, columns);
	return node;
}

int application_crop(struct application_graph *graph, int from, const char *name,
		     struct application_side rows, struct application_side columns)
{
	int node = add_one(graph, from, "Cropping2D", name);

	put_sides(graph, node, "cropping", -1, rows, columns);
	return node;
}

int application_pool(struct application_graph *graph, int from, const char *class_name,
		     const char *name, int size, int stride, bool same)
{
	int node = add_one(graph, from, class_name, name);

	put_pair(graph, node, "pool_size", size, size);
	put_pair(graph, node, "strides", stride, stride);
	put_text(graph, node, "padding", same ? "same" : "valid");
	put_window(graph, node, size, size, stride, same);
	return node;
}

int application_global_pool(struct application_graph *graph, int from, const char *class_name,
			    const char *name, bool keepdims)
{
	int node = add_one(graph, from, class_name, name);

	if (keepdims)
		put_bool(graph, node, "keepdims", true);
	if (graph->status == ST_OK)
		graph->nodes[node].height = graph->nodes[node].width = keepdims;
	return node;
}

int application_merge(struct application_graph *graph, const char *class_name, const char *name,
		      const int *from, int count)
{
	int node = add_node(graph, class_name, name, from, count);

	if (strcmp(class_name, "Concatenate") != 0)
		return node;
	put_number(graph, node, "axis", -1.0);
	for (int i = 1; i < count && graph->status == ST_OK; i++)
		graph->nodes[node].channels += graph->nodes[from[i]].channels;
	return node;
}

int application_dense(struct application_graph *graph, int from, const char *name, int64_t units,
		      const char *activation, const char *initializer)
{
	int node = add_one(graph, from, "Dense", name);

	put_number(graph, node, "units", (double)units);
	put_text(graph, node, "activation", activation);
	put_json(graph, node, "kernel_initializer", initializer);
	if (graph->status == ST_OK)
		graph->nodes[node].channels = units;
	return node;
}

int application_flatten(struct application_graph *graph, int from, const char *name)
{
	return add_one(graph, from, "Flatten", name);
}

int application_reshape(struct application_graph *graph, int from, const char *name,
			const int64_t *shape, int count)
{
	int node = add_one(graph, from, "Reshape", name);
	cJSON *list = NULL;

	if (graph->status == ST_OK)
		list = cJSON_AddArrayToObject(graph->nodes[node].config, "target_shape");
	if (graph->status == ST_OK && !application__append_numbers(list, shape, count))
		graph->status = ST_NOMEM;
	if (graph->status == ST_OK && count == 3) {
		graph->nodes[node].height = shape[0];
		graph->nodes[node].width = shape[1];
	}
	return node;
}

int application_dropout(struct application_graph *graph, int from, const char *name, double rate,
			bool per_item)
{
	int node = add_one(graph, from, "Dropout", name);

	put_number(graph, node, "rate", rate);
	put_json(graph, node, "noise_shape", per_item ? "[null,1,1,1]" : NULL);
	return node;
}

int application_rescaling(struct application_graph *graph, int from, double scale, double offset)
{
	int node = add_one(graph, from, "Rescaling", NULL);

	put_number(graph, node, "scale", scale);
	put_number(graph, node, "offset", offset);
	return node;
}

int application_normalization(struct application_graph *graph, int from)
{
	int node = add_one(graph, from, "Normalization", NULL);

	put_json(graph, node, "axis", "[3]");
	return node;
}

void application_stride_pad(const struct application_graph *graph, int from, int kernel,
			    struct application_side *rows, struct application_side *columns)
{
	int half = kernel / 2;

	*rows = *columns = (struct application_side){half, half};
	if (graph->status != ST_OK)
		return;
	/* For an even size, pad one less before the image. */
	rows->before -= graph->nodes[from].height % 2 == 0;
	columns->before -= graph->nodes[from].width % 2 == 0;
}

int64_t application_round_to_8(double value)
{
	const int64_t rounded = max((int64_t)(value + 4.0) / 8 * 8, (int64_t)8);

	return (double)rounded < 0.9 * value ? rounded + 8 : rounded;
}

int64_t application_channels(const struct application_graph *graph, int node)
{
	return graph->status == ST_OK ? graph->nodes[node].channels : 1;
}
