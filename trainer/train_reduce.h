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

/* What is known of a tree's branch: the values of a replica, or the sum of several. */
struct train_branch {
	int first, count; /* replicas */
	const float *values;
};

/* sum[0 .. n - 1] = of the branch that @branches make up, in their order; of each its values from
 * @from on. An element's bytes do not depend on @from and @n, nor on which branches were summed
 * before. */
void train_tree_sums(float *sum, const struct train_branch *branches, size_t from, size_t n,
		     int count);

/* values[0 .. n - 1] /= count. */
void train_tree_divide(float *values, size_t n, int count);

/* The greatest branches that lie within replicas @first to @end - 1 of @count, in order: at most
 * TRAIN_BRANCHES of them into @out, without values; returns how many. */
#define TRAIN_BRANCHES 64
int train_tree_branches(struct train_branch *out, int count, int first, int end);

#endif /* TRAIN_REDUCE_H */
