/*
 * Texts: windows and what follows each token, vocabularies of characters, bytes and words, texts by
 * label with Keras's reserved numbers; a line for everything that is wrong with one.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/dataset_sample.h"
#include "support/support.h"
#include "trainer/data/dataset_internal.h"

static struct dataset train, test;
static struct err err;

static enum status parse(const char *bytes, size_t length, enum dataset_tokens tokens, int64_t each)
{
	const struct dataset_texts texts = {.tokens = tokens, .sequence_length = each};
	/* Of exact size, so that a sanitizer sees a step beyond. */
	char *copy = malloc(length + 1);
	const struct dataset_csv text = {.name = "a.txt", .bytes = copy, .length = length};
	enum status status;

	assert_non_null(copy);
	memcpy(copy, bytes, length);
	copy[length] = '\0';
	train = (struct dataset){0};
	err = (struct err){0};
	status = dataset__text_parse(&train, &texts, 0, &text, &err);
	free(copy);
	return status;
}

static void assert_numbers(const float *numbers, const char *wanted)
{
	for (; *wanted; wanted++, numbers++)
		assert_true(*numbers == (float)(*wanted - '0'));
}

static void test_windows_have_what_follows_each_character(void **state)
{
	(void)state;
	/* In the order of their code points: space, a, b, c, e with an accent. */
	assert_int_equal(parse("cab \xc3\xa9"
			       "a bc",
			       10, DATASET_CHARACTERS, 3),
			 ST_OK);
	assert_int_equal(train.count, 2);
	assert_int_equal(train.ndim, 1);
	assert_int_equal(train.shape[0], 3);
	assert_int_equal(train.width, 3);
	assert_int_equal(train.classes, 5);
	assert_numbers(train.floats, "312041");
	assert_numbers(train.values, "120410");
	assert_ptr_equal(train.values, train.floats + 1); /* not stored twice */
	assert_string_equal(train.names[4], "\xc3\xa9");
	dataset_close(&train);
}

static void test_bytes_are_their_own_numbers(void **state)
{
	(void)state;
	assert_int_equal(parse("\xff\x01z", 3, DATASET_BYTES, 2), ST_OK);
	assert_int_equal(train.classes, 256);
	assert_true(train.floats[0] == 255.0f && train.floats[1] == 1.0f);
	assert_true(train.values[0] == 1.0f && train.values[1] == 122.0f);
	assert_string_equal(train.names[255], "\xff");
	dataset_close(&train);
}

static void test_what_is_wrong_is_named(void **state)
{
	static const struct {
		const char *text;
		size_t length;
		enum dataset_tokens tokens;
		const char *part;
	} rows[] = {
		{"", 0, DATASET_CHARACTERS, "has 0 characters, but a window takes 3"},
		{"abc", 3, DATASET_BYTES, "has 3 bytes, but a window takes 3 and the one behind"},
		{"ab\0cde", 6, DATASET_BYTES, "is no text: it holds a 0 byte"},
		{"ab\ncd\xff", 6, DATASET_CHARACTERS,
		 "line 2: the byte 0xff is no character of UTF-8: data.tokens bytes"},
		{"abcde\xc3", 6, DATASET_CHARACTERS, "line 1: the byte 0xc3"},
		{"a b c d", 7, DATASET_WORDS, "words are of a folder of texts by label"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_not_equal(parse(rows[i].text, rows[i].length, rows[i].tokens, 3), ST_OK);
		assert_null(train.memory);
		assert_contains(err.text, rows[i].part);
	}
}

static void write_text(const struct sample_place *place, const char *name, const char *text)
{
	sample_write(place, name, text, strlen(text));
}

static void test_the_end_of_a_text_validates(void **state)
{
	struct sample_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 8];
	const struct dataset_params params = {.name = "text",
					      .path = path,
					      .validation_split = 0.4,
					      .texts = {.sequence_length = 2}};

	snprintf(path, sizeof(path), "%s/a.txt", place->folder);
	write_text(place, "a.txt", "abcdefghijk");
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_int_equal(train.count, 3);
	assert_int_equal(test.count, 2);
	assert_numbers(test.floats, "6789");
	assert_int_equal(test.classes, 11);
	dataset_close(&train);
	dataset_close(&test);
}

/* Ties of frequency are by bytes; an item is cut and filled at its beginning. */
static void test_labelled_texts_are_like_imdb(void **state)
{
	struct sample_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 16];
	struct dataset_params params = {.name = "text",
					.path = place->folder,
					.texts = {.tokens = DATASET_WORDS, .sequence_length = 5}};

	write_text(place, "train/pos/1.txt", "Good, GOOD film!");
	write_text(place, "train/pos/2.txt", "it's  good");
	write_text(place, "train/pos/notes", "no text");
	write_text(place, "train/neg/1.txt", "a bad film (very bad: a, b, c)");
	write_text(place, "test/neg/1.txt", "new bad");
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_int_equal(train.count, 3);
	assert_int_equal(train.classes, 2);
	assert_string_equal(train.names[0], "neg");
	/* good 3; a, bad, film 2; b, c, its, very 1. The labels' items are mixed. */
	assert_int_equal(train.labels[0], 1);
	assert_int_equal(train.labels[1], 0);
	assert_int_equal(train.labels[2], 1);
	assert_numbers(train.floats, "01336");
	assert_true(train.floats[5] == 10.0f && train.floats[6] == 5.0f && train.floats[9] == 8.0f);
	assert_int_equal(test.count, 1);
	assert_numbers(test.floats, "00125");
	dataset_close(&train);
	dataset_close(&test);

	params.texts.vocabulary_size = 5;
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_numbers(train.floats, "01332");
	dataset_close(&train);
	dataset_close(&test);

	params.no_train = params.no_test_targets = true;
	write_text(place, "more/train/a/1.txt", "good bad bad");
	write_text(place, "more/test/2.txt", "bad new");
	write_text(place, "more/test/1.txt", "good");
	snprintf(path, sizeof(path), "%s/more", place->folder);
	params.path = path;
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_true(test.unlabelled);
	assert_int_equal(test.count, 2);
	assert_numbers(test.floats, "0001400132");
	dataset_close(&train);
	dataset_close(&test);
	snprintf(path, sizeof(path), "%s/more/test", place->folder);
	assert_int_not_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_contains(err.text, "there are no texts to train with, which number the tokens");
	params = (struct dataset_params){
		.name = "text", .path = place->folder, .texts = params.texts};

	write_text(place, "test/other/1.txt", "x");
	assert_int_not_equal(dataset_open(&train, &test, &params, &err), ST_OK);
	assert_contains(err.text, "test/other: is no label of the training part");
	assert_null(train.memory);
}

static void test_folders_without_texts_are_named(void **state)
{
	struct sample_place *place = *state;
	struct dataset_params params = {
		.name = "text", .path = place->folder, .texts = {.sequence_length = 5}};

	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_NOTFOUND);
	assert_contains(err.text, "has no files LABEL/*.txt");
	write_text(place, "a/b.txt", "x\n\xfe");
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_FORMAT);
	assert_contains(err.text, "a/b.txt: line 2: the byte 0xfe");
	params.path = NULL;
	assert_int_equal(dataset_open(&train, &test, &params, &err), ST_INVALID);
	assert_contains(err.text, "--data.path FILE.txt");
}

static void test_no_memory_leaves_nothing(void **state)
{
	struct sample_place *place = *state;
	const struct dataset_params params = {
		.name = "text",
		.path = place->folder,
		.texts = {.tokens = DATASET_WORDS, .sequence_length = 4}};

	write_text(place, "train/a/1.txt", "one two three");
	write_text(place, "train/b/1.txt", "two four");
	write_text(place, "test/b/1.txt", "five");
	sample_no_memory(&params);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows_have_what_follows_each_character),
		cmocka_unit_test(test_bytes_are_their_own_numbers),
		cmocka_unit_test(test_what_is_wrong_is_named),
		cmocka_unit_test_setup_teardown(test_the_end_of_a_text_validates,
						sample_place_set_up, sample_place_tear_down),
		cmocka_unit_test_setup_teardown(test_labelled_texts_are_like_imdb,
						sample_place_set_up, sample_place_tear_down),
		cmocka_unit_test_setup_teardown(test_folders_without_texts_are_named,
						sample_place_set_up, sample_place_tear_down),
		cmocka_unit_test_setup_teardown(test_no_memory_leaves_nothing, sample_place_set_up,
						sample_place_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
