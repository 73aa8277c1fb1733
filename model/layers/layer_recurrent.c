/*
 * SimpleRNN, LSTM and GRU over sequences (steps, features), by Keras's formulas. x is a step's
 * input, h and c the state after the step before (zeros before the first), t the activation
 * (default tanh), s the recurrent activation (default sigmoid):
 *
 *	SimpleRNN   h = t(x W + h U + b)
 *	LSTM        i, f, a, o = x W + h U + b;  c = s(f) c + s(i) t(a);  h = s(o) t(c)
 *	GRU         z, r, a = x W + b0;  z', r', a' = h U + b1   (reset_after)
 *	            h = s(z + z') h + (1 - s(z + z')) t(a + s(r + r') a')
 *	            without reset_after a' = (s(r + r') h) U, and b is only in the first line
 *
 * In training, values of x and h may be dropped (dropout, recurrent_dropout): for an item the
 * same at all steps and for all gates, as in Keras 3; the h in a GRU's z h is the one after
 * dropout.
 *
 * With a mask (1 or 0 per step, the second input) h and c do not change at a step of 0, whose
 * output is that h or, with zero_output_for_mask, zeros.
 *
 * Initial states (h, and c of an LSTM) are inputs after the sequence. A layer whose states are
 * read outputs one row per item: its outputs, then h and c after the last step; NAME/output,
 * NAME/h and NAME/c are slices of it.
 *
 * A stateful layer begins each item with the h and c that the same item of the last batch ended
 * with.
 *
 * W is [features, gates x units], U [units, gates x units]; b [gates x units], with reset_after
 * [2, gates x units].
 */
#include <string.h>

#include "common/mem.h"
#include "ipu/plan/ipu_op.h"
#include "model/layers/layer_internal.h"

#define UNITS_MOST 65536
#define ITEM_MOST  0x1p40 /* values of an item: counts of a batch stay within 64 bits */

/* ---- reading --------------------------------------------------------------------------------- */

static int gates_of(const struct model_layer *layer)
{
	return layer->ops == &layer_lstm ? 4 : layer->ops == &layer_gru ? 3 : 1;
}

/* The function must be elementwise with a derivative computable from its result, because a step
 * retains only the result. */
static void read_activation(const struct layer_reading *in, const char *key,
			    enum model_activation *out)
{
	struct json_at here;

	model__read_activation(in->config, key, out, in->err);
	if (model_option_given(in->config, key, &here, in->err) &&
	    (*out == MODEL_SOFTMAX || *out == MODEL_LOG_SOFTMAX ||
	     layer_activation_needs_input(*out)))
		model_config_unsupported(&here, in->err,
					 "not supported here: it must be elu, exponential, "
					 "hard_sigmoid, leaky_relu, linear, relu, relu6, selu, "
					 "sigmoid, softplus or tanh");
}

/* Check that the retained values of an item can be counted; model__add_param() limits the
 * weights. */
static void check_sizes(const struct layer_reading *in)
{
	const struct model_layer *layer = in->layer;
	const double steps = (double)layer->input.dim[0], units = (double)layer->units;
	const double item =
		steps * ((double)layer->input.dim[1] + (double)(gates_of(layer) + 2) * units);

	if (!err_stuck(in->err) && item > ITEM_MOST)
		model_config_limit(in->config, in->err,
				   "%.0f units over %.0f steps keep %.3g numbers an item: at most "
				   "%.3g are possible",
				   units, steps, item, ITEM_MOST);
}

static void add_params(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	const struct layer_recurrent *r = layer->config;
	const int64_t wide = gates_of(layer) * layer->units, features = layer->input.dim[1];
	const struct layer_param kernel = {.name = "kernel",
					   .initializer = "GlorotUniform",
					   .shape = {.ndim = 2, .dim = {features, wide}},
					   .fan_in = features,
					   .fan_out = wide};
	const struct layer_param recurrent = {.name = "recurrent_kernel",
					      .option = "recurrent",
					      .initializer = "Orthogonal",
					      .shape = {.ndim = 2, .dim = {layer->units, wide}},
					      .fan_in = layer->units,
					      .fan_out = wide};
	struct layer_param bias = {.name = "bias",
				   .initializer = "Zeros",
				   .shape = {.ndim = 1, .dim = {wide}},
				   .fan_in = wide,
				   .fan_out = wide};
	bool forget = layer->ops == &layer_lstm;

	if (layer->ops == &layer_gru && !r->reset_before)
		bias.shape = (struct model_shape){.ndim = 2, .dim = {2, wide}};
	model_option_bool(in->config, "unit_forget_bias", &forget, in->err);
	layer__add_param(in, &kernel);
	layer__add_param(in, &recurrent);
	if (!layer->use_bias || layer__add_param(in, &bias) != ST_OK)
		return;
	/* Keras's unit_forget_bias: the second quarter starts as ones. */
	if (forget)
		in->model->params[layer->first_param + layer->param_count - 1].init =
			(struct model_init){.kind = MODEL_INIT_ONES_AT,
					    .low = (double)layer->units,
					    .high = 1.0};
}

int layer_state_count(const struct layer_ops *ops)
{
	if (ops == &layer_lstm)
		return 2;
	return ops == &layer_gru || ops == &layer_simple_rnn;
}

/* clang-format off */
#define FLAG(key, member) {(key), MODEL_BOOL, LAYER_CONFIG(recurrent, member)}
static const struct model_option recurrent_options[] = {
	{"units", MODEL_INT, LAYER_FIELD(units), .required = true, .strict = true, .least = 1, .most = UNITS_MOST},
	{"activation", .rule = MODEL_ANY},
	{"recurrent_activation", .rule = MODEL_ANY},
	{"use_bias", MODEL_BOOL, LAYER_FIELD(use_bias), .fallback = true},
	LAYER_PARAM_OPTIONS("kernel"),
	LAYER_PARAM_OPTIONS("recurrent"),
	LAYER_PARAM_OPTIONS("bias"),
	{"unit_forget_bias", .rule = MODEL_ANY},
	{"activity_regularizer", .rule = MODEL_NULL},
	{"dropout", .rule = MODEL_ANY},
	{"recurrent_dropout", .rule = MODEL_ANY},
	FLAG("return_sequences", sequences),
	{"return_state", .rule = MODEL_ANY},
	FLAG("go_backwards", backwards),
	FLAG("return_reversed", reversed), /* set by a Bidirectional only */
	FLAG("stateful", stateful),
	{"unroll", .rule = MODEL_ANY},
	{"time_major", .rule = MODEL_FALSE},
	{"implementation", .rule = MODEL_ANY},
	{"reset_after", .rule = MODEL_ANY},
	FLAG("zero_output_for_mask", zeros),
	{"seed", .rule = MODEL_ANY},
};
/* clang-format on */

static enum status recurrent_read(const struct layer_reading *in)
{
	struct model_layer *layer = in->layer;
	struct layer_recurrent *r = layer->config;
	const int64_t units = layer->units;
	const int states = layer_state_count(layer->ops);
	bool reset_after = true;

	r->gates = gates_of(layer);
	check_sizes(in);
	r->activation = MODEL_TANH;
	r->recurrent_activation = MODEL_SIGMOID;
	read_activation(in, "activation", &r->activation);
	read_activation(in, "recurrent_activation", &r->recurrent_activation);
	layer__read_drop(in, "dropout", &r->drop);
	layer__read_drop(in, "recurrent_dropout", &r->recurrent_drop);
	layer__read_seed(in, &r->seed);
	model_option_bool(in->config, "reset_after", &reset_after, in->err);
	if (r->stateful)
		layer->state = layer->ops == &layer_lstm ? 2 * units : units;
	r->reset_before = layer->ops == &layer_gru && !reset_after;

	/* Initial states are further inputs. */
	r->returns_state = layer->returns_state;
	r->initial_states = layer_own_inputs(layer) - 1;
	if (!err_stuck(in->err) && r->initial_states != 0 && r->initial_states != states)
		json_fail(in->config, in->err, "%d initial state%s come%s in: %s has %d",
			  r->initial_states, r->initial_states == 1 ? "" : "s",
			  r->initial_states == 1 ? "s" : "", layer->ops->class_name, states);
	for (int i = 1; i <= r->initial_states && !err_stuck(in->err); i++) {
		const struct model_shape *shape = model_input_shape(in->model, layer, i);

		if (shape->ndim != 1 || shape->dim[0] != layer->units)
			json_fail(in->config, in->err,
				  "an initial state must have %lld numbers, as many as units",
				  (long long)layer->units);
	}

	layer->output =
		r->sequences ? (struct model_shape){.ndim = 2, .dim = {layer->input.dim[0], units}}
			     : (struct model_shape){.ndim = 1, .dim = {units}};
	/* One row, of which other layers slice outputs and states. */
	if (r->returns_state)
		layer->output =
			(struct model_shape){.ndim = 1,
					     .dim = {model_shape_count(&layer->output) +
						     layer_state_count(layer->ops) * units}};
	add_params(in);
	return in->err->status;
}

int layer_states(const struct layer_ops *ops, const cJSON *config)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(config, "return_state"))
		       ? layer_state_count(ops)
		       : 0;
}

enum status layer_state(struct model *model, const struct model_layer *from, int index,
			struct model_layer *part, struct err *err)
{
	const struct layer_recurrent *r = from->config;
	const int64_t outputs = (r->sequences ? from->input.dim[0] : 1) * from->units;

	if (index > 0)
		return layer_part(model, part,
				  &(struct model_shape){.ndim = 1, .dim = {from->units}},
				  outputs + (index - 1) * from->units, err);
	return layer_part(
		model, part,
		r->sequences
			? &(struct model_shape){.ndim = 2, .dim = {from->input.dim[0], from->units}}
			: &(struct model_shape){.ndim = 1, .dim = {from->units}},
		0, err);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t recurrent_flops(const struct model_layer *layer, int64_t batch)
{
	const double wide = (double)gates_of(layer) * (double)layer->units;
	const double rows = (double)batch * (double)layer->input.dim[0];
	const double flops =
		rows * wide * (2.0 * (double)(layer->input.dim[1] + layer->units) + 8.0);

	return flops < 0x1p62 ? (int64_t)flops : INT64_MAX;
}

/* The tensors that each operation of the composite reads and writes. A cell's sums are
 * LAYER_BETWEEN, those of its second product LAYER_BETWEEN_TOO; backward, they are the gradients
 * of all steps and a product. */
static const struct role {
	const char *name;
	unsigned reads, writes;
} roles[] = {
	{"Rnn/Gates", LAYER_INPUT | LAYER_PARAM(0) | LAYER_PARAM(1), LAYER_BETWEEN},
	{"Rnn/Candidate", LAYER_INPUT | LAYER_PARAM(0) | LAYER_PARAM(1), LAYER_BETWEEN_TOO},
	{"Rnn/WeightInput", LAYER_INPUT | LAYER_PARAM(0), LAYER_BETWEEN},
	{"Rnn/Input", LAYER_INPUT | LAYER_PARAM(0), LAYER_BETWEEN},
	{"Rnn/State", LAYER_PARAM(1), LAYER_BETWEEN_TOO},
	{"Rnn/Cell", LAYER_BETWEEN | LAYER_BETWEEN_TOO, LAYER_KEPT},
	{"Rnn/Output", LAYER_KEPT, LAYER_OUTPUT},
	{"Rnn/Cell/Grad", LAYER_KEPT | LAYER_GRAD_OUTPUT, LAYER_BETWEEN},
	{"Rnn/Gates/GradX", LAYER_BETWEEN | LAYER_PARAM(0) | LAYER_PARAM(1),
	 LAYER_BETWEEN_TOO | LAYER_GRAD_INPUT},
	{"Rnn/Candidate/GradX", LAYER_BETWEEN | LAYER_PARAM(0) | LAYER_PARAM(1),
	 LAYER_BETWEEN_TOO | LAYER_GRAD_INPUT},
	{"Rnn/WeightInput/GradX", LAYER_BETWEEN | LAYER_PARAM(0), LAYER_GRAD_INPUT},
	{"Rnn/Input/GradX", LAYER_BETWEEN | LAYER_PARAM(0), LAYER_GRAD_INPUT},
	{"Rnn/State/GradX", LAYER_BETWEEN | LAYER_PARAM(1), LAYER_BETWEEN_TOO},
	{"Rnn/Gates/GradW", LAYER_INPUT | LAYER_KEPT | LAYER_BETWEEN, LAYER_BETWEEN_TOO},
	{"Rnn/Gates/Sum", LAYER_BETWEEN_TOO, LAYER_GRAD_PARAM(0) | LAYER_GRAD_PARAM(1)},
	{"Rnn/Candidate/GradW", LAYER_INPUT | LAYER_KEPT | LAYER_BETWEEN, LAYER_BETWEEN_TOO},
	{"Rnn/Candidate/Sum", LAYER_BETWEEN_TOO, LAYER_GRAD_PARAM(0) | LAYER_GRAD_PARAM(1)},
	{"Rnn/WeightInput/GradW", LAYER_INPUT | LAYER_BETWEEN, LAYER_GRAD_PARAM(0)},
	{"Rnn/Input/GradW", LAYER_INPUT | LAYER_BETWEEN, LAYER_BETWEEN_TOO},
	{"Rnn/Input/Sum", LAYER_BETWEEN_TOO, LAYER_GRAD_PARAM(0)},
	{"Rnn/State/GradW", LAYER_KEPT | LAYER_BETWEEN, LAYER_BETWEEN_TOO},
	{"Rnn/State/Sum", LAYER_BETWEEN_TOO, LAYER_GRAD_PARAM(1)},
	{"Rnn/Bias/Sum", LAYER_BETWEEN, LAYER_BETWEEN_TOO},
	{"Rnn/Bias/Grad", LAYER_BETWEEN_TOO, LAYER_GRAD_PARAM(2)},
};

static const struct role *role_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (!strcmp(roles[i].name, name))
			return &roles[i];
	return NULL;
}

/* Elements that an operation allocates. The backward pass reads a step's gates, state and
 * output, and stores the gates' gradients of all steps; a prediction needs only the outputs. */
static int64_t new_elements(const struct layer_lowering *lowering, const struct ipu_op *from)
{
	const struct model_layer *layer = lowering->layer;
	const int64_t rows = lowering->batch * layer->input.dim[0];
	const int64_t wide = gates_of(layer) * layer->units;

	switch (from->kind) {
	case IPU_OP_MATMUL:
		return from->matmul.m * from->matmul.n;
	case IPU_OP_REDUCE:
		return from->reduce.outputs;
	case IPU_OP_ELEMENTWISE:
		if (!strcmp(from->name, "Rnn/Cell/Grad"))
			return rows * wide;
		if (!strcmp(from->name, "Rnn/Cell"))
			return rows * (lowering->retains ? wide + 2 * layer->units : layer->units) +
			       lowering->retains * lowering->batch * layer->state;
		return from->elements.count;
	default:
		return 0;
	}
}

static void lower_role(struct layer_lowering *lowering, const struct ipu_op *from,
		       unsigned *existing)
{
	const unsigned allocatable = LAYER_KEPT | LAYER_BETWEEN | LAYER_BETWEEN_TOO;
	const struct role *role = role_of(from->name);
	struct layer_op op = {.op = *from, .reads = role->reads, .writes = role->writes};

	if (!lowering->layer->use_bias && !strncmp(from->name, "Rnn/Bias", 8))
		return;
	if (!layer__wants_any(lowering))
		op.writes &= ~(unsigned)LAYER_GRAD_INPUT;
	if (lowering->phase == IPU_PHASE_F && !lowering->retains) {
		op.reads |= op.reads & LAYER_KEPT ? LAYER_BETWEEN : 0u;
		op.writes |= op.writes & LAYER_KEPT ? LAYER_BETWEEN : 0u;
		op.reads &= ~(unsigned)LAYER_KEPT;
		op.writes &= ~(unsigned)LAYER_KEPT;
	}
	if (lowering->phase == IPU_PHASE_F && lowering->layer->state > 0 && !*existing)
		op.reads |= LAYER_STATE;
	if (lowering->phase == IPU_PHASE_F) /* the composite may have only one product */
		op.reads &= *existing | ~(unsigned)LAYER_BETWEEN_TOO;
	op.makes = op.writes & allocatable ? new_elements(lowering, from) : 0;
	*existing |= op.writes & allocatable;
	layer__lower(lowering, from->name, &op);
}

/* Append a dropout whose mask of @each values per item is the same at all steps; @at_once: for all
 * steps in one operation. The mask (a byte per value) is retained; forward, the result is, too. */
static void lower_dropout(struct layer_lowering *lowering, const struct layer_drop *drop,
			  int64_t each, bool at_once, unsigned reads, unsigned writes)
{
	const bool forward = lowering->phase == IPU_PHASE_F;
	const unsigned decisions = forward && !lowering->retains ? LAYER_BETWEEN : LAYER_KEPT;
	const int64_t count = lowering->batch * each, steps = lowering->layer->input.dim[0];
	struct layer_op mask =
		layer__map(&(struct ipu_elements){.count = count, .times = {[IPU_FN_RANDOM] = 1}},
			   0, decisions);
	struct layer_op left =
		layer__map(&(struct ipu_elements){.count = at_once ? steps * count : count,
						  .operands = at_once ? 1 : 2,
						  .broadcast = at_once ? count : 0,
						  .times = {[IPU_FN_ADD] = 1, [IPU_FN_SELECT] = 1}},
			   decisions | reads, forward ? decisions : writes);

	if (!drop->threshold || !lowering->training)
		return;
	left.op.repeats = at_once ? 1 : steps;
	mask.makes = count;
	left.makes = forward ? steps * count : 0;
	mask.bytes = true;
	mask.training_only = left.training_only = true;
	if (forward)
		layer__lower(lowering,
			     at_once ? "Rnn/Dropout/RandomUniform"
				     : "Rnn/RecurrentDropout/RandomUniform",
			     &mask);
	layer__lower(lowering,
		     at_once   ? forward ? "Rnn/Dropout/Mul" : "Rnn/Dropout/Mul/Grad"
		     : forward ? "Rnn/RecurrentDropout/Mul"
			       : "Rnn/RecurrentDropout/Mul/Grad",
		     &left);
}

static void lower_dropouts(struct layer_lowering *lowering)
{
	const struct layer_recurrent *r = lowering->layer->config;
	const bool forward = lowering->phase == IPU_PHASE_F;

	if (forward || layer__wants_any(lowering))
		lower_dropout(lowering, &r->drop, lowering->layer->input.dim[1], true,
			      forward ? LAYER_INPUT : 0, LAYER_GRAD_INPUT);
	lower_dropout(lowering, &r->recurrent_drop, lowering->layer->units, false,
		      forward ? 0 : LAYER_BETWEEN_TOO, LAYER_BETWEEN_TOO);
}

static void recurrent_lower(struct layer_lowering *lowering)
{
	const struct model_layer *layer = lowering->layer;
	const bool forward = lowering->phase == IPU_PHASE_F;
	struct ipu_composite from = {
		.kind = layer->ops == &layer_lstm  ? IPU_COMPOSITE_LSTM
			: layer->ops == &layer_gru ? IPU_COMPOSITE_GRU
						   : IPU_COMPOSITE_RNN,
		.pass = forward ? IPU_FORWARD : IPU_BACKWARD_DATA,
		.trained = !forward || lowering->retains,
		.dtype = layer->half ? IPU_FLOAT16 : IPU_FLOAT32,
		.batch = lowering->batch,
		.steps = layer->input.dim[0],
		.features = layer->input.dim[1],
		.units = layer->units,
		.reset_before = ((const struct layer_recurrent *)layer->config)->reset_before,
		.fixed_input = !layer__wants_any(lowering),
	};
	/* At masked steps the previous state is selected, and its gradient passed on. */
	const unsigned state = !forward || !lowering->retains ? LAYER_BETWEEN : LAYER_KEPT;
	struct layer_op mask =
		layer__map(&(struct ipu_elements){.count = lowering->batch * layer->units *
							   (layer->ops == &layer_lstm ? 2 : 1),
						  .operands = 2,
						  .times = {[IPU_FN_SELECT] = 1}},
			   LAYER_INPUT | state, state);
	struct ipu_op ops[IPU_COMPOSITE_OPS];
	unsigned existing = 0;

	mask.op.repeats = layer->input.dim[0];
	if (forward)
		lower_dropouts(lowering);
	for (int pass = 0; pass < (forward || !layer->trainable ? 1 : 2); pass++) {
		const int count = ipu_composite_ops(&from, ops);

		for (int i = 0; i < count; i++) {
			lower_role(lowering, &ops[i], &existing);
			if (layer->mask && (!strcmp(ops[i].name, "Rnn/Cell") ||
					    !strcmp(ops[i].name, "Rnn/Cell/Grad")))
				layer__lower(lowering, forward ? "Rnn/Mask" : "Rnn/Mask/Grad",
					     &mask);
		}
		from.pass = IPU_BACKWARD_WEIGHTS;
	}
	if (forward && layer->state > 0) {
		const struct layer_op put = layer__copy(lowering->batch * layer->state,
							layer->units, LAYER_OUTPUT, LAYER_STATE);

		layer__lower(lowering, "Rnn/State/Assign", &put);
	}
	if (!forward)
		lower_dropouts(lowering);
}

#define RECURRENT_LAYER(row, name, inputs)                                                         \
	const struct layer_ops layer_##row = {.class_name = (name),                                \
					      .kind = LAYER_KIND_##row,                            \
					      .options = MODEL_OPTIONS(recurrent_options),         \
					      .config_size = sizeof(struct layer_recurrent),       \
					      .images = true,                                      \
					      .read = recurrent_read,                              \
					      .flops = recurrent_flops,                            \
					      .lower = recurrent_lower,                            \
					      .sequence = true,                                    \
					      .reads_inputs = true,                                \
					      .masks = LAYER_MASKS_USED,                           \
					      .least_inputs = 1,                                   \
					      .most_inputs = (inputs)}

RECURRENT_LAYER(simple_rnn, "SimpleRNN", 2);
RECURRENT_LAYER(lstm, "LSTM", 3);
RECURRENT_LAYER(gru, "GRU", 2);
