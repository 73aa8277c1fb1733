/*
 * The database handle, for the source files of the read side.
 *
 * Threading and ownership as in prof_db.h.
 */
#ifndef PROF_DB_INTERNAL_H
#define PROF_DB_INTERNAL_H

#include <sqlite3.h>

#include "profiler/prof_db.h"

#define PROF_CACHE_SIZE 64 /* statements */

struct prof_guard;

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

/* If a guarded handle stopped a statement with the SQLite result @code, set *@status and @err and
 * return true. Otherwise leave both unchanged. */
bool prof__guard_error(struct prof_db *db, int code, enum status *status, struct err *err);
/* Whether a guarded handle is open, whose limit on memory applies to the process. */
bool prof__guarded(void);
/* Whether the user of a guarded handle has cancelled the statement. */
bool prof__guard_cancelled(const struct prof_db *db);
void prof__guard_free(struct prof_db *db); /* accepts a handle without one */

/* prof_calls.c: bound the time of one call of a function. Return SQLite's result. Call
 * prof__calls_free() after the handle's connection is closed, in any case. */
int prof__calls_bound(struct prof_db *db);
void prof__calls_free(struct prof_db *db);

/* prof_older.c: find out whether the file's views are ours and what its tables lack; make temporary
 * views of ours, before the handle is restricted to queries. */
enum status prof__older_find(struct prof_db *db, struct err *err);
enum status prof__older_add_views(struct prof_db *db, struct err *err);

#endif /* PROF_DB_INTERNAL_H */
