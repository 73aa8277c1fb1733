/*
 * Opening a recorded database for reading, and querying it.
 *
 * Readers never write: the file is opened read-only, ATTACH and extensions are off. A read
 * transaction lasts as long as one query, so step through it at once, copy the results, and close
 * it. The caller splits a long query into slices. One thread at a time per handle.
 */
#ifndef PROF_DB_H
#define PROF_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "profiler/ipuscope/profiler.h"

#define PROF_SCHEMA_VERSION 1
#define PROF_APPLICATION_ID 0x49505553

struct prof_db;
struct prof_query;

enum prof_state {
	PROF_RECORDING, /* being written, or the writer died: see prof_db_writer_alive() */
	PROF_CLOSING,   /* the writer is finishing it: close it, it will be complete soon */
	PROF_COMPLETE
};

/*
 * @path: a database, or a report directory that contains profile.db. ST_NOTFOUND, ST_FORMAT (not
 * a database, or not ours) or ST_VERSION (another schema version), with a message that says what
 * to do.
 */
enum status prof_db_open(struct prof_db **out, const char *path, struct err *err);
/* Open a database of another program. Guard it (prof_db_guard()) before its schema is used. */
enum status prof_db_open_foreign(struct prof_db **out, const char *path, struct err *err);
void prof_db_close(struct prof_db *db); /* accepts NULL; queries must be closed */

/* Read the file through a small cache, and sort in a temporary file: for scans of much of the file,
 * which read each page once. */
void prof_db_read_through(struct prof_db *db);

/* Return whether a read whose caller passed no @err has failed for lack of memory since the last
 * call, or since a query with @err was opened, which fails for it. Accepts NULL. */
bool prof_db_lacked_memory(struct prof_db *db);
/*
 * Limit SQLite's memory in this process from the next handle on, by the sizes of the files that are
 * opened. For the start of a command: the limit applies to all connections of the process, also to
 * those that are not ours, so a library leaves it to the program.
 */
void prof_db_limit_memory(void);
/* Lift the limits on steps, time, rows and memory of all handles opened from now on. */
void prof_db_unlimited(void);
const char *prof_db_path(const struct prof_db *db);
/* Return what a user should know about how the file is read, a literal; NULL: nothing. */
const char *prof_db_note(const struct prof_db *db);

/*
 * Make the tables of @other's file available to @db's statements, read-only, as the schema @name,
 * until prof_db_detach(). Close queries of them before that. Both handles may refer to one file.
 * ST_BUSY if one is NULL. Detaching a schema that is not attached does nothing.
 */
enum status prof_db_attach(struct prof_db *db, const struct prof_db *other, const char *name,
			   struct err *err);
void prof_db_detach(struct prof_db *db, const char *name);

/* Read the state of the recording, and whether the process that records it runs on this host. The
 * file is read again at each call; on failure both results are unknown. */
enum status prof_db_poll(struct prof_db *db, enum prof_state *state, bool *alive, struct err *err);
/* One of the two; if it cannot be read, PROF_RECORDING and false. */
enum prof_state prof_db_state(struct prof_db *db);
bool prof_db_writer_alive(struct prof_db *db);

/* Return a number that changes with every commit (cheap). */
int64_t prof_db_version(struct prof_db *db);

/* Stop the query that is running in another thread with ST_INTERRUPTED. */
void prof_db_interrupt(struct prof_db *db);

/* Prepare @sql (one read-only statement). Statements are cached by their text. ST_BUSY if @db is
 * NULL: a reader has closed it while the writer finishes the file. */
enum status prof_query_open(struct prof_query **out, struct prof_db *db, const char *sql,
			    struct err *err);
/*
 * Bind by name (":track"); an unknown name is a programming error and fails at the next step.
 * These functions, prof_query_next() and prof_query_close() accept a NULL query, which could not
 * be opened, so that checking the status once is enough:
 *
 *	status = prof_query_open(&query, db, sql, err);
 *	prof_query_int(query, ":track", track_id);
 *	while (prof_query_next(query, &status, err))
 *		...
 *	prof_query_close(query);
 *	return status;
 */
void prof_query_int(struct prof_query *query, const char *name, int64_t value);
void prof_query_real(struct prof_query *query, const char *name, double value);
void prof_query_text(struct prof_query *query, const char *name, const char *value); /* copied */
/*
 * Let a thread read the rows ahead, for a long result whose rows take their reader time. @query has
 * its handle for itself from now on: until it is closed no other query of the handle is opened, and
 * nothing else done with it.
 */
enum status prof_query_ahead(struct prof_query *query, struct err *err);
/* *@row is true if a row is available, false at the end. */
enum status prof_query_step(struct prof_query *query, bool *row, struct err *err);
/* Step to the next row: `while (prof_query_next(query, &status, err))`. Return false if there are
 * no more rows, or *@status is or becomes a failure (@query may then be NULL). */
bool prof_query_next(struct prof_query *query, enum status *status, struct err *err);
void prof_query_close(struct prof_query *query); /* accepts NULL */

/* Return the first column of @sql's first row; IPS_NULL if there is no row or it is NULL. */
enum status prof_db_number(struct prof_db *db, const char *sql, int64_t *out, struct err *err);

enum prof_type {
	PROF_NULL,
	PROF_INT,
	PROF_REAL,
	PROF_TEXT,
	PROF_BLOB
};

int prof_column_count(const struct prof_query *query);
const char *prof_column_name(const struct prof_query *query, int column);
enum prof_type prof_column_type(const struct prof_query *query, int column);
/* NULL reads as IPS_NULL, NaN and NULL. Texts are valid until the next step; a column of type
 * PROF_TEXT always has one. */
int64_t prof_column_int(const struct prof_query *query, int column);
double prof_column_real(const struct prof_query *query, int column);
const char *prof_column_text(const struct prof_query *query, int column);
const void *prof_column_blob(const struct prof_query *query, int column, size_t *size);

/* Copy the value of a meta key to @out; false: there is none, or a failure. */
bool prof_db_meta(struct prof_db *db, const char *key, char *out, size_t size);

/* The kind of program that recorded the file: missing data has a different reason in each. */
enum prof_origin {
	PROF_FROM_TRAINER, /* ipu-train, or a program that trains with its library */
	PROF_FROM_PROGRAM, /* another program, with libipuscope */
	PROF_FROM_TRACE    /* another program; its trace was imported */
};

/* If it cannot be read: PROF_FROM_TRAINER. */
enum prof_origin prof_db_origin(struct prof_db *db);

/* Why a recording of @origin lacks some data: "the trace that was imported has none."; NULL for a
 * trainer's recording, where the reason depends on the data. */
const char *prof_origin_none(enum prof_origin origin);

/* The names of the contract's views, in the order of the schema. */
const char *const *prof_view_names(size_t *count);

#endif /* PROF_DB_H */
