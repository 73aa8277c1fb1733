/*
 * `ipu-plan model` and `scale` of an example: which mode is asked for, and which numbers of IPUs.
 */
#include "support/support.h"

#include <stdio.h>

#include "common/mem.h"
#include "support/plan.h"

static void assert_mode(const char *arguments, const char *mode)
{
	cJSON *json = plan_json(arguments);

	assert_string_equal(plan_item(json, "mode")->valuestring, mode);
	assert_true(plan_number(json, "report_bytes_forecast") > 0);
	cJSON_Delete(json);
}

static void test_what_is_not_trained_is_evaluated(void **state)
{
	(void)state;
	assert_mode("model keras-mnist --use-ipu --json", "train");
	assert_mode("model keras-mnist --use-ipu --fit null --json", "evaluate");
}

static void test_dots_stand_for_the_numbers_between(void **state)
{
	cJSON *json = plan_json("scale keras-mnist --use-ipu --ipus 1,2,...,8 --json");
	int ipus = 1;
	const cJSON *row;

	(void)state;
	assert_int_equal(cJSON_GetArraySize(json), 4);
	cJSON_ArrayForEach(row, json)
	{
		assert_int_equal(plan_number(row, "ipus"), ipus);
		ipus *= 2;
	}
	cJSON_Delete(json);
	json = plan_json("scale keras-mnist --use-ipu --ipus 1,8 --json");
	assert_int_equal(cJSON_GetArraySize(json), 2);
	cJSON_Delete(json);
}

static void test_dots_need_two_numbers_before_them(void **state)
{
	static const char *const lists[] = {"...,8", "2,...,8"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct support_result result;
		char arguments[64];

		snprintf(arguments, sizeof(arguments), "scale keras-mnist --use-ipu --ipus %s",
			 lists[i]);
		plan_run(&result, arguments);
		assert_int_equal(result.exit_code, 2);
		assert_contains(result.err, "two numbers must stand before");
		support_result_free(&result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_not_trained_is_evaluated),
		cmocka_unit_test(test_dots_stand_for_the_numbers_between),
		cmocka_unit_test(test_dots_need_two_numbers_before_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
