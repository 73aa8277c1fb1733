/*
 * Accumulated gradients against plain sums, in float32 and in float16.
 */
#include <math.h>
#include <string.h>

#include "support/support.h"
#include "trainer/train_reduce.h"

#define COUNT 37
#define STEPS 9

/* Gradients of very different sizes, a few too great or too small for half. */
static float gradient(int i, int n)
{
	static const float scales[] = {1.0f, 1e-3f, 300.0f, 7e-8f, 9000.0f};

	return scales[i % 5] * (float)((i * 37 + n * 101) % 23 - 9) / 7.0f;
}

/* The half nearest to @x, worked out with the C library: 11 bits, no less than 2^-24 apart. */
static float to_half(float x)
{
	double grid, y;
	int exponent;

	if (x == 0 || !isfinite(x))
		return x;
	frexp((double)x, &exponent);
	grid = ldexp(1.0, exponent - 11 < -24 ? -24 : exponent - 11);
	y = nearbyint((double)x / grid) * grid;
	return fabs(y) > 65504 ? (float)copysign(INFINITY, y) : (float)y;
}

static float reference(int i, const struct train_accumulation *how)
{
	float sum = how->half ? to_half(gradient(i, 0)) : gradient(i, 0);

	for (int n = 1; n < STEPS; n++) {
		const float before = (float)n;

		if (how->reduction == RUN_RUNNING_MEAN)
			sum = sum * (before / (before + 1.0f)) + gradient(i, n) / (before + 1.0f);
		else
			sum += gradient(i, n);
		sum = how->half ? to_half(sum) : sum;
	}
	return how->reduction == RUN_MEAN ? sum * (1.0f / STEPS) : sum;
}

static void test_sums_are_those_of_a_plain_loop(void **state)
{
	static const enum run_reduction reductions[] = {RUN_SUM, RUN_MEAN, RUN_RUNNING_MEAN};

	(void)state;
	for (int k = 0; k < 6; k++) {
		const struct train_accumulation how = {reductions[k / 2], k % 2};
		float sums[COUNT], gradients[COUNT];

		for (int i = 0; i < COUNT; i++)
			sums[i] = gradient(i, 0);
		train_accumulate_first(&how, sums, COUNT);
		for (int n = 1; n < STEPS; n++) {
			for (int i = 0; i < COUNT; i++)
				gradients[i] = gradient(i, n);
			train_accumulate(&how, sums, gradients, COUNT, n);
		}
		train_accumulate_last(&how, sums, COUNT, STEPS, 1.0);
		for (int i = 0; i < COUNT; i++) {
			const float wanted = reference(i, &how);

			assert_memory_equal(&sums[i], &wanted, sizeof(wanted));
		}
	}
}

static void test_half_loses_what_is_small_beside_the_sum(void **state)
{
	const struct train_accumulation how = {RUN_SUM, true};
	float sum = 2048.0f;
	const float one = 1.0f;

	(void)state;
	train_accumulate_first(&how, &sum, 1);
	train_accumulate(&how, &sum, &one, 1, 1);
	assert_close(sum, 2048.0, 0); /* halfway to 2050: to even */
}

static void test_one_micro_batch_is_its_own_mean(void **state)
{
	const struct train_accumulation how = {RUN_MEAN, false};
	float sum = 0.3f;

	(void)state;
	train_accumulate_first(&how, &sum, 1);
	train_accumulate_last(&how, &sum, 1, 1, 1.0);
	assert_close(sum, 0.3f, 0);
}

static void test_half_is_asked_for_by_the_run_file(void **state)
{
	struct run_file run = {.accumulation = {.wanted = true, .dtype = RUN_FLOAT16}};

	(void)state;
	assert_true(train_accumulation_of(&run).half);
	run.accumulation.dtype = RUN_DTYPE_UNSAID;
	assert_false(train_accumulation_of(&run).half);
	run = (struct run_file){.accumulation = {.dtype = RUN_FLOAT16}};
	assert_false(train_accumulation_of(&run).half);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_are_those_of_a_plain_loop),
		cmocka_unit_test(test_half_loses_what_is_small_beside_the_sum),
		cmocka_unit_test(test_one_micro_batch_is_its_own_mean),
		cmocka_unit_test(test_half_is_asked_for_by_the_run_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
