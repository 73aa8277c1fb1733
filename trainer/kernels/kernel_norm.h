/*
 * Normalisation by channel (batch) and by row (layer): moments, the normalising pass, gradients.
 *
 * x is [rows, channels], densely packed; a channel's values lie `channels` floats apart. Functions
 * work on the rows they are given, on one thread; a caller cuts the rows with kernel_norm_cut(),
 * whose borders depend on the shape alone, and merges what the slices found in their order.
 *
 * Moments survive a mean far greater than the deviation. A slice sums x - K and (x - K)^2, K being
 * the mean of its first rows: by (mean - K)^2 <= variance * n / m for the mean K of m values among
 * n, at most a factor n / m of precision is lost, and n / m is 256 at most. Sums run in float over
 * 64 rows, then in double. A NaN or an infinity makes its channel NaN.
 */
#ifndef KERNEL_NORM_H
#define KERNEL_NORM_H

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_NORM_SLICES 64 /* the most slices of a cut */

struct kernel_norm_cut {
	int64_t rows, step; /* slice s is rows s * step and the following */
	unsigned slices;    /* never more for fewer rows */
};

struct kernel_norm_cut kernel_norm_cut(int64_t rows, int64_t channels);
/* How many rows slice @slice has. */
int64_t kernel_norm_slice_rows(const struct kernel_norm_cut *cut, unsigned slice);

/* ---- by channel ------------------------------------------------------------------------------ */

/* Of one slice: @mean[channels], and @squares[channels] = sum (x - mean)^2. rows >= 1. */
void kernel_norm_moments(const float *x, int64_t rows, int64_t channels, double *mean,
			 double *squares);

/* Slices' moments [slices, channels] become those of all rows (population variance), in the first
 * slice's place. Chan, Golub and LeVeque's rule for joining two samples, for all at once. */
void kernel_norm_merge_moments(const struct kernel_norm_cut *cut, int64_t channels, double *mean,
			       double *squares);

/* Sums of slices [slices, channels] are added in their order, in the first one's place. */
void kernel_norm_merge_sums(unsigned slices, int64_t channels, double *sums);

/* y = (x - mean) scale + offset, then min(max(y, 0), most) where there is a ReLU. */
struct kernel_norm {
	int64_t channels;
	const float *mean, *scale, *offset; /* by channel */
	bool relu;
	float most; /* INFINITY: no upper bound */
};

/* Returns the greatest magnitude in y where it is @watched (see kernel_watch.h), else 0. */
uint32_t kernel_norm_apply(const struct kernel_norm *norm, const float *x, float *y, int64_t rows,
			   bool watched);

/*
 * With g = dy where the ReLU was open (0 < y < most; a NaN lets through), which is worked out from
 * @x anew and is the very decision of kernel_norm_apply(), or dy without one:
 * @sums[channels] = sum g, @products[channels] = sum g (x - mean).
 */
void kernel_norm_grad_sums(const struct kernel_norm *norm, const float *x, const float *dy,
			   int64_t rows, double *sums, double *products);

/* dx = scale (g - constant - slope (x - mean)), both by channel; added to @dx where @add. @dx may
 * be @dy. @constant and @slope NULL: dx = scale g. */
void kernel_norm_grad(const struct kernel_norm *norm, const float *constant, const float *slope,
		      const float *x, const float *dy, float *dx, int64_t rows, bool add);

/* ---- by row ---------------------------------------------------------------------------------- */

/* y = (x - mean) / sqrt(variance + epsilon) gamma + beta with the moments of each row, which are
 * left in @mean[rows] and @inverse[rows] (1 / sqrt()). @gamma, @beta may be NULL: 1 and 0. */
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
