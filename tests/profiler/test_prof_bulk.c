/*
 * Tables that are loaded as pages: SQLite reads of them what it reads of the same rows inserted,
 * for random rows and whatever the loader refuses; failures leave nothing behind.
 */
#include "support/prof_testing.h"

#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/rng.h"
#include "profiler/prof_bulk.h"
#include "profiler/prof_insert.h"
#include "profiler/prof_sql.h"

#define TEXT_BYTES 70000 /* more than four pages */
#define LOCK_PAGE  65537

enum {
	ASSIGNED,
	GIVEN,
	KEYS,
	KINDS
};

/* A table that is loaded, and its twin, whose rows SQLite inserts. */
static const struct {
	const char *table, *create, *columns;
	enum prof_bulk_kind kind;
	size_t count;
} kinds[] = {
	[ASSIGNED] = {"assigned", "(id INTEGER PRIMARY KEY, a INTEGER, b REAL, c REAL, d INTEGER)",
		      "(a, b, c, d)", PROF_BULK_ASSIGNED, 4},
	[GIVEN] = {"given", "(id INTEGER PRIMARY KEY, a INTEGER, b REAL)", "(id, a, b)",
		   PROF_BULK_ROWID, 3},
	[KEYS] = {"keys",
		  "(k INTEGER NOT NULL, l INTEGER NOT NULL, value, more, PRIMARY KEY (k, l)) "
		  "WITHOUT ROWID",
		  "(k, l, value, more)", PROF_BULK_KEYS, 4},
};

struct twins {
	struct prof_place place;
	sqlite3 *db;
	struct prof_bulk *bulk;
	struct prof_insert loaded[KINDS], inserted[KINDS];
	struct rng rng;
	char *text;
	int64_t key[KINDS];
};

static void run(sqlite3 *db, const char *sql)
{
	struct err err = {ST_OK, ""};

	if (prof_sql_run(db, sql, &err) != ST_OK)
		fail_msg("%s: %s", sql, err.text);
}

static void run_text(sqlite3 *db, char *sql)
{
	assert_non_null(sql);
	run(db, sql);
	sqlite3_free(sql);
}

static void twins_create(struct twins *twins)
{
	assert_int_equal(sqlite3_open(twins->place.path, &twins->db), SQLITE_OK);
	run(twins->db, "PRAGMA page_size=16384; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF");
	for (size_t i = 0; i < KINDS; i++)
		for (int twin = 0; twin < 2; twin++)
			run_text(twins->db, sqlite3_mprintf("CREATE TABLE %s%s %s", kinds[i].table,
							    twin ? "_twin" : "", kinds[i].create));
}

static void twins_load(struct twins *twins)
{
	run(twins->db, "PRAGMA locking_mode=EXCLUSIVE");
	assert_int_equal(prof_bulk_new(&twins->bulk, twins->db, NULL), ST_OK);
	assert_non_null(twins->bulk);
	for (size_t i = 0; i < KINDS; i++) {
		struct prof_insert *const inserts[] = {&twins->loaded[i], &twins->inserted[i]};

		for (int twin = 0; twin < 2; twin++) {
			char *head =
				sqlite3_mprintf("INSERT OR REPLACE INTO %s%s %s", kinds[i].table,
						twin ? "_twin" : "", kinds[i].columns);

			assert_int_equal(prof_insert_init(inserts[twin], twins->db, head,
							  kinds[i].count, NULL, NULL),
					 ST_OK);
			sqlite3_free(head);
		}
		assert_int_equal(prof_bulk_table(twins->bulk, kinds[i].table, kinds[i].kind,
						 kinds[i].count, &twins->loaded[i].bulk, NULL),
				 ST_OK);
	}
	run(twins->db, "BEGIN");
}

static void twins_open(struct twins *twins, uint64_t seed)
{
	memset(twins, 0, sizeof(*twins));
	prof_place_make(&twins->place);
	rng_init(&twins->rng, seed, rng_stream("bulk"), 0, 0);
	twins->text = malloc(TEXT_BYTES + 1);
	for (int i = 0; i < TEXT_BYTES; i++)
		twins->text[i] = (char)('a' + i % 26);
	twins->text[TEXT_BYTES] = 0;
	twins_create(twins);
}

static void twins_close(struct twins *twins)
{
	for (size_t i = 0; i < KINDS; i++) {
		prof_insert_fini(&twins->loaded[i]);
		prof_insert_fini(&twins->inserted[i]);
	}
	prof_bulk_free(twins->bulk);
	sqlite3_close(twins->db);
	prof_place_remove(&twins->place);
	free(twins->text);
}

/* ---- random rows ----------------------------------------------------------------------------- */

static int64_t random_int(struct rng *rng)
{
	const uint64_t bits = (uint64_t)rng_u32(rng) << 32 | rng_u32(rng);
	const uint64_t value = bits >> rng_below(rng, 64);

	/* and the numbers around the borders of each size */
	if (rng_below(rng, 4) == 0) {
		const uint64_t border =
			((uint64_t)1 << (8 * rng_below(rng, 8) + 7)) - 2 + rng_below(rng, 5);

		return (int64_t)(rng_below(rng, 2) == 0 ? border : 0 - border);
	}
	return (int64_t)(rng_below(rng, 2) == 0 ? value : ~value);
}

static double random_real(struct rng *rng)
{
	static const double some[] = {0.0,    -0.0,   1.0,     -1.0,   0.5,    1e300,  -1e-300,
				      0x1p46, 0x1p47, -0x1p47, 0x1p53, 9.3e18, -9.3e18};

	if (rng_below(rng, 4) == 0)
		return some[rng_below(rng, ARRAY_LEN(some))];
	if (rng_below(rng, 8) == 0)
		return rng_below(rng, 2) == 0 ? (double)NAN : (double)INFINITY;
	return (double)random_int(rng) / (rng_below(rng, 2) == 0 ? 1.0 : 1024.0);
}

/* @real: or a number that is none of an INTEGER column. @most: bytes of a text or blob, most of
 * which are short; 0: numbers only. */
static void random_cell(struct twins *twins, struct prof_cell *cell, bool real, uint32_t most)
{
	const uint32_t kind = rng_below(&twins->rng, most == 0 ? 4 : 6);
	const uint32_t size =
		most == 0 ? 0 : rng_below(&twins->rng, rng_below(&twins->rng, 50) == 0 ? most : 40);

	if (kind == 0)
		cell->type = PROF_CELL_NULL;
	else if (kind <= 2 || (kind == 3 && !real))
		prof_cell_int(cell, random_int(&twins->rng));
	else if (kind == 3)
		prof_cell_real(cell, random_real(&twins->rng));
	else if (kind == 4)
		prof_cell_text(cell, twins->text + TEXT_BYTES - size);
	else
		*cell = (struct prof_cell){PROF_CELL_BLOB, {.p = twins->text}, size};
}

/* Keys go up by small and by large steps; one in twenty is an earlier one, or that before. */
static int64_t next_key(struct twins *twins, size_t kind)
{
	const int64_t back = (int64_t)rng_below(&twins->rng, 30);

	if (rng_below(&twins->rng, 20) == 0)
		return twins->key[kind] - back;
	twins->key[kind] += rng_below(&twins->rng, 1000) == 0 ? INT64_C(1) << 40 : 1 + back / 20;
	return twins->key[kind];
}

static void put_row(struct twins *twins, size_t kind, uint32_t most)
{
	struct prof_insert *const inserts[] = {&twins->loaded[kind], &twins->inserted[kind]};
	struct prof_cell row[4], *cells;
	size_t first = 0;

	if (kind != ASSIGNED)
		prof_cell_int(&row[first++], next_key(twins, kind));
	if (kind == KEYS)
		prof_cell_int(&row[first++], rng_below(&twins->rng, 3));
	for (size_t i = first; i < kinds[kind].count; i++)
		random_cell(twins, &row[i],
			    kind == KEYS || (kind == ASSIGNED ? i == 1 || i == 2 : i == 2),
			    kind == ASSIGNED ? 0 : most);
	for (int twin = 0; twin < 2; twin++) {
		assert_int_equal(prof_insert_row(inserts[twin], &cells, NULL), ST_OK);
		memcpy(cells, row, kinds[kind].count * sizeof(*row));
	}
}

static void join(struct twins *twins)
{
	struct err err = {ST_OK, ""};

	for (size_t i = 0; i < KINDS; i++) {
		assert_int_equal(prof_insert_flush(&twins->loaded[i], NULL), ST_OK);
		assert_int_equal(prof_insert_flush(&twins->inserted[i], NULL), ST_OK);
	}
	run(twins->db, "COMMIT");
	if (prof_bulk_join(twins->bulk, &err) != ST_OK)
		fail_msg("%s", err.text);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static sqlite3_stmt *all_of(sqlite3 *db, const char *table, const char *ending)
{
	char *sql = sqlite3_mprintf("SELECT * FROM %s%s ORDER BY 1, 2", table, ending);
	sqlite3_stmt *statement = NULL;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	sqlite3_free(sql);
	return statement;
}

static bool same_value(sqlite3_stmt *a, sqlite3_stmt *b, int column)
{
	const double x = sqlite3_column_double(a, column), y = sqlite3_column_double(b, column);

	if (sqlite3_column_type(a, column) != sqlite3_column_type(b, column))
		return false;
	if (sqlite3_column_type(a, column) == SQLITE_FLOAT)
		return memcmp(&x, &y, sizeof(x)) == 0;
	if (sqlite3_column_type(a, column) == SQLITE_INTEGER)
		return sqlite3_column_int64(a, column) == sqlite3_column_int64(b, column);
	return sqlite3_column_bytes(a, column) == sqlite3_column_bytes(b, column) &&
	       (sqlite3_column_bytes(a, column) == 0 ||
		memcmp(sqlite3_column_blob(a, column), sqlite3_column_blob(b, column),
		       (size_t)sqlite3_column_bytes(a, column)) == 0);
}

static int64_t compare_table(sqlite3 *db, const char *table)
{
	sqlite3_stmt *a = all_of(db, table, ""), *b = all_of(db, table, "_twin");
	int64_t rows = 0;

	while (sqlite3_step(b) == SQLITE_ROW) {
		assert_int_equal(sqlite3_step(a), SQLITE_ROW);
		for (int i = 0; i < sqlite3_column_count(b); i++)
			if (!same_value(a, b, i))
				fail_msg("%s: row %lld, column %d: %s, not %s", table,
					 (long long)rows, i, sqlite3_column_text(a, i),
					 sqlite3_column_text(b, i));
		rows++;
	}
	assert_int_equal(sqlite3_step(a), SQLITE_DONE);
	sqlite3_finalize(a);
	sqlite3_finalize(b);
	return rows;
}

/* As the connection that loaded them reads them, which must not believe what it read before, and as
 * a new one does. */
static void compare(struct twins *twins, int64_t rows[KINDS])
{
	sqlite3 *reader = prof_reader_open(twins->place.path);

	for (size_t i = 0; i < KINDS; i++) {
		rows[i] = compare_table(twins->db, kinds[i].table);
		assert_int_equal(compare_table(reader, kinds[i].table), rows[i]);
	}
	sqlite3_close(reader);
	assert_answer(twins->place.path, "PRAGMA integrity_check", "ok\n");
}

/* SQLite goes on with what was loaded: finds, changes, deletes and adds rows. */
static void change_both(struct twins *twins)
{
	for (size_t i = 0; i < KINDS; i++) {
		const char *key = i == KEYS ? "k" : "id", *value = i == KEYS ? "value" : "a";

		for (int twin = 0; twin < 2; twin++)
			run_text(twins->db,
				 sqlite3_mprintf(
					 "UPDATE %s%s SET %s = 'changed' WHERE %s %% 7 = 3;"
					 "DELETE FROM %s%s WHERE %s %% 5 = 2;"
					 "INSERT INTO %s%s %s SELECT %s + %lld, %s FROM %s%s "
					 "WHERE %s %% 3 = 1",
					 kinds[i].table, twin ? "_twin" : "", value, key,
					 kinds[i].table, twin ? "_twin" : "", key, kinds[i].table,
					 twin ? "_twin" : "",
					 i == KEYS ? "(k, l, value, more)" : "(id, a, b)", key,
					 INT64_C(1) << 60, i == KEYS ? "l, value, more" : "a, b",
					 kinds[i].table, twin ? "_twin" : "", key));
	}
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_what_is_loaded_is_what_would_be_inserted(void **state)
{
	/* Rows of each table, and the longest value: with long ones few rows make many levels. */
	static const struct {
		uint32_t rows, most;
	} sizes[] = {{0, 0},
		     {1, 0},
		     {2, 100},
		     {700, 1},
		     {3000, TEXT_BYTES},
		     {30000, 900},
		     {3000, PROF_BULK_MOST + 10}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct twins twins;
		int64_t rows[KINDS];

		twins_open(&twins, i);
		twins_load(&twins);
		for (uint32_t r = 0; r < sizes[i].rows; r++)
			for (size_t kind = 0; kind < KINDS; kind++)
				put_row(&twins, kind, sizes[i].most);
		join(&twins);
		compare(&twins, rows);
		assert_int_equal(rows[ASSIGNED], sizes[i].rows);
		assert_true(rows[KEYS] >= sizes[i].rows / 2);
		change_both(&twins);
		compare(&twins, rows);
		twins_close(&twins);
	}
}

/* Keys that are rows of a kilobyte: 16 in a page, so a thousand pages are three levels of inner
 * pages. At every number of rows the right edge of the tree is another. */
static void test_the_edge_of_a_tree_is_whole_at_every_size(void **state)
{
	(void)state;
	for (uint32_t count = 1; count < 9000; count += count < 600 ? 7 * support_stride() : 797) {
		struct twins twins;
		int64_t rows[KINDS];

		twins_open(&twins, count);
		twins_load(&twins);
		for (uint32_t r = 0; r < count; r++) {
			struct prof_insert *const inserts[] = {&twins.loaded[KEYS],
							       &twins.inserted[KEYS]};

			for (int twin = 0; twin < 2; twin++) {
				struct prof_cell *cells;

				assert_int_equal(prof_insert_row(inserts[twin], &cells, NULL),
						 ST_OK);
				prof_cell_int(&cells[0], r);
				prof_cell_int(&cells[1], 5);
				prof_cell_text(&cells[2], twins.text + TEXT_BYTES - 900);
				prof_cell_int(&cells[3], IPS_NULL);
			}
		}
		join(&twins);
		compare(&twins, rows);
		assert_int_equal(rows[KEYS], count);
		twins_close(&twins);
	}
}

static void put_4(unsigned char *out, uint32_t value)
{
	for (int i = 3; i >= 0; i--, value >>= 8)
		out[i] = (unsigned char)value;
}

/* Let the database have @pages pages, of which the new ones are free, without writing them. */
static void add_free_pages(const char *path, uint32_t pages)
{
	const int fd = open(path, O_RDWR);
	const uint32_t had = (uint32_t)(lseek(fd, 0, SEEK_END) / PROF_PAGE_BYTES);
	const uint32_t fit = PROF_PAGE_BYTES / 4 - 2;
	unsigned char header[100], *trunk = calloc(1, PROF_PAGE_BYTES);
	uint32_t at = had + 1;

	assert_int_equal(pread(fd, header, sizeof(header), 0), sizeof(header));
	put_4(header + 28, pages);
	put_4(header + 32, at);
	put_4(header + 36, pages - had);
	assert_int_equal(ftruncate(fd, (off_t)pages * PROF_PAGE_BYTES), 0);
	/* A trunk of the list has the number of the next trunk, how many pages it lists, and these. */
	while (at <= pages) {
		const uint32_t count = pages - at < fit ? pages - at : fit;

		put_4(trunk, at + count + 1 <= pages ? at + count + 1 : 0);
		put_4(trunk + 4, count);
		for (uint32_t i = 0; i < count; i++)
			put_4(trunk + 8 + 4 * i, at + 1 + i);
		assert_int_equal(
			pwrite(fd, trunk, PROF_PAGE_BYTES, (off_t)(at - 1) * PROF_PAGE_BYTES),
			PROF_PAGE_BYTES);
		at += count + 1;
	}
	assert_int_equal(pwrite(fd, header, sizeof(header), 0), sizeof(header));
	free(trunk);
	close(fd);
}

/* SQLite locks bytes at 1 GiB: the page there has no content. */
static void test_the_page_of_locks_is_left_out(void **state)
{
	(void)state;
	for (uint32_t before = 0; before < 4; before++) {
		struct twins twins;
		int64_t rows[KINDS];

		twins_open(&twins, 77 + before);
		sqlite3_close(twins.db);
		add_free_pages(twins.place.path, LOCK_PAGE - 1 - before);
		assert_int_equal(sqlite3_open(twins.place.path, &twins.db), SQLITE_OK);
		run(twins.db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF");
		twins_load(&twins);
		for (uint32_t r = 0; r < 5000; r++)
			for (size_t kind = 0; kind < KINDS; kind++)
				put_row(&twins, kind, 100);
		join(&twins);
		compare(&twins, rows);
		assert_true(prof_ask(twins.place.path, "PRAGMA page_count") > LOCK_PAGE + 5);
		twins_close(&twins);
	}
}

/* Pages of another form are left to SQLite. */
static void test_a_database_of_another_form_is_not_loaded(void **state)
{
	static const char *const forms[] = {"PRAGMA page_size=4096", "PRAGMA encoding='UTF-16le'",
					    "PRAGMA auto_vacuum=FULL"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct prof_place place;
		struct prof_bulk *bulk;
		sqlite3 *db;

		prof_place_make(&place);
		assert_int_equal(sqlite3_open(place.path, &db), SQLITE_OK);
		run(db, "PRAGMA page_size=16384");
		run(db, forms[i]);
		run(db, "CREATE TABLE t (a)");
		assert_int_equal(prof_bulk_new(&bulk, db, NULL), ST_OK);
		assert_null(bulk);
		sqlite3_close(db);
		prof_place_remove(&place);
	}
}

/* ---- failures -------------------------------------------------------------------------------- */

/* A recording that is alone, with rows in all that it loads; whether it ended well. */
static int record_alone(const char *path, int spans, char *why, size_t size)
{
	struct ips_recording_params params;
	struct ips_recording *recording;
	const struct ips_kernel kernel = {.device = "GPU 0", .kind = "compute", .launch_key = 5};
	const struct ips_call call = {.launch_key = 5};
	struct ips_track *track;
	int status;
	IPS_SITE(a, "c", "a");

	ips_recording_params_defaults(&params);
	params.alone = 1;
	status = ips_recording_open(&recording, path, &params, why, size);
	if (status != 0)
		return status;
	track = ips_track_open_foreign(recording, "worker", NULL, 1, 1);
	for (int i = 0; i < spans; i++) {
		ips_span_at(track, &a, i * 10, 5);
		ips_span_arg_int(track, "x", i);
		ips_span_row(track, i % 2 == 0 ? IPS_TABLE_call : IPS_TABLE_kernel,
			     i % 2 == 0 ? (const void *)&call : (const void *)&kernel);
		ips_instant_at(track, &a, i * 10);
		ips_counter_at(track, &a, i * 10, i);
	}
	status = ips_recording_close(recording, why, size);
	return status == 0 && !track ? ST_NOMEM : status;
}

static void test_without_memory_loading_fails_cleanly(void **state)
{
	struct prof_place *place = *state;
	char why[256];
	long n;

	for (n = 0; n < 3000; n += support_stride()) {
		bool failed;
		int status;

		support_fail_alloc(n);
		status = record_alone(place->path, 20, why, sizeof(why));
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		if (!failed) {
			assert_int_equal(status, 0);
			break;
		}
		assert_true(status == 0 || status == ST_NOMEM);
		unlink(place->path);
	}
	assert_true(n > 20 && n < 3000);
	assert_int_equal(prof_ask(place->path, "SELECT count(*) FROM launches"), 10);
	prof_check_file(place->path);
}

/* A disk that is full at some time of a recording: one line says so. */
static void test_a_full_disk_is_told(void **state)
{
	struct prof_place *place = *state;
	const long most[] = {300000, 600000, 1000000, 2000000, 4000000};

	for (size_t i = 0; i < ARRAY_LEN(most); i++) {
		const pid_t child = fork();
		int code;

		if (child == 0) {
			char why[256];

			support_limit_files(most[i]);
			_exit(record_alone(place->path, 100000, why, sizeof(why)) == ST_NOSPACE &&
					      strstr(why, "File too large") && !strchr(why, '\n')
				      ? 0
				      : 1);
		}
		assert_int_equal(waitpid(child, &code, 0), child);
		assert_true(WIFEXITED(code));
		assert_int_equal(WEXITSTATUS(code), 0);
		unlink(place->path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_loaded_is_what_would_be_inserted),
		cmocka_unit_test(test_the_edge_of_a_tree_is_whole_at_every_size),
		cmocka_unit_test(test_the_page_of_locks_is_left_out),
		cmocka_unit_test(test_a_database_of_another_form_is_not_loaded),
		cmocka_unit_test_setup_teardown(test_without_memory_loading_fails_cleanly,
						prof_place_setup, prof_place_teardown),
		cmocka_unit_test_setup_teardown(test_a_full_disk_is_told, prof_place_setup,
						prof_place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
