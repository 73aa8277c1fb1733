/*
 * The inner loops of outfeed_stats, for several processors: sums over rows of 16 finite floats.
 *
 * Element i belongs to lane i modulo 16 in every variant, each lane's operations are the same IEEE
 * operations in the same order, and lanes are folded alike; so all variants give the same bytes.
 *
 * Pure, except that the choice is kept: outfeed_kernel_use() is for tests and benchmarks, while no
 * other thread computes statistics.
 */
#ifndef OUTFEED_KERNEL_H
#define OUTFEED_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a loop found; the members that it does not name are left alone. A value that is not finite
 * makes l1 so (finite floats cannot overflow it); then the rest is void. */
struct outfeed_sums {
	double sum;     /* of x, or of x - shift */
	double squares; /* of the same */
	double l1;      /* of |x| */
	float min, max;
	uint32_t least;         /* the bits of the least |x| */
	uint32_t least_nonzero; /* of the least that is not 0, minus 1; UINT32_MAX: all are 0 */
	uint32_t zeros, negatives;
};

/* One variant. Each loop takes @count values (at most 2^31), the last row being cut. */
struct outfeed_kernel {
	const char *name;
	bool (*runs)(void); /* on this processor? */
	/* sum, squares, l1, min, max, least, negatives */
	void (*sums)(const float *values, size_t count, struct outfeed_sums *out);
	/* sum and squares of x - @shift */
	void (*centred)(const float *values, size_t count, double shift, struct outfeed_sums *out);
	/* zeros and least_nonzero: a loop apart, since most tensors have no zero */
	void (*zeros)(const float *values, size_t count, struct outfeed_sums *out);
};

/* The variant in use: at first the fastest that this processor runs. */
const struct outfeed_kernel *outfeed_kernel_get(void);

/* The variants, fastest first: avx512, avx2 (x86-64), portable; NULL beyond the last. */
const struct outfeed_kernel *outfeed_kernel_at(int index);

/* Use variant @index from now on; false where this processor cannot run it. */
bool outfeed_kernel_use(int index);

#endif /* OUTFEED_KERNEL_H */
