/*
 * Helpers shared by the reports: cells of queries, and text in columns.
 */
#ifndef REPORT_INTERNAL_H
#define REPORT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/arena.h"
#include "common/err.h"
#include "common/jsonw.h"
#include "common/str.h"
#include "profiler/prof_db.h"
#include "reports/table/report_render.h"
#include "reports/table/report_table.h"

/* Quantity of a column, derived from its name or else from its type. */
enum report_quantity report__quantity(const char *column, enum prof_type type);

/* The columns of an open query; *@out and the names are allocated in @arena. A failure is in @err,
 * which is not NULL. */
void report__columns(const struct prof_query *query, struct arena *arena,
		     struct report_column **out, int *count, struct err *err);

/* The cell in @column of the query's current row. Its text is valid until the next step. */
void report__cell(const struct prof_query *query, int column, struct report_cell *out);

/* Read the rows of an open, bound query and close it. *@more: @limit, or @most bytes (0: any), cut
 * them off. */
enum status report__table_rows(struct report_table *out, struct prof_query *query, const char *name,
			       int64_t limit, size_t most, bool *more, struct err *err);

/* Read the fact @key of meta into @arena; NULL: there is none. Does nothing after an earlier
 * failure, which is in @err. */
void report__fact(const char **out, struct arena *arena, struct prof_db *db, const char *key,
		  struct err *err);

/* A copy of @text in @arena; NULL if it is NULL, or out of memory, which is set in @err. */
const char *report__copy(struct arena *arena, const char *text, struct err *err);

/* Return true while @db is being written. A long read would then keep SQLite from checkpointing its
 * log. */
bool report__is_live(struct prof_db *db);

/* A sentence on what an unfinished recording lacks, or NULL if it is complete. */
#define REPORT_UNFINISHED_SIZE 640
const char *report__unfinished(struct prof_db *db, char out[REPORT_UNFINISHED_SIZE]);

/* Write the cell as a member of an object. Integers beyond 2^53 become strings; a non-finite real
 * becomes null with a sibling NAME_nonfinite. */
void report__json_cell(struct jsonw *w, const char *name, const struct report_cell *cell);

/* Print @label once, then the words of @text, indented and wrapped to @width columns (0: one
 * line). */
void report__fold(FILE *out, const char *label, const char *text, int width);

/* Render a table as text. */
enum status report__text(const struct report_table *table,
			 const struct report_render_params *params, FILE *out, struct err *err);

#endif /* REPORT_INTERNAL_H */
