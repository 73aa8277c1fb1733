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

/* Times of a common clock, which the own one is 1,000 ahead of. */
static void meet(struct clock_offset *offset, int64_t own_from, int64_t own_to, int64_t other_from,
		 int64_t other_to)
{
	clock_offset_meet(offset, (int64_t[]){own_from + 1000, own_to + 1000},
			  (int64_t[]){other_from, other_to});
}

static void test_offset_is_within_its_bound(void **state)
{
	struct clock_offset offset = CLOCK_OFFSET_UNKNOWN;

	(void)state;
	meet(&offset, 0, 100, 80, 90); /* the other one comes late */
	assert_int_equal(clock_offset_ns(&offset), 965);
	assert_int_equal(clock_offset_bound_ns(&offset), 55);
	meet(&offset, 280, 300, 200, 310); /* now this one does */
	assert_int_equal(clock_offset_ns(&offset), 995);
	assert_int_equal(clock_offset_bound_ns(&offset), 25);
	meet(&offset, 400, 500, 400, 500); /* which says nothing new */
	assert_int_equal(clock_offset_ns(&offset), 995);
	assert_int_equal(clock_offset_bound_ns(&offset), 25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_monotonic_clock_never_goes_back),
		cmocka_unit_test(test_monotonic_clock_counts_a_sleep_in_ns),
		cmocka_unit_test(test_thread_clock_counts_work),
		cmocka_unit_test(test_wall_clock_is_in_this_century),
		cmocka_unit_test(test_offset_is_within_its_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
