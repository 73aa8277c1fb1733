/*
 * Dropout. The ten rounds run over the blocks of a group in parallel, each word in a 64-bit lane,
 * so that its product needs no unpacking: in plain C, and with AVX-512, because compilers do not
 * emit its 32-bit multiplication to 64 bits. Both give the same bytes.
 */
#include "trainer/kernels/kernel_activation.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "trainer/kernels/kernel_clones.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define DROPOUT_X86
#endif

#define DROPOUT_BLOCKS (KERNEL_DROPOUT_GROUP / 4)

/* As in common/rng.c. */
#define DROPOUT_ROUNDS 10
#define DROPOUT_M0     0xd2511f53u
#define DROPOUT_M1     0xcd9e8d57u
#define DROPOUT_W0     0x9e3779b9u
#define DROPOUT_W1     0xbb67ae85u

/* The words of DROPOUT_BLOCKS blocks from @block on, in the order of the elements that use them. */
KERNEL_INLINE void dropout_group(const struct rng *stream, uint32_t block,
				 uint32_t words[KERNEL_DROPOUT_GROUP])
{
	uint64_t c0[DROPOUT_BLOCKS], c1[DROPOUT_BLOCKS], c2[DROPOUT_BLOCKS], c3[DROPOUT_BLOCKS];
	uint32_t k0 = stream->key[0], k1 = stream->key[1];

	for (uint32_t j = 0; j < DROPOUT_BLOCKS; j++) {
		c0[j] = block + j;
		c1[j] = stream->counter[1];
		c2[j] = stream->counter[2];
		c3[j] = stream->counter[3];
	}
	for (int round = 0; round < DROPOUT_ROUNDS; round++) {
		/* The bits of a lane above its lower 32 are not used again. */
		for (int j = 0; j < DROPOUT_BLOCKS; j++) {
			uint64_t p0 = (uint64_t)DROPOUT_M0 * (uint32_t)c0[j];
			uint64_t p1 = (uint64_t)DROPOUT_M1 * (uint32_t)c2[j];

			c0[j] = (p1 >> 32) ^ c1[j] ^ k0;
			c1[j] = p1;
			c2[j] = (p0 >> 32) ^ c3[j] ^ k1;
			c3[j] = p0;
		}
		k0 += DROPOUT_W0;
		k1 += DROPOUT_W1;
	}
	for (int j = 0; j < DROPOUT_BLOCKS; j++) {
		words[j] = (uint32_t)c0[j];
		words[DROPOUT_BLOCKS + j] = (uint32_t)c1[j];
		words[2 * DROPOUT_BLOCKS + j] = (uint32_t)c2[j];
		words[3 * DROPOUT_BLOCKS + j] = (uint32_t)c3[j];
	}
}

KERNEL_CLONES
static void dropout_plain(const struct rng *stream, uint32_t threshold, uint32_t block,
			  size_t groups, uint8_t *mask)
{
	uint32_t words[KERNEL_DROPOUT_GROUP];

	for (size_t g = 0; g < groups; g++) {
		dropout_group(stream, block, words);
		block += DROPOUT_BLOCKS;
		for (int j = 0; j < KERNEL_DROPOUT_GROUP; j++)
			*mask++ = words[j] >= threshold;
	}
}

#ifdef DROPOUT_X86

#define DROPOUT_512     __attribute__((target("avx512f,avx512bw,avx512vl")))
#define DROPOUT_VECTORS (DROPOUT_BLOCKS / 8)
#define DROPOUT_XOR     0x96 /* truth table of the exclusive or of three operands */

DROPOUT_512 static inline void dropout_avx512_start(const struct rng *stream, uint32_t block,
						    __m512i c[4][DROPOUT_VECTORS])
{
	const __m512i lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);

	/* The block number wraps at 32 bits: the upper bits of a lane are not used. */
	for (uint32_t v = 0; v < DROPOUT_VECTORS; v++) {
		c[0][v] = _mm512_add_epi64(_mm512_set1_epi64(block + 8 * v), lanes);
		for (int word = 1; word < 4; word++)
			c[word][v] = _mm512_set1_epi64(stream->counter[word]);
	}
}

DROPOUT_512 static inline void dropout_avx512_round(__m512i c[4][DROPOUT_VECTORS], uint32_t k0,
						    uint32_t k1)
{
	const __m512i m0 = _mm512_set1_epi64(DROPOUT_M0), m1 = _mm512_set1_epi64(DROPOUT_M1);
	const __m512i key0 = _mm512_set1_epi64(k0), key1 = _mm512_set1_epi64(k1);

	for (int v = 0; v < DROPOUT_VECTORS; v++) {
		__m512i p0 = _mm512_mul_epu32(m0, c[0][v]), p1 = _mm512_mul_epu32(m1, c[2][v]);

		c[0][v] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p1, 32), c[1][v], key0,
						    DROPOUT_XOR);
		c[1][v] = p1;
		c[2][v] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p0, 32), c[3][v], key1,
						    DROPOUT_XOR);
		c[3][v] = p0;
	}
}

DROPOUT_512 static void dropout_avx512(const struct rng *stream, uint32_t threshold, uint32_t block,
				       size_t groups, uint8_t *mask)
{
	/* Selects the lower halves of the lanes of two vectors. */
	const __m512i lower =
		_mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
	const __m512i limit = _mm512_set1_epi32((int)threshold);

	for (size_t g = 0; g < groups; g++, block += DROPOUT_BLOCKS) {
		__m512i c[4][DROPOUT_VECTORS];
		uint32_t k0 = stream->key[0], k1 = stream->key[1];

		dropout_avx512_start(stream, block, c);
		for (int round = 0; round < DROPOUT_ROUNDS; round++) {
			dropout_avx512_round(c, k0, k1);
			k0 += DROPOUT_W0;
			k1 += DROPOUT_W1;
		}
		for (int word = 0; word < 4; word++) {
			for (int v = 0; v < DROPOUT_VECTORS; v += 2, mask += 16) {
				__m512i numbers = _mm512_permutex2var_epi32(c[word][v], lower,
									    c[word][v + 1]);
				__mmask16 keep = _mm512_cmpge_epu32_mask(numbers, limit);

				_mm_storeu_si128((__m128i *)(void *)mask,
						 _mm_maskz_set1_epi8(keep, 1));
			}
		}
	}
}

#endif

static void dropout_groups(const struct rng *stream, uint32_t threshold, uint32_t block,
			   size_t groups, uint8_t *mask)
{
#ifdef DROPOUT_X86
	if (cpu_has_avx512()) {
		dropout_avx512(stream, threshold, block, groups, mask);
		return;
	}
#endif
	dropout_plain(stream, threshold, block, groups, mask);
}

void kernel_dropout_mask(const struct rng *stream, uint32_t threshold, size_t first, size_t count,
			 uint8_t *mask)
{
	size_t groups = count / KERNEL_DROPOUT_GROUP, rest = count % KERNEL_DROPOUT_GROUP;
	uint32_t block = (uint32_t)(first / 4);
	uint8_t last[KERNEL_DROPOUT_GROUP];

	assert(first % KERNEL_DROPOUT_GROUP == 0);
	dropout_groups(stream, threshold, block, groups, mask);
	if (!rest)
		return;
	dropout_groups(stream, threshold, block + (uint32_t)groups * DROPOUT_BLOCKS, 1, last);
	memcpy(mask + groups * KERNEL_DROPOUT_GROUP, last, rest);
}

void kernel__dropout_mask_plain(const struct rng *stream, uint32_t threshold, size_t groups,
				uint8_t *mask)
{
	dropout_plain(stream, threshold, 0, groups, mask);
}

KERNEL_CLONES
void kernel_dropout_apply(const float *x, const uint8_t *mask, float scale, float *y, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		y[i] = x[i] * (mask[i] ? scale : 0.0f);
}
