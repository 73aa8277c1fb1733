/*
 * Counting by the upper 9 bits of a float, zeros, infinities and NaN set apart.
 *
 * Pure functions on the caller's data: any thread.
 */
#include "outfeed/outfeed_histogram.h"

#include <math.h>
#include <string.h>

#define MAGNITUDE    0x7fffffffu
#define INFINITE     0x7f800000u
#define BIN_INFINITE 256
#define BIN_NAN      257

static int bin_of(float x)
{
	uint32_t bits, magnitude;
	int bin;

	memcpy(&bits, &x, sizeof(bits));
	magnitude = bits & MAGNITUDE;
	bin = (int)(magnitude >> 23) + (magnitude != 0);
	if (magnitude > INFINITE)
		return BIN_NAN;
	return bits > MAGNITUDE ? -bin : bin;
}

void outfeed_histogram_add(struct outfeed_histogram *histogram, const float *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		histogram->count[bin_of(values[i]) - OUTFEED_BIN_LEAST]++;
}

void outfeed_histogram_merge(struct outfeed_histogram *into, const struct outfeed_histogram *from)
{
	for (size_t i = 0; i < OUTFEED_BINS; i++)
		into->count[i] += from->count[i];
}

void outfeed_histogram_range(int bin, double *low, double *high)
{
	int magnitude = bin < 0 ? -bin : bin;
	double near = magnitude == 1 ? 0 : ldexp(1, magnitude - 128),
	       far = ldexp(1, magnitude - 127);

	if (magnitude == BIN_NAN)
		near = far = (double)NAN;
	else if (magnitude == BIN_INFINITE)
		near = far = (double)INFINITY;
	else if (magnitude == 0)
		near = far = 0;
	*low = bin < 0 ? -far : near;
	*high = bin < 0 ? 0 - near : far; /* 0 has no sign */
}
