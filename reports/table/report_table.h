/*
 * A report's result: named, typed columns and rows of cells. Computed once, then rendered.
 *
 * The table and all its texts live in an arena of its own. Cells keep full precision; how a number
 * is shown is the renderer's matter and follows from the column's quantity.
 */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/err.h"
#include "profiler/prof_db.h"

enum report_quantity {
	REPORT_TEXT,
	REPORT_NUMBER, /* an identifier or plain integer: no separators */
	REPORT_COUNT,
	REPORT_NS,
	REPORT_BYTES,
	REPORT_CYCLES,
	REPORT_REAL,
	REPORT_FRACTION, /* 0 .. 1, shown as percent */
	REPORT_BOOL
};

struct report_column {
	const char *name; /* as in SQL, CSV and JSON */
	enum report_quantity quantity;
};

struct report_cell {
	enum prof_type
		type; /* PROF_NULL, PROF_INT, PROF_REAL, PROF_TEXT (blobs become their size) */
	int64_t integer;
	double real;
	const char *text;
};

/* Empty where @text is NULL, @value IPS_NULL or NaN. */
struct report_cell report_cell_of_text(const char *text);
struct report_cell report_cell_of_int(int64_t value);
struct report_cell report_cell_of_real(double value);

/* Which columns text leaves out where there is no room. */
enum report_fit {
	REPORT_FIT_KEYS, /* those that say least beside step and stage, then the last ones */
	REPORT_FIT_LAST, /* the last ones */
	REPORT_FIT_NONE  /* none: they were asked for */
};

struct report_table {
	const char *name;
	const char *note; /* a line under the table, or NULL: "412 rows of 3,000" */
	struct report_column *columns;
	struct report_cell *cells; /* row after row */
	int column_count;
	int64_t row_count;
	enum report_fit fit;
	struct arena arena;
};

void report_table_free(struct report_table *table); /* accepts a zeroed table */

/* All rows (at most @limit; 0: all) of the query behind @sql. Quantities follow from column names
 * (..._ns, ..._bytes, cycles, ..._fraction) and types. */
enum status report_table_query(struct report_table *out, struct prof_db *db, const char *name,
			       const char *sql, int64_t limit, struct err *err);

/* The same with a bound on what the rows take, too (bytes; 0: none), and without a note: *@more, a
 * bound left some out. */
enum status report_table_query_most(struct report_table *out, struct prof_db *db, const char *name,
				    const char *sql, int64_t limit, size_t most, bool *more,
				    struct err *err);

/* A view of the contract by name; unknown: ST_NOTFOUND with the nearest. */
enum status report_table_view(struct report_table *out, struct prof_db *db, const char *view,
			      int64_t limit, struct err *err);

#endif /* REPORT_TABLE_H */
