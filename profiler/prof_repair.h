/*
 * Repair of a database whose writer died: checkpoint the write-ahead log, build the indexes, set
 * the state to complete (meta `repaired` records it). A complete file gets the indexes that its
 * writer had no time to build. Recorded rows are not changed.
 */
#ifndef PROF_REPAIR_H
#define PROF_REPAIR_H

#include <stdbool.h>

#include "common/err.h"

/* @path as for prof_db_open(). ST_BUSY while the writer is alive. *@done is false if the file
 * needed no repair. */
enum status prof_repair(const char *path, bool *done, struct err *err);

#endif /* PROF_REPAIR_H */
