/*
 * What planning needs to know of the data that a run trains on: number and kind of the items.
 *
 * The owner of the sets fills it in: the trainer from its data sets, what-if from a recording.
 * Pure: any thread.
 */
#ifndef RUN_DATA_H
#define RUN_DATA_H

#include "common/err.h"
#include "common/str.h"
#include "model/learn/targets.h"
#include "model/model.h"

struct run_data {
	int64_t train_items, test_items; /* 0: the part does not exist */
	struct model_shape item;         /* as it is in a batch */
	struct target_kind train, test;  /* targets of each part */
};

/* Append as JSON to @out; if memory runs out, @out is marked as failed. */
void run_data_write(struct str *out, const struct run_data *data);
/* The reverse; messages call the text @name. */
enum status run_data_read(struct run_data *out, const char *text, const char *name,
			  struct err *err);

#endif /* RUN_DATA_H */
