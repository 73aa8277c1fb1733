/*
 * Predictions beside the measured run, as a table.
 */
#ifndef REPORT_WHATIF_TABLE_H
#define REPORT_WHATIF_TABLE_H

#include "reports/table/report_table.h"
#include "reports/whatif/report_whatif.h"

/* A row: a prediction, or why there is none. */
struct report_whatif_row {
	bool measured;
	char change[64]; /* "schedule 1f1b"; "": not from report_whatif_row_at() */
	struct report_whatif_prediction prediction; /* if none: the requested change */
	char why_not[ERR_TEXT_SIZE];                /* "": there is a prediction */
};

#define REPORT_WHATIF_ROWS_MAX (IPU_SCHEDULE_KINDS + 12)

/* Compute row @at of the default list: the measured run, every schedule, half and twice the
 * micro-batches, other splits, half and twice the stages, other targets. An illegal change is a row
 * with the reason. *@more false: there is no such row. */
enum status report_whatif_row_at(struct report_whatif_row *out, const struct report_whatif *whatif,
				 int at, bool *more, struct err *err);

/* Columns that show instances. */
#define REPORT_WHATIF_INSTANCES                                                                    \
	"kind,instances,replicas,weight_update_ns,exposed_ns,samples_second,speedup,"              \
	"efficiency"

/* @columns: names in order, "a,b,c"; "all"; NULL: the default columns of text. Texts are copied. */
enum status report_whatif_table(struct report_table *out, const struct report_whatif_row *rows,
				int count, const char *columns, struct err *err);

#endif /* REPORT_WHATIF_TABLE_H */
