/*
 * How a comparison is shown, and what counts as worse.
 */
#ifndef REPORT_DIFF_COMMAND_H
#define REPORT_DIFF_COMMAND_H

#include <stdio.h>

#include "reports/diff/report_diff.h"
#include "reports/table/report_render.h"

struct report_diff_print {
	const char *source, *target; /* paths, as given */
	const char *unfinished[2];   /* what each lacks, a sentence; NULL: it is whole */
	double gate;                 /* share of the larger value; negative: none */
	bool ignore_host;            /* what was measured on the host passes the gate */
	bool all;                    /* rows that are the same too */
	int64_t limit;               /* rows of a section of text; 0: all */
	struct report_render_params render;
};

/* Is @row worse by more than the gate? */
bool report_diff_gated(const struct report_diff_row *row, const struct report_diff_print *how);

enum status report_diff_text(const struct report_diff *diff, const struct report_diff_print *how,
			     FILE *out, struct err *err);
/* CSV or JSON: the first difference, then a row per value. */
enum status report_diff_stream(const struct report_diff *diff, const struct report_diff_print *how,
			       FILE *out, struct err *err);

#endif /* REPORT_DIFF_COMMAND_H */
