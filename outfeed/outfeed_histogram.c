/*
 * Counting by keys, in eight tables that are added up.
 *
 * A count that was just stored cannot be fetched at once, and neighbours often have the same bin
 * (zeros): with a table for each value in eight, none waits for the one before.
 *
 * Pure functions on the caller's data: any thread.
 */
#include "outfeed/outfeed_histogram.h"

#include <math.h>
#include <string.h>

#include "common/minmax.h"
#include "outfeed/outfeed_kernel.h"

#define BIN_INFINITE 256
#define BIN_NAN      257

#define TABLES 8

/* Keys at a time: so few that finding the next ones, and their memory, goes on beside counting. */
#define STRETCH 256

/* Below this, eight tables cost more to clear and add up than they save. */
#define FEW 512

static int64_t *place_of(struct outfeed_histogram *histogram, int key)
{
	int bin = key % OUTFEED_KEY_NEGATIVE;

	if (key >= OUTFEED_KEY_NEGATIVE && bin != BIN_NAN)
		bin = -bin;
	return &histogram->count[bin - OUTFEED_BIN_LEAST];
}

static void add_few(struct outfeed_histogram *histogram, const float *values, size_t count)
{
	uint16_t keys[FEW];

	outfeed_kernel_get()->keys(keys, values, count);
	for (size_t i = 0; i < count; i++)
		(*place_of(histogram, keys[i]))++;
}

static void count_keys(uint32_t (*tables)[OUTFEED_KEYS], const uint16_t *keys, size_t count)
{
	size_t i = 0;

	for (; i + TABLES <= count; i += TABLES) {
		for (size_t t = 0; t < TABLES; t++)
			tables[t][keys[i + t]]++;
	}
	for (; i < count; i++)
		tables[0][keys[i]]++;
}

/* Up to OUTFEED_KERNEL_MOST values, so that no count overflows. */
static void add_many(struct outfeed_histogram *histogram, const float *values, size_t count)
{
	uint32_t tables[TABLES][OUTFEED_KEYS];
	uint16_t keys[STRETCH];

	memset(tables, 0, sizeof(tables));
	for (size_t at = 0; at < count; at += STRETCH) {
		size_t size = min(count - at, STRETCH);

		outfeed_kernel_get()->keys(keys, values + at, size);
		count_keys(tables, keys, size);
	}
	for (size_t t = 1; t < TABLES; t++) {
		for (int key = 0; key < OUTFEED_KEYS; key++)
			tables[0][key] += tables[t][key];
	}
	for (int key = 0; key < OUTFEED_KEYS; key++) {
		if (tables[0][key] != 0)
			*place_of(histogram, key) += tables[0][key];
	}
}

void outfeed_histogram_add(struct outfeed_histogram *histogram, const float *values, size_t count)
{
	while (count > FEW) {
		size_t size = min(count, OUTFEED_KERNEL_MOST);

		add_many(histogram, values, size);
		values += size;
		count -= size;
	}
	add_few(histogram, values, count);
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
