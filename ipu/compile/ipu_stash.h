/*
 * Tensors that a stage's forward pass saves for its backward pass.
 *
 * Without recomputation: every tensor of the micro-batch that the backward pass reads. With it:
 * what recomputation cannot produce, namely the stage's inputs and random results (TensorFlow for
 * IPU caches the results of stateful operations). The last stage never recomputes: its backward
 * follows immediately.
 */
#ifndef IPU_STASH_H
#define IPU_STASH_H

#include "ipu/compile/ipu_graph.h"

struct ipu_stash {
	int *tensors; /* in ascending order; owned */
	int count;
	bool *replayed; /* by node: it is recomputed before the backward; owned */
	bool replays;   /* whether any node is */
};

enum status ipu_stash_init(struct ipu_stash *stash, const struct ipu_graph *graph, int stage,
			   struct err *err);
void ipu_stash_fini(struct ipu_stash *stash);

#endif /* IPU_STASH_H */
