/*
 * `ipu-plan matmul` and `ipu-plan conv` as people meet them: figures that add up, and one-line
 * errors.
 */
#include "support/support.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/plan.h"

static void check_plan(const cJSON *json)
{
	static const char *const parts[] = {"batch", "field", "in", "out", "kernel"};
	const cJSON *splits = plan_item(json, "splits"), *phase;
	double compute = 0, exchange = 0, product = 1;

	cJSON_ArrayForEach(phase, plan_item(json, "phases"))
	{
		double cycles = plan_number(phase, "cycles") * plan_number(phase, "repeats");

		if (strcmp(plan_item(phase, "kind")->valuestring, "exchange") == 0)
			exchange += cycles;
		else
			compute += cycles;
		assert_true(cJSON_IsString(plan_item(phase, "part")));
		assert_true(plan_number(phase, "tiles") <= plan_number(json, "tiles"));
		assert_true(plan_number(phase, "bytes") >= 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		product *= plan_number(splits, parts[i]);
	assert_true(plan_number(splits, "serial") >= 1);
	assert_close(plan_number(json, "tiles_used"), product, 0.5);
	assert_close(plan_number(json, "compute_cycles"), compute, 0.5);
	assert_close(plan_number(json, "exchange_cycles"), exchange, 0.5);
	assert_close(plan_number(json, "cycles"),
		     compute + exchange + plan_number(json, "sync_cycles"), 0.5);
	assert_close(plan_number(json, "tflops"),
		     plan_number(json, "flops") / plan_number(json, "microseconds") / 1e6, 1e-6);
	assert_true(plan_number(json, "temporary_bytes") > 0);
	assert_true(cJSON_IsString(plan_item(json, "method")));
}

static void test_a_product_adds_up(void **state)
{
	cJSON *json = plan_json("matmul 1024 1024 256 --target ipu21 --dtype float16 --json");

	(void)state;
	check_plan(json);
	/* The published products are summed in float16. */
	assert_string_equal(plan_item(json, "partials")->valuestring, "float16");
	assert_string_equal(plan_item(json, "dtype")->valuestring, "float16");
	assert_close(plan_number(json, "flops"), 2.0 * 1024 * 1024 * 256, 0.5);
	cJSON_Delete(json);
	json = plan_json("matmul 1024 1024 256 --target ipu21 --dtype float16 --partials float32 "
			 "--tiles 100 --available-memory-proportion 0.3 --json");
	check_plan(json);
	assert_string_equal(plan_item(json, "partials")->valuestring, "float32");
	assert_close(plan_number(json, "tiles"), 100, 0.5);
	cJSON_Delete(json);
}

static void test_the_layout_is_fixed(void **state)
{
	cJSON *wide = plan_json("matmul 1024 1024 4 --json");
	cJSON *tall = plan_json("matmul 4 1024 1024 --json");

	(void)state;
	/* The same work, other channels: another plan. */
	assert_close(plan_number(wide, "flops"), plan_number(tall, "flops"), 0.5);
	assert_true(plan_number(wide, "cycles") > plan_number(tall, "cycles") ||
		    plan_number(wide, "cycles") < plan_number(tall, "cycles"));
	cJSON_Delete(wide);
	cJSON_Delete(tall);
}

static void test_a_convolution_in_all_passes(void **state)
{
	static const char *const names[] = {"forward", "backward-data", "backward-weights"};
	cJSON *json = plan_json("conv --batch 4 --in-channels 32 --out-channels 64 --field 28x28 "
				"--kernel 3x3 --stride 2 --pass all --json");

	(void)state;
	assert_int_equal(cJSON_GetArraySize(json), (int)ARRAY_LEN(names));
	for (int i = 0; i < (int)ARRAY_LEN(names); i++) {
		const cJSON *pass = cJSON_GetArrayItem(json, i);

		check_plan(pass);
		assert_string_equal(plan_item(pass, "pass")->valuestring, names[i]);
		assert_close(plan_number(pass, "flops"), 2.0 * 4 * 32 * 64 * 14 * 14 * 9, 0.5);
	}
	cJSON_Delete(json);
	json = plan_json("conv --in-channels 32 --out-channels 32 --groups 32 --field 9 --kernel "
			 "3x1 --padding valid --json");
	check_plan(json);
	assert_string_equal(plan_item(json, "pass")->valuestring, "forward");
	assert_close(plan_number(json, "flops"), 2.0 * 32 * 7 * 9 * 3, 0.5);
	cJSON_Delete(json);
}

static void test_text_says_what_the_layout_is(void **state)
{
	struct support_result result;

	(void)state;
	plan_run(&result, "matmul 128 784 64");
	assert_int_equal(result.exit_code, 0);
	assert_non_null(strstr(result.out, "rows of A are channels out"));
	assert_non_null(strstr(result.out, "Convolve/ExchangePre"));
	support_result_free(&result);
	plan_run(&result, "matmul --help");
	assert_non_null(strstr(result.out, "layout is fixed"));
	support_result_free(&result);
}

static void test_wrong_requests_are_one_line(void **state)
{
	static const struct {
		const char *arguments, *says;
	} cases[] = {
		{"matmul 3 4", "sizes are missing"},
		{"matmul 3 4 5 6", "a word too many: \"6\""},
		{"matmul 0 4 5", "M: \"0\" is not a number from 1"},
		{"matmul 3 4 5 --target ipu9", "ipu9"},
		{"matmul 3 4 5 --tiles 2000", "1472"},
		{"matmul 3 4 5 --dtype int8", "int8"},
		{"matmul 3 4 5 --available-memory-proportion 2", "fraction above 0"},
		{"conv --field 3", "--in-channels is missing"},
		{"conv --in-channels 3 --out-channels 3", "--field is missing"},
		{"conv --in-channels 3 --out-channels 4 --field 3 --groups 2", "do not divide"},
		{"conv --in-channels 3 --out-channels 4 --field 3x --kernel 3", "--field: \"\""},
		{"conv --in-channels 3 --out-channels 4 --field 3 --kernel 5 --padding valid",
		 "5 taps do not fit in a field of 3"},
		{"conv 3", "a word too many"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct support_result result;
		const char *newline;

		plan_run(&result, cases[i].arguments);
		assert_int_equal(result.exit_code, 2);
		if (!strstr(result.err, cases[i].says))
			fail_msg("%s: %s", cases[i].arguments, result.err);
		newline = strchr(result.err, '\n');
		assert_true(newline && newline[1] == '\0');
		support_result_free(&result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_product_adds_up),
		cmocka_unit_test(test_the_layout_is_fixed),
		cmocka_unit_test(test_a_convolution_in_all_passes),
		cmocka_unit_test(test_text_says_what_the_layout_is),
		cmocka_unit_test(test_wrong_requests_are_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
