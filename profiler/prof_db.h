/*
 * Opening a recorded database for reading, and asking it questions.
 *
 * Readers never write: the file is opened read-only, ATTACH and extensions are off, and a
 * read transaction lasts as long as one query: step through at once, copy out, close. A query that
 * takes long runs in slices of the caller's making. One thread at a time per handle.
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
	PROF_CLOSING,   /* the writer finishes it: let go, it will be complete soon */
	PROF_COMPLETE
};

/*
 * @path: a database, or a report directory that holds profile.db. ST_NOTFOUND, ST_FORMAT (not a
 * database, or not ours) or ST_VERSION (another schema's) with a text that says what to do.
 */
enum status prof_db_open(struct prof_db **out, const char *path, struct err *err);
void prof_db_close(struct prof_db *db); /* accepts NULL; queries must be closed */

/* Read the file through a small cache instead of mapping it, and sort in a temporary file: for
 * passes over much of it, whose memory would otherwise grow with all that they touch. */
void prof_db_read_through(struct prof_db *db);
const char *prof_db_path(const struct prof_db *db);

/*
 * Give @db's statements the tables of @other's file as the schema @name, for reading, until
 * prof_db_detach(), before which queries of them must be closed. Both handles may be of one file.
 * ST_BUSY where one is NULL. Detaching what is not attached does nothing.
 */
enum status prof_db_attach(struct prof_db *db, const struct prof_db *other, const char *name,
			   struct err *err);
void prof_db_detach(struct prof_db *db, const char *name);

/*
 * For statements that people write. From now on the handle takes statements that read and nothing
 * else: no ATTACH, no temporary table, no PRAGMA that changes something, no function that reaches
 * outside, no table but those that the file's schema has now, json_each(), json_tree() and those of
 * pragmas that only tell; texts and blobs of at most 8 MB, nesting and number of columns bounded. A
 * refused statement is ST_INVALID, one that needs too much memory ST_LIMIT, a cancelled one
 * ST_INTERRUPTED. Not undone but by closing; until then the bound on memory is that of all handles
 * of the process, so that one guarded handle is open at a time. On failure the handle is as it was,
 * but for tables of modules, which it may have lost.
 */
struct prof_guard_params {
	bool (*cancelled)(void *user); /* asked all the time; NULL: never */
	void *user;
	int64_t memory_bytes; /* that a statement may take of SQLite's memory; 0: 128 MB */
};
enum status prof_db_guard(struct prof_db *db, const struct prof_guard_params *params,
			  struct err *err);

/*
 * Is @text one expression over @columns and nothing else, so that it may stand in brackets behind
 * WHERE of a statement over them? It may use pure functions, and no query, parameter or further
 * statement; its length and depth are bounded. Needs no database. ST_INVALID says what is wrong in
 * SQLite's words ("no such column: x").
 */
enum status prof_expression_check(const char *text, const char *const *columns, size_t count,
				  struct err *err);

/* Where in its text (bytes) the statement is wrong that could last not be prepared; -1: unknown. */
int prof_db_error_offset(struct prof_db *db);

/* Does @sql end in a complete statement: a semicolon outside of texts and comments? */
bool prof_query_is_complete(const char *sql);

/* What state the recording is in, and whether the process that records it, on this host, still
 * runs. Read afresh at each call; on failure neither is known. */
enum status prof_db_look(struct prof_db *db, enum prof_state *state, bool *alive, struct err *err);
/* One of the two; where that cannot be known, recording and not alive. */
enum prof_state prof_db_state(struct prof_db *db);
bool prof_db_writer_alive(struct prof_db *db);

/* A number that changes when something was committed (cheap). */
int64_t prof_db_version(struct prof_db *db);

/* Make a query that is running in another thread stop with ST_INTERRUPTED. */
void prof_db_interrupt(struct prof_db *db);

/* Prepare @sql (one statement that reads). Statements are cached by their text's address and
 * contents. ST_BUSY where @db is NULL: a reader has let go of it while its writer closes it. */
enum status prof_query_open(struct prof_query **out, struct prof_db *db, const char *sql,
			    struct err *err);
/*
 * Bind by name (":track"); an unknown name is a programming error and fails at the next step. A
 * NULL query, which could not be opened, is accepted here, by prof_query_next() and by
 * prof_query_close(), so that one look at the status is enough:
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
/* *@row true: a row stands ready; false: no more. */
enum status prof_query_step(struct prof_query *query, bool *row, struct err *err);
/* The next row: `while (prof_query_next(query, &status, err))`. False: no more rows, or *@status
 * has become a failure, or was one (@query may then be NULL). */
bool prof_query_next(struct prof_query *query, enum status *status, struct err *err);
void prof_query_close(struct prof_query *query); /* accepts NULL */

/* The number that is the first column of @sql's first row; IPS_NULL: no row, or NULL. */
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
/* NULL reads as IPS_NULL, NaN and NULL. Texts live until the next step. */
int64_t prof_column_int(const struct prof_query *query, int column);
double prof_column_real(const struct prof_query *query, int column);
const char *prof_column_text(const struct prof_query *query, int column);
const void *prof_column_blob(const struct prof_query *query, int column, size_t *size);

/* The value of a meta key, copied to @out; ST_NOTFOUND where there is none. */
enum status prof_db_meta_get(struct prof_db *db, const char *key, char *out, size_t size,
			     struct err *err);
/* The same where a failure means no more than that there is none: false. */
bool prof_db_meta(struct prof_db *db, const char *key, char *out, size_t size);

/* Who wrote what is recorded: what is missing means something else in each. */
enum prof_origin {
	PROF_FROM_TRAINER, /* ipu-train, or a program that trains with its library */
	PROF_FROM_PROGRAM, /* another program, with libipuscope */
	PROF_FROM_TRACE    /* another program; its trace was imported */
};

/* Where that cannot be read: PROF_FROM_TRAINER. */
enum prof_origin prof_db_origin(struct prof_db *db);

/* Why a recording of @origin has none of what is looked for: "the trace that was imported has
 * none."; NULL of a trainer's, where the reason depends on what is looked for. */
const char *prof_origin_none(enum prof_origin origin);

/* The names of the contract's views, in the order of the schema. */
const char *const *prof_view_names(size_t *count);

#endif /* PROF_DB_H */
