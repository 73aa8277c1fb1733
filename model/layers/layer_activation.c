/*
 * Activations: the table of them, which are layers or parts of other layers, and the layers that
 * are one: Activation, Softmax, ReLU, LeakyReLU, ELU and PReLU. No state.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"

#define READS_INPUT  1u
#define READS_OUTPUT 2u

/* erf as XLA expands it: clamp, square, polynomials of 7 and 5 coefficients by Horner's rule,
 * multiply; one division. */
#define ERF_ADDS 15

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

/* An addition, multiplication, comparison, division or elementary function counts as one operation.
 * The functions are those that our kernels use for an element (kernel_activation.h). */
static const struct activation {
	unsigned reads;               /* what the gradient reads */
	uint8_t work;                 /* operations per element */
	const char *part, *grad_part; /* NULL: linear */
	bool rows;                    /* an element's value depends on all of its row */
	uint8_t forward[IPU_FUNCTIONS], backward[IPU_FUNCTIONS]; /* times of each function */
} activation_rows[] = {
	[MODEL_LINEAR] = {0, 0, NULL, NULL, false, {0}, {0}},
	[MODEL_RELU] = {READS_OUTPUT, 1, PARTS("Relu"), false, {RELU = 1}, {RELU_GRAD = 1}},
	[MODEL_SOFTMAX] = {READS_OUTPUT, 5, PARTS("Softmax"), true, {0}, {0}},
	/* exp, - 1, times alpha, select; y + alpha, times dy, select */
	[MODEL_ELU] = {READS_OUTPUT,
		       3,
		       PARTS("Elu"),
		       false,
		       {EXP = 1, ADD = 2, SELECT = 1},
		       {ADD = 2, SELECT = 1}},
	[MODEL_EXPONENTIAL] = {READS_OUTPUT, 1, PARTS("Exp"), false, {EXP = 1}, {ADD = 1}},
	/* x / sqrt 2, erf, + 1, times x / 2; the derivative adds x exp(-x^2 / 2) / sqrt(2 pi) */
	[MODEL_GELU] = {READS_INPUT,
			5,
			PARTS("Gelu"),
			false,
			{ADD = ERF_ADDS + 4, DIVIDE = 1},
			{ADD = ERF_ADDS + 8, DIVIDE = 1, EXP = 1}},
	[MODEL_HARD_SIGMOID] =
		{READS_OUTPUT, 4, PARTS("HardSigmoid"), false, {ADD = 4}, {ADD = 1, SELECT = 1}},
	[MODEL_LEAKY_RELU] = {READS_OUTPUT,
			      2,
			      PARTS("LeakyRelu"),
			      false,
			      {ADD = 1, SELECT = 1},
			      {ADD = 1, SELECT = 1}},
	[MODEL_LOG_SOFTMAX] = {READS_OUTPUT, 5, PARTS("LogSoftmax"), true, {0}, {0}},
	/* x tanh(log(1 + exp x)), by max(x, 0) + log(1 + exp -|x|) */
	[MODEL_MISH] = {READS_INPUT,
			6,
			PARTS("Mish"),
			false,
			{EXP = 1, LOG = 1, TANH = 1, ADD = 5},
			{EXP = 1, LOG = 1, TANH = 1, SIGMOID = 1, ADD = 10}},
	[MODEL_RELU6] =
		{READS_OUTPUT, 2, PARTS("Relu6"), false, {ADD = 2}, {RELU_GRAD = 1, SELECT = 1}},
	[MODEL_SELU] = {READS_OUTPUT,
			4,
			PARTS("Selu"),
			false,
			{EXP = 1, ADD = 3, SELECT = 1},
			{ADD = 2, SELECT = 1}},
	[MODEL_SIGMOID] = {READS_OUTPUT, 3, PARTS("Sigmoid"), false, {SIGMOID = 1}, {ADD = 3}},
	[MODEL_SOFTPLUS] = {READS_OUTPUT,
			    3,
			    PARTS("Softplus"),
			    false,
			    {EXP = 1, LOG = 1, ADD = 4},
			    {EXP = 1, ADD = 2}},
	[MODEL_SOFTSIGN] = {READS_INPUT,
			    3,
			    PARTS("Softsign"),
			    false,
			    {ADD = 2, DIVIDE = 1},
			    {ADD = 4, DIVIDE = 1}},
	[MODEL_SWISH] = {READS_INPUT,
			 4,
			 PARTS("Swish"),
			 false,
			 {SIGMOID = 1, ADD = 1},
			 {SIGMOID = 1, ADD = 5}},
	[MODEL_TANH] = {READS_OUTPUT, 1, PARTS("Tanh"), false, {TANH = 1}, {ADD = 3}},
};
_Static_assert(ARRAY_LEN(activation_rows) == MODEL_ACTIVATIONS, "activation table out of step");

bool layer_activation_needs_input(enum model_activation activation)
{
	return (activation_rows[activation].reads & READS_INPUT) != 0;
}

bool layer_activation_needs_output(enum model_activation activation)
{
	return (activation_rows[activation].reads & READS_OUTPUT) != 0;
}

int64_t layer__activation_work(enum model_activation activation)
{
	return activation_rows[activation].work;
}

enum status layer__read_activation(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;

	model__read_activation(in->config, "activation", &layer->activation, in->err);
	layer->reads_output = layer_activation_needs_output(layer->activation);
	return in->err->status;
}

/* Append the activation from @in to the output. In phase B, its gradient goes to @grad, and its
 * input is in @kept. Nothing for linear. */
static void lower_activation(struct layer_lowering *lowering, unsigned in, unsigned kept,
			     unsigned grad)
{
	const struct model_layer *layer = lowering->layer;
	const struct activation *row = &activation_rows[layer->activation];
	const bool forward = lowering->phase == IPU_PHASE_F;
	const int64_t count = layer__lower_count(lowering),
		      columns = layer_last_dim(&layer->output);
	struct layer_op op = {.op = {.kind = row->rows ? IPU_OP_ROWS : IPU_OP_ELEMENTWISE},
			      .reads = forward ? in : LAYER_GRAD_OUTPUT,
			      .writes = forward ? LAYER_OUTPUT : grad};

	if (!row->part || (!forward && lowering->takes_logits))
		return;
	if (!forward)
		op.reads |= (row->reads & READS_INPUT ? kept : 0u) |
			    (row->reads & READS_OUTPUT ? LAYER_OUTPUT : 0u);
	if (row->rows) {
		op.op.rows = (struct ipu_rows){
			.work = forward ? IPU_ROWS_SOFTMAX : IPU_ROWS_SOFTMAX_GRAD,
			.rows = count / columns,
			.columns = columns,
		};
	} else {
		op.op.elements.count = count;
		op.op.elements.operands = forward ? 1 : 2;
		memcpy(op.op.elements.times, forward ? row->forward : row->backward,
		       sizeof(row->forward));
	}
	layer__lower(lowering, forward ? row->part : row->grad_part, &op);
}

unsigned layer__lower_sums(const struct layer_lowering *lowering)
{
	const enum model_activation activation = lowering->layer->activation;

	if (lowering->takes_logits)
		return LAYER_BETWEEN;
	if (lowering->retains && layer_activation_needs_input(activation))
		return LAYER_KEPT;
	return LAYER_OUTPUT;
}

void layer__lower_activation(struct layer_lowering *lowering)
{
	lower_activation(lowering, layer__lower_sums(lowering), LAYER_KEPT, LAYER_GRAD_OUTPUT);
}

/* ---- Activation, Softmax --------------------------------------------------------------------- */

static void set_activation(struct model_layer *layer, enum model_activation activation)
{
	layer->activation = activation;
	layer->reads_inputs = layer_activation_needs_input(activation);
	layer->reads_output = layer_activation_needs_output(activation);
}

static int64_t activation_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->output) * activation_rows[layer->activation].work;
}

static void activation_lower(struct layer_lowering *lowering)
{
	if (lowering->phase == IPU_PHASE_F || layer__wants_any(lowering))
		lower_activation(lowering, LAYER_INPUT, LAYER_INPUT, LAYER_GRAD_INPUT);
}

static const struct model_option activation_options[] = {
	{"activation", .rule = MODEL_ANY}, {"activity_regularizer", .rule = MODEL_NULL}};

static enum status activation_read(const struct layer_reading *in)
{
	enum model_activation activation = MODEL_LINEAR;

	model__read_activation(in->config, "activation", &activation, in->err);
	set_activation(in->layer, activation);
	return in->err->status;
}

const struct layer_ops layer_activation = {
	.class_name = "Activation",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_activation,
	.options = MODEL_OPTIONS(activation_options),
	.read = activation_read,
	.flops = activation_flops,
	.lower = activation_lower,
	.each_step = true,
	.reads_inputs = true,
	.reads_output = true,
};

static const struct model_option softmax_options[] = {{"axis", .rule = MODEL_ANY}};

/* Over the last axis. */
static enum status softmax_read(const struct layer_reading *in)
{
	set_activation(in->layer, MODEL_SOFTMAX);
	return layer__check_last_axis(in);
}

const struct layer_ops layer_softmax = {
	.class_name = "Softmax",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_softmax,
	.options = MODEL_OPTIONS(softmax_options),
	.read = softmax_read,
	.flops = activation_flops,
	.lower = activation_lower,
	.each_step = true,
	.reads_output = true,
};

/* ---- ReLU, LeakyReLU, ELU -------------------------------------------------------------------- */

/*
 * A ReLU has a bound, a slope and a threshold. Without the last two its gradient follows from its
 * output, and it may be fused into the layer before; otherwise the gradient reads the input.
 */
bool layer_relu_is_plain(const struct model_layer *layer)
{
	const struct layer_relu *c = layer->config;

	return !(c->threshold > 0.0f) && !(c->slope > 0.0f);
}

/* clang-format off */
#define RELU_NUMBER(key, member, fallback_) \
	{(key), MODEL_FLOAT, LAYER_CONFIG(relu, member), .fallback = (fallback_), \
	 .most = 3e38, .must = "must be a number of at least 0"}
static const struct model_option relu_options[] = {
	RELU_NUMBER("max_value", most, (double)INFINITY),
	RELU_NUMBER("negative_slope", slope, 0.0),
	RELU_NUMBER("threshold", threshold, 0.0),
};
/* Keras 2 writes alpha, Keras 3 negative_slope, which counts if both are there. */
static const struct model_option leaky_relu_options[] = {
	RELU_NUMBER("alpha", slope, 0.3),
	RELU_NUMBER("negative_slope", slope, 0.0),
};
static const struct model_option elu_options[] = {RELU_NUMBER("alpha", alpha, 1.0)};
/* clang-format on */

static enum status relu_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_relu *c = layer->config;

	if (layer->ops == &layer_leaky_relu)
		c->most = INFINITY;
	layer->reads_inputs = !layer_relu_is_plain(layer);
	layer->reads_output = layer_relu_is_plain(layer);
	return ST_OK;
}

static int64_t relu_flops(const struct model_layer *layer, int64_t batch)
{
	const struct layer_relu *c = layer->config;
	const int64_t each = 1 + (c->most < INFINITY) + (layer_relu_is_plain(layer) ? 0 : 2);

	return batch * model_shape_count(&layer->output) * (layer->ops == &layer_elu ? 3 : each);
}

static void relu_lower(struct layer_lowering *lowering)
{
	const struct model_layer *layer = lowering->layer;
	const struct layer_relu *c = layer->config;
	const bool elu = layer->ops == &layer_elu, forward = lowering->phase == IPU_PHASE_F;
	struct layer_op op =
		layer__map(&(struct ipu_elements){.count = layer__lower_count(lowering),
						  .operands = forward ? 1 : 2},
			   LAYER_INPUT, LAYER_OUTPUT);

	/* A bound and a threshold cost a select each; a slope costs a select and a product. */
	if (elu) {
		op.op.elements.times[IPU_FN_EXP] = forward;
		op.op.elements.times[IPU_FN_ADD] = 2;
		op.op.elements.times[IPU_FN_SELECT] = 1;
	} else if (layer_relu_is_plain(layer)) {
		op.op.elements.times[forward ? IPU_FN_RELU : IPU_FN_RELU_GRAD] = 1;
		op.op.elements.times[forward ? IPU_FN_ADD : IPU_FN_SELECT] = c->most < INFINITY;
	} else {
		op.op.elements.times[IPU_FN_ADD] = (uint8_t)(1 + (c->threshold > 0.0f));
		op.op.elements.times[IPU_FN_SELECT] = (uint8_t)(1 + (c->most < INFINITY));
	}

	if (!forward) {
		op.reads = LAYER_GRAD_OUTPUT | (layer->reads_inputs ? LAYER_INPUT : LAYER_OUTPUT);
		op.writes = LAYER_GRAD_INPUT;
	}
	if (forward)
		layer__lower(lowering, elu ? "Elu" : "Relu", &op);
	else if (layer__wants_any(lowering))
		layer__lower(lowering, elu ? "Elu/Grad" : "Relu/Grad", &op);
}

#define RELU_LAYER(row, name, ...)                                                                 \
	const struct layer_ops layer_##row = {.class_name = (name),                                \
					      .kind = LAYER_KIND_##row,                            \
					      .options = MODEL_OPTIONS(row##_options),             \
					      .config_size = sizeof(struct layer_relu),            \
					      .flops = relu_flops,                                 \
					      .lower = relu_lower,                                 \
					      .each_step = true,                                   \
					      .reads_output = true,                                \
					      .masks = LAYER_MASKS_PASS,                           \
					      __VA_ARGS__}

RELU_LAYER(relu, "ReLU", .read = relu_read, .reads_inputs = true);
RELU_LAYER(leaky_relu, "LeakyReLU", .read = relu_read, .reads_inputs = true);
RELU_LAYER(elu, "ELU", .read = NULL);

bool layer_is_relu(const struct model_layer *layer, float *most)
{
	const struct layer_relu *c = layer->config;

	*most = INFINITY;
	if (layer->ops == &layer_relu && layer_relu_is_plain(layer)) {
		*most = c->most;
		return true;
	}
	if (layer->ops != &layer_activation)
		return false;
	if (layer->activation == MODEL_RELU6)
		*most = 6.0f;
	return layer->activation == MODEL_RELU || layer->activation == MODEL_RELU6;
}

/* ---- PReLU ----------------------------------------------------------------------------------- */

/*
 * x if it is above 0, otherwise alpha x, with a trained alpha: one for each value of an item; axes
 * in shared_axes share an alpha.
 */

/* Number of shared axes: shared_axes, numbered from 1, must be the first ones. 0 after an error. */
static int shared_axes(const struct layer_reading *in)
{
	struct json_at here, item = {0};
	unsigned seen = 0;
	int count;

	if (!model_option_at(in->config, "shared_axes", &here, in->err) ||
	    json_array(&here, in->err) != ST_OK)
		return 0;
	count = json_count(&here);
	while (json_next(&here, &item)) {
		int64_t axis;

		if (json_int(&item, 1, in->layer->input.ndim, &axis, in->err) != ST_OK)
			return 0;
		seen |= 1u << axis;
	}
	if (count <= in->layer->input.ndim && seen == (2u << count) - 2u)
		return count;
	model_config_unsupported(
		&here, in->err,
		"not supported: shared axes must be the first ones, as [1] or [1, 2]");
	return 0;
}

static const struct model_option p_relu_options[] = {
	LAYER_PARAM_OPTIONS("alpha"),
	{"shared_axes", .rule = MODEL_ANY},
};

static enum status p_relu_read(const struct layer_reading *in)
{
	struct layer_param alpha = {.name = "alpha", .initializer = "Zeros"};
	const int shared = shared_axes(in);

	alpha.shape = in->layer->input;
	for (int d = 0; d < shared; d++)
		alpha.shape.dim[d] = 1;
	alpha.fan_in = alpha.fan_out = model_shape_count(&alpha.shape);
	return layer__add_param(in, &alpha);
}

static int64_t p_relu_flops(const struct model_layer *layer, int64_t batch)
{
	return 2 * batch * model_shape_count(&layer->output);
}

static void p_relu_lower(struct layer_lowering *lowering)
{
	const int64_t count = layer__lower_count(lowering);
	const int64_t alphas =
		model_shape_count(&lowering->model->params[lowering->layer->first_param].shape);
	const struct ipu_elements each = {.count = count,
					  .operands = lowering->phase == IPU_PHASE_F ? 1 : 2,
					  .broadcast = alphas,
					  .times = {[IPU_FN_ADD] = 1, [IPU_FN_SELECT] = 1}};
	struct layer_op op = layer__map(&each, LAYER_INPUT | LAYER_PARAM(0), LAYER_OUTPUT);

	if (lowering->phase == IPU_PHASE_F) {
		layer__lower(lowering, "PRelu", &op);
		return;
	}
	if (lowering->layer->trainable) {
		op = layer__map(&each, LAYER_INPUT | LAYER_GRAD_OUTPUT, LAYER_BETWEEN);
		op.op.elements.broadcast = 0;
		op.makes = count;
		layer__lower(lowering, "PRelu/Grad/alpha", &op);
		op = layer__reduce(count, alphas, LAYER_BETWEEN, LAYER_GRAD_PARAM(0));
		op.makes = 0;
		layer__lower(lowering, "PRelu/Grad/alpha/Sum", &op);
	}
	op = layer__map(&each, LAYER_INPUT | LAYER_GRAD_OUTPUT | LAYER_PARAM(0), LAYER_GRAD_INPUT);
	if (layer__wants_any(lowering))
		layer__lower(lowering, "PRelu/Grad", &op);
}

const struct layer_ops layer_p_relu = {
	.class_name = "PReLU",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_p_relu,
	.options = MODEL_OPTIONS(p_relu_options),
	.read = p_relu_read,
	.flops = p_relu_flops,
	.lower = p_relu_lower,
	.reads_inputs = true,
};
