/*
 * Clocks go forward and agree with what was waited for.
 */
#include "common/clock.h"

#include <time.h>

#include "support/support.h"

static void test_monotonic_clock_never_goes_back(void **state)
{
	uint64_t last = clock_ns();

	(void)state;
	for (int i = 0; i < 10000; i++) {
		uint64_t now = clock_ns();

		assert_true(now >= last);
		last = now;
	}
}

static void test_monotonic_clock_counts_a_sleep_in_ns(void **state)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	uint64_t start = clock_ns();

	(void)state;
	nanosleep(&pause, NULL);
	assert_true(clock_ns() - start >= 2000000);
}

static void test_thread_clock_counts_work(void **state)
{
	uint64_t start = clock_thread_cpu_ns();
	volatile unsigned sum = 0;

	(void)state;
	for (unsigned i = 0; i < 1000000; i++)
		sum += i;
	assert_int_not_equal(sum, 0);
	assert_true(clock_thread_cpu_ns() > start);
}

static void test_wall_clock_is_in_this_century(void **state)
{
	(void)state;
	assert_true(clock_epoch_ns() > INT64_C(1600000000) * 1000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_monotonic_clock_never_goes_back),
		cmocka_unit_test(test_monotonic_clock_counts_a_sleep_in_ns),
		cmocka_unit_test(test_thread_clock_counts_work),
		cmocka_unit_test(test_wall_clock_is_in_this_century),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
