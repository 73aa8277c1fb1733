/*
 * LayerNormalization over the last axis: each row by its own mean and population variance, in
 * training and inference alike. y = gamma (x - mean) / sqrt(variance + epsilon) + beta.
 *
 * The rows' means and inverse deviations are kept from forward to backward. Gradients of gamma and
 * beta are summed per slice, and then over the slices in order.
 */
#include "common/minmax.h"
#include "trainer/kernels/kernel_norm.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/compute_internal.h"

static struct kernel_norm_cut rows_cut(const struct model_layer *layer, int64_t batch)
{
	return kernel_norm_cut(layer_rows(layer, batch), layer_last_dim(&layer->input));
}

/* mean and inverse of each row */
static size_t rows_moments_bytes(const struct model *model, const struct model_layer *layer,
				 int64_t batch)
{
	(void)model;
	return 2 * model_align((size_t)layer_rows(layer, batch)) * sizeof(float);
}

/* Sums by slice and channel, or the moments if none are kept: a training stage also evaluates. */
static size_t rows_scratch_bytes(const struct model *model, const struct model_layer *layer,
				 int64_t batch, unsigned lanes, bool training)
{
	const size_t moments = rows_moments_bytes(model, layer, batch);
	const int64_t channels = layer_last_dim(&layer->input);
	const size_t slices = kernel_norm_max_slices(layer_rows(layer, batch), channels);
	const size_t sums = 2 * slices * model_align((size_t)channels) * sizeof(double);

	(void)lanes;
	return training ? max(sums, moments) : moments;
}

#define ROWS_HOT 4096 /* floats that stay in the L1 cache */

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
		.channels = layer_last_dim(&pass->layer->input),
		.epsilon = (float)own->epsilon,
		.gamma = own->scale ? compute__weights(pass, 0) : NULL,
		.beta = own->center ? compute__weights(pass, own->scale) : NULL,
		.mean = moments,
		.inverse = moments + model_align((size_t)layer_rows(pass->layer, pass->batch)),
	};
}

static void rows_forward_slice(void *context, unsigned slice)
{
	const struct rows_work *w = context;
	int64_t row = slice * w->cut.step, end = row + kernel_norm_slice_rows(&w->cut, slice);
	int64_t part = w->channels < ROWS_HOT ? ROWS_HOT / w->channels : 1;

	for (; row < end; row += part) {
		int64_t rows = min(end - row, part);
		float *y = w->pass->output + row * w->channels;

		kernel_norm_rows(w->pass->inputs[0] + row * w->channels, y, rows, w->channels,
				 w->epsilon, w->gamma, w->beta, w->mean + row, w->inverse + row);
		if (w->pass->watch)
			kernel_watch_update(w->pass->watch,
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
			      compute__adds(w->pass, 0),
			      w->gamma_sums ? w->gamma_sums + slice * w->channels : NULL,
			      w->beta_sums ? w->beta_sums + slice * w->channels : NULL);
}

static void rows_gradient(const struct rows_work *w, double *sums, int param)
{
	float *out = compute__gradients(w->pass, param);

	kernel_norm_merge_sums(w->cut.slices, w->channels, sums);
	for (int64_t c = 0; c < w->channels; c++)
		out[c] = (float)sums[c];
}

static void rows_backward(const struct layer_pass *pass)
{
	const struct layer_norm *own = pass->layer->config;
	struct rows_work work = rows_work(pass);

	if (compute__learns(pass) && own->scale)
		work.gamma_sums = pass->scratch;
	if (compute__learns(pass) && own->center)
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

const struct compute_ops compute_layer_normalization = {
	.forward = rows_forward,
	.backward = rows_backward,
	.kept = rows_moments_bytes,
	.scratch = rows_scratch_bytes,
	.grad_in_place = true,
	.adds = true,
};
