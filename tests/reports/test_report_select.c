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
#include "common/str.h"
#include "reports/report_registry.h"
#include "reports/table/report_select.h"

static char folder[SUPPORT_PATH_SIZE];
static char path[SUPPORT_PATH_SIZE + 32];
static struct prof_db *opened; /* what conditions are tried on, one after the other */

static int setup(void **state)
{
	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/run.db", folder);
	report_sample_write(path);
	return prof_db_open(&opened, path, NULL) == ST_OK ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	prof_db_close(opened);
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
	{"layers --columns layer --where \"layer GLOB 'Dense_*'\" --csv",
	 "layer\r\nDense_128\r\nDense_10\r\n"},
	{"layers --columns layer --where \"layer NOT GLOB '*_*'\" --csv", "layer\r\nflatten\r\n"},
	{"layers --columns layer --where \"layer = 'Dense_10'\" --csv", "layer\r\nDense_10\r\n"},
	{"layers --columns layer --where \"layer='Dense_10'\" --csv", "layer\r\nDense_10\r\n"},
	{"layers --columns layer --where \"layer != 'flatten'\" --sort layer --csv",
	 "layer\r\nDense_10\r\nDense_128\r\n"},
	{"executions --columns mode --where 'epoch IS  NULL' --csv", "mode\r\nevaluate\r\n"},
	{"executions --columns mode --where 'epoch is not null' --csv", "mode\r\ntrain\r\n"},
	{"executions --columns mode --where 'traced = TRUE' --csv", "mode\r\ntrain\r\n"},
	{"executions --columns mode --where \"dur_ns >= ns('9ms')\" --csv", "mode\r\ntrain\r\n"},
	{"executions --columns mode --where \"dur_ns < NS ( '0.009 s' )\" --csv",
	 "mode\r\nevaluate\r\n"},
	{"executions --columns mode --where \"start_ns>=ns('9 ms')\" --csv",
	 "mode\r\nevaluate\r\n"},
	{"variables --columns variable_id --where \"bytes > bytes('392kB')\" --csv",
	 "variable_id\r\n"},
	{"variables --columns variable_id --where \"bytes = bytes('392 kB')\" --csv",
	 "variable_id\r\n0\r\n"},
	{"view:bubbles --columns weight_update,clock --where \"idle_fraction = percent('50%')\" "
	 "--csv",
	 "weight_update,clock\r\n1,host\r\n1,device\r\n"},
	{"view:metrics --columns name,value --where 'value >= 2.5' --csv",
	 "name,value\r\nloss,2.5\r\n"},
	{"meta --columns value --where \"key = 'stages'\" --where 'value = 2' --csv",
	 "value\r\n2\r\n"},
	{"layers --columns layer --where \"params BETWEEN 1 AND 2000 OR layer IN ('flatten', "
	 "'--;')\" "
	 "--csv",
	 "layer\r\nflatten\r\nDense_10\r\n"},
	{"layers --columns layer --where \"params > 1 -ns('-1 us')\" --csv",
	 "layer\r\nDense_128\r\nDense_10\r\n"},
	{"layers --columns layer --where 'CASE WHEN \"params\" > 0 THEN abs([params]) ELSE 0 END' "
	 "--csv",
	 "layer\r\nDense_128\r\nDense_10\r\n"},
	{"layers --columns layer --where 'NOT params > NULL' --csv", "layer\r\n"},
	{"operations --columns operation --csv", "operation\r\nDense_128/fwd\r\nDense_10/fwd\r\n"},
	{"operations --columns operation,update_share --sort cycles --csv",
	 "operation,update_share\r\nDense_10/fwd,0.14285714285714285\r\n"
	 "Dense_128/fwd,0.8571428571428571\r\n"},
	{"operations --by stage --columns stage,update_flops --sort -stage --csv",
	 "stage,update_flops\r\n1,327680\r\n0,25690112\r\n"},
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
	{"spans --where 'dur_ns > 1 AND stag = 0'", "no column \"stag\" (did you mean \"stage\"?)"},
	{"spans --where 'dur_ns = \"stage 0\"'", "--where: no column \"stage\""},
	{"spans --where ''", "--where: \"\": a condition is needed"},
	{"spans --where 'dur_ns >'", "--where: \"dur_ns >\": incomplete input"},
	{"spans --where 'dur_ns is null 3'", "near \"3\": syntax error"},
	{"spans --where \"dur_ns > ns('3 MB')\"", "ns() is written as ns('1.5 ms'), with ns, us,"},
	{"spans --where \"dur_ns > ns('3')\"", "ns() is written as"},
	{"spans --where 'dur_ns > ns(dur_ns)'", "ns() is written as"},
	{"spans --where \"dur_ns > ns('1 ms'\"", "ns() is written as"},
	{"spans --where \"dur_ns > percent('1 ms')\"", "percent() is written as percent('20 %')"},
	{"spans --where \"dur_ns > bytes('1 ms')\"", "bytes() is written as bytes('64 kB')"},
	{"spans --where \"ns('1 ms')5 > 1\"", "near \"5\": syntax error"},
	{"spans --where \"name = 'x\"", "' does not end: 'x"},
	{"spans --columns 'name FROM spans; --'", "--columns: no column"},
	{"spans --sort 'name; DROP TABLE meta_facts'", "--sort: no column"},
	{"spans --sort 'name DESC'", "--sort: no column"},
	{"spans --by stage", "--by: `spans` is a view"},
	{"operations --by tile",
	 "has no grouping \"tile\" (one of: operation layer part stage phase measured)"},
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

/* Conditions of 0.9.0, and what is said to write in their place. */
static const struct {
	const char *report, *old, *sql;
} former[] = {
	{"layers", "layer ~ Dense_*", "layer GLOB 'Dense_*'"},
	{"layers", "layer !~ *_*", "layer NOT GLOB '*_*'"},
	{"layers", "layer ~ 'Dense_*'", "layer GLOB 'Dense_*'"},
	{"layers", "layer=Dense_10", "layer = 'Dense_10'"},
	{"layers", "layer = \"Dense_10\"", "layer = 'Dense_10'"},
	{"layers", "layer != it's", "layer <> 'it''s'"},
	{"layers", "layer ~ it's*", "layer GLOB 'it''s*'"},
	{"spans", "dur_ns > 1ms", "dur_ns > ns('1ms')"},
	{"spans", " start_ns  >=  1.5 ms ", "start_ns >= ns('1.5 ms')"},
	{"variables", "bytes == 392kB", "bytes = bytes('392kB')"},
	{"bubbles", "idle_fraction > 20%", "idle_fraction > percent('20%')"},
	{"executions", "traced = yes", "traced = 1"},
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

/* The rows of the view @name for which @where holds. */
static enum status select_where(struct report_table *out, const char *name, const char *where,
				struct err *err)
{
	char sql[64];
	const struct report_source source = {.name = name, .sql = sql};
	const struct report_choice choice = {.where = {where}, .where_count = 1};

	snprintf(sql, sizeof(sql), "SELECT * FROM %s", name);
	return report_select_table(out, &source, &choice, opened, false, 0, err);
}

static void test_conditions_of_before_are_shown_as_sql(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(former); i++) {
		char expected[256];
		struct report_table table;
		struct err err = {0};

		snprintf(expected, sizeof(expected), "--where: \"%s\" is not SQL: write \"%s\"",
			 former[i].old, former[i].sql);
		assert_int_equal(select_where(&table, former[i].report, former[i].old, &err),
				 ST_INVALID);
		assert_string_equal(err.text, expected);
		/* And that works. */
		assert_int_equal(select_where(&table, former[i].report, former[i].sql, &err),
				 ST_OK);
		report_table_free(&table);
	}
}

/* Nothing but an expression over the report's columns passes. */
static const char *const injections[] = {
	"layer = 'x' OR '1'='1",
	"1) OR (1=1",
	"1; DROP TABLE meta_facts",
	"1); DROP TABLE meta_facts; --",
	"1) UNION SELECT * FROM layers --",
	"1 UNION SELECT 1",
	"1 ORDER BY 1",
	"1 LIMIT 1",
	"1 GROUP BY layer",
	"1 WINDOW w AS ()",
	"1, 2",
	"(1, 2)",
	"layer AS x",
	")",
	"(",
	"())",
	"--",
	"1 --",
	"1 -- x\n",
	"1 /* x */",
	"1 /*",
	"*/ 1",
	";",
	"1;",
	"'",
	"\"layer",
	"[layer",
	"`layer",
	"layer = 'it''s",
	"EXISTS (SELECT 1)",
	"NOT EXISTS (SELECT 1)",
	"(SELECT count(*) FROM meta_facts) > 0",
	"(WITH x AS (SELECT 1) SELECT * FROM x)",
	"(VALUES (1))",
	"layer IN (SELECT layer FROM layers)",
	"layer IN layers",
	"layer IN main.layers",
	"layer IN report",
	"layer IN sqlite_schema",
	"layer IN pragma_table_info('layers')",
	"layer IN json_each('[1]')",
	"meta_facts.key = 'x'",
	"report.layer = 'x'",
	"main.report.layer = 'x'",
	"layers.layer = 'x'",
	"rowid = 1",
	"oid = 1",
	"_rowid_ = 1",
	"report",
	"load_extension('x')",
	"readfile('/etc/passwd') > ''",
	"writefile('/tmp/x', 'x')",
	"edit('x')",
	"fts3_tokenizer('simple') > ''",
	"sqlite_version() > ''",
	"sqlite_source_id() > ''",
	"last_insert_rowid() = 0",
	"changes() = 0",
	"random() > 0",
	"randomblob(1000000000) > ''",
	"zeroblob(1000000000) > ''",
	"printf('%1000000000d', 1) > ''",
	"format('%s', 1) > ''",
	"replace(replace(layer, '', layer), 'a', layer) > ''",
	"hex(hex(layer)) > ''",
	"quote(layer) > ''",
	"char(1) > ''",
	"date('now') > ''",
	"current_timestamp > ''",
	"count(*) > 0",
	"sum(params) > 0",
	"group_concat(layer) > ''",
	"json_group_array(layer) > ''",
	"row_number() OVER () > 1",
	"max(params) > 0",
	":w0",
	"?1",
	"?",
	"$x",
	"@x",
	"$x::y(z)",
	"$ns('1 ms')",
	"x.ns('1 ms')",
	"1.ns('1 ms') > 0",
	"ns('1 ms').5 > 0",
	"RAISE(ABORT, 'x')",
	"layer MATCH 'x'",
	"layer REGEXP 'x'",
	"layer COLLATE nosuch = ''",
	"CAST(layer AS",
	"ATTACH 'x' AS y",
	"PRAGMA query_only = 0",
	"%s%n",
	"\x01\x02",
	"\xff\xfe",
};

static void test_nothing_but_an_expression_passes(void **state)
{
	char *before = rendered("meta", &(struct report_choice){0}), *after;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(injections); i++) {
		struct report_table table;
		struct err err = {0};

		if (select_where(&table, "layers", injections[i], &err) != ST_INVALID)
			fail_msg("passes: %s", injections[i]);
		assert_true(err.text[0] != '\0');
		assert_null(strchr(err.text, '\n'));
	}
	after = rendered("meta", &(struct report_choice){0});
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* @count times @begin, a number, and @count times @end. */
static char *nested(const char *begin, const char *end, int count)
{
	struct str text = {0};

	for (int i = 0; i < count; i++)
		str_add(&text, begin);
	str_add(&text, "1");
	for (int i = 0; i < count; i++)
		str_add(&text, end);
	assert_false(text.failed);
	return text.text;
}

/* Parentheses that group add no depth: before SQLite 3.46 its parser's stack bounds them, since
 * then the length of the text alone. */
static void test_long_and_deep_conditions_are_refused(void **state)
{
	static const struct {
		const char *begin, *end;
		int passes, fails;
	} deep[] = {
		{"(", ")", 60, 5000},       {"-(", ")", 40, 2000}, {"NOT ", "", 40, 1000},
		{"abs(", ")", 20, 500},     {"", " + 1", 60, 500}, {"", " AND layer = 1", 60, 5000},
		{"iif(1,", ",2)", 15, 300},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(deep); i++) {
		for (int fails = 0; fails < 2; fails++) {
			char *where = nested(deep[i].begin, deep[i].end,
					     fails ? deep[i].fails : deep[i].passes);
			struct report_table table;
			struct err err = {0};
			enum status status = select_where(&table, "layers", where, &err);

			if (status != (fails ? ST_INVALID : ST_OK))
				fail_msg("%.40s...: %d %s", where, (int)status, err.text);
			report_table_free(&table);
			mem_free(where);
		}
	}
}

/* Any bytes: no crash, and what passes is still one statement that reads. */
static void test_random_conditions_do_no_harm(void **state)
{
	static const char *const pieces[] = {
		"layer",
		"params",
		"1",
		"'x'",
		"''",
		"\"layer\"",
		"(",
		")",
		" AND ",
		" OR ",
		" NOT ",
		" = ",
		" > ",
		"~",
		"!~",
		"--",
		"/*",
		"*/",
		";",
		",",
		"ns('1 ms')",
		"ns(",
		"percent('5%')",
		"SELECT",
		" FROM ",
		" WHERE ",
		"?1",
		":x",
		"GLOB",
		"'D*'",
		"[",
		"]",
		"`",
		"'",
		"\"",
		" ",
		" IS NULL",
		" IN ",
		"-",
		"1e9",
		"0x10",
		"%",
		"abs(",
		"max(",
		" BETWEEN ",
		"CASE",
		"END",
	};
	unsigned seed = 1, passed = 0;

	(void)state;
	for (int i = 0; i < 500; i++) {
		struct report_choice choice = {.where_count = 1, .sql = true};
		struct str where = {0};
		struct report_table table;
		struct err err = {0};

		for (int k = rand_r(&seed) % 7; k >= 0; k--)
			str_add(&where, pieces[(size_t)rand_r(&seed) % ARRAY_LEN(pieces)]);
		choice.where[0] = str_peek(&where);
		if (select_where(&table, "layers", choice.where[0], &err) == ST_OK) {
			struct report_table again;
			char *sql = rendered("view:layers", &choice);

			/* What --sql prints finds the same. */
			passed++;
			if (report_table_query(&again, opened, "q", sql, 0, NULL) != ST_OK)
				fail_msg("not SQL: %s", sql);
			assert_int_equal(again.row_count, table.row_count);
			report_table_free(&again);
			free(sql);
			report_table_free(&table);
		} else {
			assert_true(err.text[0] != '\0');
		}
		str_free(&where);
	}
	assert_true(passed > 20);
}

static void test_the_query_is_printed_with_its_values(void **state)
{
	(void)state;
	assert_prints("spans --sql", "SELECT * FROM spans;\n");
	assert_prints("view:layers --sql --columns layer,params --sort -params,layer "
		      "--where \"layer != 'it''s'\" --where \"params > ns('1.5 ns')\" --limit 3",
		      "SELECT \"layer\", \"params\"\n"
		      "FROM (\n"
		      "SELECT * FROM layers\n"
		      ")\n"
		      "WHERE (layer != 'it''s')\n"
		      "  AND (params > 1.5)\n"
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
	const struct report_choice choice = {.sort = "-params",
					     .where = {"params > bytes('0 B')", "layer GLOB 'D*'"},
					     .where_count = 2};
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
		cmocka_unit_test(test_conditions_of_before_are_shown_as_sql),
		cmocka_unit_test(test_nothing_but_an_expression_passes),
		cmocka_unit_test(test_long_and_deep_conditions_are_refused),
		cmocka_unit_test(test_random_conditions_do_no_harm),
		cmocka_unit_test(test_the_query_is_printed_with_its_values),
		cmocka_unit_test(test_no_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
