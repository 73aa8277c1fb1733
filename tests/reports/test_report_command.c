/*
 * The command ipu-report as people meet it: exit codes, one-line errors, and where reports are
 * found.
 */
#include "support/report_sample.h"
#include "support/support.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"

static char folder[SUPPORT_PATH_SIZE];

static int setup(void **state)
{
	char path[SUPPORT_PATH_SIZE + 64];

	(void)state;
	support_tempdir(folder);
	snprintf(path, sizeof(path), "%s/run.db", folder);
	report_sample_write(path);
	snprintf(path, sizeof(path), "%s/killed.db", folder);
	report_sample_write_killed(path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_tempdir_remove(folder);
	return 0;
}

/* Run `ipu-report @arguments` in the folder. */
static void report(struct support_result *result, const char *arguments)
{
	support_shell(result, "cd '%s' && '%s'/ipu-report %s", folder, support_bin_dir(),
		      arguments);
}

static void assert_one_line(const struct support_result *result, int exit_code)
{
	if (result->exit_code != exit_code)
		fail_msg("exit %d: %s%s", result->exit_code, result->out, result->err);
	assert_string_equal(result->out, "");
	assert_int_equal(strncmp(result->err, "ipu-report: ", 12), 0);
	assert_ptr_equal(strchr(result->err, '\n'), result->err + strlen(result->err) - 1);
}

static void test_the_summary_is_the_default(void **state)
{
	struct support_result a, b;

	(void)state;
	report(&a, "run.db");
	report(&b, "run.db summary");
	assert_int_equal(a.exit_code, 0);
	assert_string_equal(a.out, b.out);
	assert_string_equal(a.err, "");
	assert_contains(a.out, "Bubble");
	assert_null(strchr(a.out, '\033'));
	support_result_free(&a);
	support_result_free(&b);
}

static void test_two_runs_print_the_same_bytes(void **state)
{
	static const char *const arguments[] = {"run.db", "run.db spans --json", "run.db bubbles",
						"run.db tensor_stats --csv"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(arguments); i++) {
		struct support_result a, b;

		report(&a, arguments[i]);
		report(&b, arguments[i]);
		assert_int_equal(a.exit_code, 0);
		assert_string_equal(a.out, b.out);
		support_result_free(&a);
		support_result_free(&b);
	}
}

static const struct {
	const char *arguments, *error;
	int exit_code;
} refused[] = {
	{"run.db spanz", "unknown report \"spanz\" (did you mean \"spans\"?)", 2},
	{"missing.db", "missing.db: no such file or folder, and no tf_report__... here", 2},
	{"spanz", "unknown report \"spanz\" (did you mean \"spans\"?), and no file", 2},
	{"none/run", "none/run: no such file or folder", 2},
	{"run.db/profile.db", "run.db/profile.db: no such file or folder", 2},
	{"run.db spans extra", "one word too many: \"extra\"", 2},
	{"run.db --jsn", "unknown option --jsn (did you mean --json?)", 2},
	{"run.db --csv --json", "exclude each other", 2},
	{"run.db spans --limit x", "--limit: \"x\" is not a number", 2},
	{"run.db spans --limit -3", "--limit: \"-3\" is not a number", 2},
	{"run.db --color purple", "--color", 2},
	{"spans", "no report given, and no tf_report__... here to choose from", 2},
	{"repair", "repair is the name of a report: write REPORT before it", 2},
	{"empty", "empty: no profile.db in this folder", 2},
	{"foreign.db", "foreign.db", 2},
	{"other.db", "other.db", 2},
	{"text.db", "text.db", 2},
	{"broken.db", "broken.db", 2},
	{"nothing.db", "nothing.db", 2},
};

/* A copy of run.db with four big-endian bytes of its header changed. */
static void write_patched(const char *name, size_t at, uint32_t value)
{
	char path[SUPPORT_PATH_SIZE + 64];
	size_t length;
	char *data;

	snprintf(path, sizeof(path), "%s/run.db", folder);
	data = support_read_file(path, &length);
	for (int i = 0; i < 4; i++)
		data[at + (size_t)i] = (char)(value >> (24 - 8 * i));
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	support_write_file(path, data, length);
	free(data);
}

static void test_wrong_requests_are_one_line_and_exit_2(void **state)
{
	char path[SUPPORT_PATH_SIZE + 64];

	(void)state;
	write_patched("foreign.db", 68, 0); /* application_id */
	write_patched("other.db", 60, 99);  /* user_version */
	write_patched("broken.db", 0, 0);   /* magic */
	snprintf(path, sizeof(path), "%s/text.db", folder);
	support_write_file(path, "not a database\n", 15);
	snprintf(path, sizeof(path), "%s/nothing.db", folder);
	support_write_file(path, "", 0);
	snprintf(path, sizeof(path), "%s/empty", folder);
	mkdir(path, 0777);

	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct support_result result;

		report(&result, refused[i].arguments);
		assert_one_line(&result, refused[i].exit_code);
		assert_contains(result.err, refused[i].error);
		support_result_free(&result);
	}
}

static void test_a_file_of_another_schema_is_one_line_with_both_versions(void **state)
{
	(void)state;
	for (uint32_t version = 0; version <= 6; version++) {
		struct support_result result;
		char text[64];

		write_patched("other.db", 60, version); /* user_version */
		report(&result, "other.db spans --json");
		if (version == 1) {
			assert_int_equal(result.exit_code, 0);
		} else {
			snprintf(text, sizeof(text),
				 "version %u, and this ipuscope reads version 1",
				 (unsigned)version);
			assert_one_line(&result, 2);
			assert_contains(result.err, text);
		}
		support_result_free(&result);
	}
}

static void test_a_torn_file_fails_without_harm(void **state)
{
	char path[SUPPORT_PATH_SIZE + 64];
	struct support_result result;
	size_t length;
	char *data;

	(void)state;
	snprintf(path, sizeof(path), "%s/run.db", folder);
	data = support_read_file(path, &length);
	memset(data + 16384, 0x5a, length - 16384);
	snprintf(path, sizeof(path), "%s/torn.db", folder);
	support_write_file(path, data, length);
	free(data);
	report(&result, "torn.db");
	assert_true(result.exit_code == 1 || result.exit_code == 2);
	assert_one_line(&result, result.exit_code);
	support_result_free(&result);
}

static void make_report(const char *name)
{
	char path[SUPPORT_PATH_SIZE + 128];

	snprintf(path, sizeof(path), "%s/many/%s", folder, name);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/many/%s/profile.db", folder, name);
	report_sample_write_empty(path);
}

/* Without a path, and of several reports, it is the newest; a line says so. */
static const struct {
	const char *arguments, *out, *err;
} chosen[] = {
	{"", "Report", "ipu-report: the newest report here: "},
	{"spans --csv", "clock,", "ipu-report: the newest report here: "},
	{"export html -o page.html", "", "ipu-report export: the newest report here: "},
	{"tf_report__2*7", "Report", "ipu-report: the newest of 2 reports: "},
	{"tf_report__2*7/ spans --csv", "clock,", "ipu-report: the newest of 2 reports: "},
	{"../many/tf_report__2*7 spans --csv", "clock,", "ipu-report: the newest of 2 reports: "},
	{"./tf_report__2*7/ spans --csv", "clock,", "ipu-report: the newest of 2 reports: "},
};

static void test_the_newest_report_is_named(void **state)
{
	char path[SUPPORT_PATH_SIZE + 128];
	struct support_result result;

	(void)state;
	snprintf(path, sizeof(path), "%s/many", folder);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/many/tf_report__2099-01-01__00-00-00.000__1", folder);
	mkdir(path, 0777); /* without a database: none */
	make_report("tf_report__2026-02-02__00-00-00.000__7");
	make_report("tf_report__2026-03-03__00-00-00.000__7");

	report(&result, "many");
	assert_one_line(&result, 2);
	assert_contains(result.err, "ipu-report many/tf_report__2026-03-03__00-00-00.000__7\n");
	support_result_free(&result);

	for (size_t i = 0; i < ARRAY_LEN(chosen); i++) {
		support_shell(&result, "cd '%s/many' && '%s'/ipu-report %s", folder,
			      support_bin_dir(), chosen[i].arguments);
		if (result.exit_code != 0)
			fail_msg("%s: %s", chosen[i].arguments, result.err);
		assert_contains(result.out, chosen[i].out);
		assert_contains(result.err, chosen[i].err);
		assert_contains(result.err, "tf_report__2026-03-03__00-00-00.000__7");
		assert_ptr_equal(strchr(result.err, '\n'), result.err + strlen(result.err) - 1);
		support_result_free(&result);
	}

	report(&result, "many/tf_report__2026-02-02__00-00-00.000__7");
	assert_int_equal(result.exit_code, 0);
	support_result_free(&result);
}

static void test_list_names_every_report(void **state)
{
	struct support_result result;
	cJSON *root;

	(void)state;
	report(&result, "list --json");
	assert_int_equal(result.exit_code, 0);
	root = cJSON_Parse(result.out);
	assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(root, "rows")) > 39 + 4);
	cJSON_Delete(root);
	support_result_free(&result);

	report(&result, "run.db list");
	assert_int_equal(result.exit_code, 0);
	assert_contains(result.out, "stage_timings");
	assert_contains(result.out, "\nview:operations  ");
	assert_contains(result.out, "\noperations  ");
	support_result_free(&result);
}

static void test_repair_finishes_a_killed_file_once(void **state)
{
	struct support_result result;

	(void)state;
	report(&result, "killed.db");
	assert_int_equal(result.exit_code, 0);
	assert_contains(result.out, "`ipu-report killed.db repair` finishes the file");
	support_result_free(&result);

	report(&result, "killed.db repair");
	assert_int_equal(result.exit_code, 0);
	assert_string_equal(result.out, "killed.db: repaired: the file is complete now\n");
	support_result_free(&result);

	report(&result, "killed.db repair");
	assert_string_equal(result.out, "killed.db: complete already, nothing to do\n");
	support_result_free(&result);

	report(&result, "killed.db");
	assert_contains(result.out, "complete (repaired");
	support_result_free(&result);
}

static void test_json_and_csv_have_all_rows_text_a_limit(void **state)
{
	struct support_result result;

	(void)state;
	report(&result, "run.db stage_timings --limit 5");
	assert_contains(result.out, "5 rows of 136");
	support_result_free(&result);

	report(&result, "run.db stage_timings --csv | wc -l");
	assert_int_equal(atoi(result.out), 137);
	support_result_free(&result);

	report(&result, "run.db summary --json");
	assert_contains(result.out, "\"report\":\"summary\"");
	support_result_free(&result);
}

static void test_colour_is_asked_for_or_absent(void **state)
{
	struct support_result result;

	(void)state;
	report(&result, "run.db metrics --color always");
	assert_contains(result.out, "\033[1m");
	support_result_free(&result);

	support_shell(&result,
		      "cd '%s' && NO_COLOR=1 CLICOLOR_FORCE=1 '%s'/ipu-report run.db metrics",
		      folder, support_bin_dir());
	assert_null(strchr(result.out, '\033'));
	support_result_free(&result);
}

static void test_help_goes_to_standard_output(void **state)
{
	struct support_result result;

	(void)state;
	report(&result, "--help");
	assert_int_equal(result.exit_code, 0);
	assert_contains(result.out, "Usage: ipu-report [REPORT]");
	assert_contains(result.out, "--limit");
	assert_string_equal(result.err, "");
	support_result_free(&result);
}

static void test_two_runs_are_compared(void **state)
{
	struct support_result result;

	(void)state;
	report(&result, "diff run.db run.db --csv --sections totals");
	assert_int_equal(result.exit_code, 0);
	assert_contains(result.out, "section,key,name,source,target");
	assert_string_equal(result.err, "");
	support_result_free(&result);

	report(&result, "diff run.db");
	assert_int_equal(result.exit_code, 2);
	assert_contains(result.err, "two runs are needed: ipu-report diff A B (one given)");
	support_result_free(&result);
}

/* Profiles have numbers of spans' names, which are listed before. */
static void test_spans_of_one_execution_are_exported_with_their_names(void **state)
{
	static const char *const names[] = {"forward", "load, \"batch\"", "MPI_Iallgatherv"};
	struct support_result result;
	const cJSON *frames, *profile, *event;
	size_t found = 0, events = 0;
	cJSON *root;

	(void)state;
	report(&result, "export run.db speedscope -o - --execution 0");
	if (result.exit_code != 0)
		fail_msg("%s", result.err);
	root = cJSON_Parse(result.out);
	frames = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "shared"), "frames");
	for (int i = 0; i < cJSON_GetArraySize(frames); i++) {
		const char *name =
			cJSON_GetObjectItem(cJSON_GetArrayItem(frames, i), "name")->valuestring;

		for (size_t n = 0; n < ARRAY_LEN(names); n++)
			found += !strcmp(name, names[n]);
	}
	assert_int_equal(found, ARRAY_LEN(names));
	cJSON_ArrayForEach(profile, cJSON_GetObjectItem(root, "profiles"))
		cJSON_ArrayForEach(event, cJSON_GetObjectItem(profile, "events"))
	{
		assert_true(cJSON_GetObjectItem(event, "frame")->valueint <
			    cJSON_GetArraySize(frames));
		events++;
	}
	assert_true(events > 0);
	cJSON_Delete(root);
	support_result_free(&result);
}

static void test_a_full_disk_is_exit_1(void **state)
{
	struct support_result result;

	(void)state;
	report(&result, "run.db spans --csv >/dev/full");
	assert_one_line(&result, 1);
	support_result_free(&result);
}

/* A folder that an export has made goes with a failure; one that was there stays. */
static void test_a_failed_export_leaves_the_folders_that_were_there(void **state)
{
	struct support_result result;

	(void)state;
	support_shell(&result,
		      "cd '%s' && mkdir there && trap '' XFSZ && (ulimit -f 0; '%s/ipu-report' "
		      "run.db export popvision --force -o there; '%s/ipu-report' run.db export "
		      "popvision -o new) >/dev/null 2>&1; ls -d there new 2>/dev/null",
		      folder, support_bin_dir(), support_bin_dir());
	assert_string_equal(result.out, "there\n");
	support_result_free(&result);
}

/* Lanes of the host come first, those of an IPU behind each other: there is room for 10,000. */
static void test_lanes_of_a_trace_have_an_order(void **state)
{
	static const char key[] = "\"sort_index\":";
	struct support_result result;
	int count = 0, groups = 0;

	(void)state;
	support_shell(&result,
		      "cd '%s' && '%s'/ipu-report run.db export chrome -o lanes.json >/dev/null && "
		      "grep -o '.name.:.thread_sort_index.*' lanes.json",
		      folder, support_bin_dir());
	assert_int_equal(result.exit_code, 0);
	for (const char *at = result.out; (at = strstr(at, key)); count++) {
		const long index = strtol(at += strlen(key), NULL, 10);

		assert_in_range(index, 0, 100 * 10000);
		groups |= 1 << index / 10000;
	}
	assert_true(count > 2);
	/* The host's, and those of an IPU. */
	assert_int_equal(groups, 3);
	support_result_free(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_summary_is_the_default),
		cmocka_unit_test(test_two_runs_print_the_same_bytes),
		cmocka_unit_test(test_wrong_requests_are_one_line_and_exit_2),
		cmocka_unit_test(test_a_file_of_another_schema_is_one_line_with_both_versions),
		cmocka_unit_test(test_a_torn_file_fails_without_harm),
		cmocka_unit_test(test_the_newest_report_is_named),
		cmocka_unit_test(test_list_names_every_report),
		cmocka_unit_test(test_repair_finishes_a_killed_file_once),
		cmocka_unit_test(test_json_and_csv_have_all_rows_text_a_limit),
		cmocka_unit_test(test_colour_is_asked_for_or_absent),
		cmocka_unit_test(test_help_goes_to_standard_output),
		cmocka_unit_test(test_two_runs_are_compared),
		cmocka_unit_test(test_spans_of_one_execution_are_exported_with_their_names),
		cmocka_unit_test(test_a_full_disk_is_exit_1),
		cmocka_unit_test(test_a_failed_export_leaves_the_folders_that_were_there),
		cmocka_unit_test(test_lanes_of_a_trace_have_an_order),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
