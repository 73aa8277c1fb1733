/*
 * Switch a thread's floating-point mode to the IEEE 754 default for a while.
 *
 * A program linked with -Ofast or -ffast-math makes its threads flush denormals to zero, and
 * programs may change the rounding or enable traps. Code that inspects such a program's values, or
 * promises the same bytes everywhere, calls float_mode_begin() and then float_mode_end() on the
 * same thread; threads created between the two inherit the default mode.
 */
#ifndef COMMON_FLOAT_MODE_H
#define COMMON_FLOAT_MODE_H

#include <stdint.h>

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

#endif /* COMMON_FLOAT_MODE_H */
