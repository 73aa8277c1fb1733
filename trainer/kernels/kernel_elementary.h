/*
 * Elementary functions of one float, written so that the compiler vectorizes loops over them. For
 * doubles see common/elementary.h.
 *
 * Argument reductions and polynomials (weighted minimax fits on the interval noted beside them)
 * use plain operations in fixed order: the same bytes with every instruction set. Errors are at
 * most 2.5 units in the last place against the exact value, measured by
 * tests/trainer/test_kernel_activation.c. NaN gives NaN; infinities give the limits. No state.
 */
#ifndef KERNEL_ELEMENTARY_H
#define KERNEL_ELEMENTARY_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "trainer/kernels/kernel_clones.h"

/* Adding this to a small number leaves the nearest integer in the lowest bits. */
#define ELEMENTARY_ROUND  0x1.8p23f
#define ELEMENTARY_LOG2E  0x1.715476p+0f
#define ELEMENTARY_LN2_HI 0x1.62e4p-1f /* 15 bits: its product with an exponent is exact */
#define ELEMENTARY_LN2_LO 0x1.7f7d1cp-20f

KERNEL_INLINE uint32_t elementary_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* 2^exponent, for exponents -126 .. 127. */
KERNEL_INLINE float elementary_power(int32_t exponent)
{
	uint32_t bits = (uint32_t)(exponent + 127) << 23;
	float power;

	memcpy(&power, &bits, sizeof(power));
	return power;
}

/* Reduce x = exponent ln 2 + r. Return r, whose absolute value is at most ln 2 / 2. */
KERNEL_INLINE float elementary_reduce(float x, int32_t *exponent)
{
	float shifted = x * ELEMENTARY_LOG2E + ELEMENTARY_ROUND;
	float whole = shifted - ELEMENTARY_ROUND;

	/* For NaN the lowest bits are arbitrary; the result is NaN regardless. */
	*exponent = (int32_t)(elementary_bits(shifted) << 10) >> 10;
	return x - whole * ELEMENTARY_LN2_HI - whole * ELEMENTARY_LN2_LO;
}

KERNEL_INLINE float elementary_expf(float x)
{
	int32_t exponent, half;
	float r, p;

	x = x < -104.0f ? -104.0f : x;
	x = x > 89.0f ? 89.0f : x;
	r = elementary_reduce(x, &exponent);
	p = 0x1.6a1a72p-10f;
	p = p * r + 0x1.123fc6p-7f;
	p = p * r + 0x1.555916p-5f;
	p = p * r + 0x1.55548ap-3f;
	p = p * r + 0x1.fffffcp-2f;
	p = 1.0f + (r + r * r * p);

	/* Scale in two steps: the result may be below or above the range of one power. */
	half = exponent >> 1;
	return p * elementary_power(half) * elementary_power(exponent - half);
}

/* exp(x) - 1 for x <= 0, accurate to the last places near 0 too. */
KERNEL_INLINE float elementary_expm1f_negative(float x)
{
	int32_t exponent;
	float r, p, power;

	x = x < -30.0f ? -30.0f : x;
	r = elementary_reduce(x, &exponent);
	p = 0x1.a1a93p-13f;
	p = p * r + 0x1.6d7b7cp-10f;
	p = p * r + 0x1.11108ap-7f;
	p = p * r + 0x1.5554a8p-5f;
	p = p * r + 0x1.555556p-3f;
	p = p * r + 0.5f;
	p = r + r * r * p;
	power = elementary_power(exponent);
	return power * p + (power - 1.0f);
}

/* 1 / (1 + exp(-x)). Evaluate exp() for a negative argument only, so that it cannot overflow. */
KERNEL_INLINE float elementary_sigmoidf(float x)
{
	float e = elementary_expf(-fabsf(x));
	float above = x < 0.0f ? e : 1.0f;

	return above / (1.0f + e);
}

KERNEL_INLINE float elementary_tanhf(float x)
{
	float a = fabsf(x), z = x * x, large, p;

	p = -0x1.830cp-8f;
	p = p * z + 0x1.54e01ap-6f;
	p = p * z - 0x1.b89edap-5f;
	p = p * z + 0x1.1109dcp-3f;
	p = p * z - 0x1.55553ep-2f;
	p = x + x * z * p;
	large = 1.0f - 2.0f / (elementary_expf(2.0f * a) + 1.0f);
	large = copysignf(large, x);
	return a < 0.6f ? p : large;
}

KERNEL_INLINE float elementary_erff(float x)
{
	float a = fabsf(x), z = x * x, small, q, large;

	small = 0x1.574ec6p-14f;
	small = small * z - 0x1.a88d8ap-11f;
	small = small * z + 0x1.549664p-8f;
	small = small * z - 0x1.b80962p-6f;
	small = small * z + 0x1.ce2dcap-4f;
	small = small * z - 0x1.812742p-2f;
	small = small * z + 0x1.06eba8p-3f; /* 2 / sqrt(pi) - 1 */

	/* q = -log(erfc(a)) on 0.94 .. 4.1 */
	a = a > 4.1f ? 4.1f : a;
	q = 0x1.66078p-16f;
	q = q * a - 0x1.ca8bf2p-12f;
	q = q * a + 0x1.12427ep-8f;
	q = q * a - 0x1.9c278cp-6f;
	q = q * a + 0x1.bbbf4ap-4f;
	q = q * a + 0x1.443f46p-1f;
	q = q * a + 0x1.212992p+0f;
	q = q * a - 0x1.799964p-13f;
	large = copysignf(1.0f - elementary_expf(-q), x);
	return a < 0.95f ? x + x * small : large;
}

/* log(1 + x) for x in 0 .. 1: twice the area hyperbolic tangent of x / (2 + x). */
KERNEL_INLINE float elementary_log1pf_share(float x)
{
	float s = x / (2.0f + x), z = s * s, p;

	p = 0x1.1f0a52p-2f;
	p = p * z + 0x1.1eb2b8p-2f;
	p = p * z + 0x1.99d2acp-2f;
	p = p * z + 0x1.5555p-1f;
	return 2.0f * s + s * z * p;
}

#endif /* KERNEL_ELEMENTARY_H */
