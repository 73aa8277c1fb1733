/*
 * The scanner of imported traces: values that end anywhere, times to the nanosecond, texts that are
 * wrong, hostile nesting and sizes.
 */
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/import/report_import_json.h"

/* The text with the padding that readers want, in a block of its own; free it. */
static char *padded(const char *text, size_t length)
{
	char *copy = calloc(1, length + IMPORT_PADDING);

	assert_non_null(copy);
	memcpy(copy, text, length);
	return copy;
}

static struct import_token token_of(const char *text, enum import_kind kind)
{
	return (struct import_token){.at = text,
				     .length = strlen(text),
				     .kind = kind,
				     .escaped = strchr(text, '\\') != NULL};
}

static void times_are_exact(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} cases[] = {
		{"1720000000123456.789", 1720000000123456789},
		{"0", 0},
		{"-0.001", -1},
		{"0.0004", 0},
		{"0.0005", 1},
		{"0.00049999999999999999999", 0},
		{"12.3456", 12346},
		{"9223372036854775.807", INT64_MAX},
		{"1e3", 1000000},
		{"1.5E-3", 2},
		{"1.4E-3", 1},
		{"123456789e-6", 123457},
		{"00012.5", 12500},
		{"+7", 7000},
		{".5", 500},
		{"5.", 5000},
		{"0e999999999999", 0},
		{"1e-999999999999", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct import_token number = token_of(cases[i].text, IMPORT_NUMBER);
		struct import_token text = token_of(cases[i].text, IMPORT_TEXT);
		int64_t ns;

		assert_int_equal(report__import_time(&number, &ns), IMPORT_TIME_GOOD);
		assert_int_equal(ns, cases[i].ns);
		assert_int_equal(report__import_time(&text, &ns), IMPORT_TIME_GOOD);
		assert_int_equal(ns, cases[i].ns);
	}
}

static void what_is_no_time_is_told(void **state)
{
	static const char *const nothing[] = {"NaN",   "Infinity", "-", "1e",
					      "1.2.3", "1x",       "",  "0x10"};
	static const char *const range[] = {"1e300", "9223372036854775.808", "-1e17",
					    "99999999999999999999999999", "1e999999999999"};
	const struct import_token absent = {0};
	int64_t ns;

	(void)state;
	assert_int_equal(report__import_time(&absent, &ns), IMPORT_TIME_NONE);
	for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
		struct import_token token = token_of(nothing[i], IMPORT_NUMBER);

		assert_int_equal(report__import_time(&token, &ns), IMPORT_TIME_NONE);
	}
	for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++) {
		struct import_token token = token_of(range[i], IMPORT_NUMBER);

		assert_int_equal(report__import_time(&token, &ns), IMPORT_TIME_RANGE);
	}
}

static void numbers_are_integers_where_they_can(void **state)
{
	static const struct {
		const char *text;
		bool is_int;
		int64_t i;
		double r;
	} cases[] = {
		{"0", true, 0, 0},
		{"-12", true, -12, 0},
		{"9223372036854775807", true, INT64_MAX, 0},
		{"9223372036854775808", false, 0, 9223372036854775808.0},
		{"1.0", false, 0, 1.0},
		{"0.1", false, 0, 0.1},
		{"-2.5e-3", false, 0, -2.5e-3},
		{"1e400", false, 0, INFINITY},
		{"123456789012345678901234567890", false, 0, 123456789012345678901234567890.0},
		{"3.141592653589793238462643", false, 0, 3.141592653589793238462643},
		{"5e-324", false, 0, 5e-324},
		{"Infinity", false, 0, INFINITY},
		{"-Infinity", false, 0, -INFINITY},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct import_token token = token_of(cases[i].text, IMPORT_NUMBER);
		bool is_int;
		int64_t integer;
		double real;

		assert_true(report__import_number(&token, &is_int, &integer, &real));
		assert_int_equal(is_int, cases[i].is_int);
		if (is_int)
			assert_int_equal(integer, cases[i].i);
		else
			assert_true(real == cases[i].r);
	}
}

/* At every length but the whole the reader asks for more, and never looks beyond. */
static void a_value_cut_anywhere_asks_for_more(void **state)
{
	static const char *const values[] = {
		"{\"a\": [1, {\"b\": \"x\\\"y\"}], \"c\": null} ",
		"\"text with \\\\ and \\\" and more than sixteen bytes\" ",
		"[[[[[]]]], \"]\", -1.5e3] ",
		"123456.789 ",
		"true ",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		size_t length = strlen(values[i]);

		for (size_t cut = 0; cut <= length; cut++) {
			char *text = padded(values[i], cut);
			struct import_reader reader = {.at = text, .end = text + cut};
			struct import_token token;
			bool whole = report__import_value(&reader, &token);

			assert_null(reader.why);
			assert_int_equal(whole, cut >= length - 1 && (cut == length || i < 3));
			assert_int_equal(whole, !reader.more);
			free(text);
		}
	}
}

static const char *why_of(const char *value)
{
	char *text = padded(value, strlen(value));
	struct import_reader reader = {.at = text, .end = text + strlen(value)};
	struct import_token token;
	bool good = report__import_value(&reader, &token);

	free(text);
	assert_false(good);
	assert_false(reader.more);
	return reader.why;
}

static void wrong_values_say_why(void **state)
{
	char deep[3000];

	(void)state;
	assert_string_equal(why_of("[1}"), "the wrong bracket closes");
	assert_string_equal(why_of("{\"a\":[}]"), "the wrong bracket closes");
	assert_string_equal(why_of("hello "), "a word that is no value");
	assert_string_equal(why_of(", "), "a value is expected");
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = 0;
	assert_string_equal(why_of(deep), "brackets are nested too deeply");
}

static void members_come_one_by_one(void **state)
{
	static const char object[] = "{ \"a\" : 1 ,, \"b\":[2],\"\":\"x\", }";
	char *text = padded(object, sizeof(object) - 1);
	struct import_reader reader = {.at = text + 1, .end = text + sizeof(object) - 1};
	struct import_token key, value;
	char keys[16] = "";

	(void)state;
	while (report__import_member(&reader, &key)) {
		assert_true(report__import_value(&reader, &value));
		strncat(keys, key.at, key.length);
		strcat(keys, ";");
	}
	assert_string_equal(keys, "a;b;;");
	assert_null(reader.why);
	assert_false(reader.more);
	free(text);
}

static void texts_become_utf8(void **state)
{
	static const struct {
		const char *text, *wanted;
		bool mended;
	} cases[] = {
		{"plain", "plain", false},
		{"a\\n\\t\\\"\\\\\\/b", "a\n\t\"\\/b", false},
		{"\\u00e9\\u20ac", "\xc3\xa9\xe2\x82\xac", false},
		{"\\ud83d\\ude00", "\xf0\x9f\x98\x80", false},
		{"\\ud83d!", "\xef\xbf\xbd!", true},
		{"\\u0000", "\xef\xbf\xbd", true},
		{"\\u12",
		 "\xef\xbf\xbd"
		 "12",
		 true},
		{"\\x", "\\x", true},
		{"\xc3\xa9", "\xc3\xa9", false},
		{"\xff\xc3(", "\xef\xbf\xbd\xef\xbf\xbd(", true},
		{"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd", true},
		{"\xed\xa0\x80", "\xef\xbf\xbd", true},
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct import_token token = token_of(cases[i].text, IMPORT_TEXT);
		bool mended = false, cut = false;

		report__import_unescape(&token, out, sizeof(out), &mended, &cut);
		assert_string_equal(out, cases[i].wanted);
		assert_int_equal(mended, cases[i].mended);
		assert_false(cut);
	}
}

static void long_texts_are_cut_between_characters(void **state)
{
	struct import_token token = token_of("ab\xe2\x82\xac"
					     "cd",
					     IMPORT_TEXT);
	static const char *const wanted[] = {"", "", "a", "ab", "ab", "ab", "ab\xe2\x82\xac"};
	char out[16];

	(void)state;
	for (size_t size = 1; size < sizeof(wanted) / sizeof(wanted[0]); size++) {
		bool cut = false;

		assert_int_equal(report__import_unescape(&token, out, size, NULL, &cut),
				 strlen(wanted[size]));
		assert_string_equal(out, wanted[size]);
		assert_true(cut);
	}
}

/* What Unicode says of a sequence that begins with @bytes: its length, or 0 if it is ill-formed. */
static size_t well_formed(const unsigned char *bytes, size_t length)
{
	static const struct {
		unsigned char first, last, from, to;
		size_t length;
	} kinds[] = {
		{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
		{0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		bool good = bytes[0] >= kinds[k].first && bytes[0] <= kinds[k].last &&
			    length >= kinds[k].length && bytes[1] >= kinds[k].from &&
			    bytes[1] <= kinds[k].to;

		for (size_t i = 2; i < kinds[k].length && good; i++)
			good = (bytes[i] & 0xc0) == 0x80;
		if (good)
			return kinds[k].length;
	}
	return 0;
}

/* Every first byte of a character with bytes behind it that are at the ends of what may be there.
 * Halves of pairs, and what is beyond Unicode, are characters that are replaced as a whole. */
static void characters_are_kept_if_they_are_some(void **state)
{
	static const unsigned char next[] = {0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0};

	(void)state;
	for (unsigned i = 0; i < 128 * 8 * 8 * 8 * 4; i++) {
		const unsigned char bytes[4] = {(unsigned char)(0x80 + i / 2048), next[i / 256 % 8],
						next[i / 32 % 8], next[i / 4 % 8]};
		const size_t length = i % 4 + 1, kept = well_formed(bytes, length);
		struct import_token token = {
			.at = (const char *)bytes, .length = length, .kind = IMPORT_NUMBER};
		char out[16] = "";
		bool mended = false;

		if ((bytes[0] == 0xed && bytes[1] >= 0xa0) ||
		    (bytes[0] == 0xf4 && bytes[1] >= 0x90))
			continue;
		report__import_unescape(&token, out, sizeof(out), &mended, NULL);
		if (kept > 0)
			assert_memory_equal(out, bytes, kept);
		else
			assert_memory_equal(out, "\xef\xbf\xbd", 3);
		if (kept == length)
			assert_false(mended);
		else if (kept == 0)
			assert_true(mended);
	}
}

static void escapes_are_decoded(void **state)
{
	static const struct {
		const char *text, *out;
		bool mended;
	} cases[] = {
		{"\\u0041\\u00e9\\u00E9\\u20aC", "A\xc3\xa9\xc3\xa9\xe2\x82\xac", false},
		{"\\b\\f\\n\\r\\t\\\"\\\\\\/", "\b\f\n\r\t\"\\/", false},
		{"\\uD83D\\uDE00", "\xf0\x9f\x98\x80", false},
		{"\\ud800\\udc00.", "\xf0\x90\x80\x80.", false},
		{"\\uDBFF\\uDFFF", "\xf4\x8f\xbf\xbf", false},
		{"\\u004",
		 "\xef\xbf\xbd"
		 "004",
		 true},
		{"\\u", "\xef\xbf\xbd", true},
		{"\\u00:0",
		 "\xef\xbf\xbd"
		 "00:0",
		 true},
		{"\\u00/0",
		 "\xef\xbf\xbd"
		 "00/0",
		 true},
		{"\\u00@0",
		 "\xef\xbf\xbd"
		 "00@0",
		 true},
		{"\\u00g0",
		 "\xef\xbf\xbd"
		 "00g0",
		 true},
		{"\\u00\x10"
		 "0",
		 "\xef\xbf\xbd"
		 "00\x10"
		 "0",
		 true},
		{"\\u09fF", "\xe0\xa7\xbf", false},
		{"\\x", "\\x", true},
		{"a\\", "a", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct import_token token = token_of(cases[i].text, IMPORT_TEXT);
		const size_t length = strlen(cases[i].out);
		bool mended = false, cut = false;
		char out[64];

		assert_int_equal(report__import_unescape(&token, out, sizeof(out), &mended, &cut),
				 length);
		assert_string_equal(out, cases[i].out);
		assert_int_equal(mended, cases[i].mended);
		assert_false(cut);
		/* Where there is less room, it is cut between characters. */
		for (size_t size = 1; size <= length + 1; size++) {
			cut = false;
			assert_in_range(report__import_unescape(&token, out, size, NULL, &cut),
					size > 4 ? size - 4 : 0, size - 1);
			assert_memory_equal(out, cases[i].out, strlen(out));
			assert_int_equal(cut, size <= length);
		}
	}
}

/* Halves of pairs alone. */
static void half_a_pair_is_no_character(void **state)
{
	static const char *const halves[] = {"\\ud83d",        "\\udfff",      "\\ud83d\\ue000",
					     "\\ud83d\\udbff", "\\ud83d\\u12", "\\ud83dx\\udc00",
					     "\\udc00\\udc00", "\\ud83d\\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
		struct import_token token = token_of(halves[i], IMPORT_TEXT);
		char out[64];

		report__import_unescape(&token, out, sizeof(out), NULL, NULL);
		assert_memory_equal(out, "\xef\xbf\xbd", 3);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_exact),
		cmocka_unit_test(characters_are_kept_if_they_are_some),
		cmocka_unit_test(escapes_are_decoded),
		cmocka_unit_test(half_a_pair_is_no_character),
		cmocka_unit_test(what_is_no_time_is_told),
		cmocka_unit_test(numbers_are_integers_where_they_can),
		cmocka_unit_test(a_value_cut_anywhere_asks_for_more),
		cmocka_unit_test(wrong_values_say_why),
		cmocka_unit_test(members_come_one_by_one),
		cmocka_unit_test(texts_become_utf8),
		cmocka_unit_test(long_texts_are_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
