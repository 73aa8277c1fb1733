/*
 * Normalization by channel: the passes that write each element, loops that the compiler vectorizes.
 */
#include <assert.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_norm.h"
#include "trainer/kernels/kernel_norm_internal.h"
#include "trainer/kernels/kernel_watch.h"

/* Wide rows, and the coefficients of each of their columns: the caller's own arrays if one copy of
 * the channels is wide enough. */
struct norm_wide {
	int64_t rows, columns, rest; /* rest: columns of an incomplete last row */
	const float *mean, *scale, *offset, *constant, *slope;
	float low, high, most;
	float tiled[5][NORM_WIDE];
};

static const float *norm_repeat(float *tiled, const float *values, int64_t channels, int64_t tiles)
{
	if (!values || tiles == 1)
		return values;
	memcpy(tiled, values, (size_t)channels * sizeof(float));
	norm_tile(tiled, channels, tiles);
	return tiled;
}

static void norm_wide_init(struct norm_wide *w, const struct kernel_norm *norm,
			   const float *constant, const float *slope, int64_t rows)
{
	int64_t tiles = norm_tiles(norm->channels);

	w->rows = rows / tiles;
	w->columns = tiles * norm->channels;
	w->rest = rows % tiles * norm->channels;
	w->most = norm->most;
	norm_bounds(norm, &w->low, &w->high);
	w->mean = norm_repeat(w->tiled[0], norm->mean, norm->channels, tiles);
	w->scale = norm_repeat(w->tiled[1], norm->scale, norm->channels, tiles);
	w->offset = norm_repeat(w->tiled[2], norm->offset, norm->channels, tiles);
	w->constant = norm_repeat(w->tiled[3], constant, norm->channels, tiles);
	w->slope = norm_repeat(w->tiled[4], slope, norm->channels, tiles);
}

/* Return the greatest magnitude if @watched, else 0. */
KERNEL_INLINE uint32_t norm_apply_row(const struct norm_wide *w, const float *x, float *y,
				      int64_t columns, bool relu, bool watched)
{
	const float *mean = w->mean, *scale = w->scale, *offset = w->offset;
	float most = w->most;
	uint32_t greatest = 0;

	KERNEL_INDEPENDENT
	for (int64_t j = 0; j < columns; j++) {
		float sum = (x[j] - mean[j]) * scale[j] + offset[j];

		if (relu) {
			sum = sum < 0.0f ? 0.0f : sum;
			sum = sum > most ? most : sum;
		}
		y[j] = sum;
		if (watched)
			greatest = kernel_greatest(greatest, sum);
	}
	return greatest;
}

KERNEL_INLINE uint32_t norm_apply_all(const struct norm_wide *w, const float *x, float *y,
				      bool relu, bool watched)
{
	uint32_t greatest = 0, row;

	for (int64_t i = 0; i < w->rows; i++, x += w->columns, y += w->columns) {
		row = norm_apply_row(w, x, y, w->columns, relu, watched);
		greatest = max(row, greatest);
	}
	row = norm_apply_row(w, x, y, w->rest, relu, watched);
	return max(row, greatest);
}

#define NORM_APPLY_VARIANT(name, relu, watched)                                                    \
	KERNEL_CLONES static uint32_t name(const struct norm_wide *w, const float *x, float *y)    \
	{                                                                                          \
		return norm_apply_all(w, x, y, relu, watched);                                     \
	}

NORM_APPLY_VARIANT(norm_apply, false, false)
NORM_APPLY_VARIANT(norm_apply_relu, true, false)
NORM_APPLY_VARIANT(norm_apply_watched, false, true)
NORM_APPLY_VARIANT(norm_apply_relu_watched, true, true)

uint32_t kernel_norm_apply(const struct kernel_norm *norm, const float *x, float *y, int64_t rows,
			   bool watched)
{
	struct norm_wide w;

	norm_wide_init(&w, norm, NULL, NULL, rows);
	if (watched)
		return (norm->relu ? norm_apply_relu_watched : norm_apply_watched)(&w, x, y);
	return (norm->relu ? norm_apply_relu : norm_apply)(&w, x, y);
}

/* What a variant of the gradient computes: a compile-time constant in each variant. */
enum norm_grad_flags {
	NORM_RELU = 1,
	NORM_MOMENTS = 2, /* the moments are the batch's, so they have a gradient too */
	NORM_ADD = 4,
	NORM_VARIANTS = 8
};

KERNEL_INLINE void norm_grad_row(const struct norm_wide *w, const float *x, const float *dy,
				 float *dx, int64_t columns, int flags)
{
	const float *mean = w->mean, *scale = w->scale, *offset = w->offset;
	const float *constant = w->constant, *slope = w->slope;
	float low = w->low, high = w->high;

	KERNEL_INDEPENDENT
	for (int64_t j = 0; j < columns; j++) {
		float g = dy[j], d;

		if (flags & (NORM_RELU | NORM_MOMENTS))
			d = x[j] - mean[j];
		if (flags & NORM_RELU)
			g = norm_gate(d * scale[j] + offset[j], g, low, high);
		if (flags & NORM_MOMENTS)
			g -= constant[j] + slope[j] * d;
		g *= scale[j];
		dx[j] = flags & NORM_ADD ? dx[j] + g : g;
	}
}

KERNEL_INLINE void norm_grad_all(const struct norm_wide *w, const float *x, const float *dy,
				 float *dx, int flags)
{
	for (int64_t i = 0; i < w->rows; i++) {
		norm_grad_row(w, x, dy, dx, w->columns, flags);
		x += w->columns;
		dy += w->columns;
		dx += w->columns;
	}
	norm_grad_row(w, x, dy, dx, w->rest, flags);
}

#define NORM_GRAD_VARIANT(flags)                                                                   \
	KERNEL_CLONES static void norm_grad_##flags(const struct norm_wide *w, const float *x,     \
						    const float *dy, float *dx)                    \
	{                                                                                          \
		norm_grad_all(w, x, dy, dx, flags);                                                \
	}

NORM_GRAD_VARIANT(0)
NORM_GRAD_VARIANT(1)
NORM_GRAD_VARIANT(2)
NORM_GRAD_VARIANT(3)
NORM_GRAD_VARIANT(4)
NORM_GRAD_VARIANT(5)
NORM_GRAD_VARIANT(6)
NORM_GRAD_VARIANT(7)

typedef void (*norm_grad_variant)(const struct norm_wide *w, const float *x, const float *dy,
				  float *dx);

static const norm_grad_variant norm_grad_variants[] = {
	norm_grad_0, norm_grad_1, norm_grad_2, norm_grad_3,
	norm_grad_4, norm_grad_5, norm_grad_6, norm_grad_7,
};
_Static_assert(ARRAY_LEN(norm_grad_variants) == NORM_VARIANTS, "gradient table out of step");

void kernel_norm_grad(const struct kernel_norm *norm, const float *constant, const float *slope,
		      const float *x, const float *dy, float *dx, int64_t rows, bool add)
{
	int flags =
		(norm->relu ? NORM_RELU : 0) | (slope ? NORM_MOMENTS : 0) | (add ? NORM_ADD : 0);
	struct norm_wide w;

	assert(!constant == !slope);
	norm_wide_init(&w, norm, constant, slope, rows);
	norm_grad_variants[flags](&w, x, dy, dx);
}
