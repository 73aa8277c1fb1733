/*
 * Lowering: appending tensors and operations. Threads: none.
 */
#include <assert.h>
#include <math.h>
#include <stdarg.h>

#include "common/mem.h"
#include "model/lower/lower_internal.h"

const char *lower__name(struct lowering *lowering, const char *format, ...)
{
	const char *name;
	va_list args;

	va_start(args, format);
	name = arena_vprintf(lowering->arena, format, args);
	va_end(args);
	lowering->failed = lowering->failed || !name;
	return name ? name : "";
}

int lower__tensor(struct lowering *lowering, const struct ipu_tensor *tensor)
{
	if (lowering->failed || mem_grow(&lowering->tensors, &lowering->tensor_capacity,
					 lowering->tensor_count + 1, sizeof(*tensor)) != 0) {
		lowering->failed = true;
		return 0;
	}
	lowering->tensors[lowering->tensor_count] = *tensor;
	return (int)lowering->tensor_count++;
}

int lower__flat(struct lowering *lowering, int position, enum ipu_tensor_kind kind,
		enum ipu_dtype dtype, const char *part, int64_t elements)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];

	return lower__tensor(
		lowering,
		&(struct ipu_tensor){.name = lower__name(lowering, "%s/%s", layer->name, part),
				     .layer = layer->name,
				     .kind = kind,
				     .dtype = dtype,
				     .ndim = 1,
				     .dim = {elements},
				     .stage = lowering->from->layout->stage[position]});
}

int lower__like(struct lowering *lowering, int tensor, enum ipu_tensor_kind kind,
		enum ipu_dtype dtype, int stage, const char *name)
{
	struct ipu_tensor like = lowering->tensors[tensor];

	like.name = name;
	like.kind = kind;
	like.dtype = dtype;
	like.stage = stage;
	return lower__tensor(lowering, &like);
}

/* ---- operations ------------------------------------------------------------------------------ */

static int *copy_operands(struct lowering *lowering, const int *list, int *count)
{
	int *kept = arena_alloc(lowering->arena, (size_t)*count + 1, sizeof(*kept));
	int keeps = 0;

	for (int i = 0; kept && i < *count; i++) {
		bool twice = false;

		for (int k = 0; k < keeps && !twice; k++)
			twice = kept[k] == list[i];
		assert(list[i] >= 0);
		if (!twice)
			kept[keeps++] = list[i];
	}
	*count = keeps;
	return kept;
}

void lower__node(struct lowering *lowering, const struct ipu_node *node)
{
	struct ipu_node out = *node;
	const char phase = out.op.phase == IPU_PHASE_W ? IPU_PHASE_B : out.op.phase;
	const struct run_poplar poplar = run_poplar_of(lowering->from->run, phase, out.op.stage);
	const struct run_plan *plan =
		out.op.kind == IPU_OP_CONV ? &poplar.convolution : &poplar.matmul;

	if (lowering->failed)
		return;
	ipu_plan_options_defaults(&out.options);
	if (out.op.kind == IPU_OP_CONV || out.op.kind == IPU_OP_MATMUL) {
		if (!isnan(plan->available_memory_proportion))
			out.options.available_memory_proportion = plan->available_memory_proportion;
		if (plan->partials_type == RUN_PARTIALS_HALF)
			out.options.partials = IPU_FLOAT16;
	}

	out.reads = copy_operands(lowering, node->reads, &out.read_count);
	out.writes = copy_operands(lowering, node->writes, &out.write_count);
	if (!out.reads || !out.writes ||
	    mem_grow(&lowering->nodes, &lowering->node_capacity, lowering->node_count + 1,
		     sizeof(out)) != 0)
		lowering->failed = true;
	else
		lowering->nodes[lowering->node_count++] = out;
}

void lower__op(struct lowering *lowering, const struct ipu_op *op, const int *reads, int count,
	       int to)
{
	lower__node(lowering, &(struct ipu_node){.op = *op,
						 .reads = reads,
						 .read_count = count,
						 .writes = &to,
						 .write_count = 1});
}

void lower__cast(struct lowering *lowering, const char *name, const char *layer, char phase,
		 int stage, int from, int to)
{
	const bool bytes = lowering->tensors[from].dtype == IPU_UINT8;
	const struct ipu_op op = {
		.kind = IPU_OP_ELEMENTWISE,
		.name = name,
		.layer = layer,
		.phase = phase,
		.stage = stage,
		.dtype = bytes ? lowering->tensors[to].dtype : IPU_FLOAT32,
		.elements = {.count = ipu_tensor_elements(&lowering->tensors[from]),
			     .operands = 1,
			     .times = {[IPU_FN_CAST] = 1, [IPU_FN_DIVIDE_BY] = bytes}},
	};

	lower__op(lowering, &op, &from, 1, to);
}
