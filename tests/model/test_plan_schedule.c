/*
 * `ipu-plan schedule` as people meet it: figures, pictures, and one-line errors.
 */
#include "support/support.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/plan.h"

#define PAPER                                                                                      \
	"--stages 8 --microbatches 24 --forward 18.522 --backward-input 18.086 "                   \
	"--backward-weight 9.337 --communication 0.601"

static void check_golden(const char *arguments, const char *name)
{
	struct support_result result;
	char path[SUPPORT_PATH_SIZE];
	char *golden;

	snprintf(path, sizeof(path), "%s/tests/golden/%s", support_source_dir(), name);
	golden = support_read_file(path, NULL);
	plan_run(&result, arguments);
	assert_int_equal(result.exit_code, 0);
	assert_string_equal(result.out, golden);
	support_result_free(&result);
	free(golden);
}

static void test_the_papers_row_comes_out_of_the_command(void **state)
{
	static const struct {
		const char *schedule, *key;
		double rate;
	} rows[] = {
		{"1f1b", "bubble_rate", 0.2431},
		{"1f1b", "closed_form_bubble_rate", 0.2431},
		{"1f1b-interleaved --chunks 3", "closed_form_bubble_rate", 0.1055},
		{"zb-h1", "bubble_rate", 0.1585},
		{"zb-h1", "closed_form_bubble_rate", 0.1585},
		{"zb-h2", "bubble_rate", 0.1083},
		{"zb-h2", "closed_form_bubble_rate", 0.1083},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char arguments[512], text[32], expected[32];
		cJSON *json;

		snprintf(arguments, sizeof(arguments), "schedule --json " PAPER " --schedule %s",
			 rows[i].schedule);
		json = plan_json(arguments);
		snprintf(text, sizeof(text), "%.4f", plan_number(json, rows[i].key));
		snprintf(expected, sizeof(expected), "%.4f", rows[i].rate);
		assert_string_equal(text, expected);
		cJSON_Delete(json);
	}
}

static void test_json_has_every_key(void **state)
{
	static const char *const numbers[] = {
		"stages",
		"microbatches",
		"chunks",
		"makespan_ms",
		"idle_fraction",
		"bubble_rate",
		"bubble_over_ideal",
		"closed_form_makespan_ms",
		"closed_form_idle_fraction",
		"closed_form_bubble_rate",
		"closed_form_bubble_over_ideal",
	};
	cJSON *json = plan_json("schedule --json --schedule 1f1b --stages 4 --microbatches 8 "
				"--forward 1 --backward 2");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		plan_number(json, numbers[i]);
	assert_string_equal(plan_item(json, "schedule")->valuestring, "1f1b");
	assert_close(plan_number(json, "makespan_ms"), 33, 1e-12);
	assert_close(plan_number(json, "bubble_over_ideal"), 3.0 / 8, 1e-12);
	assert_int_equal(cJSON_GetArraySize(plan_item(json, "peak_activations")), 4);
	assert_close(cJSON_GetArrayItem(plan_item(json, "peak_activations"), 0)->valuedouble, 4,
		     1e-12);
	assert_null(cJSON_GetObjectItemCaseSensitive(json, "timeline"));
	cJSON_Delete(json);
}

static void test_figures_without_a_closed_form_are_null(void **state)
{
	cJSON *json = plan_json("schedule --json --schedule zb-h2 --stages 4 --microbatches 3 "
				"--forward 1 --backward 2");

	(void)state;
	assert_true(cJSON_IsNull(plan_item(json, "closed_form_makespan_ms")));
	assert_true(cJSON_IsNull(plan_item(json, "closed_form_idle_fraction")));
	assert_true(cJSON_IsNull(plan_item(json, "closed_form_bubble_rate")));
	assert_true(cJSON_IsNull(plan_item(json, "closed_form_bubble_over_ideal")));
	cJSON_Delete(json);
}

static void test_a_timeline_has_every_work(void **state)
{
	cJSON *json = plan_json("schedule --json --timeline --schedule zb-h1 --microbatches 2 "
				"--forward 1.5,2 --backward 3 --communication 0.25");
	const cJSON *works = plan_item(json, "timeline"), *second;

	(void)state;
	assert_int_equal(plan_number(json, "stages"), 2);
	assert_int_equal(cJSON_GetArraySize(works), 2 * 2 * 3);
	second = cJSON_GetArrayItem(works, 1);
	assert_int_equal(plan_number(second, "stage"), 0);
	assert_int_equal(plan_number(second, "chunk"), 0);
	assert_int_equal(plan_number(second, "microbatch"), 1);
	assert_string_equal(plan_item(second, "phase")->valuestring, "F");
	assert_close(plan_number(second, "start_ms"), 1.5, 1e-12);
	assert_close(plan_number(second, "end_ms"), 3, 1e-12);
	/* The second stage's first forward comes after the hop. */
	assert_close(plan_number(cJSON_GetArrayItem(works, 6), "start_ms"), 1.75, 1e-12);
	cJSON_Delete(json);
}

static void test_a_backward_given_as_one_is_halved_where_a_schedule_splits_it(void **state)
{
	struct support_result result;
	cJSON *whole = plan_json("schedule --json --schedule zb-h1 --stages 4 --microbatches 8 "
				 "--forward 1 --backward 2");
	cJSON *parts = plan_json("schedule --json --schedule zb-h1 --stages 4 --microbatches 8 "
				 "--forward 1 --backward-input 1 --backward-weight 1");

	(void)state;
	assert_true(cJSON_Compare(whole, parts, true));
	cJSON_Delete(whole);
	cJSON_Delete(parts);
	plan_run(&result, "schedule --schedule zb-h1 --stages 4 --microbatches 8 --forward 1 "
			  "--backward 2");
	assert_contains(result.out, "half for the input, half for the weights");
	support_result_free(&result);
}

static void test_all_lists_every_schedule_or_the_rule_against_it(void **state)
{
	cJSON *json = plan_json("schedule --json --all --stages 4 --microbatches 6 --forward 1 "
				"--backward 2");
	static const char *const refused[] = {"1f1b-interleaved", "Grouped", "Interleaved"};
	const cJSON *row;
	int errors = 0;

	(void)state;
	assert_int_equal(cJSON_GetArraySize(json), 8);
	cJSON_ArrayForEach(row, json)
	{
		if (!cJSON_GetObjectItemCaseSensitive(row, "error")) {
			plan_number(row, "bubble_rate");
			continue;
		}
		assert_true(errors < (int)ARRAY_LEN(refused));
		assert_string_equal(plan_item(row, "schedule")->valuestring, refused[errors++]);
		assert_contains(plan_item(row, "error")->valuestring, "multiple");
	}
	assert_int_equal(errors, ARRAY_LEN(refused));
	cJSON_Delete(json);
}

static void test_the_text_is_the_golden_one(void **state)
{
	(void)state;
	check_golden("schedule --schedule zb-h1 --width 80 " PAPER, "plan_schedule.txt");
	/* Where no terminal says how wide it is, it is 80 columns. */
	check_golden("schedule --schedule zb-h1 " PAPER, "plan_schedule.txt");
	check_golden("schedule --schedule 1f1b-interleaved --stages 4 --microbatches 8 --forward 2 "
		     "--backward 4 --width 80 --ascii",
		     "plan_schedule_ascii.txt");
	check_golden("schedule --all --chunks 3 " PAPER, "plan_schedule_all.txt");
}

static void test_wrong_requests_are_one_line_and_exit_code_2(void **state)
{
	static const struct {
		const char *arguments, *text;
	} wrong[] = {
		{"", "a subcommand is missing"},
		{"shedule", "did you mean \"schedule\"?"},
		{"schedule", "--schedule is missing (--all"},
		{"schedule --schedule zb-h3", "did you mean \"zb-h"},
		{"schedule --all --schedule 1f1b", "exclude each other"},
		{"schedule --all", "--microbatches is missing"},
		{"schedule --all --microbatches 8", "--forward is missing"},
		{"schedule --all --microbatches 8 --forward 1", "--backward is missing"},
		{"schedule --all --microbatches 8 --forward 1 --backward-input 1",
		 "--backward-weight is missing"},
		{"schedule --all --microbatches 8 --forward 1 --backward-weight 1",
		 "--backward-input is missing"},
		{"schedule --all --microbatches 8 --forward 1 --backward 2 --backward-input 1",
		 "give it or the two parts"},
		{"schedule --all --microbatches 8 --forward 1 --backward 2", "--stages is missing"},
		{"schedule --all --microbatches 8 --forward 1,2 --backward 2 --stages 3",
		 "--forward has 2 times for 3 stages"},
		{"schedule --all --microbatches 8 --forward 1,2 --backward 2,3,4",
		 "--backward has 3 times for 2 stages"},
		{"schedule --all --microbatches 8 --forward 1,,2 --backward 2", "not a time"},
		{"schedule --all --microbatches 8 --forward -1 --backward 2", "not a time"},
		{"schedule --all --microbatches 8 --forward nan --backward 2", "not a time"},
		{"schedule --all --microbatches 8 --forward 1e300 --backward 2", "not a time"},
		{"schedule --all --microbatches 8 --forward 1e-9 --backward 2",
		 "less than the 1 ns"},
		{"schedule --all --microbatches 8 --forward 1 --backward 2 --stages 4 "
		 "--communication 1,2",
		 "one time for all hops"},
		{"schedule --all --microbatches 0 --forward 1", "not a number from 1"},
		{"schedule --all --microbatches 99999999999", "not a number from 1"},
		{"schedule --all --microbatches 2147483647 --forward 1 --backward 1 --stages 2",
		 "at most"},
		{"schedule --all --microbatches 8 --forward 1 --backward 1 --stages 2147483647",
		 "at most 512"},
		{"schedule --schedule 1f1b --chunks 2 --microbatches 8 --forward 1 --backward 1 "
		 "--stages 2",
		 "chunks are for 1f1b-interleaved"},
		{"schedule --schedule Grouped --microbatches 6 --forward 1 --backward 1 --stages 2",
		 "2 x stages (= 4)"},
		{"schedule --timeline --schedule 1f1b --microbatches 8 --forward 1 --backward 1 "
		 "--stages 2",
		 "--timeline goes with --json"},
		{"schedule word", "one word too many"},
		{"schedule --jsn", "did you mean --json?"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct support_result result;

		plan_run(&result, wrong[i].arguments);
		if (result.exit_code != 2)
			fail_msg("%s: exit %d: %s", wrong[i].arguments, result.exit_code,
				 result.err);
		assert_string_equal(result.out, "");
		assert_contains(result.err, wrong[i].text);
		assert_int_equal(strncmp(result.err, "ipu-plan", 8), 0);
		assert_ptr_equal(strchr(result.err, '\n'), result.err + strlen(result.err) - 1);
		support_result_free(&result);
	}
}

static void test_a_list_longer_than_any_pipeline_is_refused(void **state)
{
	struct support_result result;

	(void)state;
	support_shell(&result,
		      "'%s'/ipu-plan schedule --all --microbatches 8 --backward 1 --forward "
		      "$(printf '1,%%.0s' $(seq 2000))1",
		      support_bin_dir());
	assert_int_equal(result.exit_code, 2);
	assert_contains(result.err, "more than 512 times");
	support_result_free(&result);
}

static void test_a_full_disk_is_an_error(void **state)
{
	struct support_result result;

	(void)state;
	for (int json = 0; json < 2; json++) {
		support_shell(&result, "'%s'/ipu-plan schedule " PAPER " --all %s >/dev/full",
			      support_bin_dir(), json ? "--json" : "");
		assert_int_equal(result.exit_code, 1);
		assert_contains(result.err, "ipu-plan schedule: ");
		support_result_free(&result);
	}
}

static void test_help_fits_80_columns(void **state)
{
	struct support_result result;

	(void)state;
	support_shell(&result, "'%s'/ipu-plan schedule --help | awk 'length > 80'",
		      support_bin_dir());
	assert_string_equal(result.out, "");
	support_result_free(&result);
	plan_run(&result, "schedule --help");
	assert_contains(result.out, "Usage: ipu-plan schedule ");
	assert_contains(result.out, "--backward-weight");
	support_result_free(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_papers_row_comes_out_of_the_command),
		cmocka_unit_test(test_json_has_every_key),
		cmocka_unit_test(test_figures_without_a_closed_form_are_null),
		cmocka_unit_test(test_a_timeline_has_every_work),
		cmocka_unit_test(test_a_backward_given_as_one_is_halved_where_a_schedule_splits_it),
		cmocka_unit_test(test_all_lists_every_schedule_or_the_rule_against_it),
		cmocka_unit_test(test_the_text_is_the_golden_one),
		cmocka_unit_test(test_wrong_requests_are_one_line_and_exit_code_2),
		cmocka_unit_test(test_a_list_longer_than_any_pipeline_is_refused),
		cmocka_unit_test(test_a_full_disk_is_an_error),
		cmocka_unit_test(test_help_fits_80_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
