/*
 * Bubbles of pipeline runs: the host's as its workers measured them, the device's as it is planned,
 * each beside theory. By the main thread.
 */
#include "common/mem.h"
#include "ipu/ipu_bubble.h"
#include "trainer/train_record_internal.h"

/* The mean time of each stage's forward and backward: what theory is fed with. */
static void mean_times(const struct ipu_interval *intervals, int count, int stages, double *forward,
		       double *backward)
{
	for (int s = 0; s < stages; s++) {
		double sum[2] = {0, 0};
		int64_t n[2] = {0, 0};

		for (int i = 0; i < count; i++) {
			const int b = intervals[i].phase != 'F';

			if (intervals[i].stage != s)
				continue;
			sum[b] += (double)intervals[i].dur_ns;
			n[b] += intervals[i].phase != 'W'; /* with its B */
		}
		forward[s] = n[0] > 0 ? sum[0] / (double)n[0] : 0;
		backward[s] = n[1] > 0 ? sum[1] / (double)n[1] : 0;
	}
}

static enum status measure_bubble(const struct train_session *session,
				  const struct ipu_schedule *schedule, enum ips_clock clock,
				  const struct ipu_interval *intervals, int count,
				  struct train_bubble *out)
{
	const int stages = session->layout->stages;
	double *times = mem_calloc((size_t)stages * 2, sizeof(*times));
	enum status status;

	if (!times)
		return ST_NOMEM;
	mean_times(intervals, count, stages, times, times + stages);
	status = (clock == IPS_DEVICE ? ipu_bubble_measure_lockstep : ipu_bubble_measure)(
		intervals, count, schedule->ipus, stages, &out->measured, NULL);
	if (status == ST_OK)
		status = ipu_bubble_theory(schedule, times, times + stages, clock == IPS_DEVICE,
					   &out->theory, NULL);
	mem_free(times);
	return status;
}

enum status train__append_bubble(const struct train_worker *worker, int64_t run,
				 enum ips_clock clock, const struct train_bubble *bubble)
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

	row.keys.stage = row.keys.ipu = IPS_NULL;
	return (enum status)ips_append_bubble(session->recording, &row);
}

/* Every pipeline run of the device is the same, and so is its bubble. */
static enum status measure_device_bubble(const struct train_session *session,
					 const struct ipu_schedule *schedule,
					 const struct ipu_timeline *timeline,
					 struct train_bubble *out)
{
	struct ipu_interval *intervals =
		mem_calloc((size_t)timeline->count + 1, sizeof(*intervals));
	int count;
	enum status status;

	if (!intervals)
		return ST_NOMEM;
	count = ipu_timeline_intervals(timeline, &session->device->target, intervals);
	status = measure_bubble(session, schedule, IPS_DEVICE, intervals, count, out);
	mem_free(intervals);
	return status;
}

enum status train__measure_bubbles(struct train_session *session)
{
	const struct train_device *device = session->device;
	enum status status = ST_OK;

	for (int mode = IPS_TRAIN; device && mode < TRAIN_MODES && status == ST_OK; mode++)
		if (device->timeline[mode])
			status = measure_device_bubble(session, session->program[mode].schedule,
						       device->timeline[mode],
						       &session->program[mode].device_bubble);
	return status;
}

static enum status record_host_run(struct train_session *session, int replica, int64_t run)
{
	const struct ipu_schedule *schedule = session->execution.schedule;
	const int works = schedule->first[schedule->ipus];
	struct train_bubble bubble;
	enum status status =
		measure_bubble(session, schedule, IPS_HOST,
			       session->replica[replica].interval + run * works, works, &bubble);

	if (status != ST_OK)
		return status;
	return train__append_bubble(train__first_worker(session, replica), run, IPS_HOST, &bubble);
}

enum status train_record_runs(struct train_session *session, bool all)
{
	if (!session->recording)
		return ST_OK;
	for (int r = 0; r < session->layout->replicas; r++) {
		struct train_replica *replica = &session->replica[r];
		const int64_t done =
			all ? session->execution.runs
			    : atomic_load_explicit(&replica->runs_done, memory_order_acquire);

		for (; replica->runs_recorded < done; replica->runs_recorded++) {
			enum status status = record_host_run(session, r, replica->runs_recorded);

			if (status != ST_OK)
				return status;
		}
	}
	return ST_OK;
}
