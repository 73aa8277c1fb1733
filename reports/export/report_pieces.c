/*
 * A cache of JSON fragments for interned rows. See report_pieces.h.
 *
 * Threading: none. Ownership: a cache owns its blocks; the database is borrowed.
 */
#include "reports/export/report_pieces.h"

#include <string.h>

#include "common/mem.h"
#include "reports/table/report_internal.h"

void report_pieces_init(struct report_pieces *pieces, struct prof_db *db, const char *sql,
			void (*render)(const struct prof_query *query, struct str *out),
			struct err *err)
{
	*pieces = (struct report_pieces){.db = db, .err = err, .sql = sql, .render = render};
	if (err_stuck(err))
		return;
	pieces->blocks = mem_calloc(REPORT_PIECES_BLOCKS, sizeof(*pieces->blocks));
	if (!pieces->blocks)
		err_nomem(err);
	for (int i = 0; i < REPORT_PIECES_BLOCKS && pieces->blocks; i++)
		pieces->blocks[i].number = IPS_NULL;
}

void report_pieces_fini(struct report_pieces *pieces)
{
	for (int i = 0; i < REPORT_PIECES_BLOCKS && pieces->blocks; i++)
		str_free(&pieces->blocks[i].text);
	mem_free(pieces->blocks);
	pieces->blocks = NULL;
}

void report__pieces_load(struct report_pieces *pieces, int64_t id)
{
	const int64_t number = id >> REPORT_PIECES_SHIFT;
	const int64_t first = id & ~(int64_t)(REPORT_PIECES_IDS - 1);
	struct report_pieces_block *block = &pieces->blocks[number & (REPORT_PIECES_BLOCKS - 1)];
	struct err *err = pieces->err;
	struct prof_query *query;
	int next = 0;

	block->number = IPS_NULL;
	block->last = IPS_NULL;
	block->round = pieces->round;
	str_clear(&block->text);
	if (err_stuck(err) || prof_query_open(&query, pieces->db, pieces->sql, err) != ST_OK)
		return;
	prof_query_int(query, ":first", first);
	prof_query_int(query, ":last", first + REPORT_PIECES_IDS - 1);
	while (prof_query_next(query, &err->status, err)) {
		const int64_t row = prof_column_int(query, 0);

		for (; next <= row - first; next++)
			block->at[next] = block->text.length;
		pieces->render(query, &block->text);
		block->last = row;
	}
	prof_query_close(query);
	for (; next <= REPORT_PIECES_IDS; next++)
		block->at[next] = block->text.length;
	if (block->text.failed)
		err_nomem(err);
	if (!err_stuck(err))
		block->number = number;
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
