/*
 * For bench_import.sh: what an import cannot cost less than, each part of it alone.
 *
 *	bench_trace read FILE                the file's bytes
 *	bench_trace scan FILE                the events of a Chrome trace
 *	bench_trace cjson FILE               cJSON_Parse
 *	bench_trace fields FILE              the fields of protobuf's messages, all those within, too
 *	bench_trace rows FILE                all columns of all tables of a database
 *	bench_trace insert FILE SPANS ARGS   INSERTs of so many rows into tables as ours, in a new FILE
 */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "reports/import/report_import_scan.h"
#include "reports/import/report_import_wire.h"

static enum status count_event(void *user, const struct import_event *event, struct err *err)
{
	(void)event;
	(void)err;
	++*(uint64_t *)user;
	return ST_OK;
}

static enum status pass_other(void *user, bool too_large, uint64_t offset, struct err *err)
{
	(void)user;
	(void)too_large;
	(void)offset;
	(void)err;
	return ST_OK;
}

static enum status pass_value(void *user, const struct import_token *key,
			      const struct import_token *value, struct err *err)
{
	(void)user;
	(void)key;
	(void)value;
	(void)err;
	return ST_OK;
}

static int scan(const char *path)
{
	uint64_t events = 0;
	const struct import_scan_calls calls = {
		.event = count_event, .other = pass_other, .value = pass_value, .user = &events};
	struct import_scan *walk = calloc(1, sizeof(*walk));
	struct import_input input;
	enum status status = ST_NOMEM;

	if (walk && report__import_input_open(&input, path, NULL) == ST_OK) {
		if (report__import_scan_init(walk, &input)) {
			walk->calls = &calls;
			status = report__import_scan(walk, NULL);
		}
		report__import_scan_fini(walk);
		report__import_input_close(&input);
	}
	free(walk);
	printf("%" PRIu64 " events\n", events);
	return status != ST_OK;
}

static int read_file(const char *path)
{
	static char buffer[1 << 20];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t bytes = 0;
	ssize_t got = -1;

	while (fd >= 0 && (got = read(fd, buffer, sizeof(buffer))) > 0)
		bytes += (uint64_t)got;
	if (fd >= 0)
		close(fd);
	printf("%" PRIu64 " bytes\n", bytes);
	return got != 0;
}

static int parse(const char *path)
{
	char *text;
	size_t length;
	cJSON *tree;

	if (fs_read(path, SIZE_MAX / 2, &text, &length, NULL) != ST_OK)
		return 1;
	tree = cJSON_ParseWithLength(text, length);
	printf("%s\n", !tree ? "malformed" : "parsed");
	cJSON_Delete(tree);
	mem_free(text);
	return !tree;
}

/* ---- protobuf -------------------------------------------------------------------------------- */

/* Count the fields of a message, and of those within that look like messages. */
static uint64_t count_fields(struct import_wire wire, int depth)
{
	struct import_wire_field field;
	uint64_t count = 0;

	while (import_wire_next(&wire, &field)) {
		count++;
		if (depth > 0 && field.type == IMPORT_WIRE_BYTES && field.bytes.at)
			count += count_fields(field.bytes, depth - 1);
	}
	return count;
}

static int fields(const char *path)
{
	struct import_input input;
	struct import_stream stream = {.input = &input, .most = (size_t)1 << 30};
	struct import_wire_field field;
	enum status status = report__import_input_open(&input, path, NULL);
	uint64_t count = 0;
	bool more = true;

	while (status == ST_OK && more) {
		status = report__import_stream_next(&stream, &more, &field, NULL);
		if (status == ST_OK && more && field.bytes.at)
			count += count_fields(field.bytes, 3);
	}
	report__import_stream_fini(&stream);
	report__import_input_close(&input);
	printf("%" PRIu64 " fields\n", count);
	return status != ST_OK;
}

/* ---- SQLite ---------------------------------------------------------------------------------- */

static int run(sqlite3 *db, const char *sql, sqlite3_stmt **statement)
{
	return sqlite3_prepare_v2(db, sql, -1, statement, NULL);
}

/* Read all columns of all tables. */
static int rows(const char *path)
{
	sqlite3_stmt *tables = NULL, *select = NULL;
	sqlite3 *db;
	int64_t sum = 0, count = 0;
	int code = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL);

	if (code == SQLITE_OK)
		code = run(db,
			   "SELECT 'SELECT * FROM \"' || name || '\"' FROM sqlite_schema WHERE "
			   "type = 'table'",
			   &tables);
	while (code == SQLITE_OK && sqlite3_step(tables) == SQLITE_ROW) {
		code = run(db, (const char *)sqlite3_column_text(tables, 0), &select);
		while (code == SQLITE_OK && sqlite3_step(select) == SQLITE_ROW) {
			for (int i = 0; i < sqlite3_column_count(select); i++)
				sum = (int64_t)((uint64_t)sum +
						(uint64_t)sqlite3_column_int64(select, i));
			count++;
		}
		sqlite3_finalize(select);
		select = NULL;
	}
	sqlite3_finalize(tables);
	sqlite3_close(db);
	printf("%" PRId64 " rows, sum %" PRId64 "\n", count, sum);
	return code != SQLITE_OK;
}

#define ROWS_16(row)                                                                               \
	row "," row "," row "," row "," row "," row "," row "," row "," row "," row "," row        \
	    "," row "," row "," row "," row "," row
#define ROWS_64(row) ROWS_16(row) "," ROWS_16(row) "," ROWS_16(row) "," ROWS_16(row)

/* Bind 64 rows of @columns each to @statement and run it: the rows from @first on, and @key. */
static int insert_64(sqlite3_stmt *statement, int columns, long first, long key)
{
	for (int i = 0; i < 64; i++) {
		for (int c = 1; c < columns; c++)
			sqlite3_bind_int64(statement, i * columns + c + 1,
					   (first + i) * (c == 1 ? 1 : 997) % (1L << 8 * c));
		sqlite3_bind_int64(statement, i * columns + 1, key == 0 ? first / 1000 : key + i);
	}
	return sqlite3_step(statement) == SQLITE_DONE ? sqlite3_reset(statement) : SQLITE_ERROR;
}

/* Insert rows as wide as spans, then arguments, as the writer does: 64 at a time, in order. */
static int insert(const char *path, long spans, long args)
{
	sqlite3_stmt *span = NULL, *arg = NULL;
	sqlite3 *db;
	int code;

	remove(path);
	code = sqlite3_open(path, &db);
	if (code == SQLITE_OK)
		code = sqlite3_exec(
			db,
			"PRAGMA page_size=16384; PRAGMA cache_size=-16384; PRAGMA journal_mode=OFF;"
			"PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; BEGIN;"
			"CREATE TABLE span_rows (span_id INTEGER PRIMARY KEY, track_id INTEGER NOT "
			"NULL, site_id INTEGER NOT NULL, start_ns INTEGER NOT NULL, dur_ns INTEGER,"
			" context_id INTEGER, parent_back INTEGER, depth INTEGER NOT NULL);"
			"CREATE TABLE span_arg_rows (span_id INTEGER NOT NULL, name_id INTEGER NOT "
			"NULL, value, PRIMARY KEY (span_id, name_id)) WITHOUT ROWID",
			NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = run(db,
			   "INSERT INTO span_rows (track_id, site_id, start_ns, dur_ns, depth)"
			   " VALUES " ROWS_64("(?,?,?,?,?)"),
			   &span);
	if (code == SQLITE_OK)
		code = run(db,
			   "INSERT OR REPLACE INTO span_arg_rows (span_id, name_id, value) "
			   "VALUES " ROWS_64("(?,?,?)"),
			   &arg);
	for (long i = 0; i < spans && code == SQLITE_OK; i += 64)
		code = insert_64(span, 5, i, 0);
	for (long i = 0; i < args && code == SQLITE_OK; i += 64)
		code = insert_64(arg, 3, i, i + 1);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	sqlite3_finalize(span);
	sqlite3_finalize(arg);
	sqlite3_close(db);
	printf("%ld rows\n", spans + args);
	return code != SQLITE_OK;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const char *path);
	} parts[] = {{"scan", scan},
		     {"read", read_file},
		     {"cjson", parse},
		     {"fields", fields},
		     {"rows", rows}};
	int code = 2;

	for (size_t i = 0; i < ARRAY_LEN(parts) && argc == 3; i++) {
		if (strcmp(argv[1], parts[i].name) == 0)
			code = parts[i].run(argv[2]);
	}
	if (argc == 5 && strcmp(argv[1], "insert") == 0)
		code = insert(argv[2], atol(argv[3]), atol(argv[4]));
	if (code != 0)
		fprintf(stderr, "bench_trace: %s\n",
			code == 2 ? "read, scan, cjson, fields or rows FILE, or insert FILE SPANS "
				    "ARGS"
				  : "failed");
	return code;
}
