/*
 * Cases in which a neuron is active: a comparison with two bounds, counted along columns.
 *
 * Pure functions on the caller's data: any thread.
 */
#include "outfeed/outfeed_neurons.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "common/mem.h"

/* Active: above @low and not above @high. Both are floats, so "below" a bound is "not above" the
 * float before it. */
static const struct {
	float low, high;
} bounds[] = {
	[OUTFEED_RELU] = {0, INFINITY},
	[OUTFEED_TANH] = {-1, 0x1.fffffep-1f},
	[OUTFEED_SIGMOID] = {0x1.c3527ep-34f, 0x1.fffffcp-1f},
};
_Static_assert(ARRAY_LEN(bounds) == OUTFEED_ACTIVITIES, "table out of step");

void outfeed_neurons_add(uint32_t *active, enum outfeed_activity activity, const float *values,
			 size_t cases, size_t neurons)
{
	assert(activity != OUTFEED_NO_ACTIVITY);
	float low = bounds[activity].low, high = bounds[activity].high;

	for (size_t row = 0; row < cases; row++) {
		const float *x = values + row * neurons;

		for (size_t i = 0; i < neurons; i++)
			active[i] += x[i] > low && x[i] <= high;
	}
}

double outfeed_neurons_inactive(const uint32_t *active, uint64_t cases, size_t neurons)
{
	size_t inactive = 0;

	if (cases == 0 || neurons == 0)
		return (double)NAN;
	for (size_t i = 0; i < neurons; i++)
		inactive += (uint64_t)active[i] * 100 < cases;
	return (double)inactive / (double)neurons;
}
