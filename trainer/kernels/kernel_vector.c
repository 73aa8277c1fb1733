/*
 * Element-wise loops that the compiler vectorizes. See the header for the guarantees.
 */
#include "trainer/kernels/kernel_vector.h"

#include <string.h>

#include "trainer/kernels/kernel_clones.h"

KERNEL_CLONES
void kernel_bias(float *restrict y, int64_t stride, int64_t rows, int64_t columns,
		 const float *restrict bias)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			y[i * stride + j] += bias[j];
}

KERNEL_CLONES
void kernel_relu(const float *x, float *y, size_t count)
{
	for (size_t i = 0; i < count; i++)
		y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

KERNEL_CLONES
static void vector_bias_relu(float *restrict y, int64_t stride, int64_t rows, int64_t columns,
			     const float *restrict bias)
{
	for (int64_t i = 0; i < rows; i++) {
		for (int64_t j = 0; j < columns; j++) {
			float sum = y[i * stride + j] + bias[j];

			y[i * stride + j] = sum < 0.0f ? 0.0f : sum;
		}
	}
}

void kernel_bias_relu(float *y, int64_t stride, int64_t rows, int64_t columns, const float *bias)
{
	if (bias) {
		vector_bias_relu(y, stride, rows, columns, bias);
		return;
	}
	for (int64_t i = 0; i < rows; i++)
		kernel_relu(y + i * stride, y + i * stride, (size_t)columns);
}

KERNEL_CLONES
void kernel_column_sums(const float *restrict x, int64_t stride, int64_t rows, int64_t columns,
			float *restrict sums)
{
	memset(sums, 0, (size_t)columns * sizeof(float));
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			sums[j] += x[i * stride + j];
}

KERNEL_CLONES
void kernel_add(float *restrict sum, const float *restrict x, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sum[i] += x[i];
}

KERNEL_CLONES
void kernel_scale(float *x, float factor, size_t count)
{
	for (size_t i = 0; i < count; i++)
		x[i] *= factor;
}

KERNEL_CLONES
static void vector_affine(const float *x, float *y, const float *scale, const float *offset,
			  size_t count)
{
	if (offset) {
		KERNEL_INDEPENDENT
		for (size_t i = 0; i < count; i++)
			y[i] = x[i] * scale[i] + offset[i];
	} else {
		KERNEL_INDEPENDENT
		for (size_t i = 0; i < count; i++)
			y[i] = x[i] * scale[i];
	}
}

KERNEL_CLONES
static void vector_standardize(const float *x, float *y, const float *mean, const float *deviation,
			       size_t count)
{
	if (mean) {
		KERNEL_INDEPENDENT
		for (size_t i = 0; i < count; i++)
			y[i] = (x[i] - mean[i]) / deviation[i];
	} else {
		KERNEL_INDEPENDENT
		for (size_t i = 0; i < count; i++)
			y[i] = x[i] / deviation[i];
	}
}

void kernel_affine(const float *x, float *y, size_t count, const float *scale, const float *offset,
		   size_t period)
{
	for (size_t at = 0; at < count; at += period)
		vector_affine(x + at, y + at, scale, offset,
			      count - at < period ? count - at : period);
}

void kernel_standardize(const float *x, float *y, size_t count, const float *mean,
			const float *deviation, size_t period)
{
	for (size_t at = 0; at < count; at += period)
		vector_standardize(x + at, y + at, mean, deviation,
				   count - at < period ? count - at : period);
}
