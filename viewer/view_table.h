/*
 * Filling a report's table from a struct, for what a screen prints as CSV and JSON.
 */
#ifndef VIEW_TABLE_H
#define VIEW_TABLE_H

#include "reports/report_table.h"

/* All cells NULL at first. @columns and @name must be constant data. */
enum status view_table_new(struct report_table *out, const char *name,
			   const struct report_column *columns, int column_count, int64_t rows,
			   struct err *err);
/* INT64_MIN, NaN and NULL leave the cell NULL. Texts are copied. */
void view_table_int(struct report_table *table, int64_t row, int column, int64_t value);
void view_table_real(struct report_table *table, int64_t row, int column, double value);
enum status view_table_text(struct report_table *table, int64_t row, int column, const char *value,
			    struct err *err);

#endif /* VIEW_TABLE_H */
