/*
 * The host's part of a recording: works, executions, metrics and bubbles. What a recording begins
 * with is in train_record_start.c.
 *
 * Threading: see each function in train_record.h; a worker records only its own rows.
 */
#include "trainer/train_record.h"

#include <math.h>
#include <stdio.h>

#include "common/mem.h"
#include "ipu/ipu_schedule.h"
#include "outfeed/outfeed_stats.h"
#include "trainer/train_session.h"

/* ---- workers and IPUs ------------------------------------------------------------------------ */

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

/* Phases have the same letters in the device's works and operations as in the recording's rows, so
 * they are passed without conversion. */
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

void train_record_failed(struct train_worker *worker, enum status status, const struct err *err)
{
	if (status == ST_OK || worker->err.status != ST_OK)
		return;
	if (err->text[0] != '\0')
		worker->err = *err;
	else
		err_set(&worker->err, status, "recording: %s", status_text(status));
}

void train_record_work(struct train_worker *worker, const struct ips_keys *keys, int64_t start_ns,
		       int64_t end_ns, int64_t cpu_ns)
{
	const struct ips_stage_timing row = {
		.keys = *keys,
		.clock = IPS_HOST,
		.start_ns = start_ns,
		.dur_ns = end_ns - start_ns,
		.cpu_ns = cpu_ns,
	};
	const struct err none = {ST_OK, ""};

	train_record_failed(worker,
			    (enum status)ips_append_stage_timing(worker->session->recording, &row),
			    &none);
}

/* ---- executions and metrics ------------------------------------------------------------------ */

static void record_host_split(struct train_session *session, int64_t dur_ns)
{
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

		ips_append_time_split(session->recording, &row);
	}
}

static void record_device_split(struct train_session *session)
{
	const struct train_execution *execution = &session->execution;

	for (int i = 0; execution->timeline && i < session->worker_count; i++) {
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

		ips_append_time_split(session->recording, &row);
	}
}

void train_record_execution(struct train_session *session, int64_t start_ns, int64_t end_ns)
{
	const struct train_execution *execution = &session->execution;
	const struct ipu_timeline *timeline = execution->timeline;
	const struct ips_execution row = {
		.mode = (int64_t)execution->mode,
		.epoch = execution->epoch,
		.execution = execution->execution,
		.first_step = execution->first_step,
		.steps = execution->steps,
		.updates = execution->mode == IPS_TRAIN ? execution->runs : IPS_NULL,
		.start_ns = start_ns,
		.dur_ns = end_ns - start_ns,
		.start_cycle = timeline ? execution->start_cycle : IPS_NULL,
		.cycles = timeline ? timeline->cycles * execution->runs : IPS_NULL,
		.traced = execution->traced,
	};

	if (!session->recording)
		return;
	ips_append_execution(session->recording, &row);
	record_host_split(session, end_ns - start_ns);
	record_device_split(session);
}

void train_record_metric(struct train_session *session, enum ips_mode mode, int64_t epoch,
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

	ips_append_metric(session->recording, &row);
}

void train_record_confusion(struct train_session *session, enum ips_mode mode, int64_t epoch,
			    const struct metric *metric, const double *counts)
{
	const size_t count = (size_t)metric->states;
	float *values;
	char shape[64];
	const struct ips_tensor tensor = {.queue = "metrics",
					  .key = metric->name,
					  .kind = "metric",
					  .stage = IPS_NULL,
					  .shape = shape,
					  .dtype = "float32"};
	struct ips_tensor_stats stats = {
		.inactive = NAN, .update_ratio = NAN, .n_changed = IPS_NULL};
	struct outfeed_stats seen;
	struct ips_capture capture = {.keys = IPS_KEYS_NULL,
				      .dtype = "float32",
				      .shape = shape,
				      .bytes = (int64_t)(count * sizeof(*values))};

	if (!session->recording)
		return;
	values = mem_alloc(count * sizeof(*values));
	if (!values)
		return;
	for (size_t i = 0; i < count; i++)
		values[i] = (float)counts[i];
	outfeed_stats_read(&seen, DTYPE_FLOAT32, values, count, NULL);
	OUTFEED_FILL_COLUMNS(&stats, &seen, true);
	snprintf(shape, sizeof(shape), "(%lld, %lld)", (long long)metric->classes,
		 (long long)metric->classes);
	capture.data = values;
	capture.keys.mode = (uint8_t)mode;
	capture.keys.epoch = epoch;
	capture.keys.step = session->steps[mode] - 1;
	if (mode == IPS_TRAIN)
		capture.keys.weight_update = session->updates - 1;
	stats.keys = capture.keys;
	stats.time_ns = ips_recording_now_ns(session->recording);
	capture.tensor_id = stats.tensor_id = ips_tensor_add(session->recording, &tensor);
	ips_append_tensor_stats(session->recording, &stats);
	ips_append_capture(session->recording, &capture);
	mem_free(values);
}

/* ---- bubbles --------------------------------------------------------------------------------- */

enum status train__append_bubble(const struct train_worker *worker, int64_t run,
				 enum ips_clock clock, const struct plan_bubble *bubble)
{
	const struct train_session *session = worker->session;
	const struct ipu_bubble *measured = &bubble->measured, *theory = &bubble->theory;
	struct ips_bubble row = {
		.keys = train_record_keys(worker, 0, 0, run, -1),
		.clock = clock,
		.schedule = session->run->pipeline.wanted
				    ? ipu_schedule_name(session->execution.schedule->kind)
				    : "none",
		.stages = session->layout->stages,
		.microbatches = session->execution.microbatches,
		.makespan_ns = measured->makespan_ns,
		.busy_ns = measured->busy_ns,
		.idle_fraction = measured->idle_fraction,
		.bubble_rate = measured->bubble_rate,
		.bubble_over_ideal = measured->bubble_over_ideal,
		.theory_idle_fraction = theory->idle_fraction,
		.theory_bubble_rate = theory->bubble_rate,
		.theory_bubble_over_ideal = theory->bubble_over_ideal,
		.ramp_up_ns = measured->ramp_up_ns,
		.ramp_down_ns = measured->ramp_down_ns,
		.imbalance_ns = measured->imbalance_ns,
		.communication_ns = measured->communication_ns,
		.oversubscribed = clock == IPS_HOST ? session->oversubscribed : IPS_NULL,
	};

	/* One stage is no pipeline: its idle time is no bubble. */
	if (session->layout->stages < 2)
		return ST_OK;
	row.keys.stage = row.keys.ipu = IPS_NULL;
	return (enum status)ips_append_bubble(session->recording, &row);
}

void train_record_runs(struct train_session *session, bool all)
{
	const struct ipu_schedule *schedule = session->execution.schedule;

	if (!session->recording)
		return;
	for (int r = 0; r < session->replicas; r++) {
		struct train_replica *replica = &session->replica[r];
		const int64_t done =
			all ? session->execution.runs : train_replica_runs_done(session, r);

		for (; replica->runs_recorded < done; replica->runs_recorded++) {
			const int works = schedule->first[schedule->ipus];
			const int64_t run = replica->runs_recorded;
			struct plan_bubble bubble;

			if (plan_bubble_measure(&bubble, schedule, replica->interval + run * works,
						works, false) != ST_OK ||
			    train__append_bubble(train__first_worker(session, r), run, IPS_HOST,
						 &bubble) != ST_OK)
				return;
		}
	}
}
