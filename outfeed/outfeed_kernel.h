/*
 * The inner loop of outfeed_stats: sums over rows of 16 finite floats, for several processors.
 *
 * Element i belongs to lane i modulo 16 in every variant, and each lane's operations are the same
 * IEEE operations in the same order; so all variants give the same bytes.
 *
 * Pure, except that the choice is kept: outfeed_kernel_use() is for tests and benchmarks, while no
 * other thread computes statistics.
 */
#ifndef OUTFEED_KERNEL_H
#define OUTFEED_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTFEED_LANES 16

/* What the lanes hold; outfeed_lanes_init() has the neutral elements. A non-finite value turns l1
 * of its lane non-finite (finite floats cannot overflow it); then all of these are void. */
struct outfeed_lanes {
	double sum[OUTFEED_LANES];     /* of x - shift */
	double squares[OUTFEED_LANES]; /* of (x - shift)^2 */
	double l1[OUTFEED_LANES];      /* of |x| */
	float min[OUTFEED_LANES], max[OUTFEED_LANES];
	uint32_t
		least[OUTFEED_LANES]; /* bits of the least nonzero |x|, minus 1; UINT32_MAX: none */
	uint32_t zeros[OUTFEED_LANES], negatives[OUTFEED_LANES];
};

/* Add @rows times 16 values to @lanes; at most 2^31 in all. */
typedef void (*outfeed_kernel)(const float *values, size_t rows, double shift,
			       struct outfeed_lanes *lanes);

void outfeed_lanes_init(struct outfeed_lanes *lanes);

/* Up to 15 further values, in lanes 0, 1, .. */
void outfeed_lanes_tail(const float *values, size_t count, double shift,
			struct outfeed_lanes *lanes);

/* The variant in use: at first the fastest that this processor runs. */
outfeed_kernel outfeed_kernel_get(void);

/* The variants: "avx512", "avx2", "portable"; NULL beyond the last. */
const char *outfeed_kernel_name(int index);

/* Use variant @index from now on; false where this processor cannot run it. */
bool outfeed_kernel_use(int index);

#endif /* OUTFEED_KERNEL_H */
