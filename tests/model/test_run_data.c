/*
 * What is known of a run's data, written as JSON and read back.
 */
#include "model/run/run_rules.h"

#include "common/mem.h"
#include "support/support.h"

static void test_data_are_read_as_they_were_written(void **state)
{
	const struct run_data data = {.train_items = 60000,
				      .test_items = 10000,
				      .item = {.ndim = 3, .dim = {28, 28, 1}},
				      .train = {.classes = 10},
				      .test = {.classes = 10}};
	struct run_data read;
	struct str text = {0};

	(void)state;
	run_data_write(&text, &data);
	assert_int_equal(run_data_read(&read, str_peek(&text), "data", NULL), ST_OK);
	assert_int_equal(read.train_items, 60000);
	assert_int_equal(read.test_items, 10000);
	assert_int_equal(read.item.ndim, 3);
	assert_memory_equal(read.item.dim, data.item.dim, 3 * sizeof(read.item.dim[0]));
	assert_int_equal(read.train.classes, 10);
	assert_int_equal(read.test.classes, 10);
	str_free(&text);
}

static void test_several_outputs_and_weights_are_read_as_they_were_written(void **state)
{
	const struct run_data data = {
		.train_items = 8,
		.item = {.ndim = 1, .dim = {4}},
		.train = {.weights = 2,
			  .parts = {{.classes = 3}, {.classes = 0, .width = 5}},
			  .part_count = 2}};
	struct run_data read;
	struct str text = {0};

	(void)state;
	run_data_write(&text, &data);
	assert_int_equal(run_data_read(&read, str_peek(&text), "data", NULL), ST_OK);
	assert_int_equal(read.train.weights, 2);
	assert_int_equal(read.train.part_count, 2);
	assert_int_equal(read.train.parts[0].classes, 3);
	assert_int_equal(read.train.parts[1].classes, 0);
	assert_int_equal(read.train.parts[1].width, 5);
	assert_int_equal(read.test.part_count, 0);
	str_free(&text);
}

#define ITEMS "\"train_items\": 1, \"test_items\": 1, "

static void test_more_than_there_is_room_for_is_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"{" ITEMS "\"item\": [1,1,1,1,1,1,1,1,1]}", "item: has more than 8 dimensions"},
		{"{" ITEMS "\"item\": [0], \"train\": 1}", "item[0]"},
		{"{" ITEMS "\"item\": [1], \"train\": {\"classes\": 1, \"width\": 0, \"parts\": "
		 "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}",
		 "train.parts: has more than 16 entries"},
		{"{" ITEMS "\"item\": [1], \"train\": {\"classes\": 1, \"width\": 0, \"parts\": "
		 "[{\"classes\": 1}]}}",
		 "train.parts[0]: \"width\" is missing"},
	};
	struct run_data read;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(run_data_read(&read, rows[i].text, "data", &err), ST_INVALID);
		assert_contains(err.text, rows[i].says);
	}
}

static void test_what_is_no_data_is_refused(void **state)
{
	static const char *const texts[] = {"", "{", "[]", "{\"train_items\": -1}",
					    "{\"train_items\": 1, \"test_items\": 1}"};
	struct run_data read;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_not_equal(run_data_read(&read, texts[i], "data", &err), ST_OK);
		assert_contains(err.text, "data");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data_are_read_as_they_were_written),
		cmocka_unit_test(test_several_outputs_and_weights_are_read_as_they_were_written),
		cmocka_unit_test(test_more_than_there_is_room_for_is_refused),
		cmocka_unit_test(test_what_is_no_data_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
