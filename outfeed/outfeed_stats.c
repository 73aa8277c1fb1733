/*
 * Statistics block by block: lanes to a row, rows merged by Chan's formula.
 *
 * A block is summed about 0 and, where that would lose digits (a mean far from 0 beside the
 * deviation), about its own mean once more, from the first-level cache. A block with NaN or
 * infinities is counted and its finite values are summed without them.
 *
 * Pure functions on the caller's data: any thread.
 */
#include "outfeed/outfeed_stats.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "outfeed/outfeed_kernel.h"

#define BLOCK 4096

/* Where the squares' sum is so much greater than m2 (a mean of 128 deviations), the difference has
 * lost 14 of 53 bits: take it again about the mean. */
#define LOST 0x1p-14

/* ---- blocks -------------------------------------------------------------------------------------
 */

static void take_zeros(struct outfeed_stats *stats, const float *values, size_t count,
		       struct outfeed_sums *sums)
{
	uint32_t bits = sums->least;
	float nonzero;

	if (bits == 0) {
		outfeed_kernel_get()->zeros(values, count, sums);
		stats->n_zero = sums->zeros;
		bits = sums->least_nonzero + 1; /* no value but zeros: 0 again */
	}
	memcpy(&nonzero, &bits, sizeof(nonzero));
	stats->abs_min_nonzero = bits == 0 ? (double)NAN : (double)nonzero;
}

static void take_extremes(struct outfeed_stats *stats, size_t count,
			  const struct outfeed_sums *sums)
{
	stats->n = (int64_t)count;
	stats->n_neg = sums->negatives;
	stats->n_pos = stats->n - stats->n_zero - stats->n_neg;
	/* Zeros of both signs are equal, so which one wins depends on the order: give the positive.
	 */
	stats->min = (double)sums->min + 0.0;
	stats->max = (double)sums->max + 0.0;
	stats->abs_max = fabs(stats->min) > fabs(stats->max) ? fabs(stats->min) : fabs(stats->max);
}

/* The row of a block. False, and @stats void, where a value is not finite. */
static bool finite_block(struct outfeed_stats *stats, const float *values, size_t count)
{
	struct outfeed_sums sums;
	double n = (double)count, shift = 0;

	outfeed_kernel_get()->sums(values, count, &sums);
	outfeed_stats_init(stats);
	if (!isfinite(sums.l1))
		return false;
	take_zeros(stats, values, count, &sums);
	take_extremes(stats, count, &sums);
	stats->l1 = sums.l1;
	stats->l2_squared = sums.squares;
	if (sums.squares - sums.sum * (sums.sum / n) < sums.squares * LOST) {
		shift = sums.sum / n;
		outfeed_kernel_get()->centred(values, count, shift, &sums);
	}
	stats->mean = shift + sums.sum / n;
	stats->m2 = sums.squares - sums.sum * (sums.sum / n);
	stats->m2 = stats->m2 > 0 ? stats->m2 : 0;
	return true;
}

/* Count what is not finite, and give the rest of the block to finite_block(). */
static void mixed_block(struct outfeed_stats *stats, const float *values, size_t count)
{
	float finite[BLOCK];
	size_t kept = 0;
	int64_t nan = 0, pos_inf = 0, neg_inf = 0;

	for (size_t i = 0; i < count; i++) {
		finite[kept] = values[i];
		kept += isfinite(values[i]) ? 1 : 0;
		nan += isnan(values[i]) ? 1 : 0;
		pos_inf += values[i] == INFINITY;
		neg_inf += values[i] == -INFINITY;
	}
	outfeed_stats_init(stats);
	if (kept > 0)
		finite_block(stats, finite, kept);
	stats->n = (int64_t)count;
	stats->n_nan = nan;
	stats->n_pos_inf = pos_inf;
	stats->n_neg_inf = neg_inf;
	stats->n_neg += neg_inf;
	stats->n_pos += pos_inf;
}

/* ---- interface ----------------------------------------------------------------------------------
 */

void outfeed_stats_init(struct outfeed_stats *stats)
{
	*stats = (struct outfeed_stats){.min = NAN,
					.max = NAN,
					.mean = NAN,
					.m2 = NAN,
					.l1 = NAN,
					.l2_squared = NAN,
					.abs_min_nonzero = NAN,
					.abs_max = NAN};
}

void outfeed_stats_add(struct outfeed_stats *stats, const float *values, size_t count)
{
	struct outfeed_stats block;

	for (size_t at = 0; at < count; at += BLOCK) {
		size_t size = count - at < BLOCK ? count - at : BLOCK;

		if (!finite_block(&block, values + at, size))
			mixed_block(&block, values + at, size);
		outfeed_stats_merge(stats, &block);
	}
}

static double least_of(double a, double b)
{
	return isnan(a) || b < a ? b : a;
}

static double greatest_of(double a, double b)
{
	return isnan(a) || b > a ? b : a;
}

static void merge_moments(struct outfeed_stats *into, const struct outfeed_stats *from)
{
	double have = (double)outfeed_stats_finite(into), more = (double)outfeed_stats_finite(from);
	double n = have + more, distance = from->mean - into->mean;

	if (more == 0)
		return;
	if (have == 0) {
		into->mean = from->mean;
		into->m2 = from->m2;
		into->l1 = from->l1;
		into->l2_squared = from->l2_squared;
		return;
	}
	into->mean += distance * (more / n);
	into->m2 += from->m2 + distance * distance * (have / n * more);
	into->l1 += from->l1;
	into->l2_squared += from->l2_squared;
}

void outfeed_stats_merge(struct outfeed_stats *into, const struct outfeed_stats *from)
{
	merge_moments(into, from);
	into->n += from->n;
	into->n_nan += from->n_nan;
	into->n_pos_inf += from->n_pos_inf;
	into->n_neg_inf += from->n_neg_inf;
	into->n_zero += from->n_zero;
	into->n_neg += from->n_neg;
	into->n_pos += from->n_pos;
	into->min = least_of(into->min, from->min);
	into->max = greatest_of(into->max, from->max);
	into->abs_min_nonzero = least_of(into->abs_min_nonzero, from->abs_min_nonzero);
	into->abs_max = greatest_of(into->abs_max, from->abs_max);
}

int64_t outfeed_stats_finite(const struct outfeed_stats *stats)
{
	return stats->n - stats->n_nan - stats->n_pos_inf - stats->n_neg_inf;
}

double outfeed_stats_std(const struct outfeed_stats *stats)
{
	int64_t finite = outfeed_stats_finite(stats);

	return finite > 0 ? sqrt(stats->m2 / (double)finite) : (double)NAN;
}

double outfeed_stats_l2(const struct outfeed_stats *stats)
{
	return sqrt(stats->l2_squared);
}
