/*
 * An event is expanded to the steps of its function; a transfer is a step itself. Threads: any; no
 * state.
 */
#include "ipu/compile/ipu_trace.h"

#include <assert.h>
#include <limits.h>

#include "common/mem.h"
#include "common/minmax.h"

struct tracing {
	const struct ipu_executable *executable;
	int64_t origin; /* cycle that counts as 0 */
	ipu_trace_fn fn;
	void *user;
};

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

enum ipu_program_type ipu_transfer_type(enum ipu_transfer_kind kind)
{
	static const enum ipu_program_type types[] = {
		[IPU_TRANSFER_INFEED] = IPU_STREAM_COPY_MID,
		[IPU_TRANSFER_COPY_IN] = IPU_DO_EXCHANGE,
		[IPU_TRANSFER_COPY_OUT] = IPU_DO_EXCHANGE,
		[IPU_TRANSFER_WAIT] = IPU_SYNC,
		[IPU_TRANSFER_RECEIVE] = IPU_GLOBAL_EXCHANGE,
		[IPU_TRANSFER_SYNC] = IPU_SYNC,
		[IPU_TRANSFER_GLOBAL] = IPU_GLOBAL_EXCHANGE,
		[IPU_TRANSFER_SYNC_ANS] = IPU_SYNC_ANS,
		[IPU_TRANSFER_OUTFEED] = IPU_STREAM_COPY_MID,
	};

	_Static_assert(ARRAY_LEN(types) == IPU_TRANSFER_KINDS, "transfer types out of step");
	assert((unsigned)kind < IPU_TRANSFER_KINDS);
	return types[kind];
}

/* Report the steps of a function in sequence. */
static int trace_event(const struct tracing *tracing, const struct ipu_event *event)
{
	const struct ipu_code *code = &tracing->executable->code[event->stage][event->function];
	struct ipu_trace_step step = {.ipu = event->ipu,
				      .stage = event->stage,
				      .microbatch = event->microbatch,
				      .phase = event->phase,
				      .start_cycle = event->start_cycle - tracing->origin,
				      .overlapped = -1};
	int failed = 0;

	for (int first = 0, end; first < code->step_count && !failed; first = end) {
		const struct ipu_program *programs = tracing->executable->programs;
		const int parent = programs[code->steps[first].program].parent;

		/* End of the loop that begins with step first; a step outside loops is one of its
		 * own. */
		end = first + 1;
		while (code->steps[first].repeats > 1 && end < code->step_count &&
		       programs[code->steps[end].program].parent == parent)
			end++;
		for (int64_t r = 0; r < code->steps[first].repeats; r++)
			for (int i = first; i < end && !failed; i++) {
				step.program = code->steps[i].program;
				step.node = code->steps[i].node;
				step.type = code->steps[i].type;
				step.cycles = code->steps[i].cycles;
				step.tiles = code->steps[i].tiles;
				step.mean_cycles = code->steps[i].mean_cycles;
				step.bytes_in = code->steps[i].bytes_in;
				step.bytes_out = code->steps[i].bytes_out;
				failed = tracing->fn(tracing->user, &step);
				step.start_cycle += step.cycles;
			}
	}
	return failed;
}

/* Report Begin, Mid and End; the overlapped cycles are the first ones. */
static int trace_stream(const struct tracing *tracing, const struct ipu_transfer *transfer,
			struct ipu_trace_step *step)
{
	const int64_t cycles[] = {transfer->begin_cycles,
				  transfer->cycles - transfer->begin_cycles - transfer->end_cycles,
				  transfer->end_cycles};
	int64_t hidden = transfer->overlapped;

	for (int i = 0; i < 3; i++) {
		const bool mid = i == 1;
		int failed;

		step->type = (enum ipu_program_type)(IPU_STREAM_COPY_BEGIN + i);
		step->program = transfer->program < 0 ? -1 : transfer->program + i;
		step->cycles = cycles[i];
		step->mean_cycles = (double)cycles[i];
		step->overlapped = min(hidden, cycles[i]);
		step->bytes_in = mid ? transfer->bytes_in : 0;
		step->bytes_out = mid ? transfer->bytes_out : 0;
		hidden -= step->overlapped;
		failed = tracing->fn(tracing->user, step);
		if (failed)
			return failed;
		step->start_cycle += cycles[i];
	}
	return 0;
}

static int trace_transfer(const struct tracing *tracing, const struct ipu_transfer *transfer)
{
	struct ipu_trace_step step = {.ipu = transfer->ipu,
				      .stage = transfer->stage,
				      .microbatch = transfer->microbatch,
				      .program = transfer->program,
				      .node = -1,
				      .type = ipu_transfer_type(transfer->kind),
				      .start_cycle = transfer->start_cycle - tracing->origin,
				      .cycles = transfer->cycles,
				      .overlapped = -1,
				      .tiles = -1,
				      .mean_cycles = (double)transfer->cycles,
				      .bytes_in = transfer->bytes_in,
				      .bytes_out = transfer->bytes_out};

	if (step.type == IPU_STREAM_COPY_MID)
		return trace_stream(tracing, transfer, &step);
	return tracing->fn(tracing->user, &step);
}

int ipu_trace_part(const struct ipu_executable *executable, const struct ipu_timeline *timeline,
		   const struct ipu_trace_part *part, ipu_trace_fn fn, void *user)
{
	const struct tracing tracing = {
		.executable = executable, .origin = part->start_cycle, .fn = fn, .user = user};
	struct ipu_walk walk = {.timeline = timeline};
	int failed = 0;

	while (!failed && ipu_walk_next(&walk)) {
		const int step = walk.event ? walk.event->time_step : walk.transfer->time_step;

		if (step < part->first_step || step >= part->end_step)
			continue;
		failed = walk.event ? trace_event(&tracing, walk.event)
				    : trace_transfer(&tracing, walk.transfer);
	}
	return failed;
}

int ipu_trace(const struct ipu_executable *executable, const struct ipu_timeline *timeline,
	      ipu_trace_fn fn, void *user)
{
	const struct ipu_trace_part all = {.end_step = INT_MAX, .repeats = 1};

	return ipu_trace_part(executable, timeline, &all, fn, user);
}
