/*
 * Layers as operations: one function per family, one row per kind.
 */
#include "ipu/plan/ipu_op.h"

#include <assert.h>

#include "common/mem.h"

struct list {
	const struct ipu_composite *from;
	struct ipu_op *ops;
	int count;
};

static struct ipu_op *add(struct list *list, enum ipu_op_kind kind, const char *name,
			  int64_t repeats)
{
	struct ipu_op *op = &list->ops[list->count++];

	assert(list->count <= IPU_COMPOSITE_OPS);
	*op = (struct ipu_op){
		.kind = kind, .name = name, .dtype = list->from->dtype, .repeats = repeats};
	return op;
}

static void add_matmul(struct list *list, const char *name, int64_t repeats, int64_t m, int64_t k,
		       int64_t n)
{
	struct ipu_op *op = add(list, IPU_OP_MATMUL, name, repeats);

	op->pass = list->from->pass;
	op->trained = list->from->trained;
	op->matmul = (struct ipu_matmul){m, k, n};
}

static void add_map(struct list *list, const char *name, int64_t repeats,
		    struct ipu_elements elements)
{
	add(list, IPU_OP_ELEMENTWISE, name, repeats)->elements = elements;
}

static void add_reduce(struct list *list, const char *name, int64_t inputs, int64_t outputs)
{
	add(list, IPU_OP_REDUCE, name, 1)->reduce = (struct ipu_reduce){inputs, outputs};
}

/* ---- recurrent cells ------------------------------------------------------------------------- */

/* popnn's cells (Lstm.cpp, Gru.cpp, Rnn.cpp; preCalcWeights is off by default): each step runs
 * products of input and state, then a map; weight gradients are accumulated in reverse order. */
static const struct cell {
	int gates;
	uint8_t forward[IPU_FUNCTIONS], backward[IPU_FUNCTIONS];
} lstm = {4,
	  {[IPU_FN_SIGMOID] = 3, [IPU_FN_TANH] = 2, [IPU_FN_ADD] = 8},
	  {[IPU_FN_TANH] = 1, [IPU_FN_ADD] = 18}},
  gru = {3, {[IPU_FN_SIGMOID] = 2, [IPU_FN_TANH] = 1, [IPU_FN_ADD] = 8}, {[IPU_FN_ADD] = 14}},
  rnn = {1, {[IPU_FN_TANH] = 1, [IPU_FN_ADD] = 1}, {[IPU_FN_ADD] = 3}};

static const struct cell *cell_of(const struct ipu_composite *from)
{
	return from->kind == IPU_COMPOSITE_LSTM  ? &lstm
	       : from->kind == IPU_COMPOSITE_GRU ? &gru
						 : &rnn;
}

/* A product of a cell with its weights, once per step, or for all steps at once. */
struct cell_product {
	const char *forward, *data, *weights, *sum; /* names */
	bool at_once, of_input, of_state;
	int gates;
};

#define PRODUCT(name) "Rnn/" name, "Rnn/" name "/GradX", "Rnn/" name "/GradW", "Rnn/" name "/Sum"
#define CELL_PRODUCTS 2

/* An LSTM multiplies input and state in one product. A GRU with reset before the product needs a
 * second one for the candidate; with reset after, it multiplies input and state separately. The
 * inputs of a plain cell do not depend on the state, so all steps are one product. */
static int list_products(const struct ipu_composite *from, struct cell_product out[CELL_PRODUCTS])
{
	const int gates = cell_of(from)->gates;

	if (from->kind == IPU_COMPOSITE_LSTM || from->reset_before) {
		const int later = from->kind == IPU_COMPOSITE_GRU;

		out[0] = (struct cell_product){PRODUCT("Gates"), false, true, true, gates - later};
		out[1] = (struct cell_product){PRODUCT("Candidate"), false, true, true, later};
		return 1 + later;
	}
	if (from->kind == IPU_COMPOSITE_RNN)
		out[0] = (struct cell_product){PRODUCT("WeightInput"), true, true, false, gates};
	else
		out[0] = (struct cell_product){PRODUCT("Input"), false, true, false, gates};
	out[1] = (struct cell_product){PRODUCT("State"), false, false, true, gates};
	return CELL_PRODUCTS;
}

/* Steps whose weight gradients an LSTM accumulates in one product: as many as fit on a tile in a
 * tenth of the available memory, a fifth of the tile's (Lstm.cpp, interleaveWUCadence), in whole
 * vectors, evenly divided. Units are assigned to tiles by 16 or their largest power of two
 * (Rnn.cpp). The tile is Mk2's for all targets. */
static int64_t steps_at_once(const struct ipu_composite *from)
{
	const int64_t tiles = 1472, memory = 638976 / 50, two = from->units & -from->units;
	const int64_t element = ipu_dtype_bytes(from->dtype), whole = 8 / element;
	const int64_t grain = two < 16 ? two : 16;
	const int64_t grains = (from->batch * from->units / grain + tiles - 1) / tiles;
	const int64_t each = grains * grain * lstm.gates * element;
	const int64_t most = (from->steps < memory / each ? from->steps : memory / each) / whole;

	int64_t times;

	if (from->kind != IPU_COMPOSITE_LSTM || most == 0)
		return 1;
	times = (from->steps + most * whole - 1) / (most * whole);
	return (from->steps + times - 1) / times;
}

static void add_weight_gradients(struct list *list, const struct cell_product *product,
				 int64_t wide, int64_t deep)
{
	const struct ipu_composite *from = list->from;
	const int64_t steps = product->at_once ? from->steps : steps_at_once(from);
	const int64_t times = (from->steps + steps - 1) / steps;

	add_matmul(list, product->weights, times, deep, steps * from->batch, wide);
	/* A product over several steps is no longer the forward product's gradient. */
	list->ops[list->count - 1].trained = from->trained && (steps == 1 || product->at_once);
	if (!product->at_once)
		add_map(list, product->sum, times,
			(struct ipu_elements){.count = deep * wide,
					      .operands = 2,
					      .times = {[IPU_FN_SCALED_ADD] = 1}});
}

/* Each batch item has a separate sum until the end. */
static void add_bias_gradients(struct list *list, int64_t count, int64_t wide)
{
	const int64_t steps = steps_at_once(list->from);
	const int64_t times = (list->from->steps + steps - 1) / steps;

	if (steps > 1)
		add(list, IPU_OP_REDUCE, "Rnn/Bias/Sum", times)->reduce =
			(struct ipu_reduce){steps * count, count};
	else
		add_map(list, "Rnn/Bias/Sum", times,
			(struct ipu_elements){
				.count = count, .operands = 2, .times = {[IPU_FN_ADD] = 1}});
	add_reduce(list, "Rnn/Bias/Grad", count, wide);
}

static void recurrent(struct list *list)
{
	const struct ipu_composite *from = list->from;
	const struct cell *cell = cell_of(from);
	const bool forward = from->pass == IPU_FORWARD, data = from->pass == IPU_BACKWARD_DATA;
	const int64_t rows = from->batch * from->steps;
	struct ipu_elements map = {.count = from->batch * from->units,
				   .operands = 2 * (int64_t)cell->gates};
	struct cell_product products[CELL_PRODUCTS];
	const int count = list_products(from, products);

	for (int f = 0; f < IPU_FUNCTIONS; f++)
		map.times[f] = forward ? cell->forward[f] : cell->backward[f];
	if (data)
		add_map(list, "Rnn/Cell/Grad", from->steps, map);
	for (int p = 0; p < count; p++) {
		const struct cell_product *product = &products[p];
		const bool of_input = product->of_input && !(data && from->fixed_input);
		const int64_t deep =
			(of_input ? from->features : 0) + (product->of_state ? from->units : 0);
		const int64_t wide = product->gates * from->units;
		const int64_t items = product->at_once ? rows : from->batch;
		const int64_t times = product->at_once ? 1 : from->steps;

		if (forward)
			add_matmul(list, product->forward, times, items, deep, wide);
		else if (!data)
			add_weight_gradients(list, product, wide, deep);
		else if (deep > 0)
			add_matmul(list, product->data, times, items, wide, deep);
	}
	if (forward) {
		add_map(list, "Rnn/Cell", from->steps, map);
		add(list, IPU_OP_COPY, "Rnn/Output", 1)->copy =
			(struct ipu_copy){rows * from->units, from->units};
	} else if (!data) {
		add_bias_gradients(list, map.count * cell->gates, cell->gates * from->units);
	}
}

static void recurrent_elements(const struct ipu_composite *from, double *operands, double *result)
{
	const double wide = (double)cell_of(from)->gates * (double)from->units;
	const double rows = (double)from->batch * (double)from->steps;

	*operands = rows * (double)from->features +
		    ((double)from->features + (double)from->units + 1) * wide;
	*result = rows * (double)from->units;
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Each head of each item is a separate product: one group of a convolution of one position. */
static void add_heads(struct list *list, const char *name, enum ipu_pass pass, int64_t m, int64_t k,
		      int64_t n)
{
	const struct ipu_composite *from = list->from;

	add(list, IPU_OP_CONV, name, 1)->conv =
		(struct ipu_conv){.pass = pass,
				  .batch = m,
				  .groups = from->batch * from->heads,
				  .in_channels = k,
				  .out_channels = n,
				  .in = {1, 1},
				  .out = {1, 1},
				  .kernel = {1, 1},
				  .stride = {1, 1},
				  .dilation = {1, 1}};
}

/* Keras's MultiHeadAttention: queries of `length` rows, keys and values of `keys`. */
static void attention(struct list *list)
{
	const struct ipu_composite *from = list->from;
	const int64_t wide = from->heads * from->head, all = from->batch * from->heads;
	const int64_t deep = from->values ? from->values : from->head;
	const int64_t made = from->heads * deep; /* width of all values */
	const int64_t queries = from->batch * from->length, keys = from->batch * from->keys;
	const struct ipu_rows rows = {from->pass == IPU_FORWARD ? IPU_ROWS_SOFTMAX
								: IPU_ROWS_SOFTMAX_GRAD,
				      all * from->length, from->keys};
	const struct ipu_elements scale = {
		.count = queries * wide, .operands = 1, .times = {[IPU_FN_ADD] = 1}};

	switch (from->pass) {
	case IPU_FORWARD:
		add_matmul(list, "Query/MatMul", 1, queries, from->features, wide);
		add_matmul(list, "Key/MatMul", 1, keys, from->features, wide);
		add_matmul(list, "Value/MatMul", 1, keys, from->features, made);
		add_map(list, "Scale", 1, scale);
		add_heads(list, "Scores", IPU_FORWARD, from->length, from->head, from->keys);
		add(list, IPU_OP_ROWS, "Softmax", 1)->rows = rows;
		add_heads(list, "Context", IPU_FORWARD, from->length, from->keys, deep);
		add_matmul(list, "Output/MatMul", 1, queries, made, from->features);
		break;
	case IPU_BACKWARD_DATA:
		add_matmul(list, "Output/GradX", 1, queries, from->features, made);
		add_heads(list, "Context/GradX", IPU_BACKWARD_DATA, from->length, from->keys, deep);
		add_heads(list, "Context/GradV", IPU_BACKWARD_WEIGHTS, from->length, from->keys,
			  deep);
		add(list, IPU_OP_ROWS, "Softmax/Grad", 1)->rows = rows;
		add_heads(list, "Scores/GradX", IPU_BACKWARD_DATA, from->length, from->head,
			  from->keys);
		add_heads(list, "Scores/GradK", IPU_BACKWARD_WEIGHTS, from->length, from->head,
			  from->keys);
		add_map(list, "Scale/Grad", 1, scale);
		add_matmul(list, "Query/GradX", 1, queries, wide, from->features);
		add_matmul(list, "Key/GradX", 1, keys, wide, from->features);
		add_matmul(list, "Value/GradX", 1, keys, made, from->features);
		break;
	default:
		add_matmul(list, "Query/GradW", 1, from->features, queries, wide);
		add_matmul(list, "Key/GradW", 1, from->features, keys, wide);
		add_matmul(list, "Value/GradW", 1, from->features, keys, made);
		add_matmul(list, "Output/GradW", 1, made, queries, from->features);
	}
}

static void attention_elements(const struct ipu_composite *from, double *operands, double *result)
{
	const double width = (double)(from->head + (from->values ? from->values : from->head));
	const double rows = (double)from->batch * (double)(from->length + 2 * from->keys);

	/* of weights: those of queries and keys, and of values and the result */
	*operands = (rows + 2 * (double)from->heads * width) * (double)from->features;
	*result = (double)from->batch * (double)from->length * (double)from->features;
}

/* ---- embedding ------------------------------------------------------------------------------- */

/* popops's multiSlice; multiUpdateAdd to zeros (embedding_ops.py of TensorFlow for IPU). */
static void embedding(struct list *list)
{
	const struct ipu_composite *from = list->from;
	const bool update = from->pass == IPU_BACKWARD_WEIGHTS;

	if (from->pass == IPU_BACKWARD_DATA)
		return;
	if (update)
		add_map(list, "Embedding/Fill", 1,
			(struct ipu_elements){.count = from->entries * from->units,
					      .times = {[IPU_FN_FILL] = 1}});
	add(list, IPU_OP_SLICE, update ? "Embedding/Update" : "Embedding/Lookup", 1)->slice =
		(struct ipu_slice){update, from->entries, from->units, from->batch * from->lookups,
				   1};
}

static void embedding_elements(const struct ipu_composite *from, double *operands, double *result)
{
	const double lookups = (double)from->batch * (double)from->lookups;

	*operands = (double)from->entries * (double)from->units + lookups;
	*result = lookups * (double)from->units;
}

/* ---- convolutions ---------------------------------------------------------------------------- */

static struct ipu_conv conv_of(const struct ipu_composite *from)
{
	return (struct ipu_conv){.pass = from->pass,
				 .batch = from->batch,
				 .groups = from->groups,
				 .in_channels = from->in_channels / from->groups,
				 .out_channels = from->out_channels / from->groups,
				 .in = {from->field[0], from->field[1]},
				 .out = {from->out[0], from->out[1]},
				 .kernel = {from->kernel[0], from->kernel[1]},
				 .stride = {from->stride[0], from->stride[1]},
				 .dilation = {from->dilation[0], from->dilation[1]}};
}

static void conv1d(struct list *list)
{
	add(list, IPU_OP_CONV, "Conv1D", 1)->conv = conv_of(list->from);
}

/* Forward is the data gradient of the convolution from output to input, and vice versa. */
static void conv2dtranspose(struct list *list)
{
	static const enum ipu_pass turned[] = {[IPU_FORWARD] = IPU_BACKWARD_DATA,
					       [IPU_BACKWARD_DATA] = IPU_FORWARD,
					       [IPU_BACKWARD_WEIGHTS] = IPU_BACKWARD_WEIGHTS};
	const struct ipu_conv given = conv_of(list->from);
	struct ipu_conv conv = given;

	conv.pass = turned[given.pass];
	conv.in_channels = given.out_channels;
	conv.out_channels = given.in_channels;
	for (int i = 0; i < 2; i++) {
		conv.in[i] = given.out[i];
		conv.out[i] = given.in[i];
	}
	add(list, IPU_OP_CONV, "Conv2DTranspose", 1)->conv = conv;
}

static void conv_elements(const struct ipu_composite *from, double *operands, double *result)
{
	const double taps = (double)from->kernel[0] * (double)from->kernel[1];

	*operands = (double)from->batch * (double)from->in_channels * (double)from->field[0] *
			    (double)from->field[1] +
		    taps * (double)from->in_channels * (double)from->out_channels /
			    (double)from->groups;
	*result = (double)from->batch * (double)from->out_channels * (double)from->out[0] *
		  (double)from->out[1];
}

/* ---- fields and channels --------------------------------------------------------------------- */

/* Forward: statistics of each item's groups, then one map over all elements. Backward: sums over
 * the groups between two maps; the gradients of beta and gamma are sums by channel. The lowering of
 * GroupNormalization (layer_normalization.c) has the same list: a test compares them. */
static void groupnorm(struct list *list)
{
	const struct ipu_composite *from = list->from;
	const int64_t count = from->batch * from->channels * from->field[0] * from->field[1],
		      groups = from->batch * from->groups;
	const bool forward = from->pass == IPU_FORWARD;
	struct ipu_elements each = {
		.count = count, .operands = forward ? 1 : 2, .broadcast = from->channels};

	switch (from->pass) {
	case IPU_FORWARD:
		add_reduce(list, "GroupNorm/Mean", count, groups);
		add_reduce(list, "GroupNorm/PowerSum", count, groups);
		add_map(list, "GroupNorm/Statistics", 1,
			(struct ipu_elements){
				.count = groups,
				.operands = 2,
				.times = {
					[IPU_FN_SQRT] = 1, [IPU_FN_DIVIDE] = 1, [IPU_FN_ADD] = 5}});
		each.times[IPU_FN_ADD] = 4;
		add_map(list, "GroupNorm", 1, each);
		break;
	case IPU_BACKWARD_DATA:
		each.times[IPU_FN_ADD] = 4;
		add_map(list, "GroupNorm/GradScaled", 1, each);
		add_reduce(list, "GroupNorm/GradMoments", 2 * count, 2 * groups);
		each.times[IPU_FN_ADD] = 7;
		add_map(list, "GroupNorm/GradX", 1, each);
		break;
	default:
		each.times[IPU_FN_ADD] = 3;
		add_map(list, "GroupNorm/GradWhitened", 1, each);
		add_reduce(list, "GroupNorm/GradGamma", count, from->channels);
		add_reduce(list, "GroupNorm/GradBeta", count, from->channels);
	}
}

static void pool(struct list *list)
{
	const struct ipu_composite *from = list->from;

	if (from->pass != IPU_BACKWARD_WEIGHTS)
		add(list, IPU_OP_POOL, from->pass == IPU_FORWARD ? "Pool" : "Pool/Grad", 1)->pool =
			(struct ipu_pool){.max = from->max,
					  .backward = from->pass == IPU_BACKWARD_DATA,
					  .batch = from->batch,
					  .channels = from->channels,
					  .in = {from->field[0], from->field[1]},
					  .out = {from->out[0], from->out[1]},
					  .kernel = {from->kernel[0], from->kernel[1]},
					  .stride = {from->stride[0], from->stride[1]}};
}

static void field_elements(const struct ipu_composite *from, double *operands, double *result)
{
	const double items = (double)from->batch * (double)from->channels;

	*operands = items * (double)from->field[0] * (double)from->field[1];
	*result = items * (double)from->out[0] * (double)from->out[1];
	if (from->kind == IPU_COMPOSITE_GROUPNORM)
		*operands += 2 * (double)from->channels;
}

static void reduce(struct list *list)
{
	if (list->from->pass == IPU_FORWARD)
		add_reduce(list, "Reduce", list->from->inputs, list->from->outputs);
}

static void reduce_elements(const struct ipu_composite *from, double *operands, double *result)
{
	*operands = (double)from->inputs;
	*result = (double)from->outputs;
}

static void softmax(struct list *list)
{
	const struct ipu_composite *from = list->from;
	const bool forward = from->pass == IPU_FORWARD;

	if (from->pass != IPU_BACKWARD_WEIGHTS)
		add(list, IPU_OP_ROWS, forward ? "Softmax" : "Softmax/Grad", 1)->rows =
			(struct ipu_rows){forward ? IPU_ROWS_SOFTMAX : IPU_ROWS_SOFTMAX_GRAD,
					  from->batch, from->channels};
}

static void softmax_elements(const struct ipu_composite *from, double *operands, double *result)
{
	*operands = *result = (double)from->batch * (double)from->channels;
}

/* ---- table ----------------------------------------------------------------------------------- */

static const struct {
	void (*add)(struct list *list);
	void (*elements)(const struct ipu_composite *from, double *operands, double *result);
} kinds[] = {
	[IPU_COMPOSITE_ATTENTION] = {attention, attention_elements},
	[IPU_COMPOSITE_CONV1D] = {conv1d, conv_elements},
	[IPU_COMPOSITE_CONV2DTRANSPOSE] = {conv2dtranspose, conv_elements},
	[IPU_COMPOSITE_EMBEDDING] = {embedding, embedding_elements},
	[IPU_COMPOSITE_GROUPNORM] = {groupnorm, field_elements},
	[IPU_COMPOSITE_GRU] = {recurrent, recurrent_elements},
	[IPU_COMPOSITE_LSTM] = {recurrent, recurrent_elements},
	[IPU_COMPOSITE_POOL] = {pool, field_elements},
	[IPU_COMPOSITE_REDUCE] = {reduce, reduce_elements},
	[IPU_COMPOSITE_RNN] = {recurrent, recurrent_elements},
	[IPU_COMPOSITE_SOFTMAX] = {softmax, softmax_elements},
};
_Static_assert(ARRAY_LEN(kinds) == IPU_COMPOSITES, "kinds out of step");

int ipu_composite_ops(const struct ipu_composite *composite, struct ipu_op out[IPU_COMPOSITE_OPS])
{
	struct list list = {.from = composite, .ops = out};

	assert((unsigned)composite->kind < IPU_COMPOSITES);
	kinds[composite->kind].add(&list);
	return list.count;
}

void ipu_composite_elements(const struct ipu_composite *composite, double *operands, double *result)
{
	assert((unsigned)composite->kind < IPU_COMPOSITES);
	kinds[composite->kind].elements(composite, operands, result);
}
