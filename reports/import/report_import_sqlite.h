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
	struct prof_db *db;    /* for small questions */
	struct prof_db *ahead; /* the same file, for the rows that a thread reads ahead */
	const char *strings;   /* the table of texts by id, and its column */
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
	enum status (*read)(struct import_sqlite *in, struct err *err);
};
extern const struct sqlite_format report__sqlite_nsys, report__sqlite_rpd, report__sqlite_rocpd;

/* Whether there is a table (no view) of this name. */
bool report__sqlite_has(struct import_sqlite *in, const char *table);

/* Read the rows of @sql, ahead: one such query is open at a time. The caller closes it, also after
 * a failure. */
enum status report__sqlite_rows(struct import_sqlite *in, const char *sql, struct prof_query **out,
				struct err *err);

/* Select @columns of @table, NULL for those that it has not, in order of rows. *@out NULL: there is
 * no such table. The caller closes it. */
enum status report__sqlite_select(struct import_sqlite *in, const char *table,
				  const char *const *columns, size_t count, struct prof_query **out,
				  struct err *err);

/* The next row, with the progress told now and then; counts it as an event. */
bool report__sqlite_next(struct import_sqlite *in, struct prof_query *query, enum status *status,
			 struct err *err);

/* Run one row function for each row of a table. */
enum status report__sqlite_each(struct import_sqlite *in, const char *table,
				const char *const *columns, size_t count,
				enum status (*row)(struct import_sqlite *in,
						   struct prof_query *query, void *user,
						   struct err *err),
				void *user, struct err *err);

/* Look up what was remembered under @key; IMPORT_NO_ID: nothing. */
uint32_t report__sqlite_known(const struct import_sqlite *in, const int64_t key[4]);
enum status report__sqlite_remember(struct import_sqlite *in, const int64_t key[4], uint32_t index,
				    struct err *err);

/* The text @id, in @out; "": there is none. */
enum status report__sqlite_text(struct import_sqlite *in, int64_t id, char *out, size_t size,
				struct err *err);

/* The site of @category and the text @id; @number: of the category, unique in the reader. */
enum status report__sqlite_site(struct import_sqlite *in, int number, const char *category,
				int64_t id, uint32_t *site, struct err *err);

/* Whether a row has a start, and a track and a site (IMPORT_NO_ID: there are too many). Otherwise
 * count it as left out, and drop its arguments. */
bool report__sqlite_has_place(struct import_sqlite *in, uint32_t track, uint32_t site,
			      int64_t start);

/* report__import_span() of a row with a start; @end may be IPS_NULL: to the end of what encloses
 * it. */
enum status report__sqlite_span(struct import_sqlite *in, uint32_t track, uint32_t site,
				int64_t start, int64_t end, struct err *err);

/* Count the rows of tables that have no place here. */
enum status report__sqlite_left(struct import_sqlite *in, const char *const *tables, size_t count,
				struct err *err);

#define SQLITE_NAME_SIZE 8192 /* of a text, with its 0: kernels have names of 5,000 bytes */

#endif /* REPORT_IMPORT_SQLITE_H */
