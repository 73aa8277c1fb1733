/*
 * Host clocks in nanoseconds. Only the recording rings use processor ticks.
 */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t clock_ns(void);            /* monotonic */
uint64_t clock_thread_cpu_ns(void); /* CPU time of the calling thread */
int64_t clock_epoch_ns(void);       /* wall clock, ns since 1970 */

/*
 * How far one process's clock is ahead of another's: an interval, which gets narrower each time
 * both meet, that is, neither passes before both have arrived.
 */
struct clock_offset {
	int64_t low_ns, high_ns;
};
#define CLOCK_OFFSET_UNKNOWN ((struct clock_offset){INT64_MIN, INT64_MAX})
#define CLOCK_MEETINGS       16 /* after these the interval hardly gets narrower */

/* Both have met: {time on arrival, time after passing} by the clock of each. */
void clock_offset_meet(struct clock_offset *offset, const int64_t own[2], const int64_t other[2]);
/* The middle of the interval, and half its length. */
int64_t clock_offset_ns(const struct clock_offset *offset);
int64_t clock_offset_bound_ns(const struct clock_offset *offset);

#endif /* COMMON_CLOCK_H */
