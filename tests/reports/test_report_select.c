/*
 * --columns, --sort, --where, --limit and --sql: of reports and views, in all formats.
 */
#include "support/report_sample.h"
#include "support/support.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "reports/report_registry.h"
#include "reports/table/report_select.h"

static char folder[SUPPORT_PATH_SIZE];
static char path[SUPPORT_PATH_SIZE + 32];

static int setup(void **state)
{
	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/run.db", folder);
	report_sample_write(path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_tempdir_remove(folder);
	return 0;
}

/* Run `ipu-report run.db @arguments` in the folder. */
static void report(struct support_result *result, const char *arguments)
{
	support_shell(result, "cd '%s' && '%s'/ipu-report run.db %s", folder, support_bin_dir(),
		      arguments);
}

/* The same; it works, and this is what it prints. */
static void assert_prints(const char *arguments, const char *expected)
{
	struct support_result result;

	report(&result, arguments);
	if (result.exit_code || strcmp(result.out, expected) != 0)
		fail_msg("%s\nexit %d %s\n%s\nexpected\n%s", arguments, result.exit_code,
			 result.err, result.out, expected);
	support_result_free(&result);
}

static const struct {
	const char *arguments, *csv;
} chosen[] = {
	{"layers --columns params,layer --csv",
	 "params,layer\r\n0,flatten\r\n100480,Dense_128\r\n1290,Dense_10\r\n"},
	{"layers --columns layer --sort -params --csv",
	 "layer\r\nDense_128\r\nDense_10\r\nflatten\r\n"},
	{"layers --columns layer --sort class,-layer --csv",
	 "layer\r\nDense_128\r\nDense_10\r\nflatten\r\n"},
	{"layers --columns layer --sort +position --limit 1 --csv", "layer\r\nflatten\r\n"},
	{"layers --columns layer -w 'params > 1000' -w 'params<2000' --csv",
	 "layer\r\nDense_10\r\n"},
	{"layers --columns layer --where 'layer ~ Dense_*' --csv",
	 "layer\r\nDense_128\r\nDense_10\r\n"},
	{"layers --columns layer --where 'layer !~ *_*' --csv", "layer\r\nflatten\r\n"},
	{"layers --columns layer --where \"layer = 'Dense_10'\" --csv", "layer\r\nDense_10\r\n"},
	{"layers --columns layer --where layer=Dense_10 --csv", "layer\r\nDense_10\r\n"},
	{"layers --columns layer --where 'layer != flatten' --sort layer --csv",
	 "layer\r\nDense_10\r\nDense_128\r\n"},
	{"executions --columns mode --where 'epoch IS  NULL' --csv", "mode\r\nevaluate\r\n"},
	{"executions --columns mode --where 'epoch is not null' --csv", "mode\r\ntrain\r\n"},
	{"executions --columns mode --where 'traced = yes' --csv", "mode\r\ntrain\r\n"},
	{"executions --columns mode --where 'dur_ns >= 9ms' --csv", "mode\r\ntrain\r\n"},
	{"executions --columns mode --where 'dur_ns < 0.009 s' --csv", "mode\r\nevaluate\r\n"},
	{"executions --columns mode --where 'start_ns >= 9ms' --csv", "mode\r\nevaluate\r\n"},
	{"variables --columns variable_id --where 'bytes > 392kB' --csv", "variable_id\r\n"},
	{"variables --columns variable_id --where 'bytes = 392kB' --csv", "variable_id\r\n0\r\n"},
	{"view:bubbles --columns weight_update,clock --where 'idle_fraction = 50%' --csv",
	 "weight_update,clock\r\n1,host\r\n1,device\r\n"},
	{"view:metrics --columns name,value --where 'value >= 2.5' --csv",
	 "name,value\r\nloss,2.5\r\n"},
	{"meta --columns value --where 'key = stages' --where 'value = 2' --csv", "value\r\n2\r\n"},
	{"operations --columns operation --csv", "operation\r\nDense_128/fwd\r\nDense_10/fwd\r\n"},
	{"operations --columns operation,cycles_share --sort cycles --csv",
	 "operation,cycles_share\r\nDense_10/fwd,0.14285714285714285\r\n"
	 "Dense_128/fwd,0.8571428571428571\r\n"},
	{"operations --by stage --columns stage,flops --sort -stage --csv",
	 "stage,flops\r\n1,81920\r\n0,6422528\r\n"},
	{"view:operations --columns kind --limit 1 --csv", "kind\r\nmatmul\r\n"},
};

static void test_columns_rows_and_order_are_chosen(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(chosen); i++)
		assert_prints(chosen[i].arguments, chosen[i].csv);
}

static void test_text_and_json_choose_alike(void **state)
{
	struct support_result result;
	const cJSON *row;
	cJSON *root;

	(void)state;
	assert_prints("layers --columns layer,params --sort -params --where 'params > 0'",
		      "layer       params\n"
		      "---------  -------\n"
		      "Dense_128  100,480\n"
		      "Dense_10     1,290\n");
	report(&result, "layers --columns layer,params --sort -params --limit 1 --json");
	root = cJSON_Parse(result.out);
	assert_non_null(root);
	assert_string_equal(cJSON_GetObjectItem(root, "report")->valuestring, "layers");
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "rows")), 1);
	row = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "rows"), 0);
	assert_int_equal(cJSON_GetArraySize(row), 2);
	assert_int_equal(cJSON_GetObjectItem(row, "params")->valueint, 100480);
	assert_contains(cJSON_GetObjectItem(root, "note")->valuestring, "the first 1 rows");
	cJSON_Delete(root);
	support_result_free(&result);
}

/* Columns that were asked for are shown however wide that is; texts give way. */
static void test_asked_columns_are_never_left_out(void **state)
{
	struct support_result result;

	(void)state;
	report(&result, "operations --columns all");
	assert_int_equal(result.exit_code, 0);
	assert_contains(result.out, "per_");
	assert_null(strstr(result.out, "left out"));
	support_result_free(&result);

	report(&result, "operations");
	assert_contains(result.out, "More columns: layer, kind, flops,");
	support_result_free(&result);
}

static const struct {
	const char *arguments, *error;
} refused[] = {
	{"spans --columns nmae", "--columns: no column \"nmae\" (did you mean \"name\"?)"},
	{"layers --columns xyzzyxyzzy", "(there are layer, class, position,"},
	{"spans --columns name,name", "--columns: \"name\" twice"},
	{"spans --columns ''", "--columns: no column named"},
	{"spans --columns name,,dur_ns", "--columns: no column \"\""},
	{"spans --sort durns", "--sort: no column \"durns\" (did you mean \"dur_ns\"?)"},
	{"spans --sort ''", "--sort: no column named"},
	{"spans --where 'durns > 1'", "--where: no column \"durns\" (did you mean \"dur_ns\"?)"},
	{"spans --where 'dur_ns'", "is not `column OP value`"},
	{"spans --where 'dur_ns like 3'", "is not `column OP value`"},
	{"spans --where ''", "--where: no column \"\""},
	{"spans --where 'dur_ns > much'", "--where: dur_ns: \"much\" is not a number"},
	{"spans --where 'dur_ns > 3 MB'", "--where: dur_ns: \"3 MB\" is not a number"},
	{"spans --where 'dur_ns >'", "--where: dur_ns needs a value"},
	{"spans --where 'dur_ns is null 3'", "\"3\" too much"},
	{"spans --where 'name; DROP TABLE meta_facts = 1'", "--where: no column"},
	{"spans --where '\"name\" = 1'", "--where: no column"},
	{"spans --columns 'name FROM spans; --'", "--columns: no column"},
	{"spans --sort 'name; DROP TABLE meta_facts'", "--sort: no column"},
	{"spans --sort 'name DESC'", "--sort: no column"},
	{"spans --by stage", "--by: `spans` is a view"},
	{"operations --by tile", "has no grouping \"tile\" (one of: operation layer stage phase)"},
	{"summary --where 'a = 1'", "--where is for reports made of rows, not for `summary`"},
	{"summary --sql", "--sql is for reports made of rows, not for `summary`"},
	{"list --sort report", "--sort is for reports made of rows, not for `list`"},
	{"health --reevaluate default --sort rule", "--reevaluate goes with"},
	{"view:spanz", "unknown view \"spanz\" (did you mean \"spans\"?)"},
	{"view:summary", "unknown view \"summary\" (`ipu-report list`"},
};

static void test_wrong_choices_are_one_line_and_exit_2(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct support_result result;

		report(&result, refused[i].arguments);
		if (result.exit_code != 2 || !strstr(result.err, refused[i].error))
			fail_msg("%s: exit %d: %s", refused[i].arguments, result.exit_code,
				 result.err);
		assert_string_equal(result.out, "");
		assert_ptr_equal(strchr(result.err, '\n'), result.err + strlen(result.err) - 1);
		support_result_free(&result);
	}
}

static void test_too_many_conditions_are_refused(void **state)
{
	struct support_result result;
	char arguments[2048] = "spans";

	(void)state;
	for (int i = 0; i <= REPORT_WHERES; i++)
		strcat(arguments, " -w 'depth = 0'");
	report(&result, arguments);
	assert_int_equal(result.exit_code, 2);
	assert_contains(result.err, "--where: more than 16 conditions");
	support_result_free(&result);
}

/* Nothing that is written as a value can be anything else. */
static const char *const injections[] = {
	"x' OR '1'='1",
	"x'; DROP TABLE meta_facts; --",
	"x' UNION SELECT 1 --",
	"1) OR (1=1",
	"1 OR 1=1",
	":w0",
	"\"layer\"",
	"it''s",
	"'",
	"''''",
	"%s%n",
	"\x01\x02",
	"--",
	"/*",
	"?1",
};

static char *rendered(const char *name, const struct report_choice *choice)
{
	const struct report_entry *entry;
	struct report_request request = {.choice = *choice,
					 .limit = REPORT_LIMIT_DEFAULT,
					 .render = {.format = REPORT_AS_CSV, .tool = "t"}};
	struct err err = {0};
	size_t size = 0;
	char *out = NULL;

	assert_int_equal(report_entry_find(&entry, name, NULL), ST_OK);
	assert_int_equal(prof_db_open(&request.db, path, NULL), ST_OK);
	request.out = open_memstream(&out, &size);
	if (entry->run(entry, &request, &err) != ST_OK)
		fail_msg("%s: %s", name, err.text);
	fclose(request.out);
	prof_db_close(request.db);
	return out;
}

static void test_a_value_is_never_sql(void **state)
{
	static const char *const columns[] = {"layer", "params"};
	char *before = rendered("meta", &(struct report_choice){0}), *after, *out;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(injections); i++) {
		for (size_t c = 0; c < ARRAY_LEN(columns); c++) {
			char condition[256];
			struct report_choice choice = {.columns = "layer", .where_count = 1};
			struct report_table table;
			struct prof_db *db;

			snprintf(condition, sizeof(condition), "%s = %s", columns[c],
				 injections[i]);
			choice.where[0] = condition;
			out = rendered("layers", &choice);
			assert_string_equal(out, "layer\r\n");
			free(out);

			/* What is printed of it is one statement that finds nothing either. */
			choice.sql = true;
			out = rendered("layers", &choice);
			assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
			if (report_table_query(&table, db, "q", out, 0, NULL) != ST_OK)
				fail_msg("not SQL: %s", out);
			assert_int_equal(table.row_count, 0);
			report_table_free(&table);
			prof_db_close(db);
			free(out);
		}
	}
	after = rendered("meta", &(struct report_choice){0});
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void test_the_query_is_printed_with_its_values(void **state)
{
	(void)state;
	assert_prints("spans --sql", "SELECT * FROM spans;\n");
	assert_prints("view:layers --sql --columns layer,params --sort -params,layer "
		      "--where \"layer != it's\" --where 'params > 0.5' --limit 3",
		      "SELECT \"layer\", \"params\"\n"
		      "FROM (\n"
		      "SELECT * FROM layers\n"
		      ")\n"
		      "WHERE \"layer\" <> 'it''s'\n"
		      "  AND \"params\" > 0.5\n"
		      "ORDER BY \"params\" DESC NULLS LAST, \"layer\" NULLS LAST\n"
		      "LIMIT 3;\n");
}

static void test_no_memory_is_reported(void **state)
{
	const struct report_source source = {.name = "layers",
					     .sql = "SELECT * FROM layers",
					     .columns = "layer,params",
					     .sort = "layer",
					     .none = "none"};
	const struct report_choice choice = {
		.sort = "-params", .where = {"params > 0", "layer ~ 'D*'"}, .where_count = 2};
	struct prof_db *db;
	bool failed = true;

	(void)state;
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	for (long n = 0; failed && n < 1000; n++) {
		struct report_table table;
		enum status status;

		support_fail_alloc(n);
		status = report_select_table(&table, &source, &choice, db, true, 1, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		report_table_free(&table);
	}
	assert_false(failed);
	prof_db_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns_rows_and_order_are_chosen),
		cmocka_unit_test(test_text_and_json_choose_alike),
		cmocka_unit_test(test_asked_columns_are_never_left_out),
		cmocka_unit_test(test_wrong_choices_are_one_line_and_exit_2),
		cmocka_unit_test(test_too_many_conditions_are_refused),
		cmocka_unit_test(test_a_value_is_never_sql),
		cmocka_unit_test(test_the_query_is_printed_with_its_values),
		cmocka_unit_test(test_no_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
