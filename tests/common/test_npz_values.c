/*
 * Values written to an .npz at once, and the headers of its members, as PKWARE's APPNOTE has them.
 * What readers make of them: trainer/test_npz_writer.c.
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

/* Of great arrays, too, whose header is as long as can be. */
static void test_headers_tell_every_shape(void **state)
{
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16];

	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/a.npz", folder);
	for (int n = 0; n <= 2 * NPZ_WRITER_DIMS + 1; n++) {
		struct npz_member member = {.name = "x", .type = DTYPE_FLOAT32, .ndim = n / 2};
		char expected[512], *file, *at;
		int used = snprintf(expected, sizeof(expected),
				    "{'descr': '<f4', 'fortran_order': False, 'shape': (");
		struct npz_writer writer;
		enum status status;
		size_t length, header;

		for (int d = 0; d < member.ndim; d++) {
			member.dim[d] = n % 2 ? INT64_MAX - d : d;
			used += snprintf(expected + used, sizeof(expected) - (size_t)used, "%s%lld",
					 d > 0 ? ", " : "", (long long)member.dim[d]);
		}
		snprintf(expected + used, sizeof(expected) - (size_t)used, "%s), }",
			 member.ndim == 1 ? "," : "");
		assert_int_equal(npz_writer_open(&writer, path, NULL), ST_OK);
		status = npz_writer_put(&writer, &member, NULL, 0);
		assert_int_equal(npz_writer_close(&writer, status), ST_OK);
		file = support_read_file(path, &length);
		at = memmem(file, length, "\x93NUMPY\1\0", 8);
		assert_non_null(at);
		header = (size_t)(unsigned char)at[8] + 256 * (size_t)(unsigned char)at[9];
		/* As short as can be where each array begins at a multiple of 64. */
		assert_int_equal(header, (strlen(expected) + 1 + 10 + 63) / 64 * 64 - 10);
		assert_memory_equal(at + 10, expected, strlen(expected));
		for (size_t i = strlen(expected); i < header - 1; i++)
			assert_int_equal(at[10 + i], ' ');
		assert_int_equal(at[10 + header - 1], '\n');
		free(file);
	}
	support_tempdir_remove(folder);
}

/* What a header tells of a member: the local one before it or its entry in the directory. */
struct told {
	uint32_t version, flags, crc;
	uint64_t size, offset;
	const char *name;
	size_t name_length, length; /* of the name; of the header */
};

static uint64_t number(const char *at, int bytes)
{
	uint64_t value = 0;

	while (bytes-- > 0)
		value = value << 8 | (unsigned char)at[bytes];
	return value;
}

/* The numbers that stand in the extra field are those that 32 bits do not hold, and no others. */
static void read_header(const char *at, bool entry, struct told *told)
{
	const char *shared = at + (entry ? 6 : 4), *extra;
	size_t extra_length;

	assert_memory_equal(at, entry ? "PK\1\2" : "PK\3\4", 4);
	*told = (struct told){.version = (uint32_t)number(shared, 2),
			      .flags = (uint32_t)number(shared + 2, 2),
			      .crc = (uint32_t)number(shared + 10, 4),
			      .size = number(shared + 18, 4),
			      .offset = entry ? number(at + 42, 4) : 0,
			      .name = at + (entry ? 46 : 30),
			      .name_length = (size_t)number(shared + 22, 2)};
	assert_int_equal(number(shared + 4, 2), 0); /* stored */
	assert_int_equal(number(shared + 14, 4), told->size);
	extra_length = (size_t)number(shared + 24, 2);
	extra = told->name + told->name_length;
	told->length = (size_t)(extra - at) + extra_length;
	if (entry)
		assert_int_equal(number(at + 4, 2), told->version);
	assert_int_equal(told->version, extra_length > 0 ? 45 : 20);
	if (told->size == 0xffffffff || told->offset == 0xffffffff) {
		assert_int_equal(number(extra, 2), 1);
		assert_int_equal(number(extra + 2, 2), extra_length - 4);
		extra += 4;
		if (told->size == 0xffffffff) {
			told->size = number(extra, 8);
			assert_int_equal(number(extra + 8, 8), told->size);
			extra += 16;
		}
		if (told->offset == 0xffffffff) {
			told->offset = number(extra, 8);
			extra += 8;
		}
	}
	assert_ptr_equal(extra, at + told->length);
}

static uint32_t checksum(const char *bytes, size_t length)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < length; i++) {
		crc ^= (unsigned char)bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void test_each_member_is_where_the_directory_tells(void **state)
{
	/* U+0080 and U+0100, whose bytes are the least that are not ASCII. */
	static const char *const names[] = {"a.npy", "\302\200.npy", "z\304\200.npy", "b.json"};
	const float values[5000] = {1, 2, 3};
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16], *file, *end, *at;
	struct npz_member member = {.type = DTYPE_FLOAT32, .ndim = 1};
	enum status status = ST_OK;
	struct npz_writer writer;
	size_t length, next = 0;

	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/a.npz", folder);
	assert_int_equal(npz_writer_open(&writer, path, NULL), ST_OK);
	for (int i = 0; i < 3 && status == ST_OK; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%.*s", (int)strlen(names[i]) - 4, names[i]);
		member.name = name;
		member.dim[0] = i * 2500;
		status = npz_writer_put(&writer, &member, values, (size_t)i * 2500);
	}
	if (status == ST_OK)
		status = npz_writer_file(&writer, names[3], "{}", 2);
	assert_int_equal(npz_writer_close(&writer, status), ST_OK);
	file = support_read_file(path, &length);
	end = file + length - 22;
	assert_memory_equal(end, "PK\5\6\0\0\0\0\4\0\4\0", 12);
	at = file + number(end + 16, 4);
	for (int i = 0; i < 4; i++) {
		struct told entry, local;

		read_header(at, true, &entry);
		at += entry.length;
		assert_int_equal(entry.offset, next);
		read_header(file + next, false, &local);
		assert_int_equal(entry.name_length, strlen(names[i]));
		assert_memory_equal(entry.name, names[i], entry.name_length);
		assert_int_equal(local.name_length, strlen(names[i]));
		assert_memory_equal(local.name, names[i], local.name_length);
		assert_int_equal(entry.flags, i == 1 || i == 2 ? 0x800 : 0);
		assert_int_equal(local.flags, entry.flags);
		assert_int_equal(local.size, entry.size);
		assert_int_equal(local.crc, entry.crc);
		assert_int_equal(checksum(file + next + local.length, (size_t)local.size),
				 local.crc);
		next += local.length + (size_t)local.size;
	}
	assert_int_equal(next, number(end + 16, 4));
	assert_ptr_equal(at, end);
	assert_int_equal(number(end + 12, 4), (size_t)(at - file) - next);
	free(file);
	support_tempdir_remove(folder);
}

/* As if so much were in the file before it: nothing is written of the values themselves. */
static void test_sizes_and_places_of_any_number_are_told(void **state)
{
	static const uint64_t numbers[] = {200,         0xfffffffe, 0xffffffff,
					   0x100000000, 1ll << 40,  1ll << 61};
	const struct npz_member member = {.name = "a", .type = DTYPE_FLOAT32, .ndim = 0};
	const uint64_t header = 128;
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16];

	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/a.npz", folder);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers) - 1; k++) {
			struct told entry, local;
			struct npz_writer writer;
			size_t length;
			char *file;

			assert_int_equal(npz_writer_open(&writer, path, NULL), ST_OK);
			writer.at = numbers[k];
			assert_int_equal(npz_writer_begin(&writer, &member, numbers[i] - header),
					 ST_OK);
			read_header(writer.directory.text, true, &entry);
			assert_int_equal(entry.length, writer.directory.length);
			file = support_read_file(writer.file.temporary, &length);
			read_header(file, false, &local);
			assert_int_equal(length, local.length + header);
			assert_int_equal(entry.size, numbers[i]);
			assert_int_equal(local.size, numbers[i]);
			assert_int_equal(entry.offset, numbers[k]);
			assert_int_equal(writer.at, numbers[k] + length);
			free(file);
			assert_int_equal(npz_writer_close(&writer, ST_FAILED), ST_FAILED);
		}
	support_tempdir_remove(folder);
}

static enum status begin(const char *path, const char *name, uint64_t before, uint64_t bytes)
{
	const struct npz_member member = {.name = name, .type = DTYPE_FLOAT32, .ndim = 0};
	struct npz_writer writer;
	enum status status;
	struct err err;

	assert_int_equal(npz_writer_open(&writer, path, &err), ST_OK);
	writer.at = before;
	status = npz_writer_begin(&writer, &member, bytes);
	if (status != ST_OK)
		assert_contains(err.text, "a.npz: does not fit into a zip archive");
	npz_writer_close(&writer, ST_FAILED);
	return status;
}

static void test_what_does_not_fit_is_refused(void **state)
{
	const uint64_t most = (uint64_t)1 << 62, header = 128;
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16], name[NPZ_NAME_SIZE + 8];
	struct npz_writer writer;
	struct err err;

	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/a.npz", folder);
	assert_int_equal(begin(path, "a", 0, most - header), ST_OK);
	assert_int_equal(begin(path, "a", 0, most - header + 1), ST_LIMIT);
	assert_int_equal(begin(path, "a", 1000, most - header - 1000), ST_OK);
	assert_int_equal(begin(path, "a", 1000, most - header - 999), ST_LIMIT);
	/* The longest name of an array, and of a file. */
	memset(name, 'n', sizeof(name));
	name[NPZ_NAME_SIZE - 1] = '\0';
	assert_int_equal(begin(path, name, 0, 4), ST_OK);
	for (int longer = 0; longer < 2; longer++) {
		memset(name, 'n', sizeof(name));
		name[NPZ_NAME_SIZE + 3 + longer] = '\0';
		assert_int_equal(npz_writer_open(&writer, path, &err), ST_OK);
		assert_int_equal(npz_writer_file(&writer, name, "", 0), longer ? ST_LIMIT : ST_OK);
		npz_writer_close(&writer, ST_FAILED);
	}
	support_tempdir_remove(folder);
}

static void test_no_memory_leaves_no_file(void **state)
{
	const struct npz_member member = {
		.name = "a name that is long enough for its headers to grow several times over",
		.type = DTYPE_FLOAT32,
		.ndim = 1,
		.dim = {3}};
	const float values[] = {1, 2, 3};
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16];
	bool failed = true;

	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/a.npz", folder);
	for (long n = 0; failed; n++) {
		struct npz_writer writer;
		enum status status;
		struct err err;

		assert_int_equal(npz_writer_open(&writer, path, &err), ST_OK);
		support_fail_alloc(n);
		status = npz_writer_put(&writer, &member, values, 3);
		if (status == ST_OK)
			status = npz_writer_file(&writer, "metadata.json", "{}", 2);
		status = npz_writer_close(&writer, status);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		assert_int_equal(fs_exists(path), !failed);
		assert_true(n < 100);
	}
	support_tempdir_remove(folder);
}

/* What stands at the end of an archive of so many members, whose directory of @size bytes begins
 * at @begin: APPNOTE 4.3.14 to 4.3.16. The zip64 records are there where 16 or 32 bits hold a
 * number no more. */
static size_t expect_end(char *out, uint64_t members, uint64_t size, uint64_t begin)
{
	const bool many = members >= 0xffff, great = size >= 0xffffffff, far = begin >= 0xffffffff;
	const struct {
		uint64_t value;
		int bytes;
	} fields[] = {
		{0x06064b50, 4},
		{44, 8},
		{45, 2},
		{45, 2},
		{0, 4},
		{0, 4},
		{members, 8},
		{members, 8},
		{size, 8},
		{begin, 8},
		{0x07064b50, 4},
		{0, 4},
		{begin + size, 8},
		{1, 4},
		{0x06054b50, 4},
		{0, 2},
		{0, 2},
		{many ? 0xffff : members, 2},
		{many ? 0xffff : members, 2},
		{great ? 0xffffffff : size, 4},
		{far ? 0xffffffff : begin, 4},
		{0, 2},
	};
	size_t length = 0;

	for (size_t f = many || great || far ? 0 : 14; f < sizeof(fields) / sizeof(*fields); f++)
		for (int b = 0; b < fields[f].bytes; b++)
			out[length++] = (char)(fields[f].value >> 8 * b & 255);
	return length;
}

static void test_the_end_tells_of_any_number_of_members(void **state)
{
	static const uint64_t members[] = {0, 1, 0xfffd, 0xfffe, 0xffff, 0x10000};
	static const uint64_t begins[] = {0, 0xfffffffe, 0xffffffff, 0x100000000, 1ll << 40};
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16], expected[128];

	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/a.npz", folder);
	for (size_t m = 0; m < sizeof(members) / sizeof(*members); m++)
		for (size_t b = 0; b < sizeof(begins) / sizeof(*begins); b++) {
			const size_t wanted = expect_end(expected, members[m], 0, begins[b]);
			struct npz_writer writer;
			size_t length;
			char *file;

			assert_int_equal(npz_writer_open(&writer, path, NULL), ST_OK);
			writer.members = members[m];
			writer.at = begins[b];
			assert_int_equal(npz_writer_close(&writer, ST_OK), ST_OK);
			file = support_read_file(path, &length);
			assert_int_equal(length, wanted);
			assert_memory_equal(file, expected, wanted);
			free(file);
		}
	support_tempdir_remove(folder);
}

/* In pieces of any size; members before and after it are as they were. */
static void test_pieces_give_the_bytes_of_the_whole(void **state)
{
	static const float values[] = {1, -2.5f, 3e30f, 0, 5, 6, 7};
	const struct npz_member member = {
		.name = "x", .type = DTYPE_FLOAT32, .ndim = 1, .dim = {7}};
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16], *whole = NULL;
	size_t whole_length = 0;

	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/a.npz", folder);
	for (size_t piece = 0; piece < 4; piece++) {
		const char *at = (const char *)values;
		size_t left = sizeof(values), length;
		struct npz_writer writer;
		char *file;

		assert_int_equal(npz_writer_open(&writer, path, NULL), ST_OK);
		assert_int_equal(npz_writer_file(&writer, "before", "text", 4), ST_OK);
		if (piece == 0)
			assert_int_equal(npz_writer_put(&writer, &member, values, 7), ST_OK);
		else
			assert_int_equal(npz_writer_begin(&writer, &member, left), ST_OK);
		for (; piece > 0 && left > 0; left -= length, at += length) {
			length = left < 5 * piece ? left : 5 * piece;
			assert_int_equal(npz_writer_data(&writer, at, length), ST_OK);
		}
		if (piece > 0)
			assert_int_equal(npz_writer_end(&writer), ST_OK);
		assert_int_equal(npz_writer_file(&writer, "after", "more", 4), ST_OK);
		assert_int_equal(npz_writer_close(&writer, ST_OK), ST_OK);
		file = support_read_file(path, &length);
		if (piece > 0) {
			assert_int_equal(length, whole_length);
			assert_memory_equal(file, whole, length);
			free(file);
		} else {
			whole = file;
			whole_length = length;
		}
	}
	free(whole);
	support_tempdir_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_in_the_file_as_they_are),
		cmocka_unit_test(test_headers_tell_every_shape),
		cmocka_unit_test(test_each_member_is_where_the_directory_tells),
		cmocka_unit_test(test_sizes_and_places_of_any_number_are_told),
		cmocka_unit_test(test_what_does_not_fit_is_refused),
		cmocka_unit_test(test_no_memory_leaves_no_file),
		cmocka_unit_test(test_the_end_tells_of_any_number_of_members),
		cmocka_unit_test(test_pieces_give_the_bytes_of_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
