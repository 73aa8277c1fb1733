/*
 * The synthetic pictures that stand in for CIFAR-10: the same bytes always, of every class.
 */
#include <string.h>
#include <zlib.h>

#include "support/dataset_sample.h"
#include "trainer/data/dataset.h"

/* Of the first 1,000 pictures of either part. */
#define TRAIN_SUM 0xaf689e56ul
#define TEST_SUM  0xc4188a6eul

static struct sample_place *place; /* of the test at work */

static int set_up(void **state)
{
	sample_place_set_up(state);
	place = *state;
	return 0;
}

static enum status open_set(int64_t limit, struct dataset *train, struct dataset *test)
{
	const struct dataset_params params = {
		.name = "cifar10", .limit = limit, .notice = sample_notice, .user = place};

	place->notices = 0;
	return dataset_open(train, test, &params, NULL);
}

/* The figures are those of every machine: only exactly rounded operations draw the pictures. */
static void test_pictures_are_the_same_bytes_on_every_machine(void **state)
{
	struct dataset train, test;

	(void)state;
	assert_int_equal(open_set(1000, &train, &test), ST_OK);
	assert_int_equal(crc32_z(0, train.bytes, 1000 * 3072), TRAIN_SUM);
	assert_int_equal(crc32_z(0, test.bytes, 1000 * 3072), TEST_SUM);
	dataset_close(&train);
	dataset_close(&test);
}

static void test_a_limited_set_is_the_beginning_of_the_whole(void **state)
{
	struct dataset whole, whole_test, few, few_test;

	(void)state;
	assert_int_equal(open_set(0, &whole, &whole_test), ST_OK);
	assert_int_equal(whole.count, 50000);
	assert_int_equal(whole_test.count, 10000);
	assert_int_equal(open_set(321, &few, &few_test), ST_OK);
	assert_int_equal(few.count, 321);
	assert_int_equal(few_test.count, 321);
	assert_memory_equal(whole.bytes, few.bytes, 321 * 3072);
	assert_memory_equal(whole_test.labels, few_test.labels, 321 * sizeof(int32_t));
	dataset_close(&whole);
	dataset_close(&whole_test);
	dataset_close(&few);
	dataset_close(&few_test);
}

static void test_every_class_comes_and_is_named(void **state)
{
	struct dataset train, test;
	int counts[10] = {0};

	(void)state;
	assert_int_equal(open_set(2000, &train, &test), ST_OK);
	assert_int_equal(train.ndim, 3);
	assert_int_equal(train.shape[0] * 100 + train.shape[1], 3232);
	assert_int_equal(train.shape[2], 3);
	assert_int_equal(train.classes, 10);
	for (int64_t i = 0; i < train.count; i++)
		counts[train.labels[i]]++;
	for (int c = 0; c < 10; c++)
		assert_in_range(counts[c], 140, 260);
	assert_string_equal(train.names[4], "triangle");
	assert_memory_not_equal(train.bytes, test.bytes, 3072);
	dataset_close(&train);
	dataset_close(&test);
}

static void test_one_line_says_that_they_are_not_real(void **state)
{
	struct dataset train, test;

	(void)state;
	assert_int_equal(open_set(10, &train, &test), ST_OK);
	assert_true(train.synthetic && test.synthetic);
	assert_int_equal(place->notices, 1);
	assert_null(strchr(place->notice, '\n'));
	assert_contains(place->notice, "synthetic pictures (made now), not the real cifar10");
	assert_contains(place->notice, "script/get-cifar10");
	dataset_close(&train);
	dataset_close(&test);
}

static void test_no_memory_is_undone(void **state)
{
	const struct dataset_params params = {.name = "cifar10", .limit = 10};

	(void)state;
	sample_no_memory(&params);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, sample_place_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_pictures_are_the_same_bytes_on_every_machine),
		TEST(test_a_limited_set_is_the_beginning_of_the_whole),
		TEST(test_every_class_comes_and_is_named),
		TEST(test_one_line_says_that_they_are_not_real),
		TEST(test_no_memory_is_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
