/*
 * Tensor statistics over a run: the list and the curves, against report_sample.c.
 */
#include "report_sample.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/named/report_tensors.h"

static char folder[SUPPORT_PATH_SIZE];
static struct prof_db *db;
static struct arena arena;

static int setup(void **state)
{
	char path[SUPPORT_PATH_SIZE + 32];

	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/run.db", folder);
	report_sample_write(path);
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	assert_int_equal(arena_init(&arena, 0), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_fini(&arena);
	prof_db_close(db);
	support_tempdir_remove(folder);
	return 0;
}

static void test_the_list_sums_rows_and_bad_numbers(void **state)
{
	struct report_tensor *tensors;
	int count;

	(void)state;
	assert_int_equal(report_tensors_list(db, &arena, &tensors, &count, NULL), ST_OK);
	assert_int_equal(count, 2);
	assert_string_equal(tensors[0].key, "Dense_128/kernel:0_grad");
	assert_string_equal(tensors[0].kind, "gradient");
	assert_string_equal(tensors[1].layer, "Dense_10");
	assert_int_equal(tensors[1].stage, 1);
	for (int i = 0; i < count; i++) {
		assert_string_equal(tensors[i].queue, "outfeed");
		assert_int_equal(tensors[i].rows, 8);
		assert_int_equal(tensors[i].n_nan, 2);
		assert_int_equal(tensors[i].n_inf, 1);
	}
}

static int64_t first_tensor(void)
{
	struct report_tensor *tensors;
	int count;

	assert_int_equal(report_tensors_list(db, &arena, &tensors, &count, NULL), ST_OK);
	assert_true(count > 0);
	return tensors[0].tensor_id;
}

static void test_a_fine_curve_has_a_point_per_row(void **state)
{
	struct report_point *points;
	int count;

	(void)state;
	assert_int_equal(
		report_tensor_curve(db, first_tensor(), "l2", 100, &arena, &points, &count, NULL),
		ST_OK);
	assert_int_equal(count, 8);
	for (int i = 0; i < count; i++) {
		assert_close(points[i].mean, 10.0 * i, 0);
		assert_close(points[i].least, 10.0 * i, 0);
		assert_close(points[i].greatest, 10.0 * i, 0);
		assert_int_equal(points[i].rows, 1);
		assert_int_equal(points[i].step, i);
		assert_int_equal(points[i].weight_update, i / 4);
		assert_int_equal(points[i].epoch, 1);
		assert_int_equal(points[i].first_row_time_ns, i * 1000000);
		assert_int_equal(points[i].n_bad, i == 7 ? 3 : 0);
	}
}

static void test_a_coarse_curve_keeps_mean_least_and_greatest(void **state)
{
	struct report_point *points;
	int count;

	(void)state;
	assert_int_equal(
		report_tensor_curve(db, first_tensor(), "mean", 2, &arena, &points, &count, NULL),
		ST_OK);
	assert_int_equal(count, 2);
	assert_close(points[0].mean, 1.5, 0);
	assert_close(points[0].least, 0, 0);
	assert_close(points[0].greatest, 3, 0);
	assert_close(points[1].mean, 5.5, 0);
	assert_int_equal(points[1].rows, 4);
	assert_int_equal(points[1].step, 4);
	assert_int_equal(points[1].n_bad, 3);
}

static void test_every_column_has_a_curve_and_no_other(void **state)
{
	const char *const *columns;
	struct report_point *points;
	struct err err = {0};
	int columns_count, count;

	(void)state;
	columns = report_tensor_columns(&columns_count);
	for (int i = 0; i < columns_count; i++) {
		assert_int_equal(report_tensor_curve(db, first_tensor(), columns[i], 3, &arena,
						     &points, &count, &err),
				 ST_OK);
		assert_int_equal(count, 3);
	}
	assert_int_equal(report_tensor_curve(db, first_tensor(), "key; DROP", 3, &arena, &points,
					     &count, &err),
			 ST_NOTFOUND);
	assert_contains(err.text, "key; DROP");
	assert_null(points);
}

static void test_an_unknown_tensor_has_no_points(void **state)
{
	struct report_point *points;
	int count = 7;

	(void)state;
	assert_int_equal(report_tensor_curve(db, 4711, "mean", 3, &arena, &points, &count, NULL),
			 ST_OK);
	assert_int_equal(count, 0);
}

static void test_no_memory_is_reported(void **state)
{
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct report_tensor *tensors;
		struct arena own;
		enum status status;
		int count;

		assert_int_equal(arena_init(&own, 0), 0);
		support_fail_alloc(n);
		status = report_tensors_list(db, &own, &tensors, &count, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* An arena may do with a smaller block. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		arena_fini(&own);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_list_sums_rows_and_bad_numbers),
		cmocka_unit_test(test_a_fine_curve_has_a_point_per_row),
		cmocka_unit_test(test_a_coarse_curve_keeps_mean_least_and_greatest),
		cmocka_unit_test(test_every_column_has_a_curve_and_no_other),
		cmocka_unit_test(test_an_unknown_tensor_has_no_points),
		cmocka_unit_test(test_no_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
