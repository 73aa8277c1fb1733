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
	int64_t n_changed; /* |after - before| > atol + rtol |before|, or either is NaN (numpy's
			      allclose) */
	double sum_change; /* of |after - before|; NaN and infinities go through */
	double sum_before; /* of |before| */
};

/* Compare, and copy @after over @before. rtol 1e-5, atol 1e-8. */
void outfeed_change_take(struct outfeed_change *out, float *before, const float *after,
			 size_t count);

/* Mean |change| over mean |before|, + 1e-9 (SageMaker's WeightUpdateRatio); NaN where all that was
 * before is 0 (a bias that has just been made), or @count is 0. */
double outfeed_change_ratio(const struct outfeed_change *change, size_t count);

#endif /* OUTFEED_CHANGE_H */
