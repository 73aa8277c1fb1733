/*
 * Batches for workers: the same bytes ahead of time and on the spot, whoever takes when.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/support.h"
#include "trainer/data/dataset_feed.h"

enum {
	COUNT = 47,
	BATCH = 5,
	ITEM = 12,
	REPLICAS = 2,
	STEPS = 33
};

static uint8_t bytes[COUNT * ITEM];
static int32_t labels[COUNT];
static float values[COUNT * 3];

static const struct dataset classes_set = {.count = COUNT,
					   .ndim = 3,
					   .shape = {2, 2, 3},
					   .bytes = bytes,
					   .labels = labels,
					   .classes = COUNT};
static const struct dataset values_set = {
	.count = COUNT, .ndim = 1, .shape = {ITEM}, .bytes = bytes, .values = values, .width = 3};

static int fill_sets(void **state)
{
	(void)state;
	for (int i = 0; i < COUNT; i++) {
		labels[i] = i;
		for (int p = 0; p < ITEM; p++)
			bytes[i * ITEM + p] = (uint8_t)(i * 5 + p);
		for (int v = 0; v < 3; v++)
			values[i * 3 + v] = (float)(i * 3 + v);
	}
	return 0;
}

static struct dataset_feed_params params_of(const struct dataset *set, int depth)
{
	return (struct dataset_feed_params){.set = set,
					    .batch = BATCH,
					    .replicas = REPLICAS,
					    .shuffle = -1,
					    .seed = 3,
					    .first_step = 4,
					    .steps = STEPS,
					    .depth = depth};
}

/* All that a feed gives, as two threads a replica take it. */
struct taken {
	struct dataset_feed *feed;
	int replica;
	bool inputs;
	unsigned slowness; /* every so many steps the taker lets others run */
	float x[STEPS][BATCH * ITEM];
	float y[STEPS][BATCH * 3];
	int64_t count[STEPS];
};

static void *take(void *argument)
{
	struct taken *taken = argument;

	for (int i = 0; i < STEPS; i++) {
		struct targets targets;

		if (taken->slowness && (unsigned)i % taken->slowness == 0)
			sched_yield();
		if (taken->inputs) {
			taken->count[i] = dataset_feed_inputs(taken->feed, taken->replica, 4 + i,
							      taken->x[i]);
			continue;
		}
		taken->count[i] =
			dataset_feed_targets(taken->feed, taken->replica, 4 + i, &targets);
		for (int64_t j = 0; j < taken->count[i] && targets.classes; j++)
			taken->y[i][j] = (float)targets.classes[j];
		if (targets.values)
			memcpy(taken->y[i], targets.values,
			       (size_t)(taken->count[i] * targets.width) * sizeof(float));
	}
	return NULL;
}

static struct taken *run(const struct dataset_feed_params *params, unsigned slowness)
{
	struct taken *all = calloc(2 * REPLICAS, sizeof(*all));
	pthread_t threads[2 * REPLICAS];
	struct dataset_feed *feed;

	assert_non_null(all);
	assert_int_equal(dataset_feed_new(&feed, params, NULL), ST_OK);
	for (int i = 0; i < 2 * params->replicas; i++) {
		all[i].feed = feed;
		all[i].replica = i / 2;
		all[i].inputs = i % 2 == 0;
		all[i].slowness = i % 2 ? slowness : 0;
		assert_int_equal(pthread_create(&threads[i], NULL, take, &all[i]), 0);
	}
	for (int i = 0; i < 2 * params->replicas; i++)
		pthread_join(threads[i], NULL);
	dataset_feed_free(feed);
	return all;
}

static void test_every_depth_gives_the_same_bytes(void **state)
{
	static const int depths[] = {0, 1, 2, 4, 50};
	const struct dataset *const sets[] = {&classes_set, &values_set};

	(void)state;
	for (int s = 0; s < 2; s++) {
		struct dataset_feed_params params = params_of(sets[s], 0);
		struct taken *first = run(&params, 0);

		for (size_t d = 0; d < sizeof(depths) / sizeof(*depths); d++) {
			struct taken *other;

			params.depth = depths[d];
			other = run(&params, (unsigned)d);
			for (int i = 0; i < 2 * REPLICAS; i++) {
				assert_memory_equal(first[i].x, other[i].x, sizeof(first[i].x));
				assert_memory_equal(first[i].y, other[i].y, sizeof(first[i].y));
				assert_memory_equal(first[i].count, other[i].count,
						    sizeof(first[i].count));
			}
			free(other);
		}
		free(first);
	}
}

static void test_steps_and_replicas_take_the_order_s_batches(void **state)
{
	const struct dataset_order_params order_params = {
		.count = COUNT, .batch = BATCH, .shuffle = -1, .seed = 3};
	struct dataset_feed_params params = params_of(&classes_set, 2);
	struct dataset_order *order;
	struct taken *all = run(&params, 0);

	(void)state;
	assert_int_equal(dataset_order_new(&order, &order_params, NULL), ST_OK);
	for (int i = 0; i < STEPS; i++) {
		for (int r = 0; r < REPLICAS; r++) {
			int64_t count;
			const uint32_t *items =
				dataset_order_batch(order, i * REPLICAS + r, &count);

			for (int j = 0; j < BATCH; j++) {
				assert_true(all[2 * r + 1].y[i][j] == (float)items[j]);
				assert_true(all[2 * r].x[i][j * ITEM] ==
					    (float)(uint8_t)(items[j] * 5) / 255.0f);
			}
		}
	}
	dataset_order_free(order);
	free(all);
}

/* 47 items in batches of 5 on one replica: 9 whole ones, and one of 2. */
static void test_passes_may_end_short_and_begin_anew(void **state)
{
	struct dataset_feed_params params = params_of(&classes_set, 3);
	struct taken *all;

	(void)state;
	params.replicas = 1;
	params.shuffle = 0;
	params.partial = true;
	all = run(&params, 0);
	for (int i = 0; i < STEPS; i++) {
		assert_int_equal(all[0].count[i], i % 10 == 9 ? 2 : BATCH);
		assert_true(all[1].y[i][0] == (float)(i % 10 * BATCH));
	}
	free(all);

	params.partial = false;
	params.pass_steps = 4;
	all = run(&params, 0);
	for (int i = 0; i < STEPS; i++)
		assert_true(all[1].y[i][0] == (float)(i % 4 * BATCH));
	free(all);
}

static void test_a_feed_ends_wherever_its_thread_is(void **state)
{
	struct dataset_feed_params params = params_of(&classes_set, 3);
	float x[BATCH * ITEM];
	struct dataset_feed *feed;

	(void)state;
	params.steps = 0;
	params.no_targets = true;
	for (int taken = 0; taken < 20; taken++) {
		assert_int_equal(dataset_feed_new(&feed, &params, NULL), ST_OK);
		for (int i = 0; i < taken; i++)
			for (int r = 0; r < REPLICAS; r++)
				assert_int_equal(dataset_feed_inputs(feed, r, 4 + i, x), BATCH);
		assert_int_equal(dataset_feed_items(feed, 1, 100), BATCH);
		dataset_feed_free(feed);
	}
	dataset_feed_free(NULL);
}

/* Of several processes each takes its own replicas' batches: others' must not fill the ring. */
static void test_replicas_of_others_hold_up_nothing(void **state)
{
	struct dataset_feed_params params = params_of(&classes_set, 2);
	float ahead[BATCH * ITEM], plain[BATCH * ITEM];
	struct dataset_feed *feed, *all;

	(void)state;
	params.first_taken = params.taken = 1;
	params.no_targets = true;
	assert_int_equal(dataset_feed_new(&feed, &params, NULL), ST_OK);
	params.depth = 0;
	assert_int_equal(dataset_feed_new(&all, &params, NULL), ST_OK);
	for (int64_t step = 4; step < 4 + STEPS; step++) {
		assert_int_equal(dataset_feed_inputs(feed, 1, step, ahead), BATCH);
		assert_int_equal(dataset_feed_inputs(all, 1, step, plain), BATCH);
		assert_memory_equal(ahead, plain, sizeof(ahead));
	}
	dataset_feed_free(feed);
	dataset_feed_free(all);
}

static void test_no_memory_is_undone(void **state)
{
	(void)state;
	for (int depth = 0; depth < 3; depth += 2) {
		struct dataset_feed_params params = params_of(&values_set, depth);

		for (long n = 0;; n++) {
			struct dataset_feed *feed;
			enum status status;
			bool failed;

			support_fail_alloc(n);
			status = dataset_feed_new(&feed, &params, NULL);
			failed = support_alloc_failed();
			support_fail_alloc(-1);
			if (!failed) {
				assert_int_equal(status, ST_OK);
				dataset_feed_free(feed);
				break;
			}
			assert_int_equal(status, ST_NOMEM);
			assert_null(feed);
		}
	}
}

static void test_too_great_batches_are_refused(void **state)
{
	struct dataset_feed_params params = params_of(&classes_set, 1);
	struct dataset_feed *feed;
	struct err err = {0};

	(void)state;
	params.batch = COUNT + 1;
	assert_int_equal(dataset_feed_new(&feed, &params, &err), ST_INVALID);
	assert_contains(err.text, "batches of 48 from 47 items");
}

/* A row's class is its label, the greatest of its values, or its only value. */
static void test_rows_have_the_weights_of_their_classes(void **state)
{
	enum {
		MOST = COUNT * 3
	};
	static const struct {
		const struct dataset *set;
		int64_t positions, classes; /* rows of an item; classes that there are */
		const char *says;           /* where the last has no weight */
	} rows[] = {
		{&classes_set, 1, COUNT, "no weight for item 46, whose class is 46: give the"},
		{&values_set, 1, 3, "no weight for item 0, whose class is 2: give the"},
		{&values_set, 3, MOST, "no weight for item 46, whose class is 140: give the"},
	};
	float weights[MOST];

	(void)state;
	for (int i = 0; i < MOST; i++)
		weights[i] = 0.5f + (float)i;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct class_weights by = {.parts = {{weights, rows[i].classes}}};
		struct dataset_feed_params params = params_of(rows[i].set, 0);
		struct dataset_feed *feed;
		struct targets targets;
		struct err err = {0};

		params.positions = rows[i].positions;
		params.class_weights = &by;
		assert_int_equal(dataset_feed_new(&feed, &params, NULL), ST_OK);
		for (int step = 0; step < STEPS; step++) {
			const int64_t count = dataset_feed_targets(feed, 0, 4 + step, &targets) *
					      params.positions;

			for (int64_t r = 0; r < count; r++) {
				const int64_t class = targets.classes ? targets.classes[r]
						      : params.positions == 1
							      ? 2
							      : (int64_t)targets.values[r];

				assert_true(targets.weights[r] == weights[class]);
			}
		}
		dataset_feed_free(feed);
		by.parts[0].count--;
		assert_int_equal(dataset_feed_new(&feed, &params, &err), ST_INVALID);
		assert_contains(err.text, rows[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_depth_gives_the_same_bytes),
		cmocka_unit_test(test_steps_and_replicas_take_the_order_s_batches),
		cmocka_unit_test(test_passes_may_end_short_and_begin_anew),
		cmocka_unit_test(test_a_feed_ends_wherever_its_thread_is),
		cmocka_unit_test(test_replicas_of_others_hold_up_nothing),
		cmocka_unit_test(test_no_memory_is_undone),
		cmocka_unit_test(test_too_great_batches_are_refused),
		cmocka_unit_test(test_rows_have_the_weights_of_their_classes),
	};

	return cmocka_run_group_tests(tests, fill_sets, NULL);
}
