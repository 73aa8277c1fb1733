/*
 * Lowering: every operation of the graph is planned, then the functions of each stage become
 * programs. Each operation becomes a Sequence of its plan's phases (ipu_program.c); the movement of
 * data beside the operations comes from ipu_program_move.c.
 *
 * Threads: none; an executable is immutable once it has its control programs.
 */
#include "ipu/compile/ipu_program.h"

#include "common/mem.h"
#include "ipu/compile/ipu_program_internal.h"

enum ipu_function_phase ipu_function_of(const struct ipu_graph *graph, int node)
{
	switch (graph->nodes[node].op.phase) {
	case IPU_PHASE_F:
		return IPU_FUNCTION_F;
	case IPU_PHASE_R:
		return IPU_FUNCTION_R;
	case IPU_PHASE_U:
		return IPU_FUNCTION_U;
	case IPU_PHASE_W:
		return ipu_graph_splits(graph) ? IPU_FUNCTION_W : IPU_FUNCTION_B;
	default:
		return IPU_FUNCTION_B;
	}
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Return whether a map's operands lie alike: a weight, what lies as it, and such a gradient. */
static bool is_aligned(const struct ipu_graph *graph, int node, const bool *aligned)
{
	const struct ipu_node *of = &graph->nodes[node];
	bool found = false;

	for (int i = 0; i < of->read_count; i++) {
		const enum ipu_tensor_kind kind = graph->tensors[of->reads[i]].kind;

		if (kind != IPU_TENSOR_WEIGHT && kind != IPU_TENSOR_ACCUMULATOR &&
		    kind != IPU_TENSOR_OPTIMIZER_STATE && !aligned[of->reads[i]])
			return false;
		found |= aligned[of->reads[i]];
	}
	return found && of->op.kind == IPU_OP_ELEMENTWISE;
}

static enum status plan_nodes(struct ipu_lowering *lowering, struct err *err)
{
	struct ipu_executable *executable = lowering->executable;
	const struct ipu_graph *graph = executable->graph;
	bool *aligned = arena_alloc(&executable->arena, (size_t)graph->tensor_count + 1,
				    sizeof(*aligned)); /* by tensor */

	executable->plans = arena_alloc(&executable->arena, (size_t)graph->node_count + 1,
					sizeof(*executable->plans));
	executable->code = arena_alloc(&executable->arena, (size_t)graph->layout.stages,
				       sizeof(*executable->code));
	lowering->reduced = mem_calloc((size_t)graph->tensor_count + 1, sizeof(*lowering->reduced));
	if (!executable->plans || !executable->code || !lowering->reduced || !aligned)
		return err_nomem(err);
	for (int n = 0; n < graph->node_count; n++) {
		const struct ipu_node *of = &graph->nodes[n];
		const int64_t replicas = graph->layout.replicas;
		struct ipu_op op = of->op;
		enum status status;

		/* A replica updates its share of variables that are sharded over replicas. */
		if (op.phase == IPU_PHASE_U && op.kind == IPU_OP_ELEMENTWISE && replicas > 1 &&
		    (graph->layout.shard_optimizer_state || graph->layout.shard_weights))
			op.elements.count = (op.elements.count + replicas - 1) / replicas;
		if (is_aligned(graph, n, aligned))
			op.elements.operands = 1;
		status = ipu_planner_plan(lowering->planner, &op, &of->options,
					  &executable->plans[n], err);
		if (status != ST_OK)
			return status;
		/* A joint plan's gradients of weights lie as their weights do. */
		for (int i = 0; i < of->write_count && executable->plans[n]->joint; i++)
			aligned[of->writes[i]] =
				graph->tensors[of->writes[i]].kind == IPU_TENSOR_WEIGHT_GRADIENT;
	}
	return ST_OK;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void finish_code(struct ipu_lowering *lowering, struct ipu_code *code)
{
	code->step_count = (int)lowering->step_count;
	code->steps = arena_alloc(&lowering->executable->arena, lowering->step_count + 1,
				  sizeof(*code->steps));
	lowering->step_count = 0;
	if (!code->steps) {
		lowering->failed = true;
		return;
	}
	for (int i = 0; i < code->step_count; i++) {
		const struct ipu_step *step = &lowering->steps[i];
		const int64_t cycles = step->cycles * step->repeats;

		code->steps[i] = *step;
		code->cost.cycles += cycles;
		code->collective += step->collective ? cycles : 0;
		if (step->type == IPU_DO_EXCHANGE || step->type == IPU_GLOBAL_EXCHANGE)
			code->cost.exchange += cycles;
		else if (step->type == IPU_SYNC)
			code->cost.sync += cycles;
		else if (step->type != IPU_ON_TILE_EXECUTE)
			code->cost.host_io += cycles;
	}
}

static void lower_nodes(struct ipu_lowering *lowering, int function, int stage,
			enum ipu_function_phase phase)
{
	const struct ipu_graph *graph = lowering->executable->graph;
	const bool replays = phase == IPU_FUNCTION_R;
	const bool predicted = phase == IPU_FUNCTION_PREDICT;
	const bool forward = predicted || phase == IPU_FUNCTION_EVALUATE;
	const enum ipu_function_phase from = replays || forward ? IPU_FUNCTION_F : phase;

	ipu__before_function(lowering, function, stage, phase);
	for (int n = 0; n < graph->node_count; n++) {
		const char *name = graph->nodes[n].op.name;
		int sequence;

		if (graph->nodes[n].op.stage != stage || ipu_function_of(graph, n) != from ||
		    (replays && !lowering->stash.replayed[n]) ||
		    (forward && !ipu_node_forward(&graph->nodes[n], predicted)))
			continue;
		ipu__before_node(lowering, function, n);
		sequence = ipu__program_add(lowering, function, IPU_SEQUENCE, name, n);
		ipu__plan_lower(lowering, sequence, lowering->executable->plans[n], name, n);
		ipu__after_node(lowering, function, n);
	}
	ipu__after_function(lowering, function, stage, phase);
}

enum ipu_function_phase ipu_forward_function(const struct ipu_layout *layout, bool predicted)
{
	if (!layout->schedule && !(predicted && layout->evaluated))
		return IPU_FUNCTION_F;
	return predicted ? IPU_FUNCTION_PREDICT : IPU_FUNCTION_EVALUATE;
}

/* Return whether the function may have any content. */
static bool has_function(const struct ipu_lowering *lowering, int stage,
			 enum ipu_function_phase phase)
{
	const struct ipu_graph *graph = lowering->executable->graph;

	switch (phase) {
	case IPU_FUNCTION_R:
		return graph->layout.schedule && lowering->stash.replays;
	case IPU_FUNCTION_PUSH:
		return ipu__has_fifo(graph, stage) && lowering->stash.count > 0;
	case IPU_FUNCTION_W:
		return ipu_graph_splits(graph);
	case IPU_FUNCTION_START:
		return graph->layout.schedule && graph->layout.accumulation > 1;
	case IPU_FUNCTION_EVALUATE:
		return graph->layout.evaluated &&
		       ipu_forward_function(&graph->layout, false) == phase;
	case IPU_FUNCTION_PREDICT:
		return graph->layout.predicted &&
		       ipu_forward_function(&graph->layout, true) == phase;
	default:
		return true;
	}
}

/* Drop a function without programs, such as the update of a stage without variables. Forward passes
 * are kept, and so are B and W of a schedule: the device clock calls them even if they are empty.
 */
static void drop_empty(struct ipu_lowering *lowering, enum ipu_function_phase phase,
		       struct ipu_code *code)
{
	const bool scheduled = lowering->executable->graph->layout.schedule;

	if (phase == IPU_FUNCTION_F || phase == IPU_FUNCTION_EVALUATE ||
	    phase == IPU_FUNCTION_PREDICT || phase == IPU_FUNCTION_W ||
	    (phase == IPU_FUNCTION_B && scheduled) || lowering->failed ||
	    lowering->program_count != (size_t)code->program + 1)
		return;
	lowering->program_count--;
	lowering->roots--;
	code->program = -1;
}

static enum status lower_function(struct ipu_lowering *lowering, int stage,
				  enum ipu_function_phase phase, struct err *err)
{
	static const char *const names[] = {"F",     "B", "U",        "R",      "FIFO",
					    "Start", "W", "Evaluate", "Predict"};
	struct ipu_code *code = &lowering->executable->code[stage][phase];
	enum status status = ST_OK;

	_Static_assert(ARRAY_LEN(names) == IPU_FUNCTION_PHASES, "function names out of step");
	code->program = -1;
	if (!has_function(lowering, stage, phase))
		return ST_OK;
	code->program = ipu__sequence_add(lowering, -1, "Stage%d/%s", stage, names[phase]);
	if (phase == IPU_FUNCTION_PUSH)
		ipu__push_lower(lowering, code->program, stage);
	else if (phase == IPU_FUNCTION_START)
		status = ipu__start_lower(lowering, code->program, stage, err);
	else
		lower_nodes(lowering, code->program, stage, phase);
	finish_code(lowering, code);
	drop_empty(lowering, phase, code);
	return status == ST_OK && lowering->failed ? err_nomem(err) : status;
}

/* ---- executable ------------------------------------------------------------------------------ */

enum status ipu_executable_new(struct ipu_executable **out, const struct ipu_graph *graph,
			       struct ipu_planner *planner, const struct ipu_target *target,
			       struct err *err)
{
	struct ipu_lowering lowering = {.target = target, .planner = planner};
	struct ipu_executable *executable;
	enum status status = ipu__layout_check(graph, target, err);

	*out = NULL;
	if (status != ST_OK)
		return status;
	executable = mem_calloc(1, sizeof(*executable));
	if (!executable || arena_init(&executable->arena, 0) != 0) {
		mem_free(executable);
		return err_nomem(err);
	}
	executable->graph = graph;
	lowering.executable = executable;
	status = plan_nodes(&lowering, err);
	for (int s = 0; s < graph->layout.stages && status == ST_OK; s++) {
		status = ipu_stash_init(&lowering.stash, lowering.executable->graph, s, err);
		for (int f = 0; f < IPU_FUNCTION_PHASES && status == ST_OK; f++)
			status = lower_function(&lowering, s, (enum ipu_function_phase)f, err);
		ipu_stash_fini(&lowering.stash);
	}
	if (status == ST_OK)
		status = ipu__programs_store(&lowering, err);
	mem_free(lowering.programs);
	mem_free(lowering.steps);
	mem_free(lowering.reduced);
	if (status != ST_OK) {
		ipu_executable_free(executable);
		return status;
	}
	*out = executable;
	return ST_OK;
}

void ipu_executable_free(struct ipu_executable *executable)
{
	if (!executable)
		return;
	arena_fini(&executable->arena);
	mem_free(executable);
}
