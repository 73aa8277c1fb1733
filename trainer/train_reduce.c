/*
 * Sums over micro-batches and over replicas. No state.
 */
#include "trainer/train_reduce.h"

#include <string.h>

#include "common/minmax.h"
#include "common/tree.h"
#include "trainer/kernels/kernel_vector.h"

#define TREE_BLOCK 512 /* floats of a branch summed at a time: they fit the cache */

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

/* Return the sum of @n floats from @from on of the branch of @count replicas at *@at: in the
 * branch's own values if it is known as a whole, else in @room. Advances *@at past the branch. */
static const float *sum_branch(float *room, const struct train_branch **at, int count, size_t from,
			       size_t n)
{
	const int left = count > 1 ? tree_left(count) : 0;
	const float *a, *b;
	float other[TREE_BLOCK];

	if ((*at)->count == count)
		return (*at)++->values + from;
	a = sum_branch(room, at, left, from, n);
	b = sum_branch(other, at, count - left, from, n);
	for (size_t i = 0; i < n; i++)
		room[i] = a[i] + b[i];
	return room;
}

void train_tree_sums(float *sum, const struct train_branch *branches, size_t from, size_t n,
		     int count)
{
	for (size_t end = from + n; from < end; from += n, sum += n) {
		const struct train_branch *at = branches;
		const float *of;

		n = min(end - from, TREE_BLOCK);
		of = sum_branch(sum, &at, count, from, n);
		if (of != sum)
			memcpy(sum, of, n * sizeof(*sum));
	}
}

void train_tree_divide(float *values, size_t n, int count)
{
	for (size_t i = 0; i < n; i++)
		values[i] /= (float)count;
}

/* Add the known branches of the branch of @count replicas that begins at @from. */
static int add_branches(struct train_branch *out, int found, int from, int count, int first,
			int end)
{
	const int left = count > 1 ? tree_left(count) : 0;

	if (from >= end || from + count <= first)
		return found;
	if (from >= first && from + count <= end) {
		out[found] = (struct train_branch){.first = from, .count = count};
		return found + 1;
	}
	found = add_branches(out, found, from, left, first, end);
	return add_branches(out, found, from + left, count - left, first, end);
}

int train_tree_branches(struct train_branch *out, int count, int first, int end)
{
	return add_branches(out, 0, 0, count, first, end);
}
