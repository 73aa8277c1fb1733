/*
 * Tracks of threads and their keys: one track for a thread and a name, whichever code asks.
 */
#include "support/prof_testing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

static void record_span(struct ips_recording *recording, const char *name)
{
	IPS_SITE(work, "c", "work");

	ips_span_begin(ips_thread_track(recording, name), &work);
	ips_span_end(ips_thread_track(recording, name));
}

static struct ips_keys of_step(int64_t step)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.step = step;
	keys.mode = IPS_TRAIN;
	return keys;
}

static void *record_as_worker(void *recording)
{
	const struct ips_keys keys = of_step(7);

	ips_thread_set_keys(recording, &keys);
	record_span(recording, "worker");
	return NULL;
}

static void *leave_a_span_open(void *recording)
{
	IPS_SITE(open, "c", "open");

	ips_span_begin(ips_thread_track(recording, "worker"), &open);
	return NULL;
}

/* Returns NULL if a thread without a name given has the track of its system's name. */
static void *ask_by_both_names(void *recording)
{
	prctl(PR_SET_NAME, "loader");
	record_span(recording, NULL);
	return ips_thread_track(recording, NULL) == ips_thread_track(recording, "loader")
		       ? NULL
		       : recording;
}

static void run_thread(void *(*body)(void *), void *user)
{
	pthread_t thread;
	void *failed;

	assert_int_equal(pthread_create(&thread, NULL, body, user), 0);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
}

static void test_a_thread_has_one_track_of_a_name(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *a = ips_thread_track(recording, "a"),
			 *b = ips_thread_track(recording, "b");

	assert_non_null(a);
	assert_ptr_not_equal(a, b);
	assert_ptr_equal(ips_thread_track(recording, "a"), a);
	assert_ptr_equal(ips_thread_track(recording, "b"), b);
	assert_null(ips_thread_track(NULL, "a"));
	run_thread(ask_by_both_names, recording);
	prof_stop(recording);
	assert_answer(place->path, "SELECT track, tid IS NOT NULL FROM tracks ORDER BY track",
		      "a|1\nb|1\nloader|1\n");
}

static void test_a_thread_that_ended_leaves_its_track_to_the_next(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);

	ips_thread_track(recording, "worker"); /* this thread's own stays its own */
	run_thread(leave_a_span_open, recording);
	for (int i = 0; i < 5; i++)
		run_thread(record_as_worker, recording);
	record_span(recording, "worker");
	prof_stop(recording);
	assert_answer(place->path,
		      "SELECT track, name, count(*), count(step), min(dur_ns) >= 0, max(depth) "
		      "FROM spans GROUP BY 1, 2 ORDER BY 1, 2",
		      "worker|work|1|0|1|0\nworker (2)|open|1|0|1|0\nworker (2)|work|5|5|1|0\n");
}

static void test_keys_are_set_once_for_all_tracks_of_a_thread(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *own = ips_track_open(recording, "own", NULL);
	struct ips_keys keys = of_step(3), got;
	IPS_SITE(work, "c", "work");

	ips_thread_keys(recording, &got);
	assert_true(got.step == IPS_NULL && got.mode == IPS_MODE_NULL);
	record_span(recording, "early");
	ips_thread_set_keys(recording, &keys);
	ips_thread_keys(recording, &got);
	assert_int_equal(got.step, 3);
	record_span(recording, "early");
	record_span(recording, "late"); /* opened after the keys were set */
	ips_span_begin(own, &work);     /* has its own keys: none */
	ips_span_end(own);
	run_thread(record_as_worker, recording);
	ips_thread_set_keys(recording, NULL);
	record_span(recording, "late");
	ips_thread_set_keys(NULL, &keys);
	ips_thread_keys(NULL, &got);
	assert_true(got.step == IPS_NULL);
	prof_stop(recording);
	assert_answer(place->path, "SELECT track, step, mode FROM spans ORDER BY track, span_id",
		      "early|-|-\nearly|3|train\nlate|3|train\nlate|-|-\nown|-|-\n"
		      "worker|7|train\n");
}

static void test_the_next_recording_knows_nothing_of_the_last(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	const struct ips_keys keys = of_step(3);

	ips_thread_set_keys(recording, &keys);
	record_span(recording, "worker");
	prof_stop(recording);
	assert_int_equal(remove(place->path), 0);
	recording = prof_start(place, NULL);
	record_span(recording, "worker");
	prof_stop(recording);
	assert_answer(place->path, "SELECT track, step FROM spans", "worker|-\n");
}

/* An importer's recording drains rings in turns, for which setting keys must not wait. */
static void test_keys_of_a_full_ring_are_set_in_a_recording_alone(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording_params params;
	struct ips_recording *recording;

	ips_recording_params_defaults(&params);
	params.alone = 1;
	params.ring_slots = 16;
	recording = prof_start(place, &params);
	for (int i = 0; i < 200; i++) {
		const struct ips_keys keys = of_step(i);

		ips_thread_set_keys(recording, &keys);
		record_span(recording, "a");
	}
	prof_stop(recording);
	assert_true(prof_ask(place->path, "SELECT count(*) FROM spans WHERE step = span_id - 1") >
		    0);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, prof_place_setup, prof_place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_a_thread_has_one_track_of_a_name),
		CASE(test_a_thread_that_ended_leaves_its_track_to_the_next),
		CASE(test_keys_are_set_once_for_all_tracks_of_a_thread),
		CASE(test_the_next_recording_knows_nothing_of_the_last),
		CASE(test_keys_of_a_full_ring_are_set_in_a_recording_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
