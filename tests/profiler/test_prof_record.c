/*
 * Recording: spans and what belongs to them, threads, queues, forks, NULLs.
 */
#include "support/prof_testing.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/mem.h"
#include "profiler/prof_internal.h"

static void test_spans_nest(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	IPS_SITE(a, "c", "a");
	IPS_SITE(b, "c", "b");
	struct ips_site *d = ips_site_intern("k", "d", "Dense/MatMul");

	assert_ptr_equal(ips_site_intern("k", "d", "Dense/MatMul"), d);
	assert_ptr_not_equal(ips_site_intern("k", "d", NULL), d);
	ips_span_begin(track, &a);
	{
		IPS_SCOPE(track, &b);
		IPS_SCOPE(track, d);
	}
	ips_span_begin(track, &b);
	ips_span_end(track);
	ips_span_end(track);
	ips_span_end(track); /* one too many does nothing */
	ips_span_begin(track, d);
	ips_span_end(track);
	prof_stop(recording);
	assert_answer(place->path,
		      "SELECT span_id, parent_id, depth, category, name, operation, track, clock, "
		      "dur_ns >= 0 "
		      "FROM spans",
		      "1|-|0|c|a|-|worker|host|1\n2|1|1|c|b|-|worker|host|1\n"
		      "3|2|2|k|d|Dense/MatMul|worker|host|1\n4|1|1|c|b|-|worker|host|1\n"
		      "5|-|0|k|d|Dense/MatMul|worker|host|1\n");
	assert_int_equal(prof_ask(place->path,
				  "SELECT count(*) FROM spans s JOIN spans p ON p.span_id = "
				  "s.parent_id WHERE s.start_ns < p.start_ns OR s.start_ns + "
				  "s.dur_ns > p.start_ns + p.dur_ns"),
			 0);
}

static void test_open_spans_are_seen_and_closed_later(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	IPS_SITE(a, "c", "a");
	IPS_SITE(b, "c", "b");

	ips_span_begin(track, &a);
	ips_span_begin(track, &b);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_answer(place->path, "SELECT span_id, dur_ns FROM spans", "1|-\n2|-\n");
	assert_answer(place->path, "SELECT value FROM meta WHERE key = 'state'", "recording\n");
	ips_span_end(track);
	ips_span_begin(track, &b);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_answer(place->path, "SELECT span_id, parent_id, dur_ns IS NULL FROM spans",
		      "1|-|1\n2|1|0\n3|1|1\n");
	ips_span_end(track);
	prof_stop(recording);
	/* never ended: open for ever */
	assert_answer(place->path, "SELECT span_id, dur_ns IS NULL FROM spans", "1|1\n2|0\n3|0\n");
	assert_int_equal(
		prof_ask(place->path, "SELECT sum(count) FROM span_levels WHERE level = 12"), 2);
}

static void test_events_belong_to_the_innermost_open_span(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *one = ips_track_open(recording, "one", NULL);
	struct ips_track *two = ips_track_open(recording, "two", NULL);
	char text[100], long_text[65];
	IPS_SITE(a, "c", "a");
	IPS_SITE(arrow, "flow", "arrow");

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	memcpy(long_text, text, 64);
	long_text[64] = 0;
	ips_span_arg_int(one, "lost", 1); /* no span: dropped */
	ips_span_arg_long_text(one, "lost", text);
	ips_span_begin(one, &a);
	ips_span_arg_int(one, "int", -5);
	ips_span_arg_int(one, "null", IPS_NULL);
	ips_span_arg_real(one, "real", 0.25);
	ips_span_arg_text(one, "text", text);
	ips_span_arg_text(one, "no text", NULL);
	ips_span_arg_int(one, "twice", 1);
	ips_span_arg_int(one, "twice", 2);
	ips_flow_out(one, &arrow, 42);
	ips_flow_out(one, &arrow, 43); /* never taken */
	ips_recording_flush(recording);
	ips_span_begin(two, &a);
	ips_flow_in(two, &arrow, 42);
	ips_span_end(two);
	ips_span_end(one);
	ips_flow_in(two, &arrow, 44); /* no span */
	prof_stop(recording);
	snprintf(text, sizeof(text), "1|text|%s\n", long_text);
	assert_answer(place->path, "SELECT * FROM span_args WHERE name = 'text'", text);
	assert_answer(place->path, "SELECT * FROM span_args WHERE name <> 'text' ORDER BY name",
		      "1|int|-5\n1|no text|-\n1|null|-\n1|real|0.25\n1|twice|2\n");
	assert_answer(place->path, "SELECT * FROM flows", "1|2|arrow\n");
	assert_int_equal(prof_ask(place->path, "SELECT sum(dropped) FROM overhead"), 3);
}

/* Also where the first ones are in the file already. */
static void test_of_arguments_given_twice_the_later_counts(void **state)
{
	static const char *const names[] = {"a", "b", "c"};
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	IPS_SITE(a, "c", "a");

	ips_span_begin(track, &a);
	for (int i = 0; i < 3; i++)
		ips_span_arg_int(track, names[i], i);
	ips_recording_flush(recording);
	for (int i = 1; i < 3; i++)
		ips_span_arg_int(track, names[i], 10 * i);
	ips_span_end(track);
	prof_stop(recording);
	assert_answer(place->path, "SELECT name, value FROM span_args ORDER BY name",
		      "a|0\nb|10\nc|20\n");
}

/* However many wait, nothing is lost of a flow whose other side never comes; where it comes after
 * its first was forgotten, an arrow is. */
static void test_a_flow_without_another_side_is_not_lost(void **state)
{
	struct prof_place *place = *state;

	for (int late = 0; late < 2; late++) {
		struct ips_recording *recording = prof_start(place, NULL);
		struct ips_track *track = ips_track_open(recording, "track", NULL);
		IPS_SITE(a, "c", "a");
		IPS_SITE(arrow, "flow", "arrow");

		ips_span_at(track, &a, 0, 1000);
		for (uint64_t id = 1; id <= 200000; id++)
			ips_flow_out_at(track, &arrow, id, 10);
		for (int i = 0; i < late; i++)
			ips_flow_in_at(track, &arrow, 1, 20);
		prof_stop(recording);
		assert_int_equal(prof_ask(place->path, "SELECT sum(dropped) FROM overhead"), late);
		assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM flows"), 0);
		remove(place->path);
	}
}

/* Of a track that is known: a flush writes whatever has come since the last one. */
static void test_each_kind_of_event_reaches_the_file_alone(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	IPS_SITE(a, "c", "a");

	ips_span_begin(track, &a);
	assert_int_equal(ips_recording_flush(recording), 0);
	ips_span_arg_int(track, "x", 1);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_answer(place->path, "SELECT count(*) FROM span_args", "1\n");
	ips_instant(track, &a);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_answer(place->path, "SELECT count(*) FROM instants", "1\n");
	ips_counter(track, &a, 1);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_answer(place->path, "SELECT count(*) FROM counters", "1\n");
	ips_flow_out(track, &a, 7);
	assert_int_equal(ips_recording_flush(recording), 0);
	ips_flow_in(track, &a, 7);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_answer(place->path, "SELECT count(*) FROM flows", "1\n");
	ips_span_end(track);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_answer(place->path, "SELECT count(dur_ns) FROM spans", "1\n");
	prof_stop(recording);
}

/* The end of a short span waits alone only by chance, so this test asks the lane itself. */
static void test_a_row_of_any_kind_is_one_to_flush(void **state)
{
	static struct prof_lane lane;
	size_t *const counts[] = {&lane.spans.count,    &lane.ends.count,   &lane.longs.count,
				  &lane.args.count,     &lane.flows.count,  &lane.abouts.count,
				  &lane.instants.count, &lane.samples.count};

	(void)state;
	assert_true(prof__lane_waits(&lane)); /* its track is not written yet */
	lane.known = true;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		assert_false(prof__lane_waits(&lane));
		*counts[i] = 1;
		assert_true(prof__lane_waits(&lane));
		*counts[i] = 0;
	}
	lane.ring.dropped = 1;
	assert_true(prof__lane_waits(&lane));
}

static void test_instants_and_counters(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	struct ips_keys keys = IPS_KEYS_NULL;
	IPS_SITE(now, "c", "now");
	IPS_SITE(load, "c", "load");

	keys.step = 5;
	ips_track_set_keys(track, &keys);
	ips_instant(track, &now);
	ips_track_set_keys(track, NULL);
	ips_instant(track, &now);
	ips_instant(track, NULL);
	for (int i = 0; i < 10; i++)
		ips_counter(track, &load, i == 9 ? 0.0 / 0.0 : i);
	prof_stop(recording);
	assert_answer(place->path, "SELECT clock, track, category, name, rank, step FROM instants",
		      "host|worker|c|now|0|5\nhost|worker|c|now|0|-\n");
	assert_answer(place->path,
		      "SELECT track, name, count(*), count(value), sum(value) FROM counters",
		      "worker|load|10|9|36.0\n");
	assert_answer(place->path,
		      "SELECT sum(count), min(least), max(greatest), sum(total) FROM "
		      "counter_levels WHERE level = 12",
		      "9|0.0|8.0|36.0\n");
	assert_answer(place->path, "SELECT DISTINCT sum(count) FROM counter_levels GROUP BY level",
		      "9\n");
	assert_answer(place->path, "SELECT kind, first_row, last_row FROM zones ORDER BY kind",
		      "1|1|2\n2|1|10\n");
}

/* Asked for again and again, the process's memory is sampled now and then; a block that is in use
 * counts. */
static void test_memory_of_the_process_is_sampled(void **state)
{
	enum {
		BLOCK = 64 << 20
	};
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	struct ips_track *other = ips_track_open(recording, "other", NULL);
	char *block;

	ips_memory_sample(NULL);
	for (int i = 0; i < 1000; i++)
		ips_memory_sample(track);
	block = malloc(BLOCK);
	assert_non_null(block);
	memset(block, 1, BLOCK);
	ips_memory_sample(other);
	prof_stop(recording);
	assert_answer(place->path, "SELECT DISTINCT name, value > 1000000 FROM counters",
		      "resident_bytes|1\n");
	assert_answer(place->path,
		      "SELECT count(*) BETWEEN 1 AND 999 FROM counters WHERE track = 'worker'",
		      "1\n");
	/* The kernel adds up pages by processor in batches: allow for 8 MiB. Of what was resident
	 * before it may have taken away any part. */
	assert_answer(place->path, "SELECT value >= 58720256 FROM counters WHERE track = 'other'",
		      "1\n");
	assert_int_equal(block[BLOCK - 1], 1);
	free(block);
}

/* Memory is sampled again once the last sample is old. */
static void test_memory_is_sampled_again_after_a_while(void **state)
{
	const struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);

	ips_memory_sample(track);
	((struct prof_lane *)track)->memory_ns -= 200000000; /* 0.2 s pass */
	ips_memory_sample(track);
	prof_stop(recording);
	assert_answer(place->path, "SELECT name, count(*) FROM counters", "resident_bytes|2\n");
}

static void test_given_times_in_order_nest_and_others_are_counted(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	const struct ips_track_params params = {"IPU 0", "device", 0, IPS_DEVICE, 16};
	struct ips_track *track = ips_track_open(recording, "ipu 0", &params);
	IPS_SITE(a, "device", "a");

	ips_span_at(track, &a, 100, 100); /* 1 */
	ips_span_arg_int(track, "of", 1);
	ips_span_at(track, &a, 100, 40); /* 2, in 1 */
	ips_span_at(track, &a, 140, 60); /* 3, in 1 */
	ips_span_at(track, &a, 139, 1);  /* before its predecessor */
	ips_span_arg_int(track, "lost", 1);
	ips_span_at(track, &a, 150, 60); /* beyond the end of 3 */
	ips_span_at(track, &a, 150, 50); /* 4, in 3 */
	ips_span_at(track, &a, 200, 0);  /* 5: 1 is over */
	ips_span_at(track, &a, 200, 0);  /* 6 */
	ips_span_at(track, &a, -1, 5);
	ips_span_at(track, &a, 300, -5);
	ips_span_at(track, &a, INT64_MAX, 5);
	for (int i = 0; i < 1000; i++) /* more than the ring holds: it waits */
		ips_span_at(track, &a, 1000 + i * 10, 10);
	prof_stop(recording);
	assert_answer(
		place->path,
		"SELECT span_id, parent_id, depth, start_ns, dur_ns, clock, ipu FROM spans LIMIT 6",
		"1|-|0|100|100|device|0\n2|1|1|100|40|device|0\n3|1|1|140|60|device|0\n"
		"4|3|2|150|50|device|0\n5|-|0|200|0|device|0\n6|-|0|200|0|device|0\n");
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM spans"), 1006);
	assert_answer(place->path, "SELECT * FROM span_args", "1|of|1\n");
	assert_answer(place->path, "SELECT track, clock, pid, tid, ipu, name, parent FROM tracks",
		      "ipu 0|device|-|-|0|IPU 0|device\n");
	assert_int_equal(prof_ask(place->path, "SELECT sum(dropped) FROM overhead"), 6);
}

/* The writer empties the ring at any moment, also just after it was seen to be full. */
static void test_a_full_ring_of_given_times_waits_and_loses_nothing(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	const struct ips_track_params params = {"IPU 0", "device", 0, IPS_DEVICE, 16};
	struct ips_track *track = ips_track_open(recording, "ipu 0", &params);
	const int64_t count = support_rounds(100000);
	IPS_SITE(a, "device", "a");

	for (int64_t i = 0; i < count; i++)
		ips_span_at(track, &a, i, 1);
	prof_stop(recording);
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM spans"), count);
	assert_int_equal(prof_ask(place->path, "SELECT sum(dropped) FROM overhead"), 0);
}

static void test_begun_and_given_spans_may_share_a_track(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "mixed", NULL);
	int64_t now;
	IPS_SITE(a, "c", "a");

	for (int i = 0; i < 50; i++) {
		ips_span_begin(track, &a);
		now = ips_recording_now_ns(recording);
		ips_span_at(track, &a, now + 1000, 200000);
		ips_span_end(track);
		ips_span_begin(track, &a);
		ips_span_end(track);
	}
	prof_stop(recording);
	assert_int_equal(
		prof_ask(
			place->path,
			"SELECT count(*) FROM spans s JOIN spans p ON p.span_id = s.parent_id "
			"WHERE "
			"s.start_ns < p.start_ns OR s.start_ns + s.dur_ns > p.start_ns + p.dur_ns"),
		0);
	assert_int_equal(prof_ask(place->path,
				  "SELECT count(*) FROM (SELECT start_ns + dur_ns AS ends, "
				  "lead(start_ns) OVER (ORDER BY span_id) AS following FROM "
				  "spans WHERE depth = 0) WHERE ends > following"),
			 0);
}

static void test_a_span_without_a_site_is_nothing_but_keeps_the_nesting(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	IPS_SITE(a, "c", "a");

	ips_span_begin(track, NULL);
	ips_span_begin(track, &a);
	ips_span_begin(track, NULL);
	ips_span_arg_int(track, "x", 1);
	ips_span_begin(track, &a);
	ips_span_end(track);
	ips_span_end(track);
	ips_span_end(track);
	ips_span_end(track);
	prof_stop(recording);
	assert_answer(place->path, "SELECT span_id, parent_id, depth, dur_ns IS NULL FROM spans",
		      "1|-|0|0\n2|1|1|0\n");
	assert_answer(place->path, "SELECT * FROM span_args", "1|x|1\n");
}

/* Else it would belong to the span around it. */
static void test_what_is_within_a_dropped_span_is_dropped_with_it(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	IPS_SITE(a, "c", "a");

	ips_span_begin(track, &a);
	track->skipping++; /* as a begin leaves it that finds no room */
	ips_span_arg_int(track, "within", 1);
	ips_instant(track, &a);
	ips_span_begin(track, &a);
	ips_span_end(track);
	ips_span_end(track);
	ips_span_arg_int(track, "behind", 1);
	ips_span_end(track);
	prof_stop(recording);
	assert_answer(place->path, "SELECT span_id, dur_ns IS NULL FROM spans", "1|0\n");
	assert_answer(place->path, "SELECT * FROM span_args", "1|behind|1\n");
	assert_answer(place->path, "SELECT count(*) FROM instants", "0\n");
	assert_int_equal(prof_ask(place->path, "SELECT sum(dropped) FROM overhead"), 3);
}

static void test_track_names_are_made_unique(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);

	for (int i = 0; i < 3; i++)
		assert_non_null(ips_track_open(recording, "lane", NULL));
	assert_non_null(ips_track_open(recording, "lane (5)", NULL));
	for (int i = 0; i < 3; i++)
		assert_non_null(ips_track_open(recording, "lane", NULL));
	assert_non_null(ips_track_open(recording, "lane (5)", NULL));
	prof_stop(recording);
	assert_answer(place->path, "SELECT track, name FROM tracks",
		      "lane|lane\nlane (2)|lane\nlane (3)|lane\nlane (5)|lane (5)\n"
		      "lane (4)|lane\nlane (6)|lane\nlane (7)|lane\nlane (5) (2)|lane (5)\n");
}

/* A thousand threads of one name are not a million lookups: each name is tried about once. */
static void test_many_tracks_have_one_name(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording_params params;
	struct ips_recording *recording;

	ips_recording_params_defaults(&params);
	params.ring_slots = 16;
	recording = prof_start(place, &params);
	for (int i = 0; i < 1000; i++)
		assert_non_null(ips_track_open(recording, "lane", NULL));
	assert_int_equal(recording->lanes->named, 999);
	assert_non_null(ips_track_open(recording, "lane (1000)", NULL));
	assert_int_equal(recording->lanes->named, 999);
	prof_stop(recording);
	assert_int_equal(prof_ask(place->path, "SELECT count(DISTINCT track) FROM tracks"), 1001);
}

static void test_the_defaults_are_those_of_the_header(void **state)
{
	struct ips_recording_params params;

	(void)state;
	ips_recording_params_defaults(&params);
	assert_int_equal(params.ring_slots, 65536);
	assert_int_equal(params.commit_ms, 100);
	assert_int_equal(params.finish_ms, 5000);
	assert_int_equal(params.row_queue_bytes, 67108864);
	assert_null(params.command);
	assert_null(params.on_commit);
	assert_int_equal(params.rank, 0);
	assert_int_equal(params.alone, 0);
}

IPS_SITE(thread_outer, "t", "outer");
IPS_SITE(thread_inner, "t", "inner");

/* Rings become smaller as tracks multiply, and beyond a number there are none. */
static void test_tracks_have_a_limit_of_memory(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording_params params;
	struct ips_recording *recording;
	/* 256 rings, and 16 slots for each track where they are used up */
	const uint64_t all = (UINT64_C(256) * 1024 + 800 * 16) * sizeof(struct ips_slot);
	char name[32];

	ips_recording_params_defaults(&params);
	params.ring_slots = 1024;
	recording = prof_start(place, &params);
	for (int i = 0; i < 800; i++) {
		struct ips_track *track;

		snprintf(name, sizeof(name), "track %d", i);
		track = ips_track_open(recording, name, NULL);
		assert_non_null(track);
		if (i == 0)
			assert_int_equal(track->mask + 1, 1024);
		ips_span_at(track, &thread_outer, i, 1);
	}
	assert_true(recording->ring_bytes <= all);
	recording->lane_count = IPS_TRACKS_MOST;
	for (int i = 0; i < 5; i++)
		assert_null(ips_track_open(recording, "more", NULL));
	recording->lane_count = 800;
	assert_non_null(ips_track_open(recording, "track 5", NULL));
	prof_stop(recording);
	assert_answer(place->path, "SELECT count(*), count(DISTINCT track) FROM tracks",
		      "801|801\n");
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM spans"), 800);
	assert_answer(place->path, "SELECT value FROM meta WHERE key = 'tracks_refused'", "5\n");
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 6
#define SPANS   4000

struct job {
	struct ips_recording *recording;
	int number;
};

static void *thread_main(void *user)
{
	struct job *job = user;
	struct ips_keys keys = IPS_KEYS_NULL;
	struct ips_track *track;
	char name[32];

	snprintf(name, sizeof(name), "thread %d", job->number);
	track = ips_track_open(job->recording, name, NULL);
	keys.replica = job->number;
	for (int i = 0; i < SPANS; i++) {
		const struct ips_metric row = {IPS_TRAIN, 1, 0, i, i, "m", i};

		keys.step = i / 100;
		ips_track_set_keys(track, &keys);
		ips_span_begin(track, &thread_outer);
		ips_span_begin(track, &thread_inner);
		ips_span_end(track);
		ips_span_end(track);
		if (i % 10 == 0)
			ips_append_metric(job->recording, &row);
		if (i % 1000 == 999)
			ips_recording_flush(job->recording);
	}
	return NULL;
}

static void test_many_threads_record_at_once(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording_params params;
	struct ips_recording *recording;
	pthread_t threads[THREADS];
	struct job jobs[THREADS];

	ips_recording_params_defaults(&params);
	params.commit_ms = 5;
	recording = prof_start(place, &params);
	for (int i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){recording, i};
		assert_int_equal(pthread_create(&threads[i], NULL, thread_main, &jobs[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	prof_stop(recording);
	prof_check_file(place->path);
	assert_int_equal(prof_ask(place->path,
				  "SELECT count(*) + (SELECT sum(dropped) FROM overhead) FROM "
				  "spans"),
			 THREADS * SPANS * 2);
	assert_int_equal(prof_ask(place->path, "SELECT sum(dropped) FROM overhead"), 0);
	assert_int_equal(prof_ask(place->path,
				  "SELECT count(*) FROM spans WHERE track <> 'thread ' || replica"),
			 0);
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM metrics"),
			 THREADS * SPANS / 10);
	/* zones tell the truth, and cover all */
	assert_int_equal(prof_ask(place->path,
				  "SELECT sum(last_row - first_row + 1) FROM zones WHERE kind = 0"),
			 THREADS * SPANS * 2);
	assert_int_equal(prof_ask(place->path,
				  "SELECT count(*) FROM zones z JOIN span_rows r ON r.span_id "
				  "BETWEEN z.first_row AND z.last_row WHERE z.kind = 0 AND "
				  "(r.track_id <> z.track_id OR r.start_ns < z.first_ns OR "
				  "r.start_ns > z.last_ns)"),
			 0);
	/* levels hold every span */
	assert_answer(place->path,
		      "SELECT DISTINCT sum(count) FROM span_levels WHERE level > 4 GROUP BY level",
		      "48000\n");
}

static void test_a_full_row_queue_waits_and_loses_nothing(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording_params params;
	struct ips_recording *recording;
	char *big = malloc(100001);

	memset(big, 'b', 100000);
	big[100000] = 0;
	ips_recording_params_defaults(&params);
	params.row_queue_bytes = 4096;
	recording = prof_start(place, &params);
	for (int i = 0; i < 5000; i++) {
		const struct ips_liveness row = {0, i, 1, 2, 3};

		assert_int_equal(ips_append_liveness(recording, &row), 0);
		if (i % 1000 == 0) { /* larger than the whole queue */
			const struct ips_layer layer = {big, "Dense", i, 0, NULL, 1, 1, 1};

			assert_int_equal(ips_append_layer(recording, &layer), 0);
		}
	}
	prof_stop(recording);
	free(big);
	assert_int_equal(prof_ask(place->path, "SELECT count(DISTINCT program_step) FROM liveness"),
			 5000);
	assert_int_equal(prof_ask(place->path, "SELECT sum(length(layer)) FROM layers"), 500000);
}

static void test_null_recordings_and_tracks_do_nothing(void **state)
{
	struct ips_keys keys = IPS_KEYS_NULL;
	char message[16] = "x";
	IPS_SITE(a, "c", "a");

	(void)state;
	assert_null(ips_track_open(NULL, "x", NULL));
	assert_int_equal(ips_recording_close(NULL, message, sizeof(message)), 0);
	assert_string_equal(message, "");
	assert_int_equal(ips_recording_flush(NULL), 0);
	assert_int_equal(ips_recording_status(NULL, NULL, 0), 0);
	assert_int_equal(ips_recording_now_ns(NULL), 0);
	assert_int_equal(ips_meta_set(NULL, "a", "b"), 0);
	assert_int_equal(ips_append(NULL, IPS_TABLE_metric, NULL, 3), 0);
	assert_true(ips_tensor_add(NULL, NULL) == IPS_NULL);
	ips_span_begin(NULL, &a);
	ips_span_end(NULL);
	ips_track_set_keys(NULL, &keys);
	ips_instant(NULL, &a);
	ips_counter(NULL, &a, 1.0);
	ips_span_arg_int(NULL, "a", 1);
	ips_span_arg_real(NULL, "a", 1);
	ips_span_arg_text(NULL, "a", "b");
	ips_flow_out(NULL, &a, 1);
	ips_flow_in(NULL, &a, 1);
	ips_span_at(NULL, &a, 1, 1);
	assert_string_equal(ips_status_text(21), "no space left");
}

static void test_a_forked_child_writes_nothing(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	const struct ips_metric row = {IPS_TRAIN, 1, 0, 0, 0, "m", 1.0};
	IPS_SITE(a, "c", "a");
	int status;
	pid_t child;

	ips_span_begin(track, &a);
	ips_recording_flush(recording);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (int i = 0; i < 100000; i++) {
			ips_span_begin(track, &a);
			ips_span_end(track);
			ips_append_metric(recording, &row);
		}
		ips_span_at(track, &a, 1, 1);
		_exit(ips_recording_flush(recording) == 0 &&
				      !ips_track_open(recording, "c", NULL) &&
				      ips_recording_close(recording, NULL, 0) == 0
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ips_span_end(track);
	prof_stop(recording);
	assert_answer(place->path, "SELECT count(*), sum(dur_ns IS NULL) FROM spans", "1|0\n");
	assert_answer(place->path, "SELECT count(*) FROM metrics", "0\n");
	prof_check_file(place->path);
}

static void *kept_text;
static bool text_released;

static void *remember_text(void *old, size_t size)
{
	kept_text = realloc(old, size);
	return kept_text;
}

static void release(void *p)
{
	text_released |= p && p == kept_text;
	free(p);
}

/* In a child no thread takes a long text out of its ring. */
static void test_a_text_that_nobody_wrote_is_released(void **state)
{
	static const struct mem_functions remembering = {remember_text, aligned_alloc, release},
					  releasing = {realloc, aligned_alloc, release};
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	char text[1000] = "";
	int status;
	pid_t child;
	IPS_SITE(a, "c", "a");

	memset(text, 'x', sizeof(text) - 1);
	ips_recording_flush(recording);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		ips_span_begin(track, &a);
		mem_set_functions(&remembering);
		ips_span_arg_long_text(track, "text", text);
		mem_set_functions(&releasing);
		ips_recording_close(recording, NULL, 0);
		_exit(kept_text && text_released ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	prof_stop(recording);
}

static void record_some(struct ips_recording *recording)
{
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	struct ips_keys keys = IPS_KEYS_NULL;
	IPS_SITE(a, "c", "a");
	IPS_SITE(b, "c", "b");

	for (int i = 0; i < 500; i++) {
		keys.step = i / 7;
		ips_track_set_keys(track, &keys);
		ips_span_begin(track, i % 3 == 0 ? &a : &b);
		if (i % 5 == 0)
			ips_span_arg_int(track, "i", i);
		if (i % 4 != 0)
			ips_span_end(track);
		if (i % 50 == 49)
			ips_recording_flush(recording);
	}
}

static void test_the_same_program_gets_the_same_ids_also_side_by_side(void **state)
{
	struct prof_place *place = *state, other;
	struct ips_recording *one, *two;
	const char *sql = "SELECT span_id, parent_id, depth, name, step FROM spans ORDER BY 1";
	char *first, *second;

	prof_place_make(&other);
	one = prof_start(place, NULL);
	two = prof_start(&other, NULL);
	record_some(one);
	record_some(two);
	prof_stop(one);
	prof_stop(two);
	first = prof_ask_all(place->path, sql);
	second = prof_ask_all(other.path, sql);
	assert_string_equal(first, second);
	free(first);
	free(second);
	prof_place_remove(&other);
}

static void count_commits(void *user, const struct ips_commit *commit)
{
	struct ips_commit *last = user;

	if (commit->number == last->number + 1 && commit->spans >= last->spans &&
	    commit->rows >= last->rows)
		*last = *commit;
	else
		last->number = UINT64_MAX; /* out of order: seen by the test */
}

static void test_commits_tell_what_is_in_the_file(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording_params params;
	struct ips_commit last = {0};
	struct ips_recording *recording;
	struct ips_track *track;
	IPS_SITE(a, "c", "a");

	ips_recording_params_defaults(&params);
	params.on_commit = count_commits;
	params.user = &last;
	params.command = "test --me";
	recording = prof_start(place, &params);
	track = ips_track_open(recording, "worker", NULL);
	for (int i = 0; i < 5; i++) {
		const struct ips_metric row = {IPS_TRAIN, 1, 0, 0, 0, "m", 1.0};

		ips_span_begin(track, &a);
		ips_span_end(track);
		ips_instant(track, &a);
		ips_append_metric(recording, &row);
		ips_recording_flush(recording);
	}
	prof_stop(recording);
	assert_int_equal(last.spans, 5);
	assert_int_equal(last.instants, 5);
	assert_int_equal(last.rows, 5);
	assert_true(last.number >= 5 && last.number < 20);
	assert_true(last.bytes > 16384);
	assert_answer(place->path, "SELECT value FROM meta WHERE key = 'command'", "test --me\n");
	assert_answer(place->path, "SELECT sum(events), sum(rows) FROM overhead", "15|5\n");
}

static void test_the_last_overhead_row_tells_what_the_last_commit_cost(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_track *track = ips_track_open(recording, "worker", NULL);
	IPS_SITE(a, "c", "a");

	ips_span_begin(track, &a);
	ips_span_end(track);
	prof_stop(recording);
	/* Its events are in the rows before it; after it, what the program waited for the end. */
	assert_answer(place->path,
		      "SELECT events, rows, write_ns > 0, record_ns_estimate > 0 FROM "
		      "overhead_rows ORDER BY row_id DESC LIMIT 2",
		      "0|0|0|1\n0|0|1|0\n");
	assert_answer(place->path, "SELECT sum(events) FROM overhead", "2\n");
}

/* The writer waits in its first commit until its rings are full and a row is there; then says in
 * which of the next the row came. */
struct busy_rings {
	const struct prof_place *place;
	sem_t waits, full;
	int commits, row_came;
};

static void look_for_the_row(void *user, const struct ips_commit *commit)
{
	struct busy_rings *busy = user;

	(void)commit;
	if (busy->commits++ == 0) {
		sem_post(&busy->waits);
		sem_wait(&busy->full);
	} else if (busy->row_came == 0 && busy->commits < 20 &&
		   prof_ask(busy->place->path, "SELECT count(*) FROM metrics") == 1) {
		busy->row_came = busy->commits - 1;
	}
}

static void test_rows_do_not_wait_for_full_rings(void **state)
{
	enum {
		SLOTS = 1 << 20
	};
	const struct ips_metric row = {IPS_TRAIN, 1, 0, 0, 0, "m", 1.0};
	struct busy_rings busy = {.place = *state};
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_track *track;
	IPS_SITE(a, "c", "a");

	assert_int_equal(sem_init(&busy.waits, 0, 0) | sem_init(&busy.full, 0, 0), 0);
	ips_recording_params_defaults(&params);
	params.ring_slots = SLOTS;
	params.commit_ms = 1;
	params.on_commit = look_for_the_row;
	params.user = &busy;
	recording = prof_start(busy.place, &params);
	track = ips_track_open(recording, "worker", NULL);
	ips_instant(track, &a);
	sem_wait(&busy.waits);
	for (int i = 0; i < SLOTS / 2; i++)
		ips_counter(track, &a, i);
	ips_append_metric(recording, &row);
	sem_post(&busy.full);
	prof_stop(recording);
	assert_in_range(busy.row_came, 1, 2);
	sem_destroy(&busy.waits);
	sem_destroy(&busy.full);
}

#define COMMITS_SEEN 4

struct commit_threads {
	long tid[COMMITS_SEEN];
	int nice[COMMITS_SEEN];
	int count;
};

static struct ips_track *volatile interrupted;
static volatile sig_atomic_t interruptions;

static void record_in_handler(int number)
{
	IPS_SITE(handler, "k", "handler");

	(void)number;
	interruptions++;
	ips_span_begin(interrupted, &handler);
	ips_span_arg_text(interrupted, "text", "a text that takes more than one slot of the ring");
	ips_instant(interrupted, &handler);
	ips_span_end(interrupted);
}

static void test_a_signal_handler_may_record_on_the_track_it_interrupts(void **state)
{
	const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	const struct sigaction action = {.sa_handler = record_in_handler, .sa_flags = SA_RESTART};
	struct ips_recording *recording = prof_start(*state, NULL);
	const char *path = ((const struct prof_place *)*state)->path;
	struct ips_keys keys = IPS_KEYS_NULL;
	IPS_SITE(outer, "k", "outer");
	int64_t dropped;

	interrupted = ips_track_open(recording, "t", NULL);
	interruptions = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int64_t i = 0; interruptions < 5000; i++) {
		keys.step = i % 7;
		ips_track_set_keys(interrupted, &keys);
		ips_span_begin(interrupted, &outer);
		ips_span_arg_text(interrupted, "text", "another text that takes several slots");
		ips_counter(interrupted, &outer, 1.0);
		ips_span_end(interrupted);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	prof_stop(recording);
	prof_check_file(path);
	dropped = prof_ask(path, "SELECT sum(dropped) FROM overhead");
	assert_true(prof_ask(path, "SELECT count(*) FROM spans WHERE name = 'handler'") + dropped >=
		    interruptions);
	assert_int_equal(prof_ask(path, "SELECT count(*) FROM spans WHERE name NOT IN ('handler', "
					"'outer') OR dur_ns IS NULL"),
			 0);
}

static void count_interruption(int number)
{
	(void)number;
	interruptions++;
}

/* A handler on one of the recording's threads would write to a track beside that track's thread. */
static void test_signals_of_the_program_do_not_reach_the_threads_of_a_recording(void **state)
{
	const struct timespec while_others_run = {0, 50000000};
	struct ips_recording *recording = prof_start(*state, NULL);
	sigset_t signals, before, pending;

	interruptions = 0;
	signal(SIGUSR1, count_interruption);
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, &before);
	kill(getpid(), SIGUSR1);
	assert_int_equal(ips_recording_flush(recording), 0);
	nanosleep(&while_others_run, NULL);
	sigpending(&pending);
	assert_int_equal(interruptions, 0);
	assert_int_equal(sigismember(&pending, SIGUSR1), 1);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(interruptions, 1);
	signal(SIGUSR1, SIG_DFL);
	prof_stop(recording);
}

/* A recording that commits once an hour does not wait for that hour when it is closed. The time
 * between commits doubles from a few milliseconds: after twenty it is the hour. */
static void test_the_end_does_not_wait_for_the_next_commit(void **state)
{
	const struct timespec until_the_writer_sleeps = {0, 10000000};
	const struct prof_place *place = *state;
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_track *track;
	IPS_SITE(a, "c", "a");

	ips_recording_params_defaults(&params);
	params.commit_ms = 3600000;
	recording = prof_start(place, &params);
	track = ips_track_open(recording, "worker", NULL);
	for (int i = 0; i < 20; i++) {
		ips_instant(track, &a);
		assert_int_equal(ips_recording_flush(recording), 0);
	}
	nanosleep(&until_the_writer_sleeps, NULL);
	prof_stop(recording);
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM instants"), 20);
}

static void test_a_recording_that_is_renamed_says_so(void **state)
{
	struct ips_metric row = {IPS_TRAIN, 1, 0, 0, 0, "loss", 0.5};
	const struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	char other[SUPPORT_PATH_SIZE + 32], why[512];

	snprintf(other, sizeof(other), "%s.other", place->path);
	ips_append_metric(recording, &row);
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_int_equal(rename(place->path, other), 0);
	ips_append_metric(recording, &row);
	assert_int_not_equal(ips_recording_flush(recording), 0);
	assert_int_not_equal(ips_recording_close(recording, why, sizeof(why)), 0);
	assert_contains(why, "was deleted, renamed or replaced while it was written");
}

/* The first commit takes long without taking processor time, as where no core is idle. */
static void be_starved_once(void *user, const struct ips_commit *commit)
{
	const struct timespec pause = {0, 700000000};
	struct commit_threads *seen = user;

	(void)commit;
	if (seen->count < COMMITS_SEEN) {
		seen->tid[seen->count] = syscall(SYS_gettid);
		seen->nice[seen->count] = getpriority(PRIO_PROCESS, 0);
	}
	if (seen->count++ == 0)
		nanosleep(&pause, NULL);
}

static void test_a_starved_writer_hands_over_for_good_and_loses_nothing(void **state)
{
	struct prof_place *place = *state;
	struct commit_threads seen = {0};
	struct ips_recording_params params;
	struct ips_recording *recording;
	struct ips_track *track;
	IPS_SITE(a, "c", "a");

	ips_recording_params_defaults(&params);
	params.commit_ms = 1000; /* half of it: no busy machine alone takes that long */
	params.on_commit = be_starved_once;
	params.user = &seen;
	recording = prof_start(place, &params);
	track = ips_track_open(recording, "worker", NULL);
	for (int i = 0; i < COMMITS_SEEN; i++) {
		ips_span_begin(track, &a);
		ips_span_end(track);
		ips_recording_flush(recording);
	}
	prof_stop(recording);
	assert_true(seen.count >= COMMITS_SEEN);
	assert_int_equal(seen.nice[0], 19);
	for (int i = 1; i < COMMITS_SEEN; i++) {
		assert_true(seen.tid[i] != seen.tid[0]);
		assert_true(seen.tid[i] == seen.tid[1]);
		assert_int_equal(seen.nice[i], getpriority(PRIO_PROCESS, 0));
	}
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM spans"), COMMITS_SEEN);
	prof_check_file(place->path);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, prof_place_setup, prof_place_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_defaults_are_those_of_the_header),
		CASE(test_spans_nest),
		CASE(test_open_spans_are_seen_and_closed_later),
		CASE(test_events_belong_to_the_innermost_open_span),
		CASE(test_of_arguments_given_twice_the_later_counts),
		CASE(test_a_flow_without_another_side_is_not_lost),
		CASE(test_each_kind_of_event_reaches_the_file_alone),
		cmocka_unit_test(test_a_row_of_any_kind_is_one_to_flush),
		CASE(test_instants_and_counters),
		CASE(test_memory_of_the_process_is_sampled),
		CASE(test_memory_is_sampled_again_after_a_while),
		CASE(test_given_times_in_order_nest_and_others_are_counted),
		CASE(test_a_full_ring_of_given_times_waits_and_loses_nothing),
		CASE(test_begun_and_given_spans_may_share_a_track),
		CASE(test_a_span_without_a_site_is_nothing_but_keeps_the_nesting),
		CASE(test_what_is_within_a_dropped_span_is_dropped_with_it),
		CASE(test_track_names_are_made_unique),
		CASE(test_many_tracks_have_one_name),
		CASE(test_tracks_have_a_limit_of_memory),
		CASE(test_many_threads_record_at_once),
		CASE(test_a_full_row_queue_waits_and_loses_nothing),
		CASE(test_null_recordings_and_tracks_do_nothing),
		CASE(test_a_forked_child_writes_nothing),
		CASE(test_a_text_that_nobody_wrote_is_released),
		CASE(test_the_same_program_gets_the_same_ids_also_side_by_side),
		CASE(test_commits_tell_what_is_in_the_file),
		CASE(test_the_last_overhead_row_tells_what_the_last_commit_cost),
		CASE(test_rows_do_not_wait_for_full_rings),
		CASE(test_the_end_does_not_wait_for_the_next_commit),
		CASE(test_a_recording_that_is_renamed_says_so),
		CASE(test_a_signal_handler_may_record_on_the_track_it_interrupts),
		CASE(test_signals_of_the_program_do_not_reach_the_threads_of_a_recording),
		CASE(test_a_starved_writer_hands_over_for_good_and_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
