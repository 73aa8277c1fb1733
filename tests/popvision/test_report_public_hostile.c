/*
 * The public report of databases that somebody damaged, and where memory is short:
 * whatever stands in the file, walking it ends with an answer or an error, and the program tree is
 * one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <ipuscope/report.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "common/mem.h"
#include "common/rng.h"
#include "support/report_sample.h"
#include "support/support.h"

#define ROUNDS   120
#define HEADER   16384 /* of a database: little is left to read where it is damaged */
#define ROWS_MAX 100000

struct sample {
	char folder[SUPPORT_PATH_SIZE], path[SUPPORT_PATH_SIZE + 16];
	char *bytes;
	size_t length;
};

static int make_sample(void **state)
{
	struct sample *sample = calloc(1, sizeof(*sample));

	assert_non_null(sample);
	support_tempdir(sample->folder);
	snprintf(sample->path, sizeof(sample->path), "%s/profile.db", sample->folder);
	report_sample_write(sample->path);
	sample->bytes = support_read_file(sample->path, &sample->length);
	*state = sample;
	return 0;
}

static int remove_sample(void **state)
{
	struct sample *sample = *state;

	support_tempdir_remove(sample->folder);
	free(sample->bytes);
	free(sample);
	return 0;
}

/* ---- walking everything ---------------------------------------------------------------------- */

struct walk {
	int64_t visited, left;
};

static enum ips_report_visit walk_visit(void *user, const struct ips_report_program *program)
{
	struct walk *walk = user;

	walk->visited++;
	assert_true(program->depth >= 0 && program->num_children >= 0);
	return IPS_REPORT_VISIT_ON;
}

static void walk_leave(void *user, const struct ips_report_program *program)
{
	struct walk *walk = user;

	(void)program;
	walk->left++;
}

/* Every program is below exactly one root, whatever their parents are said to be. */
static void walk_programs(struct ips_report *report)
{
	struct walk walk = {0, 0};
	const int64_t count = ips_report_program_count(report);
	const struct ips_report_visitor visitor = {
		.other = walk_visit, .leave = walk_leave, .user = &walk};
	int64_t children = 0, roots = 0;

	if (count < 0)
		return;
	assert_int_equal(ips_report_program_accept(report, IPS_REPORT_NONE, &visitor), 0);
	assert_int_equal(walk.visited, count);
	assert_int_equal(walk.left, count);
	for (int64_t i = 0; i < count; i++) {
		const struct ips_report_program *program = ips_report_program(report, i);

		assert_int_equal(program->index, i);
		children += program->num_children;
		roots += program->parent == IPS_REPORT_NONE;
		assert_true(program->parent < count &&
			    program->operation_index < ips_report_operation_count(report) + 1);
	}
	assert_int_equal(children + roots, count);
}

static void walk_operations(struct ips_report *report)
{
	for (int64_t i = 0; i < ips_report_operation_count(report); i++) {
		const struct ips_report_operation *operation = ips_report_operation(report, i);
		int64_t programs = 0;

		for (int64_t at = operation->first_program; at != IPS_REPORT_NONE;
		     at = ips_report_program(report, at)->next_of_operation)
			programs++;
		assert_int_equal(programs, operation->num_programs);
		for (int64_t v = 0; v < ips_report_variable_count(report); v++)
			(void)ips_report_operation_has_variable(operation,
								ips_report_variable(report, v));
	}
}

static void walk_memory(struct ips_report *report)
{
	const struct ips_report_memory *all = ips_report_ipu_memory(report, IPS_NULL);
	int64_t always, others;

	if (all)
		assert_true(all->num_tiles >= ips_report_tile_count(report));
	for (int64_t ipu = 0; ipu < ips_report_ipu_count(report) && ipu < 4; ipu++)
		for (int64_t tile = 0; tile < ips_report_tile_count(report); tile += 97)
			(void)ips_report_tile_memory(report, ipu, tile);
	(void)ips_report_liveness_peak(report, IPS_NULL);
	for (int64_t i = 0; i < ips_report_liveness_count(report, 0); i++)
		assert_non_null(ips_report_liveness(report, 0, i));
	(void)ips_report_liveness_tile(report, 0, 1, 3, &always, &others, NULL, 0);
}

static void walk_cursors(struct ips_report *report)
{
	struct ips_report_lowered_variables *lowered;
	struct ips_report_steps *steps;
	struct ips_report_spans *spans;
	int64_t rows = 0;

	(void)ips_report_steps_open(report, &steps, NULL, NULL, 0);
	while (rows < ROWS_MAX && ips_report_steps_next(steps))
		rows++;
	(void)ips_report_steps_close(steps);
	(void)ips_report_lowered_variables_open(report, &lowered, IPS_NULL, IPS_NULL, IPS_NULL,
						NULL, 0);
	while (rows < ROWS_MAX && ips_report_lowered_variables_next(lowered))
		rows++;
	(void)ips_report_lowered_variables_close(lowered);
	for (int64_t span = 0; span < 6; span++) {
		(void)ips_report_span_children(report, &spans, span, NULL, 0);
		while (rows < ROWS_MAX && ips_report_spans_next(spans))
			rows++;
		(void)ips_report_spans_close(spans);
	}
	(void)ips_report_spans_open(report, &spans, NULL, NULL, 0);
	while (rows < ROWS_MAX && ips_report_spans_next(spans))
		rows++;
	(void)ips_report_spans_close(spans);
}

/* The status of it all. */
static int walk_all(const char *path)
{
	struct ips_report *report;
	char message[1024];
	int status = ips_report_open(&report, path, message, sizeof(message));

	if (status != 0) {
		assert_null(report);
		assert_true(message[0] != '\0');
		return status;
	}
	(void)ips_report_target(report);
	(void)ips_report_graph(report);
	walk_programs(report);
	walk_operations(report);
	walk_memory(report);
	(void)ips_report_total_cycles(report);
	(void)ips_report_layer_count(report);
	(void)ips_report_track_count(report);
	walk_cursors(report);
	status = ips_report_status(report, message, sizeof(message));
	assert_int_equal(status == 0, message[0] == '\0');
	ips_report_close(report);
	return status;
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void change(const char *path, const char *sql)
{
	char *message = NULL;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", sql, message);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* The sound file with @sql done to it. */
static int walk_after(const struct sample *sample, const char *sql)
{
	support_write_file(sample->path, sample->bytes, sample->length);
	change(sample->path, sql);
	return walk_all(sample->path);
}

static void test_a_sound_file_is_walked(void **state)
{
	assert_int_equal(walk_after(*state, "SELECT 1"), 0);
}

static void test_parents_of_any_kind_make_a_tree(void **state)
{
	static const char *const damages[] = {
		"UPDATE program_rows SET parent_id = program_id",
		"UPDATE program_rows SET parent_id = (program_id + 1) % 3",
		"UPDATE program_rows SET parent_id = 2 - program_id",
		"UPDATE program_rows SET parent_id = 99",
		"UPDATE program_rows SET parent_id = -9223372036854775807, position = NULL",
		"UPDATE program_rows SET parent_id = NULL, position = 0, type = NULL, name = NULL",
		"UPDATE program_rows SET call_target = program_id, type = x'00ff', operation = 7",
		"WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)"
		"INSERT INTO program_rows (program_id, parent_id) SELECT i, i - 1 FROM n",
		"WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
		"INSERT INTO program_rows (program_id, parent_id) "
		"SELECT i, iif(i < 100000, i + 1, 5000) FROM n",
		"WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
		"INSERT INTO program_rows (program_id, parent_id, operation) "
		"SELECT i, 0, 'Dense_128/fwd' FROM n",
	};

	for (size_t i = 0; i < ARRAY_LEN(damages); i++)
		assert_int_equal(walk_after(*state, damages[i]), 0);
}

static void test_absurd_rows_are_survived(void **state)
{
	static const char *const damages[] = {
		"UPDATE operation_rows SET operation = 'x', layer = 'y'",
		"UPDATE operation_rows SET operation = NULL, cycles = 'many', tile_balance = 9e999",
		"UPDATE compute_set_rows SET program_id = 77, vertices = 9223372036854775807",
		"INSERT INTO compute_set_rows (vertices) VALUES (9223372036854775807), (1)",
		"UPDATE variable_rows SET bytes = 'x', always_live = 7, first_program_step = 5",
		"UPDATE variable_rows SET first_program_step = -9223372036854775807, "
		"last_program_step = 9223372036854775807, always_live = 0",
		"UPDATE variable_tile_rows SET variable_id = 77, more_tiles = 9223372036854775807",
		"UPDATE tile_memory_rows SET tile = 1e15, ipu = 4095",
		"UPDATE tile_memory_rows SET tile = -3, ipu = -9223372036854775807",
		"UPDATE tile_memory_rows SET ipu = 4096",
		"UPDATE tile_memory_rows SET tile = 4095, more_tiles = 0; INSERT INTO "
		"tile_memory_rows "
		"(ipu, tile, category_id, region_id, bytes) SELECT ipu, 4096, category_id, "
		"region_id, "
		"bytes FROM tile_memory_rows",
		"UPDATE tile_memory_rows SET bytes = 9223372036854775807, capacity = -1; INSERT "
		"INTO tile_memory_rows (ipu, tile, category_id, region_id, bytes) SELECT ipu, "
		"tile, category_id, NULL, bytes FROM tile_memory_rows",
		"UPDATE tile_memory_rows SET category_id = -1, region_id = -1",
		"UPDATE tile_memory_rows SET more_tiles = 9223372036854775807",
		"UPDATE liveness_rows SET ipu = NULL, always_live_bytes = NULL, program_id = 9",
		"UPDATE liveness_rows SET ipu = -1, program_step = 9223372036854775807",
		"UPDATE execution_rows SET cycles = 9223372036854775807, traced = 'x'",
		"UPDATE execution_rows SET start_ns = 9223372036854775807, dur_ns = 1",
		"UPDATE device_step_rows SET cycles = 'x', program_id = NULL, type_id = -1",
		"UPDATE device_step_rows SET start_cycle = 9223372036854775807",
		"UPDATE device_run_rows SET first_ipu = 9223372036854775807, start_cycle = -1e300",
		"UPDATE device_traces SET clock_hz = 0",
		"UPDATE span_rows SET parent_back = -9223372036854775807",
		"UPDATE span_rows SET depth = 0, track_id = 77, site_id = -1",
		"DELETE FROM track_rows",
		"DELETE FROM contexts",
		"DELETE FROM strings",
		"DELETE FROM meta_facts",
		"UPDATE meta_facts SET value = '-3'",
		"UPDATE meta_facts SET value = '9223372036854775807'",
		"UPDATE meta_facts SET value = NULL",
		"UPDATE meta_facts SET value = '1e300'",
		"UPDATE meta_facts SET value = '-7' WHERE key = 'tiles_per_ipu'",
		"DELETE FROM meta_facts WHERE key = 'architecture'",
	};

	for (size_t i = 0; i < ARRAY_LEN(damages); i++)
		assert_int_equal(walk_after(*state, damages[i]), 0);
}

/* What cannot be added up or nested. */
static void test_what_has_no_answer_is_an_error(void **state)
{
	static const char *const damages[] = {
		"UPDATE variable_tile_rows SET bytes = 9223372036854775807, tile = 3; INSERT INTO "
		"variable_tile_rows (variable_id, ipu, tile, bytes) SELECT variable_id, ipu, tile, "
		"bytes FROM variable_tile_rows",
		"UPDATE span_rows SET depth = 9223372036854775807",
		"UPDATE span_rows SET depth = -5",
	};

	for (size_t i = 0; i < ARRAY_LEN(damages); i++)
		assert_int_equal(walk_after(*state, damages[i]), ST_FORMAT);
}

/* Each table, all of its columns that may be. */
static void test_tables_of_nothing_but_null_are_survived(void **state)
{
	static const char *const tables[][2] = {
		{"layer_rows", "layer = NULL, class = NULL, position = NULL, flops = NULL"},
		{"operation_rows", "operation = NULL, layer = NULL, kind = NULL, phase = NULL"},
		{"program_rows", "parent_id = NULL, position = NULL, type = NULL, name = NULL, "
				 "operation = NULL"},
		{"compute_set_rows", "compute_set = NULL, operation = NULL, program_id = NULL, "
				     "vertices = NULL, mean_cycles = NULL"},
		{"variable_rows", "variable = NULL, kind = NULL, bytes = NULL, ipu = NULL, "
				  "always_live = NULL"},
		{"variable_tile_rows", "variable_id = NULL, ipu = NULL, tile = NULL, bytes = NULL"},
		{"tile_memory_rows", "ipu = NULL, tile = NULL, category_id = NULL, bytes = NULL"},
		{"liveness_rows", "ipu = NULL, program_step = NULL, always_live_bytes = NULL, "
				  "not_always_live_bytes = NULL"},
		{"execution_rows", "execution = NULL, mode = NULL, start_ns = NULL, cycles = NULL"},
		{"device_traces", "clock_hz = NULL"},
		{"device_step_rows", "ipu = NULL, start_cycle = NULL, cycles = NULL, type_id = "
				     "NULL, name_id = NULL, program_id = NULL"},
		{"device_run_rows", "mode = NULL, first_ipu = NULL, start_cycle = NULL"},
		{"span_rows", "dur_ns = NULL, context_id = NULL, parent_back = NULL"},
		{"track_rows", "pid = NULL, tid = NULL, ipu = NULL, parent = NULL"},
	};
	char sql[512];

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		snprintf(sql, sizeof(sql), "UPDATE %s SET %s", tables[i][0], tables[i][1]);
		assert_int_equal(walk_after(*state, sql), 0);
	}
}

/* Memory of a region that this version does not know counts as not interleaved. */
static void test_an_unknown_region_is_not_interleaved(void **state)
{
	const struct sample *sample = *state;
	const struct ips_report_memory *all;
	struct ips_report *report;

	assert_int_equal(walk_after(sample, "UPDATE tile_memory_rows SET region_id = category_id"),
			 0);
	assert_int_equal(ips_report_open(&report, sample->path, NULL, 0), 0);
	all = ips_report_ipu_memory(report, IPS_NULL);
	assert_true(all->total_excluding_gaps > 0);
	assert_int_equal(all->non_interleaved, all->total_excluding_gaps);
	assert_int_equal(all->interleaved, 0);
	ips_report_close(report);
}

/* The sound file with @sql done to it, and nothing walked yet. */
static struct ips_report *open_after(const struct sample *sample, const char *sql)
{
	struct ips_report *report;

	support_write_file(sample->path, sample->bytes, sample->length);
	change(sample->path, sql);
	assert_int_equal(ips_report_open(&report, sample->path, NULL, 0), 0);
	return report;
}

/* No IPUs, or fewer than none, are a number that nobody knows. */
static void test_a_number_that_is_not_above_0_is_unknown(void **state)
{
	struct ips_report *report =
		open_after(*state, "UPDATE meta_facts SET value = '0' WHERE key = 'ipus';"
				   "UPDATE meta_facts SET value = '-2' WHERE key = 'replicas'");

	assert_true(ips_report_target(report)->num_ipus == IPS_NULL);
	assert_true(ips_report_target(report)->num_replicas == IPS_NULL);
	assert_true(ips_report_target(report)->num_tiles == IPS_NULL);
	ips_report_close(report);
}

/* The rows tell the capacity of the tiles 3 and 4; the other 1,470 of the IPU have any. */
static void test_the_capacity_of_an_ipu_is_unknown_with_that_of_a_tile(void **state)
{
	struct ips_report *report =
		open_after(*state, "DELETE FROM meta_facts WHERE key = 'bytes_per_tile'");

	assert_int_equal(ips_report_tile_memory(report, 0, 4)->capacity, 638976);
	assert_true(ips_report_tile_memory(report, 0, 5)->capacity == IPS_NULL);
	assert_true(ips_report_ipu_memory(report, 0)->capacity == IPS_NULL);
	assert_true(ips_report_ipu_memory(report, IPS_NULL)->capacity == IPS_NULL);
	ips_report_close(report);
}

/* 300 categories of a byte each on tile 0: the report has the first 256 of them. */
static void test_categories_that_are_too_many_are_left_out(void **state)
{
	struct ips_report *report = open_after(
		*state,
		"WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE "
		"i < 1299) INSERT INTO strings (string_id, value) SELECT i, 'c' || i FROM n;"
		"INSERT INTO tile_memory_rows (ipu, tile, category_id, bytes) "
		"SELECT 0, 0, string_id, 1 FROM strings WHERE string_id >= 1000");
	const struct ips_report_memory *tile = ips_report_tile_memory(report, 0, 0);

	assert_non_null(tile);
	assert_int_equal(tile->num_categories, 256);
	assert_string_equal(tile->categories[255].name, "c1255");
	assert_int_equal(tile->total_excluding_gaps, 256);
	ips_report_close(report);
}

static void test_of_equal_peaks_the_first_is_told(void **state)
{
	struct ips_report *report = open_after(
		*state,
		"UPDATE liveness_rows SET always_live_bytes = 5, not_always_live_bytes = 7");

	assert_int_equal(ips_report_liveness_peak(report, IPS_NULL)->program_step, 0);
	assert_int_equal(ips_report_liveness_peak(report, 0)->program_step, 0);
	ips_report_close(report);
}

/* On the track of the first span, the next one is no longer within it. */
static void test_a_span_as_deep_as_another_is_no_child(void **state)
{
	struct ips_report *report = open_after(*state, "UPDATE span_rows SET depth = 0");
	struct ips_report_span_filter filter = ips_report_span_filter_all();
	struct ips_report_spans *spans, *children;

	filter.track = 0;
	assert_int_equal(ips_report_spans_open(report, &spans, &filter, NULL, 0), 0);
	assert_int_equal(ips_report_span_children(report, &children,
						  ips_report_spans_next(spans)->span_id, NULL, 0),
			 0);
	assert_non_null(ips_report_spans_next(spans));
	assert_null(ips_report_spans_next(children));
	assert_int_equal(ips_report_spans_close(children), 0);
	assert_int_equal(ips_report_spans_close(spans), 0);
	ips_report_close(report);
}

/* A view that is missing is that of this version; without a table the rest is told all the same. */
static void test_what_is_missing_is_an_error_of_its_list_alone(void **state)
{
	static const char *const missing[] = {
		"VIEW programs",      "VIEW operations",      "VIEW layers",
		"VIEW compute_sets",  "VIEW variables",       "VIEW liveness",
		"VIEW executions",    "VIEW variable_tiles",  "VIEW device_steps",
		"TABLE program_rows", "TABLE operation_rows", "TABLE variable_rows"};
	const size_t views = 9;
	const struct sample *sample = *state;
	struct ips_report *report;
	char sql[64], message[1024];

	for (size_t i = 0; i < ARRAY_LEN(missing); i++) {
		snprintf(sql, sizeof(sql), "DROP %s", missing[i]);
		assert_int_equal(walk_after(sample, sql) != 0, i >= views);
		assert_int_equal(ips_report_open(&report, sample->path, NULL, 0), 0);
		assert_int_equal(ips_report_program_count(report), i == views ? -1 : 3);
		assert_int_equal(ips_report_operation_count(report), i == views + 1 ? -1 : 2);
		assert_int_equal(ips_report_variable_count(report), i == views + 2 ? -1 : 2);
		if (i == views || i == views + 1) {
			assert_int_not_equal(ips_report_status(report, message, sizeof(message)),
					     0);
			assert_non_null(strstr(message, sample->path));
			assert_non_null(strstr(message, strchr(missing[i], ' ') + 1));
		}
		ips_report_close(report);
	}
	assert_int_not_equal(walk_after(sample, "DROP TABLE tile_memory_rows"), 0);
	assert_int_not_equal(walk_after(sample, "DROP TABLE track_rows"), 0);
}

static void test_flipped_bytes_are_survived(void **state)
{
	const struct sample *sample = *state;
	char *damaged = malloc(sample->length);
	int sound = 0;

	assert_non_null(damaged);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		const uint32_t first = round % 10 == 0 ? 0 : HEADER;
		struct rng rng;

		rng_init(&rng, 11, 1, round, 0);
		memcpy(damaged, sample->bytes, sample->length);
		for (int i = 0; i < 1 + (int)rng_below(&rng, 40); i++)
			damaged[first + rng_below(&rng, (uint32_t)sample->length - first)] =
				(char)rng_u32(&rng);
		support_write_file(sample->path, damaged, sample->length);
		sound += walk_all(sample->path) == 0;
	}
	for (size_t length = 0; length < sample->length; length += sample->length / 23) {
		support_write_file(sample->path, sample->bytes, length);
		(void)walk_all(sample->path);
	}
	free(damaged);
	assert_true(sound > 0 && sound < ROUNDS);
}

/* ---- little memory --------------------------------------------------------------------------- */

static void test_short_memory_is_told(void **state)
{
	const struct sample *sample = *state;
	bool failed = true;
	int told = 0;

	support_write_file(sample->path, sample->bytes, sample->length);
	for (long n = 0; failed && n < 10000; n++) {
		int status;

		support_fail_alloc(n);
		status = walk_all(sample->path);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* An arena that gets no large block asks for a small one. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		told += status == ST_NOMEM;
	}
	assert_false(failed);
	assert_true(told > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_sound_file_is_walked),
		cmocka_unit_test(test_parents_of_any_kind_make_a_tree),
		cmocka_unit_test(test_absurd_rows_are_survived),
		cmocka_unit_test(test_what_has_no_answer_is_an_error),
		cmocka_unit_test(test_tables_of_nothing_but_null_are_survived),
		cmocka_unit_test(test_an_unknown_region_is_not_interleaved),
		cmocka_unit_test(test_a_number_that_is_not_above_0_is_unknown),
		cmocka_unit_test(test_the_capacity_of_an_ipu_is_unknown_with_that_of_a_tile),
		cmocka_unit_test(test_categories_that_are_too_many_are_left_out),
		cmocka_unit_test(test_of_equal_peaks_the_first_is_told),
		cmocka_unit_test(test_a_span_as_deep_as_another_is_no_child),
		cmocka_unit_test(test_what_is_missing_is_an_error_of_its_list_alone),
		cmocka_unit_test(test_flipped_bytes_are_survived),
		cmocka_unit_test(test_short_memory_is_told),
	};

	return cmocka_run_group_tests(tests, make_sample, remove_sample);
}
