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
	struct report_whatif_prediction prediction; /* where there is none: what was asked for */
	char why_not[ERR_TEXT_SIZE];                /* "": there is one */
};

/* @columns: names in order, "a,b,c"; "all"; NULL: those that people compare. Texts are copied. */
enum status report_whatif_table(struct report_table *out, const struct report_whatif_row *rows,
				int count, const char *columns, struct err *err);

#endif /* REPORT_WHATIF_TABLE_H */
