/*
 * The device operations that layers are lowered to. No state; names are in the caller's arena.
 */
#include <assert.h>

#include "model/layers/layer_internal.h"

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
	if (lowering->retains && layer_activation_needs_input(activation))
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
