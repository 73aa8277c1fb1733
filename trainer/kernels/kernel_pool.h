/*
 * Pooling of NHWC images over windows, and over whole images; and the gradients.
 *
 * Functions work on a range of rows, on one thread, so that a caller can share rows out: forward
 * on rows of the output, which number batch * out_height, backward on rows of the input, batch *
 * height. Backward gathers: each value of dx is written once, as the sum over the windows that it
 * lies in, in row-major order of the windows; a value in no window gets 0. With @add it is added
 * to what is there. Results do not depend on how rows are shared out.
 */
#ifndef KERNEL_POOL_H
#define KERNEL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* x is [batch, height, width, channels], y [batch, out_height, out_width, channels]. Window (i, j)
 * begins at row i * stride_height - top and column j * stride_width - left; it is cut at the
 * image's borders, and every one has at least one cell inside. */
struct kernel_pool {
	int64_t height, width, channels;
	int64_t out_height, out_width;
	int64_t pool_height, pool_width;
	int64_t stride_height, stride_width;
	int64_t top, left;
};

/*
 * y = the window's maximum; a NaN wins. @argmax (NULL: not wanted) gets the place of the first
 * greatest cell in row-major order (of the first NaN where there is one): kh * pool_width + kw in
 * the uncut window, in the layout of y, each kernel_pool_argmax_size() bytes.
 */
void kernel_pool_max(const struct kernel_pool *pool, const float *x, float *y, void *argmax,
		     int64_t row, int64_t rows);
size_t kernel_pool_argmax_size(const struct kernel_pool *pool);

/* dy goes to the cell that argmax names. */
void kernel_pool_max_grad(const struct kernel_pool *pool, const void *argmax, const float *dy,
			  float *dx, int64_t row, int64_t rows, bool add);

/* y = the mean of the cells inside the image. */
void kernel_pool_average(const struct kernel_pool *pool, const float *x, float *y, int64_t row,
			 int64_t rows);
void kernel_pool_average_grad(const struct kernel_pool *pool, const float *dy, float *dx,
			      int64_t row, int64_t rows, bool add);

/* ---- over whole images ----------------------------------------------------------------------- */

/* x is [cells, channels], of which `stride` floats lie from row to row. */
void kernel_pool_mean_all(const float *x, int64_t stride, int64_t cells, int64_t channels,
			  float *y);
void kernel_pool_mean_all_grad(const float *dy, float *dx, int64_t stride, int64_t cells,
			       int64_t channels, bool add);

/* The maximum; a NaN wins. Its gradient is shared evenly by all cells that equal it, as that of
 * TensorFlow's reduce_max; a NaN equals nothing and makes all of them NaN. */
void kernel_pool_max_all(const float *x, int64_t stride, int64_t cells, int64_t channels, float *y);
void kernel_pool_max_all_grad(const float *x, const float *y, const float *dy, float *dx,
			      int64_t stride, int64_t cells, int64_t channels, bool add);

#endif /* KERNEL_POOL_H */
