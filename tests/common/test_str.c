/*
 * Growing text, suggestions, cuts and numbers.
 */
#include "common/str.h"

#include <limits.h>
#include <locale.h>
#include <string.h>

#include "common/mem.h"
#include "support/support.h"

static void test_text_grows(void **state)
{
	struct str str = {0};

	(void)state;
	assert_string_equal(str_peek(&str), "");
	for (int i = 0; i < 1000; i++) {
		str_add(&str, "ab");
		str_addf(&str, "%d", i % 10);
		str_add_bytes(&str, "xyz", 1);
	}
	assert_int_equal(str.length, 4000);
	assert_int_equal(strlen(str_peek(&str)), 4000);
	assert_memory_equal(str_peek(&str), "ab0xab1xab2x", 12);
	str_clear(&str);
	assert_string_equal(str_peek(&str), "");
	str_add(&str, "again");
	assert_string_equal(str_peek(&str), "again");
	str_free(&str);
	assert_string_equal(str_peek(&str), "");
	str_free(&str);
}

static void test_texts_of_sql_are_quoted(void **state)
{
	struct str str = {0};

	(void)state;
	str_add_sql(&str, "");
	str_add_sql(&str, "it's 'odd'");
	str_add_sql_bytes(&str, "ab'cd", 3);
	assert_string_equal(str_peek(&str), "'''it''s ''odd''''ab'''");
	str_free(&str);
}

static void test_empty_additions_are_fine(void **state)
{
	struct str str = {0};

	(void)state;
	str_add(&str, "");
	str_add_bytes(&str, NULL, 0);
	str_addf(&str, "%s", "");
	assert_string_equal(str_peek(&str), "");
	assert_false(str.failed);
	str_free(&str);
}

static void test_failed_growth_keeps_what_was_there(void **state)
{
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct str str = {0};

		support_fail_alloc(n);
		for (int i = 0; i < 40; i++) {
			str_add(&str, "abc");
			str_addf(&str, "%s", "def");
		}
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(str.failed, failed);
		assert_int_equal(strlen(str_peek(&str)), str.length);
		assert_int_equal(str.length % 3, 0);
		if (!failed)
			assert_int_equal(str.length, 240);
		str_clear(&str);
		str_add(&str, "usable");
		assert_string_equal(str_peek(&str), "usable");
		str_free(&str);
		assert_true(n < 100);
	}
}

static void test_nearest_suggests_what_was_meant(void **state)
{
	static const char *const names[] = {
		"Dense", "Conv2D",  "Flatten", "Dropout", "MaxPooling2D", "learning_rate", "epochs",
		"seed",  "--color", "a",       "lr"};
	static const struct {
		const char *word, *nearest;
	} rows[] = {
		{"Dens", "Dense"},
		{"dense", "Dense"},
		{"DENSE", "Dense"},
		{"conv2d", "Conv2D"},
		{"Conv2", "Conv2D"},
		{"epoch", "epochs"},
		{"sede", "seed"},
		{"learningrate", "learning_rate"},
		{"--colour", "--color"},
		{"maxpool2d", "MaxPooling2D"},
		{"eed", "seed"},
		{"xyzzy", NULL},
		{"", NULL},
		{"q", NULL},
		{"A", "a"},
		{"Quux2D", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *near = str_nearest(rows[i].word, names, ARRAY_LEN(names));

		if (!rows[i].nearest) {
			assert_null(near);
			continue;
		}
		if (!near)
			print_error("nothing is near %s\n", rows[i].word);
		assert_non_null(near);
		assert_string_equal(near, rows[i].nearest);
	}
	assert_null(str_nearest("Dense", NULL, 0));
}

static void test_nearest_leaves_very_long_words_alone(void **state)
{
	char word[1000];
	const char *names[] = {word, "x"};

	(void)state;
	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	assert_null(str_nearest(word, names, 2));
	assert_string_equal(str_nearest("X", names, 2), "x");
}

static void test_copy_never_cuts_a_character(void **state)
{
	static const struct {
		size_t size;
		const char *in, *out;
	} rows[] = {
		{1, "abc", ""},
		{4, "abc", "abc"},
		{3, "abc", "ab"},
		{10, "abc", "abc"},
		{2, "\xc3\xa4", ""},
		{3, "\xc3\xa4", "\xc3\xa4"},
		{4, "a\xe2\x82\xac", "a"},
		{5, "a\xe2\x82\xac", "a\xe2\x82\xac"},
		{5, "\xf0\x9f\x98\x80x", "\xf0\x9f\x98\x80"},
	};
	char out[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		str_copy(out, rows[i].size, rows[i].in);
		assert_string_equal(out, rows[i].out);
	}
	out[0] = 'k';
	str_copy(out, 0, "abc");
	assert_int_equal(out[0], 'k');
}

static void test_shorten_leaves_both_ends(void **state)
{
	static const struct {
		size_t size;
		const char *in, *out;
	} rows[] = {
		{11, "0123456789", "0123456789"},
		{10, "0123456789", "0123\u202689"},
		{9, "0123456789", "0123\u20269"},
		{5, "0123456789", "0\u2026"},
		{4, "0123456789", "\u2026"},
		{3, "0123456789", "01"},
		{12, "\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4", "\u00e4\u00e4\u00e4\u2026\u00e4"},
		{11, "\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4", "\u00e4\u00e4\u2026\u00e4"},
	};
	char out[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		str_shorten(out, rows[i].size, rows[i].in);
		assert_string_equal(out, rows[i].out);
	}
}

static void test_starts_with(void **state)
{
	(void)state;
	assert_true(str_starts_with("abc", "ab"));
	assert_true(str_starts_with("abc", ""));
	assert_false(str_starts_with("ab", "abc"));
	assert_false(str_starts_with("xbc", "a"));
}

static void test_any_part_is_enough_and_letter_case_counts(void **state)
{
	static const char *const dense_1[] = {"nothing", "Dense_1"}, *const lower[] = {"dense_1"};

	(void)state;
	assert_true(str_has_any("Dense_128/bias:0_grad", dense_1, 2));
	assert_true(str_has_any("my/Dense_1", dense_1, 2));
	assert_false(str_has_any("Dense_256/bias:0_grad", dense_1, 2));
	assert_false(str_has_any("Dense_128", dense_1, 1));
	assert_false(str_has_any("Dense_128", lower, 1));
}

static void test_no_parts_are_in_all_an_empty_list_in_none_an_empty_part_in_all(void **state)
{
	static const char *const empty[] = {""};

	(void)state;
	assert_true(str_has_any("anything", NULL, 0));
	assert_false(str_has_any("Dense_128", empty, 0));
	assert_true(str_has_any("anything", empty, 1));
	assert_true(str_has_any("", empty, 1));
}

static void test_whole_numbers(void **state)
{
	static const struct {
		const char *text;
		bool good;
		long long value;
	} rows[] = {
		{"0", true, 0},
		{"-0", true, 0},
		{"42", true, 42},
		{"+42", true, 42},
		{"-42", true, -42},
		{"010", true, 10},
		{"0x1F", true, 31},
		{"-0x10", true, -16},
		{"9223372036854775807", true, LLONG_MAX},
		{"-9223372036854775808", true, LLONG_MIN},
		{"0x7fffffffffffffff", true, LLONG_MAX},
		{"-0x8000000000000000", true, LLONG_MIN},
		{"9223372036854775808", false, 0},
		{"-9223372036854775809", false, 0},
		{"0x8000000000000000", false, 0},
		{"99999999999999999999999", false, 0},
		{"", false, 0},
		{"-", false, 0},
		{"0x", false, 0},
		{"1 ", false, 0},
		{" 1", false, 0},
		{"1.5", false, 0},
		{"1e3", false, 0},
		{"12a", false, 0},
		{"--1", false, 0},
		{"\n", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		long long value = 0;

		if (str_to_int(rows[i].text, &value) != rows[i].good)
			fail_msg("%s", rows[i].text);
		assert_true(value == rows[i].value);
	}
}

static void test_reals(void **state)
{
	static const struct {
		const char *text;
		bool good;
		double value;
	} rows[] = {
		{"0", true, 0},           {"-1.5", true, -1.5}, {"1e3", true, 1000},
		{".5", true, 0.5},        {"5.", true, 5},      {"+2", true, 2},
		{"1e-320", true, 1e-320}, {"1e999", false, 0},  {"", false, 0},
		{"nan", false, 0},        {"inf", false, 0},    {"0x10", false, 0},
		{"1,5", false, 0},        {" 1", false, 0},     {"1 ", false, 0},
		{"1.2.3", false, 0},      {"e", false, 0},      {"-", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		double value = 0;

		if (str_to_double(rows[i].text, &value) != rows[i].good)
			fail_msg("%s", rows[i].text);
		assert_true(value <= rows[i].value && value >= rows[i].value);
	}
}

static void test_a_real_has_a_point_in_any_locale(void **state)
{
	double value = 0;

	(void)state;
	/* Where the locale is not installed, this tests the plain one once more. */
	setlocale(LC_NUMERIC, "de_DE.UTF-8");
	assert_true(str_to_double("1.5", &value));
	assert_close(value, 1.5, 0);
	setlocale(LC_NUMERIC, "C");
}

/* A tab, an escape, DEL, a C1 control and a mark of direction, of which no two are alike. */
static void test_hidden_characters_are_shown_but_those_that_are_kept(void **state)
{
	static const struct {
		const char *kept, *shown;
	} rows[] = {
		{"", "a?b?c?d?e?"},
		{"\t", "a\tb?c?d?e?"},
		{"\033\177", "a?b\033c\177d?e?"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[] = "a\tb\033c\177d\302\205e\342\200\256";

		text[utf8_show(text, strlen(text), rows[i].kept)] = '\0';
		assert_string_equal(text, rows[i].shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_grows),
		cmocka_unit_test(test_texts_of_sql_are_quoted),
		cmocka_unit_test(test_empty_additions_are_fine),
		cmocka_unit_test(test_failed_growth_keeps_what_was_there),
		cmocka_unit_test(test_nearest_suggests_what_was_meant),
		cmocka_unit_test(test_nearest_leaves_very_long_words_alone),
		cmocka_unit_test(test_copy_never_cuts_a_character),
		cmocka_unit_test(test_shorten_leaves_both_ends),
		cmocka_unit_test(test_starts_with),
		cmocka_unit_test(test_any_part_is_enough_and_letter_case_counts),
		cmocka_unit_test(
			test_no_parts_are_in_all_an_empty_list_in_none_an_empty_part_in_all),
		cmocka_unit_test(test_whole_numbers),
		cmocka_unit_test(test_reals),
		cmocka_unit_test(test_a_real_has_a_point_in_any_locale),
		cmocka_unit_test(test_hidden_characters_are_shown_but_those_that_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
