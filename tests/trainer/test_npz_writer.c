/*
 * Arrays written to an .npz: the same bytes however they come, read back by the readers of weights
 * and of data sets; more members than a zip archive holds; pipes; drops.
 */
#include "support/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/npz_writer.h"
#include "trainer/data/dataset_internal.h"
#include "trainer/data/npz.h"

#define COUNT 10000

struct fixture {
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16], other[SUPPORT_PATH_SIZE + 16];
	float values[COUNT];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	support_tempdir(f->folder);
	snprintf(f->path, sizeof(f->path), "%s/a.npz", f->folder);
	snprintf(f->other, sizeof(f->other), "%s/b.npz", f->folder);
	for (int i = 0; i < COUNT; i++)
		f->values[i] = (float)i / 7;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	support_tempdir_remove(f->folder);
	free(f);
	return 0;
}

static const struct npz_member member = {
	.name = "Dense/kernel:0", .type = DTYPE_FLOAT32, .ndim = 2, .dim = {100, 100}};

static void write_whole(const struct fixture *f, const char *path)
{
	struct npz_writer writer;
	enum status status = npz_writer_open(&writer, path, NULL);

	assert_int_equal(status, ST_OK);
	for (int i = 0; i < 2 && status == ST_OK; i++)
		status = npz_writer_put(&writer, &member, f->values, COUNT);
	assert_int_equal(npz_writer_close(&writer, status), ST_OK);
}

static void write_pieces(const struct fixture *f, const char *path)
{
	const char *bytes = (const char *)f->values;
	struct npz_writer writer;
	enum status status = npz_writer_open(&writer, path, NULL);

	assert_int_equal(status, ST_OK);
	for (int i = 0; i < 2 && status == ST_OK; i++) {
		status = npz_writer_begin(&writer, &member, sizeof(f->values));
		for (size_t at = 0; at < sizeof(f->values) && status == ST_OK; at += 1000)
			status = npz_writer_data(&writer, bytes + at, 1000);
		if (status == ST_OK)
			status = npz_writer_end(&writer);
	}
	assert_int_equal(npz_writer_close(&writer, status), ST_OK);
}

static void test_pieces_and_the_whole_give_the_same_bytes(void **state)
{
	const struct fixture *f = *state;
	size_t a_length, b_length;
	char *a, *b;

	write_whole(f, f->path);
	write_pieces(f, f->other);
	a = support_read_file(f->path, &a_length);
	b = support_read_file(f->other, &b_length);
	assert_int_equal(a_length, b_length);
	assert_memory_equal(a, b, a_length);
	free(a);
	free(b);
}

static void test_our_readers_read_it(void **state)
{
	const struct fixture *f = *state;
	static float values[COUNT];
	const struct npz_array *arrays;
	struct dataset_array array;
	struct err err = {0};
	struct npz *npz;
	size_t length;
	int count;
	char *bytes;

	write_pieces(f, f->path);
	assert_int_equal(npz_open(&npz, f->path, NULL), ST_OK);
	arrays = npz_arrays(npz, &count);
	assert_int_equal(count, 2);
	assert_string_equal(arrays[0].name, "Dense/kernel:0");
	assert_int_equal(arrays[1].dim[1], 100);
	assert_int_equal(npz_read(npz, 1, values, COUNT, NULL), ST_OK);
	assert_memory_equal(values, f->values, sizeof(values));
	npz_close(npz);
	/* The data sets' reader compares the checksum, too. */
	bytes = support_read_file(f->path, &length);
	if (dataset__npz_parse(&array, f->path, bytes, length, "Dense/kernel:0", &err) != ST_OK)
		fail_msg("%s", err.text);
	assert_int_equal(array.dim[0], 100);
	mem_free(array.bytes);
	free(bytes);
}

static uint32_t get_le32(const char *bytes)
{
	uint32_t value = 0;

	for (int i = 3; i >= 0; i--)
		value = value << 8 | (uint8_t)bytes[i];
	return value;
}

static void put_le32(char *bytes, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (char)(value >> 8 * i);
}

/* Values are unpacked a part at a time: how many there are is said of all parts together. */
static void test_what_a_member_lacks_is_counted(void **state)
{
	static const enum dtype types[] = {DTYPE_FLOAT16, DTYPE_FLOAT32};
	static const size_t there[] = {0, 1, 2047, 2048, 2049, 4096, 5000, 9999};
	const struct fixture *f = *state;
	static float values[COUNT];
	char *bytes, *entry, part[128];
	struct npz *npz;
	struct err err;
	size_t length;

	for (size_t t = 0; t < ARRAY_LEN(types); t++) {
		const size_t size = (size_t)dtype_bytes(types[t]);
		struct npz_member one = member;
		struct npz_writer writer;
		uint32_t packed;

		one.type = types[t];
		assert_int_equal(npz_writer_open(&writer, f->path, NULL), ST_OK);
		assert_int_equal(npz_writer_begin(&writer, &one, COUNT * size), ST_OK);
		assert_int_equal(npz_writer_data(&writer, f->values, COUNT * size), ST_OK);
		assert_int_equal(npz_writer_close(&writer, npz_writer_end(&writer)), ST_OK);
		bytes = support_read_file(f->path, &length);
		entry = memmem(bytes, length, "PK\1\2", 4); /* its sizes are at 20 and 24 */
		assert_non_null(entry);
		packed = get_le32(entry + 20);
		for (size_t i = 0; i < ARRAY_LEN(there); i++) {
			/* Half a value is none. */
			put_le32(entry + 20,
				 packed - (uint32_t)(((size_t)COUNT - there[i]) * size) + 1);
			assert_int_equal(npz_parse(&npz, "w.npz", bytes, length, NULL), ST_OK);
			assert_int_equal(npz_read(npz, 0, values, COUNT, &err), ST_FORMAT);
			snprintf(part, sizeof(part),
				 "w.npz: \"%s\": is truncated: %zu of %d values are there",
				 member.name, there[i], COUNT);
			assert_string_equal(err.text, part);
			npz_close(npz);
		}
		put_le32(entry + 20, packed + 1);
		assert_int_equal(npz_parse(&npz, "w.npz", bytes, length, NULL), ST_OK);
		assert_int_equal(npz_read(npz, 0, values, COUNT, &err), ST_FORMAT);
		assert_contains(err.text, "has more bytes after its 10000 values");
		npz_close(npz);
		free(bytes);
	}
}

static void test_more_members_than_zip_holds_make_it_zip64(void **state)
{
	const struct fixture *f = *state;
	const int members = 70000;
	struct npz_member one = {.type = DTYPE_FLOAT32};
	enum status status;
	struct npz_writer writer;
	struct stat info;
	struct npz *npz;
	struct err err;
	char name[32];

	status = npz_writer_open(&writer, f->path, NULL);
	for (int i = 0; i < members && status == ST_OK; i++) {
		snprintf(name, sizeof(name), "%d", i);
		one.name = name;
		status = npz_writer_put(&writer, &one, f->values + i % COUNT, 1);
	}
	assert_int_equal(npz_writer_close(&writer, status), ST_OK);
	assert_int_equal(stat(f->path, &info), 0);
	/* Ours refuses it in words; Python reads it, where there is one. */
	assert_int_equal(npz_open(&npz, f->path, &err), ST_UNSUPPORTED);
	assert_contains(err.text, "zip64");
	if (support_has_program("python3")) {
		struct support_result result;

		support_shell(&result,
			      "python3 -c 'import zipfile; z = zipfile.ZipFile(\"%s\"); "
			      "print(len(z.namelist()), z.testzip(), z.namelist()[69999])'",
			      f->path);
		assert_string_equal(result.out, "70000 None 69999.npy\n");
		support_result_free(&result);
	}
}

static void test_to_a_pipe_only_what_is_whole(void **state)
{
	struct npz_writer writer;
	struct err err = {0};
	enum status status;

	(void)state;
	assert_int_equal(npz_writer_open(&writer, "/dev/null", &err), ST_OK);
	status = npz_writer_put(&writer, &member, (*(struct fixture **)state)->values, COUNT);
	assert_int_equal(npz_writer_close(&writer, status), ST_OK);
	assert_int_equal(npz_writer_open(&writer, "/dev/null", &err), ST_OK);
	status = npz_writer_begin(&writer, &member, 40000);
	assert_int_equal(npz_writer_close(&writer, status), ST_INVALID);
	assert_contains(err.text, "/dev/null");
}

static void test_what_failed_leaves_nothing(void **state)
{
	const struct fixture *f = *state;
	struct support_result result;
	struct npz_writer writer;

	assert_int_equal(npz_writer_open(&writer, f->path, NULL), ST_OK);
	assert_int_equal(npz_writer_begin(&writer, &member, sizeof(f->values)), ST_OK);
	assert_int_equal(npz_writer_data(&writer, f->values, 100), ST_OK);
	assert_int_equal(npz_writer_close(&writer, ST_CLOSED), ST_CLOSED);
	support_shell(&result, "ls -A '%s'", f->folder);
	assert_string_equal(result.out, "");
	support_result_free(&result);
}

static void test_a_name_too_long_is_refused(void **state)
{
	const struct fixture *f = *state;
	struct npz_member named = member;
	struct npz_writer writer;
	struct err err = {0};
	char *name = calloc(1, NPZ_NAME_SIZE + 1);

	memset(name, 'x', NPZ_NAME_SIZE);
	named.name = name;
	assert_int_equal(npz_writer_open(&writer, f->path, &err), ST_OK);
	assert_int_equal(
		npz_writer_close(&writer, npz_writer_put(&writer, &named, f->values, COUNT)),
		ST_LIMIT);
	free(name);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_pieces_and_the_whole_give_the_same_bytes),
		CASE(test_our_readers_read_it),
		CASE(test_what_a_member_lacks_is_counted),
		CASE(test_more_members_than_zip_holds_make_it_zip64),
		CASE(test_to_a_pipe_only_what_is_whole),
		CASE(test_what_failed_leaves_nothing),
		CASE(test_a_name_too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
