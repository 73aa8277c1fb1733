/*
 * The loops for AVX2 and what came with it (FMA, BMI2, F16C).
 *
 * Sums go over a strip of values once for each half of the lanes: then all accumulators stay in the
 * 16 registers, and the second half finds the strip in the first-level cache. Arithmetic is their
 * limit, not memory: so a strip is taken to have no zeros, where signs are bits and the least
 * magnitude needs no care. One that has some is counted once more, and the strip after it as if it
 * had some too if there were several. Pure functions on the caller's data: any thread.
 */
#include "common/cpu.h"
#include "outfeed/outfeed_kernel_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LANES OUTFEED_LANES
#define AVX2  __attribute__((target("avx2,fma,bmi2,f16c,popcnt")))
/* What such a loop calls: compiled into each. */
#define INLINE OUTFEED_INLINE AVX2

/* Values of which one half of the lanes is summed, then the other: so few that what the first half
 * waits for from memory is soon made up by the second. */
#define STRIP ((size_t)8 * LANES)

/* So many zeros in a strip make some in the next one likely. */
#define SOME 3

/* What is counted has no order: 8 lanes for all. */
struct counted {
	__m256i least; /* magnitude minus 1: of zeros that is the greatest number of all */
	__m256i zeros, negatives;
};

INLINE void count_any(struct counted *c, __m256 x)
{
	const __m256i ones = _mm256_set1_epi32(-1);
	__m256i size =
		_mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(OUTFEED_MAGNITUDE));
	__m256i bits = _mm256_add_epi32(size, ones);
	__m256 negative = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ);

	c->least = _mm256_min_epu32(bits, c->least);
	c->zeros = _mm256_sub_epi32(c->zeros, _mm256_cmpeq_epi32(bits, ones));
	c->negatives = _mm256_sub_epi32(c->negatives, _mm256_castps_si256(negative));
}

/* The same where there are no zeros; but least is the magnitude itself, and 0 if there are. */
INLINE void count_plain(struct counted *c, __m256 x)
{
	__m256i bits = _mm256_castps_si256(x);
	__m256i size = _mm256_and_si256(bits, _mm256_set1_epi32(OUTFEED_MAGNITUDE));

	c->least = _mm256_min_epu32(size, c->least);
	c->negatives = _mm256_sub_epi32(c->negatives, _mm256_srai_epi32(bits, 31));
}

/* Memory to ask for: so many bytes further for each row of the first half. */
struct ahead {
	const char *next;
	size_t step;
};

/* @count values, whole rows, into half of the lanes. */
INLINE void half_sums(const float *values, size_t count, struct outfeed_lanes *l, int at,
		      struct counted *counted, bool plain, const struct ahead *ahead)
{
	const char *next = ahead->next;
	const __m256d sign = _mm256_set1_pd(-0.0);
	__m256d sum0 = _mm256_load_pd(l->sum + at), sum1 = _mm256_load_pd(l->sum + at + 4);
	__m256d sq0 = _mm256_load_pd(l->squares + at), sq1 = _mm256_load_pd(l->squares + at + 4);
	__m256d l10 = _mm256_load_pd(l->l1 + at), l11 = _mm256_load_pd(l->l1 + at + 4);
	__m256 min = _mm256_load_ps(l->min + at), max = _mm256_load_ps(l->max + at);
	struct counted c = *counted;
	const float *end = values + count;

	for (const float *p = values + at; p < end; p += LANES) {
		__m256 x = _mm256_loadu_ps(p);
		__m256d d0 = _mm256_cvtps_pd(_mm_loadu_ps(p));
		__m256d d1 = _mm256_cvtps_pd(_mm_loadu_ps(p + 4));

		if (at == 0) {
			_mm_prefetch(next, _MM_HINT_T1);
			next += ahead->step;
		}
		sum0 = _mm256_add_pd(sum0, d0);
		sum1 = _mm256_add_pd(sum1, d1);
		sq0 = _mm256_fmadd_pd(d0, d0, sq0);
		sq1 = _mm256_fmadd_pd(d1, d1, sq1);
		l10 = _mm256_add_pd(l10, _mm256_andnot_pd(sign, d0));
		l11 = _mm256_add_pd(l11, _mm256_andnot_pd(sign, d1));
		min = _mm256_min_ps(x, min);
		max = _mm256_max_ps(x, max);
		if (plain)
			count_plain(&c, x);
		else
			count_any(&c, x);
	}
	_mm256_store_pd(l->sum + at, sum0);
	_mm256_store_pd(l->sum + at + 4, sum1);
	_mm256_store_pd(l->squares + at, sq0);
	_mm256_store_pd(l->squares + at + 4, sq1);
	_mm256_store_pd(l->l1 + at, l10);
	_mm256_store_pd(l->l1 + at + 4, l11);
	_mm256_store_ps(l->min + at, min);
	_mm256_store_ps(l->max + at, max);
	*counted = c;
}

INLINE __m128i half_of(__m256i x, int which)
{
	return which == 0 ? _mm256_castsi256_si128(x) : _mm256_extracti128_si256(x, 1);
}

INLINE uint32_t total_of(__m256i x)
{
	__m128i four = _mm_add_epi32(half_of(x, 0), half_of(x, 1));

	four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
	four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(four);
}

INLINE bool are_equal(__m256i a, __m256i b)
{
	return _mm256_movemask_epi8(_mm256_cmpeq_epi32(a, b)) == -1;
}

/* A strip; @zeros: are there some likely, and then, were there any? */
INLINE void strip_sums(const float *values, size_t count, struct outfeed_lanes *l,
		       struct counted *counted, bool *zeros, const struct ahead *ahead)
{
	struct counted c = {.least = _mm256_set1_epi32(-1), .negatives = _mm256_setzero_si256()};
	__m256i zero = _mm256_setzero_si256(), before = counted->zeros;

	if (*zeros) {
		half_sums(values, count, l, 0, counted, false, ahead);
		half_sums(values, count, l, LANES / 2, counted, false, ahead);
		*zeros = !are_equal(counted->zeros, before);
		return;
	}
	half_sums(values, count, l, 0, &c, true, ahead);
	half_sums(values, count, l, LANES / 2, &c, true, ahead);
	*zeros = _mm256_movemask_epi8(_mm256_cmpeq_epi32(c.least, zero)) != 0;
	if (*zeros) {
		for (size_t i = 0; i < count; i += 8)
			count_any(counted, _mm256_loadu_ps(values + i));
		*zeros = total_of(_mm256_sub_epi32(counted->zeros, before)) >= SOME;
		return;
	}
	c.least = _mm256_add_epi32(c.least, _mm256_set1_epi32(-1));
	counted->least = _mm256_min_epu32(counted->least, c.least);
	counted->negatives = _mm256_add_epi32(counted->negatives, c.negatives);
}

AVX2 static void sums(const float *values, size_t count, struct outfeed_sums *out, const void *next,
		      size_t step)
{
	struct counted counted = {.least = _mm256_set1_epi32(-1),
				  .zeros = _mm256_setzero_si256(),
				  .negatives = _mm256_setzero_si256()};
	struct outfeed_lanes l;
	struct ahead ahead = {next, step};
	size_t rows = outfeed_rows(count);
	bool zeros = false;

	outfeed_lanes_start(&l);
	for (size_t at = 0; at < rows; at += STRIP) {
		const size_t size = rows - at < STRIP ? rows - at : STRIP;

		strip_sums(values + at, size, &l, &counted, &zeros, &ahead);
		ahead.next += size / LANES * step;
	}
	_mm256_store_si256((__m256i *)l.least, counted.least);
	_mm256_store_si256((__m256i *)l.zeros, counted.zeros);
	_mm256_store_si256((__m256i *)l.negatives, counted.negatives);
	outfeed_tail_sums(values, count, &l);
	outfeed_fold_sums(&l, out);
}

AVX2 static void centred(const float *values, size_t count, double shift, struct outfeed_sums *out)
{
	struct outfeed_lanes l;
	const __m256d k = _mm256_set1_pd(shift);

	for (int at = 0; at < LANES; at += 8) {
		__m256d sum0 = _mm256_setzero_pd(), sum1 = _mm256_setzero_pd();
		__m256d sq0 = _mm256_setzero_pd(), sq1 = _mm256_setzero_pd();
		const float *end = values + outfeed_rows(count);

		for (const float *p = values + at; p < end; p += LANES) {
			__m256d d0 = _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(p)), k);
			__m256d d1 = _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(p + 4)), k);

			sum0 = _mm256_add_pd(sum0, d0);
			sum1 = _mm256_add_pd(sum1, d1);
			sq0 = _mm256_add_pd(sq0, _mm256_mul_pd(d0, d0));
			sq1 = _mm256_add_pd(sq1, _mm256_mul_pd(d1, d1));
		}
		_mm256_storeu_pd(l.sum + at, sum0);
		_mm256_storeu_pd(l.sum + at + 4, sum1);
		_mm256_storeu_pd(l.squares + at, sq0);
		_mm256_storeu_pd(l.squares + at + 4, sq1);
	}
	outfeed_tail_centred(values, count, shift, &l);
	outfeed_fold_centred(&l, out);
}

INLINE __m256i magnitude_of(__m256 x)
{
	return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(OUTFEED_MAGNITUDE));
}

INLINE uint32_t greatest_of(__m256i x)
{
	__m128i four = _mm_max_epu32(half_of(x, 0), half_of(x, 1));

	four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
	four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(four);
}

/* Minus one where true, as a number to subtract. */
#define TRUE_OF(a, b, how) _mm256_castps_si256(_mm256_cmp_ps((a), (b), (how)))

AVX2 static void signs(const float *values, size_t count, struct outfeed_counts *out)
{
	const __m256 zero = _mm256_setzero_ps();
	__m256i most = _mm256_setzero_si256(), negative = most, positive = most;
	size_t at = 0;

	for (; at + 8 <= count; at += 8) {
		__m256 x = _mm256_loadu_ps(values + at);

		_mm_prefetch((const char *)(values + at + OUTFEED_AHEAD), _MM_HINT_T1);
		negative = _mm256_sub_epi32(negative, TRUE_OF(x, zero, _CMP_LT_OQ));
		positive = _mm256_sub_epi32(positive, TRUE_OF(x, zero, _CMP_GT_OQ));
		most = _mm256_max_epu32(magnitude_of(x), most);
	}
	out->negatives = total_of(negative);
	out->positives = total_of(positive);
	out->most = greatest_of(most);
	outfeed_tail_signs(values, at, count, out);
}

AVX2 static void nonfinite(const float *values, size_t count, struct outfeed_counts *out)
{
	const __m256 infinity = _mm256_set1_ps(INFINITY), minus = _mm256_set1_ps(-INFINITY);
	__m256i nan = _mm256_setzero_si256(), pos_inf = nan, neg_inf = nan;
	size_t at = 0;

	for (; at + 8 <= count; at += 8) {
		__m256 x = _mm256_loadu_ps(values + at);

		nan = _mm256_sub_epi32(nan, TRUE_OF(x, x, _CMP_UNORD_Q));
		pos_inf = _mm256_sub_epi32(pos_inf, TRUE_OF(x, infinity, _CMP_EQ_OQ));
		neg_inf = _mm256_sub_epi32(neg_inf, TRUE_OF(x, minus, _CMP_EQ_OQ));
	}
	out->nan = total_of(nan);
	out->pos_inf = total_of(pos_inf);
	out->neg_inf = total_of(neg_inf);
	outfeed_tail_nonfinite(values, at, count, out);
}

AVX2 static size_t compact(float *out, const float *values, size_t count)
{
	const __m256i infinite = _mm256_set1_epi32(OUTFEED_INFINITE);
	size_t kept = 0, at = 0;

	/* Whole vectors are stored, since at most @at values came before. */
	for (; at + 8 <= count; at += 8) {
		__m256 x = _mm256_loadu_ps(values + at);
		unsigned keep = (unsigned)_mm256_movemask_ps(
			_mm256_castsi256_ps(_mm256_cmpgt_epi32(infinite, magnitude_of(x))));
		/*
		 * A byte for each value to keep, then the numbers of these bytes, drawn together.
		 */
		uint64_t bytes = _pdep_u64(keep, 0x0101010101010101) * 0xff;
		uint64_t order = _pext_u64(0x0706050403020100, bytes);
		__m256i from = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)order));

		_mm256_storeu_ps(out + kept, _mm256_permutevar8x32_ps(x, from));
		kept += (size_t)__builtin_popcount(keep);
	}
	return outfeed_tail_compact(out, values, at, count, kept);
}

AVX2 static uint32_t abs_max(const float *values, size_t count)
{
	__m256i most0 = _mm256_setzero_si256(), most1 = most0;
	size_t at = 0;

	for (; at + LANES <= count; at += LANES) {
		const float *p = values + at;

		_mm_prefetch((const char *)(p + OUTFEED_AHEAD), _MM_HINT_T1);
		most0 = _mm256_max_epu32(magnitude_of(_mm256_loadu_ps(p)), most0);
		most1 = _mm256_max_epu32(magnitude_of(_mm256_loadu_ps(p + 8)), most1);
	}
	return outfeed_tail_abs_max(values, at, count, greatest_of(_mm256_max_epu32(most0, most1)));
}

AVX2 static void widen(float *out, const uint16_t *halves, size_t count)
{
	size_t at = 0;

	for (; at + 8 <= count; at += 8) {
		__m128i half = _mm_loadu_si128((const __m128i *)(halves + at));

		_mm256_storeu_ps(out + at, _mm256_cvtph_ps(half));
	}
	outfeed_tail_widen(out, halves, at, count);
}

INLINE __m256i keys_of(__m256 x)
{
	const __m256i infinite = _mm256_set1_epi32(OUTFEED_INFINITE);
	__m256i size = magnitude_of(x), key = _mm256_srli_epi32(size, 23);
	__m256i sign = _mm256_srai_epi32(_mm256_castps_si256(x), 31);

	key = _mm256_sub_epi32(key, _mm256_cmpgt_epi32(size, _mm256_setzero_si256()));
	key = _mm256_sub_epi32(key, _mm256_cmpgt_epi32(size, infinite));
	return _mm256_add_epi32(key,
				_mm256_and_si256(sign, _mm256_set1_epi32(OUTFEED_KEY_NEGATIVE)));
}

AVX2 static void keys(uint16_t *out, const float *values, size_t count)
{
	size_t at = 0;

	for (; at < outfeed_rows(count); at += LANES) {
		const float *p = values + at;
		__m256i packed = _mm256_packus_epi32(keys_of(_mm256_loadu_ps(p)),
						     keys_of(_mm256_loadu_ps(p + 8)));

		_mm_prefetch((const char *)(p + OUTFEED_AHEAD), _MM_HINT_T1);
		/* Packing works within halves of the vector. */
		packed = _mm256_permute4x64_epi64(packed, 0xd8);
		_mm256_storeu_si256((__m256i *)(out + at), packed);
	}
	outfeed_tail_keys(out, values, at, count);
}

AVX2 static void active_rows(uint32_t *active, const float *values, size_t rows, size_t columns,
			     float low, float high)
{
	outfeed_active_rows(active, values, rows, columns, low, high);
}

/* Four lanes: sums are added to *@sum and *@size; how many have changed. */
INLINE uint32_t change_of(__m128 before, __m128 after, __m256d *sum, __m256d *size)
{
	const __m256d sign = _mm256_set1_pd(-0.0), infinity = _mm256_set1_pd((double)INFINITY);
	__m256d b = _mm256_cvtps_pd(before), a = _mm256_cvtps_pd(after);
	__m256d magnitude = _mm256_andnot_pd(sign, b);
	__m256d distance = _mm256_andnot_pd(sign, _mm256_sub_pd(a, b));
	__m256d limit = _mm256_add_pd(_mm256_set1_pd(OUTFEED_ATOL),
				      _mm256_mul_pd(_mm256_set1_pd(OUTFEED_RTOL), magnitude));
	__m256d close = _mm256_and_pd(_mm256_cmp_pd(distance, limit, _CMP_LE_OQ),
				      _mm256_cmp_pd(distance, infinity, _CMP_LT_OQ));

	*sum = _mm256_add_pd(*sum, distance);
	*size = _mm256_add_pd(*size, magnitude);
	close = _mm256_or_pd(close, _mm256_cmp_pd(a, b, _CMP_EQ_OQ));
	return 4 - (uint32_t)__builtin_popcount((unsigned)_mm256_movemask_pd(close));
}

AVX2 static void change(struct outfeed_change *out, float *before, const float *after, size_t count)
{
	struct outfeed_lanes l;
	__m256d sum[4], size[4];

	for (int i = 0; i < 4; i++)
		sum[i] = size[i] = _mm256_setzero_pd();
	out->n_changed = 0;
	for (size_t at = 0; at < outfeed_rows(count); at += LANES) {
		uint32_t changed = 0;

		_mm_prefetch((const char *)(before + at + OUTFEED_AHEAD), _MM_HINT_T1);
		_mm_prefetch((const char *)(after + at + OUTFEED_AHEAD), _MM_HINT_T1);
		for (int i = 0; i < 4; i++) {
			__m128 a = _mm_loadu_ps(after + at + 4 * i);

			changed +=
				change_of(_mm_loadu_ps(before + at + 4 * i), a, &sum[i], &size[i]);
			_mm_storeu_ps(before + at + 4 * i, a);
		}
		out->n_changed += changed;
	}
	for (int i = 0; i < 4; i++) {
		_mm256_storeu_pd(l.sum + 4 * i, sum[i]);
		_mm256_storeu_pd(l.l1 + 4 * i, size[i]);
	}
	out->n_changed += outfeed_tail_change(before, after, count, &l);
	outfeed_fold_change(&l, out);
}

static bool runs(void)
{
	return cpu_has_avx2() && __builtin_cpu_supports("bmi2") && cpu_has_f16c();
}

const struct outfeed_kernel outfeed__kernel_avx2 = {
	.name = "avx2",
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
