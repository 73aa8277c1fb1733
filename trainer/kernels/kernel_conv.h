/*
 * Two-dimensional convolutions, NHWC, and their gradients, by kernels of our own.
 *
 * y[n, oy, ox, f] = sum over (i, j, c) of
 *     x[n, oy stride_y + i dilation_y - pad_top, ox stride_x + j dilation_x - pad_left, c]
 *     kernel[i, j, c, f]
 * where x is 0 outside of the image (TensorFlow's correlation). With groups, filter f of group g
 * sees the channels of group g alone, and the kernel's third side is channels / groups.
 *
 * Input pixels are read where they lie (padded ones from a copy), weights are copied into panels as
 * wide as the registers hold, and a tile of pixels by filters is summed up in registers over the
 * whole depth: no matrix is made. See kernel_conv_tile.h. Layers of 3 x 3 taps with many channels
 * are done with fewer multiplications: see kernel_conv_winograd.c.
 *
 * Work is cut into slices by shape alone, and every sum runs in one order: the same bytes for any
 * number of threads. Nothing is allocated: the caller gives kernel_conv_scratch() bytes. Thread
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
	int64_t dilation_y, dilation_x; /* one of stride and dilation is 1, each way */
	int64_t pad_top, pad_left;      /* less than the dilated kernel */
	int64_t groups;                 /* divides channels and filters */
};

/* What is done to a sum before it is stored: + bias, then min(max(y, 0), most), NaN kept. */
struct kernel_conv_finish {
	const float *bias; /* [filters]; NULL: none */
	bool relu;
	float most; /* of the relu; INFINITY: no bound */
	/* Is told of all of the output, and that it is all; NULL: nobody asks. */
	struct kernel_watch *watch;
};

/* Who lends a hand, and the working memory: kernel_conv_scratch() bytes on a 64-byte line. */
struct kernel_room {
	struct pool *pool;
	void *scratch;
};

/* Bytes for any of the functions below, for this batch and any smaller one. */
size_t kernel_conv_scratch(const struct kernel_conv *conv, unsigned lanes, bool training);

void kernel_conv_forward(const struct kernel_conv *conv, const struct kernel_room *room,
			 const float *x, const float *kernel,
			 const struct kernel_conv_finish *finish, float *y);

/* dx from dy; with @add it is added to what is there. */
void kernel_conv_grad_input(const struct kernel_conv *conv, const struct kernel_room *room,
			    const float *dy, const float *kernel, float *dx, bool add);

/* A ReLU behind the sums: what its gradient is known by. */
struct kernel_conv_relu {
	const float *y; /* the finished output; NULL: there is no ReLU */
	float most;     /* its upper bound; INFINITY: none */
	bool keep;      /* dy is overwritten with the gradient of the sums, for grad_input() */
};

/* dkernel, and the sums of dy by filter in @dbias where that is not NULL. dy is that of the
 * finished output; it is changed with @relu->keep only. */
void kernel_conv_grad_kernel(const struct kernel_conv *conv, const struct kernel_room *room,
			     const float *x, float *dy, const struct kernel_conv_relu *relu,
			     float *dkernel, float *dbias);

/* dy = 0 where the finished output is at a bound of its ReLU; a NaN of it lets dy through. */
void kernel_conv_grad_relu(const struct kernel_conv_relu *relu, struct pool *pool, float *dy,
			   size_t count);

/* The bodies of the tiles, fastest first: "avx512", "avx2", "portable"; NULL beyond the last. */
const char *kernel_conv_body(int index);
/* Use body @index from now on; false where this processor cannot run it. For tests and benchmarks,
 * while no convolution runs; scratch asked for before is void. */
bool kernel_conv_use(int index);

#endif /* KERNEL_CONV_H */
