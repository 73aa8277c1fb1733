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

#include "common/str.h"
#include "ipu/ipu_partition.h"
#include "ipu/ipu_schedule.h"
#include "model/lower/lower.h"
#include "model/model.h"
#include "model/plan/plan_device.h"
#include "model/run/run_file.h"
#include "model/run/run_rules.h"

/*
 * Splitting a model's layers into the stages of a pipeline: the best split by the planner's costs,
 * and the cost of any other split for comparison.
 *
 * The cost of a layer does not depend on its stage, so the model is lowered as one stage and the
 * plans are summed up by layer. @err is not NULL. Threads: none.
 */

/* A split and its (simulated) cost. */
struct partition_split {
	struct ipu_partition *partition; /* units are layers, by position */
	const char **first_layer;        /* first layer's name, by stage; names are the model's */
	bool best;                       /* made by partition_best() */
	double slowest_us;               /* of the slowest stage, per micro-batch */
	/* A batch on every replica in steady state, if all stages were as slow as the slowest. */
	double step_us;
};

void partition_split_free(struct partition_split *split); /* accepts NULL */

/* The plans of a run's layers, made once for all queries. @run and @data must outlive it; so must
 * @like, a device whose cached plans it reuses if its tiles are the same (NULL: none). */
struct partitioner;

enum status partitioner_new(struct partitioner **out, const struct run_file *run,
			    const struct run_data *data, const struct plan_device *like,
			    struct err *err);
void partitioner_free(struct partitioner *partitioner); /* accepts NULL */

/* Find the best split of @model into @stages; writes the stage of each layer to @stage (may be
 * NULL). Outfeed layers of one queue stay together. Fails with ST_INVALID if the model cannot be
 * split into that many stages. */
enum status partition_best(struct partition_split **out, struct partitioner *partitioner,
			   const struct model *model, int stages, int *stage, struct err *err);

/* Compute the cost of the split @stage (by layer, ascending). */
enum status partition_given(struct partition_split **out, struct partitioner *partitioner,
			    const struct model *model, int stages, const int *stage,
			    struct err *err);

/* Append a sentence with a newline: where the stages begin and the time of the slowest; a second
 * sentence if the split does not fit into memory. @what: whose split it is. */
void partition_split_describe(const struct partition_split *split, const char *what,
			      struct str *out);

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

/*
 * Figures of a compiled run on the simulated device: its cost, and the size of its report.
 */

/* Times are simulated. A step is one batch on every replica in steady state: the pipeline run of a
 * weight update, including its ramps, divided by its micro-batches. */
struct plan_figures {
	enum run_mode mode; /* training if the run trains, otherwise evaluation or prediction */
	int64_t clock_hz;
	int64_t ipus, replicas, stages, ipus_per_replica;
	int64_t batch, accumulation, effective_batch, steps_per_execution;
	int64_t operations, programs;
	int64_t cycles_per_step; /* cycles of a run over its micro-batches, rounded down */
	double device_step_us;   /* one batch on every replica */
	double keras_step_us;    /* in Keras's progress bar: counts the batches of all replicas */
	double update_us;        /* the weight update; 0 without training */
	double execution_us;     /* an Engine::run: the slower of host and device, see below */
	double step_us;          /* execution_us for each batch on every replica */
	double all_reduce_us;    /* part of device_step_us: the replicas' reductions and gathers */
	/* The host prepares the next batches while the device works, so an execution takes as long
	 * as the slower of the two. */
	double input_us;    /* the host's time for a batch on each of its replicas; NaN: unknown */
	double device_busy; /* fraction of an execution in which the device works */
	bool waits_for_input; /* the device is faster than the host's input */
	double items_second;  /* over whole executions, including host cost */
	double compute_fraction, exchange_fraction, sync_fraction, host_io_fraction;
	double wait_fraction; /* of all IPUs' cycles, like the four above: waiting for other IPUs */
	/*
	 * Of the forward and backward works of a pipeline run; NaN: one stage, or they take no
	 * time.
	 */
	double idle_fraction, bubble_rate, bubble_over_ideal;
	int64_t flops_per_step;        /* per replica */
	int64_t memory_bytes_per_ipu;  /* peak of the IPU that needs most */
	int64_t memory_bytes_per_tile; /* of the tile that needs the largest share of its memory */
	bool memory_fits;              /* on every tile */
	double tflops;                 /* of all replicas */
};

void plan_figures_get(struct plan_figures *out, const struct plan_run *plan);

#define PLAN_TRACED_EXECUTIONS 2 /* default number of executions whose steps a report contains */

/*
 * Estimate the bytes of profile.db with every autoReport option and the default number of traced
 * executions, to within about a third: rows are counted from the run, bytes per row were
 * measured in reports. @looking: the part that captured tensors take.
 */
int64_t plan_forecast_report(const struct plan_run *plan, double looking);

#endif /* PLAN_RUN_H */
