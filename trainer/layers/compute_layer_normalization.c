/*
 * LayerNormalization over the last axis, and GroupNormalization, alike in training and inference: y
 * = gamma (x - mean) inverse + beta, with inverse = 1 / sqrt(variance + epsilon). Means and
 * inverses are kept for the backward pass.
 */
#include <math.h>

#include "common/minmax.h"
#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_norm.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/layers/compute_internal.h"

/* ---- LayerNormalization ---------------------------------------------------------------------- */

/* Each row by its own mean and population variance. Gradients of gamma and beta are summed per
 * slice, and then over the slices in order. */

/* mean and inverse of each row */
static size_t rows_moments_bytes(const struct layer_pass *pass)
{
	return 2 * model_align((size_t)layer_rows(pass->layer, pass->batch)) * sizeof(float);
}

/* Sums by slice and channel, or the moments if none are kept: a training stage also evaluates. */
static size_t rows_scratch_bytes(const struct layer_pass *pass)
{
	const size_t moments = rows_moments_bytes(pass);
	const int64_t channels = layer_last_dim(&pass->layer->input);
	const size_t slices =
		kernel_norm_max_slices(layer_rows(pass->layer, pass->batch), channels);
	const size_t sums = 2 * slices * model_align((size_t)channels) * sizeof(double);

	return pass->training ? max(sums, moments) : moments;
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
		.cut = kernel_norm_cut(layer_rows(pass->layer, pass->batch),
				       layer_last_dim(&pass->layer->input)),
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

/* Merge the sums of @parts slices or items to the gradient of parameter @param. */
static void params_gradient(const struct layer_pass *pass, unsigned parts, double *sums, int param)
{
	const int64_t channels = layer_last_dim(&pass->layer->input);
	float *out = compute__gradients(pass, param);

	kernel_norm_merge_sums(parts, channels, sums);
	for (int64_t c = 0; c < channels; c++)
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
	pool_share(pass->pool, kernel_work_floats(5 * work.cut.rows * work.channels),
		   rows_backward_slice, &work, work.cut.slices);
	if (work.gamma_sums)
		params_gradient(pass, work.cut.slices, work.gamma_sums, 0);
	if (work.beta_sums)
		params_gradient(pass, work.cut.slices, work.beta_sums, own->scale);
}

const struct compute_ops compute_layer_normalization = {
	.forward = rows_forward,
	.backward = rows_backward,
	.kept = rows_moments_bytes,
	.scratch = rows_scratch_bytes,
	.grad_in_place = true,
	.adds = true,
};

/* ---- GroupNormalization ---------------------------------------------------------------------- */

/* An item's channels in groups, each normalized by the mean and population variance over all of its
 * positions.
 *
 * One thread computes an item, so that sums have one order: moments and sums by channel first, as
 * in batch normalization, then over the channels of a group. Gradients of gamma and beta are summed
 * per item, and then over the items in order. */

struct groups {
	const struct layer_pass *pass;
	int64_t rows, channels, groups,
		each; /* rows: positions of an item; each: channels of a group */
	float epsilon;
	const float *gamma, *beta; /* NULL: 1 and 0 */
	float *moments;            /* [batch, 2, groups]: means, inverses */
	double *sums;              /* [2, batch, channels], written by slices */
	float *numbers;            /* [batch, 4, channels], written by slices */
};

static size_t groups_moments_bytes(const struct layer_pass *pass)
{
	const struct layer_norm *own = pass->layer->config;

	return 2 * model_align((size_t)(pass->batch * own->groups)) * sizeof(float);
}

/* Sums and coefficients by item and channel, and the moments, which only a training pass keeps. */
static size_t groups_scratch_bytes(const struct layer_pass *pass)
{
	const size_t channels = (size_t)(pass->batch * layer_last_dim(&pass->layer->input));

	return 2 * channels * sizeof(double) + model_align(4 * channels) * sizeof(float) +
	       groups_moments_bytes(pass);
}

static struct groups groups_of(const struct layer_pass *pass)
{
	const struct layer_norm *own = pass->layer->config;
	const int64_t channels = layer_last_dim(&pass->layer->input);
	double *sums = pass->scratch;
	float *numbers = (float *)(sums + 2 * pass->batch * channels);

	return (struct groups){
		.pass = pass,
		.rows = model_shape_count(&pass->layer->input) / channels,
		.channels = channels,
		.groups = own->groups,
		.each = channels / own->groups,
		.epsilon = (float)own->epsilon,
		.gamma = own->scale ? compute__weights(pass, 0) : NULL,
		.beta = own->center ? compute__weights(pass, own->scale) : NULL,
		.moments = pass->training
				   ? pass->kept
				   : numbers + model_align((size_t)(4 * pass->batch * channels)),
		.sums = sums,
		.numbers = numbers,
	};
}

/* Derive an item's group means and inverses from its channels' moments. All channels have the same
 * weight: the variance is the mean of theirs plus the variance of their means. */
static void groups_moments(const struct groups *g, const double *mean, const double *squares,
			   float *out)
{
	for (int64_t group = 0; group < g->groups; group++) {
		const double *m = mean + group * g->each, *s = squares + group * g->each;
		double group_mean = 0.0, variance = 0.0;

		for (int64_t c = 0; c < g->each; c++)
			group_mean += m[c];
		group_mean /= (double)g->each;
		for (int64_t c = 0; c < g->each; c++)
			variance +=
				s[c] / (double)g->rows + (m[c] - group_mean) * (m[c] - group_mean);
		variance /= (double)g->each;
		out[group] = (float)group_mean;
		out[g->groups + group] = (float)(1.0 / sqrt(variance + (double)g->epsilon));
	}
}

static void groups_forward_body(const void *context, int64_t first, int64_t items)
{
	const struct groups *g = context;

	for (int64_t b = first; b < first + items; b++) {
		const int64_t at = b * g->rows * g->channels;
		const float *x = g->pass->inputs[0] + at;
		double *mean = g->sums + b * g->channels;
		double *squares = mean + g->pass->batch * g->channels;
		float *means = g->numbers + 4 * b * g->channels;
		float *scale = means + g->channels, *offset = scale + g->channels;
		float *moments = g->moments + 2 * b * g->groups;
		const struct kernel_norm norm = {
			.channels = g->channels, .mean = means, .scale = scale, .offset = offset};

		kernel_norm_moments(x, g->rows, g->channels, mean, squares);
		groups_moments(g, mean, squares, moments);
		for (int64_t c = 0; c < g->channels; c++) {
			means[c] = moments[c / g->each];
			scale[c] =
				moments[g->groups + c / g->each] * (g->gamma ? g->gamma[c] : 1.0f);
			offset[c] = g->beta ? g->beta[c] : 0.0f;
		}
		kernel_norm_apply(&norm, x, NULL, g->pass->output + at, g->rows, false);
	}
}

static void groups_forward(const struct layer_pass *pass)
{
	const struct groups g = groups_of(pass);

	compute__share_output(pass, pass->batch, g.rows * g.channels, groups_forward_body, &g);
}

/* dx = scale dy - constant - slope (x - mean), with coefficients by channel. */
KERNEL_CLONES
static void groups_grad(const float *x, const float *dy, float *dx, int64_t rows, int64_t channels,
			const float *restrict mean, const float *restrict scale,
			const float *restrict constant, const float *restrict slope, bool add)
{
	for (int64_t row = 0; row < rows; row++, x += channels, dy += channels, dx += channels) {
		KERNEL_INDEPENDENT
		for (int64_t c = 0; c < channels; c++) {
			const float d =
				scale[c] * dy[c] - constant[c] - slope[c] * (x[c] - mean[c]);

			dx[c] = add ? dx[c] + d : d;
		}
	}
}

static void groups_backward_body(const void *context, int64_t first, int64_t items)
{
	const struct groups *g = context;
	const bool add = compute__adds(g->pass, 0);

	for (int64_t b = first; b < first + items; b++) {
		const int64_t at = b * g->rows * g->channels;
		const float *x = g->pass->inputs[0] + at, *dy = g->pass->grad_output + at;
		const float *moments = g->moments + 2 * b * g->groups;
		double *sums = g->sums + b * g->channels;
		double *products = sums + g->pass->batch * g->channels;
		float *mean = g->numbers + 4 * b * g->channels, *scale = mean + g->channels;
		float *constant = scale + g->channels, *slope = constant + g->channels;
		/* Without a ReLU scale and offset are copied but not used: any array will do. */
		const struct kernel_norm norm = {
			.channels = g->channels, .mean = mean, .scale = mean, .offset = mean};

		for (int64_t c = 0; c < g->channels; c++)
			mean[c] = moments[c / g->each];
		kernel_norm_grad_sums(&norm, x, dy, g->rows, sums, products);
		for (int64_t group = 0; group < g->groups; group++) {
			const double inverse = (double)moments[g->groups + group];
			const double count = (double)(g->rows * g->each);
			double h = 0.0, hn = 0.0;

			for (int64_t c = group * g->each; c < (group + 1) * g->each; c++) {
				const double gamma = g->gamma ? (double)g->gamma[c] : 1.0;

				h += gamma * sums[c];
				hn += gamma * products[c] * inverse;
				products[c] *= inverse; /* the gradient of gamma */
				scale[c] = (float)(gamma * inverse);
			}
			for (int64_t c = group * g->each; c < (group + 1) * g->each; c++) {
				constant[c] = (float)(inverse * h / count);
				slope[c] = (float)(inverse * inverse * hn / count);
			}
		}
		if (g->pass->grad_inputs[0])
			groups_grad(x, dy, g->pass->grad_inputs[0] + at, g->rows, g->channels, mean,
				    scale, constant, slope, add);
	}
}

static void groups_backward(const struct layer_pass *pass)
{
	const struct layer_norm *own = pass->layer->config;
	const struct groups g = groups_of(pass);

	compute__share(pass->pool, pass->batch, g.rows * g.channels, groups_backward_body, &g);
	if (compute__learns(pass) && own->scale)
		params_gradient(pass, (unsigned)pass->batch, g.sums + pass->batch * g.channels, 0);
	if (compute__learns(pass) && own->center)
		params_gradient(pass, (unsigned)pass->batch, g.sums, own->scale);
}

const struct compute_ops compute_group_normalization = {
	.forward = groups_forward,
	.backward = groups_backward,
	.kept = groups_moments_bytes,
	.scratch = groups_scratch_bytes,
	.grad_in_place = true,
	.adds = true,
};
