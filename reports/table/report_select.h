/*
 * Select columns, rows and order of a report that is a query.
 *
 * A choice holds text from a command line: column names, and conditions in SQL, which are checked
 * before they become part of a statement. An unknown column or a wrong condition is ST_INVALID with
 * the nearest name, before anything is written.
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
	const char *columns;              /* "a,b,c" or "all"; NULL: the report's default */
	const char *sort;                 /* "-cycles,name"; NULL: the report's default */
	const char *where[REPORT_WHERES]; /* conditions, joined with AND; docs/reports.md */
	int where_count;
	const char *by; /* how rows are grouped; NULL: the report's default */
	bool sql;       /* print the query instead of its rows */
};

/* Return true if @choice selects columns, rows or an order. */
bool report_choice_selects(const struct report_choice *choice);

struct report_source {
	const char *name;                /* of the table */
	const char *sql;                 /* query with all selectable columns; NULL: use @rows */
	const char *columns;             /* default columns of text; NULL: all */
	const char *sort;                /* as in a choice; NULL: the query's order */
	const char *none;                /* note for an empty result; NULL: no note */
	const struct report_table *rows; /* of a report that is not a query; borrowed */
};

/* Run the choice and write its rows. CSV and JSON are streamed row by row, unless the file is still
 * being written: a slow reader of our output would then keep SQLite from checkpointing its log.
 * @limit 0: all. */
enum status report_select_write(const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				const struct report_render_params *params, int64_t limit, FILE *out,
				struct err *err);

/* Return the rows as a table; with @as_text, only the default columns of text. */
enum status report_select_table(struct report_table *out, const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				bool as_text, int64_t limit, struct err *err);

/* Print the query as one statement for sqlite3. */
enum status report_select_print(const struct report_source *source,
				const struct report_choice *choice, struct prof_db *db,
				bool as_text, int64_t limit, FILE *out, struct err *err);

/* ---- the parts of a choice ------------------------------------------------------------------- */

/* The columns of a report. */
struct report_names {
	const char *const *names;
	int count;
};

/* Parse @list into indices into @names; the array is allocated in @arena. */
enum status report__choose_columns(int **out, int *count, const struct report_names *names,
				   const char *list, struct arena *arena, struct err *err);

/* Convert a condition to SQL that can be put in brackets; allocated in @arena. */
enum status report__where(const char **out, const struct report_names *names, const char *text,
			  struct arena *arena, struct err *err);

/* Fail with ST_INVALID: @option names an unknown column. */
enum status report__no_column(const struct report_names *names, const char *option,
			      const char *name, struct err *err);

#endif /* REPORT_SELECT_H */
