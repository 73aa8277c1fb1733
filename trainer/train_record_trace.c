/*
 * The execution trace: the steps of a mode's timeline once, what repeats in it once too, then a row
 * for each time that they ran. By the main thread.
 */
#include <math.h>
#include <stdio.h>

#include "trainer/train_record_internal.h"

/* ---- the steps of a mode --------------------------------------------------------------------- */

struct trace {
	const struct train_session *session;
	int64_t trace_id;
	int64_t ipu, steps; /* of the present IPU, so far */
	int failed;
};

/* Each part of a mode's pipeline run is a trace. */
static int64_t part_trace(enum ips_mode mode, int part)
{
	return (int64_t)mode * IPU_TRACE_PARTS + part;
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

static int64_t or_null(int64_t value)
{
	return value < 0 ? IPS_NULL : value;
}

static int append_trace_step(void *user, const struct ipu_trace_step *from)
{
	struct trace *trace = user;
	const struct plan_device *device = trace->session->device;
	const bool leaf = from->program >= 0;
	const char phase[2] = {from->phase, '\0'};
	struct ips_device_step step = {
		.ipu = from->ipu,
		.stage = or_null(from->stage),
		.phase = from->phase ? phase : NULL,
		.microbatch = or_null(from->microbatch),
		.program_id = or_null(from->program),
		.type = ipu_program_type_name(from->type),
		.name = leaf ? device->executable->programs[from->program].name : NULL,
		.operation = from->node < 0 ? NULL : device->graph.nodes[from->node].op.name,
		.start_cycle = from->start_cycle,
		.cycles = from->cycles,
		.cycles_overlapped = or_null(from->overlapped),
		.active_tiles = or_null(from->tiles),
		.tile_balance = NAN,
		.active_tile_balance = NAN,
		.bytes_in = from->bytes_in,
		.bytes_out = from->bytes_out,
	};

	if (from->type == IPU_ON_TILE_EXECUTE) {
		step.tile_balance =
			balance(from->mean_cycles, from->tiles, from->cycles, device->target.tiles);
		step.active_tile_balance =
			balance(from->mean_cycles, from->tiles, from->cycles, from->tiles);
	}
	append_step(trace, &step);
	return trace->failed;
}

static int append_part(const struct train_session *session, int number,
		       const struct ipu_trace_part *part, const char *name)
{
	struct trace trace = {.session = session,
			      .trace_id = part_trace(session->execution.mode, number),
			      .ipu = -1};
	const struct ips_device_trace row = {
		.trace_id = trace.trace_id,
		.clock_hz = session->device->target.clock_hz,
		.name = name,
	};

	trace.failed = ips_append_device_trace(session->recording, &row);
	if (trace.failed == 0)
		ipu_trace_part(session->device->executable, session->execution.timeline, part,
			       append_trace_step, &trace);
	return trace.failed;
}

static enum status append_traces(const struct train_session *session)
{
	static const char *const modes[TRAIN_MODES] = {
		[IPS_TRAIN] = "train", [IPS_EVALUATE] = "evaluate", [IPS_PREDICT] = "predict"};
	const enum ips_mode mode = session->execution.mode;
	const struct train_program *program = &session->program[mode];
	int failed = 0;

	for (int i = 0; i < program->trace_part_count; i++) {
		const struct ipu_trace_part *part = &program->trace_part[i];
		char name[32];

		snprintf(name, sizeof(name), "%s%s", modes[mode],
			 part->repeats > 1                                ? "/Main"
			 : part->first_step > 0                           ? "/RampDown"
			 : part->end_step < program->schedule->time_steps ? "/RampUp"
									  : "");
		failed |= append_part(session, i, part, name);
	}
	return failed == 0 ? ST_OK : ST_FAILED;
}

/* ---- its runs -------------------------------------------------------------------------------- */

static int append_repeats(struct train_worker *worker, int64_t run, int64_t start_cycle, int number)
{
	struct train_session *session = worker->session;
	const enum ips_mode mode = session->execution.mode;
	const struct ipu_trace_part *part = &session->program[mode].trace_part[number];
	const struct ips_keys keys = train_record_keys(worker, 0, 0, run, 0);
	int failed = 0;

	for (int64_t i = 0; i < part->repeats && failed == 0; i++) {
		const int64_t first = i * part->microbatches;
		const struct ips_device_run row = {
			.trace_id = part_trace(mode, number),
			.mode = keys.mode,
			.epoch = keys.epoch,
			.execution = keys.execution,
			.weight_update = keys.weight_update,
			.first_step = keys.step + first,
			.first_microbatch = first,
			.replica = keys.replica,
			.first_ipu = train__global_ipu(session, worker->replica->number, 0),
			.start_cycle = start_cycle + part->start_cycle + i * part->cycles,
		};

		failed = ips_append_device_run(session->recording, &row);
	}
	return failed;
}

enum status train__append_device_run(struct train_worker *worker, int64_t run, int64_t start_cycle)
{
	struct train_session *session = worker->session;
	struct train_program *program = &session->program[session->execution.mode];
	int failed = 0;

	if (program->trace_part_count == 0) {
		program->trace_part_count = ipu_trace_parts(program->trace_part, program->schedule,
							    session->execution.timeline);
		if (append_traces(session) != ST_OK)
			return ST_FAILED;
	}
	for (int i = 0; i < program->trace_part_count && failed == 0; i++)
		failed = append_repeats(worker, run, start_cycle, i);
	return failed == 0 ? ST_OK : ST_FAILED;
}
