/*
 * Liveness on an IPU and on each of its tiles: a sweep over the program steps. Bytes live at the
 * same time are summed; fragmentation of an allocator is ignored.
 *
 * Threads: none.
 */
#include <assert.h>

#include "common/mem.h"
#include "ipu/compile/ipu_memory_internal.h"

/* Lists of an IPU's variables by their first or last step; -1 ends a list. */
struct sweep {
	struct memory_build *build;
	struct ipu_memory_ipu *ipu;
	int *begins, *ends;           /* by step: head of the list */
	int *next_begin, *next_end;   /* by variable */
	int64_t *live;                /* by tile, at the current step */
	struct ipu_memory_step *step; /* by step */
};

static void add_always(struct ipu_memory_ipu *ipu, const struct ipu_variable *variable)
{
	int64_t *category = ipu->category[variable->category];

	ipu->always_live_bytes += variable->bytes;
	for (int i = 0; i < variable->run_count; i++) {
		const struct ipu_tile_run *run = &variable->runs[i];

		for (int64_t tile = run->tile; tile < run->tile + run->tiles; tile++)
			category[tile] += run->bytes;
	}
}

static void begin_variable(struct sweep *sweep, const struct ipu_variable *variable, int step)
{
	int64_t *most = sweep->ipu->category[IPU_MEMORY_NOT_ALWAYS_LIVE];

	for (int i = 0; i < variable->run_count; i++) {
		const struct ipu_tile_run *run = &variable->runs[i];

		for (int64_t tile = run->tile; tile < run->tile + run->tiles; tile++) {
			sweep->live[tile] += run->bytes;
			if (sweep->live[tile] > most[tile]) {
				most[tile] = sweep->live[tile];
				sweep->ipu->tile_peak_step[tile] = step;
			}
		}
	}
}

static void end_variable(struct sweep *sweep, const struct ipu_variable *variable)
{
	for (int i = 0; i < variable->run_count; i++) {
		const struct ipu_tile_run *run = &variable->runs[i];

		for (int64_t tile = run->tile; tile < run->tile + run->tiles; tile++)
			sweep->live[tile] -= run->bytes;
	}
}

static void link_variables(struct sweep *sweep, int number)
{
	const struct ipu_memory *memory = sweep->build->memory;

	for (int s = 0; s < sweep->ipu->step_count; s++)
		sweep->begins[s] = sweep->ends[s] = -1;
	for (int v = memory->variable_count - 1; v >= 0; v--) {
		const struct ipu_variable *variable = &memory->variables[v];

		if (variable->ipu != number)
			continue;
		if (variable->always_live) {
			add_always(sweep->ipu, variable);
			continue;
		}
		assert(variable->first_step >= 0 && variable->first_step <= variable->last_step &&
		       variable->last_step < sweep->ipu->step_count);
		sweep->next_begin[v] = sweep->begins[variable->first_step];
		sweep->begins[variable->first_step] = v;
		sweep->next_end[v] = sweep->ends[variable->last_step];
		sweep->ends[variable->last_step] = v;
	}
}

static void sweep_steps(struct sweep *sweep)
{
	const struct ipu_variable *variables = sweep->build->memory->variables;
	struct ipu_memory_ipu *ipu = sweep->ipu;
	int64_t live = 0, most = 0;

	for (int s = 0; s < ipu->step_count; s++) {
		for (int v = s > 0 ? sweep->ends[s - 1] : -1; v >= 0; v = sweep->next_end[v]) {
			end_variable(sweep, &variables[v]);
			live -= variables[v].bytes;
		}
		for (int v = sweep->begins[s]; v >= 0; v = sweep->next_begin[v]) {
			begin_variable(sweep, &variables[v], s);
			live += variables[v].bytes;
		}
		sweep->step[s].not_always_live_bytes = live;
		if (ipu->peak_step < 0 || live > most) {
			most = live;
			ipu->peak_step = s;
		}
	}
	ipu->peak_bytes = ipu->always_live_bytes + most;
}

static void find_worst(const struct ipu_memory *memory, int number)
{
	struct ipu_memory_ipu *ipu = &memory->ipus[number];
	double worst = -1;

	for (int64_t tile = 0; tile < memory->tiles; tile++) {
		const int64_t bytes = ipu_memory_tile_bytes(memory, number, tile);
		const int64_t limit = ipu_memory_tile_limit(memory, tile);
		const double share = (double)bytes / (double)limit;

		ipu->tiles_over += bytes > limit;
		if (share > worst) {
			worst = share;
			ipu->worst_tile = tile;
			ipu->worst_bytes = bytes;
		}
	}
}

static enum status sweep_ipu(struct memory_build *build, int number)
{
	struct ipu_memory *memory = build->memory;
	struct arena *arena = &memory->arena;
	struct ipu_memory_ipu *ipu = &memory->ipus[number];
	const size_t tiles = (size_t)memory->tiles, steps = (size_t)ipu->step_count + 1;
	const size_t variables = (size_t)memory->variable_count + 1;
	struct sweep sweep = {.build = build, .ipu = ipu};

	for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++)
		ipu->category[c] = arena_alloc(arena, tiles, sizeof(*ipu->category[c]));
	ipu->tile_peak_step = arena_alloc(arena, tiles, sizeof(*ipu->tile_peak_step));
	sweep.live = arena_alloc(arena, tiles, sizeof(*sweep.live));
	sweep.begins = arena_alloc(arena, steps, sizeof(*sweep.begins));
	sweep.ends = arena_alloc(arena, steps, sizeof(*sweep.ends));
	sweep.next_begin = arena_alloc(arena, variables, sizeof(*sweep.next_begin));
	sweep.next_end = arena_alloc(arena, variables, sizeof(*sweep.next_end));
	sweep.step = arena_alloc(arena, steps, sizeof(*sweep.step));
	for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++)
		if (!ipu->category[c])
			return err_nomem(build->err);
	if (!ipu->tile_peak_step || !sweep.live || !sweep.begins || !sweep.ends ||
	    !sweep.next_begin || !sweep.next_end || !sweep.step)
		return err_nomem(build->err);
	for (int s = 0; s < ipu->step_count; s++)
		sweep.step[s] = ipu->steps[s];
	ipu->steps = sweep.step;
	ipu->peak_step = -1;
	link_variables(&sweep, number);
	sweep_steps(&sweep);
	find_worst(memory, number);
	return ST_OK;
}

enum status memory__add_liveness(struct memory_build *build)
{
	enum status status = ST_OK;

	for (int i = 0; i < build->memory->ipu_count && status == ST_OK; i++)
		status = sweep_ipu(build, i);
	return status;
}
