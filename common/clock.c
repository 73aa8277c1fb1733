/*
 * Host clocks in nanoseconds. Threading: stateless.
 */
#include "common/clock.h"

#include <assert.h>
#include <time.h>

#define CLOCK_NS_PER_S 1000000000

static int64_t clock_read(clockid_t id)
{
	struct timespec now = {0};
	int failed = clock_gettime(id, &now);

	/* Every Linux has the three clocks used here. */
	assert(!failed);
	(void)failed;
	return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

uint64_t clock_ns(void)
{
	return (uint64_t)clock_read(CLOCK_MONOTONIC);
}

uint64_t clock_thread_cpu_ns(void)
{
	return (uint64_t)clock_read(CLOCK_THREAD_CPUTIME_ID);
}

int64_t clock_epoch_ns(void)
{
	return clock_read(CLOCK_REALTIME);
}
