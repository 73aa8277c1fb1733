/*
 * Sums over micro-batches and over replicas. No state.
 */
#include "trainer/train_reduce.h"

#include "common/minmax.h"
#include "common/tree.h"
#include "trainer/kernels/kernel_half.h"
#include "trainer/kernels/kernel_vector.h"

#define TREE_BLOCK 512 /* floats of a branch that are summed at a time: they stay in the cache */

/* ---- micro-batches --------------------------------------------------------------------------- */

struct train_accumulation train_accumulation_of(const struct run_file *run)
{
	return (struct train_accumulation){
		.reduction = run->accumulation.reduction,
		.half = run->accumulation.wanted && run->accumulation.dtype == RUN_FLOAT16,
	};
}

void train_accumulate_first(const struct train_accumulation *how, float *sums, size_t count)
{
	if (how->half)
		kernel_round_half(sums, sums, count);
}

void train_accumulate(const struct train_accumulation *how, float *sums, const float *gradients,
		      size_t count, int64_t n)
{
	const float before = (float)n;

	if (how->reduction == RUN_RUNNING_MEAN)
		for (size_t i = 0; i < count; i++)
			sums[i] = sums[i] * (before / (before + 1.0f)) +
				  gradients[i] / (before + 1.0f);
	else
		kernel_add(sums, gradients, count);
	if (how->half)
		kernel_round_half(sums, sums, count);
}

void train_accumulate_last(const struct train_accumulation *how, float *sums, size_t count,
			   int64_t n, double loss_scale)
{
	if (how->reduction == RUN_MEAN && n > 1)
		kernel_scale(sums, 1.0f / (float)n, count);
	if (loss_scale != 1.0)
		kernel_scale(sums, (float)(1.0 / loss_scale), count);
}

/* ---- replicas -------------------------------------------------------------------------------- */

double train_tree_sum(const double *values, int count)
{
	const int left = count > 1 ? tree_left(count) : 0;

	if (count == 1)
		return values[0];
	return train_tree_sum(values, left) + train_tree_sum(values + left, count - left);
}

/* Where a branch's sum of @n floats is: a single replica's own memory, or @room. */
static const float *sum_branch(float *room, const struct train_replica *replicas, int count,
			       size_t from, size_t n)
{
	const int left = count > 1 ? tree_left(count) : 0;
	const float *a, *b;
	float other[TREE_BLOCK];

	if (count == 1)
		return replicas[0].accumulated + from;
	a = sum_branch(room, replicas, left, from, n);
	b = sum_branch(other, replicas + left, count - left, from, n);
	for (size_t i = 0; i < n; i++)
		room[i] = a[i] + b[i];
	return room;
}

void train_tree_mean(float *mean, const struct train_replica *replicas, int count, size_t from,
		     size_t n)
{
	for (size_t end = from + n; from < end; from += n) {
		const float *sum;
		float room[TREE_BLOCK];

		n = min(end - from, TREE_BLOCK);
		sum = sum_branch(room, replicas, count, from, n);
		for (size_t i = 0; i < n; i++)
			mean[from + i] = sum[i] / (float)count;
	}
}
