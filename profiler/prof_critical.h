/*
 * The critical path of what ran on accelerators: which spans of threads and devices determined how
 * long a step took.
 */
#ifndef PROF_CRITICAL_H
#define PROF_CRITICAL_H

#include <sqlite3.h>

#include "common/err.h"

/* Spans of one step, or of a whole recording without steps, beyond which it gets no path. */
#define PROF_CRITICAL_SPANS 400000
/* Tracks of calls, kernels, copies and waits beyond which a recording gets no path. All are read
 * side by side, and SQLite looks through all open cursors when it closes one: the time grows with
 * the square (4,000 tracks of a kernel each took 27 s). */
#define PROF_CRITICAL_LANES 2048

/* Fill the table of critical paths in a database whose launches are linked (prof_launch_link()),
 * without open transaction or within one. Does nothing if there are paths already, or no launches.
 * What is too large for these limits is left out; the fact `critical_path` says so. */
enum status prof_critical_find(sqlite3 *db, struct err *err);

#endif /* PROF_CRITICAL_H */
