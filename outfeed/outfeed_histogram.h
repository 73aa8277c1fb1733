/*
 * A histogram of signs and binary exponents, exact at every scale, with bins for what has none.
 *
 * Bin 0: zeros of both signs. Bin b from 1 to 255: positive values whose biased exponent is b - 1
 * (bin 1: denormals), so from 2^(b - 128) up to below 2^(b - 127); -b: the negative ones. 256 and
 * -256: infinities. 257: NaN. Merging is adding. float16 values have the bins of the floats they
 * are.
 *
 * Pure functions on the caller's data: any thread.
 */
#ifndef OUTFEED_HISTOGRAM_H
#define OUTFEED_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

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
 * The borders of @bin:
 *
 *	positive     low <= x < high; bin 1, from 0 on, has no 0 in it
 *	negative     low < x <= high
 *	zero         0, 0
 *	256, -256    both the infinity of its sign
 *	NaN          NaN, NaN
 */
void outfeed_histogram_range(int bin, double *low, double *high);

#endif /* OUTFEED_HISTOGRAM_H */
