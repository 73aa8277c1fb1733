/*
 * What a stage's forward leaves for its backward.
 *
 * Without recomputation: every tensor of the micro-batch that the backward pass reads. With it:
 * what the replayed operations cannot make again, which are the stage's inputs and what is drawn at
 * random (TensorFlow for IPU caches the results of stateful operations). The last stage is never
 * replayed: its backward follows at once.
 */
#ifndef IPU_STASH_H
#define IPU_STASH_H

#include "ipu/compile/ipu_graph.h"

struct ipu_stash {
	int *tensors; /* in order of number; owned */
	int count;
	bool *replayed; /* by node: it runs again before the backward; owned */
	bool replays;   /* any does */
};

enum status ipu_stash_init(struct ipu_stash *stash, const struct ipu_graph *graph, int stage,
			   struct err *err);
void ipu_stash_fini(struct ipu_stash *stash);

#endif /* IPU_STASH_H */
