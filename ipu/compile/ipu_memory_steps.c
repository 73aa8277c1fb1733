/*
 * What tensors are placed by: operations that share a function, stashes, the program steps of each
 * IPU, and when operations use tensors. Steps are in the order of one round of the pipeline
 * (ipu_program.h).
 *
 * Threads: none.
 */
#include <assert.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "ipu/compile/ipu_graph.h"
#include "ipu/compile/ipu_memory_internal.h"

int memory__device(const struct memory_build *build, int stage)
{
	return build->schedule ? build->schedule->device[stage] : 0;
}

int memory__place(const struct memory_build *build, int stage)
{
	return build->streaming ? stage : memory__device(build, stage);
}

int memory__place_device(const struct memory_build *build, int place)
{
	return build->streaming ? memory__device(build, place) : place;
}

/* ---- functions ------------------------------------------------------------------------------- */

bool memory__is_planned(const struct ipu_op *op)
{
	return op->kind == IPU_OP_CONV || op->kind == IPU_OP_MATMUL;
}

bool memory__is_function(const struct ipu_node *node)
{
	return node->function || memory__is_planned(&node->op);
}

/* An operation and its plan; identical operations share a plan. */
struct planned {
	uintptr_t plan;
	int ipu, node;
};

static int compare_planned(const void *a, const void *b)
{
	const struct planned *x = a, *y = b;

	return SORTED_BY(x, y, plan, ipu, node);
}

void memory__add_functions(struct memory_build *build)
{
	const struct ipu_graph *graph = build->graph;
	const size_t nodes = (size_t)graph->node_count + 1;
	struct planned *planned = memory__alloc(build, nodes, sizeof(*planned));
	int count = 0;

	build->same = memory__alloc(build, nodes, sizeof(*build->same));
	if (err_stuck(build->err))
		return;
	for (int n = 0; n < graph->node_count; n++) {
		build->same[n] = n;
		if (memory__is_function(&graph->nodes[n]))
			planned[count++] = (struct planned){
				(uintptr_t)build->executable->plans[n],
				memory__device(build, graph->nodes[n].op.stage), n};
	}
	qsort(planned, (size_t)count, sizeof(*planned), compare_planned);
	for (int i = 1; i < count; i++)
		if (planned[i].plan == planned[i - 1].plan && planned[i].ipu == planned[i - 1].ipu)
			build->same[planned[i].node] = build->same[planned[i - 1].node];
}

/* ---- stashes --------------------------------------------------------------------------------- */

void memory__add_stashes(struct memory_build *build)
{
	const struct ipu_graph *graph = build->graph;
	const int stages = graph->layout.stages;
	struct ipu_stash stash;

	build->stashed = memory__alloc(build, (size_t)stages + 1, sizeof(*build->stashed));
	build->replayed =
		memory__alloc(build, (size_t)graph->node_count + 1, sizeof(*build->replayed));
	for (int s = 0; s < stages && !err_stuck(build->err); s++) {
		build->stashed[s] = memory__alloc(build, (size_t)graph->tensor_count + 1,
						  sizeof(*build->stashed[s]));
		if (err_stuck(build->err) || !build->training ||
		    ipu_stash_init(&stash, graph, s, build->err) != ST_OK)
			continue;
		for (int i = 0; i < stash.count; i++)
			build->stashed[s][stash.tensors[i]] = true;
		for (int n = 0; n < graph->node_count; n++)
			build->replayed[n] |= stash.replayed[n];
		ipu_stash_fini(&stash);
	}
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Append the steps of a stage's phase; return the IPU's step count. @steps NULL: only count. */
static int add_section(struct memory_build *build, int stage, enum ipu_function_phase phase,
		       struct ipu_memory_step *steps, int count)
{
	const struct ipu_code *code = &build->executable->code[stage][phase];
	struct memory_section *section = &build->sections[stage][phase];

	section->first = count;
	for (int i = 0; i < code->step_count; i++) {
		const struct ipu_step *step = &code->steps[i];

		if (step->type == IPU_SYNC || step->type == IPU_SYNC_ANS)
			continue;
		if (steps) {
			steps[count] = (struct ipu_memory_step){step->program, step->node, 0};
			if (step->node >= 0) {
				struct memory_when *when = &build->when[step->node];
				const bool again = phase == IPU_FUNCTION_R;
				int *first = again ? &when->again_first : &when->first;
				int *last = again ? &when->again_last : &when->last;

				*first = *first < 0 ? count : *first;
				*last = count;
			}
		}
		count++;
	}
	section->end = count;
	return count;
}

#define ROUND_FUNCTIONS 7

/* A time step of Grouped runs all functions; one of Interleaved runs F and what follows, or B. */
static int add_ipu_sections(struct memory_build *build, int ipu, struct ipu_memory_step *steps)
{
	static const enum ipu_function_phase orders[][ROUND_FUNCTIONS] = {
		{IPU_FUNCTION_START, IPU_FUNCTION_F, IPU_FUNCTION_PUSH, IPU_FUNCTION_R,
		 IPU_FUNCTION_B, IPU_FUNCTION_W, IPU_FUNCTION_U},
		{IPU_FUNCTION_START, IPU_FUNCTION_F, IPU_FUNCTION_B, IPU_FUNCTION_W,
		 IPU_FUNCTION_PUSH, IPU_FUNCTION_R, IPU_FUNCTION_U}};
	const int stages = build->graph->layout.stages;
	int count = 0;

	for (size_t p = 0; p < ROUND_FUNCTIONS; p++) {
		const enum ipu_function_phase phase = orders[build->grouped][p];
		const bool back = phase == IPU_FUNCTION_B && !build->grouped;

		for (int i = 0; i < stages; i++) {
			const int stage = back ? stages - 1 - i : i;

			if (memory__device(build, stage) != ipu)
				continue;
			if (phase == IPU_FUNCTION_B && build->replays_late)
				count = add_section(build, stage, IPU_FUNCTION_R, steps, count);
			if (phase != IPU_FUNCTION_R || !build->replays_late)
				count = add_section(build, stage, phase, steps, count);
		}
	}
	return count;
}

void memory__add_steps(struct memory_build *build)
{
	struct ipu_memory *memory = build->memory;
	const struct ipu_graph *graph = build->graph;
	const int nodes = graph->node_count;

	build->when = memory__alloc(build, (size_t)nodes + 1, sizeof(*build->when));
	build->sections =
		memory__alloc(build, (size_t)graph->layout.stages, sizeof(*build->sections));
	if (err_stuck(build->err))
		return;
	for (int n = 0; n < nodes; n++)
		build->when[n] = (struct memory_when){-1, -1, -1, -1};
	for (int i = 0; i < memory->ipu_count; i++) {
		struct ipu_memory_ipu *ipu = &memory->ipus[i];
		struct ipu_memory_step *steps;

		ipu->step_count = add_ipu_sections(build, i, NULL);
		steps = memory__alloc(build, (size_t)ipu->step_count + 1, sizeof(*steps));
		if (!steps)
			return;
		add_ipu_sections(build, i, steps);
		ipu->steps = steps;
	}

	/* An operation without own steps is attributed to the step that follows it. */
	for (int n = nodes - 1; n >= 0; n--) {
		const int stage = graph->nodes[n].op.stage;
		const enum ipu_function_phase function = ipu_function_of(graph, n);
		const struct memory_section *section = &build->sections[stage][function];
		const bool followed = n + 1 < nodes && graph->nodes[n + 1].op.stage == stage &&
				      ipu_function_of(graph, n + 1) == function;

		if (build->when[n].first >= 0 || section->first >= section->end)
			continue;
		build->when[n].first = followed ? build->when[n + 1].first : section->end - 1;
		build->when[n].last = build->when[n].first;
	}
}

/* ---- uses ------------------------------------------------------------------------------------ */

static bool list_contains(const int *list, int count, int tensor)
{
	for (int i = 0; i < count; i++)
		if (list[i] == tensor)
			return true;
	return false;
}

/* The use of one tensor by one operation; an in-place operation reads before it writes. */
static struct memory_use make_use(const struct memory_build *build, int node, int tensor)
{
	const struct ipu_node *of = &build->graph->nodes[node];
	const bool read = list_contains(of->reads, of->read_count, tensor);
	const bool written = list_contains(of->writes, of->write_count, tensor);
	const enum ipu_function_phase function = ipu_function_of(build->graph, node);
	const bool weighs = function == IPU_FUNCTION_W;

	assert(tensor >= 0 && tensor < build->graph->tensor_count);
	return (struct memory_use){.tensor = tensor,
				   .node = node,
				   .place = memory__place(build, of->op.stage),
				   .phase = weighs ? IPU_FUNCTION_B : function,
				   .held = read && weighs,
				   .first = build->when[node].first,
				   .last = build->when[node].last,
				   .again_first = build->when[node].again_first,
				   .again_last = build->when[node].again_last,
				   .read = read,
				   .written = written,
				   .read_first = read,
				   .writer = written ? node : -1};
}

/* Return whether @tensor can be overwritten with the result of @node, its last user. */
static bool is_overwritten(const struct memory_build *build, int node, int tensor,
			   const int *last_user)
{
	const struct ipu_tensor *from = &build->graph->tensors[tensor];
	const struct ipu_node *of = &build->graph->nodes[node];
	const struct ipu_tensor *to = &build->graph->tensors[of->writes[0]];
	const enum ipu_tensor_kind kind = from->kind;

	return last_user[tensor] == node && to->stage == from->stage &&
	       !build->stashed[from->stage][tensor] &&
	       (kind == IPU_TENSOR_ACTIVATION || kind == IPU_TENSOR_TEMPORARY ||
		kind == IPU_TENSOR_GRADIENT) &&
	       ipu_tensor_bytes(from) == ipu_tensor_bytes(to) && from->dtype == to->dtype;
}

/* A map runs in place on an operand that nothing reads after it: its result is counted from the
 * compute set on, and the operand until that. */
static void run_in_place(const struct memory_build *build, int node, struct memory_use *uses,
			 int count, const int *last_user)
{
	const struct ipu_node *of = &build->graph->nodes[node];
	struct memory_use *operand = NULL, *result = NULL;

	if (of->op.kind != IPU_OP_ELEMENTWISE || ipu_op_draws(&of->op) || memory__is_function(of) ||
	    of->write_count != 1)
		return;
	for (int i = 0; i < count; i++) {
		if (!operand && !uses[i].written &&
		    is_overwritten(build, node, uses[i].tensor, last_user))
			operand = &uses[i];
		if (uses[i].written && !uses[i].read)
			result = &uses[i];
	}
	if (!operand || !result)
		return;
	operand->last = max(operand->first, operand->last - 1);
	operand->again_last = max(operand->again_first, operand->again_last - 1);
	result->first = result->last;
	result->again_first = result->again_last;
}

static int compare_uses(const void *a, const void *b)
{
	const struct memory_use *x = a, *y = b;

	return SORTED_BY(x, y, tensor, place, phase, first, node);
}

/* Merge sorted uses with the same tensor, place and phase; return the new number. */
static int merge_uses(struct memory_use *uses, int count)
{
	int kept = 0;

	for (int i = 0; i < count; i++) {
		struct memory_use *into = kept > 0 ? &uses[kept - 1] : NULL;

		if (!into || into->tensor != uses[i].tensor || into->place != uses[i].place ||
		    into->phase != uses[i].phase) {
			uses[kept++] = uses[i];
			continue;
		}
		into->last = max(uses[i].last, into->last);
		if (into->again_first < 0 ||
		    (uses[i].again_first >= 0 && uses[i].again_first < into->again_first))
			into->again_first = uses[i].again_first;
		if (uses[i].again_last > into->again_last)
			into->again_last = uses[i].again_last;
		into->read |= uses[i].read;
		into->written |= uses[i].written;
		into->held |= uses[i].held;
		into->writer = into->writer < 0 ? uses[i].writer : into->writer;
	}
	return kept;
}

void memory__add_uses(struct memory_build *build)
{
	const struct ipu_graph *graph = build->graph;
	int *last_user = memory__alloc(build, (size_t)graph->tensor_count + 1, sizeof(*last_user));
	size_t most = 0;
	int count = 0;

	for (int n = 0; n < graph->node_count; n++)
		most += (size_t)graph->nodes[n].read_count + (size_t)graph->nodes[n].write_count;
	build->uses = memory__alloc(build, most + 1, sizeof(*build->uses));
	if (err_stuck(build->err))
		return;
	for (int n = 0; n < graph->node_count; n++) {
		for (int i = 0; i < graph->nodes[n].read_count; i++)
			last_user[graph->nodes[n].reads[i]] = n;
		for (int i = 0; i < graph->nodes[n].write_count; i++)
			last_user[graph->nodes[n].writes[i]] = n;
	}
	for (int n = 0; n < graph->node_count; n++) {
		const struct ipu_node *node = &graph->nodes[n];
		const int begin = count;

		if (build->when[n].first < 0)
			continue;
		for (int i = 0; i < node->read_count; i++)
			build->uses[count++] = make_use(build, n, node->reads[i]);
		for (int i = 0; i < node->write_count; i++)
			if (!list_contains(node->reads, node->read_count, node->writes[i]))
				build->uses[count++] = make_use(build, n, node->writes[i]);
		run_in_place(build, n, &build->uses[begin], count - begin, last_user);
	}
	qsort(build->uses, (size_t)count, sizeof(*build->uses), compare_uses);
	build->use_count = merge_uses(build->uses, count);
}
