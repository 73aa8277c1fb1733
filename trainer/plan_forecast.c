/*
 * The report to come: rows by table, times what a row of it takes in the file, its index included.
 * Pure function of the session: one thread.
 */
#include "trainer/plan_forecast.h"

#include <stdio.h>
#include <string.h>

#include "ipu/compile/ipu_trace.h"
#include "trainer/auto/train_auto.h"
#include "trainer/layers/layer.h"
#include "trainer/train_outfeed_forecast.h"

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

static struct forecast_mode mode_of(const struct train_session *session, enum ips_mode mode)
{
	const struct run_layout *layout = session->layout;
	struct forecast_mode out = {.passes = mode == IPS_TRAIN ? 2 : 1};
	const int64_t each = session->program[mode].steps_per_execution;

	if (mode == IPS_TRAIN)
		out.steps = layout->steps_per_epoch * session->run->fit.epochs;
	else if (mode == IPS_EVALUATE)
		out.steps = layout->evaluate_steps *
			    (session->run->fit.validation ? session->run->fit.epochs + 1 : 1);
	else
		out.steps = layout->predict_steps;
	if (each > 0) {
		out.executions = out.steps / each;
		out.runs = out.steps / session->program[mode].schedule->microbatches;
	}
	return out;
}

/* Layers that are drawn on the host: those that compute. */
static int64_t layer_count(const struct train_session *session)
{
	int64_t count = 0;

	for (int i = 0; i < session->model->layer_count; i++)
		count += !session->model->layers[i].ops->pass_through;
	return count;
}

static double host_bytes(const struct train_session *session, const struct forecast_mode *mode)
{
	const double steps = (double)mode->steps, stages = session->layout->stages;
	const double works = steps * stages * mode->passes +
			     (mode->passes > 1 ? (double)mode->runs * stages : 0);

	return works * STAGE_RUN + steps * (double)layer_count(session) * mode->passes * SPAN +
	       (double)mode->runs * PIPELINE_RUN + steps * (stages - 1) * mode->passes * FLOW;
}

/* Spans of a traced run on the device's lanes: operations, functions, transfers. */
static double device_spans(const struct train_session *session, enum ips_mode mode)
{
	const struct train_device *device = session->device;
	const struct ipu_timeline *timeline = device->timeline[mode];
	const double microbatches = session->program[mode].schedule->microbatches;
	double operations = 0;

	for (int n = 0; n < device->graph.node_count; n++) {
		const char phase = device->graph.nodes[n].op.phase;

		if (phase == 'F' || mode == IPS_TRAIN)
			operations += phase == 'U' ? 1 : microbatches;
	}
	return operations + timeline->count + timeline->transfer_count;
}

/* Steps of a mode's trace, and how often one of its parts is run in a pipeline run. */
static int64_t trace_steps(const struct train_session *session, enum ips_mode mode, int64_t *starts)
{
	const struct ipu_timeline *timeline = session->device->timeline[mode];
	struct ipu_trace_part parts[IPU_TRACE_PARTS];
	const int count = ipu_trace_parts(parts, session->program[mode].schedule, timeline);
	int64_t steps = 0;

	*starts = 0;
	for (int i = 0; i < count; i++) {
		ipu_trace_part(session->device->executable, timeline, &parts[i], count_step,
			       &steps);
		*starts += parts[i].repeats;
	}
	return steps;
}

static double device_bytes(const struct train_session *session, enum ips_mode mode,
			   const struct forecast_mode *of, int64_t traced)
{
	const double runs = of->executions > 0 ? (double)(of->runs * traced / of->executions) : 0;
	int64_t steps, starts;

	if (traced == 0 || of->runs == 0)
		return 0;
	steps = trace_steps(session, mode, &starts);
	return (double)steps * TRACE_STEP +
	       runs * ((double)starts * TRACE_RUN + device_spans(session, mode) * SPAN);
}

/* Tensors that are looked at, within their budget. */
static double looking_bytes(const struct train_session *session)
{
	const double budget = (double)train_outfeed_budget(session, NULL);
	struct train_outfeed_forecast looking;

	train_outfeed_forecast(&looking, session);
	return looking.bytes < budget ? looking.bytes : budget;
}

int64_t plan_forecast_report(const struct train_session *session)
{
	const struct train_device *device = session->device;
	const double replicas = session->layout->replicas;
	struct forecast_mode of[TRAIN_MODES];
	int64_t traced = TRAIN_PROGRAM_RUN_COUNT;
	double bytes = EMPTY_REPORT;

	bytes += (double)device->executable->program_count * PROGRAM +
		 (double)device->graph.node_count * OPERATION +
		 (double)device->graph.tensor_count * TENSOR;
	for (int mode = 0; mode < TRAIN_MODES; mode++) {
		int64_t now;

		of[mode] = mode_of(session, (enum ips_mode)mode);
		now = traced < of[mode].executions ? traced : of[mode].executions;
		traced -= now;
		bytes += replicas * host_bytes(session, &of[mode]) +
			 replicas * device_bytes(session, (enum ips_mode)mode, &of[mode], now) +
			 (double)of[mode].steps * METRIC *
				 (1 + session->program[mode].measure.metrics.count);
	}
	bytes += looking_bytes(session);
	return bytes < 0x1p62 ? (int64_t)bytes : INT64_MAX;
}
