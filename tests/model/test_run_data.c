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
		cmocka_unit_test(test_what_is_no_data_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
