/*
 * Before and after an update: 16 lanes of sums, folded in a fixed order.
 *
 * Pure functions on the caller's data: any thread.
 */
#include "outfeed/outfeed_change.h"

#include <math.h>
#include <stdbool.h>

#define LANES   16
#define ATOL    1e-8
#define RTOL    1e-5
#define EPSILON 1e-9

static bool has_changed(float before, float after)
{
	double distance = fabs((double)after - (double)before);

	/* Equal infinities are apart by NaN, unequal ones by infinity, which no tolerance covers.
	 */
	return before != after &&
	       !(distance <= ATOL + RTOL * fabs((double)before) && distance < (double)INFINITY);
}

static double fold(const double *lanes)
{
	double sum = 0;

	for (size_t i = 0; i < LANES; i++)
		sum += lanes[i];
	return isnan(sum) ? (double)NAN : sum;
}

void outfeed_change_take(struct outfeed_change *out, float *before, const float *after,
			 size_t count)
{
	double change[LANES] = {0}, magnitude[LANES] = {0};

	*out = (struct outfeed_change){0};
	for (size_t i = 0; i < count; i++) {
		change[i % LANES] += fabs((double)after[i] - (double)before[i]);
		magnitude[i % LANES] += fabs((double)before[i]);
		out->n_changed += has_changed(before[i], after[i]);
		before[i] = after[i];
	}
	out->sum_change = fold(change);
	out->sum_before = fold(magnitude);
}

double outfeed_change_ratio(const struct outfeed_change *change, size_t count)
{
	if (count == 0 || change->sum_before == 0)
		return (double)NAN;
	return change->sum_change / (double)count / (change->sum_before / (double)count + EPSILON);
}
