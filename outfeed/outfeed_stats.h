/*
 * The whole statistics row of a tensor in one pass over memory.
 *
 * Counts are exact. Moments are over the finite values: taken per block of 8,192 elements about the
 * block's own mean and merged pairwise (Chan et al. 1979), so a mean of 1e4 with a deviation of
 * 1e-3 and a bad first element both survive. `std` is the population's (divided by n), as numpy's
 * default. Merging rows is exact in counts and stable in moments. Same input, same bytes, on every
 * machine.
 */
#ifndef OUTFEED_STATS_H
#define OUTFEED_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "common/pool.h"

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

/* The same for IEEE binary16, as the floats that the halves are: the same bytes as for those. */
void outfeed_stats_add_half(struct outfeed_stats *stats, const uint16_t *halves, size_t count);

/* The same shared out to @pool (NULL: none), the same bytes as outfeed_stats_add() for any number
 * of threads. Slices have 131,072 values, so that less is not worth a pool. Never allocates. */
void outfeed_stats_add_pool(struct outfeed_stats *stats, const float *values, size_t count,
			    struct pool *pool);

/* Add the row @from to @into. */
void outfeed_stats_merge(struct outfeed_stats *into, const struct outfeed_stats *from);

int64_t outfeed_stats_finite(const struct outfeed_stats *stats);
double outfeed_stats_std(const struct outfeed_stats *stats); /* NaN when nothing finite */
double outfeed_stats_l2(const struct outfeed_stats *stats);

#endif /* OUTFEED_STATS_H */
