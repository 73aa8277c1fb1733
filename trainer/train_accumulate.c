/*
 * Sums of gradients over micro-batches: begun, added to and ended, as sum, mean or running mean,
 * and rounded to half precision where they are kept so.
 */
#include "trainer/train_accumulate.h"

#include "trainer/kernels/kernel_half.h"
#include "trainer/kernels/kernel_vector.h"

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
			   int64_t n)
{
	if (how->reduction == RUN_MEAN && n > 1)
		kernel_scale(sums, 1.0f / (float)n, count);
}
