/*
 * Before and after an update, over the kernels.
 *
 * Pure functions on the caller's data: any thread.
 */
#include "outfeed/outfeed_change.h"

#include <math.h>

#include "outfeed/outfeed_kernel.h"

#define EPSILON 1e-9

void outfeed_change_take(struct outfeed_change *out, float *before, const float *after,
			 size_t count)
{
	outfeed_kernel_get()->change(out, before, after, count);
}

double outfeed_change_ratio(const struct outfeed_change *change, size_t count)
{
	if (count == 0 || change->sum_before == 0)
		return (double)NAN;
	return change->sum_change / (double)count / (change->sum_before / (double)count + EPSILON);
}
