/*
 * A planned run file: the model, the layout of the run, and the compiled program of the simulated
 * device. Nothing is opened or executed. Sessions train this plan, `ipu-plan model` prints it, and
 * what-if plans it again.
 *
 * Call in this order: build, compile; then fini, whatever happened before. One thread; a finished
 * plan is constant.
 */
#ifndef PLAN_RUN_H
#define PLAN_RUN_H

#include "common/arena.h"
#include "ipu/compile/ipu_control.h"
#include "ipu/compile/ipu_cost.h"
#include "ipu/compile/ipu_memory.h"
#include "ipu/ipu_bubble.h"
#include "model/lower/lower.h"
#include "model/plan/partition.h"
#include "model/run/run_file.h"

/*
 * The model lowered to the simulated device: its operations, the cost of each stage, and the
 * timeline of a pipeline run for training, evaluation and prediction. Constant once training
 * starts; recording replays the timelines with an offset. The costs are the planner's.
 */
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

struct plan_bubble {
	struct ipu_bubble measured, theory;
};

/* What an Engine::run of a mode executes and measures. */
struct plan_program {
	struct ipu_schedule *schedule; /* NULL: the run does not have this mode */
	int64_t steps_per_execution;
	bool measured; /* it computes losses and metrics */
	struct loss_list losses;
	struct metric_list metrics;
	struct plan_bubble bubble; /* of the device's pipeline run; all runs are the same */
};

struct plan_run {
	struct run_file *run; /* read by the caller; then owned by the plan */
	struct model *model;
	struct run_layout *layout;
	/*
	 * Of a pipeline, or NULL. `best`: the best split, if pipeline.stages is "auto" or if it is
	 * to be compared with the run file's stages and exists. `split`: the run's split, if it is
	 * to be compared.
	 */
	struct partition_split *best, *split;
	struct optimizer optimizer;
	struct plan_program program[RUN_MODES]; /* by enum run_mode */
	struct plan_device *device;             /* NULL on the CPU only */
	const struct plan_device *like;         /* see struct lower_request; set by the caller */
};

/* Invent data for a run that names none: items as the model needs, targets as the losses need,
 * for as many steps as the run has. */
enum status plan_run_data(struct run_data *out, const struct run_file *run, struct err *err);

/* Build model, layout and the compile section of plan->run for such @data. @compare: also
 * compute the cost of its split and of the best one. */
enum status plan_run_build(struct plan_run *plan, const struct run_data *data, bool compare,
			   struct err *err);

/* Create the schedules and, if the run has IPUs, the device. */
enum status plan_run_compile(struct plan_run *plan, const struct run_data *data, struct err *err);
void plan_run_fini(struct plan_run *plan); /* accepts a zeroed struct */

/*
 * Compute the bubble of @intervals of one pipeline run, and the theoretical bubble for their mean
 * times. @device: intervals of the device's clock, where steps end together if the schedule runs in
 * lockstep.
 */
enum status plan_bubble_measure(struct plan_bubble *out, const struct ipu_schedule *schedule,
				const struct ipu_interval *intervals, int count, bool device);

#endif /* PLAN_RUN_H */
