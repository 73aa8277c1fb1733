/*
 * What of a run file others than model/ check, as the commands have it.
 */
#ifndef SUPPORT_RUN_CHECKS_H
#define SUPPORT_RUN_CHECKS_H

#include "model/run/run_file.h"
#include "outfeed/outfeed_health.h"
#include "outfeed/outfeed_policy.h"

static const struct run_checks support_run_checks = {.capture = outfeed_policy_check,
						     .rules = outfeed_health_check};

#endif /* SUPPORT_RUN_CHECKS_H */
