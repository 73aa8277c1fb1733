/*
 * Three variants of one loop. The bodies differ in how many lanes go at once, not in what a lane
 * does.
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

void outfeed_lanes_init(struct outfeed_lanes *lanes)
{
	for (int i = 0; i < OUTFEED_LANES; i++) {
		lanes->sum[i] = lanes->squares[i] = lanes->l1[i] = 0;
		lanes->min[i] = INFINITY;
		lanes->max[i] = -INFINITY;
		lanes->least[i] = UINT32_MAX;
		lanes->zeros[i] = lanes->negatives[i] = 0;
	}
}

static inline void lane_add(struct outfeed_lanes *lanes, int i, float x, double shift)
{
	double d = (double)x - shift;
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	bits &= UINT32_C(0x7fffffff);
	lanes->sum[i] += d;
	lanes->squares[i] += d * d;
	lanes->l1[i] += fabs((double)x);
	lanes->min[i] = x < lanes->min[i] ? x : lanes->min[i];
	lanes->max[i] = x > lanes->max[i] ? x : lanes->max[i];
	/* Zero minus one is the greatest number of all, so zeros never win. */
	bits -= 1;
	lanes->least[i] = bits < lanes->least[i] ? bits : lanes->least[i];
	lanes->zeros[i] += x == 0;
	lanes->negatives[i] += x < 0;
}

void outfeed_lanes_tail(const float *values, size_t count, double shift,
			struct outfeed_lanes *lanes)
{
	for (size_t i = 0; i < count; i++)
		lane_add(lanes, (int)i, values[i], shift);
}

static void portable(const float *values, size_t rows, double shift, struct outfeed_lanes *lanes)
{
	struct outfeed_lanes l = *lanes; /* no alias of @values: may live in registers */

	for (size_t row = 0; row < rows; row++) {
		for (int i = 0; i < OUTFEED_LANES; i++)
			lane_add(&l, i, values[row * OUTFEED_LANES + (size_t)i], shift);
	}
	*lanes = l;
}

#if defined(__x86_64__)

/* Half of the lanes at a time: all accumulators stay in the 16 registers, and the second half finds
 * the block in the first-level cache. */
__attribute__((target("avx2"))) static void
avx2_half(const float *values, size_t rows, double shift, struct outfeed_lanes *lanes, int at)
{
	const __m256d k = _mm256_set1_pd(shift);
	const __m256i magnitude = _mm256_set1_epi32(0x7fffffff), one = _mm256_set1_epi32(1);
	__m256d sum0 = _mm256_loadu_pd(lanes->sum + at),
		sum1 = _mm256_loadu_pd(lanes->sum + at + 4);
	__m256d sq0 = _mm256_loadu_pd(lanes->squares + at);
	__m256d sq1 = _mm256_loadu_pd(lanes->squares + at + 4);
	__m256d l10 = _mm256_loadu_pd(lanes->l1 + at), l11 = _mm256_loadu_pd(lanes->l1 + at + 4);
	__m256 min = _mm256_loadu_ps(lanes->min + at), max = _mm256_loadu_ps(lanes->max + at);
	__m256i least = _mm256_loadu_si256((const __m256i *)(lanes->least + at));
	__m256i zeros = _mm256_loadu_si256((const __m256i *)(lanes->zeros + at));
	__m256i negatives = _mm256_loadu_si256((const __m256i *)(lanes->negatives + at));

	for (size_t row = 0; row < rows; row++) {
		const float *p = values + row * OUTFEED_LANES + at;
		__m256 x = _mm256_loadu_ps(p);
		__m256i bits = _mm256_and_si256(_mm256_castps_si256(x), magnitude);
		__m256 a = _mm256_castsi256_ps(bits);
		__m256d d0 = _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(p)), k);
		__m256d d1 = _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(p + 4)), k);

		sum0 = _mm256_add_pd(sum0, d0);
		sum1 = _mm256_add_pd(sum1, d1);
		sq0 = _mm256_add_pd(sq0, _mm256_mul_pd(d0, d0));
		sq1 = _mm256_add_pd(sq1, _mm256_mul_pd(d1, d1));
		l10 = _mm256_add_pd(l10, _mm256_cvtps_pd(_mm256_castps256_ps128(a)));
		l11 = _mm256_add_pd(l11, _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
		min = _mm256_min_ps(x, min);
		max = _mm256_max_ps(x, max);
		least = _mm256_min_epu32(_mm256_sub_epi32(bits, one), least);
		zeros = _mm256_sub_epi32(zeros, _mm256_cmpeq_epi32(bits, _mm256_setzero_si256()));
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
	_mm256_storeu_si256((__m256i *)(lanes->zeros + at), zeros);
	_mm256_storeu_si256((__m256i *)(lanes->negatives + at), negatives);
}

static void avx2(const float *values, size_t rows, double shift, struct outfeed_lanes *lanes)
{
	avx2_half(values, rows, shift, lanes, 0);
	avx2_half(values, rows, shift, lanes, OUTFEED_LANES / 2);
}

__attribute__((target("avx512f"))) static void avx512(const float *values, size_t rows,
						      double shift, struct outfeed_lanes *lanes)
{
	const __m512d k = _mm512_set1_pd(shift);
	const __m512i one = _mm512_set1_epi32(1), magnitude = _mm512_set1_epi32(0x7fffffff);
	__m512d sum0 = _mm512_loadu_pd(lanes->sum), sum1 = _mm512_loadu_pd(lanes->sum + 8);
	__m512d sq0 = _mm512_loadu_pd(lanes->squares), sq1 = _mm512_loadu_pd(lanes->squares + 8);
	__m512d l10 = _mm512_loadu_pd(lanes->l1), l11 = _mm512_loadu_pd(lanes->l1 + 8);
	__m512 min = _mm512_loadu_ps(lanes->min), max = _mm512_loadu_ps(lanes->max);
	__m512i least = _mm512_loadu_si512(lanes->least);
	__m512i zeros = _mm512_loadu_si512(lanes->zeros);
	__m512i negatives = _mm512_loadu_si512(lanes->negatives);

	for (size_t row = 0; row < rows; row++) {
		const float *p = values + row * OUTFEED_LANES;
		__m512 x = _mm512_loadu_ps(p);
		__m512i bits = _mm512_and_si512(_mm512_castps_si512(x), magnitude);
		__m512d x0 = _mm512_cvtps_pd(_mm256_loadu_ps(p));
		__m512d x1 = _mm512_cvtps_pd(_mm256_loadu_ps(p + 8));
		__m512d d0 = _mm512_sub_pd(x0, k), d1 = _mm512_sub_pd(x1, k);

		sum0 = _mm512_add_pd(sum0, d0);
		sum1 = _mm512_add_pd(sum1, d1);
		sq0 = _mm512_add_pd(sq0, _mm512_mul_pd(d0, d0));
		sq1 = _mm512_add_pd(sq1, _mm512_mul_pd(d1, d1));
		l10 = _mm512_add_pd(l10, _mm512_abs_pd(x0));
		l11 = _mm512_add_pd(l11, _mm512_abs_pd(x1));
		min = _mm512_min_ps(x, min);
		max = _mm512_max_ps(x, max);
		least = _mm512_min_epu32(_mm512_sub_epi32(bits, one), least);
		zeros = _mm512_mask_add_epi32(zeros, _mm512_testn_epi32_mask(bits, bits), zeros,
					      one);
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
	_mm512_storeu_si512(lanes->zeros, zeros);
	_mm512_storeu_si512(lanes->negatives, negatives);
}

static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f");
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

#endif

static bool has_always(void)
{
	return true;
}

struct variant {
	const char *name;
	bool (*runs)(void);
	outfeed_kernel kernel;
};

static const struct variant variants[] = {
#if defined(__x86_64__)
	{"avx512", has_avx512, avx512},
	{"avx2", has_avx2, avx2},
#endif
	{"portable", has_always, portable},
};

/* Index of the variant in use plus one; 0: not yet chosen. Choosing twice gives the same. */
static _Atomic int chosen;

outfeed_kernel outfeed_kernel_get(void)
{
	int index = atomic_load_explicit(&chosen, memory_order_relaxed) - 1;

	if (index < 0) {
		index = 0;
		while (!variants[index].runs())
			index++;
		atomic_store_explicit(&chosen, index + 1, memory_order_relaxed);
	}
	return variants[index].kernel;
}

const char *outfeed_kernel_name(int index)
{
	return index >= 0 && index < (int)ARRAY_LEN(variants) ? variants[index].name : NULL;
}

bool outfeed_kernel_use(int index)
{
	if (outfeed_kernel_name(index) == NULL || !variants[index].runs())
		return false;
	atomic_store_explicit(&chosen, index + 1, memory_order_relaxed);
	return true;
}
