/*
 * Filling a report's table.
 *
 * Threading: one thread per table. Ownership: all in the table's arena.
 */
#include "viewer/view_table.h"

#include <math.h>
#include <string.h>

enum status view_table_new(struct report_table *out, const char *name,
			   const struct report_column *columns, int column_count, int64_t rows,
			   struct err *err)
{
	const size_t cells = (size_t)(rows > 0 ? rows : 1) * (size_t)column_count;

	memset(out, 0, sizeof(*out));
	if (arena_init(&out->arena, 0))
		return err_nomem(err);
	out->name = name;
	out->columns = arena_alloc(&out->arena, (size_t)column_count, sizeof(*out->columns));
	out->cells = arena_alloc(&out->arena, cells, sizeof(*out->cells));
	if (!out->columns || !out->cells) {
		report_table_free(out);
		memset(out, 0, sizeof(*out));
		return err_nomem(err);
	}
	memcpy(out->columns, columns, (size_t)column_count * sizeof(*columns));
	out->column_count = column_count;
	out->row_count = rows;
	return ST_OK;
}

static struct report_cell *view_table_cell(struct report_table *table, int64_t row, int column)
{
	return &table->cells[row * table->column_count + column];
}

void view_table_int(struct report_table *table, int64_t row, int column, int64_t value)
{
	struct report_cell *cell = view_table_cell(table, row, column);

	if (value == INT64_MIN)
		return;
	cell->type = PROF_INT;
	cell->integer = value;
	cell->real = (double)value;
}

void view_table_real(struct report_table *table, int64_t row, int column, double value)
{
	struct report_cell *cell = view_table_cell(table, row, column);

	if (isnan(value))
		return;
	cell->type = PROF_REAL;
	cell->real = value;
}

enum status view_table_text(struct report_table *table, int64_t row, int column, const char *value,
			    struct err *err)
{
	struct report_cell *cell = view_table_cell(table, row, column);

	if (!value)
		return ST_OK;
	cell->text = arena_strdup(&table->arena, value);
	if (!cell->text)
		return err_nomem(err);
	cell->type = PROF_TEXT;
	return ST_OK;
}
