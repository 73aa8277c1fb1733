/*
 * The loops for AVX-512 (the foundation alone): all 16 lanes at once.
 *
 * Pure functions on the caller's data: any thread.
 */
#include "common/cpu.h"
#include "outfeed/outfeed_kernel_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LANES  OUTFEED_LANES
#define AVX512 __attribute__((target("avx512f,popcnt")))
/* What such a loop calls: compiled into each. */
#define INLINE OUTFEED_INLINE AVX512

AVX512 static void sums(const float *values, size_t count, struct outfeed_sums *out,
			const void *next, size_t step)
{
	struct outfeed_lanes l;
	const char *ahead = next;
	const __m512i ones = _mm512_set1_epi32(-1);
	const __m512i magnitude = _mm512_set1_epi32(OUTFEED_MAGNITUDE);
	__m512d sum0 = _mm512_setzero_pd(), sum1 = _mm512_setzero_pd();
	__m512d sq0 = _mm512_setzero_pd(), sq1 = _mm512_setzero_pd();
	__m512d l10 = _mm512_setzero_pd(), l11 = _mm512_setzero_pd();
	__m512 min = _mm512_set1_ps(INFINITY), max = _mm512_set1_ps(-INFINITY);
	__m512i least = _mm512_set1_epi32(-1);
	__m512i zeros = _mm512_setzero_si512(), negatives = zeros;
	const float *end = values + outfeed_rows(count);

	for (const float *p = values; p < end; p += LANES) {
		__m512 x = _mm512_loadu_ps(p);
		__m512i size = _mm512_and_si512(_mm512_castps_si512(x), magnitude);
		__m512i bits = _mm512_add_epi32(size, ones);
		__m512d d0 = _mm512_cvtps_pd(_mm256_loadu_ps(p));
		__m512d d1 = _mm512_cvtps_pd(_mm256_loadu_ps(p + 8));

		_mm_prefetch(ahead, _MM_HINT_T1);
		ahead += step;
		sum0 = _mm512_add_pd(sum0, d0);
		sum1 = _mm512_add_pd(sum1, d1);
		sq0 = _mm512_fmadd_pd(d0, d0, sq0);
		sq1 = _mm512_fmadd_pd(d1, d1, sq1);
		l10 = _mm512_add_pd(l10, _mm512_abs_pd(d0));
		l11 = _mm512_add_pd(l11, _mm512_abs_pd(d1));
		min = _mm512_min_ps(x, min);
		max = _mm512_max_ps(x, max);
		least = _mm512_min_epu32(bits, least);
		zeros = _mm512_mask_sub_epi32(zeros, _mm512_testn_epi32_mask(size, size), zeros,
					      ones);
		negatives = _mm512_mask_sub_epi32(
			negatives, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ),
			negatives, ones);
	}
	_mm512_storeu_pd(l.sum, sum0);
	_mm512_storeu_pd(l.sum + 8, sum1);
	_mm512_storeu_pd(l.squares, sq0);
	_mm512_storeu_pd(l.squares + 8, sq1);
	_mm512_storeu_pd(l.l1, l10);
	_mm512_storeu_pd(l.l1 + 8, l11);
	_mm512_storeu_ps(l.min, min);
	_mm512_storeu_ps(l.max, max);
	_mm512_storeu_si512(l.least, least);
	_mm512_storeu_si512(l.zeros, zeros);
	_mm512_storeu_si512(l.negatives, negatives);
	outfeed_tail_sums(values, count, &l);
	outfeed_fold_sums(&l, out);
}

AVX512 static void centred(const float *values, size_t count, double shift,
			   struct outfeed_sums *out)
{
	struct outfeed_lanes l;
	const __m512d k = _mm512_set1_pd(shift);
	__m512d sum0 = _mm512_setzero_pd(), sum1 = _mm512_setzero_pd();
	__m512d sq0 = _mm512_setzero_pd(), sq1 = _mm512_setzero_pd();
	const float *end = values + outfeed_rows(count);

	for (const float *p = values; p < end; p += LANES) {
		__m512d d0 = _mm512_sub_pd(_mm512_cvtps_pd(_mm256_loadu_ps(p)), k);
		__m512d d1 = _mm512_sub_pd(_mm512_cvtps_pd(_mm256_loadu_ps(p + 8)), k);

		sum0 = _mm512_add_pd(sum0, d0);
		sum1 = _mm512_add_pd(sum1, d1);
		sq0 = _mm512_add_pd(sq0, _mm512_mul_pd(d0, d0));
		sq1 = _mm512_add_pd(sq1, _mm512_mul_pd(d1, d1));
	}
	_mm512_storeu_pd(l.sum, sum0);
	_mm512_storeu_pd(l.sum + 8, sum1);
	_mm512_storeu_pd(l.squares, sq0);
	_mm512_storeu_pd(l.squares + 8, sq1);
	outfeed_tail_centred(values, count, shift, &l);
	outfeed_fold_centred(&l, out);
}

INLINE uint32_t count_of(__mmask16 mask)
{
	return (uint32_t)__builtin_popcount(mask);
}

AVX512 static void signs(const float *values, size_t count, struct outfeed_counts *out)
{
	const __m512i one = _mm512_set1_epi32(1), magnitude = _mm512_set1_epi32(OUTFEED_MAGNITUDE);
	const __m512 zero = _mm512_setzero_ps();
	__m512i most = _mm512_setzero_si512(), negative = most, positive = most;
	size_t at = 0;

	for (; at < outfeed_rows(count); at += LANES) {
		__m512 x = _mm512_loadu_ps(values + at);

		_mm_prefetch((const char *)(values + at + OUTFEED_AHEAD), _MM_HINT_T1);
		negative = _mm512_mask_add_epi32(negative, _mm512_cmp_ps_mask(x, zero, _CMP_LT_OQ),
						 negative, one);
		positive = _mm512_mask_add_epi32(positive, _mm512_cmp_ps_mask(x, zero, _CMP_GT_OQ),
						 positive, one);
		most = _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(x), magnitude), most);
	}
	out->negatives = (uint32_t)_mm512_reduce_add_epi32(negative);
	out->positives = (uint32_t)_mm512_reduce_add_epi32(positive);
	out->most = _mm512_reduce_max_epu32(most);
	outfeed_tail_signs(values, at, count, out);
}

AVX512 static void nonfinite(const float *values, size_t count, struct outfeed_counts *out)
{
	const __m512 infinity = _mm512_set1_ps(INFINITY), minus = _mm512_set1_ps(-INFINITY);
	size_t at = 0;

	out->nan = out->pos_inf = out->neg_inf = 0;
	for (; at < outfeed_rows(count); at += LANES) {
		__m512 x = _mm512_loadu_ps(values + at);

		out->nan += count_of(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q));
		out->pos_inf += count_of(_mm512_cmp_ps_mask(x, infinity, _CMP_EQ_OQ));
		out->neg_inf += count_of(_mm512_cmp_ps_mask(x, minus, _CMP_EQ_OQ));
	}
	outfeed_tail_nonfinite(values, at, count, out);
}

AVX512 static size_t compact(float *out, const float *values, size_t count)
{
	const __m512i magnitude = _mm512_set1_epi32(OUTFEED_MAGNITUDE);
	const __m512i infinite = _mm512_set1_epi32(OUTFEED_INFINITE);
	size_t kept = 0, at = 0;

	/* Whole vectors are stored, since at most @at values came before. */
	for (; at < outfeed_rows(count); at += LANES) {
		__m512 x = _mm512_loadu_ps(values + at);
		__m512i bits = _mm512_and_si512(_mm512_castps_si512(x), magnitude);
		__mmask16 keep = _mm512_cmplt_epu32_mask(bits, infinite);

		_mm512_storeu_ps(out + kept, _mm512_maskz_compress_ps(keep, x));
		kept += count_of(keep);
	}
	return outfeed_tail_compact(out, values, at, count, kept);
}

AVX512 static uint32_t abs_max(const float *values, size_t count)
{
	const __m512i magnitude = _mm512_set1_epi32(OUTFEED_MAGNITUDE);
	__m512i most0 = _mm512_setzero_si512(), most1 = most0;
	size_t at = 0;

	for (; at + 2 * LANES <= count; at += 2 * LANES) {
		const float *p = values + at;

		_mm_prefetch((const char *)(p + OUTFEED_AHEAD), _MM_HINT_T1);
		_mm_prefetch((const char *)(p + LANES + OUTFEED_AHEAD), _MM_HINT_T1);
		most0 = _mm512_max_epu32(_mm512_and_si512(_mm512_loadu_si512(p), magnitude), most0);
		most1 = _mm512_max_epu32(_mm512_and_si512(_mm512_loadu_si512(p + LANES), magnitude),
					 most1);
	}
	return outfeed_tail_abs_max(values, at, count,
				    _mm512_reduce_max_epu32(_mm512_max_epu32(most0, most1)));
}

AVX512 static void widen(float *out, const uint16_t *halves, size_t count)
{
	size_t at = 0;

	for (; at < outfeed_rows(count); at += LANES) {
		__m256i half = _mm256_loadu_si256((const __m256i *)(halves + at));

		_mm512_storeu_ps(out + at, _mm512_cvtph_ps(half));
	}
	outfeed_tail_widen(out, halves, at, count);
}

AVX512 static void keys(uint16_t *out, const float *values, size_t count)
{
	const __m512i one = _mm512_set1_epi32(1), magnitude = _mm512_set1_epi32(OUTFEED_MAGNITUDE);
	const __m512i infinite = _mm512_set1_epi32(OUTFEED_INFINITE);
	const __m512i negative = _mm512_set1_epi32(OUTFEED_KEY_NEGATIVE);
	size_t at = 0;

	for (; at < outfeed_rows(count); at += LANES) {
		__m512i bits = _mm512_loadu_si512(values + at);
		__m512i size = _mm512_and_si512(bits, magnitude);
		__m512i key = _mm512_srli_epi32(size, 23);

		_mm_prefetch((const char *)(values + at + OUTFEED_AHEAD), _MM_HINT_T1);
		key = _mm512_mask_add_epi32(key, _mm512_test_epi32_mask(size, size), key, one);
		key = _mm512_mask_add_epi32(key, _mm512_cmpgt_epi32_mask(size, infinite), key, one);
		key = _mm512_add_epi32(key,
				       _mm512_and_si512(_mm512_srai_epi32(bits, 31), negative));
		_mm256_storeu_si256((__m256i *)(out + at), _mm512_cvtepi32_epi16(key));
	}
	outfeed_tail_keys(out, values, at, count);
}

AVX512 static void active_rows(uint32_t *active, const float *values, size_t rows, size_t columns,
			       float low, float high)
{
	outfeed_active_rows(active, values, rows, columns, low, high);
}

/* Eight lanes' distances; sums are in *@sum and *@size. Which have changed, of those in @other. */
INLINE __mmask8 change_of(__m256 before, __m256 after, __m512d *sum, __m512d *size)
{
	__m512d b = _mm512_cvtps_pd(before), a = _mm512_cvtps_pd(after),
		magnitude = _mm512_abs_pd(b);
	__m512d distance = _mm512_abs_pd(_mm512_sub_pd(a, b));
	__m512d limit = _mm512_add_pd(_mm512_set1_pd(OUTFEED_ATOL),
				      _mm512_mul_pd(_mm512_set1_pd(OUTFEED_RTOL), magnitude));
	__mmask8 close = _mm512_cmp_pd_mask(distance, limit, _CMP_LE_OQ);

	close = _mm512_mask_cmp_pd_mask(close, distance, _mm512_set1_pd((double)INFINITY),
					_CMP_LT_OQ);
	*sum = _mm512_add_pd(*sum, distance);
	*size = _mm512_add_pd(*size, magnitude);
	return (__mmask8) ~(close | _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ));
}

AVX512 static void change(struct outfeed_change *out, float *before, const float *after,
			  size_t count)
{
	struct outfeed_lanes l;
	__m512d sum0 = _mm512_setzero_pd(), sum1 = _mm512_setzero_pd();
	__m512d size0 = _mm512_setzero_pd(), size1 = _mm512_setzero_pd();

	out->n_changed = 0;
	for (size_t at = 0; at < outfeed_rows(count); at += LANES) {
		__m256 a0 = _mm256_loadu_ps(after + at), a1 = _mm256_loadu_ps(after + at + 8);
		__mmask8 low = change_of(_mm256_loadu_ps(before + at), a0, &sum0, &size0);
		__mmask8 high = change_of(_mm256_loadu_ps(before + at + 8), a1, &sum1, &size1);

		_mm_prefetch((const char *)(before + at + OUTFEED_AHEAD), _MM_HINT_T1);
		_mm_prefetch((const char *)(after + at + OUTFEED_AHEAD), _MM_HINT_T1);
		_mm256_storeu_ps(before + at, a0);
		_mm256_storeu_ps(before + at + 8, a1);
		out->n_changed += count_of((__mmask16)(low | high << 8));
	}
	_mm512_storeu_pd(l.sum, sum0);
	_mm512_storeu_pd(l.sum + 8, sum1);
	_mm512_storeu_pd(l.l1, size0);
	_mm512_storeu_pd(l.l1 + 8, size1);
	out->n_changed += outfeed_tail_change(before, after, count, &l);
	outfeed_fold_change(&l, out);
}

static bool runs(void)
{
	return cpu_has_avx512();
}

const struct outfeed_kernel outfeed__kernel_avx512 = {
	.name = "avx512",
	.runs = runs,
	.sums = sums,
	.centred = centred,
	.signs = signs,
	.nonfinite = nonfinite,
	.compact = compact,
	.abs_max = abs_max,
	.widen = widen,
	.keys = keys,
	.active = active_rows,
	.change = change,
};

#endif /* __x86_64__ */
