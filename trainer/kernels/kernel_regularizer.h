/*
 * Regularizers: sums over weights, and their gradients. See trainer/learn/optimizer_run.h for the
 * formulas.
 *
 * Single-threaded; nothing overlaps. Sums are computed in double, in an order that depends only on
 * @count: the same bytes with every instruction set. NaN and infinities propagate.
 */
#ifndef KERNEL_REGULARIZER_H
#define KERNEL_REGULARIZER_H

#include <stddef.h>

double kernel_absolute_sum(const float *x, size_t count); /* sum |x| */
double kernel_square_sum(const float *x, size_t count);   /* sum x^2 */

/* gradients += linear sign(w) + square w; sign(0) is 0, that of NaN is NaN */
void kernel_regularize(float *gradients, const float *weights, float linear, float square,
		       size_t count);

#endif /* KERNEL_REGULARIZER_H */
