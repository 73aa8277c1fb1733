/*
 * What runs on the vector pipe. Pure functions: any thread.
 */
#include "ipu/plan/plan_internal.h"

/* @cycles_each of a vector of elements, six workers on every tile. */
static void plan_vectors(const struct ipu_target *target, const struct ipu_op *op, int64_t count,
			 double cycles_each, const char *part, const char *vertex,
			 struct ipu_plan *plan)
{
	int64_t lanes = target->vector_bytes / ipu_dtype_bytes(op->dtype);
	int64_t vectors = ipu__ceil_div(count, target->tiles * lanes);
	double cycles = (double)vectors * cycles_each;
	const struct ipu_phase compute = {.kind = IPU_COMPUTE,
					  .part = part,
					  .vertex = vertex,
					  .cycles = ipu__whole(cycles),
					  .mean_cycles = cycles,
					  .tiles = target->tiles,
					  .vertices = target->tiles * target->workers,
					  .repeats = 1};

	ipu__plan_add(plan, &compute);
}

static void plan_gather(const struct ipu_target *target, const struct ipu_op *op, int64_t count,
			const char *part, struct ipu_plan *plan)
{
	double bytes = (double)count * (double)ipu_dtype_bytes(op->dtype);
	const struct ipu_phase exchange = {
		.kind = IPU_EXCHANGE,
		.part = part,
		.cycles =
			ipu__whole(bytes / ((double)target->tiles * target->exchange_bytes_cycle)),
		.tiles = target->tiles,
		.bytes = ipu__whole(bytes),
		.repeats = 1};

	ipu__plan_add(plan, &exchange);
}

void ipu__plan_elementwise(const struct ipu_target *target, const struct ipu_op *op,
			   const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	double each = 0;

	(void)options;
	for (int f = 0; f < IPU_FUNCTIONS; f++)
		each += 2.0 * op->elements.times[f];
	plan_vectors(target, op, op->elements.count, each, "Op", "popops::MapExpression", plan);
}

void ipu__plan_reduce(const struct ipu_target *target, const struct ipu_op *op,
		      const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	(void)options;
	plan_gather(target, op, op->reduce.inputs, "Reduce/ExchangePre", plan);
	plan_vectors(target, op, op->reduce.inputs, 1, "Reduce", "popops::Reduce", plan);
}

void ipu__plan_pool(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const struct ipu_pool *pool = &op->pool;

	(void)options;
	plan_vectors(target, op, pool->batch * pool->channels * pool->out[0] * pool->out[1],
		     3.0 * (double)(pool->kernel[0] * pool->kernel[1]), "Pool", "popnn::Pooling",
		     plan);
}

void ipu__plan_rows(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	(void)options;
	plan_vectors(target, op, op->rows.rows * op->rows.columns, 9, "Rows", "popnn::Softmax",
		     plan);
}

void ipu__plan_copy(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	(void)options;
	plan_gather(target, op, op->copy.count, "OnTileCopyPre", plan);
	plan_vectors(target, op, op->copy.count, 1, "OnTileCopy-0", "poplar::Copy", plan);
}
