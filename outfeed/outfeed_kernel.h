/*
 * The inner loops of statistics, scans, histograms, neurons and changes, for several processors.
 *
 * Sums of doubles use 16 lanes: element i belongs to lane i modulo 16 in every variant, each lane
 * does the same IEEE operations in the same order (a fused multiply-add only if the product is
 * exact), and lanes are folded in the same way; everything else is integers and comparisons. So all
 * variants return the same bytes.
 *
 * Pure functions, except that the choice of a variant is global: outfeed_kernel_use() is for tests
 * and benchmarks, while no other thread uses a kernel.
 */
#ifndef OUTFEED_KERNEL_H
#define OUTFEED_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "outfeed/outfeed_stats.h"

/* The most values for one call of a loop with 32-bit counts. */
#define OUTFEED_KERNEL_MOST ((size_t)1 << 30)

/* Results of a loop; members that it does not name stay unchanged. A non-finite value makes l1
 * non-finite (finite floats cannot overflow it); then the other members are undefined. */
struct outfeed_sums {
	double sum;     /* of x, or of x - shift */
	double squares; /* of the same */
	double l1;      /* of |x| */
	float min, max;
	uint32_t least; /* bits of the least nonzero |x|, minus 1; UINT32_MAX: all are 0 */
	uint32_t zeros, negatives;
};

/* Counts of values; members that a loop does not name stay unchanged. */
struct outfeed_counts {
	uint32_t negatives, positives; /* including infinities */
	uint32_t most;                 /* the bits of the greatest |x|, NaN included */
	uint32_t nan, pos_inf, neg_inf;
};

/* The histogram key of a value: its bin's magnitude, 0 to 257, plus this if its sign bit is set
 * (also for zeros and NaN). */
#define OUTFEED_KEY_NEGATIVE 264
#define OUTFEED_KEYS         528

/* One variant. Each loop reads @count values, aligned as floats are. */
struct outfeed_kernel {
	const char *name;
	bool (*runs)(void); /* on this processor? */
	/* All of @out. Prefetches following memory: starting at @next, @step bytes further for each
	 * row of 16 values (0: only @next, which must not be NULL). */
	void (*sums)(const float *values, size_t count, struct outfeed_sums *out, const void *next,
		     size_t step);
	/* sum and squares of x - @shift */
	void (*centred)(const float *values, size_t count, double shift, struct outfeed_sums *out);
	/* negatives, positives, most */
	void (*signs)(const float *values, size_t count, struct outfeed_counts *out);
	/* nan, pos_inf, neg_inf: a separate loop, because most tensors have none */
	void (*nonfinite)(const float *values, size_t count, struct outfeed_counts *out);
	/* Copy the finite values to @out, in order, and return their number. @out has room for
	 * @count; its contents after the last value are undefined. */
	size_t (*compact)(float *out, const float *values, size_t count);
	/* Return the bits of the greatest |x|; 0 if there are no values. Any @count. */
	uint32_t (*abs_max)(const float *values, size_t count);
	/* outfeed_scan_widen(). Any @count. */
	void (*widen)(float *out, const uint16_t *halves, size_t count);
	/* Histogram keys of the values. Any @count. */
	void (*keys)(uint16_t *out, const float *values, size_t count);
	/* Add 1 to active[i] where @low < values[i] <= @high, for each of @rows rows. */
	void (*active)(uint32_t *active, const float *values, size_t rows, size_t columns,
		       float low, float high);
	/* outfeed_change_scan(). Any @count. */
	void (*change)(struct outfeed_change *out, float *before, const float *after, size_t count);
};

#if defined(__x86_64__)
extern const struct outfeed_kernel outfeed__kernel_avx512, outfeed__kernel_avx2;
#endif

/* Return the variant in use: by default the fastest that this processor supports. */
const struct outfeed_kernel *outfeed_kernel_get(void);

/* Return variant @index, fastest first: avx512, avx2 (x86-64), portable; NULL after the last. */
const struct outfeed_kernel *outfeed_kernel_at(int index);

/* Use variant @index from now on; false if this processor does not support it. */
bool outfeed_kernel_use(int index);

#endif /* OUTFEED_KERNEL_H */
