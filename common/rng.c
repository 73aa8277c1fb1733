/*
 * Philox4x32-10: ten rounds of multiply, exchange and key over a counter.
 *
 * Threading: plain data, no shared state. The words of a block are used in order.
 */
#include "common/rng.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/elementary.h"

#define PHILOX_ROUNDS 10
#define PHILOX_M0     0xd2511f53u
#define PHILOX_M1     0xcd9e8d57u
#define PHILOX_W0     0x9e3779b9u
#define PHILOX_W1     0xbb67ae85u
#define PHILOX_WORDS  4

/* The finalizer of SplitMix64: a bijection, so distinct inputs stay distinct. */
static uint64_t rng_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

void rng_init(struct rng *rng, uint64_t seed, uint32_t stream, uint64_t step, uint32_t replica)
{
	/* The odd factor spreads streams over 64 bits: for one seed no two streams share a key. */
	uint64_t key = rng_mix(rng_mix(seed) + (uint64_t)stream * 0x9e3779b97f4a7c15u);

	memset(rng, 0, sizeof(*rng));
	rng->key[0] = (uint32_t)key;
	rng->key[1] = (uint32_t)(key >> 32);
	rng->counter[1] = (uint32_t)step;
	rng->counter[2] = (uint32_t)(step >> 32);
	rng->counter[3] = replica;
	rng->taken = PHILOX_WORDS;
}

static void rng_next_block(struct rng *rng)
{
	uint32_t k0 = rng->key[0], k1 = rng->key[1];
	uint32_t c0 = rng->counter[0], c1 = rng->counter[1];
	uint32_t c2 = rng->counter[2], c3 = rng->counter[3];

	for (int round = 0; round < PHILOX_ROUNDS; round++) {
		uint64_t p0 = (uint64_t)PHILOX_M0 * c0;
		uint64_t p1 = (uint64_t)PHILOX_M1 * c2;

		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += PHILOX_W0;
		k1 += PHILOX_W1;
	}

	rng->block[0] = c0;
	rng->block[1] = c1;
	rng->block[2] = c2;
	rng->block[3] = c3;
	rng->counter[0]++;
	rng->taken = 0;
}

uint32_t rng_u32(struct rng *rng)
{
	if (rng->taken >= PHILOX_WORDS)
		rng_next_block(rng);

	return rng->block[rng->taken++];
}

/* Lemire's method: return the high word of a product; redraw for the few biased low words. */
uint32_t rng_below(struct rng *rng, uint32_t bound)
{
	uint64_t product;

	assert(bound > 0);
	product = (uint64_t)rng_u32(rng) * bound;
	if ((uint32_t)product < bound) {
		uint32_t uneven = (0u - bound) % bound;

		while ((uint32_t)product < uneven)
			product = (uint64_t)rng_u32(rng) * bound;
	}

	return (uint32_t)(product >> 32);
}

float rng_uniform(struct rng *rng)
{
	return (float)(rng_u32(rng) >> 8) * 0x1p-24f;
}

float rng_normal(struct rng *rng)
{
	/* In (0, 1], because log(0) is infinite. Box-Muller's second value is discarded: every call
	 * consumes two words, regardless of earlier calls. */
	const double radius = (double)((rng_u32(rng) >> 8) + 1) * 0x1p-24;
	const double turn = (double)rng_uniform(rng);

	return (float)(sqrt(-2.0 * elementary_log(radius)) * elementary_cos_pi(2.0 * turn));
}

void rng_shuffle(struct rng *rng, uint32_t *items, size_t count)
{
	assert(count <= UINT32_MAX);
	for (size_t i = count; i > 1; i--) {
		uint32_t other = rng_below(rng, (uint32_t)i);
		uint32_t kept = items[i - 1];

		items[i - 1] = items[other];
		items[other] = kept;
	}
}

uint32_t rng_stream(const char *name)
{
	uint32_t hash = 0x811c9dc5u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x01000193u;
	return hash;
}
