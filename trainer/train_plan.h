/*
 * What planning asks of the side that trains: the data of a run, and what looking at its tensors
 * will take.
 */
#ifndef TRAIN_PLAN_H
#define TRAIN_PLAN_H

#include "model/plan/plan_command.h"
#include "model/run/run_data.h"
#include "model/run/run_file.h"
#include "trainer/data/dataset.h"

struct run_data train_data_of(const struct dataset *train, const struct dataset *test);

/* What the section "data" of @run asks for; `notice` and `user` are the caller's to set. */
struct dataset_params train_data_params(const struct run_file *run);

extern const struct plan_trainer train_plan;

#endif /* TRAIN_PLAN_H */
