/*
 * The parts of a run: options, layers, optimizer and losses, data.
 */
#include "fuzz_grammar.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fs.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/npz_writer.h"
#include "common/rng.h"
#include "common/str.h"
#include "model/layers/layer.h"
#include "model/learn/loss.h"
#include "model/learn/metric.h"
#include "model/learn/optimizer.h"

#define LAYERS_MOST  10
#define VALUES_MOST  2048 /* of a tensor's item */
#define WEIGHTS_MOST 20000

/* ---- drawing --------------------------------------------------------------------------------- */

void draw_init(struct draw *draw, const uint8_t *bytes, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	*draw = (struct draw){.bytes = bytes, .size = size};
	rng_init(&draw->beyond, hash, rng_stream("draw"), 0, 0);
}

unsigned draw_below(struct draw *draw, unsigned bound)
{
	return draw->at < draw->size ? draw->bytes[draw->at++] % bound
				     : rng_below(&draw->beyond, bound);
}

bool draw_one_in(struct draw *draw, unsigned bound)
{
	return draw_below(draw, bound) == bound - 1;
}

const char *draw_word(struct draw *draw, const char *words)
{
	static char word[64];
	unsigned count = 1;

	for (const char *at = words; *at; at++)
		count += *at == ' ';
	for (unsigned skip = draw_below(draw, count); skip; skip--)
		words = strchr(words, ' ') + 1;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(words, " "), words);
	return word;
}

void grammar_check_refusal(const char *what, const struct err *err)
{
	if (err->status != ST_OK && err->text[0] && !strchr(err->text, '\n') &&
	    strlen(err->text) < ERR_TEXT_SIZE - 1)
		return;
	fprintf(stderr, "%s: is refused (status %d) with \"%s\"\n", what, (int)err->status,
		err->text);
	abort();
}

/* ---- values of options ----------------------------------------------------------------------- */

static const char activations[] =
	"elu exponential gelu hard_sigmoid leaky_relu linear log_softmax "
	"mish relu relu6 selu sigmoid softmax softplus softsign swish tanh";
static const char initializers[] =
	"glorot_uniform he_normal lecun_uniform zeros ones random_uniform orthogonal "
	"truncated_normal random_normal";

/* The values of options that a layer reads itself (MODEL_ANY). Others get any(). */
static const struct hint {
	const char *ending; /* of the key */
	bool always;        /* the layer does not go without it */
	enum {
		HINT_WORD, /* one of `words` */
		HINT_BOOL,
		HINT_SIDES, /* 1 to 4, or two of them */
		HINT_SIDE,
		HINT_SHARE, /* 0 to 1 */
		HINT_FACTOR,
		HINT_ORDER, /* a permutation of the dimensions */
		HINT_SHAPE, /* of as many values as the input has */
		HINT_NOTHING
	} kind;
	const char *words;
} hints[] = {
	{"initializer", false, HINT_WORD, initializers},
	{"regularizer", false, HINT_WORD, "l1 l2 L1L2"},
	{"activation", false, HINT_WORD, activations},
	{"kernel_size", true, HINT_SIDES, NULL},
	{"pool_size", true, HINT_SIDES, NULL},
	{"strides", false, HINT_SIDES, NULL},
	{"dilation_rate", false, HINT_SIDES, NULL},
	{"cropping", false, HINT_SIDES, NULL},
	{"size", false, HINT_SIDES, NULL},
	{"padding", false, HINT_WORD, "same valid causal"},
	{"target_shape", true, HINT_SHAPE, NULL},
	{"dims", true, HINT_ORDER, NULL},
	{"rate", true, HINT_SHARE, NULL},
	{"dropout", false, HINT_SHARE, NULL},
	{"n", true, HINT_SIDE, NULL},
	{"height", true, HINT_SIDE, NULL},
	{"width", true, HINT_SIDE, NULL},
	{"factor", true, HINT_FACTOR, NULL},
	{"fill_mode", false, HINT_WORD, "reflect wrap constant nearest"},
	{"interpolation", false, HINT_WORD, "bilinear nearest"},
	{"mode", false, HINT_WORD, "horizontal vertical horizontal_and_vertical"},
	{"axis", false, HINT_SIDE, NULL},
	{"seed", false, HINT_SIDE, NULL},
	{"return_state", false, HINT_BOOL, NULL},
	{"reset_after", false, HINT_BOOL, NULL},
	{"use_causal_mask", false, HINT_BOOL, NULL},
	{"trainable", false, HINT_BOOL, NULL},
	{"name", false, HINT_NOTHING, NULL},
};

static const struct hint *hint_find(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
		const size_t length = strlen(hints[i].ending), whole = strlen(key);

		if (whole >= length && !strcmp(key + whole - length, hints[i].ending) &&
		    (whole == length || key[whole - length - 1] == '_'))
			return &hints[i];
	}
	return NULL;
}

static cJSON *side(struct draw *draw)
{
	return cJSON_CreateNumber(1 + draw_below(draw, 4));
}

static cJSON *share(struct draw *draw)
{
	static const double shares[] = {0.5, 0.1, 0.25, 0.9, 0.0, 1.0};

	return cJSON_CreateNumber(shares[draw_below(draw, ARRAY_LEN(shares))]);
}

static cJSON *factor(struct draw *draw)
{
	return cJSON_CreateNumber((draw_below(draw, 21) - 10.0) / 10.0);
}

static cJSON *two_of(cJSON *(*one)(struct draw *draw), struct draw *draw)
{
	cJSON *list;

	if (!draw_one_in(draw, 3))
		return one(draw);
	list = cJSON_CreateArray();
	cJSON_AddItemToArray(list, one(draw));
	cJSON_AddItemToArray(list, one(draw));
	return list;
}

/* A value of any kind, for what nothing is known of. */
static cJSON *any(struct draw *draw)
{
	switch (draw_below(draw, 4)) {
	case 0:
		return cJSON_CreateBool(draw_one_in(draw, 2));
	case 1:
		return two_of(side, draw);
	case 2:
		return two_of(factor, draw);
	default:
		return share(draw);
	}
}

static cJSON *permutation(struct draw *draw, int ndim)
{
	cJSON *list = cJSON_CreateArray();
	int dims[MODEL_DIMS];

	for (int i = 0; i < ndim; i++)
		dims[i] = i + 1;
	for (int i = 0; i < ndim; i++) {
		const int other = i + (int)draw_below(draw, (unsigned)(ndim - i));
		const int dim = dims[other];

		dims[other] = dims[i];
		dims[i] = dim;
		cJSON_AddItemToArray(list, cJSON_CreateNumber(dim));
	}
	return list;
}

/* @count as a product of one to three sides, the last of which may be left open. */
static cJSON *factors(struct draw *draw, int64_t count)
{
	cJSON *list = cJSON_CreateArray();

	for (unsigned more = draw_below(draw, 3); more; more--) {
		int64_t divisor = 1 + draw_below(draw, 6);

		while (count % divisor != 0)
			divisor--;
		cJSON_AddItemToArray(list, cJSON_CreateNumber((double)divisor));
		count /= divisor;
	}
	cJSON_AddItemToArray(list, cJSON_CreateNumber(draw_one_in(draw, 4) ? -1.0 : (double)count));
	return list;
}

static cJSON *hinted(struct draw *draw, const struct hint *hint, const struct model_shape *input)
{
	switch (hint->kind) {
	case HINT_WORD:
		return cJSON_CreateString(draw_word(draw, hint->words));
	case HINT_BOOL:
		return cJSON_CreateBool(draw_one_in(draw, 2));
	case HINT_SIDES:
		return two_of(side, draw);
	case HINT_SIDE:
		return side(draw);
	case HINT_SHARE:
		return share(draw);
	case HINT_FACTOR:
		return two_of(factor, draw);
	case HINT_ORDER:
		return permutation(draw, input->ndim);
	case HINT_SHAPE:
		return factors(draw, model_shape_count(input));
	default:
		return NULL;
	}
}

/* A number within the option's bounds, small where they allow it. */
static cJSON *bounded(struct draw *draw, const struct model_option *option)
{
	static const double values[] = {0.5, 0.0, 1.0, 0.1, 1e-3, 2.0, 0.99, 1e-7};
	double value = option->rule == MODEL_INT ? option->least + draw_below(draw, 8)
						 : values[draw_below(draw, ARRAY_LEN(values))];

	if (option->least < option->most)
		value = fmin(fmax(value, option->least), option->most);
	return cJSON_CreateNumber(value);
}

/* NULL: the option has no value but its default. */
static cJSON *option_value(struct draw *draw, const struct model_option *option,
			   const struct model_shape *input)
{
	const struct hint *hint = hint_find(option->key);
	unsigned count = 0;

	switch (option->rule) {
	case MODEL_BOOL:
		return cJSON_CreateBool(draw_one_in(draw, 2));
	case MODEL_INT:
	case MODEL_REAL:
	case MODEL_FLOAT:
		return bounded(draw, option);
	case MODEL_TEXT:
		return cJSON_CreateString(draw_word(draw, "queue other"));
	case MODEL_CHOICE:
		while (option->choices[count])
			count++;
		return cJSON_CreateString(option->choices[draw_below(draw, count)]);
	case MODEL_DTYPE:
		return cJSON_CreateString(draw_word(draw, "float32 mixed_float16 mixed_bfloat16"));
	case MODEL_ANY:
		return hint ? hinted(draw, hint, input) : any(draw);
	default:
		return NULL;
	}
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* A model while it grows. */
struct growing {
	struct draw *draw;
	bool functional;
	int64_t batch; /* that its inputs fix; 0: none */
	cJSON *layers;
	int inputs;
	struct tensor {
		char layer[32];
		int call;
		struct model_shape shape;
	} tensors[LAYERS_MOST + 4];
	int count;
};

static void set(cJSON *object, const char *key, cJSON *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(object, key);
	cJSON_AddItemToObject(object, key, value);
}

static cJSON *reference(const struct tensor *tensor)
{
	cJSON *list = cJSON_CreateArray();

	cJSON_AddItemToArray(list, cJSON_CreateString(tensor->layer));
	cJSON_AddItemToArray(list, cJSON_CreateNumber(tensor->call));
	cJSON_AddItemToArray(list, cJSON_CreateNumber(0));
	return list;
}

static void set_shape(cJSON *config, const struct growing *g, const struct model_shape *shape)
{
	cJSON *list = cJSON_CreateArray();

	cJSON_AddItemToArray(list,
			     g->batch ? cJSON_CreateNumber((double)g->batch) : cJSON_CreateNull());
	for (int i = 0; i < shape->ndim; i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber((double)shape->dim[i]));
	set(config, "batch_input_shape", list);
}

/* The model that ends with these tensors; a copy of the layers. */
static cJSON *model_json(const struct growing *g, const int *ends, int count)
{
	cJSON *model = cJSON_CreateObject(), *config = cJSON_CreateObject(), *list;

	set(model, "class_name", cJSON_CreateString(g->functional ? "Functional" : "Sequential"));
	set(model, "config", config);
	set(config, "name", cJSON_CreateString("model"));
	set(config, "layers", cJSON_Duplicate(g->layers, true));
	if (!g->functional)
		return model;
	list = cJSON_AddArrayToObject(config, "input_layers");
	for (int i = 0; i < g->inputs; i++)
		cJSON_AddItemToArray(list, reference(&g->tensors[i]));
	list = cJSON_AddArrayToObject(config, "output_layers");
	for (int i = 0; i < count; i++)
		cJSON_AddItemToArray(list, reference(&g->tensors[ends[i]]));
	return model;
}

/* Read the model that ends with these tensors; NULL: it is refused, or larger than wanted. */
static struct model *read_model(const struct growing *g, const int *ends, int count)
{
	cJSON *json = model_json(g, ends, count);
	const struct json_at root = json_root("fuzz", json);
	struct model *model;
	struct err err;

	if (model_new(&model, &root, NULL, &err) != ST_OK)
		grammar_check_refusal("a model", &err);
	if (model && model->weights > WEIGHTS_MOST) {
		model_free(model);
		model = NULL;
	}
	for (int i = 0; model && i < model->layer_count; i++)
		if (model_shape_count(&model->layers[i].output) > VALUES_MOST) {
			model_free(model);
			model = NULL;
		}
	cJSON_Delete(json);
	return model;
}

/* Whether the model still reads with the last tensor as its end; its shape is noted. */
static bool last_reads(struct growing *g)
{
	const int last = g->count - 1;
	struct model *model = read_model(g, &last, 1);

	if (model)
		g->tensors[last].shape = model->outputs[0].shape;
	model_free(model);
	return model != NULL;
}

static void add_input(struct growing *g)
{
	struct draw *draw = g->draw;
	struct tensor *tensor = &g->tensors[g->count++];
	cJSON *entry = cJSON_CreateObject(), *config = cJSON_CreateObject();

	*tensor = (struct tensor){.shape.ndim = 1 + (int)draw_below(draw, 3)};
	snprintf(tensor->layer, sizeof(tensor->layer), "input_%d", g->inputs++);
	for (int i = 0; i < tensor->shape.ndim; i++)
		tensor->shape.dim[i] = 1 + draw_below(draw, 7);
	set(config, "name", cJSON_CreateString(tensor->layer));
	set_shape(config, g, &tensor->shape);
	set(entry, "class_name", cJSON_CreateString("InputLayer"));
	set(entry, "config", config);
	set(entry, "name", cJSON_CreateString(tensor->layer));
	set(entry, "inbound_nodes", cJSON_CreateArray());
	cJSON_AddItemToArray(g->layers, entry);
}

/* A tensor that a layer may take beside @first: mostly one of its shape. */
static int like(const struct growing *g, int first)
{
	int other = (int)draw_below(g->draw, (unsigned)g->count);

	for (int i = 0; i < g->count; i++, other = (other + 1) % g->count)
		if (!memcmp(&g->tensors[other].shape, &g->tensors[first].shape,
			    sizeof(g->tensors[first].shape)))
			return other;
	return other;
}

/* A call of @ops (NULL: a wrapper) on the tensor @first, and others as it needs them. */
static cJSON *call_json(const struct growing *g, const struct layer_ops *ops, int first)
{
	const int least = ops && ops->least_inputs ? ops->least_inputs : 1;
	const int most = ops && ops->most_inputs ? ops->most_inputs : 1;
	cJSON *call = cJSON_CreateArray(), *more = cJSON_CreateObject(), *input = NULL;
	int count = least;

	if (most > least)
		count += (int)draw_below(g->draw,
					 (unsigned)(most - least > 2 ? 3 : most - least + 1));
	for (int i = 0; i < count; i++) {
		input = reference(&g->tensors[i ? like(g, first) : first]);
		if (i == 0)
			cJSON_AddItemToArray(input, more);
		else
			cJSON_AddItemToArray(input, cJSON_CreateObject());
		cJSON_AddItemToArray(call, input);
	}
	/* Arguments that a call may have; a layer without them refuses them. */
	if (draw_one_in(g->draw, 4))
		cJSON_AddItemToObject(more, "value", reference(&g->tensors[like(g, first)]));
	if (draw_one_in(g->draw, 16))
		cJSON_AddItemToObject(more, "training", cJSON_CreateBool(false));
	if (draw_one_in(g->draw, 16))
		cJSON_AddItemToObject(more, "use_causal_mask", cJSON_CreateBool(true));
	return call;
}

/* Options that the layer does not go without; with @all others that are read by the layer. */
static void set_needed(cJSON *config, struct draw *draw, const struct layer_ops *ops,
		       const struct model_shape *input, bool all)
{
	for (size_t i = 0; i < ops->options.count; i++) {
		const struct model_option *option = &ops->options.rows[i];
		const struct hint *hint = option->rule == MODEL_ANY ? hint_find(option->key) : NULL;
		const bool needed = option->required || (hint && hint->always) ||
				    (all && option->rule == MODEL_ANY && !hint);
		cJSON *value = needed ? option_value(draw, option, input) : NULL;

		if (value)
			set(config, option->key, value);
	}
}

/* Options that are set where the model still reads with them. */
static void try_options(struct growing *g, cJSON *config, const struct layer_ops *ops,
			const struct model_shape *input)
{
	static const struct model_option common[] = {{"trainable", .rule = MODEL_BOOL},
						     {"dtype", .rule = MODEL_DTYPE}};

	for (size_t i = 0; i < ops->options.count + ARRAY_LEN(common); i++) {
		const struct model_option *option = i < ops->options.count
							    ? &ops->options.rows[i]
							    : &common[i - ops->options.count];
		cJSON *value, *before;

		if (!draw_one_in(g->draw, i < ops->options.count ? 3 : 12))
			continue;
		value = option_value(g->draw, option, input);
		if (!value)
			continue;
		before = cJSON_DetachItemFromObjectCaseSensitive(config, option->key);
		cJSON_AddItemToObject(config, option->key, value);
		if (last_reads(g)) {
			cJSON_Delete(before);
			continue;
		}
		cJSON_DeleteItemFromObjectCaseSensitive(config, option->key);
		if (before)
			cJSON_AddItemToObject(config, option->key, before);
	}
}

static const char *draw_class(struct draw *draw)
{
	int count;
	const char *const *names = layer_names(&count);

	return names[draw_below(draw, (unsigned)count)];
}

/* Add a layer on one of the tensors; take it back where the model does not read with it. */
static void add_layer(struct growing *g, const char *class_name)
{
	struct draw *draw = g->draw;
	const int last = g->count - 1;
	const int first = g->functional && draw_one_in(draw, 3)
				  ? (int)draw_below(draw, (unsigned)g->count)
				  : last;
	const struct layer_ops *ops = layer_find(class_name), *inner = ops;
	const struct model_shape input = g->tensors[first].shape;
	struct tensor *tensor = &g->tensors[g->count++];
	cJSON *entry = cJSON_CreateObject(), *config = cJSON_CreateObject(), *own = config;
	bool reads;

	*tensor = (struct tensor){.call = 0};
	snprintf(tensor->layer, sizeof(tensor->layer), "layer_%d", g->count);
	set(config, "name", cJSON_CreateString(tensor->layer));
	set(entry, "class_name", cJSON_CreateString(class_name));
	set(entry, "config", config);
	set(entry, "name", cJSON_CreateString(tensor->layer));
	if (g->functional)
		cJSON_AddItemToArray(cJSON_AddArrayToObject(entry, "inbound_nodes"),
				     call_json(g, ops, first));
	cJSON_AddItemToArray(g->layers, entry);
	if (!ops) { /* a wrapper */
		const char *wrapped = draw_class(draw);
		cJSON *layer = cJSON_CreateObject();

		inner = layer_find(wrapped);
		own = cJSON_CreateObject();
		set(layer, "class_name", cJSON_CreateString(wrapped));
		set(layer, "config", own);
		set(config, "layer", layer);
		if (draw_one_in(draw, 3))
			set(config, "merge_mode",
			    cJSON_CreateString(draw_word(draw, "concat sum mul ave")));
	}
	if (inner)
		set_needed(own, draw, inner, &input, false);
	reads = last_reads(g);
	if (!reads && inner) {
		set_needed(own, draw, inner, &input, true);
		reads = last_reads(g);
	}
	if (reads && inner)
		try_options(g, own, inner, &input);
	else if (!reads) {
		cJSON_DeleteItemFromArray(g->layers, cJSON_GetArraySize(g->layers) - 1);
		g->count--;
	}
}

/* Call an earlier layer again, on another tensor. */
static void call_again(struct growing *g)
{
	const int of = (int)draw_below(g->draw, (unsigned)g->count), last = g->count - 1;
	cJSON *entry = NULL, *calls;
	struct tensor *tensor;

	cJSON_ArrayForEach(entry, g->layers)
	{
		const cJSON *name = cJSON_GetObjectItemCaseSensitive(entry, "name");

		if (!strcmp(name->valuestring, g->tensors[of].layer))
			break;
	}
	if (of < g->inputs || !entry || g->tensors[of].call != 0)
		return;
	calls = cJSON_GetObjectItemCaseSensitive(entry, "inbound_nodes");
	tensor = &g->tensors[g->count++];
	*tensor = (struct tensor){.call = cJSON_GetArraySize(calls)};
	str_copy(tensor->layer, sizeof(tensor->layer), g->tensors[of].layer);
	cJSON_AddItemToArray(
		calls, call_json(g,
				 layer_find(cJSON_GetObjectItemCaseSensitive(entry, "class_name")
						    ->valuestring),
				 last));
	if (!last_reads(g)) {
		cJSON_DeleteItemFromArray(calls, tensor->call);
		g->count--;
	}
}

/* Grow a model, and read it with one output or two. */
static cJSON *make_model(struct grammar *grammar, struct draw *draw, int64_t batch)
{
	struct growing g = {.draw = draw, .layers = cJSON_CreateArray()};
	int ends[2], outputs = 1;
	cJSON *json = NULL;

	g.functional = draw_one_in(draw, 2);
	g.batch = draw_one_in(draw, 4) ? batch : 0;
	add_input(&g);
	if (g.functional && draw_one_in(draw, 4))
		add_input(&g);
	for (unsigned layers = 1 + draw_below(draw, LAYERS_MOST - 2), tried = 0;
	     g.count - g.inputs < (int)layers && tried < 4 * layers && draw->at < draw->size;
	     tried++)
		if (g.functional && draw_one_in(draw, 12))
			call_again(&g);
		else
			add_layer(&g, draw_class(draw));
	if (!draw_one_in(draw, 4)) {
		add_layer(&g, "Flatten");
		add_layer(&g, "Dense");
	}
	ends[0] = g.count - 1;
	ends[1] = (int)draw_below(draw, (unsigned)g.count);
	if (g.functional && ends[1] >= g.inputs && ends[1] != ends[0] && draw_one_in(draw, 2))
		outputs = 2;
	if (ends[0] >= g.inputs)
		grammar->model = read_model(&g, ends, outputs);
	if (grammar->model)
		json = model_json(&g, ends, outputs);
	cJSON_Delete(g.layers);
	return json;
}

/* ---- what learns ----------------------------------------------------------------------------- */

static bool accepts(const char *what, enum status status, const struct err *err)
{
	if (status != ST_OK)
		grammar_check_refusal(what, err);
	return status == ST_OK;
}

static bool optimizer_reads(const cJSON *json)
{
	const struct json_at root = json_root("fuzz", json);
	struct optimizer optimizer;
	struct err err;

	return accepts("an optimizer", optimizer_get(&optimizer, &root, &err), &err);
}

static bool loss_reads(const cJSON *json)
{
	const struct json_at root = json_root("fuzz", json);
	struct loss loss;
	struct err err;

	return accepts("a loss", loss_get(&loss, &root, &err), &err);
}

/* Set one of @keys to a number, true or false where @reads still accepts it. */
static void try_keys(struct draw *draw, cJSON *whole, cJSON *config, const char *keys,
		     bool (*reads)(const cJSON *json))
{
	static const double values[] = {0.0, 0.5, 0.9, 1.0, 1e-3, 2.0, 1024.0};

	for (unsigned tries = draw_below(draw, 4); tries; tries--) {
		const char *key = draw_word(draw, keys);
		const unsigned value = draw_below(draw, ARRAY_LEN(values) + 1);

		set(config, key,
		    value < ARRAY_LEN(values) ? cJSON_CreateNumber(values[value])
					      : cJSON_CreateBool(true));
		if (!reads(whole))
			cJSON_DeleteItemFromObjectCaseSensitive(config, key);
	}
}

static cJSON *named(const char *class_name, cJSON *config)
{
	cJSON *object = cJSON_CreateObject();

	set(object, "class_name", cJSON_CreateString(class_name));
	set(object, "config", config);
	return object;
}

static cJSON *make_optimizer(struct draw *draw)
{
	static const char keys[] =
		"momentum nesterov rho epsilon centered beta_1 beta_2 amsgrad weight_decay_rate "
		"initial_accumulator_value decay weight_decay clipvalue clipnorm global_clipnorm "
		"loss_scale_factor";
	const struct optimizer kind = {
		.kind = (enum optimizer_kind)draw_below(draw, OPTIMIZER_KINDS)};
	cJSON *config = cJSON_CreateObject(), *optimizer = named(optimizer_name(&kind), config);
	cJSON *scaled;

	set(config, "learning_rate", share(draw));
	try_keys(draw, optimizer, config, keys, optimizer_reads);
	if (!draw_one_in(draw, 6))
		return optimizer;
	config = cJSON_CreateObject();
	scaled = named(OPTIMIZER_LOSS_SCALE, config);
	set(config, "inner_optimizer", optimizer);
	if (!optimizer_reads(scaled))
		return scaled;
	try_keys(draw, scaled, config, "dynamic initial_scale dynamic_growth_steps",
		 optimizer_reads);
	return scaled;
}

static cJSON *make_loss(struct draw *draw, struct loss *loss)
{
	cJSON *config = cJSON_CreateObject(), *json;

	*loss = loss_of((enum loss_kind)draw_below(draw, LOSS_KINDS));
	json = named(loss_class_name(loss), config);
	try_keys(draw, json, config,
		 "from_logits label_smoothing ignore_class delta gamma alpha apply_class_balancing",
		 loss_reads);
	return json;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* The values of inputs. */
enum values {
	VALUES_SMALL,  /* -1 to 1 */
	VALUES_TOKENS, /* 0 to 3 */
	VALUES_PADDED, /* half of them 0 */
	VALUES_LARGE,  /* up to 1e4 */
	VALUES_WILD,   /* NaN, infinities, denormals among them */
	VALUES_KINDS
};

static float value(struct rng *rng, enum values kind)
{
	static const float wild[] = {NAN, INFINITY, -INFINITY, 1e-40f, -0.0f, 3e38f};
	const float small = 2.0f * rng_uniform(rng) - 1.0f;

	switch (kind) {
	case VALUES_TOKENS:
		return (float)rng_below(rng, 4);
	case VALUES_PADDED:
		return rng_below(rng, 2) ? small : 0.0f;
	case VALUES_LARGE:
		return 1e4f * small;
	case VALUES_WILD:
		return rng_below(rng, 40) ? small : wild[rng_below(rng, ARRAY_LEN(wild))];
	default:
		return small;
	}
}

static bool write_array(struct npz_writer *file, const char *name, enum dtype type, int64_t items,
			const int64_t *dims, int ndim, const void *values, size_t bytes)
{
	struct npz_member member = {.name = name, .type = type, .ndim = 1 + ndim, .dim = {items}};

	for (int i = 0; i < ndim; i++)
		member.dim[1 + i] = dims[i];
	return npz_writer_begin(file, &member, bytes) == ST_OK &&
	       npz_writer_data(file, values, bytes) == ST_OK && npz_writer_end(file) == ST_OK;
}

static bool write_inputs(struct npz_writer *file, const char *name, const struct model_shape *shape,
			 int64_t items, enum values kind, struct rng *rng)
{
	const size_t count = (size_t)(items * model_shape_count(shape));
	float *values = mem_calloc(count + 1, sizeof(*values));
	bool written;

	for (size_t i = 0; values && i < count; i++)
		values[i] = value(rng, kind);
	written = values && write_array(file, name, DTYPE_FLOAT32, items, shape->dim, shape->ndim,
					values, count * sizeof(*values));
	mem_free(values);
	return written;
}

/* Class numbers of rows where the loss takes these, else values from 0 to 1. */
static bool write_targets(struct npz_writer *file, const char *name,
			  const struct model_shape *shape, int64_t items, bool classes,
			  struct rng *rng)
{
	const int ndim = classes && shape->ndim ? shape->ndim - 1 : shape->ndim;
	const uint32_t width = shape->ndim ? (uint32_t)shape->dim[shape->ndim - 1] : 1;
	size_t count = (size_t)items;
	float *values;
	int32_t *numbers;
	bool written;

	for (int i = 0; i < ndim; i++)
		count *= (size_t)shape->dim[i];
	values = mem_calloc(count + 1, sizeof(*values));
	numbers = (int32_t *)(void *)values;
	for (size_t i = 0; values && i < count; i++)
		if (classes)
			numbers[i] = (int32_t)rng_below(rng, width);
		else
			values[i] = rng_uniform(rng);
	written = values && write_array(file, name, classes ? DTYPE_INT32 : DTYPE_FLOAT32, items,
					shape->dim, ndim, values, count * sizeof(*values));
	mem_free(values);
	return written;
}

/* Write FOLDER/data.npz: the training set and the test set, @items each. */
static bool write_data(const struct grammar *grammar, const char *folder, struct draw *draw,
		       int64_t items, const bool *classes)
{
	const struct model *model = grammar->model;
	const enum values kind = (enum values)draw_below(draw, VALUES_KINDS);
	struct npz_writer file;
	struct rng rng;
	char path[FS_PATH_SIZE], name[64];
	struct err err;
	bool written = true;

	if (!fs_path(path, "%s/data.npz", folder) || npz_writer_open(&file, path, &err) != ST_OK)
		return false;
	rng_init(&rng, draw_below(draw, 256), rng_stream("fuzz"), 0, 0);
	for (int test = 0; test < 2; test++) {
		const char *part = test ? "test" : "train";

		if (!model->part_count) {
			snprintf(name, sizeof(name), "x_%s", part);
			written = written &&
				  write_inputs(&file, name, &model->input, items, kind, &rng);
		}
		for (int i = 0; i < model->part_count; i++) {
			snprintf(name, sizeof(name), "x_%s_%s", part, model->parts[i].name);
			written = written && write_inputs(&file, name, &model->parts[i].shape,
							  items, kind, &rng);
		}
		for (int i = 0; i < model->output_count; i++) {
			const bool several = model->output_count > 1;

			snprintf(name, sizeof(name), "y_%s%s%s", part, several ? "_" : "",
				 several ? model->outputs[i].name : "");
			written = written && write_targets(&file, name, &model->outputs[i].shape,
							   items, classes[i], &rng);
		}
	}
	return npz_writer_close(&file, written ? ST_OK : ST_IO) == ST_OK;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void add_names(cJSON *object, const char *key, const struct model *model, bool outputs)
{
	const int count = outputs ? model->output_count : model->part_count;
	cJSON *list;

	if (count < 1 + outputs)
		return;
	list = cJSON_AddArrayToObject(object, key);
	for (int i = 0; i < count; i++)
		cJSON_AddItemToArray(list, cJSON_CreateString(outputs ? model->outputs[i].name
								      : model->parts[i].name));
}

static cJSON *make_compile(const struct grammar *grammar, struct draw *draw, bool *classes)
{
	const struct model *model = grammar->model;
	cJSON *compile = cJSON_CreateObject(), *list = cJSON_CreateArray();

	set(compile, "optimizer", make_optimizer(draw));
	for (int i = 0; i < model->output_count; i++) {
		struct loss loss;

		cJSON_AddItemToArray(list, make_loss(draw, &loss));
		classes[i] = loss.kind == LOSS_SPARSE_CATEGORICAL_CROSSENTROPY;
	}
	set(compile, "loss", model->output_count > 1 ? list : cJSON_DetachItemFromArray(list, 0));
	if (model->output_count == 1)
		cJSON_Delete(list);
	if (draw_one_in(draw, 4) && model->output_count == 1) {
		list = cJSON_AddArrayToObject(compile, "metrics");
		cJSON_AddItemToArray(list, cJSON_CreateString(draw_word(
						   draw, "accuracy mean_squared_error huber")));
	}
	set(compile, "steps_per_execution",
	    draw_one_in(draw, 2) ? cJSON_CreateString("epoch")
				 : cJSON_CreateNumber(grammar->microbatches));
	if (draw_one_in(draw, 4))
		set(compile, "dtype_policy",
		    cJSON_CreateString(draw_word(draw, "mixed_float16 mixed_bfloat16")));
	return compile;
}

static cJSON *make_data(const struct grammar *grammar, struct draw *draw, const char *folder,
			int64_t batch)
{
	cJSON *data = cJSON_CreateObject();
	char path[FS_PATH_SIZE];

	if (!fs_path(path, "%s/data.npz", folder))
		abort();
	set(data, "name", cJSON_CreateString("npz"));
	set(data, "path", cJSON_CreateString(path));
	set(data, "batch_size", cJSON_CreateNumber((double)batch));
	set(data, "shuffle", cJSON_CreateBool(draw_one_in(draw, 2)));
	add_names(data, "inputs", grammar->model, false);
	add_names(data, "outputs", grammar->model, true);
	if (draw_one_in(draw, 6))
		set(data, "pad_remainder", cJSON_CreateBool(true));
	return data;
}

static cJSON *make_accumulation(const struct grammar *grammar, struct draw *draw)
{
	cJSON *accumulation = cJSON_CreateObject();

	set(accumulation, "steps_per_replica", cJSON_CreateNumber(grammar->microbatches));
	if (draw_one_in(draw, 3))
		set(accumulation, "reduction",
		    cJSON_CreateString(draw_word(draw, "sum mean running_mean")));
	if (draw_one_in(draw, 8))
		set(accumulation, "dtype", cJSON_CreateString("float16"));
	return accumulation;
}

static cJSON *make_ipu(const struct grammar *grammar, struct draw *draw)
{
	cJSON *ipu = cJSON_CreateObject();

	set(ipu, "target", cJSON_CreateString(draw_word(draw, "ipu2 ipu2 ipu2 ipu21 ipu1 c600")));
	set(ipu, "tiles_per_ipu", cJSON_CreateNumber(draw_one_in(draw, 4) ? 64 : 16));
	set(ipu, "auto_select_ipus", cJSON_CreateNumber(grammar->replicas));
	return ipu;
}

static cJSON *object_of(const char *key, cJSON *value)
{
	cJSON *object = cJSON_CreateObject();

	set(object, key, value);
	return object;
}

void grammar_make(struct grammar *grammar, struct draw *draw, const char *folder)
{
	static const int microbatches[] = {12, 4, 8, 24};
	const int64_t batch = 1 + draw_below(draw, 4);
	bool classes[MODEL_OUTPUTS] = {false};
	char path[FS_PATH_SIZE], *text;
	int64_t items;
	cJSON *model, *run;

	*grammar = (struct grammar){.ended = true};
	model = make_model(grammar, draw, batch);
	if (!model)
		return;
	grammar->replicas = 1 + draw_one_in(draw, 4);
	grammar->microbatches = microbatches[draw_below(draw, ARRAY_LEN(microbatches))];
	items = batch * grammar->microbatches * grammar->replicas;
	run = grammar->run = cJSON_CreateObject();
	set(run, "model", model);
	set(run, "compile", make_compile(grammar, draw, classes));
	set(run, "data", make_data(grammar, draw, folder, batch));
	set(run, "gradient_accumulation", make_accumulation(grammar, draw));
	set(run, "ipu", make_ipu(grammar, draw));
	set(run, "distribution", object_of("replicas", cJSON_CreateNumber(grammar->replicas)));
	set(run, "fit",
	    object_of("steps_per_epoch",
		      cJSON_CreateNumber(grammar->microbatches * grammar->replicas *
					 (1 + draw_one_in(draw, 3)))));
	if (draw_one_in(draw, 4))
		set(run, "infeed", object_of("dtype", cJSON_CreateString("float16")));
	if (draw_one_in(draw, 4))
		set(run, "evaluate", cJSON_CreateObject());
	if (draw_one_in(draw, 8))
		set(run, "predict", cJSON_CreateObject());
	text = cJSON_Print(run);
	grammar->ended = !text || !fs_path(path, "%s/run.json", folder) ||
			 fs_write(path, text, strlen(text), NULL) != ST_OK ||
			 !write_data(grammar, folder, draw, items, classes);
	cJSON_free(text);
}

void grammar_free(struct grammar *grammar)
{
	model_free(grammar->model);
	cJSON_Delete(grammar->run);
}
