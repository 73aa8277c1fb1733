/*
 * Gradient accumulation: how the gradients of the micro-batches of a weight update are added up.
 *
 * Plain functions on one stage's range of a replica's blocks; no state, one thread each.
 */
#ifndef TRAIN_ACCUMULATE_H
#define TRAIN_ACCUMULATE_H

#include <stddef.h>
#include <stdint.h>

#include "model/run/run_file.h"

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

/* After all @n of them, before the update: RUN_MEAN divides by n, in float32. */
void train_accumulate_last(const struct train_accumulation *how, float *sums, size_t count,
			   int64_t n);

#endif /* TRAIN_ACCUMULATE_H */
