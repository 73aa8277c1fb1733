/*
 * What a run costs on the simulated device, in figures: of a run that was compiled for it; and how
 * large its report will be.
 */
#ifndef PLAN_FIGURES_H
#define PLAN_FIGURES_H

#include "model/plan/plan_run.h"

/* Times are simulated. A step is one batch on every replica, in the long run: a weight update's
 * pipeline run, ramps included, over its micro-batches. */
struct plan_figures {
	enum run_mode mode; /* training where the run trains, else evaluation or prediction */
	int64_t clock_hz;
	int64_t ipus, replicas, stages, ipus_per_replica;
	int64_t batch, accumulation, effective_batch, steps_per_execution;
	int64_t operations, programs;
	int64_t cycles_per_step; /* rounded down: of a run, over its micro-batches */
	double device_step_us;   /* one batch on every replica */
	double keras_step_us;    /* as Keras's progress bar counts: batches over all replicas */
	double update_us;        /* the weight update; 0 where nothing is trained */
	double execution_us;     /* an Engine::run: what the host or the device takes, below */
	double step_us;          /* of it, for each batch on every replica */
	double all_reduce_us;    /* of device_step_us: replicas' sums and gathers */
	/* The host prepares the next batches while the device works: an execution takes as long as
	 * the slower of the two. */
	double input_us;    /* the host, for a batch on each replica that it has; NaN: not known */
	double device_busy; /* share of an execution in which the device works */
	bool waits_for_input; /* the device does */
	double items_second;  /* over whole executions, host cost included */
	double compute_fraction, exchange_fraction, sync_fraction, host_io_fraction;
	double wait_fraction; /* of all IPUs' cycles, like the four before: they wait for others */
	/*
	 * Of the forwards and backwards of a pipeline run; NaN: one stage, or they take no time.
	 */
	double idle_fraction, bubble_rate, bubble_over_ideal;
	int64_t flops_per_step;        /* of a replica */
	int64_t memory_bytes_per_ipu;  /* of the IPU that needs most, at its peak */
	int64_t memory_bytes_per_tile; /* of the tile that needs most of what it has */
	bool memory_fits;              /* every tile has what it needs */
	double tflops;                 /* of all replicas */
};

void plan_figures_get(struct plan_figures *out, const struct plan_run *plan);

#define PLAN_TRACED_EXECUTIONS 2 /* whose steps a report has, unless said otherwise */

/*
 * Bytes of profile.db with every autoReport on and the default number of traced executions, to
 * about a third: rows are counted from the run, bytes of a row are what reports were seen to have.
 * @looking: of them, what tensors take that are looked at.
 */
int64_t plan_forecast_report(const struct plan_run *plan, double looking);

#endif /* PLAN_FIGURES_H */
