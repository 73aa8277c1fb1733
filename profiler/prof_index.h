/*
 * Secondary indexes of a finished file, on the columns that joins by key use, for large tables
 * only. They are built when recording ends, within a time budget. Query results do not depend on
 * them.
 */
#ifndef PROF_INDEX_H
#define PROF_INDEX_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Build the missing indexes that fit into @budget_ms by estimate; abort one that takes longer.
 * Return true if all indexes that large tables need exist. Each index is a transaction of its
 * own; an index that fails is skipped. @stop (may be NULL) is polled with @user; nonzero ends the
 * call. */
bool prof_index_build(sqlite3 *db, int64_t budget_ms, int (*stop)(void *user), void *user);

#endif /* PROF_INDEX_H */
