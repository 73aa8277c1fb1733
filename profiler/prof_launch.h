/*
 * Launches: which call started a kernel or a copy.
 */
#ifndef PROF_LAUNCH_H
#define PROF_LAUNCH_H

#include <sqlite3.h>

#include "common/err.h"

/* Fill the table of launches, and a flow "launch" for each, in a database without open transaction
 * or within one. Does nothing if there are launches already, or nothing to link. */
enum status prof_launch_link(sqlite3 *db, struct err *err);

#endif /* PROF_LAUNCH_H */
