/*
 * Figures of a compiled run on the simulated device: its cost, and the size of its report.
 */
#ifndef PLAN_FIGURES_H
#define PLAN_FIGURES_H

#include "model/plan/plan_run.h"

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

#endif /* PLAN_FIGURES_H */
