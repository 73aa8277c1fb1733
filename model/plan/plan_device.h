/*
 * The model lowered to the simulated device: its operations, the cost of each stage, and the
 * timeline of a pipeline run for training, evaluation and prediction. Constant once training
 * starts; recording replays the timelines with an offset. The costs are the planner's.
 */
#ifndef PLAN_DEVICE_H
#define PLAN_DEVICE_H

#include "common/arena.h"
#include "ipu/compile/ipu_memory.h"
#include "ipu/compile/ipu_program.h"
#include "ipu/ipu_target.h"
#include "model/lower/lower.h"

struct plan_device {
	struct ipu_target target;
	struct ipu_target compute; /* without its I/O tiles: the target of the plans */
	struct ipu_planner *planner;
	bool lent;              /* the planner belongs to another device */
	struct ipu_graph graph; /* nodes in order of stage, then phase (F, B, U), then work */
	struct ipu_executable *executable;
	struct ipu_memory *memory;
	struct ipu_costs costs;
	struct ipu_timeline *timeline[RUN_MODES]; /* by enum run_mode; NULL: not run */
	int64_t host_cycles; /* fixed host cost of each execution, between executions */
	struct arena arena;
};

/* The planner of @like (may be NULL) if it plans for such a target, otherwise NULL. */
struct ipu_planner *plan_device_planner(const struct plan_device *like,
					const struct ipu_target *target);

/* Lower, compile and run what @lowered asks for. @schedules: by enum run_mode; NULL: the run does
 * not have the mode. They must outlive the device. @err is not NULL. */
enum status plan_device_new(struct plan_device **out, const struct lower_request *lowered,
			    const struct ipu_schedule *const schedules[], struct err *err);
void plan_device_free(struct plan_device *device); /* accepts NULL */

#endif /* PLAN_DEVICE_H */
