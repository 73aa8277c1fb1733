/*
 * Evaluate health rules with other thresholds on a recorded run.
 *
 * The recorded rows of tensors, steps and epochs go through the state machine that evaluated them
 * during the run (outfeed/outfeed_health.h). With the run's own rules the hits are the same; the
 * time of a loss's hit is when the loss was recorded. Values that a tier did not record cannot be
 * evaluated. Classes are not recorded: their hits are copied if their value is above the threshold.
 *
 * Threading: none. Memory grows with tensors and hits, not with rows.
 */
#ifndef REPORT_HEALTH_H
#define REPORT_HEALTH_H

#include "outfeed/outfeed_health.h"
#include "profiler/prof_db.h"
#include "reports/table/report_table.h"

/* Read the rules from @file: the run's own rules, overridden by what the file names, as
 * health.rules in a run file does. "recorded": the run's own rules; "default": the defaults. For a
 * run that recorded no rules the defaults are its own. */
enum status report_health_rules(struct outfeed_health_rules *out, struct prof_db *db,
				const char *file, struct err *err);

/* Return the hits in the form of the view `health`, ordered by time. On failure @out is empty. */
enum status report_health_hits(struct report_table *out, struct prof_db *db,
			       const struct outfeed_health_rules *rules, struct err *err);

#endif /* REPORT_HEALTH_H */
