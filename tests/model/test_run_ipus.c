/*
 * The rules of IPUs, tiles and memory, each with a message of its own.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/run_set.h"
#include "support/support.h"

/* Three stages, and what they need of steps in each schedule. */
#define THREE                                                                                      \
	"--pipeline.stages [0,1,2] --fit.steps_per_epoch 24 --compile.steps_per_execution 12 "     \
	"--gradient_accumulation.steps_per_replica 6 --evaluate.steps 24 "                         \
	"--evaluate.steps_per_execution 12 "

static void test_a_mapping_has_an_ipu_for_each_stage(void **state)
{
	(void)state;
	run_set_refuses("--pipeline.device_mapping [0]",
			"run.json: pipeline.device_mapping: has 1 entry, but the pipeline has 2 "
			"stages; give each its IPU");
	run_set_refuses("--pipeline.device_mapping [0,1,1]", "has 3 entries, but");
	run_set_refuses("--pipeline.device_mapping []", "has 0 entries, but");
}

static void test_a_mapping_has_ipus_that_are_there(void **state)
{
	(void)state;
	run_set_refuses("--pipeline.device_mapping [0,2]",
			"ipu.auto_select_ipus: 2 attached, but pipeline.device_mapping goes up to "
			"IPU 2 and so needs 4 (rounded up to a power of two): give a multiple of "
			"4");
}

static void test_replicas_follow_the_mapping(void **state)
{
	static const struct {
		const char *line;
		int used, per_replica, replicas;
	} cases[] = {
		{THREE "--ipu.auto_select_ipus 8", 3, 4, 2},
		{THREE "--ipu.auto_select_ipus 8 --pipeline.device_mapping [0,1,0]", 2, 2, 4},
		{THREE "--ipu.auto_select_ipus 4 --pipeline.device_mapping [0,0,0]", 1, 1, 4},
		{THREE "--ipu.auto_select_ipus 8 --pipeline.device_mapping [4,0,1]", 5, 8, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run_set set;

		run_set_lay_out(&set, cases[i].line, 60000, 10000);
		assert_int_equal(set.status, ST_OK);
		assert_int_equal(set.layout->ipus_used, cases[i].used);
		assert_int_equal(set.layout->ipus_per_replica, cases[i].per_replica);
		assert_int_equal(set.layout->replicas, cases[i].replicas);
		run_set_clear(&set);
	}
}

static void test_distributed_replicas_take_the_ipus_of_their_stages(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, THREE "--ipu.auto_select_ipus 4 --distribution.replicas 2", 60000,
			10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->replicas, 2);
	assert_int_equal(set.layout->ipus, 8);
	assert_null(set.layout->warnings);
	run_set_clear(&set);
	run_set_warns(THREE "--ipu.auto_select_ipus 16 --distribution.replicas 2",
		      "ipu.auto_select_ipus: 16 is not followed: the 2 replicas of "
		      "distribution.replicas take 8 IPUs, 4 each.\n");
	run_set_refuses("--distribution.replicas 4096",
			"run.json: distribution.replicas: 4096 replicas of 2 IPUs are 8192 IPUs, "
			"and there are at most 4096: at most 2048 replicas would do");
	run_set_refuses("--cpu --distribution.replicas 2",
			"run.json: distribution.replicas: 2 replicas need IPUs, but \"ipu\" is "
			"null: give ipu, or set it to 1");
}

static void test_the_layout_has_the_ipu_of_each_stage(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, THREE "--pipeline.device_mapping [1,0,1]", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->device[0], 1);
	assert_int_equal(set.layout->device[1], 0);
	assert_int_equal(set.layout->device[2], 1);
	run_set_clear(&set);
	run_set_lay_out(&set, "", 60000, 10000);
	assert_int_equal(set.layout->device[0], 0);
	assert_int_equal(set.layout->device[1], 1);
	run_set_clear(&set);
	run_set_lay_out(&set, "--cpu", 60000, 10000);
	assert_int_equal(set.layout->ipus_used, 1);
	run_set_clear(&set);
}

static void test_interleaved_training_has_an_ipu_for_each_stage(void **state)
{
	struct run_set set;

	(void)state;
	run_set_refuses("--pipeline.schedule Interleaved --pipeline.device_mapping [0,0]",
			"pipeline.device_mapping: stages 0 and 1 are both on IPU 0, but "
			"Interleaved training needs an IPU for each stage; give each its own, or "
			"take Grouped or Sequential");
	/* Evaluation does not: its micro-batches come one after the other then. */
	run_set_lay_out(&set,
			"--pipeline.schedule Interleaved --pipeline.device_mapping [0,0] "
			"--fit null --evaluate.steps 5 --evaluate.steps_per_execution 5",
			60000, 10000);
	assert_int_equal(set.status, ST_OK);
	run_set_clear(&set);
	run_set_lay_out(&set, "--pipeline.schedule Interleaved --pipeline.device_mapping [1,0]",
			60000, 10000);
	assert_int_equal(set.status, ST_OK);
	run_set_clear(&set);
}

static void test_io_tiles_are_needed_to_place_operations_on_them(void **state)
{
	(void)state;
	run_set_refuses("--ipu.io_tiles.place_ops_on_io_tiles true",
			"ipu.io_tiles.place_ops_on_io_tiles: is true, but there are no I/O tiles");
}

static void test_io_tiles_leave_tiles_to_compute(void **state)
{
	(void)state;
	run_set_refuses("--ipu.io_tiles.num_io_tiles 1472",
			"ipu.io_tiles.num_io_tiles: 1472 of the 1472 tiles of an IPU leave none to "
			"compute; at most 1471 would do");
	run_set_refuses("--ipu.tiles_per_ipu 16 --ipu.io_tiles.num_io_tiles 16",
			"16 of the 16 tiles");
}

static void test_io_tiles_are_for_grouped_pipelines(void **state)
{
	struct run_set set;

	(void)state;
	run_set_refuses("--ipu.io_tiles.num_io_tiles 32 --pipeline.schedule Sequential",
			"ipu.io_tiles.num_io_tiles: a pipeline has I/O tiles with the schedule "
			"Grouped alone, not with Sequential");
	run_set_refuses("--ipu.io_tiles.num_io_tiles 32 --pipeline.schedule Interleaved",
			"not with Interleaved");
	run_set_lay_out(&set, "--ipu.io_tiles.num_io_tiles 32", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	run_set_clear(&set);
}

static void test_recomputation_must_be_allowed(void **state)
{
	(void)state;
	run_set_refuses("--pipeline.recomputation_mode RecomputeThenBackpropagate",
			"pipeline.recomputation_mode: RecomputeThenBackpropagate needs "
			"ipu.allow_recompute to be true");
	run_set_warns("--pipeline null --ipu.auto_select_ipus 1 --ipu.allow_recompute true",
		      "ipu.allow_recompute: has no effect without a pipeline");
}

/* Four layers in four stages. */
#define FOUR_CHUNKS                                                                                \
	"--model {\"class_name\":\"Sequential\",\"config\":{\"layers\":["                          \
	"{\"class_name\":\"Flatten\",\"config\":{}},"                                              \
	"{\"class_name\":\"Dense\",\"config\":{\"units\":8}},"                                     \
	"{\"class_name\":\"Dense\",\"config\":{\"units\":8}},"                                     \
	"{\"class_name\":\"Dense\",\"config\":{\"units\":10}}]}} "                                 \
	"--pipeline.stages [0,1,2,3] --pipeline.schedule 1f1b-interleaved "

static void test_chunks_are_dealt_to_the_ipus_in_turn(void **state)
{
	struct run_set set;

	(void)state;
	run_set_refuses("--pipeline.schedule 1f1b-interleaved",
			"pipeline.device_mapping: 1f1b-interleaved needs at least two stages on "
			"each IPU, dealt in turn (4 stages on IPUs 0, 1, 0, 1)");
	run_set_refuses(FOUR_CHUNKS "--pipeline.device_mapping [0,1,1,0]",
			"pipeline.device_mapping: 1f1b-interleaved deals the stages to the IPUs in "
			"turn (4 stages on IPUs 0, 1, 0, 1), but stages 1 and 2 are both on IPU 1");
	run_set_refuses(FOUR_CHUNKS "--pipeline.device_mapping [0,1,0,1] "
				    "--gradient_accumulation.steps_per_replica 5",
			"pipeline.schedule: 1f1b-interleaved needs "
			"gradient_accumulation.steps_per_replica to be a multiple of the number "
			"of IPUs (= 2) and at least that: it is 5");
	run_set_lay_out(&set, FOUR_CHUNKS "--pipeline.device_mapping [1,0,1,0]", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->ipus_used, 2);
	run_set_clear(&set);
	/* Not said: as many IPUs as there are, at least two stages on each. */
	for (int replicas = 1; replicas <= 2; replicas++) {
		run_set_lay_out(&set,
				replicas == 1 ? FOUR_CHUNKS
					      : FOUR_CHUNKS "--ipu.auto_select_ipus 4 "
							    "--evaluate.steps_per_execution 15",
				60000, 10000);
		assert_int_equal(set.status, ST_OK);
		for (int s = 0; s < 4; s++)
			assert_int_equal(set.layout->device[s], s % 2);
		assert_int_equal(set.layout->ipus_used, 2);
		assert_int_equal(set.layout->replicas, replicas);
		run_set_clear(&set);
	}
	/* No number of IPUs above one divides three stages so. */
	run_set_refuses(FOUR_CHUNKS "--pipeline.stages [0,1,1,2]",
			"pipeline.device_mapping: 1f1b-interleaved needs at least two stages on "
			"each IPU, dealt in turn (4 stages on IPUs 0, 1, 0, 1)");
	run_set_refuses("--pipeline.schedule zb-h1 --pipeline.device_mapping [0,0]",
			"pipeline.device_mapping: stages 0 and 1 are both on IPU 0, but zb-h1 "
			"training needs an IPU for each stage; give each its own");
}

static enum status refuse_to_split(void *user, const struct model *model, int stages, int *stage,
				   struct err *err)
{
	(void)user;
	(void)model;
	(void)stage;
	return err_set(err, ST_LIMIT, "%d stages are asked for", stages);
}

static void test_a_split_has_a_stage_for_each_ipu_or_two_for_chunks(void **state)
{
	static const struct run_splitter splitter = {.split = refuse_to_split};
	static const struct {
		const char *line, *says;
	} rows[] = {
		{"--ipu.auto_select_ipus 4", "4 stages"},
		{"--ipu.auto_select_ipus 4 --pipeline.schedule 1f1b-interleaved", "8 stages"},
		{"--pipeline.schedule 1f1b-interleaved --pipeline.device_mapping [0,1,0,1,0,1]",
		 "6 stages"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char line[128];
		struct run_file *run;
		struct model *model;
		int stage[3], stages;
		struct err err = {0};

		snprintf(line, sizeof(line), "--pipeline.stages auto %s", rows[i].line);
		run = run_sample_get(line);
		model = run_sample_model(run);
		assert_int_equal(run_stages(run, model, &splitter, stage, &stages, &err), ST_LIMIT);
		assert_contains(err.text, rows[i].says);
		model_free(model);
		run_file_free(run);
	}
}

static void test_what_a_split_backward_reads_again_is_not_recomputed(void **state)
{
	(void)state;
	run_set_refuses("--ipu.allow_recompute true --pipeline.schedule zb-h1",
			"ipu.allow_recompute: is true, but the schedule zb-h1 reads activations "
			"once more for the gradients of the weights");
}

#define RECOMPUTE "--ipu.allow_recompute true --pipeline.recomputation_mode "

static void test_recomputation_before_all_backward_work_is_not_for_sequential(void **state)
{
	(void)state;
	run_set_refuses(RECOMPUTE "RecomputeThenBackpropagate --pipeline.schedule Sequential",
			"Grouped, Interleaved, not for Sequential; take "
			"RecomputeAndBackpropagateInterleaved");
}

static void test_recomputation_between_backward_work_is_not_for_interleaved(void **state)
{
	(void)state;
	run_set_refuses(RECOMPUTE "RecomputeAndBackpropagateInterleaved "
				  "--pipeline.schedule Interleaved",
			"RecomputeAndBackpropagateInterleaved is for the schedules Grouped, "
			"Sequential, not for Interleaved");
}

static void test_recomputation_fits_the_other_schedules(void **state)
{
	static const char *const lines[] = {
		RECOMPUTE "RecomputeThenBackpropagate --pipeline.schedule 1f1b",
		"--ipu.allow_recompute true --pipeline.schedule gpipe",
		RECOMPUTE "RecomputeThenBackpropagate",
		RECOMPUTE "RecomputeThenBackpropagate --pipeline.schedule Interleaved",
		RECOMPUTE "RecomputeAndBackpropagateInterleaved",
		RECOMPUTE "RecomputeAndBackpropagateInterleaved --pipeline.schedule Sequential",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct run_set set;

		run_set_lay_out(&set, lines[i], 60000, 10000);
		assert_int_equal(set.status, ST_OK);
		run_set_clear(&set);
	}
}

static void test_offloaded_activations_are_those_that_wait(void **state)
{
	(void)state;
	run_set_refuses("--pipeline.offload_activations true --pipeline.schedule Sequential",
			"pipeline.offload_activations: the schedule Sequential has no activations "
			"that wait: set it to false, or take Grouped or Interleaved");
}

static void test_a_replica_alone_keeps_all(void **state)
{
	struct run_set set;

	(void)state;
	run_set_warns("--pipeline.replicated_optimizer_state_sharding true",
		      "pipeline.replicated_optimizer_state_sharding: has no effect: there is one "
		      "replica, which keeps all.");
	run_set_warns("--pipeline.replicated_weight_sharding true",
		      "pipeline.replicated_weight_sharding: has no effect");
	run_set_lay_out(&set,
			"--pipeline.replicated_weight_sharding true --ipu.auto_select_ipus 4 "
			"--evaluate.steps 40",
			60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_null(set.layout->warnings);
	run_set_clear(&set);
}

static void test_accumulated_outfeeds_have_no_single_steps(void **state)
{
	(void)state;
	run_set_warns(
		"--pipeline.accumulate_outfeed true --fit.asynchronous_callbacks true",
		"fit.asynchronous_callbacks: is ignored: pipeline.accumulate_outfeed sends no "
		"results of single steps.");
}

static void test_options_of_stages_are_given_for_each(void **state)
{
	(void)state;
	run_set_refuses("--pipeline.forward_propagation_stages_poplar_options [null]",
			"pipeline.forward_propagation_stages_poplar_options: has 1 entry, but the "
			"pipeline has 2 stages; give each an object or null");
	run_set_refuses("--pipeline.backward_propagation_stages_poplar_options [null,{},null]",
			"pipeline.backward_propagation_stages_poplar_options: has 3 entries");
}

static void test_moving_statistics_in_pipelines_are_warned_of(void **state)
{
	static const char model[] =
		"--model {\"class_name\":\"Sequential\",\"config\":{\"name\":\"m\",\"layers\":["
		"{\"class_name\":\"Flatten\",\"config\":{\"name\":\"flatten\"}},"
		"{\"class_name\":\"BatchNormalization\",\"config\":{\"name\":\"norm\"}},"
		"{\"class_name\":\"Dense\",\"config\":{\"name\":\"out\",\"units\":10}}]}} ";
	char line[1024];
	struct run_set set;

	(void)state;
	run_set_warns(model,
		      "pipeline: BatchNormalization (layer \"norm\") does not update its "
		      "moving statistics properly in a pipeline of Keras for IPUs; here they "
		      "are updated in the order of the micro-batches.");
	snprintf(line, sizeof(line), "%s--single", model);
	run_set_lay_out(&set, line, 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_null(set.layout->warnings);
	run_set_clear(&set);
}

static void test_stages_that_share_an_ipu_may_leave_evaluation_fewer_lines(void **state)
{
	struct run_set set;

	(void)state;
	/* Of five stages so mapped, two micro-batches are on their way at once, not five. */
	run_set_lay_out(&set,
			"--model {\"class_name\":\"Sequential\",\"config\":{\"layers\":["
			"{\"class_name\":\"Flatten\",\"config\":{}},"
			"{\"class_name\":\"Dense\",\"config\":{\"units\":8}},"
			"{\"class_name\":\"Dense\",\"config\":{\"units\":8}},"
			"{\"class_name\":\"Dense\",\"config\":{\"units\":8}},"
			"{\"class_name\":\"Dense\",\"config\":{\"units\":10}}]}} "
			"--pipeline.stages [0,1,2,3,4] --pipeline.schedule Interleaved "
			"--pipeline.device_mapping [0,0,1,1,2] --ipu.auto_select_ipus 4 --fit null "
			"--data.limit 1056 --evaluate {\"steps_per_execution\":\"epoch\"}",
			60000, 1056);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->evaluate_steps, 32);
	run_set_clear(&set);
}

static void test_sets_must_hold_what_is_evaluated_and_predicted(void **state)
{
	(void)state;
	run_set_refuses_with("--data.repeat false", 60000, 29 * 32,
			     "data.repeat: is false, but evaluate.steps 30 is more than the 29 "
			     "batches of the set; set data.repeat to true, or take fewer steps");
	run_set_refuses_with("--data.repeat false --evaluate null --predict {\"steps\":20}", 60000,
			     19 * 32, "but predict.steps 20 is more than the 19 batches");
}

static void test_no_memory_is_undone_everywhere(void **state)
{
	(void)state;
	run_set_undoes("--pipeline.device_mapping [1,0] --pipeline.replicated_weight_sharding true "
		       "--pipeline.accumulate_outfeed true --fit.asynchronous_callbacks true");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distributed_replicas_take_the_ipus_of_their_stages),
		cmocka_unit_test(test_a_mapping_has_an_ipu_for_each_stage),
		cmocka_unit_test(test_a_mapping_has_ipus_that_are_there),
		cmocka_unit_test(test_replicas_follow_the_mapping),
		cmocka_unit_test(test_the_layout_has_the_ipu_of_each_stage),
		cmocka_unit_test(test_interleaved_training_has_an_ipu_for_each_stage),
		cmocka_unit_test(test_io_tiles_are_needed_to_place_operations_on_them),
		cmocka_unit_test(test_io_tiles_leave_tiles_to_compute),
		cmocka_unit_test(test_io_tiles_are_for_grouped_pipelines),
		cmocka_unit_test(test_recomputation_must_be_allowed),
		cmocka_unit_test(test_recomputation_before_all_backward_work_is_not_for_sequential),
		cmocka_unit_test(test_recomputation_between_backward_work_is_not_for_interleaved),
		cmocka_unit_test(test_chunks_are_dealt_to_the_ipus_in_turn),
		cmocka_unit_test(test_a_split_has_a_stage_for_each_ipu_or_two_for_chunks),
		cmocka_unit_test(test_what_a_split_backward_reads_again_is_not_recomputed),
		cmocka_unit_test(test_recomputation_fits_the_other_schedules),
		cmocka_unit_test(test_offloaded_activations_are_those_that_wait),
		cmocka_unit_test(test_a_replica_alone_keeps_all),
		cmocka_unit_test(test_accumulated_outfeeds_have_no_single_steps),
		cmocka_unit_test(test_options_of_stages_are_given_for_each),
		cmocka_unit_test(test_moving_statistics_in_pipelines_are_warned_of),
		cmocka_unit_test(test_stages_that_share_an_ipu_may_leave_evaluation_fewer_lines),
		cmocka_unit_test(test_sets_must_hold_what_is_evaluated_and_predicted),
		cmocka_unit_test(test_no_memory_is_undone_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
