/*
 * Philox: the published vectors, streams, and the shapes of the distributions.
 */
#include "common/rng.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/support.h"

/* kat_vectors of Random123, philox4x32-10. */
static void test_known_answers(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], answer[4];
	} rows[] = {
		{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
		 {0xffffffff, 0xffffffff},
		 {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
		 {0xa4093822, 0x299f31d0},
		 {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rng rng = {.taken = 4};

		memcpy(rng.key, rows[i].key, sizeof(rng.key));
		memcpy(rng.counter, rows[i].counter, sizeof(rng.counter));
		for (int word = 0; word < 4; word++)
			assert_int_equal(rng_u32(&rng), rows[i].answer[word]);
	}
}

static void test_same_names_give_the_same_numbers(void **state)
{
	struct rng a, b;

	(void)state;
	rng_init(&a, 1, 2, 3, 4);
	rng_init(&b, 1, 2, 3, 4);
	for (int i = 0; i < 100; i++)
		assert_int_equal(rng_u32(&a), rng_u32(&b));
}

static void test_each_part_of_the_name_makes_another_stream(void **state)
{
	struct rng rngs[6];
	uint32_t words[6];

	(void)state;
	rng_init(&rngs[0], 1, 2, 3, 4);
	rng_init(&rngs[1], 9, 2, 3, 4);
	rng_init(&rngs[2], 1, 9, 3, 4);
	rng_init(&rngs[3], 1, 2, 9, 4);
	rng_init(&rngs[4], 1, 2, 3, 9);
	rng_init(&rngs[5], 1, 2, 3 + ((uint64_t)1 << 32), 4);
	for (int i = 0; i < 6; i++) {
		words[i] = rng_u32(&rngs[i]);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(words[i], words[k]);
	}
}

static void test_uniform_is_uniform_and_below_one(void **state)
{
	enum {
		DRAWS = 160000,
		BINS = 16
	};
	unsigned bins[BINS] = {0};
	double chi = 0, expected = (double)DRAWS / BINS;
	struct rng rng;

	(void)state;
	rng_init(&rng, 42, 0, 0, 0);
	for (int i = 0; i < DRAWS; i++) {
		float x = rng_uniform(&rng);

		assert_true(x >= 0 && x < 1);
		bins[(int)(x * BINS)]++;
	}
	for (int i = 0; i < BINS; i++)
		chi += (bins[i] - expected) * (bins[i] - expected) / expected;
	/* 15 degrees of freedom: beyond 37.7 in one of a thousand; the seed is fixed. */
	assert_true(chi < 37.7);
}

static void test_normal_has_mean_zero_and_deviation_one(void **state)
{
	enum {
		DRAWS = 200000
	};
	double sum = 0, squares = 0, fourth = 0;
	struct rng rng;

	(void)state;
	rng_init(&rng, 7, 0, 0, 0);
	for (int i = 0; i < DRAWS; i++) {
		double x = (double)rng_normal(&rng);

		assert_true(isfinite(x));
		sum += x;
		squares += x * x;
		fourth += x * x * x * x;
	}
	assert_true(fabs(sum / DRAWS) < 0.01);
	assert_close(squares / DRAWS, 1, 0.015);
	assert_close(fourth / DRAWS, 3, 0.05);
}

/* Box-Muller's first value, by the C library. */
static void test_normal_is_box_mullers(void **state)
{
	struct rng rng, words;

	(void)state;
	rng_init(&rng, 1, 2, 3, 4);
	words = rng;
	for (int i = 0; i < 10000; i++) {
		const double radius = ((double)(rng_u32(&words) >> 8) + 1.0) / 16777216.0;
		const double turn = (double)(rng_u32(&words) >> 8) / 16777216.0;
		const double wanted = sqrt(-2.0 * log(radius)) * cos(2.0 * acos(-1.0) * turn);

		assert_true(fabs((double)rng_normal(&rng) - wanted) < 1e-6);
	}
}

static void test_below_is_even_and_in_range(void **state)
{
	static const uint32_t bounds[] = {1, 2, 3, 7, 10, 0x80000001u, UINT32_MAX};
	unsigned bins[7] = {0};
	struct rng rng;

	(void)state;
	rng_init(&rng, 3, 0, 0, 0);
	for (size_t i = 0; i < ARRAY_LEN(bounds); i++)
		for (int k = 0; k < 1000; k++)
			assert_true(rng_below(&rng, bounds[i]) < bounds[i]);

	for (int k = 0; k < 70000; k++)
		bins[rng_below(&rng, 7)]++;
	for (int i = 0; i < 7; i++)
		assert_close(bins[i], 10000, 0.04);
}

static void test_shuffle_is_a_permutation(void **state)
{
	enum {
		COUNT = 1000
	};
	uint32_t items[COUNT];
	bool seen[COUNT] = {false};
	unsigned fixed = 0;
	struct rng rng;

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++)
		items[i] = i;
	rng_init(&rng, 5, rng_stream("shuffle"), 0, 0);
	rng_shuffle(&rng, items, COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_true(items[i] < COUNT);
		assert_false(seen[items[i]]);
		seen[items[i]] = true;
		fixed += items[i] == i;
	}
	assert_true(fixed < 10);

	rng_shuffle(&rng, items, 0);
	rng_shuffle(&rng, items, 1);
}

static void test_shuffle_reaches_every_order(void **state)
{
	unsigned seen[27] = {0}, orders = 0;
	struct rng rng;

	(void)state;
	rng_init(&rng, 6, 0, 0, 0);
	for (int i = 0; i < 6000; i++) {
		uint32_t items[] = {0, 1, 2};

		rng_shuffle(&rng, items, 3);
		seen[items[0] * 9 + items[1] * 3 + items[2]]++;
	}
	for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
		orders += seen[i] > 0;
		if (seen[i])
			assert_close(seen[i], 1000, 0.15);
	}
	assert_int_equal(orders, 6);
}

static void test_stream_is_fnv1a(void **state)
{
	(void)state;
	assert_int_equal(rng_stream(""), 0x811c9dc5);
	assert_int_equal(rng_stream("a"), 0xe40c292c);
	assert_int_equal(rng_stream("foobar"), 0xbf9cf968);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_answers),
		cmocka_unit_test(test_same_names_give_the_same_numbers),
		cmocka_unit_test(test_each_part_of_the_name_makes_another_stream),
		cmocka_unit_test(test_uniform_is_uniform_and_below_one),
		cmocka_unit_test(test_normal_has_mean_zero_and_deviation_one),
		cmocka_unit_test(test_normal_is_box_mullers),
		cmocka_unit_test(test_below_is_even_and_in_range),
		cmocka_unit_test(test_shuffle_is_a_permutation),
		cmocka_unit_test(test_shuffle_reaches_every_order),
		cmocka_unit_test(test_stream_is_fnv1a),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
