/*
 * Rows of works, executions and metrics, and what all files that write rows share.
 */
#include "trainer/train_record_internal.h"

int64_t train__global_ipu(const struct train_session *session, int replica, int ipu)
{
	if (!session->device)
		return IPS_NULL;
	return (int64_t)replica * session->layout->ipus_per_replica + ipu;
}

struct train_worker *train__first_worker(struct train_session *session, int replica)
{
	return &session->worker[replica * session->workers_per_replica];
}

/* ---- works ----------------------------------------------------------------------------------- */

/* The device's works and operations and the recording's rows have the same letters, so that a phase
 * goes from one to the other as it is. */
_Static_assert((int)IPU_PHASE_F == (int)IPS_FORWARD && (int)IPU_PHASE_B == (int)IPS_BACKWARD &&
		       (int)IPU_PHASE_W == (int)IPS_WEIGHTS &&
		       (int)IPU_PHASE_R == (int)IPS_RECOMPUTATION &&
		       (int)IPU_PHASE_U == (int)IPS_UPDATE,
	       "a phase has other letters on the device than in a recording");

struct ips_keys train_record_keys(const struct train_worker *worker, int stage, char phase,
				  int64_t run, int64_t microbatch)
{
	const struct train_session *session = worker->session;
	const struct train_execution *execution = &session->execution;
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = (uint8_t)execution->mode;
	keys.epoch = execution->epoch;
	keys.execution = execution->execution;
	keys.replica = worker->replica->number;
	keys.ipu = train__global_ipu(session, worker->replica->number, worker->ipu);
	keys.stage = stage;
	keys.phase = phase;
	if (execution->mode == IPS_TRAIN)
		keys.weight_update = execution->first_update + run;
	if (microbatch >= 0) {
		keys.step = execution->first_step + run * execution->microbatches + microbatch;
		keys.microbatch = execution->mode == IPS_TRAIN ? microbatch : IPS_NULL;
	}
	return keys;
}

enum status train_record_work(struct train_worker *worker, const struct ips_keys *keys,
			      int64_t start_ns, int64_t end_ns, int64_t cpu_ns)
{
	const struct ips_stage_timing row = {
		.keys = *keys,
		.clock = IPS_HOST,
		.start_ns = start_ns,
		.dur_ns = end_ns - start_ns,
		.cpu_ns = cpu_ns,
	};

	return (enum status)ips_append_stage_timing(worker->session->recording, &row);
}

/* ---- executions and metrics ------------------------------------------------------------------ */

static int record_host_split(struct train_session *session, int64_t dur_ns)
{
	int failed = 0;

	for (int i = 0; i < session->worker_count; i++) {
		const struct train_worker *worker = &session->worker[i];
		const int64_t busy = worker->compute_ns + worker->exchange_ns + worker->sync_ns +
				     worker->host_io_ns;
		const struct ips_time_split row = {
			.clock = IPS_HOST,
			.execution = session->execution.execution,
			.replica = worker->replica->number,
			.ipu = train__global_ipu(session, worker->replica->number, worker->ipu),
			.compute_ns = worker->compute_ns,
			.exchange_ns = worker->exchange_ns,
			.sync_ns = worker->sync_ns,
			.host_io_ns = worker->host_io_ns,
			.idle_ns = dur_ns > busy ? dur_ns - busy : 0,
		};

		failed |= ips_append_time_split(session->recording, &row);
	}
	return failed;
}

static int record_device_split(struct train_session *session)
{
	const struct train_execution *execution = &session->execution;
	int failed = 0;

	if (!execution->timeline)
		return 0;
	for (int i = 0; i < session->worker_count; i++) {
		const struct train_worker *worker = &session->worker[i];
		const struct ipu_split *split = &execution->timeline->split[worker->ipu];
		const struct ipu_target *target = &session->device->target;
		const struct ips_time_split row = {
			.clock = IPS_DEVICE,
			.execution = execution->execution,
			.replica = worker->replica->number,
			.ipu = train__global_ipu(session, worker->replica->number, worker->ipu),
			.compute_ns = ipu_target_ns(target, split->compute * execution->runs),
			.exchange_ns = ipu_target_ns(target, split->exchange * execution->runs),
			.sync_ns = ipu_target_ns(target, split->sync * execution->runs),
			.host_io_ns = ipu_target_ns(target, split->host_io * execution->runs),
			.idle_ns = ipu_target_ns(target, split->idle * execution->runs),
		};

		failed |= ips_append_time_split(session->recording, &row);
	}
	return failed;
}

enum status train_record_execution(struct train_session *session, int64_t start_ns, int64_t end_ns)
{
	const struct train_execution *execution = &session->execution;
	const bool device = execution->timeline != NULL;
	const int64_t cycles = device ? execution->timeline->cycles * execution->runs : IPS_NULL;
	const struct ips_execution row = {
		.mode = (int64_t)execution->mode,
		.epoch = execution->epoch,
		.execution = execution->execution,
		.first_step = execution->first_step,
		.steps = execution->steps,
		.updates = execution->mode == IPS_TRAIN ? execution->runs : IPS_NULL,
		.start_ns = start_ns,
		.dur_ns = end_ns - start_ns,
		.start_cycle = device ? execution->start_cycle : IPS_NULL,
		.cycles = cycles,
		.traced = execution->traced,
	};

	if (!session->recording)
		return ST_OK;
	if (ips_append_execution(session->recording, &row) != 0 ||
	    record_host_split(session, end_ns - start_ns) != 0 || record_device_split(session) != 0)
		return ST_FAILED;
	return ST_OK;
}

enum status train_record_metric(struct train_session *session, enum ips_mode mode, int64_t epoch,
				int64_t execution, int64_t step, const char *name, double value)
{
	const struct ips_metric row = {
		.mode = (int64_t)mode,
		.epoch = epoch,
		.execution = execution,
		.step = step,
		.time_ns = ips_recording_now_ns(session->recording),
		.name = name,
		.value = value,
	};

	return (enum status)ips_append_metric(session->recording, &row);
}
