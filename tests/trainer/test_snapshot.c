/*
 * Snapshots: what is written is read, in any order; every cut and every changed byte is an error,
 * and so is a field of another name, size or range.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "support/support.h"
#include "trainer/data/snapshot.h"

static const char path[] = "test_snapshot.backup";

struct sample {
	int64_t number;
	double real;
	bool flag;
	float values[5];
};

static void keep(struct snapshot *snapshot, struct sample *sample)
{
	snapshot_integer(snapshot, "number", &sample->number, -3, 9);
	snapshot_prefix(snapshot, "part %d.", 1);
	snapshot_real(snapshot, "real", &sample->real);
	snapshot_flag(snapshot, "flag", &sample->flag);
	snapshot_prefix(snapshot, "%s", "");
	snapshot_field(snapshot, "values", sample->values, sizeof(sample->values));
}

/* The file's bytes, until the test ends. */
static enum status open_file(struct snapshot **out, struct err *err)
{
	static char bytes[4096];
	size_t length;
	char *all;
	enum status status = fs_read(path, sizeof(bytes), &all, &length, err);

	if (status != ST_OK)
		return status;
	memcpy(bytes, all, length);
	mem_free(all);
	return snapshot_parse(out, path, bytes, length, err);
}

static void write_sample(void)
{
	struct sample sample = {-3, 0.1, true, {1, 2, 3, 4, 5}};
	struct snapshot *snapshot;
	struct err err;

	assert_int_equal(snapshot_create(&snapshot, path, &err), ST_OK);
	assert_string_equal(snapshot_text(snapshot, "text", "words"), "words");
	keep(snapshot, &sample);
	assert_int_equal(snapshot_close(snapshot), ST_OK);
}

static void test_what_is_written_is_read(void **state)
{
	struct sample sample = {0};
	struct snapshot *snapshot;
	struct err err;

	(void)state;
	write_sample();
	assert_int_equal(open_file(&snapshot, &err), ST_OK);
	assert_true(snapshot_reads(snapshot));
	keep(snapshot, &sample);
	assert_string_equal(snapshot_text(snapshot, "text", NULL), "words");
	assert_int_equal(snapshot_close(snapshot), ST_OK);
	assert_int_equal(sample.number, -3);
	assert_true(sample.real == 0.1);
	assert_true(sample.flag);
	assert_true(sample.values[4] == 5.0f);
	unlink(path);
}

static void fails(void (*read)(struct snapshot *), const char *part)
{
	struct snapshot *snapshot;
	struct err err;

	assert_int_equal(open_file(&snapshot, &err), ST_OK);
	read(snapshot);
	assert_int_equal(snapshot_close(snapshot), ST_INVALID);
	assert_contains(err.text, path);
	assert_contains(err.text, part);
}

static void read_absent(struct snapshot *snapshot)
{
	float value;

	snapshot_field(snapshot, "value", &value, sizeof(value));
}

static void read_short(struct snapshot *snapshot)
{
	float value;

	snapshot_field(snapshot, "values", &value, sizeof(value));
}

static void read_beyond(struct snapshot *snapshot)
{
	int64_t value = 0;

	snapshot_integer(snapshot, "number", &value, 0, 9);
}

static void read_no_flag(struct snapshot *snapshot)
{
	bool value = false;

	snapshot_flag(snapshot, "number", &value);
}

static void read_no_text(struct snapshot *snapshot)
{
	snapshot_text(snapshot, "values", NULL);
}

/* What a part has of the fields, the whole has. */
static void test_parts_are_appended(void **state)
{
	struct snapshot *snapshot, *part;
	float values[3] = {7, 8, 9};
	struct err err, other;
	const void *fields, *lent;
	int64_t number = 4;
	size_t bytes;

	(void)state;
	assert_int_equal(snapshot_create_part(&part, &other), ST_OK);
	snapshot_field(part, "values", values, sizeof(values));
	bytes = 3;
	snapshot_bytes(part, "bytes", "abc", &bytes);
	fields = snapshot_part(part, &bytes);
	assert_int_equal(snapshot_create(&snapshot, path, &err), ST_OK);
	snapshot_integer(snapshot, "number", &number, 0, 9);
	snapshot_append(snapshot, fields, bytes);
	assert_int_equal(snapshot_close(snapshot), ST_OK);
	assert_int_equal(snapshot_close(part), ST_OK);
	memset(values, 0, sizeof(values));
	assert_int_equal(open_file(&snapshot, &err), ST_OK);
	assert_true(snapshot_fits(snapshot, "values", sizeof(values)));
	assert_false(snapshot_fits(snapshot, "values", 4));
	assert_false(snapshot_fits(snapshot, "none", 4));
	snapshot_field(snapshot, "values", values, sizeof(values));
	lent = snapshot_bytes(snapshot, "bytes", NULL, &bytes);
	assert_int_equal(bytes, 3);
	assert_memory_equal(lent, "abc", 3);
	assert_int_equal(snapshot_close(snapshot), ST_OK);
	assert_true(values[2] == 9.0f);
	unlink(path);
}

static void test_fields_of_another_run_are_refused(void **state)
{
	(void)state;
	write_sample();
	fails(read_absent, "has no \"value\"");
	fails(read_short, "has 20 bytes in the backup, but 4 in this run");
	fails(read_beyond, "\"number\" is -3, which must be from 0 to 9");
	fails(read_no_flag, "must be from 0 to 1");
	fails(read_no_text, "is no text");
	unlink(path);
}

static void test_every_cut_and_every_changed_byte_is_an_error(void **state)
{
	struct snapshot *snapshot;
	struct err err;
	size_t length;
	char *bytes;

	(void)state;
	write_sample();
	assert_int_equal(fs_read(path, 4096, &bytes, &length, &err), ST_OK);
	for (size_t cut = 0; cut < length; cut++) {
		char *exact = malloc(cut + 1); /* so that a sanitizer sees the end */

		assert_non_null(exact);
		memcpy(exact, bytes, cut);
		assert_int_equal(snapshot_parse(&snapshot, "f", exact, cut, &err), ST_INVALID);
		assert_null(snapshot);
		assert_contains(err.text, cut < 24 ? "is no backup" : "cut short or damaged");
		free(exact);
	}
	for (size_t at = 0; at < length; at++) {
		bytes[at] ^= 16;
		assert_int_equal(snapshot_parse(&snapshot, "f", bytes, length, &err), ST_INVALID);
		bytes[at] ^= 16;
	}
	mem_free(bytes);
	unlink(path);
}

static void test_a_file_that_failed_is_not_there(void **state)
{
	struct snapshot *snapshot;
	struct err err;

	(void)state;
	write_sample();
	assert_int_equal(snapshot_create(&snapshot, path, &err), ST_OK);
	err_set(&err, ST_FAILED, "a caller's failure");
	assert_int_equal(snapshot_close(snapshot), ST_FAILED);
	/* The one before is as it was. */
	assert_int_equal(open_file(&snapshot, &err), ST_OK);
	assert_int_equal(snapshot_close(snapshot), ST_OK);
	unlink(path);
	assert_int_equal(snapshot_create(&snapshot, "nowhere/x", &err), ST_NOTFOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_parts_are_appended),
		cmocka_unit_test(test_fields_of_another_run_are_refused),
		cmocka_unit_test(test_every_cut_and_every_changed_byte_is_an_error),
		cmocka_unit_test(test_a_file_that_failed_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
