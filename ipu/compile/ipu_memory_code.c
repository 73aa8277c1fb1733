/*
 * Temporaries of operations, and memory other than tensors: code of vertices, exchanges and
 * control, and its descriptors. Estimated from the plans; docs/cost-model.md gives the reason of
 * each estimate.
 *
 * Threads: none.
 */
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/compile/ipu_memory_internal.h"

/* Bytes; docs/cost-model.md, "Memory". */
#define WORKER_STACK        512
#define WORKLIST_WORKER     12
#define EXCHANGE_ENTRY      32
#define EXCHANGE_MESSAGE    4
#define MESSAGE_BYTES       256
#define PACKET_HEADER       8
#define CONTROL_INSTRUCTION 4
#define CONTROL_TABLE_ROW   4
#define CONTROL_ID          4

/* Vertex types of an IPU, and the tiles that hold their code. */
struct vertex_types {
	const char **name;
	bool **on; /* by type, by tile */
	int count;
	size_t capacity;
};

static int64_t ceil_div(int64_t value, int64_t by)
{
	return (value + by - 1) / by;
}

/* ---- temporaries ----------------------------------------------------------------------------- */

static void add_temporary(struct memory_build *build, int node, const char *what, int first,
			  int last)
{
	const struct ipu_op *op = &build->graph->nodes[node].op;
	const struct ipu_plan *plan = build->executable->plans[node];
	const int64_t bytes = plan->temporary_bytes; /* upper bound: not scaled by the batch */
	const struct memory_deal deal = {.elements = min(plan->tiles_used, build->compute_tiles),
					 .element_bytes = bytes,
					 .grain = 1,
					 .tiles = build->compute_tiles,
					 .start = memory__node_start(build, node),
					 .limit = build->compute_tiles};
	struct ipu_tile_run runs[MEMORY_RUNS];
	const struct ipu_variable variable = {
		.name = memory__name(build, "%s/temporary%s", op->name ? op->name : "", what),
		.kind = ipu_tensor_kind_name(IPU_TENSOR_TEMPORARY),
		.layer = op->layer,
		.node = node,
		.ipu = memory__device(build, op->stage),
		.category = IPU_MEMORY_NOT_ALWAYS_LIVE,
		.bytes = bytes * deal.elements,
		.first_step = first,
		.last_step = last,
		.runs = runs,
		.run_count = memory__deal(&deal, runs),
	};

	memory__add_variable(build, &variable);
}

void memory__add_temporaries(struct memory_build *build)
{
	for (int n = 0; n < build->graph->node_count && !err_stuck(build->err); n++) {
		const struct memory_when *when = &build->when[n];
		const struct ipu_plan *plan = build->executable->plans[n];

		if (plan->temporary_bytes <= 0 || plan->tiles_used <= 0)
			continue;
		if (plan->temporary_bytes > MEMORY_MOST_BYTES / build->compute_tiles) {
			err_set(build->err, ST_INVALID, "%s needs more than 4 TB while it runs",
				build->graph->nodes[n].op.name);
			return;
		}
		if (when->first >= 0)
			add_temporary(build, n, "", when->first, when->last);
		if (when->again_first >= 0)
			add_temporary(build, n, "/again", when->again_first, when->again_last);
	}
}

/* ---- code of operations ---------------------------------------------------------------------- */

struct code {
	struct memory_build *build;
	int ipu;
	int64_t *bytes[IPU_MEMORY_CATEGORIES]; /* by tile; differences until sum_runs() */
	bool *written; /* by node, the first with its function: its control code is there */
	struct vertex_types types;
};

/* Add @bytes to each of @tiles compute tiles from @start on; as differences, in constant time. */
static void add_bytes(struct code *code, enum ipu_memory_category category, int64_t start,
		      int64_t tiles, int64_t bytes)
{
	const int64_t limit = code->build->compute_tiles;
	int64_t *difference = code->bytes[category];

	if (tiles >= limit) {
		difference[0] += bytes;
		difference[limit] -= bytes;
		return;
	}
	difference[start] += bytes;
	if (start + tiles <= limit) {
		difference[start + tiles] -= bytes;
		return;
	}
	difference[limit] -= bytes;
	difference[0] += bytes;
	difference[start + tiles - limit] -= bytes;
}

/* Return the tiles that have the code of the vertex type @name, by tile; NULL: a failure. */
static bool *tiles_of_type(struct code *code, const char *name)
{
	struct vertex_types *types = &code->types;
	const size_t capacity = types->capacity == 0 ? 32 : 2 * types->capacity;
	bool *on;

	for (int i = 0; i < types->count; i++)
		if (strcmp(types->name[i], name) == 0)
			return types->on[i];
	if ((size_t)types->count == types->capacity) {
		const char **names = memory__alloc(code->build, capacity, sizeof(*names));
		bool **all = memory__alloc(code->build, capacity, sizeof(*all));

		if (err_stuck(code->build->err))
			return NULL;
		for (int i = 0; i < types->count; i++) {
			names[i] = types->name[i];
			all[i] = types->on[i];
		}
		types->name = names;
		types->on = all;
		types->capacity = capacity;
	}
	on = memory__alloc(code->build, (size_t)code->build->compute_tiles, sizeof(*on));
	if (!on)
		return NULL;
	types->on[types->count] = on;
	types->name[types->count++] = name;
	return on;
}

static void add_compute(struct code *code, int node, const struct ipu_phase *phase, int64_t start,
			int64_t tiles)
{
	const struct ipu_op *op = &code->build->graph->nodes[node].op;
	const struct ipu_plan *plan = code->build->executable->plans[node];
	const bool convolves = strstr(phase->part, "Convolve");
	const int64_t vertices = ceil_div(phase->vertices, tiles);
	const int64_t state = ipu_phase_state_bytes(plan, phase);
	const int64_t bytes = ipu_phase_code_bytes(plan, phase);
	const int64_t pointers = convolves ? plan->pointer_bytes : 0;
	bool *on;

	if (bytes == 0) { /* a copy, whose code is of Poplar's runtime */
		add_bytes(code, IPU_MEMORY_COPY_DESCRIPTOR, start, tiles, state);
		return;
	}
	add_bytes(code, IPU_MEMORY_VERTEX_INSTANCE_STATE, start, tiles, state - pointers);
	add_bytes(code, IPU_MEMORY_VECTOR_LIST_DESCRIPTOR, start, tiles, pointers);
	if (convolves || op->kind == IPU_OP_POOL)
		add_bytes(code, IPU_MEMORY_VERTEX_FIELD_DATA, start, tiles,
			  vertices * (convolves ? plan->list_bytes
						: code->build->target->workers * WORKLIST_WORKER));

	/* A tile has the code of a vertex type once. */
	on = tiles_of_type(code, phase->vertex ? phase->vertex : phase->part);
	for (int64_t i = 0; i < tiles && on; i++) {
		const int64_t tile = (start + i) % code->build->compute_tiles;

		if (!on[tile])
			add_bytes(code, IPU_MEMORY_VERTEX_CODE, tile, 1, bytes);
		on[tile] = true;
	}
}

static void add_node(struct code *code, int node)
{
	const struct ipu_plan *plan = code->build->executable->plans[node];
	const int64_t start = memory__node_start(code->build, node);

	for (int i = 0; i < plan->phase_count && !err_stuck(code->build->err); i++) {
		const struct ipu_phase *phase = &plan->phases[i];
		const int64_t tiles = phase->tiles < 1 ? 1
				      : phase->tiles < code->build->compute_tiles
					      ? phase->tiles
					      : code->build->compute_tiles;

		if (phase->kind == IPU_EXCHANGE)
			add_bytes(code, IPU_MEMORY_INTERNAL_EXCHANGE_CODE, start, tiles,
				  ipu_phase_code_bytes(plan, phase));
		else
			add_compute(code, node, phase, start, tiles);
	}
}

/* ---- code between IPUs and to the host ------------------------------------------------------- */

static void add_packets(struct code *code, const struct ipu_variable *variable,
			enum ipu_memory_category exchange, enum ipu_memory_category header)
{
	for (int i = 0; i < variable->run_count; i++) {
		const struct ipu_tile_run *run = &variable->runs[i];
		const int64_t packets = ceil_div(run->bytes, MESSAGE_BYTES);

		for (int c = 0; c < 2; c++) {
			int64_t *difference = code->bytes[c == 0 ? exchange : header];
			const int64_t bytes = c == 0 ? EXCHANGE_ENTRY + packets * EXCHANGE_MESSAGE
						     : packets * PACKET_HEADER;

			difference[run->tile] += bytes;
			difference[run->tile + run->tiles] -= bytes;
		}
	}
}

/* Return whether the host exchange accesses the variable: buffers on I/O tiles if there are such
 * tiles, otherwise the tensor itself. */
static bool exchanges_with_host(const struct memory_build *build,
				const struct ipu_variable *variable)
{
	const bool buffer = strcmp(variable->kind, "io_buffer") == 0;
	const struct ipu_tensor *tensor = variable->tensor;

	if (!tensor || (tensor->kind != IPU_TENSOR_INPUT && tensor->kind != IPU_TENSOR_LABELS &&
			tensor->kind != IPU_TENSOR_RESULT))
		return false;
	return build->memory->io_tiles > 0 ? buffer : !variable->always_live;
}

/* ---- control --------------------------------------------------------------------------------- */

/* Instructions of a step of control code; every tile executes all of it. */
static int64_t control_instructions(enum ipu_program_type type)
{
	static const uint8_t instructions[] = {
		[IPU_SEQUENCE] = 0,
		[IPU_REPEAT] = 4,
		[IPU_CALL] = 2,
		[IPU_ON_TILE_EXECUTE] = 4,
		[IPU_DO_EXCHANGE] = 3,
		[IPU_GLOBAL_EXCHANGE] = 4,
		[IPU_SYNC] = 1,
		[IPU_SYNC_ANS] = 1,
		[IPU_STREAM_COPY_BEGIN] = 3,
		[IPU_STREAM_COPY_MID] = 4,
		[IPU_STREAM_COPY_END] = 2,
		[IPU_WRITE_UNDEF] = 0,
		[IPU_SWITCH] = 6,
	};

	_Static_assert(ARRAY_LEN(instructions) == IPU_PROGRAM_TYPES, "program types out of step");
	return instructions[type];
}

static void add_instructions(struct code *code, int64_t instructions, bool compute_set)
{
	const int64_t tiles = code->build->memory->tiles;
	const int64_t bytes = CONTROL_INSTRUCTION * instructions;
	const int64_t row = compute_set ? CONTROL_TABLE_ROW : 0;

	code->bytes[IPU_MEMORY_CONTROL_CODE][0] += bytes;
	code->bytes[IPU_MEMORY_CONTROL_CODE][tiles] -= bytes;
	code->bytes[IPU_MEMORY_CONTROL_TABLE][0] += row;
	code->bytes[IPU_MEMORY_CONTROL_TABLE][tiles] -= row;
}

/* Add the control code of one executable: evaluation and prediction beside training are separate
 * executables, which are loaded in its place. The first use of a function, also by recomputation,
 * adds its code, each other one a call. */
static void add_control(struct code *code, const struct ipu_code *from)
{
	const struct memory_build *build = code->build;
	int called = -1;

	for (int i = 0; i < from->step_count; i++) {
		const struct ipu_step *step = &from->steps[i];
		const int node = step->node;
		const int next = i + 1 < from->step_count ? from->steps[i + 1].node : -1;

		if (node < 0 || !code->written[build->same[node]])
			add_instructions(code, control_instructions(step->type),
					 step->type == IPU_ON_TILE_EXECUTE);
		else if (node != called)
			add_instructions(code, control_instructions(IPU_CALL), false);
		called = node;
		if (node >= 0 && node != next && memory__is_function(&build->graph->nodes[node]))
			code->written[build->same[node]] = true;
	}
}

static void add_constant(struct code *code)
{
	const int64_t tiles = code->build->memory->tiles;
	const int64_t stack = (code->build->target->workers + 1) * WORKER_STACK;

	code->bytes[IPU_MEMORY_STACK][0] += stack;
	code->bytes[IPU_MEMORY_STACK][tiles] -= stack;
	code->bytes[IPU_MEMORY_CONTROL_ID][0] += CONTROL_ID;
	code->bytes[IPU_MEMORY_CONTROL_ID][tiles] -= CONTROL_ID;
}

/* ---- one IPU --------------------------------------------------------------------------------- */

/* Convert differences to runs of tiles with equal bytes; omit tiles without any. */
static int sum_runs(const int64_t *difference, int64_t tiles, struct ipu_tile_run *runs,
		    int64_t *total)
{
	int64_t bytes = 0;
	int count = 0;

	*total = 0;
	for (int64_t tile = 0; tile < tiles; tile++) {
		struct ipu_tile_run *run = count > 0 ? &runs[count - 1] : NULL;

		bytes += difference[tile];
		*total += bytes;
		if (bytes == 0)
			continue;
		if (run && run->bytes == bytes && run->tile + run->tiles == tile)
			run->tiles++;
		else
			runs[count++] = (struct ipu_tile_run){tile, 1, bytes};
	}
	return count;
}

static void add_categories(struct code *code, struct ipu_tile_run *runs)
{
	struct memory_build *build = code->build;

	for (int c = IPU_MEMORY_CONTROL_CODE; c < IPU_MEMORY_CATEGORIES; c++) {
		const char *name = ipu_memory_category_name((enum ipu_memory_category)c);
		struct ipu_variable variable = {
			.name = memory__name(build, "%s/IPU%d", name, code->ipu),
			.kind = name,
			.node = -1,
			.ipu = code->ipu,
			.category = (enum ipu_memory_category)c,
			.always_live = true,
			.first_step = -1,
			.last_step = -1,
			.runs = runs,
		};

		variable.run_count =
			sum_runs(code->bytes[c], build->memory->tiles, runs, &variable.bytes);
		if (variable.run_count > 0)
			memory__add_variable(build, &variable);
	}
}

static void add_ipu(struct memory_build *build, int ipu)
{
	const struct ipu_graph *graph = build->graph;
	const size_t tiles = (size_t)build->memory->tiles + 1;
	struct code code = {.build = build, .ipu = ipu};
	struct ipu_tile_run *runs = memory__alloc(build, tiles, sizeof(*runs));

	for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++)
		code.bytes[c] = memory__alloc(build, tiles, sizeof(*code.bytes[c]));
	code.written = memory__alloc(build, (size_t)graph->node_count + 1, sizeof(*code.written));
	if (err_stuck(build->err))
		return;
	for (int n = 0; n < graph->node_count; n++) {
		if (memory__device(build, graph->nodes[n].op.stage) != ipu || build->same[n] != n)
			continue;
		add_node(&code, n);
		/* Recomputation repeats whatever is not a function. */
		if (build->replayed[n] && !memory__is_function(&graph->nodes[n]))
			add_node(&code, n);
	}
	for (int s = 0; s < graph->layout.stages; s++)
		for (int p = 0; p < IPU_FUNCTION_EVALUATE && memory__device(build, s) == ipu; p++)
			add_control(&code, &build->executable->code[s][p]);
	for (int p = 0; p < build->executable->program_count; p++) {
		const enum ipu_program_type type = build->executable->programs[p].type;

		if (type == IPU_SWITCH || type == IPU_REPEAT || type == IPU_CALL)
			add_instructions(&code, control_instructions(type), false);
	}
	add_constant(&code);
	for (int v = 0; v < build->memory->variable_count; v++) {
		const struct ipu_variable *variable = &build->memory->variables[v];

		if (variable->ipu != ipu)
			continue;
		if (exchanges_with_host(build, variable))
			add_packets(&code, variable, IPU_MEMORY_HOST_EXCHANGE_CODE,
				    IPU_MEMORY_HOST_EXCHANGE_PACKET_HEADER);
		if (variable->crosses)
			add_packets(&code, variable, IPU_MEMORY_GLOBAL_EXCHANGE_CODE,
				    IPU_MEMORY_GLOBAL_EXCHANGE_PACKET_HEADER);
	}
	add_categories(&code, runs);
}

void memory__add_code(struct memory_build *build)
{
	for (int i = 0; i < build->memory->ipu_count && !err_stuck(build->err); i++)
		add_ipu(build, i);
}
