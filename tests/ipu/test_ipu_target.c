/*
 * The table of targets against the peaks that were published.
 */
#include "support/support.h"

#include <string.h>

#include "ipu/ipu_target.h"

static double peak_flops(const char *name, bool half)
{
	struct ipu_target target;
	struct err err;

	assert_int_equal(ipu_target_get(name, 0, &target, &err), ST_OK);
	return ipu_target_peak_flops_cycle(&target, half) * target.clock_hz;
}

static void test_constants_give_the_published_peaks(void **state)
{
	(void)state;
	assert_close(peak_flops("ipu1", false), 31.1e12, 0.005);
	assert_close(peak_flops("ipu2", false), 62.5e12, 0.005);
	assert_close(peak_flops("ipu21", false), 87e12, 0.005);
	assert_close(peak_flops("ipu1", true), 124.5e12, 0.005);
	assert_close(peak_flops("ipu2", true), 250e12, 0.005);
	assert_close(peak_flops("ipu21", true), 350e12, 0.005);
}

static void test_every_target_is_complete(void **state)
{
	struct ipu_target t;
	int count = 0;
	const char *const *names = ipu_target_names(&count);

	(void)state;
	assert_int_equal(count, 4);
	for (int i = 0; i < count; i++) {
		assert_int_equal(ipu_target_get(names[i], 0, &t, NULL), ST_OK);
		assert_string_equal(t.name, names[i]);
		assert_true(t.description && t.tiles > 0 && t.bytes_per_tile > 0 &&
			    t.clock_hz > 0 && t.phase_cycles > 0 && t.vector_bytes > 0 &&
			    t.exchange_bytes_cycle > 0 && t.sync_cycles > 0 &&
			    t.global_sync_cycles > 0 && t.link_bytes_second > 0 &&
			    t.host_bytes_second > 0 && t.execution_host_ns > 0);
	}
}

static void test_fewer_tiles_can_be_asked_for(void **state)
{
	struct ipu_target target;
	struct err err;

	(void)state;
	assert_int_equal(ipu_target_get("ipu2", 4, &target, &err), ST_OK);
	assert_int_equal(target.tiles, 4);
	assert_int_equal(ipu_target_get("ipu2", 1473, &target, &err), ST_INVALID);
	assert_string_equal(err.text, "1473 tiles per IPU: ipu2 has 1 to 1472 (0 for all of them)");
	assert_int_equal(ipu_target_get("ipu2", -1, &target, &err), ST_INVALID);
}

static void test_an_unknown_target_names_the_nearest(void **state)
{
	struct ipu_target target;
	struct err err;

	(void)state;
	assert_int_equal(ipu_target_get("ipu3", 0, &target, &err), ST_NOTFOUND);
	assert_contains(err.text, "unknown target \"ipu3\" (did you mean \"ipu");
	assert_int_equal(ipu_target_get("something else", 0, &target, &err), ST_NOTFOUND);
	assert_contains(err.text, "ipu1, ipu2, ipu21, c600");
}

static void test_ns_are_rounded_to_the_nearest(void **state)
{
	struct ipu_target target;

	(void)state;
	assert_int_equal(ipu_target_get("ipu1", 0, &target, NULL), ST_OK);
	assert_int_equal(ipu_target_ns(&target, 0), 0);
	assert_int_equal(ipu_target_ns(&target, 1), 1); /* 0.625 */
	assert_int_equal(ipu_target_ns(&target, 2), 1); /* 1.25 */
	assert_int_equal(ipu_target_ns(&target, 1600000000), 1000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants_give_the_published_peaks),
		cmocka_unit_test(test_every_target_is_complete),
		cmocka_unit_test(test_fewer_tiles_can_be_asked_for),
		cmocka_unit_test(test_an_unknown_target_names_the_nearest),
		cmocka_unit_test(test_ns_are_rounded_to_the_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
