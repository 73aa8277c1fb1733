/*
 * What is known of a run's data, written as JSON and read back, and which of it is which output's.
 */
#include "model/run/run_rules.h"

#include <string.h>

#include "common/mem.h"
#include "support/run_sample.h"
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

#define OUTPUT(name, units)                                                                        \
	", {\"class_name\": \"Dense\", \"config\": {\"name\": \"" name "\", \"units\": " units     \
	"}, \"inbound_nodes\": [[[\"x\", 0, 0, {}]]]}"
#define OUTPUTS OUTPUT("a", "3") OUTPUT("b", "5") OUTPUT("c", "2")

/* Targets lie in the order of data.outputs: 5 numbers of b, a class of a, 2 numbers of c. */
static void test_outputs_have_their_targets_one_after_another(void **state)
{
	static const char text[] =
		"{\"model\": {\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", "
		"\"layers\": [{\"class_name\": \"InputLayer\", \"config\": {\"name\": \"x\", "
		"\"batch_input_shape\": [null, 3]}, \"inbound_nodes\": []}" OUTPUTS
		"], \"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"a\", 0, 0], "
		"[\"b\", 0, 0], [\"c\", 0, 0]]}}, "
		"\"compile\": {\"loss\": [\"sparse_categorical_crossentropy\", \"mse\", \"mse\"]}, "
		"\"data\": {\"outputs\": [\"b\", \"a\", \"c\"]}}";
	const struct target_kind kind = {
		.width = 8, .parts = {{.width = 5}, {.classes = 3}, {.width = 2}}, .part_count = 3};
	struct run_file *run = run_sample_of(text);
	struct model *model = run_sample_model_of(run, NULL);
	struct loss_list losses;
	struct metric_list metrics;
	struct err err = {0};

	(void)state;
	assert_int_equal(run_measure(&losses, &metrics, run, "compile", model, &kind, &err), ST_OK);
	assert_int_equal(losses.count, 3);
	assert_int_equal(losses.items[0].first, 5);
	assert_int_equal(losses.items[0].targets.classes, 3);
	assert_int_equal(losses.items[1].first, 0);
	assert_int_equal(losses.items[1].targets.width, 5);
	assert_int_equal(losses.items[2].first, 6);
	assert_int_equal(losses.items[2].targets.width, 2);
	metric_list_free(&metrics);
	model_free(model);
	run_file_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data_are_read_as_they_were_written),
		cmocka_unit_test(test_several_outputs_and_weights_are_read_as_they_were_written),
		cmocka_unit_test(test_more_than_there_is_room_for_is_refused),
		cmocka_unit_test(test_what_is_no_data_is_refused),
		cmocka_unit_test(test_outputs_have_their_targets_one_after_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
