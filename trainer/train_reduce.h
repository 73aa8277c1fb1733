/*
 * What is added up to a weight update: gradients of its micro-batches, as sum, mean or running
 * mean, rounded to half precision where they are kept so; and over replicas, in the tree of
 * common/tree.h, gradients, losses and metrics.
 *
 * Pure functions on memory of the caller's: any thread.
 */
#ifndef TRAIN_REDUCE_H
#define TRAIN_REDUCE_H

#include <stddef.h>
#include <stdint.h>

#include "model/run/run_file.h"
#include "trainer/train_session.h"

/* ---- micro-batches --------------------------------------------------------------------------- */

struct train_accumulation {
	enum run_reduction reduction;
	bool half; /* sums are kept in float16: rounded to it after each addition */
};

struct train_accumulation train_accumulation_of(const struct run_file *run);

/* The gradients of the first micro-batch are in @sums already. */
void train_accumulate_first(const struct train_accumulation *how, float *sums, size_t count);

/*
 * Add those of micro-batch @n >= 1. RUN_SUM and RUN_MEAN: sums += gradients; RUN_RUNNING_MEAN:
 * sums n / (n + 1) + gradients / (n + 1), the mean so far.
 */
void train_accumulate(const struct train_accumulation *how, float *sums, const float *gradients,
		      size_t count, int64_t n);

/* After all @n of them, before the update, in float32: RUN_MEAN divides by n; all by @loss_scale,
 * what the loss was multiplied by. */
void train_accumulate_last(const struct train_accumulation *how, float *sums, size_t count,
			   int64_t n, double loss_scale);

/* ---- replicas -------------------------------------------------------------------------------- */

/* Of @count (at least 1) numbers, by replica. */
double train_tree_sum(const double *values, int count);

/* @mean[from .. from + n - 1] = the mean of what @count replicas have accumulated there: the sum,
 * then one division. An element's bytes do not depend on @from and @n. */
void train_tree_mean(float *mean, const struct train_replica *replicas, int count, size_t from,
		     size_t n);

#endif /* TRAIN_REDUCE_H */
