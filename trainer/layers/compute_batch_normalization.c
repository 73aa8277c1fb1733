/*
 * BatchNormalization over the last axis, as TensorFlow 2.6 computes it. With a mask, as Keras 3:
 * the moments are those of the unmasked steps, and all steps are normalized by them.
 *
 * Training, with the micro-batch's mean and population variance over all other axes:
 *
 *	y = gamma (x - mean) / sqrt(variance + epsilon) + beta
 *	moving = moving momentum + micro-batch's (1 - momentum)
 *
 * For inputs of rank 4 and 5 (including the batch) TensorFlow uses its fused kernel: the moving
 * variance is then updated with the unbiased variance (n / (n - 1)), and epsilon is at least
 * 1.001e-5. For other ranks it is updated with the population variance. Inference normalizes by
 * the moving statistics; so does training, if the layer is not trainable or is called with
 * training: false.
 *
 * The coefficients that produced the output are kept from forward to backward, so that a change of
 * the weights in between does no harm. A ReLU that follows is applied in the normalizing pass;
 * backward recomputes what it let through from x, so the output is never read again. An Add that
 * follows is applied in that pass, too, with its ReLU; its backward pass remains its own.
 */
#include <math.h>
#include <string.h>

#include "common/minmax.h"
#include "trainer/kernels/kernel_norm.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/compute_internal.h"

/* ---- memory ---------------------------------------------------------------------------------- */

/* A pass: what it computes, and pointers to its arrays. Each array is on its own cache lines. */
struct norm_work {
	const struct layer_pass *pass;
	const struct layer_batch_norm *own;
	struct kernel_norm norm; /* with the coefficients below */
	struct kernel_norm_cut cut;
	const float *x, *dy;
	float *out; /* y or dx */
	/* Kept: the coefficients that produced the output, by channel. */
	float *mean, *scale, *offset, *inverse;
	/* Scratch: sums by slice and channel; coefficients of the gradient. */
	double *a, *b;
	float *constant, *slope;
	bool moments; /* the moments have a gradient */
	/* With a mask: the sums, and the unmasked (or masked) rows of x and of dy. */
	double *sums;
	float *mask_x, *mask_dy;
	const float *mask; /* by row: in the gradient, whether the moments include it; NULL: all */
	bool add;
};

static size_t norm_channels(const struct layer_pass *pass)
{
	return model_align((size_t)layer_last_dim(&pass->layer->input));
}

/* Slices that there is memory for: a smaller batch or a mask may need more than this batch. */
static size_t norm_max_slices(const struct layer_pass *pass)
{
	return kernel_norm_max_slices(layer_rows(pass->layer, pass->batch),
				      layer_last_dim(&pass->layer->input));
}

static size_t norm_kept_bytes(const struct layer_pass *pass)
{
	return 4 * norm_channels(pass) * sizeof(float);
}

/* Floats of all rows: the input has as many values as the output. */
static size_t norm_row_floats(const struct layer_pass *pass)
{
	return model_align((size_t)compute__count(pass));
}

static size_t norm_scratch_bytes(const struct layer_pass *pass)
{
	const size_t channels = norm_channels(pass);
	size_t sums = 2 * norm_max_slices(pass) * channels * sizeof(double);

	if (pass->layer->mask)
		sums += 2 * channels * sizeof(double) + 2 * norm_row_floats(pass) * sizeof(float);
	return sums + 2 * channels * sizeof(float) + norm_kept_bytes(pass);
}

/* @kept NULL: the coefficients are scratch, too. */
static struct norm_work norm_work(const struct layer_pass *pass, float *kept)
{
	const size_t channels = norm_channels(pass), slices = norm_max_slices(pass);
	struct norm_work w = {
		.pass = pass,
		.own = pass->layer->config,
		.norm = {.channels = layer_last_dim(&pass->layer->input),
			 .relu = pass->relu,
			 .most = pass->relu_most},
		.cut = kernel_norm_cut(layer_rows(pass->layer, pass->batch),
				       layer_last_dim(&pass->layer->input)),
		.x = pass->inputs[0],
		.a = pass->scratch,
	};

	w.b = w.a + slices * channels;
	w.constant = (float *)(void *)(w.b + slices * channels);
	w.slope = w.constant + channels;
	w.mean = kept ? kept : w.slope + channels;
	w.scale = w.mean + channels;
	w.offset = w.scale + channels;
	w.inverse = w.offset + channels;
	/* The scratch has room for the four coefficients in any case. */
	w.sums = (double *)(void *)(w.slope + channels + 4 * channels);
	w.mask_x = (float *)(void *)(w.sums + 2 * channels);
	w.mask_dy = w.mask_x + norm_row_floats(pass);
	w.norm.mean = w.mean;
	w.norm.scale = w.scale;
	w.norm.offset = w.offset;
	return w;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* The cost of reading or writing @tensors tensors. */
static uint64_t norm_cost(const struct norm_work *w, int64_t tensors)
{
	return kernel_work_floats(tensors * w->cut.rows * w->norm.channels);
}

static void norm_moments_slice(void *context, unsigned slice)
{
	const struct norm_work *w = context;
	int64_t channels = w->norm.channels;

	kernel_norm_moments(w->x + slice * w->cut.step * channels,
			    kernel_norm_slice_rows(&w->cut, slice), channels,
			    w->a + slice * channels, w->b + slice * channels);
}

static void norm_apply_slice(void *context, unsigned slice)
{
	const struct norm_work *w = context;
	int64_t at = slice * w->cut.step * w->norm.channels;
	const float *plus = w->pass->plus ? w->pass->plus + at : NULL;
	const uint32_t abs_max =
		kernel_norm_apply(&w->norm, w->x + at, plus, w->out + at,
				  kernel_norm_slice_rows(&w->cut, slice), w->pass->watch);

	if (w->pass->watch)
		kernel_watch_update(w->pass->watch, abs_max);
}

/* Whether to use batch statistics: in training, for a layer that learns. */
static bool norm_uses_batch(const struct layer_pass *pass)
{
	return pass->training && layer_batch_norm_learns(pass->layer);
}

static float norm_moving_average(float moving, double batch, double momentum)
{
	return (float)((double)moving * momentum + batch * (1.0 - momentum));
}

/* Compute the coefficients that normalize x from one channel's mean and variance. */
static void norm_coefficients(const struct norm_work *w, int64_t channel, double mean,
			      double variance)
{
	const struct layer_norm *own = &w->own->norm;
	double inverse = 1.0 / sqrt(variance + own->epsilon);
	double gamma = own->scale ? (double)compute__weights(w->pass, 0)[channel] : 1.0;

	w->mean[channel] = (float)mean;
	w->inverse[channel] = (float)inverse;
	w->scale[channel] = (float)(gamma * inverse);
	w->offset[channel] = own->center ? compute__weights(w->pass, own->scale)[channel] : 0.0f;
}

/* Copy the unmasked rows of @from (@unmasked), or the masked ones, to @to; return their number. */
static int64_t norm_gather(const struct norm_work *w, const float *from, bool unmasked, float *to)
{
	const size_t channels = (size_t)w->norm.channels;
	const float *mask = w->pass->inputs[w->pass->layer->mask];
	const int64_t rows = layer_rows(w->pass->layer, w->pass->batch);
	int64_t count = 0;

	for (int64_t i = 0; i < rows; i++)
		if ((mask[i] != 0.0f) == unmasked)
			memcpy(to + (size_t)count++ * channels, from + (size_t)i * channels,
			       channels * sizeof(*to));
	return count;
}

/* Compute the micro-batch's moments into the first slice; return their number of rows. */
static int64_t norm_moments(struct norm_work work)
{
	if (work.pass->layer->mask) {
		const int64_t rows = norm_gather(&work, work.x, true, work.mask_x);

		memset(work.a, 0, (size_t)work.norm.channels * sizeof(*work.a));
		memset(work.b, 0, (size_t)work.norm.channels * sizeof(*work.b));
		if (rows == 0)
			return 0;
		work.cut = kernel_norm_cut(rows, work.norm.channels);
		work.x = work.mask_x;
	}
	pool_share(work.pass->pool, norm_cost(&work, 2), norm_moments_slice, &work,
		   work.cut.slices);
	kernel_norm_merge_moments(&work.cut, work.norm.channels, work.a, work.b);
	return work.cut.rows;
}

static void norm_forward(const struct layer_pass *pass)
{
	struct norm_work work = norm_work(pass, pass->training ? pass->kept : NULL);
	const struct layer_batch_norm *own = work.own;
	float *moving_mean = compute__weights(pass, own->norm.scale + own->norm.center);
	float *moving = compute__weights(pass, own->norm.scale + own->norm.center + 1);

	work.out = pass->output;
	if (norm_uses_batch(pass)) {
		/* If all rows are masked, mean and variance are 0. */
		const int64_t rows = max(norm_moments(work), 1);
		const double count = (double)(own->fused && rows > 1 ? rows - 1 : rows);

		for (int64_t c = 0; c < work.norm.channels; c++) {
			moving_mean[c] =
				norm_moving_average(moving_mean[c], work.a[c], own->momentum);
			moving[c] =
				norm_moving_average(moving[c], work.b[c] / count, own->momentum);
			norm_coefficients(&work, c, work.a[c], work.b[c] / (double)rows);
		}
	} else {
		for (int64_t c = 0; c < work.norm.channels; c++)
			norm_coefficients(&work, c, (double)moving_mean[c], (double)moving[c]);
	}
	pool_share(pass->pool, norm_cost(&work, pass->plus ? 3 : 2), norm_apply_slice, &work,
		   work.cut.slices);
	if (pass->watch)
		pass->watch->known = true;
}

/* ---- backward -------------------------------------------------------------------------------- */

static void norm_sums_slice(void *context, unsigned slice)
{
	const struct norm_work *w = context;
	int64_t channels = w->norm.channels, at = slice * w->cut.step * channels;

	kernel_norm_grad_sums(&w->norm, w->x + at, w->dy + at,
			      kernel_norm_slice_rows(&w->cut, slice), w->a + slice * channels,
			      w->b + slice * channels);
}

/* Rows that the moments include receive the moments' gradient, too. */
static void norm_grad_slice(void *context, unsigned slice)
{
	const struct norm_work *w = context;
	const int64_t first = slice * w->cut.step;
	const int64_t end = first + kernel_norm_slice_rows(&w->cut, slice);

	for (int64_t row = first, next; row < end; row = next) {
		const bool unmasked = !w->mask || w->mask[row] != 0.0f;
		const bool moments = w->moments && unmasked;
		const int64_t at = row * w->norm.channels;

		for (next = w->mask ? row + 1 : end;
		     next < end && (w->mask[next] != 0.0f) == unmasked; next++)
			;
		kernel_norm_grad(&w->norm, moments ? w->constant : NULL, moments ? w->slope : NULL,
				 w->x + at, w->dy + at, w->out + at, next - row, w->add);
	}
}

static void norm_sums(struct norm_work *work)
{
	pool_share(work->pass->pool, norm_cost(work, 2), norm_sums_slice, work, work->cut.slices);
	kernel_norm_merge_sums(work->cut.slices, work->norm.channels, work->a);
	kernel_norm_merge_sums(work->cut.slices, work->norm.channels, work->b);
}

/* The same for the unmasked rows, then for the masked ones. The gradients of the latter are 0 if
 * nothing reads them, so padding changes no bytes. Return the number of unmasked rows. */
static int64_t norm_masked_sums(struct norm_work work)
{
	const int64_t channels = work.norm.channels;
	double *a = work.sums, *b = a + norm_channels(work.pass);
	const float *x = work.x, *dy = work.dy;
	int64_t rows[2];

	memset(a, 0, 2 * norm_channels(work.pass) * sizeof(*a));
	for (int part = 0; part < 2; part++) {
		norm_gather(&work, dy, part == 0, work.mask_dy);
		rows[part] = norm_gather(&work, x, part == 0, work.mask_x);
		if (rows[part] == 0)
			continue;
		work.cut = kernel_norm_cut(rows[part], channels);
		work.x = work.mask_x;
		work.dy = work.mask_dy;
		norm_sums(&work);
		for (int64_t c = 0; c < channels; c++) {
			a[c] += work.a[c];
			b[c] += work.b[c];
		}
	}
	memcpy(work.a, a, (size_t)channels * sizeof(*a));
	memcpy(work.b, b, (size_t)channels * sizeof(*b));
	return rows[0];
}

/*
 * With n = (x - mean) inverse: the gradient of gamma is sum dy n, that of beta is sum dy, that of
 * x is gamma inverse (dy - mean of dy - n times the mean of dy n).
 */
static void norm_param_gradients(struct norm_work *work)
{
	const struct layer_pass *pass = work->pass;
	const struct layer_norm *own = &work->own->norm;
	double rows = (double)work->cut.rows;

	if (pass->layer->mask && norm_uses_batch(pass)) {
		rows = (double)max(norm_masked_sums(*work), 1);
		work->mask = pass->inputs[pass->layer->mask];
	} else {
		norm_sums(work);
	}
	for (int64_t c = 0; c < work->norm.channels; c++) {
		double inverse = (double)work->inverse[c];

		if (own->scale && compute__learns(pass))
			compute__gradients(pass, 0)[c] = (float)(work->b[c] * inverse);
		if (own->center && compute__learns(pass))
			compute__gradients(pass, own->scale)[c] = (float)work->a[c];
		work->constant[c] = (float)(work->a[c] / rows);
		work->slope[c] = (float)(work->b[c] * (inverse * inverse) / rows);
	}
	/* Other statistics do not depend on this batch. */
	work->moments = norm_uses_batch(pass);
}

static void norm_backward(const struct layer_pass *pass)
{
	struct norm_work work = norm_work(pass, pass->kept);

	compute__masks_backward(pass);
	work.dy = pass->grad_output;
	if (pass->layer->trainable)
		norm_param_gradients(&work);
	if (!pass->grad_inputs[0])
		return;
	work.out = pass->grad_inputs[0];
	work.add = compute__adds(pass, 0);
	pool_share(pass->pool, norm_cost(&work, 3), norm_grad_slice, &work, work.cut.slices);
}

const struct compute_ops compute_batch_normalization = {
	.forward = norm_forward,
	.backward = norm_backward,
	.kept = norm_kept_bytes,
	.scratch = norm_scratch_bytes,
	.grad_in_place = true,
	.adds = true,
	.fuses_relu = true,
	.fuses_add = true,
};
