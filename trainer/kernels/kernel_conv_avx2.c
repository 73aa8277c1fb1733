/*
 * The convolution's tiles with AVX2 and FMA: 6 pixels by 16 filters. 12 of the 16 registers hold
 * sums.
 */
#include "trainer/kernels/kernel_conv_internal.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define VEC    __m256
#define LANES  8
#define ROWS   6
#define PIXELS 4

enum {
	STEPS = 4
};

#define VECTOR static inline __attribute__((always_inline)) TARGET

VECTOR VEC vec_all(float x)
{
	return _mm256_set1_ps(x);
}

VECTOR __m256i vec_mask(int count)
{
	return _mm256_cmpgt_epi32(_mm256_set1_epi32(count),
				  _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

VECTOR VEC vec_load_part(const float *p, int count)
{
	return _mm256_maskload_ps(p, vec_mask(count));
}

VECTOR void vec_store_part(float *p, VEC x, int count)
{
	_mm256_maskstore_ps(p, vec_mask(count), x);
}

VECTOR VEC vec_fma(VEC a, VEC b, VEC c)
{
	return _mm256_fmadd_ps(a, b, c);
}

VECTOR VEC vec_max(VEC a, VEC b)
{
	return _mm256_max_ps(a, b);
}

VECTOR VEC vec_min(VEC a, VEC b)
{
	return _mm256_min_ps(a, b);
}

VECTOR VEC vec_inside(VEC x, VEC y, VEC most)
{
	VEC outside = _mm256_or_ps(_mm256_cmp_ps(y, _mm256_setzero_ps(), _CMP_LE_OQ),
				   _mm256_cmp_ps(y, most, _CMP_GE_OQ));

	return _mm256_andnot_ps(outside, x);
}

/* Interleave floats, then pairs of floats, then halves of the vectors. */
VECTOR void vec_transpose(VEC r[LANES])
{
	VEC t[LANES];

#pragma GCC unroll 4
	for (int i = 0; i < LANES; i += 2) {
		t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
		t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
	}
#pragma GCC unroll 2
	for (int i = 0; i < LANES; i += 4) {
#pragma GCC unroll 2
		for (int j = 0; j < 2; j++) {
			__m256d a = _mm256_castps_pd(t[i + j]), b = _mm256_castps_pd(t[i + j + 2]);

			r[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
			r[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
		}
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
		t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
	}
#pragma GCC unroll 8
	for (int i = 0; i < LANES; i++)
		r[i] = t[i];
}

#include "trainer/kernels/kernel_conv_tile.h"
#include "trainer/kernels/kernel_conv_winograd_tile.h"
#include "trainer/kernels/kernel_depthwise_tile.h"

const struct conv_body conv__avx2 = CONV_BODY("avx2");

#endif
