/*
 * Predictions beside what was measured, as a table.
 */
#ifndef REPORT_WHATIF_TABLE_H
#define REPORT_WHATIF_TABLE_H

#include "reports/table/report_table.h"
#include "reports/whatif/report_whatif.h"

/* A row: a prediction, or why there is none. */
struct report_whatif_row {
	bool measured;
	char change[64]; /* "schedule 1f1b"; "": not one of report_whatif_row_at() */
	struct report_whatif_prediction prediction; /* where there is none: what was asked for */
	char why_not[ERR_TEXT_SIZE];                /* "": there is one */
};

#define REPORT_WHATIF_ROWS_MAX (IPU_SCHEDULE_KINDS + 12)

/* The @at-th of what is looked at when no change is asked for: the measured run, then every
 * schedule, half and twice the micro-batches, other splits, half and twice the stages, other
 * targets. A change that is not legal is a row that says why. *@more false: there is no such
 * row. */
enum status report_whatif_row_at(struct report_whatif_row *out, const struct report_whatif *whatif,
				 int at, bool *more, struct err *err);

/* @columns: names in order, "a,b,c"; "all"; NULL: those that people compare. Texts are copied. */
enum status report_whatif_table(struct report_table *out, const struct report_whatif_row *rows,
				int count, const char *columns, struct err *err);

#endif /* REPORT_WHATIF_TABLE_H */
