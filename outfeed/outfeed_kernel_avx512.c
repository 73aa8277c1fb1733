/*
 * The loops of the statistics with AVX-512 (the foundation only): a vector is a whole row.
 */
#include "common/cpu.h"
#include "outfeed/outfeed_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

#define KERNEL const struct outfeed_kernel outfeed__kernel_avx512
#define NAME   "avx512"
#define RUNS   cpu_has_avx512
#define TARGET __attribute__((target("avx512f,popcnt")))
#define LANES  16
#define VF     __m512
#define VI     __m512i
#define VD     __m512d
#define MASK   __mmask16
#define PLAIN  false
#define STRIP  SIZE_MAX

#define INLINE static inline __attribute__((always_inline)) TARGET
/* Define a function that returns @value. */
#define VECTOR(type, name, parameters, value)                                                      \
	INLINE type name parameters                                                                \
	{                                                                                          \
		return value;                                                                      \
	}
#define STORE(name, parameters, store)                                                             \
	INLINE void name parameters                                                                \
	{                                                                                          \
		store;                                                                             \
	}

/* clang-format off */
VECTOR(VF, vf_all, (float x), _mm512_set1_ps(x))
VECTOR(VF, vf_load, (const float *p), _mm512_loadu_ps(p))
STORE(vf_store, (float *p, VF x), _mm512_storeu_ps(p, x))
VECTOR(VF, vf_min, (VF x, VF m), _mm512_min_ps(x, m))
VECTOR(VF, vf_max, (VF x, VF m), _mm512_max_ps(x, m))
VECTOR(MASK, vf_less, (VF a, VF b), _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ))
VECTOR(MASK, vf_equal, (VF a, VF b), _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ))
VECTOR(MASK, vf_unordered, (VF a, VF b), _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q))
VECTOR(VF, vf_widen, (const uint16_t *halves),
	_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)halves)))
VECTOR(VI, vi_all, (int x), _mm512_set1_epi32(x))
VECTOR(VI, vi_bits, (VF x), _mm512_castps_si512(x))
VECTOR(VI, vi_and, (VI a, VI b), _mm512_and_si512(a, b))
VECTOR(VI, vi_add, (VI a, VI b), _mm512_add_epi32(a, b))
VECTOR(VI, vi_sub, (VI a, VI b), _mm512_sub_epi32(a, b))
/* Unsigned, like vi_max(). */
VECTOR(VI, vi_min, (VI a, VI b), _mm512_min_epu32(a, b))
VECTOR(VI, vi_max, (VI a, VI b), _mm512_max_epu32(a, b))
/* -1 if negative, otherwise 0. */
VECTOR(VI, vi_sign, (VI x), _mm512_srai_epi32(x, 31))
VECTOR(VI, vi_exponent, (VI x), _mm512_srli_epi32(x, 23))
VECTOR(MASK, vi_equal, (VI a, VI b), _mm512_cmpeq_epi32_mask(a, b))
/* Signed. */
VECTOR(MASK, vi_greater, (VI a, VI b), _mm512_cmpgt_epi32_mask(a, b))
/* @n, plus 1 in the elements of @which. */
VECTOR(VI, vi_count, (VI n, MASK which), _mm512_mask_sub_epi32(n, which, n, _mm512_set1_epi32(-1)))
STORE(vi_store, (uint32_t *p, VI x), _mm512_storeu_si512(p, x))
STORE(vi_store_short, (uint16_t *p, VI x),
	_mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(x)))
VECTOR(uint32_t, vi_total, (VI x), (uint32_t)_mm512_reduce_add_epi32(x))
/* The greatest element, unsigned. */
VECTOR(uint32_t, vi_most, (VI x), _mm512_reduce_max_epu32(x))
VECTOR(bool, vi_any, (VI x), _mm512_test_epi32_mask(x, x) != 0)
VECTOR(bool, vi_any_zero, (VI x), _mm512_testn_epi32_mask(x, x) != 0)
VECTOR(VD, vd_all, (double x), _mm512_set1_pd(x))
VECTOR(VD, vd_load, (const double *p), _mm512_loadu_pd(p))
/* Load floats as doubles. */
VECTOR(VD, vd_wide, (const float *p), _mm512_cvtps_pd(_mm256_loadu_ps(p)))
STORE(vd_store, (double *p, VD x), _mm512_storeu_pd(p, x))
VECTOR(VD, vd_add, (VD a, VD b), _mm512_add_pd(a, b))
VECTOR(VD, vd_sub, (VD a, VD b), _mm512_sub_pd(a, b))
VECTOR(VD, vd_mul, (VD a, VD b), _mm512_mul_pd(a, b))
VECTOR(VD, vd_fma, (VD a, VD b, VD c), _mm512_fmadd_pd(a, b, c))
VECTOR(VD, vd_abs, (VD x), _mm512_abs_pd(x))
/* clang-format on */

/* Store the floats of @keep contiguously; return their number. */
INLINE size_t vf_compact(float *out, VF x, MASK keep)
{
	_mm512_storeu_ps(out, _mm512_maskz_compress_ps(keep, x));
	return (size_t)__builtin_popcount(keep);
}

/* Count elements that are equal, or whose finite distance is at most @limit. */
INLINE uint32_t vd_count_close(VD a, VD b, VD distance, VD limit)
{
	__mmask8 close = _mm512_cmp_pd_mask(distance, limit, _CMP_LE_OQ);

	close = _mm512_mask_cmp_pd_mask(close, distance, _mm512_set1_pd((double)INFINITY),
					_CMP_LT_OQ);
	return (uint32_t)__builtin_popcount(close | _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ));
}

#include "outfeed/outfeed_kernel_loops.h"

#endif /* __x86_64__ */
