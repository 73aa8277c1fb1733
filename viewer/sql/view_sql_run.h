/*
 * Running a statement that somebody typed: guarded, bounded, to be cancelled.
 *
 * Each run opens the report afresh and lets go of it: nothing is held while a run that records
 * wants to close its file.
 */
#ifndef VIEW_SQL_RUN_H
#define VIEW_SQL_RUN_H

#include "reports/table/report_table.h"
#include "viewer/view_screen.h"

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
