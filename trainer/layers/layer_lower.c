/*
 * The device operations that layers are written as. No state; names are the caller's arena's.
 */
#include "trainer/layers/layer_internal.h"

void layer__lower(struct layer_lowering *lowering, const char *part, const struct layer_op *op)
{
	struct layer_op *out;
	const char *name;

	if (lowering->failed || lowering->count >= lowering->most)
		return;
	name = arena_printf(lowering->arena, "%s/%s", lowering->layer->name, part);
	if (!name) {
		lowering->failed = true;
		return;
	}

	out = &lowering->ops[lowering->count++];
	*out = *op;
	out->op.name = name;
	out->op.layer = lowering->layer->name;
	out->op.phase = lowering->phase;
}

int layer__lower_elements(const struct model_layer *layer, int64_t batch, char phase, bool first,
			  const char *forward, const char *backward, int64_t work,
			  struct layer_op *ops, int most, struct arena *arena)
{
	struct layer_lowering lowering = {layer, ops, 0, most, phase, arena, false};
	const char *part = phase == 'F' ? forward : first ? NULL : backward;
	const struct layer_op op = layer__elements(batch * model_shape_count(&layer->output), work);

	if (part)
		layer__lower(&lowering, part, &op);
	return lowering.failed ? -1 : lowering.count;
}

struct layer_op layer__elements(int64_t count, int64_t work)
{
	struct layer_op op = {.op = {.kind = IPU_OP_ELEMENTWISE}};

	op.op.elements.count = count;
	op.op.elements.operands = 1;
	op.op.elements.times[IPU_FN_ADD] = (uint8_t)(work < UINT8_MAX ? work : UINT8_MAX);
	return op;
}

struct layer_op layer__reduce(int64_t inputs, int64_t outputs)
{
	return (struct layer_op){
		.op = {.kind = IPU_OP_REDUCE, .reduce = {inputs, outputs}},
	};
}

struct layer_op layer__copy(int64_t count)
{
	return (struct layer_op){
		.op = {.kind = IPU_OP_COPY, .copy = {.count = count, .atom = 1}},
	};
}

void layer__lower_product(struct layer_lowering *lowering, const char *part, int64_t m, int64_t n,
			  int64_t k)
{
	const struct layer_op op = {
		.op = {.kind = IPU_OP_MATMUL, .matmul = {.m = m, .k = k, .n = n}},
	};

	layer__lower(lowering, part, &op);
}

void layer__lower_bias(struct layer_lowering *lowering, int64_t rows, int64_t columns)
{
	struct layer_op op = layer__elements(rows * columns, 1);

	op.op.elements.broadcast = columns;
	if (lowering->layer->use_bias)
		layer__lower(lowering, "BiasAdd", &op);
}

void layer__lower_bias_grad(struct layer_lowering *lowering, int64_t rows, int64_t columns)
{
	const struct layer_op op = layer__reduce(rows * columns, columns);

	if (lowering->layer->use_bias)
		layer__lower(lowering, "BiasAdd/Grad", &op);
}
