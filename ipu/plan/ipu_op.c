/*
 * Operations: names and FLOP counts. Constant data and pure functions: any thread.
 */
#include "ipu/plan/ipu_op.h"

#include <assert.h>

#include "common/mem.h"
#include "common/minmax.h"

int64_t ipu_dtype_bytes(enum ipu_dtype dtype)
{
	assert((unsigned)dtype < IPU_DTYPES);
	return dtype == IPU_UINT8 ? 1 : dtype == IPU_FLOAT16 ? 2 : 4;
}

const char *ipu_dtype_name(enum ipu_dtype dtype)
{
	static const char *const names[] = {
		[IPU_FLOAT32] = "float32",
		[IPU_FLOAT16] = "float16",
		[IPU_INT32] = "int32",
		[IPU_UINT8] = "uint8",
	};

	_Static_assert(ARRAY_LEN(names) == IPU_DTYPES, "dtype names out of step");
	assert((unsigned)dtype < IPU_DTYPES);
	return names[dtype];
}

static double conv_flops(const struct ipu_op *op)
{
	const struct ipu_conv *conv = &op->conv;

	/* All three passes multiply the same pairs of elements. */
	return 2.0 * (double)conv->batch * (double)conv->groups * (double)conv->in_channels *
	       (double)conv->out_channels * (double)conv->out[0] * (double)conv->out[1] *
	       (double)conv->kernel[0] * (double)conv->kernel[1];
}

static double matmul_flops(const struct ipu_op *op)
{
	return 2.0 * (double)op->matmul.m * (double)op->matmul.k * (double)op->matmul.n;
}

static double elements_flops(const struct ipu_op *op)
{
	int times = 0;

	for (int f = 0; f < IPU_FUNCTIONS; f++)
		if (f != IPU_FN_CAST && f != IPU_FN_FILL)
			times += op->elements.times[f] * (f == IPU_FN_SCALED_ADD ? 2 : 1);
	return (double)op->elements.count * times;
}

static double reduce_flops(const struct ipu_op *op)
{
	return op->reduce.inputs > op->reduce.outputs
		       ? (double)(op->reduce.inputs - op->reduce.outputs)
		       : 0;
}

static double pool_flops(const struct ipu_op *op)
{
	const struct ipu_pool *pool = &op->pool;

	return (double)pool->batch * (double)pool->channels * (double)pool->out[0] *
	       (double)pool->out[1] * (double)pool->kernel[0] * (double)pool->kernel[1];
}

static double rows_flops(const struct ipu_op *op)
{
	static const int each[] = {
		[IPU_ROWS_SOFTMAX] = 5, /* max, subtract, exp, sum, divide */
		[IPU_ROWS_SOFTMAX_GRAD] = 4, [IPU_ROWS_CROSS_ENTROPY] = 3,
		[IPU_ROWS_ERROR] = 3,        [IPU_ROWS_ARGMAX] = 1,
	};

	_Static_assert(ARRAY_LEN(each) == IPU_ROWS_WORKS, "rows table out of step");
	return (double)op->rows.rows * (double)op->rows.columns * each[op->rows.work];
}

static double copy_flops(const struct ipu_op *op)
{
	(void)op;
	return 0;
}

static double slice_flops(const struct ipu_op *op)
{
	const double tables = op->slice.tables > 1 ? (double)op->slice.tables : 1.0;

	if (!op->slice.update)
		return 0;
	return 2.0 * tables * (double)op->slice.lookups * (double)op->slice.columns;
}

static const struct {
	const char *name;
	double (*flops)(const struct ipu_op *op);
} op_kinds[] = {
	[IPU_OP_CONV] = {"conv", conv_flops},
	[IPU_OP_MATMUL] = {"matmul", matmul_flops},
	[IPU_OP_ELEMENTWISE] = {"elementwise", elements_flops},
	[IPU_OP_REDUCE] = {"reduce", reduce_flops},
	[IPU_OP_POOL] = {"pool", pool_flops},
	[IPU_OP_ROWS] = {"rows", rows_flops},
	[IPU_OP_COPY] = {"copy", copy_flops},
	[IPU_OP_SLICE] = {"slice", slice_flops},
};
_Static_assert(ARRAY_LEN(op_kinds) == IPU_OP_KINDS, "operation table out of step");

const char *ipu_op_kind_name(enum ipu_op_kind kind)
{
	assert((unsigned)kind < IPU_OP_KINDS);
	return op_kinds[kind].name;
}

int64_t ipu_op_flops(const struct ipu_op *op)
{
	double flops;

	assert((unsigned)op->kind < IPU_OP_KINDS);
	flops = op_kinds[op->kind].flops(op) * (double)max(op->repeats, 1);
	return flops < 0x1p63 ? (int64_t)flops : INT64_MAX;
}

bool ipu_op_draws(const struct ipu_op *op)
{
	return op->kind == IPU_OP_ELEMENTWISE && op->elements.times[IPU_FN_RANDOM] > 0;
}
