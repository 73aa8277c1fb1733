/*
 * Memory model of an executable: construction and queries by tile.
 *
 * Threads: none; a memory is immutable after ipu_memory_new().
 */
#include "ipu/compile/ipu_memory.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
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

/* Move up to @room of @bytes to a region: subtract from both, return the bytes moved. */
static int64_t allot(int64_t *bytes, int64_t *room)
{
	const int64_t taken = *bytes < *room ? *bytes : *room;

	*bytes -= taken;
	*room -= taken;
	return taken;
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

				bytes[c][region] = allot(&left, &room[region]);
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

/* ---- construction ---------------------------------------------------------------------------- */

enum status memory__add_variable(struct memory_build *build, const struct ipu_variable *variable)
{
	struct ipu_memory *memory = build->memory;
	const size_t count = (size_t)memory->variable_count;
	const size_t run_bytes = (size_t)variable->run_count * sizeof(*variable->runs);
	struct ipu_tile_run *runs;

	if (variable->bytes == 0 || (!variable->always_live && variable->first_step < 0))
		return ST_OK;
	if (count >= MEMORY_MOST_VARIABLES)
		return err_set(build->err, ST_INVALID,
			       "more than %d variables on the IPUs cannot be placed",
			       MEMORY_MOST_VARIABLES);
	runs = arena_alloc(&memory->arena, (size_t)variable->run_count, sizeof(*runs));
	if (!runs || mem_grow(&memory->variables, &build->variable_capacity, count + 1,
			      sizeof(*memory->variables)) != 0)
		return err_nomem(build->err);
	memcpy(runs, variable->runs, run_bytes);
	memory->variables[count] = *variable;
	memory->variables[count].runs = runs;
	memory->variable_count++;
	return ST_OK;
}

static void set_tiles(struct memory_build *build)
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
}

static enum ipu_schedule_pace pace_of(const struct memory_build *build)
{
	return ipu_schedule_row(build->schedule->kind)->pace;
}

static enum status set_layout(struct memory_build *build)
{
	struct ipu_memory *memory = build->memory;
	const struct ipu_layout *layout = &build->graph->layout;

	build->schedule = layout->schedule ? layout->schedule : layout->forward;
	build->training = layout->schedule != NULL;
	build->streaming =
		build->schedule && layout->stages > 1 && pace_of(build) != IPU_PACE_ALONE;
	build->grouped = build->streaming && pace_of(build) == IPU_PACE_BOTH;
	build->replays_late = !build->streaming ||
			      layout->recompute == IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED;
	memory->ipu_count = build->schedule ? build->schedule->ipus : 1;
	memory->ipus =
		arena_alloc(&memory->arena, (size_t)memory->ipu_count + 1, sizeof(*memory->ipus));
	return memory->ipus ? ST_OK : err_nomem(build->err);
}

static enum status build_all(struct memory_build *build)
{
	static enum status (*const parts[])(struct memory_build *) = {
		set_layout,
		memory__add_functions,
		memory__add_stashes,
		memory__add_steps,
		memory__add_uses,
		memory__add_tensors,
		memory__add_temporaries,
		memory__add_code,
		memory__add_liveness,
	};
	enum status status = ST_OK;

	set_tiles(build);
	for (size_t i = 0; i < ARRAY_LEN(parts) && status == ST_OK; i++)
		status = parts[i](build);
	return status;
}

enum status memory__build(struct ipu_memory **out, const struct ipu_executable *executable,
			  const struct ipu_graph *graph, const struct ipu_target *target,
			  int64_t batch_divisor, struct err *err)
{
	struct memory_build build = {.executable = executable,
				     .graph = graph,
				     .target = target,
				     .batch_divisor = batch_divisor,
				     .err = err};
	enum status status;

	*out = NULL;
	build.memory = mem_calloc(1, sizeof(*build.memory));
	if (!build.memory || arena_init(&build.memory->arena, 0) != 0) {
		mem_free(build.memory);
		return err_nomem(err);
	}
	build.memory->graph = graph;
	status = build_all(&build);
	if (status != ST_OK) {
		ipu_memory_free(build.memory);
		return status;
	}
	*out = build.memory;
	return ST_OK;
}

enum status ipu_memory_new(struct ipu_memory **out, const struct ipu_executable *executable,
			   const struct ipu_target *target, struct err *err)
{
	return memory__build(out, executable, executable->graph, target, 1, err);
}

void ipu_memory_free(struct ipu_memory *memory)
{
	if (!memory)
		return;
	mem_free(memory->variables);
	arena_fini(&memory->arena);
	mem_free(memory);
}
