/* Processor features, independent of the compiler's queries. x86-64 only; thread-safe. */
#ifndef COMMON_CPU_H
#define COMMON_CPU_H

#include <stdbool.h>

/* The widest vector instructions that multi-version functions may use: 0 the compiler's baseline,
 * 1 up to AVX2, 2 up to AVX-512. Tests build programs with lower levels. */
#ifndef CPU_LEVEL
#define CPU_LEVEL 2
#endif

#if defined(__x86_64__)
#include <cpuid.h>

static inline bool cpu_has_avx512(void)
{
	return CPU_LEVEL >= 2 && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

/* AVX2 with fused multiply-add. */
static inline bool cpu_has_avx2(void)
{
	return CPU_LEVEL >= 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* Conversion between float32 and float16 in AVX registers. Clang's __builtin_cpu_supports() does
 * not accept "f16c". */
static inline bool cpu_has_f16c(void)
{
	unsigned a, b, c, d;

	return CPU_LEVEL >= 1 && __builtin_cpu_supports("avx") &&
	       __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

#endif
