/*
 * What the reports share among themselves: cells of queries, and texts in columns.
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

/* What the column's name, and where that says nothing its type, make of a number. */
enum report_quantity report__quantity(const char *column, enum prof_type type);

/* The columns of an open query; *@out and the names are @arena's. */
enum status report__columns(const struct prof_query *query, struct arena *arena,
			    struct report_column **out, int *count, struct err *err);

/* The cell under the query's cursor. Its text lives until the next step. */
void report__cell(const struct prof_query *query, int column, struct report_cell *out);

/* The rows of an open, bound query, which it closes. *@more: the limit cut it. */
enum status report__table_rows(struct report_table *out, struct prof_query *query, const char *name,
			       int64_t limit, bool *more, struct err *err);

/* Is @db still being written, so that a long read would keep its log from being emptied? */
bool report__is_live(struct prof_db *db);

/* What a recording lacks that did not come to its end, as a sentence; NULL: it is whole. */
#define REPORT_UNFINISHED_SIZE 640
const char *report__unfinished(struct prof_db *db, char out[REPORT_UNFINISHED_SIZE]);

/* The cell as a member of an object. Integers beyond 2^53 are texts; a real that is not finite is
 * null with a sibling NAME_nonfinite. */
void report__json_cell(struct jsonw *w, const char *name, const struct report_cell *cell);

/* report_table_query() that says whether the limit cut it, and sets no note. */
enum status report__table_query(struct report_table *out, struct prof_db *db, const char *name,
				const char *sql, int64_t limit, bool *more, struct err *err);

/* Terminal columns of @text: wide characters take two. */
int report__width(const char *text);

/* The length in bytes of what of @text fits into @columns. */
int report__cut(const char *text, int columns);

/* The words of @text after @label, which stands once, in lines of at most @width columns (0: one
 * line), indented. */
void report__fold(FILE *out, const char *label, const char *text, int width);

/* The health of a run, into a summary whose arena is there. */
struct report_summary;
enum status report__summary_health(struct report_summary *out, struct prof_db *db, struct err *err);
/* The state of the file, first; and what is missing, the other parts being filled. */
enum status report__summary_state(struct report_summary *out, struct prof_db *db, struct err *err);
enum status report__summary_missing(struct report_summary *out, struct prof_db *db,
				    struct err *err);

/* A table as text for people. */
enum status report__text(const struct report_table *table,
			 const struct report_render_params *params, FILE *out, struct err *err);

#endif /* REPORT_INTERNAL_H */
