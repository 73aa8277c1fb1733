/*
 * The convolution's tiles with AVX-512: 14 pixels by 32 filters. 28 of the 32 registers hold sums.
 */
#include "trainer/kernels/kernel_conv_internal.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f")))
#define VEC    __m512
#define LANES  16
#define ROWS   14
#define PIXELS 8

enum {
	STEPS = 2
};

#define VECTOR static inline __attribute__((always_inline)) TARGET

VECTOR VEC vec_all(float x)
{
	return _mm512_set1_ps(x);
}

VECTOR __mmask16 vec_mask(int count)
{
	return (__mmask16)((1u << (count < 0 ? 0 : count)) - 1u);
}

VECTOR VEC vec_load_part(const float *p, int count)
{
	return _mm512_maskz_loadu_ps(vec_mask(count), p);
}

VECTOR void vec_store_part(float *p, VEC x, int count)
{
	_mm512_mask_storeu_ps(p, vec_mask(count), x);
}

VECTOR VEC vec_fma(VEC a, VEC b, VEC c)
{
	return _mm512_fmadd_ps(a, b, c);
}

VECTOR VEC vec_max(VEC a, VEC b)
{
	return _mm512_max_ps(a, b);
}

VECTOR VEC vec_min(VEC a, VEC b)
{
	return _mm512_min_ps(a, b);
}

VECTOR VEC vec_inside(VEC x, VEC y, VEC most)
{
	__mmask16 outside = _mm512_cmp_ps_mask(y, _mm512_setzero_ps(), _CMP_LE_OQ) |
			    _mm512_cmp_ps_mask(y, most, _CMP_GE_OQ);

	return _mm512_mask_mov_ps(x, outside, _mm512_setzero_ps());
}

/* Interleave floats, then pairs of floats, then quarters of the vectors. */
VECTOR void vec_transpose(VEC r[LANES])
{
	VEC t[LANES];

#pragma GCC unroll 8
	for (int i = 0; i < LANES; i += 2) {
		t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
		t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
	}
#pragma GCC unroll 8
	for (int i = 0; i < LANES; i += 4) {
#pragma GCC unroll 2
		for (int j = 0; j < 2; j++) {
			__m512d a = _mm512_castps_pd(t[i + j]), b = _mm512_castps_pd(t[i + j + 2]);

			r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
			r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
		}
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
		t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
		t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
		t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
		r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
		r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
		r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
	}
}

#include "trainer/kernels/kernel_conv_tile.h"
#include "trainer/kernels/kernel_conv_winograd_tile.h"
#include "trainer/kernels/kernel_depthwise_tile.h"

const struct conv_body conv__avx512 = CONV_BODY("avx512");

#endif
