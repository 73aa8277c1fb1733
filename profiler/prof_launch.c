/*
 * Launches are linked at the end of a recording: a kernel may be written before the call that
 * launched it, on another track, and one call of a graph starts many. See prof_launch.h.
 *
 * One pass over the calls and over what they launched, both in order of spans, which is nearly that
 * of time: calls are read AHEAD spans further, and remembered as long as there is a place for them.
 * What was launched by a call that is not remembered is joined by SQLite.
 */
#include "profiler/prof_launch.h"

#include "common/mem.h"
#include "profiler/prof_sql.h"

#define AHEAD  (1 << 19) /* at least the spans that a recording buffers before they have ids */
#define PLACES ((size_t)1 << 20) /* at most */

/* Of several calls with one key, such as a driver's within the runtime's, the first one counts. */
static const char calls_sql[] = "SELECT span_id, launch_key FROM call_rows "
				"WHERE launch_key IS NOT NULL ORDER BY span_id";
static const char launched_sql[] =
	"SELECT span_id, launch_key FROM kernel_rows WHERE launch_key IS NOT NULL UNION ALL "
	"SELECT span_id, launch_key FROM copy_rows WHERE launch_key IS NOT NULL ORDER BY span_id";
static const char missed_sql[] =
	"WITH missed AS MATERIALIZED (SELECT span_id, launch_key FROM (SELECT span_id, launch_key "
	"FROM kernel_rows UNION ALL SELECT span_id, launch_key FROM copy_rows) WHERE launch_key IS "
	"NOT NULL AND span_id NOT IN (SELECT span_id FROM launch_rows)) "
	"INSERT OR IGNORE INTO launch_rows (span_id, launch_span_id) SELECT m.span_id, c.span_id "
	"FROM call_rows c CROSS JOIN missed m ON m.launch_key = c.launch_key ORDER BY c.span_id";
static const char flows_sql[] =
	"INSERT INTO strings (string_id, value) SELECT max(string_id) + 1, 'launch' FROM strings "
	"HAVING NOT EXISTS (SELECT 1 FROM strings WHERE value = 'launch');"
	"INSERT INTO flow_rows (from_span_id, to_span_id, name_id) "
	"SELECT launch_span_id, span_id, (SELECT min(string_id) FROM strings "
	"WHERE value = 'launch') FROM launch_rows;";

static const char needed_sql[] =
	"SELECT count(*) FROM call_rows WHERE NOT EXISTS (SELECT 1 FROM launch_rows)";

/* Calls by their key: the first of those that share a place, until it is AHEAD spans old. */
struct calls {
	sqlite3_stmt *rows;
	bool more;
	struct call {
		int64_t key, span_id; /* span_id 0: free */
	} * places;
	size_t mask;
	bool forgot; /* one that shared its place */
};

/* Keys grow with time within a process, whose number is in the upper bits. */
static struct call *call_place(const struct calls *calls, int64_t key)
{
	return &calls->places[((uint64_t)key + ((uint64_t)key >> 48) * 0x9e3779b1u) & calls->mask];
}

/* Remember the calls whose spans are at most @last. */
static void read_calls(struct calls *calls, int64_t last)
{
	while (calls->more && sqlite3_column_int64(calls->rows, 0) <= last) {
		const int64_t span_id = sqlite3_column_int64(calls->rows, 0);
		const int64_t key = sqlite3_column_int64(calls->rows, 1);
		struct call *call = call_place(calls, key);

		if (call->span_id != 0 && call->key != key)
			calls->forgot = true;
		if (call->span_id == 0 || (call->key != key && span_id - call->span_id > AHEAD))
			*call = (struct call){key, span_id};
		calls->more = sqlite3_step(calls->rows) == SQLITE_ROW;
	}
}

/* *@missed: something was launched by a call that is not known, or no longer. */
static enum status link_rows(sqlite3 *db, struct calls *calls, sqlite3_stmt *launched, bool *missed,
			     struct err *err)
{
	struct prof_insert insert;
	enum status status = prof_insert_init(
		&insert, db, "INSERT OR IGNORE INTO launch_rows (span_id, launch_span_id)", 2, NULL,
		err);

	calls->more = sqlite3_step(calls->rows) == SQLITE_ROW;
	while (status == ST_OK && sqlite3_step(launched) == SQLITE_ROW) {
		const int64_t span_id = sqlite3_column_int64(launched, 0);
		const int64_t key = sqlite3_column_int64(launched, 1);
		struct prof_cell *cells;
		const struct call *call;

		read_calls(calls, span_id + AHEAD);
		call = call_place(calls, key);
		if (call->span_id == 0 || call->key != key) {
			*missed = true;
			continue;
		}
		status = prof_insert_row(&insert, &cells, err);
		if (status != ST_OK)
			break;
		prof_cell_int(&cells[0], span_id);
		prof_cell_int(&cells[1], call->span_id);
	}
	if (status == ST_OK)
		status = prof_insert_flush(&insert, err);
	prof_insert_fini(&insert);
	return status;
}

static enum status link_all(sqlite3 *db, size_t count, struct err *err)
{
	struct calls calls = {.mask = 1};
	sqlite3_stmt *launched = NULL;
	bool missed = false;
	enum status status = ST_OK;

	while (calls.mask < 2 * count && calls.mask < PLACES)
		calls.mask *= 2;
	calls.places = mem_calloc(calls.mask, sizeof(*calls.places));
	calls.mask--;
	if (!calls.places)
		return err_nomem(err);
	if (sqlite3_prepare_v2(db, calls_sql, -1, &calls.rows, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, launched_sql, -1, &launched, NULL) != SQLITE_OK)
		status = prof_sql_error(db, sqlite3_errcode(db), err, "link launches");
	if (status == ST_OK)
		status = link_rows(db, &calls, launched, &missed, err);
	if (sqlite3_finalize(calls.rows) != SQLITE_OK && status == ST_OK)
		status = prof_sql_error(db, sqlite3_errcode(db), err, "link launches");
	if (sqlite3_finalize(launched) != SQLITE_OK && status == ST_OK)
		status = prof_sql_error(db, sqlite3_errcode(db), err, "link launches");
	mem_free(calls.places);
	if (status == ST_OK && missed && (calls.forgot || calls.more))
		status = prof_sql_run(db, missed_sql, err);
	return status == ST_OK ? prof_sql_run(db, flows_sql, err) : status;
}

enum status prof_launch_link(sqlite3 *db, struct err *err)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(db, needed_sql, -1, &statement, NULL);
	enum status status;
	int64_t count = 0;

	if (code != SQLITE_OK)
		return prof_sql_error(db, code, err, "link launches");
	if (sqlite3_step(statement) == SQLITE_ROW)
		count = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	if (count == 0)
		return ST_OK;
	status = prof_sql_run(db, "SAVEPOINT launches", err);
	if (status != ST_OK)
		return status;
	status = link_all(db, (size_t)count, err);
	if (status == ST_OK)
		return prof_sql_run(db, "RELEASE launches", err);
	sqlite3_exec(db, "ROLLBACK TO launches; RELEASE launches", NULL, NULL, NULL);
	return status;
}
