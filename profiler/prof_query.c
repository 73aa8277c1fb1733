/*
 * Queries of the read side: a cache of statements, their limits and failures, the columns of their
 * rows. See prof_db.h.
 *
 * Threading: as the handle's. The handle owns the cached statements; a query owns its statement
 * while it is open.
 */
#include "profiler/prof_db_internal.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_sql.h"

struct prof_query {
	struct prof_db *db;
	sqlite3_stmt *statement;
	char *sql;
	uint8_t *types; /* of the row's columns, as SQLite numbers them */
	size_t types_room;
	int type_count; /* 0: there is no row */
	bool busy;      /* in use by a caller */
	/* What it took since it was opened, however many others are opened meanwhile. */
	int64_t rows, steps, since_ns;
	bool ended; /* by a limit on these */
	uint64_t used;
	struct err failure;       /* of a bind: reported at the next step */
	struct prof_ahead *ahead; /* not NULL: has the statement, and the handle */
};

/* ---- limits ---------------------------------------------------------------------------------- */

static int64_t thread_cpu_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Steps alone would not do: one that calls a function on megabytes takes as long as a million. */
int prof__query_progress(void *user)
{
	const struct prof_db *db = user;
	struct prof_query *query = db->running;

	if (!query || db->most_steps == 0)
		return 0;
	query->steps += PROF_STEPS_PER_CHECK;
	query->ended =
		query->steps > db->most_steps || thread_cpu_ns() - query->since_ns > db->most_ns;
	return query->ended;
}

static void restart_limits(struct prof_query *query)
{
	query->rows = 0;
	query->steps = 0;
	query->since_ns = thread_cpu_ns();
	query->ended = false;
}

static enum status report_limit(const struct prof_db *db, struct err *err)
{
	return err_set(err, ST_LIMIT,
		       "%s: a query does not end: the file's views or rows are not those of a "
		       "recording (--unlimited lifts the limit)",
		       db->path);
}

/* Whether SQLite's result is due to the limit on memory: what it holds doubles at times. */
static bool is_memory_limit(const struct prof_db *db, int code)
{
	return (code & 0xff) == SQLITE_NOMEM && !db->guard && db->most_bytes > 0 &&
	       sqlite3_memory_highwater(0) > db->most_bytes / 4;
}

/* ---- failures -------------------------------------------------------------------------------- */

enum status prof__store_failure(struct prof_db *db, enum status status, const struct err *err)
{
	if (status == ST_NOMEM && !err)
		db->out_of_memory = true;
	return status;
}

bool prof_db_lacked_memory(struct prof_db *db)
{
	const bool lacked = db && db->out_of_memory;

	if (lacked)
		db->out_of_memory = false;
	return lacked;
}

/* If a guarded handle stopped a statement with the SQLite result @code, set *@status and @err and
 * return true. Otherwise leave both unchanged. */
static bool report_guarded(struct prof_db *db, int code, enum status *status, struct err *err)
{
	char text[FMT_SIZE];

	if (!db->guard)
		return false;
	if (db->guard->denied[0] != 0) {
		*status = err_set(err, ST_INVALID,
				  "%s is not allowed here: only statements that read are",
				  db->guard->denied);
		db->guard->denied[0] = 0;
		return true;
	}
	if ((code & 0xff) != SQLITE_NOMEM)
		return false;
	*status = err_set(err, ST_LIMIT,
			  "the statement needs more than %s of memory: ask for less, or in parts",
			  fmt_bytes(text, (uint64_t)db->guard->params.memory_bytes));
	return true;
}

int prof__pragma_int(struct prof_db *db, const char *sql, int64_t *value)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL);

	*value = 0;
	if (code != SQLITE_OK)
		return code;
	if (sqlite3_step(statement) == SQLITE_ROW)
		*value = sqlite3_column_int64(statement, 0);
	return sqlite3_finalize(statement);
}

/* A statement of @query failed with SQLITE_ERROR or SQLITE_AUTH. Our own are correct, and fail if
 * another program has emptied or overwritten the file. */
static enum status report_invalid(const struct prof_query *query, struct err *err)
{
	char message[ERR_TEXT_SIZE];
	int64_t application;

	str_copy(message, sizeof(message), sqlite3_errmsg(query->db->handle));
	if (!query->db->guard && !query->db->foreign &&
	    prof__pragma_int(query->db, "PRAGMA application_id", &application) == SQLITE_OK &&
	    application != PROF_APPLICATION_ID)
		return err_set(err, ST_FORMAT,
			       "%s: another program has overwritten the file while it was read",
			       query->db->path);
	return err_set(err, ST_INVALID, "%s", message);
}

/* ---- statements ------------------------------------------------------------------------------ */

static enum status prepare(struct prof_query *query, const char *sql, struct err *err)
{
	sqlite3 *handle = query->db->handle;
	const char *rest = NULL;
	enum status status;
	int code;

	query->db->running = query;
	code = sqlite3_prepare_v3(handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &query->statement,
				  &rest);
	query->db->running = NULL;
	if (code != SQLITE_OK && report_guarded(query->db, code, &status, err))
		return status;
	if ((code & 0xff) == SQLITE_ERROR || (code & 0xff) == SQLITE_AUTH)
		return report_invalid(query, err);
	if (code != SQLITE_OK)
		return prof_sql_error(handle, code, err, query->db->path);
	if (!query->statement)
		return err_set(err, ST_INVALID, "no statement");
	if (rest && rest[strspn(rest, " \t\r\n;")] != 0)
		return err_set(err, ST_INVALID, "more than one statement");
	if (!sqlite3_stmt_readonly(query->statement))
		return err_set(err, ST_INVALID, "the database is open for reading only");
	return ST_OK;
}

static void query_free(struct prof_query *query)
{
	if (!query)
		return;
	sqlite3_finalize(query->statement);
	mem_free(query->types);
	mem_free(query->sql);
	mem_free(query);
}

enum status prof_query_open(struct prof_query **out, struct prof_db *db, const char *sql,
			    struct err *err)
{
	struct prof_query *query;
	enum status status;

	*out = NULL;
	if (!db)
		return err_set(err, ST_BUSY, "the run is being closed: a moment");
	if (err && prof_db_lacked_memory(db))
		return err_nomem(err);
	for (size_t i = 0; i < PROF_CACHE_SIZE; i++) {
		query = db->cache[i];
		if (query && !query->busy && strcmp(query->sql, sql) == 0) {
			query->busy = true;
			query->failure.status = ST_OK;
			restart_limits(query);
			*out = query;
			return ST_OK;
		}
	}
	query = mem_calloc(1, sizeof(*query));
	if (!query)
		return prof__store_failure(db, err_nomem(err), err);
	query->db = db;
	restart_limits(query);
	query->sql = mem_strdup(sql);
	status = !query->sql ? err_nomem(err) : prepare(query, sql, err);
	if (status == ST_OK) {
		query->busy = true;
		*out = query;
	} else {
		query_free(query);
	}
	return prof__store_failure(db, status, err);
}

/* Return the parameter's index; 0 without a query, or for an unknown name, which the next step
 * reports. */
static int find_parameter(struct prof_query *query, const char *name)
{
	int index = query ? sqlite3_bind_parameter_index(query->statement, name) : 0;

	if (query && index == 0 && query->failure.status == ST_OK)
		err_set(&query->failure, ST_INVALID, "the query has no parameter %s", name);
	return index;
}

static void set_failure(struct prof_query *query, int code)
{
	if (code != SQLITE_OK && query->failure.status == ST_OK)
		prof_sql_error(query->db->handle, code, &query->failure, "bind");
}

void prof_query_int(struct prof_query *query, const char *name, int64_t value)
{
	int index = find_parameter(query, name);

	if (index > 0)
		set_failure(query, value == IPS_NULL
					   ? sqlite3_bind_null(query->statement, index)
					   : sqlite3_bind_int64(query->statement, index, value));
}

void prof_query_real(struct prof_query *query, const char *name, double value)
{
	int index = find_parameter(query, name);

	if (index > 0)
		set_failure(query, sqlite3_bind_double(query->statement, index, value));
}

void prof_query_text(struct prof_query *query, const char *name, const char *value)
{
	int index = find_parameter(query, name);

	if (index > 0)
		set_failure(query, sqlite3_bind_text(query->statement, index, value, -1,
						     SQLITE_TRANSIENT));
}

/* Read the types of the row, and have SQLite make its texts, so that a column of type PROF_TEXT
 * always has one. */
static bool read_types(struct prof_query *query, int count)
{
	for (int i = 0; i < count; i++) {
		query->types[i] = (uint8_t)sqlite3_column_type(query->statement, i);
		if (query->types[i] == SQLITE_TEXT && !sqlite3_column_text(query->statement, i))
			return false;
	}
	query->type_count = count;
	return true;
}

/* @ahead: by the thread that reads ahead, which keeps types and texts of its own. */
static enum status step(struct prof_query *query, bool ahead, bool *row, struct err *err)
{
	enum status status;
	int code;

	*row = false;
	query->type_count = 0;
	if (query->failure.status != ST_OK)
		return err_set(err, query->failure.status, "%s", query->failure.text);
	query->db->running = query;
	code = sqlite3_step(query->statement);
	query->db->running = NULL;
	if (code == SQLITE_ROW && !ahead) {
		/* Not that of prepare(): a changed schema gives `SELECT *` other columns. */
		const int count = sqlite3_data_count(query->statement);

		if (mem_grow(&query->types, &query->types_room, (size_t)count, 1) != 0)
			return err_nomem(err);
		if (!read_types(query, count))
			code = SQLITE_NOMEM;
	}
	*row = code == SQLITE_ROW;
	if (code == SQLITE_ROW && query->db->most_rows > 0 &&
	    ++query->rows > query->db->most_rows) {
		*row = false;
		return report_limit(query->db, err);
	}
	if (code == SQLITE_ROW || code == SQLITE_DONE)
		return ST_OK;
	if ((code & 0xff) == SQLITE_INTERRUPT && !query->db->guard && query->ended)
		return report_limit(query->db, err);
	if (report_guarded(query->db, code, &status, err))
		return status;
	if ((code & 0xff) == SQLITE_ERROR)
		return report_invalid(query, err);
	if (is_memory_limit(query->db, code)) {
		char text[FMT_SIZE];

		return err_set(
			err, ST_LIMIT,
			"%s: a query needs more than %s of memory (--unlimited lifts the limit)",
			query->db->path, fmt_bytes(text, (uint64_t)query->db->most_bytes));
	}
	return prof_sql_error(query->db->handle, code, err, query->db->path);
}

static enum status step_ahead(void *user, bool *row, struct err *err)
{
	return step(user, true, row, err);
}

enum status prof_query_ahead(struct prof_query *query, struct err *err)
{
	query->since_ns = 0; /* of the new thread */
	return prof_ahead_start(&query->ahead, query->statement, step_ahead, query, err);
}

enum status prof_query_step(struct prof_query *query, bool *row, struct err *err)
{
	return prof__store_failure(query->db,
				   query->ahead ? prof_ahead_next(query->ahead, row, err)
						: step(query, false, row, err),
				   err);
}

bool prof_query_next(struct prof_query *query, enum status *status, struct err *err)
{
	bool row = false;

	if (*status == ST_OK)
		*status = prof_query_step(query, &row, err);
	return *status == ST_OK && row;
}

void prof_query_close(struct prof_query *query)
{
	size_t oldest = 0;
	struct prof_db *db;

	if (!query)
		return;
	db = query->db;
	prof_ahead_stop(query->ahead);
	query->ahead = NULL;
	sqlite3_reset(query->statement);
	sqlite3_clear_bindings(query->statement);
	query->type_count = 0;
	query->busy = false;
	query->used = ++db->uses;
	for (size_t i = 0; i < PROF_CACHE_SIZE; i++) {
		if (db->cache[i] == query)
			return;
	}
	for (size_t i = 0; i < PROF_CACHE_SIZE; i++) {
		const struct prof_query *other = db->cache[i], *old = db->cache[oldest];

		if (!other) {
			oldest = i;
			break;
		}
		if (!other->busy && (old->busy || other->used < old->used))
			oldest = i;
	}
	if (db->cache[oldest] && db->cache[oldest]->busy) {
		query_free(query);
		return;
	}
	query_free(db->cache[oldest]);
	db->cache[oldest] = query;
}

void prof__query_cache_free(struct prof_db *db)
{
	for (size_t i = 0; i < PROF_CACHE_SIZE; i++)
		query_free(db->cache[i]);
}

enum status prof_db_number(struct prof_db *db, const char *sql, int64_t *out, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	*out = IPS_NULL;
	if (prof_query_next(query, &status, err))
		*out = prof_column_int(query, 0);
	prof_query_close(query);
	return status;
}

/* ---- columns --------------------------------------------------------------------------------- */

int prof_column_count(const struct prof_query *query)
{
	return sqlite3_column_count(query->statement);
}

const char *prof_column_name(const struct prof_query *query, int column)
{
	const char *name = sqlite3_column_name(query->statement, column);

	return !name ? "" : name;
}

enum prof_type prof_column_type(const struct prof_query *query, int column)
{
	int type = SQLITE_NULL;

	if (query->ahead)
		type = prof_ahead_type(query->ahead, column);
	else if (column < query->type_count)
		type = query->types[column];
	switch (type) {
	case SQLITE_INTEGER:
		return PROF_INT;
	case SQLITE_FLOAT:
		return PROF_REAL;
	case SQLITE_TEXT:
		return PROF_TEXT;
	case SQLITE_BLOB:
		return PROF_BLOB;
	default:
		return PROF_NULL;
	}
}

int64_t prof_column_int(const struct prof_query *query, int column)
{
	const int64_t value = query->ahead ? prof_ahead_int(query->ahead, column)
					   : sqlite3_column_int64(query->statement, column);

	/* SQLite returns 0 for NULL, so only a 0 needs the check. */
	return value == 0 && prof_column_type(query, column) == PROF_NULL ? IPS_NULL : value;
}

double prof_column_real(const struct prof_query *query, int column)
{
	const double value = query->ahead ? prof_ahead_real(query->ahead, column)
					  : sqlite3_column_double(query->statement, column);

	return value == 0 && prof_column_type(query, column) == PROF_NULL ? (double)NAN : value;
}

const char *prof_column_text(const struct prof_query *query, int column)
{
	size_t size;

	return query->ahead ? prof_ahead_text(query->ahead, column, &size)
			    : (const char *)sqlite3_column_text(query->statement, column);
}

const void *prof_column_blob(const struct prof_query *query, int column, size_t *size)
{
	const void *blob;

	if (query->ahead)
		return prof_ahead_text(query->ahead, column, size);
	blob = sqlite3_column_blob(query->statement, column);
	*size = (size_t)sqlite3_column_bytes(query->statement, column);
	return blob;
}
