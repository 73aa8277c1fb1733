/*
 * The cheap looks, over the kernels.
 *
 * Pure functions on the caller's data: any thread.
 */
#include "outfeed/outfeed_scan.h"

#include <string.h>

#include "common/minmax.h"
#include "outfeed/outfeed_kernel.h"

#define MAGNITUDE 0x7fffffffu

/* So many values at a time: they are still in the first-level cache when there is something about
 * them to be found out. */
#define STRETCH 8192

uint32_t outfeed_scan_abs_max(const float *values, size_t count)
{
	return outfeed_kernel_get()->abs_max(values, count);
}

static void count_stretch(struct outfeed_stats *out, const float *values, size_t count)
{
	const struct outfeed_kernel *kernel = outfeed_kernel_get();
	struct outfeed_counts counts;

	kernel->signs(values, count, &counts);
	out->n_neg += counts.negatives;
	out->n_pos += counts.positives;
	if (counts.most < OUTFEED_NONFINITE_BITS)
		return;
	kernel->nonfinite(values, count, &counts);
	out->n_nan += counts.nan;
	out->n_pos_inf += counts.pos_inf;
	out->n_neg_inf += counts.neg_inf;
}

void outfeed_scan_counts(struct outfeed_stats *out, const float *values, size_t count)
{
	outfeed_stats_init(out);
	for (size_t at = 0; at < count; at += STRETCH)
		count_stretch(out, values + at, min(count - at, STRETCH));
	out->n = (int64_t)count;
	out->n_zero = out->n - out->n_nan - out->n_neg - out->n_pos;
}

static uint32_t magnitude_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits & MAGNITUDE;
}

size_t outfeed_scan_first_nonfinite(const float *values, size_t count)
{
	const struct outfeed_kernel *kernel = outfeed_kernel_get();
	size_t at = 0;

	while (count - at > STRETCH &&
	       kernel->abs_max(values + at, STRETCH) < OUTFEED_NONFINITE_BITS)
		at += STRETCH;
	while (at < count && magnitude_of(values[at]) < OUTFEED_NONFINITE_BITS)
		at++;
	return at;
}

void outfeed_scan_widen(float *out, const uint16_t *halves, size_t count)
{
	outfeed_kernel_get()->widen(out, halves, count);
}
