/*
 * Lowering: layers forward, the loss, layers backward, weight update; then all of it by stage.
 *
 * The backward pass is lowered from the last layer to the first, because a gradient depends on the
 * layers that follow.
 *
 * Threads: none.
 */
#include <assert.h>

#include "common/mem.h"
#include "model/lower/lower_internal.h"
#include "model/model_internal.h"

/* An operation of parameter @p, still without a name. */
static struct ipu_op param_op(const struct lowering *lowering, int p, char phase,
			      enum ipu_op_kind kind)
{
	const struct model_param *param = &lowering->from->model->params[p];

	return (struct ipu_op){.kind = kind,
			       .layer = lowering->from->model->layers[param->layer].name,
			       .phase = phase,
			       .stage = lowering->from->layout->stage[param->layer]};
}

static const char *param_text(struct lowering *lowering, int p, const char *prefix,
			      const char *suffix)
{
	const struct model_param *param = &lowering->from->model->params[p];

	return lower__name(lowering, "%s%s/%s%s", prefix,
			   lowering->from->model->layers[param->layer].name, param->short_name,
			   suffix);
}

/* ---- regularisers ---------------------------------------------------------------------------- */

/* Append the sum of squares of a parameter; for l1, a map computes each value before. */
static void lower_penalty(struct lowering *lowering, int p)
{
	const struct model_param *param = &lowering->from->model->params[p];
	struct ipu_op op = param_op(lowering, p, IPU_PHASE_F, IPU_OP_REDUCE);
	struct ipu_tensor result = {.name = param_text(lowering, p, "", "/Regularizer/result"),
				    .layer = op.layer,
				    .kind = IPU_TENSOR_RESULT,
				    .ndim = 1,
				    .dim = {1},
				    .stage = op.stage};
	int from = lowering->params[p].weight, to = lower__tensor(lowering, &result);

	if (param->l1 > 0.0f) {
		struct ipu_op map = param_op(lowering, p, IPU_PHASE_F, IPU_OP_ELEMENTWISE);
		const int each =
			lower__like(lowering, from, IPU_TENSOR_TEMPORARY, IPU_FLOAT32, op.stage,
				    param_text(lowering, p, "", "/Regularizer/each"));

		map.name = param_text(lowering, p, "", "/Regularizer/Abs");
		map.elements.count = (int64_t)param->count;
		map.elements.operands = 1;
		map.elements.times[IPU_FN_ADD] = param->l2 > 0.0f ? 4 : 2;
		lower__op(lowering, &map, &from, 1, each);
		lowering->tensors[each].layer = op.layer;
		from = each;
	}
	op.name = param_text(lowering, p, "", "/Regularizer/Sum");
	op.reduce.inputs = (int64_t)param->count;
	op.reduce.outputs = 1;
	lower__node(lowering, &(struct ipu_node){.op = op,
						 .reads = &from,
						 .read_count = 1,
						 .writes = &to,
						 .write_count = 1,
						 .measure_only = true});
}

/* ---- outfeeds of gradients ------------------------------------------------------------------- */

static bool is_fed_out(const struct lowering *lowering, int p, char phase)
{
	const enum run_outfeed_optimizer mode =
		phase == IPU_PHASE_B ? RUN_AFTER_COMPUTE : RUN_BEFORE_APPLY;

	return lowering->outfeeds.gradients[p].sent &&
	       lowering->from->run->outfeed.optimizer_mode == mode;
}

static void lower_gradient_outfeed(struct lowering *lowering, int p, char phase)
{
	const struct lower_param *of = &lowering->params[p];
	const int from =
		phase == IPU_PHASE_U && of->accumulator >= 0 ? of->accumulator : of->gradient;
	struct ipu_op op = param_op(lowering, p, phase, IPU_OP_COPY);

	op.name = param_text(lowering, p, "", "_grad/outfeed");
	op.copy.count = ipu_tensor_elements(&lowering->tensors[from]);
	op.copy.atom = 1;
	lower__op(lowering, &op, &from, 1,
		  lower__like(lowering, from, IPU_TENSOR_RESULT, IPU_FLOAT32, op.stage, op.name));
}

/* ---- accumulation and update ----------------------------------------------------------------- */

static bool accumulates_in_half(const struct lowering *lowering, int p)
{
	const int accumulator = lowering->params[p].accumulator;

	return accumulator >= 0 && lowering->tensors[accumulator].dtype == IPU_FLOAT16;
}

/* sums += gradient; for a running mean, sums n / (n + 1) + gradient / (n + 1). */
static void lower_accumulation(struct lowering *lowering, int p)
{
	const struct lower_param *of = &lowering->params[p];
	struct ipu_op op = param_op(lowering, p, IPU_PHASE_B, IPU_OP_ELEMENTWISE);

	op.name = param_text(lowering, p, "GradientAccumulation/", "");
	op.elements.count = ipu_tensor_elements(&lowering->tensors[of->gradient]);
	op.elements.operands = 2;
	op.elements.times[IPU_FN_SCALED_ADD] = 1;
	op.elements.times[IPU_FN_ADD] =
		lowering->from->run->accumulation.reduction == RUN_RUNNING_MEAN;
	op.elements.times[IPU_FN_CAST] = accumulates_in_half(lowering, p);
	lower__op(lowering, &op, (const int[]){of->accumulator, of->gradient}, 2, of->accumulator);
}

/* Append the sum of squares of a tensor, for its norm. */
static void lower_norm(struct lowering *lowering, int p, int from, const char *what)
{
	struct ipu_op op = param_op(lowering, p, IPU_PHASE_U, IPU_OP_REDUCE);
	struct ipu_tensor result = {.name = param_text(lowering, p, what, "/result"),
				    .layer = op.layer,
				    .kind = IPU_TENSOR_RESULT,
				    .ndim = 1,
				    .dim = {1},
				    .stage = op.stage};
	int to = lower__tensor(lowering, &result);

	op.name = param_text(lowering, p, what, "");
	op.reduce.inputs = ipu_tensor_elements(&lowering->tensors[from]);
	op.reduce.outputs = 1;
	lower__op(lowering, &op, &from, 1, to);
}

static void lower_norms(struct lowering *lowering, int p, int gradient)
{
	const struct optimizer *optimizer = lowering->from->optimizer;
	const struct lower_param *of = &lowering->params[p];

	if (optimizer->clipnorm > 0.0 || optimizer->global_clipnorm > 0.0)
		lower_norm(lowering, p, gradient, "ClipNorm/");
	else if (optimizer->loss_scale_dynamic)
		lower_norm(lowering, p, gradient, "LossScale/");
	if (optimizer->kind == OPTIMIZER_LAMB) {
		lower_norm(lowering, p, of->weight, "WeightNorm/");
		/* The step has the size of its first slot. */
		lower_norm(lowering, p, of->first_slot, "StepNorm/");
	}
}

static void lower_update(struct lowering *lowering, int p)
{
	const struct lower_request *from = lowering->from;
	const struct lower_param *of = &lowering->params[p];
	const int slots = optimizer_slots(from->optimizer);
	int *operands = arena_alloc(lowering->arena, (size_t)slots + 2, sizeof(*operands));
	struct ipu_op op = param_op(lowering, p, IPU_PHASE_U, IPU_OP_ELEMENTWISE);
	const char *prefix = lower__name(lowering, "%s/", optimizer_name(from->optimizer));

	if (!operands) {
		lowering->failed = true;
		return;
	}
	op.name = param_text(lowering, p, prefix, "");
	op.elements = optimizer_elements(from->optimizer,
					 ipu_tensor_elements(&lowering->tensors[of->weight]));
	if (of->accumulator >= 0 && from->run->accumulation.reduction == RUN_MEAN)
		op.elements.times[IPU_FN_ADD]++;
	op.elements.times[IPU_FN_CAST] = accumulates_in_half(lowering, p);
	operands[0] = of->accumulator >= 0 ? of->accumulator : of->gradient;
	operands[1] = of->weight;
	lower_norms(lowering, p, operands[0]);
	for (int s = 0; s < slots; s++)
		operands[2 + s] = of->first_slot + s;
	lower__node(lowering, &(struct ipu_node){.op = op,
						 .reads = operands,
						 .read_count = slots + 2,
						 .writes = operands + 1,
						 .write_count = slots + 1});
}

static void lower_param(struct lowering *lowering, int p, char phase)
{
	const struct model_param *param = &lowering->from->model->params[p];
	const struct lower_param *of = &lowering->params[p];
	const bool regularized = param->l1 > 0.0f || param->l2 > 0.0f;

	if (phase == IPU_PHASE_F && regularized && lowering->from->losses)
		lower_penalty(lowering, p);
	if (phase == IPU_PHASE_F || of->gradient < 0)
		return;
	if (phase == IPU_PHASE_B && regularized) {
		/* gradient += l1 sign(w) + 2 l2 w */
		struct ipu_op op = param_op(lowering, p, IPU_PHASE_B, IPU_OP_ELEMENTWISE);

		op.name = param_text(lowering, p, "", "/Regularizer/Grad");
		op.elements.count = (int64_t)param->count;
		op.elements.operands = 2;
		op.elements.times[IPU_FN_SCALED_ADD] =
			(uint8_t)((param->l1 > 0.0f) + (param->l2 > 0.0f));
		op.elements.times[IPU_FN_SELECT] = param->l1 > 0.0f;
		lower__op(lowering, &op, (const int[]){of->gradient, of->weight}, 2, of->gradient);
	}
	if (is_fed_out(lowering, p, phase))
		lower_gradient_outfeed(lowering, p, phase);
	if (phase == IPU_PHASE_B && of->accumulator >= 0)
		lower_accumulation(lowering, p);
	if (phase == IPU_PHASE_U)
		lower_update(lowering, p);
}

/* Lower the parameters of a layer. Phase F: penalties; B: regularisers' gradients, outfeeds of
 * gradients, accumulation; U: the update. */
static void lower_params(struct lowering *lowering, int position, char phase)
{
	const struct model_layer *layer = &lowering->from->model->layers[position];

	/* In phase B the first call is lowered last, when all gradients are complete. */
	if (model_layer_again(lowering->from->model, layer))
		return;
	for (int p = 0; p < layer->param_count; p++)
		lower_param(lowering, layer->first_param + p, phase);
}

/* ---- infeeds --------------------------------------------------------------------------------- */

/* Copy a stream from its even distribution over the tiles to the layout that its readers need. */
static void lower_infeed(struct lowering *lowering, int tensor, const char *name, int64_t atom)
{
	const struct ipu_tensor *of = &lowering->tensors[tensor];
	const struct ipu_op op = {.kind = IPU_OP_COPY,
				  .name = name,
				  .phase = IPU_PHASE_F,
				  .stage = of->stage,
				  .dtype = of->dtype,
				  .copy = {.count = ipu_tensor_elements(of), .atom = atom}};

	lower__node(lowering, &(struct ipu_node){.op = op,
						 .reads = &tensor,
						 .read_count = 1,
						 .writes = &tensor,
						 .write_count = 1,
						 .measure_only = tensor == lowering->labels ||
								 tensor == lowering->weights});
}

/* Append the infeed of the batch, rearranged for its readers. */
static void lower_infeeds(struct lowering *lowering)
{
	const struct model_shape *shape = &lowering->from->model->input;
	const int64_t atom = shape->ndim > 0 ? shape->dim[shape->ndim - 1] : 1;

	lower_infeed(lowering, lowering->input, "infeed/arg0", atom);
	if (lowering->labels >= 0)
		lower_infeed(lowering, lowering->labels, "infeed/arg1", 1);
	if (lowering->weights >= 0)
		lower_infeed(lowering, lowering->weights, "infeed/arg2", 1);
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* Increment the optimizer's iterations, in phase U of the first stage. */
static void lower_iterations(struct lowering *lowering)
{
	const char *optimizer = optimizer_name(lowering->from->optimizer);
	const int iterations = lower__tensor(
		lowering, &(struct ipu_tensor){.name = lower__name(lowering, "%s/iter", optimizer),
					       .kind = IPU_TENSOR_STATE,
					       .dtype = IPU_INT32,
					       .ndim = 1,
					       .dim = {1}});
	const struct ipu_op op = {
		.kind = IPU_OP_ELEMENTWISE,
		.name = lower__name(lowering, "%s/iter/AssignAdd", optimizer),
		.phase = IPU_PHASE_U,
		.dtype = IPU_INT32,
		.elements = {.count = 1, .operands = 1, .times = {[IPU_FN_ADD] = 1}}};

	lower__op(lowering, &op, &iterations, 1, iterations);
}

/* ---- the graph ------------------------------------------------------------------------------- */

static void lower_all(struct lowering *lowering)
{
	const int layers = lowering->from->model->layer_count;

	lower__tensors(lowering);
	if (lowering->failed)
		return;
	lower_infeeds(lowering);
	for (int i = 0; i < layers && !lowering->failed; i++) {
		lower__layer_forward(lowering, i);
		lower_params(lowering, i, IPU_PHASE_F);
	}
	if (lowering->failed)
		return;
	lower__loss_forward(lowering);
	if (!lowering->training)
		return;
	lower__loss_backward(lowering);
	for (int i = layers - 1; i >= 0 && !lowering->failed; i--) {
		lower__layer_backward(lowering, i);
		lower_params(lowering, i, IPU_PHASE_B);
	}
	for (int i = 0; i < layers && !lowering->failed; i++)
		lower_params(lowering, i, IPU_PHASE_U);
	lower_iterations(lowering);
}

/* Whether the schedule runs gradients of weights as separate works. */
static bool splits_weight_gradients(const struct lowering *lowering)
{
	const struct run_file *run = lowering->from->run;

	return lowering->training && run->pipeline.wanted && lowering->from->layout->stages > 1 &&
	       ipu_schedule_row(run->pipeline.schedule)->splits;
}

static void store_graph(struct lowering *lowering, struct ipu_graph *graph)
{
	static const char phases[] = {IPU_PHASE_F, IPU_PHASE_B, IPU_PHASE_W, IPU_PHASE_U};
	struct ipu_tensor *tensors =
		arena_alloc(lowering->arena, lowering->tensor_count + 1, sizeof(*tensors));
	struct ipu_node *nodes =
		arena_alloc(lowering->arena, lowering->node_count + 1, sizeof(*nodes));
	int count = 0;

	lowering->failed = lowering->failed || !tensors || !nodes;
	if (lowering->failed)
		return;
	for (size_t i = 0; i < lowering->tensor_count; i++)
		tensors[i] = lowering->tensors[i];
	for (int s = 0; s < lowering->from->layout->stages; s++)
		for (size_t p = 0; p < ARRAY_LEN(phases); p++)
			for (size_t i = 0; i < lowering->node_count; i++)
				if (lowering->nodes[i].op.stage == s &&
				    lowering->nodes[i].op.phase == phases[p])
					nodes[count++] = lowering->nodes[i];
	assert((size_t)count == lowering->node_count);
	graph->tensors = tensors;
	graph->tensor_count = (int)lowering->tensor_count;
	graph->nodes = nodes;
	graph->node_count = count;
}

/* ---- layout of the run ----------------------------------------------------------------------- */

static void set_memory(struct ipu_layout *out, const struct run_file *run)
{
	static const enum ipu_recompute recompute[] = {
		[RUN_RECOMPUTE_THEN_BACKPROPAGATE] = IPU_RECOMPUTE_THEN_BACKPROPAGATE,
		[RUN_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED] =
			IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED,
		[RUN_RECOMPUTE_NOTHING] = IPU_RECOMPUTE_NONE,
	};

	out->recompute = recompute[run_recomputation(run)];
	if (!run->pipeline.wanted)
		return;
	out->offload_activations = run->pipeline.offload_activations == RUN_YES;
	out->offload_optimizer_state = run->pipeline.offload_weight_update_variables == RUN_YES;
	out->offload_accumulators = run->pipeline.offload_gradient_accumulation_buffers == RUN_YES;
	out->offload_weights = run->pipeline.offload_weights == RUN_YES;
	out->shard_optimizer_state = run->pipeline.replicated_optimizer_state_sharding == RUN_YES;
	out->shard_weights = run->pipeline.replicated_weight_sharding == RUN_YES;
	out->accumulate_outfeed = run->pipeline.accumulate_outfeed;
}

static void set_layout(struct ipu_layout *out, const struct lower_request *from)
{
	const struct run_layout *layout = from->layout;
	const struct run_file *run = from->run;

	*out = (struct ipu_layout){
		.batch = run->data.batch_size,
		.replicas = layout->replicas,
		.replica_ipus = layout->ipus_per_replica,
		.sum_buffer_bytes = run->ipu.optimizations.cross_replica_sum_buffer,
		.stages = layout->stages,
		.accumulation = layout->accumulation,
		.runs = layout->updates_per_execution,
		.io_tiles = run->ipu.io_tiles.num_io_tiles,
		.place_ops_on_io_tiles = run->ipu.io_tiles.place_ops_on_io_tiles,
		.io_memory_proportion = run->ipu.io_tiles.available_memory_proportion,
		.prefetch_depth = run->infeed.prefetch_depth,
		.buffer_depth = run->outfeed.buffer_depth,
	};
	set_memory(out, run);
}

enum status lower_model(struct ipu_graph *graph, const struct lower_request *lowered,
			struct arena *arena, struct err *err)
{
	const bool training = lowered->run->fit.wanted && lowered->losses;
	struct lowering lowering = {.from = lowered, .arena = arena, .training = training};
	enum status status = ST_OK;

	*graph = (struct ipu_graph){0};
	if (training)
		status = run_queues_plan(&lowering.outfeeds, arena, lowered->run, lowered->model,
					 lowered->layout, err);
	if (status != ST_OK)
		return status;
	lowering.labels = lowering.weights = lowering.logits_layer = -1;
	if (training && loss_takes_logits(&lowered->losses->items[0].loss, lowered->model))
		lowering.logits_layer = model_final_activation(lowered->model);
	lower_all(&lowering);
	if (!lowering.failed && splits_weight_gradients(&lowering) &&
	    ipu_graph_split(lowering.nodes, (int)lowering.node_count, lowering.tensors,
			    (int)lowering.tensor_count, err) != ST_OK)
		lowering.failed = true;
	store_graph(&lowering, graph);
	set_layout(&graph->layout, lowered);
	mem_free(lowering.tensors);
	mem_free(lowering.nodes);
	mem_free(lowering.list);
	return lowering.failed ? err_nomem(err) : ST_OK;
}
