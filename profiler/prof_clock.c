/*
 * Tick calibration. See prof_internal.h.
 *
 * The slope is ns per tick in 32.32 fixed point and stays below 2^32 (at most 1 ns per tick, i.e. a
 * counter of at least 1 GHz; slope_of() clamps slower ones), which keeps the products in 64 bits.
 */
#include "profiler/prof_internal.h"

#include <time.h>

#include "common/clock.h"
#include "profiler/ipuscope/profiler.h"

#define CALIBRATE_NS 1000000u

struct pair {
	uint64_t ticks, ns;
};

/* Of five readings, return the one with the shortest distance between the ticks before and
 * after. */
static struct pair read_pair(void)
{
	struct pair best = {0, 0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t before = ips_ticks();
		uint64_t ns = clock_ns();
		uint64_t after = ips_ticks();

		if (after - before < least) {
			least = after - before;
			best.ticks = before + (after - before) / 2;
			best.ns = ns;
		}
	}
	return best;
}

static uint64_t slope_of(double ns_per_tick)
{
	double slope = ns_per_tick * 4294967296.0;

	if (slope < 1.0)
		return 1;
	return slope > 4294967296.0 ? 4294967296u : (uint64_t)slope;
}

static double stamp_cost(double ns_per_tick)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		uint64_t first = ips_ticks(), last = first;

		for (int j = 0; j < 32; j++)
			last = ips_ticks();
		if (last - first < least)
			least = last - first;
	}
	return (double)least / 32.0 * ns_per_tick;
}

void prof_clock_start(struct prof_clock *clock)
{
	struct pair pair = read_pair();

	clock->start_mono_ns = pair.ns;
	clock->start_ticks = pair.ticks;
	clock->start_epoch_ns = clock_epoch_ns() - (int64_t)(clock_ns() - pair.ns);
	clock->base_ticks = pair.ticks;
	clock->base_ns = 0;
	clock->slope = 1;
	clock->ticks_per_second = 0.0;
	clock->stamp_ns = 0.0;
}

static double measured(const struct prof_clock *clock, struct pair pair)
{
	return (double)(pair.ns - clock->start_mono_ns) / (double)(pair.ticks - clock->start_ticks);
}

void prof_clock_calibrate(struct prof_clock *clock)
{
	struct pair pair = read_pair();

	while (pair.ns - clock->start_mono_ns < CALIBRATE_NS) {
		const struct timespec wait = {0, CALIBRATE_NS / 4};

		nanosleep(&wait, NULL);
		pair = read_pair();
	}
	clock->slope = slope_of(measured(clock, pair));
	clock->ticks_per_second = 1e9 / measured(clock, pair);
	clock->stamp_ns = stamp_cost(measured(clock, pair));
}

void prof_clock_refine(struct prof_clock *clock)
{
	struct pair pair = read_pair();
	int64_t shown = prof_clock_ns(clock, pair.ticks);
	int64_t right = (int64_t)(pair.ns - clock->start_mono_ns);
	double slope = measured(clock, pair);
	/* Converge within 100 ms, but change the slope by at most 1 %: time stays monotonic. */
	double bend = (double)(right - shown) / 1e8;

	if (bend > 0.01)
		bend = 0.01;
	if (bend < -0.01)
		bend = -0.01;
	clock->base_ticks = pair.ticks;
	clock->base_ns = shown;
	clock->slope = slope_of(slope * (1.0 + bend));
	clock->ticks_per_second = 1e9 / slope;
}

int64_t prof_clock_now(const struct prof_clock *clock)
{
	return (int64_t)(clock_ns() - clock->start_mono_ns);
}
