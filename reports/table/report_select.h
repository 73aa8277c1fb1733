/*
 * A report that is a query, with the columns, rows and order that are asked for.
 *
 * A choice is texts of a command line: names of columns, and conditions in SQL, which are checked
 * before they become part of a statement. Before anything is written an unknown column or a wrong
 * condition is ST_INVALID, with the nearest name.
 */
#ifndef REPORT_SELECT_H
#define REPORT_SELECT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/arena.h"
#include "common/err.h"
#include "profiler/prof_db.h"
#include "reports/table/report_render.h"
#include "reports/table/report_table.h"

#define REPORT_WHERES 16

struct report_choice {
	const char *columns;              /* "a,b,c" or "all"; NULL: the report's own */
	const char *sort;                 /* "-cycles,name"; NULL: the report's own */
	const char *where[REPORT_WHERES]; /* conditions, all of them to hold; docs/reports.md */
	int where_count;
	const char *by; /* how rows are grouped; NULL: the report's own */
	bool sql;       /* print the query instead of its rows */
};

/* Does @choice ask for other columns, rows or another order? */
bool report_choice_selects(const struct report_choice *choice);

struct report_source {
	const char *name;                /* of the table */
	const char *sql;                 /* all columns that can be asked for; NULL: @rows */
	const char *columns;             /* that text shows unless asked otherwise; NULL: all */
	const char *sort;                /* as in a choice; NULL: as the rows come */
	const char *none;                /* why there may be no rows; NULL: nothing to say */
	const struct report_table *rows; /* of a report that is no query; borrowed */
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

/* ---- the parts of a choice ------------------------------------------------------------------- */

/* The columns a report has. */
struct report_names {
	const char *const *names;
	int count;
};

/* The columns of @list, by their numbers in @names; the array is @arena's. */
enum status report__choose_columns(int **out, int *count, const struct report_names *names,
				   const char *list, struct arena *arena, struct err *err);

/* A condition as SQL that can stand in brackets; @arena's. */
enum status report__where(const char **out, const struct report_names *names, const char *text,
			  struct arena *arena, struct err *err);

/* ST_INVALID: @option names a column that there is not. */
enum status report__no_column(const struct report_names *names, const char *option,
			      const char *name, struct err *err);

#endif /* REPORT_SELECT_H */
