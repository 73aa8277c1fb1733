/*
 * Files of older schemas: read with the views and columns of today.
 */
#include "prof_testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/prof_db.h"

#define NEWEST_OLD 5
#define WITH_SUMS  5 /* the first schema that has those of stages */

/* What stands in an old file: a tensor, a row of it, a rule and a hit of no tensor. */
#define OLD_ROWS                                                                                   \
	"INSERT INTO contexts (context_id, rank, mode, epoch) VALUES (1, 0, 'train', 2);"          \
	"INSERT INTO tensor_rows (tensor_id, queue, key, kind, layer, stage, shape, dtype) "       \
	"VALUES (1, 'q', 'w', 'weight', 'l', 0, '(2,)', 'float32');"                               \
	"INSERT INTO tensor_stat_rows (tensor_id, context_id, n, mean) VALUES (1, 1, 2, 0.5);"     \
	"INSERT INTO health_rule_rows (row_id, rule, threshold, patience, enabled, why) VALUES "   \
	"(1, 'overfit', 0.1, 1, 1, 'why');"                                                        \
	"INSERT INTO health_rows (rule, layer, context_id) VALUES ('overfit', 'l', 1);"            \
	"INSERT INTO stage_timing_rows (clock, context_id, start_ns, dur_ns) VALUES (0, 1, 5, "    \
	"7), (0, 1, 15, 9);"

/* FOLDER/NAME, a file as @version of the schema made it. */
static void make_old(const struct prof_place *place, int version, char *path, size_t size)
{
	char source[SUPPORT_PATH_SIZE + 64];
	char *sql;

	snprintf(path, size, "%s/%d.db", place->folder, version);
	snprintf(source, sizeof(source), "%s/tests/golden/schema_%d.sql", support_source_dir(),
		 version);
	sql = support_read_file(source, NULL);
	prof_change(path, sql);
	free(sql);
	prof_change(path, OLD_ROWS);
	assert_int_equal(prof_ask(path, "PRAGMA user_version"), version);
}

static struct prof_query *ask(struct prof_db *db, const char *sql, bool *row)
{
	struct prof_query *query;
	struct err err = {0};

	if (prof_query_open(&query, db, sql, &err) != ST_OK ||
	    prof_query_step(query, row, &err) != ST_OK)
		fail_msg("%s: %s", sql, err.text);
	return query;
}

static void test_views_of_old_files_have_the_columns_of_today(void **state)
{
	struct prof_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 16];
	const char *const *names;
	struct prof_db *fresh, *old;
	size_t count;
	bool row;

	prof_stop(prof_start(place, NULL));
	assert_int_equal(prof_db_open(&fresh, place->path, NULL), ST_OK);
	names = prof_view_names(&count);
	for (int version = 1; version <= NEWEST_OLD; version++) {
		make_old(place, version, path, sizeof(path));
		assert_int_equal(prof_db_open(&old, path, NULL), ST_OK);
		prof_db_read_through(old); /* keeps them */
		for (size_t i = 0; i < count; i++) {
			struct prof_query *a, *b;
			char sql[96];

			snprintf(sql, sizeof(sql), "SELECT * FROM %s", names[i]);
			a = ask(fresh, sql, &row);
			b = ask(old, sql, &row);
			assert_int_equal(prof_column_count(a), prof_column_count(b));
			for (int c = 0; c < prof_column_count(a); c++)
				assert_string_equal(prof_column_name(a, c), prof_column_name(b, c));
			prof_query_close(a);
			prof_query_close(b);
		}
		prof_db_close(old);
	}
	prof_db_close(fresh);
}

static void test_what_an_old_file_cannot_say_is_null_and_the_rest_is_there(void **state)
{
	struct prof_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 16];

	for (int version = 1; version <= NEWEST_OLD; version++) {
		struct prof_query *query;
		struct prof_db *db;
		bool row;

		make_old(place, version, path, sizeof(path));
		assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
		query = ask(db,
			    "SELECT key, epoch, n, mean, inactive, update_ratio, n_changed "
			    "FROM tensor_stats",
			    &row);
		assert_true(row);
		assert_string_equal(prof_column_text(query, 0), "w");
		assert_int_equal(prof_column_int(query, 1), 2);
		assert_int_equal(prof_column_int(query, 2), 2);
		assert_true(prof_column_real(query, 3) == 0.5);
		for (int c = 4; c < 7; c++)
			assert_int_equal(prof_column_type(query, c), PROF_NULL);
		prof_query_close(query);
		query = ask(db, "SELECT key, dtype, activity FROM tensors", &row);
		assert_true(row);
		assert_string_equal(prof_column_text(query, 1), "float32");
		assert_int_equal(prof_column_type(query, 2), PROF_NULL);
		prof_query_close(query);
		query = ask(db,
			    "SELECT r.rule, r.parameters, h.key, h.layer FROM health_rules r "
			    "JOIN health h USING (rule)",
			    &row);
		assert_true(row);
		assert_string_equal(prof_column_text(query, 0), "overfit");
		assert_int_equal(prof_column_type(query, 1), PROF_NULL);
		assert_int_equal(prof_column_type(query, 2), PROF_NULL);
		assert_string_equal(prof_column_text(query, 3), "l");
		prof_query_close(query);
		query = ask(db, "SELECT clock, mode, count, total_ns, last_end_ns FROM stage_sums",
			    &row);
		assert_int_equal(row, version < WITH_SUMS); /* those the writer did not write */
		if (row) {
			assert_string_equal(prof_column_text(query, 0), "host");
			assert_int_equal(prof_column_int(query, 2), 2);
			assert_int_equal(prof_column_int(query, 3), 16);
			assert_int_equal(prof_column_int(query, 4), 24);
		}
		prof_query_close(query);
		query = ask(db,
			    "SELECT key, shape, rank, rows, last_epoch, greatest_mean, "
			    "last_inactive FROM tensor_sums",
			    &row);
		assert_true(row);
		assert_string_equal(prof_column_text(query, 0), "w");
		assert_string_equal(prof_column_text(query, 1), "(2,)");
		assert_int_equal(prof_column_int(query, 2), 0);
		assert_int_equal(prof_column_int(query, 3), 1);
		assert_int_equal(prof_column_int(query, 4), 2);
		assert_true(prof_column_real(query, 5) == 0.5);
		assert_int_equal(prof_column_type(query, 6), PROF_NULL);
		prof_query_close(query);
		for (int i = 0; i < 2; i++) {
			query = ask(db,
				    i == 0 ? "SELECT * FROM tensor_tiers"
					   : "SELECT * FROM nonfinite_trail",
				    &row);
			assert_false(row);
			prof_query_close(query);
		}
		prof_db_close(db);
	}
}

static void test_reading_an_old_file_leaves_it_as_it_was(void **state)
{
	struct prof_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 16];
	size_t before, after;
	char *was, *is;
	struct prof_db *db;

	make_old(place, NEWEST_OLD, path, sizeof(path));
	was = support_read_file(path, &before);
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	prof_db_close(db);
	is = support_read_file(path, &after);
	assert_int_equal(before, after);
	assert_memory_equal(was, is, before);
	free(was);
	free(is);
}

/* A file decides by what it holds: one that lies about its schema opens too. */
static void test_a_view_that_every_schema_has_is_not_made_up(void **state)
{
	struct prof_place *place = *state;
	struct prof_query *query;
	struct prof_db *db;

	prof_stop(prof_start(place, NULL));
	prof_change(place->path, "DROP VIEW tensor_stats; DROP VIEW nonfinite_trail;"
				 "CREATE TABLE nonfinite_trail (position)");
	assert_int_equal(prof_db_open(&db, place->path, NULL), ST_OK);
	assert_int_equal(prof_query_open(&query, db, "SELECT * FROM tensor_stats", NULL),
			 ST_INVALID);
	prof_db_close(db);
}

static void test_a_reader_still_cannot_write_not_even_beside_the_file(void **state)
{
	struct prof_place *place = *state;
	char path[SUPPORT_PATH_SIZE + 16];
	struct prof_query *query;
	struct prof_db *db;

	make_old(place, NEWEST_OLD, path, sizeof(path));
	assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
	assert_int_equal(prof_query_open(&query, db, "CREATE TEMP TABLE t (x)", NULL), ST_INVALID);
	assert_int_equal(prof_query_open(&query, db, "DROP VIEW tensor_stats", NULL), ST_INVALID);
	prof_db_close(db);
}

/* Rows of tier `health`, hits of no tensor, tiers and trails as they come back. */
static void test_what_is_not_known_of_new_rows_is_null(void **state)
{
	struct prof_place *place = *state;
	struct ips_recording *recording = prof_start(place, NULL);
	const struct ips_tensor tensor = {"q", "k", "weight", "l", 1, "(2,)", "float32", NULL};
	const double none = (double)NAN;
	int64_t id = ips_tensor_add(recording, &tensor);
	struct ips_tensor_stats row = {.keys = IPS_KEYS_NULL,
				       .tensor_id = id,
				       .time_ns = 5,
				       .n = 7,
				       .n_nan = IPS_NULL,
				       .n_pos_inf = IPS_NULL,
				       .n_neg_inf = IPS_NULL,
				       .n_zero = IPS_NULL,
				       .n_neg = IPS_NULL,
				       .n_pos = IPS_NULL,
				       .min = none,
				       .max = none,
				       .mean = none,
				       .std = none,
				       .l1 = none,
				       .l2 = none,
				       .abs_min_nonzero = none,
				       .abs_max = (double)INFINITY,
				       .inactive = none,
				       .update_ratio = 0.25,
				       .n_changed = 3};
	struct ips_tensor_tier tier = {IPS_KEYS_NULL, id, "last", 2, 20, IPS_NULL, "rule 1"};
	struct ips_nonfinite_trail bad = {
		.keys = IPS_KEYS_NULL, .position = -1, .role = "input", .tensor_id = IPS_NULL};
	struct ips_health hit = {IPS_KEYS_NULL, "overfit", IPS_NULL, NULL, 9, 1, 0.5, "val_loss"};

	assert_int_equal(ips_append_tensor_stats(recording, &row), 0);
	assert_int_equal(ips_append_tensor_tier(recording, &tier), 0);
	assert_int_equal(ips_append_health(recording, &hit), 0);
	hit.key = NULL;
	hit.tensor_id = id;
	assert_int_equal(ips_append_health(recording, &hit), 0);
	/* A trail is of tensors, and so are tiers. */
	assert_int_not_equal(ips_append_nonfinite_trail(recording, &bad), 0);
	tier.tensor_id = IPS_NULL;
	assert_int_not_equal(ips_append_tensor_tier(recording, &tier), 0);
	bad.tensor_id = id;
	assert_int_equal(ips_append_nonfinite_trail(recording, &bad), 0);
	prof_stop(recording);
	assert_answer(place->path,
		      "SELECT n, n_nan, n_pos, mean, abs_max, inactive, update_ratio, n_changed "
		      "FROM tensor_stats",
		      "7|-|-|-|Inf|-|0.25|3\n");
	assert_answer(place->path,
		      "SELECT key, tier, every, keep, rank, time_ns, why "
		      "FROM tensor_tiers",
		      "k|last|2|20|-|-|rule 1\n");
	assert_answer(place->path, "SELECT queue, key, layer FROM health", "-|val_loss|-\nq|k|l\n");
	assert_answer(place->path, "SELECT position, role, key, stage, n FROM nonfinite_trail",
		      "-1|input|k|1|0\n");
	prof_check_file(place->path);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, prof_place_setup, prof_place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_views_of_old_files_have_the_columns_of_today),
		CASE(test_what_an_old_file_cannot_say_is_null_and_the_rest_is_there),
		CASE(test_reading_an_old_file_leaves_it_as_it_was),
		CASE(test_a_view_that_every_schema_has_is_not_made_up),
		CASE(test_a_reader_still_cannot_write_not_even_beside_the_file),
		CASE(test_what_is_not_known_of_new_rows_is_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
