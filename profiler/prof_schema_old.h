/*
 * What files of older schemas lack, added to a connection that reads them.
 *
 * One thread per connection. Nothing is owned; the file is not changed.
 */
#ifndef PROF_SCHEMA_OLD_H
#define PROF_SCHEMA_OLD_H

#include <sqlite3.h>

#include "common/err.h"

/* Make every view of the contract that @db's file does not have, or not with all its columns, as a
 * temporary view that stands before the file's: what is missing is NULL, missing views are empty.
 * A view that is missing in every schema (a damaged file) stays so. */
enum status prof_schema_complete(sqlite3 *db, struct err *err);

#endif /* PROF_SCHEMA_OLD_H */
