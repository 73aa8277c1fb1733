/*
 * Linear and logarithmic axes: which one numbers get, and that all of them have a place on it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "support/support.h"
#include "reports/table/report_axis.h"

static struct report_axis axis_of(const double *values, int64_t count, enum report_scale scale)
{
	struct report_axis axis = {.quantity = REPORT_REAL};
	struct report_spread spread = {0};

	report_axis_begin(&axis);
	report_axis_include(&axis, values, count);
	report_spread_include(&spread, values, count);
	report_axis_scale(&axis, &spread, scale);
	report_axis_finish(&axis);
	return axis;
}

static void assert_ticks(const struct report_axis *axis, int most, const char *expected)
{
	double ticks[REPORT_AXIS_TICKS];
	const int count = report_axis_ticks(axis, most, ticks);
	char text[FMT_SIZE], all[512] = "";

	for (int i = 0; i < count; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " " : "",
			 report_axis_text(axis, ticks[i], text));
	assert_string_equal(all, expected);
}

/* From the least to the greatest each one is higher up, and none is left out. */
static void assert_all_have_a_place(const struct report_axis *axis, const double *rising,
				    int64_t count)
{
	double before = -1;

	for (int64_t i = 0; i < count; i++) {
		const double part = report_axis_part(axis, rising[i]);

		assert_true(part > before && part >= 0 && part <= 1);
		before = part;
	}
}

#define AXIS(values, scale) axis_of(values, ARRAY_LEN(values), scale)

static void test_numbers_far_apart_are_logarithmic(void **state)
{
	static const double near[] = {0.25, 1, 2.4e5}, far[] = {0.19, 1.5, 1e9};
	static const double zeros[] = {0, 0, 1, 10}, far_and_zero[] = {0, 0.001, 1e9};
	/* About 0 there is always a small one. */
	static const double about[] = {-2, -1, 1e-9, 0.5, 3}, burst[] = {-2, -1, -1, 0.5, 3e9};

	(void)state;
	assert_false(AXIS(near, REPORT_SCALE_BY_SPREAD).logarithmic);
	assert_true(AXIS(far, REPORT_SCALE_BY_SPREAD).logarithmic);
	assert_string_equal(AXIS(far, REPORT_SCALE_BY_SPREAD).title, "log");
	assert_false(AXIS(zeros, REPORT_SCALE_BY_SPREAD).logarithmic);
	assert_true(AXIS(far_and_zero, REPORT_SCALE_BY_SPREAD).logarithmic);
	assert_false(AXIS(about, REPORT_SCALE_BY_SPREAD).logarithmic);
	assert_true(AXIS(burst, REPORT_SCALE_BY_SPREAD).logarithmic);
	assert_false(AXIS(far, REPORT_SCALE_LINEAR).logarithmic);
	assert_null(AXIS(far, REPORT_SCALE_LINEAR).title);
	assert_true(AXIS(near, REPORT_SCALE_LOGARITHMIC).logarithmic);
}

static void test_ticks_are_powers_of_ten(void **state)
{
	static const double far[] = {0.19, 1.5, 1e9}, near[] = {0.24, 2.4};
	static const double up_to_a_power[] = {20, 100};
	static const double both[] = {-3000, -0.5, 0, 0.5, 1e5};
	struct report_axis axis = AXIS(far, REPORT_SCALE_LOGARITHMIC);

	(void)state;
	assert_ticks(&axis, 4, "1 1000 1e+06 1e+09");
	assert_all_have_a_place(&axis, far, ARRAY_LEN(far));
	axis = AXIS(near, REPORT_SCALE_LOGARITHMIC);
	assert_ticks(&axis, 6, "0.5 1 2");
	axis = AXIS(up_to_a_power, REPORT_SCALE_LOGARITHMIC);
	assert_ticks(&axis, 6, "20 50 100");
	axis = AXIS(both, REPORT_SCALE_LOGARITHMIC);
	assert_true(axis.linear == 0.1);
	assert_ticks(&axis, 20, "-1000 -100 -10 -1 -0.1 0 0.1 1 10 100 1000 1e+04 1e+05");
	assert_ticks(&axis, 5, "-10 0 10 1e+04");
	assert_all_have_a_place(&axis, both, ARRAY_LEN(both));
}

static void test_zeros_and_negative_numbers_have_a_place(void **state)
{
	static const double zeros[] = {0, 0.001, 0.5, 1e9}, below[] = {-1e9, -0.5, -0.002};
	static const double exploding[] = {0, 0.014, 7e4, 3e16, 1e18};
	static const double tiny[] = {-1e300, -1e-300, 0, 1e-300, 1e300};
	struct report_axis axis = AXIS(zeros, REPORT_SCALE_BY_SPREAD);
	char text[REPORT_SCALE_TEXT];

	(void)state;
	assert_all_have_a_place(&axis, zeros, ARRAY_LEN(zeros));
	assert_string_equal(report_scale_text(&axis, text), ", log axis, linear up to 0.0001");
	/* As wide as it may be, nothing but 0 is in the row of 0. */
	axis = AXIS(exploding, REPORT_SCALE_BY_SPREAD);
	assert_all_have_a_place(&axis, exploding, ARRAY_LEN(exploding));
	assert_true(report_axis_part(&axis, 0) == 0 && report_axis_part(&axis, 0.014) > 1.0 / 8);
	assert_true(report_axis_part(&axis, 7e4) > 0.3 && report_axis_part(&axis, 3e16) > 0.8);
	axis = AXIS(below, REPORT_SCALE_BY_SPREAD);
	assert_all_have_a_place(&axis, below, ARRAY_LEN(below));
	axis = AXIS(tiny, REPORT_SCALE_BY_SPREAD);
	assert_true(axis.linear == 1e-300);
	assert_true(report_axis_part(&axis, 0) == 0.5);
	assert_true(report_axis_part(&axis, -1e300) == 0 && report_axis_part(&axis, 1e300) == 1);
	assert_true(isnan(report_axis_part(&axis, NAN)));
}

static void test_what_is_no_number_and_nothing_stay_as_they_were(void **state)
{
	static const double none[] = {NAN, INFINITY}, zero[] = {0, 0}, one[] = {NAN, 5, -INFINITY};
	struct report_axis axis = AXIS(none, REPORT_SCALE_LOGARITHMIC);
	struct report_spread spread = {0};
	enum report_scale scale = REPORT_SCALE_BY_SPREAD;
	char text[REPORT_SCALE_TEXT];

	(void)state;
	assert_false(axis.logarithmic);
	assert_string_equal(report_scale_text(&axis, text), "");
	assert_true(axis.low == 0 && axis.high == 1);
	axis = AXIS(zero, REPORT_SCALE_LOGARITHMIC);
	assert_false(axis.logarithmic);
	assert_contains(report_scale_turn(&scale, &axis, &spread), "stays linear");
	assert_int_equal(scale, REPORT_SCALE_BY_SPREAD);
	axis = AXIS(one, REPORT_SCALE_LOGARITHMIC);
	assert_true(axis.logarithmic && axis.low > 0 && axis.low < 5 && axis.high > 5);
}

/* What moves little has ticks that differ all the same. */
static void test_ticks_of_a_narrow_range_are_told_apart(void **state)
{
	static const double ends[][2] = {
		{0.80001, 0.80005}, {-1234567.5, -1234567}, {5, 5.0000001}, {0, 1}, {0.1, 1e9}};
	static const enum report_quantity kinds[] = {REPORT_REAL, REPORT_FRACTION};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(ends); i++) {
		const struct report_axis axis = {
			.low = ends[i / 2][0], .high = ends[i / 2][1], .quantity = kinds[i % 2]};
		char text[2][FMT_SIZE] = {"", ""};
		double ticks[REPORT_AXIS_TICKS];
		const int count = report_axis_ticks(&axis, 6, ticks);

		assert_true(count > 1);
		for (int t = 0; t < count; t++) {
			report_axis_text(&axis, ticks[t], text[t % 2]);
			assert_string_not_equal(text[0], text[1]);
		}
	}
}

/* Ends that no numbers give, but a caller may. */
static void test_axes_from_0_and_of_all_numbers_have_ticks(void **state)
{
	const struct report_axis from_0 = {
		.high = 10, .quantity = REPORT_REAL, .logarithmic = true};
	const struct report_axis small = {
		.high = 0.5, .linear = 1, .quantity = REPORT_REAL, .logarithmic = true};
	const struct report_axis all = {
		.low = -1.79e308, .high = 1.79e308, .quantity = REPORT_REAL};
	const struct report_axis narrow = {
		.low = 0.5, .high = 0.5000001, .quantity = REPORT_FRACTION};
	char text[FMT_SIZE];

	(void)state;
	assert_close(report_axis_part(&from_0, 5), 0.5, 1e-15);
	assert_ticks(&from_0, 6, "0 2 4 6 8 10");
	assert_ticks(&small, 6, "0 0.1 0.2 0.3 0.4 0.5");
	/* With two ticks the step overflows. */
	assert_ticks(&all, 2, "");
	assert_ticks(&all, 20,
		     "-1.6e+308 -1.4e+308 -1.2e+308 -1e+308 -8e+307 -6e+307 -4e+307 -2e+307 0 "
		     "2e+307 4e+307 6e+307 8e+307 1e+308 1.2e+308 1.4e+308 1.6e+308");
	/* The ends are 5,000,000 times the range: nine digits tell ticks apart. */
	assert_string_equal(report_axis_text(&narrow, 0.500000041, text), "50.0000041 %");
}

/* Turned twice it is as it was: by the spread, for the next curve too. */
static void test_turning_twice_is_as_before(void **state)
{
	static const double near[] = {1, 2}, far[] = {1, 1e9};
	enum report_scale scale = REPORT_SCALE_BY_SPREAD;

	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		const double *values = wide ? far : near;
		struct report_spread spread = {0};
		struct report_axis axis = axis_of(values, 2, scale);

		report_spread_include(&spread, values, 2);
		assert_true(axis.logarithmic == (wide == 1));
		report_scale_turn(&scale, &axis, &spread);
		axis = axis_of(values, 2, scale);
		assert_true(axis.logarithmic == (wide == 0));
		report_scale_turn(&scale, &axis, &spread);
		assert_int_equal(scale, REPORT_SCALE_BY_SPREAD);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_far_apart_are_logarithmic),
		cmocka_unit_test(test_ticks_are_powers_of_ten),
		cmocka_unit_test(test_zeros_and_negative_numbers_have_a_place),
		cmocka_unit_test(test_what_is_no_number_and_nothing_stay_as_they_were),
		cmocka_unit_test(test_ticks_of_a_narrow_range_are_told_apart),
		cmocka_unit_test(test_axes_from_0_and_of_all_numbers_have_ticks),
		cmocka_unit_test(test_turning_twice_is_as_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
