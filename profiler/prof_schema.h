/*
 * The tables and views of a database, made in an empty one.
 */
#ifndef PROF_SCHEMA_H
#define PROF_SCHEMA_H

#include <sqlite3.h>

#include "common/err.h"

/* Within the transaction that is open. */
enum status prof_schema_create(sqlite3 *db, struct err *err);

#endif /* PROF_SCHEMA_H */
