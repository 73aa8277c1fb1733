/*
 * Error records: cutting, control characters, prefixes; statuses and their exit codes.
 */
#include "common/err.h"

#include <string.h>

#include "common/mem.h"
#include "support/support.h"

static void test_set_records_status_and_text(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(err_set(&err, ST_IO, "open %s: %d", "a.json", 7), ST_IO);
	assert_int_equal(err.status, ST_IO);
	assert_string_equal(err.text, "open a.json: 7");
}

static void test_null_record_is_accepted(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, ST_BUSY, "x"), ST_BUSY);
	assert_int_equal(err_prefix(NULL, "x"), ST_FAILED);
	assert_int_equal(err_nomem(NULL), ST_NOMEM);
}

static void test_long_text_is_cut_between_characters(void **state)
{
	struct err err;
	char text[3 * ERR_TEXT_SIZE];

	(void)state;
	/*
	 * With two bytes a character, the limit falls into one of them for one of the two starts.
	 */
	for (int start = 0; start < 2; start++) {
		memset(text, 'x', sizeof(text));
		for (size_t i = (size_t)start; i + 2 < sizeof(text); i += 2)
			memcpy(text + i, "\xc3\xa4", 2);
		text[sizeof(text) - 1] = '\0';
		err_set(&err, ST_INVALID, "%s", text);
		assert_true(strlen(err.text) >= ERR_TEXT_SIZE - 2);
		assert_true(strlen(err.text) < ERR_TEXT_SIZE);
		assert_memory_equal(err.text, text, strlen(err.text));
		assert_true((strlen(err.text) - (size_t)start) % 2 == 0);
	}
}

static void test_control_characters_become_question_marks(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"a\nb", "a?b"},
		{"\x1b[31mred", "?[31mred"},
		{"tab\there", "tab?here"},
		{"del\x7f.", "del?."},
		{"c1 \xc2\x9b 31m", "c1 ? 31m"},
		{"\xe2\x80\xae"
		 "bidi\xe2\x80\x8bzero\xf3\xa0\x80\xa1",
		 "?bidi?zero?"},
		{"\xc3\xa4 \xe2\x82\xac", "\xc3\xa4 \xe2\x82\xac"},
		{"\xc2", "\xc2"},
		{"\xc2\xa0", "\xc2\xa0"},
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		err_set(&err, ST_INVALID, "%s", rows[i].in);
		assert_string_equal(err.text, rows[i].out);
	}
}

static void test_prefix_adds_the_place(void **state)
{
	struct err err;

	(void)state;
	err_set(&err, ST_NOTFOUND, "no such layer");
	assert_int_equal(err_prefix(&err, "%s: stage %d", "run.json", 2), ST_NOTFOUND);
	assert_string_equal(err.text, "run.json: stage 2: no such layer");
}

static void test_prefix_on_a_full_text_stays_within(void **state)
{
	char text[2 * ERR_TEXT_SIZE];
	struct err err;

	(void)state;
	memset(text, 'y', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set(&err, ST_IO, "%s", text);
	assert_int_equal(err_prefix(&err, "place"), ST_IO);
	assert_int_equal(strlen(err.text), ERR_TEXT_SIZE - 1);
	assert_memory_equal(err.text, "place: yyy", 10);
}

static void test_text_may_be_made_of_itself(void **state)
{
	struct err err;

	(void)state;
	err_set(&err, ST_IO, "inner");
	err_set(&err, ST_FAILED, "outer (%s)", err.text);
	assert_string_equal(err.text, "outer (inner)");
}

static void test_every_status_has_a_text_and_an_exit_code(void **state)
{
	static const struct {
		enum status status;
		int code;
	} rows[] = {
		{ST_OK, 0},     {ST_NOMEM, 1},   {ST_INVALID, 2}, {ST_NOTFOUND, 2},
		{ST_FORMAT, 2}, {ST_VERSION, 2}, {ST_LIMIT, 2},   {ST_UNSUPPORTED, 2},
		{ST_IO, 1},     {ST_NOSPACE, 1}, {ST_BUSY, 1},    {ST_INTERRUPTED, 1},
		{ST_CLOSED, 1}, {ST_FAILED, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(status_exit_code(rows[i].status), rows[i].code);
		assert_string_not_equal(status_text(rows[i].status), "unknown status");
	}
	assert_string_equal(status_text((enum status)99), "unknown status");
	assert_string_equal(status_text(ST_OK), "done");
}

static void test_status_values_are_pinned(void **state)
{
	(void)state;
	assert_int_equal(ST_OK, 0);
	assert_int_equal(ST_LIMIT, 7);
	assert_int_equal(ST_IO, 20);
	assert_int_equal(ST_FAILED, 25);
}

static void test_a_text_may_be_empty(void **state)
{
	struct err err = {ST_OK, "before"};

	(void)state;
	assert_int_equal(err_set(&err, ST_LIMIT, "%s", ""), ST_LIMIT);
	assert_string_equal(err.text, "");
	assert_int_equal(err_prefix(&err, "%s", ""), ST_LIMIT);
	assert_string_equal(err.text, ": ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set_records_status_and_text),
		cmocka_unit_test(test_null_record_is_accepted),
		cmocka_unit_test(test_long_text_is_cut_between_characters),
		cmocka_unit_test(test_control_characters_become_question_marks),
		cmocka_unit_test(test_prefix_adds_the_place),
		cmocka_unit_test(test_prefix_on_a_full_text_stays_within),
		cmocka_unit_test(test_text_may_be_made_of_itself),
		cmocka_unit_test(test_every_status_has_a_text_and_an_exit_code),
		cmocka_unit_test(test_status_values_are_pinned),
		cmocka_unit_test(test_a_text_may_be_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
