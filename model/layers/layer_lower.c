/*
 * The device operations that layers are lowered to. No state; names are in the caller's arena.
 */
#include <assert.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"

/* erf as XLA expands it: clamp, square, polynomials of 7 and 5 coefficients by Horner's rule,
 * multiply; one division. */
#define ERF_ADDS 15

/* ---- activations ----------------------------------------------------------------------------- */

/* Number of times that an activation uses each function per element, forward and backward, as our
 * kernels compute it; the formulas are in trainer/kernels/kernel_activation.h. */
typedef uint8_t function_times[IPU_FUNCTIONS];

struct activation_device {
	const char *part, *grad_part; /* NULL: linear */
	bool rows;                    /* an element's value depends on all of its row */
	function_times forward, backward;
};

#define PARTS(part) part, part "/Grad"
#define ADD         [IPU_FN_ADD]
#define DIVIDE      [IPU_FN_DIVIDE]
#define SELECT      [IPU_FN_SELECT]
#define EXP         [IPU_FN_EXP]
#define LOG         [IPU_FN_LOG]
#define SIGMOID     [IPU_FN_SIGMOID]
#define TANH        [IPU_FN_TANH]
#define RELU        [IPU_FN_RELU]
#define RELU_GRAD   [IPU_FN_RELU_GRAD]

static const struct activation_device activation_devices[] = {
	[MODEL_LINEAR] = {NULL, NULL, false, {0}, {0}},
	[MODEL_RELU] = {PARTS("Relu"), false, {RELU = 1}, {RELU_GRAD = 1}},
	[MODEL_SOFTMAX] = {PARTS("Softmax"), true, {0}, {0}},
	/* exp, - 1, times alpha, select; y + alpha, times dy, select */
	[MODEL_ELU] = {PARTS("Elu"), false, {EXP = 1, ADD = 2, SELECT = 1}, {ADD = 2, SELECT = 1}},
	[MODEL_EXPONENTIAL] = {PARTS("Exp"), false, {EXP = 1}, {ADD = 1}},
	/* x / sqrt 2, erf, + 1, times x / 2; the derivative adds x exp(-x^2 / 2) / sqrt(2 pi) */
	[MODEL_GELU] = {PARTS("Gelu"),
			false,
			{ADD = ERF_ADDS + 4, DIVIDE = 1},
			{ADD = ERF_ADDS + 8, DIVIDE = 1, EXP = 1}},
	[MODEL_HARD_SIGMOID] = {PARTS("HardSigmoid"), false, {ADD = 4}, {ADD = 1, SELECT = 1}},
	[MODEL_LEAKY_RELU] = {PARTS("LeakyRelu"),
			      false,
			      {ADD = 1, SELECT = 1},
			      {ADD = 1, SELECT = 1}},
	[MODEL_LOG_SOFTMAX] = {PARTS("LogSoftmax"), true, {0}, {0}},
	/* x tanh(log(1 + exp x)), by max(x, 0) + log(1 + exp -|x|) */
	[MODEL_MISH] = {PARTS("Mish"),
			false,
			{EXP = 1, LOG = 1, TANH = 1, ADD = 5},
			{EXP = 1, LOG = 1, TANH = 1, SIGMOID = 1, ADD = 10}},
	[MODEL_RELU6] = {PARTS("Relu6"), false, {ADD = 2}, {RELU_GRAD = 1, SELECT = 1}},
	[MODEL_SELU] = {PARTS("Selu"),
			false,
			{EXP = 1, ADD = 3, SELECT = 1},
			{ADD = 2, SELECT = 1}},
	[MODEL_SIGMOID] = {PARTS("Sigmoid"), false, {SIGMOID = 1}, {ADD = 3}},
	[MODEL_SOFTPLUS] = {PARTS("Softplus"),
			    false,
			    {EXP = 1, LOG = 1, ADD = 4},
			    {EXP = 1, ADD = 2}},
	[MODEL_SOFTSIGN] = {PARTS("Softsign"), false, {ADD = 2, DIVIDE = 1}, {ADD = 4, DIVIDE = 1}},
	[MODEL_SWISH] = {PARTS("Swish"), false, {SIGMOID = 1, ADD = 1}, {SIGMOID = 1, ADD = 5}},
	[MODEL_TANH] = {PARTS("Tanh"), false, {TANH = 1}, {ADD = 3}},
};
_Static_assert(ARRAY_LEN(activation_devices) == MODEL_ACTIVATIONS, "device table out of step");

/* Set @out to the operation of an activation over the layer's output, forward or backward. The
 * caller sets its reads and writes. Returns false for linear. */
static bool activation_op(const struct layer_lowering *lowering, struct layer_op *out,
			  const char **part)
{
	const struct model_layer *layer = lowering->layer;
	const struct activation_device *row = &activation_devices[layer->activation];
	const bool forward = lowering->phase == IPU_PHASE_F;
	const int64_t count = layer__lower_count(lowering);

	*out = (struct layer_op){.op = {.kind = IPU_OP_ELEMENTWISE}};
	*part = forward ? row->part : row->grad_part;
	if (!row->part)
		return false;
	if (row->rows) {
		const int64_t columns = layer_last_dim(&layer->output);

		out->op.kind = IPU_OP_ROWS;
		out->op.rows = (struct ipu_rows){
			.work = forward ? IPU_ROWS_SOFTMAX : IPU_ROWS_SOFTMAX_GRAD,
			.rows = count / columns,
			.columns = columns,
		};
		return true;
	}
	out->op.elements.count = count;
	out->op.elements.operands = forward ? 1 : 2;
	for (int f = 0; f < IPU_FUNCTIONS; f++)
		out->op.elements.times[f] = forward ? row->forward[f] : row->backward[f];
	return true;
}

/* Lower a layer that consists of its activation only. */
void layer__activation_lower(struct layer_lowering *lowering)
{
	const enum model_activation activation = lowering->layer->activation;
	const bool forward = lowering->phase == IPU_PHASE_F;
	struct layer_op op;
	const char *part;

	if (!activation_op(lowering, &op, &part))
		return;
	if (forward) {
		op.reads = LAYER_INPUT;
		op.writes = LAYER_OUTPUT;
	} else if (lowering->takes_logits || !layer__wants_any(lowering)) {
		return;
	} else {
		op.reads = LAYER_GRAD_OUTPUT;
		op.reads |= layer_activation_needs_input(activation) ? LAYER_INPUT : 0u;
		op.reads |= layer_activation_needs_output(activation) ? LAYER_OUTPUT : 0u;
		op.writes = LAYER_GRAD_INPUT;
	}
	layer__lower(lowering, part, &op);
}

/* ---- operations ------------------------------------------------------------------------------ */

void layer__lower(struct layer_lowering *lowering, const char *part, const struct layer_op *op)
{
	const struct model_layer *layer = lowering->layer;
	struct layer_op *out;
	const char *name;

	assert(lowering->count < LAYER_OPS);
	if (lowering->failed)
		return;
	name = arena_printf(lowering->arena, "%s/%s", layer->name, part);
	if (!name) {
		lowering->failed = true;
		return;
	}

	out = &lowering->ops[lowering->count++];
	*out = *op;
	out->op.name = name;
	out->op.layer = layer->name;
	out->op.phase = lowering->phase;
	out->op.dtype = layer->half && !op->full ? IPU_FLOAT16 : IPU_FLOAT32;
}

struct layer_op layer__map(const struct ipu_elements *elements, unsigned reads, unsigned writes)
{
	return (struct layer_op){
		.op = {.kind = IPU_OP_ELEMENTWISE, .elements = *elements},
		.reads = reads,
		.writes = writes,
	};
}

struct layer_op layer__reduce(int64_t inputs, int64_t outputs, unsigned reads, unsigned writes)
{
	return (struct layer_op){
		.op = {.kind = IPU_OP_REDUCE, .reduce = {inputs, outputs}},
		.reads = reads,
		.writes = writes,
		.makes = outputs,
	};
}

struct layer_op layer__copy(int64_t count, int64_t atom, unsigned reads, unsigned writes)
{
	return (struct layer_op){
		.op = {.kind = IPU_OP_COPY, .copy = {.count = count, .atom = atom}},
		.reads = reads,
		.writes = writes,
	};
}

int64_t layer__lower_count(const struct layer_lowering *lowering)
{
	return lowering->batch * model_shape_count(&lowering->layer->output);
}

bool layer__wants(const struct layer_lowering *lowering, int input)
{
	return lowering->wanted && lowering->wanted[input];
}

bool layer__wants_any(const struct layer_lowering *lowering)
{
	for (int i = 0; i < lowering->layer->input_count; i++)
		if (layer__wants(lowering, i))
			return true;
	return false;
}

/* ---- products with a bias and an activation -------------------------------------------------- */

unsigned layer__lower_sums(const struct layer_lowering *lowering)
{
	const enum model_activation activation = lowering->layer->activation;

	if (lowering->takes_logits)
		return LAYER_BETWEEN;
	if (lowering->keeps && layer_activation_needs_input(activation))
		return LAYER_KEPT;
	return LAYER_OUTPUT;
}

void layer__lower_bias(struct layer_lowering *lowering, int param)
{
	const struct model_layer *layer = lowering->layer;
	const unsigned sums = layer__lower_sums(lowering);
	const struct layer_op op =
		layer__map(&(struct ipu_elements){.count = layer__lower_count(lowering),
						  .operands = 1,
						  .broadcast = layer_last_dim(&layer->output),
						  .times = {[IPU_FN_ADD] = 1}},
			   sums | LAYER_PARAM(param), sums);

	if (layer->use_bias)
		layer__lower(lowering, "BiasAdd", &op);
}

void layer__lower_bias_grad(struct layer_lowering *lowering, int param)
{
	const struct model_layer *layer = lowering->layer;
	const struct layer_op op =
		layer__reduce(layer__lower_count(lowering), layer_last_dim(&layer->output),
			      LAYER_GRAD_OUTPUT, LAYER_GRAD_PARAM(param));

	if (layer->use_bias && layer->trainable)
		layer__lower(lowering, "BiasAdd/Grad", &op);
}

void layer__lower_activation(struct layer_lowering *lowering)
{
	const enum model_activation activation = lowering->layer->activation;
	const bool forward = lowering->phase == IPU_PHASE_F;
	struct layer_op op;
	const char *part;

	if (!activation_op(lowering, &op, &part) || (!forward && lowering->takes_logits))
		return;
	if (forward) {
		op.reads = layer__lower_sums(lowering);
		op.writes = LAYER_OUTPUT;
	} else {
		op.reads = LAYER_GRAD_OUTPUT;
		op.reads |= layer_activation_needs_input(activation) ? LAYER_KEPT : 0u;
		op.reads |= layer_activation_needs_output(activation) ? LAYER_OUTPUT : 0u;
		op.writes = LAYER_GRAD_OUTPUT;
	}
	layer__lower(lowering, part, &op);
}

static void lower_product_backward(struct layer_lowering *lowering, const char *part,
				   layer_product product)
{
	const char *weights = arena_printf(lowering->arena, "%s/GradW", part);
	const char *data = arena_printf(lowering->arena, "%s/GradX", part);
	struct layer_op op = {.reads = LAYER_INPUT | LAYER_GRAD_OUTPUT,
			      .writes = LAYER_GRAD_PARAM(0)};

	if (!weights || !data) {
		lowering->failed = true;
		return;
	}
	layer__lower_activation(lowering);
	if (lowering->layer->trainable) {
		product(lowering, IPU_BACKWARD_WEIGHTS, &op.op);
		layer__lower(lowering, weights, &op);
		layer__lower_bias_grad(lowering, 1);
	}
	if (!layer__wants_any(lowering))
		return;
	op.reads = LAYER_GRAD_OUTPUT | LAYER_PARAM(0);
	op.writes = LAYER_GRAD_INPUT;
	product(lowering, IPU_BACKWARD_DATA, &op.op);
	layer__lower(lowering, data, &op);
}

void layer__lower_product(struct layer_lowering *lowering, const char *part, layer_product product)
{
	struct layer_op op = {.reads = LAYER_INPUT | LAYER_PARAM(0),
			      .writes = layer__lower_sums(lowering),
			      .makes = layer__lower_count(lowering)};

	if (lowering->phase != IPU_PHASE_F) {
		lower_product_backward(lowering, part, product);
		return;
	}
	product(lowering, IPU_FORWARD, &op.op);
	layer__lower(lowering, part, &op);
	layer__lower_bias(lowering, 1);
	layer__lower_activation(lowering);
}

/* ---- normalising layers ---------------------------------------------------------------------- */

/* The computations of poplibs (popnn's batchNormStatistics, batchNormParamGradients): the
 * statistics are two reductions, the gradients of gamma and beta another two; everything else is
 * a map over elements with values per channel broadcast. poplibs runs two reductions in the same
 * compute sets, but each step of a map in a separate one; so the number of phases is about the
 * same (docs/cost-model.md). */
void layer__lower_norm(struct layer_lowering *lowering, const char *name, const char *part,
		       const struct layer_op *op)
{
	const char *text = arena_printf(lowering->arena, "%s/%s", name, part);

	if (text)
		layer__lower(lowering, text, op);
	else
		lowering->failed = true;
}

void layer__lower_statistics(struct layer_lowering *lowering, const char *name, int64_t groups,
			     bool training_only)
{
	const int64_t count = layer__lower_count(lowering);
	struct layer_op sum = layer__reduce(count, groups, LAYER_INPUT, LAYER_BETWEEN);
	struct layer_op squares = layer__reduce(count, groups, LAYER_INPUT, LAYER_BETWEEN_TOO);

	sum.training_only = squares.training_only = training_only;
	layer__lower_norm(lowering, name, "Mean", &sum);
	layer__lower_norm(lowering, name, "PowerSum", &squares);
}

struct layer_op layer__norm_map(const struct layer_lowering *lowering, int adds, unsigned reads,
				unsigned writes)
{
	return layer__map(
		&(struct ipu_elements){
			.count = layer__lower_count(lowering),
			.operands = (reads & LAYER_INPUT) && (reads & LAYER_GRAD_OUTPUT) ? 2 : 1,
			.broadcast = layer_last_dim(&lowering->layer->input),
			.times = {[IPU_FN_ADD] = (uint8_t)adds}},
		reads, writes);
}

unsigned layer__norm_params(const struct layer_norm *norm)
{
	return (norm->scale ? LAYER_PARAM(0) : 0u) | (norm->center ? LAYER_PARAM(norm->scale) : 0u);
}

static unsigned norm_gamma_sum(const struct layer_norm *norm)
{
	return norm->scale ? LAYER_GRAD_PARAM(0) : (unsigned)LAYER_BETWEEN_TOO;
}

static unsigned norm_beta_sum(const struct layer_norm *norm)
{
	return norm->center ? LAYER_GRAD_PARAM(norm->scale) : (unsigned)LAYER_BETWEEN;
}

unsigned layer__norm_sums(const struct layer_norm *norm)
{
	return norm_gamma_sum(norm) | norm_beta_sum(norm);
}

void layer__lower_norm_sums(struct layer_lowering *lowering, const char *name,
			    const struct layer_norm *norm, bool both)
{
	const int64_t count = layer__lower_count(lowering);
	const int64_t channels = layer_last_dim(&lowering->layer->input);
	struct layer_op op = layer__norm_map(
		lowering, 3, LAYER_INPUT | LAYER_KEPT | LAYER_GRAD_OUTPUT, LAYER_BETWEEN);

	if (both || norm->scale) {
		op.makes = count;
		layer__lower_norm(lowering, name, "GradWhitened", &op);
		op = layer__reduce(count, channels, LAYER_BETWEEN, norm_gamma_sum(norm));
		layer__lower_norm(lowering, name, "GradGamma", &op);
	}
	op = layer__reduce(count, channels, LAYER_GRAD_OUTPUT, norm_beta_sum(norm));
	if (both || norm->center)
		layer__lower_norm(lowering, name, "GradBeta", &op);
}
