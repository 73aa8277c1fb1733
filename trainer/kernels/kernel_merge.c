/*
 * Element-wise operations on two arrays: loops that the compiler vectorizes.
 */
#include "trainer/kernels/kernel_vector.h"

#include <assert.h>
#include <string.h>

#include "trainer/kernels/kernel_clones.h"

#define MERGE_ROWS 64 /* rows summed separately, then added: errors grow more slowly */

KERNEL_INLINE float merge_greater(float a, float b)
{
	return b > a || b != b ? b : a;
}

KERNEL_INLINE float merge_smaller(float a, float b)
{
	return b < a || b != b ? b : a;
}

KERNEL_CLONES
void kernel_merge_add(const float *a, const float *b, float *y, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		y[i] = a[i] + b[i];
}

KERNEL_CLONES
void kernel_merge_subtract(const float *a, const float *b, float *y, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		y[i] = a[i] - b[i];
}

KERNEL_CLONES
void kernel_merge_multiply(const float *a, const float *b, float *y, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		y[i] = a[i] * b[i];
}

KERNEL_CLONES
void kernel_merge_maximum(const float *a, const float *b, float *y, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		y[i] = merge_greater(a[i], b[i]);
}

KERNEL_CLONES
void kernel_merge_minimum(const float *a, const float *b, float *y, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		y[i] = merge_smaller(a[i], b[i]);
}

KERNEL_CLONES
void kernel_merge_add_relu(const float *a, const float *b, float *y, float most, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++) {
		float sum = a[i] + b[i];

		sum = sum < 0.0f ? 0.0f : sum;
		y[i] = sum > most ? most : sum;
	}
}

KERNEL_CLONES
static void merge_scale(const float *dy, float factor, float *dx, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		dx[i] = factor * dy[i];
}

KERNEL_CLONES
static void merge_scale_add(const float *dy, float factor, float *dx, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		dx[i] += factor * dy[i];
}

void kernel_merge_pass(const float *dy, float factor, float *dx, bool add, size_t count)
{
	bool same = !(factor < 1.0f) && !(factor > 1.0f);

	if (add)
		merge_scale_add(dy, factor, dx, count);
	else if (!same)
		merge_scale(dy, factor, dx, count);
	else if (dx != dy)
		memcpy(dx, dy, count * sizeof(*dx));
}

KERNEL_CLONES
static void merge_multiply_add(const float *dy, const float *other, float *dx, size_t count)
{
	KERNEL_INDEPENDENT
	for (size_t i = 0; i < count; i++)
		dx[i] += dy[i] * other[i];
}

void kernel_merge_multiply_grad(const float *dy, const float *other, float *dx, bool add,
				size_t count)
{
	if (add)
		merge_multiply_add(dy, other, dx, count);
	else
		kernel_merge_multiply(dy, other, dx, count);
}

KERNEL_CLONES
void kernel_merge_choice_grad(const float *dy, const int32_t *choice, int32_t chosen, float *dx,
			      bool add, size_t count)
{
	if (add) {
		KERNEL_INDEPENDENT
		for (size_t i = 0; i < count; i++)
			dx[i] += choice[i] == chosen ? dy[i] : 0.0f;
	} else {
		KERNEL_INDEPENDENT
		for (size_t i = 0; i < count; i++)
			dx[i] = choice[i] == chosen ? dy[i] : 0.0f;
	}
}

KERNEL_CLONES
void kernel_merge_choose(const float *x, int32_t index, bool minimum, float *best, int32_t *choice,
			 size_t count)
{
	if (minimum) {
		for (size_t i = 0; i < count; i++) {
			choice[i] = best[i] <= x[i] ? choice[i] : index;
			best[i] = merge_smaller(best[i], x[i]);
		}
	} else {
		for (size_t i = 0; i < count; i++) {
			choice[i] = best[i] >= x[i] ? choice[i] : index;
			best[i] = merge_greater(best[i], x[i]);
		}
	}
}

void kernel_merge_gate(const float *x, const float *gate, float *y, bool add, int64_t rows,
		       int64_t columns, int64_t stride)
{
	for (int64_t i = 0; i < rows; i++)
		kernel_merge_multiply_grad(x + i * stride, gate, y + i * stride, add,
					   (size_t)columns);
}

KERNEL_CLONES
void kernel_merge_gate_grad(const float *restrict x, const float *restrict dy,
			    float *restrict dgate, bool add, int64_t rows, int64_t columns,
			    int64_t stride)
{
	float sums[KERNEL_MERGE_COLUMNS], part[KERNEL_MERGE_COLUMNS];

	assert(columns <= KERNEL_MERGE_COLUMNS);
	memset(sums, 0, sizeof(sums));
	for (int64_t first = 0; first < rows; first += MERGE_ROWS) {
		int64_t end = first + MERGE_ROWS < rows ? first + MERGE_ROWS : rows;

		memset(part, 0, sizeof(part));
		for (int64_t i = first; i < end; i++)
			for (int64_t j = 0; j < columns; j++)
				part[j] += dy[i * stride + j] * x[i * stride + j];
		for (int64_t j = 0; j < columns; j++)
			sums[j] += part[j];
	}
	for (int64_t j = 0; j < columns; j++)
		dgate[j] = add ? dgate[j] + sums[j] : sums[j];
}
