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

static int list_add(struct lowering *lowering, int tensor)
{
	assert(tensor >= 0);
	if (mem_grow(&lowering->list, &lowering->list_capacity, lowering->listed + 1,
		     sizeof(*lowering->list)) != 0)
		return -1;
	lowering->list[lowering->listed++] = tensor;
	return 0;
}

static int add_node(struct lowering *lowering, const struct ipu_op *op, size_t reads,
		    bool training_only)
{
	return lower__node(lowering,
			   &(struct ipu_node){.op = *op,
					      .reads = lowering->list,
					      .read_count = (int)reads,
					      .writes = lowering->list + reads,
					      .write_count = (int)(lowering->listed - reads),
					      .training_only = training_only});
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
static int cast_inputs(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	struct lower_layer *of = &lowering->layers[position];
	int failed = 0;

	for (int i = 0; i < layer->input_count && !failed; i++) {
		const int from = input_tensor(lowering, layer, i);
		const char *name;

		of->cast_input[i] = from;
		if (lowering->tensors[from].dtype == layer_dtype(layer) || layer->ops->looks_up)
			continue;
		name = arena_printf(lowering->arena, i ? "%s/Cast_%d" : "%s/Cast", layer->name, i);
		of->cast_input[i] =
			lower__like(lowering, from, IPU_TENSOR_ACTIVATION, layer_dtype(layer),
				    stage_of(lowering, position), name);
		if (of->cast_input[i] < 0)
			return -1;
		lowering->tensors[of->cast_input[i]].layer = layer->name;
		failed = lower__cast(lowering, name, layer->name, IPU_PHASE_F,
				     stage_of(lowering, position), from, of->cast_input[i]);
	}
	return failed;
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
	name = arena_printf(lowering->arena, phase == IPU_PHASE_F ? "%s/%s/Cast" : "%s/%s/Cast_1",
			    layer->name, param->short_name);
	of->half = lower__like(lowering, of->weight,
			       alone && lowering->layers[param->layer].needs ? IPU_TENSOR_KEPT
									     : IPU_TENSOR_TEMPORARY,
			       IPU_FLOAT16, stage, name);
	of->half_phase = phase;
	if (of->half < 0 ||
	    lower__cast(lowering, name, layer->name, phase, stage, of->weight, of->half) != 0)
		return -1;
	return of->half;
}

static int half_gradient(struct lowering *lowering, int p)
{
	const struct model_param *param = &lowering->from->model->params[p];
	struct lower_param *of = &lowering->params[p];

	if (of->half_gradient < 0)
		of->half_gradient = lower__like(lowering, of->weight, IPU_TENSOR_TEMPORARY,
						IPU_FLOAT16, stage_of(lowering, param->layer),
						arena_printf(lowering->arena, "%s/half",
							     lowering->tensors[of->gradient].name));
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
		name = arena_printf(lowering->arena, "%s/gradient", to->name);
	else
		name = arena_printf(lowering->arena,
				    input ? "%s/gradient_from_%s_%d" : "%s/gradient_from_%s",
				    to->name, layer->name, input);
	of->given[input] = lower__like(lowering, of->cast_input[input], IPU_TENSOR_GRADIENT,
				       layer_dtype(layer), stage_of(lowering, position), name);
	if (of->given[input] >= 0)
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
	of->gradient = lower__like(
		lowering, of->gradient, IPU_TENSOR_GRADIENT, lowering->tensors[of->gradient].dtype,
		stage, arena_printf(lowering->arena, "%s/gradient_before", layer->name));
	of->shared = false;
	return of->gradient;
}

/* If the operation allocates the tensor of @operand (phase F or B), create it in *@tensor. */
static int allocate_written(struct lowering *lowering, int position, const struct layer_op *op,
			    int *tensor, unsigned operand)
{
	const bool kept = operand == LAYER_KEPT;
	const enum ipu_dtype dtype = op->bytes ? IPU_INT32 : op->op.dtype;
	const int64_t elements = op->bytes ? (op->makes + 3) / 4 : op->makes;
	struct lower_layer *of = &lowering->layers[position];
	const char *part = kept ? "kept" : "between";

	if (op->writes & operand && op->makes > 0) {
		if (!kept && of->betweens++ > 0)
			part = arena_printf(lowering->arena, "between_%d", of->betweens - 1);
		*tensor = part ? lower__flat(lowering, position,
					     kept ? IPU_TENSOR_KEPT : IPU_TENSOR_TEMPORARY, dtype,
					     part, elements)
			       : -1;
	}
	return *tensor < 0 && op->writes & operand ? -1 : 0;
}

static int list_reads(struct lowering *lowering, int position, const struct layer_op *op)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	const struct lower_layer *of = &lowering->layers[position];
	const struct {
		unsigned operand;
		int tensor;
	} own[] = {{LAYER_OUTPUT, of->output},   {LAYER_KEPT, of->kept},
		   {LAYER_BETWEEN, of->between}, {LAYER_BETWEEN_TOO, of->between_too},
		   {LAYER_STATE, of->state},     {LAYER_GRAD_OUTPUT, of->gradient}};
	int failed = 0;

	for (int i = 0; op->reads & LAYER_INPUT && i < layer->input_count; i++)
		failed |= list_add(lowering, of->cast_input[i]);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (op->reads & own[i].operand)
			failed |= list_add(lowering, own[i].tensor);
	for (int p = 0; p < layer->param_count && !failed; p++) {
		const int at = layer->first_param + p;
		int tensor = lowering->params[at].weight;

		if (op->reads & LAYER_PARAM(p)) {
			if (lowering->from->model->params[at].half)
				tensor = half_param(lowering, at, op->op.phase);
			failed = tensor < 0 ? -1 : list_add(lowering, tensor);
		}
		if (op->reads & LAYER_GRAD_PARAM(p) && !failed)
			failed = list_add(lowering, lowering->params[at].gradient);
	}
	return failed ? -1 : 0;
}

static int list_written(struct lowering *lowering, int position, const struct layer_op *op)
{
	struct lower_layer *of = &lowering->layers[position];
	const struct {
		unsigned operand;
		int *tensor;
	} own[] = {{LAYER_KEPT, &of->kept},
		   {LAYER_BETWEEN, &of->between},
		   {LAYER_BETWEEN_TOO, &of->between_too}};

	if (op->writes & LAYER_STATE && list_add(lowering, of->state) != 0)
		return -1;
	if (op->writes & LAYER_OUTPUT) {
		if (of->output < 0)
			of->output = lower__output(lowering, position);
		if (of->output < 0 || list_add(lowering, of->output) != 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (op->writes & own[i].operand &&
		    (allocate_written(lowering, position, op, own[i].tensor, own[i].operand) != 0 ||
		     list_add(lowering, *own[i].tensor) != 0))
			return -1;
	return 0;
}

static int list_gradients(struct lowering *lowering, int position, const struct layer_op *op)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	const struct lower_layer *of = &lowering->layers[position];

	if (op->writes & LAYER_GRAD_OUTPUT) {
		const int tensor = writable_gradient(lowering, position);

		if (tensor < 0 || list_add(lowering, tensor) != 0)
			return -1;
	}
	for (int i = 0; i < layer->input_count; i++) {
		const bool one = i < 8 && op->writes & LAYER_GRAD_INPUT_AT(i);

		if (!of->wanted[i] || !(op->writes & LAYER_GRAD_INPUT || one))
			continue;
		if (input_gradient(lowering, position, i) < 0 ||
		    list_add(lowering, of->given[i]) != 0)
			return -1;
	}
	return 0;
}

static int list_params(struct lowering *lowering, int position, const struct layer_op *op)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];

	for (int p = 0; p < layer->param_count; p++) {
		const int at = layer->first_param + p;
		int tensor = lowering->params[at].gradient;

		if (op->writes & LAYER_PARAM(p) &&
		    list_add(lowering, lowering->params[at].weight) != 0)
			return -1;
		if (!(op->writes & LAYER_GRAD_PARAM(p)))
			continue;
		if (lowering->from->model->params[at].half)
			tensor = half_gradient(lowering, at);
		if (tensor < 0 || list_add(lowering, tensor) != 0)
			return -1;
	}
	return 0;
}

/* Cast gradients of float16 copies to the variables' type after the last operation that writes
 * them; @later: what the following operations write. */
static int cast_gradients(struct lowering *lowering, int position, unsigned writes, unsigned later)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	int failed = 0;

	for (int p = 0; p < layer->param_count && !failed; p++) {
		const int at = layer->first_param + p;
		const struct lower_param *of = &lowering->params[at];

		if (writes & ~later & LAYER_GRAD_PARAM(p) && lowering->from->model->params[at].half)
			failed = lower__cast(lowering,
					     arena_printf(lowering->arena, "%s/Cast",
							  lowering->tensors[of->gradient].name),
					     layer->name, IPU_PHASE_B, stage_of(lowering, position),
					     of->half_gradient, of->gradient);
	}
	return failed;
}

/* Append the layer's operation @i. */
static int lower_op(struct lowering *lowering, int position, const struct layer_lowering *layer,
		    int i)
{
	const struct layer_op *op = &layer->ops[i];
	struct ipu_op placed = op->op;
	unsigned later = 0;
	size_t reads;

	placed.stage = stage_of(lowering, position);
	lowering->listed = 0;
	if (list_reads(lowering, position, op) != 0)
		return -1;
	reads = lowering->listed;
	if (list_written(lowering, position, op) != 0 ||
	    list_gradients(lowering, position, op) != 0 ||
	    list_params(lowering, position, op) != 0 ||
	    add_node(lowering, &placed, reads, op->training_only) != 0)
		return -1;
	lowering->nodes[lowering->node_count - 1].function =
		lowering->from->model->layers[position].ops->function;
	while (++i < layer->count)
		later |= layer->ops[i].writes;
	return cast_gradients(lowering, position, op->writes, later);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static int layer_ops(struct lowering *lowering, int position, char phase,
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
	return out->failed ? -1 : 0;
}

/* Append copies of the layer's output for the queues that send it. */
static int lower_outfeeds(struct lowering *lowering, int position)
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
		op.name = arena_printf(lowering->arena, "%s/outfeed", send->key);
		op.dtype = lowering->tensors[from].dtype;
		op.copy.count = ipu_tensor_elements(&lowering->tensors[from]);
		op.copy.atom = layer->output.ndim ? layer->output.dim[layer->output.ndim - 1] : 1;
		to = lower__like(lowering, from, IPU_TENSOR_RESULT, op.dtype, op.stage, op.name);
		if (to < 0)
			return -1;
		lowering->tensors[to].layer = layer->name;
		if (lower__node(lowering, &(struct ipu_node){.op = op,
							     .reads = &from,
							     .read_count = 1,
							     .writes = &to,
							     .write_count = 1,
							     .training_only = true}) != 0)
			return -1;
	}
	return 0;
}

int lower__layer_forward(struct lowering *lowering, int position)
{
	struct lower_layer *of = &lowering->layers[position];
	struct layer_lowering layer;
	int failed = layer_ops(lowering, position, IPU_PHASE_F, &layer);

	if (layer.count > 0 && !failed)
		failed = cast_inputs(lowering, position);
	for (int i = 0; i < layer.count && !failed; i++)
		failed = lower_op(lowering, position, &layer, i);
	if (of->output < 0)
		of->output = input_tensor(lowering, layer.layer, 0);
	return failed ? -1 : lower_outfeeds(lowering, position);
}

/* Add the gradients that several layers contribute to one output. */
static int sum_gradients(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	struct lower_layer *of = &lowering->layers[position];
	struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE,
			    .layer = layer->name,
			    .phase = IPU_PHASE_B,
			    .stage = stage_of(lowering, position)};
	const int first = of->edge[0].tensor;

	op.name = arena_printf(lowering->arena,
			       lowering->sums ? "gradients/AddN_%d" : "gradients/AddN",
			       lowering->sums);
	lowering->sums++;
	op.dtype = lowering->tensors[first].dtype;
	op.elements.count = ipu_tensor_elements(&lowering->tensors[first]);
	op.elements.operands = of->edges;
	op.elements.times[IPU_FN_ADD] =
		(uint8_t)(of->edges <= UINT8_MAX ? of->edges - 1 : UINT8_MAX);
	of->gradient = lower__like(lowering, first, IPU_TENSOR_GRADIENT, op.dtype, op.stage,
				   arena_printf(lowering->arena, "%s/gradient", layer->name));
	if (of->gradient < 0)
		return -1;
	of->shared = false;
	lowering->listed = 0;
	for (int i = 0; i < of->edges; i++)
		if (list_add(lowering, of->edge[i].tensor) != 0)
			return -1;
	if (list_add(lowering, of->gradient) != 0)
		return -1;
	return add_node(lowering, &op, (size_t)of->edges, false);
}

/* Contribute the gradient of an input to the layer that produced it, in that layer's type. */
static int contribute_gradient(struct lowering *lowering, int position, int input, bool shared)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	const struct lower_layer *of = &lowering->layers[position];
	struct lower_layer *to = &lowering->layers[layer->inputs[input]];
	struct lower_edge edge = {of->given[input], false};
	const enum ipu_dtype dtype = lowering->tensors[to->output].dtype;

	if (edge.tensor < 0)
		edge = (struct lower_edge){of->gradient, shared};
	if (lowering->tensors[edge.tensor].dtype != dtype) {
		const char *name =
			arena_printf(lowering->arena, "%s/Cast_%d/Grad", layer->name, input);
		const int from = edge.tensor;

		edge.shared = false;
		edge.tensor = lower__like(lowering, from, IPU_TENSOR_GRADIENT, dtype,
					  stage_of(lowering, position), name);
		if (edge.tensor < 0 ||
		    lower__cast(lowering, name, layer->name, IPU_PHASE_B,
				stage_of(lowering, position), from, edge.tensor) != 0)
			return -1;
	}
	assert(to->edges < to->edges_most);
	to->edge[to->edges++] = edge;
	return 0;
}

static int contribute_gradients(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	const struct lower_layer *of = &lowering->layers[position];
	int handed_on = 0;

	for (int i = 0; i < layer->input_count; i++)
		handed_on += of->wanted[i] && of->given[i] < 0;
	for (int i = 0; i < layer->input_count; i++)
		if (of->wanted[i] &&
		    contribute_gradient(lowering, position, i, of->shared || handed_on > 1) != 0)
			return -1;
	return 0;
}

/* If a later call of the layer has created its parameters' gradients, this call writes separate
 * ones. */
static int begin_gradients(struct lowering *lowering, int position)
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
				arena_printf(lowering->arena, "%s/%s_call_grad", layer->name,
					     lowering->from->model->params[at].short_name));
			of->half_gradient = -1;
			if (of->gradient < 0)
				return -1;
			lowering->tensors[of->gradient].layer = layer->name;
		}
		of->made = true;
	}
	return 0;
}

/* Add this call's gradients to those of the later calls. */
static int sum_calls(struct lowering *lowering, int position)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];
	int failed = 0;

	for (int p = 0; p < layer->param_count && !failed; p++) {
		struct lower_param *of = &lowering->params[layer->first_param + p];
		struct ipu_op op = {.kind = IPU_OP_ELEMENTWISE,
				    .layer = layer->name,
				    .phase = IPU_PHASE_B,
				    .stage = stage_of(lowering, position)};

		if (of->sum < 0)
			continue;
		op.name = arena_printf(lowering->arena, "%s/Add",
				       lowering->tensors[of->gradient].name);
		op.elements.count = ipu_tensor_elements(&lowering->tensors[of->sum]);
		op.elements.operands = 2;
		op.elements.times[IPU_FN_ADD] = 1;
		failed = lower__node(
			lowering, &(struct ipu_node){.op = op,
						     .reads = (const int[]){of->sum, of->gradient},
						     .read_count = 2,
						     .writes = &of->sum,
						     .write_count = 1});
		of->gradient = of->sum;
		of->sum = of->half_gradient = -1;
	}
	return failed;
}

int lower__layer_backward(struct lowering *lowering, int position)
{
	struct lower_layer *of = &lowering->layers[position];
	struct layer_lowering layer;
	int failed = 0;

	if (!of->needs)
		return 0;
	if (of->edges > 1) {
		failed = sum_gradients(lowering, position);
	} else if (of->edges == 1) {
		of->gradient = of->edge[0].tensor;
		of->shared = of->edge[0].shared;
	}
	assert(failed || of->gradient >= 0);
	if (!failed)
		failed = begin_gradients(lowering, position) ||
			 layer_ops(lowering, position, IPU_PHASE_B, &layer);
	for (int i = 0; !failed && i < layer.count; i++)
		failed = lower_op(lowering, position, &layer, i);
	failed = failed || sum_calls(lowering, position);
	return failed ? -1 : contribute_gradients(lowering, position);
}
