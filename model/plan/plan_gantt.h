/*
 * A pipeline's works as a picture of letters: a row per stage, time from left to right.
 */
#ifndef PLAN_GANTT_H
#define PLAN_GANTT_H

#include <stdbool.h>

#include "common/str.h"
#include "ipu/ipu_pipeline.h"

struct plan_gantt_params {
	int width;    /* columns, the row's name included; at least 20 are taken */
	bool colour;  /* ANSI colours */
	bool unicode; /* else ASCII */
};

/*
 * Append the picture, a line of time below it and a legend. A column shows what the stage does for
 * the greatest part of its time; a work of three columns or more has its micro-batch beside its
 * letter where that fits. Check out->failed at the end.
 */
void plan_gantt(const struct ipu_pipeline *pipeline, const struct plan_gantt_params *params,
		struct str *out);

#endif /* PLAN_GANTT_H */
