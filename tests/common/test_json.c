/*
 * Reading JSON: syntax errors with line and column, paths in messages, limits, damage of every
 * kind.
 */
#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "support/support.h"

static const char sample[] =
	"{\n"
	"  \"model\": {\"layers\": [{\"name\": \"Dense_128\", \"units\": 128},\n"
	"                        {\"name\": \"caf\\u00e9 \xc3\xa4\", \"units\": -1.5e3}]},\n"
	"  \"flags\": {\"--no-pipelining\": null, \"a.b\": true, \"\": false},\n"
	"  \"empty\": [{}, [], \"\"]\n"
	"}\n";

static cJSON *parse(const char *text)
{
	struct err err;
	cJSON *node;

	if (json_parse(&node, text, strlen(text), "t.json", &err) != ST_OK)
		fail_msg("%s", err.text);
	return node;
}

static void test_sample_parses(void **state)
{
	cJSON *node = parse(sample);

	(void)state;
	assert_int_equal(cJSON_GetArraySize(node), 3);
	cJSON_Delete(node);
}

static void test_syntax_errors_name_line_and_column(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{"", "t.json:1:1: the text is empty"},
		{" \n\t ", "t.json:1:1: the text is empty"},
		{"{\"a\": 1,}", "t.json:1:9: syntax error at '}'"},
		{"{\"a\": 1,\n \"b\" 2}", "t.json:2:6: syntax error at '2'"},
		{"[1, 2", "t.json:1:6: unexpected end: a bracket is not closed"},
		{"{\"a\": \"b", "t.json:1:9: unexpected end: a text is not closed"},
		{"{\"a\"", "t.json:1:5: unexpected end: a bracket is not closed"},
		{"[1,\n2,\n", "t.json:3:1: unexpected end: a bracket is not closed"},
		{"[tru]", "t.json:1:2: syntax error at 't'"},
		{"nul", "t.json:1:1: syntax error at 'n'"},
		{"[1]]", "t.json:1:4: more text after the end of the value"},
		{"{} {}", "t.json:1:4: more text after the end of the value"},
		{"1 2", "t.json:1:3: more text after the end of the value"},
		{"[\"\xc3\xa4\xc3\xb6\", x]", "t.json:1:8: syntax error at 'x'"},
		{"[1, NaN]", "t.json:1:5: syntax error at 'N'"},
		{"{a: 1}", "t.json:1:2: syntax error at 'a'"},
		{"{\"a\": 1,}\n", "t.json:1:9: syntax error at '}'"},
		{"{\"a\": 1,\n  b: 2}", "t.json:2:3: syntax error at 'b'"},
		{"{,\"a\": 1}", "t.json:1:2: syntax error at ','"},
		{"{'a': 1}", "t.json:1:2: syntax error at "},
		{"[1,,2]", "t.json:1:4: syntax error at ','"},
		{"[\"a\nb\"]", "t.json:1:4: a control character (is a quote missing?)"},
		{"[\"\\u0000\"]", "t.json:1:3: \\u0000 is not supported in a text"},
		{"[\"\\x\"]", "t.json:1:"},
		{"[1, \x7f]", "t.json:1:5: syntax error at byte 0x7f"},
		{"[1 2]", "t.json:1:4: syntax error at '2'"},
		{"{\"a\" \x01 1}", "t.json:1:6: a control character"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {.text = ""};
		cJSON *node;
		enum status status =
			json_parse(&node, rows[i].text, strlen(rows[i].text), "t.json", &err);

		assert_int_equal(status, ST_FORMAT);
		assert_null(node);
		assert_contains(err.text, rows[i].message);
	}
}

static void test_escaped_backslash_before_u0000_is_text(void **state)
{
	cJSON *node = parse("[\"\\\\u0000\"]");

	(void)state;
	assert_string_equal(node->child->valuestring, "\\u0000");
	cJSON_Delete(node);
}

static void test_a_zero_byte_is_refused(void **state)
{
	struct err err;
	cJSON *node;

	(void)state;
	assert_int_equal(json_parse(&node, "[1]\0", 4, "t.json", &err), ST_FORMAT);
	assert_contains(err.text, "t.json:1:4: a 0 byte");
	assert_int_equal(json_parse(&node, "[\"a\0b\"]", 7, "t.json", &err), ST_FORMAT);
}

static void test_the_length_is_the_end(void **state)
{
	cJSON *node;

	(void)state;
	assert_int_equal(json_parse(&node, "[1]garbage", 3, "t.json", NULL), ST_OK);
	cJSON_Delete(node);
}

static enum status parse_nested(size_t depth, struct err *err)
{
	char *text = malloc(2 * depth);
	enum status status;
	cJSON *node;

	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	status = json_parse(&node, text, 2 * depth, "t.json", err);
	cJSON_Delete(node);
	free(text);
	return status;
}

static void test_nesting_is_bounded(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(parse_nested(CJSON_NESTING_LIMIT, &err), ST_OK);
	assert_int_equal(parse_nested(CJSON_NESTING_LIMIT + 1, &err), ST_FORMAT);
	assert_string_equal(err.text, "t.json:1:1001: nested deeper than 1000 levels");
	assert_int_equal(parse_nested(1000000, &err), ST_FORMAT);
}

static void test_duplicate_keys_are_refused_with_their_place(void **state)
{
	struct err err;
	cJSON *node;
	const char *text = "{\"a\": [{}, {\"x\": 1, \"y\": 2, \"x\": 3}]}";

	(void)state;
	assert_int_equal(json_parse(&node, text, strlen(text), "t.json", &err), ST_INVALID);
	assert_null(node);
	assert_string_equal(err.text, "t.json: a[1]: the key \"x\" is there twice");

	/* Any two of few keys. */
	for (int count = 2; count <= 4; count++)
		for (int second = 1; second < count; second++)
			for (int first = 0; first < second; first++) {
				char few[64] = "{", expected[64];
				size_t used = 1;

				for (int i = 0; i < count; i++)
					used += (size_t)snprintf(
						few + used, sizeof(few) - used, "%s\"%c\": %d",
						i ? ", " : "", 'a' + (i == second ? first : i), i);
				snprintf(few + used, sizeof(few) - used, "}");
				snprintf(expected, sizeof(expected),
					 "t.json: the key \"%c\" is there twice", 'a' + first);
				assert_int_equal(
					json_parse(&node, few, strlen(few), "t.json", &err),
					ST_INVALID);
				assert_string_equal(err.text, expected);
			}

	/* Keys differ in letter case: two keys. */
	text = "{\"a\": 1, \"A\": 2}";
	assert_int_equal(json_parse(&node, text, strlen(text), "t.json", &err), ST_OK);
	cJSON_Delete(node);
}

static void test_many_keys_take_no_quadratic_time(void **state)
{
	enum {
		KEYS = 200000
	};
	char *text = malloc(KEYS * 16 + 16);
	size_t length = 0;
	struct err err;
	cJSON *node;

	(void)state;
	text[length++] = '{';
	for (int i = 0; i < KEYS; i++)
		length += (size_t)sprintf(text + length, "%s\"k%d\":0", i ? "," : "", i);
	text[length++] = '}';
	assert_int_equal(json_parse(&node, text, length, "t.json", &err), ST_OK);
	cJSON_Delete(node);

	length += (size_t)sprintf(text + length - 1, ",\"k7\":0}") - 1;
	assert_int_equal(json_parse(&node, text, length, "t.json", &err), ST_INVALID);
	assert_string_equal(err.text, "t.json: the key \"k7\" is there twice");
	free(text);
}

static void test_truncation_at_every_byte_is_an_error(void **state)
{
	(void)state;
	/* The last two bytes are the closing brace and a line feed. */
	for (size_t length = 0; length < sizeof(sample) - 3; length++) {
		/* Exactly so much memory: a read beyond it is seen by the sanitizer. */
		char *text = malloc(length ? length : 1);
		struct err err;
		cJSON *node;

		memcpy(text, sample, length);
		assert_int_equal(json_parse(&node, text, length, "t.json", &err), ST_FORMAT);
		assert_null(node);
		assert_contains(err.text, "t.json:");
		free(text);
	}
}

static void test_damage_at_every_byte_does_no_harm(void **state)
{
	static const char damage[] = {0, '"', '{', ']', ',', '\\', (char)0xff, 'u', '-', ' '};
	char text[sizeof(sample)];

	(void)state;
	for (size_t at = 0; at < sizeof(sample) - 1; at++) {
		for (size_t i = 0; i < sizeof(damage); i++) {
			struct err err;
			cJSON *node;
			enum status status;

			memcpy(text, sample, sizeof(text));
			text[at] = damage[i];
			status = json_parse(&node, text, sizeof(sample) - 1, "t.json", &err);
			assert_true((status == ST_OK) == (node != NULL));
			cJSON_Delete(node);
		}
	}
}

static void test_paths_lead_to_the_value(void **state)
{
	cJSON *node = parse(sample);
	struct json_at root = json_root("t.json", node), model, layers, layer, name, flags, flag;
	char path[64];

	(void)state;
	json_path(&root, path, sizeof(path));
	assert_string_equal(path, "");
	assert_true(json_child(&root, "model", &model));
	assert_true(json_child(&model, "layers", &layers));
	assert_int_equal(json_count(&layers), 2);
	assert_true(json_item(&layers, 1, &layer));
	assert_true(json_child(&layer, "name", &name));
	json_path(&name, path, sizeof(path));
	assert_string_equal(path, "model.layers[1].name");

	assert_true(json_child(&root, "flags", &flags));
	assert_true(json_child(&flags, "--no-pipelining", &flag));
	assert_true(json_is_null(&flag));
	json_path(&flag, path, sizeof(path));
	assert_string_equal(path, "flags.--no-pipelining");
	assert_true(json_item(&flags, 1, &flag));
	assert_string_equal(flag.key, "a.b");
	json_path(&flag, path, sizeof(path));
	assert_string_equal(path, "flags[\"a.b\"]");
	assert_true(json_child(&flags, "", &flag));
	json_path(&flag, path, sizeof(path));
	assert_string_equal(path, "flags[\"\"]");

	/* Too little room cuts, as snprintf() does. */
	json_path(&name, path, 10);
	assert_string_equal(path, "model.lay");
	json_path(&name, path, 1);
	assert_string_equal(path, "");
	assert_true(json_item(&flags, 1, &flag));
	memset(path, 'z', sizeof(path));
	json_path(&flag, path, 8);
	assert_string_equal(path, "flags[\"");
	assert_int_equal(path[8], 'z'); /* of the caller */
	cJSON_Delete(node);
}

static void test_items_one_after_the_other(void **state)
{
	static const char *const lists[] = {"[4, 5, 6]", "{\"a\": 4, \"b\": 5, \"c\": 6}", "[]",
					    "{}", "\"text\""};
	static const int counts[] = {3, 3, 0, 0, 0};

	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
		cJSON *node = parse(lists[l]);
		const struct json_at root = json_root("t.json", node);
		struct json_at item = {0}, same;
		int count = 0;

		for (; json_next(&root, &item); count++) {
			assert_true(json_item(&root, count, &same));
			assert_ptr_equal(item.node, same.node);
			assert_ptr_equal(item.up, &root);
			assert_ptr_equal(item.key, same.key);
			assert_string_equal(item.file, "t.json");
			assert_int_equal(item.index, same.index);
		}
		assert_int_equal(count, counts[l]);
		cJSON_Delete(node);
	}
}

static void test_what_is_absent_is_told(void **state)
{
	cJSON *node = parse("{\"a\": [1], \"t\": \"x\"}");
	struct json_at root = json_root("t.json", node), a, t, out;

	(void)state;
	assert_false(json_child(&root, "b", &out));
	assert_false(json_child(&root, "A", &out));
	assert_true(json_child(&root, "a", &a));
	assert_false(json_child(&a, "a", &out));
	assert_false(json_item(&a, 1, &out));
	assert_false(json_item(&a, -1, &out));
	assert_true(json_child(&root, "t", &t));
	assert_int_equal(json_count(&t), 0);
	assert_false(json_item(&t, 0, &out));
	cJSON_Delete(node);
}

static void test_failures_name_file_path_and_suggestion(void **state)
{
	static const char *const known[] = {"Dense", "Conv2D", "Flatten"};
	const char *many[40];
	cJSON *node = parse("{\"model\": {\"layers\": [1, 2]}}");
	struct json_at root = json_root("run.json", node), model, layers, layer;
	struct err err;

	(void)state;
	json_child(&root, "model", &model);
	json_child(&model, "layers", &layers);
	json_item(&layers, 1, &layer);
	assert_int_equal(json_unknown(&layer, "layer", "Dens", known, 3, &err), ST_INVALID);
	assert_string_equal(
		err.text,
		"run.json: model.layers[1]: unknown layer \"Dens\" (did you mean \"Dense\"?)");
	json_unknown(&layer, "layer", "LSTM", known, 3, &err);
	assert_string_equal(err.text, "run.json: model.layers[1]: unknown layer \"LSTM\" "
				      "(one of: Dense, Conv2D, Flatten)");
	/* Too many for a line. */
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = "BatchNormalization";
	json_unknown(&layer, "layer", "LSTM", many, ARRAY_LEN(many), &err);
	assert_string_equal(err.text, "run.json: model.layers[1]: unknown layer \"LSTM\"");
	json_unknown(&layer, "layer", "LSTM", NULL, 0, &err);
	assert_string_equal(err.text, "run.json: model.layers[1]: unknown layer \"LSTM\"");
	json_fail(&root, &err, "needs %s", "more");
	assert_string_equal(err.text, "run.json: needs more");
	assert_int_equal(json_fail(&root, NULL, "x"), ST_INVALID);
	cJSON_Delete(node);
}

static void test_a_choice_is_an_index_among_the_known_texts(void **state)
{
	static const char *const known[] = {"valid", "same"};
	cJSON *node = parse("[\"same\", \"sane\", 1]");
	const struct json_at root = json_root("run.json", node);
	struct json_at item;
	size_t choice = 7;
	struct err err;

	(void)state;
	json_item(&root, 1, &item);
	assert_int_equal(json_choice(&item, "padding", known, 2, &choice, &err), ST_INVALID);
	assert_string_equal(err.text,
			    "run.json: [1]: unknown padding \"sane\" (did you mean \"same\"?)");
	json_item(&root, 2, &item);
	assert_int_equal(json_choice(&item, "padding", known, 2, &choice, &err), ST_INVALID);
	assert_int_equal(choice, 7);
	json_item(&root, 0, &item);
	assert_int_equal(json_choice(&item, "padding", known, 2, &choice, &err), ST_OK);
	assert_int_equal(choice, 1);
	cJSON_Delete(node);
}

static void test_only_known_keys_pass(void **state)
{
	static const char *const keys[] = {"epochs", "seed"};
	cJSON *node =
		parse("{\"fit\": {\"seed\": 1, \"epoch\": 3}, \"good\": {\"seed\": 1}, \"t\": 1}");
	struct json_at root = json_root("run.json", node), at;
	struct err err;

	(void)state;
	json_child(&root, "fit", &at);
	assert_int_equal(json_only_keys(&at, keys, 2, &err), ST_INVALID);
	assert_string_equal(err.text,
			    "run.json: fit: unknown key \"epoch\" (did you mean \"epochs\"?)");
	json_child(&root, "good", &at);
	assert_int_equal(json_only_keys(&at, keys, 2, &err), ST_OK);
	json_child(&root, "t", &at);
	assert_int_equal(json_only_keys(&at, keys, 2, &err), ST_INVALID);
	assert_string_equal(err.text, "run.json: t: must be an object, not a number");
	cJSON_Delete(node);
}

static void test_whole_numbers_are_exact_and_in_range(void **state)
{
	static const struct {
		const char *text;
		int64_t least, greatest;
		const char *message; /* NULL: good */
		int64_t value;
	} rows[] = {
		{"5", 1, 10, NULL, 5},
		{"1", 1, 10, NULL, 1},
		{"10", 1, 10, NULL, 10},
		{"5.0", 1, 10, NULL, 5},
		{"5e0", 1, 10, NULL, 5},
		{"0", 1, 10, "t: must be from 1 to 10, not 0", 0},
		{"11", 1, 10, "t: must be from 1 to 10, not 11", 0},
		{"-1", 0, INT64_MAX, "t: must be at least 0, not -1", 0},
		{"7", INT64_MIN, 6, "t: must be at most 6, not 7", 0},
		{"2.5", 1, 10, "t: must be a whole number, not 2.5", 0},
		{"\"5\"", 1, 10, "t: must be a whole number, not a text", 0},
		{"null", 1, 10, "t: must be a whole number, not null", 0},
		{"true", 1, 10, "t: must be a whole number, not true", 0},
		{"9007199254740991", INT64_MIN, INT64_MAX, NULL, INT64_C(9007199254740991)},
		{"1e300", INT64_MIN, INT64_MAX, "t: 1e+300 is too large to be exact", 0},
		{"-1e999", INT64_MIN, INT64_MAX, "t: -inf is too large to be exact", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cJSON *node = parse(rows[i].text);
		struct json_at root = json_root("t", node);
		int64_t value = 0;
		struct err err;
		enum status status = json_int(&root, rows[i].least, rows[i].greatest, &value, &err);

		assert_int_equal(status, rows[i].message ? ST_INVALID : ST_OK);
		assert_true(value == rows[i].value);
		if (rows[i].message)
			assert_contains(err.text, rows[i].message);
		cJSON_Delete(node);
	}
}

static void test_values_of_the_wrong_type_are_refused(void **state)
{
	cJSON *node = parse("[1.5, true, \"x\", [], {}, null, 1e999]");
	struct json_at root = json_root("t", node), at[7];
	const char *text;
	struct err err;
	double real;
	bool truth;

	(void)state;
	for (int i = 0; i < 7; i++)
		assert_true(json_item(&root, i, &at[i]));

	assert_int_equal(json_real(&at[0], &real, &err), ST_OK);
	assert_close(real, 1.5, 0);
	assert_int_equal(json_bool(&at[1], &truth, &err), ST_OK);
	assert_true(truth);
	assert_int_equal(json_text(&at[2], &text, &err), ST_OK);
	assert_string_equal(text, "x");
	assert_int_equal(json_array(&at[3], &err), ST_OK);
	assert_int_equal(json_object(&at[4], &err), ST_OK);

	assert_int_equal(json_real(&at[1], &real, &err), ST_INVALID);
	assert_string_equal(err.text, "t: [1]: must be a number, not true");
	assert_int_equal(json_bool(&at[2], &truth, &err), ST_INVALID);
	assert_string_equal(err.text, "t: [2]: must be true or false, not a text");
	assert_int_equal(json_text(&at[3], &text, &err), ST_INVALID);
	assert_string_equal(err.text, "t: [3]: must be a text, not an array");
	assert_int_equal(json_array(&at[4], &err), ST_INVALID);
	assert_string_equal(err.text, "t: [4]: must be an array, not an object");
	assert_int_equal(json_object(&at[5], &err), ST_INVALID);
	assert_string_equal(err.text, "t: [5]: must be an object, not null");
	assert_int_equal(json_real(&at[6], &real, &err), ST_INVALID);
	assert_string_equal(err.text, "t: [6]: is too large for a number");
	cJSON_Delete(node);
}

static void test_files_are_loaded_or_named(void **state)
{
	char dir[SUPPORT_PATH_SIZE], path[FS_PATH_SIZE];
	struct err err;
	cJSON *node;

	(void)state;
	support_tempdir(dir);
	assert_true(fs_path(path, "%s/run.json", dir));
	assert_int_equal(json_load(&node, path, &err), ST_NOTFOUND);
	assert_null(node);
	support_write_file(path, sample, sizeof(sample) - 1);
	assert_int_equal(json_load(&node, path, &err), ST_OK);
	cJSON_Delete(node);
	support_write_file(path, "{", 1);
	assert_int_equal(json_load(&node, path, &err), ST_FORMAT);
	assert_contains(err.text, "/run.json:1:2: ");
	support_tempdir_remove(dir);
}

static void test_every_failing_allocation_is_reported(void **state)
{
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		enum status status;
		struct err err;
		cJSON *node;

		support_fail_alloc(n);
		status = json_parse(&node, sample, sizeof(sample) - 1, "t.json", &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		assert_true(failed == !node);
		cJSON_Delete(node);
		assert_true(n < 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample_parses),
		cmocka_unit_test(test_syntax_errors_name_line_and_column),
		cmocka_unit_test(test_escaped_backslash_before_u0000_is_text),
		cmocka_unit_test(test_a_zero_byte_is_refused),
		cmocka_unit_test(test_the_length_is_the_end),
		cmocka_unit_test(test_nesting_is_bounded),
		cmocka_unit_test(test_duplicate_keys_are_refused_with_their_place),
		cmocka_unit_test(test_many_keys_take_no_quadratic_time),
		cmocka_unit_test(test_truncation_at_every_byte_is_an_error),
		cmocka_unit_test(test_damage_at_every_byte_does_no_harm),
		cmocka_unit_test(test_paths_lead_to_the_value),
		cmocka_unit_test(test_items_one_after_the_other),
		cmocka_unit_test(test_what_is_absent_is_told),
		cmocka_unit_test(test_failures_name_file_path_and_suggestion),
		cmocka_unit_test(test_a_choice_is_an_index_among_the_known_texts),
		cmocka_unit_test(test_only_known_keys_pass),
		cmocka_unit_test(test_whole_numbers_are_exact_and_in_range),
		cmocka_unit_test(test_values_of_the_wrong_type_are_refused),
		cmocka_unit_test(test_files_are_loaded_or_named),
		cmocka_unit_test(test_every_failing_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
