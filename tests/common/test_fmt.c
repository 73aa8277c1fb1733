/*
 * Numbers as people read them, by tables.
 */
#include "common/fmt.h"

#include <math.h>

#include "common/mem.h"
#include "support/support.h"

static void test_count_groups_by_three(void **state)
{
	static const struct {
		int64_t value;
		const char *text;
	} rows[] = {
		{0, "0"},
		{7, "7"},
		{-7, "-7"},
		{999, "999"},
		{1000, "1,000"},
		{-1000, "-1,000"},
		{1234567, "1,234,567"},
		{-123456, "-123,456"},
		{INT64_MAX, "9,223,372,036,854,775,807"},
		{INT64_MIN, "-9,223,372,036,854,775,808"},
	};
	char out[FMT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(fmt_count(out, rows[i].value), rows[i].text);
}

static void test_bytes_use_units_of_1024(void **state)
{
	static const struct {
		uint64_t value;
		const char *text;
	} rows[] = {
		{0, "0 B"},
		{1, "1 B"},
		{1023, "1023 B"},
		{1024, "1 kB"},
		{624 * 1024, "624 kB"},
		{1536 * 1024, "1.5 MB"},
		{1010 * 1024, "1010 kB"},
		{1024 * 1024 - 1, "1 MB"},
		{(uint64_t)900 * 1024 * 1024, "900 MB"},
		{(uint64_t)3 << 40, "3 TB"},
		{UINT64_MAX, "16 EB"},
	};
	char out[FMT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(fmt_bytes(out, rows[i].value), rows[i].text);
}

static void test_ns_have_three_digits_and_a_unit(void **state)
{
	static const struct {
		int64_t value;
		const char *text;
	} rows[] = {
		{0, "0 ns"},
		{640, "640 ns"},
		{999, "999 ns"},
		{1000, "1 us"},
		{2410, "2.41 us"},
		{37100000, "37.1 ms"},
		{999499, "999 us"},
		{999600, "1 ms"},
		{INT64_C(4200000000), "4.2 s"},
		{INT64_C(100000000), "100 ms"},
		{INT64_C(59000000000), "59 s"},
		{INT64_C(1234000000000), "1,234 s"},
		{-2410, "-2.41 us"},
		{9995, "10 us"},
		{99960, "100 us"},
		{INT64_MIN, "-9,223,372,037 s"},
		{INT64_MAX, "9,223,372,037 s"},
	};
	char out[FMT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(fmt_ns(out, rows[i].value), rows[i].text);
}

static void test_percent_has_two_decimals(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
		{3.0 / 7, "42.86 %"}, {0, "0.00 %"},    {1, "100.00 %"},  {-0.5, "-50.00 %"},
		{NAN, "-"},           {INFINITY, "-"},  {-INFINITY, "-"}, {1e300, "1e+302 %"},
		{-3e-5, "0.00 %"},    {-0.0, "0.00 %"}, {6e-5, "0.01 %"}, {-6e-5, "-0.01 %"},
	};
	char out[FMT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(fmt_percent(out, rows[i].value), rows[i].text);
}

static void test_flops_have_three_digits(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
		{0, "0 FLOP/s"},
		{999.4, "999 FLOP/s"},
		{62.65e12, "62.6 TFLOP/s"},
		{999.6e9, "1 TFLOP/s"},
		{1.5e21, "1500 EFLOP/s"},
		{-1, "-"},
		{NAN, "-"},
		{INFINITY, "-"},
	};
	char out[FMT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(fmt_flops(out, rows[i].value), rows[i].text);
}

static void test_real_has_six_digits(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
		{0, "0"},
		{0.1, "0.1"},
		{1.0 / 3, "0.333333"},
		{1234567, "1.23457e+06"},
		{-2.5, "-2.5"},
		{NAN, "nan"},
		{-NAN, "nan"},
		{INFINITY, "inf"},
		{-INFINITY, "-inf"},
		{1e-300, "1e-300"},
	};
	char out[FMT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(fmt_real(out, rows[i].value), rows[i].text);
}

static void test_a_share_is_whole_percent(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
		{0, "0 %"},     {1, "100 %"}, {0.494, "49 %"}, {0.496, "50 %"},  {-0.25, "-25 %"},
		{12, "1200 %"}, {NAN, "-"},   {INFINITY, "-"}, {-INFINITY, "-"},
	};
	char out[FMT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(fmt_share(out, rows[i].value), rows[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count_groups_by_three),
		cmocka_unit_test(test_bytes_use_units_of_1024),
		cmocka_unit_test(test_ns_have_three_digits_and_a_unit),
		cmocka_unit_test(test_percent_has_two_decimals),
		cmocka_unit_test(test_flops_have_three_digits),
		cmocka_unit_test(test_real_has_six_digits),
		cmocka_unit_test(test_a_share_is_whole_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
