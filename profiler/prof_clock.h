/*
 * Conversion of processor ticks to ns since the run's start.
 *
 * The time stamp counter is compared with CLOCK_MONOTONIC when the recording opens and again at
 * every commit. Each comparison starts a new line segment at the end of the previous one, so time
 * never jumps; its slope converges to the monotonic clock within about a commit. The writer's
 * thread owns the struct; prof_clock_now() reads constants only and may be called from any
 * thread.
 */
#ifndef PROF_CLOCK_H
#define PROF_CLOCK_H

#include <stdint.h>

struct prof_clock {
	uint64_t start_mono_ns; /* CLOCK_MONOTONIC at time 0 */
	uint64_t start_ticks;
	int64_t start_epoch_ns; /* the wall clock at time 0 */
	/* the current segment: ns = base_ns + (ticks - base_ticks) * slope / 2^32 */
	uint64_t base_ticks;
	int64_t base_ns;
	uint64_t slope;
	double ticks_per_second;
	double stamp_ns; /* cost of reading the counter */
};

void prof_clock_start(struct prof_clock *clock);
/* End the calibration: compare again, at the earliest 1 ms after the start. Call it once, before
 * prof_clock_refine(), which starts a new segment. */
void prof_clock_calibrate(struct prof_clock *clock);
void prof_clock_refine(struct prof_clock *clock);
int64_t prof_clock_now(const struct prof_clock *clock);

static inline int64_t prof_clock_ns(const struct prof_clock *clock, uint64_t ticks)
{
	int64_t delta = (int64_t)(ticks - clock->base_ticks);
	uint64_t magnitude = delta < 0 ? (uint64_t)-delta : (uint64_t)delta;
	/* Two 32-bit halves: exact for 64-bit deltas without a 128-bit type. */
	uint64_t ns = (magnitude >> 32) * clock->slope +
		      (((magnitude & 0xffffffffu) * clock->slope) >> 32);

	return delta < 0 ? clock->base_ns - (int64_t)ns : clock->base_ns + (int64_t)ns;
}

#endif /* PROF_CLOCK_H */
