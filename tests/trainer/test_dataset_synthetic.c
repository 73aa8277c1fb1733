/*
 * The synthetic digits: the same bytes always, cached, remade when the cache is spoiled.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "common/fs.h"
#include "support/dataset_sample.h"
#include "trainer/data/dataset_internal.h"

#define TRAIN_SUM 0xfb029140ul
#define TEST_SUM  0x6db7bfbcul

static int set_up(void **state)
{
	const struct sample_place *place;

	sample_place_set_up(state);
	place = *state;
	setenv("XDG_CACHE_HOME", place->folder, 1);
	return 0;
}

static void open_set(struct sample_place *place, int64_t limit, struct dataset *train,
		     struct dataset *test)
{
	const struct dataset_params params = {
		.name = "mnist", .limit = limit, .notice = sample_notice, .user = place};
	struct err err = {0};

	place->notices = 0;
	if (dataset_open(train, test, &params, &err) != ST_OK)
		print_error("%s\n", err.text);
	assert_non_null(train->memory);
	assert_true(train->synthetic && test->synthetic);
	assert_int_equal(place->notices, 1);
	assert_null(strchr(place->notice, '\n'));
	assert_contains(place->notice, "synthetic");
	assert_contains(place->notice, "script/get-mnist");
}

static unsigned long sum_of(const struct dataset *set)
{
	unsigned long sum = crc32_z(0, set->bytes, (size_t)set->count * 784);

	for (int64_t i = 0; i < set->count; i++) {
		uint8_t label = (uint8_t)set->labels[i];

		sum = crc32_z(sum, &label, 1);
	}
	return sum;
}

/* The figures are those of every machine: only exactly rounded operations draw the digits. */
static void test_digits_are_the_same_bytes_on_every_machine(void **state)
{
	struct dataset train, test;

	open_set(*state, 1000, &train, &test);
	assert_int_equal(train.count, 1000);
	assert_int_equal(sum_of(&train), TRAIN_SUM);
	assert_int_equal(sum_of(&test), TEST_SUM);
	dataset_close(&train);
	dataset_close(&test);
}

static void test_digits_look_like_the_real_ones_in_the_mean(void **state)
{
	struct dataset train, test;
	int counts[10] = {0};
	double ink = 0;

	open_set(*state, 2000, &train, &test);
	for (int64_t i = 0; i < train.count; i++) {
		const uint8_t *image = train.bytes + i * 784;

		counts[train.labels[i]]++;
		for (int p = 0; p < 784; p++)
			ink += image[p];
		/* Corners stay empty. */
		assert_int_equal(image[0] + image[27] + image[27 * 28] + image[783], 0);
	}
	for (int d = 0; d < 10; d++)
		assert_in_range(counts[d], 140, 260);
	ink /= (double)train.count * 784 * 255;
	assert_true(ink > 0.07 && ink < 0.2);
	dataset_close(&train);
	dataset_close(&test);
}

static void test_cache_is_written_used_and_remade_when_spoiled(void **state)
{
	struct sample_place *place = *state;
	struct dataset train, test, few, whole_test;
	char path[FS_PATH_SIZE], *bytes;
	unsigned long sum;
	size_t length;

	/* What is there is none of it. */
	assert_true(fs_path(path, "%s/ipuscope", place->folder));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(fs_path(path, "%s/ipuscope/synthetic-digits-2", place->folder));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(fs_path(path, "%s/ipuscope/synthetic-digits-2/train-images-idx3-ubyte",
			    place->folder));
	support_write_file(path, "spoiled", 7);
	open_set(place, 0, &train, &test);
	assert_int_equal(train.count, 60000);
	assert_int_equal(test.count, 10000);
	assert_contains(place->notice, "made now, kept in ");
	sum = sum_of(&train);
	dataset_close(&train);
	dataset_close(&test);

	open_set(place, 0, &train, &test);
	assert_contains(place->notice, "from ");
	assert_int_equal(sum_of(&train), sum);
	dataset_close(&train);
	dataset_close(&test);

	/* A limit takes the beginning. */
	open_set(place, 1001, &few, &test);
	open_set(place, 0, &train, &whole_test);
	assert_contains(place->notice, "from ");
	assert_int_equal(few.count, 1001);
	assert_int_equal(test.count, 1001);
	assert_memory_equal(few.bytes, train.bytes, 1001 * 784);
	assert_memory_equal(test.bytes, whole_test.bytes, 1001 * 784);
	assert_memory_equal(test.labels, whole_test.labels, 1001 * sizeof(*test.labels));
	dataset_close(&few);
	dataset_close(&test);
	dataset_close(&train);
	dataset_close(&whole_test);

	/* One changed pixel, which is image 1,275: a limit before its block does not read it. */
	bytes = support_read_file(path, &length);
	bytes[1000000] ^= 1;
	support_write_file(path, bytes, length);
	open_set(place, 1000, &train, &test);
	assert_contains(place->notice, "from ");
	dataset_close(&train);
	dataset_close(&test);
	open_set(place, 1001, &train, &test);
	assert_contains(place->notice, "(made now)");
	dataset_close(&train);
	dataset_close(&test);

	/* A cut file; a limit takes the cache where it is good, and draws where it is not. */
	support_write_file(path, bytes, length / 2);
	open_set(place, 100, &train, &test);
	assert_contains(place->notice, "(made now)");
	assert_int_equal(train.count, 100);
	dataset_close(&train);
	dataset_close(&test);
	free(bytes);
}

static void test_limited_set_is_the_beginning_of_the_whole(void **state)
{
	struct dataset few, more, test;

	open_set(*state, 700, &few, &test);
	dataset_close(&test);
	open_set(*state, 1200, &more, &test);
	assert_memory_equal(few.bytes, more.bytes, 700 * 784);
	assert_memory_equal(few.labels, more.labels, 700 * sizeof(*few.labels));
	dataset_close(&few);
	dataset_close(&more);
	dataset_close(&test);
}

static void test_unwritable_cache_is_told_and_does_no_harm(void **state)
{
	struct sample_place *place = *state;
	struct dataset train, test;
	char path[FS_PATH_SIZE];

	/* A file where the folder should be: refused even to root. */
	assert_true(fs_path(path, "%s/ipuscope", place->folder));
	support_write_file(path, "x", 1);
	open_set(place, 0, &train, &test);
	assert_contains(place->notice, "made now, not kept: ");
	assert_int_equal(train.count, 60000);
	dataset_close(&train);
	dataset_close(&test);
}

static void test_no_memory_is_undone(void **state)
{
	const struct dataset_params params = {.name = "mnist", .limit = 10};

	(void)state;
	sample_no_memory(&params);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, sample_place_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_digits_are_the_same_bytes_on_every_machine),
		TEST(test_digits_look_like_the_real_ones_in_the_mean),
		TEST(test_cache_is_written_used_and_remade_when_spoiled),
		TEST(test_limited_set_is_the_beginning_of_the_whole),
		TEST(test_unwritable_cache_is_told_and_does_no_harm),
		TEST(test_no_memory_is_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
