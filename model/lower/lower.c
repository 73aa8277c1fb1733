/*
 * Lowering: layers forward, the loss, layers backward, weight update; then all of it by stage.
 *
 * The backward pass is lowered from the last layer to the first, because a gradient depends on the
 * layers that follow.
 *
 * Threads: none.
 */
#include <assert.h>
#include <math.h>

#include "common/mem.h"
#include "model/lower/lower_internal.h"
#include "model/model_internal.h"

static void set_options(const struct lowering *lowering, struct ipu_node *node)
{
	const char phase = node->op.phase == IPU_PHASE_W ? IPU_PHASE_B : node->op.phase;
	const struct run_poplar poplar = run_poplar_of(lowering->from->run, phase, node->op.stage);
	const struct run_plan *plan =
		node->op.kind == IPU_OP_CONV ? &poplar.convolution : &poplar.matmul;

	ipu_plan_options_defaults(&node->options);
	if (node->op.kind != IPU_OP_CONV && node->op.kind != IPU_OP_MATMUL)
		return;
	if (!isnan(plan->available_memory_proportion))
		node->options.available_memory_proportion = plan->available_memory_proportion;
	if (plan->partials_type == RUN_PARTIALS_HALF)
		node->options.partials = IPU_FLOAT16;
}

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

int lower__node(struct lowering *lowering, const struct ipu_node *node)
{
	struct ipu_node out = *node;

	set_options(lowering, &out);
	out.reads = copy_operands(lowering, node->reads, &out.read_count);
	out.writes = copy_operands(lowering, node->writes, &out.write_count);
	if (!out.op.name || !out.reads || !out.writes ||
	    mem_grow(&lowering->nodes, &lowering->node_capacity, lowering->node_count + 1,
		     sizeof(out)) != 0)
		return -1;
	lowering->nodes[lowering->node_count++] = out;
	return 0;
}

static int lower_all(struct lowering *lowering)
{
	const int layers = lowering->from->model->layer_count;
	int failed = lower__tensors(lowering) || lower__infeeds(lowering);

	for (int i = 0; i < layers && !failed; i++)
		failed = lower__layer_forward(lowering, i) ||
			 lower__params(lowering, i, IPU_PHASE_F);
	if (!failed)
		failed = lower__loss_forward(lowering);
	if (failed || !lowering->training)
		return failed;
	failed = lower__loss_backward(lowering);
	for (int i = layers - 1; i >= 0 && !failed; i--)
		failed = lower__layer_backward(lowering, i) ||
			 lower__params(lowering, i, IPU_PHASE_B);
	for (int i = 0; i < layers && !failed; i++)
		failed = lower__params(lowering, i, IPU_PHASE_U);
	return failed ? failed : lower__iterations(lowering);
}

/* Whether the schedule runs gradients of weights as separate works. */
static bool splits_weight_gradients(const struct lowering *lowering)
{
	const struct run_file *run = lowering->from->run;

	return lowering->training && run->pipeline.wanted && lowering->from->layout->stages > 1 &&
	       ipu_schedule_row(run->pipeline.schedule)->splits;
}

static int store_graph(struct lowering *lowering, struct ipu_graph *graph)
{
	static const char phases[] = {IPU_PHASE_F, IPU_PHASE_B, IPU_PHASE_W, IPU_PHASE_U};
	struct ipu_tensor *tensors =
		arena_alloc(lowering->arena, lowering->tensor_count + 1, sizeof(*tensors));
	struct ipu_node *nodes =
		arena_alloc(lowering->arena, lowering->node_count + 1, sizeof(*nodes));
	int count = 0;

	if (!tensors || !nodes)
		return -1;
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
	return 0;
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

enum status lower_model(struct ipu_graph *graph, const struct lower_request *lowered,
			struct arena *arena, struct err *err)
{
	const bool training = lowered->run->fit.wanted && lowered->losses;
	struct lowering lowering = {.from = lowered, .arena = arena, .training = training};
	enum status status = ST_OK;
	int failed;
	const struct run_layout *layout = lowered->layout;
	const struct run_file *run = lowered->run;

	*graph = (struct ipu_graph){0};
	if (training)
		status = run_queues_plan(&lowering.outfeeds, arena, lowered->run, lowered->model,
					 lowered->layout, err);
	if (status != ST_OK)
		return status;
	lowering.labels = lowering.weights = lowering.logits_layer = -1;
	if (training && loss_takes_logits(&lowered->losses->items[0].loss, lowered->model))
		lowering.logits_layer = model_final_activation(lowered->model);
	failed = lower_all(&lowering) ||
		 (splits_weight_gradients(&lowering) &&
		  ipu_graph_split(lowering.nodes, (int)lowering.node_count, lowering.tensors,
				  (int)lowering.tensor_count, err) != ST_OK) ||
		 store_graph(&lowering, graph);
	graph->layout = (struct ipu_layout){
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
	set_memory(&graph->layout, run);
	mem_free(lowering.tensors);
	mem_free(lowering.nodes);
	mem_free(lowering.list);
	return failed ? err_nomem(err) : ST_OK;
}
