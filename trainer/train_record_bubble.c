/*
 * Bubbles of pipeline runs: the host's as its workers measured them, the device's as it is planned,
 * each beside theory. By the main thread.
 */
#include "common/mem.h"
#include "ipu/ipu_bubble.h"
#include "trainer/train_record_internal.h"
#include "trainer/train_replica.h"

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

	row.keys.stage = row.keys.ipu = IPS_NULL;
	return (enum status)ips_append_bubble(session->recording, &row);
}

static enum status record_host_run(struct train_session *session, int replica, int64_t run)
{
	const struct ipu_schedule *schedule = session->execution.schedule;
	const int works = schedule->first[schedule->ipus];
	struct plan_bubble bubble;
	enum status status = plan_bubble_measure(
		&bubble, schedule, session->replica[replica].interval + run * works, works, false);

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
			all ? session->execution.runs : train_replica_runs_done(session, r);

		for (; replica->runs_recorded < done; replica->runs_recorded++) {
			enum status status = record_host_run(session, r, replica->runs_recorded);

			if (status != ST_OK)
				return status;
		}
	}
	return ST_OK;
}
