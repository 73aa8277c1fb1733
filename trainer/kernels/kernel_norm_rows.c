/*
 * Normalization by row. A row's sums are LANES partial sums, added in a fixed order: the same bytes
 * with every clone of the loops.
 */
#include <math.h>

#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_norm.h"

#define LANES 64 /* partial sums: several vectors, to hide the latency of additions */
#define FOLD  8

struct rows_sums {
	float a[LANES], b[LANES];
};

KERNEL_CLONES
static double rows_fold(const float *lanes)
{
	float part[FOLD] = {0};
	double sum = 0.0;

	for (int i = 0; i < LANES; i += FOLD)
		for (int j = 0; j < FOLD; j++)
			part[j] += lanes[i + j];
	for (int j = 0; j < FOLD; j++)
		sum += (double)part[j];
	return sum;
}

KERNEL_CLONES
static float rows_mean(const float *x, int64_t channels)
{
	float sums[LANES] = {0};
	int64_t j = 0;

	for (; j + LANES <= channels; j += LANES)
		for (int i = 0; i < LANES; i++)
			sums[i] += x[j + i];
	for (int i = 0; j + i < channels; i++)
		sums[i] += x[j + i];
	return (float)(rows_fold(sums) / (double)channels);
}

/* Sums of x - about and (x - about)^2. */
KERNEL_CLONES
static void rows_deviations(const float *x, int64_t channels, float about, struct rows_sums *out)
{
	struct rows_sums s = {{0}, {0}};
	int64_t j = 0;

	for (; j + LANES <= channels; j += LANES) {
		for (int i = 0; i < LANES; i++) {
			float d = x[j + i] - about;

			s.a[i] += d;
			s.b[i] += d * d;
		}
	}
	for (int i = 0; j + i < channels; i++) {
		float d = x[j + i] - about;

		s.a[i] += d;
		s.b[i] += d * d;
	}
	*out = s;
}

/* @gamma and @beta may be NULL; y = (x - mean) inverse gamma + beta. */
KERNEL_CLONES
static void rows_apply(const float *restrict x, float *restrict y, int64_t channels, float mean,
		       float inverse, const float *restrict gamma, const float *restrict beta)
{
	for (int64_t j = 0; j < channels; j++)
		y[j] = (x[j] - mean) * inverse;
	for (int64_t j = 0; gamma && j < channels; j++)
		y[j] *= gamma[j];
	for (int64_t j = 0; beta && j < channels; j++)
		y[j] += beta[j];
}

void kernel_norm_rows(const float *x, float *y, int64_t rows, int64_t channels, float epsilon,
		      const float *gamma, const float *beta, float *mean, float *inverse)
{
	for (int64_t i = 0; i < rows; i++, x += channels, y += channels) {
		float about = rows_mean(x, channels);
		struct rows_sums s;
		double off, variance;

		/* The second pass measures the mean's rounding error and removes it. */
		rows_deviations(x, channels, about, &s);
		off = rows_fold(s.a) / (double)channels;
		variance = rows_fold(s.b) / (double)channels - off * off;
		variance = variance < 0.0 ? 0.0 : variance;
		mean[i] = (float)((double)about + off);
		inverse[i] = (float)(1.0 / sqrt(variance + (double)epsilon));
		rows_apply(x, y, channels, mean[i], inverse[i], gamma, beta);
	}
}

/* ---- the gradient ---------------------------------------------------------------------------- */

struct rows_row {
	const float *x, *dy, *gamma;
	float mean, inverse;
};

KERNEL_INLINE float rows_scaled(const struct rows_row *r, int64_t j)
{
	return r->gamma ? r->dy[j] * r->gamma[j] : r->dy[j];
}

KERNEL_INLINE void rows_grad_lanes(const struct rows_row *r, int64_t from, int lanes,
				   struct rows_sums *s)
{
	KERNEL_INDEPENDENT
	for (int i = 0; i < lanes; i++) {
		float h = rows_scaled(r, from + i);

		s->a[i] += h;
		s->b[i] += h * ((r->x[from + i] - r->mean) * r->inverse);
	}
}

/* Sums of h = dy gamma and of h (x - mean) inverse. */
KERNEL_CLONES
static void rows_grad_sums(const struct rows_row *r, int64_t channels, struct rows_sums *out)
{
	struct rows_sums s = {{0}, {0}};
	int64_t j = 0;

	for (; j + LANES <= channels; j += LANES)
		rows_grad_lanes(r, j, LANES, &s);
	rows_grad_lanes(r, j, (int)(channels - j), &s);
	*out = s;
}

KERNEL_CLONES
static void rows_grad_row(const struct rows_row *r, float *dx, int64_t channels, float constant,
			  float slope, bool add)
{
	const float *x = r->x, *dy = r->dy, *gamma = r->gamma;
	float mean = r->mean, inverse = r->inverse;

	KERNEL_INDEPENDENT
	for (int64_t j = 0; j < channels; j++) {
		float h = gamma ? dy[j] * gamma[j] : dy[j];
		float g = inverse * (h - constant - slope * ((x[j] - mean) * inverse));

		dx[j] = add ? dx[j] + g : g;
	}
}

KERNEL_CLONES
static void rows_grad_params(const struct rows_row *r, int64_t channels,
			     double *restrict gamma_sums, double *restrict beta_sums)
{
	for (int64_t j = 0; gamma_sums && j < channels; j++)
		gamma_sums[j] += (double)(r->dy[j] * ((r->x[j] - r->mean) * r->inverse));
	for (int64_t j = 0; beta_sums && j < channels; j++)
		beta_sums[j] += (double)r->dy[j];
}

void kernel_norm_rows_grad(const float *x, const float *dy, float *dx, int64_t rows,
			   int64_t channels, const float *gamma, const float *mean,
			   const float *inverse, bool add, double *gamma_sums, double *beta_sums)
{
	for (int64_t j = 0; gamma_sums && j < channels; j++)
		gamma_sums[j] = 0.0;
	for (int64_t j = 0; beta_sums && j < channels; j++)
		beta_sums[j] = 0.0;

	for (int64_t i = 0; i < rows; i++) {
		struct rows_row row = {x + i * channels, dy + i * channels, gamma, mean[i],
				       inverse[i]};
		struct rows_sums s;

		rows_grad_params(&row, channels, gamma_sums, beta_sums);
		if (!dx)
			continue;
		rows_grad_sums(&row, channels, &s);
		rows_grad_row(&row, dx + i * channels, channels,
			      (float)(rows_fold(s.a) / (double)channels),
			      (float)(rows_fold(s.b) / (double)channels), add);
	}
}
