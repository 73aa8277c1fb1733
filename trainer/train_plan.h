/*
 * What planning needs from the trainer: the data of a run, and the cost of inspecting its tensors.
 */
#ifndef TRAIN_PLAN_H
#define TRAIN_PLAN_H

#include "model/plan/plan_command.h"
#include "model/run/run_data.h"
#include "model/run/run_file.h"
#include "trainer/data/dataset.h"

struct run_data train_data_of(const struct dataset *train, const struct dataset *test);

/* Convert the section "data" of @run; the caller sets `notice`, `progress` and `user`. */
struct dataset_params train_data_params(const struct run_file *run);

extern const struct plan_trainer train_plan;

#endif /* TRAIN_PLAN_H */
