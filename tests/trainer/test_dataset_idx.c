/*
 * IDX files: what is read, and a message for everything that is wrong with one.
 */

#include "common/mem.h"
#include "support/dataset_sample.h"
#include "support/support.h"
#include "trainer/data/dataset_internal.h"

static const uint32_t images_dim[] = {5, 3, 2};
static const uint32_t labels_dim[] = {5};

static void refuses(const struct sample_bytes *in, int ndim, enum status status, const char *part)
{
	struct dataset_array array;
	struct err err = {0};

	assert_int_equal(dataset__idx_parse(&array, "f", in->bytes, in->length, ndim, &err),
			 status);
	assert_null(array.bytes);
	assert_contains(err.text, "f: ");
	assert_contains(err.text, part);
}

static void test_images_and_labels_are_read_plain_and_gzipped(void **state)
{
	struct sample_bytes plain, packed;

	(void)state;
	sample_idx(&plain, 3, images_dim, 251);
	sample_gzip(&packed, &plain);
	for (int i = 0; i < 2; i++) {
		const struct sample_bytes *in = i ? &packed : &plain;
		struct dataset_array array;

		assert_int_equal(dataset__idx_parse(&array, "f", in->bytes, in->length, 3, NULL),
				 ST_OK);
		assert_int_equal(array.dim[0], 5);
		assert_int_equal(array.dim[2], 2);
		assert_int_equal(array.bytes[29], 29);
		mem_free(array.bytes);
	}
}

static void test_headers_are_checked(void **state)
{
	struct sample_bytes in;

	(void)state;
	sample_idx(&in, 3, images_dim, 251);
	in.length = 3;
	refuses(&in, 3, ST_FORMAT, "is truncated");
	in.length = 9;
	refuses(&in, 3, ST_FORMAT, "is truncated within its header");
	in.length = 0;
	refuses(&in, 3, ST_FORMAT, "is truncated");

	sample_idx(&in, 1, labels_dim, 10);
	refuses(&in, 3, ST_FORMAT, "has 1 dimensions, images have 3");
	sample_idx(&in, 3, images_dim, 251);
	refuses(&in, 1, ST_FORMAT, "has 3 dimensions, labels have 1");
	in.bytes[0] = 'P';
	refuses(&in, 3, ST_FORMAT, "is not an IDX file: it begins with 50 00");
	in.bytes[0] = 0;
	in.bytes[2] = 0x0d;
	refuses(&in, 3, ST_FORMAT, "type 0x0d");
}

static void test_lengths_are_checked(void **state)
{
	struct sample_bytes plain, packed;

	(void)state;
	sample_idx(&plain, 3, images_dim, 251);
	plain.length--;
	refuses(&plain, 3, ST_FORMAT, "is truncated: 29 bytes cannot hold 30 values");
	sample_gzip(&packed, &plain);
	refuses(&packed, 3, ST_FORMAT, "is truncated: 29 of 30 values are there");
	plain.length += 2;
	refuses(&plain, 3, ST_FORMAT, "has more bytes after its 30 values");
	sample_gzip(&packed, &plain);
	refuses(&packed, 3, ST_FORMAT, "has more bytes after its 30 values");
	plain.length--;
	sample_gzip(&packed, &plain);
	packed.bytes[packed.length++] = 'x';
	refuses(&packed, 3, ST_FORMAT, "has more bytes");
}

static void test_empty_and_huge_dimensions_ask_for_no_memory(void **state)
{
	static const uint32_t huge[] = {0xffffffff, 0xffffffff, 0xffffffff};
	static const uint32_t large[] = {60000, 28, 28};
	struct sample_bytes in = {0}, packed;

	(void)state;
	sample_idx(&in, 3, (const uint32_t[]){0, 28, 28}, 251);
	refuses(&in, 3, ST_FORMAT, "is empty: dimension 0 is 0");
	for (int i = 0; i < 3; i++)
		for (int b = 0; b < 4; b++)
			in.bytes[4 + 4 * i + b] = (uint8_t)(huge[i] >> (24 - 8 * b));
	refuses(&in, 3, ST_LIMIT, "would hold more than");
	for (int i = 0; i < 3; i++)
		for (int b = 0; b < 4; b++)
			in.bytes[4 + 4 * i + b] = (uint8_t)(large[i] >> (24 - 8 * b));
	refuses(&in, 3, ST_FORMAT, "cannot hold 47040000 values");
	sample_gzip(&packed, &in);
	refuses(&packed, 3, ST_FORMAT, "cannot hold 47040000 values");
}

static void test_every_cut_of_a_gzip_file_is_refused(void **state)
{
	struct sample_bytes plain, packed;

	(void)state;
	sample_idx(&plain, 3, images_dim, 251);
	sample_gzip(&packed, &plain);
	for (size_t length = packed.length; length-- > 0;) {
		struct dataset_array array;
		struct err err = {0};

		assert_int_equal(dataset__idx_parse(&array, "f", packed.bytes, length, 3, &err),
				 ST_FORMAT);
		assert_null(array.bytes);
	}
}

static void test_every_flipped_byte_of_a_gzip_file_is_met(void **state)
{
	struct sample_bytes plain, packed;

	(void)state;
	sample_idx(&plain, 3, images_dim, 251);
	sample_gzip(&packed, &plain);
	for (size_t i = 0; i < packed.length; i++) {
		struct dataset_array array;

		packed.bytes[i] ^= 0x55;
		/* The time and the system in gzip's header may be anything. */
		if (dataset__idx_parse(&array, "f", packed.bytes, packed.length, 3, NULL) ==
		    ST_OK) {
			assert_true(i >= 4 && i <= 9);
			mem_free(array.bytes);
		}
		packed.bytes[i] ^= 0x55;
	}
}

static void test_no_memory_is_undone(void **state)
{
	struct sample_bytes plain, packed;

	(void)state;
	sample_idx(&plain, 3, images_dim, 251);
	sample_gzip(&packed, &plain);
	for (long n = 0;; n++) {
		struct dataset_array array;
		enum status status;
		bool failed;

		support_fail_alloc(n);
		status = dataset__idx_parse(&array, "f", packed.bytes, packed.length, 3, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		if (!failed) {
			assert_int_equal(status, ST_OK);
			mem_free(array.bytes);
			break;
		}
		assert_int_equal(status, ST_NOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_images_and_labels_are_read_plain_and_gzipped),
		cmocka_unit_test(test_headers_are_checked),
		cmocka_unit_test(test_lengths_are_checked),
		cmocka_unit_test(test_empty_and_huge_dimensions_ask_for_no_memory),
		cmocka_unit_test(test_every_cut_of_a_gzip_file_is_refused),
		cmocka_unit_test(test_every_flipped_byte_of_a_gzip_file_is_met),
		cmocka_unit_test(test_no_memory_is_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
