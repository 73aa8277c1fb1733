/*
 * The read side: what it opens, what it refuses, how it answers.
 */
#include "support/prof_testing.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "profiler/prof_db_internal.h"
#include "profiler/prof_finish.h"
#include "profiler/prof_guard.h"
#include "profiler/prof_sql.h"

static void refuse(const char *path, enum status status, const char *words)
{
	struct prof_db *db;
	struct err err = {ST_OK, ""};

	assert_int_equal(prof_db_open(&db, path, &err), status);
	assert_null(db);
	assert_contains(err.text, words);
}

static void test_what_is_not_ours_is_refused_in_words(void **state)
{
	struct prof_place *place = *state;
	char other[SUPPORT_PATH_SIZE + 32];

	refuse(place->path, ST_NOTFOUND, place->path);
	refuse(place->folder, ST_NOTFOUND, "profile.db");
	refuse("", ST_INVALID, "no database");
	refuse("/dev/null", ST_FORMAT, "not a file");
	snprintf(other, sizeof(other), "%s/text", place->folder);
	support_write_file(other,
			   "This is no database, whatever its length may be.............\n"
			   "............................................................\n",
			   120);
	refuse(other, ST_FORMAT, "not a recorded database");
	snprintf(other, sizeof(other), "%s/empty", place->folder);
	support_write_file(other, "", 0);
	refuse(other, ST_FORMAT, "is empty");
	prof_stop(prof_start(place, NULL));
	prof_change(place->path, "PRAGMA user_version = 2");
	refuse(place->path, ST_VERSION,
	       "its schema has version 2, and this ipuscope reads version 1");
	prof_change(place->path, "PRAGMA user_version = 0");
	refuse(place->path, ST_VERSION,
	       "its schema has version 0, and this ipuscope reads version 1");
	prof_change(place->path, "PRAGMA user_version = 1; PRAGMA application_id = 7");
	refuse(place->path, ST_FORMAT, "not one of ipuscope");
}

static void test_a_folder_means_the_database_in_it_and_odd_names_work(void **state)
{
	struct prof_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 64];
	struct ips_recording *recording;
	struct prof_db *db;

	snprintf(path, sizeof(path), "%s/profile.db", place->folder);
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	prof_stop(recording);
	assert_int_equal(prof_db_open(&db, place->folder, NULL), ST_OK);
	assert_string_equal(prof_db_path(db), path);
	assert_int_equal(prof_db_state(db), PROF_COMPLETE);
	prof_db_close(db);
	prof_db_close(NULL);
	snprintf(path, sizeof(path), "%s/file:odd?mode=memory#%%41.db", place->folder);
	assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
	prof_stop(recording);
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	prof_db_close(db);
	assert_int_equal(chdir(place->folder), 0);
	assert_int_equal(prof_db_open(&db, "file:odd?mode=memory#%41.db", NULL), ST_OK);
	assert_int_equal(prof_db_state(db), PROF_COMPLETE);
	prof_db_close(db);
	snprintf(path, sizeof(path), "/%s/profile.db", place->folder);
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	prof_db_close(db);
}

static void attach_and_count(struct prof_db *db, const char *path)
{
	struct prof_db *other;
	int64_t count;

	assert_int_equal(prof_db_open(&other, path, NULL), ST_OK);
	assert_int_equal(prof_db_attach(db, other, "other's", NULL), ST_OK);
	assert_int_equal(
		prof_db_number(db, "SELECT count(*) FROM \"other's\".meta_facts", &count, NULL),
		ST_OK);
	assert_true(count > 0);
	prof_db_detach(db, "other's");
	prof_db_close(other);
}

static void test_a_database_of_any_name_can_be_attached(void **state)
{
	static const char *const names[] = {"file:odd?mode=memory#%41.db", "it's 50%?.db",
					    "vfs=none&mode=rw"};
	struct prof_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 64];
	struct ips_recording *recording;
	struct prof_db *db;

	prof_stop(prof_start(place, NULL));
	assert_int_equal(chdir(place->folder), 0);
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "/%s/%s", place->folder, names[i]);
		assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
		prof_stop(recording);
		attach_and_count(db, path);
		attach_and_count(db, names[i]);
	}
	prof_db_close(db);
}

static void test_queries_bind_by_name_and_answer_by_type(void **state)
{
	struct prof_place *place = *state;
	struct prof_query *query;
	struct prof_db *db;
	struct err err;
	size_t size;
	bool row;

	prof_stop(prof_start(place, NULL));
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	assert_int_equal(
		prof_query_open(&query, db, "SELECT :a AS a, :b, :c, NULL AS d, x'0102'", NULL),
		ST_OK);
	prof_query_int(query, ":a", 5);
	prof_query_real(query, ":b", 0.5);
	prof_query_text(query, ":c", "text");
	assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
	assert_true(row);
	assert_int_equal(prof_column_count(query), 5);
	assert_string_equal(prof_column_name(query, 0), "a");
	assert_int_equal(prof_column_type(query, 0), PROF_INT);
	assert_int_equal(prof_column_int(query, 0), 5);
	assert_int_equal(prof_column_type(query, 1), PROF_REAL);
	assert_close(prof_column_real(query, 1), 0.5, 0.0);
	assert_string_equal(prof_column_text(query, 2), "text");
	assert_int_equal(prof_column_type(query, 3), PROF_NULL);
	assert_true(prof_column_int(query, 3) == INT64_MIN);
	assert_true(isnan(prof_column_real(query, 3)));
	assert_null(prof_column_text(query, 3));
	assert_int_equal(prof_column_type(query, 4), PROF_BLOB);
	assert_memory_equal(prof_column_blob(query, 4, &size), "\x01\x02", 2);
	assert_int_equal(size, 2);
	assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
	assert_false(row);
	prof_query_close(query);
	/* from the cache: bindings are gone */
	assert_int_equal(
		prof_query_open(&query, db, "SELECT :a AS a, :b, :c, NULL AS d, x'0102'", NULL),
		ST_OK);
	prof_query_int(query, ":nobody", 1);
	assert_int_equal(prof_query_step(query, &row, &err), ST_INVALID);
	assert_contains(err.text, ":nobody");
	prof_query_close(query);
	assert_int_equal(
		prof_query_open(&query, db, "SELECT :a AS a, :b, :c, NULL AS d, x'0102'", NULL),
		ST_OK);
	assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
	assert_true(prof_column_int(query, 0) == INT64_MIN);
	prof_query_close(query);
	prof_query_close(NULL);
	prof_db_close(db);
}

static void test_rows_come_one_by_one_until_the_last_or_a_failure(void **state)
{
	static const char two[] = "SELECT 3 UNION ALL SELECT 4";
	struct prof_place *place = *state;
	enum status status = ST_OK;
	struct prof_query *query;
	struct prof_db *db;
	int64_t number, sum = 0;

	prof_stop(prof_start(place, NULL));
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	assert_int_equal(prof_query_open(&query, db, two, NULL), ST_OK);
	while (prof_query_next(query, &status, NULL))
		sum += prof_column_int(query, 0);
	assert_int_equal(status, ST_OK);
	assert_int_equal(sum, 7);
	prof_query_close(query);
	assert_int_equal(prof_query_open(&query, db, two, NULL), ST_OK);
	prof_query_int(query, ":nobody", 1);
	assert_false(prof_query_next(query, &status, NULL));
	assert_int_equal(status, ST_INVALID);
	prof_query_close(query);
	assert_false(prof_query_next(NULL, &status, NULL)); /* what could not be opened */
	assert_int_equal(status, ST_INVALID);
	assert_int_equal(prof_db_number(db, two, &number, NULL), ST_OK);
	assert_int_equal(number, 3);
	assert_int_equal(prof_db_number(db, "SELECT NULL", &number, NULL), ST_OK);
	assert_true(number == INT64_MIN);
	assert_int_equal(prof_db_number(db, "SELECT 1 WHERE 0", &number, NULL), ST_OK);
	assert_true(number == INT64_MIN);
	assert_int_not_equal(prof_db_number(db, "SELECT nothing", &number, NULL), ST_OK);
	assert_true(number == INT64_MIN);
	prof_db_close(db);
}

static void test_a_reader_never_writes(void **state)
{
	static const struct {
		const char *sql, *words;
	} cases[] = {
		{"DELETE FROM meta_facts", "reading only"},
		{"CREATE TABLE t (a)", "reading only"},
		{"SELECT 1; SELECT 2", "more than one"},
		{"", "no statement"},
		{"-- nothing", "no statement"},
		{"SELECT nonsense", "no such column"},
		{"SELEC", "syntax error"},
	};
	struct prof_place *place = *state;
	struct prof_query *query;
	struct prof_db *db;
	struct err err;
	bool row;

	prof_stop(prof_start(place, NULL));
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(prof_query_open(&query, db, cases[i].sql, &err), ST_INVALID);
		assert_null(query);
		assert_contains(err.text, cases[i].words);
	}
	/* attaching prepares, but does not run */
	if (prof_query_open(&query, db, "ATTACH 'x.db' AS x", &err) == ST_OK) {
		assert_int_not_equal(prof_query_step(query, &row, &err), ST_OK);
		prof_query_close(query);
	}
	prof_db_close(db);
}

static void test_many_queries_at_once_and_one_after_the_other(void **state)
{
	struct prof_place *place = *state;
	struct prof_query *open[100];
	struct prof_db *db;
	bool row;

	prof_stop(prof_start(place, NULL));
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 100; i++) {
			char sql[64];

			snprintf(sql, sizeof(sql), "SELECT %d", i % 70);
			assert_int_equal(prof_query_open(&open[i], db, sql, NULL), ST_OK);
		}
		for (int i = 0; i < 100; i++) {
			assert_int_equal(prof_query_step(open[i], &row, NULL), ST_OK);
			assert_int_equal(prof_column_int(open[i], 0), i % 70);
			prof_query_close(open[i]);
		}
	}
	prof_db_close(db);
}

static void test_versions_change_with_commits(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	int64_t before;
	struct prof_db *db;
	char value[32];

	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	assert_int_equal(prof_db_state(db), PROF_RECORDING);
	before = prof_db_version(db);
	assert_int_equal(prof_db_version(db), before);
	ips_meta_set(recording, "colour", "blue");
	ips_recording_flush(recording);
	assert_int_not_equal(prof_db_version(db), before);
	assert_true(prof_db_meta(db, "colour", value, sizeof(value)));
	assert_string_equal(value, "blue");
	assert_false(prof_db_meta(db, "taste", value, sizeof(value)));
	prof_db_close(db);
	prof_stop(recording);
}

struct interrupted {
	struct prof_db *db;
	atomic_bool over;
};

/* One before the query begins is lost. */
static void *interrupt_until_over(void *user)
{
	struct interrupted *it = user;

	while (!atomic_load(&it->over)) {
		usleep(5000);
		prof_db_interrupt(it->db);
	}
	return NULL;
}

static void test_a_long_query_can_be_interrupted(void **state)
{
	struct prof_place *place = *state;
	struct interrupted it = {0};
	struct prof_query *query;
	pthread_t thread;
	bool row;

	prof_stop(prof_start(place, NULL));
	assert_int_equal(prof_db_open(&it.db, place->path, NULL), ST_OK);
	assert_int_equal(
		prof_query_open(&query, it.db,
				"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
				"SELECT count(*) FROM n",
				NULL),
		ST_OK);
	assert_int_equal(pthread_create(&thread, NULL, interrupt_until_over, &it), 0);
	assert_int_equal(prof_query_step(query, &row, NULL), ST_INTERRUPTED);
	atomic_store(&it.over, true);
	pthread_join(thread, NULL);
	prof_query_close(query);
	prof_db_close(it.db);
}

/* Those that get indexes. */
static const char indexed_tables[] =
	"CREATE TABLE contexts (context_id INTEGER PRIMARY KEY, weight_update, microbatch);"
	"CREATE TABLE stage_timing_rows (row_id INTEGER PRIMARY KEY, context_id);"
	"CREATE TABLE span_rows (span_id INTEGER PRIMARY KEY, context_id);"
	"CREATE TABLE device_run_rows (row_id INTEGER PRIMARY KEY, weight_update);"
	"CREATE TABLE flow_rows (row_id INTEGER PRIMARY KEY, from_span_id, to_span_id);"
	"CREATE TABLE variable_tile_rows (row_id INTEGER PRIMARY KEY, variable_id)";

/* Numbers of rows tell how large a table is. */
static void test_large_tables_get_their_indexes_where_there_is_time(void **state)
{
	static const struct {
		int last_row, budget_ms, indexes;
		bool all;
	} cases[] = {
		{499999, 0, 0, true},
		{500000, 0, 0, false},
		{500000, 600000, 7, true},
	};
	static const char *const names[] = {"contexts (context_id)", "stage_timing_rows (row_id)",
					    "span_rows (span_id)",   "device_run_rows (row_id)",
					    "flow_rows (row_id)",    "variable_tile_rows (row_id)"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		sqlite3_stmt *count;
		sqlite3 *db;

		assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, indexed_tables, NULL, NULL, NULL), SQLITE_OK);
		for (size_t t = 0; t < ARRAY_LEN(names); t++) {
			char sql[96];

			snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES (%d)", names[t],
				 cases[i].last_row);
			assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
		}
		assert_int_equal(prof_index_build(db, cases[i].budget_ms, NULL, NULL),
				 cases[i].all);
		sqlite3_prepare_v2(db, "SELECT count(*) FROM sqlite_schema WHERE type = 'index'",
				   -1, &count, NULL);
		assert_int_equal(sqlite3_step(count), SQLITE_ROW);
		assert_int_equal(sqlite3_column_int(count, 0), cases[i].indexes);
		sqlite3_finalize(count);
		sqlite3_close(db);
	}
}

static int stop_at_once(void *user)
{
	++*(int *)user;
	return 1;
}

/* So many rows that sorting them is interrupted. */
static void test_an_index_that_is_stopped_is_not_there(void **state)
{
	static const char rows[] =
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) "
		"INSERT INTO flow_rows SELECT 10 * i, i, i FROM n";
	sqlite3_stmt *count;
	int polled = 0;
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, indexed_tables, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, rows, NULL, NULL, NULL), SQLITE_OK);
	assert_false(prof_index_build(db, 600000, stop_at_once, &polled));
	assert_int_equal(polled, 1);
	sqlite3_prepare_v2(db, "SELECT count(*) FROM sqlite_schema WHERE type = 'index'", -1,
			   &count, NULL);
	assert_int_equal(sqlite3_step(count), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(count, 0), 0);
	sqlite3_finalize(count);
	/* Without a stop it can be built all the same. */
	assert_true(prof_index_build(db, 600000, NULL, NULL));
	sqlite3_close(db);
}

/* What the metadata say of who wrote a file. */
static void test_the_origin_of_a_file_is_known(void **state)
{
	static const struct {
		const char *change;
		enum prof_origin origin;
	} rows[] = {
		{"SELECT 1", PROF_FROM_PROGRAM},
		{"REPLACE INTO meta_facts VALUES ('command', 'my-ipu-train')", PROF_FROM_PROGRAM},
		{"REPLACE INTO meta_facts VALUES ('source', 'x')", PROF_FROM_TRACE},
		{"REPLACE INTO meta_facts VALUES ('source', 'x'), ('run', '{}')",
		 PROF_FROM_TRAINER},
		{"REPLACE INTO meta_facts VALUES ('schedule', 'x')", PROF_FROM_TRAINER},
		{"REPLACE INTO meta_facts VALUES ('merge.1.run', '{}')", PROF_FROM_TRAINER},
		{"REPLACE INTO meta_facts VALUES ('command', 'ipu-train x')", PROF_FROM_TRAINER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct prof_place place;
		struct prof_db *db;

		prof_place_make(&place);
		prof_stop(prof_start(&place, NULL));
		prof_change(place.path, rows[i].change);
		assert_int_equal(prof_db_open(&db, place.path, NULL), ST_OK);
		assert_int_equal(prof_db_origin(db), rows[i].origin);
		assert_int_equal(!prof_origin_none(prof_db_origin(db)),
				 rows[i].origin == PROF_FROM_TRAINER);
		prof_db_close(db);
		prof_place_remove(&place);
	}
}

static void test_only_failed_input_and_output_says_what_the_system_said(void **state)
{
	static const struct {
		int code, system;
		enum status status;
		const char *text;
	} cases[] = {
		{SQLITE_BUSY, EACCES, ST_BUSY, "ask: database is locked"},
		{SQLITE_IOERR, 0, ST_IO, "ask: disk I/O error"},
		{SQLITE_IOERR, EACCES, ST_IO, "ask: disk I/O error (Permission denied)"},
		{SQLITE_IOERR_WRITE, ENOSPC, ST_NOSPACE,
		 "ask: disk I/O error (No space left on device)"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err;
		enum status status;

		errno = cases[i].system;
		status = prof_sql_error(NULL, cases[i].code, &err, "ask");
		assert_int_equal(status, cases[i].status);
		assert_string_equal(err.text, cases[i].text);
	}
}

/* A foreign file may hold any view under a name of ours: @view is the file's `meta`. */
static struct prof_db *open_with_meta(const struct prof_place *place, const char *view)
{
	struct prof_db *db;
	struct err err;
	char sql[1024];

	snprintf(sql, sizeof(sql), "DROP VIEW IF EXISTS meta; CREATE VIEW meta AS %s", view);
	prof_change(place->path, sql);
	if (prof_db_open(&db, place->path, &err) != ST_OK)
		fail_msg("%s", err.text);
	return db;
}

/* The statement is ended by a limit, and the next one has limits of its own. */
static void assert_limited(struct prof_db *db, const char *sql)
{
	struct err err;
	int64_t number;

	assert_int_equal(prof_db_number(db, sql, &number, &err), ST_LIMIT);
	assert_contains(err.text, "a query does not end");
	assert_int_equal(prof_db_number(db, "SELECT count(*) FROM tracks", &number, &err), ST_OK);
}

static void test_a_view_without_an_end_is_an_error(void **state)
{
	struct prof_place *place = *state;
	struct prof_db *db;

	prof_stop(prof_start(place, NULL));
	prof_change(place->path,
		    "CREATE VIEW two AS SELECT a.rowid AS x FROM sqlite_schema a, sqlite_schema b;"
		    "CREATE VIEW eight AS SELECT a.x FROM two a, two b, two c, two d");
	db = open_with_meta(place, "SELECT x AS key, x AS value FROM eight");
	/* All steps that a file may take would be ten seconds. */
	assert_true(db->most_steps > 100 && db->most_ns > 0);
	db->most_steps /= 100;
	assert_limited(db, "SELECT count(*) FROM main.meta");
	prof_db_close(db);
}

/* Each row takes few steps and much time. */
static void test_slow_steps_are_limited_as_well(void **state)
{
	struct prof_place *place = *state;
	struct prof_db *db;

	prof_stop(prof_start(place, NULL));
	db = open_with_meta(place,
			    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT "
			    "2000) SELECT x AS key, length(hex(zeroblob(1000000 + x))) AS value "
			    "FROM n");
	db->most_ns = 1000000;
	assert_limited(db, "SELECT sum(value) FROM main.meta");
	prof_db_close(db);
}

/* A report opens a query for each row of another: what the outer one takes is counted on. */
static void test_an_inner_query_leaves_the_limits_of_the_outer_one(void **state)
{
	struct prof_place *place = *state;
	struct prof_query *outer;
	struct prof_db *db;
	enum status status;
	struct err err;
	int64_t rows = 0, number;

	prof_stop(prof_start(place, NULL));
	db = open_with_meta(place, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n "
				   "LIMIT 100000) SELECT x AS key, x AS value FROM n");
	db->most_steps = 100000;
	status = prof_query_open(&outer, db, "SELECT key FROM main.meta", &err);
	for (; prof_query_next(outer, &status, &err); rows++) {
		assert_int_equal(prof_db_number(db, "SELECT 7", &number, NULL), ST_OK);
		assert_int_equal(number, 7);
	}
	assert_int_equal(status, ST_LIMIT);
	assert_contains(err.text, "a query does not end");
	assert_in_range(rows, 100, 99999);
	prof_query_close(outer);
	prof_db_close(db);
}

/* Our reads, by whatever name, are of our views over the tables, not of the views that the file has
 * under their names; nor are those of a user. */
static void test_the_views_are_ours_whatever_the_file_has(void **state)
{
	struct prof_place *place = *state;
	const char *const *names;
	struct prof_query *query;
	struct prof_db *db;
	struct err err;
	size_t count;

	prof_stop(prof_start(place, NULL));
	names = prof_view_names(&count);
	for (size_t i = 0; i < count; i++) {
		char sql[8192], *columns;

		snprintf(sql, sizeof(sql),
			 "SELECT group_concat('''lie'' AS ' || name) FROM "
			 "pragma_table_info('%s')",
			 names[i]);
		columns = prof_ask_all(place->path, sql);
		snprintf(sql, sizeof(sql), "DROP VIEW %s; CREATE VIEW %s AS SELECT %s", names[i],
			 names[i], columns);
		free(columns);
		prof_change(place->path, sql);
	}
	assert_int_equal(prof_db_open(&db, place->path, &err), ST_OK);
	for (int guarded = 0; guarded < 2; guarded++) {
		for (size_t i = 0; i < count; i++) {
			enum status status;
			char sql[128];

			snprintf(sql, sizeof(sql), "SELECT * FROM %s", names[i]);
			status = prof_query_open(&query, db, sql, &err);
			while (prof_query_next(query, &status, &err))
				if (prof_column_type(query, 0) == PROF_TEXT)
					assert_string_not_equal(prof_column_text(query, 0), "lie");
			assert_int_equal(status, ST_OK);
			prof_query_close(query);
		}
		if (!guarded)
			assert_int_equal(prof_db_guard(db, NULL, &err), ST_OK);
	}
	prof_db_close(db);
}

/* What reads our tables by name must not run a view of the file, or the code of a module. */
static void test_only_tables_stand_for_tables(void **state)
{
	static const struct {
		const char *sql, *text;
	} cases[] = {
		{"DROP TABLE meta_facts; CREATE VIEW meta_facts AS SELECT 'state' AS key, "
		 "'complete' AS value",
		 "meta_facts is not a table of recorded values but a view"},
		{"DROP TABLE kernel_rows; CREATE VIRTUAL TABLE kernel_rows USING fts5(span_id)",
		 "kernel_rows is not a table of recorded values but a virtual table"},
		{"DROP TABLE kernel_rows; CREATE VIRTUAL TABLE Kernel_Rows USING rtree(id, a, b)",
		 "kernel_rows is not a table of recorded values but a virtual table"},
		{"DROP TABLE meta_facts; CREATE TABLE META_FACTS (key, value AS (hex(key)))",
		 "meta_facts is not a table of recorded values but a table that computes its "
		 "columns"},
		{"DROP TABLE meta_facts; CREATE TABLE meta_facts (key, value AS (hex(key)) STORED)",
		 "meta_facts is not a table of recorded values but a table that computes its "
		 "columns"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct prof_place *place = *state;
		struct prof_db *db;
		struct err err;

		prof_stop(prof_start(place, NULL));
		prof_change(place->path, cases[i].sql);
		assert_int_equal(prof_db_open(&db, place->path, &err), ST_FORMAT);
		assert_null(db);
		assert_contains(err.text, cases[i].text);
		assert_int_equal(unlink(place->path), 0);
	}
}

/* SQLite allocates some texts only when they are read: the step fails then, not the reader. */
static void test_a_text_without_memory_fails_its_step(void **state)
{
	struct prof_place *place = *state;
	struct prof_query *query;
	enum status status;
	struct prof_db *db;
	char sql[8192];
	struct err err;
	bool row = false, has_text;

	/* 4,000 bytes: SQLite has a few small allocations ready. */
	snprintf(sql, sizeof(sql), "SELECT CAST(x'%0*d' AS TEXT)", 8000, 61);
	prof_stop(prof_start(place, NULL));
	assert_int_equal(prof_db_open(&db, place->path, &err), ST_OK);
	for (int64_t more = 0; !row; more += 64) {
		assert_int_equal(prof_query_open(&query, db, sql, &err), ST_OK);
		sqlite3_hard_heap_limit64(sqlite3_memory_used() + more);
		status = prof_query_step(query, &row, &err);
		has_text = row && prof_column_text(query, 0);
		sqlite3_hard_heap_limit64(0);
		assert_int_equal(row, has_text);
		assert_int_equal(row, status == ST_OK);
		assert_true(more < 100000);
		prof_query_close(query);
	}
	prof_db_close(db);
}

/* A cached statement is prepared anew where the file that it names is another one. */
static void test_a_query_has_the_columns_of_the_file_that_is_attached_now(void **state)
{
	static const struct {
		const char *sql;
		int columns;
		enum prof_type types[3];
	} cases[] = {
		{"CREATE TABLE t AS SELECT 7 AS a", 1, {PROF_INT}},
		{"CREATE TABLE t AS SELECT 'x' AS a, NULL AS b, 0.5 AS c",
		 3,
		 {PROF_TEXT, PROF_NULL, PROF_REAL}},
		{"CREATE TABLE t AS SELECT 0.5 AS a, 7 AS b", 2, {PROF_REAL, PROF_INT}},
	};
	struct prof_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 8];
	struct prof_db *db, *other;
	struct prof_query *query;
	bool row;

	prof_stop(prof_start(place, NULL));
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		snprintf(path, sizeof(path), "%s/%zu.db", place->folder, i);
		prof_change(path, cases[i].sql);
		assert_int_equal(prof_db_open_foreign(&other, path, NULL), ST_OK);
		assert_int_equal(prof_db_attach(db, other, "other", NULL), ST_OK);
		assert_int_equal(prof_query_open(&query, db, "SELECT * FROM other.t", NULL), ST_OK);
		assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
		assert_true(row);
		assert_int_equal(prof_column_count(query), cases[i].columns);
		for (int c = 0; c < cases[i].columns; c++)
			assert_int_equal(prof_column_type(query, c), cases[i].types[c]);
		assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
		assert_false(row);
		assert_int_equal(prof_column_type(query, 0), PROF_NULL);
		prof_query_close(query);
		prof_db_detach(db, "other");
		prof_db_close(other);
	}
	prof_db_close(db);
}

/* Rows that are sorted, each large, are in memory all at once. */
static void test_a_view_that_takes_all_memory_is_an_error(void **state)
{
	struct prof_place *place = *state;
	struct prof_db *db;
	struct err err;
	int64_t number;

	prof_stop(prof_start(place, NULL));
	/* The limit is one of the process, which a program sets. */
	assert_int_equal(sqlite3_hard_heap_limit64(-1), 0);
	db = open_with_meta(place, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n "
				   "LIMIT 2000000) SELECT x AS key, zeroblob(1000000) || x AS "
				   "value FROM n ORDER BY value || x");
	prof_db_close(db);
	assert_int_equal(sqlite3_hard_heap_limit64(-1), 0);
	prof_db_limit_memory();
	sqlite3_memory_highwater(1);
	assert_int_equal(prof_db_open(&db, place->path, &err), ST_OK);
	(void)prof_db_number(db, "SELECT key FROM main.meta ORDER BY value", &number, &err);
	assert_contains(err.text, "of memory (--unlimited lifts the limit)");
	assert_true(sqlite3_memory_highwater(0) < INT64_C(1200) << 20);
	assert_int_equal(prof_db_number(db, "SELECT count(*) FROM tracks", &number, &err), ST_OK);
	prof_db_close(db);
}

/* Later versions add tables, views and columns. In a file without them they are empty or NULL, for
 * our statements and for those of a user; what the file has is kept. */
static void test_what_an_older_file_lacks_is_empty_or_null(void **state)
{
	struct prof_place *place = *state;
	struct prof_db *db;
	const char *const *names;
	struct prof_query *query;
	struct err err;
	size_t count;
	int64_t number;

	prof_stop(prof_start(place, NULL));
	prof_change(
		place->path,
		"INSERT INTO tensor_rows (tensor_id, key, dims) VALUES (1, 'w', 'a');"
		"INSERT INTO overhead_rows (rank, rows, lag_ns) VALUES (0, 7, 8);"
		"INSERT INTO kernel_rows (span_id) VALUES (1), (2);"
		"DROP VIEW critical_path; DROP TABLE critical_rows;"
		"DROP VIEW instant_args; DROP TABLE instant_arg_rows;"
		"DROP VIEW memory_events; DROP TABLE memory_event_rows;"
		"DROP VIEW kernels; DROP VIEW tensors; ALTER TABLE tensor_rows DROP COLUMN dims;"
		"CREATE VIEW tensors AS SELECT queue, key, kind, layer, stage, shape, dtype, "
		"activity FROM tensor_rows;"
		"DROP VIEW overhead; CREATE VIEW overhead AS SELECT rank, time_ns, events, rows, "
		"bytes, dropped, record_ns_estimate, write_ns FROM overhead_rows;"
		"ALTER TABLE overhead_rows DROP COLUMN lag_ns");
	assert_int_equal(prof_db_open(&db, place->path, &err), ST_OK);
	for (int guarded = 0; guarded < 2; guarded++) {
		names = prof_view_names(&count);
		for (size_t i = 0; i < count; i++) {
			char sql[128];

			snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", names[i]);
			if (prof_db_number(db, sql, &number, &err) != ST_OK)
				fail_msg("%s: %s", names[i], err.text);
		}
		assert_int_equal(
			prof_query_open(&query, db,
					"SELECT t.key, t.dims, o.rows, o.lag_ns, r.dims, (SELECT "
					"count(span_id) FROM critical_rows), (SELECT count(*) FROM "
					"kernels) FROM tensors t, overhead o, tensor_rows r WHERE "
					"o.rows = 7",
					&err),
			ST_OK);
		assert_true(prof_query_next(query, &(enum status){ST_OK}, &err));
		assert_string_equal(prof_column_text(query, 0), "w");
		assert_int_equal(prof_column_type(query, 1), PROF_NULL);
		assert_int_equal(prof_column_int(query, 2), 7);
		assert_int_equal(prof_column_type(query, 3), PROF_NULL);
		assert_int_equal(prof_column_type(query, 4), PROF_NULL);
		assert_int_equal(prof_column_int(query, 5), 0);
		assert_int_equal(prof_column_int(query, 6), 2);
		prof_query_close(query);
		if (!guarded)
			assert_int_equal(prof_db_guard(db, NULL, &err), ST_OK);
	}
	prof_db_close(db);
	/* Reading through makes them again. */
	assert_int_equal(prof_db_open(&db, place->path, &err), ST_OK);
	prof_db_read_through(db);
	assert_int_equal(prof_db_number(db, "SELECT count(*) FROM kernels", &number, &err), ST_OK);
	prof_db_close(db);
}

/* SQLite cannot be interrupted within a call. */
static void test_a_call_that_would_take_hours_is_an_error(void **state)
{
	static const char *const hostile[] = {
		"instr(a, b)", "replace(a, b, 'x')", "trim(c, b)", "ltrim(c, b)",
		"rtrim(c, b)", "b LIKE a",           "a GLOB b",   "like(b, a, '!')",
	};
	static const struct {
		const char *sql, *answer;
	} same[] = {
		{"instr('abcabc', 'ca')", "3"},
		{"instr(x'010203', x'03')", "3"},
		{"instr(NULL, 'a') IS NULL", "1"},
		{"replace('a-b-c', '-', '+')", "a+b+c"},
		{"trim('xxaxx', 'x')", "a"},
		{"ltrim('xxaxx', 'x') || rtrim('xxaxx', 'x')", "axxxxa"},
		{"trim('  a ')", "a"},
		{"'Abc' LIKE 'a_C'", "1"},
		{"'a%c' LIKE 'a!%c' ESCAPE '!'", "1"},
		{"'abc' GLOB 'a[b-d]*'", "1"},
		{"typeof(instr('a', 'b'))", "integer"},
		{"nullif(replace('a', 'a', ''), '') IS NULL", "1"},
	};
	struct prof_place *place = *state;
	struct prof_query *query;
	struct prof_db *db;
	struct err err;
	char sql[512];
	bool row;

	prof_stop(prof_start(place, NULL));
	assert_int_equal(prof_db_open(&db, place->path, &err), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		snprintf(sql, sizeof(sql),
			 "SELECT %s FROM (SELECT printf('%%.*c', 4000000, 'a') AS a, "
			 "printf('%%.*c', 30000, 'a') || 'b' AS b, printf('%%.*c', 4000000, 'c') "
			 "AS c)",
			 hostile[i]);
		assert_int_equal(prof_query_open(&query, db, sql, &err), ST_OK);
		if (prof_query_step(query, &row, &err) != ST_INVALID)
			fail_msg("%s: %s", hostile[i], err.text);
		assert_contains(err.text, "takes too long");
		prof_query_close(query);
	}
	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		snprintf(sql, sizeof(sql), "SELECT %s", same[i].sql);
		assert_int_equal(prof_query_open(&query, db, sql, &err), ST_OK);
		if (prof_query_step(query, &row, &err) != ST_OK)
			fail_msg("%s: %s", same[i].sql, err.text);
		assert_string_equal(prof_column_text(query, 0), same[i].answer);
		prof_query_close(query);
	}
	prof_db_close(db);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, prof_place_setup, prof_place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_a_view_that_takes_all_memory_is_an_error),
		CASE(test_a_text_without_memory_fails_its_step),
		CASE(test_a_query_has_the_columns_of_the_file_that_is_attached_now),
		CASE(test_a_call_that_would_take_hours_is_an_error),
		CASE(test_what_is_not_ours_is_refused_in_words),
		CASE(test_a_database_of_any_name_can_be_attached),
		CASE(test_a_folder_means_the_database_in_it_and_odd_names_work),
		CASE(test_queries_bind_by_name_and_answer_by_type),
		CASE(test_rows_come_one_by_one_until_the_last_or_a_failure),
		CASE(test_a_reader_never_writes),
		CASE(test_many_queries_at_once_and_one_after_the_other),
		CASE(test_versions_change_with_commits),
		CASE(test_a_long_query_can_be_interrupted),
		CASE(test_a_view_without_an_end_is_an_error),
		CASE(test_slow_steps_are_limited_as_well),
		CASE(test_an_inner_query_leaves_the_limits_of_the_outer_one),
		CASE(test_the_views_are_ours_whatever_the_file_has),
		CASE(test_only_tables_stand_for_tables),
		CASE(test_what_an_older_file_lacks_is_empty_or_null),
		CASE(test_large_tables_get_their_indexes_where_there_is_time),
		CASE(test_an_index_that_is_stopped_is_not_there),
		CASE(test_the_origin_of_a_file_is_known),
		CASE(test_only_failed_input_and_output_says_what_the_system_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
