/*
 * How large a run's report will be, before it is run.
 */
#ifndef PLAN_FORECAST_H
#define PLAN_FORECAST_H

#include "trainer/train_session.h"

/*
 * Bytes of profile.db with every autoReport on and the default number of traced executions, to
 * about a third: rows are counted from the run, bytes of a row are what reports were seen to have.
 */
int64_t plan_forecast_report(const struct train_session *session);

#endif /* PLAN_FORECAST_H */
