/*
 * A run file, planned: the model, how it is laid out, and what the simulated device makes of it.
 * Nothing is opened or executed: what a session trains, `ipu-plan model` prints and what-if asks
 * again is this one plan.
 *
 * Call in this order: build, compile; then fini, whatever came before. One thread; a finished plan
 * is constant.
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
 * The model lowered to the simulated device: its operations, what each stage costs, and a pipeline
 * run's timeline for training, evaluation and prediction. Nothing changes once training starts;
 * recording replays the timelines with an offset. The costs are the planner's.
 */
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

/* The planner of @like where it plans for such a target, else NULL; @like may be NULL. */
struct ipu_planner *plan_device_planner(const struct plan_device *like,
					const struct ipu_target *target);

struct plan_bubble {
	struct ipu_bubble measured, theory;
};

/* What an Engine::run of a mode runs, and what is measured of it. */
struct plan_program {
	struct ipu_schedule *schedule; /* NULL: the run does without this mode */
	int64_t steps_per_execution;
	bool measured; /* there are losses and metrics */
	struct loss_list losses;
	struct metric_list metrics;
	struct plan_bubble bubble; /* of the device's pipeline run; all are the same */
};

struct plan_run {
	struct run_file *run; /* the caller's to read; then the plan's */
	struct model *model;
	struct run_layout *layout;
	/*
	 * Of a pipeline. `best`: where pipeline.stages is "auto", and beside what the run file says
	 * where that is to be compared; NULL: none, or there cannot be one. `split`: what the run
	 * has, where it is to be compared.
	 */
	struct partition_split *best, *split;
	struct optimizer optimizer;
	struct plan_program program[RUN_MODES]; /* by enum run_mode */
	struct plan_device *device;             /* NULL on the CPU alone */
	const struct plan_device *like;         /* as lower_request has it; the caller's to set */
};

/* Data that the run could have, where it names none: the items are the model's, the targets the
 * losses', as many as the run has steps of. */
enum status plan_run_data(struct run_data *out, const struct run_file *run, struct err *err);

/* Model, layout and the compile section of plan->run with such @data. @compare: cost the split
 * beside the best one. */
enum status plan_run_build(struct plan_run *plan, const struct run_data *data, bool compare,
			   struct err *err);

/* Schedules and, where the run has IPUs, the device. */
enum status plan_run_compile(struct plan_run *plan, const struct run_data *data, struct err *err);
void plan_run_fini(struct plan_run *plan); /* accepts a zeroed struct */

/*
 * The bubble of @intervals of one pipeline run, and theory for such mean times. @device: of the
 * device's clock, where steps end together if the schedule runs in lockstep.
 */
enum status plan_bubble_measure(struct plan_bubble *out, const struct ipu_schedule *schedule,
				const struct ipu_interval *intervals, int count, bool device);

#endif /* PLAN_RUN_H */
