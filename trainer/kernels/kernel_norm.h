/*
 * Normalization by channel (batch) and by row (layer): moments, the normalizing pass, gradients.
 *
 * x is [rows, channels], densely packed; a channel's values are `channels` floats apart. Functions
 * process the given rows, on one thread. A caller cuts the rows with kernel_norm_cut(), whose
 * borders depend on the shape only, and merges the slices' results in order.
 *
 * Moments stay accurate if the mean is far greater than the deviation. A slice sums x - K and
 * (x - K)^2, where K is the mean of its first rows: since (mean - K)^2 <= variance * n / m for the
 * mean K of m values among n, at most a factor n / m of precision is lost, and n / m is at most
 * 256. Sums run in float over 64 rows, then in double. A NaN or an infinity makes its channel NaN.
 */
#ifndef KERNEL_NORM_H
#define KERNEL_NORM_H

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_NORM_SLICES 64 /* maximum slices of a cut */

struct kernel_norm_cut {
	int64_t rows, step; /* slice s begins at row s * step */
	unsigned slices;    /* fewer rows may give more: see kernel_norm_max_slices() */
};

struct kernel_norm_cut kernel_norm_cut(int64_t rows, int64_t channels);
/* Maximum slices of a cut of @rows rows or fewer. */
unsigned kernel_norm_max_slices(int64_t rows, int64_t channels);
/* The number of rows of slice @slice. */
int64_t kernel_norm_slice_rows(const struct kernel_norm_cut *cut, unsigned slice);

/* ---- by channel ------------------------------------------------------------------------------ */

/* The moments of one slice: @mean[channels], @squares[channels] = sum (x - mean)^2. rows >= 1. */
void kernel_norm_moments(const float *x, int64_t rows, int64_t channels, double *mean,
			 double *squares);

/* Merge the slices' moments [slices, channels] into those of all rows (population variance), stored
 * in the first slice. The rule of Chan, Golub and LeVeque, for all slices at once. */
void kernel_norm_merge_moments(const struct kernel_norm_cut *cut, int64_t channels, double *mean,
			       double *squares);

/* Add the slices' sums [slices, channels] in order, into the first slice. */
void kernel_norm_merge_sums(unsigned slices, int64_t channels, double *sums);

/* y = (x - mean) scale + offset (+ plus), then min(max(y, 0), most) if there is a ReLU. */
struct kernel_norm {
	int64_t channels;
	const float *mean, *scale, *offset; /* by channel */
	bool relu;
	float most; /* INFINITY: no upper bound */
};

/* @plus: a tensor of y's shape; NULL: none. Return the greatest magnitude in y if @watched (see
 * kernel_watch.h), else 0. */
uint32_t kernel_norm_apply(const struct kernel_norm *norm, const float *x, const float *plus,
			   float *y, int64_t rows, bool watched);

/*
 * @sums[channels] = sum g, @products[channels] = sum g (x - mean). Without a ReLU g = dy. With one,
 * g = dy if the ReLU was open (0 < y < most; NaN counts as open), else 0. y is recomputed from @x,
 * exactly as in kernel_norm_apply().
 */
void kernel_norm_grad_sums(const struct kernel_norm *norm, const float *x, const float *dy,
			   int64_t rows, double *sums, double *products);

/* dx = scale (g - constant - slope (x - mean)), both by channel; with @add, added to @dx. @dx may
 * be @dy. If @constant and @slope are NULL: dx = scale g. */
void kernel_norm_grad(const struct kernel_norm *norm, const float *constant, const float *slope,
		      const float *x, const float *dy, float *dx, int64_t rows, bool add);

/* ---- by row ---------------------------------------------------------------------------------- */

/* y = (x - mean) / sqrt(variance + epsilon) gamma + beta with the moments of each row, which are
 * stored in @mean[rows] and @inverse[rows] (1 / sqrt()). @gamma, @beta may be NULL: 1 and 0. */
void kernel_norm_rows(const float *x, float *y, int64_t rows, int64_t channels, float epsilon,
		      const float *gamma, const float *beta, float *mean, float *inverse);

/*
 * The gradient: with h = dy gamma and n = (x - mean) inverse, dx = inverse (h - mean of h - n times
 * the mean of h n), means over the row. @dx may be @dy or NULL. @gamma_sums[channels] = sum dy n
 * and @beta_sums[channels] = sum dy over these rows; either may be NULL.
 */
void kernel_norm_rows_grad(const float *x, const float *dy, float *dx, int64_t rows,
			   int64_t channels, const float *gamma, const float *mean,
			   const float *inverse, bool add, double *gamma_sums, double *beta_sums);

#endif /* KERNEL_NORM_H */
