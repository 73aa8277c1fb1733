/*
 * Metrics by a formula, so that tests know every value.
 *
 * Threading: one thread. Ownership: none.
 */
#include "support/view_fixture_metrics.h"

#include <math.h>
#include <stdint.h>

#include "support/view_fixture.h"

#define STEP_NS 1000

static double loss_of(const struct view_fixture_metrics *params, int64_t step)
{
	if (params->nan_every > 0 && step > 0 && step % params->nan_every == 0)
		return NAN;
	if (params->nan_every > 0 && step > 1 && (step - 1) % params->nan_every == 0)
		return INFINITY;
	return params->factor / (double)(1 + step);
}

static void write_metric(struct ips_recording *recording, int64_t mode, int64_t epoch, int64_t step,
			 int64_t time_ns, const char *name, double value)
{
	const struct ips_metric row = {.mode = mode,
				       .epoch = epoch,
				       .execution = step == IPS_NULL ? IPS_NULL : epoch - 1,
				       .step = step,
				       .time_ns = time_ns,
				       .name = name,
				       .value = value};

	ips_append_metric(recording, &row);
}

static void write_epoch(struct ips_recording *recording, const struct view_fixture_metrics *params,
			int64_t epoch)
{
	const int64_t first = (epoch - 1) * params->steps, end = (first + params->steps) * STEP_NS;
	const struct ips_execution execution = {.mode = IPS_TRAIN,
						.epoch = epoch,
						.execution = epoch - 1,
						.first_step = first,
						.steps = params->steps,
						.updates = params->steps,
						.start_ns = first * STEP_NS,
						.dur_ns = params->steps * (int64_t)STEP_NS,
						.start_cycle = IPS_NULL,
						.cycles = IPS_NULL,
						.traced = 0};

	for (int64_t step = first; step < first + params->steps; step++)
		write_metric(recording, IPS_TRAIN, epoch, step, step * STEP_NS, "loss",
			     loss_of(params, step));
	ips_append_execution(recording, &execution);
	write_metric(recording, IPS_TRAIN, epoch, IPS_NULL, end, "loss",
		     params->factor / (double)epoch);
	write_metric(recording, IPS_TRAIN, epoch, IPS_NULL, end, "accuracy",
		     1 - 0.5 / (double)epoch);
	write_metric(recording, IPS_EVALUATE, IPS_NULL, IPS_NULL, end, "accuracy",
		     0.9 - 0.5 / (double)epoch);
}

bool view_fixture_metrics_write(const char *path, const struct view_fixture_metrics *params)
{
	struct ips_recording *recording = view_fixture_record(path, NULL);

	if (!recording)
		return false;
	for (int64_t epoch = 1; epoch <= params->epochs; epoch++)
		write_epoch(recording, params, epoch);
	return ips_recording_close(recording, NULL, 0) == 0;
}
