/*
 * The cheap looks at a tensor, for tiers below `stats`: one pass, vectorised as outfeed_kernel is.
 *
 * Pure functions on the caller's data: any thread; same input, same result in every variant.
 */
#ifndef OUTFEED_SCAN_H
#define OUTFEED_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "outfeed/outfeed_stats.h"

#define OUTFEED_NONFINITE_BITS 0x7f800000u

/* The greatest |x| as the bits of a float, which order as the numbers do; from
 * OUTFEED_NONFINITE_BITS on some value is not finite (a NaN's payload may make it greater). 0: all
 * are zero, or there are none. */
uint32_t outfeed_scan_abs_max(const float *values, size_t count);

/* n and the counts of @out; its other members say "nothing seen" (outfeed_stats_init()). */
void outfeed_scan_counts(struct outfeed_stats *out, const float *values, size_t count);

/* Index of the first value that is not finite; @count: there is none. */
size_t outfeed_scan_first_nonfinite(const float *values, size_t count);

/* IEEE binary16 to float, exactly (NaN stays NaN). */
void outfeed_scan_widen(float *out, const uint16_t *halves, size_t count);

#endif /* OUTFEED_SCAN_H */
