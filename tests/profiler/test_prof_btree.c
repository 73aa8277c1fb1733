/*
 * Tables built as pages: SQLite finds them whole and with the same rows as its own.
 */
#include "support/prof_testing.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "profiler/prof_btree.h"

#define SCHEMA                                                                                     \
	"PRAGMA page_size=16384;"                                                                  \
	"CREATE TABLE r (id INTEGER PRIMARY KEY, a, b, c);"                                        \
	"CREATE TABLE k (a INTEGER, b INTEGER, c, PRIMARY KEY (a, b)) WITHOUT ROWID;"              \
	"CREATE TABLE r_own AS SELECT * FROM r; CREATE TABLE k_own AS SELECT * FROM k"

static const int64_t numbers[] = {0,
				  1,
				  -1,
				  127,
				  128,
				  -128,
				  -129,
				  32767,
				  32768,
				  8388607,
				  8388608,
				  -8388609,
				  2,
				  INT32_MAX,
				  1LL << 31,
				  1LL << 47,
				  -(1LL << 47) - 1,
				  INT64_MAX,
				  INT64_MIN + 1};

/* The values of row @i: the texts are up to @longest bytes. */
struct sample {
	int64_t number;
	double real;
	char text[4000];
	size_t length;
};

static void sample_at(struct sample *out, int i, size_t longest)
{
	out->number = i < (int)ARRAY_LEN(numbers) ? numbers[i] : (int64_t)i * i * 7919;
	out->real = i % 5 == 0 ? (double)i : i / 3.0;
	out->length = longest == 0 ? 0 : (size_t)i * 2654435761u % longest;
	memset(out->text, 'a' + i % 26, out->length);
}

static void own_row(sqlite3_stmt *statement, int i, const struct sample *sample)
{
	sqlite3_bind_int(statement, 1, i);
	sqlite3_bind_int64(statement, 2, sample->number);
	sqlite3_bind_double(statement, 3, sample->real);
	sqlite3_bind_text(statement, 4, sample->text, (int)sample->length, SQLITE_STATIC);
	assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
	sqlite3_reset(statement);
}

/* What SQLite makes of the same values, for comparison; *@pages of the closed file. */
static void make_own(const char *path, int rows, size_t longest, uint32_t *pages)
{
	struct sample *sample = calloc(1, sizeof(*sample));
	sqlite3_stmt *statement;
	sqlite3 *db;

	unlink(path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, SCHEMA "; BEGIN", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_prepare_v2(db, "INSERT INTO r_own VALUES (?, ?, ?, ?)", -1, &statement, NULL);
	for (int i = 0; i < rows; i++) {
		sample_at(sample, i, longest);
		own_row(statement, i, sample);
	}
	sqlite3_finalize(statement);
	assert_int_equal(sqlite3_exec(db,
				      "INSERT INTO k_own SELECT id / 3, id, c FROM r_own; COMMIT",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	*pages = (uint32_t)prof_ask(path, "PRAGMA page_count");
	free(sample);
}

static void put_rows(struct prof_btree *rows, struct prof_btree *keys, int count, size_t longest)
{
	struct sample *sample = calloc(1, sizeof(*sample));
	struct prof_row_text row;

	for (int i = 0; i < count; i++) {
		sample_at(sample, i, longest);
		prof_row_begin(&row);
		prof_row_null(&row);
		prof_row_int(&row, sample->number);
		prof_row_real(&row, sample->real);
		assert_true(prof_row_bytes(&row, sample->text, sample->length));
		assert_int_equal(prof_btree_put(rows, i, &row, NULL), ST_OK);
		prof_row_begin(&row);
		prof_row_int(&row, i / 3);
		prof_row_int(&row, i);
		assert_true(prof_row_bytes(&row, sample->text, sample->length));
		assert_int_equal(prof_btree_put(keys, 0, &row, NULL), ST_OK);
	}
	free(sample);
}

/* Both tables of @path built as pages behind its first @pages. */
static void build(const char *path, int count, size_t longest, uint32_t pages)
{
	struct prof_btree *rows, *keys;
	int fd;

	assert_int_equal(prof_btree_new(&rows, PROF_BTREE_ROWS, path, NULL), ST_OK);
	assert_int_equal(prof_btree_new(&keys, PROF_BTREE_KEYS, path, NULL), ST_OK);
	put_rows(rows, keys, count, longest);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	/* The schema's tables have their pages in order. */
	assert_int_equal(prof_btree_join(rows, fd, 2, &pages, NULL), ST_OK);
	assert_int_equal(prof_btree_join(keys, fd, 3, &pages, NULL), ST_OK);
	assert_int_equal(prof_btree_set_pages(fd, pages, NULL), ST_OK);
	close(fd);
	prof_btree_free(rows);
	prof_btree_free(keys);
}

static void check_same(const char *path, int count)
{
	assert_int_equal(prof_ask(path, "SELECT count(*) FROM r"), count);
	assert_int_equal(prof_ask(path, "SELECT count(*) FROM k"), count);
	assert_answer(path, "SELECT * FROM r EXCEPT SELECT * FROM r_own", "");
	assert_answer(path, "SELECT * FROM k EXCEPT SELECT * FROM k_own", "");
	assert_answer(path,
		      "SELECT count(*) FROM r_own o JOIN r USING (id) "
		      "WHERE typeof(r.b) <> typeof(o.b) OR typeof(r.a) <> typeof(o.a)",
		      "0\n");
	assert_int_equal(prof_ask(path, "SELECT count(*) FROM k_own o JOIN k USING (a, b)"), count);
}

static void check(const struct prof_place *place, int count, size_t longest)
{
	uint32_t pages;

	make_own(place->path, count, longest, &pages);
	build(place->path, count, longest, pages);
	assert_answer(place->path, "PRAGMA integrity_check", "ok\n");
	check_same(place->path, count);
}

/* Long texts make pages of three rows: every border of a page is met, on several levels. */
static void test_any_number_of_rows(void **state)
{
	struct prof_place place;

	(void)state;
	prof_place_make(&place);
	for (int count = 0; count < 90; count++)
		check(&place, count, 3900);
	check(&place, 3000, 3900);
	check(&place, 20000, 9);
	check(&place, 20000, 0);
	prof_place_remove(&place);
}

/* SQLite never uses the page at 1 GiB. */
static void test_the_locked_page_is_passed_over(void **state)
{
	const uint32_t locked = 0x40000000u / PROF_PAGE_BYTES + 1;
	struct prof_place place;
	uint32_t pages;

	(void)state;
	prof_place_make(&place);
	for (uint32_t before = locked - 4; before <= locked; before++) {
		make_own(place.path, 500, 100, &pages);
		build(place.path, 500, 100, before);
		check_same(place.path, 500);
	}
	prof_place_remove(&place);
}

static void test_a_row_too_long_is_refused(void **state)
{
	char *text = calloc(1, PROF_BTREE_MOST + 1);
	struct prof_row_text row;

	(void)state;
	prof_row_begin(&row);
	assert_true(prof_row_bytes(&row, text, PROF_BTREE_MOST));
	prof_row_begin(&row);
	prof_row_int(&row, 2);
	assert_false(prof_row_bytes(&row, text, PROF_BTREE_MOST));
	free(text);
}

/* 7 bits a byte, the most significant first, all but the last marked. */
static void test_a_varint_is_as_short_as_can_be_and_reads_back(void **state)
{
	(void)state;
	for (size_t length = 1; length <= 8; length++) {
		const uint64_t most = ((uint64_t)1 << (7 * length)) - 1;
		const uint64_t least = length == 1 ? 0 : (uint64_t)1 << (7 * (length - 1));
		const uint64_t values[] = {least, least + 1, least | (most & 0x55aa55aa55aa55),
					   most};

		for (size_t i = 0; i < ARRAY_LEN(values); i++) {
			unsigned char out[9] = {0};
			uint64_t back = 0;

			assert_int_equal(prof_varint_put(out, values[i]), length);
			for (size_t b = 0; b < length; b++) {
				assert_int_equal(out[b] >> 7, b + 1 < length);
				back = back << 7 | (out[b] & 0x7f);
			}
			assert_true(back == values[i]);
			assert_int_equal(out[length], 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_number_of_rows),
		cmocka_unit_test(test_the_locked_page_is_passed_over),
		cmocka_unit_test(test_a_row_too_long_is_refused),
		cmocka_unit_test(test_a_varint_is_as_short_as_can_be_and_reads_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
