/*
 * Magnitudes: loops over bits, which the compiler vectorizes. See the header.
 */
#include "trainer/kernels/kernel_watch.h"

#include "common/minmax.h"
#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_work.h"

#define WATCH_STRIP 32    /* columns */
#define WATCH_GRAIN 32768 /* floats per slice */

KERNEL_INLINE uint32_t watch_abs_max(const float *x, size_t count)
{
	uint32_t abs_max = 0;

	for (size_t i = 0; i < count; i++)
		abs_max = kernel_greatest(abs_max, x[i]);
	return abs_max;
}

/* A strip of columns: their maxima stay in registers. */
KERNEL_INLINE uint32_t watch_strip(const float *x, int64_t stride, int64_t rows)
{
	uint32_t abs_max[WATCH_STRIP] = {0}, all = 0;

	for (int64_t i = 0; i < rows; i++, x += stride)
		for (int j = 0; j < WATCH_STRIP; j++)
			abs_max[j] = kernel_greatest(abs_max[j], x[j]);
	for (int j = 0; j < WATCH_STRIP; j++)
		all = max(abs_max[j], all);
	return all;
}

KERNEL_CLONES
uint32_t kernel_abs_max(const float *x, size_t count)
{
	return watch_abs_max(x, count);
}

KERNEL_CLONES
uint32_t kernel_abs_max_rows(const float *x, int64_t stride, int64_t rows, int64_t columns)
{
	uint32_t abs_max = 0;
	int64_t column = 0;

	if (stride == columns)
		return watch_abs_max(x, (size_t)(rows * columns));
	for (; column + WATCH_STRIP <= columns; column += WATCH_STRIP) {
		uint32_t strip = watch_strip(x + column, stride, rows);

		abs_max = max(strip, abs_max);
	}
	for (int64_t i = 0; i < rows && column < columns; i++) {
		uint32_t row = watch_abs_max(x + i * stride + column, (size_t)(columns - column));

		abs_max = max(row, abs_max);
	}
	return abs_max;
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

	kernel_watch_update(w->watch, kernel_abs_max(w->x + begin, min(left, WATCH_GRAIN)));
}

uint32_t kernel_watch_most(struct kernel_watch *watch, struct pool *pool, const float *x,
			   size_t count)
{
	struct watch_work work = {watch, x, count};

	if (!watch->known)
		pool_share(pool, kernel_work_floats((int64_t)count), watch_slice, &work,
			   (unsigned)((count + WATCH_GRAIN - 1) / WATCH_GRAIN));
	watch->known = true;
	return atomic_load_explicit(&watch->most, memory_order_relaxed);
}
