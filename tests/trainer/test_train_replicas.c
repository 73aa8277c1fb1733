/*
 * Replicas: all end with the same weights, which are those of one that has seen all of their
 * batches.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/dataset_sample.h"
#include "support/support.h"
#include "trainer/train_job.h"
#include "trainer/train_phase.h"

#define WORDS_MOST 16

static const char run_text[] =
	"{\"model\": {\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [\n"
	"  {\"class_name\": \"Flatten\", \"config\": {\"name\": \"flatten\"}},\n"
	"  {\"class_name\": \"Dense\", \"config\": {\"name\": \"hidden\", \"units\": 13,\n"
	"   \"activation\": \"relu\"}},\n"
	"  {\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"norm\"}},\n"
	"  {\"class_name\": \"Dense\", \"config\": {\"name\": \"out\", \"units\": 10,\n"
	"   \"activation\": \"softmax\"}}]}},\n"
	" \"compile\": {\"loss\": \"sparse_categorical_crossentropy\",\n"
	"  \"steps_per_execution\": \"epoch\"},\n"
	" \"data\": {\"path\": \"data\", \"batch_size\": 4, \"shuffle\": false},\n"
	" \"fit\": {\"epochs\": 2, \"steps_per_epoch\": 48},\n"
	" \"gradient_accumulation\": {\"steps_per_replica\": 4},\n"
	" \"ipu\": {}}\n";

static const struct train_replica *replicas_of(const struct train_job *job)
{
	return job->session->replica;
}

/* What the run file with the words of @line trains; train_job_free() ends it. */
static void train(struct train_job *job, const char *line)
{
	struct run_data data;
	struct train_session_params params = {0};
	struct train_fit_params fit = {0};
	struct train_result result;
	char *argv[WORDS_MOST], copy[512], *rest = NULL;
	struct err err = {0};
	int argc = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < WORDS_MOST);
		argv[argc++] = word;
	}
	train_job_init(job, NULL, true);
	if (train_job_load(job, "run.json", argc, argv, &err) != ST_OK ||
	    train_job_prepare(job, &err) != ST_OK)
		fail_msg("%s: %s", line, err.text);
	data = train_data_of(&job->train_set, &job->test_set);
	if (plan_run_compile(&job->plan, &data, &err) != ST_OK)
		fail_msg("%s: %s", line, err.text);
	params.plan = &job->plan;
	params.train_set = &job->train_set;
	params.test_set = &job->test_set;
	if (train_session_new(&job->session, &params, &err) != ST_OK)
		fail_msg("%s: %s", line, err.text);
	fit.session = job->session;
	fit.callbacks = &job->callbacks;
	fit.screen = &job->screen;
	fit.stop = &job->stop;
	if (train_fit(&fit, &result, &err) != ST_OK)
		fail_msg("%s: %s", line, err.text);
}

/* Is every parameter that @trainable says the same in both? */
static bool same_weights(const struct model *model, const float *a, const float *b, bool trainable)
{
	for (int p = 0; p < model->param_count; p++) {
		const struct model_param *param = &model->params[p];

		if (param->trainable == trainable &&
		    memcmp(a + param->offset, b + param->offset, param->count * sizeof(*a)) != 0)
			return false;
	}
	return true;
}

static void test_replicas_end_with_the_same_weights(void **state)
{
	static const struct {
		const char *line;
		int replicas;
	} cases[] = {
		{"--ipu.auto_select_ipus 2", 2},
		{"--ipu.auto_select_ipus 3 --compile.optimizer Adam", 3},
		{"--ipu.auto_select_ipus 4 --gradient_accumulation null --compile.optimizer "
		 "RMSprop",
		 4},
		{"--ipu.auto_select_ipus 4 --pipeline.stages [0,0,1,1] "
		 "--gradient_accumulation.reduction running_mean",
		 2},
		{"--ipu.auto_select_ipus 3 --pipeline.stages [0,0,1,1] "
		 "--pipeline.device_mapping [0,0] --gradient_accumulation.dtype float16",
		 3},
		{"--ipu.auto_select_ipus 4 --pipeline.stages [0,0,1,1] "
		 "--pipeline.schedule Interleaved --host.threads 3",
		 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct train_job job;
		const struct train_replica *replica;

		train(&job, cases[i].line);
		replica = replicas_of(&job);
		assert_int_equal(job.plan.layout->replicas, cases[i].replicas);
		for (int r = 1; r < job.plan.layout->replicas; r++) {
			assert_true(same_weights(job.plan.model, replica[0].weights,
						 replica[r].weights, true));
			/* Each has seen other batches: so it can fail. */
			assert_false(same_weights(job.plan.model, replica[0].weights,
						  replica[r].weights, false));
		}
		train_job_free(&job);
	}
}

#define NO_NORM "--model.config.layers.2 {\"class_name\":\"ReLU\",\"config\":{\"name\":\"relu\"}} "

/* The effective batch is batch x accumulated x replicas: what one replica does with all of them. */
static void test_replicas_share_the_effective_batch(void **state)
{
	struct train_job two, one;

	(void)state;
	train(&two, NO_NORM "--ipu.auto_select_ipus 2 --gradient_accumulation null");
	train(&one, NO_NORM "--gradient_accumulation.steps_per_replica 2 "
			    "--gradient_accumulation.reduction mean");
	assert_int_equal(two.plan.layout->updates_per_execution, 24);
	assert_int_equal(one.plan.layout->updates_per_execution, 24);
	assert_contains(two.plan.layout->notes, "the effective batch size is 8");
	assert_contains(one.plan.layout->notes, "the effective batch size is 8");
	assert_true(same_weights(two.plan.model, replicas_of(&two)->weights,
				 replicas_of(&one)->weights, true));
	train_job_free(&two);
	train_job_free(&one);
}

/* What the optimizer got last is the mean in the tree's order, whatever the threads. */
static void test_gradients_are_summed_in_the_tree(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 3; threads++) {
		const float *a[5];
		struct train_job job;
		char line[96];

		snprintf(line, sizeof(line),
			 "--ipu.auto_select_ipus 5 --fit.steps_per_epoch 40 --host.threads %d",
			 threads);
		train(&job, line);
		assert_int_equal(job.plan.layout->replicas, 5);
		for (int r = 0; r < 5; r++)
			a[r] = replicas_of(&job)[r].accumulated;
		for (size_t i = 0; i < job.plan.model->weights; i++) {
			const float sum = ((a[0][i] + a[1][i]) + (a[2][i] + a[3][i])) + a[4][i];
			const float mean = sum / 5.0f;

			assert_memory_equal(&job.session->reduced[i], &mean, sizeof(mean));
		}
		train_job_free(&job);
	}
}

/* The numbers of the next replica's micro-batch follow. Another thread may have written them. */
static void test_a_micro_batch_writes_no_numbers_of_the_next(void **state)
{
	static const float outputs[10] = {[3] = 1.0f};
	const int32_t class = 3;
	double states[] = {5.0, 5.0, 7.0};
	struct train_measured measured;
	struct train_job job;

	(void)state;
	train(&job, "--compile.metrics [\"accuracy\"] --fit.steps_per_epoch 4");
	measured = (struct train_measured){.model = job.plan.model,
					   .losses = &job.plan.program[RUN_TRAIN].losses,
					   .metrics = &job.plan.program[RUN_TRAIN].metrics,
					   .outputs = outputs,
					   .targets = {.classes = &class},
					   .items = 1,
					   .there = 1,
					   .states = states};
	assert_int_equal(measured.metrics->states, 2);
	train_measure_run(&measured);
	assert_close(states[0], 1.0, 0.0);
	assert_close(states[1], 1.0, 0.0);
	assert_close(states[2], 7.0, 0.0);
	train_job_free(&job);
}

static int set_up(void **state)
{
	const uint32_t images[] = {96, 7, 9}, labels[] = {96};
	static struct sample_bytes data;
	int failed = sample_place_set_up(state);
	const struct sample_place *place = *state;

	if (failed != 0)
		return failed;
	sample_idx(&data, 3, images, 251);
	sample_write(place, "data/train-images-idx3-ubyte", data.bytes, data.length);
	sample_write(place, "data/t10k-images-idx3-ubyte", data.bytes, data.length);
	sample_idx(&data, 1, labels, 10);
	sample_write(place, "data/train-labels-idx1-ubyte", data.bytes, data.length);
	sample_write(place, "data/t10k-labels-idx1-ubyte", data.bytes, data.length);
	sample_write(place, "run.json", run_text, strlen(run_text));
	return chdir(place->folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replicas_end_with_the_same_weights),
		cmocka_unit_test(test_replicas_share_the_effective_batch),
		cmocka_unit_test(test_gradients_are_summed_in_the_tree),
		cmocka_unit_test(test_a_micro_batch_writes_no_numbers_of_the_next),
	};

	return cmocka_run_group_tests(tests, set_up, sample_place_tear_down);
}
