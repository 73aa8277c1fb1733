/*
 * SimpleRNN, LSTM and GRU over sequences (steps, features), by Keras's formulas; x a step's input,
 * h and c what the step before left (zeros before the first), s the logistic function:
 *
 *	SimpleRNN   h = activation(x W + h U + b)
 *	LSTM        i, f, a, o = x W + h U + b;  c = s(f) c + s(i) tanh(a);  h = s(o) tanh(c)
 *	GRU         z, r, a = x W + b0;  z', r', a' = h U + b1   (reset_after)
 *	            h = s(z + z') h + (1 - s(z + z')) tanh(a + s(r + r') a')
 *
 * W is [features, gates x units], U [units, gates x units]; b [gates x units], of a GRU [2, ...].
 * No state.
 */
#include <string.h>

#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_gru, layer_lstm, layer_simple_rnn;

#define UNITS_MOST 65536

/* ---- reading --------------------------------------------------------------------------------- */

static int gates_of(const struct model_layer *layer)
{
	return layer->ops == &layer_lstm ? 4 : layer->ops == &layer_gru ? 3 : 1;
}

/* An activation that must be @only, or, where it is not NULL, @other. */
static bool read_activation(const struct json_at *config, const char *key, const char *only,
			    const char *other, struct err *err)
{
	struct json_at here;
	const char *text = only;

	if (!model_option_given(config, key, &here, err) || json_text(&here, &text, err) != ST_OK ||
	    !strcmp(text, only))
		return false;
	if (other && !strcmp(text, other))
		return true;
	model_config_unsupported(
		&here, err, "\"%s\" is not supported here: it must be \"%s\"%s%s%s", text, only,
		other ? " or \"" : "", other ? other : "", other ? "\"" : "");
	return false;
}

/* Without dropout: it would have masks of its own. */
static void refuse_dropout(const struct json_at *config, const char *key, struct err *err)
{
	struct json_at here;
	double rate = 0.0;

	if (model_option_at(config, key, &here, err) && json_real(&here, &rate, err) == ST_OK &&
	    rate != 0.0)
		model_config_unsupported(&here, err,
					 "not supported: it must be 0; a Dropout layer before this "
					 "one drops its input");
}

static void add_params(struct model *model, struct model_layer *layer, const struct json_at *config,
		       struct err *err)
{
	const bool gru = layer->ops == &layer_gru;
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

	if (gru)
		bias.shape = (struct model_shape){.ndim = 2, .dim = {2, wide}};
	model_option_bool(config, "unit_forget_bias", &forget, err);
	layer__add_param(model, layer, config, &kernel, err);
	layer__add_param(model, layer, config, &recurrent, err);
	if (!layer->use_bias || layer__add_param(model, layer, config, &bias, err) != ST_OK)
		return;
	/* Keras's unit_forget_bias: the second quarter begins with ones. */
	if (forget)
		model->params[model->param_count - 1].init = (struct model_init){
			.kind = MODEL_INIT_ONES_AT, .low = (double)layer->units, .high = 1.0};
}

static enum status recurrent_read(struct model *model, struct model_layer *layer,
				  const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		{"units", MODEL_ANY},
		{"activation", MODEL_ANY},
		{"recurrent_activation", MODEL_ANY},
		{"use_bias", MODEL_ANY},
		LAYER_PARAM_OPTIONS("kernel"),
		LAYER_PARAM_OPTIONS("recurrent"),
		LAYER_PARAM_OPTIONS("bias"),
		{"unit_forget_bias", MODEL_ANY},
		{"activity_regularizer", MODEL_NULL},
		{"dropout", MODEL_ANY},
		{"recurrent_dropout", MODEL_ANY},
		{"return_sequences", MODEL_ANY},
		{"return_state", MODEL_FALSE},
		{"go_backwards", MODEL_ANY},
		{"return_reversed", MODEL_ANY}, /* of a Bidirectional alone */
		{"stateful", MODEL_FALSE},
		{"unroll", MODEL_ANY},
		{"time_major", MODEL_FALSE},
		{"implementation", MODEL_ANY},
		{"reset_after", MODEL_TRUE},
		{"zero_output_for_mask", MODEL_ANY},
		{"seed", MODEL_ANY},
	};
	struct layer_recurrent *r;
	struct json_at here;
	int64_t units = 1;

	layer__begin(model, layer, config, own, ARRAY_LEN(own), sizeof(*r), err);
	layer__check_images(layer, config, err);
	if (model_option_need(config, "units", &here, err))
		json_int(&here, 1, UNITS_MOST, &units, err);
	if (err_stuck(err))
		return err->status;
	r = layer->config;
	layer->units = units;
	layer->use_bias = true;
	r->gates = gates_of(layer);
	r->relu = read_activation(config, "activation", "tanh",
				  layer->ops == &layer_simple_rnn ? "relu" : NULL, err);
	read_activation(config, "recurrent_activation", "sigmoid", NULL, err);
	refuse_dropout(config, "dropout", err);
	refuse_dropout(config, "recurrent_dropout", err);
	model_option_bool(config, "use_bias", &layer->use_bias, err);
	model_option_bool(config, "return_sequences", &r->sequences, err);
	model_option_bool(config, "go_backwards", &r->backwards, err);
	model_option_bool(config, "return_reversed", &r->reversed, err);
	layer->output =
		r->sequences ? (struct model_shape){.ndim = 2, .dim = {layer->input.dim[0], units}}
			     : (struct model_shape){.ndim = 1, .dim = {units}};
	add_params(model, layer, config, err);
	return err->status;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t recurrent_flops(const struct model_layer *layer, int64_t batch)
{
	const int64_t wide = gates_of(layer) * layer->units;
	int64_t flops;

	if (__builtin_mul_overflow(batch * layer->input.dim[0] * wide,
				   2 * (layer->input.dim[1] + layer->units) + 8, &flops))
		return INT64_MAX;
	return flops;
}

/* What a step does with its sums: functions on each unit, as compute_recurrent.c has them. */
static struct ipu_elements cell_of(const struct layer_lowering *lowering, bool forward)
{
	const struct model_layer *layer = lowering->layer;
	struct ipu_elements each = {.count = lowering->batch * layer->units,
				    .operands = 2 * gates_of(layer)};

	if (layer->ops == &layer_lstm) {
		each.times[IPU_FN_SIGMOID] = forward ? 3 : 0;
		each.times[IPU_FN_TANH] = forward ? 2 : 1;
		each.times[IPU_FN_ADD] = forward ? 8 : 18;
	} else if (layer->ops == &layer_gru) {
		each.times[IPU_FN_SIGMOID] = forward ? 2 : 0;
		each.times[IPU_FN_TANH] = forward ? 1 : 0;
		each.times[IPU_FN_ADD] = forward ? 8 : 14;
	} else {
		each.times[IPU_FN_TANH] = forward ? 1 : 0;
		each.times[IPU_FN_ADD] = forward ? 1 : 3;
	}
	return each;
}

static void lower_matmul(struct layer_lowering *lowering, const char *part,
			 struct ipu_matmul matmul, int64_t repeats, unsigned reads, unsigned writes,
			 int64_t makes)
{
	struct layer_op op = {.op = {.kind = IPU_OP_MATMUL, .repeats = repeats, .matmul = matmul},
			      .reads = reads,
			      .writes = writes,
			      .makes = makes};

	layer__lower(lowering, part, &op);
}

/* As popnn does: the inputs' products of all steps in one, then step after step. */
static void recurrent_lower_forward(struct layer_lowering *lowering)
{
	const struct model_layer *layer = lowering->layer;
	const int64_t steps = layer->input.dim[0], rows = lowering->batch * steps;
	const int64_t wide = gates_of(layer) * layer->units;
	const unsigned kept = lowering->keeps ? LAYER_KEPT : LAYER_BETWEEN;
	const struct ipu_elements each = cell_of(lowering, true);
	struct layer_op op = layer__map(&each, LAYER_BETWEEN | LAYER_BETWEEN_TOO, kept);

	lower_matmul(lowering, "Rnn/WeightInput",
		     (struct ipu_matmul){rows, layer->input.dim[1], wide}, 1,
		     LAYER_INPUT | LAYER_PARAM(0), LAYER_BETWEEN, rows * wide);
	lower_matmul(lowering, "Rnn/WeightOutput",
		     (struct ipu_matmul){lowering->batch, layer->units, wide}, steps,
		     LAYER_BETWEEN | LAYER_PARAM(1), LAYER_BETWEEN_TOO, lowering->batch * wide);
	op.op.repeats = steps;
	op.makes = lowering->keeps ? rows * (wide + 2 * layer->units) : 0;
	layer__lower(lowering, "Rnn/Cell", &op);
	op = layer__copy(layer__lower_count(lowering), layer->units, kept, LAYER_OUTPUT);
	layer__lower(lowering, "Rnn/Output", &op);
}

static void recurrent_lower(struct layer_lowering *lowering)
{
	const struct model_layer *layer = lowering->layer;
	const int64_t steps = layer->input.dim[0], rows = lowering->batch * steps;
	const int64_t wide = gates_of(layer) * layer->units, features = layer->input.dim[1];
	const struct ipu_elements each = cell_of(lowering, false);
	struct layer_op op = layer__map(&each, LAYER_KEPT | LAYER_GRAD_OUTPUT, LAYER_BETWEEN);

	if (lowering->phase == IPU_PHASE_F) {
		recurrent_lower_forward(lowering);
		return;
	}
	op.op.repeats = steps;
	op.makes = rows * wide;
	layer__lower(lowering, "Rnn/Cell/Grad", &op);
	lower_matmul(lowering, "Rnn/WeightOutput/GradX",
		     (struct ipu_matmul){lowering->batch, wide, layer->units}, steps,
		     LAYER_BETWEEN | LAYER_PARAM(1), LAYER_BETWEEN_TOO,
		     lowering->batch * layer->units);
	if (layer->trainable) {
		lower_matmul(lowering, "Rnn/WeightInput/GradW",
			     (struct ipu_matmul){features, rows, wide}, 1,
			     LAYER_INPUT | LAYER_BETWEEN, LAYER_GRAD_PARAM(0), 0);
		lower_matmul(lowering, "Rnn/WeightOutput/GradW",
			     (struct ipu_matmul){layer->units, rows, wide}, 1,
			     LAYER_KEPT | LAYER_BETWEEN, LAYER_GRAD_PARAM(1), 0);
		op = layer__reduce(rows * wide, wide, LAYER_BETWEEN, LAYER_GRAD_PARAM(2));
		op.makes = 0;
		if (layer->use_bias)
			layer__lower(lowering, "Rnn/Bias/Grad", &op);
	}
	if (layer__wants_any(lowering))
		lower_matmul(lowering, "Rnn/WeightInput/GradX",
			     (struct ipu_matmul){rows, wide, features}, 1,
			     LAYER_BETWEEN | LAYER_PARAM(0), LAYER_GRAD_INPUT, 0);
}

/* What all of them have. */
#define RECURRENT_OPS(row, name)                                                                   \
	.class_name = (name), .kind = LAYER_KIND_##row, .read = recurrent_read,                    \
	.flops = recurrent_flops, .lower = recurrent_lower, .sequence = true, .reads_inputs = true

const struct layer_ops layer_simple_rnn = {
	RECURRENT_OPS(simple_rnn, "SimpleRNN"),
};

const struct layer_ops layer_lstm = {
	RECURRENT_OPS(lstm, "LSTM"),
};

const struct layer_ops layer_gru = {
	RECURRENT_OPS(gru, "GRU"),
};
