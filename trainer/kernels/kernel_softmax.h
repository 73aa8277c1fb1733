/*
 * Softmax and its logarithm over the last axis, and their gradients.
 *
 * Computed as exp(x - max) / sum and x - max - log(sum). A NaN or a +infinity in a row makes the
 * whole row NaN (infinity minus infinity), as in TensorFlow; -infinity gives 0, and a row of only
 * -infinity gives NaN. Sums are computed in sixteen lanes, column by column, and the lanes are
 * added from first to last: the same bytes everywhere. Single-threaded.
 */
#ifndef KERNEL_SOFTMAX_H
#define KERNEL_SOFTMAX_H

#include <stdint.h>

/* x and y are [rows, columns]; x may be y. */
void kernel_softmax(const float *x, float *y, int64_t rows, int64_t columns);
void kernel_log_softmax(const float *x, float *y, int64_t rows, int64_t columns);

/* The gradient of x, row by row: y (dy - sum(y dy)), and dy - exp(y) sum(dy). dx may be dy. */
void kernel_softmax_grad(const float *y, const float *dy, float *dx, int64_t rows, int64_t columns);
void kernel_log_softmax_grad(const float *y, const float *dy, float *dx, int64_t rows,
			     int64_t columns);

#endif /* KERNEL_SOFTMAX_H */
