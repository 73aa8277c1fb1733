/*
 * Element-wise operations: bias, ReLU, sums.
 *
 * Plain functions on pointers and sizes, single-threaded; nothing overlaps unless noted. Compiled
 * for several instruction sets if the system allows it. Every element's operations and their order
 * are the same in all of them, so the bytes are too. NaN and infinities propagate.
 */
#ifndef KERNEL_VECTOR_H
#define KERNEL_VECTOR_H

#include <stddef.h>
#include <stdint.h>

/* y[rows, columns] (rows @stride apart) += bias[columns]. */
void kernel_bias(float *y, int64_t stride, int64_t rows, int64_t columns, const float *bias);
/* The same, then max(y, 0); NaN propagates. @bias may be NULL. */
void kernel_bias_relu(float *y, int64_t stride, int64_t rows, int64_t columns, const float *bias);

void kernel_relu(const float *x, float *y, size_t count); /* x may be y */

/* sums[columns] = the sum over rows of x[rows, columns], from the first row to the last. */
void kernel_column_sums(const float *x, int64_t stride, int64_t rows, int64_t columns, float *sums);

void kernel_add(float *sum, const float *x, size_t count); /* sum += x */
void kernel_scale(float *x, float factor, size_t count);   /* x *= factor */

/* y = x scale + offset, and y = (x - mean) / deviation. The coefficients repeat every @period
 * elements (at least 1; long periods are fast). @offset and @mean may be NULL: 0. y may be x. */
void kernel_affine(const float *x, float *y, size_t count, const float *scale, const float *offset,
		   size_t period);
void kernel_standardize(const float *x, float *y, size_t count, const float *mean,
			const float *deviation, size_t period);

#endif /* KERNEL_VECTOR_H */
