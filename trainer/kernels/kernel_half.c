/*
 * Rounding to half precision: with conversion instructions there and back, or integer arithmetic.
 *
 * Threading: any number of callers; the selection of a body is atomic.
 */
#include "trainer/kernels/kernel_vector.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "common/cpu.h"
#include "common/mem.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

struct half_body {
	const char *name;
	bool (*runs)(void);
	void (*round)(float *to, const float *from, size_t count);
};

/* ---- portable -------------------------------------------------------------------------------- */

#define HALF_SIGN     0x80000000u
#define HALF_INFINITY 0x7f800000u
#define HALF_QUIET    0x00400000u
#define HALF_DROPPED  0x00001fffu /* the 13 mantissa bits of a float that half does not have */
#define HALF_OVERFLOW 0x477ff000u /* 65520: halfway from the greatest half to the next step */
#define HALF_NORMAL   0x38800000u /* 2^-14 */

static float half_float(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint32_t half_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float half_round(float value)
{
	const uint32_t sign = half_bits(value) & HALF_SIGN;
	uint32_t bits = half_bits(value) & ~HALF_SIGN;

	if (bits > HALF_INFINITY)
		bits = (bits | HALF_QUIET) & ~HALF_DROPPED;
	else if (bits >= HALF_OVERFLOW)
		bits = HALF_INFINITY;
	else if (bits >= HALF_NORMAL) /* add just under half a step, and one more for odd values */
		bits = (bits + (HALF_DROPPED >> 1) + (bits >> 13 & 1)) & ~HALF_DROPPED;
	else /* from 1/2 to 1 the steps of a float are 2^-24 */
		bits = half_bits(half_float(bits) + 0.5f - 0.5f);
	return half_float(bits | sign);
}

static void half_portable(float *to, const float *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = half_round(from[i]);
}

static bool half_portable_runs(void)
{
	return true;
}

/* The compiler vectorizes this loop. */
void kernel_round_bfloat16(float *to, const float *from, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const uint32_t bits = half_bits(from[i]);
		const bool nan = (bits & ~HALF_SIGN) > HALF_INFINITY;
		const uint32_t nearest = bits + 0x7fffu + (bits >> 16 & 1);

		to[i] = half_float((nan ? bits | HALF_QUIET : nearest) & 0xffff0000u);
	}
}

/* ---- x86 ------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define HALF_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

__attribute__((target("avx512f"))) static void half_avx512(float *to, const float *from,
							   size_t count)
{
	size_t i = 0;

	for (; i + 16 <= count; i += 16)
		_mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm512_cvtps_ph(_mm512_loadu_ps(from + i),
									 HALF_NEAREST)));
	half_portable(to + i, from + i, count - i);
}

__attribute__((target("avx,f16c"))) static void half_f16c(float *to, const float *from,
							  size_t count)
{
	size_t i = 0;

	for (; i + 8 <= count; i += 8)
		_mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(from + i),
									 HALF_NEAREST)));
	half_portable(to + i, from + i, count - i);
}

#endif

/* ---- selection ------------------------------------------------------------------------------- */

static const struct half_body half_bodies[] = {
#if defined(__x86_64__)
	{"AVX-512", cpu_has_avx512, half_avx512},
	{"F16C", cpu_has_f16c, half_f16c},
#endif
	{"portable", half_portable_runs, half_portable},
};

static _Atomic(const struct half_body *) half_selected;

const char *kernel_half_body(int index)
{
	return index >= 0 && (size_t)index < ARRAY_LEN(half_bodies) ? half_bodies[index].name
								    : NULL;
}

bool kernel_half_use(int index)
{
	if (!kernel_half_body(index) || !half_bodies[index].runs())
		return false;
	atomic_store_explicit(&half_selected, &half_bodies[index], memory_order_relaxed);
	return true;
}

void kernel_round_half(float *to, const float *from, size_t count)
{
	const struct half_body *body = atomic_load_explicit(&half_selected, memory_order_relaxed);

	for (int i = 0; !body; i++)
		if (half_bodies[i].runs())
			body = &half_bodies[i];
	atomic_store_explicit(&half_selected, body, memory_order_relaxed);
	body->round(to, from, count);
}
