/*
 * Arrays of floats that break formulas, for tests of kernels that look at every value.
 *
 * Threading: any thread, each with its own generator.
 */
#ifndef SUPPORT_FLOATS_H
#define SUPPORT_FLOATS_H

#include <stddef.h>

#include "common/rng.h"

enum floats_kind {
	FLOATS_GRADIENT,      /* mean 1e-3, deviation 0.02 */
	FLOATS_FAR_FROM_ZERO, /* mean 1e4, deviation 1e-3 */
	FLOATS_BAD_FIRST,     /* the same, after a 0 */
	FLOATS_HUGE_FIRST,    /* gradients after FLT_MAX */
	FLOATS_EQUAL,
	FLOATS_ZEROS, /* of both signs */
	FLOATS_RELU,
	FLOATS_ONE_NAN, /* far from zero but for it */
	FLOATS_NEGATIVE_NAN,
	FLOATS_ONLY_MINUS_INF,
	FLOATS_ONLY_NAN,
	FLOATS_MIXTURE, /* one in 4 is a zero, an infinity, NaN, FLT_MAX or denormal */
	FLOATS_DENORMALS,
	FLOATS_GREATEST, /* +-FLT_MAX */
	FLOATS_EVERY_MAGNITUDE,
	FLOATS_RISING,
	FLOATS_MANY_NANS, /* one in 3: both signs, quiet and signalling, several payloads */
	FLOATS_FEW_NANS,  /* one in 100 is NaN or minus infinity */
	FLOATS_KINDS
};

/* @kind: an enum floats_kind. @rng may be NULL for kinds that draw nothing (equal, rising). */
void floats_fill(int kind, float *values, size_t count, struct rng *rng);

/* Call @check with arrays of every kind and all lengths up to 257, at an offset that changes with
 * them, and with the @count lengths @long_ones, none above FLOATS_LONGEST. */
#define FLOATS_LONGEST 20011
typedef void (*floats_check)(const float *values, size_t count);
void floats_each_kind(floats_check check, uint32_t seed, const size_t *long_ones, size_t count);

/*
 * The same of some kinds with all lengths up to 257 at every offset of a float from a cache line.
 */
void floats_each_alignment(floats_check check, uint32_t seed);

#endif /* SUPPORT_FLOATS_H */
