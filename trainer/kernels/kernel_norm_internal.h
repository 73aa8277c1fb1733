/*
 * Shared by the passes of normalization by channel: wide rows, and a ReLU's gate.
 *
 * If there are few channels, `tiles` rows are processed side by side as one wide row.
 */
#ifndef KERNEL_NORM_INTERNAL_H
#define KERNEL_NORM_INTERNAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_norm.h"

#define NORM_WIDE 512 /* maximum columns of a wide row or of a strip */

/* The number of copies of the channels in a wide row. */
static inline int64_t norm_tiles(int64_t channels)
{
	return channels < NORM_WIDE ? NORM_WIDE / channels : 1;
}

static inline void norm_tile(float *values, int64_t channels, int64_t tiles)
{
	for (int64_t t = 1; t < tiles; t++)
		memcpy(values + t * channels, values, (size_t)channels * sizeof(float));
}

/*
 * The gradient @dy that a ReLU passes for its input @y. The bounds express 0 < y < most: low is 0,
 * high the greatest float below most (or infinity, which passes). Without a ReLU the bounds are
 * infinities, which exclude nothing.
 */
KERNEL_INLINE float norm_gate(float y, float dy, float low, float high)
{
	return ((y <= low) | (y > high)) ? 0.0f : dy;
}

static inline void norm_bounds(const struct kernel_norm *norm, float *low, float *high)
{
	*low = norm->relu ? 0.0f : -INFINITY;
	*high = norm->relu && !isinf(norm->most) ? nextafterf(norm->most, -INFINITY) : INFINITY;
}

#endif /* KERNEL_NORM_INTERNAL_H */
