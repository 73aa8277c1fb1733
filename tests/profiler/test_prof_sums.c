/*
 * The writer's sums: those of the rows, whatever the rows say, how many groups there are and where
 * commits fall. What the rows say is asked of the same file with views of its rows in place of
 * those of its sums.
 */
#include "support/prof_testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/str.h"
#include "profiler/prof_db.h"
#include "profiler/prof_sums.h"

/* ---- the rows' own sums ---------------------------------------------------------------------- */

static const char stage_sums[] =
	"SELECT clock, rank, mode, replica, ipu, stage, phase, count(*) AS count, "
	"sum(dur_ns) AS total_ns, 1.0 * sum(dur_ns) / count(*) AS mean_ns, "
	"min(dur_ns) AS least_ns, max(dur_ns) AS greatest_ns, sum(cpu_ns) AS cpu_ns, "
	"min(start_ns) AS first_start_ns, max(start_ns + dur_ns) AS last_end_ns "
	"FROM stage_timings "
	"GROUP BY clock = 'device', rank, mode, replica, ipu, stage, phase";

static const char bubble_sums[] =
	"SELECT clock, rank, mode, replica, schedule, stages, microbatches, count(*) AS runs, "
	"avg(idle_fraction) AS mean_idle_fraction, avg(bubble_rate) AS mean_bubble_rate, "
	"avg(bubble_over_ideal) AS mean_bubble_over_ideal, "
	"avg(theory_idle_fraction) AS mean_theory_idle_fraction, "
	"avg(theory_bubble_rate) AS mean_theory_bubble_rate, "
	"avg(theory_bubble_over_ideal) AS mean_theory_bubble_over_ideal, "
	"sum(makespan_ns) AS total_makespan_ns, min(makespan_ns) AS least_makespan_ns, "
	"max(makespan_ns) AS greatest_makespan_ns, sum(busy_ns + ramp_up_ns + ramp_down_ns + "
	"imbalance_ns + communication_ns) AS total_ns, sum(busy_ns) AS total_busy_ns, "
	"sum(ramp_up_ns) AS total_ramp_up_ns, sum(ramp_down_ns) AS total_ramp_down_ns, "
	"sum(imbalance_ns) AS total_imbalance_ns, "
	"sum(communication_ns) AS total_communication_ns, "
	"sum(oversubscribed > 0) AS oversubscribed_runs "
	"FROM bubbles "
	"GROUP BY clock = 'device', rank, mode, replica, schedule, stages, microbatches";

static const char execution_sums[] =
	"SELECT rank, mode, epoch, count(*) AS executions, sum(steps) AS steps, "
	"sum(updates) AS updates, count(CASE traced WHEN 1 THEN 1 END) AS traced, "
	"count(CASE traced WHEN 0 THEN 1 END) AS untraced, min(start_ns) AS first_start_ns, "
	"max(start_ns + dur_ns) AS last_end_ns, sum(dur_ns) AS total_ns, "
	"sum(cycles) AS total_cycles FROM executions GROUP BY rank, mode, epoch";

static const char metric_sums[] =
	"SELECT rank, mode, name, step IS NOT NULL AS per_step, count, least, greatest, "
	"epoch AS last_epoch, execution AS last_execution, step AS last_step, "
	"time_ns AS last_time_ns, value AS last_value FROM (SELECT *, "
	"row_number() OVER (alike ORDER BY execution IS NULL DESC, time_ns DESC, epoch DESC) "
	"AS place, count(*) OVER alike AS count, min(value) OVER alike AS least, "
	"max(value) OVER alike AS greatest FROM metrics "
	"WINDOW alike AS (PARTITION BY rank, mode, name, step IS NULL)) WHERE place = 1";

/* With min() SQLite takes the other columns from the row that has the least. */
static const char health_sums[] =
	"SELECT rule, count(*) AS hits, queue, key, layer, stage, phase, rank, mode, epoch, "
	"execution, weight_update, step, microbatch, replica, min(time_ns) AS time_ns, value, "
	"threshold FROM health GROUP BY rank, rule";

static const char overhead_sums[] =
	"SELECT rank, count(*) AS commits, max(time_ns) AS time_ns, sum(events) AS events, "
	"sum(rows) AS rows, sum(bytes) AS bytes, sum(dropped) AS dropped, "
	"sum(record_ns_estimate) AS record_ns_estimate, sum(write_ns) AS write_ns "
	"FROM overhead GROUP BY rank";

#define TENSOR_OUT(name) ", first_" #name ", last_" #name ", least_" #name ", greatest_" #name
#define TENSOR_OF(name)                                                                            \
	", first_value(" #name ") OVER by_time AS first_" #name ", " #name " AS last_" #name       \
	", min(" #name ") OVER alike AS least_" #name ", max(" #name                               \
	") OVER alike AS greatest_" #name
#define TENSOR_COLUMNS PROF_SUM_TENSOR_MAP(TENSOR_OUT)
#define TENSOR_VALUES  PROF_SUM_TENSOR_MAP(TENSOR_OF)

static const char tensor_sums[] =
	"SELECT queue, key, kind, layer, stage, (SELECT shape FROM tensors t "
	"WHERE t.queue IS w.queue AND t.key IS w.key) AS shape, rank, rows, nonfinite_rows, "
	"n_nan, n_pos_inf, n_neg_inf, first_ns, first_mode, first_epoch, first_weight_update, "
	"first_step, time_ns AS last_ns, mode AS last_mode, epoch AS last_epoch, "
	"weight_update AS last_weight_update, step AS last_step" TENSOR_COLUMNS
	" FROM (SELECT queue, key, kind, layer, stage, rank, mode, epoch, weight_update, step, "
	"time_ns, row_number() OVER (alike ORDER BY time_ns DESC) AS place, "
	"count(*) OVER alike AS rows, "
	"sum(n_nan > 0 OR n_pos_inf > 0 OR n_neg_inf > 0) OVER alike AS nonfinite_rows, "
	"sum(n_nan) OVER alike AS n_nan, sum(n_pos_inf) OVER alike AS n_pos_inf, "
	"sum(n_neg_inf) OVER alike AS n_neg_inf, first_value(time_ns) OVER by_time AS first_ns, "
	"first_value(mode) OVER by_time AS first_mode, "
	"first_value(epoch) OVER by_time AS first_epoch, "
	"first_value(weight_update) OVER by_time AS first_weight_update, "
	"first_value(step) OVER by_time AS first_step" TENSOR_VALUES
	" FROM tensor_stats WINDOW alike AS (PARTITION BY rank, queue, key), "
	"by_time AS (alike ORDER BY time_ns)) w WHERE place = 1";

static const struct {
	const char *name, *of_rows;
} sum_views[] = {
	{"stage_sums", stage_sums},         {"bubble_sums", bubble_sums},
	{"execution_sums", execution_sums}, {"metric_sums", metric_sums},
	{"health_sums", health_sums},       {"overhead_sums", overhead_sums},
	{"tensor_sums", tensor_sums},
};

/* ---- rows ------------------------------------------------------------------------------------ */

static int64_t some(struct rng *rng, uint32_t bound)
{
	return rng_below(rng, 8) == 0 ? IPS_NULL : (int64_t)rng_below(rng, bound);
}

/* Of halves, so that sums are exact in any order. */
static double some_real(struct rng *rng)
{
	return rng_below(rng, 8) == 0 ? (double)NAN : (double)rng_below(rng, 64) / 2 - 8;
}

static struct ips_keys some_keys(struct rng *rng, uint32_t replicas)
{
	static const uint8_t modes[] = {IPS_TRAIN, IPS_EVALUATE, IPS_PREDICT, 77};
	static const char phases[] = {'F', 'B', 'W', 'R', 'U', 0, 'x'};
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = modes[rng_below(rng, ARRAY_LEN(modes))];
	keys.phase = phases[rng_below(rng, ARRAY_LEN(phases))];
	keys.replica = some(rng, replicas);
	keys.ipu = some(rng, 4);
	keys.stage = some(rng, 4);
	keys.epoch = some(rng, 3);
	keys.step = some(rng, 100);
	return keys;
}

static void append_timing(struct ips_recording *recording, struct rng *rng, uint32_t replicas)
{
	const struct ips_stage_timing row = {.keys = some_keys(rng, replicas),
					     .clock = rng_below(rng, 2),
					     .start_ns = rng_below(rng, 1000),
					     .dur_ns = rng_below(rng, 1000),
					     .cpu_ns = some(rng, 1000)};

	assert_int_equal(ips_append_stage_timing(recording, &row), 0);
}

static void append_bubble(struct ips_recording *recording, struct rng *rng)
{
	static const char *const schedules[] = {"Grouped", "Interleaved", NULL};
	const struct ips_bubble row = {
		.keys = some_keys(rng, 2),
		.clock = rng_below(rng, 2),
		.schedule = schedules[rng_below(rng, 3)],
		.stages = some(rng, 2),
		.microbatches = some(rng, 2),
		.makespan_ns = some(rng, 1000),
		.busy_ns = some(rng, 1000),
		.idle_fraction = some_real(rng),
		.bubble_rate = some_real(rng),
		.bubble_over_ideal = some_real(rng),
		.theory_idle_fraction = some_real(rng),
		.theory_bubble_rate = some_real(rng),
		.theory_bubble_over_ideal = some_real(rng),
		.ramp_up_ns = some(rng, 1000),
		.ramp_down_ns = some(rng, 1000),
		.imbalance_ns = some(rng, 1000),
		.communication_ns = some(rng, 1000),
		.oversubscribed = some(rng, 2),
	};

	assert_int_equal(ips_append_bubble(recording, &row), 0);
}

static void append_execution(struct ips_recording *recording, struct rng *rng)
{
	const struct ips_execution row = {
		.mode = 1 + rng_below(rng, 4),
		.epoch = some(rng, 5),
		.execution = some(rng, 100),
		.steps = some(rng, 100),
		.updates = some(rng, 100),
		.start_ns = some(rng, 1000),
		.dur_ns = some(rng, 1000),
		.cycles = some(rng, 1000),
		.traced = some(rng, 2),
	};

	assert_int_equal(ips_append_execution(recording, &row), 0);
}

/* No two at one time: of those either may be the last, or the first. */
static void append_metric(struct ips_recording *recording, struct rng *rng, int64_t time_ns)
{
	static const char *const names[] = {"loss", "accuracy", "learning_rate"};
	const struct ips_metric row = {
		1 + rng_below(rng, 2),    some(rng, 3),  some(rng, 9), some(rng, 9), time_ns,
		names[rng_below(rng, 3)], some_real(rng)};

	assert_int_equal(ips_append_metric(recording, &row), 0);
}

static void append_hit(struct ips_recording *recording, struct rng *rng, int64_t time_ns)
{
	static const char *const rules[] = {"nonfinite", "overfit", "dead_activations"};
	struct ips_health row = {.keys = some_keys(rng, 2),
				 .rule = rules[rng_below(rng, 3)],
				 .tensor_id = 1,
				 .time_ns = time_ns,
				 .value = some_real(rng),
				 .threshold = 1};

	assert_int_equal(ips_append_health(recording, &row), 0);
}

static void append_stats(struct ips_recording *recording, struct rng *rng, int64_t time_ns)
{
	const struct ips_tensor_stats row = {.keys = some_keys(rng, 2),
					     .tensor_id = 1 + rng_below(rng, 3),
					     .time_ns = time_ns,
					     .n = 8,
					     .n_nan = some(rng, 2),
					     .n_pos_inf = some(rng, 2),
					     .n_neg_inf = some(rng, 2),
					     .min = some_real(rng),
					     .max = some_real(rng),
					     .mean = some_real(rng),
					     .std = some_real(rng),
					     .l1 = some_real(rng),
					     .l2 = some_real(rng),
					     .abs_min_nonzero = some_real(rng),
					     .abs_max = rng_below(rng, 9) ? some_real(rng)
									  : (double)INFINITY,
					     .inactive = some_real(rng),
					     .update_ratio = (double)NAN};

	assert_int_equal(ips_append_tensor_stats(recording, &row), 0);
}

/* ---- the file's own words -------------------------------------------------------------------- */

/* All that the sums of @path say, read by the library; reals and all. */
static char *sums_of(const char *path)
{
	struct str all = {0};
	struct prof_db *db;

	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(sum_views); i++) {
		struct prof_query *query;
		char sql[96];
		bool row;

		/* Grouped alike, so in the same order. */
		snprintf(sql, sizeof(sql), "SELECT * FROM main.%s ORDER BY 1, 2, 3, 4, 5, 6, 7",
			 sum_views[i].name);
		str_addf(&all, "%s\n", sum_views[i].name);
		assert_int_equal(prof_query_open(&query, db, sql, NULL), ST_OK);
		while (prof_query_step(query, &row, NULL) == ST_OK && row) {
			for (int c = 0; c < prof_column_count(query); c++) {
				const char *text = prof_column_text(query, c);

				if (prof_column_type(query, c) == PROF_REAL)
					str_addf(&all, "|%.15g", prof_column_real(query, c));
				else if (prof_column_type(query, c) == PROF_INT)
					str_addf(&all, "|%lld",
						 (long long)prof_column_int(query, c));
				else
					str_addf(&all, "|%s", text ? text : "-");
			}
			str_add(&all, "\n");
		}
		prof_query_close(query);
	}
	prof_db_close(db);
	assert_false(all.failed);
	return all.text;
}

static void assert_sums_are_those_of_the_rows(const char *path)
{
	char *kept = sums_of(path), *made;

	for (size_t i = 0; i < ARRAY_LEN(sum_views); i++) {
		char sql[8192];

		assert_in_range(snprintf(sql, sizeof(sql), "DROP VIEW %s; CREATE VIEW %s AS %s",
					 sum_views[i].name, sum_views[i].name,
					 sum_views[i].of_rows),
				1, sizeof(sql) - 1);
		prof_change(path, sql);
	}
	made = sums_of(path);
	assert_string_equal(kept, made);
	free(kept);
	free(made);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_sums_are_those_of_the_rows(void **state)
{
	struct prof_place *place = *state;
	struct ips_tensor tensor = {"q", "k", "weight", "l", 1, "(2,)", "float32", NULL, NULL};
	struct ips_recording *recording = prof_start(place, NULL);
	struct rng rng;

	rng_init(&rng, 5, 0, 0, 0);
	assert_int_equal(ips_tensor_add(recording, &tensor), 1);
	for (int64_t i = 2; i <= 3; i++) {
		tensor.key = i == 2 ? "k2" : NULL;
		assert_int_equal(ips_tensor_add(recording, &tensor), i);
	}
	for (int i = 0; i < 3000; i++) {
		const int64_t time_ns = (int64_t)i * 7919 % 3001;

		append_timing(recording, &rng, 3);
		append_bubble(recording, &rng);
		append_execution(recording, &rng);
		append_metric(recording, &rng, time_ns);
		append_hit(recording, &rng, time_ns);
		append_stats(recording, &rng, time_ns);
		if (rng_below(&rng, 400) == 0)
			assert_int_equal(ips_recording_flush(recording), 0);
	}
	prof_stop(recording);
	prof_check_file(place->path);
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM health_sums"), 3);
	assert_int_equal(prof_ask(place->path, "SELECT sum(count) FROM stage_sums"), 3000);
	assert_int_equal(prof_ask(place->path, "SELECT sum(rows) FROM tensor_sums"), 3000);
	assert_sums_are_those_of_the_rows(place->path);
}

/* Some groups are written, forgotten, and begin again. */
static void test_more_groups_than_the_writer_keeps_add_up_too(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct rng rng;

	rng_init(&rng, 6, 0, 0, 0);
	for (unsigned i = 0; i < 4 * PROF_SUM_GROUPS; i++)
		append_timing(recording, &rng, 20);
	prof_stop(recording);
	assert_true(prof_ask(place->path, "SELECT count(*) FROM stage_sum_rows") > PROF_SUM_GROUPS);
	assert_true(prof_ask(place->path, "SELECT count(*) FROM stage_sums") <
		    prof_ask(place->path, "SELECT count(*) FROM stage_sum_rows"));
	assert_sums_are_those_of_the_rows(place->path);
}

static void test_the_last_metric_is_the_epochs_own(void **state)
{
	static const struct {
		int64_t epoch, execution, step, time_ns;
		double value;
	} rows[] = {
		{1, IPS_NULL, IPS_NULL, 10, 1}, {2, 7, 5, 30, 2},
		{2, IPS_NULL, IPS_NULL, 20, 3}, {2, 7, IPS_NULL, 40, 4},
		{IPS_NULL, 9, IPS_NULL, 50, 5},
	};
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct ips_metric row = {IPS_TRAIN,    rows[i].epoch,   rows[i].execution,
					       rows[i].step, rows[i].time_ns, "loss",
					       rows[i].value};

		assert_int_equal(ips_append_metric(recording, &row), 0);
	}
	prof_stop(recording);
	assert_answer(place->path,
		      "SELECT per_step, count, least, greatest, last_epoch, last_execution, "
		      "last_step, last_time_ns, last_value FROM metric_sums ORDER BY 1",
		      "0|4|1.0|5.0|2|-|-|20|3.0\n1|1|2.0|2.0|2|7|5|30|2.0\n");
}

/* Of a run with fit.validation and evaluate: the last value is the evaluation's. */
static void test_an_evaluation_after_the_training_is_later_than_its_epochs(void **state)
{
	static const struct {
		int64_t epoch, time_ns;
		double value;
	} rows[] = {{1, 10, 4}, {2, 20, 3}, {IPS_NULL, 30, 2}};
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct ips_metric row = {IPS_EVALUATE, rows[i].epoch,   IPS_NULL,
					       IPS_NULL,     rows[i].time_ns, "loss",
					       rows[i].value};

		assert_int_equal(ips_append_metric(recording, &row), 0);
	}
	prof_stop(recording);
	assert_answer(place->path, "SELECT last_epoch, last_time_ns, last_value FROM metric_sums",
		      "-|30|2.0\n");
}

static void test_what_no_bubble_knows_is_no_sum(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_bubble row = {.clock = IPS_DEVICE,
				 .keys = IPS_KEYS_NULL,
				 .schedule = "Grouped",
				 .oversubscribed = IPS_NULL};

	assert_int_equal(ips_append_bubble(recording, &row), 0);
	row.clock = IPS_HOST;
	row.oversubscribed = 0;
	assert_int_equal(ips_append_bubble(recording, &row), 0);
	prof_stop(recording);
	assert_answer(place->path,
		      "SELECT clock, oversubscribed_runs FROM bubble_sums ORDER BY clock",
		      "device|-\nhost|0\n");
}

static void test_a_sum_stays_where_it_would_overflow(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	struct ips_stage_timing row = {
		.keys = IPS_KEYS_NULL, .start_ns = 3, .dur_ns = INT64_MAX - 1, .cpu_ns = IPS_NULL};

	assert_int_equal(ips_append_stage_timing(recording, &row), 0);
	assert_int_equal(ips_append_stage_timing(recording, &row), 0);
	row.dur_ns = 1;
	assert_int_equal(ips_append_stage_timing(recording, &row), 0);
	prof_stop(recording);
	assert_answer(place->path,
		      "SELECT count, total_ns, least_ns, greatest_ns, cpu_ns, first_start_ns, "
		      "last_end_ns FROM stage_sums",
		      "3|9223372036854775807|1|9223372036854775806|-|3|4\n");
}

static void test_no_memory_for_a_group_ends_the_recording_with_its_reason(void **state)
{
	struct prof_place *place = *state;
	struct prof_place other;

	/* Some of these allocations are the sums'; the file is whole in any case. */
	for (int nth = 0; nth < 60; nth += (int)support_stride()) {
		struct ips_recording *recording;
		struct rng rng;

		prof_place_make(&other);
		recording = prof_start(&other, NULL);
		rng_init(&rng, 7, 0, 0, 0);
		support_fail_alloc(nth);
		for (int i = 0; i < 20; i++) {
			const struct ips_execution row = {.mode = IPS_TRAIN, .epoch = i};

			(void)ips_append_execution(recording, &row);
		}
		(void)ips_recording_flush(recording);
		support_fail_alloc(-1);
		(void)ips_recording_close(recording, NULL, 0);
		prof_check_file(other.path);
		assert_int_equal(prof_ask(other.path,
					  "SELECT (SELECT count(*) FROM execution_rows) - "
					  "(SELECT coalesce(sum(executions), 0) FROM "
					  "execution_sums)"),
				 0);
		prof_place_remove(&other);
	}
	(void)place;
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, prof_place_setup, prof_place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_sums_are_those_of_the_rows),
		CASE(test_more_groups_than_the_writer_keeps_add_up_too),
		CASE(test_the_last_metric_is_the_epochs_own),
		CASE(test_an_evaluation_after_the_training_is_later_than_its_epochs),
		CASE(test_what_no_bubble_knows_is_no_sum),
		CASE(test_a_sum_stays_where_it_would_overflow),
		CASE(test_no_memory_for_a_group_ends_the_recording_with_its_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
