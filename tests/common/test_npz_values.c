/*
 * Values written to an .npz at once. What readers make of them: trainer/test_npz_writer.c.
 */
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/npz_writer.h"

#define COUNT 10000

static void test_values_are_in_the_file_as_they_are(void **state)
{
	static float values[COUNT];
	const struct npz_member member = {
		.name = "kernel", .type = DTYPE_FLOAT32, .ndim = 1, .dim = {COUNT}};
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16];
	struct npz_writer writer;
	enum status status;
	size_t length;
	char *file;

	(void)state;
	for (int i = 0; i < COUNT; i++)
		values[i] = (float)i / 7;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/a.npz", folder);
	assert_int_equal(npz_writer_open(&writer, path, NULL), ST_OK);
	status = npz_writer_put(&writer, &member, values, COUNT);
	assert_int_equal(npz_writer_close(&writer, status), ST_OK);
	file = support_read_file(path, &length);
	assert_non_null(memmem(file, length, values, sizeof(values)));
	/* Both headers say that a reader of version 2.0 is enough: 4.5 is for great sizes. */
	assert_memory_equal(file, "PK\3\4\24\0", 6);
	assert_non_null(memmem(file, length, "PK\1\2\24\0\24\0", 8));
	free(file);
	support_tempdir_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_in_the_file_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
