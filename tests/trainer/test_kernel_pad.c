/*
 * Zeros around images, and the way back.
 */
#include "trainer/kernels/kernel_conv.h"

#include <string.h>

#include "common/mem.h"
#include "support/math.h"

static const struct kernel_pad pads[] = {
	{1, 1, 1, 1, 0, 0, 0, 0},   {2, 3, 4, 5, 1, 1, 1, 1},     {3, 2, 2, 1, 0, 2, 3, 0},
	{2, 90, 80, 3, 3, 3, 3, 3}, {2, 2, 3, 40000, 1, 0, 0, 1},
};

static void test_the_inner_part_goes_there_and_back(void **state)
{
	struct pool *pool;

	(void)state;
	assert_int_equal(pool_new(&pool, 2, NULL), ST_OK);
	for (size_t i = 0; i < ARRAY_LEN(pads); i++) {
		const struct kernel_pad *p = &pads[i];
		int64_t height = p->top + p->height + p->bottom;
		int64_t width = p->left + p->width + p->right;
		size_t inner = (size_t)(p->batch * p->height * p->width * p->channels);
		size_t outer = (size_t)(p->batch * height * width * p->channels), at = 0;
		float *x = mem_aligned(inner, sizeof(float)), *back;
		float *y = mem_aligned(outer, sizeof(float));

		back = mem_aligned(inner, sizeof(float));
		assert_true(x && y && back);
		math_fill(x, inner, 1, 1.0f, 2.0f);
		math_fill(y, outer, 2, 1.0f, 2.0f);
		kernel_pad_forward(p, pool, x, y);
		for (size_t j = 0; j < outer; j++) {
			int64_t pixel = (int64_t)j / p->channels, column = pixel % width - p->left;
			int64_t row = pixel / width % height - p->top;
			bool inside =
				row >= 0 && row < p->height && column >= 0 && column < p->width;

			assert_true(inside ? y[j] == x[at] : y[j] == 0.0f);
			at += inside;
		}
		assert_int_equal(at, inner);

		kernel_pad_grad(p, pool, y, back, false);
		assert_memory_equal(back, x, inner * sizeof(float));
		kernel_pad_grad(p, pool, y, back, true);
		for (size_t j = 0; j < inner; j++)
			assert_true(back[j] == 2.0f * x[j]);
		mem_free(x);
		mem_free(y);
		mem_free(back);
	}
	pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_inner_part_goes_there_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
