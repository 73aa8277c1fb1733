/*
 * Three variants of the loops. They differ in how many lanes go at once, not in what a lane does.
 *
 * Minimum and maximum are `x < m ? x : m` and `x > m ? x : m` everywhere, which is what the vector
 * instructions with operands (x, m) compute. No fused multiply-add: it would round once where the
 * portable variant rounds twice.
 */
#include "outfeed/outfeed_kernel.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "common/mem.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define MAGNITUDE 0x7fffffff
#define LANES     16

/* Always inlined, so that all of a variant is in one encoding: going from 512-bit vectors to old
 * SSE instructions and back costs more than the folding itself. */
#define INLINE static inline __attribute__((always_inline))

/* The hardware's own prefetcher stops at every page; this many floats ahead keep memory busy. */
#define AHEAD 1024

struct outfeed_lanes {
	/* Aligned, or whole-vector stores would straddle cache lines and stall the loads after. */
	_Alignas(64) double sum[LANES];
	double squares[LANES], l1[LANES];
	float min[LANES], max[LANES];
	uint32_t least[LANES], least_nonzero[LANES], zeros[LANES], negatives[LANES];
};

static const struct outfeed_lanes no_lanes; /* zeros; minima and maxima need more */

static void lanes_start(struct outfeed_lanes *lanes)
{
	*lanes = no_lanes;
	for (int i = 0; i < LANES; i++) {
		lanes->min[i] = INFINITY;
		lanes->max[i] = -INFINITY;
		lanes->least[i] = lanes->least_nonzero[i] = UINT32_MAX;
	}
}

/* ---- folding ------------------------------------------------------------------------------------
 */

INLINE double fold(double *lane)
{
	for (int width = LANES / 2; width > 0; width /= 2) {
		for (int i = 0; i < width; i++)
			lane[i] += lane[i + width];
	}
	return lane[0];
}

INLINE void fold_sums(struct outfeed_lanes *lanes, struct outfeed_sums *out)
{
	for (int width = LANES / 2; width > 0; width /= 2) {
		for (int i = 0; i < width; i++) {
			int j = i + width;

			if (lanes->min[j] < lanes->min[i])
				lanes->min[i] = lanes->min[j];
			if (lanes->max[j] > lanes->max[i])
				lanes->max[i] = lanes->max[j];
			if (lanes->least[j] < lanes->least[i])
				lanes->least[i] = lanes->least[j];
			lanes->negatives[i] += lanes->negatives[j];
		}
	}
	out->sum = fold(lanes->sum);
	out->squares = fold(lanes->squares);
	out->l1 = fold(lanes->l1);
	out->min = lanes->min[0];
	out->max = lanes->max[0];
	out->least = lanes->least[0];
	out->negatives = lanes->negatives[0];
}

INLINE void fold_centred(struct outfeed_lanes *lanes, struct outfeed_sums *out)
{
	out->sum = fold(lanes->sum);
	out->squares = fold(lanes->squares);
}

INLINE void fold_zeros(const struct outfeed_lanes *lanes, struct outfeed_sums *out)
{
	out->zeros = 0;
	out->least_nonzero = UINT32_MAX;
	for (int i = 0; i < LANES; i++) {
		out->zeros += lanes->zeros[i];
		if (lanes->least_nonzero[i] < out->least_nonzero)
			out->least_nonzero = lanes->least_nonzero[i];
	}
}

/* ---- what a lane does ---------------------------------------------------------------------------
 */

INLINE uint32_t magnitude_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits & MAGNITUDE;
}

INLINE void lane_sums(struct outfeed_lanes *lanes, size_t i, float x)
{
	double d = (double)x;
	uint32_t bits = magnitude_of(x);

	lanes->sum[i] += d;
	lanes->squares[i] += d * d;
	lanes->l1[i] += fabs(d);
	lanes->min[i] = x < lanes->min[i] ? x : lanes->min[i];
	lanes->max[i] = x > lanes->max[i] ? x : lanes->max[i];
	lanes->least[i] = bits < lanes->least[i] ? bits : lanes->least[i];
	lanes->negatives[i] += x < 0;
}

INLINE void lane_centred(struct outfeed_lanes *lanes, size_t i, float x, double shift)
{
	double d = (double)x - shift;

	lanes->sum[i] += d;
	lanes->squares[i] += d * d;
}

INLINE void lane_zeros(struct outfeed_lanes *lanes, size_t i, float x)
{
	/* Zero minus one is the greatest number of all, so zeros are never the least. */
	uint32_t bits = magnitude_of(x) - 1;

	lanes->least_nonzero[i] = bits < lanes->least_nonzero[i] ? bits : lanes->least_nonzero[i];
	lanes->zeros[i] += bits == UINT32_MAX;
}

/* ---- portable -----------------------------------------------------------------------------------
 */

INLINE size_t whole_rows(size_t count)
{
	return count - count % LANES;
}

INLINE void tail_sums(const float *values, size_t count, struct outfeed_lanes *lanes)
{
	for (size_t i = whole_rows(count); i < count; i++)
		lane_sums(lanes, i % LANES, values[i]);
}

INLINE void tail_centred(const float *values, size_t count, double shift,
			 struct outfeed_lanes *lanes)
{
	for (size_t i = whole_rows(count); i < count; i++)
		lane_centred(lanes, i % LANES, values[i], shift);
}

INLINE void tail_zeros(const float *values, size_t count, struct outfeed_lanes *lanes)
{
	for (size_t i = whole_rows(count); i < count; i++)
		lane_zeros(lanes, i % LANES, values[i]);
}

/* The local lanes have no alias, so that the compiler may keep them in registers. */
static void portable_sums(const float *values, size_t count, struct outfeed_sums *out)
{
	struct outfeed_lanes l;

	lanes_start(&l);
	for (size_t row = 0; row < whole_rows(count); row += LANES) {
		for (size_t i = 0; i < LANES; i++)
			lane_sums(&l, i, values[row + i]);
	}
	tail_sums(values, count, &l);
	fold_sums(&l, out);
}

static void portable_centred(const float *values, size_t count, double shift,
			     struct outfeed_sums *out)
{
	struct outfeed_lanes l;

	lanes_start(&l);
	for (size_t row = 0; row < whole_rows(count); row += LANES) {
		for (size_t i = 0; i < LANES; i++)
			lane_centred(&l, i, values[row + i], shift);
	}
	tail_centred(values, count, shift, &l);
	fold_centred(&l, out);
}

static void portable_zeros(const float *values, size_t count, struct outfeed_sums *out)
{
	struct outfeed_lanes l;

	lanes_start(&l);
	for (size_t row = 0; row < whole_rows(count); row += LANES) {
		for (size_t i = 0; i < LANES; i++)
			lane_zeros(&l, i, values[row + i]);
	}
	tail_zeros(values, count, &l);
	fold_zeros(&l, out);
}

static bool has_always(void)
{
	return true;
}

#if defined(__x86_64__)

/* ---- AVX2 ---------------------------------------------------------------------------------------
 */

#define AVX2 __attribute__((target("avx2")))

/* Half of the lanes at a time: all accumulators stay in the 16 registers, and the second half finds
 * the block in the first-level cache. */
AVX2 static void avx2_half_sums(const float *values, size_t count, struct outfeed_lanes *lanes,
				int at)
{
	const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(MAGNITUDE));
	__m256d sum0 = _mm256_setzero_pd(), sum1 = _mm256_setzero_pd();
	__m256d sq0 = _mm256_setzero_pd();
	__m256d sq1 = _mm256_setzero_pd();
	__m256d l10 = _mm256_setzero_pd(), l11 = _mm256_setzero_pd();
	__m256 min = _mm256_set1_ps(INFINITY), max = _mm256_set1_ps(-INFINITY);
	__m256i least = _mm256_set1_epi32(-1);
	__m256i negatives = _mm256_setzero_si256();
	const float *end = values + whole_rows(count);

	for (const float *p = values + at; p < end; p += LANES) {
		__m256 x = _mm256_loadu_ps(p), a = _mm256_and_ps(x, magnitude);
		__m256d d0 = _mm256_cvtps_pd(_mm_loadu_ps(p));
		__m256d d1 = _mm256_cvtps_pd(_mm_loadu_ps(p + 4));

		_mm_prefetch((const char *)(p + AHEAD), _MM_HINT_T0);
		sum0 = _mm256_add_pd(sum0, d0);
		sum1 = _mm256_add_pd(sum1, d1);
		sq0 = _mm256_add_pd(sq0, _mm256_mul_pd(d0, d0));
		sq1 = _mm256_add_pd(sq1, _mm256_mul_pd(d1, d1));
		l10 = _mm256_add_pd(l10, _mm256_cvtps_pd(_mm256_castps256_ps128(a)));
		l11 = _mm256_add_pd(l11, _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
		min = _mm256_min_ps(x, min);
		max = _mm256_max_ps(x, max);
		least = _mm256_min_epu32(_mm256_castps_si256(a), least);
		negatives = _mm256_sub_epi32(
			negatives,
			_mm256_castps_si256(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ)));
	}
	_mm256_storeu_pd(lanes->sum + at, sum0);
	_mm256_storeu_pd(lanes->sum + at + 4, sum1);
	_mm256_storeu_pd(lanes->squares + at, sq0);
	_mm256_storeu_pd(lanes->squares + at + 4, sq1);
	_mm256_storeu_pd(lanes->l1 + at, l10);
	_mm256_storeu_pd(lanes->l1 + at + 4, l11);
	_mm256_storeu_ps(lanes->min + at, min);
	_mm256_storeu_ps(lanes->max + at, max);
	_mm256_storeu_si256((__m256i *)(lanes->least + at), least);
	_mm256_storeu_si256((__m256i *)(lanes->negatives + at), negatives);
}

AVX2 static void avx2_sums(const float *values, size_t count, struct outfeed_sums *out)
{
	struct outfeed_lanes local, *lanes = &local;
	avx2_half_sums(values, count, lanes, 0);
	avx2_half_sums(values, count, lanes, LANES / 2);
	tail_sums(values, count, lanes);
	fold_sums(lanes, out);
}

AVX2 static void avx2_centred(const float *values, size_t count, double shift,
			      struct outfeed_sums *out)
{
	struct outfeed_lanes local, *lanes = &local;
	const __m256d k = _mm256_set1_pd(shift);

	for (int at = 0; at < LANES; at += 4) {
		__m256d sum = _mm256_setzero_pd();
		__m256d squares = _mm256_setzero_pd();
		const float *end = values + whole_rows(count);

		for (const float *p = values + at; p < end; p += LANES) {
			__m256d d = _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(p)), k);

			sum = _mm256_add_pd(sum, d);
			squares = _mm256_add_pd(squares, _mm256_mul_pd(d, d));
		}
		_mm256_storeu_pd(lanes->sum + at, sum);
		_mm256_storeu_pd(lanes->squares + at, squares);
	}
	tail_centred(values, count, shift, lanes);
	fold_centred(lanes, out);
}

AVX2 static void avx2_zeros(const float *values, size_t count, struct outfeed_sums *out)
{
	struct outfeed_lanes local, *lanes = &local;
	const __m256i magnitude = _mm256_set1_epi32(MAGNITUDE), ones = _mm256_set1_epi32(-1);

	for (int at = 0; at < LANES; at += 8) {
		__m256i least = _mm256_set1_epi32(-1);
		__m256i zeros = _mm256_setzero_si256();
		const float *end = values + whole_rows(count);

		for (const float *p = values + at; p < end; p += LANES) {
			__m256i bits = _mm256_add_epi32(
				_mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(p)),
						 magnitude),
				ones);

			least = _mm256_min_epu32(bits, least);
			zeros = _mm256_sub_epi32(zeros, _mm256_cmpeq_epi32(bits, ones));
		}
		_mm256_storeu_si256((__m256i *)(lanes->least_nonzero + at), least);
		_mm256_storeu_si256((__m256i *)(lanes->zeros + at), zeros);
	}
	tail_zeros(values, count, lanes);
	fold_zeros(lanes, out);
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

/* ---- AVX-512 ------------------------------------------------------------------------------------
 */

#define AVX512 __attribute__((target("avx512f")))

AVX512 static void avx512_sums(const float *values, size_t count, struct outfeed_sums *out)
{
	struct outfeed_lanes local, *lanes = &local;
	const __m512i one = _mm512_set1_epi32(1), magnitude = _mm512_set1_epi32(MAGNITUDE);
	__m512d sum0 = _mm512_setzero_pd(), sum1 = _mm512_setzero_pd();
	__m512d sq0 = _mm512_setzero_pd(), sq1 = _mm512_setzero_pd();
	__m512d l10 = _mm512_setzero_pd(), l11 = _mm512_setzero_pd();
	__m512 min = _mm512_set1_ps(INFINITY), max = _mm512_set1_ps(-INFINITY);
	__m512i least = _mm512_set1_epi32(-1);
	__m512i negatives = _mm512_setzero_si512();
	const float *end = values + whole_rows(count);

	for (const float *p = values; p < end; p += LANES) {
		__m512 x = _mm512_loadu_ps(p);
		__m512i bits = _mm512_and_si512(_mm512_castps_si512(x), magnitude);
		__m512d d0 = _mm512_cvtps_pd(_mm256_loadu_ps(p));
		__m512d d1 = _mm512_cvtps_pd(_mm256_loadu_ps(p + 8));

		_mm_prefetch((const char *)(p + AHEAD), _MM_HINT_T0);
		sum0 = _mm512_add_pd(sum0, d0);
		sum1 = _mm512_add_pd(sum1, d1);
		sq0 = _mm512_add_pd(sq0, _mm512_mul_pd(d0, d0));
		sq1 = _mm512_add_pd(sq1, _mm512_mul_pd(d1, d1));
		l10 = _mm512_add_pd(l10, _mm512_abs_pd(d0));
		l11 = _mm512_add_pd(l11, _mm512_abs_pd(d1));
		min = _mm512_min_ps(x, min);
		max = _mm512_max_ps(x, max);
		least = _mm512_min_epu32(bits, least);
		negatives = _mm512_mask_add_epi32(
			negatives, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ),
			negatives, one);
	}
	_mm512_storeu_pd(lanes->sum, sum0);
	_mm512_storeu_pd(lanes->sum + 8, sum1);
	_mm512_storeu_pd(lanes->squares, sq0);
	_mm512_storeu_pd(lanes->squares + 8, sq1);
	_mm512_storeu_pd(lanes->l1, l10);
	_mm512_storeu_pd(lanes->l1 + 8, l11);
	_mm512_storeu_ps(lanes->min, min);
	_mm512_storeu_ps(lanes->max, max);
	_mm512_storeu_si512(lanes->least, least);
	_mm512_storeu_si512(lanes->negatives, negatives);
	tail_sums(values, count, lanes);
	fold_sums(lanes, out);
}

AVX512 static void avx512_centred(const float *values, size_t count, double shift,
				  struct outfeed_sums *out)
{
	struct outfeed_lanes local, *lanes = &local;
	const __m512d k = _mm512_set1_pd(shift);
	__m512d sum0 = _mm512_setzero_pd(), sum1 = _mm512_setzero_pd();
	__m512d sq0 = _mm512_setzero_pd(), sq1 = _mm512_setzero_pd();
	const float *end = values + whole_rows(count);

	for (const float *p = values; p < end; p += LANES) {
		__m512d d0 = _mm512_sub_pd(_mm512_cvtps_pd(_mm256_loadu_ps(p)), k);
		__m512d d1 = _mm512_sub_pd(_mm512_cvtps_pd(_mm256_loadu_ps(p + 8)), k);

		sum0 = _mm512_add_pd(sum0, d0);
		sum1 = _mm512_add_pd(sum1, d1);
		sq0 = _mm512_add_pd(sq0, _mm512_mul_pd(d0, d0));
		sq1 = _mm512_add_pd(sq1, _mm512_mul_pd(d1, d1));
	}
	_mm512_storeu_pd(lanes->sum, sum0);
	_mm512_storeu_pd(lanes->sum + 8, sum1);
	_mm512_storeu_pd(lanes->squares, sq0);
	_mm512_storeu_pd(lanes->squares + 8, sq1);
	tail_centred(values, count, shift, lanes);
	fold_centred(lanes, out);
}

AVX512 static void avx512_zeros(const float *values, size_t count, struct outfeed_sums *out)
{
	struct outfeed_lanes local, *lanes = &local;
	const __m512i ones = _mm512_set1_epi32(-1), magnitude = _mm512_set1_epi32(MAGNITUDE);
	__m512i least = _mm512_set1_epi32(-1);
	__m512i zeros = _mm512_setzero_si512();
	const float *end = values + whole_rows(count);

	for (const float *p = values; p < end; p += LANES) {
		__m512i bits =
			_mm512_add_epi32(_mm512_and_si512(_mm512_loadu_si512(p), magnitude), ones);

		least = _mm512_min_epu32(bits, least);
		zeros = _mm512_mask_sub_epi32(zeros, _mm512_cmpeq_epi32_mask(bits, ones), zeros,
					      ones);
	}
	_mm512_storeu_si512(lanes->least_nonzero, least);
	_mm512_storeu_si512(lanes->zeros, zeros);
	tail_zeros(values, count, lanes);
	fold_zeros(lanes, out);
}

static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f");
}

#endif

/* ---- choice -------------------------------------------------------------------------------------
 */

static const struct outfeed_kernel kernels[] = {
#if defined(__x86_64__)
	{"avx512", has_avx512, avx512_sums, avx512_centred, avx512_zeros},
	{"avx2", has_avx2, avx2_sums, avx2_centred, avx2_zeros},
#endif
	{"portable", has_always, portable_sums, portable_centred, portable_zeros},
};

/* Index of the variant in use plus one; 0: not yet chosen. Choosing twice gives the same. */
static _Atomic int chosen;

const struct outfeed_kernel *outfeed_kernel_get(void)
{
	int index = atomic_load_explicit(&chosen, memory_order_relaxed) - 1;

	if (index < 0) {
		index = 0;
		while (!kernels[index].runs())
			index++;
		atomic_store_explicit(&chosen, index + 1, memory_order_relaxed);
	}
	return &kernels[index];
}

const struct outfeed_kernel *outfeed_kernel_at(int index)
{
	return index >= 0 && index < (int)ARRAY_LEN(kernels) ? &kernels[index] : NULL;
}

bool outfeed_kernel_use(int index)
{
	if (outfeed_kernel_at(index) == NULL || !kernels[index].runs())
		return false;
	atomic_store_explicit(&chosen, index + 1, memory_order_relaxed);
	return true;
}
