/*
 * Statements without results, failures, attached databases. See prof_sql.h.
 */
#include "profiler/prof_sql.h"

#include <errno.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

static const struct {
	int code;
	enum status status;
} code_map[] = {
	{SQLITE_NOMEM, ST_NOMEM},      {SQLITE_BUSY, ST_BUSY},
	{SQLITE_LOCKED, ST_BUSY},      {SQLITE_FULL, ST_NOSPACE},
	{SQLITE_IOERR, ST_IO},         {SQLITE_CANTOPEN, ST_IO},
	{SQLITE_READONLY, ST_IO},      {SQLITE_PERM, ST_IO},
	{SQLITE_CORRUPT, ST_FORMAT},   {SQLITE_NOTADB, ST_FORMAT},
	{SQLITE_TOOBIG, ST_LIMIT},     {SQLITE_INTERRUPT, ST_INTERRUPTED},
	{SQLITE_AUTH, ST_UNSUPPORTED},
};

static enum status status_of(int code, int system)
{
	if ((code & 0xff) == SQLITE_IOERR &&
	    (system == EFBIG || system == ENOSPC || system == EDQUOT))
		return ST_NOSPACE;
	for (size_t i = 0; i < ARRAY_LEN(code_map); i++) {
		if (code_map[i].code == (code & 0xff))
			return code_map[i].status;
	}
	return ST_FAILED;
}

enum status prof_sql_error(sqlite3 *db, int code, struct err *err, const char *what)
{
	int system = !db ? 0 : sqlite3_system_errno(db);
	const char *text;

	/* SQLite does not record the system's errno for a failed COMMIT. */
	if (system == 0)
		system = errno;
	text = !db ? sqlite3_errstr(code) : sqlite3_errmsg(db);
	if ((code & 0xff) == SQLITE_IOERR && system != 0)
		return err_set(err, status_of(code, system), "%s: %s (%s)", what, text,
			       strerror(system));
	return err_set(err, status_of(code, system), "%s: %s", what, text);
}

enum status prof_sql_run(sqlite3 *db, const char *sql, struct err *err)
{
	int code;

	errno = 0;
	code = sqlite3_exec(db, sql, NULL, NULL, NULL);
	return code == SQLITE_OK ? ST_OK : prof_sql_error(db, code, err, "database");
}

enum status prof_sql_prepare(sqlite3_stmt **out, sqlite3 *db, const char *sql, struct err *err)
{
	int code = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);

	return code == SQLITE_OK ? ST_OK : prof_sql_error(db, code, err, "prepare");
}

enum status prof_sql_execute(sqlite3_stmt *statement, struct err *err, const char *what)
{
	int code;

	errno = 0;
	code = sqlite3_step(statement);
	while (code == SQLITE_ROW)
		code = sqlite3_step(statement);
	if (code != SQLITE_DONE) {
		enum status status = prof_sql_error(sqlite3_db_handle(statement), code, err, what);

		sqlite3_reset(statement);
		return status;
	}
	sqlite3_reset(statement);
	return ST_OK;
}

/* Return "file:PATH?QUERY" with the special characters of URIs escaped; the caller frees it with
 * mem_free(). NULL if out of memory. */
static char *make_uri(const char *path, const char *query)
{
	struct str uri = {0};

	/* "//" begins the authority of a URI: before an absolute path it is empty. ":memory:" is not a
	 * file's name in a URI either, "./:memory:" is. */
	str_add(&uri, path[0] == '/' ? "file://" : "file:./");
	for (const char *p = path; *p != 0; p++) {
		if (strchr("%?#", *p))
			str_addf(&uri, "%%%02X", (unsigned)(unsigned char)*p);
		else
			str_add_bytes(&uri, p, 1);
	}
	str_addf(&uri, "?%s", query);
	if (uri.failed) {
		str_free(&uri);
		return NULL;
	}
	return uri.text;
}

int prof_sql_open(sqlite3 **out, const char *path, const char *query, int flags, const char *vfs)
{
	char *uri = make_uri(path, query);
	int code;

	*out = NULL;
	code = uri ? sqlite3_open_v2(uri, out, flags | SQLITE_OPEN_URI, vfs) : SQLITE_NOMEM;
	mem_free(uri);
	return code;
}

int prof_sql_attach(sqlite3 *db, const char *path, const char *query, const char *name)
{
	char *uri = make_uri(path, query);
	sqlite3_stmt *statement;
	int code;

	if (!uri)
		return SQLITE_NOMEM;
	code = sqlite3_prepare_v2(db, "ATTACH ?1 AS ?2", -1, &statement, NULL);
	if (code == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, uri, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 2, name, -1, SQLITE_STATIC);
		sqlite3_step(statement);
		code = sqlite3_finalize(statement);
	}
	mem_free(uri);
	return code;
}

int prof_sql_detach(sqlite3 *db, const char *name)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(db, "DETACH ?1", -1, &statement, NULL);

	if (code == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
		sqlite3_step(statement);
		code = sqlite3_finalize(statement);
	}
	return code;
}
