/*
 * Growing text, suggestions, cuts and numbers.
 */
#include "common/str.h"

#include <limits.h>
#include <locale.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
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

static void test_nearest_compares_words_of_128_letters(void **state)
{
	char word[130], other[130];
	const char *names[] = {other};

	(void)state;
	for (size_t i = 0; i < sizeof(word); i++)
		word[i] = other[i] = (char)('a' + i * i % 25);
	word[128] = other[128] = '\0';
	assert_ptr_equal(str_nearest(word, names, 1), other);
	other[128] = 'x';
	other[129] = '\0';
	assert_null(str_nearest(word, names, 1));
	assert_null(str_nearest(other, (const char *[]){word}, 1));
}

/* Every length of word, with every number of letters changed. */
static void test_nearest_lets_a_third_of_the_letters_differ(void **state)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz", digits[] = "0123456789";
	char word[sizeof(letters)], other[sizeof(letters)];
	const char *names[] = {other};

	(void)state;
	for (size_t length = 1; length < sizeof(letters); length++) {
		const size_t third = length < 3 ? 1 : length / 3;

		for (size_t changed = 0; changed <= length && changed < 10; changed++) {
			const char *near;

			str_copy(word, length + 1, letters);
			str_copy(other, length + 1, letters);
			memcpy(other, digits, changed);
			near = str_nearest(word, names, 1);
			if (!near != (changed > third || changed == length))
				fail_msg("%s: %s", word, near ? near : "none");
		}
	}
}

/* The least cost of edits that make the first @i letters of @a the first @j of @b, as defined. */
static unsigned edits(const char *a, size_t i, const char *b, size_t j, int known[9][9])
{
	unsigned best;

	if (i == 0 || j == 0)
		return 4 * (unsigned)(i + j);
	if (known[i][j] >= 0)
		return (unsigned)known[i][j];
	best = edits(a, i - 1, b, j - 1, known);
	if (a[i - 1] != b[j - 1])
		best += (a[i - 1] | 32) == (b[j - 1] | 32) ? 1 : 4;
	best = min(best, edits(a, i - 1, b, j, known) + 4);
	best = min(best, edits(a, i, b, j - 1, known) + 4);
	if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
		best = min(best, edits(a, i - 2, b, j - 2, known) + 4);
	known[i][j] = (int)best;
	return best;
}

static void draw_word(uint32_t *drawn, char word[9])
{
	static const char letters[] = "azAZ";
	size_t length;

	*drawn = *drawn * 1664525 + 1013904223;
	length = 1 + (*drawn >> 28) % 8;
	for (size_t i = 0; i < length; i++) {
		*drawn = *drawn * 1664525 + 1013904223;
		word[i] = letters[*drawn >> 30];
	}
	word[length] = '\0';
}

/* Of many words of few letters, where each way to edit is the best one somewhere. */
static void test_nearest_has_the_fewest_edits(void **state)
{
	uint32_t drawn = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char word[9], others[3][9];
		const char *names[3] = {others[0], others[1], others[2]}, *expected = NULL, *near;
		unsigned best = UINT_MAX;

		draw_word(&drawn, word);
		for (size_t i = 0; i < 3; i++) {
			size_t length = strlen(word), other, most;
			int known[9][9];
			unsigned cost;

			draw_word(&drawn, others[i]);
			other = strlen(others[i]);
			most = max(max(length, other) / 3, (size_t)1);
			memset(known, -1, sizeof(known));
			cost = edits(word, length, others[i], other, known);
			if (cost <= 4 * most && cost < 4 * length && cost < best) {
				best = cost;
				expected = others[i];
			}
		}
		near = str_nearest(word, names, 3);
		if (near != expected)
			fail_msg("%s: %s, not %s", word, near ? near : "none",
				 expected ? expected : "none");
	}
}

static void test_of_words_as_near_the_first_is_suggested(void **state)
{
	static const char *const names[] = {"far", "seeds", "speed", "seedy"};

	(void)state;
	assert_string_equal(str_nearest("seed", names, ARRAY_LEN(names)), "seeds");
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
		/* The low byte of a mark of direction is no such mark. */
		{"\056", "a?b?c?d?e?"},
	};
	/* A byte that is no UTF-8 may be a control; 0 is one. */
	char bytes[] = {'a', '\377', '\237', '\0', '\303', 'b'};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[] = "a\tb\033c\177d\302\205e\342\200\256";

		text[utf8_show(text, strlen(text), rows[i].kept)] = '\0';
		assert_string_equal(text, rows[i].shown);
	}
	assert_int_equal(utf8_show(bytes, sizeof(bytes), "\t"), sizeof(bytes));
	assert_memory_equal(bytes, "a\377??\303b", sizeof(bytes));
}

/* UTF-8 as the standard builds it, whether or not there is such a character. */
static size_t encode(uint32_t character, size_t length, char out[8])
{
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

	if (length == 1) {
		out[0] = (char)character;
	} else {
		for (size_t i = length; i-- > 1; character >>= 6)
			out[i] = (char)(0x80 | (character & 0x3f));
		out[0] = (char)(lead[length] | character);
	}
	out[length] = '\0';
	return length;
}

static void test_each_character_is_read_in_its_shortest_form_alone(void **state)
{
	char text[8];

	(void)state;
	for (uint32_t character = 0; character < 0x140000; character++) {
		const bool good =
			character < 0xd800 || (character > 0xdfff && character < 0x110000);
		const int shortest = character < 0x80      ? 1
				     : character < 0x800   ? 2
				     : character < 0x10000 ? 3
							   : 4;

		for (int length = shortest; length <= 4; length++) {
			uint32_t read = 0;
			int found;

			encode(character, (size_t)length, text);
			found = utf8_read(text, &read);
			if (found != (good && length == shortest ? length : 0) ||
			    (found > 0 && read != character))
				fail_msg("U+%04x in %d bytes: %d", character, length, found);
		}
	}
	/* No other byte begins one. */
	for (unsigned byte = 0x80; byte < 0x100; byte++) {
		if (byte >= 0xc2 && byte <= 0xf4)
			continue;
		for (int next = 0x80; next < 0xc0; next++) {
			uint32_t read;

			memcpy(text, (const char[]){(char)byte, (char)next, (char)next, (char)next},
			       4);
			assert_int_equal(utf8_read(text, &read), 0);
		}
	}
	/* Each byte after the first belongs to the character. */
	for (int length = 2; length <= 4; length++) {
		uint32_t read;

		for (int cut = 1; cut < length; cut++) {
			encode(0x10fff >> 4 * (4 - length), (size_t)length, text);
			assert_int_equal(utf8_read(text, &read), length);
			text[cut] = 'x';
			assert_int_equal(utf8_read(text, &read), 0);
		}
	}
}

/* The first and the last character of ranges, and what stands before and after them. */
static void test_columns_of_characters(void **state)
{
	static const struct {
		uint32_t character;
		int columns;
		bool hidden;
	} rows[] = {
		{0x1f, 1, true},     {0x20, 1, false},    {0x7e, 1, false},     {0x7f, 1, true},
		{0x9f, 1, true},     {0xa0, 1, false},    {0xac, 1, false},     {0xad, 1, true},
		{0xae, 1, false},    {0xe4, 1, false},    {0x2ff, 1, false},    {0x300, 0, false},
		{0x36f, 0, false},   {0x370, 1, false},   {0x10ff, 1, false},   {0x1100, 2, false},
		{0x115f, 2, false},  {0x1160, 0, false},  {0x11ff, 0, false},   {0x1200, 1, false},
		{0x200a, 1, false},  {0x200b, 1, true},   {0x200f, 1, true},    {0x2010, 1, false},
		{0x2026, 1, false},  {0x3163, 2, false},  {0x3164, 1, true},    {0x3165, 2, false},
		{0x4e00, 2, false},  {0xa4cf, 2, false},  {0xa4d0, 1, false},   {0xfeff, 1, true},
		{0x1f2ff, 1, false}, {0x1f300, 2, false}, {0x1f64f, 2, false},  {0x1f650, 1, false},
		{0x1ffff, 1, false}, {0x20000, 2, false}, {0x3fffd, 2, false},  {0x3fffe, 1, false},
		{0xdffff, 1, false}, {0xe0000, 1, true},  {0xe0fff, 1, true},   {0xe1000, 1, false},
		{0xeffff, 1, false}, {0xf0000, 0, false}, {0x10ffff, 0, false},
	};
	char text[8];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint32_t character = rows[i].character;
		const int length = character < 0x80      ? 1
				   : character < 0x800   ? 2
				   : character < 0x10000 ? 3
							 : 4;
		uint32_t decoded;
		int columns;

		encode(character, (size_t)length, text);
		if (utf8_is_hidden(character) != rows[i].hidden ||
		    utf8_columns(text) != rows[i].columns)
			fail_msg("U+%04x: %d columns", character, utf8_columns(text));
		utf8_decode(text, &decoded, &columns);
		assert_int_equal(columns, rows[i].columns);
		assert_int_equal(decoded, rows[i].hidden ? '?' : character);
		/* What has no columns is cut off with what it stands on. */
		for (columns = 0; columns < 4; columns++)
			assert_int_equal(utf8_cut(text, columns),
					 columns < rows[i].columns ? 0 : length);
	}
}

static void test_a_cut_takes_as_many_characters_as_fit(void **state)
{
	/* One column, two, one, none, two. */
	static const char text[] = "a\xe4\xb8\x80"
				   "e\xcc\x81\xe4\xb8\x80";
	static const int cuts[] = {0, 1, 1, 4, 7, 7, 10, 10, 10};

	(void)state;
	for (int columns = 0; columns < (int)ARRAY_LEN(cuts); columns++)
		assert_int_equal(utf8_cut(text, columns), cuts[columns]);
	assert_int_equal(utf8_cut(text, INT_MAX), sizeof(text) - 1);
}

static void test_what_is_no_text_is_one_column_a_byte(void **state)
{
	uint32_t character;
	int columns;

	(void)state;
	assert_int_equal(utf8_columns(NULL), 0);
	assert_int_equal(utf8_columns(""), 0);
	assert_int_equal(utf8_columns("a\xff\xc3"
				      "b\xe2\x82"),
			 6);
	assert_int_equal(utf8_decode("\xff", &character, &columns), 1);
	assert_int_equal(character, '?');
	assert_int_equal(utf8_decode("\001", &character, &columns), 1);
	assert_int_equal(character, '?');
	assert_int_equal(utf8_decode("\t", &character, &columns), 1);
	assert_int_equal(character, ' ');
	assert_int_equal(utf8_decode("\n", &character, &columns), 1);
	assert_int_equal(character, ' ');
	assert_int_equal(utf8_decode("", &character, &columns), 0);
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
		cmocka_unit_test(test_nearest_compares_words_of_128_letters),
		cmocka_unit_test(test_nearest_lets_a_third_of_the_letters_differ),
		cmocka_unit_test(test_nearest_has_the_fewest_edits),
		cmocka_unit_test(test_of_words_as_near_the_first_is_suggested),
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
		cmocka_unit_test(test_each_character_is_read_in_its_shortest_form_alone),
		cmocka_unit_test(test_columns_of_characters),
		cmocka_unit_test(test_a_cut_takes_as_many_characters_as_fit),
		cmocka_unit_test(test_what_is_no_text_is_one_column_a_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
