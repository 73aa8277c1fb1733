/*
 * The lesser and the greater of two numbers, of the type that comparing them has.
 *
 * Of numbers that do not compare, or compare equal (NaN, zeros of both signs), it is the second.
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
