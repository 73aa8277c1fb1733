/*
 * Rows that a thread reads ahead: they are those that are read without it, whatever becomes of the
 * reader or of who asks.
 */
#include "support/prof_testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/prof_db.h"

/* Integers as far as they go, and one of everything else now and then, of all lengths. */
#define MIXED                                                                                      \
	"WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT "  \
	"i, i * -3074457345618258, CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN i || ' and more' "      \
	"WHEN 2 THEN i / 8.0 WHEN 3 THEN zeroblob(i) WHEN 4 THEN '' WHEN 5 THEN x'' ELSE i END, "  \
	"CASE WHEN i % 500 = 1 THEN printf('%.*c', 100000, 'x') END FROM n"
/* Fails at its row 1000. */
#define FAILS                                                                                      \
	"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "         \
	"SELECT abs(-9223372036854775807 - (i = 1000)) FROM n"
#define ENDLESS                                                                                    \
	"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE "

static struct prof_db *open_place(const struct prof_place *place)
{
	struct prof_db *db;

	prof_stop(prof_start(place, NULL));
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	return db;
}

static struct prof_query *start(struct prof_db *db, const char *sql, bool ahead)
{
	struct prof_query *query;

	assert_int_equal(prof_query_open(&query, db, sql, NULL), ST_OK);
	if (ahead)
		assert_int_equal(prof_query_ahead(query, NULL), ST_OK);
	return query;
}

static void compare_row(const struct prof_query *a, const struct prof_query *b)
{
	for (int i = 0; i < prof_column_count(a); i++) {
		const double x = prof_column_real(a, i), y = prof_column_real(b, i);
		const void *p, *q;
		size_t m, n;

		assert_int_equal(prof_column_type(a, i), prof_column_type(b, i));
		assert_true(prof_column_int(a, i) == prof_column_int(b, i));
		assert_true(x == y || (isnan(x) && isnan(y)));
		p = prof_column_blob(a, i, &m);
		q = prof_column_blob(b, i, &n);
		assert_int_equal(m, n);
		assert_true(m == 0 || memcmp(p, q, m) == 0);
		if (prof_column_type(a, i) == PROF_NULL)
			assert_null(prof_column_text(b, i));
		else
			assert_string_equal(prof_column_text(a, i), prof_column_text(b, i));
	}
}

static void test_rows_are_those_that_are_read_without_a_thread(void **state)
{
	struct prof_db *db = open_place(*state), *other;
	const char *const sql[] = {MIXED, MIXED " WHERE i = 4", MIXED " WHERE i < 0"};
	enum status status = ST_OK;

	assert_int_equal(prof_db_open(&other, prof_db_path(db), NULL), ST_OK);
	for (size_t i = 0; i < sizeof(sql) / sizeof(sql[0]); i++) {
		struct prof_query *plain = start(db, sql[i], false);
		struct prof_query *ahead = start(other, sql[i], true);

		while (prof_query_next(plain, &status, NULL)) {
			assert_true(prof_query_next(ahead, &status, NULL));
			compare_row(plain, ahead);
		}
		for (int again = 0; again < 2; again++)
			assert_false(prof_query_next(ahead, &status, NULL));
		assert_int_equal(status, ST_OK);
		prof_query_close(ahead);
		prof_query_close(plain);
	}
	prof_db_close(other);
	prof_db_close(db);
}

static void test_a_failure_comes_behind_the_rows_before_it(void **state)
{
	struct prof_db *db = open_place(*state);
	struct prof_query *query = start(db, FAILS, true);
	int rows = 0;

	for (enum status status = ST_OK; prof_query_next(query, &status, NULL);)
		rows++;
	assert_int_equal(rows, 999);
	for (int again = 0; again < 2; again++) {
		struct err err = {ST_OK, ""};
		bool row;

		assert_int_not_equal(prof_query_step(query, &row, &err), ST_OK);
		assert_false(row);
		assert_contains(err.text, "integer overflow");
	}
	prof_query_close(query);
	assert_int_equal(prof_ask(prof_db_path(db), "SELECT 7"), 7);
	prof_db_close(db);
}

/* Who asks may end at any time: before the first row, between two, or in the midst of a step that
 * does not end by itself. */
static void test_a_reader_is_stopped_wherever_it_is(void **state)
{
	struct prof_db *db = open_place(*state);
	enum status status = ST_OK;
	int64_t number;

	for (int rows = 0; rows < 2000; rows = 3 * rows + 1) {
		struct prof_query *query = start(db, ENDLESS "i > 0", true);

		for (int i = 1; i <= rows; i++) {
			assert_true(prof_query_next(query, &status, NULL));
			assert_int_equal(prof_column_int(query, 0), i);
		}
		prof_query_close(query);
		/* also as the step begins, when SQLite has nothing yet to interrupt */
		for (int again = 0; again < 100; again++) {
			query = start(db, ENDLESS "i < 0", true);
			for (volatile int wait = 0; wait < 300 * again; wait++)
				;
			prof_query_close(query);
		}
		assert_int_equal(prof_db_number(db, "SELECT 7", &number, NULL), ST_OK);
		assert_int_equal(number, 7);
	}
	prof_db_close(db);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, prof_place_setup, prof_place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_rows_are_those_that_are_read_without_a_thread),
		CASE(test_a_failure_comes_behind_the_rows_before_it),
		CASE(test_a_reader_is_stopped_wherever_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
