/*
 * Rows of tensor statistics over a run, against report_sample.c.
 */
#include "support/report_sample.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/named/report_tensors.h"

static char folder[SUPPORT_PATH_SIZE];
static struct prof_db *db;

static int setup(void **state)
{
	char path[SUPPORT_PATH_SIZE + 32];

	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/run.db", folder);
	report_sample_write(path);
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	prof_db_close(db);
	support_tempdir_remove(folder);
	return 0;
}

static int64_t tensor_of(const char *key)
{
	int64_t id;

	assert_int_equal(report_tensor_find(db, "outfeed", key, &id, NULL), ST_OK);
	return id;
}

static void test_all_rows_are_read_where_there_are_few(void **state)
{
	struct report_tensor_rows rows = {0};

	(void)state;
	assert_int_equal(report_tensor_rows_read(&rows, db, tensor_of("Dense_128/kernel:0_grad"),
						 INT64_MIN, "l2", 100, NULL),
			 ST_OK);
	assert_int_equal(rows.count, 8);
	assert_int_equal(rows.looked, 16);
	assert_int_equal(rows.all, 16);
	for (int i = 0; i < rows.count; i++) {
		assert_close(rows.row[i].value, 10.0 * i, 0);
		assert_int_equal(rows.row[i].step, i);
		assert_int_equal(rows.row[i].weight_update, i / 4);
		assert_int_equal(rows.row[i].epoch, 1);
		assert_int_equal(rows.row[i].time_ns, i * 1000000);
		assert_int_equal(rows.row[i].n_bad, i == 7 ? 3 : 0);
	}
	report_tensor_rows_free(&rows);
}

static void test_no_more_rows_are_looked_at_than_asked_for(void **state)
{
	struct report_tensor_rows rows = {0};

	(void)state;
	assert_int_equal(report_tensor_rows_read(&rows, db, INT64_MIN, 0, "mean", 10, NULL), ST_OK);
	assert_int_equal(rows.looked, 10);
	assert_int_equal(rows.count, 10);
	assert_int_equal(rows.all, 16);
	assert_int_equal(rows.row[0].row_id, 1);
	assert_int_equal(rows.row[9].row_id, 16);
	report_tensor_rows_free(&rows);
}

static enum status add_range(void *user, int64_t from, int64_t to, struct err *err)
{
	int64_t *sum = user;

	(void)err;
	assert_true(from > sum[0]);
	assert_true(to > from);
	sum[0] = to - 1;
	sum[1] += to - from;
	sum[2]++;
	return ST_OK;
}

static void test_ranges_begin_and_end_with_the_rows_and_never_overlap(void **state)
{
	(void)state;
	for (int64_t last = 0; last < 3000; last += 7)
		for (int64_t most = 8; most < 700; most += 97)
			for (int64_t least = 0; least < 100; least += 33) {
				int64_t sum[3] = {0};

				assert_int_equal(
					report_ranges(last, most, least, add_range, sum, NULL),
					ST_OK);
				assert_int_equal(sum[0], last);
				assert_true(sum[1] <= most);
				assert_true(last > most || sum[1] == last);
			}
}

static void test_the_last_row_that_a_number_can_name_ends_the_ranges(void **state)
{
	int64_t sum[3] = {0};

	(void)state;
	assert_int_equal(report_ranges(INT64_MAX, 100, 10, add_range, sum, NULL), ST_OK);
	assert_int_equal(sum[0], INT64_MAX - 1);
	assert_int_equal(sum[1], 100);
}

static void test_every_column_has_rows_and_no_other(void **state)
{
	struct report_tensor_rows rows = {0};
	const char *const *columns;
	struct err err = {0};
	int count;

	(void)state;
	columns = report_tensor_columns(&count);
	for (int i = 0; i < count; i++) {
		assert_int_equal(report_tensor_rows_read(&rows, db, INT64_MIN, INT64_MIN,
							 columns[i], 100, &err),
				 ST_OK);
		assert_int_equal(rows.count, 16);
	}
	assert_int_equal(
		report_tensor_rows_read(&rows, db, INT64_MIN, INT64_MIN, "key; DROP", 9, &err),
		ST_NOTFOUND);
	assert_contains(err.text, "key; DROP");
	report_tensor_rows_free(&rows);
}

static void test_an_unknown_tensor_has_no_rows(void **state)
{
	struct report_tensor_rows rows = {0};

	(void)state;
	assert_true(tensor_of("nobody") == INT64_MIN);
	assert_int_equal(report_tensor_rows_read(&rows, db, 4711, INT64_MIN, "mean", 100, NULL),
			 ST_OK);
	assert_int_equal(rows.count, 0);
	report_tensor_rows_free(&rows);
}

static void test_no_memory_is_reported(void **state)
{
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct report_tensor_rows rows = {0};
		enum status status;

		support_fail_alloc(n);
		status = report_tensor_rows_read(&rows, db, INT64_MIN, INT64_MIN, "std", 100, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		report_tensor_rows_free(&rows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_rows_are_read_where_there_are_few),
		cmocka_unit_test(test_no_more_rows_are_looked_at_than_asked_for),
		cmocka_unit_test(test_ranges_begin_and_end_with_the_rows_and_never_overlap),
		cmocka_unit_test(test_the_last_row_that_a_number_can_name_ends_the_ranges),
		cmocka_unit_test(test_every_column_has_rows_and_no_other),
		cmocka_unit_test(test_an_unknown_tensor_has_no_rows),
		cmocka_unit_test(test_no_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
