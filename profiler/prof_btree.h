/*
 * A table of an SQLite database built from its rows in order of key, without SQLite: pages are
 * filled one after another, which takes a tenth of the time that an INSERT does.
 *
 * The pages wait in an unnamed file and go to the end of the database when it is closed
 * (prof_btree_join). The format is SQLite's file format, version 4 of the schema format, without
 * reserved bytes: https://www.sqlite.org/fileformat2.html, sections 1.6 (pages) and 2.1 (records).
 *
 * One thread at a time.
 */
#ifndef PROF_BTREE_H
#define PROF_BTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define PROF_PAGE_BYTES 16384 /* of the database */
/* Bytes of a row's values; larger ones would need pages of their own. */
#define PROF_BTREE_MOST 4000

enum prof_btree_kind {
	PROF_BTREE_ROWS, /* by row id; the column that names it is NULL in the row */
	PROF_BTREE_KEYS  /* WITHOUT ROWID: rows in order of their first columns */
};

struct prof_btree; /* opaque */

/* @beside: a path whose folder takes the unnamed file. */
enum status prof_btree_new(struct prof_btree **out, enum prof_btree_kind kind, const char *beside,
			   struct err *err);
void prof_btree_free(struct prof_btree *tree); /* accepts NULL */

/* A row under construction: values in order of columns. */
struct prof_row_text {
	size_t types, values; /* bytes of each */
	unsigned char type[24], value[PROF_BTREE_MOST];
};

void prof_row_begin(struct prof_row_text *row);
void prof_row_null(struct prof_row_text *row);
void prof_row_int(struct prof_row_text *row, int64_t value); /* IPS_NULL: NULL */
void prof_row_real(struct prof_row_text *row, double value); /* NaN: NULL */
/* False: too long, and the row is void. */
bool prof_row_bytes(struct prof_row_text *row, const char *text, size_t length);

/* The next row; @row_id of PROF_BTREE_ROWS. */
enum status prof_btree_put(struct prof_btree *tree, int64_t row_id, const struct prof_row_text *row,
			   struct err *err);

/* All rows are in: the tree's pages go behind the *@pages pages of the closed database @fd, whose
 * table has the empty page @root; *@pages is then how many it has. */
enum status prof_btree_join(struct prof_btree *tree, int fd, uint32_t root, uint32_t *pages,
			    struct err *err);

/* The head of the closed database @fd says that it has @pages pages, and that this is new. */
enum status prof_btree_set_pages(int fd, uint32_t pages, struct err *err);

/* A varint at @out, the most significant 7 bits first; its length. Values stay below 2^56. */
size_t prof_varint_put(unsigned char *out, uint64_t value);

#endif /* PROF_BTREE_H */
