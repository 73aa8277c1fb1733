/*
 * Names for statements: the contract's views and their columns, SQL keywords and functions. Used
 * for completion and for suggestions after errors.
 */
#ifndef VIEW_SQL_RUN_H
#define VIEW_SQL_RUN_H

#include "common/arena.h"
#include "profiler/prof_db.h"
#include "reports/table/report_table.h"
#include "viewer/view_screen.h"

#define VIEW_SQL_OFFERS 32

struct view_sql_view {
	const char *name, *usage; /* usage: describes a row */
	const char **columns;
	int column_count;
};

/* The arena owns everything until the next load. Start with {0}. */
struct view_sql_names {
	struct view_sql_view *views;
	int count;
	struct arena arena;
};

/* On failure @names is empty. */
enum status view_sql_names_load(struct view_sql_names *names, struct prof_db *db, struct err *err);
void view_sql_names_fini(struct view_sql_names *names);
const struct view_sql_view *view_sql_names_find(const struct view_sql_names *names,
						const char *view); /* NULL: none */

/* Completions of the word before byte @at of @sql, most likely first: columns of the views that the
 * statement names, views, keywords, functions, all other columns. */
struct view_sql_offers {
	size_t length; /* bytes of the word before the cursor */
	const char *items[VIEW_SQL_OFFERS];
	int count;
};

void view_sql_complete(const struct view_sql_names *names, const char *sql, size_t at,
		       struct view_sql_offers *out);

/* Extract the unknown name of SQLite's @message into @word, and return the most similar known name;
 * NULL: none. */
const char *view_sql_nearest(const struct view_sql_names *names, const char *sql,
			     const char *message, char word[128]);

bool view_sql_is_word(const char *text, size_t length); /* an SQL keyword */

/*
 * Run a statement typed by the user: guarded, bounded, cancellable.
 *
 * Each run opens the report and closes it again, so a recording run can close its file meanwhile.
 */

#define VIEW_SQL_ROWS  100000
#define VIEW_SQL_BYTES (64 << 20)

struct view_sql_answer {
	struct report_table table; /* owned by the caller; column names are unique */
	char keys[512];            /* key columns of the table, for the grid; "": none */
	bool more;                 /* the bounds cut off rows */
	uint64_t took_ns;
	int offset; /* byte of the error in the statement; -1: unknown */
};

/* Run @sql. If @context has a target, run it on both reports and join the results by the first
 * columns as long as those are texts or identifiers, otherwise by row number. On failure there is
 * no table. ST_INTERRUPTED: the user cancelled. */
enum status view_sql_run(struct view_sql_answer *out, struct view_context *context, const char *sql,
			 struct err *err);

/* Make a statement for the rows of a view that an insight names: "clock=device type=StreamCopy*".
 * ST_NOTFOUND: there is no such view. */
enum status view_sql_rows_of(char out[VIEW_PLACE_SQL], const char *view, const char *keys,
			     struct err *err);

#endif /* VIEW_SQL_RUN_H */
