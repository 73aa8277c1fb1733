/*
 * How large a run's report will be, before it is run.
 */
#ifndef PLAN_FORECAST_H
#define PLAN_FORECAST_H

#include "model/plan/plan_run.h"

#define PLAN_TRACED_EXECUTIONS 2 /* whose steps a report has, unless said otherwise */

/*
 * Bytes of profile.db with every autoReport on and the default number of traced executions, to
 * about a third: rows are counted from the run, bytes of a row are what reports were seen to have.
 * @looking: of them, what tensors take that are looked at.
 */
int64_t plan_forecast_report(const struct plan_run *plan, double looking);

#endif /* PLAN_FORECAST_H */
