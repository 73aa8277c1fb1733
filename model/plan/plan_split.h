/*
 * A run's split into stages and the best one beside it, as text and as JSON.
 */
#ifndef PLAN_SPLIT_H
#define PLAN_SPLIT_H

#include <stdio.h>

#include "common/jsonw.h"
#include "model/plan/plan_run.h"

/* Nothing of a run without a pipeline. Fails on lack of memory. */
enum status plan_split_print(const struct plan_run *plan, FILE *out, struct err *err);

/* The keys `stages_cycles`, `split` and `auto_split`; null without a pipeline, the last also where
 * there can be none. */
void plan_split_json(const struct plan_run *plan, struct jsonw *w);

#endif /* PLAN_SPLIT_H */
