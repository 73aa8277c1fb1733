/*
 * Names that a statement can be made of: views of the contract and their columns, SQL's words and
 * functions. For completion and for what was probably meant.
 */
#ifndef VIEW_SQL_NAMES_H
#define VIEW_SQL_NAMES_H

#include "common/arena.h"
#include "profiler/prof_db.h"

#define VIEW_SQL_OFFERS 32

struct view_sql_view {
	const char *name, *usage; /* usage: what a row is */
	const char **columns;
	int column_count;
};

/* All is in the arena, until the next load. Start with {0}. */
struct view_sql_names {
	struct view_sql_view *views;
	int count;
	struct arena arena;
};

/* On failure there are no names. */
enum status view_sql_names_load(struct view_sql_names *names, struct prof_db *db, struct err *err);
void view_sql_names_fini(struct view_sql_names *names);
const struct view_sql_view *view_sql_names_find(const struct view_sql_names *names,
						const char *view); /* NULL: none */

/* What the word before byte @at of @sql can become, the likeliest first: columns of the views that
 * the statement names, views, words, functions, all other columns. */
struct view_sql_offers {
	size_t length; /* bytes of the word that stands there */
	const char *items[VIEW_SQL_OFFERS];
	int count;
};

void view_sql_complete(const struct view_sql_names *names, const char *sql, size_t at,
		       struct view_sql_offers *out);

/* The name in SQLite's @message that is not known, and the one that was probably meant; NULL:
 * nobody knows. @word has room for 128 bytes. */
const char *view_sql_nearest(const struct view_sql_names *names, const char *sql,
			     const char *message, char word[128]);

bool view_sql_is_word(const char *text, size_t length); /* a word of SQL's own */

#endif /* VIEW_SQL_NAMES_H */
