/*
 * Scans against the plainest loops, in every variant, on arrays that break things.
 */
#include "support/floats.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_kernel.h"
#include "outfeed/outfeed_stats.h"

static uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static uint32_t plain_abs_max(const float *values, size_t count)
{
	uint32_t most = 0;

	for (size_t i = 0; i < count; i++) {
		if ((bits_of(values[i]) & 0x7fffffff) > most)
			most = bits_of(values[i]) & 0x7fffffff;
	}
	return most;
}

static void plain_counts(struct outfeed_stats *out, const float *values, size_t count)
{
	outfeed_stats_init(out);
	for (size_t i = 0; i < count; i++) {
		float x = values[i];

		out->n++;
		out->n_nan += isnan(x) ? 1 : 0;
		out->n_pos_inf += x == INFINITY;
		out->n_neg_inf += x == -INFINITY;
		out->n_zero += x == 0;
		out->n_neg += x < 0;
		out->n_pos += x > 0;
	}
}

static size_t plain_first(const float *values, size_t count)
{
	size_t at = 0;

	while (at < count && isfinite(values[at]))
		at++;
	return at;
}

static void check_array(const float *values, size_t count)
{
	struct outfeed_stats expected, got;

	plain_counts(&expected, values, count);
	for (int v = 0; outfeed_kernel_at(v); v++) {
		if (!outfeed_kernel_use(v))
			continue;
		assert_int_equal(outfeed_scan_abs_max(values, count), plain_abs_max(values, count));
		assert_int_equal(outfeed_scan_first_nonfinite(values, count),
				 plain_first(values, count));
		outfeed_scan_counts(&got, values, count);
		assert_memory_equal(&got, &expected, sizeof(got));
	}
}

static void test_every_variant_agrees_with_plain_loops(void **state)
{
	static const size_t long_ones[] = {511, 512, 513, 4095, 4096, 4097, FLOATS_LONGEST};

	(void)state;
	floats_each_kind(check_array, 2, long_ones, ARRAY_LEN(long_ones));
}

/* Whatever the distance from a cache line, and the length. */
static void test_every_alignment_of_a_float_gives_the_same(void **state)
{
	(void)state;
	floats_each_alignment(check_array, 21);
}

/* Wherever it stands, and only values before the end count. */
static void test_a_single_bad_value_is_found_everywhere(void **state)
{
	float memory[1200] = {0};

	(void)state;
	for (size_t offset = 0; offset < 16; offset++) {
		float *values = memory + offset;

		for (size_t at = 0; at < 1100; at += 1 + at / 90) {
			values[at] = at % 2 ? NAN : -INFINITY;
			check_array(values, 1100);
			check_array(values, at);
			check_array(values, at + 1);
			values[at] = 0;
		}
	}
}

/* ---- halves ---------------------------------------------------------------------------------- */

static float plain_half(uint16_t half)
{
	int exponent = half >> 10 & 31, mantissa = half & 1023;
	float x;

	if (exponent == 31)
		x = mantissa != 0 ? NAN : INFINITY;
	else if (exponent == 0)
		x = ldexpf((float)mantissa, -24);
	else
		x = ldexpf((float)(1024 + mantissa), exponent - 25);
	return half & 0x8000 ? -x : x;
}

static void check_half(uint16_t half, float wide)
{
	if ((half & 0x7fff) > 0x7c00) {
		/* Quiet; sign and payload stay. */
		assert_int_equal(bits_of(wide), (uint32_t)(half & 0x8000) << 16 | 0x7fc00000u |
							(uint32_t)(half & 0x3ff) << 13);
		return;
	}
	assert_int_equal(bits_of(wide), bits_of(plain_half(half)));
}

static void test_all_65536_halves_are_widened_exactly(void **state)
{
	static uint16_t halves[65536];
	static float wide[65536];

	(void)state;
	for (size_t i = 0; i < 65536; i++)
		halves[i] = (uint16_t)i;
	for (int v = 0; outfeed_kernel_at(v); v++) {
		if (!outfeed_kernel_use(v))
			continue;
		memset(wide, 0, sizeof(wide));
		outfeed_scan_widen(wide, halves, 65536);
		for (size_t i = 0; i < 65536; i++)
			check_half(halves[i], wide[i]);
	}
}

static void test_widening_writes_no_more_than_it_was_asked_to(void **state)
{
	uint16_t halves[300];
	float wide[300];

	(void)state;
	for (size_t i = 0; i < 300; i++)
		halves[i] = (uint16_t)(i * 219);
	for (int v = 0; outfeed_kernel_at(v); v++) {
		if (!outfeed_kernel_use(v))
			continue;
		for (size_t count = 0; count <= 257; count++) {
			size_t offset = count % 16;

			memset(wide, 0x55, sizeof(wide));
			outfeed_scan_widen(wide + offset, halves + (count + 3) % 16, count);
			for (size_t i = 0; i < count; i++)
				check_half(halves[(count + 3) % 16 + i], wide[offset + i]);
			assert_int_equal(bits_of(wide[offset + count]), 0x55555555);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_variant_agrees_with_plain_loops),
		cmocka_unit_test(test_every_alignment_of_a_float_gives_the_same),
		cmocka_unit_test(test_a_single_bad_value_is_found_everywhere),
		cmocka_unit_test(test_all_65536_halves_are_widened_exactly),
		cmocka_unit_test(test_widening_writes_no_more_than_it_was_asked_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
