/*
 * Names that a statement can be made of: views of the contract and their columns, SQL's words and
 * functions. For completion and for what was probably meant.
 */
#ifndef VIEW_SQL_RUN_H
#define VIEW_SQL_RUN_H

#include "common/arena.h"
#include "profiler/prof_db.h"
#include "reports/table/report_table.h"
#include "viewer/view_screen.h"

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

/*
 * Running a statement that somebody typed: guarded, bounded, to be cancelled.
 *
 * Each run opens the report afresh and lets go of it: nothing is held while a run that records
 * wants to close its file.
 */

#define VIEW_SQL_ROWS  100000
#define VIEW_SQL_BYTES (64 << 20)

struct view_sql_answer {
	struct report_table table; /* the caller's; column names are told apart */
	char keys[512];            /* of the table, for the grid; "": none */
	bool more;                 /* the bounds left rows out */
	uint64_t took_ns;
	int offset; /* byte of the statement where it is wrong; -1: unknown */
};

/* Of both reports where @context has two: joined by the first columns as far as those are texts or
 * identifiers, else by the number of the row. On failure there is no table. ST_INTERRUPTED: the
 * user waits no longer. */
enum status view_sql_run(struct view_sql_answer *out, struct view_context *context, const char *sql,
			 struct err *err);

/* A statement for rows of a view as an insight names them: "clock=device type=StreamCopy*".
 * ST_NOTFOUND: there is no such view. */
enum status view_sql_rows_of(char out[VIEW_PLACE_SQL], const char *view, const char *keys,
			     struct err *err);

#endif /* VIEW_SQL_RUN_H */
