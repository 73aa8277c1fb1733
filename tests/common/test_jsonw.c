/*
 * Writing JSON: what is written reads back, in both layouts and on both sinks.
 */
#include "common/jsonw.h"

#include <cjson/cJSON.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "support/support.h"

static void write_sample(struct jsonw *w)
{
	jsonw_begin_object(w);
	jsonw_key(w, "text");
	jsonw_text(w, "line\nfeed \"quoted\" \\ \x01 \xc3\xa4");
	jsonw_key(w, "none");
	jsonw_text(w, NULL);
	jsonw_key(w, "list");
	jsonw_begin_array(w);
	jsonw_int(w, -5);
	jsonw_real(w, 0.1);
	jsonw_bool(w, true);
	jsonw_bool(w, false);
	jsonw_null(w);
	jsonw_begin_object(w);
	jsonw_end_object(w);
	jsonw_begin_array(w);
	jsonw_end_array(w);
	jsonw_end_array(w);
	jsonw_end_object(w);
}

static void test_layouts_are_as_documented(void **state)
{
	struct str str = {0};
	struct jsonw w;

	(void)state;
	jsonw_init_str(&w, &str, 0);
	write_sample(&w);
	assert_int_equal(jsonw_end(&w, NULL), ST_OK);
	assert_string_equal(str_peek(&str),
			    "{\"text\":\"line\\nfeed \\\"quoted\\\" \\\\ \\u0001 \xc3\xa4\","
			    "\"none\":null,\"list\":[-5,0.1,true,false,null,{},[]]}\n");

	str_clear(&str);
	jsonw_init_str(&w, &str, 2);
	jsonw_begin_object(&w);
	jsonw_key(&w, "a");
	jsonw_begin_array(&w);
	jsonw_int(&w, 1);
	jsonw_int(&w, 2);
	jsonw_end_array(&w);
	jsonw_key(&w, "b");
	jsonw_begin_object(&w);
	jsonw_end_object(&w);
	jsonw_end_object(&w);
	assert_int_equal(jsonw_end(&w, NULL), ST_OK);
	assert_string_equal(str_peek(&str), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}\n");
	str_free(&str);
}

static void test_what_is_written_reads_back(void **state)
{
	(void)state;
	for (int indent = 0; indent < 3; indent++) {
		struct str str = {0};
		struct jsonw w;
		cJSON *node, *list;

		jsonw_init_str(&w, &str, indent);
		write_sample(&w);
		assert_int_equal(jsonw_end(&w, NULL), ST_OK);
		assert_int_equal(json_parse(&node, str_peek(&str), str.length, "w", NULL), ST_OK);
		assert_string_equal(cJSON_GetObjectItem(node, "text")->valuestring,
				    "line\nfeed \"quoted\" \\ \x01 \xc3\xa4");
		list = cJSON_GetObjectItem(node, "list");
		assert_int_equal(cJSON_GetArraySize(list), 7);
		assert_close(cJSON_GetArrayItem(list, 1)->valuedouble, 0.1, 0);
		cJSON_Delete(node);
		str_free(&str);
	}
}

static const char *written_real(struct str *str, double value)
{
	struct jsonw w;

	str_clear(str);
	jsonw_init_str(&w, str, 0);
	jsonw_real(&w, value);
	assert_int_equal(jsonw_end(&w, NULL), ST_OK);
	return str_peek(str);
}

static void test_reals_have_the_fewest_digits(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
		{0, "0\n"},
		{1, "1\n"},
		{0.1, "0.1\n"},
		{-2.5, "-2.5\n"},
		{1e21, "1e+21\n"},
		{0.1 + 0.2, "0.30000000000000004\n"},
		{NAN, "null\n"},
		{INFINITY, "null\n"},
		{-INFINITY, "null\n"},
		{1.0 / 3, "0.3333333333333333\n"},
	};
	struct str str = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(written_real(&str, rows[i].value), rows[i].text);
	str_free(&str);
}

static void test_reals_read_back_the_same(void **state)
{
	static const double rows[] = {DBL_MAX,
				      DBL_MIN,
				      4.9e-324,
				      -DBL_MAX,
				      1e23,
				      123456789.123456789,
				      0x1.fffffffffffffp-3};
	struct str str = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		double back = strtod(written_real(&str, rows[i]), NULL);

		assert_memory_equal(&back, &rows[i], sizeof(back));
	}
	str_free(&str);
}

static void test_integers_are_exact(void **state)
{
	struct str str = {0};
	struct jsonw w;

	(void)state;
	jsonw_init_str(&w, &str, 0);
	jsonw_begin_array(&w);
	jsonw_int(&w, INT64_MIN);
	jsonw_int(&w, INT64_MAX);
	jsonw_end_array(&w);
	jsonw_end(&w, NULL);
	assert_string_equal(str_peek(&str), "[-9223372036854775808,9223372036854775807]\n");
	str_free(&str);
}

#define BAD "\xef\xbf\xbd"

static void test_bad_utf8_is_replaced(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"plain", "\"plain\"\n"},
		{"\xff", "\"" BAD "\"\n"},
		{"a\x80z", "\"a" BAD "z\"\n"},
		{"\xc3", "\"" BAD "\"\n"},
		{"\xc3(", "\"" BAD "(\"\n"},
		{"\xc0\xaf", "\"" BAD BAD "\"\n"},                 /* overlong */
		{"\xe0\x80\x80", "\"" BAD BAD BAD "\"\n"},         /* overlong */
		{"\xed\xa0\x80", "\"" BAD BAD BAD "\"\n"},         /* surrogate */
		{"\xf4\x90\x80\x80", "\"" BAD BAD BAD BAD "\"\n"}, /* beyond Unicode */
		{"\xe2\x82", "\"" BAD BAD "\"\n"},                 /* cut */
		{"\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xe2\x82\xac\xf0\x9f\x98\x80\"\n"},
		{"\xff\"", "\"" BAD "\\\"\"\n"},
		{"", "\"\"\n"},
		{"\b\f\r\t\x1f", "\"\\b\\f\\r\\t\\u001f\"\n"},
	};
	struct str str = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct jsonw w;

		str_clear(&str);
		jsonw_init_str(&w, &str, 0);
		jsonw_text(&w, rows[i].in);
		jsonw_end(&w, NULL);
		assert_string_equal(str_peek(&str), rows[i].out);
	}
	str_free(&str);
}

static void test_what_is_hidden_is_escaped(void **state)
{
	struct str str = {0};
	struct jsonw w;

	(void)state;
	jsonw_init_str(&w, &str, 0);
	jsonw_text(&w, "a\xc2\x9b"
		       "b\xe2\x80\xae"
		       "c\xe2\x80\x8b\xef\xbb\xbf"
		       "d\xf3\xa0\x80\xa1"
		       "e\x7f\xc3\xa4");
	assert_int_equal(jsonw_end(&w, NULL), ST_OK);
	assert_string_equal(str_peek(&str),
			    "\"a\\u009bb\\u202ec\\u200b\\ufeffd\\udb40\\udc21e\\u007f\xc3\xa4\"\n");
	str_free(&str);
}

static void test_a_json_text_is_written_as_it_is(void **state)
{
	struct str str = {0};
	struct jsonw w;

	(void)state;
	jsonw_init_str(&w, &str, 0);
	jsonw_begin_array(&w);
	jsonw_value(&w, "{\"a\": [1,\n2]}");
	jsonw_value(&w, "\"\xc2\x9b\xc3\xa4\x7f\xe2\x80\xae\xff\\n\"");
	jsonw_end_array(&w);
	assert_int_equal(jsonw_end(&w, NULL), ST_OK);
	assert_string_equal(str_peek(&str),
			    "[{\"a\": [1,\n2]},\"\\u009b\xc3\xa4\\u007f\\u202e\xff\\n\"]\n");
	str_free(&str);
}

static void test_files_get_the_same_bytes(void **state)
{
	struct str str = {0};
	char *bytes = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&bytes, &length);
	struct jsonw w;

	(void)state;
	jsonw_init_file(&w, file, 2);
	write_sample(&w);
	assert_int_equal(jsonw_end(&w, NULL), ST_OK);
	fclose(file);
	jsonw_init_str(&w, &str, 2);
	write_sample(&w);
	jsonw_end(&w, NULL);
	assert_string_equal(bytes, str_peek(&str));
	free(bytes);
	str_free(&str);
}

static void test_failed_writes_are_reported_at_the_end(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct str str = {0};
	struct jsonw w;
	struct err err;

	(void)state;
	assert_non_null(full);
	jsonw_init_file(&w, full, 0);
	write_sample(&w);
	assert_int_equal(jsonw_end(&w, &err), ST_NOSPACE);
	assert_contains(err.text, "cannot write: No space left");
	fclose(full);

	support_fail_alloc(0);
	jsonw_init_str(&w, &str, 0);
	write_sample(&w);
	assert_int_equal(jsonw_end(&w, &err), ST_NOMEM);
	support_fail_alloc(-1);
	str_free(&str);
}

static void test_nesting_reaches_the_bound(void **state)
{
	struct str str = {0};
	struct jsonw w;

	(void)state;
	jsonw_init_str(&w, &str, 1);
	for (int i = 0; i < JSONW_DEPTH; i++)
		jsonw_begin_array(&w);
	for (int i = 0; i < JSONW_DEPTH; i++)
		jsonw_end_array(&w);
	assert_int_equal(jsonw_end(&w, NULL), ST_OK);
	str_free(&str);
}

static void test_a_key_and_its_value_may_be_written_at_once(void **state)
{
	struct str str = {0};
	struct jsonw w;

	(void)state;
	jsonw_init_str(&w, &str, 0);
	jsonw_begin_object(&w);
	jsonw_key_object(&w, "o");
	jsonw_key_bool(&w, "yes", true);
	jsonw_key_bool(&w, "no", false);
	jsonw_end_object(&w);
	jsonw_key_array(&w, "a");
	jsonw_int(&w, 1);
	jsonw_end_array(&w);
	jsonw_key_object(&w, "none");
	jsonw_end_object(&w);
	jsonw_end_object(&w);
	assert_int_equal(jsonw_end(&w, NULL), ST_OK);
	assert_string_equal(str_peek(&str),
			    "{\"o\":{\"yes\":true,\"no\":false},\"a\":[1],\"none\":{}}\n");
	str_free(&str);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts_are_as_documented),
		cmocka_unit_test(test_what_is_written_reads_back),
		cmocka_unit_test(test_reals_have_the_fewest_digits),
		cmocka_unit_test(test_reals_read_back_the_same),
		cmocka_unit_test(test_integers_are_exact),
		cmocka_unit_test(test_bad_utf8_is_replaced),
		cmocka_unit_test(test_what_is_hidden_is_escaped),
		cmocka_unit_test(test_a_json_text_is_written_as_it_is),
		cmocka_unit_test(test_files_get_the_same_bytes),
		cmocka_unit_test(test_failed_writes_are_reported_at_the_end),
		cmocka_unit_test(test_nesting_reaches_the_bound),
		cmocka_unit_test(test_a_key_and_its_value_may_be_written_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
