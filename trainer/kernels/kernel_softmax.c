/*
 * Softmax. See the header for the order of its sums.
 */
#include "trainer/kernels/kernel_activation.h"

#include "common/elementary.h"
#include "trainer/kernels/kernel_elementary.h"

#define SOFTMAX_LANES 16
#define SOFTMAX_BLOCK 1024 /* elements per loop over exponentials: rows may be short */

KERNEL_INLINE float softmax_lanes(const float lanes[SOFTMAX_LANES])
{
	float sum = 0.0f;

	for (int l = 0; l < SOFTMAX_LANES; l++)
		sum += lanes[l];
	return sum;
}

KERNEL_INLINE float softmax_sum(const float *x, int64_t columns)
{
	float lanes[SOFTMAX_LANES] = {0};
	int64_t j = 0;

	/* The same additions as below, without the lanes that stay 0. */
	if (columns < SOFTMAX_LANES) {
		for (; j < columns; j++)
			lanes[0] += x[j];
		return lanes[0];
	}
	for (; j + SOFTMAX_LANES <= columns; j += SOFTMAX_LANES)
		for (int l = 0; l < SOFTMAX_LANES; l++)
			lanes[l] += x[j + l];
	for (int l = 0; j + l < columns; l++)
		lanes[l] += x[j + l];
	return softmax_lanes(lanes);
}

KERNEL_INLINE float softmax_dot(const float *x, const float *y, int64_t columns)
{
	float lanes[SOFTMAX_LANES] = {0};
	int64_t j = 0;

	for (; j + SOFTMAX_LANES <= columns; j += SOFTMAX_LANES)
		for (int l = 0; l < SOFTMAX_LANES; l++)
			lanes[l] += x[j + l] * y[j + l];
	for (int l = 0; j + l < columns; l++)
		lanes[l] += x[j + l] * y[j + l];
	return softmax_lanes(lanes);
}

/* The maximum. It may miss a NaN, which makes the row NaN in any case. */
KERNEL_INLINE float softmax_max(const float *x, int64_t columns)
{
	float lanes[SOFTMAX_LANES];
	int64_t j = 0;

	if (columns < SOFTMAX_LANES) {
		lanes[0] = x[0];
		for (j = 1; j < columns; j++)
			lanes[0] = x[j] > lanes[0] ? x[j] : lanes[0];
		return lanes[0];
	}
	for (int l = 0; l < SOFTMAX_LANES; l++)
		lanes[l] = x[0];
	for (; j + SOFTMAX_LANES <= columns; j += SOFTMAX_LANES)
		for (int l = 0; l < SOFTMAX_LANES; l++)
			lanes[l] = x[j + l] > lanes[l] ? x[j + l] : lanes[l];
	for (; j < columns; j++)
		lanes[0] = x[j] > lanes[0] ? x[j] : lanes[0];
	for (int l = 1; l < SOFTMAX_LANES; l++)
		lanes[0] = lanes[l] > lanes[0] ? lanes[l] : lanes[0];
	return lanes[0];
}

KERNEL_CLONES
static void softmax_rows(const float *x, float *y, int64_t rows, int64_t columns)
{
	for (int64_t i = 0; i < rows; i++) {
		float maximum = softmax_max(x + i * columns, columns);

		KERNEL_INDEPENDENT
		for (int64_t j = i * columns; j < (i + 1) * columns; j++)
			y[j] = x[j] - maximum;
	}
	KERNEL_INDEPENDENT
	for (int64_t j = 0; j < rows * columns; j++)
		y[j] = elementary_expf(y[j]);
	for (int64_t i = 0; i < rows; i++) {
		float sum = softmax_sum(y + i * columns, columns);

		for (int64_t j = i * columns; j < (i + 1) * columns; j++)
			y[j] /= sum;
	}
}

void kernel_softmax(const float *x, float *y, int64_t rows, int64_t columns)
{
	int64_t step = columns < SOFTMAX_BLOCK ? SOFTMAX_BLOCK / columns : 1;

	for (int64_t i = 0; i < rows; i += step)
		softmax_rows(x + i * columns, y + i * columns, rows - i < step ? rows - i : step,
			     columns);
}

KERNEL_CLONES
void kernel_log_softmax(const float *x, float *y, int64_t rows, int64_t columns)
{
	for (int64_t i = 0; i < rows; i++, x += columns, y += columns) {
		float maximum = softmax_max(x, columns), lanes[SOFTMAX_LANES] = {0}, sum;
		int64_t j = 0;

		for (; j + SOFTMAX_LANES <= columns; j += SOFTMAX_LANES)
			for (int l = 0; l < SOFTMAX_LANES; l++)
				lanes[l] += elementary_expf(x[j + l] - maximum);
		for (int l = 0; j + l < columns; l++)
			lanes[l] += elementary_expf(x[j + l] - maximum);
		sum = (float)elementary_log((double)softmax_lanes(lanes));
		KERNEL_INDEPENDENT
		for (j = 0; j < columns; j++)
			y[j] = x[j] - maximum - sum;
	}
}

KERNEL_CLONES
void kernel_softmax_grad(const float *y, const float *dy, float *dx, int64_t rows, int64_t columns)
{
	for (int64_t i = 0; i < rows; i++, y += columns, dy += columns, dx += columns) {
		float sum = softmax_dot(y, dy, columns);

		KERNEL_INDEPENDENT
		for (int64_t j = 0; j < columns; j++)
			dx[j] = y[j] * (dy[j] - sum);
	}
}

KERNEL_CLONES
void kernel_log_softmax_grad(const float *y, const float *dy, float *dx, int64_t rows,
			     int64_t columns)
{
	for (int64_t i = 0; i < rows; i++, y += columns, dy += columns, dx += columns) {
		float sum = softmax_sum(dy, columns);

		KERNEL_INDEPENDENT
		for (int64_t j = 0; j < columns; j++)
			dx[j] = dy[j] - elementary_expf(y[j]) * sum;
	}
}
