/*
 * Regularisation: penalties and gradients by hand, frozen parameters, and the same bytes anywhere.
 */
#include "trainer/learn/optimizer_run.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"
#include "trainer/kernels/kernel_optimizer.h"

#define DENSE(units, more)                                                                         \
	"{'class_name': 'Dense', 'config': {'units': " units ", 'kernel_regularizer': " more "}}"
#define L2   "{'class_name': 'L2', 'config': {'l2': 0.25}}"
#define BOTH "{'class_name': 'L1L2', 'config': {'l1': 0.5, 'l2': 0.125}}"

static const char small[] = "[" DENSE("2", L2) "," DENSE("2", "null") "," DENSE(
	"1", BOTH ", 'trainable': false, 'bias_regularizer': " L2) "]";

static float *kernel_of(const struct math_model *m, float *block, int param)
{
	return block + m->model->params[param].offset;
}

static void test_penalties_and_gradients_by_hand(void **state)
{
	static const float first[] = {1.0f, -2.0f, 0.0f, 3.0f}, last[] = {-4.0f, 2.0f};
	float weights[256] = {0}, gradients[256] = {0};
	struct math_model m;

	(void)state;
	math_model_open(&m, small, 1, (int64_t[]){2});
	assert_true(m.model->weights <= ARRAY_LEN(weights));
	memcpy(kernel_of(&m, weights, 0), first, sizeof(first));
	memcpy(kernel_of(&m, weights, 2), first, sizeof(first));
	memcpy(kernel_of(&m, weights, 4), last, sizeof(last));
	*kernel_of(&m, weights, 5) = 2.0f;

	assert_true(regularizer_any(m.model, 0, 3));
	assert_false(regularizer_any(m.model, 1, 1));
	/* 14 / 4; nothing; 6 / 2 + 20 / 8 and the bias's 4 / 4, though it does not learn */
	assert_close(regularizer_penalty(NULL, m.model, 0, 1, weights), 3.5, 1e-12);
	assert_close(regularizer_penalty(NULL, m.model, 1, 1, weights), 0.0, 0.0);
	assert_close(regularizer_penalty(NULL, m.model, 0, 3, weights), 3.5 + 5.5 + 1.0, 1e-12);

	kernel_of(&m, gradients, 0)[1] = 10.0f;
	regularizer_gradient(NULL, m.model, 0, 3, weights, gradients, 1.0);
	assert_true(kernel_of(&m, gradients, 0)[0] == 0.5f);
	assert_true(kernel_of(&m, gradients, 0)[1] == 9.0f);
	assert_true(kernel_of(&m, gradients, 0)[2] == 0.0f);
	assert_true(kernel_of(&m, gradients, 0)[3] == 1.5f);
	for (size_t i = m.model->params[1].offset; i < m.model->weights; i++)
		assert_true(gradients[i] == 0.0f);
	math_model_close(&m);
}

static void test_gradients_are_those_of_central_differences(void **state)
{
	float weights[256], gradients[256] = {0};
	struct math_model m;

	(void)state;
	math_model_open(&m, "[" DENSE("5", BOTH) "]", 1, (int64_t[]){3});
	math_fill(weights, ARRAY_LEN(weights), 1, -1.0f, 1.0f);
	regularizer_gradient(NULL, m.model, 0, 1, weights, gradients, 1.0);
	for (size_t i = 0; i < m.model->params[0].count; i++) {
		float kept = weights[i];
		double up, down, apart;

		weights[i] = kept + 0x1p-10f;
		up = regularizer_penalty(NULL, m.model, 0, 1, weights);
		apart = (double)weights[i];
		weights[i] = kept - 0x1p-10f;
		down = regularizer_penalty(NULL, m.model, 0, 1, weights);
		apart -= (double)weights[i];
		weights[i] = kept;
		assert_close((double)gradients[i], (up - down) / apart, 1e-5);
	}
	math_model_close(&m);
}

static void test_sums_of_every_length(void **state)
{
	float x[100], gradients[100];

	(void)state;
	math_fill(x, ARRAY_LEN(x), 3, -1.0f, 1.0f);
	x[7] = 0.0f;
	for (size_t n = 0; n <= ARRAY_LEN(x); n++) {
		double absolute = 0.0, square = 0.0;

		memset(gradients, 0, sizeof(gradients));
		kernel_regularize(gradients, x, 0.5f, 2.0f, n);
		for (size_t i = 0; i < ARRAY_LEN(x); i++) {
			float sign = x[i] > 0.0f ? 0.5f : x[i] < 0.0f ? -0.5f : 0.0f;

			assert_true(gradients[i] == (i < n ? sign + 2.0f * x[i] : 0.0f));
		}
		for (size_t i = 0; i < n; i++) {
			absolute += fabs((double)x[i]);
			square += (double)x[i] * (double)x[i];
		}
		assert_close(kernel_absolute_sum(x, n), absolute, 1e-12);
		assert_close(kernel_square_sum(x, n), square, 1e-12);
	}
}

static void test_bad_numbers_go_through(void **state)
{
	const float x[] = {NAN, INFINITY, -INFINITY};
	float gradients[3] = {0};

	(void)state;
	kernel_regularize(gradients, x, 0.5f, 2.0f, 3);
	assert_true(isnan(gradients[0]));
	assert_true(gradients[1] > 3e38f && gradients[2] < -3e38f);
	assert_true(isnan(kernel_square_sum(x, 3)) && isnan(kernel_absolute_sum(x, 3)));
}

static void test_any_pool_gives_the_same_bytes(void **state)
{
	double penalty = 0.0;
	float *weights, *gradients, *first;
	struct math_model m;
	size_t count;

	(void)state;
	/* 5,001,000 weights: more slices than sums are held at a time */
	math_model_open(&m, "[" DENSE("5000", BOTH) "]", 1, (int64_t[]){1000});
	count = m.model->weights;
	weights = mem_aligned(3 * count, sizeof(float));
	assert_non_null(weights);
	gradients = weights + count;
	first = gradients + count;
	math_fill(weights, count, 1, -1.0f, 1.0f);
	regularizer_gradient(NULL, m.model, 0, 1, weights, first, 1.0);
	penalty = regularizer_penalty(NULL, m.model, 0, 1, weights);
	/* E|w| is a half, E w^2 a third */
	assert_close(penalty, 5e6 * (0.25 + 0.125 / 3.0), 1e-3);
	for (unsigned helpers = 0; helpers < 4; helpers += 1 + helpers) {
		struct pool *pool;
		double again;

		assert_int_equal(pool_new(&pool, helpers, NULL), ST_OK);
		memset(gradients, 0, count * sizeof(float));
		regularizer_gradient(pool, m.model, 0, 1, weights, gradients, 1.0);
		again = regularizer_penalty(pool, m.model, 0, 1, weights);
		assert_memory_equal(&penalty, &again, sizeof(again));
		assert_memory_equal(first, gradients, count * sizeof(float));
		pool_free(pool);
	}
	mem_free(weights);
	math_model_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_penalties_and_gradients_by_hand),
		cmocka_unit_test(test_gradients_are_those_of_central_differences),
		cmocka_unit_test(test_sums_of_every_length),
		cmocka_unit_test(test_bad_numbers_go_through),
		cmocka_unit_test(test_any_pool_gives_the_same_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
