/*
 * The guard over statements that people write: whatever they say, no file is made or changed,
 * memory is bounded, and there is a line that says why.
 */
#include "support/prof_testing.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "profiler/prof_guard.h"
#include "support/report_sample.h"

#define MEMORY (INT64_C(32) << 20)

struct guarded {
	struct prof_place place;
	struct prof_db *db;
	int64_t looks, patience; /* of cancelled(): how often it is asked, and when it says yes */
};

static bool cancelled(void *user)
{
	struct guarded *g = user;

	return ++g->looks > g->patience;
}

static void open_guarded(struct guarded *g)
{
	const struct prof_guard_params params = {cancelled, g, MEMORY};

	assert_int_equal(prof_db_open(&g->db, g->place.path, NULL), ST_OK);
	assert_int_equal(prof_db_guard(g->db, &params, NULL), ST_OK);
}

static int setup(void **state)
{
	struct guarded *g = calloc(1, sizeof(*g));

	prof_place_make(&g->place);
	report_sample_write(g->place.path);
	g->patience = INT64_MAX - 1;
	open_guarded(g);
	*state = g;
	return 0;
}

static int teardown(void **state)
{
	struct guarded *g = *state;

	prof_db_close(g->db);
	prof_place_remove(&g->place);
	free(g);
	return 0;
}

/* Run it to its end; the number of rows. */
static enum status run(struct guarded *g, const char *sql, int64_t *rows, struct err *err)
{
	struct prof_query *query;
	bool row = true;
	enum status status = prof_query_open(&query, g->db, sql, err);

	*rows = 0;
	while (status == ST_OK && row) {
		status = prof_query_step(query, &row, err);
		*rows += row;
	}
	prof_query_close(query);
	return status;
}

static int files_in(const char *folder)
{
	DIR *dir = opendir(folder);
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static const char *const hostile[] = {
	"ATTACH 'other.db' AS other",
	"ATTACH ':memory:' AS other",
	"DETACH main",
	"VACUUM",
	"VACUUM INTO 'copy.db'",
	"CREATE TABLE t (a)",
	"CREATE TEMP TABLE t (a)",
	"CREATE TEMP VIEW v AS SELECT 1",
	"CREATE TEMP TRIGGER r INSTEAD OF INSERT ON spans BEGIN SELECT 1; END",
	"CREATE VIRTUAL TABLE temp.f USING fts5(a)",
	"CREATE INDEX i ON span_rows (track_id)",
	"DROP VIEW spans",
	"DROP TABLE span_rows",
	"ALTER TABLE span_rows RENAME TO gone",
	"INSERT INTO spans (name) VALUES ('x')",
	"INSERT INTO metric_rows (rank) VALUES (1)",
	"INSERT OR REPLACE INTO meta_facts VALUES ('state', 'recording')",
	"UPDATE metric_rows SET value = 0",
	"UPDATE sqlite_schema SET sql = ''",
	"DELETE FROM metric_rows",
	"WITH x AS (SELECT 1) DELETE FROM metric_rows",
	"REPLACE INTO meta_facts VALUES ('a', 'b')",
	"EXPLAIN DELETE FROM metric_rows",
	"PRAGMA journal_mode = DELETE",
	"PRAGMA journal_mode",
	"PRAGMA writable_schema = 1",
	"PRAGMA query_only = 0",
	"PRAGMA user_version = 7",
	"PRAGMA application_id = 7",
	"PRAGMA wal_checkpoint(TRUNCATE)",
	"PRAGMA temp_store = FILE",
	"PRAGMA temp_store_directory = '/tmp'",
	"PRAGMA mmap_size = 1",
	"PRAGMA hard_heap_limit = 0",
	"PRAGMA trusted_schema = 1",
	"PRAGMA incremental_vacuum",
	"PRAGMA optimize",
	"SELECT * FROM pragma_journal_mode",
	"SELECT * FROM pragma_wal_checkpoint",
	"BEGIN",
	"BEGIN IMMEDIATE",
	"SAVEPOINT s",
	"COMMIT",
	"ANALYZE",
	"REINDEX",
	"SELECT load_extension('evil.so')",
	"SELECT load_extension('evil.so', 'main')",
	"SELECT writefile('evil', 'text')",
	"SELECT readfile('/etc/passwd')",
	"SELECT edit('text')",
	"SELECT fts3_tokenizer('simple')",
	"SELECT 1; SELECT 2",
	"SELECT 1; DELETE FROM metric_rows",
	"",
	"-- nothing",
	";",
	"SELEC 1",
	"SELECT",
	"SELECT * FROM nowhere",
	"SELECT ((((",
};

static void test_no_statement_writes_and_each_says_why(void **state)
{
	struct guarded *g = *state;
	size_t before_size, after_size;
	char *before = support_read_file(g->place.path, &before_size), *after;
	const int files = files_in(g->place.folder);
	int64_t rows;

	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		struct err err = {ST_OK, ""};

		if (run(g, hostile[i], &rows, &err) != ST_INVALID || err.text[0] == 0)
			fail_msg("%s: status %d: %s", hostile[i], (int)err.status, err.text);
	}
	after = support_read_file(g->place.path, &after_size);
	assert_int_equal(before_size, after_size);
	assert_memory_equal(before, after, before_size);
	assert_int_equal(files_in(g->place.folder), files);
	free(before);
	free(after);
}

static void test_refusals_name_what_was_refused(void **state)
{
	static const struct {
		const char *sql, *words;
	} refusals[] = {
		{"ATTACH 'x' AS y", "ATTACH is not allowed here: only statements that read are"},
		{"CREATE TEMP TABLE t (a)", "what is not in the schema is not allowed"},
		{"SELECT * FROM dbstat", "no such table: dbstat"},
		{"UPDATE metric_rows SET value = 0", "UPDATE is not allowed"},
		{"PRAGMA user_version = 7", "PRAGMA user_version = ... is not allowed"},
		{"SELECT load_extension('x')", "load_extension() is not allowed"},
		{"BEGIN", "a transaction is not allowed"},
		{"SELECT 1; SELECT 2", "more than one statement"},
		{"SELECT * FROM nowhere", "no such table: nowhere"},
	};

	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		struct err err = {ST_OK, ""};
		int64_t rows;

		assert_int_equal(run(*state, refusals[i].sql, &rows, &err), ST_INVALID);
		assert_contains(err.text, refusals[i].words);
	}
}

/* A newer SQLite declares a table of its own at any time, an older one before the guard stands. */
static void test_tables_that_modules_make_are_not_read(void **state)
{
	static const char *const modules[] = {"dbstat", "indexed", "boxes"};
	struct guarded *g = *state;
	struct err err;
	char sql[96];
	int64_t rows;

	prof_db_close(g->db);
	prof_change(g->place.path, "CREATE VIRTUAL TABLE indexed USING fts5(a);"
				   "CREATE VIRTUAL TABLE boxes USING rtree(id, low, high);"
				   "INSERT INTO indexed VALUES ('word');"
				   "INSERT INTO boxes VALUES (1, 2, 3);"
				   "CREATE TABLE own (a); INSERT INTO own VALUES (7);"
				   "CREATE VIEW seen AS SELECT a FROM indexed");
	assert_int_equal(prof_db_open(&g->db, g->place.path, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		snprintf(sql, sizeof(sql), "SELECT * FROM %s", modules[i]);
		assert_int_equal(run(g, sql, &rows, &err), ST_INVALID);
		assert_contains(err.text, "no such");
	}
	assert_int_equal(prof_db_guard(g->db, NULL, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		snprintf(sql, sizeof(sql), "SELECT * FROM %s", modules[i]);
		if (run(g, sql, &rows, NULL) != ST_INVALID)
			fail_msg("%s: read", sql);
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM main.%s", modules[i]);
		if (run(g, sql, &rows, NULL) != ST_INVALID)
			fail_msg("%s: read", sql);
	}
	assert_int_equal(run(g, "SELECT * FROM seen", &rows, NULL), ST_INVALID);
	assert_int_equal(run(g, "SELECT count(*) FROM pragma_journal_mode", &rows, NULL),
			 ST_INVALID);
	/* What somebody put into the file is read like the rest of it. */
	assert_int_equal(run(g, "SELECT a FROM Own", &rows, NULL), ST_OK);
	assert_int_equal(rows, 1);
}

/* However it ends, it ends soon, and with less memory than that. */
static void test_bombs_stay_small(void **state)
{
	static char deep[60000];
	static const char *const bombs[] = {
		"SELECT randomblob(1000000000)",
		"SELECT zeroblob(1000000000)",
		"SELECT hex(zeroblob(8000000))",
		"SELECT replace(hex(zeroblob(1000000)), '0', hex(zeroblob(1000)))",
		"WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) "
		"SELECT n, randomblob(1000000) AS x FROM c ORDER BY x",
		"WITH RECURSIVE c (n, x) AS (SELECT 1, '' UNION "
		"SELECT n + 1, hex(zeroblob(10000)) FROM c) SELECT count(*) FROM c",
		"WITH RECURSIVE c (x) AS (SELECT '1' UNION ALL SELECT x || x FROM c) "
		"SELECT length(x) FROM c",
	};
	int64_t rows;

	sqlite3_memory_highwater(1);
	for (size_t i = 0; i < ARRAY_LEN(bombs); i++) {
		struct err err = {ST_OK, ""};

		if (run(*state, bombs[i], &rows, &err) != ST_LIMIT)
			fail_msg("%s: status %d: %s", bombs[i], (int)err.status, err.text);
	}
	for (size_t i = 0; i + 1 < sizeof(deep); i++)
		deep[i] = i < 7 ? "SELECT "[i] : i < sizeof(deep) / 2 ? '(' : '1';
	assert_int_equal(run(*state, deep, &rows, NULL), ST_INVALID);
	assert_true(sqlite3_memory_highwater(0) < MEMORY + (INT64_C(8) << 20));
	/* SQLite makes nothing of these, or says that it is too much. */
	assert_int_equal(run(*state, "SELECT printf('%*d', 1000000000, 1)", &rows, NULL), ST_OK);
	(void)run(*state, "SELECT printf('%.*c', 100000000, 'x')", &rows, NULL);
	assert_true(sqlite3_memory_highwater(0) < MEMORY + (INT64_C(8) << 20));
	/* It is as good as new after. */
	assert_int_equal(run(*state, "SELECT * FROM metrics", &rows, NULL), ST_OK);
	assert_true(rows > 0);
}

static void test_what_does_not_end_can_be_cancelled(void **state)
{
	static const char *const endless[] = {
		"WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
		"SELECT count(*) FROM c",
		"WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
		"SELECT group_concat(x) FROM c",
		"WITH RECURSIVE c (x) AS (VALUES (1) UNION ALL SELECT (x + 1) % 9 FROM c) "
		"SELECT a.x FROM c a, c b WHERE a.x = 100",
	};
	struct guarded *g = *state;
	int64_t rows;

	for (size_t i = 0; i < ARRAY_LEN(endless); i++) {
		struct err err = {ST_OK, ""};

		g->looks = 0;
		g->patience = 50;
		assert_int_equal(run(g, endless[i], &rows, &err), ST_INTERRUPTED);
		assert_int_equal(g->looks, 51);
	}
}

static void test_reading_of_every_kind_is_allowed(void **state)
{
	static const char *const fine[] = {
		"SELECT 1",
		"VALUES (1, 2), (3, 4)",
		("WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 9) SELECT "
		 "* "
		 "FROM c"),
		"SELECT name, sum(value) OVER (ORDER BY step), row_number() OVER () FROM metrics",
		"SELECT count(*), avg(value), group_concat(name) FROM metrics GROUP BY mode",
		"SELECT upper(name) || printf('%.3f', value) FROM metrics WHERE name LIKE 'l%'",
		"SELECT name FROM sqlite_schema WHERE type = 'view'",
		"SELECT count(*) FROM sqlite_master",
		"SELECT count(*) FROM Metrics",
		"WITH own AS (SELECT 1 AS a) SELECT count(*) FROM own",
		"SELECT count(*) FROM (SELECT step FROM metrics) m, (VALUES (1))",
		"SELECT * FROM pragma_table_info('spans')",
		"SELECT count(*) FROM pragma_table_info('spans')",
		"SELECT m.name, t.name FROM sqlite_schema m, pragma_table_info(m.name) t",
		"SELECT value FROM json_each('[1, 2, 3]')",
		"PRAGMA table_info(spans)",
		"PRAGMA user_version",
		"EXPLAIN QUERY PLAN SELECT * FROM spans",
		"SELECT date('now'), sqrt(2), round(1.5), strftime('%Y', 'now');",
	};
	size_t views;
	const char *const *names = prof_view_names(&views);
	char sql[128];
	int64_t rows;

	for (size_t i = 0; i < ARRAY_LEN(fine); i++) {
		struct err err = {ST_OK, ""};

		if (run(*state, fine[i], &rows, &err) != ST_OK || rows == 0)
			fail_msg("%s: %s", fine[i], err.text);
	}
	for (size_t i = 0; i < views; i++) {
		snprintf(sql, sizeof(sql), "SELECT * FROM %s", names[i]);
		assert_int_equal(run(*state, sql, &rows, NULL), ST_OK);
		assert_true(rows > 0);
	}
}

static void test_the_place_of_a_mistake_is_known(void **state)
{
	struct guarded *g = *state;
	int64_t rows;

	assert_int_equal(run(g, "SELECT valeu FROM metrics", &rows, NULL), ST_INVALID);
	assert_int_equal(prof_db_error_offset(g->db), 7);
	assert_true(prof_query_is_complete("SELECT ';';"));
	assert_false(prof_query_is_complete("SELECT ';'"));
}

static void test_the_bound_on_memory_ends_with_the_handle(void **state)
{
	struct guarded *g = *state;
	const int64_t bound = sqlite3_hard_heap_limit64(-1);

	assert_true(bound > 0);
	prof_db_close(g->db);
	assert_true(sqlite3_hard_heap_limit64(-1) > bound); /* that of our own statements */
	open_guarded(g);
}

static void test_no_memory_for_the_guard_leaves_the_handle_as_it_was(void **state)
{
	struct guarded *g = *state;
	struct err err = {ST_OK, ""};
	enum status status = ST_NOMEM;
	bool failed = true;

	prof_db_close(g->db);
	assert_int_equal(prof_db_open(&g->db, g->place.path, NULL), ST_OK);
	for (long n = 0; failed; n++) {
		support_fail_alloc(n);
		status = prof_db_guard(g->db, NULL, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_no_statement_writes_and_each_says_why),
		TEST(test_refusals_name_what_was_refused),
		TEST(test_tables_that_modules_make_are_not_read),
		TEST(test_bombs_stay_small),
		TEST(test_what_does_not_end_can_be_cancelled),
		TEST(test_reading_of_every_kind_is_allowed),
		TEST(test_the_place_of_a_mistake_is_known),
		TEST(test_the_bound_on_memory_ends_with_the_handle),
		TEST(test_no_memory_for_the_guard_leaves_the_handle_as_it_was),
	};

	prof_db_limit_memory();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
