/*
 * What an update changed, against plain loops in extended precision; every variant, the same bytes.
 */
#include "support/floats.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_stats.h"
#include "outfeed/outfeed_kernel.h"

#define LONGEST 10007

/* numpy.isclose, branch by branch. */
static bool plain_changed(float before, float after)
{
	if (isnan(before) || isnan(after))
		return true;
	if (isinf(before) || isinf(after))
		return before != after;
	return fabs((double)after - (double)before) > 1e-8 + 1e-5 * fabs((double)before);
}

static void check_against_plain(const struct outfeed_change *got, const float *before,
				const float *after, size_t count)
{
	long double change = 0, magnitude = 0;
	int64_t changed = 0;

	for (size_t i = 0; i < count; i++) {
		change += fabsl((long double)after[i] - (long double)before[i]);
		magnitude += fabsl((long double)before[i]);
		changed += plain_changed(before[i], after[i]);
	}
	assert_int_equal(got->n_changed, changed);
	assert_close(got->sum_change, (double)change, 1e-12);
	assert_close(got->sum_before, (double)magnitude, 1e-12);
}

static void check_pair(const float *before, const float *after, float *copy, size_t count)
{
	struct outfeed_change first, got;
	bool any = false;

	for (int v = 0; outfeed_kernel_at(v); v++) {
		if (!outfeed_kernel_use(v))
			continue;
		memcpy(copy, before, count * sizeof(float));
		memset(copy + count, 0x55, sizeof(float));
		outfeed_change_scan(&got, copy, after, count);
		check_against_plain(&got, before, after, count);
		if (count > 0)
			assert_memory_equal(copy, after, count * sizeof(float));
		assert_memory_equal(copy + count, "\x55\x55\x55\x55", 4);
		if (any)
			assert_memory_equal(&got, &first, sizeof(got));
		first = got;
		any = true;
	}
}

static void test_every_variant_agrees_with_plain_loops(void **state)
{
	float *before = mem_aligned(LONGEST + 17, sizeof(float));
	float *after = mem_aligned(LONGEST + 17, sizeof(float));
	float *copy = mem_aligned(LONGEST + 17, sizeof(float));
	struct rng rng;

	(void)state;
	assert_true(before && after && copy);
	for (int kind = 0; kind < FLOATS_KINDS; kind++) {
		rng_init(&rng, 8, (uint32_t)kind, 0, 0);
		for (size_t count = 0; count <= 257; count++) {
			size_t at = count % 16;

			floats_fill(kind, before + at, count, &rng);
			floats_fill((kind + (int)count) % FLOATS_KINDS, after + at, count, &rng);
			check_pair(before + at, after + at, copy + (at + 5) % 16, count);
			/* A small step: some values change within the tolerance. */
			for (size_t i = 0; i < count; i++)
				after[at + i] = before[at + i] * (1 + 2e-5f * rng_uniform(&rng));
			check_pair(before + at, after + at, copy, count);
		}
		floats_fill(kind, before + 1, LONGEST, &rng);
		floats_fill(FLOATS_GRADIENT, after + 2, LONGEST, &rng);
		check_pair(before + 1, after + 2, copy + 3, LONGEST);
	}
	mem_free(before);
	mem_free(after);
	mem_free(copy);
}

static int64_t changed_of(float before, float after)
{
	struct outfeed_change change;

	outfeed_change_scan(&change, &before, &after, 1);
	return change.n_changed;
}

static void test_what_counts_as_a_change(void **state)
{
	(void)state;
	assert_int_equal(changed_of(1, 1), 0);
	assert_int_equal(changed_of(1, 1.0000095f), 0);
	assert_int_equal(changed_of(1, 1.000011f), 1);
	assert_int_equal(changed_of(0, 0.9e-8f), 0);
	assert_int_equal(changed_of(0, -1.1e-8f), 1);
	assert_int_equal(changed_of(NAN, NAN), 1);
	assert_int_equal(changed_of(0, NAN), 1);
	assert_int_equal(changed_of(NAN, 0), 1);
	assert_int_equal(changed_of(INFINITY, INFINITY), 0);
	assert_int_equal(changed_of(INFINITY, -INFINITY), 1);
	assert_int_equal(changed_of(INFINITY, 1), 1);
	assert_int_equal(changed_of(1, INFINITY), 1);
}

static void test_the_ratio_is_of_means(void **state)
{
	struct outfeed_change change = {4, 0.5, 10};

	(void)state;
	assert_close(outfeed_change_ratio(&change, 100), 0.005 / (0.1 + 1e-9), 1e-14);
	change.sum_before = 1e-10;
	assert_close(outfeed_change_ratio(&change, 1), 0.5 / 1.1e-9, 1e-12);
	change.sum_before = 0;
	assert_true(isnan(outfeed_change_ratio(&change, 100)));
	assert_true(isnan(outfeed_change_ratio(&change, 0)));
	change.sum_before = (double)NAN;
	assert_true(isnan(outfeed_change_ratio(&change, 100)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_variant_agrees_with_plain_loops),
		cmocka_unit_test(test_what_counts_as_a_change),
		cmocka_unit_test(test_the_ratio_is_of_means),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
