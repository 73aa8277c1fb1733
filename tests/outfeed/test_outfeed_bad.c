/*
 * The first number that is not finite: where it is, what led to it, and that the answer is the same
 * for any schedule.
 */
#include "support/recorder.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"

static struct recorder r[1]; /* each test opens it */

static int teardown(void **state)
{
	(void)state;
	recorder_close(r);
	return 0;
}

static const int64_t three[] = {3};
static const float fine[] = {1, -2, 3};

static void open_with(const char *capture, int replicas)
{
	const struct recorder_params params = {.capture = capture, .replicas = replicas};

	recorder_open(r, &params);
}

static struct outfeed_tensor *tensor_of(const char *key, enum outfeed_kind kind)
{
	return recorder_tensor(r, key, kind, three, 1);
}

static void record(struct outfeed_tensor *tensor, int64_t replica, uint64_t order,
		   const float *values)
{
	struct outfeed_moment moment = {
		.keys = r->keys, .time_ns = 1000 + (int64_t)order, .order = order};

	moment.keys.replica = replica;
	moment.keys.step = (int64_t)order;
	assert_int_equal(outfeed_record(tensor, &moment, values, 3, NULL, NULL), ST_OK);
}

#define FIRST "SELECT key, step, replica, time_ns, element, value FROM first_nonfinite"

static void test_the_least_order_wins_not_the_first_seen(void **state)
{
	static const float late[] = {1, INFINITY, NAN}, early[] = {0, 1, -INFINITY};
	struct outfeed_tensor *a, *b;

	(void)state;
	open_with("[{\"tier\": \"health\"}]", 1);
	a = tensor_of("a", OUTFEED_ACTIVATION);
	b = tensor_of("b", OUTFEED_GRADIENT);
	record(a, 0, 10, fine);
	record(b, 0, 30, late);
	record(a, 0, 20, early);
	record(b, 0, 31, late);
	/* Something of order 19 may still come. */
	assert_int_equal(outfeed_drain(r->outfeed, 20, NULL), ST_OK);
	ips_recording_flush(r->recording);
	assert_answer(r->place.path, FIRST, "");
	assert_int_equal(outfeed_drain(r->outfeed, 21, NULL), ST_OK);
	/* Once in a recording. */
	record(a, 0, 5, late);
	record(a, 0, 0, late);
	assert_int_equal(outfeed_drain(r->outfeed, 100, NULL), ST_OK);
	assert_string_equal(r->lines, "[HEALTH] first_nonfinite key=a layer=layer epoch=1 step=20 "
				      "replica=0 element=2 value=-inf\n");
	recorder_stop(r);
	assert_answer(r->place.path, FIRST, "a|20|0|1020|2|-inf\n");
	assert_answer(r->place.path, "SELECT track, category, name, step FROM instants",
		      "health|health|first_nonfinite|20\n");
}

static void test_the_end_writes_it(void **state)
{
	static const float nan[] = {1, 2, NAN};
	struct outfeed_tensor *a;

	(void)state;
	open_with("[{\"tier\": \"counts\"}]", 1);
	a = tensor_of("a", OUTFEED_ACTIVATION);
	record(a, 0, 7, nan);
	recorder_stop(r);
	assert_answer(r->place.path, FIRST, "a|7|0|1007|2|nan\n");
}

static void test_the_trail_has_the_counts_where_counts_are_kept(void **state)
{
	static const float nan[] = {1, 2, NAN}, sound[] = {0, 1, -2};
	struct outfeed_tensor *a, *b;

	(void)state;
	open_with("[{\"tier\": \"counts\"}]", 1);
	a = tensor_of("a", OUTFEED_ACTIVATION);
	b = tensor_of("b", OUTFEED_ACTIVATION);
	record(b, 0, 6, sound);
	record(a, 0, 7, nan);
	recorder_stop(r);
	assert_answer(r->place.path,
		      "SELECT role, n, n_zero, n_neg, n_pos FROM nonfinite_trail WHERE key = 'b'",
		      "before|3|1|1|1\n");
}

static void test_replicas_of_one_order_are_taken_in_turn(void **state)
{
	static const float bad[][3] = {{NAN, 0, 0}, {0, NAN, 0}, {0, 0, NAN}};
	struct outfeed_tensor *a, *b;

	(void)state;
	open_with("[{\"tier\": \"stats\"}]", 3);
	a = tensor_of("a", OUTFEED_ACTIVATION);
	b = tensor_of("b", OUTFEED_ACTIVATION);
	record(b, 1, 7, bad[0]);
	record(b, 2, 7, bad[1]);
	record(a, 1, 7, bad[2]);
	recorder_stop(r);
	assert_answer(r->place.path, FIRST, "a|7|1|1007|2|nan\n");
}

static void test_without_a_bad_number_nothing_is_written(void **state)
{
	struct outfeed_tensor *a;

	(void)state;
	open_with("[{\"tier\": \"health\"}]", 1);
	a = tensor_of("a", OUTFEED_ACTIVATION);
	for (uint64_t order = 0; order < 100; order++)
		record(a, 0, order, fine);
	recorder_stop(r);
	assert_answer(r->place.path,
		      "SELECT (SELECT count(*) FROM first_nonfinite), (SELECT "
		      "count(*) FROM nonfinite_trail)",
		      "0|0\n");
}

static void test_the_trail_is_what_was_looked_at_before(void **state)
{
	static const float bad[] = {1, NAN, INFINITY}, weights[] = {5, 6, 7, 8};
	static const int64_t four[] = {2, 2};
	const struct outfeed_tensor_params unwatched = {.queue = "watch",
							.key = "kernel",
							.kind = OUTFEED_WEIGHT,
							.layer = "layer",
							.shape = four,
							.ndim = 2};
	const struct outfeed_tensor_params input = {
		.queue = "watch", .key = "b", .shape = three, .ndim = 1};
	const struct outfeed_source sources[] = {{&input, fine, 3}, {&unwatched, weights, 4}};
	struct outfeed_moment moment = {
		.keys = r->keys, .order = 50, .sources = sources, .source_count = 2};
	struct outfeed_tensor *a, *b, *c, *d;

	(void)state;
	open_with("[{\"tensors\": \"a\", \"tier\": \"stats\"}, {\"tier\": \"health\"}]", 2);
	moment.keys = r->keys;
	a = tensor_of("a", OUTFEED_ACTIVATION);
	b = tensor_of("b", OUTFEED_ACTIVATION);
	c = tensor_of("c", OUTFEED_ACTIVATION);
	d = tensor_of("d", OUTFEED_ACTIVATION);
	record(a, 0, 10, fine);
	record(a, 0, 40, fine);
	record(a, 0, 60, fine); /* after it: no part of it */
	record(b, 0, 41, fine);
	record(c, 0, 42, fine);
	record(d, 1, 43, fine); /* another replica's */
	record(d, 0, 20, fine);
	moment.keys.replica = 0;
	moment.keys.step = 50;
	assert_int_equal(outfeed_record(c, &moment, bad, 3, NULL, NULL), ST_OK);
	record(d, 0, 44, fine);
	recorder_stop(r);
	assert_answer(r->place.path, FIRST, "c|50|0|0|1|nan\n");
	/* b is there as an input, with all of its statistics, and not once more. */
	assert_answer(r->place.path,
		      "SELECT position, role, key, kind, step, n, n_nan, n_pos, mean, abs_max FROM "
		      "nonfinite_trail ORDER BY position DESC",
		      "0|bad|c|activation|50|3|1|2|1.0|1.0\n"
		      "-1|input|b|activation|50|3|0|2|0.666666666666667|3.0\n"
		      "-2|weight|kernel|weight|50|4|0|4|6.5|8.0\n"
		      "-3|before|d|activation|44|3|-|-|-|3.0\n"
		      "-4|before|c|activation|42|3|-|-|-|3.0\n"
		      "-5|before|a|activation|40|3|0|2|0.666666666666667|3.0\n");
	assert_answer(r->place.path,
		      "SELECT queue, key, kind, shape FROM tensors WHERE key = 'kernel'",
		      "watch|kernel|weight|(2, 2)\n");
}

static void test_the_trail_ends_after_so_many_tensors(void **state)
{
	static const float bad[] = {NAN, 1, 1};
	struct outfeed_tensor *tensors[30];
	char key[16];

	(void)state;
	open_with("[{\"tier\": \"health\"}]", 1);
	for (int i = 0; i < 30; i++) {
		snprintf(key, sizeof(key), "t%d", i);
		tensors[i] = tensor_of(key, OUTFEED_ACTIVATION);
	}
	/* In an order that is not that of the tensors. */
	for (int i = 0; i < 30; i++)
		record(tensors[i * 7 % 30], 0, (uint64_t)(100 + i * 7 % 30), fine);
	record(tensors[0], 0, 200, bad);
	recorder_stop(r);
	assert_answer(r->place.path,
		      "SELECT count(*), min(step), max(step), min(position), min(position + step - "
		      "100) FROM nonfinite_trail WHERE role = 'before'",
		      "21|109|129|-21|-12\n");
}

static void test_empty_and_odd_values_are_searched_right(void **state)
{
	float *values = calloc(100000, sizeof(*values));
	const int64_t shape[] = {100000};
	struct outfeed_tensor *t;

	(void)state;
	assert_non_null(values);
	values[99998] = -NAN;
	open_with("[{\"tier\": \"health\"}]", 1);
	t = recorder_tensor(r, "t", OUTFEED_ACTIVATION, shape, 1);
	recorder_record(r, t, 0, NULL, 0);
	recorder_record(r, t, 1, values, 99998);
	recorder_record(r, t, 2, values, 100000);
	recorder_stop(r);
	assert_answer(r->place.path, "SELECT step, element, value FROM first_nonfinite",
		      "2|99998|nan\n");
	free(values);
}

/* ---- any schedule ---------------------------------------------------------------------------- */

enum {
	STAGES = 4, /* threads, one after the other in a pipeline */
	MICROS = 12,
	TENSORS = 3, /* of a stage */
	BAD_MICRO = 5,
	BAD_STAGE = 1
};

struct pipe {
	struct outfeed_tensor *tensors[STAGES][TENSORS];
	atomic_int done[STAGES]; /* micro-batches */
	bool loose;              /* a stage does not wait for the one before it */
};

struct worker {
	pthread_t thread;
	struct pipe *pipe;
	int stage;
	uint32_t seed;
};

/* As the trainer has it: by micro-batch, then as the data flows. */
static uint64_t order_of(int micro, int stage, int tensor)
{
	return (uint64_t)((micro * STAGES + stage) * TENSORS + tensor) + 1;
}

/* The bad number spreads downstream in its micro-batch, and through weights to all later ones. */
static bool is_bad(int micro, int stage, int tensor)
{
	return micro > BAD_MICRO ||
	       (micro == BAD_MICRO && (stage > BAD_STAGE || (stage == BAD_STAGE && tensor >= 1)));
}

static void *work(void *user)
{
	static const float bad[] = {1, 2, NAN};
	struct worker *worker = user;
	struct pipe *pipe = worker->pipe;
	const int stage = worker->stage;
	struct rng rng;

	rng_init(&rng, worker->seed, (uint32_t)stage, 0, 0);
	for (int micro = 0; micro < MICROS; micro++) {
		while (stage > 0 && !pipe->loose && atomic_load(&pipe->done[stage - 1]) <= micro)
			sched_yield();
		for (int t = 0; t < TENSORS; t++) {
			struct outfeed_moment moment = {.keys = IPS_KEYS_NULL,
							.order = order_of(micro, stage, t)};

			moment.keys.step = micro;
			moment.keys.stage = stage;
			moment.keys.replica = 0;
			for (uint32_t spin = rng_below(&rng, 4); spin > 0; spin--)
				sched_yield();
			outfeed_record(pipe->tensors[stage][t], &moment,
				       is_bad(micro, stage, t) ? bad : fine, 3, NULL, NULL);
		}
		atomic_store(&pipe->done[stage], micro + 1);
	}
	return NULL;
}

/* What the recording says; the caller's. */
static char *run_pipe(uint32_t seed, bool loose)
{
	struct worker workers[STAGES];
	struct pipe pipe = {.loose = loose};
	char key[32], *first, *trail, *both;

	open_with("[{\"tensors\": \"*0\", \"tier\": \"stats\"}, {\"tier\": \"health\"}]", 1);
	for (int s = 0; s < STAGES; s++) {
		for (int t = 0; t < TENSORS; t++) {
			snprintf(key, sizeof(key), "s%d_%d", s, t);
			pipe.tensors[s][t] = tensor_of(key, OUTFEED_ACTIVATION);
		}
	}
	for (int s = 0; s < STAGES; s++) {
		workers[s] = (struct worker){.pipe = &pipe, .stage = s, .seed = seed};
		assert_int_equal(pthread_create(&workers[s].thread, NULL, work, &workers[s]), 0);
	}
	/* Meanwhile: what all stages have done is settled. */
	for (int micro = 0; micro < MICROS;) {
		int least = MICROS;

		for (int s = 0; s < STAGES; s++) {
			const int done = atomic_load(&pipe.done[s]);

			least = done < least ? done : least;
		}
		micro = least;
		assert_int_equal(outfeed_drain(r->outfeed, order_of(micro, 0, 0), NULL), ST_OK);
	}
	for (int s = 0; s < STAGES; s++)
		pthread_join(workers[s].thread, NULL);
	recorder_stop(r);
	first = prof_ask_all(r->place.path, FIRST);
	trail = prof_ask_all(r->place.path, "SELECT position, role, key, step, n, n_nan, mean, "
					    "abs_max FROM nonfinite_trail ORDER BY position DESC");
	both = malloc(strlen(first) + strlen(trail) + 1);
	assert_non_null(both);
	strcpy(both, first);
	strcat(both, trail);
	free(first);
	free(trail);
	recorder_close(r);
	return both;
}

static void test_the_answer_is_the_same_for_any_schedule(void **state)
{
	char *wanted = run_pipe(0, false);

	(void)state;
	assert_contains(wanted, "s1_1|5|0|0|2|nan\n0|bad|s1_1|5|3|1|1.5|2.0\n"
				"-1|before|s1_0|5|3|0|0.666666666666667|3.0\n"
				"-2|before|s0_2|5|3|-|-|3.0\n");
	for (uint32_t seed = 1; seed <= support_rounds(24); seed++) {
		char *got = run_pipe(seed, seed % 2 == 1);

		assert_string_equal(got, wanted);
		free(got);
	}
	free(wanted);
	open_with(NULL, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_the_least_order_wins_not_the_first_seen),
		TEST(test_the_end_writes_it),
		TEST(test_the_trail_has_the_counts_where_counts_are_kept),
		TEST(test_replicas_of_one_order_are_taken_in_turn),
		TEST(test_without_a_bad_number_nothing_is_written),
		TEST(test_the_trail_is_what_was_looked_at_before),
		TEST(test_the_trail_ends_after_so_many_tensors),
		TEST(test_empty_and_odd_values_are_searched_right),
		TEST(test_the_answer_is_the_same_for_any_schedule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
