/*
 * A report's result: named, typed columns and rows of cells. Computed once, then rendered.
 *
 * The table and all its texts live in the table's arena. Cells keep full precision; the renderer
 * formats a number by its column's quantity.
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

/* Return an empty cell if @text is NULL, or @value is IPS_NULL or NaN. */
struct report_cell report_cell_of_text(const char *text);
struct report_cell report_cell_of_int(int64_t value);
struct report_cell report_cell_of_real(double value);

/* Which columns text drops if the table is too wide. */
enum report_fit {
	REPORT_FIT_KEYS, /* the least informative keys first, then from the last column on */
	REPORT_FIT_LAST, /* from the last column on */
	REPORT_FIT_NONE  /* none: the user selected the columns */
};

struct report_table {
	const char *name;
	const char *note; /* a line under the table, or NULL: "412 rows of 3,000" */
	struct report_column *columns;
	struct report_cell *cells; /* row after row */
	int column_count;
	int64_t row_count, room; /* room: rows that a table being filled has cells for */
	enum report_fit fit;
	struct arena arena;
};

/* A column, and a row's cell in it. */
struct report_value {
	struct report_column column;
	struct report_cell cell;
};

/*
 * Fill a table: begin it, then put rows, which all name the same columns. @rows is how many are
 * expected; more are no error. Texts of cells are copied. Putting does nothing after a failure,
 * which is in @err (not NULL); the caller checks it after the last row, and frees the table.
 */
enum status report_table_begin(struct report_table *out, const char *name, int64_t rows,
			       struct err *err); /* on failure @out is empty */
void report_table_put(struct report_table *table, const struct report_value *values, size_t count,
		      struct err *err);
void report_table_free(struct report_table *table); /* accepts a zeroed table */

/* Read the rows (at most @limit; 0: all) of the query @sql. Quantities are derived from column
 * names (..._ns, ..._bytes, cycles, ..._fraction) and types. */
enum status report_table_query(struct report_table *out, struct prof_db *db, const char *name,
			       const char *sql, int64_t limit, struct err *err);

/* Like report_table_query(), but also bound the memory of the rows (@most bytes; 0: unbounded), and
 * set no note. *@more: a bound cut rows. */
enum status report_table_query_most(struct report_table *out, struct prof_db *db, const char *name,
				    const char *sql, int64_t limit, size_t most, bool *more,
				    struct err *err);

/* Read a view of the contract by name. Unknown: ST_NOTFOUND with the nearest name. */
enum status report_table_view(struct report_table *out, struct prof_db *db, const char *view,
			      int64_t limit, struct err *err);

#endif /* REPORT_TABLE_H */
