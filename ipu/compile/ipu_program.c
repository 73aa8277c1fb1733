/*
 * Lowering: an operation becomes a Sequence of its plan's phases, each a Sync and a DoExchange or
 * an OnTileExecute.
 *
 * Threads: none; an executable does not change after ipu_executable_new().
 */
#include "ipu/compile/ipu_program.h"

#include <assert.h>
#include <math.h>

#include "common/mem.h"

/* Programs and steps grow here; what is kept is copied to the executable's arena. */
struct lowering {
	struct ipu_executable *executable;
	const struct ipu_target *target;
	struct ipu_program *programs;
	size_t program_count, program_capacity;
	struct ipu_step *steps; /* of the present function */
	size_t step_count, step_capacity;
};

const char *ipu_program_type_name(enum ipu_program_type type)
{
	static const char *const names[] = {
		[IPU_SEQUENCE] = "Sequence",
		[IPU_REPEAT] = "Repeat",
		[IPU_CALL] = "Call",
		[IPU_ON_TILE_EXECUTE] = "OnTileExecute",
		[IPU_DO_EXCHANGE] = "DoExchange",
		[IPU_GLOBAL_EXCHANGE] = "GlobalExchange",
		[IPU_SYNC] = "Sync",
		[IPU_SYNC_ANS] = "SyncAns",
		[IPU_STREAM_COPY_BEGIN] = "StreamCopyBegin",
		[IPU_STREAM_COPY_MID] = "StreamCopyMid",
		[IPU_STREAM_COPY_END] = "StreamCopyEnd",
		[IPU_WRITE_UNDEF] = "WriteUndef",
	};

	_Static_assert(ARRAY_LEN(names) == IPU_PROGRAM_TYPES, "program names out of step");
	assert((unsigned)type < IPU_PROGRAM_TYPES);
	return names[type];
}

enum ipu_function_phase ipu_function_of(char phase)
{
	return phase == 'F' ? IPU_FUNCTION_F : phase == 'U' ? IPU_FUNCTION_U : IPU_FUNCTION_B;
}

/* Returns the new program's id, or -1. */
static int program_add(struct lowering *lowering, int parent, int position,
		       enum ipu_program_type type, const char *name, int node)
{
	struct ipu_program *program;

	if (!name || mem_grow(&lowering->programs, &lowering->program_capacity,
			      lowering->program_count + 1, sizeof(*program)) != 0)
		return -1;
	program = &lowering->programs[lowering->program_count];
	*program = (struct ipu_program){.parent = parent,
					.position = position,
					.type = type,
					.name = name,
					.node = node,
					.repeats = 1,
					.call_target = -1};
	return (int)lowering->program_count++;
}

static int step_add(struct lowering *lowering, const struct ipu_step *step)
{
	if (step->program < 0 || mem_grow(&lowering->steps, &lowering->step_capacity,
					  lowering->step_count + 1, sizeof(*step)) != 0)
		return -1;
	lowering->steps[lowering->step_count++] = *step;
	return 0;
}

/* A Sync, and what follows it. */
static int lower_phase(struct lowering *lowering, int sequence, int node, int index)
{
	const struct ipu_plan *plan = lowering->executable->plans[node];
	const struct ipu_phase *phase = &plan->phases[index];
	const enum ipu_program_type type =
		phase->kind == IPU_EXCHANGE ? IPU_DO_EXCHANGE : IPU_ON_TILE_EXECUTE;
	const char *name =
		arena_printf(&lowering->executable->arena, "%s/%s",
			     lowering->executable->graph->nodes[node].op.name, phase->part);
	struct ipu_step sync = {.node = node,
				.phase = index,
				.type = IPU_SYNC,
				.cycles = (int64_t)ceil(lowering->target->phase_cycles),
				.tiles = lowering->target->tiles,
				.repeats = phase->repeats};
	struct ipu_step step = {.node = node,
				.phase = index,
				.type = type,
				.cycles = phase->cycles,
				.mean_cycles = phase->mean_cycles,
				.tiles = phase->tiles,
				.bytes = phase->bytes,
				.repeats = phase->repeats};

	sync.mean_cycles = (double)sync.cycles;
	sync.program = program_add(lowering, sequence, 2 * index, IPU_SYNC, "Internal", node);
	step.program = program_add(lowering, sequence, 2 * index + 1, type, name, node);
	return step_add(lowering, &sync) || step_add(lowering, &step);
}

static int lower_node(struct lowering *lowering, int function, int position, int node)
{
	const struct ipu_plan *plan = lowering->executable->plans[node];
	int sequence = program_add(lowering, function, position, IPU_SEQUENCE,
				   lowering->executable->graph->nodes[node].op.name, node);

	if (sequence < 0)
		return -1;
	for (int i = 0; i < plan->phase_count; i++)
		if (lower_phase(lowering, sequence, node, i) != 0)
			return -1;
	return 0;
}

static int code_close(struct lowering *lowering, struct ipu_code *code)
{
	code->step_count = (int)lowering->step_count;
	code->steps = arena_alloc(&lowering->executable->arena, lowering->step_count,
				  sizeof(*code->steps));
	if (!code->steps && code->step_count > 0)
		return -1;
	for (int i = 0; i < code->step_count; i++) {
		const struct ipu_step *step = &lowering->steps[i];
		const int64_t cycles = step->cycles * step->repeats;

		code->steps[i] = *step;
		code->cycles += cycles;
		if (step->type == IPU_DO_EXCHANGE)
			code->exchange_cycles += cycles;
		else if (step->type == IPU_SYNC)
			code->sync_cycles += cycles;
	}
	lowering->step_count = 0;
	return 0;
}

static int lower_function(struct lowering *lowering, int stage, char phase)
{
	const struct ipu_graph *graph = lowering->executable->graph;
	struct ipu_code *code = &lowering->executable->code[stage][ipu_function_of(phase)];
	int position = 0;

	code->program = program_add(
		lowering, -1, stage * IPU_FUNCTION_PHASES + (int)ipu_function_of(phase),
		IPU_SEQUENCE,
		arena_printf(&lowering->executable->arena, "Stage%d/%c", stage, phase), -1);
	if (code->program < 0)
		return -1;
	for (int n = 0; n < graph->node_count; n++)
		if (ipu_node_in(&graph->nodes[n], stage, phase) &&
		    lower_node(lowering, code->program, position++, n) != 0)
			return -1;
	return code_close(lowering, code);
}

static enum status plan_nodes(struct ipu_executable *executable, struct ipu_planner *planner,
			      struct err *err)
{
	const struct ipu_graph *graph = executable->graph;
	enum status status = ST_OK;

	executable->plans = arena_alloc(&executable->arena, (size_t)graph->node_count + 1,
					sizeof(*executable->plans));
	executable->code = arena_alloc(&executable->arena, (size_t)graph->layout.stages,
				       sizeof(*executable->code));
	if (!executable->plans || !executable->code)
		return err_nomem(err);
	for (int n = 0; n < graph->node_count && status == ST_OK; n++)
		status = ipu_planner_plan(planner, &graph->nodes[n].op, &graph->nodes[n].options,
					  &executable->plans[n], err);
	return status;
}

static int keep_programs(struct lowering *lowering)
{
	struct ipu_executable *executable = lowering->executable;

	executable->program_count = (int)lowering->program_count;
	executable->programs = arena_alloc(&executable->arena, lowering->program_count + 1,
					   sizeof(*executable->programs));
	if (!executable->programs)
		return -1;
	for (size_t i = 0; i < lowering->program_count; i++)
		executable->programs[i] = lowering->programs[i];
	return 0;
}

enum status ipu_executable_new(struct ipu_executable **out, const struct ipu_graph *graph,
			       struct ipu_planner *planner, const struct ipu_target *target,
			       struct err *err)
{
	static const char phases[] = {'F', 'B', 'U'};
	struct lowering lowering = {.target = target};
	struct ipu_executable *executable = mem_calloc(1, sizeof(*executable));
	enum status status;
	int failed = 0;

	*out = NULL;
	if (!executable || arena_init(&executable->arena, 0) != 0) {
		mem_free(executable);
		return err_nomem(err);
	}
	executable->graph = graph;
	lowering.executable = executable;
	status = plan_nodes(executable, planner, err);
	for (int s = 0; s < graph->layout.stages && status == ST_OK; s++)
		for (size_t p = 0; p < ARRAY_LEN(phases) && !failed; p++)
			failed = lower_function(&lowering, s, phases[p]);
	if (status == ST_OK && (failed || keep_programs(&lowering) != 0))
		status = err_nomem(err);
	mem_free(lowering.programs);
	mem_free(lowering.steps);
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
