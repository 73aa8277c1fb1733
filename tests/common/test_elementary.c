/*
 * Elementary functions against exact values (tests/golden/elementary.txt, made by
 * script/make-elementary-golden.py), their limits, and their bytes, which are to be the same on
 * every machine.
 */
#include "common/elementary.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"
#include "common/rng.h"
#include "support/support.h"

#define BYTES_OF 20000 /* results */

static double one_log(double x, double y)
{
	(void)y;
	return elementary_log(x);
}

static double one_log1p(double x, double y)
{
	(void)y;
	return elementary_log1p(x);
}

static double one_cos_pi(double x, double y)
{
	(void)y;
	return elementary_cos_pi(x);
}

static const struct function {
	const char *name;
	double (*of)(double x, double y);
	double most; /* error, in units in the last place, as the header says */
	uint64_t bytes;
} functions[] = {
	{"log", one_log, 1.0, 0xbae2706f0e70494f},
	{"log1p", one_log1p, 1.5, 0xc2330f246015228b},
	{"cos_pi", one_cos_pi, 1.5, 0xea54647fcbde1020},
	{"pow", elementary_pow, 0.8, 0x820ae16caecca279},
};

static const struct function *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(functions); i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	fail_msg("%s: no such function", name);
	return NULL;
}

/* A unit is 2^-53 of the exact value's power of two; below the normal range it is 2^-1074. */
static double units(double got, double high, double low, int exponent)
{
	const double unit = exponent >= -1021 ? 0x1p-53 : ldexp(1.0, -1074 - exponent);

	return fabs(((ldexp(got, -exponent) - high) - low) / unit);
}

static void test_errors_are_as_small_as_said(void **state)
{
	double worst[ARRAY_LEN(functions)] = {0};
	char path[4096], name[16];
	double x, y, high, low;
	int exponent, lines = 0;
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/golden/elementary.txt", support_source_dir());
	file = fopen(path, "r");
	assert_non_null(file);
	while (fscanf(file, "%15s %la %la %la %la %d", name, &x, &y, &high, &low, &exponent) == 6) {
		const struct function *function = find(name);
		const double error = units(function->of(x, y), high, low, exponent);

		if (!(error <= function->most))
			fail_msg("%s(%a, %a): %.3f units", name, x, y, error);
		if (error > worst[function - functions])
			worst[function - functions] = error;
		lines++;
	}
	fclose(file);
	assert_true(lines > 500);
	/* And it can fail: no function is better than a rounding to the nearest. */
	for (size_t i = 0; i < ARRAY_LEN(functions); i++)
		assert_true(worst[i] > 0.4);
}

static void test_exact_values_are_exact(void **state)
{
	(void)state;
	assert_true(elementary_log(1.0) == 0.0 && elementary_log1p(0.0) == 0.0);
	for (int k = 0; k <= 52; k++)
		assert_true(elementary_pow(2.0, k) == ldexp(1.0, k) &&
			    elementary_pow(4.0, 0.5 * k) == ldexp(1.0, k));
	assert_true(elementary_pow(0.0, 0.0) == 1.0 && elementary_pow(1.0, 3e300) == 1.0);
	assert_true(elementary_pow(0.0, 0.3) == 0.0 && elementary_pow(0.7, 1.0) == 0.7);
	for (int k = -20; k <= 20; k++) {
		assert_true(elementary_cos_pi(k) == (k % 2 ? -1.0 : 1.0));
		assert_true(elementary_cos_pi(k + 0.5) == 0.0);
		assert_false(signbit(elementary_cos_pi(k + 0.5)));
	}
	assert_true(elementary_cos_pi(0x1.8p60) == 1.0);
}

static void test_limits_and_what_is_no_number(void **state)
{
	const double inf = (double)INFINITY, nan_ = (double)NAN;

	(void)state;
	assert_true(elementary_log(inf) == inf && elementary_log(0.0) == -inf);
	assert_true(fabs(elementary_log(DBL_MAX) - 709.782712893384) < 1e-12); /* 1024 log 2 */
	assert_true(isnan(elementary_log(-1e-300)) && isnan(elementary_log(nan_)));
	assert_true(elementary_log1p(inf) == inf && elementary_log1p(-1.0) == -inf);
	assert_true(isnan(elementary_log1p(-1.5)) && isnan(elementary_log1p(nan_)));
	assert_true(isnan(elementary_cos_pi(inf)) && isnan(elementary_cos_pi(nan_)));
	assert_true(isnan(elementary_pow(-0.5, 2.0)) && isnan(elementary_pow(nan_, 2.0)));
	assert_true(isnan(elementary_pow(2.0, nan_)) && elementary_pow(nan_, 0.0) == 1.0);
	assert_true(isnan(elementary_pow(inf, nan_)) && isnan(elementary_pow(0.0, nan_)));
	assert_true(isnan(elementary_pow(0.5, nan_)) && elementary_pow(1.0, nan_) == 1.0);
	assert_true(elementary_pow(0.0, -0.5) == inf && elementary_pow(2.0, 1e9) == inf);
	assert_true(elementary_pow(inf, 0.1) == inf && elementary_pow(inf, -0.1) == 0.0);
	assert_true(elementary_pow(2.0, inf) == inf && elementary_pow(2.0, -inf) == 0.0);
	assert_true(elementary_pow(0.5, inf) == 0.0 && elementary_pow(0.5, -inf) == inf);
	assert_true(elementary_pow(1.0 + 0x1p-52, 1e300) == inf);
	assert_true(elementary_pow(1.0 - 0x1p-53, 1e300) == 0.0);
	assert_true(elementary_pow(0.5, 1074.0) == 0x1p-1074 && elementary_pow(0.5, 1076.0) == 0.0);
}

/* Arguments of exact operations alone. */
static double argument(struct rng *rng)
{
	const double share = (double)rng_u32(rng) * 0x1p-32 + (double)rng_u32(rng) * 0x1p-64;

	return ldexp(share, (int)rng_below(rng, 24) - 12);
}

static void test_bytes_are_the_same_everywhere(void **state)
{
	static double results[BYTES_OF];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		struct rng rng;
		uint64_t bytes;

		rng_init(&rng, 17, 0, i, 0);
		for (size_t j = 0; j < BYTES_OF; j++) {
			const double x = argument(&rng), y = argument(&rng);

			results[j] = functions[i].of(x, y);
		}
		bytes = XXH3_64bits(results, sizeof(results));
		if (bytes != functions[i].bytes)
			fail_msg("%s: 0x%016llx", functions[i].name, (unsigned long long)bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors_are_as_small_as_said),
		cmocka_unit_test(test_exact_values_are_exact),
		cmocka_unit_test(test_limits_and_what_is_no_number),
		cmocka_unit_test(test_bytes_are_the_same_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
