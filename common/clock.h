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

#endif /* COMMON_CLOCK_H */
