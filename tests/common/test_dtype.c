/*
 * Types of tensor elements: each is found by its name, and a value of it is the number that it was.
 */
#include "support/support.h"

#include <math.h>
#include <string.h>

#include "common/dtype.h"
#include "common/mem.h"

static void test_each_type_is_found_by_its_name(void **state)
{
	(void)state;
	for (int i = 0; i < DTYPES; i++)
		assert_int_equal(dtype_find(dtype_name((enum dtype)i)), i);
	assert_int_equal(dtype_find("float"), DTYPES);
	assert_int_equal(dtype_find(""), DTYPES);
	assert_int_equal(dtype_find(NULL), DTYPES);
}

/* A number of each type in numpy's bytes, behind a byte that makes them unaligned. */
static const struct {
	const char *name, *npy;
	int size;
	unsigned char bytes[9];
	double value;
} numbers[] = {
	{"float32", "<f4", 4, {0, 0x00, 0x00, 0xc0, 0xbf}, -1.5},
	{"float16", "<f2", 2, {0, 0x00, 0xbe}, -1.5},
	{"bfloat16", "<V2", 2, {0, 0xc0, 0xbf}, -1.5},
	{"float64", "<f8", 8, {0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0xbf}, -1.5},
	{"int8", "|i1", 1, {0, 0x80}, -128},
	{"uint8", "|u1", 1, {0, 0x80}, 128},
	{"int16", "<i2", 2, {0, 0xfe, 0xff}, -2},
	{"int32", "<i4", 4, {0, 0xfe, 0xff, 0xff, 0xff}, -2},
	{"int64", "<i8", 8, {0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -2},
	{"bool", "|b1", 1, {0, 1}, 1},
};

static void test_a_value_is_the_number_that_it_was(void **state)
{
	(void)state;
	assert_int_equal(ARRAY_LEN(numbers), DTYPES);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		const enum dtype dtype = dtype_find(numbers[i].name);
		float value;

		assert_int_equal(dtype, i);
		assert_string_equal(dtype_npy(dtype), numbers[i].npy);
		assert_int_equal(dtype_bytes(dtype), numbers[i].size);
		assert_true(dtype_read(dtype, numbers[i].bytes + 1) == numbers[i].value);
		dtype_to_float(dtype, &value, numbers[i].bytes + 1, 1);
		assert_true((double)value == numbers[i].value);
	}
}

static void test_what_a_float_cannot_hold_stays_finite(void **state)
{
	const double doubles[] = {1e300, -1e300, 1e-300, -1e-300, (double)INFINITY, (double)NAN};
	float values[ARRAY_LEN(doubles)];

	(void)state;
	dtype_to_float(DTYPE_FLOAT64, values, doubles, ARRAY_LEN(doubles));
	assert_true(isfinite(values[0]) && values[0] > 3e38f);
	assert_true(isfinite(values[1]) && values[1] < -3e38f);
	assert_true(values[2] > 0 && values[2] < 1e-38f);
	assert_true(values[3] < 0 && values[3] > -1e-38f);
	assert_true(isinf(values[4]) && values[4] > 0);
	assert_true(isnan(values[5]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_type_is_found_by_its_name),
		cmocka_unit_test(test_a_value_is_the_number_that_it_was),
		cmocka_unit_test(test_what_a_float_cannot_hold_stays_finite),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
