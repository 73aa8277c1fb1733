/*
 * A cache of JSON fragments for interned rows (strings, sites, contexts), rendered once per block.
 *
 * Memory is bounded: ids are divided into blocks, and a new block evicts the one in its slot.
 *
 * Threading: one thread per cache. A cache must not outlive its database handle.
 */
#ifndef REPORT_PIECES_H
#define REPORT_PIECES_H

#include <stdint.h>

#include "common/err.h"
#include "common/jsonw.h"
#include "common/str.h"
#include "profiler/prof_db.h"

#define REPORT_PIECES_SHIFT  8
#define REPORT_PIECES_IDS    (1 << REPORT_PIECES_SHIFT) /* ids per block */
#define REPORT_PIECES_BLOCKS 64

struct report_piece {
	const char *bytes; /* no terminating 0 */
	size_t length;
};

struct report_pieces_block {
	int64_t number, last; /* block number; the greatest id that had a row */
	uint64_t round;       /* value of pieces->round when it was read */
	size_t at[REPORT_PIECES_IDS + 1];
	struct str text;
};

struct report_pieces {
	struct prof_db *db;
	struct err *err; /* sticky: once set, every piece is empty */
	/* Selects the id and the rendered columns, :first <= id <= :last, ordered by id. */
	const char *sql;
	void (*render)(const struct prof_query *query, struct str *out);
	struct report_pieces_block *blocks;
	uint64_t round; /* incremented by the user when rows may have been added */
};

void report_pieces_init(struct report_pieces *pieces, struct prof_db *db, const char *sql,
			void (*render)(const struct prof_query *query, struct str *out),
			struct err *err);
void report_pieces_fini(struct report_pieces *pieces); /* accepts a zeroed one */

/* Load the block of @id. */
void report__pieces_load(struct report_pieces *pieces, int64_t id);

/* Return the piece of @id, valid until the next call. Empty if @id is NULL or has no row. */
static inline struct report_piece report_pieces_get(struct report_pieces *pieces, int64_t id)
{
	const int64_t number = id >> REPORT_PIECES_SHIFT;
	struct report_pieces_block *block = &pieces->blocks[number & (REPORT_PIECES_BLOCKS - 1)];
	const int at = (int)(id & (REPORT_PIECES_IDS - 1));

	if (id != IPS_NULL &&
	    (block->number != number || (id > block->last && block->round != pieces->round)))
		report__pieces_load(pieces, id);
	if (id == IPS_NULL || block->number != number)
		return (struct report_piece){"", 0};
	return (struct report_piece){str_peek(&block->text) + block->at[at],
				     block->at[at + 1] - block->at[at]};
}

/* ---- renderers ------------------------------------------------------------------------------- */

/* Render the columns after the id as members of an object, without braces. Members are named like
 * the columns; NULL ones are omitted. */
void report_pieces_members(const struct prof_query *query, struct str *out);

/* Strip the braces around what an object writer appended from @from on. */
void report_pieces_bare(struct str *out, size_t from);

#endif /* REPORT_PIECES_H */
