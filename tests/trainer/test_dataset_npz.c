/*
 * NumPy's .npz: what is read, and a message for everything that is wrong with one.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/dataset_sample.h"
#include "support/support.h"
#include "trainer/data/dataset_internal.h"
#include "trainer/data/npz.h"

static enum status parse(const struct sample_bytes *in, const char *member,
			 struct dataset_array *array, struct err *err)
{
	*err = (struct err){0};
	return dataset__npz_parse(array, "f.npz", in->bytes, in->length, member, err);
}

static void refuses(const struct sample_bytes *in, const char *member, enum status status,
		    const char *part)
{
	struct dataset_array array;
	struct err err;

	assert_int_equal(parse(in, member, &array, &err), status);
	assert_null(array.bytes);
	assert_contains(err.text, "f.npz: ");
	assert_contains(err.text, part);
}

static void test_stored_and_deflated_arrays_are_read(void **state)
{
	static struct sample_zip zip;

	(void)state;
	for (int deflated = 0; deflated < 2; deflated++) {
		struct dataset_array array;
		struct err err;

		sample_npz(&zip, deflated);
		assert_int_equal(parse(&zip.file, "x_train", &array, &err), ST_OK);
		assert_int_equal(array.dim[0], 6);
		assert_int_equal(array.dim[1], 3);
		assert_int_equal(array.dim[2], 2);
		assert_int_equal(array.bytes[35], 35);
		mem_free(array.bytes);
		assert_int_equal(parse(&zip.file, "y_test", &array, &err), ST_OK);
		assert_int_equal(array.dim[0], 4);
		mem_free(array.bytes);
	}
}

/* Only packed bytes need zlib, whose memory would otherwise stay behind. */
static void test_a_stored_stream_allocates_nothing(void **state)
{
	static const uint8_t bytes[] = {3, 1, 2};
	struct dataset_stream stream;
	uint8_t out[sizeof(bytes)];
	struct err err = {0};

	(void)state;
	support_fail_alloc(0);
	dataset__stream_open(&stream, "f", DATASET_STORED, bytes, sizeof(bytes), &err);
	dataset__stream_read_all(&stream, out, sizeof(out), "");
	dataset__stream_close(&stream);
	assert_false(support_alloc_failed());
	support_fail_alloc(-1);
	assert_memory_equal(out, bytes, sizeof(bytes));
}

static void test_archives_are_checked(void **state)
{
	static struct sample_zip zip, copy;
	size_t end;

	(void)state;
	sample_npz(&zip, 1);
	end = zip.file.length - 22;
	refuses(&zip.file, "x_val", ST_NOTFOUND, "there is no array \"x_val\"");
	copy = zip;
	copy.file.length -= 5;
	refuses(&copy.file, "x_train", ST_FORMAT, "is truncated: the directory");
	copy.file.length = 0;
	refuses(&copy.file, "x_train", ST_FORMAT, "is not an .npz (zip) file");
	copy = zip;
	memset(copy.file.bytes + end + 16, 0xff, 4);
	refuses(&copy.file, "x_train", ST_UNSUPPORTED, "zip64");
	copy = zip;
	copy.file.bytes[end + 4] = 1;
	refuses(&copy.file, "x_train", ST_UNSUPPORTED, "several parts");
	copy = zip;
	copy.file.bytes[end + 15] = 0x7f;
	refuses(&copy.file, "x_train", ST_FORMAT, "its directory lies outside");
}

static void test_members_are_checked(void **state)
{
	static struct sample_zip zip, copy;
	size_t entry;

	(void)state;
	sample_npz(&zip, 1);
	entry = zip.file.length - 22 - zip.directory.length; /* x_test's */
	copy = zip;
	copy.file.bytes[entry + 8] = 1;
	refuses(&copy.file, "x_test", ST_UNSUPPORTED, "f.npz: x_test: is encrypted");
	copy = zip;
	copy.file.bytes[entry + 10] = 14;
	refuses(&copy.file, "x_test", ST_UNSUPPORTED, "is packed by method 14");
	copy = zip;
	memset(copy.file.bytes + entry + 20, 0xff, 4);
	refuses(&copy.file, "x_test", ST_UNSUPPORTED, "zip64 member");
	copy = zip;
	copy.file.bytes[entry + 22] = 0x10;
	refuses(&copy.file, "x_test", ST_FORMAT, "its data lies beyond the file's end");
	copy = zip;
	copy.file.bytes[entry + 44] = 0x7f;
	refuses(&copy.file, "x_test", ST_FORMAT, "its header is not where");
	copy = zip;
	copy.file.bytes[entry + 16] ^= 1;
	refuses(&copy.file, "x_test", ST_FORMAT, "its checksum does not fit");
	copy = zip;
	copy.file.bytes[entry] = 'Q';
	refuses(&copy.file, "x_test", ST_FORMAT, "entry 0 of its directory");
}

static void refuses_array(const struct sample_bytes *array, enum status status, const char *part)
{
	static struct sample_zip zip;

	zip = (struct sample_zip){0};
	sample_zip_add(&zip, "a.npy", array, 0);
	sample_zip_end(&zip);
	refuses(&zip.file, "a", status, part);
}

static void test_arrays_are_checked(void **state)
{
	struct sample_bytes in;

	(void)state;
	sample_npy(&in, "'>i8'", "False", "(3,)", 24, 10);
	refuses_array(&in, ST_UNSUPPORTED, "holds '>i8', which is not little-endian");
	sample_npy(&in, "'<U5'", "False", "(3,)", 60, 10);
	refuses_array(&in, ST_UNSUPPORTED, "holds '<U5'; bool, whole numbers");
	sample_npy(&in, "'|O'", "False", "(3,)", 24, 10);
	refuses_array(&in, ST_UNSUPPORTED, "holds '|O'");
	sample_npy(&in, "[('a', '<f4')]", "False", "(3,)", 12, 10);
	refuses_array(&in, ST_UNSUPPORTED, "records are not read");
	sample_npy(&in, "'|u1'", "True", "(3, 1)", 3, 10);
	refuses_array(&in, ST_UNSUPPORTED, "Fortran order");
	sample_npy(&in, "'|u1'", "False", "()", 1, 10);
	refuses_array(&in, ST_FORMAT, "has 0 dimensions; from 1 (items) to 5 are read");
	sample_npy(&in, "'|u1'", "False", "(3, 1, 1, 1, 1, 1)", 3, 10);
	refuses_array(&in, ST_FORMAT, "has 6 dimensions");
	sample_npy(&in, "'|u1'", "False", "(3", 3, 10);
	refuses_array(&in, ST_FORMAT, "shape is malformed");
	sample_npy(&in, "'|u1'", "False", "(-3,)", 3, 10);
	refuses_array(&in, ST_FORMAT, "shape is malformed");
	sample_npy(&in, "'|u1'", "False", "(99999999999999999999,)", 3, 10);
	refuses_array(&in, ST_FORMAT, "shape is malformed");
	sample_npy(&in, "'|u1'", "False", "(4,)", 3, 10);
	refuses_array(&in, ST_FORMAT, "is truncated: 3 bytes cannot hold 4 values");
	sample_npy(&in, "'<f8'", "False", "(4,)", 31, 10);
	refuses_array(&in, ST_FORMAT, "is truncated: 31 bytes cannot hold 4 values");
	sample_npy(&in, "'<f8'", "False", "(400000000,)", 31, 10);
	refuses_array(&in, ST_LIMIT, "would hold more than");
	sample_npy(&in, "'|u1'", "False", "(2,)", 3, 10);
	refuses_array(&in, ST_FORMAT, "more bytes after its 2 values");
	in.length = 20;
	refuses_array(&in, ST_FORMAT, "is truncated within its .npy header");
	in.bytes[6] = 3;
	refuses_array(&in, ST_UNSUPPORTED, ".npy version 3");
	in.bytes[0] = 'x';
	refuses_array(&in, ST_FORMAT, "is not an .npy array");
	sample_npy(&in, "'|u1'", "False", "(3,)", 3, 10);
	in.bytes[9] = 0x7f;
	refuses_array(&in, ST_LIMIT, "its .npy header has");
}

/* The directory has bytes that the deflated ones do not become. */
static void test_what_a_stream_lacks_is_counted(void **state)
{
	enum {
		VALUES = 1500,
		SIZE = 4
	};
	static struct sample_zip zip;
	static struct sample_bytes in;
	static float values[VALUES];
	struct npz *npz;
	uint8_t *unpacked;
	int size;
	struct err err = {0};

	(void)state;
	zip = (struct sample_zip){0};
	sample_npy(&in, "'<f4'", "False", "(1500,)", (VALUES - 7) * SIZE, 10);
	sample_zip_add(&zip, "a.npy", &in, 1);
	unpacked = zip.directory.bytes + 24;
	size = unpacked[0] + 256 * unpacked[1] + 7 * SIZE;
	unpacked[0] = (uint8_t)(size & 255);
	unpacked[1] = (uint8_t)(size >> 8);
	sample_zip_end(&zip);
	assert_int_equal(npz_parse(&npz, "w.npz", zip.file.bytes, zip.file.length, NULL), ST_OK);
	assert_int_equal(npz_read(npz, 0, values, VALUES, &err), ST_FORMAT);
	assert_contains(err.text, "is truncated: 1493 of 1500 values are there");
	npz_close(npz);
}

/* Each type's bytes, and what they are as a float and, where whole, as a number. */
static const struct type_case {
	const char *descr;
	size_t size;
	uint8_t bytes[2][8];
	double value[2];
} type_cases[] = {
	{"'|b1'", 1, {{0}, {1}}, {0, 1}},
	{"'|u1'", 1, {{255}, {7}}, {255, 7}},
	{"'|i1'", 1, {{0x80}, {0x7f}}, {-128, 127}},
	{"'<u2'", 2, {{0xff, 0xff}, {1, 2}}, {65535, 513}},
	{"'<i2'", 2, {{0x00, 0x80}, {0xff, 0xff}}, {-32768, -1}},
	{"'<u4'", 4, {{0, 0, 0, 0x80}, {5}}, {2147483648.0, 5}},
	{"'<i4'", 4, {{0, 0, 0, 0x80}, {5}}, {-2147483648.0, 5}},
	{"'<u8'", 8, {{0, 0, 0, 0, 0, 0, 0, 0x40}, {9}}, {4611686018427387904.0, 9}},
	{"'<i8'",
	 8,
	 {{0, 0, 0, 0, 0, 0, 0, 0x80}, {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
	 {-9223372036854775808.0, -2}},
	{"'<f2'", 2, {{0x01, 0x00}, {0x00, 0xc5}}, {0x1p-24, -5}},
	{"'<f2'", 2, {{0xff, 0x7b}, {0x00, 0x7c}}, {65504, INFINITY}},
	{"'<f4'", 4, {{0, 0, 0xc0, 0x3f}, {0, 0, 0x80, 0xff}}, {1.5, -INFINITY}},
	/* 1 + 2^-24 + 2^-52 is nearer to the float above 1 than to 1. */
	{"'<f8'",
	 8,
	 {{1, 0, 0, 0x10, 0, 0, 0xf0, 0x3f}, {0, 0, 0, 0, 0, 0, 0, 0x80}},
	 {0x1.000002p0, -0.0}},
};

static void test_values_of_every_type_become_floats_and_whole_numbers(void **state)
{
	(void)state;
	for (size_t c = 0; c < ARRAY_LEN(type_cases); c++) {
		const struct type_case *row = &type_cases[c];
		static struct sample_zip zip;
		struct sample_bytes in;
		struct dataset_array array;
		uint8_t values[16];
		float floats[2];
		struct err err;

		memcpy(values, row->bytes[0], row->size);
		memcpy(values + row->size, row->bytes[1], row->size);
		sample_npy_values(&in, row->descr, "(2,)", values, 2 * row->size);
		zip = (struct sample_zip){0};
		sample_zip_add(&zip, "a.npy", &in, 0);
		sample_zip_end(&zip);
		assert_int_equal(parse(&zip.file, "a", &array, &err), ST_OK);
		dataset__to_floats(floats, array.type, array.bytes, 2);
		for (int i = 0; i < 2; i++) {
			float expected = (float)row->value[i];

			assert_memory_equal(&floats[i], &expected, sizeof(expected));
			if (dataset__types[array.type].whole)
				assert_true(dataset__whole(array.type, array.bytes, (size_t)i) ==
					    (int64_t)row->value[i]);
		}
		dataset__array_free(&array);
	}
}

static void test_every_cut_is_refused(void **state)
{
	static struct sample_zip zip;
	size_t length;

	(void)state;
	sample_npz(&zip, 1);
	length = zip.file.length;
	while (length-- > 0) {
		struct dataset_array array;
		struct err err;

		zip.file.length = length;
		assert_int_not_equal(parse(&zip.file, "x_train", &array, &err), ST_OK);
		assert_null(array.bytes);
	}
}

static void test_flipped_bytes_never_do_harm(void **state)
{
	static struct sample_zip zip;

	(void)state;
	sample_npz(&zip, 1);
	for (size_t i = 0; i < zip.file.length; i++) {
		struct dataset_array array;
		struct err err;

		zip.file.bytes[i] ^= 0xff;
		if (parse(&zip.file, "x_train", &array, &err) == ST_OK)
			mem_free(array.bytes);
		zip.file.bytes[i] ^= 0xff;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stored_and_deflated_arrays_are_read),
		cmocka_unit_test(test_a_stored_stream_allocates_nothing),
		cmocka_unit_test(test_archives_are_checked),
		cmocka_unit_test(test_members_are_checked),
		cmocka_unit_test(test_arrays_are_checked),
		cmocka_unit_test(test_what_a_stream_lacks_is_counted),
		cmocka_unit_test(test_values_of_every_type_become_floats_and_whole_numbers),
		cmocka_unit_test(test_every_cut_is_refused),
		cmocka_unit_test(test_flipped_bytes_never_do_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
