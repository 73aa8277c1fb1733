/*
 * What a run's bubble row says of its works.
 */
#ifndef SUPPORT_VIEW_FIXTURE_BUBBLE_H
#define SUPPORT_VIEW_FIXTURE_BUBBLE_H

#include "ipu/ipu_schedule.h"
#include "profiler/ipuscope/profiler.h"

/* Set the measures of @row, by its clock, to those of @works on as many IPUs as @row has stages. */
void view_fixture_bubble(struct ips_bubble *row, const struct ipu_interval *works, int count);

#endif /* SUPPORT_VIEW_FIXTURE_BUBBLE_H */
