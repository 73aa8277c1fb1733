/*
 * Pieces of JSON for interned things: what a row of strings, sites or contexts becomes in an
 * export, made once and kept while it is near.
 *
 * Memory is bounded: ids are cut into blocks, and a block that was not used lately makes room for
 * the next. One thread per cache, which lives no longer than its database handle.
 */
#ifndef REPORT_PIECES_H
#define REPORT_PIECES_H

#include <stdint.h>

#include "common/err.h"
#include "common/jsonw.h"
#include "common/str.h"
#include "profiler/prof_db.h"

#define REPORT_PIECES_SHIFT  8
#define REPORT_PIECES_IDS    (1 << REPORT_PIECES_SHIFT) /* of a block */
#define REPORT_PIECES_BLOCKS 64

struct report_piece {
	const char *bytes; /* no terminating 0 */
	size_t length;
};

struct report_pieces_block {
	int64_t number, last; /* of its ids, the greatest that was there */
	uint64_t round;       /* when it was read */
	size_t at[REPORT_PIECES_IDS + 1];
	struct str text;
};

struct report_pieces {
	struct prof_db *db;
	/* The id and what it takes, :first <= id <= :last, in order of id. */
	const char *sql;
	void (*render)(const struct prof_query *query, struct str *out);
	struct report_pieces_block *blocks;
	uint64_t round; /* raised by the user where rows may have come */
};

enum status report_pieces_init(struct report_pieces *pieces, struct prof_db *db, const char *sql,
			       void (*render)(const struct prof_query *query, struct str *out),
			       struct err *err);
void report_pieces_fini(struct report_pieces *pieces); /* accepts a zeroed one */

/* Not in memory yet. */
enum status report__pieces_load(struct report_pieces *pieces, int64_t id, struct err *err);

/* The piece of @id, which lives until the next call. Empty: NULL, or there is no such row. */
static inline enum status report_pieces_get(struct report_pieces *pieces, int64_t id,
					    struct report_piece *out, struct err *err)
{
	const int64_t number = id >> REPORT_PIECES_SHIFT;
	struct report_pieces_block *block = &pieces->blocks[number & (REPORT_PIECES_BLOCKS - 1)];
	const int at = (int)(id & (REPORT_PIECES_IDS - 1));

	*out = (struct report_piece){"", 0};
	if (id == IPS_NULL)
		return ST_OK;
	if (block->number != number || (id > block->last && block->round != pieces->round)) {
		enum status status = report__pieces_load(pieces, id, err);

		if (status != ST_OK)
			return status;
	}
	*out = (struct report_piece){str_peek(&block->text) + block->at[at],
				     block->at[at + 1] - block->at[at]};
	return ST_OK;
}

/* ---- renderers ------------------------------------------------------------------------------- */

/* The members of an object, without its braces. Columns after the id become members named like the
 * columns; NULL ones are left out. */
void report_pieces_members(const struct prof_query *query, struct str *out);

/* Add what an object writer made, without the braces around it. */
void report_pieces_bare(struct str *out, size_t from);

#endif /* REPORT_PIECES_H */
