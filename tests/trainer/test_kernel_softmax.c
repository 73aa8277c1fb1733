/*
 * Softmax: worked by hand, stable, and what NaN and infinities do.
 */
#include "trainer/kernels/kernel_activation.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"

static void test_softmax_of_logarithms_is_their_share(void **state)
{
	const float x[] = {logf(1.0f), logf(2.0f), logf(5.0f)};
	float y[3];

	(void)state;
	kernel_softmax(x, y, 1, 3);
	assert_close((double)y[0], 0.125, 1e-6);
	assert_close((double)y[1], 0.25, 1e-6);
	assert_close((double)y[2], 0.625, 1e-6);
}

static void test_large_inputs_do_not_overflow(void **state)
{
	const float x[] = {1000.0f, 1000.0f, -1000.0f, 3e38f, -3e38f, 0.0f};
	float y[6];

	(void)state;
	kernel_softmax(x, y, 2, 3);
	assert_true(y[0] == 0.5f && y[1] == 0.5f && y[2] == 0.0f);
	assert_true(y[3] == 1.0f && y[4] == 0.0f && y[5] == 0.0f);
}

static void test_bad_numbers_make_their_row_nan_and_no_other(void **state)
{
	const float x[] = {
		NAN,  1.0f,      2.0f,      1.0f,      NAN,  2.0f, INFINITY,  1.0f,
		2.0f, -INFINITY, -INFINITY, -INFINITY, 0.0f, 0.0f, -INFINITY,
	};
	float y[15];

	(void)state;
	kernel_softmax(x, y, 5, 3);
	for (int i = 0; i < 12; i++)
		assert_true(isnan(y[i]));
	assert_true(y[12] == 0.5f && y[13] == 0.5f && y[14] == 0.0f);
}

/* Rows short and long, in blocks and alone, against sums in double. */
static void test_rows_of_every_width(void **state)
{
	static float x[40 * 1100], y[ARRAY_LEN(x)], z[ARRAY_LEN(x)];
	static const int64_t widths[] = {1, 2, 10, 15, 16, 17, 63, 100, 1000, 1100};

	(void)state;
	math_fill(x, ARRAY_LEN(x), 4, -6.0f, 6.0f);
	for (size_t w = 0; w < ARRAY_LEN(widths); w++) {
		const int64_t columns = widths[w], rows = columns < 100 ? 300 : 40;

		kernel_softmax(x, y, rows, columns);
		kernel_log_softmax(x, z, rows, columns);
		for (int64_t i = 0; i < rows; i++) {
			double sum = 0.0;

			for (int64_t j = 0; j < columns; j++)
				sum += exp((double)x[i * columns + j]);
			for (int64_t j = i * columns; j < (i + 1) * columns; j++) {
				double wanted = exp((double)x[j]) / sum;

				assert_true(fabs((double)y[j] - wanted) < 2e-6 * wanted);
				assert_true(fabs((double)z[j] - log(wanted)) < 4e-6);
			}
		}
	}
}

static void test_it_may_work_in_place(void **state)
{
	float x[40], y[40];

	(void)state;
	math_fill(x, 40, 3, -4.0f, 4.0f);
	kernel_softmax(x, y, 4, 10);
	kernel_softmax(x, x, 4, 10);
	assert_memory_equal(x, y, sizeof(x));
}

static void test_gradient_by_hand(void **state)
{
	/* y (dy - sum(y dy)): the sum is 0.25 * 4 + 0.75 * 8 = 7. */
	const float y[] = {0.25f, 0.75f};
	float dy[] = {4.0f, 8.0f};

	(void)state;
	kernel_softmax_grad(y, dy, dy, 1, 2);
	assert_true(dy[0] == -0.75f && dy[1] == 0.75f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_softmax_of_logarithms_is_their_share),
		cmocka_unit_test(test_large_inputs_do_not_overflow),
		cmocka_unit_test(test_bad_numbers_make_their_row_nan_and_no_other),
		cmocka_unit_test(test_rows_of_every_width),
		cmocka_unit_test(test_it_may_work_in_place),
		cmocka_unit_test(test_gradient_by_hand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
