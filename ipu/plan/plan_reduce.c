/*
 * Reductions: first where the elements lie, then over tiles in stages. Pure functions: any thread.
 */
#include <assert.h>
#include <math.h>

#include "common/mem.h"
#include "ipu/plan/plan_vector.h"

#define LOADS_EACH 2 /* cycles for each input of an output vector; 1 from interleaved memory */

/* Stages for so many partial sums of an output. */
static int stages_of(int64_t depth)
{
	return depth < 2 ? 0 : depth < 16 ? 1 : depth < 125 ? 2 : 3;
}

/* 33 + workers (20 + (2 depth + 8) ceil(outputs / v / workers)), v a double vector. */
static void add_stage(struct ipu_plan *plan, const struct ipu_target *target, enum ipu_dtype dtype,
		      const char *part, int64_t depth, const struct ipu__spread *outputs)
{
	const struct ipu__vertex vertex = {"popops::ContinuousReduce", 33, 20,
					   ((double)LOADS_EACH * (double)depth + 8) / 2};
	/* The formula's vector is twice a vector of ours. */
	const int64_t pair = 2 * ipu__lanes(target, dtype) * target->workers;
	struct ipu__spread rounded = *outputs;

	rounded.most = ipu__ceil_div(outputs->most, pair) * pair;
	ipu__add_compute(plan, target, part, &vertex, dtype, &rounded);
}

void ipu__add_reduce(struct ipu_plan *plan, const struct ipu_target *target, enum ipu_dtype dtype,
		     int64_t inputs, int64_t outputs, int64_t tiles)
{
	static const char *const names[] = {"Reduce0", "Reduce1", "Reduce2", "Reduce3"};
	static const char *const exchanges[] = {"Reduce0/ExchangePre", "Reduce1/ExchangePre",
						"Reduce2/ExchangePre", "Reduce3/ExchangePre"};
	const struct ipu__spread in = ipu__spread_over(target, inputs, 1, tiles);
	const int64_t columns = outputs < in.most ? outputs : in.most;
	const int64_t depth = ipu__ceil_div(in.most, columns);
	int64_t partials = ipu__ceil_div(in.tiles * columns, outputs);
	const int stages = stages_of(partials);
	int number = 0;

	if (depth > 1) {
		const struct ipu__spread own = {in.tiles, columns, (double)columns};

		add_stage(plan, target, dtype, names[number++], depth, &own);
	}
	for (int s = stages; s > 0; s--) {
		const int64_t fan =
			s == 1 ? partials
			       : ipu__whole(floor(pow((double)partials, 1.0 / s) + 1e-9));
		const int64_t left = ipu__ceil_div(partials, fan);
		const struct ipu__spread out =
			ipu__spread_over(target, outputs * left, 1, target->tiles);

		ipu__add_exchange(plan, target, exchanges[number],
				  out.most * fan * ipu_dtype_bytes(dtype), out.tiles);
		add_stage(plan, target, dtype, names[number++], fan, &out);
		partials = left;
	}
}

void ipu__plan_reduce(const struct ipu_target *target, const struct ipu_op *op,
		      const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	int64_t tiles[IPU_TILE_CHOICES];
	const int choices = ipu__tile_choices(target, op->reduce.inputs, tiles);
	const struct ipu_plan empty = *plan;

	(void)options;
	for (int i = 0; i < choices; i++) {
		struct ipu_plan tried = empty;

		tried.split_in = tiles[i];
		ipu__add_reduce(&tried, target, op->dtype, op->reduce.inputs, op->reduce.outputs,
				tiles[i]);
		ipu__keep_better(target, plan, &tried);
	}
}
