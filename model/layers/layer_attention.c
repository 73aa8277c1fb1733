/*
 * MultiHeadAttention and Attention over sequences (steps, features). With queries Q, keys K and
 * values V, for each head of MultiHeadAttention separately:
 *
 *	Q = query Wq + bq, K = key Wk + bk, V = value Wv + bv       (Attention: the inputs)
 *	P = softmax(Q K^T / sqrt(key_dim)), dropped in training     (Attention: without the root)
 *	output = (P V) Wo + bo                                      (Attention: P V)
 *
 * Kernels are Keras's: [features, heads, width], the output's [heads, width, features]. Inputs
 * are in Keras's order: query, value, key; a missing key is the value, and a missing value the
 * query. A causal mask (an argument of the call, or our option in the config) hides the keys
 * after the query. No state.
 *
 * A mask of the keys hides padding. If no key is left, and in MultiHeadAttention for a query
 * that is padding, all keys have equal weight, as results from Keras's large negative scores;
 * Attention outputs zeros for such a query.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/plan/ipu_op.h"
#include "model/layers/layer_internal.h"

#define HEADS_MOST 4096
#define WIDTH_MOST 65536
#define ITEM_MOST  0x1p40 /* values of an item: counts of a batch stay within 64 bits */

/* ---- reading --------------------------------------------------------------------------------- */

static void check_inputs(const struct layer_reading *in)
{
	const struct model_layer *layer = in->layer;
	const struct layer_attention *own = layer->config;
	const struct model_shape *shape[LAYER_ATTENTION_PARTS];
	char text[192];

	for (int p = 0; p < LAYER_ATTENTION_PARTS && !err_stuck(in->err); p++) {
		shape[p] = model_input_shape(in->model, layer, own->input[p]);
		model_shape_text(shape[p], 0, text, sizeof(text));
		if (shape[p]->ndim != 2)
			json_fail(in->config, in->err,
				  "%s needs sequences (steps, features), but input %d is %s",
				  layer->ops->class_name, own->input[p], text);
	}
	if (err_stuck(in->err))
		return;
	if (shape[LAYER_ATTENTION_KEY]->dim[0] != shape[LAYER_ATTENTION_VALUE]->dim[0])
		json_fail(in->config, in->err,
			  "there must be as many keys as values: %lld and %lld come in",
			  (long long)shape[LAYER_ATTENTION_KEY]->dim[0],
			  (long long)shape[LAYER_ATTENTION_VALUE]->dim[0]);
	else if (!own->projects && layer->input.dim[1] != shape[LAYER_ATTENTION_KEY]->dim[1])
		json_fail(in->config, in->err,
			  "queries and keys must be as wide as each other: %lld, %lld",
			  (long long)layer->input.dim[1],
			  (long long)shape[LAYER_ATTENTION_KEY]->dim[1]);
}

/* Check that the counts of scores and of projected values do not overflow. */
static void check_sizes(const struct layer_reading *in)
{
	const struct model_layer *layer = in->layer;
	const struct layer_attention *own = layer->config;
	const double length = (double)layer->input.dim[0];
	const double keys =
		(double)model_input_shape(in->model, layer, own->input[LAYER_ATTENTION_KEY])
			->dim[0];
	const double wide = (double)(own->key_dim + own->value_dim);
	const double item = (double)own->heads * (length * keys + (length + keys) * wide);

	if (!err_stuck(in->err) && item > ITEM_MOST)
		model_config_limit(
			in->config, in->err,
			"%lld heads over %.0f queries and %.0f keys have %.3g scores and "
			"values an item: at most %.3g are possible",
			(long long)own->heads, length, keys, item, ITEM_MOST);
}

/* Read the config that both kinds share, except sizes; check that inputs are sequences. */
static enum status read_begin(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_attention *own = layer->config;

	own->projects = layer->ops == &layer_multi_head_attention;
	own->causal = layer->causal_mask;
	own->input[LAYER_ATTENTION_VALUE] = layer_own_inputs(layer) > 1;
	own->input[LAYER_ATTENTION_KEY] =
		layer_own_inputs(layer) > 2 ? 2 : own->input[LAYER_ATTENTION_VALUE];
	check_inputs(in);
	layer__read_drop(in, "dropout", &own->drop);
	layer__read_seed(in, &own->seed);
	model_option_bool(in->config, "use_causal_mask", &own->causal, in->err);
	return in->err->status;
}

/* Add kernel and bias of a projection from @features to heads or, if @out, from heads to
 * features. */
static void add_projection(const struct layer_reading *in, const char *kernel, const char *bias,
			   int64_t features, int64_t width, bool out)
{
	const struct layer_attention *own = in->layer->config;
	/* Keras counts fans as for a convolution: all but the last two dimensions are the field. */
	const struct layer_param weights = {
		.name = kernel,
		.option = "kernel",
		.initializer = "GlorotUniform",
		.shape = {.ndim = 3,
			  .dim = {out ? own->heads : features, out ? width : own->heads,
				  out ? features : width}},
		.fan_in = own->heads * (out ? width : features),
		.fan_out = features * (out ? own->heads : width)};
	struct layer_param offsets = {.name = bias,
				      .option = "bias",
				      .initializer = "Zeros",
				      .shape = {.ndim = 2, .dim = {own->heads, width}},
				      .fan_in = own->heads,
				      .fan_out = width};

	if (out)
		offsets.shape = (struct model_shape){.ndim = 1, .dim = {features}};
	layer__add_param(in, &weights);
	if (in->layer->use_bias)
		layer__add_param(in, &offsets);
}

static const struct model_option heads_options[] = {
	{"num_heads", MODEL_INT, LAYER_CONFIG(attention, heads), .required = true, .strict = true,
	 .least = 1, .most = HEADS_MOST},
	{"key_dim", MODEL_INT, LAYER_CONFIG(attention, key_dim), .required = true, .strict = true,
	 .least = 1, .most = WIDTH_MOST},
	{"value_dim", MODEL_INT, LAYER_CONFIG(attention, value_dim), .least = 1,
	 .most = WIDTH_MOST},
	{"dropout", .rule = MODEL_ANY},
	{"use_bias", MODEL_BOOL, LAYER_FIELD(use_bias), .fallback = true},
	{"output_shape", .rule = MODEL_NULL},
	{"attention_axes", .rule = MODEL_ANY},
	{"flash_attention", .rule = MODEL_ANY},
	LAYER_PARAM_OPTIONS("kernel"),
	LAYER_PARAM_OPTIONS("bias"),
	{"activity_regularizer", .rule = MODEL_NULL},
	{"seed", .rule = MODEL_ANY},
	{"query_shape", .rule = MODEL_ANY},
	{"key_shape", .rule = MODEL_ANY},
	{"value_shape", .rule = MODEL_ANY},
	{"use_gate", .rule = MODEL_FALSE},
	{"use_causal_mask", .rule = MODEL_ANY},
};

static enum status heads_read(const struct layer_reading *in)
{
	struct layer_attention *own = in->layer->config;
	int64_t features[LAYER_ATTENTION_PARTS];
	struct json_at here;

	/* Keras writes the default, all axes but the batch and the last, as null or as a list. */
	if (model_option_given(in->config, "attention_axes", &here, in->err) &&
	    !json_is_null(&here)) {
		const cJSON *axis =
			cJSON_GetArraySize(here.node) == 1 ? here.node->child : here.node;

		if (!cJSON_IsNumber(axis) ||
		    (axis->valuedouble != 1.0 && axis->valuedouble != -2.0))
			model_config_unsupported(&here, in->err,
						 "not supported: attention is over the steps, so "
						 "it must be null or [1]");
	}

	if (own->value_dim == 0)
		own->value_dim = own->key_dim;
	if (read_begin(in) != ST_OK)
		return in->err->status;
	check_sizes(in);
	if (err_stuck(in->err))
		return in->err->status;
	own->scale = (float)(1.0 / sqrt((double)own->key_dim));
	for (int p = 0; p < LAYER_ATTENTION_PARTS; p++)
		features[p] =
			layer_last_dim(model_input_shape(in->model, in->layer, own->input[p]));
	add_projection(in, "query/kernel", "query/bias", features[LAYER_ATTENTION_QUERY],
		       own->key_dim, false);
	add_projection(in, "key/kernel", "key/bias", features[LAYER_ATTENTION_KEY], own->key_dim,
		       false);
	add_projection(in, "value/kernel", "value/bias", features[LAYER_ATTENTION_VALUE],
		       own->value_dim, false);
	add_projection(in, "attention_output/kernel", "attention_output/bias",
		       features[LAYER_ATTENTION_QUERY], own->value_dim, true);
	return in->err->status;
}

static const struct model_option attention_options[] = {
	{"use_scale", .rule = MODEL_FALSE}, {"score_mode", .rule = MODEL_ANY},
	{"dropout", .rule = MODEL_ANY},     {"causal", .rule = MODEL_ANY},
	{"seed", .rule = MODEL_ANY},        {"use_causal_mask", .rule = MODEL_ANY},
};

static enum status attention_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_attention *own = layer->config;
	const char *mode = "dot";
	struct json_at here;

	if (read_begin(in) != ST_OK)
		return in->err->status;
	own->heads = 1;
	if (model_option_given(in->config, "score_mode", &here, in->err) &&
	    json_text(&here, &mode, in->err) == ST_OK && strcmp(mode, "dot") != 0)
		model_config_unsupported(&here, in->err,
					 "\"%s\" is not supported here: it must be \"dot\"", mode);
	model_option_bool(in->config, "causal", &own->causal, in->err);
	own->key_dim = layer->input.dim[1];
	own->value_dim = layer_last_dim(
		model_input_shape(in->model, layer, own->input[LAYER_ATTENTION_VALUE]));
	own->scale = 1.0f;
	layer->output.dim[1] = own->value_dim;
	check_sizes(in);
	return in->err->status;
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* Assumes as many keys as queries (self-attention). */
static int64_t attention_flops(const struct model_layer *layer, int64_t batch)
{
	const struct layer_attention *own = layer->config;
	const double wide = (double)(own->key_dim + own->value_dim) * (double)own->heads;
	const double rows = (double)batch * (double)layer->input.dim[0];
	double each = (double)layer->input.dim[0] * (wide * 2.0 + 5.0 * (double)own->heads);

	if (own->projects)
		each += wide * 4.0 * (double)layer->input.dim[1];
	return rows * each < 0x1p62 ? (int64_t)(rows * each) : INT64_MAX;
}

/* The tensors that each operation of the composite reads and writes. The plain_ ones are for
 * Attention, which has no projections and omits operations without plain_writes. */
struct role {
	const char *name;
	unsigned reads, writes, plain_reads, plain_writes;
	int part;      /* of LAYER_ATTENTION_PARTS, or OUTPUT: the owner of kernel and gradient */
	bool gradient; /* LAYER_GRAD_INPUT stands for the gradient of the part's input */
};

enum {
	OUTPUT = LAYER_ATTENTION_PARTS,
	NONE
};
#define Q LAYER_ATTENTION_QUERY
#define K LAYER_ATTENTION_KEY
#define V LAYER_ATTENTION_VALUE

static const struct role roles[] = {
	{"Query/MatMul", LAYER_INPUT | LAYER_PARAM_0, LAYER_KEPT, 0, 0, Q, false},
	{"Key/MatMul", LAYER_INPUT | LAYER_PARAM_0, LAYER_KEPT, 0, 0, K, false},
	{"Value/MatMul", LAYER_INPUT | LAYER_PARAM_0, LAYER_KEPT, 0, 0, V, false},
	{"Scale", LAYER_KEPT, LAYER_KEPT, 0, 0, NONE, false},
	{"Scores", LAYER_KEPT, LAYER_KEPT, LAYER_INPUT, LAYER_KEPT, NONE, false},
	{"Softmax", LAYER_KEPT, LAYER_KEPT, LAYER_KEPT, LAYER_KEPT, NONE, false},
	{"Context", LAYER_KEPT, LAYER_KEPT, LAYER_KEPT | LAYER_INPUT, LAYER_OUTPUT, NONE, false},
	{"Output/MatMul", LAYER_KEPT | LAYER_PARAM_0, LAYER_OUTPUT, 0, 0, OUTPUT, false},
	{"Output/GradX", LAYER_GRAD_OUTPUT | LAYER_PARAM_0, LAYER_BETWEEN, 0, 0, OUTPUT, false},
	{"Context/GradX", LAYER_BETWEEN | LAYER_KEPT, LAYER_BETWEEN,
	 LAYER_GRAD_OUTPUT | LAYER_INPUT, LAYER_BETWEEN, NONE, false},
	{"Context/GradV", LAYER_BETWEEN | LAYER_KEPT, LAYER_BETWEEN, LAYER_GRAD_OUTPUT | LAYER_KEPT,
	 LAYER_GRAD_INPUT, V, true},
	{"Softmax/Grad", LAYER_BETWEEN | LAYER_KEPT, LAYER_BETWEEN, LAYER_BETWEEN | LAYER_KEPT,
	 LAYER_BETWEEN, NONE, false},
	{"Scores/GradX", LAYER_BETWEEN | LAYER_KEPT, LAYER_BETWEEN, LAYER_BETWEEN | LAYER_INPUT,
	 LAYER_GRAD_INPUT, Q, true},
	{"Scores/GradK", LAYER_BETWEEN | LAYER_KEPT, LAYER_BETWEEN, LAYER_BETWEEN | LAYER_INPUT,
	 LAYER_GRAD_INPUT, K, true},
	{"Scale/Grad", LAYER_BETWEEN, LAYER_BETWEEN, 0, 0, NONE, false},
	{"Query/GradX", LAYER_BETWEEN | LAYER_PARAM_0, LAYER_GRAD_INPUT, 0, 0, Q, true},
	{"Key/GradX", LAYER_BETWEEN | LAYER_PARAM_0, LAYER_GRAD_INPUT, 0, 0, K, true},
	{"Value/GradX", LAYER_BETWEEN | LAYER_PARAM_0, LAYER_GRAD_INPUT, 0, 0, V, true},
	{"Query/GradW", LAYER_INPUT | LAYER_BETWEEN, LAYER_GRAD_PARAM_0, 0, 0, Q, false},
	{"Key/GradW", LAYER_INPUT | LAYER_BETWEEN, LAYER_GRAD_PARAM_0, 0, 0, K, false},
	{"Value/GradW", LAYER_INPUT | LAYER_BETWEEN, LAYER_GRAD_PARAM_0, 0, 0, V, false},
	{"Output/GradW", LAYER_KEPT | LAYER_GRAD_OUTPUT, LAYER_GRAD_PARAM_0, 0, 0, OUTPUT, false},
};

#undef Q
#undef K
#undef V

static const struct role *role_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (!strcmp(roles[i].name, name))
			return &roles[i];
	return NULL;
}

/* Elements of the one tensor of all retained, or of all intermediate, values: projections,
 * scores. */
static int64_t new_elements(const struct layer_lowering *lowering, const struct ipu_composite *from)
{
	const int64_t scores = from->batch * from->heads * from->length * from->keys;
	const struct layer_attention *own = lowering->layer->config;

	if (!own->projects)
		return scores;
	return scores + from->batch * from->heads * (from->length + from->keys) *
				(from->head + from->values);
}

/* Append an operation by its role. The first that writes a tensor allocates its @makes elements. */
static void lower_role(struct layer_lowering *lowering, const struct ipu_op *from, int64_t makes,
		       unsigned *existing)
{
	const struct model_layer *layer = lowering->layer;
	const struct layer_attention *own = layer->config;
	const struct role *role = role_of(from->name);
	const unsigned allocatable = LAYER_KEPT | LAYER_BETWEEN;
	const int kernel = role->part == NONE ? 0 : role->part * (1 + layer->use_bias);
	struct layer_op op = {.op = *from,
			      .reads = own->projects ? role->reads : role->plain_reads,
			      .writes = own->projects ? role->writes : role->plain_writes};

	if (!op.writes)
		return;
	if (role->gradient && op.writes & LAYER_GRAD_INPUT) {
		if (!layer__wants(lowering, own->input[role->part]))
			return;
		op.writes = LAYER_GRAD_INPUT_AT(own->input[role->part]);
	}
	if (op.writes & LAYER_GRAD_PARAM_0 && !layer->trainable)
		return;
	if (op.reads & LAYER_PARAM_0)
		op.reads = (op.reads & ~(unsigned)LAYER_PARAM_0) | LAYER_PARAM(kernel);
	if (op.writes & LAYER_GRAD_PARAM_0)
		op.writes = LAYER_GRAD_PARAM(kernel);
	if (lowering->phase == IPU_PHASE_F && !lowering->retains) {
		op.reads |= op.reads & LAYER_KEPT ? LAYER_BETWEEN : 0u;
		op.writes |= op.writes & LAYER_KEPT ? LAYER_BETWEEN : 0u;
		op.reads &= ~(unsigned)LAYER_KEPT;
		op.writes &= ~(unsigned)LAYER_KEPT;
	}
	op.makes = op.writes & allocatable & ~*existing ? makes : 0;
	*existing |= op.writes & allocatable;
	layer__lower(lowering, from->name, &op);
}

/* Append the biases of the three projections (one tensor), or of the output. */
static void lower_biases(struct layer_lowering *lowering, const struct ipu_composite *from,
			 bool output)
{
	const struct model_layer *layer = lowering->layer;
	const int64_t keys = from->heads * from->head, values = from->heads * from->values;
	const int64_t wide = output ? from->features : 2 * keys + values;
	const int64_t count =
		output ? from->batch * from->length * wide
		       : from->batch * (from->length * keys + from->keys * (keys + values));
	const unsigned sums = output              ? (unsigned)LAYER_OUTPUT
			      : lowering->retains ? (unsigned)LAYER_KEPT
						  : (unsigned)LAYER_BETWEEN;
	const unsigned grads =
		output ? LAYER_GRAD_PARAM(7)
		       : LAYER_GRAD_PARAM(1) | LAYER_GRAD_PARAM(3) | LAYER_GRAD_PARAM(5);
	const unsigned params =
		output ? LAYER_PARAM(7) : LAYER_PARAM(1) | LAYER_PARAM(3) | LAYER_PARAM(5);
	struct layer_op op;

	if (!layer->use_bias) /* nor has Attention */
		return;
	if (lowering->phase == IPU_PHASE_F) {
		op = layer__map(&(struct ipu_elements){.count = count,
						       .operands = 1,
						       .broadcast = wide,
						       .times = {[IPU_FN_ADD] = 1}},
				sums | params, sums);
		layer__lower(lowering, output ? "Output/BiasAdd" : "Projections/BiasAdd", &op);
	} else if (layer->trainable) {
		op = layer__reduce(count, wide, output ? LAYER_GRAD_OUTPUT : LAYER_BETWEEN, grads);
		op.makes = 0;
		layer__lower(lowering, output ? "Output/BiasAdd/Grad" : "Projections/BiasAdd/Grad",
			     &op);
	}
}

/* Append the selection that hides masked scores. */
static void lower_masks(struct layer_lowering *lowering, const struct ipu_composite *from)
{
	const struct model_layer *layer = lowering->layer;
	const unsigned state = lowering->retains ? LAYER_KEPT : LAYER_BETWEEN;
	const int64_t scores = from->batch * from->heads * from->length * from->keys;
	const struct layer_op op =
		layer__map(&(struct ipu_elements){.count = scores,
						  .operands = 1,
						  .broadcast = from->batch * from->keys,
						  .times = {[IPU_FN_SELECT] = 1}},
			   LAYER_INPUT | state, state);

	if (layer->mask || layer->key_mask)
		layer__lower(lowering, "Scores/Mask", &op);
}

/* All inputs are assumed to be as wide as the queries. */
static void attention_lower(struct layer_lowering *lowering)
{
	const struct model_layer *layer = lowering->layer;
	const bool forward = lowering->phase == IPU_PHASE_F;
	const struct layer_attention *own = layer->config;
	const int key = own->input[LAYER_ATTENTION_KEY];
	struct ipu_composite from = {
		.kind = IPU_COMPOSITE_ATTENTION,
		.batch = lowering->batch,
		.features = layer->input.dim[1],
		.length = layer->input.dim[0],
		.keys = model_input_shape(lowering->model, layer, key)->dim[0],
		.heads = own->heads,
		.head = own->key_dim,
		.values = own->value_dim,
	};
	struct ipu_op ops[IPU_COMPOSITE_OPS];
	unsigned existing = 0;

	from.pass = forward ? IPU_FORWARD : IPU_BACKWARD_DATA;
	from.trained = !forward || lowering->retains;
	for (int pass = 0; pass < (forward ? 1 : 2); pass++) {
		const int count = ipu_composite_ops(&from, ops);

		for (int i = 0; i < count; i++) {
			lower_role(lowering, &ops[i], new_elements(lowering, &from), &existing);
			if (forward && !strcmp(ops[i].name, "Value/MatMul"))
				lower_biases(lowering, &from, false);
			if (forward && !strcmp(ops[i].name, "Scores"))
				lower_masks(lowering, &from);
		}
		from.pass = IPU_BACKWARD_WEIGHTS;
	}
	if (forward) {
		lower_biases(lowering, &from, true);
		return;
	}
	lower_biases(lowering, &from, false);
	lower_biases(lowering, &from, true);
}

#define ATTENTION_OPS(row, name, least)                                                            \
	.class_name = (name), .kind = LAYER_KIND_##row, .flops = attention_flops,                  \
	.lower = attention_lower, .least_inputs = (least), .most_inputs = 3, .reads_inputs = true, \
	.masks = LAYER_MASKS_ATTEND

const struct layer_ops layer_attention = {
	ATTENTION_OPS(attention, "Attention", 2),
	.options = MODEL_OPTIONS(attention_options),
	.config_size = sizeof(struct layer_attention),
	.read = attention_read,
};

const struct layer_ops layer_multi_head_attention = {
	ATTENTION_OPS(multi_head_attention, "MultiHeadAttention", 1),
	.options = MODEL_OPTIONS(heads_options),
	.config_size = sizeof(struct layer_attention),
	.read = heads_read,
};
