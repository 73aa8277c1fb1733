/*
 * The execution trace: the steps of a mode's timeline once, then a row for each pipeline run of
 * them. By the main thread.
 */
#include <math.h>

#include "trainer/train_record_internal.h"

bool train__walk(struct train_walk *walk)
{
	const struct ipu_timeline *timeline = walk->timeline;
	const struct ipu_event *event =
		walk->events < timeline->count ? &timeline->events[walk->events] : NULL;
	const struct ipu_transfer *transfer = walk->transfers < timeline->transfer_count
						      ? &timeline->transfers[walk->transfers]
						      : NULL;

	if (event != NULL && transfer != NULL) {
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
	return event != NULL || transfer != NULL;
}

/* --- the steps of a mode -----------------------------------------------------------------------
 */

struct trace {
	const struct train_session *session;
	int64_t trace_id;
	int64_t ipu, steps; /* of the present IPU, so far */
	int failed;
};

/* The trace of a mode has the mode's number. */
static int64_t mode_trace(enum ips_mode mode)
{
	return (int64_t)mode;
}

/* @step: all but what is the trace's. */
static void append_step(struct trace *trace, struct ips_device_step *step)
{
	if (step->ipu != trace->ipu)
		trace->steps = 0;
	trace->ipu = step->ipu;
	step->trace_id = trace->trace_id;
	step->trace_step = trace->steps++;
	trace->failed |= ips_append_device_step(trace->session->recording, step);
}

static double balance(double mean_cycles, int64_t tiles, int64_t cycles, int64_t all_tiles)
{
	return cycles > 0 ? mean_cycles * (double)tiles / ((double)cycles * (double)all_tiles)
			  : NAN;
}

static void append_program_step(struct trace *trace, const struct ipu_event *event,
				const struct ipu_step *from, int64_t start_cycle)
{
	const struct train_device *device = trace->session->device;
	const char phase[2] = {event->phase, '\0'};
	struct ips_device_step step = {
		.ipu = event->ipu,
		.stage = event->stage,
		.phase = phase,
		.microbatch = event->microbatch < 0 ? IPS_NULL : event->microbatch,
		.program_id = from->program,
		.type = ipu_program_type_name(from->type),
		.name = device->executable->programs[from->program].name,
		.operation = from->node < 0 ? NULL : device->graph.nodes[from->node].op.name,
		.start_cycle = start_cycle,
		.cycles = from->cycles,
		.cycles_overlapped = IPS_NULL,
		.active_tiles = from->tiles,
		.tile_balance = NAN,
		.active_tile_balance = NAN,
		.bytes_in = from->bytes,
		.bytes_out = from->bytes,
	};

	if (from->type == IPU_ON_TILE_EXECUTE) {
		step.tile_balance =
			balance(from->mean_cycles, from->tiles, from->cycles, device->target.tiles);
		step.active_tile_balance =
			balance(from->mean_cycles, from->tiles, from->cycles, from->tiles);
	}
	append_step(trace, &step);
}

/* The steps of an event, one after the other. */
static void append_event(struct trace *trace, const struct ipu_event *event)
{
	const struct train_device *device = trace->session->device;
	const struct ipu_code *code =
		&device->executable->code[event->stage][ipu_function_of(event->phase)];
	int64_t cycle = event->start_cycle;

	for (int i = 0; i < code->step_count; i++) {
		for (int64_t r = 0; r < code->steps[i].repeats; r++) {
			append_program_step(trace, event, &code->steps[i], cycle);
			cycle += code->steps[i].cycles;
		}
	}
}

/* Of no stage and no micro-batch: all of the time step's. */
static void append_transfer(struct trace *trace, const struct ipu_transfer *transfer)
{
	const char *name = ipu_transfer_name(transfer->kind);
	struct ips_device_step step = {
		.ipu = transfer->ipu,
		.stage = IPS_NULL,
		.microbatch = IPS_NULL,
		.program_id = IPS_NULL,
		.type = name,
		.name = name,
		.start_cycle = transfer->start_cycle,
		.cycles = transfer->cycles,
		.cycles_overlapped = IPS_NULL,
		.active_tiles = IPS_NULL,
		.tile_balance = NAN,
		.active_tile_balance = NAN,
		.bytes_in = transfer->bytes,
		.bytes_out = IPS_NULL,
	};

	append_step(trace, &step);
}

static enum status append_trace(const struct train_session *session)
{
	static const char *const names[TRAIN_MODES] = {
		[IPS_TRAIN] = "train", [IPS_EVALUATE] = "evaluate", [IPS_PREDICT] = "predict"};
	const enum ips_mode mode = session->execution.mode;
	struct trace trace = {.session = session, .trace_id = mode_trace(mode), .ipu = -1};
	struct train_walk walk = {.timeline = session->execution.timeline};
	const struct ips_device_trace row = {
		.trace_id = trace.trace_id,
		.clock_hz = session->device->target.clock_hz,
		.name = names[mode],
	};

	trace.failed = ips_append_device_trace(session->recording, &row);
	while (train__walk(&walk)) {
		if (walk.event != NULL)
			append_event(&trace, walk.event);
		else
			append_transfer(&trace, walk.transfer);
	}
	return trace.failed == 0 ? ST_OK : ST_FAILED;
}

/* --- its runs ----------------------------------------------------------------------------------
 */

enum status train__append_device_run(struct train_worker *worker, int64_t run, int64_t start_cycle)
{
	struct train_session *session = worker->session;
	struct train_program *program = &session->program[session->execution.mode];
	const struct ips_keys keys = train_record_keys(worker, 0, 0, run, 0);
	const struct ips_device_run row = {
		.trace_id = mode_trace(session->execution.mode),
		.mode = keys.mode,
		.epoch = keys.epoch,
		.execution = keys.execution,
		.weight_update = keys.weight_update,
		.first_step = keys.step,
		.replica = keys.replica,
		.first_ipu = train__global_ipu(session, worker->replica->number, 0),
		.start_cycle = start_cycle,
	};

	if (!program->trace_recorded) {
		if (append_trace(session) != ST_OK)
			return ST_FAILED;
		program->trace_recorded = true;
	}
	return (enum status)ips_append_device_run(session->recording, &row);
}
