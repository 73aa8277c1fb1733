/*
 * The device's lanes and stage timings: its timeline of one pipeline run, replayed where each run
 * of an execution stands on the device's clock. By the main thread.
 */
#include "trainer/train_record_internal.h"

struct replay {
	struct train_worker *worker;
	const struct ipu_target *target;
	int64_t run, origin; /* cycles: where the pipeline run starts */
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

/* Operations, and what moves data between them. */
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

/* Of the same operation, or of the same move of data. */
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

static int replay_event(const struct replay *replay, const struct ipu_event *event)
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
	if (event->phase == '\0')
		return 0;
	return ips_append_stage_timing(session->recording, &row);
}

static const char *transfer_name(const struct plan_device *device,
				 const struct ipu_transfer *transfer)
{
	const char *name = device->executable->programs[transfer->program].name;

	return transfer->kind == IPU_TRANSFER_SYNC ? "Sync (External)" : name;
}

/* Where an IPU has nothing to do it draws nothing, so that a bubble looks like one: of a sync the
 * wait for the others is left out, the trace's steps have it. */
static int64_t drawn_from(const struct train_session *session, const struct ipu_transfer *transfer)
{
	const int64_t sync =
		ipu_sync_cycles(&session->device->target, session->execution.schedule->ipus);

	if (transfer->kind == IPU_TRANSFER_SYNC_ANS)
		return transfer->start_cycle + transfer->cycles;
	if (transfer->kind == IPU_TRANSFER_SYNC && transfer->cycles > sync)
		return transfer->start_cycle + transfer->cycles - sync;
	return transfer->start_cycle;
}

/* What the IPU does between its programs. What goes on beside them has a lane of its own. */
static void replay_transfer(const struct replay *replay, const struct ipu_transfer *transfer)
{
	struct train_worker *worker = replay->worker;
	const struct plan_device *device = worker->session->device;
	const bool streams =
		transfer->kind == IPU_TRANSFER_INFEED || transfer->kind == IPU_TRANSFER_OUTFEED;
	struct ips_track *io = worker->replica->io_track[transfer->ipu];
	struct ips_track *track = streams && io ? io : worker->replica->device_track[transfer->ipu];
	struct ips_keys keys = train_record_keys(worker, 0, 0, replay->run, transfer->microbatch);
	const int64_t start_ns = device_ns(replay, drawn_from(worker->session, transfer));
	const int64_t end_ns = device_ns(replay, transfer->start_cycle + transfer->cycles);

	if (end_ns == start_ns)
		return;
	keys.stage = transfer->stage < 0 ? IPS_NULL : transfer->stage;
	keys.ipu = train__global_ipu(worker->session, worker->replica->number, transfer->ipu);
	ips_track_set_keys(track, &keys);
	ips_span_at(track,
		    site_at(&worker->session->device_site.program[transfer->program], "transfer",
			    transfer_name(device, transfer), NULL),
		    start_ns, end_ns - start_ns);
}

static enum status record_device_run(struct train_worker *worker, int64_t run)
{
	struct train_session *session = worker->session;
	const struct ipu_timeline *timeline = session->execution.timeline;
	const bool traced = session->execution.traced;
	struct ipu_walk walk = {.timeline = timeline};
	struct replay replay = {.worker = worker, .run = run};
	int failed = 0;

	if (!timeline)
		return ST_OK;
	replay.target = &session->device->target;
	replay.origin = session->execution.start_cycle + run * timeline->cycles;
	if (traced && train__append_device_run(worker, run, replay.origin) != ST_OK)
		return ST_FAILED;
	while (ipu_walk_next(&walk)) {
		if (walk.event)
			failed |= replay_event(&replay, walk.event);
		else if (traced)
			replay_transfer(&replay, walk.transfer);
	}
	if (failed != 0)
		return ST_FAILED;
	return train__append_bubble(worker, run, IPS_DEVICE,
				    &session->program[session->execution.mode].device_bubble);
}

enum status train_record_device(struct train_session *session, int64_t runs)
{
	int64_t first;

	if (!session->recording)
		return ST_OK;
	runs = train_stop_claim(&session->stop_early, runs, &first);
	for (int64_t run = first; run < runs; run++) {
		for (int r = 0; r < session->layout->replicas; r++) {
			enum status status =
				record_device_run(train__first_worker(session, r), run);

			if (status != ST_OK)
				return status;
		}
	}
	return ST_OK;
}
