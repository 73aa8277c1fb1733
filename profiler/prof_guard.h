/*
 * What users write themselves: statements, which a guarded handle accepts or refuses
 * (prof_guard.c), and conditions on rows (prof_expression.c). Such text may be hostile: a query in
 * a file that somebody has sent.
 *
 * Threading: as the handle's; the functions without a handle may be called by any thread.
 */
#ifndef PROF_GUARD_H
#define PROF_GUARD_H

#include "profiler/prof_db.h"

/*
 * From now on the handle accepts read-only statements: no ATTACH, no temporary table, no PRAGMA
 * that changes anything, no function with outside effects, no tables but those that the file's
 * schema has now, json_each(), json_tree() and those of read-only pragmas; texts and blobs of at
 * most 8 MB, bounded nesting and number of columns. A refused statement is ST_INVALID, one that
 * needs too much memory ST_LIMIT, a cancelled one ST_INTERRUPTED. Only closing the handle ends
 * this; until then the bound on memory, of the last one, applies to all handles of the process, so
 * guarded handles are closed in the reverse order of their guards. On failure the handle stays
 * unguarded, but may have lost tables of modules.
 */
struct prof_guard_params {
	bool (*cancelled)(void *user); /* polled continually; NULL: never */
	void *user;
	int64_t memory_bytes; /* limit of a statement's SQLite memory; 0: 128 MB */
};
enum status prof_db_guard(struct prof_db *db, const struct prof_guard_params *params,
			  struct err *err);

/*
 * Check that @text is one expression over @columns and nothing else, so that it may be placed in
 * parentheses after WHERE of a statement over them. It may call pure functions, but contain no
 * query, parameter or further statement; its length and depth are bounded. Needs no database.
 * ST_INVALID has SQLite's message ("no such column: x").
 */
enum status prof_expression_check(const char *text, const char *const *columns, size_t count,
				  struct err *err);

/* Byte offset of the error in the statement that last failed to prepare; -1: unknown. */
int prof_db_error_offset(struct prof_db *db);

/* Return whether @sql ends with a semicolon outside of texts and comments. */
bool prof_query_is_complete(const char *sql);

#endif /* PROF_GUARD_H */
