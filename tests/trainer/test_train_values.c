/*
 * The values that a training sends: shapes for every way of running it, the same values whenever
 * they are taken, and no worker that waits for ever.
 */
#include "support/support.h"

#include <fenv.h>
#include <inttypes.h>
#include <ipuscope/trainer.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "trainer/data/npz.h"
#include "trainer/train_stop.h"

#define LAYERS                                                                                     \
	"{\"class_name\": \"Flatten\", \"config\": {\"name\": \"flatten\"}}, "                     \
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"hidden\", \"units\": 6, "            \
	"\"activation\": \"relu\"}}, "                                                             \
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"middle\", \"units\": 5}}, "          \
	"{\"class_name\": \"Dense\", \"config\": {\"name\": \"out\", \"units\": 10, "              \
	"\"activation\": \"softmax\"}}"
#define FUNCTIONAL                                                                                 \
	"{\"class_name\": \"InputLayer\", \"name\": \"in\", \"config\": {\"name\": \"in\", "       \
	"\"batch_input_shape\": [4, 28, 28, 1]}, \"inbound_nodes\": []}, "                         \
	"{\"class_name\": \"Flatten\", \"name\": \"flatten\", \"config\": {\"name\": "             \
	"\"flatten\"}, \"inbound_nodes\": [[[\"in\", 0, 0, {}]]]}, "                               \
	"{\"class_name\": \"Dense\", \"name\": \"hidden\", \"config\": {\"name\": \"hidden\", "    \
	"\"units\": 6, \"activation\": \"relu\"}, "                                                \
	"\"inbound_nodes\": [[[\"flatten\", 0, 0, {}]]]}, "                                        \
	"{\"class_name\": \"Dense\", \"name\": \"middle\", \"config\": {\"name\": \"middle\", "    \
	"\"units\": 5}, \"inbound_nodes\": [[[\"hidden\", 0, 0, {}]]]}, "                          \
	"{\"class_name\": \"Dense\", \"name\": \"out\", \"config\": {\"name\": \"out\", "          \
	"\"units\": 10, \"activation\": \"softmax\"}, "                                            \
	"\"inbound_nodes\": [[[\"middle\", 0, 0, {}]]]}"

static const char run_file[] =
	"{\"model\": {\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": "
	"[" LAYERS "]}}, "
	"\"compile\": {\"loss\": \"sparse_categorical_crossentropy\"}, "
	"\"data\": {\"name\": \"mnist\", \"batch_size\": 4}, "
	"\"fit\": {\"epochs\": 2, \"steps_per_epoch\": 32}, "
	"\"ipu\": {\"auto_select_ipus\": 1, \"tiles_per_ipu\": 8}, "
	"\"outfeed\": {\"layers\": [\"hidden\", \"out\"], \"gradients\": [\"hidden\"]}, "
	"\"flags\": {\"--functional\": {\"model\": {\"class_name\": \"Functional\", \"config\": "
	"{\"layers\": [" FUNCTIONAL "], \"input_layers\": [[\"in\", 0, 0]], "
	"\"output_layers\": [[\"out\", 0, 0]]}}}}}";

static char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16];

/* IDX: the dimensions, highest byte first, then the bytes. */
static void write_idx(const char *name, int items, int size, int values)
{
	char where[SUPPORT_PATH_SIZE + 64];
	const int dims[] = {items, 28, 28};
	FILE *file;

	snprintf(where, sizeof(where), "%s/%s", folder, name);
	file = fopen(where, "w");
	assert_non_null(file);
	fprintf(file, "%c%c%c%c", 0, 0, 8, size == 1 ? 1 : 3);
	for (int d = 0; d < (size == 1 ? 1 : 3); d++)
		fprintf(file, "%c%c%c%c", 0, 0, 0, dims[d]);
	for (int i = 0; i < items * size; i++)
		fputc((i * 37 + i / 784 * 11) % values, file);
	assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
	FILE *file;

	(void)state;
	unsetenv("POPLAR_ENGINE_OPTIONS");
	support_tempdir(folder);
	write_idx("train-images-idx3-ubyte", 64, 784, 251);
	write_idx("train-labels-idx1-ubyte", 64, 1, 10);
	write_idx("t10k-images-idx3-ubyte", 8, 784, 251);
	write_idx("t10k-labels-idx1-ubyte", 8, 1, 10);
	snprintf(path, sizeof(path), "%s/run.json", folder);
	file = fopen(path, "w");
	if (!file || fputs(run_file, file) < 0 || fclose(file) != 0)
		return -1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_tempdir_remove(folder);
	return 0;
}

#define WORDS_MOST 40

/* @line: words, split at blanks. */
static struct ips_trainer *open_run(const char *line)
{
	char copy[1024], message[512], *rest = NULL;
	char *words[WORDS_MOST] = {(char[]){"--data.path"}, folder};
	struct ips_trainer *trainer;
	int count = 2;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(count < WORDS_MOST);
		words[count++] = word;
	}
	if (ips_trainer_open(&trainer, path, count, words, message, sizeof(message)) != 0)
		fail_msg("%s: %s", line, message);
	return trainer;
}

static void run(struct ips_trainer *trainer, const struct ips_callback *callback,
		struct ips_train_result *result)
{
	char message[512];

	assert_int_equal(ips_trainer_add_callback(trainer, callback), 0);
	if (ips_trainer_run(trainer, result, message, sizeof(message)) != 0 &&
	    (!result || !result->interrupted))
		fail_msg("%s", message);
	ips_trainer_close(trainer);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* A way of running: E steps of an epoch on each of R replicas, g accumulated. */
struct way {
	const char *line;
	int stages, replicas, accumulation;
	bool last, after_compute;
	int epochs;
};

static void text_of(char *out, size_t size, const int64_t *shape, int ndim)
{
	size_t length = (size_t)snprintf(out, size, "(");

	for (int i = 0; i < ndim; i++)
		length += (size_t)snprintf(out + length, size - length, "%s%" PRId64, i ? ", " : "",
					   shape[i]);
	snprintf(out + length, size - length, ")");
}

/* What the table of the tutorial's shapes has for a value of @shape. */
static void expect(char *out, size_t size, const struct way *way, bool gradient, const char *shape)
{
	const int steps = 32 / way->replicas;
	const int enqueues = gradient && !way->after_compute ? steps / way->accumulation : steps;
	size_t length = (size_t)snprintf(out, size, "(");

	if (!way->last)
		length += (size_t)snprintf(out + length, size - length, "%d, ", enqueues);
	if (way->replicas > 1)
		length += (size_t)snprintf(out + length, size - length, "%d, ", way->replicas);
	snprintf(out + length, size - length, "%s)", shape);
}

static void check_array(const struct way *way, const struct ips_trainer_array *array,
			const char *key, const char *shape)
{
	char expected[64], text[64];
	size_t count = 1;

	assert_string_equal(array->key, key);
	expect(expected, sizeof(expected), way, strcmp(array->kind, "gradient") == 0, shape);
	text_of(text, sizeof(text), array->shape, array->ndim);
	if (strcmp(text, expected) != 0)
		fail_msg("%s: %s has the shape %s, not %s", way->line, key, text, expected);
	for (int i = 0; i < array->ndim; i++)
		count *= (size_t)array->shape[i];
	assert_int_equal(array->count, count);
	for (size_t i = 0; i < count; i++)
		assert_true(isfinite(array->values[i]));
}

static const struct ips_trainer_array *dequeue(struct ips_trainer *trainer, const char *queue,
					       int expected)
{
	const struct ips_trainer_array *arrays;
	char message[512];
	int count;

	if (ips_trainer_dequeue(trainer, queue, &arrays, &count, message, sizeof(message)) != 0)
		fail_msg("%s: %s", queue, message);
	assert_int_equal(count, expected);
	return arrays;
}

static void check_epoch(void *user, struct ips_trainer *trainer, int64_t epoch,
			const struct ips_logs *logs)
{
	struct way *way = user;
	const struct ips_trainer_array *arrays = dequeue(trainer, "optimizer_outfeed_queue", 2);

	(void)epoch;
	(void)logs;
	check_array(way, &arrays[0], "hidden/bias:0_grad", "6");
	check_array(way, &arrays[1], "hidden/kernel:0_grad", "784, 6");
	if (way->stages == 1) {
		arrays = dequeue(trainer, "multi_activations_outfeed_queue", 2);
		check_array(way, &arrays[0], "hidden_acts", "4, 6");
		check_array(way, &arrays[1], "out_acts", "4, 10");
	} else {
		arrays = dequeue(trainer, "multi_activations_outfeed_queue_stage_0", 1);
		check_array(way, &arrays[0], "hidden_acts", "4, 6");
		arrays = dequeue(trainer, "multi_activations_outfeed_queue_stage_1", 1);
		check_array(way, &arrays[0], "out_acts", "4, 10");
	}
	way->epochs++;
}

static void check_way(struct way *way, int steps_per_execution, bool functional)
{
	const struct ips_callback callback = {
		.size = sizeof(callback), .user = way, .epoch_end = check_epoch};
	struct ips_trainer *trainer;
	char line[1024];

	snprintf(line, sizeof(line),
		 "%s--ipu.auto_select_ipus %d --gradient_accumulation.steps_per_replica %d "
		 "--compile.steps_per_execution %d --outfeed.queue_mode %s "
		 "--outfeed.optimizer_mode %s%s",
		 functional ? "--functional " : "", way->stages * way->replicas, way->accumulation,
		 steps_per_execution, way->last ? "LAST" : "ALL",
		 way->after_compute ? "AFTER_COMPUTE" : "BEFORE_APPLY",
		 way->stages == 2 ? " --pipeline {\"stages\":[0,0,0,1]}" : "");
	way->line = line;
	trainer = open_run(line);
	assert_int_equal(ips_trainer_keep_outfeeds(trainer), 0);
	run(trainer, &callback, NULL);
	assert_int_equal(way->epochs, 2);
}

static void test_shapes_are_the_tutorials_in_every_way_of_running(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 1u << 6; bits++) {
		struct way way = {.stages = 1 + (int)(bits & 1),
				  .replicas = 1 + (int)(bits >> 1 & 1),
				  .last = bits >> 2 & 1,
				  .after_compute = bits >> 3 & 1,
				  .accumulation = bits >> 4 & 1 ? 4 : 1};

		if (way.stages == 2 && way.accumulation == 1)
			continue;
		check_way(&way, bits >> 5 & 1 ? 8 : 16, bits & 1);
	}
}

/* ---- dequeued by asynchronous callbacks ------------------------------------------------------ */

/* What each thread has dequeued in an epoch. */
struct taken {
	bool last;
	int64_t running, resting;
};

static int64_t take_queue(struct ips_trainer *trainer)
{
	const struct ips_trainer_array *array;
	char message[512];
	int count;

	assert_int_equal(ips_trainer_dequeue(trainer, "multi_activations_outfeed_queue", &array,
					     &count, message, sizeof(message)),
			 0);
	return count == 0 ? 0 : array[0].ndim == 3 ? array[0].shape[0] : 1;
}

static void take_running(void *user, struct ips_trainer *trainer, enum ips_mode mode, int64_t batch,
			 const struct ips_logs *logs)
{
	struct taken *taken = user;

	(void)mode;
	(void)batch;
	(void)logs;
	taken->running += take_queue(trainer);
}

static void take_resting(void *user, struct ips_trainer *trainer, int64_t epoch,
			 const struct ips_logs *logs)
{
	struct taken *taken = user;

	(void)epoch;
	(void)logs;
	taken->resting = take_queue(trainer);
	assert_int_equal(taken->running + taken->resting, taken->last ? 1 : 32);
	assert_true(!taken->last || taken->running == 0);
	taken->running = 0;
}

static void test_an_asynchronous_callback_dequeues_what_has_arrived(void **state)
{
	(void)state;
	for (int last = 0; last < 2; last++) {
		struct taken taken = {.last = last};
		const struct ips_callback callback = {.size = sizeof(callback),
						      .user = &taken,
						      .batch_end = take_running,
						      .epoch_end = take_resting};
		struct ips_trainer *trainer =
			open_run(last ? "--fit.asynchronous_callbacks true "
					"--compile.steps_per_execution 16 --outfeed.queue_mode LAST"
				      : "--fit.asynchronous_callbacks true "
					"--compile.steps_per_execution 16");

		assert_int_equal(ips_trainer_keep_outfeeds(trainer), 0);
		run(trainer, &callback, NULL);
	}
}

/* ---- the same values whenever they are taken ------------------------------------------------- */

struct digest {
	uint64_t queue[4]; /* of each, since queues have no order among themselves */
	const char *names[4];
	int values;
	long ns; /* slept in each call */
	int interrupt_at;
};

static uint64_t *digest_of(struct digest *digest, const char *queue)
{
	int i = 0;

	while (i < 3 && digest->names[i] && strcmp(digest->names[i], queue) != 0)
		i++;
	if (!digest->names[i])
		digest->names[i] = strdup(queue);
	return &digest->queue[i];
}

static void add_bytes(uint64_t *hash, const void *bytes, size_t count)
{
	*hash = support_digest(*hash, bytes, count);
}

static void take(void *user, struct ips_trainer *trainer, const struct ips_trainer_outfeed *sent)
{
	const int64_t where[] = {sent->keys.epoch, sent->keys.step, sent->keys.replica,
				 sent->keys.stage, sent->keys.weight_update};
	struct digest *digest = user;
	const struct timespec pause = {0, digest->ns};
	uint64_t *hash = digest_of(digest, sent->queue);

	(void)trainer;
	add_bytes(hash, sent->key, strlen(sent->key));
	add_bytes(hash, where, sizeof(where));
	add_bytes(hash, sent->values, sent->count * sizeof(float));
	digest->values++;
	if (digest->ns > 0)
		nanosleep(&pause, NULL);
	if (digest->values == digest->interrupt_at)
		train_interrupt();
}

/* Whichever queue came first. */
static uint64_t digest_all(const struct digest *digest)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < 4; i++)
		sum += digest->queue[i];
	return sum;
}

static void digest_run(struct digest *digest, const char *line, const char *more,
		       struct ips_train_result *result)
{
	const struct ips_callback callback = {
		.size = sizeof(callback), .user = digest, .outfeed = take};
	char all[1024];

	snprintf(all, sizeof(all), "--compile.steps_per_execution 16 %s %s", line, more);
	run(open_run(all), &callback, result);
	for (size_t i = 0; i < 4; i++)
		free((void *)digest->names[i]);
}

#define PIPELINE "--pipeline {\"stages\":[0,0,0,1]} --gradient_accumulation.steps_per_replica 4 "
#define FOLDED                                                                                     \
	"--pipeline {\"stages\":[0,0,1,2],\"device_mapping\":[0,1,0],\"schedule\":\"Grouped\"} "   \
	"--gradient_accumulation.steps_per_replica 6 --fit.steps_per_epoch 36 "                    \
	"--compile.steps_per_execution 18 "

static void test_values_are_the_same_taken_while_it_runs_and_after(void **state)
{
	static const char *const lines[] = {
		"",
		"--ipu.auto_select_ipus 2",
		"--ipu.auto_select_ipus 2 --gradient_accumulation.steps_per_replica 4",
		PIPELINE "--ipu.auto_select_ipus 2",
		PIPELINE "--ipu.auto_select_ipus 4 --outfeed.optimizer_mode AFTER_COMPUTE",
		PIPELINE "--ipu.auto_select_ipus 4 --outfeed.queue_mode LAST",
		FOLDED "--ipu.auto_select_ipus 2 --outfeed.optimizer_mode AFTER_COMPUTE "
		       "--outfeed.gradients [\"none\"]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct digest after = {0}, running = {0}, deep = {0};

		digest_run(&after, lines[i], "", NULL);
		digest_run(&running, lines[i],
			   "--fit.asynchronous_callbacks true --outfeed.buffer_depth 1", NULL);
		digest_run(&deep, lines[i],
			   "--fit.asynchronous_callbacks true --outfeed.buffer_depth 1000", NULL);
		assert_true(after.values > 0);
		assert_int_equal(running.values, after.values);
		assert_int_equal(deep.values, after.values);
		assert_true(digest_all(&running) == digest_all(&after));
		assert_true(digest_all(&deep) == digest_all(&after));
	}
}

/* ---- predictions ----------------------------------------------------------------------------- */

/* Of 8 test images: 10 probabilities each, whose sum is 1. */
static void test_a_prediction_of_each_item_is_saved(void **state)
{
	char file[SUPPORT_PATH_SIZE + 32], line[sizeof(file) + 128], message[512];
	const struct npz_array *arrays;
	struct ips_trainer *trainer;
	float values[80];
	struct npz *npz;
	int count;

	(void)state;
	snprintf(file, sizeof(file), "%s/predictions.npz", folder);
	snprintf(line, sizeof(line), "--fit.epochs 1 --fit.steps_per_epoch 8 --predict.output %s",
		 file);
	trainer = open_run(line);
	if (ips_trainer_run(trainer, NULL, message, sizeof(message)) != 0)
		fail_msg("%s", message);
	ips_trainer_close(trainer);
	assert_int_equal(npz_open(&npz, file, NULL), ST_OK);
	arrays = npz_arrays(npz, &count);
	assert_int_equal(count, 1);
	assert_string_equal(arrays[0].name, "predictions");
	assert_int_equal(arrays[0].ndim, 2);
	assert_int_equal(arrays[0].dim[0], 8);
	assert_int_equal(arrays[0].dim[1], 10);
	assert_int_equal(npz_read(npz, 0, values, ARRAY_LEN(values), NULL), ST_OK);
	for (size_t item = 0; item < 8; item++) {
		double sum = 0;

		for (size_t i = 0; i < 10; i++)
			sum += values[item * 10 + i];
		assert_true(fabs(sum - 1) < 1e-5);
	}
	npz_close(npz);
}

/* ---- programs older than the library, and what is refused ------------------------------------ */

/* The same seed gives the same bytes, whatever a program's compiler made of its floats. */
static void test_how_the_program_rounds_changes_nothing(void **state)
{
	const int ways[] = {FE_TONEAREST, FE_TOWARDZERO};
	struct ips_train_result results[2];
	char message[512];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ips_trainer *trainer;

		assert_int_equal(fesetround(ways[i]), 0);
		trainer = open_run("--fit.epochs 1 --fit.steps_per_epoch 8");
		if (ips_trainer_run(trainer, &results[i], message, sizeof(message)) != 0)
			fail_msg("%s", message);
		assert_int_equal(fegetround(), ways[i]);
		ips_trainer_close(trainer);
		fesetround(FE_TONEAREST);
	}
	assert_true(results[0].loss == results[1].loss);
}

static void test_an_older_program_has_no_such_member(void **state)
{
	struct digest digest = {0};
	const struct ips_callback callback = {
		.size = offsetof(struct ips_callback, outfeed), .user = &digest, .outfeed = take};

	(void)state;
	run(open_run(""), &callback, NULL);
	assert_int_equal(digest.values, 0);
}

static void dequeue_wrongly(void *user, struct ips_trainer *trainer, int64_t epoch,
			    const struct ips_logs *logs)
{
	const struct ips_trainer_array *arrays;
	char message[512];
	int count;

	(void)epoch;
	(void)logs;
	assert_int_not_equal(ips_trainer_dequeue(trainer, "optimizer", &arrays, &count, message,
						 sizeof(message)),
			     0);
	snprintf(user, 512, "%s", message);
}

static void test_a_dequeue_says_why_there_is_nothing(void **state)
{
	char message[512];
	const struct ips_callback callback = {
		.size = sizeof(callback), .user = message, .epoch_end = dequeue_wrongly};
	struct ips_trainer *trainer;

	(void)state;
	run(open_run(""), &callback, NULL);
	assert_contains(message, "ips_trainer_keep_outfeeds() was not called");
	trainer = open_run("");
	assert_int_equal(ips_trainer_keep_outfeeds(trainer), 0);
	run(trainer, &callback, NULL);
	assert_contains(message, "there is no outfeed queue \"optimizer\" in this run");
}

/* A callback that adds itself again. */
struct adding {
	struct ips_callback callback;
	int calls, refused;
};

static void add_again(void *user, struct ips_trainer *trainer, int64_t epoch,
		      const struct ips_logs *logs)
{
	struct adding *adding = user;

	(void)epoch;
	(void)logs;
	adding->calls++;
	adding->refused += ips_trainer_add_callback(trainer, &adding->callback) != 0;
}

static void test_a_running_trainer_takes_no_more_callbacks(void **state)
{
	struct adding adding = {.callback = {.size = sizeof(adding.callback),
					     .user = &adding,
					     .epoch_end = add_again}};
	struct ips_train_result result = {0};

	(void)state;
	run(open_run("--fit.epochs 2"), &adding.callback, &result);
	assert_int_equal(result.epochs, 2);
	assert_int_equal(adding.calls, 2);
	assert_int_equal(adding.refused, 2);
}

static void test_what_must_not_be_null_is_told(void **state)
{
	struct ips_trainer *trainer = (struct ips_trainer *)&trainer;
	const struct ips_trainer_array *arrays;
	char said[128];
	int count;

	(void)state;
	assert_int_not_equal(ips_trainer_open(NULL, "x", 0, NULL, said, sizeof(said)), 0);
	assert_string_equal(said, "out: is NULL");
	assert_int_not_equal(ips_trainer_open(&trainer, NULL, 0, NULL, said, sizeof(said)), 0);
	assert_string_equal(said, "run_path: is NULL");
	assert_null(trainer);
	assert_int_not_equal(ips_trainer_open(&trainer, "x", 1, NULL, said, sizeof(said)), 0);
	assert_string_equal(said, "words: is NULL");
	assert_int_not_equal(ips_trainer_add_callback(NULL, NULL), 0);
	assert_int_not_equal(ips_trainer_keep_outfeeds(NULL), 0);
	assert_int_not_equal(ips_trainer_run(NULL, NULL, said, sizeof(said)), 0);
	assert_string_equal(said, "trainer: is NULL");
	ips_trainer_stop(NULL);
	assert_null(ips_trainer_weights(NULL, "x", NULL));
	assert_int_not_equal(ips_trainer_dequeue(NULL, "x", &arrays, &count, NULL, 0), 0);
	assert_null(arrays);
	assert_int_not_equal(ips_trainer_dequeue(NULL, "x", NULL, &count, NULL, 0), 0);
	ips_trainer_close(NULL);
}

static void test_values_beyond_all_memory_are_refused(void **state)
{
	struct digest digest = {0};
	const struct ips_callback callback = {
		.size = sizeof(callback), .user = &digest, .outfeed = take};
	struct ips_trainer *trainer =
		open_run("--fit.steps_per_epoch 1000000000 --compile.steps_per_execution epoch");
	char message[512];

	(void)state;
	assert_int_equal(ips_trainer_add_callback(trainer, &callback), 0);
	assert_int_not_equal(ips_trainer_run(trainer, NULL, message, sizeof(message)), 0);
	assert_contains(message, "outfeed: the values that wait for the program need about");
	assert_contains(message, "or a smaller compile.steps_per_execution");
	ips_trainer_close(trainer);
}

/* ---- interrupts ------------------------------------------------------------------------------ */

/* The last test: an interrupt is for good. */
static void test_an_interrupt_ends_workers_that_wait(void **state)
{
	struct digest digest = {.ns = 2000000, .interrupt_at = 20};
	struct ips_train_result result = {0};

	(void)state;
	digest_run(&digest, PIPELINE "--ipu.auto_select_ipus 4",
		   "--fit.asynchronous_callbacks true --outfeed.buffer_depth 1 "
		   "--fit.steps_per_epoch 3200 --compile.steps_per_execution 1600",
		   &result);
	assert_int_equal(result.interrupted, 1);
	assert_true(digest.values < 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes_are_the_tutorials_in_every_way_of_running),
		cmocka_unit_test(test_an_asynchronous_callback_dequeues_what_has_arrived),
		cmocka_unit_test(test_values_are_the_same_taken_while_it_runs_and_after),
		cmocka_unit_test(test_a_prediction_of_each_item_is_saved),
		cmocka_unit_test(test_how_the_program_rounds_changes_nothing),
		cmocka_unit_test(test_an_older_program_has_no_such_member),
		cmocka_unit_test(test_a_dequeue_says_why_there_is_nothing),
		cmocka_unit_test(test_a_running_trainer_takes_no_more_callbacks),
		cmocka_unit_test(test_what_must_not_be_null_is_told),
		cmocka_unit_test(test_values_beyond_all_memory_are_refused),
		cmocka_unit_test(test_an_interrupt_ends_workers_that_wait),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
