/*
 * Sums in lanes that are added at the end, so that the compiler may vectorize them.
 */
#include "trainer/kernels/kernel_optimizer.h"

#include <math.h>

#include "trainer/kernels/kernel_clones.h"

#define LANES 16

static double lanes_sum(const double *lanes)
{
	double sum = 0.0;

	for (int l = 0; l < LANES; l++)
		sum += lanes[l];
	return sum;
}

KERNEL_CLONES
double kernel_absolute_sum(const float *x, size_t count)
{
	double lanes[LANES] = {0};
	size_t i = 0;

	for (; i + LANES <= count; i += LANES)
		for (size_t l = 0; l < LANES; l++)
			lanes[l] += (double)fabsf(x[i + l]);
	for (size_t l = 0; i + l < count; l++)
		lanes[l] += (double)fabsf(x[i + l]);
	return lanes_sum(lanes);
}

KERNEL_CLONES
double kernel_square_sum(const float *x, size_t count)
{
	double lanes[LANES] = {0};
	size_t i = 0;

	for (; i + LANES <= count; i += LANES)
		for (size_t l = 0; l < LANES; l++)
			lanes[l] += (double)x[i + l] * (double)x[i + l];
	for (size_t l = 0; i + l < count; l++)
		lanes[l] += (double)x[i + l] * (double)x[i + l];
	return lanes_sum(lanes);
}

KERNEL_CLONES
static void regularize_square(float *restrict gradients, const float *restrict weights,
			      float square, size_t count)
{
	for (size_t i = 0; i < count; i++)
		gradients[i] += square * weights[i];
}

KERNEL_CLONES
static void regularize_both(float *restrict gradients, const float *restrict weights, float linear,
			    float square, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float w = weights[i];
		/* Keep w itself if it is 0 or NaN. */
		float sign = w > 0.0f ? linear : w < 0.0f ? -linear : w;

		gradients[i] += sign + square * w;
	}
}

void kernel_regularize(float *gradients, const float *weights, float linear, float square,
		       size_t count)
{
	if (linear > 0.0f)
		regularize_both(gradients, weights, linear, square, count);
	else
		regularize_square(gradients, weights, square, count);
}
