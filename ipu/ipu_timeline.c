/*
 * The device clock: one pass over the time steps, then the weight update.
 *
 * Threads: none; a timeline is immutable after ipu_timeline_new(). It owns its arrays.
 */
#include "ipu/ipu_timeline.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"

char ipu_function_phase_char(enum ipu_function_phase function)
{
	static const char phases[] = {
		[IPU_FUNCTION_F] = IPU_PHASE_F,       [IPU_FUNCTION_B] = IPU_PHASE_B,
		[IPU_FUNCTION_U] = IPU_PHASE_U,       [IPU_FUNCTION_R] = IPU_PHASE_R,
		[IPU_FUNCTION_PUSH] = '\0',           [IPU_FUNCTION_START] = '\0',
		[IPU_FUNCTION_W] = IPU_PHASE_W,       [IPU_FUNCTION_EVALUATE] = IPU_PHASE_F,
		[IPU_FUNCTION_PREDICT] = IPU_PHASE_F,
	};

	_Static_assert(ARRAY_LEN(phases) == IPU_FUNCTION_PHASES, "phases out of step");
	assert((unsigned)function < IPU_FUNCTION_PHASES);
	return phases[function];
}

int64_t ipu_sync_cycles(const struct ipu_target *target, int ipus)
{
	const int hops = 1 + ipus / 4;

	if (ipus <= 1)
		return (int64_t)target->sync_cycles;
	return (int64_t)ceil(target->global_sync_cycles +
			     2 * hops * target->sync_hop_ns * target->clock_hz / 1e9);
}

/* ---- links between IPUs ---------------------------------------------------------------------- */

/*
 * The links between the IPUs of a replica: a ladder whose rungs are the pairs.
 *
 * IPU 2k and 2k + 1 are a pair with four links between them; two links lead from each to its
 * neighbour up and two to its neighbour down the ladder. A copy follows its own side to the target
 * pair, then crosses. Copies on a link share its rate.
 */
struct ipu_links {
	int64_t *load; /* bytes on each directed link in the current step; owned */
	int pairs;
};

/* Directed links of each pair: across to the even and odd IPU; up and down on either side. */
enum {
	LINK_ACROSS,
	LINK_UP = 2,
	LINK_DOWN = 4,
	LINKS_OF_PAIR = 6
};

static void links_clear(struct ipu_links *links)
{
	memset(links->load, 0, (size_t)links->pairs * LINKS_OF_PAIR * sizeof(*links->load));
}

/* Return the next link of a copy from *@from to @to; advance *@from over it. */
static int link_next(int *from, int to)
{
	const int pair = *from / 2, side = *from % 2;

	assert(*from != to);
	if (pair == to / 2) {
		*from = to;
		return pair * LINKS_OF_PAIR + LINK_ACROSS + to % 2;
	}
	*from += pair < to / 2 ? 2 : -2;
	return pair * LINKS_OF_PAIR + (pair < to / 2 ? LINK_UP : LINK_DOWN) + side;
}

static void links_add(struct ipu_links *links, int from, int to, int64_t bytes)
{
	while (from != to)
		links->load[link_next(&from, to)] += bytes;
}

/* Cycles of a copy from @from to @to after all copies of the step were added: its slowest link's.
 */
static int64_t links_cycles(const struct ipu_links *links, const struct ipu_target *target,
			    int from, int to)
{
	double seconds = 0;

	while (from != to) {
		const int link = link_next(&from, to);
		const double rate = link % LINKS_OF_PAIR < LINK_UP ? target->link_bytes_second
								   : target->link_bytes_second / 2;

		seconds = fmax(seconds, (double)links->load[link] / rate);
	}
	return (int64_t)ceil(seconds * target->clock_hz);
}

/* ---- the clock ------------------------------------------------------------------------------- */

/* Clocks of an IPU, and scratch values of the current step. */
struct ipu_lane {
	int64_t at;    /* cycle that its programs have reached */
	int64_t io_at; /* cycle that its I/O tiles have reached, if any */
	int first_transfer;
	int64_t sent, received; /* bytes of the current copy between IPUs */
};

struct ipu_clock {
	const struct ipu_timeline_params *params;
	struct ipu_timeline *timeline;
	struct ipu_lane *lanes; /* by IPU */
	int64_t *fed;           /* by stage: end of its last infeed */
	int64_t *link_bytes;    /* by host link, of the current stream */
	int *index;             /* by IPU and time step: its first work */
	int64_t *sent[2];       /* without lockstep: cycle at which the results of F and B of
				 * [stage, micro-batch] have been sent */
	bool lockstep;
	struct ipu_links links;
	bool overlap; /* I/O tiles: streams overlap with programs */
	int shift;    /* time steps before the schedule's first: the first infeed's */
	int64_t met;  /* cycle at which the IPUs synchronized in the current step */
	int step;     /* the current one */
};

static void clock_event(struct ipu_clock *clock, int ipu, int stage, int microbatch,
			enum ipu_function_phase function)
{
	const struct ipu_function_cost *cost = &clock->params->stages[stage].function[function];
	struct ipu_split *split = &clock->timeline->split[ipu];
	const bool always = function == clock->params->forward || function == IPU_FUNCTION_B ||
			    function == IPU_FUNCTION_W;

	if (cost->cycles == 0 && !always)
		return;
	clock->timeline->events[clock->timeline->count++] =
		(struct ipu_event){.ipu = ipu,
				   .stage = stage,
				   .microbatch = microbatch,
				   .function = function,
				   .phase = ipu_function_phase_char(function),
				   .time_step = clock->step,
				   .start_cycle = clock->lanes[ipu].at,
				   .cycles = cost->cycles};
	split->exchange += cost->exchange;
	split->sync += cost->sync;
	split->host_io += cost->host_io;
	split->compute += cost->cycles - cost->exchange - cost->sync - cost->host_io;
	clock->lanes[ipu].at += cost->cycles;
}

/* Append a transfer of @work (NULL: of none), to be filled in; one of no cycles is overwritten by
 * the next. */
static struct ipu_transfer *clock_transfer(struct ipu_clock *clock, enum ipu_transfer_kind kind,
					   int ipu, const struct ipu_work *work, int64_t start,
					   int64_t cycles)
{
	struct ipu_timeline *timeline = clock->timeline;
	struct ipu_transfer *transfer = &timeline->transfers[timeline->transfer_count];

	*transfer = (struct ipu_transfer){.kind = kind,
					  .ipu = ipu,
					  .time_step = clock->step,
					  .stage = work ? work->stage : -1,
					  .microbatch = work ? work->microbatch : -1,
					  .start_cycle = start,
					  .cycles = cycles,
					  .program = -1};
	timeline->transfer_count += cycles > 0;
	return transfer;
}

/* ---- streams from and to the host ------------------------------------------------------------ */

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

/* The works of an IPU in a step of the schedule; none for a step outside of it. */
static const struct ipu_work *clock_works(const struct ipu_clock *clock, int ipu, int step,
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

static void stream_one(struct ipu_clock *clock, enum ipu_transfer_kind kind, int ipu,
		       const struct ipu_work *work, int64_t bytes, double on_link)
{
	const struct ipu_target *target = clock->params->target;
	struct ipu_lane *lane = &clock->lanes[ipu];
	int64_t *at = clock->overlap ? &lane->io_at : &lane->at;
	struct ipu_stream_copy copy = ipu_host_copy(target, on_link);
	struct ipu_transfer *transfer;

	if (kind == IPU_TRANSFER_INFEED && clock->params->prefetch_depth == 1) {
		/* The host has to prepare the next batch. */
		const int64_t fill =
			ipu_stream_copy(target, on_link, target->host_fill_bytes_second).cycles;
		const int64_t wait = max(clock->fed[work->stage] + fill - *at, 0);

		copy.begin_cycles += wait;
		copy.cycles += wait;
	}
	transfer = clock_transfer(clock, kind, ipu, work, *at, copy.cycles);
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
	const struct ipu_work *works = clock_works(clock, ipu, step, &count);

	for (int i = 0; i < count; i++)
		bytes += stream_bytes(clock, &works[i], kind);
	return bytes;
}

/* Run the streams of the current time step: with I/O tiles an infeed is one step ahead of its
 * forward, an outfeed one behind. */
static void clock_stream(struct ipu_clock *clock, enum ipu_transfer_kind kind)
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
		const struct ipu_work *works = clock_works(clock, i, step, &count);

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

/* ---- time step ------------------------------------------------------------------------------- */

/* Copy a forward's host data between the I/O tiles and the compute tiles. */
static void copy_tiles(struct ipu_clock *clock, int ipu, const struct ipu_work *work,
		       enum ipu_transfer_kind kind)
{
	const struct ipu_target *target = clock->params->target;
	const struct ipu_stage_cost *stage = &clock->params->stages[work->stage];
	const int64_t bytes =
		kind == IPU_TRANSFER_COPY_IN ? stage->infeed_bytes : stage->outfeed_bytes;
	const double rate = (double)clock->params->io_tiles * target->exchange_bytes_cycle;
	struct ipu_transfer *transfer;
	int64_t cycles;

	if (work->phase != IPU_PHASE_F || bytes == 0)
		return;
	cycles = (int64_t)ceil(target->phase_cycles + (double)bytes / rate);
	transfer = clock_transfer(clock, kind, ipu, work, clock->lanes[ipu].at, cycles);
	transfer->bytes_in = transfer->bytes_out = bytes;
	clock->timeline->split[ipu].exchange += cycles;
	clock->lanes[ipu].at += cycles;
}

static void run_works(struct ipu_clock *clock, int ipu, int step)
{
	const bool late = clock->params->recompute_late;
	int count, next_count;
	const struct ipu_work *works = clock_works(clock, ipu, step, &count);
	const struct ipu_work *next = clock_works(clock, ipu, step + 1, &next_count);

	for (int i = 0; i < count && clock->overlap; i++)
		copy_tiles(clock, ipu, &works[i], IPU_TRANSFER_COPY_IN);
	for (int i = 0; i < count; i++) {
		const enum ipu_function_phase function =
			works[i].phase == IPU_PHASE_F   ? clock->params->forward
			: works[i].phase == IPU_PHASE_B ? IPU_FUNCTION_B
							: IPU_FUNCTION_W;

		if (works[i].phase == IPU_PHASE_B && late)
			clock_event(clock, ipu, works[i].stage, works[i].microbatch,
				    IPU_FUNCTION_R);
		clock_event(clock, ipu, works[i].stage, works[i].microbatch, function);
	}
	for (int i = 0; i < count; i++)
		if (works[i].phase == IPU_PHASE_F)
			clock_event(clock, ipu, works[i].stage, works[i].microbatch,
				    IPU_FUNCTION_PUSH);
	for (int i = 0; i < next_count && !late; i++)
		if (next[i].phase == IPU_PHASE_B)
			clock_event(clock, ipu, next[i].stage, next[i].microbatch, IPU_FUNCTION_R);
	for (int i = 0; i < count && clock->overlap; i++)
		copy_tiles(clock, ipu, &works[i], IPU_TRANSFER_COPY_OUT);
}

/* Join the programs and the streams of an IPU; streams not overlapped by programs add time. */
static void join_lanes(struct ipu_clock *clock, int ipu)
{
	struct ipu_lane *lane = &clock->lanes[ipu];
	struct ipu_timeline *timeline = clock->timeline;

	for (int i = lane->first_transfer; i < timeline->transfer_count; i++) {
		struct ipu_transfer *transfer = &timeline->transfers[i];
		int64_t hidden = lane->at - transfer->start_cycle;

		if (transfer->ipu != ipu || (transfer->kind != IPU_TRANSFER_INFEED &&
					     transfer->kind != IPU_TRANSFER_OUTFEED))
			continue;
		hidden = max(0, hidden);
		transfer->overlapped = min(hidden, transfer->cycles);
		timeline->split[ipu].host_io += transfer->cycles - transfer->overlapped;
	}
	if (lane->io_at > lane->at)
		lane->at = lane->io_at;
}

static void sync_ipus(struct ipu_clock *clock)
{
	const int ipus = clock->params->schedule->ipus;
	const int64_t sync = ipu_sync_cycles(clock->params->target, ipus);
	int64_t longest = 0;

	if (ipus == 1)
		return;
	for (int i = 0; i < ipus; i++)
		if (clock->lanes[i].at > longest)
			longest = clock->lanes[i].at;
	for (int i = 0; i < ipus; i++) {
		struct ipu_lane *lane = &clock->lanes[i];

		clock_transfer(clock, IPU_TRANSFER_SYNC, i, NULL, lane->at,
			       longest + sync - lane->at);
		clock->timeline->split[i].idle += longest - lane->at;
		clock->timeline->split[i].sync += sync;
		lane->at = longest + sync;
	}
}

/* Iterate over the sends of a work to other IPUs: activations forward, or gradients backward. */
static bool next_send(const struct ipu_clock *clock, int ipu, const struct ipu_work *work, int *at,
		      int *to, int64_t *bytes)
{
	const struct ipu_timeline_params *params = clock->params;
	const bool forward = work->phase == IPU_PHASE_F;

	while (work->phase != IPU_PHASE_W && *at < params->send_count) {
		const struct ipu_send *send = &params->sends[(*at)++];

		*to = params->schedule->device[forward ? send->to : send->from];
		*bytes = send->bytes;
		if (work->stage == (forward ? send->from : send->to) && *to != ipu && *bytes > 0)
			return true;
	}
	return false;
}

/* Add the lane's part in a copy that begins at @start; IPUs that did not take part in the previous
 * copies have waited for them. */
static void join_copy(struct ipu_clock *clock, int ipu, const struct ipu_work *work, int64_t start,
		      int64_t cycles)
{
	const int ipus = clock->params->schedule->ipus;
	const bool met = start == clock->met;
	const int64_t sync = met ? 0 : ipu_sync_cycles(clock->params->target, ipus);
	struct ipu_lane *lane = &clock->lanes[ipu];
	struct ipu_split *split = &clock->timeline->split[ipu];
	struct ipu_transfer *transfer;

	clock_transfer(clock, IPU_TRANSFER_SYNC_ANS, ipu, NULL, lane->at, start - lane->at);
	split->idle += start - lane->at;
	transfer = clock_transfer(clock, IPU_TRANSFER_SYNC, ipu, NULL, start, sync);
	transfer->stage = work->stage;
	transfer->backward = work->phase == IPU_PHASE_B;
	transfer = clock_transfer(clock, IPU_TRANSFER_GLOBAL, ipu, NULL, start + sync, cycles);
	transfer->stage = work->stage;
	transfer->backward = work->phase == IPU_PHASE_B;
	transfer->bytes_in = lane->received;
	transfer->bytes_out = lane->sent;
	split->sync += sync;
	split->exchange += cycles;
	lane->at = start + sync + cycles;
}

/* Run a stage's copies to other IPUs, which are one function: all at once, with no others on the
 * links. Return the cycle at which it ends. */
static int64_t copy_out(struct ipu_clock *clock, int ipu, const struct ipu_work *work,
			int64_t start)
{
	const int ipus = clock->params->schedule->ipus;
	int64_t bytes, cycles = 0;
	int to;

	links_clear(&clock->links);
	for (int i = 0; i < ipus; i++)
		clock->lanes[i].sent = clock->lanes[i].received = 0;
	for (int at = 0; next_send(clock, ipu, work, &at, &to, &bytes);) {
		links_add(&clock->links, ipu, to, bytes);
		clock->lanes[ipu].sent += bytes;
		clock->lanes[to].received += bytes;
	}
	for (int at = 0; next_send(clock, ipu, work, &at, &to, &bytes);)
		cycles = max(cycles, links_cycles(&clock->links, clock->params->target, ipu, to));
	if (cycles == 0)
		return start;
	for (int i = 0; i < ipus; i++)
		if (clock->lanes[i].sent > 0 || clock->lanes[i].received > 0)
			join_copy(clock, i, work, start, cycles);
	return clock->lanes[ipu].at;
}

/* Run the copies between IPUs at the end of a step: stage after stage, forward ones first. All IPUs
 * are at the same cycle before and after. */
static void exchange(struct ipu_clock *clock, int step)
{
	static const char phases[] = {IPU_PHASE_F, IPU_PHASE_B};
	const struct ipu_schedule *schedule = clock->params->schedule;
	int64_t end = clock->lanes[0].at;

	if (schedule->ipus == 1)
		return;
	clock->met = end;
	for (size_t p = 0; p < ARRAY_LEN(phases); p++)
		for (int s = 0; s < schedule->stages; s++) {
			int count;
			const struct ipu_work *works =
				clock_works(clock, schedule->device[s], step, &count);

			for (int w = 0; w < count; w++)
				if (works[w].stage == s && works[w].phase == phases[p])
					end = copy_out(clock, schedule->device[s], &works[w], end);
		}
	for (int i = 0; i < schedule->ipus; i++) {
		struct ipu_lane *lane = &clock->lanes[i];

		clock_transfer(clock, IPU_TRANSFER_SYNC_ANS, i, NULL, lane->at, end - lane->at);
		clock->timeline->split[i].idle += end - lane->at;
		lane->at = end;
	}
}

/* ---- without lockstep ------------------------------------------------------------------------ */

static int64_t *sent_entry(const struct ipu_clock *clock, char phase, int stage, int microbatch)
{
	const size_t each = (size_t)clock->params->schedule->microbatches;

	return &clock->sent[phase == IPU_PHASE_B][(size_t)stage * each + (size_t)microbatch];
}

/* Copies of one work, without others on the links: to other IPUs, or from them. */
struct copies {
	int64_t bytes, cycles;
	int64_t there; /* cycle at which all inputs have been sent; -1: no input from other IPUs */
};

static struct copies plan_copies(struct ipu_clock *clock, int ipu, const struct ipu_work *work,
				 bool takes)
{
	const struct ipu_timeline_params *params = clock->params;
	const bool forward = work->phase == IPU_PHASE_F;
	const int before = work->stage + (forward ? -1 : 1);
	struct copies copies = {.there = -1};

	links_clear(&clock->links);
	/* Wait for the previous stage even if it has nothing to send. */
	if (takes && work->phase != IPU_PHASE_W && before >= 0 &&
	    before < params->schedule->stages && params->schedule->device[before] != ipu)
		copies.there = *sent_entry(clock, work->phase, before, work->microbatch);
	for (int pass = 0; pass < 2 && work->phase != IPU_PHASE_W; pass++) {
		for (int s = 0; s < params->send_count; s++) {
			const struct ipu_send *send = &params->sends[s];
			const int from = forward ? send->from : send->to;
			const int to = forward ? send->to : send->from;
			const int other = params->schedule->device[takes ? from : to];
			const int64_t there =
				*sent_entry(clock, work->phase, from, work->microbatch);

			if (work->stage != (takes ? to : from) || other == ipu)
				continue;
			if (pass == 0) {
				links_add(&clock->links, takes ? other : ipu, takes ? ipu : other,
					  send->bytes);
				copies.bytes += send->bytes;
				copies.there = max(there, copies.there);
				continue;
			}
			copies.cycles = max(copies.cycles,
					    links_cycles(&clock->links, params->target,
							 takes ? other : ipu, takes ? ipu : other));
		}
	}
	return copies;
}

/* Wait until the input has been sent, and receive it. */
static void receive(struct ipu_clock *clock, int ipu, const struct ipu_work *work)
{
	const int64_t sync = ipu_sync_cycles(clock->params->target, 2);
	const struct copies copies = plan_copies(clock, ipu, work, true);
	struct ipu_lane *lane = &clock->lanes[ipu];
	struct ipu_split *split = &clock->timeline->split[ipu];
	const int64_t wait = max(copies.there - lane->at, 0);

	if (copies.there < 0)
		return;
	clock_transfer(clock, IPU_TRANSFER_WAIT, ipu, work, lane->at, wait + sync);
	lane->at += wait + sync;
	clock_transfer(clock, IPU_TRANSFER_RECEIVE, ipu, work, lane->at, copies.cycles)->bytes_in =
		copies.bytes;
	lane->at += copies.cycles;
	split->idle += wait;
	split->sync += sync;
	split->exchange += copies.cycles;
}

static void send(struct ipu_clock *clock, int ipu, const struct ipu_work *work)
{
	const struct copies copies = plan_copies(clock, ipu, work, false);
	struct ipu_lane *lane = &clock->lanes[ipu];

	clock_transfer(clock, IPU_TRANSFER_GLOBAL, ipu, work, lane->at, copies.cycles)->bytes_out =
		copies.bytes;
	lane->at += copies.cycles;
	clock->timeline->split[ipu].exchange += copies.cycles;
	if (work->phase != IPU_PHASE_W)
		*sent_entry(clock, work->phase, work->stage, work->microbatch) = lane->at;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void run_step(struct ipu_clock *clock)
{
	const struct ipu_timeline_params *params = clock->params;
	const int ipus = params->schedule->ipus;
	const int step = clock->step - clock->shift;

	for (int i = 0; i < ipus; i++) {
		clock->lanes[i].io_at = clock->lanes[i].at;
		clock->lanes[i].first_transfer = clock->timeline->transfer_count;
	}
	clock_stream(clock, IPU_TRANSFER_INFEED);
	if (clock->overlap)
		clock_stream(clock, IPU_TRANSFER_OUTFEED);
	for (int i = 0; i < ipus; i++) {
		if (clock->lockstep) {
			run_works(clock, i, step);
		} else {
			int count;
			const struct ipu_work *work = clock_works(clock, i, clock->step, &count);

			/* Out of lockstep an IPU has at most one work in a step. Results of earlier
			 * steps have been sent. */
			assert(count <= 1);
			if (count > 0)
				receive(clock, i, work);
			run_works(clock, i, clock->step);
			if (count > 0)
				send(clock, i, work);
		}
		if (clock->overlap)
			join_lanes(clock, i);
	}
	if (clock->lockstep) {
		sync_ipus(clock);
		exchange(clock, step);
	}
	if (!clock->overlap)
		clock_stream(clock, IPU_TRANSFER_OUTFEED);
}

/* ---- run ------------------------------------------------------------------------------------- */

/* Run @function of all stages on their IPUs. */
static void run_function(struct ipu_clock *clock, enum ipu_function_phase function)
{
	const struct ipu_schedule *schedule = clock->params->schedule;

	for (int s = 0; s < schedule->stages; s++)
		clock_event(clock, schedule->device[s], s, -1, function);
}

static void run_clock(struct ipu_clock *clock)
{
	const struct ipu_schedule *schedule = clock->params->schedule;
	struct ipu_timeline *timeline = clock->timeline;

	clock->step = 0;
	if (schedule->training)
		run_function(clock, IPU_FUNCTION_START);
	for (; clock->step < timeline->time_steps; clock->step++)
		run_step(clock);
	if (schedule->training)
		run_function(clock, IPU_FUNCTION_U);
	/* The results of the whole run are streamed after its end. */
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
	sync_ipus(clock);
	for (int i = 0; i < schedule->ipus; i++)
		if (clock->lanes[i].at > timeline->cycles)
			timeline->cycles = clock->lanes[i].at;
}

/* Repeat the run in steady state. A host that prefetches a single batch needs time for the next
 * one: the run's first infeed waits after the last infeed of the previous run. */
static void repeat_run(struct ipu_clock *clock)
{
	const struct ipu_schedule *schedule = clock->params->schedule;
	struct ipu_timeline *timeline = clock->timeline;

	for (int s = 0; s < schedule->stages; s++)
		clock->fed[s] -= timeline->cycles;
	for (int i = 0; i < schedule->ipus; i++) {
		clock->lanes[i] = (struct ipu_lane){0};
		timeline->split[i] = (struct ipu_split){0};
	}
	timeline->count = timeline->transfer_count = 0;
	timeline->cycles = 0;
	run_clock(clock);
}

static int compare_events(const void *left, const void *right)
{
	/* Order of programs that start at the same cycle because some cost nothing. */
	static const int order[IPU_FUNCTION_PHASES] = {
		[IPU_FUNCTION_START] = 0, [IPU_FUNCTION_F] = 1,        [IPU_FUNCTION_PUSH] = 3,
		[IPU_FUNCTION_W] = 2,     [IPU_FUNCTION_R] = 2,        [IPU_FUNCTION_B] = 2,
		[IPU_FUNCTION_U] = 4,     [IPU_FUNCTION_EVALUATE] = 1, [IPU_FUNCTION_PREDICT] = 1,
	};
	const struct ipu_event *a = left, *b = right;
	int by = SORTED_BY(a, b, ipu, start_cycle, time_step);

	if (by == 0)
		by = SORTED_ORDER(order[a->function], order[b->function]);
	return by != 0 ? by : SORTED_BY(a, b, stage);
}

static int compare_transfers(const void *left, const void *right)
{
	const struct ipu_transfer *a = left, *b = right;

	return SORTED_BY(a, b, ipu, start_cycle, kind);
}

static enum status check_costs(const struct ipu_timeline_params *params, struct err *err)
{
	for (int s = 0; s < params->schedule->stages; s++) {
		const struct ipu_stage_cost *stage = &params->stages[s];

		if (stage->infeed_bytes < 0 || stage->outfeed_bytes < 0 || stage->update_bytes < 0)
			return err_set(err, ST_INVALID, "stage %d has a negative cost", s);
		for (int f = 0; f < IPU_FUNCTION_PHASES; f++) {
			const struct ipu_function_cost *cost = &stage->function[f];

			if (cost->cycles < 0 || cost->exchange < 0 || cost->sync < 0 ||
			    cost->host_io < 0)
				return err_set(err, ST_INVALID, "stage %d has a negative cost", s);
			if (cost->exchange + cost->sync + cost->host_io > cost->cycles)
				return err_set(err, ST_INVALID,
					       "stage %d: exchange, sync and host I/O are more "
					       "than the whole",
					       s);
		}
	}
	return ST_OK;
}

static enum status clock_init(struct ipu_clock *clock, struct err *err)
{
	const struct ipu_schedule *schedule = clock->params->schedule;
	struct ipu_timeline *timeline = clock->timeline;
	const size_t ipus = (size_t)schedule->ipus;
	const size_t works = (size_t)schedule->first[ipus], stages = (size_t)schedule->stages;
	const size_t steps = (size_t)schedule->time_steps;

	clock->lockstep = ipu_schedule_lockstep(schedule->kind);
	clock->overlap = clock->params->io_tiles > 0;
	assert(clock->lockstep || !clock->overlap);
	clock->shift = clock->overlap && schedule->stages > 1;
	timeline->time_steps = schedule->time_steps + 2 * clock->shift;
	clock->lanes = mem_calloc(ipus, sizeof(*clock->lanes));
	clock->fed = mem_calloc(stages, sizeof(*clock->fed));
	clock->link_bytes = mem_calloc(ipus, sizeof(*clock->link_bytes));
	clock->index = mem_calloc(ipus * (steps + 1), sizeof(*clock->index));
	clock->sent[0] = mem_calloc(stages * (size_t)schedule->microbatches, sizeof(int64_t));
	clock->sent[1] = mem_calloc(stages * (size_t)schedule->microbatches, sizeof(int64_t));
	timeline->events = mem_calloc(2 * works + 2 * stages, sizeof(*timeline->events));
	/* Streams and copies per forward; syncs per step, or an input and an output of it; three
	 * per participant of copies between IPUs; and one slot for transfers of no cycles. */
	timeline->transfers = mem_calloc(
		7 * works + stages + 3 * ipus * (steps + 4) +
			6 * (size_t)(schedule->microbatches * clock->params->send_count) + 1,
		sizeof(*timeline->transfers));
	timeline->split = mem_calloc(ipus, sizeof(*timeline->split));
	clock->links.pairs = (schedule->ipus + 1) / 2;
	clock->links.load =
		mem_calloc((size_t)clock->links.pairs * LINKS_OF_PAIR, sizeof(*clock->links.load));
	if (!clock->lanes || !clock->fed || !clock->link_bytes || !clock->index ||
	    !clock->sent[0] || !clock->sent[1] || !timeline->events || !timeline->transfers ||
	    !timeline->split || !clock->links.load)
		return err_nomem(err);
	for (size_t s = 0; s < stages; s++)
		clock->fed[s] = INT64_MIN / 2;
	/* Index the first work of each step of an IPU. */
	for (int i = 0; i < schedule->ipus; i++) {
		int *index = &clock->index[(size_t)i * ((size_t)schedule->time_steps + 1)];
		int work = schedule->first[i];

		for (int step = 0; step <= schedule->time_steps; step++) {
			while (work < schedule->first[i + 1] &&
			       schedule->works[work].time_step < step)
				work++;
			index[step] = work;
		}
	}
	return ST_OK;
}

enum status ipu_timeline_new(struct ipu_timeline **out, const struct ipu_timeline_params *params,
			     struct err *err)
{
	struct ipu_clock clock = {.params = params};
	enum status status;

	*out = NULL;
	status = check_costs(params, err);
	if (status != ST_OK)
		return status;
	clock.timeline = mem_calloc(1, sizeof(*clock.timeline));
	if (!clock.timeline)
		return err_nomem(err);
	status = clock_init(&clock, err);
	if (status == ST_OK) {
		run_clock(&clock);
		if (params->prefetch_depth == 1)
			repeat_run(&clock);
		qsort(clock.timeline->events, (size_t)clock.timeline->count,
		      sizeof(*clock.timeline->events), compare_events);
		qsort(clock.timeline->transfers, (size_t)clock.timeline->transfer_count,
		      sizeof(*clock.timeline->transfers), compare_transfers);
		*out = clock.timeline;
	} else {
		ipu_timeline_free(clock.timeline);
	}
	mem_free(clock.lanes);
	mem_free(clock.fed);
	mem_free(clock.link_bytes);
	mem_free(clock.index);
	mem_free(clock.sent[0]);
	mem_free(clock.sent[1]);
	mem_free(clock.links.load);
	return status;
}

void ipu_timeline_free(struct ipu_timeline *timeline)
{
	if (!timeline)
		return;
	mem_free(timeline->events);
	mem_free(timeline->transfers);
	mem_free(timeline->split);
	mem_free(timeline);
}

/* ---- reading a timeline ---------------------------------------------------------------------- */

int ipu_timeline_intervals(const struct ipu_timeline *timeline, const struct ipu_target *target,
			   struct ipu_interval *out)
{
	int count = 0;

	for (int i = 0; i < timeline->count; i++) {
		const struct ipu_event *event = &timeline->events[i];
		const int64_t start = ipu_target_ns(target, event->start_cycle);

		if (event->microbatch < 0 || event->phase == '\0')
			continue;
		out[count++] = (struct ipu_interval){
			.ipu = event->ipu,
			.stage = event->stage,
			.microbatch = event->microbatch,
			.phase = event->phase == IPU_PHASE_R ? IPU_PHASE_W : event->phase,
			.start_ns = start,
			.dur_ns = ipu_target_ns(target, event->start_cycle + event->cycles) - start,
		};
	}
	return count;
}

bool ipu_walk_next(struct ipu_walk *walk)
{
	const struct ipu_timeline *timeline = walk->timeline;
	const struct ipu_event *event =
		walk->events < timeline->count ? &timeline->events[walk->events] : NULL;
	const struct ipu_transfer *transfer = walk->transfers < timeline->transfer_count
						      ? &timeline->transfers[walk->transfers]
						      : NULL;

	if (event && transfer) {
		if (transfer->ipu < event->ipu ||
		    (transfer->ipu == event->ipu && transfer->start_cycle <= event->start_cycle))
			event = NULL;
		else
			transfer = NULL;
	}
	walk->events += event != NULL;
	walk->transfers += transfer != NULL;
	walk->event = event;
	walk->transfer = transfer;
	return event || transfer;
}
