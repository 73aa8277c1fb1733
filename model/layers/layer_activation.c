/*
 * The table of activations, which are layers or parts of other layers. No state.
 */
#include "common/mem.h"
#include "model/layers/layer_internal.h"

extern const struct layer_ops layer_activation;

#define READS_INPUT  1u
#define READS_OUTPUT 2u

/* What the gradient reads, and operations per element; an addition, multiplication, comparison,
 * division or elementary function counts as one. */
static const struct {
	unsigned reads;
	int64_t work;
} activation_rows[] = {
	[MODEL_LINEAR] = {0, 0},
	[MODEL_RELU] = {READS_OUTPUT, 1},
	[MODEL_SOFTMAX] = {READS_OUTPUT, 5}, /* max, subtract, exp, sum, divide */
	[MODEL_ELU] = {READS_OUTPUT, 3},
	[MODEL_EXPONENTIAL] = {READS_OUTPUT, 1},
	[MODEL_GELU] = {READS_INPUT, 5},
	[MODEL_HARD_SIGMOID] = {READS_OUTPUT, 4},
	[MODEL_LEAKY_RELU] = {READS_OUTPUT, 2},
	[MODEL_LOG_SOFTMAX] = {READS_OUTPUT, 5},
	[MODEL_MISH] = {READS_INPUT, 6},
	[MODEL_RELU6] = {READS_OUTPUT, 2},
	[MODEL_SELU] = {READS_OUTPUT, 4},
	[MODEL_SIGMOID] = {READS_OUTPUT, 3},
	[MODEL_SOFTPLUS] = {READS_OUTPUT, 3},
	[MODEL_SOFTSIGN] = {READS_INPUT, 3},
	[MODEL_SWISH] = {READS_INPUT, 4},
	[MODEL_TANH] = {READS_OUTPUT, 1},
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

/* ---- layers that consist of an activation ---------------------------------------------------- */

void layer__set_activation(struct model_layer *layer, enum model_activation activation)
{
	layer->activation = activation;
	layer->reads_inputs = layer_activation_needs_input(activation);
	layer->reads_output = layer_activation_needs_output(activation);
}

int64_t layer__activation_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->output) * activation_rows[layer->activation].work;
}

static enum status activation_read(struct model *model, struct model_layer *layer,
				   const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {{"activation", MODEL_ANY},
						  {"activity_regularizer", MODEL_NULL}};
	enum model_activation activation = MODEL_LINEAR;

	(void)model;
	layer->output = layer->input;
	layer__check(config, own, ARRAY_LEN(own), err);
	model__read_activation(config, "activation", &activation, err);
	layer__set_activation(layer, activation);
	return err->status;
}

const struct layer_ops layer_activation = {
	.class_name = "Activation",
	.masks = LAYER_MASKS_PASS,
	.kind = LAYER_KIND_activation,
	.read = activation_read,
	.flops = layer__activation_flops,
	.lower = layer__activation_lower,
	.reads_inputs = true,
	.reads_output = true,
};
