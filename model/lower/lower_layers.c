/*
 * Lowering: a layer's operations with the tensors that they read and write, the copies of its
 * output for outfeeds, and the flow of gradients from the layers that read an output to the layer
 * that produced it.
 *
 * Threads: none.
 */
#include <assert.h>

#include "common/mem.h"
#include "model/lower/lower_internal.h"

static int stage_of(const struct lowering *lowering, int position)
{
	return lowering->from->layout->stage[position];
}

static void list_add(struct lowering *lowering, int tensor)
{
	assert(tensor >= 0);
	if (mem_grow(&lowering->list, &lowering->list_capacity, lowering->listed + 1,
		     sizeof(*lowering->list)) != 0)
		lowering->failed = true;
	else
		lowering->list[lowering->listed++] = tensor;
}

/* ---- operands -------------------------------------------------------------------------------- */

static enum ipu_dtype layer_dtype(const struct model_layer *layer)
{
	return layer->half ? IPU_FLOAT16 : IPU_FLOAT32;
}

static int input_tensor(const struct lowering *lowering, const struct model_layer *layer, int input)
{
	const int at = layer->inputs[input];

	return at == MODEL_INPUT ? lowering->input : lowering->layers[at].output;
}

/* Like Keras, cast a layer's inputs to the type in which it computes. */
static void cast_inputs(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	struct lower_layer *of = &lowering->layers[position];

	for (int i = 0; i < layer->input_count; i++) {
		const int from = input_tensor(lowering, layer, i);
		const char *name;

		of->cast_input[i] = from;
		if (lowering->tensors[from].dtype == layer_dtype(layer) || layer->ops->looks_up)
			continue;
		name = lower__name(lowering, i ? "%s/Cast_%d" : "%s/Cast", layer->name, i);
		of->cast_input[i] =
			lower__like(lowering, from, IPU_TENSOR_ACTIVATION, layer_dtype(layer),
				    stage_of(lowering, position), name);
		lowering->tensors[of->cast_input[i]].layer = layer->name;
		lower__cast(lowering, name, layer->name, IPU_PHASE_F, stage_of(lowering, position),
			    from, of->cast_input[i]);
	}
}

/* Return the float16 copy of a parameter. It is retained for the backward pass if that is in the
 * same program; in a pipeline it is made again there, which costs less than to stash it. */
static int half_param(struct lowering *lowering, int p, char phase)
{
	const struct model_param *param = &lowering->from->model->params[p];
	const struct model_layer *layer = &lowering->from->model->layers[param->layer];
	struct lower_param *of = &lowering->params[p];
	const int stage = stage_of(lowering, param->layer);
	const bool alone = lowering->from->layout->stages == 1;
	const char *name;

	if (of->half_phase && (alone || of->half_phase == phase))
		return of->half;
	name = lower__name(lowering, phase == IPU_PHASE_F ? "%s/%s/Cast" : "%s/%s/Cast_1",
			   layer->name, param->short_name);
	of->half = lower__like(lowering, of->weight,
			       alone && lowering->layers[param->layer].needs ? IPU_TENSOR_KEPT
									     : IPU_TENSOR_TEMPORARY,
			       IPU_FLOAT16, stage, name);
	of->half_phase = phase;
	lower__cast(lowering, name, layer->name, phase, stage, of->weight, of->half);
	return of->half;
}

static int half_gradient(struct lowering *lowering, int p)
{
	const struct model_param *param = &lowering->from->model->params[p];
	struct lower_param *of = &lowering->params[p];

	if (of->half_gradient < 0)
		of->half_gradient = lower__like(
			lowering, of->weight, IPU_TENSOR_TEMPORARY, IPU_FLOAT16,
			stage_of(lowering, param->layer),
			lower__name(lowering, "%s/half", lowering->tensors[of->gradient].name));
	return of->half_gradient;
}

/* Return the gradient of an input as the layer computes it, creating the tensor if needed. */
static int input_gradient(struct lowering *lowering, int position, int input)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	const struct model_layer *to = &lowering->from->model->layers[layer->inputs[input]];
	struct lower_layer *of = &lowering->layers[position];
	const char *name;

	if (of->given[input] >= 0)
		return of->given[input];
	if (lowering->layers[layer->inputs[input]].edges_most == 1)
		name = lower__name(lowering, "%s/gradient", to->name);
	else
		name = lower__name(lowering,
				   input ? "%s/gradient_from_%s_%d" : "%s/gradient_from_%s",
				   to->name, layer->name, input);
	of->given[input] = lower__like(lowering, of->cast_input[input], IPU_TENSOR_GRADIENT,
				       layer_dtype(layer), stage_of(lowering, position), name);
	lowering->tensors[of->given[input]].layer = to->name;
	return of->given[input];
}

/* Return the output's gradient for modification in place; if it is shared or on another stage,
 * replace it by a new tensor of this stage. */
static int writable_gradient(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	struct lower_layer *of = &lowering->layers[position];
	const int stage = stage_of(lowering, position);

	if (!of->shared && lowering->tensors[of->gradient].stage == stage)
		return of->gradient;
	of->gradient = lower__like(lowering, of->gradient, IPU_TENSOR_GRADIENT,
				   lowering->tensors[of->gradient].dtype, stage,
				   lower__name(lowering, "%s/gradient_before", layer->name));
	of->shared = false;
	return of->gradient;
}

/* If the operation allocates the tensor of @operand (phase F or B), create it in *@tensor. */
static void allocate_written(struct lowering *lowering, int position, const struct layer_op *op,
			     int *tensor, unsigned operand)
{
	const bool kept = operand == LAYER_KEPT;
	const enum ipu_dtype dtype = op->bytes ? IPU_INT32 : op->op.dtype;
	const int64_t elements = op->bytes ? (op->makes + 3) / 4 : op->makes;
	struct lower_layer *of = &lowering->layers[position];
	const char *part = !kept ? "between" : ipu_op_draws(&op->op) ? "random" : "kept";

	if (op->makes <= 0)
		return;
	if (!kept && of->betweens++ > 0)
		part = lower__name(lowering, "between_%d", of->betweens - 1);
	*tensor = lower__flat(lowering, position, kept ? IPU_TENSOR_KEPT : IPU_TENSOR_TEMPORARY,
			      dtype, part, elements);
}

static void list_reads(struct lowering *lowering, int position, const struct layer_op *op)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	const struct lower_layer *of = &lowering->layers[position];
	const struct {
		unsigned operand;
		int tensor;
	} own[] = {{LAYER_OUTPUT, of->output},   {LAYER_KEPT, of->kept},
		   {LAYER_BETWEEN, of->between}, {LAYER_BETWEEN_TOO, of->between_too},
		   {LAYER_STATE, of->state},     {LAYER_GRAD_OUTPUT, of->gradient}};

	for (int i = 0; op->reads & LAYER_INPUT && i < layer->input_count; i++)
		list_add(lowering, of->cast_input[i]);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (op->reads & own[i].operand)
			list_add(lowering, own[i].tensor);
	for (int p = 0; p < layer->param_count; p++) {
		const int at = layer->first_param + p;

		if (op->reads & LAYER_PARAM(p))
			list_add(lowering, lowering->from->model->params[at].half
						   ? half_param(lowering, at, op->op.phase)
						   : lowering->params[at].weight);
		if (op->reads & LAYER_GRAD_PARAM(p))
			list_add(lowering, lowering->params[at].gradient);
	}
}

static void list_written(struct lowering *lowering, int position, const struct layer_op *op)
{
	struct lower_layer *of = &lowering->layers[position];
	const struct {
		unsigned operand;
		int *tensor;
	} own[] = {{LAYER_KEPT, &of->kept},
		   {LAYER_BETWEEN, &of->between},
		   {LAYER_BETWEEN_TOO, &of->between_too}};

	if (op->writes & LAYER_STATE)
		list_add(lowering, of->state);
	if (op->writes & LAYER_OUTPUT) {
		if (of->output < 0)
			of->output = lower__output(lowering, position);
		list_add(lowering, of->output);
	}
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		if (!(op->writes & own[i].operand))
			continue;
		allocate_written(lowering, position, op, own[i].tensor, own[i].operand);
		list_add(lowering, *own[i].tensor);
	}
}

static void list_gradients(struct lowering *lowering, int position, const struct layer_op *op)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	const struct lower_layer *of = &lowering->layers[position];

	if (op->writes & LAYER_GRAD_OUTPUT)
		list_add(lowering, writable_gradient(lowering, position));
	for (int i = 0; i < layer->input_count; i++) {
		const bool one = i < 8 && op->writes & LAYER_GRAD_INPUT_AT(i);

		if (of->wanted[i] && (op->writes & LAYER_GRAD_INPUT || one))
			list_add(lowering, input_gradient(lowering, position, i));
	}
}

static void list_params(struct lowering *lowering, int position, const struct layer_op *op)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];

	for (int p = 0; p < layer->param_count; p++) {
		const int at = layer->first_param + p;

		if (op->writes & LAYER_PARAM(p))
			list_add(lowering, lowering->params[at].weight);
		if (op->writes & LAYER_GRAD_PARAM(p))
			list_add(lowering, lowering->from->model->params[at].half
						   ? half_gradient(lowering, at)
						   : lowering->params[at].gradient);
	}
}

/* Cast gradients of float16 copies to the variables' type after the last operation that writes
 * them; @later: what the following operations write. */
static void cast_gradients(struct lowering *lowering, int position, unsigned writes, unsigned later)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];

	for (int p = 0; p < layer->param_count; p++) {
		const int at = layer->first_param + p;
		const struct lower_param *of = &lowering->params[at];

		if (writes & ~later & LAYER_GRAD_PARAM(p) && lowering->from->model->params[at].half)
			lower__cast(lowering,
				    lower__name(lowering, "%s/Cast",
						lowering->tensors[of->gradient].name),
				    layer->name, IPU_PHASE_B, stage_of(lowering, position),
				    of->half_gradient, of->gradient);
	}
}

/* Append the layer's operation @i. */
static void lower_op(struct lowering *lowering, int position, const struct layer_lowering *layer,
		     int i)
{
	const struct layer_op *op = &layer->ops[i];
	struct ipu_node node = {.op = op->op,
				.training_only = op->training_only,
				.function = layer->layer->ops->function};
	unsigned later = 0;

	node.op.stage = stage_of(lowering, position);
	lowering->listed = 0;
	list_reads(lowering, position, op);
	node.read_count = (int)lowering->listed;
	list_written(lowering, position, op);
	list_gradients(lowering, position, op);
	list_params(lowering, position, op);
	node.write_count = (int)lowering->listed - node.read_count;
	node.reads = lowering->list;
	node.writes = lowering->list + node.read_count;
	lower__node(lowering, &node);
	while (++i < layer->count)
		later |= layer->ops[i].writes;
	cast_gradients(lowering, position, op->writes, later);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static void layer_ops(struct lowering *lowering, int position, char phase,
		      struct layer_lowering *out)
{
	const struct lower_layer *of = &lowering->layers[position];

	*out = (struct layer_lowering){
		.model = lowering->from->model,
		.layer = &lowering->from->model->layers[position],
		.batch = lower__batch(lowering),
		.phase = phase,
		.training =
			lowering->training && !lowering->from->model->layers[position].inference,
		.retains = of->needs,
		.takes_logits = position == lowering->logits_layer,
		.folded = of->folded,
		.wanted = phase == IPU_PHASE_B ? of->wanted : NULL,
		.arena = lowering->arena,
	};
	if (out->layer->ops->lower)
		out->layer->ops->lower(out);
	lowering->failed = lowering->failed || out->failed;
}

/* Append copies of the layer's output for the queues that send it. */
static void lower_outfeeds(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	const int from = lowering->layers[position].output;
	const struct run_queues *plan = &lowering->outfeeds;

	for (int i = 0; i < plan->send_count; i++) {
		const struct run_send *send = &plan->sends[i];
		struct ipu_op op = {.kind = IPU_OP_COPY,
				    .layer = layer->name,
				    .phase = IPU_PHASE_F,
				    .stage = stage_of(lowering, position)};
		int to;

		if (send->layer != position || !send->sent)
			continue;
		op.name = lower__name(lowering, "%s/outfeed", send->key);
		op.dtype = lowering->tensors[from].dtype;
		op.copy.count = ipu_tensor_elements(&lowering->tensors[from]);
		op.copy.atom = layer->output.ndim ? layer->output.dim[layer->output.ndim - 1] : 1;
		to = lower__like(lowering, from, IPU_TENSOR_RESULT, op.dtype, op.stage, op.name);
		lowering->tensors[to].layer = layer->name;
		lower__node(lowering, &(struct ipu_node){.op = op,
							 .reads = &from,
							 .read_count = 1,
							 .writes = &to,
							 .write_count = 1,
							 .training_only = true});
	}
}

void lower__layer_forward(struct lowering *lowering, int position)
{
	struct lower_layer *of = &lowering->layers[position];
	struct layer_lowering layer;

	layer_ops(lowering, position, IPU_PHASE_F, &layer);
	if (layer.count > 0)
		cast_inputs(lowering, position);
	for (int i = 0; i < layer.count && !lowering->failed; i++)
		lower_op(lowering, position, &layer, i);
	if (of->output < 0)
		of->output = input_tensor(lowering, layer.layer, 0);
	lower_outfeeds(lowering, position);
}

/* Add the gradients that several layers contribute to one output. */
static void sum_gradients(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	struct lower_layer *of = &lowering->layers[position];
	struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE,
			    .layer = layer->name,
			    .phase = IPU_PHASE_B,
			    .stage = stage_of(lowering, position)};
	const int first = of->edge[0].tensor;

	op.name = lower__name(lowering, lowering->sums ? "gradients/AddN_%d" : "gradients/AddN",
			      lowering->sums);
	lowering->sums++;
	op.dtype = lowering->tensors[first].dtype;
	op.elements.count = ipu_tensor_elements(&lowering->tensors[first]);
	op.elements.operands = of->edges;
	op.elements.times[IPU_FN_ADD] =
		(uint8_t)(of->edges <= UINT8_MAX ? of->edges - 1 : UINT8_MAX);
	of->gradient = lower__like(lowering, first, IPU_TENSOR_GRADIENT, op.dtype, op.stage,
				   lower__name(lowering, "%s/gradient", layer->name));
	of->shared = false;
	lowering->listed = 0;
	for (int i = 0; i < of->edges; i++)
		list_add(lowering, of->edge[i].tensor);
	lower__op(lowering, &op, lowering->list, (int)lowering->listed, of->gradient);
}

/* Contribute the gradient of an input to the layer that produced it, in that layer's type. */
static void contribute_gradient(struct lowering *lowering, int position, int input, bool shared)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	const struct lower_layer *of = &lowering->layers[position];
	struct lower_layer *to = &lowering->layers[layer->inputs[input]];
	struct lower_edge edge = {of->given[input], false};
	const enum ipu_dtype dtype = lowering->tensors[to->output].dtype;

	if (edge.tensor < 0)
		edge = (struct lower_edge){of->gradient, shared};
	if (lowering->tensors[edge.tensor].dtype != dtype) {
		const char *name = lower__name(lowering, "%s/Cast_%d/Grad", layer->name, input);
		const int from = edge.tensor;

		edge.shared = false;
		edge.tensor = lower__like(lowering, from, IPU_TENSOR_GRADIENT, dtype,
					  stage_of(lowering, position), name);
		lower__cast(lowering, name, layer->name, IPU_PHASE_B, stage_of(lowering, position),
			    from, edge.tensor);
	}
	assert(to->edges < to->edges_most);
	to->edge[to->edges++] = edge;
}

static void contribute_gradients(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	const struct lower_layer *of = &lowering->layers[position];
	int handed_on = 0;

	for (int i = 0; i < layer->input_count; i++)
		handed_on += of->wanted[i] && of->given[i] < 0;
	for (int i = 0; i < layer->input_count; i++)
		if (of->wanted[i])
			contribute_gradient(lowering, position, i, of->shared || handed_on > 1);
}

/* If a later call of the layer has created its parameters' gradients, this call writes separate
 * ones. */
static void begin_gradients(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];

	for (int p = 0; p < layer->param_count; p++) {
		const int at = layer->first_param + p;
		struct lower_param *of = &lowering->params[at];

		if (of->gradient < 0)
			continue;
		if (of->made) {
			of->sum = of->gradient;
			of->gradient = lower__like(
				lowering, of->sum, IPU_TENSOR_TEMPORARY, IPU_FLOAT32,
				stage_of(lowering, position),
				lower__name(lowering, "%s/%s_call_grad", layer->name,
					    lowering->from->model->params[at].short_name));
			of->half_gradient = -1;
			lowering->tensors[of->gradient].layer = layer->name;
		}
		of->made = true;
	}
}

/* Add this call's gradients to those of the later calls. */
static void sum_calls(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];

	for (int p = 0; p < layer->param_count; p++) {
		struct lower_param *of = &lowering->params[layer->first_param + p];
		struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE,
				    .layer = layer->name,
				    .phase = IPU_PHASE_B,
				    .stage = stage_of(lowering, position)};

		if (of->sum < 0)
			continue;
		op.name = lower__name(lowering, "%s/Add", lowering->tensors[of->gradient].name);
		op.elements.count = ipu_tensor_elements(&lowering->tensors[of->sum]);
		op.elements.operands = 2;
		op.elements.times[IPU_FN_ADD] = 1;
		lower__op(lowering, &op, (const int[]){of->sum, of->gradient}, 2, of->sum);
		of->gradient = of->sum;
		of->sum = of->half_gradient = -1;
	}
}

void lower__layer_backward(struct lowering *lowering, int position)
{
	struct lower_layer *of = &lowering->layers[position];
	struct layer_lowering layer;

	if (!of->needs)
		return;
	if (of->edges > 1) {
		sum_gradients(lowering, position);
	} else if (of->edges == 1) {
		of->gradient = of->edge[0].tensor;
		of->shared = of->edge[0].shared;
	}
	assert(of->gradient >= 0);
	begin_gradients(lowering, position);
	layer_ops(lowering, position, IPU_PHASE_B, &layer);
	for (int i = 0; i < layer.count && !lowering->failed; i++)
		lower_op(lowering, position, &layer, i);
	sum_calls(lowering, position);
	contribute_gradients(lowering, position);
}
