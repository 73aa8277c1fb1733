/*
 * The named reports that are one query each. A definition gives the report's name, its query over
 * the contract's views, the default columns and order of text, and the note for an empty result.
 *
 * report_named.c lists all definitions and contains most.
 */
#ifndef REPORT_NAMED_H
#define REPORT_NAMED_H

#include "reports/report_registry.h"

#define REPORT_GROUPINGS 6

/* One way to group a report's rows. */
struct report_grouping {
	const char *by;      /* name for --by; NULL: the only grouping */
	const char *sql;     /* query with all columns and rows */
	const char *columns; /* default columns of text, for 80 columns */
	const char *sort;    /* NULL: the query's order */
};

struct report_named {
	struct report_entry entry;                          /* must be first: entries are cast */
	struct report_grouping groupings[REPORT_GROUPINGS]; /* the first one is the default */
	const char *none;                                   /* note for an empty result */
};

#define REPORT_NAMED(name, shows)                                                                  \
	{                                                                                          \
		(name), (shows), REPORT_NEEDS_DB, report_run_named                                 \
	}

/* The run function of such an entry. */
enum status report_run_named(const struct report_entry *entry, const struct report_request *request,
			     struct err *err);

/* List the groupings in @out, "operation layer stage phase"; "" if there is only one. */
const char *report_named_groupings(const struct report_named *named, char *out, size_t size);

/* Return report @at, or NULL past the end. */
const struct report_named *report_named_at(int at);

/* The reports on GPUs and other accelerators (report_accelerators.c). */
extern const struct report_named report_named_kernels, report_named_temporal, report_named_launch,
	report_named_critical_path, report_named_steps, report_named_ranges,
	report_named_memory_timeline;

#endif /* REPORT_NAMED_H */
