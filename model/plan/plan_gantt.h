/*
 * A Gantt chart of a pipeline's works in letters: a row per stage, time from left to right.
 */
#ifndef PLAN_GANTT_H
#define PLAN_GANTT_H

#include <stdbool.h>

#include "common/str.h"
#include "ipu/ipu_pipeline.h"

struct plan_gantt_params {
	int width;    /* columns, including the row's name; at least 20 are used */
	bool colour;  /* ANSI colours */
	bool unicode; /* otherwise ASCII */
};

/*
 * Append the chart, a time axis and a legend. A column shows what the stage does for most of its
 * time span; a work of three columns or more shows its micro-batch beside its letter if that
 * fits. Check out->failed at the end.
 */
void plan_gantt(const struct ipu_pipeline *pipeline, const struct plan_gantt_params *params,
		struct str *out);

#endif /* PLAN_GANTT_H */
