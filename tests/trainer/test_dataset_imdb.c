/*
 * Keras's imdb.npz: lists of a pickle as NumPy writes it, with Keras's numbers; every cut of it,
 * and whatever is more than lists of numbers, is refused.
 */
#include <string.h>

#include "common/mem.h"
#include "support/dataset_sample.h"
#include "support/support.h"
#include "trainer/data/dataset_internal.h"

/* An array of objects of protocol 3 up to its list; then the lists [7, 300], [] and [1, 70000]. */
#define NUMPY                                                                                      \
	"\x80\x03"                                                                                 \
	"cnumpy.core.multiarray\n_reconstruct\nq\0cnumpy\nndarray\nq\1K\0\x85q\2C\1bq\3\x87q\4Rq"  \
	"\5(K\1K\3\x85q\6cnumpy\ndtype\nq\7X\2\0\0\0O8q\10\x89\x88\x87q\11Rq\12(K\3X\1\0\0\0|q\13" \
	"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tq\14b\x89"
#define LISTS    "]q\15(]q\16(K\7M\x2c\1e]q\17]q\20(K\1J\x70\x11\1\0ee"
#define BYTES(s) s, sizeof(s) - 1

static struct sample_zip zip;
static struct dataset set;
static struct err err;

static enum status parse(const char *lists, size_t length, int64_t vocabulary)
{
	const struct dataset_texts texts = {.sequence_length = 4, .vocabulary_size = vocabulary};
	const int64_t labels[] = {1, 0, 1};
	struct dataset_csv file = {.name = "imdb.npz"};
	static struct sample_bytes x, y;

	zip = (struct sample_zip){0};
	x = y = (struct sample_bytes){0};
	sample_npy(&x, "'|O'", "False", "(3,)", 0, 1);
	memcpy(x.bytes + x.length, NUMPY, sizeof(NUMPY) - 1);
	memcpy(x.bytes + x.length + sizeof(NUMPY) - 1, lists, length);
	x.length += sizeof(NUMPY) - 1 + length;
	sample_npy_values(&y, "'<i8'", "(3,)", labels, sizeof(labels));
	sample_zip_add(&zip, "x_train.npy", &x, 1);
	sample_zip_add(&zip, "y_train.npy", &y, 0);
	sample_zip_end(&zip);
	file.bytes = (const char *)zip.file.bytes;
	file.length = zip.file.length;
	err = (struct err){0};
	return dataset__imdb_parse(&set, &texts, 0, &file, "x_train", "y_train", &err);
}

static void test_reviews_have_keras_numbers(void **state)
{
	const float wanted[] = {0, 1, 10, 303, 0, 0, 0, 1, 0, 1, 4, 70003};

	(void)state;
	assert_int_equal(parse(BYTES(LISTS "tq\21b."), 0), ST_OK);
	assert_int_equal(set.count, 3);
	assert_int_equal(set.shape[0], 4);
	assert_memory_equal(set.floats, wanted, sizeof(wanted));
	assert_int_equal(set.labels[2], 1);
	assert_string_equal(set.names[1], "positive");
	dataset_close(&set);
	assert_int_equal(parse(BYTES(LISTS "tq\21b."), 303), ST_OK);
	assert_true(set.floats[2] == 10.0f && set.floats[3] == 2.0f && set.floats[11] == 2.0f);
	dataset_close(&set);
}

static void test_what_is_no_list_of_numbers_is_refused(void **state)
{
	static const struct {
		const char *lists;
		size_t length;
		const char *part;
	} rows[] = {
		{BYTES("tb."), "has no lists"},
		{BYTES("](]K\1ae."), "there are 1 x_train but 3 y_train"},
		{BYTES("](](K\1J\xff\xff\xff\xff"
		       "ee."),
		 "item 0: a number that is no word's"},
		{BYTES("](](G\1\2\3\4\5\6\7\10ee."),
		 "more than lists of whole numbers (opcode 0x47)"},
		{BYTES("](]q\16h\16h\16e."), "more than lists of whole numbers (opcode 0x68)"},
		{BYTES("](](K\1\x88K\2ee."), "more than lists of whole numbers (opcode 0x88)"},
		{BYTES("](](K\1Nee."), "more than lists of whole numbers (opcode 0x4e)"},
		{BYTES("](](K\1X\1\0\0\0aee."), "more than lists of whole numbers (opcode 0x58)"},
		{BYTES("](](K\1K\2\x86"
		       "ee."),
		 "more than lists of whole numbers (opcode 0x86)"},
		{BYTES("X\xff\xff\xff\xff"), "is truncated within its lists"},
		{BYTES("cos\nsystem"), "is truncated within its lists"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_not_equal(parse(rows[i].lists, rows[i].length, 0), ST_OK);
		assert_null(set.memory);
		assert_contains(err.text, rows[i].part);
	}
	for (size_t cut = 0; cut < sizeof(LISTS "tq\21b.") - 1; cut++) {
		assert_int_not_equal(parse(LISTS "tq\21b.", cut, 0), ST_OK);
		assert_null(set.memory);
	}
}

static void test_the_file_is_found_where_keras_puts_it(void **state)
{
	struct sample_place *place = *state;
	struct dataset_params params = {.name = "imdb", .texts = {.sequence_length = 4}};
	struct dataset test;

	assert_int_equal(dataset_open(&set, &test, &params, &err), ST_NOTFOUND);
	assert_contains(err.text, "keras.datasets.imdb.load_data() fetches it");
	parse(BYTES(LISTS "tq\21b."), 0);
	dataset_close(&set);
	sample_write(place, ".keras/datasets/imdb.npz", zip.file.bytes, zip.file.length);
	assert_int_equal(dataset_open(&set, &test, &params, &err), ST_NOTFOUND);
	assert_contains(err.text, "there is no array \"x_test\"");
	assert_null(set.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reviews_have_keras_numbers),
		cmocka_unit_test(test_what_is_no_list_of_numbers_is_refused),
		cmocka_unit_test_setup_teardown(test_the_file_is_found_where_keras_puts_it,
						sample_place_set_up, sample_place_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
