/*
 * The order of items.
 */
#include <string.h>

#include "common/mem.h"
#include "support/support.h"
#include "trainer/data/dataset.h"

enum {
	COUNT = 103,
	BATCH = 10,
	BATCHES = 10
};

static struct dataset_order *make_order(int64_t shuffle, uint64_t seed, bool partial)
{
	const struct dataset_order_params params = {.count = COUNT,
						    .batch = BATCH,
						    .shuffle = shuffle,
						    .seed = seed,
						    .partial = partial};
	struct dataset_order *order;

	assert_int_equal(dataset_order_new(&order, &params, NULL), ST_OK);
	return order;
}

static struct dataset_order *make(int64_t shuffle, uint64_t seed)
{
	return make_order(shuffle, seed, false);
}

/* One pass: its items in order, each at most once. */
static void take_pass(struct dataset_order *order, int64_t pass, uint32_t out[BATCHES * BATCH])
{
	bool seen[COUNT] = {false};

	for (int64_t b = 0; b < BATCHES; b++) {
		int64_t count;

		memcpy(out + b * BATCH, dataset_order_batch(order, pass * BATCHES + b, &count),
		       BATCH * sizeof(*out));
		assert_int_equal(count, BATCH);
	}
	for (int i = 0; i < BATCHES * BATCH; i++) {
		assert_true(out[i] < COUNT);
		assert_false(seen[out[i]]);
		seen[out[i]] = true;
	}
}

static void test_without_shuffle_the_order_is_the_set_s_and_the_rest_is_dropped(void **state)
{
	struct dataset_order *order = make(0, 1);
	uint32_t items[BATCHES * BATCH];

	(void)state;
	for (int pass = 0; pass < 3; pass++) {
		take_pass(order, pass, items);
		for (uint32_t i = 0; i < BATCHES * BATCH; i++)
			assert_int_equal(items[i], i);
	}
	dataset_order_free(order);
}

static void test_each_pass_is_a_permutation_of_its_own(void **state)
{
	struct dataset_order *order = make(-1, 1);
	uint32_t first[BATCHES * BATCH], second[BATCHES * BATCH];
	int same = 0;

	(void)state;
	take_pass(order, 0, first);
	take_pass(order, 1, second);
	for (int i = 0; i < BATCHES * BATCH; i++)
		same += first[i] == second[i];
	assert_true(same < 20);
	dataset_order_free(order);
}

static void test_a_pass_depends_on_seed_and_pass_only(void **state)
{
	uint32_t a[BATCHES * BATCH], b[BATCHES * BATCH], c[BATCHES * BATCH];
	static const int64_t shuffles[] = {-1, 7};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct dataset_order *one = make(shuffles[i], 5), *two = make(shuffles[i], 5);
		struct dataset_order *other = make(shuffles[i], 6);

		take_pass(one, 0, a);
		take_pass(one, 2, a);
		take_pass(two, 2, b);
		take_pass(other, 2, c);
		assert_memory_equal(a, b, sizeof(a));
		assert_memory_not_equal(a, c, sizeof(a));
		/* Back again. */
		take_pass(one, 0, c);
		take_pass(one, 2, c);
		assert_memory_equal(a, c, sizeof(a));
		dataset_order_free(one);
		dataset_order_free(two);
		dataset_order_free(other);
	}
}

static void test_a_buffer_lets_nothing_come_too_early(void **state)
{
	enum {
		BUFFER = 8
	};
	struct dataset_order *order = make(BUFFER, 3);
	uint32_t items[BATCHES * BATCH];
	int moved = 0;

	(void)state;
	take_pass(order, 0, items);
	for (uint32_t i = 0; i < BATCHES * BATCH; i++) {
		assert_true(items[i] < i + BUFFER);
		moved += items[i] != i;
	}
	assert_true(moved > BATCHES * BATCH / 2);
	dataset_order_free(order);

	/* A buffer of one changes nothing; one beyond the set shuffles all of it. */
	order = make(1, 3);
	take_pass(order, 0, items);
	assert_int_equal(items[50], 50);
	dataset_order_free(order);
	order = make(100000, 3);
	take_pass(order, 0, items);
	moved = 0;
	for (uint32_t i = 0; i < 20; i++)
		moved += items[i] > i + 30;
	assert_true(moved > 5);
	dataset_order_free(order);
}

static void test_a_padded_pass_has_a_multiple_of_batches(void **state)
{
	static const struct {
		int64_t count, pad, batches;
	} rows[] = {{COUNT, 1, 11}, {COUNT, 4, 12}, {COUNT, 8, 16}, {100, 5, 10}, {3, 2, 2}};

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		const struct dataset_order_params params = {.count = rows[r].count,
							    .batch = BATCH,
							    .shuffle = -1,
							    .seed = 4,
							    .pad = rows[r].pad};
		struct dataset_order *order;

		assert_int_equal(dataset_order_new(&order, &params, NULL), ST_OK);
		assert_int_equal(order->batches, rows[r].batches);
		for (int64_t pass = 0; pass < 2; pass++) {
			bool seen[COUNT] = {false};
			int64_t items = 0, count;

			for (int64_t b = 0; b < order->batches; b++) {
				const uint32_t *batch = dataset_order_batch(
					order, pass * order->batches + b, &count);

				assert_true(count <= BATCH &&
					    (count == BATCH || items + count == rows[r].count));
				for (int64_t i = 0; i < count; i++, items++) {
					assert_false(seen[batch[i]]);
					seen[batch[i]] = true;
				}
			}
			assert_int_equal(items, rows[r].count);
		}
		dataset_order_free(order);
	}
}

static void test_the_last_batch_of_a_partial_pass_is_what_is_left(void **state)
{
	struct dataset_order *order = make_order(-1, 4, true), *whole = make(-1, 4);
	int64_t count;

	(void)state;
	assert_int_equal(order->batches, BATCHES + 1);
	for (int64_t pass = 0; pass < 3; pass++) {
		bool seen[COUNT] = {false};

		for (int64_t b = 0; b <= BATCHES; b++) {
			int64_t number = pass * (BATCHES + 1) + b, other;
			const uint32_t *items = dataset_order_batch(order, number, &count);

			assert_int_equal(count, b < BATCHES ? BATCH : COUNT % BATCH);
			assert_int_equal(count, dataset_order_size(order, number));
			for (int64_t i = 0; i < count; i++) {
				assert_false(seen[items[i]]);
				seen[items[i]] = true;
			}
			/* The same permutation as without the rest. */
			if (b < BATCHES)
				assert_memory_equal(
					items,
					dataset_order_batch(whole, pass * BATCHES + b, &other),
					BATCH * sizeof(*items));
		}
		for (int i = 0; i < COUNT; i++)
			assert_true(seen[i]);
	}
	dataset_order_free(order);
	dataset_order_free(whole);
}

static void test_two_passes_are_held(void **state)
{
	struct dataset_order *order = make(-1, 4);
	uint32_t last[BATCH], first[BATCH];
	int64_t count;

	(void)state;
	memcpy(last, dataset_order_batch(order, 4 * BATCHES - 1, &count), sizeof(last));
	memcpy(first, dataset_order_batch(order, 4 * BATCHES, &count), sizeof(first));
	/* Spoilt permutations show that neither is made anew. */
	order->items[1][(BATCHES - 1) * BATCH] = last[0] = COUNT - 1;
	order->items[0][0] = first[0] = COUNT - 2;
	for (int i = 0; i < 3; i++) {
		assert_memory_equal(last, dataset_order_batch(order, 4 * BATCHES - 1, &count),
				    sizeof(last));
		assert_memory_equal(first, dataset_order_batch(order, 4 * BATCHES, &count),
				    sizeof(first));
	}
	dataset_order_free(order);
}

static void test_impossible_orders_are_refused(void **state)
{
	static const struct dataset_order_params cases[] = {
		{.count = 5, .batch = 6},
		{.count = 0, .batch = 1},
		{.count = 5, .batch = 0},
		{.count = 5, .batch = 1, .shuffle = -2},
	};
	const struct dataset_order_params good = {.count = 5, .batch = 5, .shuffle = 2};
	struct dataset_order *order;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(dataset_order_new(&order, &cases[i], NULL), ST_INVALID);
		assert_null(order);
	}
	for (long n = 0; n < 4; n++) {
		support_fail_alloc(n);
		assert_int_equal(dataset_order_new(&order, &good, NULL), ST_NOMEM);
		support_fail_alloc(-1);
		assert_null(order);
	}
	dataset_order_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_without_shuffle_the_order_is_the_set_s_and_the_rest_is_dropped),
		cmocka_unit_test(test_each_pass_is_a_permutation_of_its_own),
		cmocka_unit_test(test_a_pass_depends_on_seed_and_pass_only),
		cmocka_unit_test(test_a_buffer_lets_nothing_come_too_early),
		cmocka_unit_test(test_a_padded_pass_has_a_multiple_of_batches),
		cmocka_unit_test(test_the_last_batch_of_a_partial_pass_is_what_is_left),
		cmocka_unit_test(test_two_passes_are_held),
		cmocka_unit_test(test_impossible_orders_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
