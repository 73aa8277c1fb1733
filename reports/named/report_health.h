/*
 * A recorded run judged again by health rules of other thresholds.
 *
 * The rows that the run recorded of its tensors, steps and epochs go through the same state machine
 * that judged them while it ran (outfeed/outfeed_health.h). With the run's own rules the hits are
 * the same; the time of a loss's hit is when it was recorded. What a tier did not record cannot be
 * judged again, and classes are not recorded: their hits are taken over where their value is above
 * the threshold.
 *
 * Threading: none. Memory grows with tensors and hits, not with rows.
 */
#ifndef REPORT_HEALTH_H
#define REPORT_HEALTH_H

#include "outfeed/outfeed_health.h"
#include "profiler/prof_db.h"
#include "reports/table/report_table.h"

/* The rules that @file says: the run's own, changed by what it names, as health.rules in a run file
 * does. "recorded": the run's own; "default": the defaults. A run that recorded no rules has the
 * defaults. */
enum status report_health_rules(struct outfeed_health_rules *out, struct prof_db *db,
				const char *file, struct err *err);

/* The hits, as the view `health` has them, in order of time. On failure @out is empty. */
enum status report_health_hits(struct report_table *out, struct prof_db *db,
			       const struct outfeed_health_rules *rules, struct err *err);

#endif /* REPORT_HEALTH_H */
