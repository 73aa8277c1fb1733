/*
 * Changes of layout: elements are sent to their new tile, then arranged there. Pure functions: any
 * thread.
 */
#include "ipu/plan/plan_vector.h"

void ipu__plan_copy(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const int64_t element = ipu_dtype_bytes(op->dtype);
	const struct ipu__spread spread = ipu__spread_over(
		target, op->copy.count, ipu__lanes(target, op->dtype), target->tiles);
	const double all = (double)op->copy.count * (double)element;

	(void)options;
	plan->split_field = spread.tiles;
	ipu__add_exchange(plan, target, "OnTileCopyPre/ExchangePre", spread.most * element, all,
			  spread.tiles);
	ipu__add_arrange(plan, target, "OnTileCopy-0", op->copy.atom * element,
			 spread.most * element, all, spread.tiles);
}
