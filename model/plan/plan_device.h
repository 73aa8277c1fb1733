/*
 * The model lowered to the simulated device: its operations, what each stage costs, and a pipeline
 * run's timeline for training, evaluation and prediction.
 *
 * Everything is settled before training starts; recording replays the timelines with an offset. The
 * costs are the planner's.
 */
#ifndef PLAN_DEVICE_H
#define PLAN_DEVICE_H

#include "common/arena.h"
#include "ipu/compile/ipu_control.h"
#include "ipu/compile/ipu_cost.h"
#include "ipu/compile/ipu_memory.h"
#include "model/lower/lower.h"

struct plan_device {
	struct ipu_target target;
	struct ipu_target compute; /* without its I/O tiles: what is planned */
	struct ipu_planner *planner;
	bool lent;              /* the planner is another device's */
	struct ipu_graph graph; /* nodes in order of stage, then F, B, U, then work */
	struct ipu_executable *executable;
	struct ipu_memory *memory;
	struct ipu_costs costs;
	struct ipu_timeline *timeline[RUN_MODES]; /* by enum run_mode; NULL: not run */
	int64_t host_cycles; /* between executions: the fixed host cost of each */
	struct arena arena;
};

/* @schedules: by enum run_mode; NULL entries: not run. */
enum status plan_device_new(struct plan_device **out, const struct lower_request *lowered,
			    const struct ipu_schedule *const schedules[], struct err *err);
void plan_device_free(struct plan_device *device); /* accepts NULL */

#endif /* PLAN_DEVICE_H */
