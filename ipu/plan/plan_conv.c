/*
 * Convolutions and products. Pure functions: any thread.
 */
#include "ipu/plan/plan_internal.h"

/* At the AMP's peak on all tiles, after one exchange of both operands. */
static void plan_product(const struct ipu_target *target, const struct ipu_op *op,
			 double operand_elements, struct ipu_plan *plan)
{
	const enum ipu_amp_mode mode = op->dtype == IPU_FLOAT16 ? IPU_AMP_HALF : IPU_AMP_FLOAT;
	double tiles = (double)target->tiles;
	double bytes = operand_elements * (double)ipu_dtype_bytes(op->dtype);
	double cycles =
		(double)ipu_op_flops(op) / (tiles * ipu_target_flops_cycle_tile(target, mode));
	const struct ipu_phase exchange = {
		.kind = IPU_EXCHANGE,
		.part = "Convolve/ExchangePre",
		.cycles = ipu__whole(bytes / (tiles * target->exchange_bytes_cycle)),
		.tiles = target->tiles,
		.bytes = ipu__whole(bytes),
		.repeats = 1};
	const struct ipu_phase compute = {.kind = IPU_COMPUTE,
					  .part = "Convolve",
					  .vertex = "poplin::ConvPartial1x1Out",
					  .cycles = ipu__whole(cycles),
					  .mean_cycles = cycles,
					  .tiles = target->tiles,
					  .vertices = target->tiles,
					  .repeats = 1};

	plan->method = IPU_METHOD_AMP_1X1;
	plan->split_field = target->tiles;
	ipu__plan_add(plan, &exchange);
	ipu__plan_add(plan, &compute);
}

void ipu__plan_conv(const struct ipu_target *target, const struct ipu_op *op,
		    const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const struct ipu_conv *conv = &op->conv;
	double in = (double)(conv->batch * conv->in_channels) *
		    (double)(conv->groups * conv->in[0] * conv->in[1]);
	double out = (double)(conv->batch * conv->out_channels) *
		     (double)(conv->groups * conv->out[0] * conv->out[1]);

	(void)options;
	plan_product(target, op, in + out, plan);
}

void ipu__plan_matmul(const struct ipu_target *target, const struct ipu_op *op,
		      const struct ipu_plan_options *options, struct ipu_plan *plan)
{
	const struct ipu_matmul *product = &op->matmul;

	(void)options;
	plan_product(target, op,
		     (double)product->m * (double)product->k +
			     (double)product->k * (double)product->n,
		     plan);
}
