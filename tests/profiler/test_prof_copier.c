/*
 * The write-ahead log of a writer that never pauses, with and without a reader.
 */
#include "support/prof_testing.h"

#include <sqlite3.h>
#include <stdio.h>

#include "profiler/prof_disk.h"

#define COMMIT_PAGES 400  /* 6 MiB, as a busy writer commits at once */
#define LOG_PAGES    8192 /* 128 MiB: the log may grow to, and by one commit beyond */
#define RETRY_PAGES  2048

struct log {
	sqlite3 *db;
	struct prof_copier *copier;
	int pages, restarts;
};

static int on_commit(void *user, sqlite3 *db, const char *schema, int pages)
{
	struct log *log = user;

	(void)db;
	(void)schema;
	log->restarts += pages < log->pages;
	log->pages = pages;
	return SQLITE_OK;
}

static void run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static void start(struct log *log, const struct prof_place *place)
{
	*log = (struct log){NULL, NULL, 0, 0};
	assert_int_equal(sqlite3_open(place->path, &log->db), SQLITE_OK);
	run(log->db, "PRAGMA page_size=16384; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
		     "CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB)");
	sqlite3_wal_autocheckpoint(log->db, 0);
	sqlite3_wal_hook(log->db, on_commit, log);
	log->copier = prof_copier_new(place->path);
	assert_non_null(log->copier);
	run(log->db, "BEGIN IMMEDIATE");
}

/* As the writer does it: the next transaction is open before the copier has ended. */
static void commit(struct log *log)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "REPLACE INTO t VALUES (1, zeroblob(%d)); COMMIT",
		 COMMIT_PAGES * 16384);
	run(log->db, sql);
	prof_copier_run(log->copier, log->db, log->pages);
	run(log->db, "BEGIN IMMEDIATE");
}

static void stop(struct log *log)
{
	run(log->db, "COMMIT");
	prof_copier_free(log->copier);
	assert_int_equal(sqlite3_close(log->db), SQLITE_OK);
}

static void test_the_log_of_a_writer_that_never_pauses_is_bounded(void **state)
{
	struct log log;

	start(&log, *state);
	for (int i = 0; i < 3 * LOG_PAGES / COMMIT_PAGES; i++) {
		commit(&log);
		assert_in_range(log.pages, 0, LOG_PAGES + 2 * COMMIT_PAGES);
	}
	assert_true(log.restarts >= 2);
	stop(&log);
}

static void test_the_log_restarts_soon_after_a_reader_that_stayed(void **state)
{
	struct prof_place *place = *state;
	struct sqlite3 *reader;
	struct log log;
	int kept;

	start(&log, place);
	commit(&log);
	reader = prof_reader_open(place->path);
	run(reader, "BEGIN; SELECT count(*) FROM t");
	while (log.pages < LOG_PAGES + RETRY_PAGES)
		commit(&log);
	kept = log.pages;
	assert_int_equal(log.restarts, 0);
	run(reader, "COMMIT");
	while (log.restarts == 0 && log.pages <= kept + 2 * RETRY_PAGES)
		commit(&log);
	assert_int_equal(log.restarts, 1);
	sqlite3_close(reader);
	stop(&log);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, prof_place_setup, prof_place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_the_log_of_a_writer_that_never_pauses_is_bounded),
		CASE(test_the_log_restarts_soon_after_a_reader_that_stayed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
