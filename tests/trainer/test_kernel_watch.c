/*
 * Greatest magnitudes against a plain loop: any length, alignment and stride; what is not finite.
 */
#include "trainer/kernels/kernel_watch.h"

#include <math.h>

#include "common/mem.h"
#include "support/math.h"

#define MOST   70 /* rows, columns */
#define STRIDE (MOST + 3)

static float values[(MOST + 1) * STRIDE];

static uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits & 0x7fffffff;
}

static uint32_t plain(const float *x, int64_t stride, int64_t rows, int64_t columns)
{
	uint32_t most = 0;

	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			if (bits_of(x[i * stride + j]) > most)
				most = bits_of(x[i * stride + j]);
	return most;
}

static void fill(uint32_t seed)
{
	math_fill(values, ARRAY_LEN(values), seed, -2.0f, 1.0f);
}

static void test_any_length_and_alignment(void **state)
{
	(void)state;
	fill(1);
	for (size_t from = 0; from < 17; from++)
		for (size_t count = 0; count < 400; count++)
			assert_int_equal(kernel_abs_max(values + from, count),
					 plain(values + from, 0, 1, (int64_t)count));
}

static void test_any_rows(void **state)
{
	(void)state;
	fill(2);
	for (int64_t rows = 0; rows < MOST; rows += 3) {
		for (int64_t columns = 1; columns <= MOST; columns++) {
			assert_int_equal(kernel_abs_max_rows(values + 1, STRIDE, rows, columns),
					 plain(values + 1, STRIDE, rows, columns));
			assert_int_equal(kernel_abs_max_rows(values, columns, rows, columns),
					 plain(values, columns, rows, columns));
		}
	}
}

/* One cell at a time; those beside the columns must not be looked at. */
static void test_every_cell_is_looked_at_and_none_beside(void **state)
{
	static const float odd[] = {NAN, -NAN, INFINITY, -INFINITY, 1e-42f, -1e-42f};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(odd); k++) {
		for (int64_t i = 0; i < 5; i++) {
			for (int64_t j = 0; j < MOST; j++) {
				memset(values, 0, sizeof(values));
				values[i * STRIDE + j] = odd[k];
				for (int64_t columns = 30; columns <= MOST; columns += 7)
					assert_int_equal(
						kernel_abs_max_rows(values, STRIDE, 5, columns),
						j < columns ? bits_of(odd[k]) : 0);
			}
		}
	}
}

static void test_zeros_of_both_signs_are_nothing(void **state)
{
	(void)state;
	memset(values, 0, sizeof(values));
	values[3] = -0.0f;
	assert_int_equal(kernel_abs_max(values, 40), 0);
	assert_int_equal(kernel_abs_max(values, 0), 0);
}

static void test_a_pass_of_its_own_is_the_same_on_any_pool(void **state)
{
	const size_t count = 200001;
	float *many = mem_aligned(count, sizeof(float));

	(void)state;
	assert_non_null(many);
	math_fill(many, count, 5, -1.0f, 1.0f);
	many[count - 1] = -3.0f;
	for (unsigned helpers = 0; helpers < 4; helpers++) {
		struct kernel_watch watch = {0};
		struct pool *pool;

		assert_int_equal(pool_new(&pool, helpers, NULL), ST_OK);
		assert_int_equal(kernel_watch_most(&watch, pool, many, count), bits_of(3.0f));
		/* What is known is not looked for again. */
		assert_int_equal(kernel_watch_most(&watch, pool, NULL, count), bits_of(3.0f));
		pool_free(pool);
	}
	mem_free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_length_and_alignment),
		cmocka_unit_test(test_any_rows),
		cmocka_unit_test(test_every_cell_is_looked_at_and_none_beside),
		cmocka_unit_test(test_zeros_of_both_signs_are_nothing),
		cmocka_unit_test(test_a_pass_of_its_own_is_the_same_on_any_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
