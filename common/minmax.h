/*
 * Type-generic minimum and maximum, in the type to which comparing the two would convert them.
 *
 * If the numbers are equal or unordered (NaN, zeros of both signs), the result is the second one.
 * Arguments are evaluated once. Threading: none. Ownership: none.
 */
#ifndef COMMON_MINMAX_H
#define COMMON_MINMAX_H

#define MINMAX_FUNCTIONS(type, name)                                                               \
	static inline type min_##name(type a, type b)                                              \
	{                                                                                          \
		return a < b ? a : b;                                                              \
	}                                                                                          \
	static inline type max_##name(type a, type b)                                              \
	{                                                                                          \
		return a > b ? a : b;                                                              \
	}

MINMAX_FUNCTIONS(int, int)
MINMAX_FUNCTIONS(unsigned, unsigned)
MINMAX_FUNCTIONS(long, long)
MINMAX_FUNCTIONS(unsigned long, ulong)
MINMAX_FUNCTIONS(long long, llong)
MINMAX_FUNCTIONS(unsigned long long, ullong)
MINMAX_FUNCTIONS(float, float)
MINMAX_FUNCTIONS(double, double)
#undef MINMAX_FUNCTIONS

/* clang-format off */
#define MINMAX_OF(which, a, b) _Generic((a) + (b),                                                 \
	int: which##_int, unsigned: which##_unsigned, long: which##_long,                          \
	unsigned long: which##_ulong, long long: which##_llong,                                    \
	unsigned long long: which##_ullong, float: which##_float, double: which##_double)(a, b)
/* clang-format on */

#define min(a, b) MINMAX_OF(min, a, b)
#define max(a, b) MINMAX_OF(max, a, b)

#endif /* COMMON_MINMAX_H */
