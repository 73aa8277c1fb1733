/*
 * Reading the texts of networks, and writing Keras's JSON.
 *
 * Threading: a net is used by one thread. Ownership: the net owns its nodes and their configs until
 * net_finish() moves them to the model.
 */
#include "model/applications/application_net.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "common/str.h"

#define NET_DEEP     4 /* brackets within brackets, at most */
#define NET_BRANCHES 8
#define NET_NUMBERS  2 /* of a layer */

/* A layer of a text. */
struct net_step {
	const struct net_word *word;
	int rows, columns, stride;
	double number[NET_NUMBERS];
	int numbers;
	bool same, bias, keepdims, per_item;
	const char *activation, *name; /* NULL: not given */
};

static bool list_append(cJSON *list, cJSON *item)
{
	if (item && cJSON_AddItemToArray(list, item))
		return true;
	cJSON_Delete(item);
	return false;
}

static bool list_append_numbers(cJSON *list, const int64_t *values, int count)
{
	bool done = list;

	for (int i = 0; done && i < count; i++)
		done = list_append(list, cJSON_CreateNumber((double)values[i]));
	return done;
}

/* ---- options of a layer ---------------------------------------------------------------------- */

static void put(struct net *net, struct net_node *node, const char *key, cJSON *value)
{
	if (value && cJSON_AddItemToObject(node->config, key, value))
		return;
	cJSON_Delete(value);
	net->status = ST_NOMEM;
}

static void put_number(struct net *net, struct net_node *node, const char *key, double value)
{
	put(net, node, key, cJSON_CreateNumber(value));
}

static void put_text(struct net *net, struct net_node *node, const char *key, const char *value)
{
	put(net, node, key, cJSON_CreateString(value));
}

static void put_numbers(struct net *net, struct net_node *node, const char *key,
			const int64_t *values, int count)
{
	cJSON *list = cJSON_CreateArray();

	put(net, node, key, list);
	if (net->status == ST_OK && !list_append_numbers(list, values, count))
		net->status = ST_NOMEM;
}

/* Put a window's options; set the size of the image after it. */
static void put_window(struct net *net, struct net_node *node, const char *key,
		       const struct net_step *s)
{
	const int64_t window[] = {max(s->rows, 1), max(s->columns, 1)};
	const int64_t stride[] = {s->stride, s->stride};
	int64_t *const sides[] = {&node->height, &node->width};

	put_numbers(net, node, key, window, 2);
	put_numbers(net, node, "strides", stride, 2);
	put_text(net, node, "padding", s->same ? "same" : "valid");
	for (int i = 0; i < 2; i++)
		*sides[i] = (*sides[i] - (s->same ? 1 : window[i]) + s->stride) / s->stride;
	if ((node->height < 1 || node->width < 1) && net->status == ST_OK) {
		net->small = node->name;
		net->status = ST_INVALID;
	}
}

static void put_kernel(struct net *net, struct net_node *node, const char *key, const char *text)
{
	if (text)
		put(net, node, key, cJSON_Parse(text));
}

static void put_conv(struct net *net, struct net_node *node, const struct net_step *s)
{
	const bool depthwise = !strcmp(node->class_name, "DepthwiseConv2D");

	if (!depthwise) {
		node->channels = (int64_t)s->number[0];
		put_number(net, node, "filters", s->number[0]);
	}
	put_window(net, node, "kernel_size", s);
	put_text(net, node, "activation", s->activation ? s->activation : "linear");
	put(net, node, "use_bias", cJSON_CreateBool(s->bias));
	if (strcmp(node->class_name, "SeparableConv2D") != 0)
		put_kernel(net, node, depthwise ? "depthwise_initializer" : "kernel_initializer",
			   net->kernel);
}

static void put_pool(struct net *net, struct net_node *node, const struct net_step *s)
{
	put_window(net, node, "pool_size", s);
}

static void put_global_pool(struct net *net, struct net_node *node, const struct net_step *s)
{
	if (s->keepdims)
		put(net, node, "keepdims", cJSON_CreateTrue());
	node->height = node->width = s->keepdims;
}

static void put_norm(struct net *net, struct net_node *node, const struct net_step *s)
{
	(void)s;
	if (net->epsilon > 0.0)
		put_number(net, node, "epsilon", net->epsilon);
	if (net->momentum > 0.0)
		put_number(net, node, "momentum", net->momentum);
	if (net->unscaled)
		put(net, node, "scale", cJSON_CreateFalse());
}

/* A step is its function's word, or "activation". */
static void put_activation(struct net *net, struct net_node *node, const struct net_step *s)
{
	put_text(net, node, "activation", s->activation);
}

/* "ReLU 6" has a bound. */
static void put_relu(struct net *net, struct net_node *node, const struct net_step *s)
{
	if (s->numbers > 0)
		put_number(net, node, "max_value", s->number[0]);
}

/* "pad 3": all sides; "pad 0 1": before and after; "pad 3x3": what TensorFlow's networks pad before
 * a convolution of stride 2 with this window so that it keeps all pixels. */
static void put_sides(struct net *net, struct net_node *node, const struct net_step *s)
{
	const bool crops = !strcmp(node->class_name, "Cropping2D");
	int64_t *const sides[] = {&node->height, &node->width};
	const int64_t size[] = {s->rows, s->columns};
	cJSON *list = cJSON_CreateArray();

	put(net, node, crops ? "cropping" : "padding", list);
	for (int i = 0; i < 2 && net->status == ST_OK; i++) {
		int64_t both[] = {(int64_t)s->number[0], (int64_t)s->number[s->numbers > 1]};
		cJSON *pair = cJSON_CreateArray();

		if (s->numbers == 0) {
			both[0] = size[i] / 2 - (*sides[i] % 2 == 0);
			both[1] = size[i] / 2;
		}
		if (!list_append(list, pair) || !list_append_numbers(pair, both, 2))
			net->status = ST_NOMEM;
		*sides[i] += (crops ? -1 : 1) * (both[0] + both[1]);
	}
}

static void put_concatenate(struct net *net, struct net_node *node, const struct net_step *s)
{
	(void)s;
	put_number(net, node, "axis", -1.0);
	for (int i = 1; i < node->input_count; i++)
		node->channels += net->nodes[node->inputs[i]].channels;
}

static void put_dense(struct net *net, struct net_node *node, const struct net_step *s)
{
	node->channels = (int64_t)s->number[0];
	put_number(net, node, "units", s->number[0]);
	put_text(net, node, "activation", s->activation);
	put_kernel(net, node, "kernel_initializer", net->dense_kernel);
}

/* "reshape 1x1 64" to an image, "reshape 64" to a vector. */
static void put_reshape(struct net *net, struct net_node *node, const struct net_step *s)
{
	const int64_t shape[] = {s->rows, s->columns, (int64_t)s->number[0]};
	const int skip = s->rows > 0 ? 0 : 2;

	put_numbers(net, node, "target_shape", shape + skip, 3 - skip);
	node->height = s->rows;
	node->width = s->columns;
}

static void put_dropout(struct net *net, struct net_node *node, const struct net_step *s)
{
	put_number(net, node, "rate", s->number[0]);
	if (s->per_item)
		put(net, node, "noise_shape", cJSON_Parse("[null,1,1,1]"));
}

/* "rescale SCALE OFFSET" */
static void put_rescaling(struct net *net, struct net_node *node, const struct net_step *s)
{
	put_number(net, node, "scale", s->number[0]);
	put_number(net, node, "offset", s->number[1]);
}

static void put_normalization(struct net *net, struct net_node *node, const struct net_step *s)
{
	(void)s;
	put_numbers(net, node, "axis", (const int64_t[]){3}, 1);
}

static const struct net_word {
	const char *word, *class_name;
	void (*put)(struct net *net, struct net_node *node, const struct net_step *step);
} net_words[] = {
	{"conv", "Conv2D", put_conv},
	{"depthwise", "DepthwiseConv2D", put_conv},
	{"separable", "SeparableConv2D", put_conv},
	{"norm", "BatchNormalization", put_norm},
	{"relu", "Activation", put_activation},
	{"swish", "Activation", put_activation},
	{"activation", "Activation", put_activation},
	{"ReLU", "ReLU", put_relu},
	{"max", "MaxPooling2D", put_pool},
	{"mean", "AveragePooling2D", put_pool},
	{"global_mean", "GlobalAveragePooling2D", put_global_pool},
	{"global_max", "GlobalMaxPooling2D", put_global_pool},
	{"pad", "ZeroPadding2D", put_sides},
	{"crop", "Cropping2D", put_sides},
	{"add", "Add", NULL},
	{"multiply", "Multiply", NULL},
	{"concatenate", "Concatenate", put_concatenate},
	{"dense", "Dense", put_dense},
	{"flatten", "Flatten", NULL},
	{"reshape", "Reshape", put_reshape},
	{"dropout", "Dropout", put_dropout},
	{"rescale", "Rescaling", put_rescaling},
	{"standardize", "Normalization", put_normalization},
};

/* ---- nodes ----------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 0))) static char *net_format(struct net *net, const char *format,
							      va_list args)
{
	static char none[] = "";
	char *text = arena_vprintf(&net->arena, format, args);

	if (text)
		return text;
	net->status = ST_NOMEM;
	return none;
}

const char *net_text(struct net *net, const char *format, ...)
{
	const char *text;
	va_list args;

	va_start(args, format);
	text = net_format(net, format, args);
	va_end(args);
	return text;
}

/* "ZeroPadding2D" becomes "zero_padding2d"; from the second of the class on, a number is added. */
static const char *default_name(struct net *net, const char *class_name)
{
	char base[64];
	size_t used = 0;
	int before = 0;

	for (const char *c = class_name; *c && used + 2 < sizeof(base); c++) {
		if (c > class_name && isupper((unsigned char)*c) && islower((unsigned char)c[-1]))
			base[used++] = '_';
		base[used++] = (char)tolower((unsigned char)*c);
	}
	base[used] = '\0';
	for (int i = 0; i < net->count; i++) {
		const char *name = net->nodes[i].name;

		before += !strcmp(net->nodes[i].class_name, class_name) &&
			  !strncmp(name, base, used) && (!name[used] || name[used] == '_');
	}
	return before ? net_text(net, "%s_%d", base, before) : net_text(net, "%s", base);
}

/* The name that "as" gives: each # becomes the net's id. */
static const char *given_name(struct net *net, const char *name)
{
	const char *sign = strchr(name, '#');

	return sign ? net_text(net, "%.*s%s%s", (int)(sign - name), name, net->id, sign + 1) : name;
}

/* Append a node; NULL: a failure. */
static struct net_node *append(struct net *net, const char *class_name, const char *name,
			       const int *from, int count)
{
	struct net_node *node;

	if (net->status == ST_OK &&
	    mem_grow(&net->nodes, &net->capacity, (size_t)net->count + 1, sizeof(*node)))
		net->status = ST_NOMEM;
	if (net->status != ST_OK)
		return NULL;
	node = &net->nodes[net->count];
	*node = count ? net->nodes[from[0]] : (struct net_node){0};
	node->class_name = class_name;
	node->name = name ? given_name(net, name) : default_name(net, class_name);
	node->inputs = arena_alloc(&net->arena, (size_t)count + 1, sizeof(*node->inputs));
	node->input_count = count;
	node->config = cJSON_CreateObject();
	if (!node->inputs || net->status != ST_OK ||
	    !cJSON_AddStringToObject(node->config, "name", node->name)) {
		cJSON_Delete(node->config);
		net->status = ST_NOMEM;
		return NULL;
	}
	for (int i = 0; i < count; i++)
		node->inputs[i] = from[i];
	net->count++;
	return node;
}

void net_init(struct net *net, int64_t height, int64_t width, int64_t channels, int64_t batch)
{
	const int64_t shape[] = {batch, height, width, channels};
	struct net_node *input;
	cJSON *list;

	*net = (struct net){.id = "", .activation = ""};
	if (arena_init(&net->arena, 0))
		net->status = ST_NOMEM;
	input = append(net, "InputLayer", "input_1", NULL, 0);
	if (!input)
		return;
	input->height = height;
	input->width = width;
	input->channels = channels;
	list = cJSON_CreateArray();
	put(net, input, "batch_input_shape", list);
	if (net->status == ST_OK &&
	    (!list_append(list, batch ? cJSON_CreateNumber((double)batch) : cJSON_CreateNull()) ||
	     !list_append_numbers(list, shape + 1, 3)))
		net->status = ST_NOMEM;
}

void net_fini(struct net *net)
{
	for (int i = 0; i < net->count; i++)
		cJSON_Delete(net->nodes[i].config);
	mem_free(net->nodes);
	arena_fini(&net->arena);
}

int net_channels(const struct net *net, int node)
{
	return net->status == ST_OK ? (int)net->nodes[node].channels : 1;
}

/* ---- reading a text -------------------------------------------------------------------------- */

/* Move past the next word and return a copy of it; NULL: the next sign comes first. */
static const char *next_word(struct net *net, const char **text)
{
	const char *word = *text + strspn(*text, " ");
	const size_t length = strcspn(word, " ,[|]");

	*text = word + length;
	return length ? net_text(net, "%.*s", (int)length, word) : NULL;
}

/* Read "64" or "1/255"; false: it is no number. */
static bool read_number(const char *word, double *out)
{
	char *end;

	*out = strtod(word, &end);
	if (end != word && *end == '/')
		*out /= strtod(end + 1, &end);
	return end != word && *end == '\0';
}

static void read_argument(const struct net *net, struct net_step *step, const char *word)
{
	int rows, columns;
	double number;

	assert(step->numbers < NET_NUMBERS);
	if (!strcmp(word, "same"))
		step->same = true;
	else if (!strcmp(word, "bias"))
		step->bias = true;
	else if (!strcmp(word, "keepdims"))
		step->keepdims = true;
	else if (!strcmp(word, "per_item"))
		step->per_item = true;
	else if (!strcmp(word, "activation"))
		step->activation = net->activation;
	else if (!strcmp(word, "filters"))
		step->number[step->numbers++] = (double)net->filters;
	else if (!strcmp(word, "classes"))
		step->number[step->numbers++] = (double)net->classes;
	else if (sscanf(word, "%dx%d", &rows, &columns) == 2) {
		step->rows = rows;
		step->columns = columns;
	} else if (word[0] == '/')
		step->stride = atoi(word + 1);
	else if (read_number(word, &number))
		step->number[step->numbers++] = number;
	else
		step->activation = word;
}

/* Read a layer: its word, the others up to the next sign. */
static struct net_step read_step(struct net *net, const char **text)
{
	struct net_step step = {.stride = 1};
	const char *word = next_word(net, text);

	for (size_t i = 0; word && i < ARRAY_LEN(net_words); i++)
		if (!strcmp(net_words[i].word, word))
			step.word = &net_words[i];
	assert(step.word || net->status != ST_OK);
	if (step.word && step.word->put == put_activation)
		read_argument(net, &step, word);
	while ((word = next_word(net, text)))
		if (!strcmp(word, "as"))
			step.name = next_word(net, text);
		else
			read_argument(net, &step, word);
	return step;
}

/* Append the next layer of @text to the nodes @from; return its node. */
static int add_layer(struct net *net, const char **text, const int *from, int count)
{
	const struct net_step step = read_step(net, text);
	struct net_node *node = NULL;

	if (net->status == ST_OK)
		node = append(net, step.word->class_name, step.name, from, count);
	if (!node)
		return 0;
	if (step.word->put)
		step.word->put(net, node, &step);
	return (int)(node - net->nodes);
}

int net_add(struct net *net, int from, const char *format, ...)
{
	struct {
		int input, outputs[NET_BRANCHES], count;
	} brackets[NET_DEEP], *open = brackets;
	const char *text;
	va_list args;
	int at = from;

	va_start(args, format);
	text = net_format(net, format, args);
	va_end(args);
	while (net->status == ST_OK && *(text += strspn(text, " ,"))) {
		if (*text == '[') {
			assert(open < brackets + NET_DEEP);
			open->input = at;
			open++->count = 0;
			text++;
		} else if (*text == '|' || *text == ']') {
			assert(open > brackets && open[-1].count < NET_BRANCHES);
			open[-1].outputs[open[-1].count++] = at;
			at = open[-1].input;
			if (*text++ == '|')
				continue;
			open--;
			at = add_layer(net, &text, open->outputs, open->count);
		} else if (str_starts_with(text, "at ")) {
			at = (int)strtol(text + 3, (char **)&text, 10);
		} else {
			at = add_layer(net, &text, &at, 1);
		}
	}
	return at;
}

/* ---- writing the model ----------------------------------------------------------------------- */

/* Like Keras, number layers in depth-first order from the output, the first input's branch
 * first. */
static enum status number_layers(struct net *net, int output)
{
	int *stack, top = 0, number = 0, edges = 1;

	for (int i = 0; i < net->count; i++) {
		edges += net->nodes[i].input_count;
		net->nodes[i].index = -1;
		net->nodes[i].depth = 0;
	}
	stack = mem_calloc((size_t)edges, sizeof(*stack));
	if (!stack)
		return ST_NOMEM;
	stack[top++] = output;
	while (top > 0) {
		struct net_node *node = &net->nodes[stack[--top]];

		if (node->index >= 0)
			continue;
		node->index = number++;
		for (int i = node->input_count - 1; i >= 0; i--)
			stack[top++] = node->inputs[i];
	}
	mem_free(stack);

	/* Inputs precede their consumers. */
	for (int i = net->count - 1; i >= 0; i--)
		for (int k = 0; k < net->nodes[i].input_count; k++) {
			struct net_node *from = &net->nodes[net->nodes[i].inputs[k]];

			if (from->depth <= net->nodes[i].depth)
				from->depth = net->nodes[i].depth + 1;
		}
	return ST_OK;
}

static int compare_layers(const void *a, const void *b)
{
	const struct net_node *x = *(const struct net_node *const *)a;
	const struct net_node *y = *(const struct net_node *const *)b;

	return x->depth != y->depth ? SORTED_BY(y, x, depth) : SORTED_BY(x, y, index);
}

/* ["NAME", 0, 0] */
static cJSON *tensor_of(const struct net_node *node)
{
	cJSON *tensor = cJSON_CreateArray();

	if (list_append(tensor, cJSON_CreateString(node->name)) &&
	    list_append_numbers(tensor, (int64_t[]){0, 0}, 2))
		return tensor;
	cJSON_Delete(tensor);
	return NULL;
}

static bool put_inbound(const struct net *net, const struct net_node *node, cJSON *layer)
{
	cJSON *calls = cJSON_AddArrayToObject(layer, "inbound_nodes"), *call;

	if (!calls || !node->input_count)
		return calls;
	call = cJSON_CreateArray();
	if (!list_append(calls, call))
		return false;
	for (int i = 0; i < node->input_count; i++) {
		cJSON *tensor = tensor_of(&net->nodes[node->inputs[i]]);

		if (!list_append(call, tensor) || !list_append(tensor, cJSON_CreateObject()))
			return false;
	}
	return true;
}

static bool put_layer(const struct net *net, struct net_node *node, cJSON *layers)
{
	cJSON *layer = cJSON_CreateObject();

	if (!list_append(layers, layer) ||
	    !cJSON_AddStringToObject(layer, "class_name", node->class_name) ||
	    !cJSON_AddItemToObject(layer, "config", node->config))
		return false;
	node->config = NULL;
	return cJSON_AddStringToObject(layer, "name", node->name) && put_inbound(net, node, layer);
}

static bool put_ends(const struct net *net, int output, cJSON *config)
{
	cJSON *in = cJSON_AddArrayToObject(config, "input_layers");
	cJSON *out = cJSON_AddArrayToObject(config, "output_layers");

	return in && out && list_append(in, tensor_of(&net->nodes[0])) &&
	       list_append(out, tensor_of(&net->nodes[output]));
}

static bool put_layers(const struct net *net, cJSON *config)
{
	cJSON *layers = cJSON_AddArrayToObject(config, "layers");
	struct net_node **order = mem_calloc((size_t)net->count, sizeof(*order));
	bool done = layers && order;

	for (int i = 0; done && i < net->count; i++)
		order[i] = &net->nodes[i];
	if (done)
		qsort(order, (size_t)net->count, sizeof(*order), compare_layers);
	for (int i = 0; done && i < net->count; i++)
		done = put_layer(net, order[i], layers);
	mem_free(order);
	return done;
}

enum status net_finish(struct net *net, const char *model_name, int output, cJSON **out,
		       struct err *err)
{
	cJSON *model, *config;

	*out = NULL;
	if (net->status == ST_INVALID)
		return err_set(err, ST_INVALID,
			       "the image is too small: nothing is left of it at layer \"%s\"",
			       net->small);
	if (net->status != ST_OK || number_layers(net, output) != ST_OK)
		return err_nomem(err);

	model = cJSON_CreateObject();
	cJSON_AddStringToObject(model, "class_name", "Functional");
	config = cJSON_AddObjectToObject(model, "config");
	if (!config || cJSON_GetArraySize(model) != 2 ||
	    !cJSON_AddStringToObject(config, "name", model_name) || !put_layers(net, config) ||
	    !put_ends(net, output, config)) {
		cJSON_Delete(model);
		return err_nomem(err);
	}
	*out = model;
	return ST_OK;
}
