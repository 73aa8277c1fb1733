/*
 * Tables as text, CSV and JSON: alignment, units, quoting, exactness.
 */
#include "support/support.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "reports/table/report_render.h"

static struct report_cell integer(int64_t value)
{
	return (struct report_cell){.type = PROF_INT, .integer = value};
}

static struct report_cell real(double value)
{
	return (struct report_cell){.type = PROF_REAL, .real = value};
}

static struct report_cell text(const char *value)
{
	return (struct report_cell){.type = PROF_TEXT, .text = value};
}

static struct report_cell null(void)
{
	return (struct report_cell){.type = PROF_NULL};
}

/* What rendering @table prints; the caller's (free). */
static char *rendered(const struct report_table *table, enum report_format format, int width)
{
	struct report_render_params params = {.format = format, .width = width, .tool = "test"};
	size_t size = 0;
	char *out = NULL;
	FILE *file = open_memstream(&out, &size);

	assert_non_null(file);
	assert_int_equal(report_render(table, &params, file, NULL), ST_OK);
	fclose(file);
	return out;
}

static void assert_renders(const struct report_table *table, enum report_format format, int width,
			   const char *expected)
{
	char *out = rendered(table, format, width);

	assert_string_equal(out, expected);
	free(out);
}

static struct report_column columns[] = {
	{"name", REPORT_TEXT},   {"stage", REPORT_NUMBER}, {"count", REPORT_COUNT},
	{"dur_ns", REPORT_NS},   {"bytes", REPORT_BYTES},  {"idle_fraction", REPORT_FRACTION},
	{"traced", REPORT_BOOL}, {"mean", REPORT_REAL},
};

enum {
	COLUMNS = ARRAY_LEN(columns)
};

static void test_text_aligns_numbers_right_with_units(void **state)
{
	struct report_cell cells[] = {
		text("Dense_128"), integer(0),   integer(1234567), integer(2410),
		integer(638976),   real(0.4286), integer(1),       real(0.125),
		text("a"),         null(),       integer(7),       null(),
		integer(12),       real(1),      integer(0),       real(INFINITY),
	};
	struct report_table table = {.name = "t",
				     .columns = columns,
				     .cells = cells,
				     .column_count = COLUMNS,
				     .row_count = 2,
				     .note = "2 rows of 9"};

	(void)state;
	assert_renders(
		&table, REPORT_AS_TEXT, 80,
		"name       stage      count   dur_ns   bytes  idle_fraction  traced   mean\n"
		"---------  -----  ---------  -------  ------  -------------  ------  -----\n"
		"Dense_128      0  1,234,567  2.41 us  624 kB        42.86 %     yes  0.125\n"
		"a              -          7        -    12 B       100.00 %      no    inf\n"
		"\n"
		"2 rows of 9\n");
}

static void test_csv_quotes_as_rfc_4180_says(void **state)
{
	struct report_column csv[] = {{"name", REPORT_TEXT}, {"a,b", REPORT_REAL}};
	struct report_cell cells[] = {
		text("plain"),      real(0.1),       text("with, comma"), real(1e300),
		text("\"quoted\""), real(-INFINITY), text("two\nlines"),  integer(INT64_MAX),
		text(""),           null(),
	};
	struct report_table table = {
		.name = "t", .columns = csv, .cells = cells, .column_count = 2, .row_count = 5};

	(void)state;
	assert_renders(&table, REPORT_AS_CSV, 0,
		       "name,\"a,b\"\r\n"
		       "plain,0.1\r\n"
		       "\"with, comma\",1e+300\r\n"
		       "\"\"\"quoted\"\"\",-inf\r\n"
		       "\"two\nlines\",9223372036854775807\r\n"
		       "\"\",\r\n");
}

static void test_csv_does_not_steer_a_terminal(void **state)
{
	struct report_column column = {"name", REPORT_TEXT};
	struct report_cell cell = {.type = PROF_TEXT, .text = "a\x1b[2Jb\tc\n\xc2\x9b\xc3\xa9"};
	const struct report_table table = {
		.name = "t", .columns = &column, .cells = &cell, .column_count = 1, .row_count = 1};
	struct report_render_params params = {
		.format = REPORT_AS_CSV, .tool = "test", .terminal = true};
	const char *const expected[] = {"name\r\n\"a\x1b[2Jb\tc\n\xc2\x9b\xc3\xa9\"\r\n",
					"name\r\n\"a?[2Jb\tc\n?\xc3\xa9\"\r\n"};

	(void)state;
	for (int terminal = 0; terminal < 2; terminal++) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		params.terminal = terminal == 1;
		assert_int_equal(report_render(&table, &params, out, NULL), ST_OK);
		fclose(out);
		assert_string_equal(text, expected[terminal]);
		free(text);
	}
}

static void test_csv_for_a_spreadsheet_has_no_formulas(void **state)
{
	static const char *const texts[] = {"=1+1", "@x", "-\"2\"", "plain", "a=b", ""};
	static const char *const expected[] = {
		"n\r\n=1+1\r\n@x\r\n\"-\"\"2\"\"\"\r\nplain\r\na=b\r\n\"\"\r\n",
		"n\r\n'=1+1\r\n'@x\r\n\"'-\"\"2\"\"\"\r\nplain\r\na=b\r\n\"\"\r\n"};
	struct report_cell cells[ARRAY_LEN(texts)];
	struct report_column column = {"n", REPORT_TEXT};
	const struct report_table table = {.name = "t",
					   .columns = &column,
					   .cells = cells,
					   .column_count = 1,
					   .row_count = ARRAY_LEN(texts)};
	struct report_render_params params = {.format = REPORT_AS_CSV, .tool = "test"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		cells[i] = (struct report_cell){.type = PROF_TEXT, .text = texts[i]};
	for (int safe = 0; safe < 2; safe++) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		params.csv_safe = safe == 1;
		assert_int_equal(report_render(&table, &params, out, NULL), ST_OK);
		fclose(out);
		assert_string_equal(text, expected[safe]);
		free(text);
	}
}

static void test_json_is_an_envelope_that_keeps_every_number(void **state)
{
	struct report_column json[] = {{"value", REPORT_REAL}, {"name", REPORT_TEXT}};
	struct report_cell cells[] = {
		integer(9007199254740992),
		text("a \"b\"\n\x01"),
		integer(9007199254740993),
		null(),
		real(INFINITY),
		text("x"),
		real(-INFINITY),
		text("y"),
		real(0.1),
		text("z"),
	};
	struct report_table table = {.name = "some",
				     .columns = json,
				     .cells = cells,
				     .column_count = 2,
				     .row_count = 5,
				     .note = "5 of 6"};
	char *out = rendered(&table, REPORT_AS_JSON, 0);
	cJSON *root = cJSON_Parse(out), *rows, *row;

	(void)state;
	assert_string_equal(cJSON_GetObjectItem(root, "tool")->valuestring, "test");
	assert_true(cJSON_IsString(cJSON_GetObjectItem(root, "version")));
	assert_int_equal(cJSON_GetObjectItem(root, "schema_version")->valueint,
			 PROF_SCHEMA_VERSION);
	assert_string_equal(cJSON_GetObjectItem(root, "report")->valuestring, "some");
	assert_string_equal(cJSON_GetObjectItem(root, "note")->valuestring, "5 of 6");
	rows = cJSON_GetObjectItem(root, "rows");
	assert_int_equal(cJSON_GetArraySize(rows), 5);

	row = cJSON_GetArrayItem(rows, 0);
	assert_true(cJSON_IsNumber(cJSON_GetObjectItem(row, "value")));
	assert_string_equal(cJSON_GetObjectItem(row, "name")->valuestring, "a \"b\"\n\x01");
	row = cJSON_GetArrayItem(rows, 1);
	assert_string_equal(cJSON_GetObjectItem(row, "value")->valuestring, "9007199254740993");
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(row, "name")));
	row = cJSON_GetArrayItem(rows, 2);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(row, "value")));
	assert_string_equal(cJSON_GetObjectItem(row, "value_nonfinite")->valuestring, "inf");
	row = cJSON_GetArrayItem(rows, 3);
	assert_string_equal(cJSON_GetObjectItem(row, "value_nonfinite")->valuestring, "-inf");
	row = cJSON_GetArrayItem(rows, 4);
	assert_true(cJSON_GetObjectItem(row, "value")->valuedouble == 0.1);
	assert_null(cJSON_GetObjectItem(row, "value_nonfinite"));
	cJSON_Delete(root);
	free(out);
}

static void test_no_rows_are_said_and_valid(void **state)
{
	struct report_table table = {.name = "t", .columns = columns, .column_count = 2};
	char *out;
	cJSON *root;

	(void)state;
	assert_renders(&table, REPORT_AS_TEXT, 80, "name  stage\n----  -----\n(no rows)\n");
	assert_renders(&table, REPORT_AS_CSV, 80, "name,stage\r\n");
	out = rendered(&table, REPORT_AS_JSON, 0);
	root = cJSON_Parse(out);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "rows")), 0);
	assert_null(cJSON_GetObjectItem(root, "note"));
	cJSON_Delete(root);
	free(out);
}

static void test_a_wide_table_gives_up_empty_columns_then_headings(void **state)
{
	struct report_column wide[] = {{"name", REPORT_TEXT},
				       {"operation", REPORT_TEXT},
				       {"theory_bubble_over_ideal", REPORT_FRACTION}};
	struct report_cell cells[] = {text("first"),  null(), real(0.25),
				      text("second"), null(), real(0.5)};
	struct report_table table = {
		.name = "t", .columns = wide, .cells = cells, .column_count = 3, .row_count = 2};

	(void)state;
	assert_renders(&table, REPORT_AS_TEXT, 20,
		       "        theory_\n"
		       "        bubble_\n"
		       "          over_\n"
		       "name      ideal\n"
		       "------  -------\n"
		       "first   25.00 %\n"
		       "second  50.00 %\n"
		       "\n"
		       "left out, without\n"
		       "any value:\n"
		       "operation.\n");
	assert_renders(&table, REPORT_AS_TEXT, 0,
		       "name    operation  theory_bubble_over_ideal\n"
		       "------  ---------  ------------------------\n"
		       "first   -                           25.00 %\n"
		       "second  -                           50.00 %\n");
	/* A report's own choice of columns makes no room for what says nothing. */
	table.fit = REPORT_FIT_LAST;
	assert_renders(&table, REPORT_AS_TEXT, 80,
		       "name    theory_bubble_over_ideal\n"
		       "------  ------------------------\n"
		       "first                    25.00 %\n"
		       "second                   50.00 %\n"
		       "\n"
		       "left out, without any value: operation.\n");
}

static void test_long_texts_are_cut_between_characters(void **state)
{
	struct report_column one[] = {{"n", REPORT_NUMBER}, {"text", REPORT_TEXT}};
	struct report_cell cells[] = {integer(1), text("ääääääääääääääääääääää"), integer(2),
				      text("b")};
	struct report_table table = {
		.name = "t", .columns = one, .cells = cells, .column_count = 2, .row_count = 2};

	(void)state;
	assert_renders(&table, REPORT_AS_TEXT, 16,
		       "n  text\n"
		       "-  -------------\n"
		       "1  ääääääääää...\n"
		       "2  b\n");
}

static void test_wide_characters_take_two_columns(void **state)
{
	struct report_column one[] = {{"text", REPORT_TEXT}, {"n", REPORT_NUMBER}};
	struct report_cell cells[] = {text("\u5c64\u5c64\u5c64\u5c64\u5c64\u5c64\u5c64\u5c64"),
				      integer(1), text("ab"), integer(2)};
	struct report_table table = {
		.name = "t", .columns = one, .cells = cells, .column_count = 2, .row_count = 2};

	(void)state;
	assert_renders(&table, REPORT_AS_TEXT, 16,
		       "text           n\n"
		       "-------------  -\n"
		       "\u5c64\u5c64\u5c64\u5c64\u5c64...  1\n"
		       "ab             2\n");
}

static void test_what_is_the_same_everywhere_moves_to_the_note(void **state)
{
	struct report_column many[] = {
		{"rank", REPORT_NUMBER}, {"mode", REPORT_TEXT}, {"a_long_name", REPORT_TEXT}};
	struct report_cell cells[] = {integer(0), text("train"), text("0123456789"),
				      integer(0), text("train"), text("9876543210")};
	struct report_table table = {
		.name = "t", .columns = many, .cells = cells, .column_count = 3, .row_count = 2};

	(void)state;
	assert_renders(&table, REPORT_AS_TEXT, 18,
		       "       a_long_\n"
		       "mode   name\n"
		       "-----  ----------\n"
		       "train  0123456789\n"
		       "train  9876543210\n"
		       "\n"
		       "in every row: rank\n"
		       "0.\n");
}

/* A recorded name is anybody's text: it must not reach the terminal as a command. */
static void test_control_characters_do_not_reach_the_terminal(void **state)
{
	struct report_cell cell = text("\x1b[31mred\x07 \xc2\x9b"
				       "2J\ttab\nline \xe2\x80\xae"
				       "bidi\xe2\x80\x8bzero");
	char out[64];

	(void)state;
	assert_string_equal(report_cell_text(&cell, REPORT_TEXT, out, sizeof(out)),
			    "?[31mred? ?2J tab line ?bidi?zero");
}

static void test_bold_headings_only_where_asked(void **state)
{
	struct report_table table = {.name = "t", .columns = columns, .column_count = 1};
	struct report_render_params params = {.format = REPORT_AS_TEXT, .bold = true};
	size_t size = 0;
	char *out = NULL;
	FILE *file = open_memstream(&out, &size);

	(void)state;
	assert_int_equal(report_render(&table, &params, file, NULL), ST_OK);
	fclose(file);
	assert_string_equal(out, "\033[1mname\n\033[0m----\n(no rows)\n");
	free(out);
}

static const struct {
	struct report_cell cell;
	enum report_quantity quantity;
	const char *expected;
} cell_cases[] = {
	{{.type = PROF_NULL}, REPORT_NS, "-"},
	{{.type = PROF_INT, .integer = 37100000}, REPORT_NS, "37.1 ms"},
	{{.type = PROF_REAL, .real = 37100000.4}, REPORT_NS, "37.1 ms"},
	{{.type = PROF_REAL, .real = -0.00320513}, REPORT_NS, "-0.00321 ns"},
	{{.type = PROF_REAL, .real = 99.96}, REPORT_NS, "100 ns"},
	{{.type = PROF_REAL, .real = 0}, REPORT_NS, "0 ns"},
	{{.type = PROF_REAL, .real = NAN}, REPORT_NS, "nan"},
	{{.type = PROF_REAL, .real = 2.5}, REPORT_BYTES, "2.5 B"},
	{{.type = PROF_INT, .integer = 1234567}, REPORT_NUMBER, "1234567"},
	{{.type = PROF_INT, .integer = 1234567}, REPORT_CYCLES, "1,234,567"},
	{{.type = PROF_REAL, .real = 0.5}, REPORT_FRACTION, "50.00 %"},
	{{.type = PROF_INT, .integer = -5}, REPORT_BYTES, "-5"},
	{{.type = PROF_INT, .integer = 7}, REPORT_BOOL, "7"},
	{{.type = PROF_REAL, .real = -INFINITY}, REPORT_REAL, "-inf"},
};

static void test_cells_carry_their_units(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cell_cases); i++) {
		char out[64];

		assert_string_equal(report_cell_text(&cell_cases[i].cell, cell_cases[i].quantity,
						     out, sizeof(out)),
				    cell_cases[i].expected);
	}
}

static void test_a_full_device_is_an_error(void **state)
{
	struct report_table table = {.name = "t", .columns = columns, .column_count = 1};
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	if (!full)
		skip();
	for (int format = 0; format < REPORT_FORMATS; format++) {
		struct report_render_params params = {.format = (enum report_format)format,
						      .tool = "t"};
		struct err err = {0};

		assert_int_equal(report_render(&table, &params, full, &err), ST_IO);
		assert_contains(err.text, "write");
	}
	fclose(full);
}

/* The reason is that of the write, whatever fails after it. */
static void test_a_row_onto_a_full_device_ends_the_stream(void **state)
{
	const struct report_render_params params = {.format = REPORT_AS_CSV, .tool = "t"};
	const struct report_cell cell = text("a");
	FILE *full = fopen("/dev/full", "w");
	struct report_stream stream;
	struct err err = {0};

	(void)state;
	if (!full)
		skip();
	report_stream_begin(&stream, "t", columns, 1, &params, full);
	for (int i = 0; i < 1000000 && report_stream_row(&stream, &cell); i++)
		;
	errno = ENOENT;
	assert_int_equal(report_stream_end(&stream, NULL, &err), ST_IO);
	assert_string_equal(err.text, "write: No space left on device");
	fclose(full);
}

static void test_no_memory_is_reported(void **state)
{
	struct report_cell cells[] = {text("a"), text("b")};
	struct report_table table = {
		.name = "t", .columns = columns, .cells = cells, .column_count = 1, .row_count = 2};

	(void)state;
	for (int format = 0; format < REPORT_FORMATS; format++) {
		bool failed = true;

		for (long n = 0; failed; n++) {
			struct report_render_params params = {.format = (enum report_format)format,
							      .tool = "t"};
			FILE *out = fopen("/dev/null", "w");
			enum status status;

			support_fail_alloc(n);
			status = report_render(&table, &params, out, NULL);
			failed = support_alloc_failed();
			support_fail_alloc(-1);
			assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
			fclose(out);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_aligns_numbers_right_with_units),
		cmocka_unit_test(test_csv_quotes_as_rfc_4180_says),
		cmocka_unit_test(test_csv_does_not_steer_a_terminal),
		cmocka_unit_test(test_csv_for_a_spreadsheet_has_no_formulas),
		cmocka_unit_test(test_json_is_an_envelope_that_keeps_every_number),
		cmocka_unit_test(test_no_rows_are_said_and_valid),
		cmocka_unit_test(test_a_wide_table_gives_up_empty_columns_then_headings),
		cmocka_unit_test(test_long_texts_are_cut_between_characters),
		cmocka_unit_test(test_wide_characters_take_two_columns),
		cmocka_unit_test(test_what_is_the_same_everywhere_moves_to_the_note),
		cmocka_unit_test(test_control_characters_do_not_reach_the_terminal),
		cmocka_unit_test(test_bold_headings_only_where_asked),
		cmocka_unit_test(test_cells_carry_their_units),
		cmocka_unit_test(test_a_full_device_is_an_error),
		cmocka_unit_test(test_a_row_onto_a_full_device_ends_the_stream),
		cmocka_unit_test(test_no_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
