/*
 * How a thread computes with floats, set to the standard's way for a while.
 *
 * A program linked with -Ofast or -ffast-math lets its threads take denormal numbers for zeros, and
 * programs may round another way or trap. What looks at their values, or promises the same bytes
 * for all, begins with float_mode_begin() and ends with float_mode_end(), on the same thread;
 * threads made between the two inherit the standard's way.
 */
#ifndef COMMON_FLOAT_MODE_H
#define COMMON_FLOAT_MODE_H

#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>

#define FLOAT_MODE_STANDARD 0x1f80u /* denormals kept, to the nearest, no traps */

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
