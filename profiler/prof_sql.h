/*
 * The write side's thin layer over SQLite: a connection, prepared inserts of many rows.
 *
 * One thread at a time. A failed call leaves its reason in @err; the transaction is then void and
 * is rolled back by the caller.
 */
#ifndef PROF_SQL_H
#define PROF_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "profiler/ipuscope/profiler.h"

#define PROF_BATCH 64 /* rows of one many-row INSERT */
#define PROF_FEW   8  /* of one for what is left of a batch */

/* The status and words of SQLite's result code @code for what was being done (@what). */
enum status prof_sql_error(sqlite3 *db, int code, struct err *err, const char *what);

/* Run statements without results. */
enum status prof_sql_run(sqlite3 *db, const char *sql, struct err *err);

/* A value of a row that waits in a batch. Texts and blobs are the caller's until the flush. */
struct prof_cell {
	enum {
		PROF_CELL_NULL,
		PROF_CELL_INT,
		PROF_CELL_REAL,
		PROF_CELL_TEXT,
		PROF_CELL_BLOB
	} type;
	union {
		int64_t i;
		double r;
		const void *p;
	} value;
	int64_t size; /* of a blob */
};

struct prof_insert {
	sqlite3_stmt *many, *few, *one;
	size_t columns, rows; /* rows waiting */
	struct prof_cell *cells;
	uint64_t total; /* rows inserted */
};

/* The row id of the last row, where this alone adds rows and SQLite numbers them. */
static inline int64_t prof_insert_last(const struct prof_insert *insert)
{
	return (int64_t)(insert->total + insert->rows);
}

/* @head and @tail surround the VALUES: "INSERT INTO t (a, b)", "ON CONFLICT ..." (may be NULL). */
enum status prof_insert_init(struct prof_insert *insert, sqlite3 *db, const char *head,
			     size_t columns, const char *tail, struct err *err);
void prof_insert_fini(struct prof_insert *insert);
/* The cells of the next row, all to be filled; flushes first when the batch is full. */
enum status prof_insert_row(struct prof_insert *insert, struct prof_cell **cells, struct err *err);
enum status prof_insert_flush(struct prof_insert *insert, struct err *err);

/*
 * "file:PATH?QUERY" with what is special in URIs escaped; the caller's (mem_free). NULL: no memory.
 */
char *prof_sql_uri(const char *path, const char *query);

/*
 * Attach the database at @path, opened by the URI parameters @query ("mode=ro"), as @name; detach
 * it. They return SQLite's code. The connection must take URIs (SQLITE_OPEN_URI).
 */
int prof_sql_attach(sqlite3 *db, const char *path, const char *query, const char *name);
int prof_sql_detach(sqlite3 *db, const char *name);

/* Execute a prepared statement that gives no rows, and reset it. */
enum status prof_sql_execute(sqlite3_stmt *statement, struct err *err, const char *what);

static inline void prof_cell_int(struct prof_cell *cell, int64_t value)
{
	cell->type = value == IPS_NULL ? PROF_CELL_NULL : PROF_CELL_INT;
	cell->value.i = value;
}

static inline void prof_cell_real(struct prof_cell *cell, double value)
{
	cell->type = PROF_CELL_REAL; /* SQLite makes NULL of NaN */
	cell->value.r = value;
}

static inline void prof_cell_text(struct prof_cell *cell, const char *text)
{
	cell->type = !text ? PROF_CELL_NULL : PROF_CELL_TEXT;
	cell->value.p = text;
}

#endif /* PROF_SQL_H */
