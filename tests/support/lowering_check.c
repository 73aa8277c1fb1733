/*
 * The rules that every lowered graph obeys (uses, names, order, what is computed in place,
 * gradients of all parameters), each asked of all tensors and nodes; and counts of them.
 */
#include "support/lowering_check.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/support.h"

/* ---- what must hold of every graph ----------------------------------------------------------- */

struct uses {
	int written, made, read; /* nodes; made: written without being read */
	int first_writer;
};

static bool lists(const int *list, int count, int tensor)
{
	for (int i = 0; i < count; i++)
		if (list[i] == tensor)
			return true;
	return false;
}

static const char *node_name(const struct ipu_graph *graph, int node)
{
	return graph->nodes[node].op.name;
}

/* Nodes in the order in which one micro-batch and the update after it run them. */
static int *order_of(const struct ipu_graph *graph)
{
	int *order = mem_calloc((size_t)graph->node_count + 1, sizeof(*order)), count = 0;
	const int stages = graph->layout.stages;

	assert_non_null(order);
	for (int pass = 0; pass < 3; pass++)
		for (int s = 0; s < stages; s++)
			for (int n = 0; n < graph->node_count; n++)
				if (ipu_node_in(&graph->nodes[n], pass == 1 ? stages - 1 - s : s,
						"FBU"[pass]))
					order[count++] = n;
	assert_int_equal(count, graph->node_count);
	return order;
}

static void check_stage_of_read(const struct ipu_graph *graph, int n, int t)
{
	const struct ipu_node *node = &graph->nodes[n];
	const struct ipu_tensor *tensor = &graph->tensors[t];

	if (tensor->stage == node->op.stage || tensor->kind == IPU_TENSOR_INPUT)
		return;
	if (node->op.phase == 'F' && tensor->stage < node->op.stage &&
	    tensor->kind == IPU_TENSOR_ACTIVATION)
		return;
	if (node->op.phase == 'B' && tensor->stage < node->op.stage &&
	    tensor->kind == IPU_TENSOR_ACTIVATION)
		return;
	if (node->op.phase == 'B' && tensor->stage > node->op.stage &&
	    tensor->kind == IPU_TENSOR_GRADIENT)
		return;
	fail_msg("%s (%c, stage %d) reads %s, a %s of stage %d", node->op.name, node->op.phase,
		 node->op.stage, tensor->name, ipu_tensor_kind_name(tensor->kind), tensor->stage);
}

static struct uses *check_operands(const struct ipu_graph *graph, const int *order)
{
	struct uses *uses = mem_calloc((size_t)graph->tensor_count + 1, sizeof(*uses));

	assert_non_null(uses);
	for (int i = 0; i < graph->node_count; i++) {
		const struct ipu_node *node = &graph->nodes[order[i]];

		for (int r = 0; r < node->read_count; r++) {
			const int t = node->reads[r];
			const enum ipu_tensor_kind kind = graph->tensors[t].kind;

			uses[t].read++;
			check_stage_of_read(graph, order[i], t);
			if (!uses[t].written && !ipu_tensor_is_variable(kind) &&
			    kind != IPU_TENSOR_INPUT && kind != IPU_TENSOR_LABELS)
				fail_msg("%s reads %s, which nobody wrote", node->op.name,
					 graph->tensors[t].name);
			if (kind == IPU_TENSOR_TEMPORARY &&
			    graph->nodes[uses[t].first_writer].op.phase != node->op.phase)
				fail_msg("%s reads a temporary of another phase", node->op.name);
		}
		for (int w = 0; w < node->write_count; w++) {
			const int t = node->writes[w];

			if (!uses[t].written++)
				uses[t].first_writer = order[i];
			uses[t].made += !lists(node->reads, node->read_count, t);
			if (graph->tensors[t].stage != node->op.stage)
				fail_msg("%s writes %s of another stage", node->op.name,
					 graph->tensors[t].name);
		}
	}
	return uses;
}

/* The model's output is read where it is measured; everything else has a reader. */
static void check_tensor(const struct ipu_graph *graph, const struct uses *uses, int t,
			 const char *output)
{
	const struct ipu_tensor *tensor = &graph->tensors[t];
	const bool variable = ipu_tensor_is_variable(tensor->kind);
	const bool given =
		tensor->kind == IPU_TENSOR_INPUT || tensor->kind == IPU_TENSOR_LABELS || variable;

	assert_true(ipu_tensor_elements(tensor) > 0);
	if (!given && uses->made != 1)
		fail_msg("%s is made %d times", tensor->name, uses->made);
	if (tensor->kind == IPU_TENSOR_RESULT)
		assert_int_equal(uses->read, 0);
	else if (!uses->read && strcmp(tensor->name, output) != 0)
		fail_msg("nobody reads %s", tensor->name);
	if (tensor->kind == IPU_TENSOR_WEIGHT_GRADIENT)
		assert_int_equal(graph->nodes[uses->first_writer].op.phase, 'B');
}

static void check_names(const struct ipu_graph *graph)
{
	for (int n = 0; n < graph->node_count; n++)
		for (int m = 0; m < n; m++)
			if (!strcmp(node_name(graph, n), node_name(graph, m)))
				fail_msg("two operations are called %s", node_name(graph, n));
	for (int t = 0; t < graph->tensor_count; t++)
		for (int u = 0; u < t; u++)
			if (!strcmp(graph->tensors[t].name, graph->tensors[u].name) &&
			    !strstr(graph->tensors[t].name, "between"))
				fail_msg("two tensors are called %s", graph->tensors[t].name);
}

static void check_node_order(const struct ipu_graph *graph)
{
	static const char phases[] = "FBU";

	for (int n = 1; n < graph->node_count; n++) {
		const struct ipu_op *a = &graph->nodes[n - 1].op, *b = &graph->nodes[n].op;

		assert_true(a->stage <= b->stage);
		if (a->stage == b->stage)
			assert_true(strchr(phases, a->phase) <= strchr(phases, b->phase));
	}
}

/* Does @layer's output go into @other, on any way, or is it that layer? */
static bool comes_before(const struct model *model, const char *layer, const char *other)
{
	bool *before = mem_calloc((size_t)model->layer_count, sizeof(*before)), found = false;

	assert_non_null(before);
	for (int i = model->layer_count - 1; i >= 0; i--) {
		before[i] |= !strcmp(model->layers[i].name, other);
		for (int k = 0; before[i] && k < model->layers[i].input_count; k++)
			if (model->layers[i].inputs[k] != MODEL_INPUT)
				before[model->layers[i].inputs[k]] = true;
		found |= before[i] && !strcmp(model->layers[i].name, layer);
	}
	mem_free(before);
	return found;
}

/* What a layer has changed in place is wanted changed by those alone that come before it. */
static void check_in_place(const struct lowered *lowered, const int *order)
{
	const struct ipu_graph *graph = &lowered->graph;

	for (int i = 0; i < graph->node_count; i++) {
		const struct ipu_node *node = &graph->nodes[order[i]];

		for (int w = 0; w < node->write_count; w++) {
			const int t = node->writes[w];

			if (graph->tensors[t].kind != IPU_TENSOR_GRADIENT ||
			    !lists(node->reads, node->read_count, t))
				continue;
			for (int k = i + 1; k < graph->node_count; k++) {
				const struct ipu_node *later = &graph->nodes[order[k]];

				if (lists(later->reads, later->read_count, t) &&
				    !comes_before(lowered->model, later->op.layer, node->op.layer))
					fail_msg("%s reads what %s has changed", later->op.name,
						 node->op.name);
			}
		}
	}
}

static void check_graph(const struct lowered *lowered)
{
	const struct ipu_graph *graph = &lowered->graph;
	const struct model *model = lowered->model;
	char output[128];
	int *order = order_of(graph);
	struct uses *uses = check_operands(graph, order);

	/* Of layers that are its output's alone. */
	snprintf(output, sizeof(output), "%s/output", model->layers[model->layer_count - 1].name);
	for (int t = 0; t < graph->tensor_count; t++)
		check_tensor(graph, &uses[t], t, output);
	check_in_place(lowered, order);
	check_node_order(graph);
	check_names(graph);
	mem_free(uses);
	mem_free(order);
}

/* ---- gradients ------------------------------------------------------------------------------- */

int lowered_tensors(const struct ipu_graph *graph, enum ipu_tensor_kind kind)
{
	int count = 0;

	for (int t = 0; t < graph->tensor_count; t++)
		count += graph->tensors[t].kind == kind;
	return count;
}

int lowered_nodes(const struct ipu_graph *graph, const char *part)
{
	int count = 0;

	for (int n = 0; n < graph->node_count; n++)
		count += strstr(graph->nodes[n].op.name, part) != NULL;
	return count;
}

static int trainable_params(const struct model *model)
{
	int count = 0;

	for (int p = 0; p < model->param_count; p++)
		count += model->params[p].trainable;
	return count;
}

static void check_gradients(const struct lowered *lowered)
{
	const struct ipu_graph *graph = &lowered->graph;
	const int params = trainable_params(lowered->model);
	const bool sums = lowered->layout->accumulation > 1;

	assert_int_equal(lowered_tensors(graph, IPU_TENSOR_WEIGHT_GRADIENT), params);
	assert_int_equal(lowered_tensors(graph, IPU_TENSOR_ACCUMULATOR), sums ? params : 0);
	assert_int_equal(lowered_tensors(graph, IPU_TENSOR_OPTIMIZER_STATE),
			 params * optimizer_slots(&lowered->optimizer));
	assert_int_equal(lowered_nodes(graph, "GradientAccumulation/"), sums ? params : 0);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static int64_t product_flops(const struct ipu_graph *graph, const char *layer, char phase,
			     const char *part)
{
	int64_t flops = 0;

	for (int n = 0; n < graph->node_count; n++) {
		const struct ipu_op *op = &graph->nodes[n].op;

		if ((op->kind == IPU_OP_CONV || op->kind == IPU_OP_MATMUL) && op->layer &&
		    !strcmp(op->layer, layer) && op->phase == phase && strstr(op->name, part))
			flops += ipu_op_flops(op);
	}
	return flops;
}

/*
 * Products of a layer have its own flops but for bias and activation, and so have both gradients.
 */
static void check_flops(const struct lowered *lowered)
{
	const struct model *model = lowered->model;

	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];
		const int64_t batch = lowered->run->data.batch_size;
		const int64_t each = batch * model_shape_count(&layer->output);
		const int64_t forward = product_flops(&lowered->graph, layer->name, 'F', "");
		const int64_t data = product_flops(&lowered->graph, layer->name, 'B', "GradX");
		const int64_t all = model_layer_flops(model, i, batch);

		if (!forward)
			continue;
		if (forward > all || forward < all - 8 * each)
			fail_msg("%s: %lld of %lld", layer->name, (long long)forward,
				 (long long)all);
		if (layer->trainable && lowered->run->fit.wanted)
			assert_int_equal(product_flops(&lowered->graph, layer->name, 'B', "GradW"),
					 forward);
		assert_true(data <= forward);
	}
}

void lowered_check_graph(const struct lowered *lowered)
{
	check_graph(lowered);
	if (lowered->run->fit.wanted)
		check_gradients(lowered);
	check_flops(lowered);
}

const struct ipu_node *lowered_find(const struct ipu_graph *graph, const char *name)
{
	for (int n = 0; n < graph->node_count; n++)
		if (!strcmp(node_name(graph, n), name))
			return &graph->nodes[n];
	fail_msg("there is no operation %s", name);
	return NULL;
}

/* "operation: reads -> writes", by the tensors' names. */
void lowered_check_node(const struct ipu_graph *graph, const char *wanted)
{
	char text[1024];
	const struct ipu_node *node;
	size_t at;

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(wanted, ":"), wanted);
	node = lowered_find(graph, text);
	at = (size_t)snprintf(text, sizeof(text), "%s:", node->op.name);
	for (int i = 0; i < node->read_count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, " %s",
				       graph->tensors[node->reads[i]].name);
	at += (size_t)snprintf(text + at, sizeof(text) - at, " ->");
	for (int i = 0; i < node->write_count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, " %s",
				       graph->tensors[node->writes[i]].name);
	assert_string_equal(text, wanted);
}
