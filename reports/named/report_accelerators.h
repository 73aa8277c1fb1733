/*
 * The reports on GPUs and other accelerators. Constant data.
 */
#ifndef REPORT_ACCELERATORS_H
#define REPORT_ACCELERATORS_H

#include "reports/named/report_named.h"

extern const struct report_named report_named_kernels, report_named_temporal, report_named_launch,
	report_named_steps, report_named_ranges, report_named_memory_timeline;

#endif /* REPORT_ACCELERATORS_H */
