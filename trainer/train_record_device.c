/*
 * The device's part of a recording: its timeline and its execution trace.
 *
 * Threading: the main thread. The timeline is planned, so it is written ahead of the workers.
 */
#include "trainer/train_record.h"

#include <math.h>
#include <stdio.h>

/* ---- the steps of a mode --------------------------------------------------------------------- */

struct trace {
	const struct train_session *session;
	int64_t trace_id;
	int64_t ipu, steps; /* the current IPU, and its steps so far */
};

/* Return the trace's id; each part of a mode's pipeline run is a trace. */
static int64_t part_trace(enum ips_mode mode, int part)
{
	return (int64_t)mode * IPU_TRACE_PARTS + part;
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
	if (step.ipu != trace->ipu)
		trace->steps = 0;
	trace->ipu = step.ipu;
	step.trace_id = trace->trace_id;
	step.trace_step = trace->steps++;
	return ips_append_device_step(trace->session->recording, &step);
}

static void append_part(const struct train_session *session, int number,
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

	if (ips_append_device_trace(session->recording, &row) == 0)
		ipu_trace_part(session->device->executable, session->execution.timeline, part,
			       append_trace_step, &trace);
}

static void append_traces(const struct train_session *session)
{
	static const char *const modes[TRAIN_MODES] = {
		[IPS_TRAIN] = "train", [IPS_EVALUATE] = "evaluate", [IPS_PREDICT] = "predict"};
	const enum ips_mode mode = session->execution.mode;
	const struct train_program *program = &session->program[mode];

	for (int i = 0; i < program->trace_part_count; i++) {
		const struct ipu_trace_part *part = &program->trace_part[i];
		char name[32];

		snprintf(name, sizeof(name), "%s%s", modes[mode],
			 part->repeats > 1                                          ? "/Main"
			 : part->first_step > 0                                     ? "/RampDown"
			 : part->end_step < session->execution.schedule->time_steps ? "/RampUp"
										    : "");
		append_part(session, i, part, name);
	}
}

/* ---- runs of a trace ------------------------------------------------------------------------- */

static void append_repeats(struct train_worker *worker, int64_t run, int64_t start_cycle,
			   int number)
{
	struct train_session *session = worker->session;
	const enum ips_mode mode = session->execution.mode;
	const struct ipu_trace_part *part = &session->program[mode].trace_part[number];
	const struct ips_keys keys = train_record_keys(worker, 0, 0, run, 0);

	for (int64_t i = 0; i < part->repeats; i++) {
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

		ips_append_device_run(session->recording, &row);
	}
}

/* Append pipeline run @run of the current execution to the execution trace, starting at
 * @start_cycle of the device's clock; before a mode's first run, append its steps. Called by the
 * main thread. */
static void append_device_run(struct train_worker *worker, int64_t run, int64_t start_cycle)
{
	struct train_session *session = worker->session;
	struct train_program *program = &session->program[session->execution.mode];

	if (program->trace_part_count == 0) {
		program->trace_part_count =
			ipu_trace_parts(program->trace_part, session->execution.schedule,
					session->execution.timeline);
		append_traces(session);
	}
	for (int i = 0; i < program->trace_part_count; i++)
		append_repeats(worker, run, start_cycle, i);
}

/* ---- the timeline ---------------------------------------------------------------------------- */

struct replay {
	struct train_worker *worker;
	const struct ipu_target *target;
	int64_t run, origin; /* origin: cycle at which the pipeline run starts */
};

static int64_t device_ns(const struct replay *replay, int64_t cycle)
{
	return ipu_target_ns(replay->target, replay->origin + cycle);
}

static struct ips_site *site_at(struct ips_site **place, const char *category, const char *name,
				const char *operation)
{
	if (!*place)
		*place = ips_site_intern(category, name, operation);
	return *place;
}

/* Return the site of an operation, or of the program that moves data between operations. */
static struct ips_site *part_site(const struct train_session *session, const struct ipu_step *step)
{
	const struct plan_device *device = session->device;
	const struct ipu_program *programs = device->executable->programs;
	const int parent = programs[step->program].parent;
	const char *name;

	if (step->node < 0)
		return site_at(&session->device_site.move[parent], "move", programs[parent].name,
			       NULL);
	name = device->graph.nodes[step->node].op.name;
	return site_at(&session->device_site.node[step->node], "operation", name, name);
}

/* Do both steps belong to the same operation, or to the same move of data? */
static bool same_part(const struct ipu_program *programs, const struct ipu_step *a,
		      const struct ipu_step *b)
{
	if (a->node >= 0 || b->node >= 0)
		return a->node == b->node;
	return programs[a->program].parent == programs[b->program].parent;
}

static void replay_parts(const struct replay *replay, const struct ipu_event *event,
			 struct ips_track *track)
{
	const struct train_session *session = replay->worker->session;
	const struct plan_device *device = session->device;
	const struct ipu_program *programs = device->executable->programs;
	const struct ipu_code *code = &device->executable->code[event->stage][event->function];
	int64_t cycle = event->start_cycle;

	for (int i = 0; i < code->step_count;) {
		const struct ipu_step *first = &code->steps[i];
		const int64_t start_ns = device_ns(replay, cycle);

		for (; i < code->step_count && same_part(programs, &code->steps[i], first); i++)
			cycle += code->steps[i].cycles * code->steps[i].repeats;
		ips_span_at(track, part_site(session, first), start_ns,
			    device_ns(replay, cycle) - start_ns);
	}
}

static struct ips_site *event_site(const struct replay *replay, const struct ipu_event *event)
{
	const struct train_session *session = replay->worker->session;
	const struct plan_device *device = session->device;
	const struct train_stage *stage = &replay->worker->replica->stage[event->stage];
	const int program = device->executable->code[event->stage][event->function].program;

	switch (event->phase) {
	case IPU_PHASE_F:
		return stage->site[TRAIN_SITE_FORWARD];
	case IPU_PHASE_B:
		return stage->site[TRAIN_SITE_BACKWARD];
	case IPU_PHASE_W:
		return stage->site[TRAIN_SITE_WEIGHTS];
	case IPU_PHASE_U:
		return stage->site[TRAIN_SITE_UPDATE];
	}
	return site_at(&session->device_site.program[program], "stage",
		       device->executable->programs[program].name, NULL);
}

static void replay_event(const struct replay *replay, const struct ipu_event *event)
{
	struct train_worker *worker = replay->worker;
	struct train_session *session = worker->session;
	struct ips_track *track = worker->replica->device_track[event->ipu];
	struct ips_stage_timing row = {.clock = IPS_DEVICE, .cpu_ns = IPS_NULL};

	row.keys = train_record_keys(worker, event->stage, event->phase, replay->run,
				     event->microbatch);
	row.keys.ipu = train__global_ipu(session, worker->replica->number, event->ipu);
	row.start_ns = device_ns(replay, event->start_cycle);
	row.dur_ns = device_ns(replay, event->start_cycle + event->cycles) - row.start_ns;
	if (session->execution.traced) {
		ips_track_set_keys(track, &row.keys);
		ips_span_at(track, event_site(replay, event), row.start_ns, row.dur_ns);
		replay_parts(replay, event, track);
	}
	if (event->phase != '\0')
		ips_append_stage_timing(session->recording, &row);
}

/* Return the start of a transfer's span. An idle IPU has no span, so that a bubble is visible: omit
 * the part of a sync that waits for other IPUs; the trace's steps include it. */
static int64_t visible_start(const struct train_session *session,
			     const struct ipu_transfer *transfer)
{
	const int64_t sync =
		ipu_sync_cycles(&session->device->target, session->execution.schedule->ipus);

	if (transfer->kind == IPU_TRANSFER_SYNC_ANS)
		return transfer->start_cycle + transfer->cycles;
	if (transfer->kind == IPU_TRANSFER_SYNC && transfer->cycles > sync)
		return transfer->start_cycle + transfer->cycles - sync;
	return transfer->start_cycle;
}

/* Record a transfer between programs. Overlapped stream copies have a separate lane. */
static void replay_transfer(const struct replay *replay, const struct ipu_transfer *transfer)
{
	struct train_worker *worker = replay->worker;
	const struct plan_device *device = worker->session->device;
	const bool streams =
		transfer->kind == IPU_TRANSFER_INFEED || transfer->kind == IPU_TRANSFER_OUTFEED;
	struct ips_track *io = worker->replica->io_track[transfer->ipu];
	struct ips_track *track = streams && io ? io : worker->replica->device_track[transfer->ipu];
	struct ips_keys keys = train_record_keys(worker, 0, 0, replay->run, transfer->microbatch);
	const int64_t start_ns = device_ns(replay, visible_start(worker->session, transfer));
	const int64_t end_ns = device_ns(replay, transfer->start_cycle + transfer->cycles);
	const char *name = transfer->kind == IPU_TRANSFER_SYNC
				   ? "Sync (External)"
				   : device->executable->programs[transfer->program].name;

	if (end_ns == start_ns)
		return;
	keys.stage = transfer->stage < 0 ? IPS_NULL : transfer->stage;
	keys.ipu = train__global_ipu(worker->session, worker->replica->number, transfer->ipu);
	ips_track_set_keys(track, &keys);
	ips_span_at(track,
		    site_at(&worker->session->device_site.program[transfer->program], "transfer",
			    name, NULL),
		    start_ns, end_ns - start_ns);
}

static void record_device_run(struct train_worker *worker, int64_t run)
{
	struct train_session *session = worker->session;
	const struct ipu_timeline *timeline = session->execution.timeline;
	const bool traced = session->execution.traced;
	struct ipu_walk walk = {.timeline = timeline};
	struct replay replay = {.worker = worker, .run = run};

	if (!timeline)
		return;
	replay.target = &session->device->target;
	replay.origin = session->execution.start_cycle + run * timeline->cycles;
	if (traced)
		append_device_run(worker, run, replay.origin);
	while (ipu_walk_next(&walk)) {
		if (walk.event)
			replay_event(&replay, walk.event);
		else if (traced)
			replay_transfer(&replay, walk.transfer);
	}
	train__append_bubble(worker, run, IPS_DEVICE, &session->execution.program->bubble);
}

void train_record_device(struct train_session *session, int64_t runs)
{
	int64_t first;

	if (!session->recording)
		return;
	runs = train_stop_claim(&session->stop_early, runs, &first);
	for (int64_t run = first; run < runs; run++)
		for (int r = 0; r < session->replicas; r++)
			record_device_run(train__first_worker(session, r), run);
}
