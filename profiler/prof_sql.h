/*
 * A thin layer over SQLite: statements without results, failures, attached databases.
 *
 * One thread at a time for each connection.
 */
#ifndef PROF_SQL_H
#define PROF_SQL_H

#include <sqlite3.h>

#include "common/err.h"

/* Set @err from SQLite's result code @code and its message; @what names the operation. */
enum status prof_sql_error(sqlite3 *db, int code, struct err *err, const char *what);

/* Run statements without results. */
enum status prof_sql_run(sqlite3 *db, const char *sql, struct err *err);

/* Prepare a statement that is kept; the caller finalizes *@out. */
enum status prof_sql_prepare(sqlite3_stmt **out, sqlite3 *db, const char *sql, struct err *err);

/* Execute a prepared statement that gives no rows, and reset it. */
enum status prof_sql_execute(sqlite3_stmt *statement, struct err *err, const char *what);

/*
 * Open the database at @path with the URI parameters @query ("mode=ro") and SQLITE_OPEN_... @flags,
 * on the VFS @vfs (NULL: SQLite's own). A path is a file's name whatever is in it, "file:x?y" and
 * ":memory:" too. Return SQLite's result code; as with sqlite3_open_v2(), *@out is to be closed.
 */
int prof_sql_open(sqlite3 **out, const char *path, const char *query, int flags, const char *vfs);

/*
 * Attach the database at @path as @name, opened in this way, and detach it. Both return SQLite's
 * result code. The connection must accept URIs (SQLITE_OPEN_URI), as that of prof_sql_open() does.
 */
int prof_sql_attach(sqlite3 *db, const char *path, const char *query, const char *name);
int prof_sql_detach(sqlite3 *db, const char *name);

#endif /* PROF_SQL_H */
