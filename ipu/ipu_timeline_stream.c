/*
 * The device clock: streams from and to the host.
 *
 * Threads: none.
 */
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "common/minmax.h"
#include "ipu/ipu_timeline_internal.h"

/* Shares of Begin and End in the fixed part of a stream copy: 155, 1513 and 87 cycles (Begin, Mid,
 * End) were measured without load. */
#define STREAM_BEGIN (155.0 / 1755)
#define STREAM_END   (87.0 / 1755)

static struct ipu_stream_copy make_copy(const struct ipu_target *target, double fixed_ns,
					double bytes, double bytes_second)
{
	const double fixed = fixed_ns * target->clock_hz / 1e9;

	return (struct ipu_stream_copy){
		.begin_cycles = (int64_t)(fixed * STREAM_BEGIN),
		.end_cycles = (int64_t)(fixed * STREAM_END),
		.cycles = (int64_t)ceil(fixed + bytes / bytes_second * target->clock_hz),
	};
}

struct ipu_stream_copy ipu_stream_copy(const struct ipu_target *target, double bytes,
				       double bytes_second)
{
	return make_copy(target, target->host_latency_ns, bytes, bytes_second);
}

struct ipu_stream_copy ipu_host_copy(const struct ipu_target *target, double bytes)
{
	return make_copy(target, target->host_latency_ns + target->framework_ns, bytes,
			 target->host_bytes_second);
}

const struct ipu_work *ipu__clock_works(const struct ipu_clock *clock, int ipu, int step,
					int *count)
{
	const struct ipu_schedule *schedule = clock->params->schedule;
	const int *index = &clock->index[(size_t)ipu * ((size_t)schedule->time_steps + 1)];

	*count = 0;
	if (step < 0 || step >= schedule->time_steps)
		return schedule->works;
	*count = index[step + 1] - index[step];
	return &schedule->works[index[step]];
}

/* The schedule's step whose forwards the streams of the current time step serve. */
static int served_step(const struct ipu_clock *clock, enum ipu_transfer_kind kind)
{
	const int steps = clock->timeline->time_steps;
	const int ahead = !clock->overlap ? 0 : kind == IPU_TRANSFER_INFEED ? 1 : -1;

	/* Without a pipeline it wraps around: the last step streams the next run's first. */
	if (clock->overlap && clock->shift == 0)
		return (clock->step + ahead + steps) % steps;
	return clock->step - clock->shift + ahead;
}

static int64_t stream_bytes(const struct ipu_clock *clock, const struct ipu_work *work,
			    enum ipu_transfer_kind kind)
{
	const struct ipu_stage_cost *stage = &clock->params->stages[work->stage];

	if (work->phase != IPU_PHASE_F)
		return 0;
	if (kind == IPU_TRANSFER_INFEED)
		return stage->infeed_bytes;
	return clock->params->outfeed_once ? 0 : stage->outfeed_bytes;
}

static int64_t link_ipus(const struct ipu_clock *clock)
{
	const int64_t ipus = clock->params->target->ipus_host_link;

	return ipus > 0 ? ipus : INT_MAX;
}

/* Number of replicas that share an IPU's host link: a replica occupies a power of two of IPUs. */
static int64_t link_replicas(const struct ipu_clock *clock)
{
	const int64_t replicas = clock->params->replicas > 0 ? clock->params->replicas : 1;
	int64_t ipus = 1, share;

	while (ipus < clock->params->schedule->ipus)
		ipus *= 2;
	share = link_ipus(clock) / ipus;
	return share < 1 ? 1 : share < replicas ? share : replicas;
}

/* Cycles until the host has prepared the next batch. */
static int64_t host_wait(const struct ipu_clock *clock, int stage, int64_t at, double bytes)
{
	const struct ipu_target *target = clock->params->target;
	int64_t wait;

	if (clock->params->prefetch_depth != 1)
		return 0;
	wait = clock->fed[stage] +
	       ipu_stream_copy(target, bytes, target->host_fill_bytes_second).cycles - at;
	return max(wait, 0);
}

static void stream_one(struct ipu_clock *clock, enum ipu_transfer_kind kind, int ipu,
		       const struct ipu_work *work, int64_t bytes, double on_link)
{
	const struct ipu_target *target = clock->params->target;
	struct ipu_lane *lane = &clock->lanes[ipu];
	int64_t *at = clock->overlap ? &lane->io_at : &lane->at;
	struct ipu_stream_copy copy = ipu_host_copy(target, on_link);
	struct ipu_transfer *transfer;

	if (kind == IPU_TRANSFER_INFEED) {
		const int64_t wait = host_wait(clock, work->stage, *at, on_link);

		copy.begin_cycles += wait;
		copy.cycles += wait;
	}
	transfer = ipu__clock_transfer(clock, kind, ipu, *at, copy.cycles);
	transfer->stage = work->stage;
	transfer->microbatch = work->microbatch;
	transfer->begin_cycles = copy.begin_cycles;
	transfer->end_cycles = copy.end_cycles;
	if (kind == IPU_TRANSFER_INFEED)
		transfer->bytes_in = bytes;
	else
		transfer->bytes_out = bytes;
	*at += copy.cycles;
	if (kind == IPU_TRANSFER_INFEED)
		clock->fed[work->stage] = *at;
	if (!clock->overlap)
		clock->timeline->split[ipu].host_io += copy.cycles;
}

static int64_t bytes_of_ipu(const struct ipu_clock *clock, enum ipu_transfer_kind kind, int ipu,
			    int step)
{
	int64_t bytes = 0;
	int count;
	const struct ipu_work *works = ipu__clock_works(clock, ipu, step, &count);

	for (int i = 0; i < count; i++)
		bytes += stream_bytes(clock, &works[i], kind);
	return bytes;
}

void ipu__clock_stream(struct ipu_clock *clock, enum ipu_transfer_kind kind)
{
	const int ipus = clock->params->schedule->ipus;
	const int step = served_step(clock, kind);
	const bool round = clock->overlap && clock->shift == 0;
	const int now = clock->step;
	const bool other_run = round && (kind == IPU_TRANSFER_INFEED ? step <= now : step >= now);

	memset(clock->link_bytes, 0, (size_t)ipus * sizeof(*clock->link_bytes));
	for (int i = 0; i < ipus; i++)
		clock->link_bytes[i / link_ipus(clock)] +=
			bytes_of_ipu(clock, kind, i, step) * link_replicas(clock);
	/* Streams share their link in proportion to their bytes, so they end together. */
	for (int i = 0; i < ipus; i++) {
		const double all = (double)clock->link_bytes[i / link_ipus(clock)];
		const double own = (double)bytes_of_ipu(clock, kind, i, step);
		int count;
		const struct ipu_work *works = ipu__clock_works(clock, i, step, &count);

		for (int w = 0; w < count; w++) {
			const int64_t bytes = stream_bytes(clock, &works[w], kind);
			struct ipu_work work = works[w];

			if (other_run)
				work.microbatch = -1;
			if (bytes > 0)
				stream_one(clock, kind, i, &work, bytes, all * (double)bytes / own);
		}
	}
}

void ipu__clock_results(struct ipu_clock *clock)
{
	const struct ipu_schedule *schedule = clock->params->schedule;

	for (int s = 0; s < schedule->stages; s++) {
		const struct ipu_work work = {.stage = s, .microbatch = -1};
		const struct ipu_stage_cost *stage = &clock->params->stages[s];
		const int64_t bytes = stage->update_bytes +
				      (clock->params->outfeed_once ? stage->outfeed_bytes : 0);
		struct ipu_lane *lane = &clock->lanes[schedule->device[s]];

		if (bytes == 0)
			continue;
		lane->io_at = lane->at;
		stream_one(clock, IPU_TRANSFER_OUTFEED, schedule->device[s], &work, bytes,
			   (double)(bytes * link_replicas(clock)));
		if (clock->overlap) {
			clock->timeline->split[schedule->device[s]].host_io +=
				lane->io_at - lane->at;
			lane->at = lane->io_at;
		}
	}
}
