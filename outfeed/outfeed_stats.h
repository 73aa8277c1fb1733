/*
 * The whole statistics row of a tensor in one pass over memory.
 *
 * Counts are exact. Moments are over the finite values: taken per block of 4,096 elements about the
 * block's own mean and merged pairwise (Chan et al. 1979), so a mean of 1e4 with a deviation of
 * 1e-3 and a bad first element both survive. `std` is the population's (divided by n), as numpy's
 * default. Merging rows is exact in counts and stable in moments. Same input, same bytes, on every
 * machine.
 */
#ifndef OUTFEED_STATS_H
#define OUTFEED_STATS_H

#include <stddef.h>
#include <stdint.h>

struct outfeed_stats {
	int64_t n, n_nan, n_pos_inf, n_neg_inf, n_zero, n_neg,
		n_pos;         /* n_neg, n_pos: infinities too */
	double min, max;       /* finite values; NaN when there are none */
	double mean, m2;       /* m2: sum of squared distances from the mean */
	double l1, l2_squared; /* sums over finite values */
	double abs_min_nonzero, abs_max;
};

void outfeed_stats_init(struct outfeed_stats *stats); /* nothing seen: counts 0, values NaN */
void outfeed_stats_add(struct outfeed_stats *stats, const float *values, size_t count);
void outfeed_stats_merge(struct outfeed_stats *into, const struct outfeed_stats *from);

int64_t outfeed_stats_finite(const struct outfeed_stats *stats);
double outfeed_stats_std(const struct outfeed_stats *stats); /* NaN when nothing finite */
double outfeed_stats_l2(const struct outfeed_stats *stats);

#endif /* OUTFEED_STATS_H */
