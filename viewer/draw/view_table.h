/*
 * Fill a report's table from a struct, for screens that print CSV and JSON.
 */
#ifndef VIEW_TABLE_H
#define VIEW_TABLE_H

#include "reports/table/report_table.h"

/* Make a table whose cells are all NULL. @columns and @name must be constant data; if @columns is
 * NULL, the caller fills them in. */
enum status view_table_new(struct report_table *out, const char *name,
			   const struct report_column *columns, int column_count, int64_t rows,
			   struct err *err);
/* IPS_NULL, NaN and NULL leave the cell NULL. Texts are copied. */
void view_table_int(struct report_table *table, int64_t row, int column, int64_t value);
void view_table_real(struct report_table *table, int64_t row, int column, double value);
enum status view_table_text(struct report_table *table, int64_t row, int column, const char *value,
			    struct err *err);

/* The index of column @name; -1: none. */
int view_table_column(const struct report_table *table, const char *name);

/* Rows of queries, collected before their number is known. Start with {0}. */
struct view_rows {
	struct report_cell *cells;
	size_t count, capacity; /* cells */
	int64_t rows;
	bool more; /* the limit cut off rows */
	struct arena arena;
};

/* Append the rows of @query, which has @columns columns, until there are @limit rows. */
enum status view_rows_add(struct view_rows *rows, struct prof_query *query, int columns,
			  int64_t limit, struct err *err);
/* Copy the rows into a new table. */
enum status view_rows_table(struct view_rows *rows, struct report_table *out, const char *name,
			    const struct report_column *columns, int column_count, struct err *err);
void view_rows_fini(struct view_rows *rows);

#endif /* VIEW_TABLE_H */
