/*
 * What the variants of the loops have in common: what one lane does, the last row, and folding.
 *
 * Variants differ in how many lanes go at once, not in what a lane does. Minimum and maximum are
 * `x < m ? x : m` and `x > m ? x : m` everywhere, which is what the vector instructions with
 * operands (x, m) compute.
 *
 * Pure functions on the caller's data: any thread.
 */
#ifndef OUTFEED_KERNEL_INTERNAL_H
#define OUTFEED_KERNEL_INTERNAL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "outfeed/outfeed_kernel.h"

#if defined(__x86_64__)
extern const struct outfeed_kernel outfeed__kernel_avx512, outfeed__kernel_avx2;
#endif
extern const struct outfeed_kernel outfeed__kernel_portable;

#define OUTFEED_MAGNITUDE 0x7fffffff
#define OUTFEED_INFINITE  0x7f800000
#define OUTFEED_LANES     16

/* Always inlined, so that all of a variant is in one encoding: going from 512-bit vectors to old
 * SSE instructions and back costs more than the folding itself. */
#define OUTFEED_INLINE static inline __attribute__((always_inline))

/* The hardware's own prefetcher stops at every page, and cannot keep memory busy beside much
 * arithmetic: ask for lines so many floats ahead, into the second-level cache. (Into the first, the
 * few buffers of its misses would be the limit.) */
#define OUTFEED_AHEAD 2048

/* changes of a variable (numpy.isclose) */
#define OUTFEED_ATOL 1e-8
#define OUTFEED_RTOL 1e-5

struct outfeed_lanes {
	/* Aligned, or whole-vector stores would straddle cache lines and stall the loads after. */
	_Alignas(64) double sum[OUTFEED_LANES];
	double squares[OUTFEED_LANES], l1[OUTFEED_LANES];
	float min[OUTFEED_LANES], max[OUTFEED_LANES];
	uint32_t least[OUTFEED_LANES];
	uint32_t zeros[OUTFEED_LANES], negatives[OUTFEED_LANES];
};

OUTFEED_INLINE void outfeed_lanes_start(struct outfeed_lanes *lanes)
{
	memset(lanes, 0, sizeof(*lanes)); /* +0 is all zeros */
	for (int i = 0; i < OUTFEED_LANES; i++) {
		lanes->min[i] = INFINITY;
		lanes->max[i] = -INFINITY;
		lanes->least[i] = UINT32_MAX;
	}
}

OUTFEED_INLINE size_t outfeed_rows(size_t count)
{
	return count - count % OUTFEED_LANES;
}

OUTFEED_INLINE uint32_t outfeed_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

OUTFEED_INLINE uint32_t outfeed_magnitude(float x)
{
	return outfeed_bits(x) & OUTFEED_MAGNITUDE;
}

/* ---- folding --------------------------------------------------------------------------------- */

OUTFEED_INLINE double outfeed_fold(double *lane)
{
	for (int width = OUTFEED_LANES / 2; width > 0; width /= 2) {
		for (int i = 0; i < width; i++)
			lane[i] += lane[i + width];
	}
	return lane[0];
}

OUTFEED_INLINE void outfeed_fold_sums(struct outfeed_lanes *lanes, struct outfeed_sums *out)
{
	for (int width = OUTFEED_LANES / 2; width > 0; width /= 2) {
		for (int i = 0; i < width; i++) {
			int j = i + width;

			if (lanes->min[j] < lanes->min[i])
				lanes->min[i] = lanes->min[j];
			if (lanes->max[j] > lanes->max[i])
				lanes->max[i] = lanes->max[j];
			if (lanes->least[j] < lanes->least[i])
				lanes->least[i] = lanes->least[j];
			lanes->zeros[i] += lanes->zeros[j];
			lanes->negatives[i] += lanes->negatives[j];
		}
	}
	out->sum = outfeed_fold(lanes->sum);
	out->squares = outfeed_fold(lanes->squares);
	out->l1 = outfeed_fold(lanes->l1);
	out->min = lanes->min[0];
	out->max = lanes->max[0];
	out->least = lanes->least[0];
	out->zeros = lanes->zeros[0];
	out->negatives = lanes->negatives[0];
}

OUTFEED_INLINE void outfeed_fold_centred(struct outfeed_lanes *lanes, struct outfeed_sums *out)
{
	out->sum = outfeed_fold(lanes->sum);
	out->squares = outfeed_fold(lanes->squares);
}

/* A NaN that came about in a sum has the bytes of NAN, whichever operand it came from. */
OUTFEED_INLINE double outfeed_one_nan(double x)
{
	return isnan(x) ? (double)NAN : x;
}

OUTFEED_INLINE void outfeed_fold_change(struct outfeed_lanes *lanes, struct outfeed_change *out)
{
	out->sum_change = outfeed_one_nan(outfeed_fold(lanes->sum));
	out->sum_before = outfeed_one_nan(outfeed_fold(lanes->l1));
}

/* ---- what a lane does ------------------------------------------------------------------------ */

OUTFEED_INLINE void outfeed_lane_sums(struct outfeed_lanes *lanes, size_t i, float x)
{
	double d = (double)x;
	/* Zero minus one is the greatest number of all, so zeros are never the least. */
	uint32_t bits = outfeed_magnitude(x) - 1;

	lanes->sum[i] += d;
	lanes->squares[i] += d * d; /* exact: fusing it with the sum changes nothing */
	lanes->l1[i] += fabs(d);
	lanes->min[i] = x < lanes->min[i] ? x : lanes->min[i];
	lanes->max[i] = x > lanes->max[i] ? x : lanes->max[i];
	lanes->least[i] = bits < lanes->least[i] ? bits : lanes->least[i];
	lanes->zeros[i] += bits == UINT32_MAX;
	lanes->negatives[i] += x < 0;
}

OUTFEED_INLINE void outfeed_lane_centred(struct outfeed_lanes *lanes, size_t i, float x,
					 double shift)
{
	double d = (double)x - shift;

	lanes->sum[i] += d;
	lanes->squares[i] += d * d;
}

OUTFEED_INLINE uint32_t outfeed_lane_change(struct outfeed_lanes *lanes, size_t i, float before,
					    float after)
{
	double size = fabs((double)before), distance = fabs((double)after - (double)before);

	lanes->sum[i] += distance;
	lanes->l1[i] += size;
	/*
	 * Equal infinities are apart by NaN, unequal ones by infinity, which no tolerance covers.
	 */
	return before != after &&
	       !(distance <= OUTFEED_ATOL + OUTFEED_RTOL * size && distance < (double)INFINITY);
}

OUTFEED_INLINE uint16_t outfeed_lane_key(float x)
{
	uint32_t bits = outfeed_bits(x), magnitude = bits & OUTFEED_MAGNITUDE;
	uint32_t bin = (magnitude >> 23) + (magnitude != 0) + (magnitude > OUTFEED_INFINITE);

	return (uint16_t)(bin + (bits >> 31) * OUTFEED_KEY_NEGATIVE);
}

/*
 * The 15 bits of a half, moved to a float's place, are a float 2^112 times too small, and an exact
 * product mends that, denormals included (as floats they are denormal too). Only the greatest
 * exponent stays behind: 2^16 and up, where infinity and NaN belong.
 */
OUTFEED_INLINE float outfeed_lane_widen(uint16_t half)
{
	uint32_t bits = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
	float x;

	memcpy(&x, &bits, sizeof(x));
	x *= 0x1p112f;
	memcpy(&bits, &x, sizeof(bits));
	/* Mantissas stay; a NaN is made quiet, as the processor's own conversion does. */
	bits |= x >= 0x1p16f ? OUTFEED_INFINITE : 0;
	bits |= x > 0x1p16f ? 0x00400000 : 0;
	bits |= sign;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* ---- from @at to the end, one by one --------------------------------------------------------- */

OUTFEED_INLINE void outfeed_tail_sums(const float *values, size_t count,
				      struct outfeed_lanes *lanes)
{
	for (size_t i = outfeed_rows(count); i < count; i++)
		outfeed_lane_sums(lanes, i % OUTFEED_LANES, values[i]);
}

OUTFEED_INLINE void outfeed_tail_centred(const float *values, size_t count, double shift,
					 struct outfeed_lanes *lanes)
{
	for (size_t i = outfeed_rows(count); i < count; i++)
		outfeed_lane_centred(lanes, i % OUTFEED_LANES, values[i], shift);
}

OUTFEED_INLINE void outfeed_tail_signs(const float *values, size_t at, size_t count,
				       struct outfeed_counts *out)
{
	for (size_t i = at; i < count; i++) {
		uint32_t bits = outfeed_magnitude(values[i]);

		out->negatives += values[i] < 0;
		out->positives += values[i] > 0;
		out->most = bits > out->most ? bits : out->most;
	}
}

OUTFEED_INLINE void outfeed_tail_nonfinite(const float *values, size_t at, size_t count,
					   struct outfeed_counts *out)
{
	for (size_t i = at; i < count; i++) {
		out->nan += values[i] != values[i];
		out->pos_inf += values[i] == INFINITY;
		out->neg_inf += values[i] == -INFINITY;
	}
}

OUTFEED_INLINE size_t outfeed_tail_compact(float *out, const float *values, size_t at, size_t count,
					   size_t kept)
{
	for (size_t i = at; i < count; i++) {
		out[kept] = values[i];
		kept += outfeed_magnitude(values[i]) < OUTFEED_INFINITE;
	}
	return kept;
}

OUTFEED_INLINE uint32_t outfeed_tail_abs_max(const float *values, size_t at, size_t count,
					     uint32_t most)
{
	for (size_t i = at; i < count; i++) {
		uint32_t bits = outfeed_magnitude(values[i]);

		most = bits > most ? bits : most;
	}
	return most;
}

OUTFEED_INLINE void outfeed_tail_widen(float *out, const uint16_t *halves, size_t at, size_t count)
{
	for (size_t i = at; i < count; i++)
		out[i] = outfeed_lane_widen(halves[i]);
}

OUTFEED_INLINE void outfeed_tail_keys(uint16_t *out, const float *values, size_t at, size_t count)
{
	for (size_t i = at; i < count; i++)
		out[i] = outfeed_lane_key(values[i]);
}

OUTFEED_INLINE uint32_t outfeed_tail_change(float *before, const float *after, size_t count,
					    struct outfeed_lanes *lanes)
{
	uint32_t changed = 0;

	for (size_t i = outfeed_rows(count); i < count; i++) {
		changed += outfeed_lane_change(lanes, i % OUTFEED_LANES, before[i], after[i]);
		before[i] = after[i];
	}
	return changed;
}

/* ---- neurons --------------------------------------------------------------------------------- */

/*
 * Plain loops that compilers vectorise, the same in each variant. Four rows at a time, so that the
 * counts are fetched and stored once for four values.
 */
OUTFEED_INLINE void outfeed_active_rows(uint32_t *restrict active, const float *restrict values,
					size_t rows, size_t columns, float low, float high)
{
	size_t row = 0;

	for (; row + 4 <= rows; row += 4) {
		const float *a = values + row * columns, *b = a + columns, *c = b + columns,
			    *d = c + columns;

		for (size_t i = 0; i < columns; i++) {
			uint32_t two = (uint32_t)((a[i] > low) & (a[i] <= high)) +
				       (uint32_t)((b[i] > low) & (b[i] <= high));

			active[i] += two + (uint32_t)((c[i] > low) & (c[i] <= high)) +
				     (uint32_t)((d[i] > low) & (d[i] <= high));
		}
	}
	for (; row < rows; row++) {
		const float *a = values + row * columns;

		for (size_t i = 0; i < columns; i++)
			active[i] += (uint32_t)((a[i] > low) & (a[i] <= high));
	}
}

#endif /* OUTFEED_KERNEL_INTERNAL_H */
