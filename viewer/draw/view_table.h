/*
 * Fill a report's table from a struct, for screens that print CSV and JSON.
 */
#ifndef VIEW_TABLE_H
#define VIEW_TABLE_H

#include <math.h>

#include "reports/table/report_table.h"

/* Make a table whose cells are all NULL. @columns and @name must be constant data; if @columns is
 * NULL, the caller fills them in. */
enum status view_table_new(struct report_table *out, const char *name,
			   const struct report_column *columns, int column_count, int64_t rows,
			   struct err *err);
/* Cells of a value; IPS_NULL, NaN and NULL make a cell NULL. */
static inline struct report_cell view_int(int64_t value)
{
	return value == IPS_NULL ? (struct report_cell){0}
				 : (struct report_cell){.type = PROF_INT,
							.integer = value,
							.real = (double)value};
}

static inline struct report_cell view_real(double value)
{
	return isnan(value) ? (struct report_cell){0}
			    : (struct report_cell){.type = PROF_REAL, .real = value};
}

static inline struct report_cell view_text_cell(const char *value)
{
	return value ? (struct report_cell){.type = PROF_TEXT, .text = value}
		     : (struct report_cell){0};
}

/* Fill a row with @cells, one for each column. Texts are copied. */
enum status view_table_row(struct report_table *table, int64_t row, const struct report_cell *cells,
			   struct err *err);

/* The index of column @name; -1: none. */
int view_table_column(const struct report_table *table, const char *name);

#endif /* VIEW_TABLE_H */
