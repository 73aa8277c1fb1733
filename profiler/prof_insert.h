/*
 * Prepared many-row inserts: rows wait as cells until a batch is full, or are loaded (prof_bulk.h).
 *
 * One thread at a time. A failed call sets @err; the transaction is then void and the caller rolls
 * it back.
 */
#ifndef PROF_INSERT_H
#define PROF_INSERT_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "profiler/ipuscope/profiler.h"

#define PROF_BATCH 64 /* rows of one many-row INSERT */
#define PROF_FEW   8  /* rows of the INSERT for the rest of a batch */

/* A value of a row in a batch. Texts and blobs must stay valid until the flush. */
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

struct prof_bulk_table;

struct prof_insert {
	sqlite3 *db;
	char *head;
	const char *tail;
	sqlite3_stmt *many, *few, *one; /* NULL until needed: most tables stay small */
	size_t columns, rows;           /* rows waiting */
	struct prof_cell *cells;
	struct prof_cell *bound; /* what `many` has bound */
	uint64_t total;          /* rows inserted */
	/* Not NULL: rows are loaded (prof_bulk.h), and only those that it refuses are inserted. */
	struct prof_bulk_table *bulk;
};

/* The id of the last row, if only this insert adds rows and SQLite assigns the ids. */
static inline int64_t prof_insert_last(const struct prof_insert *insert)
{
	return (int64_t)(insert->total + insert->rows);
}

/* @head and @tail enclose the VALUES: "INSERT INTO t (a, b)", "ON CONFLICT ..." (may be NULL; a
 * constant). "INSERT OR FAIL" is the fastest: any other one keeps a copy of every page that a
 * statement of many rows changes, to undo that statement alone. */
enum status prof_insert_init(struct prof_insert *insert, sqlite3 *db, const char *head,
			     size_t columns, const char *tail, struct err *err);
void prof_insert_fini(struct prof_insert *insert);
/* Return the cells of the next row; the caller must fill all. Flushes first if the batch is
 * full. */
enum status prof_insert_row(struct prof_insert *insert, struct prof_cell **cells, struct err *err);
enum status prof_insert_flush(struct prof_insert *insert, struct err *err);

static inline void prof_cell_int(struct prof_cell *cell, int64_t value)
{
	cell->type = value == IPS_NULL ? PROF_CELL_NULL : PROF_CELL_INT;
	cell->value.i = value;
}

static inline void prof_cell_real(struct prof_cell *cell, double value)
{
	cell->type = PROF_CELL_REAL; /* SQLite stores NaN as NULL */
	cell->value.r = value;
}

static inline void prof_cell_text(struct prof_cell *cell, const char *text)
{
	cell->type = !text ? PROF_CELL_NULL : PROF_CELL_TEXT;
	cell->value.p = text;
}

#endif /* PROF_INSERT_H */
