/*
 * What the writer puts into rows beside the lanes: strings, call sites and contexts, each once and
 * before what refers to it, and the rows that programs append.
 *
 * On the writer's thread. Texts of waiting rows are the chunk's: a chunk is flushed before it is
 * given back.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_internal.h"
#include "profiler/prof_site.h"

/* ---- dictionaries ---------------------------------------------------------------------------- */

enum status prof__writer_begin(struct prof_writer *writer)
{
	enum status status;

	if (writer->in_transaction)
		return ST_OK;
	status = prof_sql_execute(writer->begin, &writer->err, "begin");
	writer->in_transaction = status == ST_OK;
	return status;
}

enum status prof__writer_text(struct prof_writer *writer, const char *text, int64_t *id)
{
	struct prof_cell *cells;
	enum status status;
	bool fresh;

	*id = IPS_NULL;
	if (!text)
		return ST_OK;
	*id = (int64_t)prof_texts_add(&writer->texts, text, &fresh);
	if (*id == 0)
		return err_nomem(&writer->err);
	if (!fresh)
		return ST_OK;
	status = prof__writer_begin(writer);
	if (status == ST_OK)
		status = prof_insert_row(&writer->strings, &cells, &writer->err);
	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], *id);
	prof_cell_text(&cells[1], text);
	/* At once: the text may be gone before the batch is full. */
	return prof_insert_flush(&writer->strings, &writer->err);
}

static enum status write_site(struct prof_writer *writer, const struct ips_site *site, uint32_t id)
{
	int64_t category, name, operation, file;
	struct prof_cell *cells;
	enum status status = prof__writer_begin(writer);

	if (status == ST_OK)
		status =
			prof__writer_text(writer, !site->category ? "" : site->category, &category);
	if (status == ST_OK)
		status = prof__writer_text(writer, !site->name ? "" : site->name, &name);
	if (status == ST_OK)
		status = prof__writer_text(writer, site->operation, &operation);
	if (status == ST_OK)
		status = prof__writer_text(writer, site->file, &file);
	if (status == ST_OK)
		status = prof_insert_row(&writer->sites, &cells, &writer->err);
	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], id);
	prof_cell_int(&cells[1], category);
	prof_cell_int(&cells[2], name);
	prof_cell_int(&cells[3], operation);
	prof_cell_int(&cells[4], file);
	prof_cell_int(&cells[5], !site->file ? IPS_NULL : (int64_t)site->line);
	return ST_OK;
}

enum status prof__writer_site(struct prof_writer *writer, struct ips_site *site, uint32_t *id)
{
	size_t capacity = writer->sites_capacity;

	*id = prof_site_id(site);
	if (*id < capacity && writer->sites_seen[*id])
		return ST_OK;
	if (*id >= capacity) {
		if (mem_grow(&writer->sites_seen, &writer->sites_capacity, (size_t)*id + 1, 1) != 0)
			return err_nomem(&writer->err);
		memset(writer->sites_seen + capacity, 0, writer->sites_capacity - capacity);
	}
	writer->sites_seen[*id] = 1;
	return write_site(writer, site, *id);
}

const char *prof__phase_text(int64_t phase)
{
	static const char phases[][2] = {"F", "B", "W", "R", "U"};

	for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
		if (phases[i][0] == phase)
			return phases[i];
	}
	return NULL;
}

static enum status write_context(struct prof_writer *writer, const struct ips_keys *keys,
				 int64_t id)
{
	struct prof_cell *cells;
	enum status status = prof__writer_begin(writer);

	if (status == ST_OK)
		status = prof_insert_row(&writer->contexts, &cells, &writer->err);
	if (status != ST_OK)
		return status;
	prof_cell_int(&cells[0], id);
	prof_cell_int(&cells[1], writer->rank);
	prof_cell_text(&cells[2], prof_mode_text(keys->mode));
	prof_cell_int(&cells[3], keys->epoch);
	prof_cell_int(&cells[4], keys->execution);
	prof_cell_int(&cells[5], keys->weight_update);
	prof_cell_int(&cells[6], keys->step);
	prof_cell_int(&cells[7], keys->microbatch);
	prof_cell_int(&cells[8], keys->replica);
	prof_cell_int(&cells[9], keys->ipu);
	prof_cell_int(&cells[10], keys->stage);
	prof_cell_text(&cells[11], prof__phase_text(keys->phase));
	return ST_OK;
}

static bool is_none(const struct ips_keys *keys)
{
	return keys->epoch == IPS_NULL && keys->execution == IPS_NULL &&
	       keys->weight_update == IPS_NULL && keys->step == IPS_NULL &&
	       keys->microbatch == IPS_NULL && keys->replica == IPS_NULL && keys->ipu == IPS_NULL &&
	       keys->stage == IPS_NULL && !prof_mode_text(keys->mode) && keys->phase == 0;
}

/* *@id 0: no context. */
enum status prof__writer_context(struct prof_writer *writer, const struct ips_keys *keys,
				 bool needed, int64_t *id)
{
	struct ips_keys key;

	*id = 0;
	if (!needed && is_none(keys))
		return ST_OK;
	memset(&key, 0, sizeof(key)); /* the padding counts for the hash */
	key.epoch = keys->epoch;
	key.execution = keys->execution;
	key.weight_update = keys->weight_update;
	key.step = keys->step;
	key.microbatch = keys->microbatch;
	key.replica = keys->replica;
	key.ipu = keys->ipu;
	key.stage = keys->stage;
	key.mode = keys->mode;
	key.phase = keys->phase;
	*id = prof_contexts_add(&writer->recent_contexts, &key, writer->last_context + 1);
	if (*id <= writer->last_context)
		return ST_OK;
	writer->last_context = *id;
	return write_context(writer, &key, *id);
}

/* ---- appended rows --------------------------------------------------------------------------- */

static enum status prepare_rows(struct prof_writer *writer, unsigned table)
{
	const struct prof_row_type *type = &prof_row_types[table];
	struct str head = {0};
	enum status status;

	/* Rows with an id of the caller's replace an older one with the same id. */
	str_addf(&head, "INSERT OR REPLACE INTO %s (", type->table);
	for (size_t i = 0; i < type->count; i++)
		str_addf(&head, "%s%s", i == 0 ? "" : ", ", type->columns[i].name);
	str_add(&head, ")");
	status = head.failed ? err_nomem(&writer->err)
			     : prof_insert_init(&writer->rows[table], writer->db, str_peek(&head),
						type->count, NULL, &writer->err);
	str_free(&head);
	return status;
}

static enum status fill_cell(struct prof_writer *writer, const struct prof_column *column,
			     const unsigned char *row, struct prof_cell *cell)
{
	const unsigned char *field = row + column->offset;
	enum status status = ST_OK;
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
		status = prof__writer_text(writer, text, &value);
		prof_cell_int(cell, value);
		break;
	case PROF_COLUMN_MODE:
		memcpy(&value, field, sizeof(value));
		prof_cell_text(cell, prof_mode_text(value));
		break;
	case PROF_COLUMN_KEYS:
	case PROF_COLUMN_CONTEXT:
		memcpy(&keys, field, sizeof(keys));
		status = prof__writer_context(writer, &keys, column->kind == PROF_COLUMN_CONTEXT,
					      &value);
		prof_cell_int(cell, value == 0 ? IPS_NULL : value);
		break;
	case PROF_COLUMN_RANK:
		prof_cell_int(cell, writer->rank);
		break;
	case PROF_COLUMN_BLOB:
		memcpy(&cell->value.p, field, sizeof(cell->value.p));
		memcpy(&cell->size, row + column->size_offset, sizeof(cell->size));
		cell->type = !cell->value.p || cell->size < 0 ? PROF_CELL_NULL : PROF_CELL_BLOB;
		break;
	}
	return status;
}

static enum status write_row(struct prof_writer *writer, unsigned table, const unsigned char *row)
{
	const struct prof_row_type *type = &prof_row_types[table];
	enum status status = ST_OK;
	struct prof_cell *cells;

	if (!writer->rows[table].many)
		status = prepare_rows(writer, table);
	if (status == ST_OK)
		status = prof__writer_begin(writer);
	if (status == ST_OK)
		status = prof_insert_row(&writer->rows[table], &cells, &writer->err);
	for (size_t i = 0; i < type->count && status == ST_OK; i++)
		status = fill_cell(writer, &type->columns[i], row, &cells[i]);
	if (status == ST_OK)
		status = prof__sums_row(writer, table, row);
	writer->rows_total++;
	return status;
}

enum status prof__writer_flush_rows(struct prof_writer *writer)
{
	enum status status = ST_OK;

	for (size_t i = 0; i < PROF_TABLES && status == ST_OK; i++)
		status = prof_insert_flush(&writer->rows[i], &writer->err);
	return status;
}

enum status prof__writer_chunk(struct prof_writer *writer, const struct prof_chunk *chunk)
{
	enum status status = ST_OK;

	for (size_t at = 0; at < chunk->used && status == ST_OK;) {
		struct prof_record record;

		memcpy(&record, chunk->data + at, sizeof(record));
		status = write_row(writer, record.table, chunk->data + at + sizeof(record));
		at += record.size;
	}
	/* The texts of waiting rows are the chunk's. */
	return status == ST_OK ? prof__writer_flush_rows(writer) : status;
}
