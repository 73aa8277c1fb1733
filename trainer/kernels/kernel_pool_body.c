/*
 * The inner loops of maximum pooling, for AVX-512, AVX2 and in plain C. Comparisons, selections and
 * additions are exact or rounded once in all of them, so the bytes are the same.
 */
#include "trainer/kernels/kernel_pool_internal.h"

#include <string.h>

#include "common/cpu.h"
#include "common/mem.h"
#include "trainer/kernels/kernel_clones.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define POOL_X86
#include <immintrin.h>
#endif

/* ---- plain C --------------------------------------------------------------------------------- */

static bool plain_runs(void)
{
	return true;
}

KERNEL_INLINE void plain_max_one(const struct pool_run *r, int64_t window, int64_t c, int cells)
{
	const float *x = r->x + window * r->step + c;
	float maximum = x[0];
	uint8_t at = 0;

	for (int k = 1; k < cells; k++) {
		float value = x[r->offsets[k]];

		/* A NaN becomes the maximum, and stays it. */
		if (!(value <= maximum) && maximum == maximum) {
			maximum = value;
			at = (uint8_t)k;
		}
	}
	r->y[window * r->channels + c] = maximum;
	if (r->argmax)
		r->argmax[window * r->channels + c] = at;
}

KERNEL_INLINE void plain_max_of(const struct pool_run *run, int cells)
{
	for (int64_t i = 0; i < run->count; i++)
		for (int64_t c = 0; c < run->channels; c++)
			plain_max_one(run, i, c, cells);
}

static void plain_max(const struct pool_run *run)
{
	if (run->cells == 4)
		plain_max_of(run, 4);
	else
		plain_max_of(run, 9);
}

KERNEL_INLINE void plain_gather_one(const struct pool_share *shares, int count, float *dx,
				    int64_t c, bool add)
{
	float sum = add ? dx[c] : 0.0f;

	for (int i = 0; i < count; i++) {
		float dy = shares[i].argmax[c] == shares[i].cell ? shares[i].dy[c] : 0.0f;

		sum = add || i ? sum + dy : dy;
	}
	dx[c] = sum;
}

static void plain_gather(const struct pool_share *shares, int count, float *dx, int64_t channels,
			 bool add)
{
	for (int64_t c = 0; c < channels; c++)
		plain_gather_one(shares, count, dx, c, add);
}

static void plain_spread(const float *dy, const uint8_t *argmax, float *dx, int64_t windows,
			 int64_t width, int64_t channels, uint32_t cell)
{
	for (int64_t i = 0; i < windows; i++, dy += channels, argmax += channels)
		for (int64_t k = 0; k < width; k++, dx += channels)
			for (int64_t c = 0; c < channels; c++)
				dx[c] = argmax[c] == cell + (uint32_t)k ? dy[c] : 0.0f;
}

#ifdef POOL_X86

/* ---- AVX-512 --------------------------------------------------------------------------------- */

#define POOL_512 __attribute__((target("avx512f,avx512bw,avx512vl")))

static bool avx512_runs(void)
{
	return cpu_has_avx512();
}

/* Mask of the lanes from @c on, at most 16, that are below @channels. */
POOL_512 KERNEL_INLINE __mmask16 avx512_lanes(int64_t c, int64_t channels)
{
	int64_t left = channels - c;

	return (__mmask16)(left < 16 ? (1u << left) - 1 : 0xffff);
}

POOL_512 KERNEL_INLINE void avx512_max_of(const struct pool_run *r, int cells)
{
	for (int64_t i = 0; i < r->count; i++) {
		const float *x = r->x + i * r->step;
		float *y = r->y + i * r->channels;
		uint8_t *argmax = r->argmax ? r->argmax + i * r->channels : NULL;

		for (int64_t c = 0; c < r->channels; c += 16) {
			__mmask16 lanes = avx512_lanes(c, r->channels);
			__m512 maximum = _mm512_maskz_loadu_ps(lanes, x + c);
			__m512i at = _mm512_setzero_si512();

			for (int k = 1; k < cells; k++) {
				__m512 value = _mm512_maskz_loadu_ps(lanes, x + r->offsets[k] + c);
				__mmask16 number = _mm512_cmp_ps_mask(maximum, maximum, _CMP_ORD_Q);
				__mmask16 replaces = _mm512_mask_cmp_ps_mask(number, value, maximum,
									     _CMP_NLE_UQ);

				maximum = _mm512_mask_mov_ps(maximum, replaces, value);
				at = _mm512_mask_mov_epi32(at, replaces, _mm512_set1_epi32(k));
			}
			_mm512_mask_storeu_ps(y + c, lanes, maximum);
			if (argmax)
				_mm512_mask_cvtepi32_storeu_epi8(argmax + c, lanes, at);
		}
	}
}

POOL_512 static void avx512_max(const struct pool_run *run)
{
	if (run->cells == 4)
		avx512_max_of(run, 4);
	else
		avx512_max_of(run, 9);
}

POOL_512 KERNEL_INLINE __m512 avx512_share(const float *dy, const uint8_t *argmax, uint32_t cell,
					   __mmask16 lanes)
{
	__m128i at = _mm_maskz_loadu_epi8(lanes, argmax);
	__mmask16 selected = _mm_mask_cmpeq_epi8_mask(lanes, at, _mm_set1_epi8((char)cell));

	return _mm512_maskz_loadu_ps(selected, dy);
}

POOL_512 KERNEL_INLINE void avx512_gather_of(const struct pool_share *shares, int count, float *dx,
					     int64_t channels, bool add)
{
	for (int64_t c = 0; c < channels; c += 16) {
		__mmask16 lanes = avx512_lanes(c, channels);
		__m512 sum = _mm512_setzero_ps();

		if (add)
			sum = _mm512_maskz_loadu_ps(lanes, dx + c);
		for (int i = 0; i < count; i++) {
			__m512 dy = avx512_share(shares[i].dy + c, shares[i].argmax + c,
						 shares[i].cell, lanes);

			sum = add || i ? _mm512_add_ps(sum, dy) : dy;
		}
		_mm512_mask_storeu_ps(dx + c, lanes, sum);
	}
}

POOL_512 static void avx512_gather(const struct pool_share *shares, int count, float *dx,
				   int64_t channels, bool add)
{
	if (count == 1 && !add)
		avx512_gather_of(shares, 1, dx, channels, false);
	else if (count == 2 && !add)
		avx512_gather_of(shares, 2, dx, channels, false);
	else if (count == 4 && !add)
		avx512_gather_of(shares, 4, dx, channels, false);
	else
		avx512_gather_of(shares, count, dx, channels, add);
}

POOL_512 static void avx512_spread(const float *dy, const uint8_t *argmax, float *dx,
				   int64_t windows, int64_t width, int64_t channels, uint32_t cell)
{
	for (int64_t i = 0; i < windows; i++, dy += channels, argmax += channels) {
		for (int64_t c = 0; c < channels; c += 16) {
			__mmask16 lanes = avx512_lanes(c, channels);

			for (int64_t k = 0; k < width; k++)
				_mm512_mask_storeu_ps(dx + k * channels + c, lanes,
						      avx512_share(dy + c, argmax + c,
								   cell + (uint32_t)k, lanes));
		}
		dx += width * channels;
	}
}

/* ---- AVX2 ------------------------------------------------------------------------------------ */

#define POOL_256 __attribute__((target("avx2")))

static bool avx2_runs(void)
{
	return cpu_has_avx2();
}

/* Store the lowest bytes of eight integers. */
POOL_256 KERNEL_INLINE void avx2_store_bytes(uint8_t *out, __m256i values)
{
	const __m256i lowest =
		_mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4,
				 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
	__m256i bytes = _mm256_shuffle_epi8(values, lowest);
	int32_t low = _mm256_extract_epi32(bytes, 0), high = _mm256_extract_epi32(bytes, 4);

	memcpy(out, &low, sizeof(low));
	memcpy(out + 4, &high, sizeof(high));
}

POOL_256 KERNEL_INLINE void avx2_max_of(const struct pool_run *r, int cells)
{
	for (int64_t i = 0; i < r->count; i++) {
		const float *x = r->x + i * r->step;
		int64_t c = 0;

		for (; c + 8 <= r->channels; c += 8) {
			__m256 maximum = _mm256_loadu_ps(x + c);
			__m256i at = _mm256_setzero_si256();

			for (int k = 1; k < cells; k++) {
				__m256 value = _mm256_loadu_ps(x + r->offsets[k] + c);
				__m256 replaces =
					_mm256_and_ps(_mm256_cmp_ps(value, maximum, _CMP_NLE_UQ),
						      _mm256_cmp_ps(maximum, maximum, _CMP_ORD_Q));

				maximum = _mm256_blendv_ps(maximum, value, replaces);
				at = _mm256_blendv_epi8(at, _mm256_set1_epi32(k),
							_mm256_castps_si256(replaces));
			}
			_mm256_storeu_ps(r->y + i * r->channels + c, maximum);
			if (r->argmax)
				avx2_store_bytes(r->argmax + i * r->channels + c, at);
		}
		for (; c < r->channels; c++)
			plain_max_one(r, i, c, cells);
	}
}

POOL_256 static void avx2_max(const struct pool_run *run)
{
	if (run->cells == 4)
		avx2_max_of(run, 4);
	else
		avx2_max_of(run, 9);
}

POOL_256 KERNEL_INLINE __m256 avx2_share(const float *dy, const uint8_t *argmax, uint32_t cell)
{
	__m256i at = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)argmax));
	__m256i selected = _mm256_cmpeq_epi32(at, _mm256_set1_epi32((int32_t)cell));

	return _mm256_and_ps(_mm256_loadu_ps(dy), _mm256_castsi256_ps(selected));
}

POOL_256 static void avx2_gather(const struct pool_share *shares, int count, float *dx,
				 int64_t channels, bool add)
{
	int64_t c = 0;

	for (; c + 8 <= channels; c += 8) {
		__m256 sum = add ? _mm256_loadu_ps(dx + c) : _mm256_setzero_ps();

		for (int i = 0; i < count; i++) {
			__m256 dy =
				avx2_share(shares[i].dy + c, shares[i].argmax + c, shares[i].cell);

			sum = add || i ? _mm256_add_ps(sum, dy) : dy;
		}
		_mm256_storeu_ps(dx + c, sum);
	}
	for (; c < channels; c++)
		plain_gather_one(shares, count, dx, c, add);
}

POOL_256 static void avx2_spread(const float *dy, const uint8_t *argmax, float *dx, int64_t windows,
				 int64_t width, int64_t channels, uint32_t cell)
{
	for (int64_t i = 0; i < windows; i++, dy += channels, argmax += channels) {
		for (int64_t k = 0; k < width; k++, dx += channels) {
			uint32_t at = cell + (uint32_t)k;
			int64_t c = 0;

			for (; c + 8 <= channels; c += 8)
				_mm256_storeu_ps(dx + c, avx2_share(dy + c, argmax + c, at));
			for (; c < channels; c++)
				dx[c] = argmax[c] == at ? dy[c] : 0.0f;
		}
	}
}

#endif /* POOL_X86 */

/* ---- selection ------------------------------------------------------------------------------- */

static const struct pool_body pool_bodies[] = {
#ifdef POOL_X86
	{"AVX-512", avx512_runs, avx512_max, avx512_gather, avx512_spread},
	{"AVX2", avx2_runs, avx2_max, avx2_gather, avx2_spread},
#endif
	{"portable", plain_runs, plain_max, plain_gather, plain_spread},
};

const struct pool_body *pool__bodies(int *count)
{
	*count = (int)ARRAY_LEN(pool_bodies);
	return pool_bodies;
}

const struct pool_body *pool__body(void)
{
	const struct pool_body *body = pool_bodies;

	while (!body->runs_here())
		body++;
	return body;
}
