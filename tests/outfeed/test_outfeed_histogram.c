/*
 * The histogram against frexp(), in every variant, and its borders.
 */
#include "support/floats.h"
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_stats.h"
#include "outfeed/outfeed_kernel.h"

static int plain_bin(float x)
{
	int exponent;

	if (isnan(x))
		return 257;
	if (x == 0)
		return 0;
	if (isinf(x))
		return x > 0 ? 256 : -256;
	frexpf(x, &exponent); /* |x| = [0.5, 1) 2^exponent */
	if (exponent < -125)
		exponent = -126;
	return x > 0 ? exponent + 127 : -(exponent + 127);
}

static void check_array(const float *values, size_t count)
{
	struct outfeed_histogram expected = {{0}}, got;

	for (size_t i = 0; i < count; i++)
		expected.count[plain_bin(values[i]) - OUTFEED_BIN_LEAST]++;
	for (int v = 0; outfeed_kernel_at(v); v++) {
		if (!outfeed_kernel_use(v))
			continue;
		memset(&got, 0, sizeof(got));
		outfeed_histogram_add(&got, values, count);
		assert_memory_equal(&got, &expected, sizeof(got));
	}
}

static void test_every_variant_agrees_with_frexp(void **state)
{
	static const size_t long_ones[] = {1023, 4096, 4097, FLOATS_LONGEST};

	(void)state;
	floats_each_kind(check_array, 3, long_ones, ARRAY_LEN(long_ones));
}

/* Whatever the distance from a cache line, and the length. */
static void test_every_alignment_of_a_float_gives_the_same(void **state)
{
	(void)state;
	floats_each_alignment(check_array, 22);
}

static void test_every_value_is_between_the_borders_of_its_bin(void **state)
{
	static const float values[] = {
		1,        -1, 1.5f,    0.75f, FLT_MAX, FLT_MIN, 1e-45f, -1e-45f, 0x1.fffffcp-127f,
		-FLT_MIN, -3, -FLT_MAX};
	double low, high;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		struct outfeed_histogram one = {{0}};
		double x = (double)values[i];
		int bin = OUTFEED_BIN_LEAST;

		outfeed_histogram_add(&one, &values[i], 1);
		while (one.count[bin - OUTFEED_BIN_LEAST] == 0)
			bin++;
		outfeed_histogram_range(bin, &low, &high);
		assert_true(x > 0 ? low <= x && x < high : low < x && x <= high);
	}
}

static void test_bins_without_a_range_say_so(void **state)
{
	double low, high;

	(void)state;
	outfeed_histogram_range(0, &low, &high);
	assert_true(low == 0 && high == 0);
	outfeed_histogram_range(-256, &low, &high);
	assert_true(low == (double)-INFINITY && high == (double)-INFINITY);
	outfeed_histogram_range(256, &low, &high);
	assert_true(low == (double)INFINITY && high == (double)INFINITY);
	outfeed_histogram_range(257, &low, &high);
	assert_true(isnan(low) && isnan(high));
	outfeed_histogram_range(-1, &low, &high);
	assert_true(low == (double)-FLT_MIN && high == 0 && !signbit(high));
	outfeed_histogram_range(255, &low, &high);
	assert_true(low == 0x1p127 && high == 0x1p128);
}

static void test_merging_is_adding(void **state)
{
	struct outfeed_histogram whole = {{0}}, left = {{0}}, right = {{0}};
	float values[1000];
	struct rng rng;

	(void)state;
	rng_init(&rng, 4, 4, 0, 0);
	floats_fill(FLOATS_MIXTURE, values, 1000, &rng);
	outfeed_histogram_add(&whole, values, 1000);
	outfeed_histogram_add(&left, values, 333);
	outfeed_histogram_add(&right, values + 333, 667);
	outfeed_histogram_merge(&left, &right);
	assert_memory_equal(&left, &whole, sizeof(whole));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_variant_agrees_with_frexp),
		cmocka_unit_test(test_every_alignment_of_a_float_gives_the_same),
		cmocka_unit_test(test_every_value_is_between_the_borders_of_its_bin),
		cmocka_unit_test(test_bins_without_a_range_say_so),
		cmocka_unit_test(test_merging_is_adding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
