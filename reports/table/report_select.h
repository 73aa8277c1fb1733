/*
 * A query that a choice is made from: columns, conditions, order and number of rows around it.
 *
 * What is run and what --sql prints is the same text, but for the values: run, they are bound;
 * printed, they are literals.
 */
#ifndef REPORT_SELECT_H
#define REPORT_SELECT_H

#include "common/arena.h"
#include "common/err.h"
#include "profiler/prof_db.h"
#include "reports/table/report_choice.h"
#include "reports/table/report_render.h"

/* What there is to choose from. */
struct report_source {
	const char *name;
	const char *sql;     /* all columns and rows, of the contract's views */
	const char *columns; /* those of text, as in a choice; NULL: all */
	const char *sort;    /* as in a choice; NULL: as the rows come */
	const char *none;    /* why there may be no rows; NULL: nothing to say */
	const char *rows;    /* of a report that is no query: what :rows stands for; NULL */
};

/* Run the choice and write its rows: CSV and JSON a row at a time, but from a file that is being
 * written, where a slow reader of ours would keep its log from being emptied. @limit 0: all. */
enum status report_select_write(const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				const struct report_render_params *params, int64_t limit, FILE *out,
				struct err *err);

/* The rows as a table, with the text's columns where @as_text. */
enum status report_select_table(struct report_table *out, const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				bool as_text, int64_t limit, struct err *err);

/* Print the query as one statement for sqlite3. */
enum status report_select_print(const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				bool as_text, int64_t limit, FILE *out, struct err *err);

#endif /* REPORT_SELECT_H */
