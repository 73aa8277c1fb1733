/*
 * Zero padding of NHWC images, and its gradient. Slices are ranges of rows; bytes are copied, so
 * the result is the same for any number of threads. Thread safe.
 */
#ifndef KERNEL_PAD_H
#define KERNEL_PAD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/pool.h"

struct kernel_pad {
	int64_t batch, height, width, channels; /* of the images without padding */
	int64_t top, bottom, left, right;       /* pixels of padding */
};

/* y[batch, top + height + bottom, left + width + right, channels] */
void kernel_pad_forward(const struct kernel_pad *pad, struct pool *pool, const float *x, float *y);
/* dx = the inner part of dy; with @add, added to dx. */
void kernel_pad_grad(const struct kernel_pad *pad, struct pool *pool, const float *dy, float *dx,
		     bool add);

#endif /* KERNEL_PAD_H */
