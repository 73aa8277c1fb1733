/*
 * Dropout masks: Philox4x32-10 over many blocks at a time.
 *
 * The blocks are those of common/rng.h's stream: block b has b as its first counter word. The
 * numbers are assigned to elements such that no transposition is needed: element 128 g + 32 w + j
 * of a mask uses word w (0 .. 3) of block 32 g + j. Single-threaded; integer arithmetic only, so
 * the bytes are the same everywhere.
 */
#ifndef KERNEL_DROPOUT_H
#define KERNEL_DROPOUT_H

#include <stddef.h>
#include <stdint.h>

#include "common/rng.h"

#define KERNEL_DROPOUT_GROUP 128 /* elements: masks start at multiples of this */

/*
 * mask[i] = 1 if the random number of element @first + i is at least @threshold, else 0. @stream:
 * as rng_init() initialized it. @first: a multiple of KERNEL_DROPOUT_GROUP. The numbers repeat
 * after 2^34 elements.
 */
void kernel_dropout_mask(const struct rng *stream, uint32_t threshold, size_t first, size_t count,
			 uint8_t *mask);

/* The same in plain C for the first groups; in every build, for the test that compares the two. */
void kernel__dropout_mask_plain(const struct rng *stream, uint32_t threshold, size_t groups,
				uint8_t *mask);

/* y = x scale if the mask is 1, else x 0 (NaN stays NaN); y may be x. */
void kernel_dropout_apply(const float *x, const uint8_t *mask, float scale, float *y, size_t count);

#endif /* KERNEL_DROPOUT_H */
