/*
 * Two runs beside each other: which rows pair up, in which order, and what ends it.
 */
#include "support/report_sample.h"
#include "support/support.h"

#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "profiler/prof_db.h"
#include "reports/diff/report_diff.h"
#include "reports/import/report_import.h"

static char folder[SUPPORT_PATH_SIZE];
static char paths[2][SUPPORT_PATH_SIZE + 32];

/* Two runs that were the same; the tests change the second. */
static int setup(void **state)
{
	(void)state;
	support_tempdir(folder);
	for (int i = 0; i < 2; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%d.db", folder, i);
		report_sample_write(paths[i]);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_tempdir_remove(folder);
	return 0;
}

static void change(int which, const char *sql)
{
	sqlite3 *db;
	char *why = NULL;

	assert_int_equal(sqlite3_open(paths[which], &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s", why);
	sqlite3_close(db);
}

static enum status compare(struct report_diff *diff, const char *sections, struct err *err)
{
	struct prof_db *db[2];
	enum status status;

	for (int i = 0; i < 2; i++)
		assert_int_equal(prof_db_open(&db[i], paths[i], NULL), ST_OK);
	status = report_diff_get(diff, db[0], db[1], sections, err);
	prof_db_close(db[0]);
	prof_db_close(db[1]);
	return status;
}

/* "key name source target" of each row; a run without the key: "none", without a value: "-". */
static void assert_rows(const char *sections, const char *const *expected, size_t count)
{
	struct report_diff diff;
	struct err err = {0};

	if (compare(&diff, sections, &err) != ST_OK)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < diff.count && i < count; i++) {
		const struct report_diff_row *row = &diff.rows[i];
		const struct report_diff_value *values[] = {&row->source, &row->target};
		const bool there[] = {row->in_source, row->in_target};
		char text[256];
		int length = snprintf(text, sizeof(text), "%s %s", row->key, row->name);

		for (int side = 0; side < 2; side++) {
			const struct report_diff_value *value = values[side];

			if (value->known && !value->text)
				length += snprintf(text + length, sizeof(text) - (size_t)length,
						   " %.6g", value->number);
			else
				length += snprintf(text + length, sizeof(text) - (size_t)length,
						   " %s",
						   !there[side]   ? "none"
						   : value->known ? value->text
								  : "-");
		}
		assert_string_equal(text, expected[i]);
	}
	assert_int_equal(diff.count, count);
	report_diff_free(&diff);
}

/* A metric of three evaluations here and two there; one that there is in one run only. */
static void test_keys_of_several_rows_pair_in_their_order(void **state)
{
	static const char *const expected[] = {
		"evaluate loss value 0.5 1.5",   "evaluate loss #2 value - inf",
		"evaluate loss #3 value 3 none", "evaluate acc value 4 4",
		"evaluate a'\"b value none 7",
	};
	static const char make[] = "DELETE FROM metric_rows; "
				   "INSERT OR IGNORE INTO strings VALUES (900, 'loss'), (901, "
				   "'acc'), (902, 'a''\"b');";

	(void)state;
	change(0, make);
	change(1, make);
	change(0, "INSERT INTO metric_rows (rank, mode, time_ns, name_id, value) VALUES "
		  "(0, 'evaluate', 10, 900, 0.5), (0, 'evaluate', 30, 900, 3), "
		  "(0, 'evaluate', 20, 900, NULL), (0, 'evaluate', 40, 901, 4)");
	change(1, "INSERT INTO metric_rows (rank, mode, time_ns, name_id, value) VALUES "
		  "(0, 'evaluate', 5, 902, 7), (0, 'evaluate', 6, 901, 4), "
		  "(0, 'evaluate', 8, 900, 9e999), (0, 'evaluate', 7, 900, 1.5)");
	assert_rows("metrics", expected, ARRAY_LEN(expected));
}

/* An operation without a name and a phase has no key of its own. */
static void test_rows_without_a_key_pair_too(void **state)
{
	struct report_diff diff;
	size_t unnamed = 0;

	(void)state;
	for (int i = 0; i < 2; i++)
		change(i, "INSERT INTO operation_rows (operation, phase, cycles) "
			  "VALUES (NULL, 'F', 7), (NULL, 'F', 8)");
	assert_int_equal(compare(&diff, "operations", NULL), ST_OK);
	for (size_t i = 0; i < diff.count; i++) {
		assert_true(diff.rows[i].in_source && diff.rows[i].in_target);
		assert_true(report_diff_same(&diff.rows[i]));
		unnamed += diff.rows[i].key[0] == '?';
	}
	assert_true(unnamed > 0);
	report_diff_free(&diff);
	for (int i = 0; i < 2; i++)
		change(i, "DELETE FROM operation_rows WHERE operation IS NULL");
}

static void test_a_run_equals_itself_and_stays_as_it_is(void **state)
{
	struct report_diff diff;
	struct prof_db *db, *again;

	(void)state;
	assert_int_equal(prof_db_open(&db, paths[0], NULL), ST_OK);
	assert_int_equal(prof_db_open(&again, paths[0], NULL), ST_OK);
	for (int i = 0; i < 3; i++) {
		int64_t files;

		assert_int_equal(report_diff_get(&diff, db, i == 0 ? db : again, NULL, NULL),
				 ST_OK);
		assert_true(report_diff_equal(&diff));
		assert_true(diff.count > 50);
		report_diff_free(&diff);
		/* Nothing is left attached. */
		assert_int_equal(prof_db_number(db, "SELECT count(*) FROM pragma_database_list",
						&files, NULL),
				 ST_OK);
		assert_int_equal(files, 1);
	}
	assert_int_equal(report_diff_get(&diff, db, NULL, NULL, NULL), ST_BUSY);
	prof_db_close(again);
	prof_db_close(db);
}

static void assert_glance(const char *expected)
{
	char line[REPORT_GLANCE_SIZE];
	struct report_diff diff;

	assert_int_equal(compare(&diff, NULL, NULL), ST_OK);
	assert_string_equal(report_diff_glance(&diff, line), expected);
	report_diff_free(&diff);
}

#define TARGET_TAKES(cycles) "UPDATE execution_rows SET cycles = " #cycles " WHERE mode = 'train';"
#define WEIGHTS(digest)      "INSERT OR REPLACE INTO meta_facts VALUES ('weights_xxh3', '" digest "');"
#define META(key, value)     "INSERT OR REPLACE INTO meta_facts VALUES ('" key "', '" value "');"

/* What one wants to know of two runs first, of every kind of runs. */
static void test_the_line_at_the_top(void **state)
{
	(void)state;
	assert_glance("device as fast, bubble as before, 37.5 %, the same numbers");
	for (int i = 0; i < 2; i++)
		change(i, "UPDATE execution_rows SET cycles = 1000 WHERE mode = 'train';" WEIGHTS(
				  "a") META("schedule", "Grouped"));
	assert_glance("device as fast, bubble as before, 37.5 %, the same weights");
	/* 872 cycles where 1000 were; a fifth of the time with work instead of 62.5 %. */
	change(1, TARGET_TAKES(872)
			  META("schedule", "Interleaved") "UPDATE bubble_sum_rows SET busy_ns = "
							  "all_ns / 5 WHERE clock = 1;");
	assert_glance("Interleaved: device 12.8 % faster, bubble 37.5 to 80.0 %, the same weights");
	change(1, TARGET_TAKES(1250) WEIGHTS("b"));
	assert_glance("Interleaved: device 25.0 % slower, bubble 37.5 to 80.0 %, other weights");
	change(1, TARGET_TAKES(4000) META("schedule", "none"));
	assert_glance("no pipeline: device 4 times slower, bubble 37.5 to 80.0 %, other weights");
	/* Killed: it has no weights at its end. */
	change(1, "DELETE FROM meta_facts WHERE key = 'weights_xxh3';" META("state", "recording")
			  META("schedule", "Grouped") TARGET_TAKES(1000) META("pid", "1")
				  META("process_start", "1"));
	assert_glance("device as fast, bubble 37.5 to 80.0 %, the target was killed, the same "
		      "numbers so far");
	/* Without a device, the host's step and bubble are compared. */
	change(1, "UPDATE execution_rows SET cycles = NULL, dur_ns = dur_ns / 2;"
		  "DELETE FROM bubble_sum_rows WHERE clock = 1;" META("state", "complete"));
	assert_glance("host 2 times faster, no device in the target, bubble as before, 37.5 %, "
		      "the same numbers");
	change(1, "UPDATE layer_rows SET params = params + 1;");
	assert_glance("another model, host 2 times faster, no device in the target, bubble as "
		      "before, 37.5 %, the same numbers");
	/* Traces of other programs know how long they are, and no more. */
	for (int i = 0; i < 2; i++)
		change(i, "DELETE FROM execution_rows; DELETE FROM bubble_sum_rows; DELETE FROM "
			  "layer_rows; DELETE FROM metric_rows; DELETE FROM tensor_stat_rows; "
			  "DELETE FROM capture_rows; DELETE FROM meta_facts WHERE key IN "
			  "('weights_xxh3', 'schedule');");
	/* Those of GPUs may have steps, too. */
	assert_glance("step as fast");
	for (int i = 0; i < 2; i++)
		change(i, "DELETE FROM range_rows;");
	assert_glance("");
	change(0, META("trace_duration_ns", "1000000"));
	change(1, META("trace_duration_ns", "900000"));
	assert_glance("trace 10.0 % faster");
}

#define KERNEL(name)                                                                               \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name                                        \
	"\",\"ts\":1,\"dur\":2,\"args\":{\"device\":0,\"stream\":7}},"

/* The runs become traces of these kernels, each of which takes as long. */
static void assert_kernels(const char *source, const char *target, const char *expected)
{
	const char *const kernels[] = {source, target};
	char json[SUPPORT_PATH_SIZE + 32], trace[512];

	snprintf(json, sizeof(json), "%s/trace.json", folder);
	for (int i = 0; i < 2; i++) {
		const struct report_import_params params = {
			.trace = json, .output = paths[i], .force = true};
		struct report_import_counts counts;
		struct err err = {0};

		snprintf(trace, sizeof(trace), "[%s{}]", kernels[i]);
		support_write_file(json, trace, strlen(trace));
		if (report_import(&params, &counts, &err) != ST_OK)
			fail_msg("%s", err.text);
	}
	assert_glance(expected);
}

static void test_kernels_that_come_and_go_are_counted(void **state)
{
	(void)state;
	assert_kernels(KERNEL("gemm"), KERNEL("gemm") KERNEL("void add<int>(int*)"),
		       "add is new, trace as fast");
	assert_kernels(KERNEL("gemm"), KERNEL("gemm") KERNEL("add") KERNEL("relu"),
		       "2 kernels are new, trace as fast");
	assert_kernels(KERNEL("gemm") KERNEL("add"), KERNEL("gemm"),
		       "1 kernel is gone, trace as fast");
	assert_kernels(KERNEL("gemm") KERNEL("add"), KERNEL("fused"),
		       "fused replaces 2 kernels, trace as fast");
	assert_kernels(KERNEL("gemm"), KERNEL("a") KERNEL("b"),
		       "2 kernels replace 1, trace as fast");
}

static void assert_verdict(const struct report_diff *diff, const char *section, const char *key,
			   const char *expected)
{
	for (size_t i = 0; i < diff->count; i++)
		if (!strcmp(diff->rows[i].section, section) && !strcmp(diff->rows[i].key, key)) {
			assert_string_equal(report_diff_verdict(&diff->rows[i]), expected);
			return;
		}
	fail_msg("no row %s %s", section, key);
}

static void test_each_row_has_a_verdict(void **state)
{
	static const char *const words[] = {"faster",      "slower",     "better", "worse",
					    "changed",     "same",       "equal",  "differs",
					    "only source", "only target"};
	int forms = 0;
	struct report_diff diff;

	(void)state;
	for (int i = 0; i < 2; i++)
		change(i, META("batch_size", "32") META("schedule", "Grouped") META("mine", "x"));
	change(1,
	       META("schedule", "Interleaved") META("theirs", "x") TARGET_TAKES(
		       1) "DELETE FROM meta_facts WHERE key = 'mine';"
			  "UPDATE metric_rows SET value = value + 1 WHERE step IS NULL;"
			  "UPDATE layer_rows SET params = params + 1;"
			  "UPDATE bubble_sum_rows SET all_ns = all_ns * 1000, busy_ns = busy_ns * "
			  "1000 + 1, bubble_rate = 2 * bubble_rate, bubble_over_ideal = "
			  "bubble_over_ideal / 2 WHERE clock = 1;");
	assert_int_equal(compare(&diff, NULL, NULL), ST_OK);
	assert_verdict(&diff, "settings", "batch_size", "same");
	assert_verdict(&diff, "settings", "schedule", "differs");
	assert_verdict(&diff, "settings", "mine", "only source");
	assert_verdict(&diff, "settings", "theirs", "only target");
	assert_verdict(&diff, "totals", "device step", "faster");
	assert_verdict(&diff, "totals", "model", "changed");
	assert_verdict(&diff, "totals", "code", "equal");
	assert_verdict(&diff, "bubbles", "device train replica 0", "same");
	assert_verdict(&diff, "metrics", "train epoch 1 loss", "worse");
	assert_verdict(&diff, "metrics", "evaluate accuracy", "better");
	/* All forms of the bubble have one; the gate looks at the first. */
	for (size_t i = 0; i < diff.count; i++) {
		const struct report_diff_row *row = &diff.rows[i];
		const bool rate = !strcmp(row->name, "bubble_rate");

		if (strcmp(row->key, "device train replica 0") != 0 ||
		    (!rate && strcmp(row->name, "bubble_over_ideal") != 0))
			continue;
		assert_string_equal(report_diff_verdict(row), rate ? "worse" : "better");
		assert_false(report_diff_regressed(row, 0));
		forms++;
	}
	assert_int_equal(forms, 2);
	/* None is without one, and what is said to be alike is what is left out of differences. */
	for (size_t i = 0; i < diff.count; i++) {
		const char *verdict = report_diff_verdict(&diff.rows[i]);
		bool known = false;

		for (size_t w = 0; w < ARRAY_LEN(words); w++)
			known |= strcmp(words[w], verdict) == 0;
		assert_true(known);
		assert_true(report_diff_same(&diff.rows[i]) ==
			    (!strcmp(verdict, "same") || !strcmp(verdict, "equal")));
	}
	report_diff_free(&diff);
	assert_string_equal(report_verdict(1, NAN, REPORT_NS, REPORT_DIFF_LOWER), "slower");
	assert_string_equal(report_verdict(1, INFINITY, REPORT_REAL, REPORT_DIFF_HIGHER), "worse");
	assert_string_equal(report_verdict(NAN, NAN, REPORT_REAL, REPORT_DIFF_LOWER), "equal");
	assert_string_equal(report_verdict(NAN, 1, REPORT_REAL, REPORT_DIFF_LOWER), "changed");
	assert_string_equal(report_verdict(100, 100.2, REPORT_NS, REPORT_DIFF_LOWER), "same");
}

/* The captured values are 0 and 1. */
static void test_captures_of_different_types_compare_by_value(void **state)
{
	struct report_diff diff;

	(void)state;
	change(1, "UPDATE capture_rows SET dtype = 'float16', data = x'0000003c'");
	assert_int_equal(compare(&diff, "tensors", NULL), ST_OK);
	assert_false(diff.part.known);
	report_diff_free(&diff);
	change(1, "UPDATE capture_rows SET data = x'00000040'");
	for (int source = 0; source < 2; source++) {
		if (source == 1)
			change(0, "UPDATE capture_rows SET dtype = 'float16', data = x'0000003c'");
		assert_int_equal(compare(&diff, "tensors", NULL), ST_OK);
		assert_true(diff.part.known);
		assert_string_equal(diff.part.what, "capture");
		assert_int_equal(diff.part.element, 1);
		assert_true(diff.part.source == 1 && diff.part.target == 2);
		report_diff_free(&diff);
	}
}

static atomic_bool enough;

static void *interrupt(void *db)
{
	while (!atomic_load(&enough))
		prof_db_interrupt(db);
	return NULL;
}

static void test_interrupting_the_first_run_ends_it(void **state)
{
	enum status status = ST_OK;
	struct report_diff diff;
	struct prof_db *db[2];
	pthread_t thread;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(prof_db_open(&db[i], paths[i], NULL), ST_OK);
	atomic_store(&enough, false);
	assert_int_equal(pthread_create(&thread, NULL, interrupt, db[0]), 0);
	for (int i = 0; i < 10000 && status == ST_OK; i++) {
		status = report_diff_get(&diff, db[0], db[1], NULL, NULL);
		report_diff_free(&diff);
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	assert_int_equal(status, ST_INTERRUPTED);
	/* The handle is as it was. */
	assert_int_equal(report_diff_get(&diff, db[0], db[1], NULL, NULL), ST_OK);
	report_diff_free(&diff);
	prof_db_close(db[0]);
	prof_db_close(db[1]);
}

static void test_no_memory_is_reported(void **state)
{
	struct prof_db *db[2];
	bool failed = true;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(prof_db_open(&db[i], paths[i], NULL), ST_OK);
	for (long n = 0; failed && n < 100000; n++) {
		struct report_diff diff;
		enum status status;

		support_fail_alloc(n);
		status = report_diff_get(&diff, db[0], db[1], "stages,metrics,spans,tensors", NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		report_diff_free(&diff);
	}
	assert_false(failed);
	prof_db_close(db[0]);
	prof_db_close(db[1]);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_a_run_equals_itself_and_stays_as_it_is),
		EACH(test_interrupting_the_first_run_ends_it),
		EACH(test_no_memory_is_reported),
		EACH(test_rows_without_a_key_pair_too),
		EACH(test_keys_of_several_rows_pair_in_their_order),
		EACH(test_captures_of_different_types_compare_by_value),
		EACH(test_the_line_at_the_top),
		EACH(test_kernels_that_come_and_go_are_counted),
		EACH(test_each_row_has_a_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
