/*
 * Sums and differences of numbers that a file holds, whatever they are: what does not fit stays at
 * the end of the range. Threading: none. Ownership: none.
 */
#ifndef COMMON_SAT_H
#define COMMON_SAT_H

#include <math.h>
#include <stdint.h>

static inline int64_t sat_add(int64_t a, int64_t b)
{
	int64_t out;

	if (!__builtin_add_overflow(a, b, &out))
		return out;
	return b < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t sat_sub(int64_t a, int64_t b)
{
	int64_t out;

	if (!__builtin_sub_overflow(a, b, &out))
		return out;
	return b > 0 ? INT64_MIN : INT64_MAX;
}

/* NaN is 0. */
static inline int64_t sat_real(double value)
{
	if (isnan(value))
		return 0;
	return value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

#endif /* COMMON_SAT_H */
