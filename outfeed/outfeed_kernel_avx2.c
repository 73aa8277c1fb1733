/*
 * The loops of the statistics with AVX2 and the extensions of its generation (FMA, BMI2, F16C): a
 * vector is half a row.
 *
 * Sums process a strip of values once for each half of the lanes: then all sums stay in the 16
 * registers, and the second half reads the strip from the first-level cache. Arithmetic is the
 * bottleneck, not memory: so a strip is first assumed to have no zeros.
 */
#include "common/cpu.h"
#include "outfeed/outfeed_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

#define KERNEL const struct outfeed_kernel outfeed__kernel_avx2
#define NAME   "avx2"
#define RUNS   has_avx2
#define TARGET __attribute__((target("avx2,fma,bmi2,f16c,popcnt")))
#define LANES  8
#define VF     __m256
#define VI     __m256i
#define VD     __m256d
#define MASK   __m256i
#define PLAIN  true
/* Short, so that the second half soon makes up for the first half's waits for memory. */
#define STRIP ((size_t)128)

static bool has_avx2(void)
{
	return cpu_has_avx2() && __builtin_cpu_supports("bmi2") && cpu_has_f16c();
}

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
VECTOR(VF, vf_all, (float x), _mm256_set1_ps(x))
VECTOR(VF, vf_load, (const float *p), _mm256_loadu_ps(p))
STORE(vf_store, (float *p, VF x), _mm256_storeu_ps(p, x))
VECTOR(VF, vf_min, (VF x, VF m), _mm256_min_ps(x, m))
VECTOR(VF, vf_max, (VF x, VF m), _mm256_max_ps(x, m))
VECTOR(MASK, vf_less, (VF a, VF b), _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LT_OQ)))
VECTOR(MASK, vf_equal, (VF a, VF b), _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)))
VECTOR(MASK, vf_unordered, (VF a, VF b), _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)))
VECTOR(VF, vf_widen, (const uint16_t *halves),
	_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)halves)))
VECTOR(VI, vi_all, (int x), _mm256_set1_epi32(x))
VECTOR(VI, vi_bits, (VF x), _mm256_castps_si256(x))
VECTOR(VI, vi_and, (VI a, VI b), _mm256_and_si256(a, b))
VECTOR(VI, vi_add, (VI a, VI b), _mm256_add_epi32(a, b))
VECTOR(VI, vi_sub, (VI a, VI b), _mm256_sub_epi32(a, b))
/* Unsigned, like vi_max(). */
VECTOR(VI, vi_min, (VI a, VI b), _mm256_min_epu32(a, b))
VECTOR(VI, vi_max, (VI a, VI b), _mm256_max_epu32(a, b))
/* -1 if negative, otherwise 0. */
VECTOR(VI, vi_sign, (VI x), _mm256_srai_epi32(x, 31))
VECTOR(VI, vi_exponent, (VI x), _mm256_srli_epi32(x, 23))
VECTOR(MASK, vi_equal, (VI a, VI b), _mm256_cmpeq_epi32(a, b))
/* Signed. */
VECTOR(MASK, vi_greater, (VI a, VI b), _mm256_cmpgt_epi32(a, b))
/* @n, plus 1 in the elements of @which. */
VECTOR(VI, vi_count, (VI n, MASK which), _mm256_sub_epi32(n, which))
STORE(vi_store, (uint32_t *p, VI x), _mm256_storeu_si256((__m256i *)p, x))
VECTOR(bool, vi_any, (VI x), !_mm256_testz_si256(x, x))
VECTOR(bool, vi_any_zero, (VI x),
	_mm256_movemask_epi8(_mm256_cmpeq_epi32(x, _mm256_setzero_si256())) != 0)
VECTOR(VD, vd_all, (double x), _mm256_set1_pd(x))
VECTOR(VD, vd_load, (const double *p), _mm256_loadu_pd(p))
/* Load floats as doubles. */
VECTOR(VD, vd_wide, (const float *p), _mm256_cvtps_pd(_mm_loadu_ps(p)))
STORE(vd_store, (double *p, VD x), _mm256_storeu_pd(p, x))
VECTOR(VD, vd_add, (VD a, VD b), _mm256_add_pd(a, b))
VECTOR(VD, vd_sub, (VD a, VD b), _mm256_sub_pd(a, b))
VECTOR(VD, vd_mul, (VD a, VD b), _mm256_mul_pd(a, b))
VECTOR(VD, vd_fma, (VD a, VD b, VD c), _mm256_fmadd_pd(a, b, c))
VECTOR(VD, vd_abs, (VD x), _mm256_andnot_pd(_mm256_set1_pd(-0.0), x))
/* clang-format on */

/* Store the floats of @keep contiguously; return their number. */
INLINE size_t vf_compact(float *out, VF x, MASK keep)
{
	unsigned which = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(keep));
	/* A byte for each value to keep, then the indices of these bytes, contiguous. */
	uint64_t bytes = _pdep_u64(which, 0x0101010101010101) * 0xff;
	uint64_t order = _pext_u64(0x0706050403020100, bytes);
	__m256i from = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)order));

	_mm256_storeu_ps(out, _mm256_permutevar8x32_ps(x, from));
	return (size_t)__builtin_popcount(which);
}

INLINE void vi_store_short(uint16_t *p, VI x)
{
	__m128i low = _mm256_castsi256_si128(x), high = _mm256_extracti128_si256(x, 1);

	_mm_storeu_si128((__m128i *)p, _mm_packus_epi32(low, high));
}

INLINE uint32_t vi_total(VI x)
{
	__m128i four = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));

	four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
	four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(four);
}

/* The greatest element, unsigned. */
INLINE uint32_t vi_most(VI x)
{
	__m128i four = _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));

	four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
	four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(four);
}

/* Count elements that are equal, or whose finite distance is at most @limit. */
INLINE uint32_t vd_count_close(VD a, VD b, VD distance, VD limit)
{
	__m256d infinity = _mm256_set1_pd((double)INFINITY);
	__m256d close = _mm256_and_pd(_mm256_cmp_pd(distance, limit, _CMP_LE_OQ),
				      _mm256_cmp_pd(distance, infinity, _CMP_LT_OQ));

	close = _mm256_or_pd(close, _mm256_cmp_pd(a, b, _CMP_EQ_OQ));
	return (uint32_t)__builtin_popcount((unsigned)_mm256_movemask_pd(close));
}

#include "outfeed/outfeed_kernel_loops.h"

#endif /* __x86_64__ */
