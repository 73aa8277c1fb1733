/*
 * What activations are on the device: which functions on each element, forward and backward, as our
 * kernels compute them (trainer/kernels/kernel_activation.h has the formulas). No state.
 */
#include <assert.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"

/* erf as XLA expands it: clamp, square, polynomials of 7 and 5 coefficients by Horner's rule,
 * multiply; one division. */
#define ERF_ADDS 15

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
	/* exp, - 1, times alpha, choice; y + alpha, times dy, choice */
	[MODEL_ELU] = {PARTS("Elu"), false, {EXP = 1, ADD = 2, SELECT = 1}, {ADD = 2, SELECT = 1}},
	[MODEL_EXPONENTIAL] = {PARTS("Exp"), false, {EXP = 1}, {ADD = 1}},
	/* x / sqrt 2, erf, + 1, times x / 2; its derivative beside x exp(-x^2 / 2) / sqrt(2 pi) */
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

bool layer__activation_op(const struct layer_lowering *lowering, struct layer_op *out,
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

/* A layer that is its activation and nothing else. */
void layer__activation_lower(struct layer_lowering *lowering)
{
	const enum model_activation activation = lowering->layer->activation;
	const bool forward = lowering->phase == IPU_PHASE_F;
	struct layer_op op;
	const char *part;

	if (!layer__activation_op(lowering, &op, &part))
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
