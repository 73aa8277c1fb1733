/*
 * A cache of JSON fragments for interned rows. See report_pieces.h.
 *
 * Threading: none. Ownership: a cache owns its blocks; the database is borrowed.
 */
#include "reports/export/report_pieces.h"

#include <string.h>

#include "common/mem.h"
#include "reports/table/report_internal.h"

enum status report_pieces_init(struct report_pieces *pieces, struct prof_db *db, const char *sql,
			       void (*render)(const struct prof_query *query, struct str *out),
			       struct err *err)
{
	*pieces = (struct report_pieces){.db = db, .sql = sql, .render = render};
	pieces->blocks = mem_calloc(REPORT_PIECES_BLOCKS, sizeof(*pieces->blocks));
	if (!pieces->blocks)
		return err_nomem(err);
	for (int i = 0; i < REPORT_PIECES_BLOCKS; i++)
		pieces->blocks[i].number = IPS_NULL;
	return ST_OK;
}

void report_pieces_fini(struct report_pieces *pieces)
{
	for (int i = 0; i < REPORT_PIECES_BLOCKS && pieces->blocks; i++)
		str_free(&pieces->blocks[i].text);
	mem_free(pieces->blocks);
	pieces->blocks = NULL;
}

static enum status load_rows(struct report_pieces *pieces, struct report_pieces_block *block,
			     struct prof_query *query, int64_t first, struct err *err)
{
	enum status status = ST_OK;
	int next = 0;

	while (prof_query_next(query, &status, err)) {
		const int64_t id = prof_column_int(query, 0);

		for (; next <= id - first; next++)
			block->at[next] = block->text.length;
		pieces->render(query, &block->text);
		block->last = id;
	}
	for (; next <= REPORT_PIECES_IDS; next++)
		block->at[next] = block->text.length;
	return status == ST_OK && block->text.failed ? err_nomem(err) : status;
}

enum status report__pieces_load(struct report_pieces *pieces, int64_t id, struct err *err)
{
	const int64_t number = id >> REPORT_PIECES_SHIFT;
	const int64_t first = id & ~(int64_t)(REPORT_PIECES_IDS - 1);
	struct report_pieces_block *block = &pieces->blocks[number & (REPORT_PIECES_BLOCKS - 1)];
	struct prof_query *query;
	enum status status = prof_query_open(&query, pieces->db, pieces->sql, err);

	if (status != ST_OK)
		return status;
	block->number = IPS_NULL;
	block->last = IPS_NULL;
	block->round = pieces->round;
	str_clear(&block->text);
	prof_query_int(query, ":first", first);
	prof_query_int(query, ":last", first + REPORT_PIECES_IDS - 1);
	status = load_rows(pieces, block, query, first, err);
	prof_query_close(query);
	if (status == ST_OK)
		block->number = number;
	return status;
}

/* ---- renderers ------------------------------------------------------------------------------- */

void report_pieces_bare(struct str *out, size_t from)
{
	if (out->failed || out->length < from + 2)
		return;
	memmove(out->text + from, out->text + from + 1, out->length - from - 2);
	out->length -= 2;
	out->text[out->length] = '\0';
}

void report_pieces_members(const struct prof_query *query, struct str *out)
{
	const size_t from = out->length;
	struct report_cell cell;
	struct jsonw w;

	jsonw_init_str(&w, out, 0);
	jsonw_begin_object(&w);
	for (int i = 1; i < prof_column_count(query); i++) {
		report__cell(query, i, &cell);
		if (cell.type != PROF_NULL)
			report__json_cell(&w, prof_column_name(query, i), &cell);
	}
	jsonw_end_object(&w);
	report_pieces_bare(out, from);
}
