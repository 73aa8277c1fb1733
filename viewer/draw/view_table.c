/*
 * Fill a report's table.
 *
 * Threading: one thread per table. Ownership: the table's arena owns all.
 */
#include "viewer/draw/view_table.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"

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

/* Copy the text of a cell into @arena. */
static enum status table_own_text(struct report_cell *cell, struct arena *arena, struct err *err)
{
	if (!cell->text)
		return ST_OK;
	cell->text = arena_strdup(arena, cell->text);
	return cell->text ? ST_OK : err_nomem(err);
}

enum status view_table_row(struct report_table *table, int64_t row, const struct report_cell *cells,
			   struct err *err)
{
	struct report_cell *out = &table->cells[row * table->column_count];
	enum status status = ST_OK;

	memcpy(out, cells, (size_t)table->column_count * sizeof(*cells));
	for (int i = 0; i < table->column_count; i++)
		if (table_own_text(&out[i], &table->arena, err) != ST_OK)
			status = ST_NOMEM;
	return status;
}

enum status view_rows_add(struct view_rows *rows, struct prof_query *query, int columns,
			  int64_t limit, struct err *err)
{
	enum status status = ST_OK;

	while (prof_query_next(query, &status, err)) {
		if (rows->rows == limit) {
			rows->more = true;
			return ST_OK;
		}
		if (mem_grow(&rows->cells, &rows->capacity, rows->count + (size_t)columns,
			     sizeof(*rows->cells)))
			return err_nomem(err);
		for (int i = 0; i < columns; i++) {
			struct report_cell *out = &rows->cells[rows->count + (size_t)i];

			*out = (struct report_cell){.type = prof_column_type(query, i)};
			if (out->type == PROF_INT)
				out->integer = prof_column_int(query, i);
			if (out->type == PROF_INT || out->type == PROF_REAL)
				out->real = prof_column_real(query, i);
			if (out->type == PROF_TEXT)
				out->text = prof_column_text(query, i);
			status = table_own_text(out, &rows->arena, err);
			if (status != ST_OK)
				return status;
		}
		rows->count += (size_t)columns;
		rows->rows++;
	}
	return status;
}

enum status view_rows_table(struct view_rows *rows, struct report_table *out, const char *name,
			    const struct report_column *columns, int column_count, struct err *err)
{
	enum status status = view_table_new(out, name, columns, column_count, rows->rows, err);

	if (status != ST_OK)
		return status;
	for (int64_t i = 0; i < rows->rows; i++) {
		status = view_table_row(out, i, &rows->cells[i * column_count], err);
		if (status != ST_OK) {
			report_table_free(out);
			return status;
		}
	}
	if (rows->more)
		out->note = "there are more rows: zoom in, or narrow the time with --from and --to";
	return ST_OK;
}

void view_rows_fini(struct view_rows *rows)
{
	mem_free(rows->cells);
	arena_fini(&rows->arena);
	memset(rows, 0, sizeof(*rows));
}
