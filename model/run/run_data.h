/*
 * What planning knows of the data that a run trains on: how many items, and what they are like.
 *
 * Whoever has the sets fills it in: the trainer from its data sets, what-if from what a recording
 * says of them. Pure: any thread.
 */
#ifndef RUN_DATA_H
#define RUN_DATA_H

#include "common/err.h"
#include "common/str.h"
#include "model/learn/targets.h"
#include "model/model.h"

struct run_data {
	int64_t train_items, test_items; /* 0: there is no such part */
	struct model_shape item;         /* as batches give it out */
	struct target_kind train, test;  /* targets of either part */
};

/* As JSON, to the end of @out; a failed growth is in @out. */
void run_data_write(struct str *out, const struct run_data *data);
/* The reverse; @name stands for the text in messages. */
enum status run_data_read(struct run_data *out, const char *text, const char *name,
			  struct err *err);

#endif /* RUN_DATA_H */
