/*
 * Element-wise operations: bias, ReLU, sums; on two arrays; rounding.
 *
 * Plain functions on pointers and sizes, single-threaded; nothing overlaps unless noted. Compiled
 * for several instruction sets if the system allows it. Every element's operations and their order
 * are the same in all of them, so the bytes are too. NaN and infinities propagate.
 */
#ifndef KERNEL_VECTOR_H
#define KERNEL_VECTOR_H

#include <stdbool.h>
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

/* ---- two arrays ------------------------------------------------------------------------------ */

/* For layers with several inputs. A result may be stored over an operand; other overlaps are not
 * allowed. */

void kernel_merge_add(const float *a, const float *b, float *y, size_t count);      /* a + b */
void kernel_merge_subtract(const float *a, const float *b, float *y, size_t count); /* a - b */
void kernel_merge_multiply(const float *a, const float *b, float *y, size_t count); /* a b */
/* The greater, the smaller; NaN if either is NaN. */
void kernel_merge_maximum(const float *a, const float *b, float *y, size_t count);
void kernel_merge_minimum(const float *a, const float *b, float *y, size_t count);

/* y = min(max(a + b, 0), most); most may be INFINITY. */
void kernel_merge_add_relu(const float *a, const float *b, float *y, float most, size_t count);

/* dx = factor dy, or with @add dx += factor dy. */
void kernel_merge_pass(const float *dy, float factor, float *dx, bool add, size_t count);
/* dx = dy other, or with @add dx += dy other. */
void kernel_merge_multiply_grad(const float *dy, const float *other, float *dx, bool add,
				size_t count);
/* dx = dy if @choice is @chosen, else 0; with @add, added to dx. */
void kernel_merge_choice_grad(const float *dy, const int32_t *choice, int32_t chosen, float *dx,
			      bool add, size_t count);
/* If @x replaces @best as the maximum (@minimum: the minimum), set choice = index and best = x. If
 * they are equal the earlier input is kept, as in TensorFlow. */
void kernel_merge_choose(const float *x, int32_t index, bool minimum, float *best, int32_t *choice,
			 size_t count);

/* x [rows, columns], gate [columns]: y = x gate, or with @add y += x gate. Rows of x and y
 * are @stride apart. */
void kernel_merge_gate(const float *x, const float *gate, float *y, bool add, int64_t rows,
		       int64_t columns, int64_t stride);
/* dgate[columns] (@add: +=) = the sum over rows of dy x: blocks of 64 rows from first to last, then
 * the blocks' sums from first to last. @columns: at most KERNEL_MERGE_COLUMNS. */
#define KERNEL_MERGE_COLUMNS 128
void kernel_merge_gate_grad(const float *x, const float *dy, float *dgate, bool add, int64_t rows,
			    int64_t columns, int64_t stride);

/* ---- rounding -------------------------------------------------------------------------------- */

/* Of floats, to values that IEEE 754 half precision (binary16) or bfloat16 can represent. */

/*
 * to[i] = the half nearest to from[i], ties to even. 65520 and beyond become infinity, values
 * below 2^-14 keep steps of 2^-24, zeros keep their sign. NaN stays NaN, quiet, with the sign and
 * the upper 10 bits of its mantissa, as hardware does it. @to may be @from.
 */
void kernel_round_half(float *to, const float *from, size_t count);

/*
 * to[i] = the bfloat16 (the upper 16 bits of a float) nearest to from[i], ties to even. NaN stays
 * NaN, quiet. @to may be @from.
 */
void kernel_round_bfloat16(float *to, const float *from, size_t count);

/* Bodies, fastest first, for tests. Return the name of body @index (NULL: no such body); select it
 * (false: this machine cannot run it). */
const char *kernel_half_body(int index);
bool kernel_half_use(int index);

#endif /* KERNEL_VECTOR_H */
