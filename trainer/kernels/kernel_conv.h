/*
 * Two-dimensional convolutions in NHWC layout, and their gradients; depthwise ones; padding.
 *
 * y[n, oy, ox, f] = sum over (i, j, c) of
 *     x[n, oy stride_y + i dilation_y - pad_top, ox stride_x + j dilation_x - pad_left, c]
 *     kernel[i, j, c, f]
 * where x is 0 outside the image (TensorFlow's correlation). With groups, filter f of group g reads
 * the channels of group g only, and the kernel's third dimension is channels / groups.
 *
 * Input pixels are read in place (padded ones from a copy). Weights are copied into panels as wide
 * as the registers, and a tile of pixels by filters is accumulated in registers over the whole
 * depth, without an im2col matrix. See kernel_conv_tile.h. Layers of 3 x 3 taps with many channels
 * use fewer multiplications: see kernel_conv_winograd.c.
 *
 * Slices depend on the shape only, and every sum has one order: the bytes are the same for any
 * number of threads. Nothing is allocated: the caller provides kernel_conv_scratch() bytes. Thread
 * safe.
 */
#ifndef KERNEL_CONV_H
#define KERNEL_CONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/pool.h"
#include "trainer/kernels/kernel_watch.h"

struct kernel_conv {
	int64_t batch;
	int64_t height, width, channels; /* of the input */
	int64_t out_height, out_width, filters;
	int64_t kernel_height, kernel_width;
	int64_t stride_y, stride_x;
	int64_t dilation_y, dilation_x; /* per axis, stride or dilation is 1 */
	int64_t pad_top, pad_left;      /* less than the dilated kernel */
	int64_t groups;                 /* divides channels and filters */
};

/* Applied to a sum before it is stored: + bias, then min(max(y, 0), most); NaN propagates. */
struct kernel_conv_finish {
	const float *bias; /* [filters]; NULL: none */
	bool relu;
	float most; /* upper bound of the ReLU; INFINITY: no bound */
	/* Receives all of the output, and is marked complete; NULL: not wanted. */
	struct kernel_watch *watch;
};

/* The thread pool, and working memory: kernel_conv_scratch() bytes aligned to 64 bytes. */
struct kernel_room {
	struct pool *pool;
	void *scratch;
};

/* Bytes that suffice for any of the functions below, for this batch and any smaller one. */
size_t kernel_conv_scratch(const struct kernel_conv *conv, unsigned lanes, bool training);

void kernel_conv_forward(const struct kernel_conv *conv, const struct kernel_room *room,
			 const float *x, const float *kernel,
			 const struct kernel_conv_finish *finish, float *y);

/* Compute dx from dy; with @add, add to the existing dx. */
void kernel_conv_grad_input(const struct kernel_conv *conv, const struct kernel_room *room,
			    const float *dy, const float *kernel, float *dx, bool add);

/* A ReLU that follows the sums, and what its gradient is computed from. */
struct kernel_conv_relu {
	const float *y; /* the finished output; NULL: no ReLU */
	float most;     /* its upper bound; INFINITY: no bound */
	bool keep;      /* overwrite dy with the gradient of the sums, for grad_input() */
};

/* Compute dkernel and, if @dbias is not NULL, the sums of dy by filter. dy is the gradient of the
 * finished output; it is modified only with @relu->keep. */
void kernel_conv_grad_kernel(const struct kernel_conv *conv, const struct kernel_room *room,
			     const float *x, float *dy, const struct kernel_conv_relu *relu,
			     float *dkernel, float *dbias);

/* dy = 0 if the finished output is at a bound of its ReLU; a NaN output passes dy through. */
void kernel_conv_grad_relu(const struct kernel_conv_relu *relu, struct pool *pool, float *dy,
			   size_t count);

/* The bodies of the tiles, fastest first: "avx512", "avx2", "portable"; NULL beyond the last. */
const char *kernel_conv_body(int index);
/* Use body @index from now on; false if this processor cannot run it. For tests and benchmarks,
 * while no convolution runs. Scratch sizes returned earlier become invalid. */
bool kernel_conv_use(int index);

/* ---- depthwise convolutions ------------------------------------------------------------------ */

/*
 * Depthwise convolutions, NHWC: every channel has its own filters.
 *
 * struct kernel_conv describes them with groups = channels. A channel's multiplier is
 * filters / channels, filter f reads channel f / multiplier, and the kernel is
 * [kernel height, kernel width, channels, multiplier]. Each image row is computed in blocks of
 * channels, reading the pixels in place. With a ReLU dy is always overwritten. The guarantees are
 * those of the functions above, which call these if every channel is a group.
 */

static inline bool kernel_is_depthwise(const struct kernel_conv *conv)
{
	return conv->groups == conv->channels && conv->groups > 1;
}

size_t kernel_depthwise_scratch(const struct kernel_conv *conv, unsigned lanes, bool training);

void kernel_depthwise_forward(const struct kernel_conv *conv, const struct kernel_room *room,
			      const float *x, const float *kernel,
			      const struct kernel_conv_finish *finish, float *y);
void kernel_depthwise_grad_input(const struct kernel_conv *conv, const struct kernel_room *room,
				 const float *dy, const float *kernel, float *dx, bool add);
void kernel_depthwise_grad_kernel(const struct kernel_conv *conv, const struct kernel_room *room,
				  const float *x, float *dy, const struct kernel_conv_relu *relu,
				  float *dkernel, float *dbias);

/* ---- padding --------------------------------------------------------------------------------- */

/*
 * Zero padding of NHWC images, and its gradient. Slices are ranges of rows; bytes are copied, so
 * the result is the same for any number of threads. Thread safe.
 */

struct kernel_pad {
	int64_t batch, height, width, channels; /* of the images without padding */
	int64_t top, bottom, left, right;       /* pixels of padding */
};

/* y[batch, top + height + bottom, left + width + right, channels] */
void kernel_pad_forward(const struct kernel_pad *pad, struct pool *pool, const float *x, float *y);
/* dx = the inner part of dy; with @add, added to dx. */
void kernel_pad_grad(const struct kernel_pad *pad, struct pool *pool, const float *dy, float *dx,
		     bool add);

#endif /* KERNEL_CONV_H */
