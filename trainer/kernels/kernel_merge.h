/*
 * Element-wise operations on two arrays, for layers with several inputs.
 *
 * Plain functions on pointers and sizes, single-threaded. A result may be stored over an operand;
 * other overlaps are not allowed. The same bytes with every instruction set; NaN propagates.
 */
#ifndef KERNEL_MERGE_H
#define KERNEL_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif /* KERNEL_MERGE_H */
