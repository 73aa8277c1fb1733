/*
 * Rounding through half precision: all halves, their neighbours and the ties between them, random
 * floats, against a search among all values that half has; the same bits from every body.
 */
#include "trainer/kernels/kernel_vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/math.h"

#define FINITE 0x7c00u /* halves from 0 to infinity, which is this one */
#define RANDOM 2000000
#define BODIES 3

static double values[FINITE + 1]; /* by bit pattern; infinity stands as the next step would */

static float float_of(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static int setup(void **state)
{
	(void)state;
	for (uint32_t h = 0; h <= FINITE; h++) {
		int exponent = (int)(h >> 10), mantissa = (int)(h & 1023);

		values[h] = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
	}
	return 0;
}

/* By the definition: the nearest; between two, the one whose bit pattern is even. */
static uint32_t expected(float x)
{
	const uint32_t sign = bits_of(x) & 0x80000000u;
	const double magnitude = fabs((double)x);
	uint32_t low = 0, high = FINITE;

	if (isnan(x))
		return (bits_of(x) | 0x00400000u) & 0xffffe000u;
	if (magnitude >= values[FINITE])
		return sign | bits_of(INFINITY);
	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (values[middle] <= magnitude)
			low = middle;
		else
			high = middle;
	}
	if (magnitude - values[low] > values[high] - magnitude ||
	    (!(magnitude - values[low] < values[high] - magnitude) && (low & 1)))
		low = high;
	return sign | bits_of(low == FINITE ? INFINITY : (float)values[low]);
}

/* By every body there is. */
static void check(const float *x, size_t count)
{
	float *y = malloc(count * sizeof(*y));

	assert_non_null(y);
	for (int body = 0; kernel_half_body(body); body++) {
		if (!kernel_half_use(body))
			continue;
		memset(y, 0x55, count * sizeof(*y));
		kernel_round_half(y, x, count);
		for (size_t i = 0; i < count; i++)
			if (bits_of(y[i]) != expected(x[i]))
				fail_msg("%s: %a (%08x) becomes %a (%08x), not %08x",
					 kernel_half_body(body), (double)x[i], bits_of(x[i]),
					 (double)y[i], bits_of(y[i]), expected(x[i]));
	}
	free(y);
	kernel_half_use(0);
}

static void test_every_half_its_neighbours_and_the_ties(void **state)
{
	const size_t most = 12 * (size_t)(FINITE + 1);
	float *x = malloc(most * sizeof(*x));
	size_t count = 0;

	(void)state;
	assert_non_null(x);
	for (uint32_t h = 0; h <= FINITE; h++) {
		const float at = (float)values[h];
		const float tie =
			(float)(h < FINITE ? (values[h] + values[h + 1]) / 2.0 : values[h] * 1.5);
		const float near[] = {nextafterf(at, 0.0f),  at,  nextafterf(at, INFINITY),
				      nextafterf(tie, 0.0f), tie, nextafterf(tie, INFINITY)};

		for (size_t i = 0; i < ARRAY_LEN(near); i++) {
			x[count++] = near[i];
			x[count++] = -near[i];
		}
	}
	assert_int_equal(count, most);
	check(x, count);
	free(x);
}

static void test_worked_by_hand(void **state)
{
	static const float pairs[][2] = {
		{1.0f, 1.0f},
		{1.00048828125f, 1.0f},         /* a tie: 1 is even */
		{1.00146484375f, 1.001953125f}, /* a tie: 1 + 2/1024 is */
		{0.1f, 0.0999755859375f},
		{65504.0f, 65504.0f},
		{65519.996f, 65504.0f},
		{65520.0f, INFINITY},
		{-1e30f, -INFINITY},
		{0x1p-24f, 0x1p-24f},
		{0x1p-25f, 0.0f},             /* a tie: 0 is even */
		{0x1.8p-24f, 0x1p-23f},       /* a tie */
		{0x1.ff8p-15f, 0x1.ff8p-15f}, /* the greatest below the normal ones: exact */
		{0x1.ffcp-15f, 0x1p-14f},
		{-0.0f, -0.0f},
		{-0x1p-149f, -0.0f},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		float y;

		kernel_round_half(&y, &pairs[i][0], 1);
		assert_int_equal(bits_of(y), bits_of(pairs[i][1]));
		check(&pairs[i][0], 1);
	}
}

static void test_nan_and_infinity_stay(void **state)
{
	const float x[] = {INFINITY,
			   -INFINITY,
			   NAN,
			   -NAN,
			   float_of(0x7f800001u),
			   float_of(0xff801fffu),
			   float_of(0x7fabcdefu),
			   float_of(0xffffffffu),
			   float_of(0x7f802000u)};
	float many[ARRAY_LEN(x) * 4], y;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = x[i % ARRAY_LEN(x)];
	check(many, ARRAY_LEN(many));
	kernel_round_half(&y, &x[4], 1);
	assert_true(isnan(y));
}

static void test_random_floats(void **state)
{
	float *x = malloc(RANDOM * sizeof(*x));
	uint64_t random = 88172645463325252u;

	(void)state;
	assert_non_null(x);
	for (size_t i = 0; i < RANDOM; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		x[i] = float_of((uint32_t)(random >> 32));
	}
	check(x, RANDOM);
	free(x);
}

static void test_every_length_and_in_place(void **state)
{
	float x[67], y[68];

	(void)state;
	for (size_t n = 0; n <= ARRAY_LEN(x); n++) {
		for (int body = 0; body < BODIES; body++) {
			if (!kernel_half_use(body))
				continue;
			math_fill(x, ARRAY_LEN(x), 3, -2.0f, 2.0f);
			memset(y, 0x55, sizeof(y));
			kernel_round_half(y + 1, x, n);
			for (size_t i = 0; i < n; i++)
				assert_int_equal(bits_of(y[i + 1]), expected(x[i]));
			assert_int_equal(bits_of(y[0]), 0x55555555);
			for (size_t i = n + 1; i < ARRAY_LEN(y); i++)
				assert_int_equal(bits_of(y[i]), 0x55555555);
			kernel_round_half(x, x, n);
			assert_memory_equal(x, y + 1, n * sizeof(float));
		}
	}
	assert_false(kernel_half_use(-1));
	kernel_half_use(0);
}

/* By the definition: the nearest of the two around it; of a tie, the one whose bits are even. */
static void test_bfloat16(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (int i = 0; i < RANDOM; i++) {
		uint32_t low, high, want;
		float x, y;

		seed = seed * 1664525u + 1013904223u;
		/* Every fourth a tie. */
		x = float_of(i % 4 ? seed ^ seed >> 13 : (seed & 0xffff0000u) | 0x8000u);
		kernel_round_bfloat16(&y, &x, 1);
		low = bits_of(x) & 0xffff0000u;
		high = low + 0x10000u;
		if (isnan(x)) {
			assert_true(isnan(y) && (bits_of(y) & 0xffffu) == 0);
			continue;
		}
		want = bits_of(x) - low < high - bits_of(x) ? low : high;
		if (bits_of(x) - low == high - bits_of(x))
			want = low & 0x10000u ? high : low;
		assert_int_equal(bits_of(y), want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bfloat16),
		cmocka_unit_test(test_every_half_its_neighbours_and_the_ties),
		cmocka_unit_test(test_worked_by_hand),
		cmocka_unit_test(test_nan_and_infinity_stay),
		cmocka_unit_test(test_random_floats),
		cmocka_unit_test(test_every_length_and_in_place),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
