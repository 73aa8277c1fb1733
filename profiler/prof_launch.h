/*
 * Launches: which call started a kernel or a copy.
 */
#ifndef PROF_LAUNCH_H
#define PROF_LAUNCH_H

#include <sqlite3.h>

#include "common/err.h"

struct prof_insert;

/* Fill the table of launches, and a flow "launch" for each, in a database without open transaction
 * or within one. Does nothing if there are launches already, or nothing to link. @flows not NULL:
 * nobody else has the database open, and there is no transaction; the launches are loaded
 * (prof_bulk.h), and their flows put into @flows, of the columns of flow_rows but the first. */
enum status prof_launch_link(sqlite3 *db, struct prof_insert *flows, struct err *err);

#endif /* PROF_LAUNCH_H */
