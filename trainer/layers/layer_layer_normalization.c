/*
 * LayerNormalization over the last axis: every row by its own mean and population variance, in
 * training and inference alike. y = gamma (x - mean) / sqrt(variance + epsilon) + beta.
 *
 * Rows' means and inverse deviations are kept from forward to backward. Gradients of gamma and beta
 * are summed slice by slice, and over the slices in their order.
 */
#include "common/mem.h"
#include "trainer/kernels/kernel_norm.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/layer_norm.h"

extern const struct layer_ops layer_layer_normalization;

static enum status rows_read(struct model *model, struct model_layer *layer,
			     const struct json_at *config, struct err *err)
{
	static const struct model_option own[] = {
		LAYER_NORM_OPTIONS,
		{"rms_scaling", MODEL_FALSE},
	};
	enum status status = layer__begin(model, layer, config, own, ARRAY_LEN(own),
					  sizeof(struct layer_norm), err);

	return status == ST_OK ? layer__read_norm(model, layer, config, layer->config, err)
			       : status;
}

/* ---- running --------------------------------------------------------------------------------- */

static int64_t rows_count(const struct model_layer *layer, int64_t batch)
{
	return batch * (model_shape_count(&layer->input) / layer__last_dim(&layer->input));
}

static struct kernel_norm_cut rows_cut(const struct model_layer *layer, int64_t batch)
{
	return kernel_norm_cut(rows_count(layer, batch), layer__last_dim(&layer->input));
}

/* mean and inverse of each row */
static size_t rows_moments_bytes(const struct model *model, const struct model_layer *layer,
				 int64_t batch)
{
	(void)model;
	return 2 * model__align((size_t)rows_count(layer, batch)) * sizeof(float);
}

/* Sums by slice and channel; the moments where none are kept. */
static size_t rows_scratch_bytes(const struct model *model, const struct model_layer *layer,
				 int64_t batch, unsigned lanes, bool training)
{
	size_t sums = 2 * rows_cut(layer, batch).slices *
		      model__align((size_t)layer__last_dim(&layer->input)) * sizeof(double);

	(void)lanes;
	return training ? sums : rows_moments_bytes(model, layer, batch);
}

#define ROWS_HOT 4096 /* floats that stay in the innermost cache */

struct rows_work {
	const struct layer_pass *pass;
	struct kernel_norm_cut cut;
	int64_t channels;
	float epsilon;
	const float *gamma, *beta; /* NULL: 1 and 0 */
	float *mean, *inverse;
	double *gamma_sums, *beta_sums; /* backward; NULL: not wanted */
};

static struct rows_work rows_work(const struct layer_pass *pass)
{
	const struct layer_norm *own = pass->layer->config;
	float *moments = pass->training ? pass->kept : pass->scratch;

	return (struct rows_work){
		.pass = pass,
		.cut = rows_cut(pass->layer, pass->batch),
		.channels = layer__last_dim(&pass->layer->input),
		.epsilon = (float)own->epsilon,
		.gamma = own->scale ? layer__weights(pass, 0) : NULL,
		.beta = own->center ? layer__weights(pass, own->scale) : NULL,
		.mean = moments,
		.inverse = moments + model__align((size_t)rows_count(pass->layer, pass->batch)),
	};
}

static void rows_forward_slice(void *context, unsigned slice)
{
	const struct rows_work *w = context;
	int64_t row = slice * w->cut.step, end = row + kernel_norm_slice_rows(&w->cut, slice);
	int64_t part = w->channels < ROWS_HOT ? ROWS_HOT / w->channels : 1;

	for (; row < end; row += part) {
		int64_t rows = end - row < part ? end - row : part;
		float *y = w->pass->output + row * w->channels;

		kernel_norm_rows(w->pass->inputs[0] + row * w->channels, y, rows, w->channels,
				 w->epsilon, w->gamma, w->beta, w->mean + row, w->inverse + row);
		if (w->pass->watch)
			kernel_watch_put(w->pass->watch,
					 kernel_abs_max(y, (size_t)(rows * w->channels)));
	}
}

static void rows_forward(const struct layer_pass *pass)
{
	struct rows_work work = rows_work(pass);

	pool_share(pass->pool, kernel_work_floats(3 * work.cut.rows * work.channels),
		   rows_forward_slice, &work, work.cut.slices);
	if (pass->watch)
		pass->watch->known = true;
}

static void rows_backward_slice(void *context, unsigned slice)
{
	const struct rows_work *w = context;
	int64_t row = slice * w->cut.step, at = row * w->channels;
	float *dx = w->pass->grad_inputs[0];

	kernel_norm_rows_grad(w->pass->inputs[0] + at, w->pass->grad_output + at,
			      dx ? dx + at : NULL, kernel_norm_slice_rows(&w->cut, slice),
			      w->channels, w->gamma, w->mean + row, w->inverse + row,
			      w->pass->add && w->pass->add[0],
			      w->gamma_sums ? w->gamma_sums + slice * w->channels : NULL,
			      w->beta_sums ? w->beta_sums + slice * w->channels : NULL);
}

static void rows_gradient(const struct rows_work *w, double *sums, int param)
{
	float *out = layer__gradients(w->pass, param);

	kernel_norm_merge_sums(w->cut.slices, w->channels, sums);
	for (int64_t c = 0; c < w->channels; c++)
		out[c] = (float)sums[c];
}

static void rows_backward(const struct layer_pass *pass)
{
	const struct layer_norm *own = pass->layer->config;
	struct rows_work work = rows_work(pass);

	if (pass->layer->trainable && own->scale)
		work.gamma_sums = pass->scratch;
	if (pass->layer->trainable && own->center)
		work.beta_sums = (double *)pass->scratch + work.cut.slices * work.channels;
	if (!work.gamma_sums && !work.beta_sums && !pass->grad_inputs[0])
		return;
	pool_share(pass->pool, kernel_work_floats(5 * work.cut.rows * work.channels),
		   rows_backward_slice, &work, work.cut.slices);
	if (work.gamma_sums)
		rows_gradient(&work, work.gamma_sums, 0);
	if (work.beta_sums)
		rows_gradient(&work, work.beta_sums, own->scale);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* As many as for batches: moments, then the row's values. */
static int64_t rows_flops(const struct model_layer *layer, int64_t batch)
{
	return batch * model_shape_count(&layer->input) * 7;
}

#define ROWS_NAME "LayerNorm"

/* Mean and inverse deviation of each row. */
static void rows_lower_forward(struct layer_lowering *lowering)
{
	const struct layer_norm *own = lowering->layer->config;
	const unsigned kept = lowering->keeps ? LAYER_KEPT : LAYER_BETWEEN;
	const int64_t rows = rows_count(lowering->layer, lowering->batch);
	struct layer_op op = layer__map(
		&(struct ipu_elements){
			.count = rows,
			.operands = 2,
			.times = {[IPU_FN_SQRT] = 1, [IPU_FN_DIVIDE] = 1, [IPU_FN_ADD] = 5}},
		LAYER_BETWEEN | LAYER_BETWEEN_TOO, kept);

	op.makes = 2 * rows;
	layer__lower_statistics(lowering, ROWS_NAME, rows, false);
	layer__lower_norm(lowering, ROWS_NAME, "Statistics", &op);
	op = layer__norm_map(lowering, 4, LAYER_INPUT | kept | layer__norm_params(own),
			     LAYER_OUTPUT);
	layer__lower(lowering, ROWS_NAME, &op);
}

/* By dy gamma and what has been whitened, their products' sums over each row. */
static void rows_lower_gradient(struct layer_lowering *lowering)
{
	const struct layer_norm *own = lowering->layer->config;
	const unsigned gamma = own->scale ? LAYER_PARAM(0) : 0u;
	const int64_t rows = rows_count(lowering->layer, lowering->batch);
	const int64_t count = layer__lower_count(lowering);
	struct layer_op op = layer__norm_map(
		lowering, 4, LAYER_INPUT | LAYER_KEPT | LAYER_GRAD_OUTPUT | gamma, LAYER_BETWEEN);

	op.makes = count;
	layer__lower_norm(lowering, ROWS_NAME, "GradScaled", &op);
	op = layer__reduce(2 * count, 2 * rows, LAYER_BETWEEN | LAYER_GRAD_OUTPUT | gamma,
			   LAYER_BETWEEN_TOO);
	layer__lower_norm(lowering, ROWS_NAME, "GradMoments", &op);
	op = layer__norm_map(lowering, 7,
			     LAYER_INPUT | LAYER_KEPT | LAYER_GRAD_OUTPUT | LAYER_BETWEEN_TOO |
				     gamma,
			     LAYER_GRAD_INPUT);
	layer__lower_norm(lowering, ROWS_NAME, "GradX", &op);
}

static void rows_lower_backward(struct layer_lowering *lowering)
{
	const struct layer_norm *own = lowering->layer->config;

	if (lowering->layer->trainable)
		layer__lower_norm_sums(lowering, ROWS_NAME, own, false);
	if (layer__wants_any(lowering))
		rows_lower_gradient(lowering);
}

/* Keras computes in float32 here, in a layer that is half, too. */
static void rows_lower(struct layer_lowering *lowering)
{
	if (lowering->phase == 'F')
		rows_lower_forward(lowering);
	else
		rows_lower_backward(lowering);
	for (int i = 0; i < lowering->count; i++)
		lowering->ops[i].op.dtype = IPU_FLOAT32;
}

const struct layer_ops layer_layer_normalization = {
	.class_name = "LayerNormalization",
	.read = rows_read,
	.forward = rows_forward,
	.backward = rows_backward,
	.kept = rows_moments_bytes,
	.scratch = rows_scratch_bytes,
	.flops = rows_flops,
	.lower = rows_lower,
	.reads_inputs = true,
	.grad_in_place = true,
	.adds = true,
};
