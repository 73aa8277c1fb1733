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

/* Without a WHERE SQLite counts pages' cells, not rows one by one. */
static const char needed_sql[] = "SELECT CASE WHEN EXISTS (SELECT 1 FROM launch_rows) THEN 0 ELSE "
				 "(SELECT count(*) FROM call_rows) END";

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

struct linker {
	sqlite3 *db;
	struct err *err; /* the first failure, after which nothing more is done */
	struct calls calls;
	sqlite3_stmt *launched[2]; /* kernels and copies, in order of spans */
	bool more[2];              /* there is a row of these */
	bool missed; /* something was launched by a call that is not known, or no longer */
	/* A flow from each launch to what it ran, in order of the latter's spans. */
	struct prof_insert *flows;
	int64_t flow_name;
	int64_t last_flow; /* the span that has the last one */
};

static void check(struct linker *linker, int code)
{
	if (!err_stuck(linker->err) && code != SQLITE_OK)
		prof_sql_error(linker->db, code, linker->err, "link launches");
}

static void run(struct linker *linker, const char *sql)
{
	if (!err_stuck(linker->err))
		prof_sql_run(linker->db, sql, linker->err);
}

/* Return a statement for the caller to finalize; NULL after a failure. */
static sqlite3_stmt *prepare(struct linker *linker, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	if (!err_stuck(linker->err))
		check(linker, sqlite3_prepare_v2(linker->db, sql, -1, &statement, NULL));
	return statement;
}

/* Step to the next row. That a step failed is noticed when the statement is finalized. */
static bool next(const struct linker *linker, sqlite3_stmt *statement)
{
	return !err_stuck(linker->err) && sqlite3_step(statement) == SQLITE_ROW;
}

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

static void put_flow(struct linker *linker, int64_t from, int64_t to)
{
	struct prof_cell *cells;

	if (err_stuck(linker->err) || prof_insert_row(linker->flows, &cells, linker->err) != ST_OK)
		return;
	prof_cell_int(&cells[0], from);
	prof_cell_int(&cells[1], to);
	prof_cell_int(&cells[2], linker->flow_name);
	linker->last_flow = to;
}

/* Go on to the row after the present one, of those of @at. */
static void next_launched(struct linker *linker, size_t at)
{
	linker->more[at] = sqlite3_step(linker->launched[at]) == SQLITE_ROW;
}

/* Return the statement whose row is the next; NULL: there is none. */
static sqlite3_stmt *first_launched(const struct linker *linker, size_t *at)
{
	*at = !linker->more[0] ||
	      (linker->more[1] && sqlite3_column_int64(linker->launched[1], 0) <
					  sqlite3_column_int64(linker->launched[0], 0));
	return linker->more[*at] ? linker->launched[*at] : NULL;
}

/* Put the launches into @insert, and flows up to the first that SQLite may join. */
static void link_rows(struct linker *linker, struct prof_insert *insert)
{
	struct calls *calls = &linker->calls;
	sqlite3_stmt *row;
	int64_t last = 0;
	bool all = true;
	size_t at;

	next_call(calls);
	next_launched(linker, 0);
	next_launched(linker, 1);
	for (; !err_stuck(linker->err) && (row = first_launched(linker, &at));
	     next_launched(linker, at)) {
		const int64_t span_id = sqlite3_column_int64(row, 0);
		const int64_t key = sqlite3_column_int64(row, 1);
		struct prof_cell *cells;
		const struct call *call;

		read_calls(calls, span_id > INT64_MAX - AHEAD ? INT64_MAX : span_id + AHEAD);
		call = call_place(calls, key);
		if (call->span_id == 0 || call->key != key) {
			linker->missed = true;
			all = all && !calls->forgot && !calls->more;
			continue;
		}
		if (span_id == last)
			continue;
		last = span_id;
		if (prof_insert_row(insert, &cells, linker->err) != ST_OK)
			break;
		prof_cell_int(&cells[0], span_id);
		prof_cell_int(&cells[1], call->span_id);
		if (all)
			put_flow(linker, call->span_id, span_id);
	}
	if (!err_stuck(linker->err))
		prof_insert_flush(insert, linker->err);
}

/* Fill launch_rows: by @bulk, or NULL by INSERTs. */
static void fill_launches(struct linker *linker, struct prof_bulk *bulk)
{
	struct prof_insert insert = {0};

	if (prof_insert_init(&insert, linker->db,
			     "INSERT OR IGNORE INTO launch_rows (span_id, launch_span_id)", 2, NULL,
			     linker->err) == ST_OK &&
	    bulk)
		prof_bulk_table(bulk, "launch_rows", PROF_BULK_ROWID, insert.columns, &insert.bulk,
				linker->err);
	linker->calls.rows = prepare(linker, calls_sql);
	for (size_t i = 0; i < ARRAY_LEN(launched_sql); i++)
		linker->launched[i] = prepare(linker, launched_sql[i]);
	if (!err_stuck(linker->err))
		link_rows(linker, &insert);
	check(linker, sqlite3_finalize(linker->calls.rows));
	for (size_t i = 0; i < ARRAY_LEN(launched_sql); i++)
		check(linker, sqlite3_finalize(linker->launched[i]));
	prof_insert_fini(&insert);
	if (bulk && !err_stuck(linker->err))
		prof_bulk_join(bulk, linker->err);
}

/* @flows as of prof_launch_link(). */
static void link_all(struct linker *linker, size_t count, struct prof_insert *flows)
{
	struct calls *calls = &linker->calls;
	struct prof_insert inserted = {0};
	struct prof_bulk *bulk = NULL;
	sqlite3_stmt *statement;

	run(linker, flow_name_sql);
	statement = prepare(linker, flow_id_sql);
	if (next(linker, statement))
		linker->flow_name = sqlite3_column_int64(statement, 0);
	check(linker, sqlite3_finalize(statement));
	if (err_stuck(linker->err))
		return;

	linker->flows = flows ? flows : &inserted;
	if (flows)
		prof_bulk_new(&bulk, linker->db, linker->err);
	else
		prof_insert_init(&inserted, linker->db,
				 "INSERT INTO flow_rows (from_span_id, to_span_id, name_id)", 3,
				 NULL, linker->err);
	for (calls->mask = 1; calls->mask < 2 * count && calls->mask < PLACES; calls->mask *= 2)
		continue;
	calls->places = mem_calloc(calls->mask, sizeof(*calls->places));
	calls->mask--;
	if (!calls->places && !err_stuck(linker->err))
		err_nomem(linker->err);
	if (!err_stuck(linker->err))
		fill_launches(linker, bulk);
	prof_bulk_free(bulk);
	mem_free(calls->places);
	if (linker->missed && (calls->forgot || calls->more))
		run(linker, missed_sql);

	statement = prepare(linker, flows_sql); /* the flows that are not put yet */
	if (statement)
		check(linker, sqlite3_bind_int64(statement, 1, linker->last_flow));
	while (next(linker, statement))
		put_flow(linker, sqlite3_column_int64(statement, 0),
			 sqlite3_column_int64(statement, 1));
	check(linker, sqlite3_finalize(statement));
	if (!err_stuck(linker->err))
		prof_insert_flush(linker->flows, linker->err);
	prof_insert_fini(&inserted);
}

void prof_launch_link(sqlite3 *db, struct prof_insert *flows, struct err *err)
{
	struct linker linker = {.db = db, .err = err, .last_flow = INT64_MIN};
	sqlite3_stmt *statement = prepare(&linker, needed_sql);
	int64_t count = 0;

	if (next(&linker, statement))
		count = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	if (count == 0)
		return;
	if (flows) {
		link_all(&linker, (size_t)count, flows);
		return;
	}
	run(&linker, "SAVEPOINT launches");
	if (err_stuck(err))
		return;
	link_all(&linker, (size_t)count, NULL);
	if (!err_stuck(err))
		run(&linker, "RELEASE launches");
	else
		sqlite3_exec(db, "ROLLBACK TO launches; RELEASE launches", NULL, NULL, NULL);
}
