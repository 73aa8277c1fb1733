/*
 * Finishing a database whose writer died: the write-ahead log is folded in, indexes are built, the
 * state becomes complete (meta `repaired` says so). A complete file gets the indexes that its
 * writer had no time for. Nothing recorded is changed.
 */
#ifndef PROF_REPAIR_H
#define PROF_REPAIR_H

#include <stdbool.h>

#include "common/err.h"

/* @path as for prof_db_open(). ST_BUSY while its writer lives. *@done false: there was nothing
 * to do. */
enum status prof_repair(const char *path, bool *done, struct err *err);

#endif /* PROF_REPAIR_H */
