/*
 * Changes of layout: elements go to their new tile, then to their place on it. Pure functions: any
 * thread.
 */
#include "ipu/plan/plan_vector.h"

#define COPY_START 587 /* cycles */

/* Cycles a byte, by the bytes that stay together. */
static double cycles_byte(int64_t atom_bytes)
{
	return atom_bytes >= 8 ? 0.44 : atom_bytes >= 4 ? 3.125 : 5.148;
}

void ipu__plan_copy(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const int64_t element = ipu_dtype_bytes(op->dtype);
	const struct ipu__spread spread = ipu__spread_over(
		target, op->copy.count, ipu__lanes(target, op->dtype), target->tiles);
	const double each = cycles_byte(op->copy.atom * element) * (double)element;
	const struct ipu_phase copy = {.kind = IPU_COMPUTE,
				       .part = "OnTileCopy-0",
				       .vertex = "poplar::OnTileCopy",
				       .cycles =
					       ipu__whole(COPY_START + each * (double)spread.most),
				       .mean_cycles = COPY_START + each * spread.mean,
				       .tiles = spread.tiles,
				       .vertices = spread.tiles,
				       .repeats = 1};

	(void)options;
	plan->split_field = spread.tiles;
	ipu__add_exchange(plan, target, "OnTileCopyPre/ExchangePre", spread.most * element,
			  (double)op->copy.count * (double)element, spread.tiles);
	plan->code_bytes += IPU_VERTEX_CODE_BYTES;
	ipu__plan_add(plan, &copy);
}
