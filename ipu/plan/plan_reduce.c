/*
 * Reductions: first on each tile, then over tiles in stages, as in popops
 * (CycleEstimationFunctions.cpp, ReductionPlan.cpp). Pure functions: any thread.
 */
#include <assert.h>
#include <math.h>

#include "common/elementary.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/plan/plan_vector.h"

#define WIDEST 16
/* Most partial sums per output that one stage reduces. */
#define STAGE_MOST 64

static const struct ipu__reduce_names reduce_names = IPU_REDUCE_NAMES("");

int ipu__reduce_stages(int64_t partials)
{
	return partials < 2                          ? 0
	       : partials <= STAGE_MOST              ? 1
	       : partials <= STAGE_MOST * STAGE_MOST ? 2
						     : 3;
}

/* ---- one compute set ------------------------------------------------------------------------- */

/* Outputs of one loop of all workers. */
static int64_t loop_outputs(const struct ipu__reducing *reducing)
{
	return ipu__lanes(reducing->target, reducing->dtype) * reducing->target->workers;
}

/* StridedReduce: a worker takes 16, plus 10 (float16: 13) per vector of outputs, plus 1 per input
 * of it. */
static struct ipu__vertex reduce_vertex(const struct ipu__reducing *reducing, int64_t depth)
{
	const double each = reducing->dtype == IPU_FLOAT16 ? 13 : 10;

	return (struct ipu__vertex){"popops::StridedReduce", 0, 16, each + (double)depth};
}

static int64_t stage_cycles(const struct ipu__reducing *reducing, int64_t depth, int64_t outputs)
{
	const struct ipu__vertex vertex = reduce_vertex(reducing, depth);
	const int64_t loop = loop_outputs(reducing);

	return ipu__busiest(reducing->target, &vertex, reducing->dtype,
			    ipu__ceil_div(outputs, loop) * loop);
}

static void add_stage(struct ipu__reducing *reducing, int64_t depth,
		      const struct ipu__spread *outputs)
{
	const struct ipu__vertex vertex = reduce_vertex(reducing, depth);
	const int64_t loop = loop_outputs(reducing);
	struct ipu__spread rounded = *outputs;

	assert(reducing->number < IPU_REDUCE_STAGES);
	rounded.most = ipu__ceil_div(outputs->most, loop) * loop;
	ipu__add_compute(reducing->plan, reducing->target,
			 reducing->names->compute[reducing->number++], &vertex, reducing->dtype,
			 &rounded);
}

/* ---- on a tile, and over tiles --------------------------------------------------------------- */

/* Fewer outputs than those of a loop leave lanes and workers idle. So an output may be summed as
 * @wide parallel partial sums, which a second compute set adds. Return the best width; 1: a single
 * compute set. Fewer outputs have at least the same choices, so they never take longer. */
static int64_t best_width(const struct ipu__reducing *reducing, int64_t depth, int64_t outputs)
{
	const int64_t phase = ipu__whole(reducing->target->phase_cycles);
	int64_t least = stage_cycles(reducing, depth, outputs);
	int64_t best = 1;

	for (int64_t wide = 2; wide <= WIDEST && wide <= depth; wide *= 2) {
		int64_t cycles;

		if (outputs > loop_outputs(reducing) / wide)
			break;
		cycles = stage_cycles(reducing, ipu__ceil_div(depth, wide), outputs * wide) +
			 phase + stage_cycles(reducing, wide, outputs);
		if (cycles < least) {
			least = cycles;
			best = wide;
		}
	}
	return best;
}

void ipu__reduce_on_tiles(struct ipu__reducing *reducing, int64_t depth,
			  const struct ipu__spread *outputs)
{
	const int64_t wide = depth > 1 ? best_width(reducing, depth, outputs->most) : 1;
	const struct ipu__spread beside = {outputs->tiles, outputs->most * wide,
					   outputs->mean * (double)wide};

	if (depth < 2)
		return;
	if (wide > 1)
		add_stage(reducing, ipu__ceil_div(depth, wide), &beside);
	add_stage(reducing, wide > 1 ? wide : depth, outputs);
}

/* The exchanged partials are float32 sums, whatever the input type. */
void ipu__reduce_over_tiles(struct ipu__reducing *reducing, int64_t partials, int64_t outputs)
{
	const int64_t bytes = ipu_dtype_bytes(IPU_FLOAT32);

	reducing->dtype = IPU_FLOAT32;
	for (int s = ipu__reduce_stages(partials); s > 0; s--) {
		const int64_t fan =
			s == 1 ? partials
			       : ipu__whole(
					 floor(elementary_pow((double)partials, 1.0 / s) + 1e-9));
		const int64_t left = ipu__ceil_div(partials, fan);
		const struct ipu__spread out = ipu__spread_over(
			reducing->target, ipu__product(outputs, left), 1, reducing->target->tiles);

		ipu__add_exchange(reducing->plan, reducing->target,
				  reducing->names->exchange[reducing->number],
				  out.most * fan * bytes,
				  (double)outputs * (double)partials * (double)bytes, out.tiles);
		add_stage(reducing, fan, &out);
		partials = left;
	}
}

/* ---- whole reductions ------------------------------------------------------------------------ */

/* Reduce inputs distributed over @tiles, each of which holds inputs of as many outputs as
 * possible. */
static void reduce_inputs(struct ipu__reducing *reducing, int64_t inputs, int64_t outputs,
			  int64_t tiles, bool gathered)
{
	const int64_t bytes = ipu_dtype_bytes(reducing->dtype);
	const struct ipu__spread in = ipu__spread_over(reducing->target, inputs, 1, tiles);
	const int64_t columns = min(outputs, in.most);
	const struct ipu__spread own = {in.tiles, columns, fmin((double)columns, in.mean)};

	if (gathered)
		ipu__add_exchange(reducing->plan, reducing->target, reducing->names->exchange[0],
				  in.most * bytes, (double)inputs * (double)bytes, in.tiles);
	ipu__reduce_on_tiles(reducing, ipu__ceil_div(in.most, columns), &own);
	ipu__reduce_over_tiles(reducing, ipu__ceil_div(in.tiles * columns, outputs), outputs);
}

/* The candidate numbers of tiles do not depend on the target. With each of them, more tiles only
 * spread the later stages further, so more tiles never make the reduction slower. */
int64_t ipu__add_reduce(struct ipu__reducing *reducing, int64_t inputs, int64_t outputs,
			bool gathered)
{
	int64_t tiles[IPU_TILE_CHOICES];
	const int choices = ipu__tile_choices(reducing->target, inputs, tiles);
	const struct ipu_plan before = *reducing->plan;
	struct ipu_plan best;
	int64_t least = INT64_MAX, chosen = 1;

	for (int i = 0; i < choices; i++) {
		struct ipu_plan plan = before;
		struct ipu__reducing tried = *reducing;
		int64_t cycles;

		tried.plan = &plan;
		reduce_inputs(&tried, inputs, outputs, tiles[i], gathered);
		cycles = ipu__plan_time(reducing->target, &plan);
		if (cycles < least) {
			least = cycles;
			best = plan;
			chosen = tiles[i];
		}
	}
	assert(least < INT64_MAX);
	*reducing->plan = best;
	return chosen;
}

void ipu__plan_reduce(const struct ipu_target *target, const struct ipu_op *op,
		      const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	struct ipu__reducing reducing = {plan, target, op->dtype, &reduce_names, 0};

	(void)options;
	if (op->reduce.inputs > op->reduce.outputs)
		plan->split_in =
			ipu__add_reduce(&reducing, op->reduce.inputs, op->reduce.outputs, false);
}
