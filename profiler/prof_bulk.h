/*
 * Bulk loading of tables that nobody reads until all rows are there: their B-trees are written as
 * full pages, in order of key, instead of by INSERT, which takes ten times as long.
 *
 * While rows come, the pages are staged in one unnamed file beside the database. prof_bulk_join()
 * appends them to the database and makes them the tables' content; SQLite then takes the file for
 * one that another process has written. Rows that SQLite inserted into these tables meanwhile are
 * laid over those of the pages, and replace them where keys are equal.
 *
 * The format is that of https://www.sqlite.org/fileformat2.html, sections 1.6 (pages) and 2.1
 * (records): pages of PROF_PAGE_BYTES, schema format 4, UTF-8, no reserved bytes, no auto-vacuum.
 * Rows of more than PROF_BULK_MOST bytes are left to SQLite: there are no overflow pages. So are
 * rows with blobs.
 *
 * A database has one such loader, at most; its tables have no index besides their own key, and the
 * connection no transaction, statement or other reader under way during prof_bulk_join(). If the
 * process is killed within that, the file is damaged: load files that are renamed when complete.
 *
 * One thread at a time, that of the connection. Errors: ST_NOMEM, ST_NOSPACE, ST_IO, ST_LIMIT,
 * and SQLite's; the loader is then only good for prof_bulk_free().
 */
#ifndef PROF_BULK_H
#define PROF_BULK_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "profiler/prof_levels.h"

#define PROF_PAGE_BYTES 16384 /* of the database */
#define PROF_BULK_MOST  1000  /* bytes of a row that is loaded; longer ones are inserted */

struct prof_bulk; /* opaque */
struct prof_bulk_table;
struct prof_cell;

/* *@out NULL with ST_OK: this database's pages have another form, and rows must be inserted. */
enum status prof_bulk_new(struct prof_bulk **out, sqlite3 *db, struct err *err);
void prof_bulk_free(struct prof_bulk *bulk); /* accepts NULL */

enum prof_bulk_kind {
	PROF_BULK_ASSIGNED, /* a rowid table; rows come without their id, which counts from 1 */
	PROF_BULK_ROWID,    /* the first column is the id */
	/* WITHOUT ROWID; the first two columns, or four, are the key, all integers */
	PROF_BULK_KEYS,
	PROF_BULK_4_KEYS
};

/* Load the empty table @name of @columns columns (without an assigned id); the loader owns *@out.
 * The columns of a rowid table are INTEGER, or REAL where they have a PROF_CELL_REAL. */
enum status prof_bulk_table(struct prof_bulk *bulk, const char *name, enum prof_bulk_kind kind,
			    size_t columns, struct prof_bulk_table **out, struct err *err);

/* Append the row of @cells. *@loaded false: its key is not above that of the row before, is below 1
 * or above 2^55, or the row is too long: the caller inserts it, so that it replaces an equal one.
 * Rows with an assigned id are short and not inserted otherwise. */
enum status prof_bulk_put(struct prof_bulk_table *table, const struct prof_cell *cells,
			  bool *loaded, struct err *err);

/* The pages that were written so far. */
uint64_t prof_bulk_pages(const struct prof_bulk *bulk);

/* Make the rows the tables' content. After that only prof_bulk_free() may follow. */
enum status prof_bulk_join(struct prof_bulk *bulk, struct err *err);

/*
 * The rows of span_levels in order of their key, from increments in any order: a table that is
 * loaded (prof_bulk.h) takes them once, in order, where INSERT would look each up.
 *
 * An external sort: increments fill a buffer, which is sorted and written to an unnamed file as a
 * run when it is full; at the end the runs are merged through the same buffer. Increments of one
 * bucket are added up as PROF_INSERT_LEVEL_TAIL does, in the order in which they were put.
 *
 * One thread (the writer). Errors: ST_NOMEM, ST_NOSPACE, ST_IO, ST_LIMIT (more than 2,000 runs, or
 * more runs than rows of the buffer).
 */

struct prof_level_sort; /* opaque */

/* @beside: the path whose folder takes the file; borrowed. @rows: of the buffer. */
enum status prof_level_sort_new(struct prof_level_sort **out, const char *beside, size_t rows,
				struct err *err);
void prof_level_sort_free(struct prof_level_sort *sort); /* accepts NULL */

/* As prof__insert_levels(), but put the increments here. */
enum status prof_level_sort_put(struct prof_level_sort *sort, int64_t track_id,
				struct prof_levels *levels, int finest, struct err *err);

/* Put all rows into @rows, in order of track, level, bucket and depth. Only once. */
enum status prof_level_sort_load(struct prof_level_sort *sort, struct prof_insert *rows,
				 struct err *err);

#endif /* PROF_BULK_H */
