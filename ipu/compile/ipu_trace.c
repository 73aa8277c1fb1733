/*
 * The execution trace: an event is expanded to the steps of its function; a transfer is a step
 * itself.
 *
 * The steady state of a pipeline run is found by comparing each period of its timeline with the
 * previous one: what repeats to the cycle is reported once. Threads: any; no state.
 */
#include "ipu/compile/ipu_trace.h"

#include <limits.h>

#include "common/minmax.h"
#include "ipu/compile/ipu_program.h"

struct tracing {
	const struct ipu_executable *executable;
	int64_t origin; /* cycle that counts as 0 */
	ipu_trace_fn fn;
	void *user;
};

/* End of the loop that begins with step @first; a step outside loops is one of its own. */
static int loop_end(const struct tracing *tracing, const struct ipu_code *code, int first)
{
	const struct ipu_program *programs = tracing->executable->programs;
	const int parent = programs[code->steps[first].program].parent;
	int end = first + 1;

	while (code->steps[first].repeats > 1 && end < code->step_count &&
	       programs[code->steps[end].program].parent == parent)
		end++;
	return end;
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
		end = loop_end(tracing, code, first);
		for (int64_t r = 0; r < code->steps[first].repeats; r++) {
			for (int i = first; i < end && !failed; i++) {
				const struct ipu_step *from = &code->steps[i];

				step.program = from->program;
				step.node = from->node;
				step.type = from->type;
				step.cycles = from->cycles;
				step.tiles = from->tiles;
				step.mean_cycles = from->mean_cycles;
				step.bytes_in = from->bytes_in;
				step.bytes_out = from->bytes_out;
				failed = tracing->fn(tracing->user, &step);
				step.start_cycle += step.cycles;
			}
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

/* The comparison of time steps @first .. @end - 1. */
struct periods {
	const struct ipu_timeline *timeline;
	int first, end, period;
	int64_t cycles;   /* between periods */
	int microbatches; /* between periods */
	int broken;       /* the last time step that differs from the previous period, or -1 */
};

static bool next_microbatch(const struct periods *periods, int before, int now)
{
	return before < 0 ? now == before : now == before + periods->microbatches;
}

static bool same_event(const struct periods *periods, const struct ipu_event *before,
		       const struct ipu_event *now)
{
	return now->ipu == before->ipu && now->stage == before->stage &&
	       now->function == before->function && now->cycles == before->cycles &&
	       now->time_step == before->time_step + periods->period &&
	       now->start_cycle == before->start_cycle + periods->cycles &&
	       next_microbatch(periods, before->microbatch, now->microbatch);
}

static bool same_transfer(const struct periods *periods, const struct ipu_transfer *before,
			  const struct ipu_transfer *now)
{
	return now->ipu == before->ipu && now->stage == before->stage &&
	       now->kind == before->kind && now->backward == before->backward &&
	       now->cycles == before->cycles &&
	       now->time_step == before->time_step + periods->period &&
	       now->start_cycle == before->start_cycle + periods->cycles &&
	       now->overlapped == before->overlapped && now->begin_cycles == before->begin_cycles &&
	       now->end_cycles == before->end_cycles && now->bytes_in == before->bytes_in &&
	       now->bytes_out == before->bytes_out && now->program == before->program &&
	       next_microbatch(periods, before->microbatch, now->microbatch);
}

static void record_difference(struct periods *periods, int time_step, bool same)
{
	if (!same && time_step > periods->broken)
		periods->broken = time_step;
}

/* Members of event @i, or of transfer @i if @transfers. */
static int ipu_at(const struct ipu_timeline *timeline, bool transfers, int i)
{
	return transfers ? timeline->transfers[i].ipu : timeline->events[i].ipu;
}

static int step_at(const struct ipu_timeline *timeline, bool transfers, int i)
{
	return transfers ? timeline->transfers[i].time_step : timeline->events[i].time_step;
}

static bool same_at(const struct periods *periods, bool transfers, int before, int now)
{
	const struct ipu_timeline *timeline = periods->timeline;

	return transfers ? same_transfer(periods, &timeline->transfers[before],
					 &timeline->transfers[now])
			 : same_event(periods, &timeline->events[before], &timeline->events[now]);
}

/* Both lists are sorted by IPU, then time step: within an IPU, the counterpart one period before
 * has an index lower by the number of items in the last period. Compare both ways, so that no
 * period has more or fewer items than the next. */
static void compare_ipu(struct periods *periods, bool transfers, int first, int end)
{
	int count = 0;

	for (int i = first; i < end; i++) {
		const int step = step_at(periods->timeline, transfers, i);

		count += step >= periods->end - periods->period && step < periods->end;
	}
	for (int i = first; i < end; i++) {
		const int step = step_at(periods->timeline, transfers, i);

		if (step >= periods->first + periods->period && step < periods->end)
			record_difference(periods, step,
					  i - count >= first &&
						  same_at(periods, transfers, i - count, i));
		if (step >= periods->first && step < periods->end - periods->period)
			record_difference(periods, step + periods->period,
					  i + count < end &&
						  same_at(periods, transfers, i, i + count));
	}
}

static void compare(struct periods *periods, bool transfers)
{
	const struct ipu_timeline *timeline = periods->timeline;
	const int count = transfers ? timeline->transfer_count : timeline->count;

	for (int first = 0, end = 0; first < count; first = end) {
		while (end < count &&
		       ipu_at(timeline, transfers, end) == ipu_at(timeline, transfers, first))
			end++;
		compare_ipu(periods, transfers, first, end);
	}
}

/* The start of time step @step, or of a later one, on the first IPU that has work in it. */
static int64_t step_cycle(const struct ipu_timeline *timeline, int step)
{
	struct ipu_walk walk = {.timeline = timeline};

	while (ipu_walk_next(&walk))
		if ((walk.event ? walk.event->time_step : walk.transfer->time_step) >= step)
			return walk.event ? walk.event->start_cycle : walk.transfer->start_cycle;
	return timeline->cycles;
}

int ipu_trace_parts(struct ipu_trace_part parts[IPU_TRACE_PARTS],
		    const struct ipu_schedule *schedule, const struct ipu_timeline *timeline)
{
	const struct ipu_folding fold = ipu_control_fold(schedule, timeline);
	struct periods periods = {.timeline = timeline,
				  .first = fold.lead,
				  .end = fold.lead + fold.repeats * fold.period,
				  .period = fold.period,
				  .microbatches = fold.microbatches,
				  .broken = -1};
	int count = 0, passed = 0, repeats;
	int64_t start, end;

	parts[0] = (struct ipu_trace_part){.end_step = INT_MAX, .repeats = 1};
	/* Without lockstep, no two IPUs repeat at the same cycles. */
	if (fold.repeats < 2 || !ipu_schedule_lockstep(schedule->kind))
		return 1;
	end = step_cycle(timeline, periods.end);
	periods.cycles = end - step_cycle(timeline, periods.end - periods.period);
	compare(&periods, false);
	compare(&periods, true);
	/* A period that differs from the previous one may be the first of the steady state. */
	if (periods.broken >= 0)
		passed = (periods.broken - periods.first) / periods.period;
	repeats = fold.repeats - passed;
	if (repeats < 2)
		return 1;
	periods.first += passed * periods.period;
	start = end - repeats * periods.cycles;
	if (periods.first > 0)
		parts[count++].end_step = periods.first;
	parts[count++] = (struct ipu_trace_part){
		.first_step = periods.first,
		.end_step = periods.first + periods.period,
		.repeats = repeats,
		.start_cycle = start,
		.cycles = periods.cycles,
		.microbatches = fold.microbatches,
	};
	/* Without training the last period may be the end of the run. */
	if (end < timeline->cycles)
		parts[count++] = (struct ipu_trace_part){.first_step = periods.end,
							 .end_step = INT_MAX,
							 .repeats = 1,
							 .start_cycle = end};
	return count;
}
