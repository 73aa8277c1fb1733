/*
 * The cheap looks: loops over the bits of the values, in which all is integers.
 *
 * Pure functions on the caller's data: any thread.
 */
#include "outfeed/outfeed_scan.h"

#include <string.h>

#define MAGNITUDE 0x7fffffffu

/* A stretch after which a search looks whether it has found something. */
#define STRETCH 256

static uint32_t magnitude_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits & MAGNITUDE;
}

uint32_t outfeed_scan_abs_max(const float *values, size_t count)
{
	uint32_t most = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t bits = magnitude_of(values[i]);

		most = bits > most ? bits : most;
	}
	return most;
}

void outfeed_scan_counts(struct outfeed_stats *out, const float *values, size_t count)
{
	int64_t nan = 0, infinite = 0, neg_inf = 0, zero = 0, negative = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t bits = magnitude_of(values[i]);

		nan += bits > OUTFEED_NONFINITE_BITS;
		infinite += bits == OUTFEED_NONFINITE_BITS;
		neg_inf += bits == OUTFEED_NONFINITE_BITS && values[i] < 0;
		zero += bits == 0;
		negative += values[i] < 0;
	}
	outfeed_stats_init(out);
	out->n = (int64_t)count;
	out->n_nan = nan;
	out->n_pos_inf = infinite - neg_inf;
	out->n_neg_inf = neg_inf;
	out->n_zero = zero;
	out->n_neg = negative;
	out->n_pos = out->n - nan - zero - negative;
}

size_t outfeed_scan_first_nonfinite(const float *values, size_t count)
{
	size_t at = 0;

	while (count - at > STRETCH &&
	       outfeed_scan_abs_max(values + at, STRETCH) < OUTFEED_NONFINITE_BITS)
		at += STRETCH;
	while (at < count && magnitude_of(values[at]) < OUTFEED_NONFINITE_BITS)
		at++;
	return at;
}

/*
 * The 15 bits of a half, moved to a float's place, are a float 2^112 times too small, and an exact
 * product mends that, denormals included (as floats they are denormal too). Only the greatest
 * exponent stays behind: 2^16 and up, where infinity and NaN belong.
 */
static float widen(uint16_t half)
{
	uint32_t bits = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
	float x;

	memcpy(&x, &bits, sizeof(x));
	x *= 0x1p112f;
	memcpy(&bits, &x, sizeof(bits));
	/* Mantissas stay; a NaN is made quiet, as the processor's own conversion does. */
	bits |= x >= 0x1p16f ? OUTFEED_NONFINITE_BITS : 0;
	bits |= x > 0x1p16f ? 0x00400000u : 0;
	bits |= sign;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

void outfeed_scan_widen(float *out, const uint16_t *halves, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = widen(halves[i]);
}
