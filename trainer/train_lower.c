/*
 * Lowering: layers' operations with the tensors that they read and write, then gradient
 * accumulation and the weight update, stage by stage.
 *
 * Threads: none.
 */
#include "trainer/train_lower.h"

#include <string.h>

#include "common/mem.h"
#include "trainer/layers/layer.h"

#define LOWER_OPERANDS 64

/* Tensors of a layer, by what its operations call them; -1: not there. */
struct lower_layer_tensors {
	int output, kept, between, gradient; /* gradient: of the output */
};

/* Of a parameter. */
struct lower_param_tensors {
	int weight, gradient, accumulator, first_slot;
};

struct lowering {
	const struct train_lowered *from;
	struct arena *arena;
	struct ipu_tensor *tensors;
	size_t tensor_count, tensor_capacity;
	struct ipu_node *nodes;
	size_t node_count, node_capacity;
	int input;
	struct lower_layer_tensors *layers;
	struct lower_param_tensors *params;
	int list[LOWER_OPERANDS];
	int listed;
};

/* --- tensors -------------------------------------------------------------------------------------
 */

static int tensor_add(struct lowering *lowering, const struct ipu_tensor *tensor)
{
	if (!tensor->name || mem_grow(&lowering->tensors, &lowering->tensor_capacity,
				      lowering->tensor_count + 1, sizeof(*tensor)) != 0)
		return -1;
	lowering->tensors[lowering->tensor_count] = *tensor;
	return (int)lowering->tensor_count++;
}

static void tensor_shape(struct ipu_tensor *tensor, int64_t batch, const struct model_shape *shape)
{
	if (batch > 0)
		tensor->dim[tensor->ndim++] = batch;
	for (int d = 0; d < shape->ndim; d++)
		tensor->dim[tensor->ndim++] = shape->dim[d];
}

/* Of a layer's output, or its gradient. */
static int output_tensor(struct lowering *lowering, int position, enum ipu_tensor_kind kind)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	struct ipu_tensor tensor = {
		.name = arena_printf(lowering->arena, "%s/%s", layer->name,
				     kind == IPU_TENSOR_GRADIENT ? "gradient" : "output"),
		.layer = layer->name,
		.kind = kind,
		.stage = lowering->from->layout->stage[position],
	};

	tensor_shape(&tensor, lowering->from->run->data.batch_size, &layer->output);
	return tensor_add(lowering, &tensor);
}

static int flat_tensor(struct lowering *lowering, int position, enum ipu_tensor_kind kind,
		       const char *part, int64_t elements)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	const struct ipu_tensor tensor = {
		.name = arena_printf(lowering->arena, "%s/%s", layer->name, part),
		.layer = layer->name,
		.kind = kind,
		.ndim = 1,
		.dim = {elements},
		.stage = lowering->from->layout->stage[position],
	};

	return tensor_add(lowering, &tensor);
}

static int param_tensor(struct lowering *lowering, const struct model_param *param,
			enum ipu_tensor_kind kind, const char *prefix, const char *suffix)
{
	const struct model_layer *layer = &lowering->from->model->layers[param->layer];
	struct ipu_tensor tensor = {
		.name = arena_printf(lowering->arena, "%s%s/%s%s", prefix, layer->name,
				     param->short_name, suffix),
		.layer = layer->name,
		.kind = kind,
		.stage = lowering->from->layout->stage[param->layer],
	};

	tensor_shape(&tensor, 0, &param->shape);
	return tensor_add(lowering, &tensor);
}

static int add_param(struct lowering *lowering, int p)
{
	const struct train_lowered *from = lowering->from;
	const struct model_param *param = &from->model->params[p];
	struct lower_param_tensors *of = &lowering->params[p];
	const bool learns = param->trainable && from->run->fit.wanted;

	*of = (struct lower_param_tensors){-1, -1, -1, -1};
	of->weight = param_tensor(lowering, param,
				  param->trainable ? IPU_TENSOR_WEIGHT : IPU_TENSOR_STATE, "", "");
	if (of->weight < 0)
		return -1;
	if (!learns)
		return 0;
	of->gradient = param_tensor(lowering, param, IPU_TENSOR_WEIGHT_GRADIENT, "", "_grad");
	if (of->gradient < 0)
		return -1;
	if (from->layout->accumulation > 1) {
		of->accumulator = param_tensor(lowering, param, IPU_TENSOR_ACCUMULATOR,
					       "GradientAccumulation/", "");
		if (of->accumulator < 0)
			return -1;
	}
	for (int s = 0; s < optimizer_slots(from->optimizer); s++) {
		int slot = param_tensor(lowering, param, IPU_TENSOR_OPTIMIZER_STATE,
					arena_printf(lowering->arena, "%s/%s/",
						     optimizer_name(from->optimizer),
						     optimizer_slot_name(from->optimizer, s)),
					"");

		if (slot < 0)
			return -1;
		if (s == 0)
			of->first_slot = slot;
	}
	return 0;
}

static int add_input(struct lowering *lowering)
{
	struct ipu_tensor tensor = {.name = "infeed", .kind = IPU_TENSOR_INPUT};

	tensor_shape(&tensor, lowering->from->run->data.batch_size, &lowering->from->model->input);
	lowering->input = tensor_add(lowering, &tensor);
	return lowering->input < 0 ? -1 : 0;
}

static int64_t kept_elements(const struct lowering *lowering, const struct model_layer *layer)
{
	const struct model *model = lowering->from->model;

	if (!layer->ops->kept)
		return 0;
	return (int64_t)(layer->ops->kept(model, layer, lowering->from->run->data.batch_size) /
			 sizeof(float));
}

static int add_layer(struct lowering *lowering, int position)
{
	const struct train_lowered *from = lowering->from;
	const struct model_layer *layer = &from->model->layers[position];
	struct lower_layer_tensors *of = &lowering->layers[position];
	int64_t kept = kept_elements(lowering, layer);

	*of = (struct lower_layer_tensors){-1, -1, -1, -1};
	if (layer->ops->pass_through) {
		const int first = layer->inputs[0];

		*of = first == MODEL_INPUT
			      ? (struct lower_layer_tensors){lowering->input, -1, -1, -1}
			      : lowering->layers[first];
		return 0;
	}
	of->output = output_tensor(lowering, position, IPU_TENSOR_ACTIVATION);
	if (of->output < 0)
		return -1;
	if (from->run->fit.wanted) {
		of->gradient = output_tensor(lowering, position, IPU_TENSOR_GRADIENT);
		if (of->gradient < 0)
			return -1;
	}
	if (from->run->fit.wanted && kept > 0) {
		of->kept = flat_tensor(lowering, position, IPU_TENSOR_KEPT, "kept", kept);
		if (of->kept < 0)
			return -1;
	}
	return 0;
}

static enum status add_tensors(struct lowering *lowering, struct err *err)
{
	const struct model *model = lowering->from->model;
	int failed;

	lowering->layers =
		arena_alloc(lowering->arena, (size_t)model->layer_count, sizeof(*lowering->layers));
	lowering->params = arena_alloc(lowering->arena, (size_t)model->param_count + 1,
				       sizeof(*lowering->params));
	failed = !lowering->layers || !lowering->params || add_input(lowering);
	for (int i = 0; i < model->layer_count && !failed; i++)
		failed = add_layer(lowering, i);
	for (int p = 0; p < model->param_count && !failed; p++)
		failed = add_param(lowering, p);
	return failed ? err_nomem(err) : ST_OK;
}

/* --- operations ----------------------------------------------------------------------------------
 */

static void list_tensor(struct lowering *lowering, int tensor)
{
	if (tensor < 0 || lowering->listed == LOWER_OPERANDS)
		return;
	for (int i = 0; i < lowering->listed; i++)
		if (lowering->list[i] == tensor)
			return;
	lowering->list[lowering->listed++] = tensor;
}

static void list_inputs(struct lowering *lowering, const struct model_layer *layer, bool gradient)
{
	for (int i = 0; i < layer->input_count; i++) {
		const int at = layer->inputs[i];

		if (at != MODEL_INPUT)
			list_tensor(lowering, gradient ? lowering->layers[at].gradient
						       : lowering->layers[at].output);
		else if (!gradient)
			list_tensor(lowering, lowering->input);
	}
}

/* The tensors that @operands of a layer are. */
static void list_operands(struct lowering *lowering, int position, unsigned operands)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	const struct lower_layer_tensors *of = &lowering->layers[position];
	const struct {
		unsigned operand;
		int tensor;
	} own[] = {{LAYER_OUTPUT, of->output},
		   {LAYER_KEPT, of->kept},
		   {LAYER_BETWEEN, of->between},
		   {LAYER_GRAD_OUTPUT, of->gradient}};

	lowering->listed = 0;
	if (operands & LAYER_INPUT)
		list_inputs(lowering, layer, false);
	if (operands & LAYER_GRAD_INPUT)
		list_inputs(lowering, layer, true);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (operands & own[i].operand)
			list_tensor(lowering, own[i].tensor);
	for (int p = 0; p < layer->param_count; p++) {
		const struct lower_param_tensors *param = &lowering->params[layer->first_param + p];

		if (operands & LAYER_PARAM(p))
			list_tensor(lowering, param->weight);
		if (operands & LAYER_GRAD_PARAM(p))
			list_tensor(lowering, param->gradient);
	}
}

static int keep_list(struct lowering *lowering, const int **out, int *count)
{
	int *kept = arena_alloc(lowering->arena, (size_t)lowering->listed + 1, sizeof(*kept));

	if (!kept)
		return -1;
	memcpy(kept, lowering->list, (size_t)lowering->listed * sizeof(*kept));
	*out = kept;
	*count = lowering->listed;
	return 0;
}

static int node_add(struct lowering *lowering, const struct ipu_node *node)
{
	if (!node->op.name || mem_grow(&lowering->nodes, &lowering->node_capacity,
				       lowering->node_count + 1, sizeof(*node)) != 0)
		return -1;
	lowering->nodes[lowering->node_count++] = *node;
	return 0;
}

static int lower_op(struct lowering *lowering, int position, const struct layer_op *op)
{
	struct ipu_node node = {.op = op->op};
	struct lower_layer_tensors *of = &lowering->layers[position];

	node.op.stage = lowering->from->layout->stage[position];
	ipu_plan_options_defaults(&node.options);
	if (op->between > 0) {
		of->between = flat_tensor(lowering, position, IPU_TENSOR_TEMPORARY, "between",
					  op->between);
		if (of->between < 0)
			return -1;
	}
	list_operands(lowering, position, op->reads);
	if (keep_list(lowering, &node.reads, &node.read_count) != 0)
		return -1;
	list_operands(lowering, position, op->writes);
	if (keep_list(lowering, &node.writes, &node.write_count) != 0)
		return -1;
	return node_add(lowering, &node);
}

/* Nothing before it learns, so nobody wants the gradient of its input. */
static bool learns_first(const struct model *model, int position)
{
	for (int i = 0; i < position; i++)
		if (model->layers[i].param_count > 0)
			return false;
	return true;
}

static int lower_layer(struct lowering *lowering, int position, char phase)
{
	const struct train_lowered *from = lowering->from;
	const struct model_layer *layer = &from->model->layers[position];
	struct layer_op ops[LAYER_OPS];
	int count, failed;

	if (!layer->ops->lower)
		return 0;
	memset(ops, 0, sizeof(ops));
	count = layer->ops->lower(from->model, layer, from->run->data.batch_size, phase,
				  learns_first(from->model, position), ops, LAYER_OPS,
				  lowering->arena);
	failed = count < 0;
	for (int i = 0; i < count && !failed; i++)
		failed = lower_op(lowering, position, &ops[i]);
	return failed ? -1 : 0;
}

/* --- gradient accumulation and weight update -----------------------------------------------------
 */

static int lower_variable(struct lowering *lowering, int p, char phase)
{
	const struct train_lowered *from = lowering->from;
	const struct model_param *param = &from->model->params[p];
	const struct model_layer *layer = &from->model->layers[param->layer];
	const struct lower_param_tensors *of = &lowering->params[p];
	const bool update = phase == 'U';
	struct ipu_node node = {.op = {.kind = IPU_OP_ELEMENTWISE,
				       .name = arena_printf(lowering->arena, "%s/%s/%s",
							    update ? optimizer_name(from->optimizer)
								   : "GradientAccumulation",
							    layer->name, param->short_name),
				       .layer = layer->name,
				       .phase = phase,
				       .stage = from->layout->stage[param->layer]}};

	node.op.elements.count = (int64_t)param->count;
	node.op.elements.operands = 2;
	if (update)
		node.op.elements.times[IPU_FN_ADD] = (uint8_t)optimizer_work(from->optimizer);
	else
		node.op.elements.times[IPU_FN_SCALED_ADD] = 1;
	ipu_plan_options_defaults(&node.options);
	lowering->listed = 0;
	list_tensor(lowering, update && of->accumulator >= 0 ? of->accumulator : of->gradient);
	list_tensor(lowering, update ? of->weight : of->accumulator);
	for (int s = 0; update && s < optimizer_slots(from->optimizer); s++)
		list_tensor(lowering, of->first_slot + s);
	if (keep_list(lowering, &node.reads, &node.read_count) != 0)
		return -1;
	node.writes = node.reads + 1;
	node.write_count = node.read_count - 1;
	return node_add(lowering, &node);
}

static int lower_variables(struct lowering *lowering, int stage, char phase)
{
	const struct model *model = lowering->from->model;
	int failed = 0;

	for (int p = 0; p < model->param_count && !failed; p++) {
		const struct model_param *param = &model->params[p];

		if (lowering->from->layout->stage[param->layer] == stage && param->trainable)
			failed = lower_variable(lowering, p, phase);
	}
	return failed;
}

static int lower_stage(struct lowering *lowering, int stage)
{
	const struct run_layout *layout = lowering->from->layout;
	const int layers = lowering->from->model->layer_count;
	int failed = 0;

	for (int i = 0; i < layers && !failed; i++)
		if (layout->stage[i] == stage)
			failed = lower_layer(lowering, i, 'F');
	if (!lowering->from->run->fit.wanted)
		return failed;
	for (int i = layers - 1; i >= 0 && !failed; i--)
		if (layout->stage[i] == stage)
			failed = lower_layer(lowering, i, 'B');
	if (!failed && layout->accumulation > 1)
		failed = lower_variables(lowering, stage, 'B');
	return failed ? failed : lower_variables(lowering, stage, 'U');
}

static int keep_all(struct lowering *lowering, struct ipu_graph *graph)
{
	struct ipu_tensor *tensors =
		arena_alloc(lowering->arena, lowering->tensor_count + 1, sizeof(*tensors));
	struct ipu_node *nodes =
		arena_alloc(lowering->arena, lowering->node_count + 1, sizeof(*nodes));

	if (!tensors || !nodes)
		return -1;
	for (size_t i = 0; i < lowering->tensor_count; i++)
		tensors[i] = lowering->tensors[i];
	for (size_t i = 0; i < lowering->node_count; i++)
		nodes[i] = lowering->nodes[i];
	graph->tensors = tensors;
	graph->tensor_count = (int)lowering->tensor_count;
	graph->nodes = nodes;
	graph->node_count = (int)lowering->node_count;
	return 0;
}

static void set_layout(struct ipu_layout *out, const struct train_lowered *from)
{
	const struct run_layout *layout = from->layout;

	*out = (struct ipu_layout){
		.batch = from->run->data.batch_size,
		.replicas = layout->replicas,
		.stages = layout->stages,
		.accumulation = layout->accumulation,
		.runs = layout->updates_per_execution,
		.prefetch_depth = 3,
		.buffer_depth = 3,
	};
}

enum status train_lower(struct ipu_graph *graph, const struct train_lowered *lowered,
			struct arena *arena, struct err *err)
{
	struct lowering lowering = {.from = lowered, .arena = arena};
	enum status status = add_tensors(&lowering, err);
	int failed = 0;

	*graph = (struct ipu_graph){0};
	for (int s = 0; s < lowered->layout->stages && status == ST_OK && !failed; s++)
		failed = lower_stage(&lowering, s);
	if (status == ST_OK && (failed || keep_all(&lowering, graph) != 0))
		status = err_nomem(err);
	set_layout(&graph->layout, lowered);
	mem_free(lowering.tensors);
	mem_free(lowering.nodes);
	return status;
}
