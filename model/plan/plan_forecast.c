/*
 * The report to come: rows by table, times what a row of it takes in the file, its index included.
 * Pure function of the plan: one thread.
 */
#include "model/plan/plan_forecast.h"

#include <stdio.h>

#include "common/minmax.h"
#include "ipu/compile/ipu_trace.h"
#include "model/layers/layer.h"

/* Bytes of the file, from dbstat over reports of the examples. */
enum {
	EMPTY_REPORT = 720 * 1024,
	TRACE_STEP = 60,
	TRACE_RUN = 45,
	PROGRAM = 95,
	OPERATION = 330,              /* with its plan and its compute sets */
	TENSOR = 260,                 /* with its runs of tiles */
	SPAN = 31,                    /* with its share of the levels */
	STAGE_RUN = 31 + 2 * 26 + 57, /* a span, timings on both clocks, keys */
	PIPELINE_RUN = 400,           /* bubbles on both clocks, where the trace stands */
	METRIC = 60,
	FLOW = 37,
};

static int count_step(void *user, const struct ipu_trace_step *step)
{
	int64_t *count = user;

	(void)step;
	(*count)++;
	return 0;
}

/* What a mode runs in all. */
struct forecast_mode {
	int64_t executions, steps, runs; /* of all executions; runs: of the pipeline */
	double passes;                   /* of a layer in a step: forward, or both ways */
};

static struct forecast_mode mode_of(const struct plan_run *plan, enum run_mode mode)
{
	const struct run_layout *layout = plan->layout;
	struct forecast_mode out = {.passes = mode == RUN_TRAIN ? 2 : 1};
	const int64_t each = plan->program[mode].steps_per_execution;

	if (mode == RUN_TRAIN)
		out.steps = layout->steps_per_epoch * plan->run->fit.epochs;
	else if (mode == RUN_EVALUATE)
		out.steps = layout->evaluate_steps *
			    (plan->run->fit.validation ? plan->run->fit.epochs + 1 : 1);
	else
		out.steps = layout->predict_steps;
	if (each > 0) {
		out.executions = out.steps / each;
		out.runs = out.steps / plan->program[mode].schedule->microbatches;
	}
	return out;
}

/* Layers that are drawn on the host: those that compute. */
static int64_t layer_count(const struct plan_run *plan)
{
	int64_t count = 0;

	for (int i = 0; i < plan->model->layer_count; i++)
		count += !plan->model->layers[i].ops->pass_through;
	return count;
}

static double host_bytes(const struct plan_run *plan, const struct forecast_mode *mode)
{
	const double steps = (double)mode->steps, stages = plan->layout->stages;
	const double works = steps * stages * mode->passes +
			     (mode->passes > 1 ? (double)mode->runs * stages : 0);

	return works * STAGE_RUN + steps * (double)layer_count(plan) * mode->passes * SPAN +
	       (double)mode->runs * PIPELINE_RUN + steps * (stages - 1) * mode->passes * FLOW;
}

/* Spans of a traced run on the device's lanes: operations, functions, transfers. */
static double device_spans(const struct plan_run *plan, enum run_mode mode)
{
	const struct plan_device *device = plan->device;
	const struct ipu_timeline *timeline = device->timeline[mode];
	const double microbatches = plan->program[mode].schedule->microbatches;
	double operations = 0;

	for (int n = 0; n < device->graph.node_count; n++) {
		const char phase = device->graph.nodes[n].op.phase;

		if (phase == IPU_PHASE_F || mode == RUN_TRAIN)
			operations += phase == IPU_PHASE_U ? 1 : microbatches;
	}
	return operations + timeline->count + timeline->transfer_count;
}

/* Steps of a mode's trace, and how often one of its parts is run in a pipeline run. */
static int64_t trace_steps(const struct plan_run *plan, enum run_mode mode, int64_t *starts)
{
	const struct ipu_timeline *timeline = plan->device->timeline[mode];
	struct ipu_trace_part parts[IPU_TRACE_PARTS];
	const int count = ipu_trace_parts(parts, plan->program[mode].schedule, timeline);
	int64_t steps = 0;

	*starts = 0;
	for (int i = 0; i < count; i++) {
		ipu_trace_part(plan->device->executable, timeline, &parts[i], count_step, &steps);
		*starts += parts[i].repeats;
	}
	return steps;
}

static double device_bytes(const struct plan_run *plan, enum run_mode mode,
			   const struct forecast_mode *of, int64_t traced)
{
	const double runs = of->executions > 0 ? (double)(of->runs * traced / of->executions) : 0;
	int64_t steps, starts;

	if (traced == 0 || of->runs == 0)
		return 0;
	steps = trace_steps(plan, mode, &starts);
	return (double)steps * TRACE_STEP +
	       runs * ((double)starts * TRACE_RUN + device_spans(plan, mode) * SPAN);
}

int64_t plan_forecast_report(const struct plan_run *plan, double looking)
{
	const struct plan_device *device = plan->device;
	const double replicas = plan->layout->replicas;
	struct forecast_mode of[RUN_MODES];
	int64_t traced = PLAN_TRACED_EXECUTIONS;
	double bytes = EMPTY_REPORT;

	bytes += (double)device->executable->program_count * PROGRAM +
		 (double)device->graph.node_count * OPERATION +
		 (double)device->graph.tensor_count * TENSOR;
	for (int mode = 0; mode < RUN_MODES; mode++) {
		int64_t now;

		of[mode] = mode_of(plan, (enum run_mode)mode);
		now = min(traced, of[mode].executions);
		traced -= now;
		bytes += replicas * host_bytes(plan, &of[mode]) +
			 replicas * device_bytes(plan, (enum run_mode)mode, &of[mode], now) +
			 (double)of[mode].steps * METRIC * (1 + plan->program[mode].metrics.count);
	}
	bytes += looking;
	return bytes < 0x1p62 ? (int64_t)bytes : INT64_MAX;
}
