/*
 * `ipu-plan model` and `scale` of an example: which mode is asked for, and which numbers of IPUs.
 * Splits of a model: what its stages stream and keep.
 */
#include "model/plan/plan_run.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/ipu_timeline.h"
#include "support/plan.h"
#include "support/run_sample.h"

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

/* ---- bubbles --------------------------------------------------------------------------------- */

/* Each copy between the stages takes 5 ns: in theory it is free. */
static void test_the_theory_of_a_bubble_has_the_measured_times(void **state)
{
	static const struct ipu_interval intervals[] = {
		{.ipu = 0, .stage = 0, .phase = 'F', .start_ns = 0, .dur_ns = 10},
		{.ipu = 1, .stage = 1, .phase = 'F', .start_ns = 15, .dur_ns = 10},
		{.ipu = 1, .stage = 1, .phase = 'B', .start_ns = 25, .dur_ns = 20},
		{.ipu = 0, .stage = 0, .phase = 'B', .start_ns = 50, .dur_ns = 20},
	};
	const struct ipu_schedule_params params = {
		.kind = IPU_1F1B, .stages = 2, .microbatches = 1, .training = true};
	struct ipu_schedule *schedule;
	struct plan_bubble bubble = {0};

	(void)state;
	assert_int_equal(ipu_schedule_new(&schedule, &params, NULL), ST_OK);
	assert_int_equal(
		plan_bubble_measure(&bubble, schedule, intervals, ARRAY_LEN(intervals), false),
		ST_OK);
	assert_int_equal(bubble.measured.makespan_ns, 70);
	assert_int_equal(bubble.measured.busy_ns, 60);
	assert_int_equal(bubble.theory.makespan_ns, 60);
	assert_int_equal(bubble.theory.busy_ns, 60);
	assert_true(bubble.theory.idle_fraction == 0.5);
	ipu_schedule_free(schedule);
}

/* ---- splits ---------------------------------------------------------------------------------- */

/* The split of @model at its layer @second into two stages. */
static struct partition_split *split_at(const struct run_file *run, const struct run_data *data,
					const struct model *model, int second)
{
	struct partitioner *partitioner;
	struct partition_split *split;
	struct err err = {0};
	int stage[8];

	assert_in_range(model->layer_count, 1, ARRAY_LEN(stage));
	for (int i = 0; i < model->layer_count; i++)
		stage[i] = i >= second;
	assert_int_equal(partitioner_new(&partitioner, run, data, NULL, &err), ST_OK);
	assert_int_equal(partition_given(&split, partitioner, model, 2, stage, &err), ST_OK);
	partitioner_free(partitioner);
	return split;
}

/* Two IPUs share a link to the host: each waits for the inputs of the one and the labels of the
 * other. With I/O tiles (none here, so that the plans are the same) no program waits. */
static void test_stages_wait_for_the_bytes_of_a_batch(void **state)
{
	const struct run_data data = {.train = {.classes = 10}, .test = {.classes = 10}};
	struct run_file *run = run_sample_get("--data.batch_size 16");
	struct model *model = run_sample_model(run);
	struct partition_split *waits = split_at(run, &data, model, 2), *io;
	const double bytes = 16 * (28 * 28 * 4 + 4);
	struct ipu_target target;

	(void)state;
	run->ipu.io_tiles.place_ops_on_io_tiles = true;
	io = split_at(run, &data, model, 2);
	assert_int_equal(ipu_target_get(run->ipu.target, 0, &target, NULL), ST_OK);
	for (int s = 0; s < 2; s++)
		assert_int_equal(waits->partition->stage[s].forward -
					 io->partition->stage[s].forward,
				 ipu_host_copy(&target, bytes).cycles);
	partition_split_free(waits);
	partition_split_free(io);
	model_free(model);
	run_file_free(run);
}

/* Several operations of a backward pass read what the second layer has computed in its forward. */
static void test_a_stage_keeps_once_what_it_reads_several_times(void **state)
{
	static const char text[] =
		"{\"model\": {\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", "
		"\"layers\": [{\"class_name\": \"Conv2D\", \"config\": {\"filters\": 2, "
		"\"kernel_size\": 1}}, {\"class_name\": \"SeparableConv2D\", \"config\": "
		"{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"swish\"}}]}}, "
		"\"compile\": {\"loss\": \"mse\"}, \"fit\": {}, \"data\": {\"batch_size\": 2}, "
		"\"ipu\": {\"auto_select_ipus\": 2}, \"pipeline\": {\"stages\": [0, 1], "
		"\"schedule\": \"Sequential\"}}";
	const struct run_data data = {.train = {.width = 27}, .test = {.width = 27}};
	const struct model_shape image = {3, {4, 4, 1}};
	const int64_t batch = 2;
	struct run_file *run = run_sample_of(text);
	struct model *model = run_sample_model_of(run, &image);
	struct partition_split *split = split_at(run, &data, model, 1);

	(void)state;
	/* The kernel and the biases, and the images. */
	assert_int_equal(split->partition->stage[0].memory_bytes, (2 + 2 + batch * 16) * 4);
	/* Both kernels and the biases; sum and count of the mean loss, count of the updates; what
	 * comes in, the results of both convolutions, and the gradient of the loss. */
	assert_int_equal(split->partition->stage[1].memory_bytes,
			 (8 + 6 + 3 + 2 + 1 + batch * (16 * 2 + 9 * 2 + 9 * 3 + 9 * 3)) * 4);
	partition_split_free(split);
	model_free(model);
	run_file_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_not_trained_is_evaluated),
		cmocka_unit_test(test_dots_stand_for_the_numbers_between),
		cmocka_unit_test(test_dots_need_two_numbers_before_them),
		cmocka_unit_test(test_the_theory_of_a_bubble_has_the_measured_times),
		cmocka_unit_test(test_stages_wait_for_the_bytes_of_a_batch),
		cmocka_unit_test(test_a_stage_keeps_once_what_it_reads_several_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
