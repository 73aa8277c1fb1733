/*
 * Properties of the graph. Pure functions: any thread.
 */
#include "ipu/compile/ipu_graph.h"

#include <assert.h>

#include "common/mem.h"

static const struct {
	const char *name;
	bool variable;
} tensor_kinds[] = {
	[IPU_TENSOR_INPUT] = {"input", false},
	[IPU_TENSOR_LABELS] = {"labels", false},
	[IPU_TENSOR_ACTIVATION] = {"activation", false},
	[IPU_TENSOR_KEPT] = {"kept", false},
	[IPU_TENSOR_TEMPORARY] = {"temporary", false},
	[IPU_TENSOR_GRADIENT] = {"gradient", false},
	[IPU_TENSOR_WEIGHT] = {"weight", true},
	[IPU_TENSOR_STATE] = {"state", true},
	[IPU_TENSOR_WEIGHT_GRADIENT] = {"weight_gradient", false},
	[IPU_TENSOR_ACCUMULATOR] = {"accumulator", true},
	[IPU_TENSOR_OPTIMIZER_STATE] = {"optimizer_state", true},
	[IPU_TENSOR_RESULT] = {"result", false},
};
_Static_assert(ARRAY_LEN(tensor_kinds) == IPU_TENSOR_KINDS, "tensor table out of step");

const char *ipu_tensor_kind_name(enum ipu_tensor_kind kind)
{
	assert((unsigned)kind < IPU_TENSOR_KINDS);
	return tensor_kinds[kind].name;
}

bool ipu_tensor_is_variable(enum ipu_tensor_kind kind)
{
	assert((unsigned)kind < IPU_TENSOR_KINDS);
	return tensor_kinds[kind].variable;
}

int64_t ipu_tensor_elements(const struct ipu_tensor *tensor)
{
	int64_t count = 1;

	for (int d = 0; d < tensor->ndim; d++)
		if (__builtin_mul_overflow(count, tensor->dim[d], &count))
			return INT64_MAX / 8;
	return count;
}

int64_t ipu_tensor_bytes(const struct ipu_tensor *tensor)
{
	int64_t bytes;

	if (__builtin_mul_overflow(ipu_tensor_elements(tensor), ipu_dtype_bytes(tensor->dtype),
				   &bytes))
		return INT64_MAX / 8;
	return bytes;
}

bool ipu_graph_splits(const struct ipu_graph *graph)
{
	return graph->layout.schedule && graph->layout.schedule->splits;
}

bool ipu_node_in(const struct ipu_node *node, int stage, char phase)
{
	const char of = node->op.phase == IPU_PHASE_W ? IPU_PHASE_B : node->op.phase;

	return node->op.stage == stage && of == phase;
}

bool ipu_node_forward(const struct ipu_node *node, bool predicted)
{
	return !node->training_only && !(predicted && node->measure_only);
}

static bool makes_gradient(const struct ipu_node *node, const struct ipu_tensor *tensors,
			   const bool *needed)
{
	for (int i = 0; i < node->write_count; i++) {
		const enum ipu_tensor_kind kind = tensors[node->writes[i]].kind;

		if (needed[node->writes[i]] ||
		    (kind != IPU_TENSOR_WEIGHT_GRADIENT && kind != IPU_TENSOR_ACCUMULATOR &&
		     kind != IPU_TENSOR_TEMPORARY))
			return true;
	}
	return false;
}

enum status ipu_graph_split(struct ipu_node *nodes, int node_count,
			    const struct ipu_tensor *tensors, int tensor_count, struct err *err)
{
	bool *needed = mem_calloc((size_t)tensor_count + 1, sizeof(*needed));

	if (!needed)
		return err_nomem(err);
	for (int n = node_count - 1; n >= 0; n--) {
		struct ipu_node *node = &nodes[n];

		if (node->op.phase != IPU_PHASE_B)
			continue;
		if (!makes_gradient(node, tensors, needed)) {
			node->op.phase = IPU_PHASE_W;
			continue;
		}
		for (int i = 0; i < node->read_count; i++)
			needed[node->reads[i]] = true;
	}
	mem_free(needed);
	return ST_OK;
}
