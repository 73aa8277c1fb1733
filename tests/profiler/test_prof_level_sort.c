/*
 * Increments of levels, sorted in little memory: the rows are those that INSERT would add up.
 */
#include "support/prof_testing.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "profiler/prof_bulk.h"
#include "profiler/prof_sql.h"

#define COLUMNS                                                                                    \
	"(track_id INTEGER, level INTEGER, bucket INTEGER, depth INTEGER, busy_ns INTEGER, "       \
	"count INTEGER, site_id INTEGER, site_ns INTEGER, "                                        \
	"PRIMARY KEY (track_id, level, bucket, depth)) WITHOUT ROWID"
#define ROWS 1000 /* of the sort's buffer */

static void add_increment(struct prof_levels *levels, const struct prof_increment *increment)
{
	assert_int_equal(mem_grow(&levels->increments, &levels->capacity, levels->count + 1,
				  sizeof(*levels->increments)),
			 0);
	levels->increments[levels->count++] = *increment;
}

/* Put @batches of increments into the sort, and into the table span_levels by INSERT. */
static void put_both(struct prof_level_sort *sort, struct prof_insert *inserted, uint32_t batches)
{
	struct prof_levels levels[2] = {{0}, {0}};
	struct rng rng;

	rng_init(&rng, batches, rng_stream("levels"), 0, 0);
	for (uint32_t batch = 0; batch < batches; batch++) {
		const int64_t track = 1 + rng_below(&rng, 4);

		for (uint32_t i = rng_below(&rng, 200); i > 0; i--) {
			const struct prof_increment increment = {
				.bucket = batch + rng_below(&rng, 20),
				.busy_ns = rng_below(&rng, 1000),
				.count = rng_below(&rng, 3),
				.share = {1 + rng_below(&rng, 5), rng_below(&rng, 4)},
				.depth = rng_below(&rng, 3),
				.level = (int)rng_below(&rng, 4),
			};

			add_increment(&levels[0], &increment);
			add_increment(&levels[1], &increment);
		}
		assert_int_equal(prof_level_sort_put(sort, track, &levels[0], 1, NULL), ST_OK);
		assert_int_equal(prof__insert_levels(inserted, track, &levels[1], 1, NULL), ST_OK);
	}
	prof_levels_fini(&levels[0]);
	prof_levels_fini(&levels[1]);
}

static void test_sorted_rows_are_those_that_insert_adds_up(void **state)
{
	static const uint32_t sizes[] = {0,  1,   5,
					 11, 300, 2000}; /* batches: from none to 199 runs */
	struct prof_place *place = *state;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct prof_insert inserted = {0}, loaded = {0};
		struct prof_level_sort *sort;
		sqlite3 *db;

		assert_int_equal(sqlite3_open(place->path, &db), SQLITE_OK);
		assert_int_equal(
			prof_sql_run(db,
				     "BEGIN; CREATE TABLE span_levels " COLUMNS
				     "; CREATE TABLE loaded (track_id, level, bucket, depth, "
				     "busy_ns, count, site_id, site_ns)",
				     NULL),
			ST_OK);
		assert_int_equal(prof_insert_init(&inserted, db, PROF_INSERT_LEVEL, 8,
						  PROF_INSERT_LEVEL_TAIL, NULL),
				 ST_OK);
		assert_int_equal(prof_insert_init(&loaded, db, "INSERT INTO loaded", 8, NULL, NULL),
				 ST_OK);
		assert_int_equal(prof_level_sort_new(&sort, place->path, ROWS, NULL), ST_OK);
		put_both(sort, &inserted, sizes[i]);
		assert_int_equal(prof_insert_flush(&inserted, NULL), ST_OK);
		assert_int_equal(prof_level_sort_load(sort, &loaded, NULL), ST_OK);
		assert_int_equal(prof_reader_ask(db, "SELECT count(*) FROM loaded"),
				 prof_reader_ask(db, "SELECT count(*) FROM span_levels"));
		/* in order of rowid they are in order of the key */
		assert_int_equal(
			prof_reader_ask(db, "SELECT count(*) FROM (SELECT *, row_number() OVER "
					    "(ORDER BY rowid) AS n FROM loaded) JOIN (SELECT *, "
					    "row_number() OVER (ORDER BY track_id, level, bucket, "
					    "depth) AS n FROM span_levels) USING (n, track_id, "
					    "level, bucket, depth, busy_ns, count, site_id, "
					    "site_ns)"),
			prof_reader_ask(db, "SELECT count(*) FROM span_levels"));
		prof_level_sort_free(sort);
		prof_insert_fini(&inserted);
		prof_insert_fini(&loaded);
		sqlite3_close(db);
		remove(place->path);
	}
}

/* Put @count increments of as many tracks. */
static enum status put_runs(struct prof_level_sort *sort, int64_t count)
{
	const struct prof_increment increment = {.level = 1, .count = 1};
	enum status status = ST_OK;

	for (int64_t i = 0; i < count && status == ST_OK; i++) {
		struct prof_levels levels = {0};

		add_increment(&levels, &increment);
		status = prof_level_sort_put(sort, i, &levels, 0, NULL);
		prof_levels_fini(&levels);
	}
	return status;
}

static void test_runs_beyond_the_rows_of_the_buffer_are_refused(void **state)
{
	struct prof_place *place = *state;
	struct prof_level_sort *sort;

	assert_int_equal(prof_level_sort_new(&sort, place->path, 10, NULL), ST_OK);
	assert_int_equal(put_runs(sort, 100), ST_OK);
	assert_int_equal(put_runs(sort, 11), ST_LIMIT);
	prof_level_sort_free(sort);
}

static void test_without_memory_for_a_run_no_row_is_put(void **state)
{
	struct prof_place *place = *state;
	struct prof_levels levels = {0};
	struct prof_level_sort *sort;

	assert_int_equal(prof_level_sort_new(&sort, place->path, 10, NULL), ST_OK);
	assert_int_equal(put_runs(sort, 10), ST_OK);
	add_increment(&levels, &(struct prof_increment){.level = 1, .count = 1});
	support_fail_alloc(0);
	assert_int_equal(prof_level_sort_put(sort, 11, &levels, 0, NULL), ST_NOMEM);
	support_fail_alloc(-1);
	prof_levels_fini(&levels);
	prof_level_sort_free(sort);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_runs_beyond_the_rows_of_the_buffer_are_refused,
						prof_place_setup, prof_place_teardown),
		cmocka_unit_test_setup_teardown(test_without_memory_for_a_run_no_row_is_put,
						prof_place_setup, prof_place_teardown),
		cmocka_unit_test_setup_teardown(test_sorted_rows_are_those_that_insert_adds_up,
						prof_place_setup, prof_place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
