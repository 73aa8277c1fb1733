/*
 * Reading other programs' recordings that are SQLite databases: what their readers share.
 *
 * The file is opened read-only, guarded against hostile schemas (prof_db_guard()). Only tables are
 * read, never views, which a file could have in the place of its tables. Tables and columns may be
 * absent: the profilers leave out what has no rows, and their versions differ.
 *
 * Identifiers in the SQL are constants of the readers, except rocpd's suffix of digits, which is
 * checked. Threading: the import's.
 */
#ifndef REPORT_IMPORT_SQLITE_H
#define REPORT_IMPORT_SQLITE_H

#include "common/map.h"
#include "profiler/prof_db.h"
#include "reports/import/report_import_internal.h"

struct import_sqlite {
	struct import *import;
	struct err *err;          /* sticky: after a failure nothing more is read */
	struct prof_db *db;       /* for small questions */
	struct prof_db *ahead[2]; /* the same file, for the rows that threads read ahead */
	const char *strings;      /* the table of texts by id, and its column */
	const char *string_column;
	/* sites by category and text's id, tracks by their numbers */
	struct map map;
	struct sqlite_known {
		int64_t key[4];
		uint32_t index;
	} * known;
	size_t count, capacity;
	uint64_t rows; /* read, for the progress */
};

/* A reader of one kind of database. */
struct sqlite_format {
	const char *source; /* meta's `source` */
	bool (*recognise)(struct import_sqlite *in);
	void (*read)(struct import_sqlite *in);
};
extern const struct sqlite_format report__sqlite_nsys, report__sqlite_rpd, report__sqlite_rocpd;

/* Whether there is a table (no view) of this name. */
bool report__sqlite_has(struct import_sqlite *in, const char *table);

/* Read the rows of @sql, ahead: one such query is open at a time. The caller closes it. */
struct prof_query *report__sqlite_rows(struct import_sqlite *in, const char *sql);
/* As report__sqlite_rows(), for a second query that is open beside it. */
struct prof_query *report__sqlite_rows_beside(struct import_sqlite *in, const char *sql);

/* Select @columns of @table, NULL for those that it has not, in order of rows. NULL: there is no
 * such table. The caller closes it. */
struct prof_query *report__sqlite_select(struct import_sqlite *in, const char *table,
					 const char *const *columns, size_t count);

/* The next row, with the progress told now and then; counts it as an event. */
bool report__sqlite_next(struct import_sqlite *in, struct prof_query *query);

/* Run one row function for each row of a table. */
typedef void (*sqlite_row_fn)(struct import_sqlite *in, struct prof_query *query, void *user);
void report__sqlite_each(struct import_sqlite *in, const char *table, const char *const *columns,
			 size_t count, sqlite_row_fn row, void *user);

/* Look up what was remembered under @key; IMPORT_NO_ID: nothing. */
uint32_t report__sqlite_known(const struct import_sqlite *in, const int64_t key[4]);
void report__sqlite_remember(struct import_sqlite *in, const int64_t key[4], uint32_t index);

/* The track that is remembered under @key from now on. */
uint32_t report__sqlite_track(struct import_sqlite *in, const int64_t key[4],
			      const struct import_track *track);

/* The site of @category and @name (NULL: ""), and that of @category and the text @id; @number: of
 * the category, unique in the reader. IMPORT_NO_ID: too many. */
uint32_t report__sqlite_name(struct import_sqlite *in, const char *category, const char *name);
uint32_t report__sqlite_site(struct import_sqlite *in, int number, const char *category,
			     int64_t id);

/* The name of GPU number @gpu (IPS_NULL: 0); NULL: out of memory. */
const char *report__sqlite_gpu(struct import_sqlite *in, int64_t gpu);

/* Whether a row has a start, and a track and a site (IMPORT_NO_ID: there are too many). Otherwise
 * count it as left out, and drop its arguments. False after a failure. */
bool report__sqlite_has_place(struct import_sqlite *in, uint32_t track, uint32_t site,
			      int64_t start);

/* report__import_span() of a row with a start; @end may be IPS_NULL: to the end of what encloses
 * it. */
void report__sqlite_span(struct import_sqlite *in, uint32_t track, uint32_t site, int64_t start,
			 int64_t end);

/* The grid and the block of @kernel, of six columns from @column on. */
void report__sqlite_grid(struct ips_kernel *kernel, const struct prof_query *query, int column);

/* Count the rows of tables that have no place here. */
void report__sqlite_left(struct import_sqlite *in, const char *const *tables, size_t count);

#define SQLITE_NAME_SIZE 8192 /* of a text, with its 0: kernels have names of 5,000 bytes */

#endif /* REPORT_IMPORT_SQLITE_H */
