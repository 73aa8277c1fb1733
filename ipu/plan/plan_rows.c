/*
 * Work on rows: softmax, losses, accuracy. Pure functions: any thread.
 *
 * A row lies on one tile whole, gathered there first; the steps are those that XLA makes of it.
 */
#include <stddef.h>

#include "common/mem.h"
#include "ipu/plan/plan_vector.h"

/* A compute set on every row; `cycles_each` for a vector of elements. */
#define MAP(instructions)                                                                          \
	{                                                                                          \
		"popops::MapExpression", 11, 58, (instructions) + 1                                \
	}
#define ROW_REDUCE                                                                                 \
	{                                                                                          \
		"popops::ContinuousReduce", 33, 28, 2                                              \
	}

struct step {
	const char *part; /* NULL: no more */
	struct ipu__vertex vertex;
};

#define STEPS 8

static const struct rows_work {
	struct step steps[STEPS];
	bool sums_rows; /* ends in one number over all rows */
} rows_works[] = {
	[IPU_ROWS_SOFTMAX] = {.steps = {{"SoftmaxMaxReduce", ROW_REDUCE},
					{"SoftmaxSub/Exp", MAP(1 + 6)},
					{"SoftmaxSumReduce", ROW_REDUCE},
					{"SoftmaxMul", MAP(1 + 6)}}},
	[IPU_ROWS_SOFTMAX_GRAD] = {.steps = {{"SoftmaxGrad/Mul", MAP(1)},
					     {"SoftmaxGrad/SumReduce", ROW_REDUCE},
					     {"SoftmaxGrad/SubMul", MAP(2)}}},
	/* Maximum; exponentials; their sum; logarithm, difference and product with the labels;
	 * their sum; exponentials over the sum less the labels. */
	[IPU_ROWS_CROSS_ENTROPY] = {.steps = {{"MaxReduce", ROW_REDUCE},
					      {"SubExp", MAP(1 + 6)},
					      {"SumReduce", ROW_REDUCE},
					      {"LogSubMul", MAP(12 + 2)},
					      {"LossReduce", ROW_REDUCE},
					      {"Grad", MAP(6 + 2)}},
				    .sums_rows = true},
	[IPU_ROWS_ERROR] = {.steps = {{"SubSquare", MAP(2)},
				      {"SumReduce", ROW_REDUCE},
				      {"Grad", MAP(2)}},
			    .sums_rows = true},
	/* 3 an element, 4 a row. */
	[IPU_ROWS_ARGMAX] = {.steps = {{"ArgMax", {"popnn::ReduceMaxClassGather", 9, 20, 6}},
				       {"CalcAccuracy", {"popnn::CalcAccuracy", 4, 20, 1}}},
			     .sums_rows = true},
};
_Static_assert(ARRAY_LEN(rows_works) == IPU_ROWS_WORKS, "rows table out of step");

void ipu__plan_rows(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const struct rows_work *work = &rows_works[op->rows.work];
	const int64_t bytes = ipu_dtype_bytes(op->dtype);
	struct ipu__spread spread = ipu__spread_over(target, op->rows.rows * op->rows.columns,
						     op->rows.columns, target->tiles);

	(void)options;
	plan->split_batch = spread.tiles;
	ipu__add_exchange(plan, target, "Rows/ExchangePre", spread.most * bytes, spread.tiles);
	for (const struct step *step = work->steps; step < work->steps + STEPS && step->part;
	     step++)
		ipu__add_compute(plan, target, step->part, &step->vertex, op->dtype, &spread);
	if (work->sums_rows)
		ipu__add_reduce(plan, target, op->dtype, op->rows.rows, 1, spread.tiles);
}
