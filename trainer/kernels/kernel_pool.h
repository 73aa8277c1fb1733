/*
 * Pooling of NHWC images over windows and over whole images, and the gradients.
 *
 * Functions process a range of rows on one thread, so that a caller can distribute rows. Forward
 * functions count the output's rows, batch * out_height; backward functions the input's, batch *
 * height. Backward gathers: each value of dx is written once, as the sum over the windows that
 * contain it, in row-major order of the windows; a value in no window gets 0. With @add the sum is
 * added to dx. Results do not depend on how rows are distributed.
 */
#ifndef KERNEL_POOL_H
#define KERNEL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* x is [batch, height, width, channels], y [batch, out_height, out_width, channels]. Window (i, j)
 * begins at row i * stride_height - top and column j * stride_width - left. It is cut at the
 * image's borders, and has at least one cell inside. */
struct kernel_pool {
	int64_t height, width, channels;
	int64_t out_height, out_width;
	int64_t pool_height, pool_width;
	int64_t stride_height, stride_width;
	int64_t top, left;
};

/*
 * y = the window's maximum; NaN wins. @argmax (may be NULL) receives the index of the first
 * greatest cell in row-major order (of the first NaN if there is one): kh * pool_width + kw in the
 * uncut window, in the layout of y, kernel_pool_argmax_size() bytes each.
 */
void kernel_pool_max(const struct kernel_pool *pool, const float *x, float *y, void *argmax,
		     int64_t row, int64_t rows);
size_t kernel_pool_argmax_size(const struct kernel_pool *pool);

/* dx = dy at the cell that @argmax selected, else 0. */
void kernel_pool_max_grad(const struct kernel_pool *pool, const void *argmax, const float *dy,
			  float *dx, int64_t row, int64_t rows, bool add);

/* y = the mean of the cells inside the image. */
void kernel_pool_average(const struct kernel_pool *pool, const float *x, float *y, int64_t row,
			 int64_t rows);
void kernel_pool_average_grad(const struct kernel_pool *pool, const float *dy, float *dx,
			      int64_t row, int64_t rows, bool add);

/* ---- over whole images ----------------------------------------------------------------------- */

/* x is [cells, channels], with `stride` floats from cell to cell. */
void kernel_pool_mean_all(const float *x, int64_t stride, int64_t cells, int64_t channels,
			  float *y);
void kernel_pool_mean_all_grad(const float *dy, float *dx, int64_t stride, int64_t cells,
			       int64_t channels, bool add);

/* The maximum; NaN wins. The gradient is divided evenly among all cells equal to the maximum,
 * as for TensorFlow's reduce_max. If the maximum is NaN no cell equals it, and all gradients
 * are NaN. */
void kernel_pool_max_all(const float *x, int64_t stride, int64_t cells, int64_t channels, float *y);
void kernel_pool_max_all_grad(const float *x, const float *y, const float *dy, float *dx,
			      int64_t stride, int64_t cells, int64_t channels, bool add);

#endif /* KERNEL_POOL_H */
