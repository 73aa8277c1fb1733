/*
 * Filling a report's table from a struct, for what a screen prints as CSV and JSON.
 */
#ifndef VIEW_TABLE_H
#define VIEW_TABLE_H

#include "reports/table/report_table.h"

/* All cells NULL at first. @columns and @name must be constant data; @columns NULL: the caller
 * names them. */
enum status view_table_new(struct report_table *out, const char *name,
			   const struct report_column *columns, int column_count, int64_t rows,
			   struct err *err);
/* IPS_NULL, NaN and NULL leave the cell NULL. Texts are copied. */
void view_table_int(struct report_table *table, int64_t row, int column, int64_t value);
void view_table_real(struct report_table *table, int64_t row, int column, double value);
enum status view_table_text(struct report_table *table, int64_t row, int column, const char *value,
			    struct err *err);

/* The column @name; -1: none. */
int view_table_column(const struct report_table *table, const char *name);

/* Rows of queries, gathered before their number is known. Start with {0}. */
struct view_rows {
	struct report_cell *cells;
	size_t count, capacity; /* cells */
	int64_t rows;
	bool more; /* the limit left some out */
	struct arena arena;
};

/* Add the rows of @query, whose columns are @columns, until there are @limit. */
enum status view_rows_add(struct view_rows *rows, struct prof_query *query, int columns,
			  int64_t limit, struct err *err);
/* Make them a table; *@rows is emptied. */
enum status view_rows_table(struct view_rows *rows, struct report_table *out, const char *name,
			    const struct report_column *columns, int column_count, struct err *err);
void view_rows_fini(struct view_rows *rows);

#endif /* VIEW_TABLE_H */
