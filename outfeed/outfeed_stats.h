/*
 * Measurements of a tensor's values: passes over memory, independent of the recorder.
 *
 * The statistics: counts are exact. Moments are over the finite values: computed per block of 8,192
 * elements about the block's own mean and merged pairwise (Chan et al. 1979), so a mean of 1e4 with
 * a deviation of 1e-3 and a non-finite first element are both handled. `std` is the population's
 * (divided by n), as numpy's default. Merging rows is exact in counts and stable in moments.
 *
 * Pure functions on the caller's data: any thread. The same input gives the same bytes, on every
 * machine and with every variant of the kernels.
 */
#ifndef OUTFEED_STATS_H
#define OUTFEED_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "common/pool.h"
#include "outfeed/outfeed_policy.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Call @piece with the values as floats, piece by piece, in order. Floats are passed in one piece;
 * other types are converted. @at: the index of the piece's first value. */
typedef void (*outfeed_piece)(void *user, const float *values, size_t at, size_t count);
void outfeed_pieces(enum dtype dtype, const void *values, size_t count, outfeed_piece piece,
		    void *user);

/* ---- the statistics row ---------------------------------------------------------------------- */

struct outfeed_stats {
	int64_t n, n_nan, n_pos_inf, n_neg_inf, n_zero;
	int64_t n_neg, n_pos;  /* including infinities */
	double min, max;       /* finite values; NaN if there are none */
	double mean, m2;       /* m2: sum of squared distances from the mean */
	double l1, l2_squared; /* sums over finite values */
	double abs_min_nonzero, abs_max;
};

void outfeed_stats_init(struct outfeed_stats *stats); /* empty: counts 0, values NaN */
void outfeed_stats_add(struct outfeed_stats *stats, const float *values, size_t count);

/* The same on the threads of @pool (NULL: none); the same bytes as outfeed_stats_add() for any
 * number of threads. Slices have 131,072 values; fewer are not worth a pool. Never allocates. */
void outfeed_stats_add_pool(struct outfeed_stats *stats, const float *values, size_t count,
			    struct pool *pool);

/* Add the row @from to @into. */
void outfeed_stats_merge(struct outfeed_stats *into, const struct outfeed_stats *from);

int64_t outfeed_stats_finite(const struct outfeed_stats *stats);
double outfeed_stats_std(const struct outfeed_stats *stats); /* NaN if there are no finite values */
double outfeed_stats_l2(const struct outfeed_stats *stats);

/* Compute the whole row of a value of any type, as of its values converted to floats
 * (dtype_to_float()); @pool (NULL: none) is used for floats. */
void outfeed_stats_read(struct outfeed_stats *out, enum dtype dtype, const void *values,
			size_t count, struct pool *pool);

/* Set the columns n .. abs_max of a row, common to `tensor_stats` and `nonfinite_trail`, from
 * @stats. Without @counted the counts other than n are NULL. */
#define OUTFEED_FILL_COLUMNS(row, stats, counted)                                                  \
	do {                                                                                       \
		(row)->n = (stats)->n;                                                             \
		(row)->n_nan = (counted) ? (stats)->n_nan : IPS_NULL;                              \
		(row)->n_pos_inf = (counted) ? (stats)->n_pos_inf : IPS_NULL;                      \
		(row)->n_neg_inf = (counted) ? (stats)->n_neg_inf : IPS_NULL;                      \
		(row)->n_zero = (counted) ? (stats)->n_zero : IPS_NULL;                            \
		(row)->n_neg = (counted) ? (stats)->n_neg : IPS_NULL;                              \
		(row)->n_pos = (counted) ? (stats)->n_pos : IPS_NULL;                              \
		(row)->min = (stats)->min;                                                         \
		(row)->max = (stats)->max;                                                         \
		(row)->mean = (stats)->mean;                                                       \
		(row)->std = outfeed_stats_std(stats);                                             \
		(row)->l1 = (stats)->l1;                                                           \
		(row)->l2 = outfeed_stats_l2(stats);                                               \
		(row)->abs_min_nonzero = (stats)->abs_min_nonzero;                                 \
		(row)->abs_max = (stats)->abs_max;                                                 \
	} while (0)

/* ---- scans: less than a row, for tiers below `stats` ----------------------------------------- */

#define OUTFEED_NONFINITE_BITS 0x7f800000u

/* Return the greatest |x| as the bits of a float, which sort as the numbers do. From
 * OUTFEED_NONFINITE_BITS on some value is not finite (a NaN's payload may make it greater). 0: all
 * are zero, or there are none. */
uint32_t outfeed_scan_abs_max(const float *values, size_t count);

/* Set n and the counts of @out; its other members are empty (outfeed_stats_init()). */
void outfeed_scan_counts(struct outfeed_stats *out, const float *values, size_t count);

/* Return the index of the first value that is not finite; @count if there is none. */
size_t outfeed_scan_first_nonfinite(const float *values, size_t count);

/* Convert IEEE binary16 to float, exactly (NaN stays NaN). */
void outfeed_scan_widen(float *out, const uint16_t *halves, size_t count);

/* ---- changes: a variable before and after an update ------------------------------------------ */

struct outfeed_change {
	int64_t n_changed;
	double sum_change; /* of |after - before|; NaN and infinities propagate */
	double sum_before; /* of |before| */
};

/* Compare, and copy @after to @before, which must not overlap. A value has changed if not
 * numpy.isclose(after, before), computed in double: |after - before| > 1e-8 + 1e-5 |before|, or
 * either is NaN, or one is an infinity that the other is not. */
void outfeed_change_scan(struct outfeed_change *out, float *before, const float *after,
			 size_t count);

/* Return the mean of |change| over the mean of |before| + 1e-9 (SageMaker's WeightUpdateRatio and
 * its epsilon); NaN if all values before are 0 (a new bias), or @count is 0. */
double outfeed_change_ratio(const struct outfeed_change *change, size_t count);

/* ---- neurons of an activation ---------------------------------------------------------------- */

/*
 * A neuron is a position along the last axis of the tensor; the other axes (batch and space) are
 * its cases. It is inactive if less than 1 % of its cases are active. Whether a case is active
 * depends on the activation function:
 *
 *	relu     x > 0
 *	tanh     |x| < tanh(9.4999), which in float is 1: x is neither 1 nor -1
 *	sigmoid  sigmoid(-23) < x < sigmoid(16.99999), in float 0x1.c3527ep-34 and 0x1.fffffep-1,
 *		 the last number below 1
 *
 * NaN is not active. The bounds are the defaults of SageMaker Debugger's rule
 * SaturatedActivation, a tanh beyond +-9.4999 and a sigmoid outside (-23, 16.99999). The rule
 * compares them with the input of the activation. This code compares with the output, so the
 * bounds were passed through the activation and rounded to float. Near 1 the resolution of floats
 * is too coarse: a tanh is 1 from an input of about 9.01 on, a sigmoid 0x1.fffffep-1 from about
 * 16.23 on, so both are found saturated a little earlier than by the rule. Rounded to half
 * precision they are 1 from about 4.51 (tanh) and 8.32 (sigmoid) on.
 */

/* @values: [cases, neurons]. Add to @active, by neuron, the number of active cases; @activity is
 * not OUTFEED_NO_ACTIVITY. */
void outfeed_neurons_add(uint32_t *active, enum outfeed_activity activity, const float *values,
			 size_t cases, size_t neurons);

/* Return the fraction of @neurons that are inactive over @cases; NaN if there are none. */
double outfeed_neurons_inactive(const uint32_t *active, uint64_t cases, size_t neurons);

/* ---- histograms of signs and binary exponents ------------------------------------------------ */

/*
 * Exact at every scale, with bins for values without an exponent. Bin 0: zeros of both signs. Bin b
 * from 1 to 255: positive values with the biased exponent b - 1 (bin 1: denormals), so from
 * 2^(b - 128) to below 2^(b - 127); -b: the negative ones. 256 and -256: infinities. 257: NaN.
 * Histograms are merged by addition. float16 values have the bins of the equal floats.
 */
#define OUTFEED_BIN_LEAST    (-256)
#define OUTFEED_BIN_GREATEST 257
#define OUTFEED_BINS         (OUTFEED_BIN_GREATEST - OUTFEED_BIN_LEAST + 1)

struct outfeed_histogram {
	int64_t count[OUTFEED_BINS]; /* at bin - OUTFEED_BIN_LEAST */
};

/* Add @count values to @histogram (zero it first). */
void outfeed_histogram_add(struct outfeed_histogram *histogram, const float *values, size_t count);
void outfeed_histogram_merge(struct outfeed_histogram *into, const struct outfeed_histogram *from);

/*
 * The bounds of @bin:
 *
 *	positive     low <= x < high; bin 1, whose low is 0, contains no 0
 *	negative     low < x <= high
 *	zero         0, 0
 *	256, -256    both the infinity of its sign
 *	NaN          NaN, NaN
 */
void outfeed_histogram_range(int bin, double *low, double *high);

#endif /* OUTFEED_STATS_H */
