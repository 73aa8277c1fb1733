/*
 * What is made of a recording's rows when recording ends, or by a repair or a merge: indexes
 * (prof_index.c), launches (prof_launch.c), and then critical paths (prof_critical.c).
 *
 * Errors are sticky: the @err of these functions is not NULL and holds the first failure, after
 * which they do nothing.
 */
#ifndef PROF_FINISH_H
#define PROF_FINISH_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

struct prof_insert;

/*
 * Secondary indexes of a finished file, on the columns that joins by key use, for large tables
 * only. They are built when recording ends, within a time budget. Query results do not depend on
 * them.
 */

/* Build the missing indexes that fit into @budget_ms by estimate; abort one that takes longer.
 * Return true if all indexes that large tables need exist. Each index is a transaction of its
 * own; an index that fails is skipped. @stop (may be NULL) is polled with @user; nonzero ends the
 * call. */
bool prof_index_build(sqlite3 *db, int64_t budget_ms, int (*stop)(void *user), void *user);

/*
 * Launches: which call started a kernel or a copy.
 */

/* Fill the table of launches, and a flow "launch" for each, in a database without open transaction
 * or within one. Does nothing if there are launches already, or nothing to link. @flows not NULL:
 * nobody else has the database open, and there is no transaction; the launches are loaded
 * (prof_bulk.h), and their flows put into @flows, of the columns of flow_rows but the first. */
void prof_launch_link(sqlite3 *db, struct prof_insert *flows, struct err *err);

/*
 * The critical path of what ran on accelerators: which spans of threads and devices determined how
 * long a step took.
 */

/* Spans of one step, or of a whole recording without steps, beyond which it gets no path. */
#define PROF_CRITICAL_SPANS 400000
/* Tracks of calls, kernels, copies and waits beyond which a recording gets no path. All are read
 * side by side, and SQLite looks through all open cursors when it closes one: the time grows with
 * the square (4,000 tracks of a kernel each took 27 s). */
#define PROF_CRITICAL_LANES 2048

/* Fill the table of critical paths in a database whose launches are linked (prof_launch_link()),
 * without open transaction or within one. Does nothing if there are paths already, or no launches.
 * What is too large for these limits is left out; the fact `critical_path` says so. */
void prof_critical_find(sqlite3 *db, struct err *err);

#endif /* PROF_FINISH_H */
