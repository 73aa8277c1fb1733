/*
 * Every view of the contract, through all three formats, of complete, empty and killed files.
 */
#include "support/report_sample.h"
#include "support/support.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "ipuscope/profiler.h"
#include "reports/report_registry.h"
#include "reports/table/report_table.h"
#include "reports/table/report_views.h"

enum {
	FULL,
	EMPTY,
	KILLED,
	FILES
};

static char folder[SUPPORT_PATH_SIZE];
static char files[FILES][SUPPORT_PATH_SIZE + 32];

static int setup(void **state)
{
	static const char *const names[] = {"full.db", "empty.db", "killed.db"};
	static void (*const write[])(const char *path) = {
		report_sample_write, report_sample_write_empty, report_sample_write_killed};

	(void)state;
	support_tempdir(folder);
	for (int i = 0; i < FILES; i++) {
		snprintf(files[i], sizeof(files[i]), "%s/%s", folder, names[i]);
		write[i](files[i]);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	support_tempdir_remove(folder);
	return 0;
}

static struct prof_db *opened(int file)
{
	struct prof_db *db;
	struct err err = {0};

	if (prof_db_open(&db, files[file], &err) != ST_OK)
		fail_msg("%s", err.text);
	return db;
}

static char *view_text(struct prof_db *db, const char *name, enum report_format format,
		       int64_t limit)
{
	const struct report_entry *entry;
	struct report_request request = {
		.db = db, .limit = limit, .render = {.format = format, .width = 80, .tool = "t"}};
	struct err err = {0};
	char word[128];
	size_t size = 0;
	char *out = NULL;

	snprintf(word, sizeof(word), "view:%s", name);
	assert_int_equal(report_entry_find(&entry, word, NULL), ST_OK);
	request.out = open_memstream(&out, &size);
	if (entry->run(entry, &request, &err) != ST_OK)
		fail_msg("%s: %s", name, err.text);
	fclose(request.out);
	return out;
}

static int64_t view_rows(struct prof_db *db, const char *name)
{
	struct report_table table;
	struct err err = {0};
	int64_t rows;

	if (report_table_view(&table, db, name, 0, &err) != ST_OK)
		fail_msg("%s: %s", name, err.text);
	rows = table.row_count;
	report_table_free(&table);
	return rows;
}

static void test_the_table_of_views_is_the_contract(void **state)
{
	const char *const *names;
	int count;
	size_t contract;
	const struct report_view *views = report_views(&count);

	(void)state;
	names = prof_view_names(&contract);
	assert_int_equal(count, contract);
	for (size_t i = 0; i < contract; i++)
		assert_string_equal(views[i].name, names[i]);
}

static int lines_of(const char *text)
{
	int lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static void test_every_view_renders_in_all_three_formats(void **state)
{
	const struct report_view *views;
	int count;

	(void)state;
	views = report_views(&count);
	for (int file = 0; file < FILES; file++) {
		struct prof_db *db = opened(file);

		for (int i = 0; i < count; i++) {
			int64_t rows = view_rows(db, views[i].name);
			char *out = view_text(db, views[i].name, REPORT_AS_JSON, 0);
			cJSON *root = cJSON_Parse(out);

			/* Launches are linked at the end, and the critical path is found then. */
			if (file != EMPTY && !rows &&
			    (file == FULL || (strcmp(views[i].name, "launches") != 0 &&
					      strcmp(views[i].name, "critical_path") != 0)))
				fail_msg("the sample has no rows in %s", views[i].name);
			assert_non_null(root);
			assert_string_equal(cJSON_GetObjectItem(root, "report")->valuestring,
					    views[i].name);
			assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "rows")),
					 rows);
			cJSON_Delete(root);
			free(out);

			out = view_text(db, views[i].name, REPORT_AS_CSV, 0);
			assert_int_equal(lines_of(out), rows + 1);
			free(out);

			out = view_text(db, views[i].name, REPORT_AS_TEXT, 0);
			assert_true(lines_of(out) >= 3);
			for (const char *line = out; *line;) {
				size_t length = strcspn(line, "\n");

				if (length > 80)
					fail_msg("%s is wider than 80 columns:\n%s", views[i].name,
						 out);
				line += length + (line[length] == '\n');
			}
			free(out);
		}
		prof_db_close(db);
	}
}

/* Read at once, and a row at a time: the same bytes. */
static void test_streaming_equals_rendering_a_table(void **state)
{
	static const enum report_format formats[] = {REPORT_AS_CSV, REPORT_AS_JSON};
	struct prof_db *db = opened(FULL);
	const struct report_view *views;
	int count;

	(void)state;
	views = report_views(&count);
	for (int i = 0; i < count; i++) {
		for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
			struct report_render_params params = {.format = formats[f], .tool = "t"};
			char *streamed = view_text(db, views[i].name, formats[f], 0), *whole = NULL;
			struct report_table table;
			size_t size = 0;
			FILE *out = open_memstream(&whole, &size);

			assert_int_equal(report_table_view(&table, db, views[i].name, 0, NULL),
					 ST_OK);
			assert_int_equal(report_render(&table, &params, out, NULL), ST_OK);
			fclose(out);
			assert_string_equal(streamed, whole);
			report_table_free(&table);
			free(streamed);
			free(whole);
		}
	}
	prof_db_close(db);
}

static void test_a_limit_is_said(void **state)
{
	struct prof_db *db = opened(FULL);
	struct report_table table;
	char *out;
	cJSON *root;

	(void)state;
	assert_int_equal(report_table_view(&table, db, "stage_timings", 7, NULL), ST_OK);
	assert_int_equal(table.row_count, 7);
	assert_string_equal(table.note, "7 rows of 136");
	report_table_free(&table);

	assert_int_equal(report_table_query(&table, db, "q", "SELECT * FROM metrics", 2, NULL),
			 ST_OK);
	assert_string_equal(table.note, "the first 2 rows; there are more");
	report_table_free(&table);

	assert_int_equal(report_table_view(&table, db, "metrics", 6, NULL), ST_OK);
	assert_int_equal(table.row_count, 6);
	assert_null(table.note);
	report_table_free(&table);

	out = view_text(db, "metrics", REPORT_AS_CSV, 2);
	assert_int_equal(lines_of(out), 3);
	free(out);
	out = view_text(db, "metrics", REPORT_AS_JSON, 2);
	root = cJSON_Parse(out);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "rows")), 2);
	assert_non_null(cJSON_GetObjectItem(root, "note"));
	cJSON_Delete(root);
	free(out);
	prof_db_close(db);
}

static void test_an_unknown_view_names_the_nearest(void **state)
{
	struct prof_db *db = opened(FULL);
	const struct report_entry *entry;
	struct report_table table;
	struct err err = {0};

	(void)state;
	assert_int_equal(report_table_view(&table, db, "stage_timing", 0, &err), ST_NOTFOUND);
	assert_string_equal(err.text,
			    "unknown view \"stage_timing\" (did you mean \"stage_timings\"?)");
	report_table_free(&table); /* accepts a zeroed table */
	assert_int_equal(report_entry_find(&entry, "sumary", &err), ST_NOTFOUND);
	assert_contains(err.text, "did you mean \"summary\"?");
	assert_null(entry);
	prof_db_close(db);
}

/* Many rows in a file that is still being written: read in several transactions, none twice, none
 * left out, whether the view has a key (spans) or is counted (instants). */
static void test_a_growing_file_is_streamed_in_slices(void **state)
{
	enum {
		ROWS = 10000
	};
	IPS_SITE(site, "test", "row");
	char path[SUPPORT_PATH_SIZE + 32];
	struct ips_recording *recording;
	struct ips_track *track;
	struct prof_db *db;

	(void)state;
	snprintf(path, sizeof(path), "%s/live.db", folder);
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	track = ips_track_open(recording, "test", NULL);
	for (int i = 0; i < ROWS; i++) {
		ips_span_begin(track, &site);
		ips_instant(track, &site);
		ips_span_end(track);
	}
	assert_int_equal(ips_recording_flush(recording), 0);
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	assert_true(prof_db_writer_alive(db));

	for (int view = 0; view < 2; view++) {
		char *out = view_text(db, view ? "instants" : "spans", REPORT_AS_CSV, 0);

		assert_int_equal(lines_of(out), ROWS + 1);
		free(out);
		out = view_text(db, view ? "instants" : "spans", REPORT_AS_CSV, 5000);
		assert_int_equal(lines_of(out), 5000 + 1);
		free(out);
	}
	prof_db_close(db);
	assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
}

static const struct {
	const char *sql;
	enum report_quantity quantity;
} quantities[] = {
	{"SELECT dur_ns FROM spans", REPORT_NS},
	{"SELECT sum(dur_ns) FROM spans", REPORT_NS},
	{"SELECT avg(s.dur_ns) FROM spans s", REPORT_NS},
	{"SELECT start_ns FROM spans", REPORT_COUNT},
	{"SELECT count(*) FROM spans", REPORT_COUNT},
	{"SELECT count(dur_ns) FROM spans", REPORT_COUNT},
	{"SELECT bytes FROM variables", REPORT_BYTES},
	{"SELECT max(always_live_bytes) FROM liveness", REPORT_BYTES},
	{"SELECT cycles FROM operations", REPORT_CYCLES},
	{"SELECT idle_fraction FROM bubbles", REPORT_FRACTION},
	{"SELECT theory_bubble_rate FROM bubbles", REPORT_FRACTION},
	{"SELECT tile_balance FROM operations", REPORT_FRACTION},
	{"SELECT always_live FROM variables", REPORT_BOOL},
	{"SELECT step FROM metrics WHERE step IS NOT NULL", REPORT_NUMBER},
	{"SELECT span_id FROM spans", REPORT_NUMBER},
	{"SELECT mean FROM tensor_stats", REPORT_REAL},
	{"SELECT key FROM meta", REPORT_TEXT},
	{"SELECT 'x' AS dur_ns", REPORT_TEXT},
	{"SELECT data FROM captures", REPORT_BYTES},
};

static void test_quantities_follow_names_then_types(void **state)
{
	struct prof_db *db = opened(FULL);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(quantities); i++) {
		struct report_table table;

		assert_int_equal(report_table_query(&table, db, "q", quantities[i].sql, 0, NULL),
				 ST_OK);
		if (table.columns[0].quantity != quantities[i].quantity)
			fail_msg("%s: quantity %d", quantities[i].sql,
				 (int)table.columns[0].quantity);
		report_table_free(&table);
	}
	prof_db_close(db);
}

static void test_broken_sql_is_an_error(void **state)
{
	struct prof_db *db = opened(FULL);
	struct report_table table;
	struct err err = {0};

	(void)state;
	assert_int_not_equal(report_table_query(&table, db, "q", "SELECT a FROM nowhere", 0, &err),
			     ST_OK);
	assert_contains(err.text, "nowhere");
	prof_db_close(db);
}

static void test_no_memory_is_reported(void **state)
{
	struct prof_db *db = opened(FULL);
	bool failed = true;

	(void)state;
	for (long n = 0; failed; n++) {
		struct report_table table;
		enum status status;

		support_fail_alloc(n);
		status = report_table_view(&table, db, "metrics", 3, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		/* An arena may do with a smaller block. */
		assert_true(status == ST_OK || (failed && status == ST_NOMEM));
		report_table_free(&table);
	}
	prof_db_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_table_of_views_is_the_contract),
		cmocka_unit_test(test_every_view_renders_in_all_three_formats),
		cmocka_unit_test(test_streaming_equals_rendering_a_table),
		cmocka_unit_test(test_a_limit_is_said),
		cmocka_unit_test(test_a_growing_file_is_streamed_in_slices),
		cmocka_unit_test(test_an_unknown_view_names_the_nearest),
		cmocka_unit_test(test_quantities_follow_names_then_types),
		cmocka_unit_test(test_broken_sql_is_an_error),
		cmocka_unit_test(test_no_memory_is_reported),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
