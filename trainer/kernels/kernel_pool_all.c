/*
 * Pooling over whole images. Sums run in float over ALL_RUN cells, then in double; channels are
 * processed in strips whose sums stay in the L1 cache.
 */
#include <string.h>

#include "common/minmax.h"
#include "trainer/kernels/kernel_clones.h"
#include "trainer/kernels/kernel_pool.h"

#define ALL_STRIP 512 /* maximum channels per strip */
#define ALL_RUN   64  /* cells summed in float */

/* ---- mean ------------------------------------------------------------------------------------ */

KERNEL_CLONES
static void all_add(const float *restrict x, int64_t stride, int64_t cells, int64_t channels,
		    float *restrict run, double *restrict sums)
{
	memset(run, 0, (size_t)channels * sizeof(*run));
	for (int64_t i = 0; i < cells; i++)
		for (int64_t c = 0; c < channels; c++)
			run[c] += x[i * stride + c];
	for (int64_t c = 0; c < channels; c++)
		sums[c] += (double)run[c];
}

void kernel_pool_mean_all(const float *x, int64_t stride, int64_t cells, int64_t channels, float *y)
{
	for (int64_t from = 0; from < channels; from += ALL_STRIP) {
		int64_t count = min(channels - from, ALL_STRIP);
		double sums[ALL_STRIP] = {0};
		float run[ALL_STRIP];

		for (int64_t i = 0; i < cells; i += ALL_RUN)
			all_add(x + i * stride + from, stride, min(cells - i, ALL_RUN), count, run,
				sums);
		for (int64_t c = 0; c < count; c++)
			y[from + c] = (float)(sums[c] / (double)cells);
	}
}

KERNEL_CLONES
void kernel_pool_mean_all_grad(const float *restrict dy, float *restrict dx, int64_t stride,
			       int64_t cells, int64_t channels, bool add)
{
	float factor = 1.0f / (float)cells;

	for (int64_t i = 0; i < cells; i++)
		for (int64_t c = 0; c < channels; c++)
			dx[i * stride + c] =
				add ? dx[i * stride + c] + dy[c] * factor : dy[c] * factor;
}

/* ---- maximum --------------------------------------------------------------------------------- */

KERNEL_CLONES
void kernel_pool_max_all(const float *restrict x, int64_t stride, int64_t cells, int64_t channels,
			 float *restrict y)
{
	memcpy(y, x, (size_t)channels * sizeof(*y));
	for (int64_t i = 1; i < cells; i++) {
		for (int64_t c = 0; c < channels; c++) {
			float value = x[i * stride + c];
			bool replaces = !(value <= y[c]) & (y[c] == y[c]);

			y[c] = replaces ? value : y[c];
		}
	}
}

/* share = dy / the number of cells that equal y */
KERNEL_CLONES
static void all_shares(const float *restrict x, const float *restrict y, const float *restrict dy,
		       float *restrict share, int64_t stride, int64_t cells, int64_t channels)
{
	memset(share, 0, (size_t)channels * sizeof(*share));
	for (int64_t i = 0; i < cells; i++)
		for (int64_t c = 0; c < channels; c++)
			share[c] += x[i * stride + c] == y[c] ? 1.0f : 0.0f;
	for (int64_t c = 0; c < channels; c++)
		share[c] = dy[c] / share[c];
}

/* Multiply rather than select: if no cell equals y, 0 times the infinite share is NaN
 * everywhere. */
KERNEL_CLONES
static void all_distribute(const float *restrict x, const float *restrict y,
			   const float *restrict share, float *restrict dx, int64_t stride,
			   int64_t cells, int64_t channels, bool add)
{
	for (int64_t i = 0; i < cells; i++) {
		for (int64_t c = 0; c < channels; c++) {
			float value = (x[i * stride + c] == y[c] ? 1.0f : 0.0f) * share[c];

			dx[i * stride + c] = add ? dx[i * stride + c] + value : value;
		}
	}
}

void kernel_pool_max_all_grad(const float *x, const float *y, const float *dy, float *dx,
			      int64_t stride, int64_t cells, int64_t channels, bool add)
{
	float share[ALL_STRIP];

	for (int64_t from = 0; from < channels; from += ALL_STRIP) {
		int64_t count = min(channels - from, ALL_STRIP);

		all_shares(x + from, y + from, dy + from, share, stride, cells, count);
		all_distribute(x + from, y + from, share, dx + from, stride, cells, count, add);
	}
}
