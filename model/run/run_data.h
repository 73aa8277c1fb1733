/*
 * What planning knows of the data that a run trains on: how many items, and what they are like.
 *
 * Plain data. Whoever has the sets fills it in: the trainer from its data sets, what-if from a
 * recording.
 */
#ifndef RUN_DATA_H
#define RUN_DATA_H

#include "model/learn/targets.h"
#include "model/model.h"

struct run_data {
	int64_t train_items, test_items; /* 0: there is no such part */
	struct model_shape item;         /* as batches give it out */
	struct target_kind train, test;  /* targets of either part */
};

#endif /* RUN_DATA_H */
