/*
 * Launches are linked at the end of a recording: a kernel may be written before the call that
 * launched it, on another track, and one call of a graph starts many. See prof_finish.h.
 *
 * One pass over the calls and over what they launched, both in order of spans, which is nearly that
 * of time: calls are read AHEAD spans further, and remembered as long as there is a place for them.
 * What was launched by a call that is not remembered is joined by SQLite.
 */
#include "profiler/prof_finish.h"

#include "common/mem.h"
#include "profiler/prof_bulk.h"
#include "profiler/prof_insert.h"
#include "profiler/prof_sql.h"

#define AHEAD  (1 << 19) /* at least the spans that a recording buffers before they have ids */
#define PLACES ((size_t)1 << 20) /* at most */

/* Of several calls with one key, such as a driver's within the runtime's, the first one counts. */
static const char calls_sql[] = "SELECT span_id, launch_key FROM call_rows "
				"WHERE launch_key IS NOT NULL ORDER BY span_id";
static const char *const launched_sql[] = {
	"SELECT span_id, launch_key FROM kernel_rows WHERE launch_key IS NOT NULL ORDER BY span_id",
	"SELECT span_id, launch_key FROM copy_rows WHERE launch_key IS NOT NULL ORDER BY span_id",
};
static const char missed_sql[] =
	"WITH missed AS MATERIALIZED (SELECT span_id, launch_key FROM (SELECT span_id, launch_key "
	"FROM kernel_rows UNION ALL SELECT span_id, launch_key FROM copy_rows) WHERE launch_key IS "
	"NOT NULL AND span_id NOT IN (SELECT span_id FROM launch_rows)) "
	"INSERT OR IGNORE INTO launch_rows (span_id, launch_span_id) SELECT m.span_id, c.span_id "
	"FROM call_rows c CROSS JOIN missed m ON m.launch_key = c.launch_key ORDER BY c.span_id";
static const char flow_name_sql[] =
	"INSERT INTO strings (string_id, value) SELECT max(string_id) + 1, 'launch' FROM strings "
	"HAVING NOT EXISTS (SELECT 1 FROM strings WHERE value = 'launch')";
static const char flow_id_sql[] = "SELECT min(string_id) FROM strings WHERE value = 'launch'";
static const char flows_sql[] = "SELECT launch_span_id, span_id FROM launch_rows WHERE span_id > ? "
				"ORDER BY span_id";

static const char needed_sql[] =
	"SELECT count(*) FROM call_rows WHERE NOT EXISTS (SELECT 1 FROM launch_rows)";

/* Calls by their key: the first of those that share a place, until it is AHEAD spans old. */
struct calls {
	sqlite3_stmt *rows;
	bool more;
	int64_t span_id; /* of the row that is read next, if there is `more` */
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

static void next_call(struct calls *calls)
{
	calls->more = sqlite3_step(calls->rows) == SQLITE_ROW;
	if (calls->more)
		calls->span_id = sqlite3_column_int64(calls->rows, 0);
}

/* Remember the calls whose spans are at most @last. */
static void read_calls(struct calls *calls, int64_t last)
{
	for (; calls->more && calls->span_id <= last; next_call(calls)) {
		const int64_t span_id = calls->span_id;
		const int64_t key = sqlite3_column_int64(calls->rows, 1);
		struct call *call = call_place(calls, key);

		if (call->span_id != 0 && call->key != key)
			calls->forgot = true;
		/* Calls come in order of spans, whose numbers a damaged file may have as far apart
		 * as they can be. */
		if (call->span_id == 0 ||
		    (call->key != key && (uint64_t)span_id - (uint64_t)call->span_id > AHEAD))
			*call = (struct call){key, span_id};
	}
}

/* A flow from each launch to what it ran, in order of the latter's spans. */
struct flows {
	struct prof_insert *rows;
	int64_t name_id;
	int64_t last; /* the span that has the last one */
};

static enum status put_flow(struct flows *flows, int64_t from, int64_t to, struct err *err)
{
	struct prof_cell *cells;
	enum status status = prof_insert_row(flows->rows, &cells, err);

	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], from);
	prof_cell_int(&cells[1], to);
	prof_cell_int(&cells[2], flows->name_id);
	flows->last = to;
	return ST_OK;
}

/* Kernels and copies, in order of spans. */
struct launched {
	sqlite3_stmt *rows[2];
	bool more[2];
};

/* Go on to the row after the present one, of those of @at. */
static void next_launched(struct launched *launched, size_t at)
{
	launched->more[at] = sqlite3_step(launched->rows[at]) == SQLITE_ROW;
}

/* Return the statement whose row is the next; NULL: there is none. */
static sqlite3_stmt *first_launched(const struct launched *launched, size_t *at)
{
	*at = !launched->more[0] ||
	      (launched->more[1] && sqlite3_column_int64(launched->rows[1], 0) <
					    sqlite3_column_int64(launched->rows[0], 0));
	return launched->more[*at] ? launched->rows[*at] : NULL;
}

/* *@missed: something was launched by a call that is not known, or no longer. Flows are put up to
 * the first that SQLite may join. */
static enum status link_rows(struct calls *calls, struct launched *launched,
			     struct prof_insert *insert, struct flows *flows, bool *missed,
			     struct err *err)
{
	enum status status = ST_OK;
	sqlite3_stmt *row;
	int64_t last = 0;
	bool all = true;
	size_t at;

	next_call(calls);
	next_launched(launched, 0);
	next_launched(launched, 1);
	for (; status == ST_OK && (row = first_launched(launched, &at));
	     next_launched(launched, at)) {
		const int64_t span_id = sqlite3_column_int64(row, 0);
		const int64_t key = sqlite3_column_int64(row, 1);
		struct prof_cell *cells;
		const struct call *call;

		read_calls(calls, span_id > INT64_MAX - AHEAD ? INT64_MAX : span_id + AHEAD);
		call = call_place(calls, key);
		if (call->span_id == 0 || call->key != key) {
			*missed = true;
			all = all && !calls->forgot && !calls->more;
			continue;
		}
		if (span_id == last)
			continue;
		last = span_id;
		status = prof_insert_row(insert, &cells, err);
		if (status != ST_OK)
			break;
		prof_cell_int(&cells[0], span_id);
		prof_cell_int(&cells[1], call->span_id);
		if (all)
			status = put_flow(flows, call->span_id, span_id, err);
	}
	return status == ST_OK ? prof_insert_flush(insert, err) : status;
}

/* Set @status, if it is ST_OK, to what @code says. */
static void check(sqlite3 *db, int code, enum status *status, struct err *err)
{
	if (*status == ST_OK && code != SQLITE_OK)
		*status = prof_sql_error(db, code, err, "link launches");
}

/* Fill launch_rows: by @bulk, or NULL by INSERTs. */
static enum status fill_launches(sqlite3 *db, struct prof_bulk *bulk, struct calls *calls,
				 struct flows *flows, bool *missed, struct err *err)
{
	struct launched launched = {{NULL, NULL}, {false, false}};
	struct prof_insert insert = {0};
	enum status status = prof_insert_init(
		&insert, db, "INSERT OR IGNORE INTO launch_rows (span_id, launch_span_id)", 2, NULL,
		err);

	if (status == ST_OK && bulk)
		status = prof_bulk_table(bulk, "launch_rows", PROF_BULK_ROWID, insert.columns,
					 &insert.bulk, err);
	check(db, sqlite3_prepare_v2(db, calls_sql, -1, &calls->rows, NULL), &status, err);
	for (size_t i = 0; i < ARRAY_LEN(launched_sql); i++)
		check(db, sqlite3_prepare_v2(db, launched_sql[i], -1, &launched.rows[i], NULL),
		      &status, err);
	if (status == ST_OK)
		status = link_rows(calls, &launched, &insert, flows, missed, err);
	check(db, sqlite3_finalize(calls->rows), &status, err);
	for (size_t i = 0; i < ARRAY_LEN(launched_sql); i++)
		check(db, sqlite3_finalize(launched.rows[i]), &status, err);
	prof_insert_fini(&insert);
	return status == ST_OK && bulk ? prof_bulk_join(bulk, err) : status;
}

static enum status link_all(sqlite3 *db, size_t count, struct prof_insert *rows, struct err *err)
{
	struct calls calls = {.mask = 1};
	struct prof_insert inserted = {0};
	struct flows flows = {.rows = rows ? rows : &inserted, .last = INT64_MIN};
	struct prof_bulk *bulk = NULL;
	sqlite3_stmt *statement = NULL;
	bool missed = false;
	enum status status = prof_sql_run(db, flow_name_sql, err);

	if (status != ST_OK)
		return status;
	check(db, sqlite3_prepare_v2(db, flow_id_sql, -1, &statement, NULL), &status, err);
	if (status == ST_OK && sqlite3_step(statement) == SQLITE_ROW)
		flows.name_id = sqlite3_column_int64(statement, 0);
	check(db, sqlite3_finalize(statement), &status, err);

	if (status == ST_OK && rows)
		status = prof_bulk_new(&bulk, db, err);
	if (status == ST_OK && !rows)
		status = prof_insert_init(
			&inserted, db, "INSERT INTO flow_rows (from_span_id, to_span_id, name_id)",
			3, NULL, err);
	while (calls.mask < 2 * count && calls.mask < PLACES)
		calls.mask *= 2;
	calls.places = mem_calloc(calls.mask, sizeof(*calls.places));
	calls.mask--;
	if (status == ST_OK)
		status = calls.places ? fill_launches(db, bulk, &calls, &flows, &missed, err)
				      : err_nomem(err);
	prof_bulk_free(bulk);
	mem_free(calls.places);
	if (status == ST_OK && missed && (calls.forgot || calls.more))
		status = prof_sql_run(db, missed_sql, err);
	if (status == ST_OK) { /* the flows that are not put yet */
		check(db, sqlite3_prepare_v2(db, flows_sql, -1, &statement, NULL), &status, err);
		check(db, sqlite3_bind_int64(statement, 1, flows.last), &status, err);
		while (status == ST_OK && sqlite3_step(statement) == SQLITE_ROW)
			status = put_flow(&flows, sqlite3_column_int64(statement, 0),
					  sqlite3_column_int64(statement, 1), err);
		check(db, sqlite3_finalize(statement), &status, err);
	}
	if (status == ST_OK)
		status = prof_insert_flush(flows.rows, err);
	prof_insert_fini(&inserted);
	return status;
}

enum status prof_launch_link(sqlite3 *db, struct prof_insert *flows, struct err *err)
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
	if (flows)
		return link_all(db, (size_t)count, flows, err);
	status = prof_sql_run(db, "SAVEPOINT launches", err);
	if (status != ST_OK)
		return status;
	status = link_all(db, (size_t)count, NULL, err);
	if (status == ST_OK)
		return prof_sql_run(db, "RELEASE launches", err);
	sqlite3_exec(db, "ROLLBACK TO launches; RELEASE launches", NULL, NULL, NULL);
	return status;
}
