/*
 * Prepared many-row inserts. See prof_insert.h.
 */
#include "profiler/prof_insert.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_bulk.h"
#include "profiler/prof_sql.h"

/* Prepare "HEAD VALUES (?,?),(?,?) TAIL"; values are always bound, never part of the text. */
static enum status prepare_values(const struct prof_insert *insert, size_t rows, sqlite3_stmt **out,
				  struct err *err)
{
	struct str sql = {0};
	enum status status;

	str_add(&sql, insert->head);
	str_add(&sql, " VALUES ");
	for (size_t r = 0; r < rows; r++) {
		str_add(&sql, r == 0 ? "(?" : ",(?");
		for (size_t c = 1; c < insert->columns; c++)
			str_add(&sql, ",?");
		str_add(&sql, ")");
	}
	if (insert->tail) {
		str_add(&sql, " ");
		str_add(&sql, insert->tail);
	}
	if (sql.failed) {
		str_free(&sql);
		return err_nomem(err);
	}
	status = prof_sql_prepare(out, insert->db, str_peek(&sql), err);
	str_free(&sql);
	return status;
}

enum status prof_insert_init(struct prof_insert *insert, sqlite3 *db, const char *head,
			     size_t columns, const char *tail, struct err *err)
{
	memset(insert, 0, sizeof(*insert));
	insert->db = db;
	insert->columns = columns;
	insert->tail = tail;
	insert->head = mem_strdup(head);
	insert->cells = mem_calloc(2 * PROF_BATCH * columns, sizeof(*insert->cells));
	if (!insert->head || !insert->cells) {
		prof_insert_fini(insert);
		return err_nomem(err);
	}
	insert->bound = insert->cells + PROF_BATCH * columns; /* NULL, as of a new statement */
	return ST_OK;
}

void prof_insert_fini(struct prof_insert *insert)
{
	sqlite3_finalize(insert->many);
	sqlite3_finalize(insert->few);
	sqlite3_finalize(insert->one);
	mem_free(insert->head);
	mem_free(insert->cells);
	memset(insert, 0, sizeof(*insert));
}

enum status prof_insert_row(struct prof_insert *insert, struct prof_cell **cells, struct err *err)
{
	enum status status = ST_OK;

	if (insert->rows == PROF_BATCH)
		status = prof_insert_flush(insert, err);
	if (status != ST_OK)
		return status;
	*cells = insert->cells + insert->rows * insert->columns;
	insert->rows++;
	return ST_OK;
}

static int bind_cell(sqlite3_stmt *statement, int index, const struct prof_cell *cell)
{
	switch (cell->type) {
	case PROF_CELL_INT:
		return sqlite3_bind_int64(statement, index, cell->value.i);
	case PROF_CELL_REAL:
		return sqlite3_bind_double(statement, index, cell->value.r);
	case PROF_CELL_TEXT:
		return sqlite3_bind_text(statement, index, cell->value.p, -1, SQLITE_STATIC);
	case PROF_CELL_BLOB:
		return sqlite3_bind_blob64(statement, index, cell->value.p,
					   (sqlite3_uint64)cell->size, SQLITE_STATIC);
	case PROF_CELL_NULL:
		break;
	}
	return sqlite3_bind_null(statement, index);
}

static bool is_bound(const struct prof_cell *cell, const struct prof_cell *bound)
{
	return cell->type == bound->type &&
	       (cell->type == PROF_CELL_NULL ||
		(cell->type == PROF_CELL_INT && cell->value.i == bound->value.i));
}

/* A statement keeps its values, and many of a batch are those of the one before it in the same
 * place: a track, a depth, an unknown value. Comparing takes less time than binding. */
static enum status insert_cells(struct prof_insert *insert, sqlite3_stmt *statement,
				const struct prof_cell *cells, size_t rows, struct err *err)
{
	const bool many = statement == insert->many;
	enum status status;
	int code = SQLITE_OK;

	for (size_t i = 0; i < rows * insert->columns && code == SQLITE_OK; i++) {
		if (many && is_bound(&cells[i], &insert->bound[i]))
			continue;
		code = bind_cell(statement, (int)i + 1, &cells[i]);
		if (many)
			insert->bound[i] = cells[i];
	}
	if (code != SQLITE_OK)
		return prof_sql_error(insert->db, code, err, "bind");
	status = prof_sql_execute(statement, err, "insert");
	if (status == ST_OK)
		insert->total += rows;
	return status;
}

enum status prof_insert_flush(struct prof_insert *insert, struct err *err)
{
	enum status status = ST_OK;
	size_t rows = insert->rows, step;

	insert->rows = 0;
	for (size_t r = 0; r < rows && status == ST_OK; r += step) {
		sqlite3_stmt **statement = &insert->one;

		step = 1;
		if (insert->bulk) {
			bool loaded;

			status = prof_bulk_put(insert->bulk, insert->cells + r * insert->columns,
					       &loaded, err);
			insert->total += loaded;
			if (loaded || status != ST_OK)
				continue;
		} else if (rows - r >= PROF_BATCH) {
			statement = &insert->many;
			step = PROF_BATCH;
		} else if (rows - r >= PROF_FEW) {
			statement = &insert->few;
			step = PROF_FEW;
		}
		if (!*statement)
			status = prepare_values(insert, step, statement, err);
		if (status == ST_OK)
			status = insert_cells(insert, *statement,
					      insert->cells + r * insert->columns, step, err);
	}
	return status;
}
