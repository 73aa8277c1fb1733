/*
 * The database handle, for the source files of the read side.
 *
 * Threading and ownership as in prof_db.h.
 */
#ifndef PROF_DB_INTERNAL_H
#define PROF_DB_INTERNAL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/err.h"
#include "profiler/prof_db.h"
#include "profiler/prof_guard.h"

#define PROF_CACHE_SIZE 64 /* statements */

/* A table or view of the schema of a guarded handle's file. */
struct prof_guard_table {
	const char *name;
	bool module; /* a virtual table: a damaged file could reach its module's code */
};

/* What prof_guard.c knows of a guarded handle. */
struct prof_guard {
	struct prof_guard_params params;
	int64_t hard_before, soft_before; /* memory limits to restore */
	char denied[128];                 /* name of what the authorizer last refused */
	struct arena names;
	struct prof_guard_table *tables; /* sorted by name */
	size_t table_count;
};

struct prof_db {
	sqlite3 *handle;
	char *path;
	const char *opened_as; /* URI parameters, a literal */
	char *older_views;     /* SQL that makes our views; NULL: the file has them */
	uint64_t uses;
	bool foreign;       /* of another program */
	bool out_of_memory; /* a query failed whose caller could not report it */
	struct prof_query *cache[PROF_CACHE_SIZE];
	struct prof_calls *calls;
	struct prof_guard *guard; /* NULL: the statements are ours */
	/* Limits of one of our statements: a foreign file may have views that never end. */
	struct prof_query *running;    /* in a call of SQLite; else NULL */
	int64_t most_steps, most_rows; /* steps of SQLite's machine; 0: no limit */
	int64_t most_ns;    /* of this thread's processor time, since a query was opened */
	int64_t most_bytes; /* of SQLite's memory in this process; 0: no limit */
};

/* prof_query.c */

#define PROF_STEPS_PER_CHECK 4000
/* SQLite's progress handler, every so many steps of its machine: return whether the running
 * statement is at its limits. */
int prof__query_progress(void *db);
/* Return @status, the result of a read. Remember that memory was short if the caller has no @err:
 * it takes a failed read for a missing value, which would be a wrong answer, so the next query
 * whose caller has @err fails. */
enum status prof__store_failure(struct prof_db *db, enum status status, const struct err *err);
/* Store the number that @sql selects, 0 if none; return SQLite's result. */
int prof__pragma_int(struct prof_db *db, const char *sql, int64_t *value);
void prof__query_cache_free(struct prof_db *db); /* no query is open */

/* prof_guard.c */
/* Whether a guarded handle is open, whose limit on memory applies to the process. */
bool prof__guarded(void);
/* Whether the user of a guarded handle has cancelled the statement. */
bool prof__guard_cancelled(const struct prof_db *db);
void prof__guard_free(struct prof_db *db); /* accepts a handle without one */

/* prof_calls.c: bound the time of one call of a function. Return SQLite's result. Call
 * prof__calls_free() after the handle's connection is closed, in any case. */
int prof__calls_bound(struct prof_db *db);
void prof__calls_free(struct prof_db *db);

/* prof_older.c: find out whether the file's views are ours and what its tables lack, and make
 * temporary views of ours if so, before the handle is restricted to queries. */
enum status prof__older_find(struct prof_db *db, struct err *err);
/* Make them again. */
enum status prof__older_add_views(struct prof_db *db, struct err *err);

/*
 * Rows that a thread reads before they are asked for: the reader of a long result decodes the next
 * ones while its caller works on the present one.
 *
 * The thread has @step for itself, and what that uses, from prof_ahead_start() to
 * prof_ahead_stop(). Rows are handed over in blocks of bounded size. Values are converted as SQLite
 * does it.
 *
 * One thread at a time calls these functions.
 */

struct prof_ahead;

/* Steps to the next row of @statement, as prof_query_step(). */
typedef enum status (*prof_ahead_step)(void *user, bool *row, struct err *err);

/* Start to read. ST_NOMEM: no memory, or no thread. */
enum status prof_ahead_start(struct prof_ahead **out, sqlite3_stmt *statement, prof_ahead_step step,
			     void *user, struct err *err);
/* The next row. At the end, and after a failure, which comes behind the rows before it, the same
 * again. */
enum status prof_ahead_next(struct prof_ahead *ahead, bool *row, struct err *err);
/* Values of the row, as SQLite's functions for columns give them; @column is one of the
 * statement's. The text is that, or a blob with a 0 behind it, or NULL; it stays until the next
 * row. */
int prof_ahead_type(const struct prof_ahead *ahead, int column);
int64_t prof_ahead_int(const struct prof_ahead *ahead, int column);
double prof_ahead_real(const struct prof_ahead *ahead, int column);
const char *prof_ahead_text(struct prof_ahead *ahead, int column, size_t *size);
/* Stop the thread, wherever it is, and free. Accepts NULL. */
void prof_ahead_stop(struct prof_ahead *ahead);

#endif /* PROF_DB_INTERNAL_H */
