/* What this processor can do, where compilers differ in how to ask. x86-64 only; thread-safe. */
#ifndef COMMON_CPU_H
#define COMMON_CPU_H

#include <stdbool.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Conversion between float32 and float16 in AVX registers. Clang's __builtin_cpu_supports() knows
 * no "f16c". */
static inline bool cpu_has_f16c(void)
{
	unsigned a, b, c, d;

	return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) != 0 &&
	       (c & bit_F16C) != 0;
}
#endif

#endif
