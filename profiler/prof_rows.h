/*
 * Descriptors of the appended rows: one per table, generated from the lists of columns in
 * ipuscope/profiler.h. They drive copying rows into the queue, the INSERT statements, and the
 * creation of tables and views. Constant data.
 */
#ifndef PROF_ROWS_H
#define PROF_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "profiler/ipuscope/profiler.h"

struct sqlite3;
struct str;

/* The tables of the public list, then the library's internal ones. */
enum {
	PROF_TABLE_TENSOR = IPS_TABLES,
	PROF_TABLE_META,
	PROF_TABLES
};

enum prof_column_kind {
	PROF_COLUMN_ID, /* an integer, the table's primary key */
	PROF_COLUMN_INT,
	PROF_COLUMN_NEEDED, /* an integer that may not be NULL */
	PROF_COLUMN_REAL,
	PROF_COLUMN_TEXT,
	PROF_COLUMN_NAME,    /* a text, stored as string_id */
	PROF_COLUMN_MODE,    /* an enum ips_mode, stored as text */
	PROF_COLUMN_KEYS,    /* struct ips_keys, stored as context_id; NULL if all are unknown */
	PROF_COLUMN_CONTEXT, /* the same, but context_id may not be NULL */
	PROF_COLUMN_RANK,    /* the recording's */
	PROF_COLUMN_SPAN,    /* the span of ips_span_row(), the table's primary key */
	PROF_COLUMN_BLOB     /* its size is the int64_t field at `size_offset` */
};

struct prof_column {
	const char *name, *about;
	enum prof_column_kind kind;
	size_t offset, size_offset;
};

struct prof_row_type {
	const char *table;
	const char *view; /* the unchanged table; NULL: none, or one in schema.sql */
	size_t size;      /* of the struct */
	const struct prof_column *columns;
	size_t count;
};

#define PROF_MAX_COLUMNS 24

struct prof_tensor_row {
	int64_t tensor_id;
	struct ips_tensor tensor;
};

struct prof_meta_row {
	const char *key, *value;
};

extern const struct prof_row_type prof_row_types[PROF_TABLES];

const char *prof_mode_text(int64_t mode); /* NULL where unknown */

/* Append the statements that create the tables and views. */
void prof_schema_text(struct str *sql);
/* Create the tables and views in an empty database, within the open transaction. */
enum status prof_schema_create(struct sqlite3 *db, struct err *err);

#endif /* PROF_ROWS_H */
