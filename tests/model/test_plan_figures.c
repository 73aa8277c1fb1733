/*
 * `ipu-plan model` and `scale`: the figures of a run and what they have to do with each other, and
 * what is printed of several runs, in tests/golden/plan_models.txt, which UPDATE_GOLDEN=1 rewrites.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/plan.h"

#define PIPELINED "keras-mnist --use-ipu --pipelining"

/* ---- figures --------------------------------------------------------------------------------- */

/* The sum, over the stages of @split, of @key. */
static double stages_sum(const cJSON *split, const char *key)
{
	const cJSON *stage;
	double sum = 0;

	cJSON_ArrayForEach(stage, plan_item(split, "stages")) sum += plan_number(stage, key);
	return sum;
}

static void check_split(const cJSON *split, double clock_mhz)
{
	const cJSON *stages = plan_item(split, "stages"), *slowest, *stage;
	const double most = plan_number(split, "slowest_stage_cycles");

	assert_close(stages_sum(split, "share"), 1, 1e-9);
	assert_close(plan_number(split, "slowest_stage_us"), most / clock_mhz, 1e-9);
	slowest = cJSON_GetArrayItem(stages, (int)plan_number(split, "slowest_stage"));
	assert_non_null(slowest);
	assert_close(plan_number(slowest, "cycles"), most, 0);
	cJSON_ArrayForEach(stage, stages)
	{
		const double cycles = plan_number(stage, "cycles");

		assert_true(cycles <= most);
		assert_close(plan_number(stage, "share"), cycles / stages_sum(split, "cycles"),
			     1e-9);
	}
	/* The last stage sends nothing. */
	stage = cJSON_GetArrayItem(stages, cJSON_GetArraySize(stages) - 1);
	assert_close(plan_number(stage, "sent_bytes"), 0, 0);
}

static void check_figures(const cJSON *json, double clock_mhz)
{
	static const char *const fractions[] = {"compute_fraction", "exchange_fraction",
						"sync_fraction", "host_io_fraction",
						"wait_fraction"};
	const double step = plan_number(json, "device_step_us"), fixed = 2500;
	const double replicas = plan_number(json, "replicas");
	const double steps = plan_number(json, "steps_per_execution");
	const double batch = plan_number(json, "batch_size");
	const cJSON *input = plan_item(json, "host_input_us");
	double all = 0, device = step * steps + fixed, execution = device, cycles;

	assert_close(plan_number(json, "effective_batch_size"),
		     batch * plan_number(json, "gradient_accumulation") * replicas, 0);
	/* Rounded down. */
	cycles = step * clock_mhz - plan_number(json, "cycles_per_step");
	assert_true(cycles > -1e-3 && cycles < 1);
	assert_close(plan_number(json, "keras_step_us"), step / replicas, 1e-9);
	for (size_t i = 0; i < ARRAY_LEN(fractions); i++)
		all += plan_number(json, fractions[i]);
	assert_close(all, 1, 1e-9);
	if (cJSON_IsNumber(input))
		execution = fmax(execution, input->valuedouble * steps);
	else
		assert_true(cJSON_IsNull(plan_item(json, "waits")));
	if (cJSON_IsNumber(input))
		assert_string_equal(plan_item(json, "waits")->valuestring,
				    execution > device ? "device" : "host");
	assert_close(plan_number(json, "execution_us"), execution, 1e-9);
	assert_close(plan_number(json, "step_us"), execution / steps, 1e-9);
	assert_close(plan_number(json, "device_busy_fraction"), step * steps / execution, 1e-9);
	assert_close(plan_number(json, "images_per_second"),
		     batch * replicas * steps / execution * 1e6, 1e-9);
	assert_close(plan_number(json, "tflops"),
		     plan_number(json, "flops_per_step") * replicas / step / 1e6, 1e-9);
}

static void test_figures_belong_together(void **state)
{
	static const struct {
		const char *run;
		double clock_mhz;
	} rows[] = {
		{PIPELINED, 1330},
		{PIPELINED " --ipu.auto_select_ipus 8", 1330},
		{"keras-mnist --use-ipu --ipu.target ipu21", 1850},
		{"keras-mnist --use-ipu --host.input_us 100", 1330},
		{"keras-mnist --use-ipu --host.input_us 1000", 1330},
		{"keras-mnist --use-ipu --fit null", 1330},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char arguments[256];
		cJSON *json;

		snprintf(arguments, sizeof(arguments), "model %s --json", rows[i].run);
		json = plan_json(arguments);
		check_figures(json, rows[i].clock_mhz);
		cJSON_Delete(json);
	}
}

/* The host's input is that of the replicas that share a host. */
static void test_the_host_prepares_the_input_of_all_its_replicas(void **state)
{
	cJSON *json =
		plan_json("scale keras-mnist --use-ipu --host.input_us 10 --ipus 1,8,16,32 --json");
	const double input[] = {10, 80, 160, 160};

	(void)state;
	for (int i = 0; i < (int)ARRAY_LEN(input); i++)
		assert_close(plan_number(cJSON_GetArrayItem(json, i), "host_input_us"), input[i],
			     1e-9);
	cJSON_Delete(json);
}

static void test_a_given_split_stands_beside_the_best(void **state)
{
	cJSON *json = plan_json("model " PIPELINED " --json");
	const cJSON *given = plan_item(json, "split"), *best = plan_item(json, "auto_split");
	const int layers = (int)stages_sum(given, "layers");

	(void)state;
	check_split(given, 1330);
	check_split(best, 1330);
	assert_int_equal((int)stages_sum(best, "layers"), layers);
	assert_true(plan_number(best, "slowest_stage_cycles") <
		    plan_number(given, "slowest_stage_cycles"));
	cJSON_Delete(json);

	/* The best one is the run's own. */
	json = plan_json("model " PIPELINED " --pipeline.stages auto --json");
	given = plan_item(json, "split");
	best = plan_item(json, "auto_split");
	check_split(given, 1330);
	assert_true(cJSON_Compare(given, best, true));
	cJSON_Delete(json);

	/* Nothing is split. */
	json = plan_json("model keras-mnist --use-ipu --json");
	assert_true(cJSON_IsNull(plan_item(json, "split")));
	assert_true(cJSON_IsNull(plan_item(json, "auto_split")));
	cJSON_Delete(json);
}

/* Mk2: 4 IPUs in a machine, 16 at a host, 64 joined by IPU-Links. */
static void test_machines_and_hosts_are_counted_whole(void **state)
{
	static const struct {
		int ipus, machines, hosts, domains;
	} rows[] = {{1, 1, 1, 1},  {3, 1, 1, 1},   {4, 1, 1, 1},   {5, 2, 1, 1},   {16, 4, 1, 1},
		    {17, 5, 2, 1}, {64, 16, 4, 1}, {65, 17, 5, 2}, {96, 24, 6, 2}, {129, 33, 9, 3}};
	cJSON *json = plan_json("scale keras-mnist --use-ipu --ipus 1,3,4,5,16,17,64,65,96,129 "
				"--json");

	(void)state;
	for (int i = 0; i < (int)ARRAY_LEN(rows); i++) {
		const cJSON *row = cJSON_GetArrayItem(json, i);

		assert_close(plan_number(row, "ipus"), rows[i].ipus, 0);
		assert_close(plan_number(row, "machines"), rows[i].machines, 0);
		assert_close(plan_number(row, "hosts"), rows[i].hosts, 0);
		assert_close(plan_number(row, "link_domains"), rows[i].domains, 0);
	}
	cJSON_Delete(json);
}

/* ---- what is printed ------------------------------------------------------------------------- */

/* An example is named by its path in the sources. */
static void add_without_root(const char *text, FILE *out)
{
	const size_t root = strlen(support_source_dir());

	while (*text)
		if (strncmp(text, support_source_dir(), root) == 0)
			text += root;
		else
			fputc(*text++, out);
}

static void print_all(FILE *out)
{
	static const char *const requests[] = {
		"model keras-mnist --use-ipu",
		"model " PIPELINED,
		"model " PIPELINED
		" --pipeline.stages auto --pipeline.auto_stages 2 --ipu.auto_select_ipus 8 "
		"--host.input_us 10",
		"model keras-mnist --use-ipu --fit null --host.input_us 2000",
		"model keras-mnist --use-ipu --fit null --evaluate null --predict {}",
		"model inspect-tensors",
		"model inspect-tensors --outfeed.capture full --fit.validation true",
		"model keras-chapter-stages --ipu.target ipu1",
		"model keras-mnist --use-ipu --ipu.tiles_per_ipu 16",
		"scale keras-mnist --use-ipu",
		"scale " PIPELINED " --ipus 2,4,...,64 --host.input_us 50",
		"scale keras-mnist --use-ipu --ipus 1,2,...,8 --ipu.target c600",
		"scale keras-mnist --use-ipu --ipus 1,2 --ipu.tiles_per_ipu 16",
		"scale keras-mnist --use-ipu --ipus 1,3,...,9 --csv",
		"scale keras-mnist --use-ipu --ipus 4,2",
		"scale keras-mnist --use-ipu --ipus 1,2,...",
		"scale keras-mnist --use-ipu --ipus 5000",
		"scale keras-mnist --use-ipu --json --csv",
		"scale " PIPELINED " --ipus 1",
	};

	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		struct support_result result;

		plan_run(&result, requests[i]);
		fprintf(out, "$ ipu-plan %s\n", requests[i]);
		add_without_root(result.out, out);
		add_without_root(result.err, out);
		fprintf(out, "exit code %d\n\n", result.exit_code);
		support_result_free(&result);
	}
}

static void test_nothing_that_is_printed_changes_unseen(void **state)
{
	(void)state;
	support_check_golden("plan_models.txt", print_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures_belong_together),
		cmocka_unit_test(test_the_host_prepares_the_input_of_all_its_replicas),
		cmocka_unit_test(test_a_given_split_stands_beside_the_best),
		cmocka_unit_test(test_machines_and_hosts_are_counted_whole),
		cmocka_unit_test(test_nothing_that_is_printed_changes_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
