/*
 * Lowering of data movement beside the operations: FIFOs, remote memory, collectives of the
 * replicas. Formulas and their sources: docs/cost-model.md, "What moves data".
 *
 * Threads: none.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/minmax.h"
#include "ipu/compile/ipu_program_internal.h"

/* Cycles of calling a copy on a tile, measured on a C600. */
#define LOCAL_COPY_CYCLES 288

/* Number of IPUs in a Pod64. */
#define POD64_IPUS 64

bool ipu__has_fifo(const struct ipu_graph *graph, int stage)
{
	return graph->layout.schedule && ipu_schedule_fifo_depth(graph->layout.schedule, stage) > 0;
}

enum status ipu__layout_check(const struct ipu_graph *graph, const struct ipu_target *target,
			      struct err *err)
{
	const struct ipu_layout *layout = &graph->layout;
	const struct {
		bool asked;
		const char *what;
	} asked[] = {
		{layout->offload_activations, "activations"},
		{layout->offload_optimizer_state, "optimizer state"},
		{layout->offload_accumulators, "gradient accumulation buffers"},
		{layout->offload_weights, "weights"},
	};

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		if (asked[i].asked && target->remote_bytes_second <= 0)
			return err_set(err, ST_INVALID,
				       "%s cannot be offloaded: %s has no streaming memory that is "
				       "modelled (ipu2 and ipu21 have)",
				       asked[i].what, target->name);
	return ST_OK;
}

/* ---- copies on tiles, remote memory ---------------------------------------------------------- */

int64_t ipu_fifo_cycles(const struct ipu_target *target, int64_t bytes, bool offloaded)
{
	const double each = (double)bytes / (double)(target->tiles * target->load_bytes_cycle);

	if (bytes == 0)
		return 0;
	if (offloaded)
		return ipu_stream_copy(target, (double)bytes, target->remote_bytes_second).cycles;
	return (int64_t)ceil(target->phase_cycles) + LOCAL_COPY_CYCLES + (int64_t)ceil(each);
}

static void lower_copy(struct ipu_lowering *lowering, int function, int64_t bytes, const char *name)
{
	const struct ipu_target *target = lowering->target;
	const double each = (double)bytes / (double)(target->tiles * target->load_bytes_cycle);
	const struct ipu_step copy = {.node = -1,
				      .phase = -1,
				      .type = IPU_ON_TILE_EXECUTE,
				      .cycles = LOCAL_COPY_CYCLES + (int64_t)ceil(each),
				      .mean_cycles = LOCAL_COPY_CYCLES + each,
				      .tiles = target->tiles,
				      .vertices = target->tiles,
				      .repeats = 1};
	int sequence;

	if (bytes == 0)
		return;
	sequence = ipu__sequence_add(lowering, function, "%s", name);
	ipu__sync_add(lowering, sequence, 1, -1, -1);
	ipu__step_add(lowering, sequence, &copy, "%s/OnTileCopy-0", name);
}

static void add_stream_part(struct ipu_lowering *lowering, int sequence, enum ipu_program_type type,
			    int64_t cycles, int64_t bytes_in, int64_t bytes_out, const char *name)
{
	const struct ipu_step step = {.node = -1,
				      .phase = -1,
				      .type = type,
				      .cycles = cycles,
				      .mean_cycles = (double)cycles,
				      .tiles = lowering->target->tiles,
				      .bytes_in = bytes_in,
				      .bytes_out = bytes_out,
				      .repeats = 1};

	ipu__step_add(lowering, sequence, &step, "%s", name);
}

/* Data movement, each in its own Sequence under @function; nothing if @bytes is 0. */
static void lower_remote(struct ipu_lowering *lowering, int function, int64_t bytes, bool load,
			 const char *name)
{
	const struct ipu_stream_copy copy = ipu_stream_copy(lowering->target, (double)bytes,
							    lowering->target->remote_bytes_second);
	int sequence;

	if (bytes == 0)
		return;
	sequence = ipu__sequence_add(lowering, function, "%s", name);
	add_stream_part(lowering, sequence, IPU_STREAM_COPY_BEGIN, copy.begin_cycles, 0, 0, name);
	add_stream_part(lowering, sequence, IPU_STREAM_COPY_MID,
			copy.cycles - copy.begin_cycles - copy.end_cycles, load ? bytes : 0,
			load ? 0 : bytes, name);
	add_stream_part(lowering, sequence, IPU_STREAM_COPY_END, copy.end_cycles, 0, 0, name);
}

/* ---- over the replicas ----------------------------------------------------------------------- */

/* A ring collective as in popops: in each round every replica passes a share to the next one. */
struct ring {
	int64_t members, rounds, share; /* members: replicas or domains; share: bytes passed on */
	bool meets; /* in both directions, half way each, then added; else in one direction */
	int64_t cycles, sync; /* per round */
};

/* A collective over replicas: a ring within each IPU-Link domain, then one between the domains, in
 * which every replica of a domain sums its share over the gateways. */
struct rings {
	struct ring inner, outer;
};

/* Choice of popops with one IPU per replica: small shares meet in the middle. */
static bool meets_in_middle(int64_t replicas, int64_t bytes, bool gather)
{
	const int64_t least = gather ? 622592 : 1245184;

	return replicas > 2 && (bytes < least || (replicas > 4 && bytes < 4 * least) ||
				(replicas > 8 && bytes < 32 * least) || replicas > 16);
}

/* @bytes per replica before a sum, or after a gather. */
static struct rings make_rings(const struct ipu_target *target, int64_t replicas,
			       int64_t replica_ipus, int64_t bytes, bool gather)
{
	const int64_t own = max(replica_ipus, 1);
	struct rings rings = {.inner = {.members = max(target->ipus_link_domain / own, 1)}};
	struct ring *inner = &rings.inner, *outer = &rings.outer;
	double rate = target->link_bytes_second;
	bool both;

	inner->members = min(inner->members, replicas);
	inner->share = (bytes + inner->members - 1) / inner->members;
	outer->members = (replicas + inner->members - 1) / inner->members;
	outer->share = (inner->share + outer->members - 1) / outer->members;
	/* A whole Pod64 is a torus, on which larger replicas also meet in the middle. */
	inner->meets =
		own > 1 ? inner->members > 2 && inner->members * own >= POD64_IPUS
			: meets_in_middle(inner->members, gather ? inner->share : bytes, gather);
	both = own == 1 && inner->members > 2 && !inner->meets;
	inner->rounds = inner->meets ? inner->members / 2 : inner->members - 1;
	outer->rounds = outer->members - 1;
	/* A pair uses its four links; otherwise all IPUs of a side share its two links. */
	if (own > 1 || inner->members > 2)
		rate /= both ? 1 : (double)max(own, 2);
	inner->cycles = (int64_t)ceil((double)inner->share * target->clock_hz / rate);
	outer->cycles = (int64_t)ceil((double)outer->share * target->clock_hz /
				      target->gateway_bytes_second);
	inner->sync = max(ipu_sync_cycles(target, (int)(inner->members * own)),
			  (int64_t)ceil(target->phase_cycles));
	outer->sync = inner->sync + (int64_t)ceil(target->host_latency_ns * target->clock_hz / 1e9);
	return rings;
}

/* A phase on the replica's own tiles; @bytes 0: it computes the index of the next share. */
static void add_local_phase(struct ipu_lowering *lowering, int sequence, enum ipu_program_type type,
			    int64_t bytes, int64_t repeats, const char *name)
{
	const struct ipu_target *target = lowering->target;
	const bool exchange = type == IPU_DO_EXCHANGE;
	const double rate = exchange ? target->exchange_bytes_cycle : (double)target->vector_bytes;
	const double each = (double)bytes / ((double)target->tiles * rate);
	const int64_t tiles = bytes > 0 ? target->tiles : 1;
	const struct ipu_step step = {.node = -1,
				      .phase = -1,
				      .type = type,
				      .cycles = (int64_t)ceil(each),
				      .mean_cycles = each,
				      .tiles = tiles,
				      .vertices = exchange ? 0 : tiles * target->workers,
				      .bytes_in = exchange ? bytes : 0,
				      .bytes_out = exchange ? bytes : 0,
				      .repeats = repeats};

	ipu__sync_add(lowering, sequence, repeats, -1, -1);
	ipu__step_add(lowering, sequence, &step, "%s", name);
}

/* Pass the share to the next replica, after a sync of all members of the ring. */
static void exchange_share(struct ipu_lowering *lowering, int sequence, const struct ring *ring,
			   const char *name)
{
	struct ipu_step step = {.node = -1,
				.phase = -1,
				.type = IPU_SYNC,
				.cycles = ring->sync,
				.mean_cycles = (double)ring->sync,
				.tiles = lowering->target->tiles,
				.repeats = ring->rounds};

	ipu__step_add(lowering, sequence, &step, "External");
	step.type = IPU_GLOBAL_EXCHANGE;
	step.cycles = ring->cycles;
	step.mean_cycles = (double)ring->cycles;
	step.bytes_in = step.bytes_out = ring->share * (ring->members - 1) / ring->rounds;
	ipu__step_add(lowering, sequence, &step, "%s", name);
}

/* Reduce-scatter: slice a share, then in each round pass it on and add it to the next slice.
 * Gather: copy a share, pass it on, and store it in its slice. */
static void lower_ring(struct ipu_lowering *lowering, int sequence, const struct ring *ring,
		       bool gather, const char *name)
{
	const char *index = ipu__name(lowering, "%s/Index", name);
	const char *slice = ipu__name(lowering, "%s/%s", name, gather ? "Update" : "Slice");
	const char *work = ipu__name(lowering, "%s/%s", name, gather ? "Copy" : "Add");
	const enum ipu_program_type execute = IPU_ON_TILE_EXECUTE;
	int loop = sequence;

	if (ring->rounds == 0)
		return;
	add_local_phase(lowering, sequence, execute, 0, 1, index);
	add_local_phase(lowering, sequence, execute, 0, 1, index);
	if (gather)
		add_local_phase(lowering, sequence, execute, ring->share, 1, work);
	add_local_phase(lowering, sequence, IPU_DO_EXCHANGE, ring->share, 1, slice);
	if (ring->rounds > 1)
		loop = ipu__repeat_add(lowering, sequence, ring->rounds, name, -1);
	add_local_phase(lowering, loop, execute, 0, ring->rounds, index);
	exchange_share(lowering, loop, ring, name);
	if (gather)
		add_local_phase(lowering, loop, execute, ring->share, ring->rounds, work);
	add_local_phase(lowering, loop, IPU_DO_EXCHANGE, ring->share, ring->rounds, slice);
	if (!gather)
		add_local_phase(lowering, loop, execute, ring->share, ring->rounds, work);
	if (!gather && ring->meets)
		add_local_phase(lowering, sequence, execute, ring->share, 1, work);
}

void ipu__collective_lower(struct ipu_lowering *lowering, int function, enum ipu_collective kind,
			   int64_t bytes, const char *name)
{
	const struct ipu_layout *layout = &lowering->executable->graph->layout;
	int sequence;

	if (layout->replicas < 2 || bytes == 0)
		return;
	sequence = ipu__sequence_add(lowering, function, "%s", name);
	lowering->collective = true;
	if (kind != IPU_ALL_GATHER) {
		const struct rings rings = make_rings(lowering->target, layout->replicas,
						      layout->replica_ipus, bytes, false);

		lower_ring(lowering, sequence, &rings.inner, false,
			   ipu__name(lowering, "%s/ReduceScatter/Ring", name));
		lower_ring(lowering, sequence, &rings.outer, false,
			   ipu__name(lowering, "%s/ReduceScatter/Gateway", name));
	}
	if (kind != IPU_REDUCE_SCATTER) {
		const struct rings rings = make_rings(lowering->target, layout->replicas,
						      layout->replica_ipus, bytes, true);

		lower_ring(lowering, sequence, &rings.outer, true,
			   ipu__name(lowering, "%s/AllGather/Gateway", name));
		lower_ring(lowering, sequence, &rings.inner, true,
			   ipu__name(lowering, "%s/AllGather/Ring", name));
	}
	lowering->collective = false;
}

static bool shards(const struct ipu_layout *layout)
{
	return layout->replicas > 1 && (layout->shard_optimizer_state || layout->shard_weights);
}

static bool is_summed(const struct ipu_lowering *lowering, int t)
{
	const enum ipu_tensor_kind kind = lowering->executable->graph->tensors[t].kind;

	return (kind == IPU_TENSOR_WEIGHT_GRADIENT || kind == IPU_TENSOR_ACCUMULATOR) &&
	       !lowering->reduced[t];
}

/* The type in which a gradient is summed: before the cast, if it is only cast for the update. */
static enum ipu_dtype summed_dtype(const struct ipu_graph *graph, int t)
{
	enum ipu_dtype dtype = graph->tensors[t].dtype;
	int writers = 0;

	for (int n = 0; n < graph->node_count; n++) {
		const struct ipu_node *node = &graph->nodes[n];

		if (node->op.phase == IPU_PHASE_U || node->write_count != 1 || node->writes[0] != t)
			continue;
		if (node->op.kind == IPU_OP_ELEMENTWISE && node->read_count == 1 &&
		    node->op.elements.times[IPU_FN_CAST] > 0)
			dtype = graph->tensors[node->reads[0]].dtype;
		writers++;
	}
	return writers == 1 ? dtype : graph->tensors[t].dtype;
}

/* Sum the gradient @first over the replicas before the operation @node of the update reads it, and
 * with it, as far as the buffer allows, those of the same type that later operations read. */
static void reduce_gradients(struct ipu_lowering *lowering, int function, int node, int first)
{
	const struct ipu_graph *graph = lowering->executable->graph;
	const bool scatter = shards(&graph->layout);
	const int64_t most = scatter ? 0 : graph->layout.sum_buffer_bytes;
	const enum ipu_dtype dtype = summed_dtype(graph, first);
	const char *name = ipu__name(lowering, "CrossReplicaSum/%s", graph->tensors[first].name);
	int64_t bytes = 0;
	int merged = 0;
	bool full = false;

	for (int n = node; n < graph->node_count && !full; n++) {
		const struct ipu_node *of = &graph->nodes[n];

		if (of->op.stage != graph->nodes[node].op.stage || of->op.phase != IPU_PHASE_U)
			continue;
		for (int i = 0; i < of->read_count && !full; i++) {
			const int t = of->reads[i];
			const int64_t more =
				ipu_tensor_elements(&graph->tensors[t]) * ipu_dtype_bytes(dtype);

			if (!is_summed(lowering, t) || summed_dtype(graph, t) != dtype)
				continue;
			full = merged > 0 && bytes + more > most;
			if (full)
				continue;
			lowering->reduced[t] = true;
			bytes += more;
			merged++;
		}
	}
	if (merged > 1)
		name = ipu__name(lowering, "%s+%d", name, merged - 1);
	ipu__collective_lower(lowering, function, scatter ? IPU_REDUCE_SCATTER : IPU_ALL_REDUCE,
			      bytes, name);
}

static bool writes_accumulator(const struct ipu_graph *graph, const struct ipu_node *node)
{
	for (int i = 0; i < node->write_count; i++)
		if (graph->tensors[node->writes[i]].kind == IPU_TENSOR_ACCUMULATOR)
			return true;
	return false;
}

/* Load or store the offloaded accumulators to which @node adds. */
static void stream_accumulators(struct ipu_lowering *lowering, int function,
				const struct ipu_node *node, bool load)
{
	const struct ipu_graph *graph = lowering->executable->graph;

	for (int i = 0; i < node->write_count; i++) {
		const struct ipu_tensor *tensor = &graph->tensors[node->writes[i]];

		if (tensor->kind == IPU_TENSOR_ACCUMULATOR)
			lower_remote(lowering, function, ipu_tensor_bytes(tensor), load,
				     ipu__name(lowering, "%s/%s",
					       load ? "RemoteLoad" : "RemoteStore", tensor->name));
	}
}

void ipu__before_node(struct ipu_lowering *lowering, int function, int node)
{
	const struct ipu_graph *graph = lowering->executable->graph;
	const struct ipu_node *of = &graph->nodes[node];

	if (of->op.phase == IPU_PHASE_U)
		for (int i = 0; i < of->read_count; i++) {
			if (is_summed(lowering, of->reads[i]))
				reduce_gradients(lowering, function, node, of->reads[i]);
		}
	else if (graph->layout.offload_accumulators && writes_accumulator(graph, of))
		stream_accumulators(lowering, function, of, true);
}

void ipu__after_node(struct ipu_lowering *lowering, int function, int node)
{
	const struct ipu_graph *graph = lowering->executable->graph;
	const struct ipu_node *of = &graph->nodes[node];

	if (of->op.phase != IPU_PHASE_U) {
		if (graph->layout.offload_accumulators && writes_accumulator(graph, of))
			stream_accumulators(lowering, function, of, false);
		return;
	}
	for (int i = 0; i < of->write_count && shards(&graph->layout); i++) {
		const struct ipu_tensor *tensor = &graph->tensors[of->writes[i]];

		/* Weights that stay sharded are gathered before they are read. */
		if (tensor->kind == IPU_TENSOR_WEIGHT && !graph->layout.shard_weights)
			ipu__collective_lower(
				lowering, function, IPU_ALL_GATHER, ipu_tensor_bytes(tensor),
				ipu__name(lowering, "ReplicatedAllGather/%s", tensor->name));
	}
}

/* ---- whole functions ------------------------------------------------------------------------- */

static int64_t stage_kind_bytes(const struct ipu_graph *graph, int stage, enum ipu_tensor_kind kind)
{
	int64_t bytes = 0;

	for (int t = 0; t < graph->tensor_count; t++)
		if (graph->tensors[t].stage == stage && graph->tensors[t].kind == kind)
			bytes += ipu_tensor_bytes(&graph->tensors[t]);
	return bytes;
}

/* Stream a stage's variables of @kind between the tiles and streaming memory. */
static void stream_kind(struct ipu_lowering *lowering, int function, int stage,
			enum ipu_tensor_kind kind, bool shared, bool load)
{
	const struct ipu_graph *graph = lowering->executable->graph;
	const int64_t replicas = graph->layout.replicas;
	int64_t bytes = stage_kind_bytes(graph, stage, kind);

	if (shared)
		bytes = (bytes + replicas - 1) / replicas;
	lower_remote(lowering, function, bytes, load,
		     ipu__name(lowering, "%s/Stage%d/%s", load ? "RemoteLoad" : "RemoteStore",
			       stage, ipu_tensor_kind_name(kind)));
}

static bool reads_tensor(const struct ipu_graph *graph, int stage, char phase, int tensor)
{
	for (int n = 0; n < graph->node_count; n++) {
		const struct ipu_node *node = &graph->nodes[n];

		if (node->op.stage != stage || node->op.phase != phase)
			continue;
		for (int i = 0; i < node->read_count; i++)
			if (node->reads[i] == tensor)
				return true;
	}
	return false;
}

/* Pop the stash of the forward (or @push it) from its FIFOs or from remote memory. @reader: only
 * what that phase of @stage reads, since B and W pop separately; 0: all. */
static void pop_stash(struct ipu_lowering *lowering, int function, int stage, bool push,
		      char reader)
{
	const struct ipu_graph *graph = lowering->executable->graph;

	for (int i = 0; i < lowering->stash.count; i++) {
		const struct ipu_tensor *tensor = &graph->tensors[lowering->stash.tensors[i]];
		const int64_t bytes = ipu_tensor_bytes(tensor);

		if (reader != 0 && !reads_tensor(graph, stage, reader, lowering->stash.tensors[i]))
			continue;

		if (graph->layout.offload_activations)
			lower_remote(lowering, function, bytes, !push,
				     ipu__name(lowering, "%s/%s",
					       push ? "FIFO/RemoteStore" : "FIFO/RemoteLoad",
					       tensor->name));
		else
			lower_copy(lowering, function, bytes,
				   ipu__name(lowering, "%s/%s", push ? "FIFO/Push" : "FIFO/Pop",
					     tensor->name));
	}
}

void ipu__before_function(struct ipu_lowering *lowering, int function, int stage,
			  enum ipu_function_phase phase)
{
	const struct ipu_graph *graph = lowering->executable->graph;
	const struct ipu_layout *layout = &graph->layout;
	const enum ipu_function_phase reader =
		lowering->stash.replays ? IPU_FUNCTION_R : IPU_FUNCTION_B;

	if (phase != IPU_FUNCTION_U) {
		if (phase != IPU_FUNCTION_W) {
			if (layout->offload_weights)
				stream_kind(lowering, function, stage, IPU_TENSOR_WEIGHT,
					    layout->shard_weights, true);
			if (layout->shard_weights)
				ipu__collective_lower(
					lowering, function, IPU_ALL_GATHER,
					stage_kind_bytes(graph, stage, IPU_TENSOR_WEIGHT),
					ipu__name(lowering, "ReplicatedAllGather/Stage%d/weights",
						  stage));
		}
		if (ipu__has_fifo(graph, stage) && (phase == reader || phase == IPU_FUNCTION_W))
			pop_stash(lowering, function, stage, false,
				  ipu_graph_splits(graph) ? ipu_function_phase_char(phase) : 0);
		return;
	}
	if (layout->offload_weights)
		stream_kind(lowering, function, stage, IPU_TENSOR_WEIGHT, layout->shard_weights,
			    true);
	if (layout->offload_optimizer_state)
		stream_kind(lowering, function, stage, IPU_TENSOR_OPTIMIZER_STATE, shards(layout),
			    true);
	if (layout->offload_accumulators)
		stream_kind(lowering, function, stage, IPU_TENSOR_ACCUMULATOR, false, true);
}

void ipu__after_function(struct ipu_lowering *lowering, int function, int stage,
			 enum ipu_function_phase phase)
{
	const struct ipu_layout *layout = &lowering->executable->graph->layout;

	if (phase != IPU_FUNCTION_U)
		return;
	if (layout->offload_optimizer_state)
		stream_kind(lowering, function, stage, IPU_TENSOR_OPTIMIZER_STATE, shards(layout),
			    false);
	if (layout->offload_weights)
		stream_kind(lowering, function, stage, IPU_TENSOR_WEIGHT, layout->shard_weights,
			    false);
}

void ipu__push_lower(struct ipu_lowering *lowering, int function, int stage)
{
	pop_stash(lowering, function, stage, true, 0);
}

enum status ipu__start_lower(struct ipu_lowering *lowering, int function, int stage,
			     struct err *err)
{
	const struct ipu_graph *graph = lowering->executable->graph;
	struct ipu_op fill[IPU_DTYPES];

	memset(fill, 0, sizeof(fill));
	for (int t = 0; t < graph->tensor_count; t++)
		if (graph->tensors[t].kind == IPU_TENSOR_ACCUMULATOR &&
		    graph->tensors[t].stage == stage)
			fill[graph->tensors[t].dtype].elements.count +=
				ipu_tensor_elements(&graph->tensors[t]);
	for (int d = 0; d < IPU_DTYPES; d++) {
		const struct ipu_plan *plan;
		enum status status;

		if (fill[d].elements.count == 0)
			continue;
		fill[d].kind = IPU_OP_ELEMENTWISE;
		fill[d].dtype = (enum ipu_dtype)d;
		fill[d].name = "GradientAccumulation/Zero";
		fill[d].phase = IPU_PHASE_U;
		fill[d].stage = stage;
		fill[d].elements.times[IPU_FN_FILL] = 1;
		status = ipu_planner_plan(lowering->planner, &fill[d], NULL, &plan, err);
		if (status != ST_OK)
			return status;
		ipu__plan_lower(lowering, ipu__sequence_add(lowering, function, "%s", fill[d].name),
				plan, fill[d].name, -1);
	}
	if (graph->layout.offload_accumulators)
		stream_kind(lowering, function, stage, IPU_TENSOR_ACCUMULATOR, false, false);
	return ST_OK;
}
