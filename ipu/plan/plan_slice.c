/*
 * Embedding lookups and updates, as poplibs' popops::multiSlice and multiUpdateAdd run them. Pure
 * functions: any thread.
 *
 * Several tables are popops::groupedMultiSlice: each has its share of the tiles; if there are more
 * tables than tiles, each tile has its share of the tables.
 *
 * A table is split by entries and by columns, the lookups into groups. A tile searches its entries
 * for all lookups of its group; if the entries are split, a second stage selects from the results
 * of the parts. In an update the sums of the groups are added at the end.
 */
#include <math.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/plan/plan_vector.h"

#define INDEX_BYTES 4
/* Instructions of a worker (popops, PerformanceEstimation.cpp): at its start, per lookup inside and
 * outside the tile's entries, and per vector of 8 bytes (2 halfs). */
struct slice_work {
	const char *vertex, *part;
	double start, in_range, out_of_range, vector;
};

static const struct slice_work works[] = {
	{"popops::MultiSlice", "MultiSlice/stage0", 30, 19, 8, 2},
	{"popops::MultiUpdateAdd", "MultiUpdateAdd/stage0", 38, 11, 5, 3},
};

/* A cut of a table of entries x columns, and the share of the fullest tile. */
struct slice_cut {
	int64_t entries, columns, groups;   /* parts */
	int64_t together;                   /* tables on separate tiles */
	int64_t rows, width, lookups, mine; /* mine: lookups among its entries, if evenly spread */
};

/* Add a stage; the workers of a tile share the lookups of its vertex. */
static void add_stage(struct ipu_plan *plan, const struct ipu_target *target, const char *part,
		      const struct slice_work *work, double in_range, double out_of_range,
		      double vectors, int64_t tiles)
{
	const double workers = (double)target->workers;
	const double each = ceil(in_range / workers) * (work->in_range + vectors * work->vector) +
			    ceil(out_of_range / workers) * work->out_of_range;
	const int64_t cycles = ipu__whole(workers * (work->start + each));
	const struct ipu_phase phase = {.kind = IPU_COMPUTE,
					.part = part,
					.vertex = work->vertex,
					.cycles = cycles,
					.mean_cycles = (double)cycles,
					.tiles = tiles,
					.vertices = tiles,
					.repeats = 1};

	ipu__plan_add(plan, &phase);
}

static void plan_cut(const struct ipu_target *target, const struct ipu_op *op,
		     const struct slice_cut *cut, struct ipu_plan *plan)
{
	const struct slice_work *work = &works[op->slice.update];
	const int64_t element = ipu_dtype_bytes(op->dtype);
	const int64_t tiles = cut->entries * cut->columns * cut->groups * cut->together;
	const int64_t indices = ipu__product(cut->lookups, INDEX_BYTES);
	const int64_t table = ipu__product(cut->rows, cut->width) * element;
	const int64_t slices = ipu__product(cut->lookups, cut->width) * element;
	const double vectors = (double)ipu__ceil_div(cut->width, op->dtype == IPU_UINT8 ? 4 : 2);
	int64_t received = indices;

	*plan = (struct ipu_plan){.split_batch = cut->groups,
				  .split_field = cut->entries,
				  .split_in = 1,
				  .split_out = cut->columns,
				  .split_kernel = 1,
				  .serial_splits = 1};
	/* A group's own part of the table is on its tile from the start. */
	received += op->slice.update ? slices : table - table / cut->groups;
	ipu__add_exchange(plan, target, "MultiSlice/ExchangePre", received,
			  (double)received * (double)tiles, tiles);
	add_stage(plan, target, work->part, work, (double)cut->mine,
		  (double)(cut->lookups - cut->mine), vectors, tiles);
	plan->temporary_bytes = received + (op->slice.update ? 0 : slices);
	if (op->slice.update && cut->groups > 1) {
		static const struct ipu__reduce_names names = IPU_REDUCE_NAMES("MultiUpdateAdd/");
		struct ipu__reducing reducing = {plan, target, op->dtype, &names, 0};

		ipu__reduce_over_tiles(
			&reducing, cut->groups,
			ipu__product(ipu__product(op->slice.entries, op->slice.columns),
				     max(op->slice.tables, 1)));
		plan->temporary_bytes += 2 * table;
	}
	if (!op->slice.update && cut->entries > 1) {
		const int64_t picked = ipu__ceil_div(cut->lookups, cut->entries);

		ipu__add_exchange(plan, target, "MultiSlice/stage1/ExchangePre", slices,
				  (double)slices * (double)tiles, tiles);
		add_stage(plan, target, "MultiSlice/stage1", work, (double)picked, 0, vectors,
			  tiles);
		plan->temporary_bytes += slices;
	}
}

/* Compute a cut; false: a part would be empty. */
static bool make_cut(const struct ipu_slice *slice, int64_t grain, int64_t entries, int64_t columns,
		     int64_t groups, int64_t together, struct slice_cut *cut)
{
	const int64_t tables = ipu__ceil_div(max(slice->tables, 1), together); /* of a tile */
	const int64_t lookups = ipu__ceil_div(slice->lookups, groups);

	*cut = (struct slice_cut){
		.entries = entries, .columns = columns, .groups = groups, .together = together};
	cut->rows = ipu__product(ipu__ceil_div(slice->entries, entries), tables);
	cut->width = ipu__ceil_div(ipu__ceil_div(slice->columns, grain), columns) * grain;
	cut->lookups = ipu__product(lookups, tables);
	cut->mine = ipu__product(ipu__ceil_div(lookups, entries), tables);
	return entries <= slice->entries && columns <= ipu__ceil_div(slice->columns, grain) &&
	       groups <= slice->lookups;
}

/* The next number of parts of @size with a smaller largest part, about a quarter more and at last
 * @size parts, each the smallest with that largest part; beyond that @size + 1. */
static int64_t next_parts(int64_t size, int64_t parts)
{
	const int64_t largest = ipu__ceil_div(size, parts);
	int64_t next;

	if (largest == 1)
		return size + 1;
	next = max(ipu__ceil_div(size, largest - 1), parts + parts / 4);
	return ipu__ceil_div(size, ipu__ceil_div(size, min(next, size)));
}

void ipu__plan_slice(const struct ipu_target *target, const struct ipu_op *op,
		     const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const int64_t grain = ipu__lanes(target, op->dtype);
	const double limit = (double)target->bytes_per_tile * options->available_memory_proportion;
	const int64_t grains = ipu__ceil_div(op->slice.columns, grain);
	const int64_t together = min(max(op->slice.tables, 1), target->tiles);
	const int64_t tiles = target->tiles / together;
	struct ipu_plan best = {0};
	bool any = false, best_fits = false;

	/* The candidates do not depend on the tiles, so more of them never make it slower. */
	for (int64_t groups = 1; groups <= tiles; groups *= 2) {
		for (int64_t columns = 1; columns <= grains && columns * groups <= tiles;
		     columns = next_parts(grains, columns)) {
			for (int64_t entries = 1; entries * columns * groups <= tiles;
			     entries += max(1, entries / 4)) {
				struct ipu_plan now;
				struct slice_cut cut;
				bool fits;

				if (!make_cut(&op->slice, grain, entries, columns, groups, together,
					      &cut))
					break;
				plan_cut(target, op, &cut, &now);
				fits = (double)now.temporary_bytes <= limit;
				if (any && (best_fits > fits ||
					    (best_fits == fits && fits &&
					     ipu__plan_time(target, &best) <=
						     ipu__plan_time(target, &now)) ||
					    (!best_fits && !fits &&
					     best.temporary_bytes <= now.temporary_bytes)))
					continue;
				best = now;
				best_fits = fits;
				any = true;
			}
		}
	}
	*plan = best;
}
