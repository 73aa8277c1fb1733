/*
 * What an update did to a variable: one pass over its values before and after.
 *
 * Pure functions on the caller's data: any thread; same input, same result in every variant.
 */
#ifndef OUTFEED_CHANGE_H
#define OUTFEED_CHANGE_H

#include <stddef.h>
#include <stdint.h>

struct outfeed_change {
	int64_t n_changed;
	double sum_change; /* of |after - before|; NaN and infinities go through */
	double sum_before; /* of |before| */
};

/* Compare, and copy @after over @before, which do not overlap. A value has changed where it is not
 * numpy.isclose(after, before), reckoned in double: |after - before| > 1e-8 + 1e-5 |before|, or
 * either is NaN, or one is an infinity that the other is not. */
void outfeed_change_take(struct outfeed_change *out, float *before, const float *after,
			 size_t count);

/* The mean of |change| over the mean of |before| + 1e-9 (SageMaker's WeightUpdateRatio and its
 * epsilon); NaN where all that was before is 0 (a bias that has just been made), or @count is 0. */
double outfeed_change_ratio(const struct outfeed_change *change, size_t count);

#endif /* OUTFEED_CHANGE_H */
