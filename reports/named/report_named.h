/*
 * The named reports that are one query each: a definition says what it shows, how its rows are
 * made of the contract's views, which columns text has, in which order, and what it means that
 * there are none.
 *
 * report_named.c lists them, and defines most.
 */
#ifndef REPORT_NAMED_H
#define REPORT_NAMED_H

#include "reports/report_registry.h"

#define REPORT_GROUPINGS 5

/* One way of making a report's rows. */
struct report_grouping {
	const char *by;      /* as --by names it; NULL: there is but one way */
	const char *sql;     /* every column, every row */
	const char *columns; /* those of text in 80 columns */
	const char *sort;    /* NULL: as the rows come */
};

struct report_named {
	struct report_entry entry;                          /* first: the registry knows no more */
	struct report_grouping groupings[REPORT_GROUPINGS]; /* the first unless asked otherwise */
	const char *none;                                   /* said where there are no rows */
};

#define REPORT_NAMED(name, shows)                                                                  \
	{                                                                                          \
		(name), (shows), REPORT_NEEDS_DB, report_run_named                                 \
	}

/* What such an entry runs. */
enum status report_run_named(const struct report_entry *entry, const struct report_request *request,
			     struct err *err);

/* The groupings as one text, "operation layer stage phase"; "" where there is but one. */
const char *report_named_groupings(const struct report_named *named, char *out, size_t size);

/* One after the other; NULL past the end. */
const struct report_named *report_named_at(int at);

#endif /* REPORT_NAMED_H */
