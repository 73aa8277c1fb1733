/*
 * Memory model of an executable: construction, liveness, queries by tile, and the report of an
 * overflow: the fullest tile, its largest variables, and remedies, each evaluated on the model.
 *
 * Liveness is a sweep over the program steps. Bytes live at the same time are summed; fragmentation
 * of an allocator is ignored.
 *
 * Threads: none; a memory is immutable after ipu_memory_new().
 */
#include "ipu/compile/ipu_memory.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "ipu/compile/ipu_memory_internal.h"

static const struct {
	const char *name;
	bool code; /* allocated in non-interleaved memory */
} categories[] = {
	[IPU_MEMORY_VARIABLES] = {"variables", false},
	[IPU_MEMORY_NOT_ALWAYS_LIVE] = {"notAlwaysLiveVariables", false},
	[IPU_MEMORY_CONTROL_CODE] = {"controlCode", true},
	[IPU_MEMORY_VERTEX_CODE] = {"vertexCode", true},
	[IPU_MEMORY_VERTEX_INSTANCE_STATE] = {"vertexInstanceState", true},
	[IPU_MEMORY_VERTEX_FIELD_DATA] = {"vertexFieldData", true},
	[IPU_MEMORY_VECTOR_LIST_DESCRIPTOR] = {"vectorListDescriptor", true},
	[IPU_MEMORY_COPY_DESCRIPTOR] = {"copyDescriptor", true},
	[IPU_MEMORY_INTERNAL_EXCHANGE_CODE] = {"internalExchangeCode", true},
	[IPU_MEMORY_HOST_EXCHANGE_CODE] = {"hostExchangeCode", true},
	[IPU_MEMORY_GLOBAL_EXCHANGE_CODE] = {"globalExchangeCode", true},
	[IPU_MEMORY_HOST_EXCHANGE_PACKET_HEADER] = {"hostExchangePacketHeader", true},
	[IPU_MEMORY_GLOBAL_EXCHANGE_PACKET_HEADER] = {"globalExchangePacketHeader", true},
	[IPU_MEMORY_CONTROL_TABLE] = {"controlTable", true},
	[IPU_MEMORY_CONTROL_ID] = {"controlId", true},
	[IPU_MEMORY_STACK] = {"stack", true},
};
_Static_assert(ARRAY_LEN(categories) == IPU_MEMORY_CATEGORIES, "categories out of step");

const char *ipu_memory_category_name(enum ipu_memory_category category)
{
	assert((unsigned)category < IPU_MEMORY_CATEGORIES);
	return categories[category].name;
}

const char *ipu_memory_region_name(enum ipu_memory_region region)
{
	static const char *const names[] = {
		[IPU_MEMORY_NON_INTERLEAVED] = "nonInterleaved",
		[IPU_MEMORY_INTERLEAVED] = "interleaved",
		[IPU_MEMORY_OVERFLOWED] = "overflowed",
	};

	_Static_assert(ARRAY_LEN(names) == IPU_MEMORY_REGIONS, "regions out of step");
	assert((unsigned)region < IPU_MEMORY_REGIONS);
	return names[region];
}

/* ---- queries --------------------------------------------------------------------------------- */

int64_t ipu_memory_tile_bytes(const struct ipu_memory *memory, int ipu, int64_t tile)
{
	int64_t bytes = 0;

	assert(ipu >= 0 && ipu < memory->ipu_count && tile >= 0 && tile < memory->tiles);
	for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++)
		bytes += memory->ipus[ipu].category[c][tile];
	return bytes;
}

int64_t ipu_memory_tile_limit(const struct ipu_memory *memory, int64_t tile)
{
	return tile < memory->tiles - memory->io_tiles ? memory->bytes_per_tile
						       : memory->io_bytes_per_tile;
}

void ipu_memory_regions(const struct ipu_memory *memory, int ipu, int64_t tile,
			int64_t bytes[IPU_MEMORY_CATEGORIES][IPU_MEMORY_REGIONS])
{
	const int64_t limit = ipu_memory_tile_limit(memory, tile);
	const int64_t interleaved = min(memory->interleaved_bytes, limit);
	int64_t room[] = {[IPU_MEMORY_NON_INTERLEAVED] = limit - interleaved,
			  [IPU_MEMORY_INTERLEAVED] = interleaved};

	for (int pass = 0; pass < 2; pass++) {
		for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++) {
			int64_t left = memory->ipus[ipu].category[c][tile];

			if (categories[c].code != (pass == 0))
				continue;
			for (int r = 0; r < IPU_MEMORY_OVERFLOWED; r++) {
				const int region = pass == 0 ? r : IPU_MEMORY_OVERFLOWED - 1 - r;

				bytes[c][region] = min(left, room[region]);
				left -= bytes[c][region];
				room[region] -= bytes[c][region];
			}
			bytes[c][IPU_MEMORY_OVERFLOWED] = left;
		}
	}
}

int64_t ipu_variable_on_tile(const struct ipu_variable *variable, int64_t tile)
{
	int64_t bytes = 0;

	for (int i = 0; i < variable->run_count; i++) {
		const struct ipu_tile_run *run = &variable->runs[i];

		if (tile >= run->tile && tile < run->tile + run->tiles)
			bytes += run->bytes;
	}
	return bytes;
}

int64_t ipu_memory_peak(const struct ipu_memory *memory)
{
	int64_t most = 0;

	for (int i = 0; i < memory->ipu_count; i++)
		if (memory->ipus[i].peak_bytes > most)
			most = memory->ipus[i].peak_bytes;
	return most;
}

bool ipu_memory_fits(const struct ipu_memory *memory)
{
	for (int i = 0; i < memory->ipu_count; i++)
		if (memory->ipus[i].tiles_over > 0)
			return false;
	return true;
}

/* ---- liveness -------------------------------------------------------------------------------- */

/* Lists of an IPU's variables by their first or last step; -1 ends a list. */
struct sweep {
	struct memory_build *build;
	struct ipu_memory_ipu *ipu;
	int *begins, *ends;           /* by step: head of the list */
	int *next_begin, *next_end;   /* by variable */
	int64_t *live;                /* by tile, at the current step */
	struct ipu_memory_step *step; /* by step */
};

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
			int64_t *category = sweep->ipu->category[variable->category];

			sweep->ipu->always_live_bytes += variable->bytes;
			for (int i = 0; i < variable->run_count; i++) {
				const struct ipu_tile_run *run = &variable->runs[i];

				for (int64_t tile = run->tile; tile < run->tile + run->tiles;
				     tile++)
					category[tile] += run->bytes;
			}
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

static void sweep_ipu(struct memory_build *build, int number)
{
	struct ipu_memory *memory = build->memory;
	struct ipu_memory_ipu *ipu = &memory->ipus[number];
	const size_t tiles = (size_t)memory->tiles, steps = (size_t)ipu->step_count + 1;
	const size_t variables = (size_t)memory->variable_count + 1;
	struct sweep sweep = {.build = build, .ipu = ipu};
	double worst = -1;

	for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++)
		ipu->category[c] = memory__alloc(build, tiles, sizeof(*ipu->category[c]));
	ipu->tile_peak_step = memory__alloc(build, tiles, sizeof(*ipu->tile_peak_step));
	sweep.live = memory__alloc(build, tiles, sizeof(*sweep.live));
	sweep.begins = memory__alloc(build, steps, sizeof(*sweep.begins));
	sweep.ends = memory__alloc(build, steps, sizeof(*sweep.ends));
	sweep.next_begin = memory__alloc(build, variables, sizeof(*sweep.next_begin));
	sweep.next_end = memory__alloc(build, variables, sizeof(*sweep.next_end));
	sweep.step = memory__alloc(build, steps, sizeof(*sweep.step));
	if (err_stuck(build->err))
		return;
	for (int s = 0; s < ipu->step_count; s++)
		sweep.step[s] = ipu->steps[s];
	ipu->steps = sweep.step;
	ipu->peak_step = -1;
	link_variables(&sweep, number);
	sweep_steps(&sweep);
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

static void add_liveness(struct memory_build *build)
{
	for (int i = 0; i < build->memory->ipu_count && !err_stuck(build->err); i++)
		sweep_ipu(build, i);
}

/* ---- construction ---------------------------------------------------------------------------- */

void *memory__alloc(struct memory_build *build, size_t count, size_t size)
{
	void *out = err_stuck(build->err) ? NULL : arena_alloc(&build->memory->arena, count, size);

	if (!out && !err_stuck(build->err))
		err_nomem(build->err);
	return out;
}

const char *memory__name(struct memory_build *build, const char *format, ...)
{
	const char *name;
	va_list args;

	va_start(args, format);
	name = arena_vprintf(&build->memory->arena, format, args);
	va_end(args);
	if (!name && !err_stuck(build->err))
		err_nomem(build->err);
	return name ? name : "";
}

void memory__add_variable(struct memory_build *build, const struct ipu_variable *variable)
{
	struct ipu_memory *memory = build->memory;
	const size_t count = (size_t)memory->variable_count;
	const size_t run_bytes = (size_t)variable->run_count * sizeof(*variable->runs);
	struct ipu_tile_run *runs;

	if (err_stuck(build->err) || variable->bytes == 0 ||
	    (!variable->always_live && variable->first_step < 0))
		return;
	if (count >= MEMORY_MOST_VARIABLES) {
		err_set(build->err, ST_INVALID,
			"more than %d variables on the IPUs cannot be placed",
			MEMORY_MOST_VARIABLES);
		return;
	}
	runs = memory__alloc(build, (size_t)variable->run_count, sizeof(*runs));
	if (!runs || mem_grow(&memory->variables, &build->variable_capacity, count + 1,
			      sizeof(*memory->variables)) != 0) {
		err_nomem(build->err);
		return;
	}
	memcpy(runs, variable->runs, run_bytes);
	memory->variables[count] = *variable;
	memory->variables[count].runs = runs;
	memory->variable_count++;
}

static void set_layout(struct memory_build *build)
{
	struct ipu_memory *memory = build->memory;
	const struct ipu_layout *layout = &build->graph->layout;
	const struct ipu_target *target = build->target;

	memory->tiles = target->tiles;
	memory->io_tiles = layout->io_tiles < target->tiles ? layout->io_tiles : target->tiles - 1;
	memory->bytes_per_tile = target->bytes_per_tile;
	memory->interleaved_bytes = target->interleaved_bytes;
	memory->io_bytes_per_tile = target->bytes_per_tile;
	if (layout->io_memory_proportion > 0 && layout->io_memory_proportion < 1)
		memory->io_bytes_per_tile =
			(int64_t)(layout->io_memory_proportion * (double)target->bytes_per_tile);
	build->compute_tiles = memory->tiles - memory->io_tiles;

	build->schedule = layout->schedule ? layout->schedule : layout->forward;
	build->training = layout->schedule != NULL;
	build->streaming = build->schedule && layout->stages > 1 &&
			   ipu_schedule_row(build->schedule->kind)->pace != IPU_PACE_ALONE;
	build->grouped =
		build->streaming && ipu_schedule_row(build->schedule->kind)->pace == IPU_PACE_BOTH;
	build->replays_late = !build->streaming ||
			      layout->recompute == IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED;
	memory->ipu_count = build->schedule ? build->schedule->ipus : 1;
	memory->ipus = memory__alloc(build, (size_t)memory->ipu_count + 1, sizeof(*memory->ipus));
}

/* Build the whole memory for a batch smaller by @batch_divisor; @graph may differ from the
 * executable's in its layout, but has the same operations. */
static enum status memory_build_for(struct ipu_memory **out,
				    const struct ipu_executable *executable,
				    const struct ipu_graph *graph, const struct ipu_target *target,
				    int64_t batch_divisor, struct err *err)
{
	static void (*const parts[])(struct memory_build *) = {
		set_layout,       memory__add_functions, memory__add_stashes,     memory__add_steps,
		memory__add_uses, memory__add_tensors,   memory__add_temporaries, memory__add_code,
		add_liveness,
	};
	struct memory_build build = {.executable = executable,
				     .graph = graph,
				     .target = target,
				     .batch_divisor = batch_divisor};
	struct err own;

	*out = NULL;
	build.err = err_start(err, &own);
	build.memory = mem_calloc(1, sizeof(*build.memory));
	if (!build.memory || arena_init(&build.memory->arena, 0) != 0) {
		mem_free(build.memory);
		return err_nomem(err);
	}
	build.memory->graph = graph;
	for (size_t i = 0; i < ARRAY_LEN(parts) && !err_stuck(build.err); i++)
		parts[i](&build);
	if (err_stuck(build.err)) {
		ipu_memory_free(build.memory);
		return build.err->status;
	}
	*out = build.memory;
	return ST_OK;
}

enum status ipu_memory_new(struct ipu_memory **out, const struct ipu_executable *executable,
			   const struct ipu_target *target, struct err *err)
{
	return memory_build_for(out, executable, executable->graph, target, 1, err);
}

void ipu_memory_free(struct ipu_memory *memory)
{
	if (!memory)
		return;
	mem_free(memory->variables);
	arena_fini(&memory->arena);
	mem_free(memory);
}

/* ---- report of an overflow ------------------------------------------------------------------- */

#define OFFENDERS 3

/* Return how full the fullest tile is, relative to its limit: I/O tiles have another one. */
static double worst_share(const struct ipu_memory *memory, int ipu)
{
	const struct ipu_memory_ipu *of = &memory->ipus[ipu];

	return (double)of->worst_bytes /
	       (double)max(ipu_memory_tile_limit(memory, of->worst_tile), INT64_C(1));
}

static int worst_ipu(const struct ipu_memory *memory)
{
	int worst = 0;

	for (int i = 1; i < memory->ipu_count; i++)
		if (worst_share(memory, i) > worst_share(memory, worst))
			worst = i;
	return worst;
}

static bool lives_at(const struct ipu_variable *variable, int ipu, int step)
{
	return variable->ipu == ipu && (variable->always_live || (step >= variable->first_step &&
								  step <= variable->last_step));
}

/* Find the largest variables on a tile at a step, in descending order; return their number. */
static int find_offenders(const struct ipu_memory *memory, int ipu, int64_t tile, int step,
			  const struct ipu_variable *offenders[OFFENDERS])
{
	int count = 0;

	for (int v = 0; v < memory->variable_count; v++) {
		const struct ipu_variable *variable = &memory->variables[v];
		const int64_t bytes = ipu_variable_on_tile(variable, tile);
		int at;

		if (bytes == 0 || !lives_at(variable, ipu, step))
			continue;
		for (at = count; at > 0; at--) {
			if (ipu_variable_on_tile(offenders[at - 1], tile) >= bytes)
				break;
			if (at < OFFENDERS)
				offenders[at] = offenders[at - 1];
		}
		if (at < OFFENDERS)
			offenders[at] = variable;
		count += count < OFFENDERS;
	}
	return count;
}

static void describe_overflow(struct str *text, const struct ipu_memory *memory, int ipu)
{
	const struct ipu_memory_ipu *of = &memory->ipus[ipu];
	const int step = of->tile_peak_step[of->worst_tile];
	const struct ipu_variable *offenders[OFFENDERS] = {NULL};
	int count = find_offenders(memory, ipu, of->worst_tile, step, offenders);
	char bytes[FMT_SIZE], limit[FMT_SIZE];
	const char *name = NULL;

	if (step >= 0 && step < of->step_count && of->steps[step].node >= 0)
		name = memory->graph->nodes[of->steps[step].node].op.name;
	str_addf(text,
		 "IPU %d is out of memory on %d of %lld tiles: tile %lld needs %s of %s bytes", ipu,
		 of->tiles_over, (long long)memory->tiles, (long long)of->worst_tile,
		 fmt_count(bytes, of->worst_bytes),
		 fmt_count(limit, ipu_memory_tile_limit(memory, of->worst_tile)));
	str_addf(text, " at %s; largest there:", name ? name : "its end");
	for (int i = 0; i < count; i++)
		str_addf(text, "%s %s %s", i > 0 ? "," : "", offenders[i]->name,
			 fmt_count(bytes, ipu_variable_on_tile(offenders[i], of->worst_tile)));
}

/* ---- remedies -------------------------------------------------------------------------------- */

static void recompute(struct ipu_layout *layout)
{
	if (layout->recompute == IPU_RECOMPUTE_NONE)
		layout->recompute = IPU_RECOMPUTE_THEN_BACKPROPAGATE;
}

static void offload_activations(struct ipu_layout *layout)
{
	layout->offload_activations = true;
}

static void offload_optimizer(struct ipu_layout *layout)
{
	layout->offload_optimizer_state = true;
}

static void offload_accumulators(struct ipu_layout *layout)
{
	layout->offload_accumulators = true;
}

static void shard_optimizer(struct ipu_layout *layout)
{
	layout->shard_optimizer_state = true;
}

static void change_nothing(struct ipu_layout *layout)
{
	(void)layout;
}

static const struct {
	const char *name;
	void (*change)(struct ipu_layout *layout);
	int64_t batch_divisor;
	int least_stages; /* 2: an option of pipelines only */
	bool remote;      /* needs streaming memory */
} remedies[] = {
	{"recomputation", recompute, 1, 2, false},
	{"offloaded activations", offload_activations, 1, 2, true},
	{"offloaded optimizer state", offload_optimizer, 1, 2, true},
	{"offloaded gradient accumulators", offload_accumulators, 1, 2, true},
	{"sharded optimizer state", shard_optimizer, 1, 2, false},
	{"half the batch", change_nothing, 2, 1, false},
	{"a quarter of the batch", change_nothing, 4, 1, false},
};

/* List remedies that save at least 1 % and what the fullest tile would need with them. */
static enum status describe_remedies(struct str *text, const struct ipu_memory *memory,
				     const struct ipu_executable *executable,
				     const struct ipu_target *target, struct err *err)
{
	const double needed = worst_share(memory, worst_ipu(memory));
	bool any = false;

	for (size_t i = 0; i < ARRAY_LEN(remedies); i++) {
		struct ipu_graph graph = *memory->graph;
		struct ipu_memory *changed;
		char bytes[FMT_SIZE];
		enum status status;

		if (remedies[i].batch_divisor > graph.layout.batch ||
		    remedies[i].least_stages > graph.layout.stages ||
		    (remedies[i].remote && target->remote_bytes_second <= 0))
			continue;
		remedies[i].change(&graph.layout);
		status = memory_build_for(&changed, executable, &graph, target,
					  remedies[i].batch_divisor, err);
		if (status != ST_OK)
			return status;
		if (worst_share(changed, worst_ipu(changed)) < 0.99 * needed) {
			str_addf(text, "%s %s %s%s", any ? "," : "; would need:", remedies[i].name,
				 fmt_count(bytes, changed->ipus[worst_ipu(changed)].worst_bytes),
				 ipu_memory_fits(changed) ? " (fits)" : "");
			any = true;
		}
		ipu_memory_free(changed);
	}
	return ST_OK;
}

/* Report the least number of IPUs. Every IPU needs its own stacks; the rest can be divided. */
static void describe_ipus_needed(struct str *text, const struct ipu_memory *memory, int ipu)
{
	const struct ipu_memory_ipu *of = &memory->ipus[ipu];
	const int64_t limit = ipu_memory_tile_limit(memory, of->worst_tile);
	const int64_t stack = of->category[IPU_MEMORY_STACK][of->worst_tile];

	if (limit > stack)
		str_addf(text, "; what is on IPU %d takes at least %lld IPUs", ipu,
			 (long long)((of->worst_bytes - stack + limit - stack - 1) /
				     (limit - stack)));
}

enum status ipu_memory_check(const struct ipu_memory *memory,
			     const struct ipu_executable *executable,
			     const struct ipu_target *target, struct err *err)
{
	const int ipu = worst_ipu(memory);
	struct str text = {0};
	enum status status;

	if (ipu_memory_fits(memory))
		return ST_OK;
	describe_overflow(&text, memory, ipu);
	status = describe_remedies(&text, memory, executable, target, err);
	describe_ipus_needed(&text, memory, ipu);
	if (status == ST_OK)
		status = text.failed ? err_nomem(err)
				     : err_set(err, ST_FAILED, "%s", str_peek(&text));
	str_free(&text);
	return status;
}
