/*
 * Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11).
 *
 * The key of a stream is its purpose, not the time of the draw: the same (seed, stream, step,
 * replica) gives the same numbers on any number of threads. Plain data, no shared state.
 */
#ifndef COMMON_RNG_H
#define COMMON_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint32_t key[2];     /* from seed and stream */
	uint32_t counter[4]; /* block number (0), step (1, 2), replica (3) */
	uint32_t block[4];   /* the current block */
	uint32_t taken;      /* words of it already used */
};

void rng_init(struct rng *rng, uint64_t seed, uint32_t stream, uint64_t step, uint32_t replica);
uint32_t rng_u32(struct rng *rng);
uint32_t rng_below(struct rng *rng,
		   uint32_t bound); /* uniform in [0, bound), unbiased; bound > 0 */
float rng_uniform(struct rng *rng); /* [0, 1), 24 bits */
float rng_normal(struct rng *rng);  /* mean 0, deviation 1 (Box-Muller) */
void rng_shuffle(struct rng *rng, uint32_t *items, size_t count); /* Fisher-Yates */

/* Stream number from a name (FNV-1a), for layers and other named objects. */
uint32_t rng_stream(const char *name);

#endif /* COMMON_RNG_H */
