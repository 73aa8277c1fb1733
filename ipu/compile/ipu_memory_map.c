/*
 * Tile mapping: how elements are distributed, and which tiles a tensor occupies. Deterministic.
 *
 * Threads: none.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "ipu/compile/ipu_memory_internal.h"

static bool is_planned(const struct ipu_op *op)
{
	return op->kind == IPU_OP_CONV || op->kind == IPU_OP_MATMUL;
}

/* ---- distribution ---------------------------------------------------------------------------- */

/* Append a run that may wrap around from the last tile to the first. */
static int add_run(struct ipu_tile_run *runs, int count, const struct memory_deal *deal,
		   int64_t first, int64_t tiles, int64_t bytes)
{
	const int64_t tile = (deal->start + first) % deal->limit;
	const int64_t before = min(deal->limit - tile, tiles);

	if (tiles == 0 || bytes == 0)
		return count;
	runs[count++] = (struct ipu_tile_run){tile, before, bytes};
	if (before < tiles)
		runs[count++] = (struct ipu_tile_run){0, tiles - before, bytes};
	return count;
}

int memory__deal(const struct memory_deal *deal, struct ipu_tile_run runs[MEMORY_RUNS])
{
	const int64_t grains = (deal->elements + deal->grain - 1) / deal->grain;
	const int64_t tiles = min(deal->tiles, grains);
	const int64_t grain_bytes = deal->grain * deal->element_bytes;
	int64_t each, more, missing;
	int count = 0;

	if (deal->elements == 0)
		return 0;
	assert(tiles >= 1 && tiles <= deal->limit);
	each = grains / tiles;
	more = grains % tiles;
	missing = (grains * deal->grain - deal->elements) * deal->element_bytes;
	if (missing == 0)
		count = add_run(runs, count, deal, more, tiles - more, each * grain_bytes);
	else
		count = add_run(runs, count, deal, more, tiles - more - 1, each * grain_bytes);
	count = add_run(runs, count, deal, 0, more, (each + 1) * grain_bytes);
	if (missing > 0)
		count = add_run(runs, count, deal, tiles - 1, 1, each * grain_bytes - missing);
	assert(count <= MEMORY_RUNS);
	return count;
}

/* ---- functions ------------------------------------------------------------------------------- */

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

bool memory__is_function(const struct ipu_node *node)
{
	return node->function || is_planned(&node->op);
}

enum status memory__add_functions(struct memory_build *build)
{
	const struct ipu_graph *graph = build->graph;
	struct arena *arena = &build->memory->arena;
	const size_t nodes = (size_t)graph->node_count + 1;
	struct planned *planned = arena_alloc(arena, nodes, sizeof(*planned));
	int count = 0;

	build->same = arena_alloc(arena, nodes, sizeof(*build->same));
	if (!planned || !build->same)
		return err_nomem(build->err);
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
	return ST_OK;
}

/* ---- selection of tiles ---------------------------------------------------------------------- */

int64_t memory__node_start(const struct memory_build *build, int node)
{
	const char *name = build->graph->nodes[build->same[node]].op.name;

	/* Scale the hash to the number of tiles: a few tiles more or fewer shift all starts alike,
	 * so operations that were apart stay apart. */
	return name ? (int64_t)((XXH3_64bits(name, strlen(name)) >> 32) *
					(uint64_t)build->compute_tiles >>
				32)
		    : 0;
}

/* Weights and results of a planned operation are mapped as its plan says. */
static void record_plan(struct memory_build *build, int node)
{
	const struct ipu_node *of = &build->graph->nodes[node];

	if (!is_planned(&of->op))
		return;
	for (int i = 0; i < of->write_count; i++)
		if (build->plan_node[of->writes[i]] < 0)
			build->plan_node[of->writes[i]] = node;
	for (int i = 0; i < of->read_count; i++)
		if (build->graph->tensors[of->reads[i]].kind == IPU_TENSOR_WEIGHT &&
		    build->plan_node[of->reads[i]] < 0)
			build->plan_node[of->reads[i]] = node;
}

/* Accumulators and optimizer state are mapped like the weight that they update. */
static void record_update(struct memory_build *build, int node)
{
	const struct ipu_node *of = &build->graph->nodes[node];
	int weight = -1;

	if (of->op.phase != IPU_PHASE_U)
		return;
	for (int i = 0; i < of->read_count && weight < 0; i++)
		if (build->graph->tensors[of->reads[i]].kind == IPU_TENSOR_WEIGHT)
			weight = of->reads[i];
	for (int i = 0; i < of->read_count && weight >= 0; i++) {
		const enum ipu_tensor_kind kind = build->graph->tensors[of->reads[i]].kind;

		if (kind == IPU_TENSOR_ACCUMULATOR || kind == IPU_TENSOR_OPTIMIZER_STATE)
			build->like[of->reads[i]] = weight;
	}
}

enum status memory__add_spreads(struct memory_build *build)
{
	struct arena *arena = &build->memory->arena;
	const size_t tensors = (size_t)build->graph->tensor_count + 1;

	build->plan_node = arena_alloc(arena, tensors, sizeof(*build->plan_node));
	build->like = arena_alloc(arena, tensors, sizeof(*build->like));
	build->spread = arena_alloc(arena, tensors, sizeof(*build->spread));
	build->cursor =
		arena_alloc(arena, (size_t)build->memory->ipu_count + 1, sizeof(*build->cursor));
	if (!build->plan_node || !build->like || !build->spread || !build->cursor)
		return err_nomem(build->err);
	for (int t = 0; t < build->graph->tensor_count; t++) {
		build->plan_node[t] = -1;
		build->like[t] = t;
		build->spread[t].ipu = -1;
	}
	for (int n = 0; n < build->graph->node_count; n++) {
		record_plan(build, n);
		record_update(build, n);
	}
	return ST_OK;
}

/* Number of tiles in the linear mapping, with at least MEMORY_TILE_BYTES on each. */
static int64_t linear_tiles(const struct memory_deal *deal)
{
	const int64_t grains = (deal->elements + deal->grain - 1) / deal->grain;
	const int64_t grain_bytes = deal->grain * deal->element_bytes;
	const int64_t least = (MEMORY_TILE_BYTES + grain_bytes - 1) / grain_bytes;
	const int64_t tiles = grains / least;

	return tiles < 1 ? 1 : tiles < deal->limit ? tiles : deal->limit;
}

void memory__map_linearly(struct memory_build *build, struct memory_deal *deal, int tensor, int ipu)
{
	const int like = build->like[tensor], node = build->plan_node[like];
	struct memory_spread *spread = &build->spread[like];

	deal->limit = build->compute_tiles;
	deal->tiles = linear_tiles(deal);
	if (node >= 0) {
		const int64_t used = build->executable->plans[node]->tiles_used;

		deal->tiles = used < 1 ? 1 : used < deal->limit ? used : deal->limit;
		deal->start = memory__node_start(build, node);
		return;
	}
	if (spread->ipu != ipu) {
		*spread = (struct memory_spread){ipu, build->cursor[ipu]};
		build->cursor[ipu] = (build->cursor[ipu] + deal->tiles) % deal->limit;
	}
	deal->start = spread->start;
}

void memory__map_on_io_tiles(const struct memory_build *build, struct memory_deal *deal)
{
	deal->limit = build->memory->io_tiles;
	deal->tiles = linear_tiles(deal);
	deal->start = 0;
}
