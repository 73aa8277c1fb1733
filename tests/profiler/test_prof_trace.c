/*
 * The execution trace: steps stored once and multiplied by their runs in the view `device_steps`.
 */
#include "support/prof_testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "ipu/ipu_target.h"
#include "profiler/prof_db.h"
#include "profiler/prof_repair.h"

/* Nothing but what every step has. */
static struct ips_device_step plain_step(int64_t trace_id, int64_t start_cycle, int64_t cycles)
{
	return (struct ips_device_step){
		.trace_id = trace_id,
		.trace_step = IPS_NULL,
		.ipu = IPS_NULL,
		.stage = IPS_NULL,
		.microbatch = IPS_NULL,
		.program_id = IPS_NULL,
		.start_cycle = start_cycle,
		.cycles = cycles,
		.cycles_overlapped = IPS_NULL,
		.active_tiles = IPS_NULL,
		.tile_balance = (double)NAN,
		.active_tile_balance = (double)NAN,
		.bytes_in = IPS_NULL,
		.bytes_out = IPS_NULL,
	};
}

static struct ips_device_run plain_run(int64_t trace_id, int64_t execution, int64_t start_cycle)
{
	return (struct ips_device_run){
		.trace_id = trace_id,
		.mode = IPS_TRAIN,
		.epoch = IPS_NULL,
		.execution = execution,
		.weight_update = IPS_NULL,
		.first_step = IPS_NULL,
		.replica = IPS_NULL,
		.first_ipu = IPS_NULL,
		.start_cycle = start_cycle,
	};
}

static void test_a_run_shifts_the_steps_of_its_trace(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	const struct ips_device_trace trace = {3, 2e9, "train"};
	struct ips_device_step step = plain_step(3, 10, 5);
	struct ips_device_run run = {3, IPS_TRAIN, 1, 2, 8, 32, 1, 4, 1000, 0};

	assert_int_equal(ips_append_device_trace(recording, &trace), 0);
	step.type = step.name = "StreamCopyMid";
	step.trace_step = step.ipu = 0;
	step.bytes_in = 64;
	assert_int_equal(ips_append_device_step(recording, &step), 0);
	step = (struct ips_device_step){3,    1,    1,  1, "F", 2,    7,   "OnTileExecute",
					"cs", "op", 20, 9, 4,   1472, 0.5, 0.75,
					96,   32};
	assert_int_equal(ips_append_device_step(recording, &step), 0);
	assert_int_equal(ips_append_device_run(recording, &run), 0);
	/* An evaluation: steps, but no weight update and so no micro-batch. */
	run = (struct ips_device_run){3, IPS_EVALUATE, IPS_NULL, 3, IPS_NULL, 0, 0, 0, 2000, 0};
	assert_int_equal(ips_append_device_run(recording, &run), 0);
	prof_stop(recording);
	assert_answer(
		place->path, "SELECT * FROM device_steps",
		"0|train|1|2|8|-|-|1|4|-|-|0|-|StreamCopyMid|StreamCopyMid|-|1010|5|505|3|-|"
		"-|-|-|64|-\n"
		"0|train|1|2|8|34|2|1|5|1|F|1|7|OnTileExecute|cs|op|1020|9|510|5|4|1472|0.5|"
		"0.75|96|32\n"
		"0|evaluate|-|3|-|-|-|0|0|-|-|0|-|StreamCopyMid|StreamCopyMid|-|2010|5|1005|3|"
		"-|-|-|-|64|-\n"
		"0|evaluate|-|3|-|2|-|0|1|1|F|1|7|OnTileExecute|cs|op|2020|9|1010|5|4|1472|"
		"0.5|0.75|96|32\n");
	prof_check_file(place->path);
}

static void test_a_run_counts_micro_batches_from_its_first(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	const struct ips_device_trace trace = {3, 2e9, "train/Main"};
	struct ips_device_step step = plain_step(3, 10, 5);
	struct ips_device_run run = {3, IPS_TRAIN, 1, 2, 8, 32, 1, 4, 1000, 0};

	step.microbatch = 2;
	assert_int_equal(ips_append_device_trace(recording, &trace), 0);
	assert_int_equal(ips_append_device_step(recording, &step), 0);
	run.first_step = 36;
	run.first_microbatch = 4;
	assert_int_equal(ips_append_device_run(recording, &run), 0);
	run.first_microbatch = IPS_NULL;
	assert_int_equal(ips_append_device_run(recording, &run), 0);
	prof_stop(recording);
	assert_answer(place->path, "SELECT step, microbatch FROM device_steps", "38|6\n38|2\n");
}

static void
test_a_step_or_a_run_without_a_trace_is_refused_and_unknown_clocks_give_no_ns(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_device_step step = plain_step(IPS_NULL, 1, 2);
	struct ips_device_run run = plain_run(IPS_NULL, 0, 3);

	assert_int_equal(ips_append_device_step(recording, &step), 2);
	assert_int_equal(ips_append_device_run(recording, &run), 2);
	step.trace_id = run.trace_id = 1;
	assert_int_equal(ips_append_device_step(recording, &step), 0);
	assert_int_equal(ips_append_device_run(recording, &run), 0);
	prof_stop(recording);
	assert_answer(place->path, "SELECT start_cycle, cycles, start_ns, dur_ns FROM device_steps",
		      "4|2|-|-\n");
}

/* Of 0 .. 2^45 - 1, of all sizes; xorshift64. */
static int64_t any_cycle(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (int64_t)(*random >> (19 + *random % 45));
}

static void test_the_views_ns_are_the_devices_ns(void **state)
{
	enum {
		STEPS = 20,
		RUNS = 1000
	};
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	uint64_t random = 0x9e3779b97f4a7c15;
	struct ipu_target targets[8];
	struct prof_query *query;
	struct prof_db *db;
	int64_t rows = 0;
	bool row;
	int count;
	const char *const *names = ipu_target_names(&count);

	assert_true(count <= (int)ARRAY_LEN(targets));
	for (int t = 0; t < count; t++) {
		assert_int_equal(ipu_target_get(names[t], 0, &targets[t], NULL), ST_OK);
		assert_int_equal(ips_append_device_trace(recording,
							 &(struct ips_device_trace){
								 t, targets[t].clock_hz, names[t]}),
				 0);
		for (int64_t i = 0; i < STEPS; i++) {
			const struct ips_device_step step =
				plain_step(t, i, i < 10 ? i : any_cycle(&random) >> 10);

			assert_int_equal(ips_append_device_step(recording, &step), 0);
		}
		for (int64_t i = 0; i < RUNS; i++) {
			const struct ips_device_run run =
				plain_run(t, t, i < 100 ? i : any_cycle(&random));

			assert_int_equal(ips_append_device_run(recording, &run), 0);
		}
	}
	prof_stop(recording);
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	assert_int_equal(prof_query_open(&query, db,
					 "SELECT execution, start_cycle, cycles, start_ns, dur_ns "
					 "FROM device_steps",
					 NULL),
			 ST_OK);
	while (prof_query_step(query, &row, NULL) == ST_OK && row) {
		const struct ipu_target *target = &targets[prof_column_int(query, 0)];
		const int64_t start = prof_column_int(query, 1);
		const int64_t start_ns = ipu_target_ns(target, start);

		assert_int_equal(prof_column_int(query, 3), start_ns);
		assert_int_equal(prof_column_int(query, 4),
				 ipu_target_ns(target, start + prof_column_int(query, 2)) -
					 start_ns);
		rows++;
	}
	assert_int_equal(rows, (int64_t)count * STEPS * RUNS);
	prof_query_close(query);
	prof_db_close(db);
}

/* Whatever is asked for: runs outside, and of each its template by index. */
static void test_the_view_looks_up_a_template_for_each_run(void **state)
{
	static const char *const queries[] = {
		"SELECT * FROM device_steps",
		"SELECT * FROM device_steps WHERE execution = 1 AND weight_update = 2",
		"SELECT count(*) FROM device_steps WHERE ipu = 3",
		"SELECT sum(cycles) FROM device_steps GROUP BY operation",
	};
	struct prof_place *place = *state;

	prof_stop(prof_start(place, NULL));
	for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
		char sql[256], *plan;

		snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", queries[i]);
		plan = prof_ask_all(place->path, sql);
		assert_contains(plan, "SCAN r");
		assert_contains(plan, "SEARCH d USING INDEX device_step_traces (trace_id=?)");
		assert_contains(plan, "SEARCH n USING INTEGER PRIMARY KEY");
		assert_true(strstr(plan, "SEARCH d") > strstr(plan, "SCAN r"));
		assert_null(strstr(plan, "SCAN d"));
		assert_null(strstr(plan, "AUTOMATIC"));
		free(plan);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, prof_place_setup, prof_place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_a_run_shifts_the_steps_of_its_trace),
		CASE(test_a_run_counts_micro_batches_from_its_first),
		CASE(test_a_step_or_a_run_without_a_trace_is_refused_and_unknown_clocks_give_no_ns),
		CASE(test_the_views_ns_are_the_devices_ns),
		CASE(test_the_view_looks_up_a_template_for_each_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
