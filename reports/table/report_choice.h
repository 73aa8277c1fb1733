/*
 * What of a report is asked for: which columns and rows, in which order.
 *
 * Texts come from the command line and name columns; a value is bound as a parameter, never pasted
 * into SQL.
 */
#ifndef REPORT_CHOICE_H
#define REPORT_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/err.h"
#include "reports/table/report_table.h"

#define REPORT_WHERES 16

struct report_choice {
	const char *columns;              /* "a,b,c" or "all"; NULL: the report's own */
	const char *sort;                 /* "-cycles,name"; NULL: the report's own */
	const char *where[REPORT_WHERES]; /* "column OP value", all of them to hold */
	int where_count;
	const char *by; /* how rows are grouped; NULL: the report's own */
	bool sql;       /* print the query instead of its rows */
};

/* Does @choice ask for other columns, rows or another order? */
bool report_choice_selects(const struct report_choice *choice);

/* ---- taken apart, for report_select.c -------------------------------------------------------- */

/* The columns a report has. */
struct report_names {
	const char *const *names;
	int count;
};

struct report_order {
	int column; /* of the names */
	bool descending;
};

struct report_condition {
	int column;               /* of the names */
	const char *sql;          /* "<=", "GLOB", "IS NULL" */
	bool has_value;           /* or the operator stands alone */
	struct report_cell value; /* PROF_INT, PROF_REAL or PROF_TEXT */
};

/* Arrays are @arena's. A column that @names lacks is ST_INVALID with the nearest; @report is for
 * the text. */
enum status report__choose_columns(int **out, int *count, const struct report_names *names,
				   const char *list, struct arena *arena, struct err *err);
enum status report__choose_order(struct report_order **out, int *count,
				 const struct report_names *names, const char *list,
				 struct arena *arena, struct err *err);
/* Values are as people write them: 1ms, 20%, 624kB, yes, 'a text'; a text lives in @arena. */
enum status report__choose_condition(struct report_condition *out, const struct report_names *names,
				     const char *text, struct arena *arena, struct err *err);

#endif /* REPORT_CHOICE_H */
