/*
 * The model as units between which the search for the best split can cut: lowered once as one
 * stage, planned, summed up by layer, with the tensors that would cross each cut.
 */
#include "model/plan/plan_run.h"

#include <stddef.h>
#include <string.h>

#include "common/arena.h"
#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/compile/ipu_program.h"
#include "ipu/ipu_timeline.h"
#include "model/layers/layer.h"
#include "model/lower/lower.h"
#include "model/run/run_file.h"

#define US_PER_S 1e6

struct partitioner {
	const struct run_file *run;
	const struct run_data *data;
	struct ipu_target target;
	struct ipu_planner *planner;
	bool lent; /* the planner belongs to a device */
	struct optimizer optimizer;
};

enum status partitioner_new(struct partitioner **out, const struct run_file *run,
			    const struct run_data *data, const struct plan_device *like,
			    struct err *err)
{
	struct partitioner *partitioner = mem_calloc(1, sizeof(*partitioner));

	*out = NULL;
	if (!partitioner)
		return err_nomem(err);
	partitioner->run = run;
	partitioner->data = data;
	if (ipu_target_get(run->ipu.target, run->ipu.tiles_per_ipu, &partitioner->target, err) !=
	    ST_OK)
		goto failed;
	/* Operations are planned for the tiles that are not I/O tiles. */
	partitioner->target.tiles -= run->ipu.io_tiles.num_io_tiles;
	if (partitioner->target.tiles < 1) {
		err_set(err, ST_INVALID, "ipu.io_tiles.num_io_tiles leaves no tiles to compute");
		goto failed;
	}
	if (run_optimizer(&partitioner->optimizer, run, err) != ST_OK)
		goto failed;
	partitioner->planner = plan_device_planner(like, &partitioner->target);
	partitioner->lent = partitioner->planner != NULL;
	if (!partitioner->lent &&
	    ipu_planner_new(&partitioner->planner, &partitioner->target, err) != ST_OK)
		goto failed;
	*out = partitioner;
	return ST_OK;
failed:
	partitioner_free(partitioner);
	return err->status;
}

void partitioner_free(struct partitioner *partitioner)
{
	if (!partitioner)
		return;
	if (!partitioner->lent)
		ipu_planner_free(partitioner->planner);
	mem_free(partitioner);
}

/* ---- the model as units ---------------------------------------------------------------------- */

/* A model lowered as one stage. */
struct measured {
	const struct partitioner *by;
	const struct model *model;
	struct loss_list losses;
	struct metric_list metrics;
	struct ipu_graph graph;
	struct ipu_executable *executable;
	struct ipu_unit *units;
	struct ipu_flow *flows;
	int flow_count;
	int hint; /* the layer found last: operations of a layer are adjacent */
	struct arena arena;
};

/*
 * The position of the layer named @layer. Operations without a layer (losses) count to the last
 * one.
 */
static int position_of(struct measured *measured, const char *layer)
{
	const int count = measured->model->layer_count;

	for (int i = 0; layer && i < count; i++) {
		const int at = (measured->hint + i) % count;

		if (strcmp(measured->model->layers[at].name, layer) == 0)
			return measured->hint = at;
	}
	return count - 1;
}

/* The layer to which an operation's time counts; rearranging the infeed counts to the first. */
static int unit_of(struct measured *measured, int node)
{
	const struct ipu_node *of = &measured->graph.nodes[node];
	const bool infeed = !of->op.layer && of->read_count > 0 &&
			    measured->graph.tensors[of->reads[0]].kind == IPU_TENSOR_INPUT;

	return infeed ? 0 : position_of(measured, of->op.layer);
}

static void sum_cycles(struct measured *measured)
{
	static const struct {
		enum ipu_function_phase function;
		size_t member;
	} sums[] = {{IPU_FUNCTION_F, offsetof(struct ipu_unit, forward)},
		    {IPU_FUNCTION_B, offsetof(struct ipu_unit, backward)},
		    {IPU_FUNCTION_U, offsetof(struct ipu_unit, update)}};

	for (size_t f = 0; f < ARRAY_LEN(sums); f++) {
		const struct ipu_code *code = &measured->executable->code[0][sums[f].function];

		for (int i = 0; i < code->step_count; i++) {
			const struct ipu_step *step = &code->steps[i];
			int position;

			if (step->node < 0)
				continue;
			position = unit_of(measured, step->node);
			*(int64_t *)(void *)((char *)&measured->units[position] + sums[f].member) +=
				step->cycles * step->repeats;
		}
	}
}

/* Set the host cycles: inputs are streamed to the first layer, labels and weights to the last. IPUs
 * that share a link to the host wait for one another; with I/O tiles, batches are streamed in
 * parallel to the programs. */
static void sum_host(struct measured *measured, int stages)
{
	const struct ipu_target *target = &measured->by->target;
	const struct run_file *run = measured->by->run;
	const double batch = (double)run->data.batch_size;
	const double images = batch * (double)model_shape_count(&measured->model->input) *
			      (double)ipu_dtype_bytes(lower_infeed_dtype(run, measured->model));
	const struct target_kind *kind =
		run->fit.wanted ? &measured->by->data->train : &measured->by->data->test;
	const double labels =
		batch * sizeof(float) *
		(double)(targets_per_item(kind) +
			 run_row_weights(run, kind, measured->model, run->fit.wanted));
	const bool shared = target->ipus_host_link == 0 || stages <= target->ipus_host_link;
	const double first = images + (shared ? labels : 0);
	const double last = labels + (shared ? images : 0);

	if (run->ipu.io_tiles.place_ops_on_io_tiles)
		return;
	measured->units[0].host = ipu_host_copy(target, first).cycles;
	measured->units[measured->model->layer_count - 1].host +=
		ipu_host_copy(target, last).cycles;
}

static bool stays_on_tiles(const struct run_file *run, enum ipu_tensor_kind kind)
{
	switch (kind) {
	case IPU_TENSOR_WEIGHT:
		return run->pipeline.offload_weights != RUN_YES;
	case IPU_TENSOR_ACCUMULATOR:
		return run->pipeline.offload_gradient_accumulation_buffers != RUN_YES;
	case IPU_TENSOR_OPTIMIZER_STATE:
		return run->pipeline.offload_weight_update_variables != RUN_YES;
	default:
		return true;
	}
}

static bool shares_queue(const struct model_layer *a, const struct model_layer *b)
{
	if (model_layer_outfeed(a) != MODEL_MAYBE_OUTFEED ||
	    model_layer_outfeed(b) != MODEL_MAYBE_OUTFEED)
		return false;
	if (!a->outfeed_queue || !b->outfeed_queue)
		return !a->outfeed_queue && !b->outfeed_queue;
	return !strcmp(a->outfeed_queue, b->outfeed_queue);
}

/* The last layer that must be in the stage of MaybeOutfeed @i because they share a queue. */
static int last_joined(const struct model *model, int i)
{
	const struct model_layer *layer = &model->layers[i];
	int last = i;

	for (int j = i + 1; j < model->layer_count; j++) {
		if (!shares_queue(layer, &model->layers[j]))
			continue;
		if (layer->outfeed_queue)
			last = j;
		else if (model->layers[j].final_outfeed)
			return layer->final_outfeed ? i : j;
	}
	return last;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* The operations that read each tensor: ranges of one array. */
struct readers {
	int *first; /* by tensor, plus one */
	int *node;
};

static int find_readers(struct measured *measured, struct readers *out)
{
	const struct ipu_graph *graph = &measured->graph;

	out->first =
		arena_alloc(&measured->arena, (size_t)graph->tensor_count + 1, sizeof(*out->first));
	if (!out->first)
		return -1;
	for (int n = 0; n < graph->node_count; n++)
		for (int i = 0; i < graph->nodes[n].read_count; i++)
			out->first[graph->nodes[n].reads[i]]++;
	for (int t = 1; t <= graph->tensor_count; t++)
		out->first[t] += out->first[t - 1];
	out->node = arena_alloc(&measured->arena, (size_t)out->first[graph->tensor_count] + 1,
				sizeof(*out->node));
	if (!out->node)
		return -1;
	for (int n = graph->node_count - 1; n >= 0; n--)
		for (int i = 0; i < graph->nodes[n].read_count; i++)
			out->node[--out->first[graph->nodes[n].reads[i]]] = n;
	return 0;
}

/* @seen: scratch, a flag per layer. */
static int add_flow(struct measured *measured, const struct readers *readers, int tensor,
		    bool *seen)
{
	const struct ipu_tensor *from = &measured->graph.tensors[tensor];
	const int units = measured->model->layer_count;
	struct ipu_flow *flow = &measured->flows[measured->flow_count++];
	int *kept;

	*flow = (struct ipu_flow){.bytes = ipu_tensor_bytes(from), .made = -1};
	flow->fifo = ipu_fifo_cycles(&measured->by->target, flow->bytes,
				     measured->by->run->pipeline.offload_activations == RUN_YES);
	if (from->kind != IPU_TENSOR_INPUT)
		flow->last = flow->made = position_of(measured, from->layer);
	memset(seen, 0, (size_t)units * sizeof(*seen));
	for (int i = readers->first[tensor]; i < readers->first[tensor + 1]; i++) {
		const struct ipu_op *op = &measured->graph.nodes[readers->node[i]].op;
		const int unit = unit_of(measured, readers->node[i]);

		flow->last = max(unit, flow->last);
		if (op->phase == IPU_PHASE_F || op->phase == IPU_PHASE_U || seen[unit])
			continue;
		seen[unit] = true;
		flow->kept_count++;
	}
	kept = arena_alloc(&measured->arena, (size_t)flow->kept_count + 1, sizeof(*kept));
	if (!kept)
		return -1;
	flow->kept = kept;
	for (int u = 0; u < units; u++)
		if (seen[u])
			*kept++ = u;
	return 0;
}

static enum status find_flows(struct measured *measured, struct err *err)
{
	const struct ipu_graph *graph = &measured->graph;
	bool *seen =
		arena_alloc(&measured->arena, (size_t)measured->model->layer_count, sizeof(*seen));
	struct readers readers;
	int failed = find_readers(measured, &readers);

	measured->flows = arena_alloc(&measured->arena, (size_t)graph->tensor_count + 1,
				      sizeof(*measured->flows));
	failed = failed || !seen || !measured->flows;
	/* Tensors of a micro-batch that a stage passes on or stashes; see ipu_graph.h. */
	for (int t = 0; t < graph->tensor_count && !failed; t++) {
		const enum ipu_tensor_kind kind = graph->tensors[t].kind;

		if (kind == IPU_TENSOR_INPUT || kind == IPU_TENSOR_ACTIVATION ||
		    kind == IPU_TENSOR_KEPT)
			failed = add_flow(measured, &readers, t, seen);
	}
	return failed ? err_nomem(err) : ST_OK;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Read losses and metrics: of training, or else of the evaluation; a prediction has none. */
static enum status read_measured(struct measured *measured, struct lower_request *lowered,
				 struct err *err)
{
	const struct partitioner *by = measured->by;
	const bool training = by->run->fit.wanted;
	const struct target_kind *kind = training ? &by->data->train : &by->data->test;

	if (!training && !by->run->evaluate.wanted)
		return ST_OK;
	if (run_measure(&measured->losses, &measured->metrics, by->run,
			training ? "compile" : "evaluate", measured->model, kind, err) != ST_OK)
		return err->status;
	if (!training && loss_takes_logits(&measured->losses.items[0].loss, measured->model))
		measured->losses.items[0].loss.from_logits = false;
	lowered->losses = &measured->losses;
	lowered->metrics = &measured->metrics;
	lowered->targets = *kind;
	lowered->targets.weights = run_row_weights(by->run, kind, measured->model, training);
	return ST_OK;
}

static enum status lower_whole(struct measured *measured, struct err *err)
{
	const struct run_file *run = measured->by->run;
	const size_t layers = (size_t)measured->model->layer_count;
	int *zeros = arena_alloc(&measured->arena, layers, sizeof(*zeros));
	struct run_layout layout = {
		.stages = 1,
		.stage = zeros,
		.device = zeros,
		.ipus_used = 1,
		.ipus = 1,
		.ipus_per_replica = 1,
		.replicas = 1,
		.accumulation = run->accumulation.wanted ? run->accumulation.steps_per_replica : 1,
	};
	struct lower_request lowered = {.run = run,
					.layout = &layout,
					.model = measured->model,
					.optimizer = &measured->by->optimizer};

	measured->units = arena_alloc(&measured->arena, layers, sizeof(*measured->units));
	if (!zeros || !measured->units)
		return err_nomem(err);
	if (read_measured(measured, &lowered, err) != ST_OK ||
	    lower_model(&measured->graph, &lowered, &measured->arena, err) != ST_OK)
		return err->status;
	return ipu_executable_new(&measured->executable, &measured->graph, measured->by->planner,
				  &measured->by->target, err);
}

static enum status measure(struct measured *measured, int stages, struct err *err)
{
	const struct model *model = measured->model;

	if (lower_whole(measured, err) != ST_OK || find_flows(measured, err) != ST_OK)
		return err->status;
	for (int i = 0; i < model->layer_count; i++)
		measured->units[i].computes = model->layers[i].ops->lower != NULL;
	sum_cycles(measured);
	sum_host(measured, stages);
	for (int t = 0; t < measured->graph.tensor_count; t++) {
		const struct ipu_tensor *tensor = &measured->graph.tensors[t];

		if (ipu_tensor_is_variable(tensor->kind) &&
		    stays_on_tiles(measured->by->run, tensor->kind))
			measured->units[position_of(measured, tensor->layer)].variable_bytes +=
				ipu_tensor_bytes(tensor);
	}
	/* A queue collects the tensors of MaybeOutfeeds until the final one. Queues belong to a stage,
	 * so all of them must be in one stage, as must all that name the same queue. */
	for (int i = 0; i < model->layer_count; i++) {
		const int last = last_joined(model, i);

		for (int j = i + 1; j <= last; j++)
			measured->units[j].joined = true;
	}
	/* Calls of a layer share its parameters, so they must be in one stage. */
	for (int i = 0; i < model->layer_count; i++)
		if (model_layer_again(model, &model->layers[i]))
			for (int j = i; j > model->params[model->layers[i].first_param].layer; j--)
				measured->units[j].joined = true;
	return ST_OK;
}

/* ---- splits ---------------------------------------------------------------------------------- */

static void set_params(struct ipu_partition_params *params, const struct measured *measured,
		       int stages, const int *device)
{
	const struct run_file *run = measured->by->run;
	const struct ipu_target *target = &measured->by->target;

	*params = (struct ipu_partition_params){
		.units = measured->units,
		.unit_count = measured->model->layer_count,
		.flows = measured->flows,
		.flow_count = measured->flow_count,
		.stages = stages,
		.schedule = run->pipeline.schedule,
		.training = run->fit.wanted,
		.recompute = run_recomputation(run) != RUN_RECOMPUTE_NOTHING,
		.offload_activations = run->pipeline.offload_activations == RUN_YES,
		.link_bytes_cycle = target->link_bytes_second / target->clock_hz,
		.sync_cycles = ipu_sync_cycles(target, stages),
		.memory_bytes = target->tiles * target->bytes_per_tile,
		.device = device,
	};
}

/* @first: the first layer of each stage; NULL: find the best split. */
static enum status create_split(struct partition_split **out, struct measured *measured, int stages,
				const int *first, struct err *err)
{
	const struct run_file *run = measured->by->run;
	int *device = arena_alloc(&measured->arena, (size_t)stages, sizeof(*device));
	struct ipu_partition_params params;
	struct ipu_partition *partition;
	const double us_cycle = US_PER_S / measured->by->target.clock_hz;
	/* Evaluation and prediction run long enough that ramps do not count. */
	const int64_t microbatches = run->fit.wanted && run->accumulation.wanted
					     ? run->accumulation.steps_per_replica
					     : 1000000;
	struct partition_split *split = mem_calloc(1, sizeof(*split));

	if (split)
		split->first_layer = mem_calloc((size_t)stages, sizeof(*split->first_layer));
	if (!device || !split || !split->first_layer) {
		partition_split_free(split);
		return err_nomem(err);
	}
	run_stage_devices(run, stages, device);
	set_params(&params, measured, stages, device);
	if ((first ? ipu_partition_given(&split->partition, &params, first, err)
		   : ipu_partition_new(&split->partition, &params, err)) != ST_OK) {
		partition_split_free(split);
		return err->status == ST_INVALID
			       ? err_prefix(err, "%s: pipeline.stages: \"auto\"", run->path)
			       : err->status;
	}
	partition = split->partition;
	for (int s = 0; s < partition->stages; s++)
		split->first_layer[s] = measured->model->layers[partition->stage[s].first].name;
	split->slowest_us = (double)partition->cycles * us_cycle;
	split->step_us = (double)ipu_partition_run_cycles(partition, &params, microbatches) *
			 us_cycle / (double)microbatches;
	*out = split;
	return ST_OK;
}

/* @first: see create_split(). */
static enum status split_new(struct partition_split **out, struct partitioner *partitioner,
			     const struct model *model, int stages, const int *first,
			     struct err *err)
{
	struct measured measured = {.by = partitioner, .model = model};
	enum status status;

	*out = NULL;
	if (arena_init(&measured.arena, 0) != 0)
		return err_nomem(err);
	status = measure(&measured, stages, err);
	if (status == ST_OK)
		status = create_split(out, &measured, stages, first, err);
	ipu_executable_free(measured.executable);
	metric_list_free(&measured.metrics);
	arena_fini(&measured.arena);
	return status;
}

enum status partition_best(struct partition_split **out, struct partitioner *partitioner,
			   const struct model *model, int stages, int *stage, struct err *err)
{
	if (split_new(out, partitioner, model, stages, NULL, err) != ST_OK)
		return err->status;
	(*out)->best = true;
	for (int s = 0; stage && s < stages; s++) {
		const struct ipu_partition_stage *at = &(*out)->partition->stage[s];

		for (int i = 0; i < at->count; i++)
			stage[at->first + i] = s;
	}
	return ST_OK;
}

enum status partition_given(struct partition_split **out, struct partitioner *partitioner,
			    const struct model *model, int stages, const int *stage,
			    struct err *err)
{
	int *first = mem_calloc((size_t)stages, sizeof(*first));
	enum status status;

	*out = NULL;
	if (!first)
		return err_nomem(err);
	for (int i = 1; i < model->layer_count; i++)
		if (stage[i] != stage[i - 1])
			first[stage[i]] = i;
	status = split_new(out, partitioner, model, stages, first, err);
	mem_free(first);
	return status;
}

void partition_split_free(struct partition_split *split)
{
	if (!split)
		return;
	ipu_partition_free(split->partition);
	mem_free(split->first_layer);
	mem_free(split);
}

void partition_split_describe(const struct partition_split *split, const char *what,
			      struct str *out)
{
	const struct ipu_partition *partition = split->partition;
	char cycles[FMT_SIZE], needed[FMT_SIZE], over[FMT_SIZE];

	str_addf(out, "%s: stages begin at ", what);
	for (int s = 0; s < partition->stages; s++)
		str_addf(out, "%s%s", s > 0 ? ", " : "", split->first_layer[s]);
	str_addf(out, "; the slowest, %d, takes %.1f us (%s cycles) a micro-batch, simulated\n",
		 partition->slowest, split->slowest_us, fmt_count(cycles, partition->cycles));
	if (partition->fullest < 0)
		return;
	str_addf(out,
		 "%s: %s: stage %d, from %s on, needs at least %s, %s more than there is. Take "
		 "more stages, a smaller batch, ipu.allow_recompute or one of the "
		 "pipeline.offload_ options.\n",
		 what, split->best ? "no split fits memory" : "does not fit memory",
		 partition->fullest, split->first_layer[partition->fullest],
		 fmt_bytes(needed, (uint64_t)partition->stage[partition->fullest].memory_bytes),
		 fmt_bytes(over, (uint64_t)partition->most_overflow));
}
