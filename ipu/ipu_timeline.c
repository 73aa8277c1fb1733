/*
 * The device clock: one pass over the steps, then one over the weight update.
 *
 * Threads: none; a timeline does not change after ipu_timeline_new(). It owns its arrays.
 */
#include "ipu/ipu_timeline.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"

/* What one IPU does in one step: stream copies, its programs, its copies to and from other IPUs. */
struct step_part {
	int64_t host_bytes, programs, host_io, copy;
	int64_t sent, received; /* bytes between IPUs */
};

struct clock {
	const struct ipu_target *target;
	const struct ipu_schedule *schedule;
	const struct ipu_stage_cost *costs;
	struct ipu_timeline *timeline;
	struct step_part *parts; /* by IPU, of the present step */
	int *next;               /* by IPU: its first work that is not yet done */
	int64_t now;
};

static int64_t cycles_of(double bytes, double bytes_second, double clock_hz)
{
	return bytes > 0 ? (int64_t)ceil(bytes / bytes_second * clock_hz) : 0;
}

static int64_t step_sync(const struct clock *clock)
{
	const struct ipu_target *target = clock->target;

	return (int64_t)(clock->schedule->ipus > 1 ? target->global_sync_cycles
						   : target->sync_cycles);
}

static void event_add(struct clock *clock, const struct ipu_event *event)
{
	if (event->cycles == 0 && event->phase == 'U')
		return;
	clock->timeline->events[clock->timeline->count++] = *event;
}

static void transfer_add(struct clock *clock, enum ipu_transfer_kind kind, int ipu, int step,
			 int64_t start, int64_t cycles, int64_t bytes)
{
	if (cycles == 0)
		return;
	clock->timeline->transfers[clock->timeline->transfer_count++] =
		(struct ipu_transfer){.kind = kind,
				      .ipu = ipu,
				      .time_step = step,
				      .start_cycle = start,
				      .cycles = cycles,
				      .bytes = bytes};
}

/* What the outputs of @work put on the links: activations forward, their gradients back. */
static void send(struct clock *clock, int ipu, const struct ipu_work *work)
{
	const struct ipu_schedule *schedule = clock->schedule;
	int to = work->phase == 'F' ? work->stage + 1 : work->stage - 1;
	int64_t bytes;

	if (to < 0 || to >= schedule->stages || schedule->device[to] == ipu)
		return;
	bytes = clock->costs[work->phase == 'F' ? work->stage : to].output_bytes;
	clock->parts[ipu].sent += bytes;
	clock->parts[schedule->device[to]].received += bytes;
}

/* Gather what IPU @ipu does in step @step; what it exchanges is complete once all IPUs are
 * gathered. */
static int64_t gather(struct clock *clock, int ipu, int step)
{
	struct step_part *part = &clock->parts[ipu];
	int64_t bytes = 0;

	for (int i = clock->next[ipu]; i < clock->schedule->first[ipu + 1]; i++) {
		const struct ipu_work *work = &clock->schedule->works[i];
		const struct ipu_stage_cost *cost = &clock->costs[work->stage];

		if (work->time_step != step)
			break;
		if (work->phase == 'F')
			bytes += cost->host_bytes;
		part->programs += work->phase == 'F' ? cost->forward : cost->backward;
		send(clock, ipu, work);
	}
	part->host_bytes = bytes;
	return bytes;
}

static void split_programs(struct ipu_split *split, int64_t cycles, int64_t exchange, int64_t sync)
{
	split->exchange += exchange;
	split->sync += sync;
	split->compute += cycles - exchange - sync;
}

static void run_works(struct clock *clock, int ipu, int step)
{
	int64_t at = clock->now + clock->parts[ipu].host_io;
	struct ipu_split *split = &clock->timeline->split[ipu];

	for (; clock->next[ipu] < clock->schedule->first[ipu + 1]; clock->next[ipu]++) {
		const struct ipu_work *work = &clock->schedule->works[clock->next[ipu]];
		const struct ipu_stage_cost *cost = &clock->costs[work->stage];
		bool forward = work->phase == 'F';
		struct ipu_event event = {.ipu = ipu,
					  .stage = work->stage,
					  .microbatch = work->microbatch,
					  .phase = work->phase,
					  .time_step = step,
					  .start_cycle = at,
					  .cycles = forward ? cost->forward : cost->backward};

		if (work->time_step != step)
			break;
		event_add(clock, &event);
		split_programs(split, event.cycles,
			       forward ? cost->forward_exchange : cost->backward_exchange,
			       forward ? cost->forward_sync : cost->backward_sync);
		at += event.cycles;
	}
}

static void run_step(struct clock *clock, int step)
{
	const struct ipu_target *target = clock->target;
	int64_t sync = step_sync(clock), longest = 0, longest_copy = 0, host_bytes = 0, host_io;
	int ipus = clock->schedule->ipus;

	for (int i = 0; i < ipus; i++)
		clock->parts[i] = (struct step_part){0};
	for (int i = 0; i < ipus; i++)
		host_bytes += gather(clock, i, step);
	/* The IPUs of a host link share it, so all that stream in a step end together. */
	host_io = cycles_of((double)host_bytes, target->host_bytes_second, target->clock_hz);
	for (int i = 0; i < ipus; i++) {
		struct step_part *part = &clock->parts[i];
		int64_t bytes = part->sent > part->received ? part->sent : part->received;

		part->host_io = part->host_bytes > 0 ? host_io : 0;
		part->copy = cycles_of((double)bytes, target->link_bytes_second, target->clock_hz);
		if (part->host_io + part->programs > longest)
			longest = part->host_io + part->programs;
		if (part->copy > longest_copy)
			longest_copy = part->copy;
	}
	for (int i = 0; i < ipus; i++) {
		const struct step_part *part = &clock->parts[i];
		struct ipu_split *split = &clock->timeline->split[i];

		transfer_add(clock, IPU_TRANSFER_STREAM_COPY, i, step, clock->now, part->host_io,
			     part->host_bytes);
		run_works(clock, i, step);
		transfer_add(clock, IPU_TRANSFER_GLOBAL, i, step, clock->now + longest, part->copy,
			     part->sent > part->received ? part->sent : part->received);
		split->host_io += part->host_io;
		split->exchange += part->copy;
		split->sync += sync;
		split->idle += longest - part->host_io - part->programs + longest_copy - part->copy;
	}
	clock->timeline->host_io_cycles += host_io;
	clock->now += longest + longest_copy + sync;
}

static int64_t update_of(const struct clock *clock, int ipu)
{
	int64_t cycles = 0;

	for (int s = 0; s < clock->schedule->stages; s++) {
		if (clock->schedule->device[s] == ipu)
			cycles += clock->costs[s].update;
	}
	return cycles;
}

static void run_update(struct clock *clock)
{
	const struct ipu_schedule *schedule = clock->schedule;
	int64_t sync = step_sync(clock), longest = 0;

	for (int i = 0; i < schedule->ipus; i++) {
		int64_t cycles = update_of(clock, i);

		longest = cycles > longest ? cycles : longest;
	}
	for (int i = 0; i < schedule->ipus; i++) {
		struct ipu_split *split = &clock->timeline->split[i];
		int64_t at = clock->now;

		for (int s = 0; s < schedule->stages; s++) {
			const struct ipu_stage_cost *cost = &clock->costs[s];
			struct ipu_event event = {.ipu = i,
						  .stage = s,
						  .microbatch = -1,
						  .phase = 'U',
						  .time_step = schedule->time_steps,
						  .start_cycle = at,
						  .cycles = cost->update};

			if (schedule->device[s] != i)
				continue;
			event_add(clock, &event);
			split_programs(split, cost->update, cost->update_exchange,
				       cost->update_sync);
			at += cost->update;
		}
		split->sync += sync;
		split->idle += clock->now + longest - at;
	}
	clock->now += longest + sync;
}

static int compare_events(const void *left, const void *right)
{
	const struct ipu_event *a = left, *b = right;

	if (a->ipu != b->ipu)
		return a->ipu < b->ipu ? -1 : 1;
	if (a->start_cycle != b->start_cycle)
		return a->start_cycle < b->start_cycle ? -1 : 1;
	if (a->time_step != b->time_step)
		return a->time_step < b->time_step ? -1 : 1;
	/* Programs that cost nothing: in the order of work. */
	if (a->phase != b->phase)
		return a->phase == 'F' ? -1 : 1;
	return (a->stage > b->stage) - (a->stage < b->stage);
}

static int compare_transfers(const void *left, const void *right)
{
	const struct ipu_transfer *a = left, *b = right;

	if (a->ipu != b->ipu)
		return a->ipu < b->ipu ? -1 : 1;
	return (a->start_cycle > b->start_cycle) - (a->start_cycle < b->start_cycle);
}

const char *ipu_transfer_name(enum ipu_transfer_kind kind)
{
	static const char *const names[] = {
		[IPU_TRANSFER_STREAM_COPY] = "StreamCopyMid",
		[IPU_TRANSFER_GLOBAL] = "GlobalExchange",
	};

	_Static_assert(ARRAY_LEN(names) == IPU_TRANSFER_KINDS, "transfer names out of step");
	return names[kind];
}

static enum status check_costs(const struct ipu_schedule *schedule,
			       const struct ipu_stage_cost *costs, struct err *err)
{
	for (int s = 0; s < schedule->stages; s++) {
		const struct ipu_stage_cost *c = &costs[s];

		if (c->forward < 0 || c->backward < 0 || c->update < 0 || c->host_bytes < 0 ||
		    c->output_bytes < 0)
			return err_set(err, ST_INVALID, "stage %d has a negative cost", s);
		if (c->forward_exchange < 0 || c->forward_sync < 0 || c->backward_exchange < 0 ||
		    c->backward_sync < 0 || c->update_exchange < 0 || c->update_sync < 0 ||
		    c->forward_exchange + c->forward_sync > c->forward ||
		    c->backward_exchange + c->backward_sync > c->backward ||
		    c->update_exchange + c->update_sync > c->update)
			return err_set(err, ST_INVALID,
				       "stage %d: exchange and sync are more than the whole", s);
	}
	return ST_OK;
}

static enum status clock_init(struct clock *clock, struct err *err)
{
	const struct ipu_schedule *schedule = clock->schedule;
	size_t ipus = (size_t)schedule->ipus;
	size_t works = (size_t)schedule->first[ipus] + (size_t)schedule->stages;

	clock->parts = mem_calloc(ipus, sizeof(*clock->parts));
	clock->next = mem_calloc(ipus, sizeof(*clock->next));
	clock->timeline->events = mem_calloc(works, sizeof(*clock->timeline->events));
	clock->timeline->transfers = mem_calloc(ipus * (size_t)schedule->time_steps * 2 + 1,
						sizeof(*clock->timeline->transfers));
	clock->timeline->split = mem_calloc(ipus, sizeof(*clock->timeline->split));
	if (clock->parts == NULL || clock->next == NULL || clock->timeline->events == NULL ||
	    clock->timeline->transfers == NULL || clock->timeline->split == NULL)
		return err_nomem(err);
	for (size_t i = 0; i < ipus; i++)
		clock->next[i] = schedule->first[i];
	return ST_OK;
}

enum status ipu_timeline_new(struct ipu_timeline **out, const struct ipu_target *target,
			     const struct ipu_schedule *schedule,
			     const struct ipu_stage_cost *costs, struct err *err)
{
	struct clock clock = {.target = target, .schedule = schedule, .costs = costs};
	enum status status;

	*out = NULL;
	status = check_costs(schedule, costs, err);
	if (status != ST_OK)
		return status;
	clock.timeline = mem_calloc(1, sizeof(*clock.timeline));
	if (clock.timeline == NULL)
		return err_nomem(err);
	status = clock_init(&clock, err);
	if (status == ST_OK) {
		for (int step = 0; step < schedule->time_steps; step++)
			run_step(&clock, step);
		if (schedule->training)
			run_update(&clock);
		clock.timeline->cycles = clock.now;
		qsort(clock.timeline->events, (size_t)clock.timeline->count,
		      sizeof(*clock.timeline->events), compare_events);
		qsort(clock.timeline->transfers, (size_t)clock.timeline->transfer_count,
		      sizeof(*clock.timeline->transfers), compare_transfers);
		*out = clock.timeline;
	} else {
		ipu_timeline_free(clock.timeline);
	}
	mem_free(clock.parts);
	mem_free(clock.next);
	return status;
}

void ipu_timeline_free(struct ipu_timeline *timeline)
{
	if (timeline == NULL)
		return;
	mem_free(timeline->events);
	mem_free(timeline->transfers);
	mem_free(timeline->split);
	mem_free(timeline);
}
