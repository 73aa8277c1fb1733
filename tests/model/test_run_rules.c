/*
 * Replicas, stages, steps and executions, and each rule's own message.
 */
#include <stdio.h>
#include <string.h>

#include "support/run_set.h"
#include "support/support.h"

static void test_layout_of_the_sample(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, "", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->stages, 2);
	assert_int_equal(set.layout->stage[1], 0);
	assert_int_equal(set.layout->stage[2], 1);
	assert_int_equal(set.layout->ipus, 2);
	assert_int_equal(set.layout->ipus_per_replica, 2);
	assert_int_equal(set.layout->replicas, 1);
	assert_int_equal(set.layout->accumulation, 4);
	assert_int_equal(set.layout->steps_per_epoch, 40);
	assert_int_equal(set.layout->steps_per_execution, 20);
	assert_int_equal(set.layout->executions_per_epoch, 2);
	assert_int_equal(set.layout->updates_per_execution, 5);
	assert_int_equal(set.layout->evaluate_steps, 30);
	assert_int_equal(set.layout->evaluate_steps_per_execution, 10);
	assert_null(set.layout->warnings);
	run_set_clear(&set);
}

static void test_replicas_share_the_steps(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, "--ipu.auto_select_ipus 4 --evaluate.steps 40", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->replicas, 2);
	assert_int_equal(set.layout->steps_per_epoch, 20);
	assert_int_equal(set.layout->evaluate_steps, 20);
	run_set_clear(&set);
}

static void test_three_stages_take_four_ipus(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(
		&set,
		"--pipeline.stages [0,1,2] --ipu.auto_select_ipus 8 --fit.steps_per_epoch 24 "
		"--compile.steps_per_execution 12 --gradient_accumulation.steps_per_replica 6 "
		"--evaluate.steps 12 --evaluate.steps_per_execution 6",
		60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->ipus_per_replica, 4);
	assert_int_equal(set.layout->replicas, 2);
	run_set_clear(&set);
	run_set_refuses(
		"--pipeline.stages [0,1,2] --gradient_accumulation.steps_per_replica 6",
		"2 attached, but a pipeline of 3 stages needs 4 (stages rounded up to a power of "
		"two): give a multiple of 4");
}

static void test_cpu_has_no_ipus_and_no_pipeline(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, "--cpu", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->ipus, 0);
	assert_int_equal(set.layout->ipus_per_replica, 1);
	assert_int_equal(set.layout->replicas, 1);
	assert_int_equal(set.layout->stages, 1);
	run_set_clear(&set);
	/* One replica needs no IPUs. */
	run_set_lay_out(&set, "--cpu --distribution.replicas 1", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->replicas, 1);
	run_set_clear(&set);
	run_set_refuses("--cpu --distribution.replicas 2",
			"distribution.replicas: 2 replicas need IPUs, but \"ipu\" is null");
	run_set_refuses("--ipu null", "pipeline: needs IPUs, but \"ipu\" is null");
}

/* A chain of four layers as a Functional model, for batches of 32. */
#define NODE(from) ",\"inbound_nodes\":[[[\"" from "\",0,0,{}]]]}"
#define DENSE(name, units, from)                                                                   \
	",{\"class_name\":\"Dense\",\"name\":\"" name "\",\"config\":{\"name\":\"" name            \
	"\",\"units\":" units "}" NODE(from)
#define CHAIN                                                                                      \
	"--model {\"class_name\":\"Functional\",\"config\":{\"name\":\"model\",\"layers\":["       \
	"{\"class_name\":\"InputLayer\",\"name\":\"in\",\"config\":{\"name\":\"in\","              \
	"\"batch_input_shape\":[32,28,28,1]},\"inbound_nodes\":[]},"                               \
	"{\"class_name\":\"Flatten\",\"name\":\"flat\",\"config\":{\"name\":\"flat\"}" NODE(       \
		"in") DENSE("a", "8", "flat") DENSE("b", "8", "a")                                 \
		DENSE("c", "10",                                                                   \
		      "b") "],\"input_layers\":[[\"in\",0,0]],\"output_layers\":[[\"c\",0,0]]}} "

static void test_the_rest_of_a_pass_is_a_batch_where_it_is_kept(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set,
			"--cpu --fit.steps_per_epoch null --compile.steps_per_execution 1 "
			"--evaluate.steps_per_execution 1 --evaluate.steps null "
			"--gradient_accumulation null --data.drop_remainder false",
			100, 64);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->steps_per_epoch, 4);
	assert_int_equal(set.layout->evaluate_steps, 2);
	assert_null(set.layout->warnings);
	run_set_clear(&set);
	run_set_refuses("--data.drop_remainder false",
			"data.drop_remainder: is false, but every batch on an IPU is a whole one");
	/* The tutorial's first step: 938 and 157 batches of 64. Less than a batch is one. */
	run_set_lay_out(
		&set,
		"--cpu --fit.steps_per_epoch null --compile.steps_per_execution 1 "
		"--evaluate.steps_per_execution 1 --evaluate.steps null --data.batch_size 64 "
		"--gradient_accumulation null --data.drop_remainder false",
		60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->steps_per_epoch, 938);
	assert_int_equal(set.layout->evaluate_steps, 157);
	run_set_clear(&set);
	run_set_lay_out(
		&set,
		"--cpu --fit.steps_per_epoch null --compile.steps_per_execution 1 --evaluate null "
		"--gradient_accumulation null --data.drop_remainder false",
		20, 0);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->steps_per_epoch, 1);
	run_set_clear(&set);
	run_set_refuses(
		CHAIN "--cpu --gradient_accumulation null --data.drop_remainder false",
		"data.drop_remainder: is false, but the model's input layer asks for batches of "
		"32; leave it true");
	run_set_refuses("--cpu --data.drop_remainder false",
			"data.drop_remainder: is false, but gradients of a short batch cannot be "
			"accumulated");
}

static void test_whole_set_is_an_epoch_without_steps(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(
		&set,
		"--single --fit.steps_per_epoch null --evaluate.steps null --gradient_accumulation "
		"null",
		60000, 10000);
	assert_int_equal(set.status, ST_INVALID); /* 312 steps, 10 an execution */
	assert_contains(set.err.text,
			"compile.steps_per_execution: 20 is not a divisor of the 1875 "
			"steps; 15 would do");
	run_set_clear(&set);
	run_set_lay_out(&set,
			"--single --fit.steps_per_epoch null --compile.steps_per_execution 15 "
			"--evaluate.steps_per_execution 12 --evaluate.steps null "
			"--gradient_accumulation null",
			60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->steps_per_epoch, 1875);
	assert_int_equal(set.layout->evaluate_steps, 312);
	assert_contains(set.layout->warnings, "evaluate: 16 of the 10,000 test images");
	run_set_clear(&set);
}

static void test_execution_rules_have_their_own_messages(void **state)
{
	(void)state;
	run_set_refuses(
		"--compile.steps_per_execution 7",
		"run.json: compile.steps_per_execution: 7 is not a divisor of the 40 steps; 8 "
		"would do");
	run_set_refuses("--single --gradient_accumulation.steps_per_replica 8",
			"compile.steps_per_execution: 20 is not a multiple of "
			"gradient_accumulation.steps_per_replica 8; 8 would do");
	run_set_refuses("--single --gradient_accumulation.steps_per_replica 3",
			"fit.steps_per_epoch 39 with compile.steps_per_execution 39 would do");
	run_set_refuses(
		"--single --compile.steps_per_execution null",
		"1 is not a multiple of gradient_accumulation.steps_per_replica 4; 4 would do");
	run_set_refuses(
		"--ipu.auto_select_ipus 2 --single --ipu.auto_select_ipus 64",
		"fit.steps_per_epoch: 40 batches leave none for each of 64 replicas; 64 are the "
		"least");
	run_set_refuses(
		"--evaluate.steps_per_execution 7",
		"evaluate.steps_per_execution: 7 is not a divisor of the 30 steps; 6 would do");
}

static void test_pipeline_rules_have_their_own_messages(void **state)
{
	(void)state;
	run_set_refuses(
		"--gradient_accumulation null",
		"pipeline: training needs gradient_accumulation.steps_per_replica (Grouped: a "
		"multiple of 4, Interleaved: of 2)");
	run_sample_refuses("--gradient_accumulation.steps_per_replica 0",
			   "gradient_accumulation.steps_per_replica: must be from 1");
	run_set_refuses(
		"--gradient_accumulation.steps_per_replica 2",
		"pipeline.schedule: Grouped needs gradient_accumulation.steps_per_replica to be a "
		"multiple of");
	run_set_refuses(
		"--gradient_accumulation.steps_per_replica 5 --pipeline.schedule Interleaved",
		"Interleaved needs gradient_accumulation.steps_per_replica");
	run_set_refuses("--gradient_accumulation null --pipeline.schedule 1f1b",
			"pipeline: training needs gradient_accumulation.steps_per_replica (1f1b: a "
			"multiple of 1; the more, the smaller the bubble)");
	run_set_refuses("--evaluate.steps 15 --evaluate.steps_per_execution 5",
			"evaluate.steps 14 with evaluate.steps_per_execution 14 would do");
}

/* Grouped asks for 2N, Interleaved for N, Sequential for nothing; evaluation for N, or nothing. */
static void test_each_schedule_has_a_least_depth(void **state)
{
	static const struct {
		const char *schedule;
		int training, forward;
	} cases[] = {{"Grouped", 4, 2}, {"Interleaved", 2, 2}, {"Sequential", 1, 1},
		     {"gpipe", 1, 1},   {"1f1b", 1, 1},        {"zb-h1", 1, 1},
		     {"zb-h2", 1, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int depth = 1; depth <= 8; depth++) {
			struct run_set set;
			char line[256];

			snprintf(line, sizeof(line),
				 "--pipeline.schedule %s --evaluate null --fit.steps_per_epoch %d "
				 "--compile.steps_per_execution %d "
				 "--gradient_accumulation.steps_per_replica %d",
				 cases[i].schedule, 2 * depth, 2 * depth, depth);
			run_set_lay_out(&set, line, 60000, 10000);
			assert_int_equal(set.status,
					 depth % cases[i].training ? ST_INVALID : ST_OK);
			run_set_clear(&set);
			snprintf(line, sizeof(line),
				 "--pipeline.schedule %s --fit null --evaluate.steps %d "
				 "--evaluate.steps_per_execution %d",
				 cases[i].schedule, 2 * depth, depth);
			run_set_lay_out(&set, line, 60000, 10000);
			assert_int_equal(set.status, depth % cases[i].forward ? ST_INVALID : ST_OK);
			run_set_clear(&set);
		}
	}
}

static void test_evaluation_ignores_accumulation(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, "--evaluate.steps 30 --evaluate.steps_per_execution 6", 60000, 10000);
	assert_int_equal(set.status, ST_OK); /* 6 is no multiple of 4 */
	run_set_clear(&set);
}

static void test_stage_rules_have_their_own_messages(void **state)
{
	(void)state;
	run_set_refuses("--pipeline.stages [0,1]",
			"pipeline.stages: has 2 entries, but the model has 3 layers");
	run_set_refuses("--pipeline.stages [1,1,1]",
			"pipeline.stages[0]: the first layer, \"flatten\", "
			"must be in stage 0, not 1");
	run_set_refuses("--pipeline.stages [0,1,0]",
			"pipeline.stages[2]: layer \"out\" must be in stage 1");
	run_set_refuses("--pipeline.stages [0,0,2]", "or in stage 1, not 2");
	run_set_refuses("--pipeline.stages [0,null,1]", "needs a stage, not null");
	run_set_refuses("--pipeline.stages [0,\"a\",1]",
			"pipeline.stages[1]: must be a whole number");
	run_set_refuses("--pipeline.stages [0,0,0]", "at least 2 stages");
	run_set_refuses("--pipeline.stages x", "must be a list");
	run_set_refuses("--pipeline.stages {\"uot\":1}",
			"pipeline.stages: unknown layer \"uot\" (did you mean \"out\"?)");
	run_set_refuses("--pipeline.stages {\"out\":2}", "must be 1, not 2");
	run_set_refuses("--pipeline.stages {\"flatten\":1}", "must be 0, not 1");
}

static void test_functional_models_have_stage_rules_of_their_own(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, CHAIN "--pipeline.stages [0,0,1,1]", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->stages, 2);
	assert_int_equal(set.layout->stage[1], 0);
	assert_int_equal(set.layout->stage[2], 1);
	run_set_clear(&set);
	run_set_lay_out(&set, CHAIN "--pipeline.stages {\"b\":1}", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->stage[1], 0);
	assert_int_equal(set.layout->stage[3], 1);
	run_set_clear(&set);

	run_set_refuses(
		CHAIN "--pipeline.stages [0,1,0,1]",
		"pipeline.stages: layer \"b\" is in stage 0, but needs \"a\" of stage 1: a layer "
		"can "
		"only depend on its own stage and on those before");
	run_set_refuses(CHAIN "--pipeline.stages [0,0,3,3]",
			"no layer is in stage 1, 2: every stage from 0 to 3, the last, needs one");
	run_set_refuses(CHAIN "--pipeline.stages [1,1,1,1]", "no layer is in stage 0");
	run_set_refuses(CHAIN "--pipeline.stages [0,0,4,4]",
			"pipeline.stages[2]: there cannot be a stage 4: the model has 4 layers");
	run_set_refuses(CHAIN "--pipeline.stages [0,0,null,1]",
			"layer \"b\" needs a stage, not null");
	run_set_refuses(CHAIN "--pipeline.stages [0,0,1]",
			"has 3 entries, but the model has 4 layers");
	run_set_refuses(CHAIN "--pipeline.stages {\"d\":1}", "unknown layer \"d\"");
}

/* Two branches that meet: "b" of the first is listed before "c" of the second. */
#define BRANCHES                                                                                   \
	"--model {\"class_name\":\"Functional\",\"config\":{\"name\":\"model\",\"layers\":["       \
	"{\"class_name\":\"InputLayer\",\"name\":\"in\",\"config\":{\"name\":\"in\","              \
	"\"batch_input_shape\":[32,28,28,1]},\"inbound_nodes\":[]},"                               \
	"{\"class_name\":\"Flatten\",\"name\":\"flat\",\"config\":{\"name\":\"flat\"}" NODE("in")  \
		DENSE("a", "10", "flat") DENSE("b", "10", "a") DENSE(                              \
			"c", "10", "flat") ",{\"class_name\":\"Add\",\"name\":\"sum\",\"config\":" \
					   "{\"name\":\"sum\"},"                                   \
					   "\"inbound_nodes\":[[[\"b\",0,0,{}],[\"c\",0,0,{}]]]}"  \
					   "],\"input_layers\":[[\"in\",0,0]],\"output_layers\":[" \
					   "[\"sum\",0,0]]}} "

static void test_layers_are_brought_into_the_order_of_their_stages(void **state)
{
	static const char *const names[] = {"flat", "a", "c", "b", "sum"};
	static const int stages[] = {0, 0, 0, 1, 1};
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, BRANCHES "--pipeline.stages [0,0,1,0,1]", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	for (int i = 0; i < 5; i++) {
		assert_string_equal(set.model->layers[i].name, names[i]);
		assert_int_equal(set.layout->stage[i], stages[i]);
	}
	run_set_clear(&set);
	/* An object may name a stage again. */
	run_set_lay_out(&set, BRANCHES "--pipeline.stages {\"b\":1,\"c\":0,\"sum\":1}", 60000,
			10000);
	assert_int_equal(set.status, ST_OK);
	assert_string_equal(set.model->layers[2].name, "c");
	run_set_clear(&set);
	run_set_refuses(BRANCHES "--pipeline.stages [0,0,0,1,0]",
			"layer \"sum\" is in stage 0, but needs \"c\" of stage 1");
}

static void test_batch_is_what_the_input_layer_asks_for(void **state)
{
	(void)state;
	run_set_refuses(CHAIN "--pipeline.stages [0,0,1,1] --data.batch_size 16",
			"data.batch_size: 16, but the model's input layer asks for batches of 32");
}

static void test_stages_may_be_named_by_their_first_layers(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, "--pipeline.stages {\"out\":1,\"flatten\":0}", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->stage[1], 0);
	assert_int_equal(set.layout->stage[2], 1);
	run_set_clear(&set);
}

static void test_sets_must_hold_what_is_asked(void **state)
{
	(void)state;
	run_set_refuses_with("", 31, 10000, "data.batch_size: 32 is beyond the 31 training images");
	run_set_refuses_with("", 60000, 31, "data.batch_size: 32 is beyond the 31 test images");
	run_set_refuses_with("", 60000, 0, "evaluate: the data set has no test images");
	run_set_refuses_with(
		"--data.repeat false", 32 * 79, 10000,
		"data.repeat: is false, but 2 epochs of 40 steps need 80 batches and the set "
		"has 79");
	run_set_refuses_with("--data.limit 20", 20, 20, "or a greater data.limit");
}

static void test_warnings_say_what_is_left_out(void **state)
{
	(void)state;
	run_set_warns("--compile.steps_per_execution 500",
		      "compile.steps_per_execution: 500 is more than the 40 steps there are: 40 is "
		      "used.");
	run_set_warns("--evaluate.steps_per_execution null --compile.steps_per_execution 40",
		      "evaluate.steps_per_execution: 40 is more than the 30 steps");
	run_set_warns("--ipu.auto_select_ipus 3", "1 of 3 IPUs stay idle: each replica takes 2.");
	run_set_warns(
		"--ipu.auto_select_ipus 4 --fit.steps_per_epoch 41 --evaluate.steps 40",
		"fit.steps_per_epoch: 1 of 41 batches are dropped: they do not divide among 2 "
		"replicas.");
}

/*
 * The completed example of the Keras tutorial: batch 80, accumulation 8, 60,000 and 10,000 images.
 */
#define WHOLE                                                                                      \
	"--data.batch_size 80 --fit.steps_per_epoch null --compile.steps_per_execution epoch "     \
	"--evaluate.steps null --evaluate.steps_per_execution epoch "

static void test_whole_epochs_are_rounded_down_to_what_they_need(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, WHOLE "--gradient_accumulation.steps_per_replica 8", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->steps_per_epoch, 744);
	assert_int_equal(set.layout->steps_per_execution, 744);
	assert_int_equal(set.layout->executions_per_epoch, 1);
	assert_int_equal(set.layout->updates_per_execution, 93);
	assert_int_equal(set.layout->evaluate_steps, 124);
	assert_int_equal(set.layout->evaluate_steps_per_execution, 124);
	assert_contains(set.layout->warnings,
			"fit: the last 6 of 750 steps are left out, so that an execution of the "
			"whole epoch is a multiple of 8: 744 are done.");
	assert_contains(set.layout->warnings, "evaluate: the last 1 of 125 steps");
	run_set_clear(&set);

	run_set_lay_out(&set, WHOLE "--pipeline null --gradient_accumulation null", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->replicas, 2);
	assert_int_equal(set.layout->steps_per_execution, 375);
	assert_int_equal(set.layout->evaluate_steps_per_execution, 62);
	run_set_clear(&set);
	run_set_refuses_with(
		WHOLE "--gradient_accumulation.steps_per_replica 8 --evaluate null", 320, 0,
		"compile.steps_per_execution: \"epoch\" needs at least 8 steps on each "
		"replica; the set has 4");
}

static void test_whole_epochs_of_given_steps_are_not_rounded(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, "--compile.steps_per_execution epoch", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->steps_per_execution, 40);
	assert_null(set.layout->warnings);
	run_set_clear(&set);
	run_set_refuses("--compile.steps_per_execution epoch --fit.steps_per_epoch 42",
			"42 is not a multiple of gradient_accumulation.steps_per_replica 4; ");
}

static void test_predictions_are_laid_out_as_evaluations(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, "--predict {\"steps\":12}", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->predict_steps, 12);
	assert_int_equal(set.layout->predict_steps_per_execution, 12); /* as compile's, 20 */
	assert_contains(set.layout->warnings, "predict.steps_per_execution: 20 is more than");
	run_set_clear(&set);
	run_set_refuses("--predict {\"steps\":15,\"steps_per_execution\":5}",
			"predict.steps 14 with predict.steps_per_execution 14 would do");
	run_set_refuses_with("--evaluate null --predict {}", 60000, 0,
			     "predict: the data set has no test images");
}

static void test_validation_is_laid_out_as_the_evaluation(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set,
			"--fit.validation true --evaluate null --compile.steps_per_execution epoch",
			60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->evaluate_steps, 312);
	assert_int_equal(set.layout->evaluate_steps_per_execution, 312);
	run_set_clear(&set);
}

static void test_runs_without_training_need_no_training_set(void **state)
{
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, "--fit null --gradient_accumulation null", 0, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_int_equal(set.layout->steps_per_epoch, 0);
	assert_int_equal(set.layout->evaluate_steps, 30);
	assert_null(set.layout->notes);
	run_set_clear(&set);
	run_set_refuses("--fit null --evaluate null",
			"fit: is null, and so are evaluate, predict and generate");
}

static void test_notes_tell_the_effective_batch_and_slow_executions(void **state)
{
	struct run_set set;

	(void)state;
	run_set_notes(
		"",
		"Training is not distributed over replicas; the effective batch size is 128 "
		"(batch 32 x 4 accumulated x 1 replica). Weight updates of each replica: 5 in an "
		"execution, 10 in an epoch.");
	run_set_notes("--ipu.auto_select_ipus 4 --evaluate null",
		      "Training is distributed over replicas; the effective batch size is 256");
	run_set_notes(
		"--single --gradient_accumulation null --compile.steps_per_execution 1",
		"compile.steps_per_execution is 1, so the host has a part in every step: a greater "
		"one, up to 40 (\"epoch\"), is faster.");
	run_set_lay_out(&set, "--cpu --gradient_accumulation null --compile.steps_per_execution 1",
			60000, 10000);
	assert_int_equal(set.status, ST_OK);
	assert_null(set.layout->notes);
	run_set_clear(&set);
}

static void test_warnings_are_given_once(void **state)
{
	const char *text = "IPUs stay idle", *first;
	struct run_set set;

	(void)state;
	run_set_lay_out(&set, "--ipu.auto_select_ipus 3", 60000, 10000);
	assert_int_equal(set.status, ST_OK);
	first = strstr(set.layout->warnings, text);
	assert_non_null(first);
	assert_null(strstr(first + 1, text));
	run_set_clear(&set);
}

static void test_no_memory_is_undone_everywhere(void **state)
{
	(void)state;
	run_set_undoes("--ipu.auto_select_ipus 3 --pipeline.stages {\"out\":1}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout_of_the_sample),
		cmocka_unit_test(test_replicas_share_the_steps),
		cmocka_unit_test(test_three_stages_take_four_ipus),
		cmocka_unit_test(test_cpu_has_no_ipus_and_no_pipeline),
		cmocka_unit_test(test_the_rest_of_a_pass_is_a_batch_where_it_is_kept),
		cmocka_unit_test(test_whole_set_is_an_epoch_without_steps),
		cmocka_unit_test(test_execution_rules_have_their_own_messages),
		cmocka_unit_test(test_pipeline_rules_have_their_own_messages),
		cmocka_unit_test(test_each_schedule_has_a_least_depth),
		cmocka_unit_test(test_evaluation_ignores_accumulation),
		cmocka_unit_test(test_stage_rules_have_their_own_messages),
		cmocka_unit_test(test_functional_models_have_stage_rules_of_their_own),
		cmocka_unit_test(test_layers_are_brought_into_the_order_of_their_stages),
		cmocka_unit_test(test_batch_is_what_the_input_layer_asks_for),
		cmocka_unit_test(test_stages_may_be_named_by_their_first_layers),
		cmocka_unit_test(test_sets_must_hold_what_is_asked),
		cmocka_unit_test(test_warnings_say_what_is_left_out),
		cmocka_unit_test(test_whole_epochs_are_rounded_down_to_what_they_need),
		cmocka_unit_test(test_whole_epochs_of_given_steps_are_not_rounded),
		cmocka_unit_test(test_predictions_are_laid_out_as_evaluations),
		cmocka_unit_test(test_validation_is_laid_out_as_the_evaluation),
		cmocka_unit_test(test_runs_without_training_need_no_training_set),
		cmocka_unit_test(test_notes_tell_the_effective_batch_and_slow_executions),
		cmocka_unit_test(test_warnings_are_given_once),
		cmocka_unit_test(test_no_memory_is_undone_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
