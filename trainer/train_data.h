/*
 * Data sets as plans know them.
 */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include "model/run/run_data.h"
#include "model/run/run_file.h"
#include "trainer/data/dataset.h"

struct run_data train_data_of(const struct dataset *train, const struct dataset *test);

/* What the section "data" of @run asks for; `notice` and `user` are the caller's to set. */
struct dataset_params train_data_params(const struct run_file *run);

#endif /* TRAIN_DATA_H */
