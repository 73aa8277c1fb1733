/*
 * What replicas have is summed up in the tree of common/tree.h: gradients, losses, metrics.
 *
 * Pure: any thread. Ownership: none.
 */
#ifndef TRAIN_TREE_H
#define TRAIN_TREE_H

#include <stddef.h>

#include "trainer/train_session.h"

/* Of @count (at least 1) numbers, by replica. */
double train_tree_sum(const double *values, int count);

/* @mean[from .. from + n - 1] = the mean of what @count replicas have accumulated there: the sum,
 * then one division. An element's bytes do not depend on @from and @n. */
void train_tree_mean(float *mean, const struct train_replica *replicas, int count, size_t from,
		     size_t n);

#endif /* TRAIN_TREE_H */
