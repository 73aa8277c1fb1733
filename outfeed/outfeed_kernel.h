/*
 * The inner loops of statistics, scans, histograms, neurons and changes, for several processors.
 *
 * Where doubles are summed, element i belongs to lane i modulo 16 in every variant, each lane's
 * operations are the same IEEE operations in the same order (a fused multiply-add only where the
 * product is exact), and lanes are folded alike; all else is integers and comparisons. So all
 * variants give the same bytes.
 *
 * Pure, except that the choice is kept: outfeed_kernel_use() is for tests and benchmarks, while no
 * other thread uses a kernel.
 */
#ifndef OUTFEED_KERNEL_H
#define OUTFEED_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "outfeed/outfeed_stats.h"

/* The most values for one call where a count is 32 bits wide. */
#define OUTFEED_KERNEL_MOST ((size_t)1 << 30)

/* What a loop found; the members that it does not name are left alone. A value that is not finite
 * makes l1 so (finite floats cannot overflow it); then the rest is void. */
struct outfeed_sums {
	double sum;     /* of x, or of x - shift */
	double squares; /* of the same */
	double l1;      /* of |x| */
	float min, max;
	uint32_t
		least; /* the bits of the least |x| that is not 0, minus 1; UINT32_MAX: all are 0 */
	uint32_t zeros, negatives;
};

/* How many of a kind; members that a loop does not name are left alone. */
struct outfeed_counts {
	uint32_t negatives, positives; /* infinities too */
	uint32_t most;                 /* the bits of the greatest |x|, NaN's included */
	uint32_t nan, pos_inf, neg_inf;
};

/* A value's place in a histogram: its bin's magnitude, 0 to 257, and this much more if its sign bit
 * is set (also for zeros and NaN). */
#define OUTFEED_KEY_NEGATIVE 264
#define OUTFEED_KEYS         528

/* One variant. Each loop takes @count values, aligned as floats are. */
struct outfeed_kernel {
	const char *name;
	bool (*runs)(void); /* on this processor? */
	/* All of @out. Meanwhile memory is asked for that comes after: from @next on, @step bytes
	 * for each row of 16 values (0: only what is at @next, which must not be NULL). */
	void (*sums)(const float *values, size_t count, struct outfeed_sums *out, const void *next,
		     size_t step);
	/* sum and squares of x - @shift */
	void (*centred)(const float *values, size_t count, double shift, struct outfeed_sums *out);
	/* negatives, positives, most */
	void (*signs)(const float *values, size_t count, struct outfeed_counts *out);
	/* nan, pos_inf, neg_inf: a loop apart, since most tensors have none */
	void (*nonfinite)(const float *values, size_t count, struct outfeed_counts *out);
	/* Copy the finite ones to @out, in their order, and return how many. @out has room for
	 * @count; what it has beyond the last is void. */
	size_t (*compact)(float *out, const float *values, size_t count);
	/* The bits of the greatest |x|; 0 where there are none. Any @count. */
	uint32_t (*abs_max)(const float *values, size_t count);
	/* outfeed_scan_widen(). Any @count. */
	void (*widen)(float *out, const uint16_t *halves, size_t count);
	/* The keys of values. Any @count. */
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

/* The variant in use: at first the fastest that this processor runs. */
const struct outfeed_kernel *outfeed_kernel_get(void);

/* The variants, fastest first: avx512, avx2 (x86-64), portable; NULL beyond the last. */
const struct outfeed_kernel *outfeed_kernel_at(int index);

/* Use variant @index from now on; false where this processor cannot run it. */
bool outfeed_kernel_use(int index);

#endif /* OUTFEED_KERNEL_H */
