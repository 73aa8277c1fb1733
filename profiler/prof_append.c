/*
 * Appended rows: from the structs of the queue or of a track into their tables, and into the sums.
 *
 * Buffered rows point to texts in their chunk, so a chunk is flushed before it is released. On the
 * writer's thread.
 */
#include <string.h>

#include "common/str.h"
#include "profiler/prof_internal.h"

static void prepare_rows(struct prof_writer *writer, unsigned table)
{
	const struct prof_row_type *type = &prof_row_types[table];
	struct prof_insert *rows = &writer->rows[table];
	struct str head = {0};

	/* A row whose id the caller assigns, or a fact, replaces an older one. */
	str_addf(&head, "INSERT OR %s INTO %s (",
		 type->columns[0].kind == PROF_COLUMN_ID ||
				 type->columns[0].kind == PROF_COLUMN_SPAN ||
				 table == PROF_TABLE_META
			 ? "REPLACE"
			 : "FAIL",
		 type->table);
	for (size_t i = 0; i < type->count; i++)
		str_addf(&head, "%s%s", i == 0 ? "" : ", ", type->columns[i].name);
	str_add(&head, ")");
	if (head.failed)
		err_nomem(&writer->err);
	else
		prof_insert_init(rows, writer->db, str_peek(&head), type->count, NULL,
				 &writer->err);
	str_free(&head);
	if (rows->cells && writer->bulk && type->columns[0].kind == PROF_COLUMN_SPAN)
		prof_bulk_table(writer->bulk, type->table, PROF_BULK_ROWID, type->count,
				&rows->bulk, &writer->err);
}

static void fill_cell(struct prof_writer *writer, const struct prof_column *column,
		      const unsigned char *row, int64_t span_id, struct prof_cell *cell)
{
	const unsigned char *field = row + column->offset;
	struct ips_keys keys;
	const char *text;
	int64_t value = IPS_NULL;
	double real;

	switch (column->kind) {
	case PROF_COLUMN_ID:
	case PROF_COLUMN_INT:
	case PROF_COLUMN_NEEDED:
		memcpy(&value, field, sizeof(value));
		prof_cell_int(cell, value);
		break;
	case PROF_COLUMN_REAL:
		memcpy(&real, field, sizeof(real));
		prof_cell_real(cell, real);
		break;
	case PROF_COLUMN_TEXT:
		memcpy(&text, field, sizeof(text));
		prof_cell_text(cell, text);
		break;
	case PROF_COLUMN_NAME:
		memcpy(&text, field, sizeof(text));
		prof_cell_int(cell, prof__writer_text(writer, text));
		break;
	case PROF_COLUMN_MODE:
		memcpy(&value, field, sizeof(value));
		prof_cell_text(cell, prof_mode_text(value));
		break;
	case PROF_COLUMN_KEYS:
	case PROF_COLUMN_CONTEXT:
		memcpy(&keys, field, sizeof(keys));
		value = prof__writer_context(writer, &keys, column->kind == PROF_COLUMN_CONTEXT);
		prof_cell_int(cell, value == 0 ? IPS_NULL : value);
		break;
	case PROF_COLUMN_RANK:
		prof_cell_int(cell, writer->rank);
		break;
	case PROF_COLUMN_SPAN:
		prof_cell_int(cell, span_id);
		break;
	case PROF_COLUMN_BLOB:
		memcpy(&cell->value.p, field, sizeof(cell->value.p));
		memcpy(&cell->size, row + column->size_offset, sizeof(cell->size));
		cell->type = !cell->value.p || cell->size < 0 ? PROF_CELL_NULL : PROF_CELL_BLOB;
		break;
	}
}

void prof__writer_row(struct prof_writer *writer, unsigned table, const unsigned char *row,
		      int64_t span_id)
{
	const struct prof_row_type *type = &prof_row_types[table];
	struct prof_insert *rows = &writer->rows[table];
	struct prof_cell *cells;

	if (prof__writer_ok(writer) && !rows->cells)
		prepare_rows(writer, table);
	prof__writer_begin(writer);
	cells = prof__writer_cells(writer, rows);
	if (!prof__writer_ok(writer)) /* @rows may not be prepared */
		return;
	for (size_t i = 0; i < type->count; i++)
		fill_cell(writer, &type->columns[i], row, span_id, &cells[i]);
	prof__sums_row(writer, table, row);
	writer->rows_total++;
}

void prof__writer_flush_rows(struct prof_writer *writer)
{
	for (size_t i = 0; i < PROF_TABLES; i++)
		prof__writer_flush(writer, &writer->rows[i]);
}

void prof__writer_chunk(struct prof_writer *writer, const struct prof_chunk *chunk)
{
	for (size_t at = 0; at < chunk->used;) {
		struct prof_record record;

		memcpy(&record, chunk->data + at, sizeof(record));
		prof__writer_row(writer, record.table, chunk->data + at + sizeof(record), IPS_NULL);
		at += record.size;
	}
	/* The chunk owns the texts of the buffered rows. */
	prof__writer_flush_rows(writer);
}
