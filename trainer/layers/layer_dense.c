/*
 * Dense: y = activation(x W + b) over the last axis; W is [inputs, units].
 *
 * The forward product, bias and ReLU are done tile by tile, while a tile is in the cache; the two
 * products of the backward pass share one run of the pool. Slices depend on shapes only.
 */
#include <limits.h>

#include "common/mem.h"
#include "trainer/kernels/kernel_gemm.h"
#include "trainer/kernels/kernel_vector.h"
#include "trainer/layers/layer_internal.h"

extern const struct layer_ops layer_dense;

#define DENSE_SUM_GRAIN 256 /* columns of a slice of the bias gradient's sum */

/* --- reading -----------------------------------------------------------------------------------
 */

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

/* --- running -----------------------------------------------------------------------------------
 */

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

struct dense_forward_work {
	struct kernel_gemm gemm;
	struct kernel_grid grid;
	const float *bias; /* NULL: none */
	bool relu;
	struct kernel_watch *watch; /* of the sums; NULL: they are not the output, or unwatched */
};

static void dense_forward_slice(void *context, unsigned slice)
{
	const struct dense_forward_work *w = context;
	const struct kernel_gemm *g = &w->gemm;
	struct kernel_tile tile = kernel_grid_tile(&w->grid, g->m, g->n, slice);
	float *c = g->c + tile.row * g->ldc + tile.column;
	const float *bias = w->bias ? w->bias + tile.column : NULL;

	kernel_gemm_tile(g, &tile);
	if (w->relu)
		kernel_bias_relu(c, g->ldc, tile.rows, tile.columns, bias);
	else if (bias)
		kernel_bias(c, g->ldc, tile.rows, tile.columns, bias);
	if (w->watch)
		kernel_watch_put(w->watch, kernel_abs_max_rows(c, g->ldc, tile.rows, tile.columns));
}

static void dense_forward(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	struct dense_sizes s = dense_sizes(layer, pass->batch);
	float *sums = layer__activation_sums(pass);
	struct dense_forward_work work = {
		.gemm = {.m = s.rows,
			 .n = s.units,
			 .k = s.inputs,
			 .a = pass->inputs[0],
			 .lda = s.inputs,
			 .b = layer__weights(pass, 0),
			 .ldb = s.units,
			 .c = sums,
			 .ldc = s.units},
		.bias = layer->use_bias ? layer__weights(pass, 1) : NULL,
		.relu = layer->activation == MODEL_RELU,
	};

	if (sums == pass->output && (work.relu || layer->activation == MODEL_LINEAR))
		work.watch = pass->watch;
	work.grid = kernel_gemm_grid(&work.gemm);
	pool_run(pass->pool, dense_forward_slice, &work, kernel_grid_slices(&work.grid));
	if (work.watch)
		work.watch->known = true;
	if (!work.relu)
		layer__activate(pass, layer->activation, sums, s.rows, s.units);
}

/* Slices: first those of the kernel's gradient, then those of the input's, then of the bias's.
 * What nobody wants has none. */
struct dense_backward_work {
	struct kernel_gemm kernel, input;
	struct kernel_grid kernel_grid, input_grid;
	unsigned kernel_slices, input_slices;
	const float *dz;
	float *bias;
	int64_t rows, units, bias_step;
};

static void dense_bias_slice(const struct dense_backward_work *w, unsigned slice)
{
	int64_t column = slice * w->bias_step, left = w->units - column;

	kernel_column_sums(w->dz + column, w->units, w->rows,
			   left < w->bias_step ? left : w->bias_step, w->bias + column);
}

static void dense_backward_slice(void *context, unsigned slice)
{
	const struct dense_backward_work *w = context;
	struct kernel_tile tile;

	if (slice < w->kernel_slices) {
		tile = kernel_grid_tile(&w->kernel_grid, w->kernel.m, w->kernel.n, slice);
		kernel_gemm_tile(&w->kernel, &tile);
	} else if (slice - w->kernel_slices < w->input_slices) {
		tile = kernel_grid_tile(&w->input_grid, w->input.m, w->input.n,
					slice - w->kernel_slices);
		kernel_gemm_tile(&w->input, &tile);
	} else {
		dense_bias_slice(w, slice - w->kernel_slices - w->input_slices);
	}
}

/* dW = x^T dz */
static void dense_plan_kernel(struct dense_backward_work *w, const struct layer_pass *pass,
			      const struct dense_sizes *s)
{
	w->kernel = (struct kernel_gemm){
		.transpose_a = true,
		.m = s->inputs,
		.n = s->units,
		.k = s->rows,
		.a = pass->inputs[0],
		.lda = s->inputs,
		.b = pass->grad_output,
		.ldb = s->units,
		.c = layer__gradients(pass, 0),
		.ldc = s->units,
	};
	w->kernel_grid = kernel_gemm_grid(&w->kernel);
	w->kernel_slices = kernel_grid_slices(&w->kernel_grid);
}

/* dx = dz W^T */
static void dense_plan_input(struct dense_backward_work *w, const struct layer_pass *pass,
			     const struct dense_sizes *s)
{
	w->input = (struct kernel_gemm){
		.transpose_b = true,
		.m = s->rows,
		.n = s->inputs,
		.k = s->units,
		.a = pass->grad_output,
		.lda = s->units,
		.b = layer__weights(pass, 0),
		.ldb = s->units,
		.c = pass->grad_inputs[0],
		.ldc = s->inputs,
	};
	w->input_grid = kernel_gemm_grid(&w->input);
	w->input_slices = kernel_grid_slices(&w->input_grid);
}

static void dense_backward(const struct layer_pass *pass)
{
	const struct model_layer *layer = pass->layer;
	struct dense_sizes s = dense_sizes(layer, pass->batch);
	struct dense_backward_work work = {
		.dz = pass->grad_output,
		.rows = s.rows,
		.units = s.units,
		.bias_step = DENSE_SUM_GRAIN,
	};
	unsigned slices;

	if (!layer->trainable && !pass->grad_inputs[0])
		return;
	if (!pass->skip_activation)
		layer__activate_grad(pass->pool, layer->activation, pass->kept, pass->output,
				     pass->grad_output, s.rows, s.units);

	if (layer->trainable)
		dense_plan_kernel(&work, pass, &s);
	if (pass->grad_inputs[0])
		dense_plan_input(&work, pass, &s);
	slices = work.kernel_slices + work.input_slices;
	if (layer->trainable && layer->use_bias) {
		work.bias = layer__gradients(pass, 1);
		slices += (unsigned)((s.units + work.bias_step - 1) / work.bias_step);
	}
	pool_run(pass->pool, dense_backward_slice, &work, slices);
}

/* --- costs -------------------------------------------------------------------------------------
 */

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
	.flops = dense_flops,
	.lower = dense_lower,
	.reads_inputs = true,
	.reads_output = true,
};
