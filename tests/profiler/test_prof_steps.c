/*
 * The device's steps by range: the runs that a window touches, found by bisection, against all of
 * them.
 */
#include "support/prof_testing.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/arena.h"
#include "profiler/prof_timeline.h"

#define REPLICAS   3
#define EXECUTIONS 5
#define UPDATES    7  /* of an execution */
#define PARTS      4  /* of a pipeline run */
#define CYCLES     10 /* of a part */

struct steps {
	struct prof_place place;
	struct prof_db *db;
	sqlite3 *reader; /* for the scans */
	struct arena arena;
};

static void write_trace(struct ips_recording *recording)
{
	const struct ips_device_trace trace = {.trace_id = 3, .clock_hz = 1e9, .name = "train"};

	ips_append_device_trace(recording, &trace);
	for (int ipu = 1; ipu >= 0; ipu--) {
		for (int i = 0; i < 2; i++) {
			const struct ips_device_step step = {
				.trace_id = 3,
				.trace_step = i,
				.ipu = ipu,
				.stage = ipu,
				.phase = i ? "F" : NULL,
				.microbatch = IPS_NULL,
				.program_id = 40 + i,
				.type = i ? "OnTileExecute" : "Sync",
				.name = "a step",
				.operation = i ? "MatMul" : NULL,
				.start_cycle = i * 4,
				.cycles = 4,
				.cycles_overlapped = IPS_NULL,
				.active_tiles = i ? 7 : IPS_NULL,
				.tile_balance = i ? 0.5 : (double)NAN,
				.active_tile_balance = (double)NAN,
				.bytes_in = 1,
				.bytes_out = 2,
			};

			ips_append_device_step(recording, &step);
		}
	}
}

/* Replica after replica within a pipeline run, as the trainer writes them. */
static void write_runs(struct ips_recording *recording)
{
	int64_t cycle = 100;

	for (int e = 0; e < EXECUTIONS; e++) {
		const int evaluates = e == EXECUTIONS - 1;

		for (int u = 0; u < (evaluates ? 1 : UPDATES); u++) {
			const int parts = evaluates ? 50 * PARTS : PARTS;

			for (int r = 0; r < REPLICAS; r++)
				for (int p = 0; p < parts; p++) {
					const struct ips_device_run run = {
						.trace_id = 3,
						.mode = evaluates ? IPS_EVALUATE : IPS_TRAIN,
						.epoch = IPS_NULL,
						.execution = e,
						.weight_update =
							evaluates ? IPS_NULL : e * UPDATES + u,
						.first_step = p,
						.replica = r,
						.first_ipu = 2 * r,
						.start_cycle = cycle + p * CYCLES,
						.first_microbatch = p};

					ips_append_device_run(recording, &run);
				}
			cycle += parts * CYCLES + 5;
		}
	}
}

/* A row on each clock for each update; an evaluation of one stage is no pipeline. */
static void write_bubbles(struct ips_recording *recording)
{
	for (int e = 0; e < EXECUTIONS; e++) {
		for (int row = 0; row < 2 * UPDATES; row++) {
			struct ips_bubble bubble = {.keys = IPS_KEYS_NULL,
						    .clock = row % 2 ? IPS_DEVICE : IPS_HOST,
						    .stages = e == EXECUTIONS - 1 ? 1 : 2,
						    .makespan_ns = 100 + e};

			bubble.keys.execution = e;
			bubble.keys.weight_update = e * UPDATES + row / 2;
			ips_append_bubble(recording, &bubble);
		}
	}
}

static int setup(void **state)
{
	struct steps *s = calloc(1, sizeof(*s));
	struct ips_recording *recording;

	prof_place_make(&s->place);
	recording = prof_start(&s->place, NULL);
	write_trace(recording);
	write_runs(recording);
	write_bubbles(recording);
	prof_stop(recording);
	assert_int_equal(prof_db_open(&s->db, s->place.path, NULL), ST_OK);
	s->reader = prof_reader_open(s->place.path);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct steps *s = *state;

	prof_db_close(s->db);
	sqlite3_close(s->reader);
	arena_fini(&s->arena);
	prof_place_remove(&s->place);
	free(s);
	return 0;
}

static void test_a_trace_is_read_with_its_steps_by_ipu_and_time(void **state)
{
	struct steps *s = *state;
	struct prof_trace trace;

	assert_int_equal(prof_timeline_trace(s->db, 3, &s->arena, &trace, NULL), ST_OK);
	assert_string_equal(trace.name, "train");
	assert_true(trace.clock_hz == 1e9);
	assert_int_equal(trace.count, 4);
	assert_int_equal(trace.cycles, 8);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(trace.steps[i].ipu, i / 2);
		assert_int_equal(trace.steps[i].start_cycle, i % 2 * 4);
	}
	assert_string_equal(trace.steps[1].type, "OnTileExecute");
	assert_string_equal(trace.steps[1].operation, "MatMul");
	assert_int_equal(trace.steps[1].active_tiles, 7);
	assert_true(trace.steps[1].tile_balance == 0.5);
	assert_int_equal(trace.steps[1].phase, 'F');
	assert_null(trace.steps[0].operation);
	assert_int_equal(trace.steps[0].active_tiles, INT64_MIN);
	assert_true(isnan(trace.steps[0].tile_balance));
	assert_int_equal(prof_timeline_trace(s->db, 9, &s->arena, &trace, NULL), ST_OK);
	assert_null(trace.name);
	assert_int_equal(trace.count, 0);
}

/* The runs that overlap [from, to), by a scan: how many, and the sum of their ids. */
static void scan(struct steps *s, int64_t from, int64_t to, int64_t out[2])
{
	char sql[256];

	for (int i = 0; i < 2; i++) {
		snprintf(sql, sizeof(sql),
			 "SELECT %s FROM device_run_rows WHERE start_cycle < %lld AND start_cycle "
			 "+ %d > %lld",
			 i ? "ifnull(sum(row_id), 0)" : "count(*)", (long long)to, CYCLES,
			 (long long)from);
		out[i] = prof_reader_ask(s->reader, sql);
	}
}

static void check_window(struct steps *s, int64_t from, int64_t to, int most)
{
	int64_t expected[2], found[2] = {0, 0}, stride;
	struct prof_run *runs;
	int count;

	scan(s, from, to, expected);
	assert_int_equal(prof_timeline_runs(s->db, 0, from, to, most, &s->arena, &runs, &count,
					    &stride, NULL),
			 ST_OK);
	assert_true(count <= most);
	for (int i = 0; i < count; i++) {
		if (runs[i].start_cycle + CYCLES <= from || runs[i].start_cycle >= to)
			continue;
		found[0]++;
		found[1] += runs[i].run_id;
	}
	if (stride > 1)
		return;
	assert_int_equal(found[0], expected[0]);
	assert_int_equal(found[1], expected[1]);
}

static void test_a_window_has_the_runs_that_a_scan_finds(void **state)
{
	struct steps *s = *state;
	const int64_t end =
		prof_reader_ask(s->reader, "SELECT max(start_cycle) FROM device_run_rows");

	for (int64_t from = 0; from < end + 50; from += 13 * support_stride())
		for (int64_t length = 1; length < 400; length = length * 3 + 1)
			check_window(s, from, from + length, 4096);
	check_window(s, 0, end + 100, 4096);
}

/* The evaluation is one pipeline run of 200 parts for each replica: a window of it is exact too. */
static void test_a_part_of_a_long_run_is_not_sampled(void **state)
{
	struct steps *s = *state;
	const int64_t first =
		prof_reader_ask(s->reader, "SELECT min(start_cycle) FROM "
					   "device_run_rows WHERE weight_update IS NULL");
	struct prof_run *runs;
	int64_t stride;
	int count;

	for (int64_t from = first; from < first + 2000; from += 37) {
		assert_int_equal(prof_timeline_runs(s->db, 0, from, from + 60, 64, &s->arena, &runs,
						    &count, &stride, NULL),
				 ST_OK);
		assert_int_equal(stride, 1);
		check_window(s, from, from + 60, 64);
	}
}

static void test_too_many_runs_are_sampled_evenly(void **state)
{
	struct steps *s = *state;
	bool seen[REPLICAS] = {false};
	struct prof_run *runs;
	int64_t stride;
	int count;

	assert_int_equal(prof_timeline_runs(s->db, 0, 0, 100000, 100, &s->arena, &runs, &count,
					    &stride, NULL),
			 ST_OK);
	assert_true(stride > 1 && count > 50 && count <= 100);
	for (int i = 0; i < count; i++) {
		seen[runs[i].replica] = true;
		assert_true(i == 0 || runs[i].run_id > runs[i - 1].run_id);
	}
	for (int r = 0; r < REPLICAS; r++)
		assert_true(seen[r]);
}

static void test_other_ranks_and_empty_files_have_no_runs(void **state)
{
	struct steps *s = *state;
	struct prof_run *runs;
	int64_t stride;
	int count;

	assert_int_equal(prof_timeline_runs(s->db, 1, 0, 100000, 100, &s->arena, &runs, &count,
					    &stride, NULL),
			 ST_OK);
	assert_int_equal(count, 0);
}

static void test_bubbles_are_those_of_the_executions_asked_for(void **state)
{
	struct steps *s = *state;
	struct prof_bubble *bubbles;
	int count;
	bool more;

	assert_int_equal(prof_timeline_bubbles(s->db, 0, 1, 2, 4 * UPDATES, &s->arena, &bubbles,
					       &count, &more, NULL),
			 ST_OK);
	assert_false(more);
	assert_int_equal(count, 4 * UPDATES);
	for (int i = 0; i < count; i++) {
		assert_int_equal(bubbles[i].execution, 1 + i / (2 * UPDATES));
		assert_int_equal(bubbles[i].weight_update, UPDATES + i / 2);
		assert_int_equal(bubbles[i].clock, i % 2);
		assert_int_equal(bubbles[i].makespan_ns, 100 + bubbles[i].execution);
	}
	assert_int_equal(prof_timeline_bubbles(s->db, 0, 1, 2, 4 * UPDATES - 1, &s->arena, &bubbles,
					       &count, &more, NULL),
			 ST_OK);
	assert_true(more);
	assert_int_equal(count, 0);
	assert_int_equal(prof_timeline_bubbles(s->db, 0, EXECUTIONS - 1, EXECUTIONS, 100, &s->arena,
					       &bubbles, &count, &more, NULL),
			 ST_OK);
	assert_int_equal(count, 0);
	assert_int_equal(prof_timeline_bubbles(s->db, 1, 0, EXECUTIONS, 100, &s->arena, &bubbles,
					       &count, &more, NULL),
			 ST_OK);
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_trace_is_read_with_its_steps_by_ipu_and_time),
		cmocka_unit_test(test_a_window_has_the_runs_that_a_scan_finds),
		cmocka_unit_test(test_a_part_of_a_long_run_is_not_sampled),
		cmocka_unit_test(test_too_many_runs_are_sampled_evenly),
		cmocka_unit_test(test_bubbles_are_those_of_the_executions_asked_for),
		cmocka_unit_test(test_other_ranks_and_empty_files_have_no_runs),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
