/*
 * Host clocks in nanoseconds. Threading: stateless.
 */
#include "common/clock.h"

#include <assert.h>
#include <time.h>

#include "common/minmax.h"

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

void clock_offset_meet(struct clock_offset *offset, const int64_t own[2], const int64_t other[2])
{
	offset->low_ns = max(offset->low_ns, own[0] - other[1]);
	offset->high_ns = min(offset->high_ns, own[1] - other[0]);
}

int64_t clock_offset_ns(const struct clock_offset *offset)
{
	return offset->low_ns + (offset->high_ns - offset->low_ns) / 2;
}

int64_t clock_offset_bound_ns(const struct clock_offset *offset)
{
	return (offset->high_ns - offset->low_ns + 1) / 2;
}
