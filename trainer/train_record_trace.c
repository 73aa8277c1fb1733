/*
 * The execution trace: the steps of a mode's timeline once, then a row for each pipeline run of
 * them. By the main thread.
 */
#include <math.h>

#include "trainer/train_record_internal.h"

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

static int64_t or_null(int64_t value)
{
	return value < 0 ? IPS_NULL : value;
}

static int append_trace_step(void *user, const struct ipu_trace_step *from)
{
	struct trace *trace = user;
	const struct train_device *device = trace->session->device;
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

static enum status append_trace(const struct train_session *session)
{
	static const char *const names[TRAIN_MODES] = {
		[IPS_TRAIN] = "train", [IPS_EVALUATE] = "evaluate", [IPS_PREDICT] = "predict"};
	const enum ips_mode mode = session->execution.mode;
	struct trace trace = {.session = session, .trace_id = mode_trace(mode), .ipu = -1};
	const struct ips_device_trace row = {
		.trace_id = trace.trace_id,
		.clock_hz = session->device->target.clock_hz,
		.name = names[mode],
	};

	trace.failed = ips_append_device_trace(session->recording, &row);
	if (trace.failed == 0)
		ipu_trace(session->device->executable, session->execution.timeline,
			  append_trace_step, &trace);
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
