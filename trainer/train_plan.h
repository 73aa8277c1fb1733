/*
 * What `ipu-plan model` asks of the trainer: the data of a run, and what its report will have of
 * tensors.
 */
#ifndef TRAIN_PLAN_H
#define TRAIN_PLAN_H

#include "model/plan/plan_command.h"

extern const struct plan_trainer train_plan;

#endif /* TRAIN_PLAN_H */
