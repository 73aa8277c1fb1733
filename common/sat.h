/*
 * Saturating arithmetic for numbers read from files, which may have any value: a result out of
 * range becomes the nearest end of the range. Threading: none. Ownership: none.
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

/* Convert to an integer; NaN is 0. */
static inline int64_t sat_real(double value)
{
	if (isnan(value))
		return 0;
	return value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

#endif /* COMMON_SAT_H */
