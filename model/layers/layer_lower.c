/*
 * The device operations that layers are lowered to. No state; names are in the caller's arena.
 */
#include <assert.h>

#include "model/layers/layer_internal.h"

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
