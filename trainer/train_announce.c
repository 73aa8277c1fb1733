/*
 * What a run says of itself to ipu-monitor: where its report is, its device, the phase and the
 * steps that are done.
 */
#include "trainer/train_announce.h"

#include <math.h>
#include <stdlib.h>

#include "common/str.h"
#include "model/plan/plan_run.h"

/* In another folder nobody would find a relative path. */
static void find_report(char out[FS_PATH_SIZE], const char *directory)
{
	if (directory[0] == '\0' || !realpath(directory, out))
		out[0] = '\0';
}

enum status train_announce_open(struct train_announce *announce, const struct run_file *run,
				const struct run_layout *layout, const char *command,
				const char *directory, struct err *err)
{
	struct prof_announcement what = {
		.ipus = layout->ipus,
		.replicas = layout->replicas,
		.stages = layout->stages,
	};
	struct ipu_target target;
	enum status status = ipu_target_get(run->ipu.target, 0, &target, err);

	if (status != ST_OK)
		return status;
	what.clock_mhz = llround(target.clock_hz * 1e-6);
	str_copy(what.command, sizeof(what.command), !command ? "" : command);
	str_copy(what.target, sizeof(what.target), target.name);
	find_report(what.report, directory);
	return prof_announce_open(&announce->out, &what, err);
}

void train_announce_close(struct train_announce *announce)
{
	prof_announce_close(announce->out);
	announce->out = NULL;
}

void train_announce_device(struct train_announce *announce, const struct plan_device *device,
			   const struct run_layout *layout)
{
	for (int mode = 0; mode <= IPS_PREDICT; mode++) {
		const struct ipu_timeline *timeline = device->timeline[mode];
		const int64_t runs = mode == IPS_TRAIN ? layout->updates_per_execution : 1;
		double busy = 0, all;

		if (!timeline)
			continue;
		for (int ipu = 0; ipu < layout->ipus_used; ipu++)
			busy += (double)(timeline->split[ipu].compute +
					 timeline->split[ipu].exchange);
		all = (double)timeline->cycles * (double)runs + (double)device->host_cycles;
		/* IPUs that are attached to fill a power of two do nothing. */
		busy *= (double)runs / (double)layout->ipus_per_replica;
		announce->utilisation[mode] = all > 0 ? fmin(1, busy / all) : 0;
	}
}

void train_announce_begin(struct train_announce *announce, enum ips_mode mode, int64_t epoch,
			  int64_t epochs)
{
	static const enum report_run_state states[] = {
		[IPS_TRAIN] = REPORT_RUN_TRAINING,
		[IPS_EVALUATE] = REPORT_RUN_EVALUATING,
		[IPS_PREDICT] = REPORT_RUN_PREDICTING,
	};

	announce->progress = (struct report_progress){
		.state = states[mode],
		.epoch = epoch,
		.epochs = epochs,
		.utilisation = announce->utilisation[mode],
	};
}

void train_announce_steps(struct train_announce *announce, int64_t done, int64_t steps)
{
	announce->progress.step = done;
	announce->progress.steps = steps;
	prof_announce_progress(announce->out, &announce->progress);
}
