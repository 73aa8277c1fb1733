/*
 * The tests' own tools: they must be able to fail, and must clean up.
 */
#include "support/support.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"

static void test_closeness_bites(void **state)
{
	static const struct {
		double a, b, tol;
		bool close;
	} rows[] = {
		{1, 1, 0, true},
		{1, 1.001, 0.01, true},
		{1, 1.1, 0.01, false},
		{0, 0, 0, true},
		{0, 1e-20, 0.01, false},
		{-1, 1, 0.5, false},
		{NAN, NAN, 0, true},
		{NAN, 1, 1, false},
		{1, NAN, 1, false},
		{INFINITY, INFINITY, 0, true},
		{INFINITY, -INFINITY, 1, false},
		{INFINITY, 1, 1, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(support_is_close(rows[i].a, rows[i].b, rows[i].tol),
				 rows[i].close);
}

static void test_temporary_folder_goes_with_its_contents(void **state)
{
	char dir[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 8];
	size_t length;
	char *text;

	(void)state;
	support_tempdir(dir);
	snprintf(path, sizeof(path), "%s/file", dir);
	support_write_file(path, "a\0b", 3);
	text = support_read_file(path, &length);
	assert_int_equal(length, 3);
	assert_memory_equal(text, "a\0b", 4);
	free(text);
	support_tempdir_remove(dir);
	assert_int_equal(access(dir, F_OK), -1);
}

static void test_exactly_the_nth_allocation_fails(void **state)
{
	(void)state;
	for (long n = 0; n < 4; n++) {
		support_fail_alloc(n);
		for (long i = 0; i < 4; i++) {
			void *p = i % 2 ? mem_aligned(1, 8) : mem_alloc(8);

			assert_true((!p) == (i == n));
			assert_int_equal(support_alloc_failed(), i >= n);
			mem_free(p);
		}
	}
	support_fail_alloc(-1);
	mem_free(mem_alloc(1));
}

static void test_commands_are_run_and_heard(void **state)
{
	const char *cat[] = {"cat", NULL}, *none[] = {"/nonexistent/program", NULL};
	struct support_result result;

	(void)state;
	support_shell(&result, "echo out; echo err >&2; exit %d", 3);
	assert_int_equal(result.exit_code, 3);
	assert_string_equal(result.out, "out\n");
	assert_string_equal(result.err, "err\n");
	support_result_free(&result);

	support_run(&result, cat, "through");
	assert_int_equal(result.exit_code, 0);
	assert_string_equal(result.out, "through");
	support_result_free(&result);

	support_run(&result, none, NULL);
	assert_int_equal(result.exit_code, 127);
	support_result_free(&result);

	support_shell(&result, "kill -TERM $$");
	assert_int_equal(result.exit_code, 128 + SIGTERM);
	support_result_free(&result);

	support_shell(&result, "i=0; while [ $i -lt 3000 ]; do echo 0123456789; i=$((i+1)); done");
	assert_int_equal(strlen(result.out), 33000);
	support_result_free(&result);
}

static void test_programs_are_looked_for(void **state)
{
	(void)state;
	assert_true(support_has_program("sh"));
	assert_false(support_has_program("no-such-program-here"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closeness_bites),
		cmocka_unit_test(test_temporary_folder_goes_with_its_contents),
		cmocka_unit_test(test_exactly_the_nth_allocation_fails),
		cmocka_unit_test(test_commands_are_run_and_heard),
		cmocka_unit_test(test_programs_are_looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
