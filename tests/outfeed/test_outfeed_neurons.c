/*
 * Active cases by neuron, in every variant, and which values the bounds let in.
 */
#include "support/floats.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_kernel.h"
#include "outfeed/outfeed_stats.h"

#define MOST 20000

static bool plain_active(enum outfeed_activity activity, float x)
{
	double low = 1 / (1 + exp(23)), high = 1 / (1 + exp(-16.99999));

	if (activity == OUTFEED_RELU)
		return x > 0;
	if (activity == OUTFEED_TANH)
		return fabsf(x) < (float)tanh(9.4999);
	return x > (float)low && x < (float)high;
}

static void check_array(enum outfeed_activity activity, const float *values, size_t cases,
			size_t neurons)
{
	uint32_t expected[600], got[601];

	memset(expected, 0, sizeof(expected));
	for (size_t i = 0; i < cases * neurons; i++)
		expected[i % neurons] += plain_active(activity, values[i]);
	for (int v = 0; outfeed_kernel_at(v); v++) {
		if (!outfeed_kernel_use(v))
			continue;
		/* Added to what is there, and nothing beyond the last is touched. */
		for (size_t i = 0; i <= neurons; i++)
			got[i] = 1000;
		outfeed_neurons_add(got, activity, values, cases, neurons);
		assert_int_equal(got[neurons], 1000);
		for (size_t i = 0; i < neurons; i++)
			assert_int_equal(got[i], expected[i] + 1000);
	}
}

static void test_every_variant_agrees_with_plain_loops_on_every_shape(void **state)
{
	static const size_t cases[] = {0, 1, 2, 7, 16, 33};
	float *memory = mem_aligned(MOST + 16, sizeof(float));
	struct rng rng;

	(void)state;
	assert_non_null(memory);
	rng_init(&rng, 5, 5, 0, 0);
	for (int activity = OUTFEED_RELU; activity < OUTFEED_ACTIVITIES; activity++) {
		for (size_t neurons = 1; neurons <= 600; neurons += 1 + neurons / 20) {
			size_t rows = cases[neurons % ARRAY_LEN(cases)];
			float *values = memory + neurons % 16;

			floats_fill((int)(neurons % FLOATS_KINDS), values, rows * neurons, &rng);
			check_array((enum outfeed_activity)activity, values, rows, neurons);
		}
	}
	mem_free(memory);
}

/* Few neurons and many cases, as in a last layer. */
static void test_narrow_tensors_are_counted_alike(void **state)
{
	float *memory = mem_aligned(MOST + 16, sizeof(float));
	struct rng rng;

	(void)state;
	assert_non_null(memory);
	rng_init(&rng, 6, 6, 0, 0);
	floats_fill(FLOATS_MIXTURE, memory, MOST + 16, &rng);
	for (size_t neurons = 1; neurons <= 40; neurons++) {
		check_array(OUTFEED_RELU, memory + neurons % 16, MOST / neurons, neurons);
		check_array(OUTFEED_TANH, memory + 1, MOST / neurons - 1, neurons);
	}
	mem_free(memory);
}

static uint32_t active_of(enum outfeed_activity activity, float x)
{
	uint32_t active = 0;

	outfeed_neurons_add(&active, activity, &x, 1, 1);
	return active;
}

static void test_bounds_are_those_of_the_header(void **state)
{
	float high = (float)(1 / (1 + exp(-16.99999))), low = (float)(1 / (1 + exp(23)));

	(void)state;
	assert_true((float)tanh(9.4999) == 1);
	assert_int_equal(active_of(OUTFEED_TANH, 1), 0);
	assert_int_equal(active_of(OUTFEED_TANH, -1), 0);
	assert_int_equal(active_of(OUTFEED_TANH, nextafterf(1, 0)), 1);
	assert_int_equal(active_of(OUTFEED_TANH, nextafterf(-1, 0)), 1);
	assert_true(high < 1 && high == nextafterf(1, 0));
	assert_int_equal(active_of(OUTFEED_SIGMOID, high), 0);
	assert_int_equal(active_of(OUTFEED_SIGMOID, nextafterf(high, 0)), 1);
	assert_int_equal(active_of(OUTFEED_SIGMOID, low), 0);
	assert_int_equal(active_of(OUTFEED_SIGMOID, nextafterf(low, 1)), 1);
	assert_int_equal(active_of(OUTFEED_RELU, 0), 0);
	assert_int_equal(active_of(OUTFEED_RELU, 1e-45f), 1);
	assert_int_equal(active_of(OUTFEED_RELU, INFINITY), 1);
	assert_int_equal(active_of(OUTFEED_RELU, NAN), 0);
	assert_int_equal(active_of(OUTFEED_TANH, NAN), 0);
}

static void test_a_neuron_is_inactive_below_one_case_in_a_hundred(void **state)
{
	static const uint32_t active[] = {0, 1, 2, 3, 200};

	(void)state;
	assert_close(outfeed_neurons_inactive(active, 200, 5), 0.4, 1e-15);
	assert_close(outfeed_neurons_inactive(active, 199, 5), 0.4, 1e-15);
	assert_close(outfeed_neurons_inactive(active, 201, 5), 0.6, 1e-15);
	assert_close(outfeed_neurons_inactive(active, 1, 1), 1, 0);
	assert_true(isnan(outfeed_neurons_inactive(active, 0, 5)));
	assert_true(isnan(outfeed_neurons_inactive(active, 5, 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_variant_agrees_with_plain_loops_on_every_shape),
		cmocka_unit_test(test_narrow_tensors_are_counted_alike),
		cmocka_unit_test(test_bounds_are_those_of_the_header),
		cmocka_unit_test(test_a_neuron_is_inactive_below_one_case_in_a_hundred),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
