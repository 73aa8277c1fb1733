/*
 * Element-by-element loops: worked by hand, at lengths around the vector widths, NaN kept.
 */
#include "trainer/kernels/kernel_vector.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "trainer/kernels/kernel_activation.h"

#define MOST 67 /* four 16-float vectors and a rest */

static void test_relu_keeps_nan_and_infinity(void **state)
{
	const float x[] = {-1.0f, 0.0f, 2.0f, NAN, INFINITY, -INFINITY, -0.0f};
	float y[ARRAY_LEN(x)], dy[ARRAY_LEN(x)];

	(void)state;
	kernel_relu(x, y, ARRAY_LEN(x));
	assert_true(y[0] == 0.0f && y[1] == 0.0f && y[2] == 2.0f);
	assert_true(isnan(y[3]) && y[4] == INFINITY && y[5] == 0.0f);

	math_fill(dy, ARRAY_LEN(dy), 1, 3.0f, 3.0f);
	kernel_bounded_relu_grad(y, dy, dy, INFINITY, ARRAY_LEN(dy));
	assert_true(dy[0] == 0.0f && dy[1] == 0.0f && dy[2] == 3.0f && dy[3] == 3.0f);
	assert_true(dy[4] == 3.0f && dy[5] == 0.0f && dy[6] == 0.0f);
}

static void test_bias_and_relu_of_every_length(void **state)
{
	float y[3 * MOST], before[3 * MOST], bias[MOST];

	(void)state;
	math_fill(bias, MOST, 5, -1.0f, 1.0f);
	for (int64_t n = 0; n <= MOST; n++) {
		math_fill(before, ARRAY_LEN(before), 6, -1.0f, 1.0f);
		memcpy(y, before, sizeof(y));
		kernel_bias(y, MOST, 2, n, bias);
		for (int64_t i = 0; i < 2; i++)
			for (int64_t j = 0; j < MOST; j++)
				assert_true(y[i * MOST + j] ==
					    before[i * MOST + j] + (j < n ? bias[j] : 0.0f));

		memcpy(y, before, sizeof(y));
		kernel_bias_relu(y, MOST, 2, n, bias);
		for (int64_t j = 0; j < n; j++)
			assert_true(y[MOST + j] == fmaxf(before[MOST + j] + bias[j], 0.0f));
		assert_memory_equal(y + MOST + n, before + MOST + n,
				    (size_t)(2 * MOST - n) * sizeof(float));

		memcpy(y, before, sizeof(y));
		kernel_bias_relu(y, MOST, 2, n, NULL);
		for (int64_t j = 0; j < n; j++)
			assert_true(y[j] == fmaxf(before[j], 0.0f));
	}
}

static void test_sums_run_from_the_first_row_to_the_last(void **state)
{
	/* 1e8 swallows the 1 only in this order. */
	const float x[] = {1.0f, 5.0f, 1e8f, 5.0f, -1e8f, 5.0f};
	float sums[2];

	(void)state;
	kernel_column_sums(x, 2, 3, 2, sums);
	assert_true(sums[0] == 0.0f && sums[1] == 15.0f);
	kernel_column_sums(x, 2, 0, 2, sums);
	assert_true(sums[0] == 0.0f && sums[1] == 0.0f);
}

static void test_add_and_scale_of_every_length(void **state)
{
	float a[MOST], b[MOST], c[MOST];

	(void)state;
	math_fill(b, MOST, 8, -1.0f, 1.0f);
	for (size_t n = 0; n <= MOST; n++) {
		math_fill(a, MOST, 7, -1.0f, 1.0f);
		memcpy(c, a, sizeof(c));
		kernel_add(a, b, n);
		for (size_t i = 0; i < MOST; i++)
			assert_true(a[i] == (i < n ? c[i] + b[i] : c[i]));
		memcpy(a, c, sizeof(c));
		kernel_scale(a, 0.25f, n);
		for (size_t i = 0; i < MOST; i++)
			assert_true(a[i] == (i < n ? c[i] * 0.25f : c[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_relu_keeps_nan_and_infinity),
		cmocka_unit_test(test_bias_and_relu_of_every_length),
		cmocka_unit_test(test_sums_run_from_the_first_row_to_the_last),
		cmocka_unit_test(test_add_and_scale_of_every_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
