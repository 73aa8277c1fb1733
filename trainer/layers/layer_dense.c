/*
 * Dense: y = activation(x W + b) over the last axis; W is [inputs, units].
 *
 * Bias and ReLU are done to a tile of the forward product before it is stored; the two products of
 * the backward pass share one run of the pool.
 */
#include <limits.h>
#include <math.h>

#include "common/mem.h"
#include "trainer/kernels/kernel_gemm.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/layer_internal.h"

extern const struct layer_ops layer_dense;

#define DENSE_SUM_GRAIN 256 /* columns of a slice of the bias gradient's sum */

/* ---- reading --------------------------------------------------------------------------------- */

static enum status dense_units(struct model_layer *layer, const struct json_at *config,
			       struct err *err)
{
	struct json_at here;
	enum status status;

	if (!json_child(config, "units", &here))
		return json_fail(config, err, "\"units\" is missing");
	status = json_int(&here, 1, INT64_MAX, &layer->units, err);
	if (status == ST_OK && layer->units > INT_MAX) {
		json_fail(&here, err,
			  "%lld units are beyond the limit of %d: this layer's kernel would take "
			  "%.0f GB",
			  (long long)layer->units, INT_MAX,
			  (double)layer->units * (double)layer__last_dim(&layer->input) * 4e-9);
		if (err)
			err->status = ST_LIMIT;
		return ST_LIMIT;
	}
	return status;
}

static enum status dense_params(struct model *model, struct model_layer *layer,
				const struct json_at *config, struct err *err)
{
	int64_t inputs = layer__last_dim(&layer->input);
	const struct layer_param kernel = {.name = "kernel",
					   .initializer = "GlorotUniform",
					   .shape = {.ndim = 2, .dim = {inputs, layer->units}},
					   .fan_in = inputs,
					   .fan_out = layer->units};
	const struct layer_param bias = {.name = "bias",
					 .initializer = "Zeros",
					 .shape = {.ndim = 1, .dim = {layer->units}},
					 .fan_in = layer->units,
					 .fan_out = layer->units};
	enum status status = layer__add_param(model, layer, config, &kernel, err);

	if (status == ST_OK && layer->use_bias)
		status = layer__add_param(model, layer, config, &bias, err);
	return status;
}

static enum status dense_read(struct model *model, struct model_layer *layer,
			      const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		{"units", MODEL_ANY},
		{"activation", MODEL_ANY},
		{"use_bias", MODEL_ANY},
		LAYER_PARAM_OPTIONS("kernel"),
		LAYER_PARAM_OPTIONS("bias"),
		{"activity_regularizer", MODEL_NULL},
		{"quantization_config", MODEL_NULL},
		{"quantization_mode", MODEL_NULL},
		{"lora_rank", MODEL_NULL},
		{"lora_alpha", MODEL_NULL},
	};
	enum status status = layer__check(config, own, ARRAY_LEN(own), err);

	if (status != ST_OK)
		return status;
	if (!layer->input.ndim)
		return json_fail(config, err, "Dense needs an input of at least one dimension");
	status = dense_units(layer, config, err);
	if (status == ST_OK)
		status = layer__read_finish(layer, config, err);
	if (status != ST_OK)
		return status;

	layer->output = layer->input;
	layer->output.dim[layer->output.ndim - 1] = layer->units;
	layer->reads_inputs = layer->trainable; /* for the kernel's gradient */
	return dense_params(model, layer, config, err);
}

/* ---- running --------------------------------------------------------------------------------- */

struct dense_sizes {
	int64_t rows, inputs, units;
};

static struct dense_sizes dense_sizes(const struct model_layer *layer, int64_t batch)
{
	int64_t inputs = layer__last_dim(&layer->input);

	return (struct dense_sizes){
		.rows = batch * (model_shape_count(&layer->input) / inputs),
		.inputs = inputs,
		.units = layer->units,
	};
}

static size_t dense_scratch(const struct model *model, const struct model_layer *layer,
			    int64_t batch, unsigned lanes, bool training)
{
	(void)model;
	(void)layer;
	(void)batch;
	(void)training;
	return kernel_gemm_scratch(lanes);
}

static void dense_forward(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	const struct kernel_room room = {pass->pool, pass->scratch};
	struct dense_sizes s = dense_sizes(layer, pass->batch);
	float *sums = layer__activation_sums(pass);
	bool relu = layer->activation == MODEL_RELU;
	struct kernel_gemm gemm = {
		.m = s.rows,
		.n = s.units,
		.k = s.inputs,
		.a = pass->inputs[0],
		.lda = s.inputs,
		.b = layer__weights(pass, 0),
		.ldb = s.units,
		.c = sums,
		.ldc = s.units,
		.finish = {.bias = layer->use_bias ? layer__weights(pass, 1) : NULL,
			   .relu = relu,
			   .most = INFINITY},
		.openblas = pass->openblas,
	};

	if (sums == pass->output && (relu || layer->activation == MODEL_LINEAR))
		gemm.finish.watch = pass->watch;
	kernel_gemm(&gemm, &room);
	if (!relu)
		layer__activate(pass, layer->activation, sums, s.rows, s.units);
}

/* Slices: first those of the kernel's gradient, then those of the input's, then of the bias's.
 * What nobody wants has none. */
struct dense_backward_work {
	struct kernel_gemm kernel, input;
	unsigned kernel_slices, input_slices;
	const float *dz;
	float *bias, *scratch;
	int64_t rows, units;
};

static void dense_bias_slice(const struct dense_backward_work *w, unsigned slice)
{
	int64_t column = (int64_t)slice * DENSE_SUM_GRAIN, left = w->units - column;

	kernel_column_sums(w->dz + column, w->units, w->rows,
			   left < DENSE_SUM_GRAIN ? left : DENSE_SUM_GRAIN, w->bias + column);
}

static void dense_backward_slice(void *context, unsigned slice, unsigned lane)
{
	const struct dense_backward_work *w = context;
	float *memory = w->scratch + lane * KERNEL_GEMM_LANE;

	if (slice < w->kernel_slices)
		kernel_gemm_slice(&w->kernel, slice, memory);
	else if (slice - w->kernel_slices < w->input_slices)
		kernel_gemm_slice(&w->input, slice - w->kernel_slices, memory);
	else
		dense_bias_slice(w, slice - w->kernel_slices - w->input_slices);
}

static void dense_backward(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	struct dense_sizes s = dense_sizes(layer, pass->batch);
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
			  .b = layer__weights(pass, 0),
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

	if (!layer->trainable && !pass->grad_inputs[0])
		return;
	if (!pass->skip_activation)
		layer__activate_grad(pass->pool, layer->activation, pass->kept, pass->output,
				     pass->grad_output, s.rows, s.units);

	if (layer->trainable) {
		work.kernel.c = layer__gradients(pass, 0);
		work.kernel_slices = kernel_gemm_slices(&work.kernel);
		cost += kernel_gemm_work(&work.kernel);
	}
	if (pass->grad_inputs[0]) {
		work.input_slices = kernel_gemm_slices(&work.input);
		cost += kernel_gemm_work(&work.input);
	}
	slices = work.kernel_slices + work.input_slices;
	if (layer->trainable && layer->use_bias) {
		work.bias = layer__gradients(pass, 1);
		slices += (unsigned)((s.units + DENSE_SUM_GRAIN - 1) / DENSE_SUM_GRAIN);
	}
	pool_share_lanes(pass->pool, cost, dense_backward_slice, &work, slices);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int64_t dense_flops(const struct model_layer *layer, int64_t batch)
{
	struct dense_sizes s = dense_sizes(layer, batch);
	int64_t each = 2 * s.inputs + layer->use_bias + layer__activation_work(layer->activation);
	int64_t flops;

	/* Sides are bounded, their product is not. */
	if (__builtin_mul_overflow(s.rows * s.units, each, &flops))
		return INT64_MAX;
	return flops;
}

static void dense_product(const struct layer_lowering *lowering, enum ipu_pass pass,
			  struct ipu_op *out)
{
	const struct dense_sizes s = dense_sizes(lowering->layer, lowering->batch);
	const struct ipu_matmul products[] = {
		[IPU_FORWARD] = {.m = s.rows, .k = s.inputs, .n = s.units},
		[IPU_BACKWARD_DATA] = {.m = s.rows, .k = s.units, .n = s.inputs},
		[IPU_BACKWARD_WEIGHTS] = {.m = s.inputs, .k = s.rows, .n = s.units},
	};

	out->kind = IPU_OP_MATMUL;
	out->matmul = products[pass];
}

static void dense_lower(struct layer_lowering *lowering)
{
	layer__lower_product(lowering, "MatMul", dense_product);
}

const struct layer_ops layer_dense = {
	.class_name = "Dense",
	.read = dense_read,
	.forward = dense_forward,
	.backward = dense_backward,
	.kept = layer__activation_kept,
	.scratch = dense_scratch,
	.flops = dense_flops,
	.lower = dense_lower,
	.reads_inputs = true,
	.reads_output = true,
};
