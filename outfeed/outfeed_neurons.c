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
#include "outfeed/outfeed_kernel.h"

/* The width of a row in which vectors are used well. */
#define NARROW 256

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

/* Few neurons make short rows: take @together cases as one row, and add up its columns. */
static void add_narrow(uint32_t *active, const float *values, size_t rows, size_t together,
		       size_t neurons, float low, float high)
{
	uint32_t wide[NARROW] = {0};

	outfeed_kernel_get()->active(wide, values, rows, together * neurons, low, high);
	for (size_t i = 0; i < together * neurons; i++)
		active[i % neurons] += wide[i];
}

void outfeed_neurons_add(uint32_t *active, enum outfeed_activity activity, const float *values,
			 size_t cases, size_t neurons)
{
	float low = bounds[activity].low, high = bounds[activity].high;
	size_t together, rows;

	assert(activity != OUTFEED_NO_ACTIVITY);
	if (neurons == 0)
		return;
	together = NARROW / neurons;
	if (together > 1) {
		rows = cases / together;
		add_narrow(active, values, rows, together, neurons, low, high);
		values += rows * together * neurons;
		cases -= rows * together;
	}
	outfeed_kernel_get()->active(active, values, cases, neurons, low, high);
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
