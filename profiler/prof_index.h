/*
 * The indexes that a finished file has: those that joins by key ask for, where a table is large.
 * They are built when recording ends, within a time budget; queries give the same answers without
 * them.
 */
#ifndef PROF_INDEX_H
#define PROF_INDEX_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Build the missing ones that fit into @budget_ms by estimate; one that takes longer is given up.
 * true: all that large tables need are there. Each is a transaction of its own; a failure only
 * leaves that index out. @stop (may be NULL) is called often with @user: other than 0 ends it. */
bool prof_index_build(sqlite3 *db, int64_t budget_ms, int (*stop)(void *user), void *user);

#endif /* PROF_INDEX_H */
