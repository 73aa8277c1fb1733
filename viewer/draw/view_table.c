/*
 * Fill a report's table.
 *
 * Threading: one thread per table. Ownership: the table's arena owns all.
 */
#include "viewer/draw/view_table.h"

#include <string.h>

enum status view_table_new(struct report_table *out, const char *name,
			   const struct report_column *columns, int column_count, int64_t rows,
			   struct err *err)
{
	const size_t cells = (size_t)(rows > 0 ? rows : 1) * (size_t)column_count;

	memset(out, 0, sizeof(*out));
	out->name = name;
	out->columns = arena_alloc(&out->arena, (size_t)column_count, sizeof(*out->columns));
	out->cells = arena_alloc(&out->arena, cells, sizeof(*out->cells));
	if (!out->columns || !out->cells) {
		report_table_free(out);
		return err_nomem(err);
	}
	if (columns)
		memcpy(out->columns, columns, (size_t)column_count * sizeof(*columns));
	out->column_count = column_count;
	out->row_count = rows;
	return ST_OK;
}

int view_table_column(const struct report_table *table, const char *name)
{
	for (int i = 0; i < table->column_count; i++)
		if (strcmp(table->columns[i].name, name) == 0)
			return i;
	return -1;
}

enum status view_table_row(struct report_table *table, int64_t row, const struct report_cell *cells,
			   struct err *err)
{
	struct report_cell *out = &table->cells[row * table->column_count];
	enum status status = ST_OK;

	memcpy(out, cells, (size_t)table->column_count * sizeof(*cells));
	for (int i = 0; i < table->column_count; i++) {
		if (!out[i].text)
			continue;
		out[i].text = arena_strdup(&table->arena, out[i].text);
		if (!out[i].text)
			status = err_nomem(err);
	}
	return status;
}
