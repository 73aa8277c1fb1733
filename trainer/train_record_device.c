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

static struct ips_site *op_site(const struct ipu_op *op)
{
	return ips_site_intern("operation", op->name, op->name);
}

/* The operations of an event, one after the other. */
static void replay_operations(const struct replay *replay, const struct ipu_event *event,
			      struct ips_track *track)
{
	const struct train_device *device = replay->worker->session->device;
	int64_t cycle = event->start_cycle;

	for (int i = 0; i < device->graph.node_count; i++) {
		const struct ipu_op *op = &device->graph.nodes[i].op;
		int64_t start_ns;

		if (!ipu_node_in(&device->graph.nodes[i], event->stage, event->phase))
			continue;
		start_ns = device_ns(replay, cycle);
		cycle += device->executable->plans[i]->cycles;
		ips_span_at(track, op_site(op), start_ns, device_ns(replay, cycle) - start_ns);
	}
}

static int replay_event(const struct replay *replay, const struct ipu_event *event)
{
	struct train_worker *worker = replay->worker;
	struct train_session *session = worker->session;
	struct train_replica *replica = worker->replica;
	struct ips_track *track = replica->device_track[event->ipu];
	const int site = event->phase == 'F' ? 0 : event->phase == 'B' ? 1 : 2;
	struct ips_stage_timing row = {.clock = IPS_DEVICE, .cpu_ns = IPS_NULL};

	row.keys = train_record_keys(worker, event->stage, event->phase, replay->run,
				     event->microbatch);
	row.keys.ipu = train__global_ipu(session, replica->number, event->ipu);
	row.start_ns = device_ns(replay, event->start_cycle);
	row.dur_ns = device_ns(replay, event->start_cycle + event->cycles) - row.start_ns;
	if (session->execution.traced) {
		ips_track_set_keys(track, &row.keys);
		ips_span_at(track, replica->stage[event->stage].site[site], row.start_ns,
			    row.dur_ns);
		replay_operations(replay, event, track);
	}
	return ips_append_stage_timing(session->recording, &row);
}

/* What the IPU waits for between its programs; of no stage. */
static void replay_transfer(const struct replay *replay, const struct ipu_transfer *transfer)
{
	struct train_worker *worker = replay->worker;
	struct ips_track *track = worker->replica->device_track[transfer->ipu];
	struct ips_keys keys = train_record_keys(worker, 0, 0, replay->run, -1);
	const int64_t start_ns = device_ns(replay, transfer->start_cycle);
	const int64_t end_ns = device_ns(replay, transfer->start_cycle + transfer->cycles);

	keys.stage = IPS_NULL;
	keys.ipu = train__global_ipu(worker->session, worker->replica->number, transfer->ipu);
	ips_track_set_keys(track, &keys);
	ips_span_at(track, ips_site_intern("transfer", ipu_transfer_name(transfer->kind), NULL),
		    start_ns, end_ns - start_ns);
}

static enum status record_device_run(struct train_worker *worker, int64_t run)
{
	struct train_session *session = worker->session;
	const struct ipu_timeline *timeline = session->execution.timeline;
	const bool traced = session->execution.traced;
	struct train_walk walk = {.timeline = timeline};
	struct replay replay = {.worker = worker, .run = run};
	int failed = 0;

	if (timeline == NULL)
		return ST_OK;
	replay.target = &session->device->target;
	replay.origin = session->execution.start_cycle + run * timeline->cycles;
	if (traced && train__append_device_run(worker, run, replay.origin) != ST_OK)
		return ST_FAILED;
	while (train__walk(&walk)) {
		if (walk.event != NULL)
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

	if (session->recording == NULL)
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
