/*
 * Elementary functions within 2.5 units in the last place, activations and their gradients against
 * formulas in double, at every length and in place; NaN and infinities.
 */
#include "trainer/kernels/kernel_activation.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"
#include "support/math.h"
#include "trainer/kernels/kernel_elementary.h"

#define MOST 67 /* four 16-float vectors and a rest */

static double wide_sigmoid(double x)
{
	return 1.0 / (1.0 + exp(-x));
}

static double wide_elu(double x)
{
	return x > 0.0 ? x : expm1(x);
}

static double wide_gelu(double x)
{
	return 0.5 * x * (1.0 + erf(x * sqrt(0.5)));
}

static double wide_hard_sigmoid(double x)
{
	return fmin(fmax(0.2 * x + 0.5, 0.0), 1.0);
}

static double wide_leaky_relu(double x)
{
	return x < 0.0 ? 0.2 * x : x;
}

static double wide_mish(double x)
{
	return x * tanh(log1p(exp(x)));
}

static double wide_relu6(double x)
{
	return fmin(fmax(x, 0.0), 6.0);
}

static double wide_selu(double x)
{
	return 1.05070098735548049342 * (x > 0.0 ? x : 1.67326324235437728482 * expm1(x));
}

static double wide_softplus(double x)
{
	return log1p(exp(-fabs(x))) + fmax(x, 0.0);
}

static double wide_softsign(double x)
{
	return x / (1.0 + fabs(x));
}

static double wide_swish(double x)
{
	return x * wide_sigmoid(x);
}

static const struct {
	const char *name;
	void (*forward)(const float *x, float *y, size_t count);
	void (*backward)(const float *x, const float *y, const float *dy, float *dx, size_t count);
	double (*wide)(double x);
	bool reads_input;
} kernels[] = {
#define wide_exponential exp
#define wide_tanh        tanh
#define INPUT            true
#define OUTPUT           false
#define ROW(name, reads) {#name, kernel_##name, kernel_##name##_grad, wide_##name, reads},
	KERNEL_ACTIVATION_MAP(ROW)
#undef ROW
};

/* ---- elementary functions -------------------------------------------------------------------- */

/* In steps of one in float's last place at the wanted value. */
static double places(float got, double wanted)
{
	float near = fabsf((float)wanted);

	if (isinf(near))
		return isinf(got) ? 0.0 : INFINITY;
	return fabs((double)got - wanted) / (double)(nextafterf(near, INFINITY) - near);
}

static void check_places(float (*got)(float x), double (*wanted)(double x), float low, float high)
{
	/* Every 9,973rd float. */
	for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 9973) {
		uint32_t word = (uint32_t)bits;
		float x;

		memcpy(&x, &word, sizeof(x));
		if (x >= low && x <= high && !(places(got(x), wanted((double)x)) < 2.5))
			fail_msg("%a: %a", (double)x, (double)got(x));
	}
}

static float narrow_exp(float x)
{
	return elementary_expf(x);
}

static float narrow_expm1(float x)
{
	return elementary_expm1f_negative(x);
}

static float narrow_sigmoid(float x)
{
	return elementary_sigmoidf(x);
}

static float narrow_tanh(float x)
{
	return elementary_tanhf(x);
}

static float narrow_log1p(float x)
{
	return elementary_log1pf_share(x);
}

static float narrow_erf(float x)
{
	return elementary_erff(x);
}

static void test_elementary_functions_err_by_few_last_places(void **state)
{
	(void)state;
	check_places(narrow_exp, exp, -INFINITY, INFINITY);
	check_places(narrow_expm1, expm1, -INFINITY, 0.0f);
	check_places(narrow_sigmoid, wide_sigmoid, -87.0f, INFINITY);
	check_places(narrow_tanh, tanh, -INFINITY, INFINITY);
	check_places(narrow_log1p, log1p, 0.0f, 1.0f);
	check_places(narrow_erf, erf, -INFINITY, INFINITY);
	assert_true(isnan(elementary_expf(NAN)) && isnan(elementary_expm1f_negative(NAN)));
	assert_true(isnan(elementary_sigmoidf(NAN)) && isnan(elementary_sigmoidf(-NAN)));
	assert_true(isnan(elementary_log1pf_share(NAN)));
	assert_true(isnan(elementary_tanhf(NAN)) && isnan(elementary_erff(NAN)));
	assert_true(elementary_sigmoidf(-INFINITY) == 0.0f &&
		    elementary_sigmoidf(INFINITY) == 1.0f);
}

/* What is computed of every 99,701st float that is a number. */
static void test_elementary_functions_have_the_same_bytes_everywhere(void **state)
{
	static const struct {
		const char *name;
		float (*of)(float x);
		float low, high;
		uint64_t bytes;
	} cases[] = {
		{"exp", narrow_exp, -INFINITY, INFINITY, 0xb74ff14b2ea54cce},
		{"expm1", narrow_expm1, -INFINITY, 0.0f, 0x69746f319d4d62e2},
		{"sigmoid", narrow_sigmoid, -INFINITY, INFINITY, 0x811b66e13fd59710},
		{"tanh", narrow_tanh, -INFINITY, INFINITY, 0xcd28b6e58ceea108},
		{"log1p", narrow_log1p, 0.0f, 1.0f, 0xcad8d3e4326adf63},
		{"erf", narrow_erf, -INFINITY, INFINITY, 0x151191466b84ac10},
	};
	static uint32_t words[UINT32_MAX / 99701 + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t found;
		size_t count = 0;

		for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 99701) {
			const uint32_t word = (uint32_t)bits;
			float x;

			memcpy(&x, &word, sizeof(x));
			if (!(x >= cases[i].low && x <= cases[i].high))
				continue;
			x = cases[i].of(x);
			memcpy(&words[count++], &x, sizeof(x));
		}
		found = XXH3_64bits(words, count * sizeof(*words));
		if (found != cases[i].bytes)
			fail_msg("%s: 0x%016llx", cases[i].name, (unsigned long long)found);
	}
}

/* ---- activations ----------------------------------------------------------------------------- */

static void test_activations_are_their_formulas(void **state)
{
	float x[400], y[400];

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(kernels); k++) {
		math_fill(x, ARRAY_LEN(x), 1, -9.0f, 9.0f);
		x[0] = -100.0f;
		x[1] = 80.0f;
		x[2] = 1e-6f;
		x[3] = -1e-6f;
		kernels[k].forward(x, y, ARRAY_LEN(x));
		for (size_t i = 0; i < ARRAY_LEN(x); i++) {
			double wanted = kernels[k].wide((double)x[i]);

			if (!(fabs((double)y[i] - wanted) <= 1e-6 * fabs(wanted) + 3e-7))
				fail_msg("%s(%.9g) = %.9g, not %.9g", kernels[k].name, (double)x[i],
					 (double)y[i], wanted);
		}
	}
}

static void test_gradients_are_those_of_central_differences(void **state)
{
	const double h = 1e-5;
	float x[400], y[400], dy[400], dx[400];

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(kernels); k++) {
		math_fill(x, ARRAY_LEN(x), 3, -8.0f, 8.0f);
		math_fill(dy, ARRAY_LEN(dy), 4, -2.0f, 2.0f);
		kernels[k].forward(x, y, ARRAY_LEN(x));
		kernels[k].backward(kernels[k].reads_input ? x : NULL,
				    kernels[k].reads_input ? NULL : y, dy, dx, ARRAY_LEN(x));
		for (size_t i = 0; i < ARRAY_LEN(x); i++) {
			double at = (double)x[i];
			double slope =
				(kernels[k].wide(at + h) - kernels[k].wide(at - h)) / (2 * h);
			double wanted = (double)dy[i] * slope;

			if (!(fabs((double)dx[i] - wanted) <
			      3e-6 * (fabs(wanted) + (double)fabsf(dy[i]) + fabs((double)y[i]))))
				fail_msg("%s at %.9g: %.9g, not %.9g", kernels[k].name, at,
					 (double)dx[i], wanted);
		}
	}
}

static void test_any_length_and_in_place(void **state)
{
	float x[MOST], y[MOST], dy[MOST], dx[MOST], again[MOST];

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(kernels); k++) {
		math_fill(x, MOST, 5, -7.0f, 7.0f);
		math_fill(dy, MOST, 6, -1.0f, 1.0f);
		kernels[k].forward(x, y, MOST);
		kernels[k].backward(x, y, dy, dx, MOST);
		for (size_t n = 0; n <= MOST; n++) {
			memcpy(again, x, sizeof(x));
			kernels[k].forward(again, again, n);
			assert_memory_equal(again, y, n * sizeof(float));
			assert_memory_equal(again + n, x + n, (MOST - n) * sizeof(float));
			memcpy(again, dy, sizeof(dy));
			kernels[k].backward(x, y, again, again, n);
			assert_memory_equal(again, dx, n * sizeof(float));
			assert_memory_equal(again + n, dy + n, (MOST - n) * sizeof(float));
		}
	}
}

static void test_not_a_number_goes_through(void **state)
{
	const float x[] = {NAN, -NAN}, dy[] = {1.0f, NAN};
	const float fine[] = {0.5f, 0.5f};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(kernels); k++) {
		float y[2], dx[2];

		kernels[k].forward(x, y, 2);
		assert_true(isnan(y[0]) && isnan(y[1]));
		kernels[k].forward(fine, y, 2);
		kernels[k].backward(fine, y, dy, dx, 2);
		assert_true(!isnan(dx[0]) && isnan(dx[1]));
	}
}

static void test_limits_of_infinities(void **state)
{
	const float x[] = {INFINITY, -INFINITY};
	static const struct {
		void (*forward)(const float *x, float *y, size_t count);
		float above, below;
	} rows[] = {
		{kernel_elu, INFINITY, -1.0f},     {kernel_exponential, INFINITY, 0.0f},
		{kernel_hard_sigmoid, 1.0f, 0.0f}, {kernel_relu6, 6.0f, 0.0f},
		{kernel_sigmoid, 1.0f, 0.0f},      {kernel_softplus, INFINITY, 0.0f},
		{kernel_tanh, 1.0f, -1.0f},        {kernel_leaky_relu, INFINITY, -INFINITY},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		float y[2];

		rows[i].forward(x, y, 2);
		assert_true(y[0] == rows[i].above && y[1] == rows[i].below);
	}
}

/* ---- with parameters ------------------------------------------------------------------------- */

static void test_bounded_relu_by_hand(void **state)
{
	const float x[] = {-2.0f, 0.0f, 3.0f, 4.0f, 5.0f, NAN, INFINITY, -INFINITY};
	const float bounded[] = {0, 0, 3, 4, 4, NAN, 4, 0},
		    open[] = {0, 0, 3, 4, 5, NAN, INFINITY, 0};
	const float bounded_dx[] = {0, 0, 7, 0, 0, 7, 0, 0}, open_dx[] = {0, 0, 7, 7, 7, 7, 7, 0};
	float y[8], dy[8], dx[8];

	(void)state;
	math_fill(dy, 8, 1, 7.0f, 7.0f);
	for (int b = 0; b < 2; b++) {
		float most = b ? 4.0f : INFINITY;
		const float *wanted = b ? bounded : open, *wanted_dx = b ? bounded_dx : open_dx;

		kernel_bounded_relu(x, y, most, 8);
		kernel_bounded_relu_grad(y, dy, dx, most, 8);
		for (int i = 0; i < 8; i++) {
			assert_true(isnan(wanted[i]) ? isnan(y[i]) : y[i] == wanted[i]);
			assert_true(dx[i] == wanted_dx[i]);
		}
	}
}

static void test_shaped_relu_by_hand(void **state)
{
	/* threshold 1, slope 0.5, most 4: x up to 4 above 1, (x - 1) / 2 elsewhere. */
	const struct kernel_relu_shape shape = {1.0f, 0.5f, 4.0f};
	const float x[] = {-1.0f, 1.0f, 2.0f, 4.0f, 6.0f, NAN};
	const float wanted[] = {-1.0f, 0.0f, 2.0f, 4.0f, 4.0f}, dxs[] = {1.5f, 1.5f, 3.0f, 0, 0};
	float y[6], dy[6], dx[6];

	(void)state;
	math_fill(dy, 6, 1, 3.0f, 3.0f);
	kernel_shaped_relu(x, y, &shape, 6);
	kernel_shaped_relu_grad(x, dy, dx, &shape, 6);
	assert_memory_equal(y, wanted, sizeof(wanted));
	assert_memory_equal(dx, dxs, sizeof(dxs));
	assert_true(isnan(y[5]));
}

static void test_elu_with_its_alpha(void **state)
{
	const float x[] = {-2.0f, -0.5f, 1.5f}, dy[] = {1.0f, 1.0f, 1.0f};
	float y[3], dx[3];

	(void)state;
	kernel_alpha_elu(x, y, 0.3f, 3);
	kernel_alpha_elu_grad(y, dy, dx, 0.3f, 3);
	assert_close((double)y[0], 0.3 * expm1(-2.0), 1e-6);
	assert_close((double)dx[0], 0.3 * exp(-2.0), 1e-6);
	assert_close((double)dx[1], 0.3 * exp(-0.5), 1e-6);
	assert_true(y[2] == 1.5f && dx[2] == 1.0f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elementary_functions_err_by_few_last_places),
		cmocka_unit_test(test_elementary_functions_have_the_same_bytes_everywhere),
		cmocka_unit_test(test_activations_are_their_formulas),
		cmocka_unit_test(test_gradients_are_those_of_central_differences),
		cmocka_unit_test(test_any_length_and_in_place),
		cmocka_unit_test(test_not_a_number_goes_through),
		cmocka_unit_test(test_limits_of_infinities),
		cmocka_unit_test(test_bounded_relu_by_hand),
		cmocka_unit_test(test_shaped_relu_by_hand),
		cmocka_unit_test(test_elu_with_its_alpha),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
