/*
 * Reductions before a weight update: over micro-batches the gradients, as sum, mean or running
 * mean, rounded to half precision if they are stored so; over replicas gradients, losses and
 * metrics, in the tree of common/tree.h.
 *
 * Pure functions on the caller's memory: any thread.
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
	bool half; /* store sums in float16: round after each addition */
};

struct train_accumulation train_accumulation_of(const struct run_file *run);

/* Call with the first micro-batch's gradients in @sums. */
void train_accumulate_first(const struct train_accumulation *how, float *sums, size_t count);

/*
 * Add the gradients of micro-batch @n >= 1. RUN_SUM and RUN_MEAN: sums += gradients;
 * RUN_RUNNING_MEAN: sums n / (n + 1) + gradients / (n + 1), the mean so far.
 */
void train_accumulate(const struct train_accumulation *how, float *sums, const float *gradients,
		      size_t count, int64_t n);

/* Call after all @n micro-batches, before the update, in float32: RUN_MEAN divides by n. Always
 * divides by @loss_scale, the factor that the loss was multiplied by. */
void train_accumulate_last(const struct train_accumulation *how, float *sums, size_t count,
			   int64_t n, double loss_scale);

/* ---- replicas -------------------------------------------------------------------------------- */

/* Return the sum of @count (at least 1) numbers, by replica. */
double train_tree_sum(const double *values, int count);

/* A known branch of a tree: the values of a replica, or the sum of several. */
struct train_branch {
	int first, count; /* replicas */
	const float *values;
};

/* sum[0 .. n - 1] = the sums of the tree that consists of @branches, in order; each branch's
 * values from @from on. An element's bytes do not depend on @from and @n, nor on which branches
 * were summed before. */
void train_tree_sums(float *sum, const struct train_branch *branches, size_t from, size_t n,
		     int count);

/* values[0 .. n - 1] /= count. */
void train_tree_divide(float *values, size_t n, int count);

/* Find the largest branches within replicas @first to @end - 1 of @count, in order: at most
 * TRAIN_BRANCHES of them in @out, without values. Return their number. */
#define TRAIN_BRANCHES 64
int train_tree_branches(struct train_branch *out, int count, int first, int end);

#endif /* TRAIN_REDUCE_H */
