/*
 * What the parts of a comparison share.
 */
#ifndef REPORT_DIFF_INTERNAL_H
#define REPORT_DIFF_INTERNAL_H

#include "reports/diff/report_diff.h"

/* A row at the end, cleared; NULL: no memory. */
struct report_diff_row *report__diff_add(struct report_diff *diff);

/* Rows of tensors and metrics, in order of execution: fills the part, the counts and the section
 * "tensors". */
enum status report__diff_part(struct report_diff *diff, struct prof_db *source,
			      struct prof_db *target, struct err *err);

/* The section "spans". */
enum status report__diff_spans(struct report_diff *diff, struct prof_db *source,
			       struct prof_db *target, struct err *err);

#endif /* REPORT_DIFF_INTERNAL_H */
