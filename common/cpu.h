/*
 * Processor features, independent of the compiler's queries (x86-64 only), and the floating-point
 * mode of a thread. Thread-safe.
 */
#ifndef COMMON_CPU_H
#define COMMON_CPU_H

#include <stdbool.h>
#include <stdint.h>

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

/*
 * Switch a thread's floating-point mode to the IEEE 754 default for a while.
 *
 * A program linked with -Ofast or -ffast-math makes its threads flush denormals to zero, and
 * programs may change the rounding or enable traps. Code that inspects such a program's values, or
 * promises the same bytes everywhere, calls float_mode_begin() and then float_mode_end() on the
 * same thread; threads created between the two inherit the default mode.
 */

#if defined(__SSE2__)
#include <xmmintrin.h>

#define FLOAT_MODE_STANDARD 0x1f80u /* keep denormals, round to nearest, no traps */

static inline uint64_t float_mode_begin(void)
{
	const unsigned mode = _mm_getcsr();

	_mm_setcsr(FLOAT_MODE_STANDARD);
	return mode;
}

static inline void float_mode_end(uint64_t mode)
{
	_mm_setcsr((unsigned)mode);
}

#elif defined(__aarch64__)

static inline void float_mode_end(uint64_t mode)
{
	__asm__ volatile("msr fpcr, %0" : : "r"(mode));
}

static inline uint64_t float_mode_begin(void)
{
	uint64_t mode;

	__asm__ volatile("mrs %0, fpcr" : "=r"(mode));
	float_mode_end(0);
	return mode;
}

#else

static inline uint64_t float_mode_begin(void)
{
	return 0;
}

static inline void float_mode_end(uint64_t mode)
{
	(void)mode;
}

#endif

#endif
