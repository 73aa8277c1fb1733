/*
 * The last N values: kept in memory until a rule is broken, somebody asks, or the run ends; written
 * in order, once.
 */
#include "support/recorder.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"

static struct recorder r[1]; /* each test opens it */

static int teardown(void **state)
{
	(void)state;
	recorder_close(r);
	return 0;
}

static const int64_t two[] = {2};

static struct outfeed_tensor *tensor_of(const char *key)
{
	return recorder_tensor(r, key, OUTFEED_GRADIENT, two, 1);
}

/* {@step, @value} at @step. */
static void push(struct outfeed_tensor *tensor, int step, float value)
{
	const float values[] = {(float)step, value};

	recorder_record(r, tensor, step, values, 2);
}

/* Steps of the captures of @key, in the order in which they came. */
static void assert_captured(const char *key, const char *steps)
{
	char sql[256], *all;

	assert_int_equal(!r->recording ? 0 : ips_recording_flush(r->recording), 0);
	snprintf(sql, sizeof(sql),
		 "SELECT group_concat(step, ' ') FROM (SELECT step FROM captures WHERE key = '%s')",
		 key);
	all = prof_ask_all(r->place.path, sql);
	all[strcspn(all, "\n")] = '\0';
	assert_string_equal(all, steps);
	free(all);
}

static void open_rings(const struct outfeed_health_rules *rules, int replicas)
{
	const struct recorder_params params = {
		.capture = "[{\"tier\": \"last 3\"}]", .rules = rules, .replicas = replicas};

	recorder_open(r, &params);
}

static void test_the_end_writes_what_is_held(void **state)
{
	struct outfeed_tensor *a, *b, *c;

	(void)state;
	open_rings(NULL, 1);
	a = tensor_of("a");
	b = tensor_of("b");
	c = tensor_of("c");
	for (int step = 0; step < 8; step++)
		push(a, step, 1);
	push(b, 5, 1);
	assert_non_null(c);
	assert_captured("a", "-");
	recorder_stop(r);
	assert_captured("a", "5 6 7");
	assert_captured("b", "5");
	assert_captured("c", "-");
	/* Keys and values are those of their enqueues. */
	assert_answer(
		r->place.path,
		"SELECT step, epoch, replica, hex(data) FROM captures WHERE key = 'a' AND step "
		"= 6",
		"6|1|0|0000C0400000803F\n");
}

static size_t aligned_bytes;

static void *count_aligned(size_t alignment, size_t size)
{
	aligned_bytes += size;
	return aligned_alloc(alignment, size);
}

/* Nobody could ever write them. */
static void test_without_a_recording_no_values_are_held(void **state)
{
	static const struct mem_functions counting = {realloc, count_aligned, free};
	const struct recorder_params params = {.capture = "[{\"tier\": \"last 3\"}]",
					       .unrecorded = true};
	const int64_t shape[] = {1 << 18};

	(void)state;
	recorder_open(r, &params);
	aligned_bytes = 0;
	mem_set_functions(&counting);
	recorder_tensor(r, "a", OUTFEED_GRADIENT, shape, 1);
	mem_set_functions(NULL);
	assert_true(aligned_bytes > 0);
	assert_true(aligned_bytes < (size_t)shape[0] * sizeof(float));
}

static void test_a_broken_rule_writes_its_own_tensor_at_once(void **state)
{
	struct outfeed_health_rules rules;
	struct outfeed_tensor *a, *b, *c;

	(void)state;
	recorder_rule(&rules, OUTFEED_HEALTH_nonfinite, 0, 1);
	open_rings(&rules, 1);
	a = tensor_of("a");
	b = tensor_of("b");
	c = tensor_of("c");
	for (int step = 0; step < 5; step++) {
		push(a, step, step == 4 ? NAN : 1);
		push(b, step, 1);
		push(c, step, 1);
	}
	assert_int_equal(r->hits, 1);
	/* b and c were written before their next value came: with what they held at the hit. */
	assert_captured("a", "2 3 4");
	assert_captured("b", "1 2 3");
	assert_captured("c", "1 2 3");
	push(a, 5, 1);
	recorder_stop(r);
	/* Nothing twice. */
	assert_captured("a", "2 3 4 5");
	assert_captured("b", "1 2 3 4");
}

static void test_settling_writes_rings_that_nobody_touched(void **state)
{
	struct outfeed_tensor *a, *b;

	(void)state;
	open_rings(NULL, 1);
	a = tensor_of("a");
	b = tensor_of("b");
	push(a, 0, 1);
	push(b, 0, 1);
	assert_int_equal(outfeed_drain(r->outfeed, 0, NULL), ST_OK);
	assert_captured("a", "-");
	outfeed_flush(r->outfeed);
	push(a, 1, 1);
	assert_captured("a", "0");
	assert_captured("b", "-");
	assert_int_equal(outfeed_drain(r->outfeed, 0, NULL), ST_OK);
	assert_int_equal(outfeed_drain(r->outfeed, 0, NULL), ST_OK);
	assert_captured("a", "0");
	assert_captured("b", "0");
	recorder_stop(r);
	assert_captured("a", "0 1");
	assert_captured("b", "0");
}

static void on_signal(int ignored)
{
	(void)ignored;
	outfeed_flush(r->outfeed);
}

static void test_a_signal_may_ask_for_the_rings(void **state)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct outfeed_tensor *a;

	(void)state;
	open_rings(NULL, 1);
	a = tensor_of("a");
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	for (int step = 0; step < 7; step++) {
		if (step == 4)
			raise(SIGUSR1);
		push(a, step, 1);
	}
	assert_captured("a", "1 2 3");
	signal(SIGUSR1, SIG_DFL);
	recorder_stop(r);
	assert_captured("a", "1 2 3 4 5 6");
}

static void test_each_replica_has_a_ring(void **state)
{
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL};
	struct outfeed_tensor *a;

	(void)state;
	open_rings(NULL, 3);
	a = tensor_of("a");
	for (int step = 0; step < 5; step++) {
		for (int replica = 0; replica < 3; replica++) {
			const float values[] = {(float)step, (float)replica};

			moment.keys.step = step;
			moment.keys.replica = replica;
			if (replica < 2)
				outfeed_record(a, &moment, values, 2, NULL, NULL);
		}
	}
	recorder_stop(r);
	assert_answer(r->place.path,
		      "SELECT replica, group_concat(step, ' ') FROM (SELECT * FROM captures) GROUP "
		      "BY replica",
		      "0|2 3 4\n1|2 3 4\n");
}

static void test_shorter_values_keep_their_length(void **state)
{
	static const float one[] = {7};
	struct outfeed_tensor *a;

	(void)state;
	open_rings(NULL, 1);
	a = tensor_of("a");
	push(a, 0, 1);
	recorder_record(r, a, 1, one, 1);
	recorder_record(r, a, 2, one, 0);
	recorder_stop(r);
	assert_answer(r->place.path, "SELECT step, shape, bytes FROM captures",
		      "0|(2,)|8\n1|(1,)|4\n2|(0,)|0\n");
}

/* ---- threads --------------------------------------------------------------------------------- */

enum {
	WORKERS = 4,
	STEPS = 400
};

struct worker {
	pthread_t thread;
	struct outfeed_tensor *tensor;
	int replica;
};

static void *work(void *user)
{
	struct worker *worker = user;
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL};

	moment.keys.replica = worker->replica;
	for (int step = 0; step < STEPS; step++) {
		const float values[] = {(float)step, 1};

		moment.keys.step = step;
		outfeed_record(worker->tensor, &moment, values, 2, NULL, NULL);
	}
	return NULL;
}

static void test_rings_are_flushed_and_settled_while_others_record(void **state)
{
	struct worker workers[WORKERS];

	(void)state;
	open_rings(NULL, 2);
	for (int i = 0; i < WORKERS; i += 2) {
		workers[i].tensor = workers[i + 1].tensor = tensor_of(i == 0 ? "a" : "b");
		workers[i].replica = 0;
		workers[i + 1].replica = 1;
	}
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	for (int i = 0; i < 50; i++) {
		outfeed_flush(r->outfeed);
		assert_int_equal(outfeed_drain(r->outfeed, 0, NULL), ST_OK);
		usleep(100);
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	recorder_stop(r);
	/* Nothing twice, in order, each with its own value, and the last three are there. */
	assert_answer(
		r->place.path,
		"SELECT count(*) FROM (SELECT key, replica, step, lag(step) OVER (PARTITION BY "
		"key, replica) AS before FROM captures) WHERE before >= step",
		"0\n");
	assert_answer(r->place.path,
		      "SELECT key, replica, count(*) FROM captures WHERE step >= 397 GROUP BY key, "
		      "replica",
		      "a|0|3\na|1|3\nb|0|3\nb|1|3\n");
}

/* Of values that need memory of their own on their way to the file. */
static void test_a_ring_that_cannot_be_written_says_why(void **state)
{
	static const int64_t shape[] = {400000};
	struct outfeed_moment moment = {.keys = IPS_KEYS_NULL};
	struct outfeed_health_rules rules;
	float *values = calloc((size_t)shape[0], sizeof(*values));
	int failures = 0;
	bool failed = true;

	(void)state;
	assert_non_null(values);
	values[7] = NAN;
	recorder_rule(&rules, OUTFEED_HEALTH_nonfinite, 0, 1);
	for (long n = 0; failed; n++) {
		struct err err = {ST_OK, ""};
		struct outfeed_tensor *t;
		enum status status;

		open_rings(&rules, 1);
		t = recorder_tensor(r, "t", OUTFEED_GRADIENT, shape, 1);
		support_fail_alloc_here(n);
		status = outfeed_record(t, &moment, values, (size_t)shape[0], NULL, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status != ST_OK, failed);
		assert_int_equal(err.text[0] != '\0', failed);
		failures += failed;
		outfeed_close(r->outfeed, NULL);
		r->outfeed = NULL;
		ips_recording_close(r->recording, NULL, 0);
		r->recording = NULL;
		if (failed)
			recorder_close(r);
	}
	assert_true(failures > 0);
	free(values);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_the_end_writes_what_is_held),
		TEST(test_without_a_recording_no_values_are_held),
		TEST(test_a_broken_rule_writes_its_own_tensor_at_once),
		TEST(test_settling_writes_rings_that_nobody_touched),
		TEST(test_a_signal_may_ask_for_the_rings),
		TEST(test_each_replica_has_a_ring),
		TEST(test_shorter_values_keep_their_length),
		TEST(test_a_ring_that_cannot_be_written_says_why),
		TEST(test_rings_are_flushed_and_settled_while_others_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
