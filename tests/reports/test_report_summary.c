/*
 * The summary of a run, its numbers checked by hand against report_sample.c.
 */
#include "support/report_sample.h"
#include "support/support.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "reports/table/report_render.h"
#include "reports/summary/report_summary.h"

static char folder[SUPPORT_PATH_SIZE];

static int setup(void **state)
{
	(void)state;
	support_tempdir(folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_tempdir_remove(folder);
	return 0;
}

static void summary_of(struct report_summary *summary, void (*write)(const char *path),
		       const char *name)
{
	char path[SUPPORT_PATH_SIZE + 32];
	struct err err = {0};
	struct prof_db *db;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	write(path);
	if (prof_db_open(&db, path, &err) != ST_OK ||
	    report_summary_get(summary, db, &err) != ST_OK)
		fail_msg("%s", err.text);
	prof_db_close(db);
}

/* Not inlined: GCC 12 takes the address that the stream keeps for a dangling one. */
__attribute__((noinline)) static char *printed(const struct report_summary *summary, int width)
{
	size_t size = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(report_summary_print(summary, width, out, NULL), ST_OK);
	fclose(out);
	return text;
}

static void assert_fits(const char *text, size_t width)
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		if (length > width)
			fail_msg("wider than %zu: %.*s", width, (int)length, text);
		text += length + (text[length] == '\n');
	}
}

static void test_numbers_are_those_of_the_sample(void **state)
{
	struct report_summary s;

	(void)state;
	summary_of(&s, report_sample_write, "full.db");
	assert_string_equal(s.state, "complete");
	assert_string_equal(s.command, "ipu-train sample.json");
	assert_string_equal(s.model, "sequential");
	assert_string_equal(s.schedule, "Grouped");
	assert_string_equal(s.target, "ipu2");
	assert_string_equal(s.cost_model, "planner");
	assert_string_equal(s.dataset, "mnist");
	assert_int_equal(s.batch_size, 32);
	assert_int_equal(s.gradient_accumulation, 4);
	assert_int_equal(s.ipus, 4);
	assert_int_equal(s.replicas, 2);
	assert_int_equal(s.epochs, 1);
	assert_int_equal(s.executions, 2);
	assert_int_equal(s.steps, 8);
	assert_int_equal(s.weight_updates, 2);
	assert_true(s.duration_ns >= 10000000);
	assert_close(s.loss, 2.0, 0); /* the epoch's row, not the last step's */
	assert_close(s.accuracy, 0.75, 0);
	assert_close(s.evaluate_loss, 1.25, 0);
	assert_close(s.evaluate_accuracy, 0.875, 0);
	assert_true(s.oversubscribed);
	assert_int_equal(s.tensors, 2);
	assert_int_equal(s.tensor_rows, 16);
	assert_int_equal(s.health_hits, 3);
	assert_int_equal(s.spans, 6);
	assert_int_equal(s.dropped, 0);
	assert_true(s.database_bytes > 0);
	report_summary_free(&s);
}

static void test_stages_sum_over_microbatches_and_replicas(void **state)
{
	struct report_summary s;

	(void)state;
	summary_of(&s, report_sample_write, "stages.db");
	assert_int_equal(s.stages, 2);
	for (int i = 0; i < 2; i++) {
		const struct report_stage *stage = &s.stage[i];

		assert_int_equal(stage->stage, i);
		assert_int_equal(stage->ipu, i);
		assert_int_equal(stage->count, 16);
		assert_int_equal(stage->forward_ns[0], 16 * (i + 1) * 100000);
		assert_int_equal(stage->backward_ns[0], 16 * (i + 1) * 200000);
		assert_int_equal(stage->update_ns[0], 2 * 50000);
		assert_int_equal(stage->forward_ns[1], 16 * (i + 1) * 10000);
		assert_int_equal(stage->backward_ns[1], 16 * (i + 1) * 20000);
		assert_int_equal(stage->update_ns[1], 2 * 5000);
	}
	assert_string_equal(s.stage[0].layers, "flatten, Dense_128");
	assert_string_equal(s.stage[1].layers, "Dense_10");
	report_summary_free(&s);
}

static void change(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* The writer's thread works beside the run: a second of it is no share of a run of two. */
static void test_own_cost_is_what_the_run_paid(void **state)
{
	struct report_summary s;
	char path[SUPPORT_PATH_SIZE + 32], *text;
	struct prof_db *db;

	(void)state;
	summary_of(&s, report_sample_write, "cost.db");
	report_summary_free(&s);
	snprintf(path, sizeof(path), "%s/cost.db", folder);
	change(path, "UPDATE overhead_sum_rows SET record_ns_estimate = 50000000, "
		     "write_ns = 1000000000, time_ns = 2000000000");
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	assert_int_equal(report_summary_get(&s, db, NULL), ST_OK);
	prof_db_close(db);
	assert_int_equal(s.duration_ns, 2000000000);
	assert_close(s.overhead_fraction, 0.025, 1e-12);
	text = printed(&s, 200);
	assert_contains(text, "2.50 % of the run (50 ms, estimated); writer's thread 1 s");
	free(text);
	report_summary_free(&s);
}

static void test_the_bubble_is_the_mean_by_all_three_definitions(void **state)
{
	struct report_summary s;

	(void)state;
	summary_of(&s, report_sample_write, "bubble.db");
	for (int clock = 0; clock < 2; clock++) {
		const struct report_bubble_mean *b = &s.bubble[clock];

		assert_true(b->known);
		assert_int_equal(b->runs, 2);
		assert_close(b->idle_fraction, 0.375, 1e-12);
		assert_close(b->bubble_rate, 0.3, 1e-12);
		assert_close(b->bubble_over_ideal, 2.0 / 3, 1e-12);
		assert_close(b->theory_idle_fraction, 0.2, 1e-12);
		assert_close(b->theory_bubble_rate, 0.2, 1e-12);
		assert_close(b->theory_bubble_over_ideal, 0.25, 1e-12);
		/* Of 2 IPUs x 1,000 us x 2 updates = 4,000 us; together the idle fraction. */
		assert_close(b->ramp_up, 600.0 / 4000, 1e-12);
		assert_close(b->ramp_down, 400.0 / 4000, 1e-12);
		assert_close(b->imbalance, 350.0 / 4000, 1e-12);
		assert_close(b->communication, 150.0 / 4000, 1e-12);
	}
	report_summary_free(&s);
}

static const struct report_cell *value_of(const struct report_table *table, const char *section,
					  const char *name, const char *clock, int64_t stage)
{
	for (int64_t row = 0; row < table->row_count; row++) {
		const struct report_cell *cells = table->cells + row * table->column_count;

		if (!strcmp(cells[0].text, section) && !strcmp(cells[1].text, name) &&
		    (clock ? cells[2].text && !strcmp(cells[2].text, clock) : !cells[2].text) &&
		    (stage < 0 ? cells[3].type == PROF_NULL : cells[3].integer == stage))
			return &cells[4];
	}
	fail_msg("no row %s %s", section, name);
	return NULL;
}

static void test_health_is_what_broke_first_and_what_was_lowered(void **state)
{
	struct report_table table;
	struct report_summary s;
	char *text;

	(void)state;
	summary_of(&s, report_sample_write, "health.db");
	assert_int_equal(s.rules, 2);
	assert_int_equal(s.broken_count, 2);
	assert_int_equal(s.broken[0].hits + s.broken[1].hits, s.health_hits);
	assert_string_equal(s.broken[1].rule, "nonfinite");
	assert_int_equal(s.broken[1].hits, 2);
	assert_int_equal(s.broken[1].first_ns, 7000000);
	assert_int_equal(s.broken[1].step, 7);
	assert_string_equal(s.broken[0].key, "loss");
	assert_true(s.bad.known);
	assert_string_equal(s.bad.value, "nan");
	assert_string_equal(s.bad.phase, "B");
	assert_int_equal(s.bad.step, 7);
	assert_int_equal(s.bad.element, 17);
	assert_true(s.lowered > 0);
	text = printed(&s, 80);
	assert_contains(text, "Health: 2 rules in force, 2 broken\n");
	assert_contains(text, "  nonfinite              2 hits; first Dense_128");
	assert_contains(text, "  loss_not_decreasing    1 hit; first loss, epoch 1, step 7\n");
	assert_contains(text, "  first bad number       nan in Dense_128");
	assert_contains(text, "[17]\n");
	assert_contains(text, " epoch 1, step 7, stage 0, replica 0, phase B\n");
	assert_contains(text, "  tiers lowered          ");
	free(text);

	assert_int_equal(report_summary_table(&table, &s, NULL), ST_OK);
	assert_int_equal(value_of(&table, "health", "rules_broken", NULL, -1)->integer, 2);
	assert_int_equal(value_of(&table, "health_hits", "nonfinite", NULL, -1)->integer, 2);
	assert_int_equal(value_of(&table, "first_nonfinite", "element", NULL, -1)->integer, 17);
	assert_int_equal(value_of(&table, "first_nonfinite", "step", NULL, -1)->integer, 7);
	report_table_free(&table);
	report_summary_free(&s);
}

static void test_the_text_fits_and_labels_host_and_device(void **state)
{
	struct report_summary s;
	char *text;

	(void)state;
	summary_of(&s, report_sample_write, "text.db");
	text = printed(&s, 80);
	assert_fits(text, 80);
	assert_contains(text, "host, measured");
	assert_contains(text, "device, simulated (planner)");
	assert_contains(text, "oversubscribed");
	assert_contains(text, "bubble                  37.50 %      20.00 %        37.50 %      "
			      "20.00 %");
	assert_contains(text, "bubble_over_ideal       66.67 %      25.00 %");
	assert_contains(text,
			"      0    0       16    1.6 ms   3.2 ms   100 us    160 us   320 us  "
			"  10 us");
	assert_contains(text, "trained    loss 2, accuracy 75.00 %");
	assert_contains(text, "0 dropped");
	assert_contains(text, "own cost");
	free(text);

	for (int width = 1; width < 80; width++) {
		text = printed(&s, width);
		assert_fits(text, width < 8 ? 8 : (size_t)width);
		free(text);
	}
	report_summary_free(&s);
}

/* One stage on one IPU is no pipeline, and has no schedule. */
static void test_a_pipeline_has_several_stages_or_replicas(void **state)
{
	static const struct {
		int64_t stages, replicas;
		const char *line; /* NULL: none */
	} cases[] = {{1, 1, NULL},
		     {2, 1, "pipeline   2 stages on 4 IPUs, 1 replica; schedule Grouped\n"},
		     {1, 2, "pipeline   1 stage on 4 IPUs, 2 replicas; schedule Grouped\n"}};
	struct report_summary s;

	(void)state;
	summary_of(&s, report_sample_write, "one.db");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text;

		s.stages = cases[i].stages;
		s.replicas = cases[i].replicas;
		text = printed(&s, 80);
		if (cases[i].line)
			assert_contains(text, cases[i].line);
		else
			assert_null(strstr(text, "schedule"));
		free(text);
	}
	report_summary_free(&s);
}

static void test_an_empty_database_has_a_summary_without_numbers(void **state)
{
	struct report_summary s;
	char *text;

	(void)state;
	summary_of(&s, report_sample_write_empty, "empty.db");
	assert_string_equal(s.state, "complete");
	assert_null(s.model);
	assert_int_equal(s.stages, 0);
	assert_true(isnan(s.loss));
	assert_false(s.bubble[0].known);
	text = printed(&s, 0);
	assert_fits(text, 80);
	assert_contains(text, "ipu-train sample.json");
	assert_null(strstr(text, "Stages"));
	assert_null(strstr(text, "Bubble"));
	assert_null(strstr(text, "Health"));
	assert_null(strstr(text, "nan"));
	assert_contains(text,
			"none of    spans, executions, stages, bubbles, metrics, statistics\n");
	assert_null(strstr(text, "missing"));
	free(text);
	report_summary_free(&s);
}

static void test_a_killed_run_says_so_and_names_the_remedy(void **state)
{
	struct report_summary s;
	char *text;

	(void)state;
	summary_of(&s, report_sample_write_killed, "killed.db");
	assert_contains(s.state, "killed: the writer died");
	assert_contains(s.state, "killed.db repair");
	assert_int_equal(s.steps, 8);
	assert_int_equal(s.stage[1].forward_ns[0], 3200000);
	assert_int_equal(s.tensor_rows, 16);
	text = printed(&s, 0);
	assert_fits(text, 80);
	assert_contains(text, "killed: the writer died");
	assert_contains(text, "killed.db repair` finishes the file");
	free(text);
	report_summary_free(&s);
}

static char *summary_of_file(const char *path)
{
	struct report_summary s;
	struct prof_db *db;
	char *text;

	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	assert_int_equal(report_summary_get(&s, db, NULL), ST_OK);
	text = printed(&s, 0);
	assert_fits(text, 80);
	report_summary_free(&s);
	prof_db_close(db);
	return text;
}

/* Killed in the middle of an execution, then the same of a full disk, then repaired. */
static void test_what_an_unfinished_file_does_not_say_is_named(void **state)
{
	char path[SUPPORT_PATH_SIZE + 32];
	char *text;

	(void)state;
	snprintf(path, sizeof(path), "%s/unfinished.db", folder);
	report_sample_write_killed(path);
	text = summary_of_file(path);
	assert_contains(text, "what came after the last commit, at ");
	assert_null(strstr(text, "reached"));
	assert_null(strstr(text, "none of"));
	free(text);
	change(path, "DELETE FROM execution_rows; DELETE FROM execution_sum_rows;"
		     "DELETE FROM metric_sum_rows");
	text = summary_of_file(path);
	assert_contains(text, "epoch 1, execution 0, weight update 0, step 3; not ended");
	assert_contains(text, "none of    executions, metrics\n");
	free(text);
	change(path, "INSERT INTO meta_facts VALUES ('failure', 'commit: disk is full')");
	text = summary_of_file(path);
	assert_contains(text, "state      failed: commit: disk is full\n");
	assert_contains(text, "unfinished.db repair` finishes the file");
	assert_null(strstr(text, "killed"));
	free(text);
	change(path, "INSERT OR REPLACE INTO meta_facts VALUES ('state', 'complete'), "
		     "('repaired', '1')");
	text = summary_of_file(path);
	assert_contains(text, "complete (repaired after writing failed: commit: disk is full)\n");
	assert_contains(text, "; not ended");
	free(text);
}

static void test_the_table_has_the_same_numbers(void **state)
{
	struct report_table table;
	struct report_summary s;

	(void)state;
	summary_of(&s, report_sample_write, "table.db");
	assert_int_equal(report_summary_table(&table, &s, NULL), ST_OK);
	assert_string_equal(value_of(&table, "run", "model", NULL, -1)->text, "sequential");
	assert_int_equal(value_of(&table, "stage", "forward_ns", "host", 1)->integer, 3200000);
	assert_int_equal(value_of(&table, "stage", "backward_ns", "device", 0)->integer, 320000);
	assert_close(value_of(&table, "bubble", "idle_fraction", "device", -1)->real, 0.375, 1e-12);
	assert_close(value_of(&table, "train", "loss", NULL, -1)->real, 2.0, 0);
	assert_int_equal(value_of(&table, "recording", "dropped", NULL, -1)->integer, 0);
	report_table_free(&table);
	report_summary_free(&s);
}

static void write_damaged(const char *path)
{
	sqlite3 *db;

	report_sample_write(path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "UPDATE stage_sum_rows SET ipu = 9223372036854775807;"
				      "DELETE FROM meta_facts WHERE key = 'ipus';",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_the_ipus_of_a_damaged_file_are_counted_as_far_as_numbers_go(void **state)
{
	struct report_summary s;

	(void)state;
	summary_of(&s, write_damaged, "damaged.db");
	assert_true(s.stages > 0);
	assert_int_equal(s.ipus, INT64_MAX);
	free(printed(&s, 0));
	report_summary_free(&s);
}

static void test_no_memory_is_reported(void **state)
{
	char path[SUPPORT_PATH_SIZE + 32];
	struct prof_db *db;
	bool failed = true;

	(void)state;
	snprintf(path, sizeof(path), "%s/nomem.db", folder);
	report_sample_write(path);
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	for (long n = 0; failed; n++) {
		struct report_summary s;
		enum status status;

		support_fail_alloc(n);
		status = report_summary_get(&s, db, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* An arena may do with a smaller block. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		report_summary_free(&s);
	}
	prof_db_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_are_those_of_the_sample),
		cmocka_unit_test(test_stages_sum_over_microbatches_and_replicas),
		cmocka_unit_test(test_own_cost_is_what_the_run_paid),
		cmocka_unit_test(test_the_bubble_is_the_mean_by_all_three_definitions),
		cmocka_unit_test(test_health_is_what_broke_first_and_what_was_lowered),
		cmocka_unit_test(test_the_text_fits_and_labels_host_and_device),
		cmocka_unit_test(test_a_pipeline_has_several_stages_or_replicas),
		cmocka_unit_test(test_an_empty_database_has_a_summary_without_numbers),
		cmocka_unit_test(test_a_killed_run_says_so_and_names_the_remedy),
		cmocka_unit_test(test_what_an_unfinished_file_does_not_say_is_named),
		cmocka_unit_test(test_the_table_has_the_same_numbers),
		cmocka_unit_test(test_the_ipus_of_a_damaged_file_are_counted_as_far_as_numbers_go),
		cmocka_unit_test(test_no_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
