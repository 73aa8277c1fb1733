/*
 * Arrays that break formulas.
 *
 * Threading: any thread, each with its own generator.
 */
#include "support/floats.h"
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/mem.h"

typedef void (*filler)(float *values, size_t count, struct rng *rng);

static void fill_gradient(float *values, size_t count, struct rng *rng)
{
	for (size_t i = 0; i < count; i++)
		values[i] = 1e-3f + 0.02f * rng_normal(rng);
}

static void fill_far_from_zero(float *values, size_t count, struct rng *rng)
{
	for (size_t i = 0; i < count; i++)
		values[i] = 1e4f + 1e-3f * rng_normal(rng);
}

static void fill_bad_first(float *values, size_t count, struct rng *rng)
{
	fill_far_from_zero(values, count, rng);
	if (count > 0)
		values[0] = 0;
}

static void fill_huge_first(float *values, size_t count, struct rng *rng)
{
	fill_gradient(values, count, rng);
	if (count > 0)
		values[0] = FLT_MAX;
}

static void fill_equal(float *values, size_t count, struct rng *rng)
{
	(void)rng;
	for (size_t i = 0; i < count; i++)
		values[i] = 0.1f;
}

static void fill_zeros(float *values, size_t count, struct rng *rng)
{
	for (size_t i = 0; i < count; i++)
		values[i] = rng_below(rng, 2) ? 0.0f : -0.0f;
}

static void fill_relu(float *values, size_t count, struct rng *rng)
{
	fill_gradient(values, count, rng);
	for (size_t i = 0; i < count; i++)
		values[i] = values[i] > 0 ? values[i] : 0;
}

static void fill_one_nan(float *values, size_t count, struct rng *rng)
{
	fill_far_from_zero(values, count, rng);
	if (count > 0)
		values[rng_below(rng, (uint32_t)count)] = NAN;
}

static void fill_negative_nan(float *values, size_t count, struct rng *rng)
{
	fill_gradient(values, count, rng);
	for (size_t i = 0; i < count; i += 3)
		values[i] = copysignf(NAN, -1);
}

static void fill_only_minus_inf(float *values, size_t count, struct rng *rng)
{
	(void)rng;
	for (size_t i = 0; i < count; i++)
		values[i] = -INFINITY;
}

static void fill_only_nan(float *values, size_t count, struct rng *rng)
{
	(void)rng;
	for (size_t i = 0; i < count; i++)
		values[i] = NAN;
}

static void fill_mixture(float *values, size_t count, struct rng *rng)
{
	static const float odd[] = {INFINITY, -INFINITY, NAN,      0.0f,
				    -0.0f,    FLT_MAX,   -FLT_MAX, 1e-45f};

	for (size_t i = 0; i < count; i++)
		values[i] = rng_below(rng, 4) ? rng_normal(rng) : odd[rng_below(rng, 8)];
}

static void fill_denormals(float *values, size_t count, struct rng *rng)
{
	for (size_t i = 0; i < count; i++)
		values[i] = 1.4e-45f * (float)(int)(rng_below(rng, 2001) - 1000);
}

static void fill_greatest(float *values, size_t count, struct rng *rng)
{
	for (size_t i = 0; i < count; i++)
		values[i] = rng_below(rng, 2) ? FLT_MAX : -FLT_MAX;
}

static void fill_every_magnitude(float *values, size_t count, struct rng *rng)
{
	for (size_t i = 0; i < count; i++)
		values[i] = ldexpf(rng_normal(rng), (int)rng_below(rng, 240) - 120);
}

static void fill_rising(float *values, size_t count, struct rng *rng)
{
	(void)rng;
	for (size_t i = 0; i < count; i++)
		values[i] = (float)i * 0.25f - 77;
}

/* Of both signs, quiet and signalling, with several payloads; among numbers of both signs. */
static void fill_many_nans(float *values, size_t count, struct rng *rng)
{
	static const uint32_t payloads[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001,
					    0x7fffffff, 0xffffffff, 0x7fa5a5a5, 0xffd00000};

	fill_gradient(values, count, rng);
	for (size_t i = 0; i < count; i++) {
		if (rng_below(rng, 3) == 0)
			memcpy(&values[i], &payloads[rng_below(rng, 8)], sizeof(float));
	}
}

/* One bad value in a hundred. */
static void fill_few_nans(float *values, size_t count, struct rng *rng)
{
	fill_gradient(values, count, rng);
	for (size_t i = 0; i < count; i++) {
		if (rng_below(rng, 100) == 0)
			values[i] = rng_below(rng, 2) ? NAN : -INFINITY;
	}
}

static const filler fillers[] = {
	[FLOATS_GRADIENT] = fill_gradient,
	[FLOATS_FAR_FROM_ZERO] = fill_far_from_zero,
	[FLOATS_BAD_FIRST] = fill_bad_first,
	[FLOATS_HUGE_FIRST] = fill_huge_first,
	[FLOATS_EQUAL] = fill_equal,
	[FLOATS_ZEROS] = fill_zeros,
	[FLOATS_RELU] = fill_relu,
	[FLOATS_ONE_NAN] = fill_one_nan,
	[FLOATS_NEGATIVE_NAN] = fill_negative_nan,
	[FLOATS_ONLY_MINUS_INF] = fill_only_minus_inf,
	[FLOATS_ONLY_NAN] = fill_only_nan,
	[FLOATS_MIXTURE] = fill_mixture,
	[FLOATS_DENORMALS] = fill_denormals,
	[FLOATS_GREATEST] = fill_greatest,
	[FLOATS_EVERY_MAGNITUDE] = fill_every_magnitude,
	[FLOATS_RISING] = fill_rising,
	[FLOATS_MANY_NANS] = fill_many_nans,
	[FLOATS_FEW_NANS] = fill_few_nans,
};
_Static_assert(ARRAY_LEN(fillers) == FLOATS_KINDS, "table out of step");

void floats_fill(int kind, float *values, size_t count, struct rng *rng)
{
	fillers[kind](values, count, rng);
}

void floats_each_kind(floats_check check, uint32_t seed, const size_t *long_ones, size_t count)
{
	float *memory = mem_aligned(FLOATS_LONGEST + 16, sizeof(float));
	struct rng rng;

	assert_non_null(memory);
	for (int kind = 0; kind < FLOATS_KINDS; kind++) {
		rng_init(&rng, seed, (uint32_t)kind, 0, 0);
		for (size_t length = 0; length <= 257; length++) {
			floats_fill(kind, memory + length % 16, length, &rng);
			check(memory + length % 16, length);
		}
		for (size_t i = 0; i < count; i++) {
			floats_fill(kind, memory + i + 1, long_ones[i], &rng);
			check(memory + i + 1, long_ones[i]);
		}
	}
	mem_free(memory);
}

void floats_each_alignment(floats_check check, uint32_t seed)
{
	static const int kinds[] = {FLOATS_MIXTURE, FLOATS_MANY_NANS, FLOATS_DENORMALS};
	float *memory = mem_aligned(257 + 16, sizeof(float));
	struct rng rng;

	assert_non_null(memory);
	rng_init(&rng, seed, seed, 0, 0);
	for (size_t offset = 0; offset < 16; offset++) {
		for (size_t length = 0; length <= 257; length++) {
			floats_fill(kinds[length % 3], memory + offset, length, &rng);
			check(memory + offset, length);
		}
	}
	mem_free(memory);
}
