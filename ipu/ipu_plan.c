/*
 * The roofline: peak rates of the whole IPU, nothing about layouts or splits (docs/cost-model.md).
 *
 * Pure functions: any thread.
 */
#include "ipu/ipu_plan.h"

#include <assert.h>
#include <math.h>

#include "common/mem.h"

#define FLOAT_BYTES 4

struct op_model {
	const char *name;
	double (*flops)(const struct ipu_op *op);
	double (*peak)(const struct ipu_target *target); /* flops per cycle and tile */
	double (*bytes)(const struct ipu_op *op);        /* exchanged where the caller gives none */
};

static double matmul_flops(const struct ipu_op *op)
{
	return 2.0 * (double)op->m * (double)op->n * (double)op->k;
}

static double matmul_bytes(const struct ipu_op *op)
{
	double m = (double)op->m, n = (double)op->n, k = (double)op->k;

	return FLOAT_BYTES * (m * k + k * n + m * n);
}

static double elementwise_flops(const struct ipu_op *op)
{
	return (double)op->n * (double)(op->work > 0 ? op->work : 1);
}

/* Elements are where they are needed: an elementwise operation need not exchange. */
static double no_bytes(const struct ipu_op *op)
{
	(void)op;
	return 0;
}

static double reduce_flops(const struct ipu_op *op)
{
	return op->n > op->m ? (double)(op->n - op->m) : 0;
}

static double reduce_bytes(const struct ipu_op *op)
{
	return FLOAT_BYTES * (double)op->n;
}

static double no_flops(const struct ipu_op *op)
{
	(void)op;
	return 0;
}

static double copy_bytes(const struct ipu_op *op)
{
	return FLOAT_BYTES * (double)op->n;
}

static double amp_peak(const struct ipu_target *target)
{
	return target->flops_per_cycle_tile;
}

static double vector_peak(const struct ipu_target *target)
{
	return target->vector_lanes_fp32;
}

static const struct op_model op_models[] = {
	[IPU_OP_MATMUL] = {"matmul", matmul_flops, amp_peak, matmul_bytes},
	[IPU_OP_ELEMENTWISE] = {"elementwise", elementwise_flops, vector_peak, no_bytes},
	[IPU_OP_REDUCE] = {"reduce", reduce_flops, vector_peak, reduce_bytes},
	[IPU_OP_COPY] = {"copy", no_flops, vector_peak, copy_bytes},
};
_Static_assert(ARRAY_LEN(op_models) == IPU_OP_KINDS, "operation table out of step");

/* Round up to whole cycles (or flops), far below the range's end so that sums stay in range. */
static int64_t whole(double value)
{
	assert(value >= 0);
	return value < 0x1p60 ? (int64_t)ceil(value) : INT64_C(1) << 60;
}

const char *ipu_op_kind_name(enum ipu_op_kind kind)
{
	assert((unsigned)kind < IPU_OP_KINDS);
	return op_models[kind].name;
}

void ipu_plan(const struct ipu_target *target, const struct ipu_op *op, struct ipu_cost *out)
{
	const struct op_model *model = &op_models[op->kind];
	double tiles = (double)target->tiles;
	double flops = model->flops(op);
	double bytes = (double)op->bytes_in + (double)op->bytes_out;

	assert((unsigned)op->kind < IPU_OP_KINDS);
	if (op->bytes_in == 0 && op->bytes_out == 0)
		bytes = model->bytes(op);
	out->flops = whole(flops);
	out->compute_cycles = whole(flops / (tiles * model->peak(target)));
	out->exchange_cycles = whole(bytes / (tiles * target->exchange_bytes_cycle));
	out->sync_cycles = whole(target->sync_cycles);
	out->cycles = out->sync_cycles + (out->compute_cycles > out->exchange_cycles
						  ? out->compute_cycles
						  : out->exchange_cycles);
	out->bytes_exchanged = whole(bytes);
	out->tiles_used = IPU_UNKNOWN;
	out->code_bytes = IPU_UNKNOWN;
	out->tile_balance = NAN;
}
