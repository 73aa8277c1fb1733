/*
 * Shared by the parts of a comparison.
 */
#ifndef REPORT_DIFF_INTERNAL_H
#define REPORT_DIFF_INTERNAL_H

#include "reports/diff/report_diff.h"

/* Append a zeroed row; NULL after a failure, which is in @err. */
struct report_diff_row *report__diff_add(struct report_diff *diff, struct err *err);

/* Compare rows of tensors and metrics in order of execution. Fill the part, the counts and the
 * section "tensors". This and the next do nothing after an earlier failure. */
void report__diff_part(struct report_diff *diff, struct prof_db *source, struct prof_db *target,
		       struct err *err);

/* Fill the section "spans". */
void report__diff_spans(struct report_diff *diff, struct prof_db *source, struct prof_db *target,
			struct err *err);

#endif /* REPORT_DIFF_INTERNAL_H */
