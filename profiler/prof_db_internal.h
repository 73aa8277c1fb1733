/*
 * A database handle from the inside, for the files that make up the read side.
 *
 * Threading and ownership as prof_db.h says.
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
	uint64_t uses;
	struct prof_query *cache[PROF_CACHE_SIZE];
	struct prof_guard *guard; /* NULL: what it is asked is ours */
};

/* The status and words of @code, where a guarded handle stopped a statement: true. Else @err is
 * untouched. */
bool prof__guard_error(struct prof_db *db, int code, enum status *status, struct err *err);
void prof__guard_free(struct prof_db *db); /* accepts a handle without one */

#endif /* PROF_DB_INTERNAL_H */
