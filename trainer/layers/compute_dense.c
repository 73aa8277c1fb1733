/*
 * Dense: y = activation(x W + b) over the last axis; W is [inputs, units].
 *
 * Bias and ReLU are applied to a tile of the forward product before it is stored. The two products
 * of the backward pass run in one pool job.
 */
#include <math.h>

#include "common/minmax.h"
#include "trainer/kernels/kernel_gemm.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/compute_internal.h"

#define DENSE_SUM_GRAIN 256 /* columns per slice of the bias gradient */

static size_t dense_scratch(const struct layer_pass *pass)
{
	return kernel_gemm_scratch(pool_lanes(pass->pool));
}

static void dense_forward(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	const struct kernel_room room = {pass->pool, pass->scratch};
	struct layer_dense_sizes s = layer_dense_sizes(layer, pass->batch);
	float *sums = compute__activation_sums(pass);
	bool relu = layer->activation == MODEL_RELU;
	struct kernel_gemm gemm = {
		.m = s.rows,
		.n = s.units,
		.k = s.inputs,
		.a = pass->inputs[0],
		.lda = s.inputs,
		.b = compute__weights(pass, 0),
		.ldb = s.units,
		.c = sums,
		.ldc = s.units,
		.finish = {.bias = layer->use_bias ? compute__weights(pass, 1) : NULL,
			   .relu = relu,
			   .most = INFINITY},
		.openblas = pass->openblas,
	};

	if (sums == pass->output && (relu || layer->activation == MODEL_LINEAR))
		gemm.finish.watch = pass->watch;
	kernel_gemm(&gemm, &room);
	if (!relu)
		compute__activate(pass, layer->activation, sums, s.rows, s.units);
}

/* Slices: first those of the kernel's gradient, then the input's, then the bias's. A gradient that
 * is not wanted has no slices. */
struct dense_backward_work {
	struct kernel_gemm kernel, input;
	unsigned kernel_slices, input_slices;
	const float *dz;
	float *bias, *scratch;
	int64_t rows, units;
};

static void dense_backward_slice(void *context, unsigned slice, unsigned lane)
{
	const struct dense_backward_work *w = context;
	float *memory = w->scratch + lane * KERNEL_GEMM_LANE;

	if (slice < w->kernel_slices) {
		kernel_gemm_slice(&w->kernel, slice, memory);
	} else if (slice - w->kernel_slices < w->input_slices) {
		kernel_gemm_slice(&w->input, slice - w->kernel_slices, memory);
	} else {
		const unsigned part = slice - w->kernel_slices - w->input_slices;
		int64_t column = (int64_t)part * DENSE_SUM_GRAIN, left = w->units - column;

		kernel_column_sums(w->dz + column, w->units, w->rows, min(left, DENSE_SUM_GRAIN),
				   w->bias + column);
	}
}

static void dense_backward(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	struct layer_dense_sizes s = layer_dense_sizes(layer, pass->batch);
	struct dense_backward_work work = {
		/* dW = x^T dz */
		.kernel = {.transpose_a = true,
			   .m = s.inputs,
			   .n = s.units,
			   .k = s.rows,
			   .a = pass->inputs[0],
			   .lda = s.inputs,
			   .b = pass->grad_output,
			   .ldb = s.units,
			   .ldc = s.units,
			   .openblas = pass->openblas},
		/* dx = dz W^T */
		.input = {.transpose_b = true,
			  .m = s.rows,
			  .n = s.inputs,
			  .k = s.units,
			  .a = pass->grad_output,
			  .lda = s.units,
			  .b = compute__weights(pass, 0),
			  .ldb = s.units,
			  .c = pass->grad_inputs[0],
			  .ldc = s.inputs,
			  .openblas = pass->openblas},
		.dz = pass->grad_output,
		.scratch = pass->scratch,
		.rows = s.rows,
		.units = s.units,
	};
	uint64_t cost = kernel_work_floats(s.rows * s.units);
	unsigned slices;

	if (!pass->skip_activation)
		compute__activate_grad(pass->pool, layer->activation, pass->kept, pass->output,
				       pass->grad_output, s.rows, s.units);

	if (compute__learns(pass)) {
		work.kernel.c = compute__gradients(pass, 0);
		work.kernel_slices = kernel_gemm_slices(&work.kernel);
		cost += kernel_gemm_work(&work.kernel);
	}
	if (pass->grad_inputs[0]) {
		work.input_slices = kernel_gemm_slices(&work.input);
		cost += kernel_gemm_work(&work.input);
	}
	slices = work.kernel_slices + work.input_slices;
	if (compute__learns(pass) && layer->use_bias) {
		work.bias = compute__gradients(pass, 1);
		slices += (unsigned)((s.units + DENSE_SUM_GRAIN - 1) / DENSE_SUM_GRAIN);
	}
	pool_share_lanes(pass->pool, cost, dense_backward_slice, &work, slices);
}

const struct compute_ops compute_dense = {
	.forward = dense_forward,
	.backward = dense_backward,
	.kept = compute__activation_kept,
	.scratch = dense_scratch,
};
