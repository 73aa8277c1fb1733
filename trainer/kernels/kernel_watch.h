/*
 * The greatest magnitude in a layer's output, computed while the output is still in the cache.
 *
 * Stored as the bits of a float without its sign, which sort like the magnitudes: infinity is
 * KERNEL_NONFINITE_BITS, a NaN is greater, 0 means zero or no value. A maximum does not depend on
 * the order of its operands, so slices of work may report theirs from any thread.
 */
#ifndef KERNEL_WATCH_H
#define KERNEL_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/pool.h"

#define KERNEL_NONFINITE_BITS 0x7f800000u

/* Initialize with zero bytes. */
struct kernel_watch {
	atomic_uint most;
	bool known; /* complete; set by the thread that ran the slices */
};

/* The greater of @most and the magnitude of @x, for use in a loop. */
static inline __attribute__((always_inline)) uint32_t kernel_greatest(uint32_t most, float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	bits &= 0x7fffffffu;
	return bits > most ? bits : most;
}

uint32_t kernel_abs_max(const float *x, size_t count);
/* Of @rows rows of @columns floats, @stride apart. */
uint32_t kernel_abs_max_rows(const float *x, int64_t stride, int64_t rows, int64_t columns);

static inline void kernel_watch_update(struct kernel_watch *watch, uint32_t most)
{
	unsigned old = atomic_load_explicit(&watch->most, memory_order_relaxed);

	while (most > old &&
	       !atomic_compare_exchange_weak_explicit(&watch->most, &old, most,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/* Return the greatest magnitude: the known one, or else computed from @x in parallel on @pool. */
uint32_t kernel_watch_most(struct kernel_watch *watch, struct pool *pool, const float *x,
			   size_t count);

#endif /* KERNEL_WATCH_H */
