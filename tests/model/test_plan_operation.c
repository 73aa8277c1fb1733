/*
 * `ipu-plan matmul`, `conv` and `op` as people meet them: figures that add up, and one-line
 * errors.
 */
#include "support/support.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/plan/ipu_op.h"
#include "model/plan/plan_command.h"
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
	assert_non_null(strstr(result.out, "pays for laying"));
	support_result_free(&result);
}

/* Each kind with what it needs; the passes that it has. */
static const struct {
	const char *words;
	int passes;
} kind_cases[] = {
	{"attention --length 16 --features 64 --heads 4", 3},
	{"conv1d --in-channels 8 --out-channels 16 --length 40 --kernel 3", 3},
	{"conv2dtranspose --in-channels 8 --out-channels 16 --field 7 --kernel 3 --stride 2", 3},
	{"embedding --entries 1000 --units 32 --lookups 10", 2},
	{"groupnorm --channels 16 --groups 4 --field 9", 3},
	{"gru --steps 5 --features 8 --units 16", 3},
	{"lstm --steps 5 --features 8 --units 16", 3},
	{"pool --channels 8 --field 8 --kernel 2", 2},
	{"reduce --inputs 5000", 0},
	{"rnn --steps 5 --features 8 --units 16", 3},
	{"softmax --channels 100", 2},
};

static void check_kind(const cJSON *json)
{
	static const char *const sums[] = {"cycles", "flops", "bytes_exchanged"};
	const cJSON *operation, *phase;

	for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
		double sum = 0;

		cJSON_ArrayForEach(operation, plan_item(json, "operations")) sum +=
			plan_number(operation, sums[i]);
		assert_close(plan_number(json, sums[i]), sum, 0.5);
	}
	cJSON_ArrayForEach(operation, plan_item(json, "operations"))
	{
		double cycles = 0;

		cJSON_ArrayForEach(phase, plan_item(operation, "phases")) cycles +=
			plan_number(phase, "cycles") * plan_number(phase, "repeats");
		assert_true(cycles <= plan_number(operation, "cycles"));
	}
	assert_close(plan_number(json, "cycles"),
		     plan_number(json, "compute_cycles") + plan_number(json, "exchange_cycles") +
			     plan_number(json, "sync_cycles"),
		     0.5);
	assert_true(plan_number(json, "memory_bytes") >=
		    plan_number(json, "operand_bytes") + plan_number(json, "result_bytes"));
}

static void test_every_kind_adds_up(void **state)
{
	struct support_result help;
	char words[256], name[32];

	(void)state;
	plan_run(&help, "op --help");
	for (size_t i = 0; i < ARRAY_LEN(kind_cases); i++) {
		cJSON *json;

		snprintf(words, sizeof(words), "op %s --json", kind_cases[i].words);
		json = plan_json(words);
		check_kind(json);
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(kind_cases[i].words, " "),
			 kind_cases[i].words);
		assert_string_equal(plan_item(json, "operation")->valuestring, name);
		assert_non_null(strstr(help.out, name));
		cJSON_Delete(json);
		if (kind_cases[i].passes == 0)
			continue;
		snprintf(words, sizeof(words), "op %s --pass all --dtype float16 --json",
			 kind_cases[i].words);
		json = plan_json(words);
		assert_int_equal(cJSON_GetArraySize(json), kind_cases[i].passes);
		for (int p = 0; p < kind_cases[i].passes; p++)
			check_kind(cJSON_GetArrayItem(json, p));
		cJSON_Delete(json);
	}
	support_result_free(&help);
}

/* What the shapes say must be done, whatever the plan. */
static void test_kinds_do_what_their_shapes_say(void **state)
{
	static const struct {
		const char *words;
		double flops;
	} cases[] = {
		/* 2 (features + units) 4 units for each item and step, and 13 a unit in the map */
		{"op lstm --steps 5 --features 8 --units 16 --batch 3 --json",
		 15 * (2.0 * 24 * 64 + 13 * 16)},
		{"op conv1d --in-channels 8 --out-channels 16 --length 40 --kernel 3 --json",
		 2.0 * 8 * 16 * 40 * 3},
		/* As many as the convolution from the output to the input has. */
		{"op conv2dtranspose --in-channels 8 --out-channels 16 --field 7 --kernel 3 "
		 "--stride 2 --json",
		 2.0 * 8 * 16 * 49 * 9},
		/* Four projections, two products of each head, the scale and five for a softmax. */
		{"op attention --length 16 --features 64 --heads 4 --json",
		 4 * 2.0 * 16 * 64 * 64 + 2 * 2.0 * 4 * 16 * 16 * 16 + 16 * 64 + 5.0 * 4 * 16 * 16},
		{"op embedding --entries 1000 --units 32 --lookups 10 --pass backward-weights "
		 "--json",
		 2.0 * 10 * 32},
	};
	cJSON *json;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json = plan_json(cases[i].words);
		assert_close(plan_number(json, "flops"), cases[i].flops, 0.5);
		cJSON_Delete(json);
	}
	/* A kernel smaller than its stride: the larger image is field times stride, as in Keras. */
	json = plan_json("op conv2dtranspose --in-channels 8 --out-channels 16 --field 8 --kernel "
			 "1 --stride 4 --padding valid --json");
	assert_close(plan_number(json, "result_bytes"), 32 * 32 * 16 * 4, 0.5);
	cJSON_Delete(json);
}

static void test_kinds_as_csv(void **state)
{
	struct support_result result;
	int lines = 0;

	(void)state;
	plan_run(&result, "op gru --steps 5 --features 8 --units 16 --pass all --csv");
	assert_int_equal(result.exit_code, 0);
	for (const char *c = result.out; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 1 + 4 + 3 + 6);
	assert_non_null(strstr(result.out, "forward,Rnn/State,matmul,"));
	support_result_free(&result);
}

static int64_t product_flops(const struct ipu_composite *of)
{
	struct ipu_op ops[IPU_COMPOSITE_OPS];
	const int count = ipu_composite_ops(of, ops);
	int64_t flops = 0;

	for (int i = 0; i < count; i++)
		if (ops[i].kind == IPU_OP_MATMUL)
			flops += ipu_op_flops(&ops[i]);
	return flops;
}

/* However a cell's products are cut, each pass has the same: 2 (features + units) gates units. */
static void test_products_of_cells_are_the_same_in_each_pass(void **state)
{
	static const struct {
		enum ipu_composite_kind kind;
		bool reset_before;
		int64_t gates, steps;
	} cells[] = {
		{IPU_COMPOSITE_GRU, false, 3, 28},  {IPU_COMPOSITE_GRU, true, 3, 28},
		{IPU_COMPOSITE_LSTM, false, 4, 28}, {IPU_COMPOSITE_LSTM, false, 4, 384},
		{IPU_COMPOSITE_RNN, false, 1, 28},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		struct ipu_composite of = {.kind = cells[i].kind,
					   .reset_before = cells[i].reset_before,
					   .batch = 32,
					   .steps = cells[i].steps,
					   .features = 40,
					   .units = 128};
		const int64_t state_flops = 2 * 32 * of.steps * 128 * cells[i].gates * 128;

		for (int pass = 0; pass < IPU_PASSES; pass++) {
			of.pass = (enum ipu_pass)pass;
			assert_int_equal(product_flops(&of), state_flops * (40 + 128) / 128);
		}
		of.pass = IPU_BACKWARD_DATA;
		of.fixed_input = true;
		assert_int_equal(product_flops(&of), state_flops);
	}
}

static void test_what_cannot_be_on_the_chip_is_an_error(void **state)
{
	static const char *const lines[] = {
		"matmul 20000 20000 20000",
		"matmul 20000 20000 20000 --json",
		"conv --in-channels 512 --out-channels 512 --field 1000",
		"op embedding --entries 1000000 --units 768",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct support_result result;

		plan_run(&result, lines[i]);
		assert_int_equal(result.exit_code, 1);
		assert_string_equal(result.out, "");
		assert_non_null(strstr(result.err, "cannot be on one Mk2 GC200: a tile needs "));
		support_result_free(&result);
	}
}

static void test_wrong_requests_are_one_line(void **state)
{
	static const struct {
		const char *arguments, *says;
	} cases[] = {
		{"matmul 3 4", "sizes are missing"},
		{"matmul 3 4 5 6", "one word too many: \"6\""},
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
		{"conv 3", "one word too many"},
		{"op", "a kind is missing"},
		{"op lsmt", "did you mean \"lstm\"?"},
		{"op transformer", "one of: attention conv1d"},
		{"op lstm --steps 4", "lstm needs --features, --units"},
		{"op lstm --steps 4 --heads 3", "--heads: lstm has no such key (it has --batch"},
		{"op lstm --stepz 4", "did you mean --steps?"},
		{"op lstm gru", "one word too many: \"gru\""},
		{"op softmax --channels 8 --json --csv", "one of them"},
		{"op pool --channels 8 --field 8 --kernel 2 --pass backward-weights",
		 "no backward"},
		{"op attention --length 4 --features 10 --heads 3", "give --head-size"},
		{"op groupnorm --channels 10 --groups 3 --field 8", "do not divide 10 channels"},
		{"op conv1d --in-channels 8 --out-channels 8 --length 9 --kernel 3x5",
		 "--kernel: conv1d has one number"},
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

/* What @sub prints, called in this program; the caller's (free). */
static char *called(const struct plan_subcommand *sub, int argc, char **argv, enum status *status)
{
	struct err err = {ST_OK, ""};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	*status = sub->run(argc, argv, NULL, out, &err);
	fclose(out);
	assert_int_equal(err.status, *status);
	return text;
}

static void test_no_failed_allocation_goes_unnoticed(void **state)
{
	char *product[] = {"matmul", "128", "784", "64"};
	char *convolution[] = {"conv", "--in-channels", "3",  "--out-channels", "4", "--field",
			       "8",    "--pass",        "all"};
	char *kind[] = {"op", "lstm", "--steps", "5", "--features", "8", "--units", "16"};
	const struct {
		const struct plan_subcommand *sub;
		int argc;
		char **argv;
	} lines[] = {
		{&plan_product, (int)ARRAY_LEN(product), product},
		{&plan_convolution, (int)ARRAY_LEN(convolution), convolution},
		{&plan_kind, (int)ARRAY_LEN(kind), kind},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		enum status status;
		char *whole = called(lines[i].sub, lines[i].argc, lines[i].argv, &status);
		bool failed = true;

		assert_int_equal(status, ST_OK);
		for (long n = 0; failed; n++) {
			char *text;

			support_fail_alloc(n);
			text = called(lines[i].sub, lines[i].argc, lines[i].argv, &status);
			failed = support_alloc_failed();
			support_fail_alloc(-1);
			assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
			assert_string_equal(text, failed ? "" : whole);
			free(text);
		}
		free(whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_product_adds_up),
		cmocka_unit_test(test_the_layout_is_fixed),
		cmocka_unit_test(test_a_convolution_in_all_passes),
		cmocka_unit_test(test_text_says_what_the_layout_is),
		cmocka_unit_test(test_every_kind_adds_up),
		cmocka_unit_test(test_kinds_do_what_their_shapes_say),
		cmocka_unit_test(test_kinds_as_csv),
		cmocka_unit_test(test_products_of_cells_are_the_same_in_each_pass),
		cmocka_unit_test(test_what_cannot_be_on_the_chip_is_an_error),
		cmocka_unit_test(test_wrong_requests_are_one_line),
		cmocka_unit_test(test_no_failed_allocation_goes_unnoticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
