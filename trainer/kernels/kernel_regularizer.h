/*
 * Sums over weights and what they add to gradients. The formulas are told in
 * trainer/learn/optimizer_run.h.
 *
 * One thread each; nothing overlaps. Sums are taken in double, in an order that depends on @count
 * alone: the same bytes for every instruction set. NaN and infinities go through.
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
