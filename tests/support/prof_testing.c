/*
 * See prof_testing.h. For the test's main thread.
 */
#include "support/prof_testing.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"
#include "profiler/prof_db.h"

void prof_place_make(struct prof_place *place)
{
	support_tempdir(place->folder);
	snprintf(place->path, sizeof(place->path), "%s/run.db", place->folder);
}

void prof_place_remove(struct prof_place *place)
{
	support_tempdir_remove(place->folder);
}

int prof_place_setup(void **state)
{
	struct prof_place *place = calloc(1, sizeof(*place));

	prof_place_make(place);
	*state = place;
	return 0;
}

int prof_place_teardown(void **state)
{
	prof_place_remove(*state);
	free(*state);
	return 0;
}

struct ips_recording *prof_start(const struct prof_place *place,
				 const struct ips_recording_params *params)
{
	struct ips_recording *recording;
	char why[512] = "";

	if (ips_recording_open(&recording, place->path, params, why, sizeof(why)) != 0)
		fail_msg("open: %s", why);
	return recording;
}

void prof_stop(struct ips_recording *recording)
{
	char why[512] = "";

	if (ips_recording_close(recording, why, sizeof(why)) != 0)
		fail_msg("close: %s", why);
}

sqlite3 *prof_reader_open(const char *path)
{
	sqlite3 *db;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		fail_msg("%s: %s", path, sqlite3_errmsg(db));
	sqlite3_busy_timeout(db, 5000);
	return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	return statement;
}

static bool next(sqlite3 *db, sqlite3_stmt *statement)
{
	int code = sqlite3_step(statement);

	if (code != SQLITE_ROW && code != SQLITE_DONE)
		fail_msg("%s: %s", sqlite3_sql(statement), sqlite3_errmsg(db));
	return code == SQLITE_ROW;
}

int64_t prof_reader_ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = prepare(db, sql);
	int64_t value = INT64_MIN;

	if (next(db, statement) && sqlite3_column_type(statement, 0) != SQLITE_NULL)
		value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

int64_t prof_ask(const char *path, const char *sql)
{
	sqlite3 *db = prof_reader_open(path);
	int64_t value = prof_reader_ask(db, sql);

	sqlite3_close(db);
	return value;
}

char *prof_ask_all(const char *path, const char *sql)
{
	sqlite3 *db = prof_reader_open(path);
	sqlite3_stmt *statement = prepare(db, sql);
	struct str all = {0};

	while (next(db, statement)) {
		for (int i = 0; i < sqlite3_column_count(statement); i++) {
			const unsigned char *text = sqlite3_column_text(statement, i);

			str_addf(&all, "%s%s", i == 0 ? "" : "|", !text ? "-" : (const char *)text);
		}
		str_add(&all, "\n");
	}
	sqlite3_finalize(statement);
	sqlite3_close(db);
	assert_false(all.failed);
	return !all.text ? strdup("") : all.text;
}

void prof_ask_text(const char *path, const char *sql, char *out, size_t size)
{
	char *all = prof_ask_all(path, sql);

	snprintf(out, size, "%.*s", (int)strcspn(all, "\n"), all);
	free(all);
}

void prof_change(const char *path, const char *sql)
{
	char *message = NULL;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", sql, message);
	sqlite3_close(db);
}

/* One connection asks for all views: SQLite parses the schema anew for each. */
void prof_check_file(const char *path)
{
	const char *const *names;
	size_t count;
	sqlite3 *db;

	assert_answer(path, "PRAGMA integrity_check", "ok\n");
	names = prof_view_names(&count);
	db = prof_reader_open(path);
	for (size_t i = 0; i < count; i++) {
		sqlite3_stmt *statement;
		char sql[128];

		snprintf(sql, sizeof(sql), "SELECT * FROM %s", names[i]);
		statement = prepare(db, sql);
		while (next(db, statement))
			for (int c = 0; c < sqlite3_column_count(statement); c++)
				sqlite3_column_text(statement, c);
		sqlite3_finalize(statement);
	}
	sqlite3_close(db);
}
