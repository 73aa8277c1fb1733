/*
 * Tables: columns by name, scales of the training part, three kinds of targets, quotes and line
 * ends; a message with the line for everything that is wrong with one; the split.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "support/dataset_sample.h"
#include "support/support.h"
#include "trainer/data/dataset_internal.h"

static struct dataset train, test;
static bool unlabelled;
static struct err err;

static enum status parse(const char *one, const char *other, const struct dataset_table *table)
{
	struct dataset_params params = {.no_test_targets = unlabelled};
	/* Of exact size, so that a sanitizer sees a step beyond. */
	char *a = malloc(strlen(one) + 1), *b = other ? malloc(strlen(other) + 1) : NULL;
	struct dataset_csv parts[2] = {{.name = "one.csv", .bytes = a, .length = strlen(one)},
				       {.name = "two.csv", .bytes = b}};
	enum status status;

	assert_non_null(a);
	a = realloc(memcpy(a, one, strlen(one)), strlen(one) ? strlen(one) : 1);
	parts[0].bytes = a;
	if (b) {
		parts[1].length = strlen(other);
		parts[1].bytes = memcpy(b, other, strlen(other));
	}
	train = test = (struct dataset){0};
	err = (struct err){0};
	if (table)
		params.table = *table;
	status = dataset__csv_parse(&train, &test, &params, parts, &err);
	free(a);
	free(b);
	return status;
}

static void close_both(void)
{
	dataset_close(&train);
	dataset_close(&test);
}

static void test_columns_are_chosen_by_name(void **state)
{
	static const char *const columns[] = {"c", "a"};
	const struct dataset_table table = {.columns = columns, .column_count = 2, .target = "b"};

	(void)state;
	assert_int_equal(parse("a,b,c,d\n1,2,3,x\r\n\n 4 , 0 ,6.5e1,y", NULL, &table), ST_OK);
	assert_int_equal(train.count, 2);
	assert_int_equal(train.shape[0], 2);
	assert_true(train.floats[0] == 3.0f && train.floats[1] == 1.0f);
	assert_true(train.floats[2] == 65.0f && train.floats[3] == 4.0f);
	assert_int_equal(train.classes, 3);
	assert_int_equal(train.labels[0], 2);
	assert_int_equal(test.count, 0);
	close_both();
}

/* A table of 4 columns and 30,000 rows, of 1.5 pieces; after it as much as @hole says. */
static void write_table(const char *path, int64_t hole)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs("a,\"b \"\"c\"\"\r\n\",w,y\r\n", file);
	for (int i = 0; i < 30000; i++)
		fprintf(file, "%d.25,\"%0*d\",%d,\"the, %s\"\r\n", i, 10 + i % 13, -i, i % 7,
			i == 29999 ? "third"
			: i % 2    ? "first"
				   : "second");
	assert_int_equal(fflush(file), 0);
	if (hole)
		assert_int_equal(ftruncate(fileno(file), hole), 0);
	fclose(file);
}

/* Fields, quotes and line ends that two pieces share; of rows beyond data.limit only the class. */
static void test_files_are_read_in_pieces(void **state)
{
	char dir[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16];
	struct dataset_params params = {.name = "csv", .path = path, .table = {.weight = "w"}};

	(void)state;
	support_tempdir(dir);
	snprintf(path, sizeof(path), "%s/t.csv", dir);
	write_table(path, 0);
	for (int limited = 0; limited < 2; limited++) {
		params.limit = limited ? 29000 : 0;
		if (dataset_open(&train, &test, &params, &err) != ST_OK)
			fail_msg("%s", err.text);
		assert_int_equal(train.count, limited ? 29000 : 30000);
		assert_int_equal(train.classes, 3);
		assert_string_equal(train.names[2], "the, third");
		for (int i = 0; i < train.count; i++) {
			assert_true(train.floats[2 * i] == (float)i + 0.25f);
			assert_true(train.floats[2 * i + 1] == (float)-i);
			assert_true(train.weights[i] == (float)(i % 7));
			assert_int_equal(train.labels[i], i == 29999 ? 2 : i % 2 ? 0 : 1);
		}
		close_both();
	}
	support_tempdir_remove(dir);
}

/* 8 TiB of such rows: that they do not fit is said when the first of them are read. */
static void test_more_than_the_machine_has_is_not_asked_for(void **state)
{
	char dir[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16];
	const struct dataset_params params = {.name = "csv", .path = path};

	(void)state;
	support_tempdir(dir);
	snprintf(path, sizeof(path), "%s/t.csv", dir);
	write_table(path, INT64_C(8) << 40);
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_LIMIT);
	assert_contains(err.text, "t.csv: its rows take about ");
	assert_contains(err.text, "and this machine has ");
	assert_contains(err.text, "data.limit the first so many rows");
	support_tempdir_remove(dir);
}

/* Other than by place: a test.csv whose columns stand otherwise; names twice and no name. */
static void test_inputs_of_tests_go_by_name(void **state)
{
	const struct dataset_table weighed = {.weight = "w"};

	(void)state;
	assert_int_equal(parse("a,,c,b\n1,2,3,0\n4,5,6,1\n", "b,c,a,\n1,30,10,20\n", NULL), ST_OK);
	assert_true(test.floats[0] == 10.0f && test.floats[1] == 20.0f && test.floats[2] == 30.0f);
	assert_int_equal(test.labels[0], 1);
	close_both();
	assert_int_equal(parse("x,y,x,x\n1,2,3,0\n", "y,x,x,x\n20,10,30,0\n", NULL), ST_OK);
	assert_true(test.floats[0] == 10.0f && test.floats[1] == 20.0f && test.floats[2] == 30.0f);
	close_both();
	assert_int_equal(parse("w,a,c,b\n1,2,3,0\n", "c,b,a\n30,0,20\n", &weighed), ST_OK);
	assert_true(test.floats[0] == 20.0f && test.floats[1] == 30.0f);
	close_both();
	unlabelled = true;
	assert_int_equal(parse("a,c,b\n1,2,x\n3,4,y\n", "c,a\n5,6\n", NULL), ST_OK);
	assert_true(test.unlabelled && test.floats[0] == 6.0f && test.floats[1] == 5.0f);
	close_both();
	unlabelled = false;
}

static void test_targets_are_classes_values_or_words(void **state)
{
	(void)state;
	assert_int_equal(parse("a,b\n1,0.5\n2,-3\n", NULL, NULL), ST_OK);
	assert_int_equal(train.classes, 0);
	assert_true(train.values[1] == -3.0f);
	close_both();
	/* Of both parts: a fraction among the tests is not cut off to a class. */
	assert_int_equal(parse("a,b\n1,5\n2,3\n", "a,b\n1,1.5\n2,-4\n", NULL), ST_OK);
	assert_true(train.classes == 0 && train.values[0] == 5.0f && train.values[1] == 3.0f);
	assert_true(test.values[0] == 1.5f && test.values[1] == -4.0f);
	close_both();
	assert_int_equal(
		parse("a,b\n1,\"x, \"\"y\"\"\"\n2,cat\n3,\"x, \"\"y\"\"\"\n", "a,b\n7,cat\n", NULL),
		ST_OK);
	assert_int_equal(train.classes, 2);
	assert_string_equal(train.names[1], "x, \"y\"");
	assert_int_equal(train.labels[0], 1);
	assert_int_equal(train.labels[1], 0);
	assert_int_equal(test.labels[0], 0);
	assert_string_equal(test.names[0], "cat");
	close_both();
}

static void test_scales_are_the_training_parts(void **state)
{
	struct dataset_table table = {.scale = DATASET_SCALE_MINMAX};

	(void)state;
	assert_int_equal(parse("a,k,b\n2,5,0\n6,5,1\n", "a,k,b\n8,6,0\n", &table), ST_OK);
	assert_true(train.floats[0] == 0.0f && train.floats[2] == 1.0f);
	assert_true(train.floats[1] == 0.0f); /* a constant column */
	assert_true(test.floats[0] == 1.5f && test.floats[1] == 1.0f);
	close_both();
	table.scale = DATASET_SCALE_STANDARD;
	assert_int_equal(parse("a,b\n2,0\n6,1\n", "a,b\n8,0\n", &table), ST_OK);
	assert_true(train.floats[0] == -1.0f && train.floats[1] == 1.0f && test.floats[0] == 2.0f);
	close_both();
}

static void test_a_column_weighs_items(void **state)
{
	const struct dataset_table table = {.target = "b", .weight = "w"};

	(void)state;
	assert_int_equal(parse("w,a,b\n0.5,1,0\n2,3,1\n", "a,b\n7,1\n", &table), ST_OK);
	assert_int_equal(train.shape[0], 1);
	assert_int_equal(train.weight_width, 1);
	assert_true(train.weights[0] == 0.5f && train.weights[1] == 2.0f);
	assert_true(train.floats[1] == 3.0f);
	assert_null(test.weights);
	close_both();
	assert_int_equal(parse("a,b\n1,0\n", NULL, &table), ST_INVALID);
	assert_contains(err.text, "one.csv: data.weight: there is no column \"w\"");
	assert_int_equal(parse("w,a,b\nx,1,0\n", NULL, &table), ST_FORMAT);
	assert_contains(err.text, "line 2: column \"w\": \"x\" is no number");
}

/* What is predicted alone needs no target: a test.csv without the column of train.csv. */
static void test_what_is_predicted_has_no_target(void **state)
{
	char path[SUPPORT_PATH_SIZE + 16];
	const struct dataset_table last = {0}, named = {.target = "b"};
	struct sample_place *place = *state;
	struct dataset_params params = {.name = "csv",
					.path = place->folder,
					.no_train = true,
					.no_test_targets = true,
					.table = named};

	unlabelled = true;
	for (int i = 0; i < 2; i++) {
		const struct dataset_table *table = i == 0 ? &last : &named;

		assert_int_equal(parse("a,c,b\n1,2,x\n3,4,y\n", "a,c\n5,6\n", table), ST_OK);
		assert_true(test.unlabelled && !train.unlabelled);
		assert_int_equal(test.shape[0], 2);
		assert_true(test.floats[1] == 6.0f);
		close_both();
		assert_int_equal(parse("a,b\n1,x\n3,y\n", "a,b\n5,y\n", table), ST_OK);
		assert_true(!test.unlabelled && test.labels[0] == 1);
		close_both();
	}
	unlabelled = false;
	assert_int_equal(parse("a,c,b\n1,2,0\n", "a,c\n5,6\n", &named), ST_INVALID);
	assert_contains(err.text, "two.csv: data.target: there is no column \"b\"");

	/* Alone: in a folder, and as a file. */
	sample_write(place, "test.csv", "a,c\n5,6\n", 8);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), i == 0 ? "%s" : "%s/test.csv", place->folder);
		params.path = path;
		assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
		assert_int_equal(train.count, 0);
		assert_int_equal(train.shape[0], 2);
		assert_true(test.unlabelled);
		assert_int_equal(test.count, 1);
		close_both();
	}
	params.table.scale = DATASET_SCALE_MINMAX;
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_INVALID);
	assert_contains(err.text, "data.scale: columns are scaled by the training part, and there");
}

static void test_what_is_wrong_is_named(void **state)
{
	static const char *const unknown[] = {"alpa"}, *const twice[] = {"alpha", "alpha"};
	const struct dataset_table no_column = {.columns = unknown, .column_count = 1};
	const struct dataset_table same = {.columns = twice, .column_count = 2};
	const struct dataset_table no_target = {.target = "gamma"};
	const struct {
		const char *one, *other;
		const struct dataset_table *table;
		const char *part;
	} rows[] = {
		{"", NULL, NULL, "names no column but the target"},
		{"a\n1\n", NULL, NULL, "names no column but the target"},
		{"a,b\n", NULL, NULL, "has no rows"},
		{"a,b\n1,2\n3\n", NULL, NULL, "line 3: has 1 fields, but the first line names 2"},
		{"a,b\n1,2,3\n", NULL, NULL, "line 2: has 3 fields"},
		{"a,b\n1,2\n,2\n", NULL, NULL, "line 3: column \"a\": \"\" is no number"},
		{"a,b\nx,2\n", NULL, NULL, "line 2: column \"a\": \"x\" is no number"},
		{"a,b\n1e39,2\n", NULL, NULL, "\"1e39\" is no number"},
		{"a,b\n1,\"2\n3\n", NULL, NULL, "line 2: a quote that begins here is not closed"},
		{"a,b\n\"1\"x,2\n", NULL, NULL, "line 2: text behind a closing quote"},
		{"alpha,b\n1,2\n", NULL, &no_column, "(did you mean \"alpha\"?)"},
		{"alpha,b\n1,2\n", NULL, &same, "\"alpha\" is there twice"},
		{"alpha,b\n1,2\n", NULL, &no_target, "data.target: there is no column \"gamma\""},
		{"a,b\n1,cat\n", "a,b\n1,dog\n", NULL, "two.csv: \"dog\" is no class"},
		{"a,b\n1,2\n", "a,b\n1,dog\n", NULL, "two.csv: the target \"dog\" is no number"},
		{"a,b\n1,2\n", "a,b\n1,1e300\n", NULL,
		 "two.csv: the target \"1e300\" is no number"},
		{"a,b\n1,1e39\n", NULL, NULL, "one.csv: the target \"1e39\" is no number"},
		{"a,b\n1,2\n", "a,c,b\n1,2,3\n", NULL, "two.csv: has 2 columns of inputs"},
		{"a,b\n1,2\n", "a,c\n1,2\n", NULL,
		 "two.csv: unlike one.csv: there is no column \"b\""},
		{"alpha,b\n1,2\n", "alpa,b\n1,2\n", NULL,
		 "one.csv: unlike two.csv: there is no column \"alpa\" in its first line (did you"},
		{"a,b\n1,2\n", "c,b\n1,2\n", NULL,
		 "two.csv: unlike one.csv: there is no column \"a\""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_not_equal(parse(rows[i].one, rows[i].other, rows[i].table), ST_OK);
		assert_null(train.memory);
		assert_null(test.memory);
		assert_contains(err.text, rows[i].part);
	}
}

static void test_the_split_is_the_last_part(void **state)
{
	struct sample_place *place = *state;
	struct dataset_params params = {
		.name = "csv", .path = place->folder, .validation_split = 0.4};
	char path[FS_PATH_SIZE + 1];

	sample_write(place, "train.csv", "a,b\n1,0\n2,1\n3,0\n4,1\n5,0\n", 24);
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_int_equal(train.count, 3);
	assert_int_equal(test.count, 2);
	assert_true(test.floats[0] == 4.0f);
	assert_int_equal(test.labels[1], 0);
	close_both();

	params.validation_split = 0.1;
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_int_equal(test.count, 1);
	close_both();
	params.validation_split = 0.9;
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_INVALID);
	assert_contains(err.text, "leaves none to train with");

	sample_write(place, "test.csv", "a,b\n1,0\n", 8);
	params.validation_split = 0.4;
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_INVALID);
	assert_contains(err.text, "has 1 items to test with already");
	assert_null(train.memory);
	params.path = NULL;
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_INVALID);
	assert_contains(err.text, "--data.path FILE.csv");
	memset(path, 'a', FS_PATH_SIZE);
	path[FS_PATH_SIZE] = '\0';
	params.path = path;
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns_are_chosen_by_name),
		cmocka_unit_test(test_files_are_read_in_pieces),
		cmocka_unit_test(test_more_than_the_machine_has_is_not_asked_for),
		cmocka_unit_test(test_inputs_of_tests_go_by_name),
		cmocka_unit_test(test_targets_are_classes_values_or_words),
		cmocka_unit_test(test_scales_are_the_training_parts),
		cmocka_unit_test(test_a_column_weighs_items),
		cmocka_unit_test_setup_teardown(test_what_is_predicted_has_no_target,
						sample_place_set_up, sample_place_tear_down),
		cmocka_unit_test(test_what_is_wrong_is_named),
		cmocka_unit_test_setup_teardown(test_the_split_is_the_last_part,
						sample_place_set_up, sample_place_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
