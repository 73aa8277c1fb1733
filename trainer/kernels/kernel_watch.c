/*
 * Magnitudes: loops over bits, which the compiler vectorises. See the header.
 */
#include "trainer/kernels/kernel_watch.h"

#include <string.h>

#include "trainer/kernels/kernel_clones.h"

#define WATCH_MAGNITUDE 0x7fffffffu
#define WATCH_GRAIN     32768 /* floats that pay for a slice of their own */

KERNEL_INLINE uint32_t watch_abs_max(const float *x, size_t count)
{
	uint32_t most = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t bits;

		memcpy(&bits, &x[i], sizeof(bits));
		bits &= WATCH_MAGNITUDE;
		most = bits > most ? bits : most;
	}
	return most;
}

KERNEL_CLONES
uint32_t kernel_abs_max(const float *x, size_t count)
{
	return watch_abs_max(x, count);
}

KERNEL_CLONES
uint32_t kernel_abs_max_rows(const float *x, int64_t stride, int64_t rows, int64_t columns)
{
	uint32_t most = 0;

	if (stride == columns)
		return watch_abs_max(x, (size_t)(rows * columns));
	for (int64_t i = 0; i < rows; i++) {
		uint32_t row = watch_abs_max(x + i * stride, (size_t)columns);

		most = row > most ? row : most;
	}
	return most;
}

struct watch_work {
	struct kernel_watch *watch;
	const float *x;
	size_t count;
};

static void watch_slice(void *context, unsigned slice)
{
	const struct watch_work *w = context;
	size_t begin = (size_t)slice * WATCH_GRAIN, left = w->count - begin;

	kernel_watch_put(w->watch,
			 kernel_abs_max(w->x + begin, left < WATCH_GRAIN ? left : WATCH_GRAIN));
}

uint32_t kernel_watch_most(struct kernel_watch *watch, struct pool *pool, const float *x,
			   size_t count)
{
	struct watch_work work = {watch, x, count};

	if (!watch->known)
		pool_run(pool, watch_slice, &work,
			 (unsigned)((count + WATCH_GRAIN - 1) / WATCH_GRAIN));
	watch->known = true;
	return atomic_load_explicit(&watch->most, memory_order_relaxed);
}
