/*
 * Figures of a compiled run, and the estimated size of its report: the rows of each table times the
 * bytes of a row in the file, including its index. Pure functions of the plan: one thread.
 */
#include "model/plan/plan_run.h"

#include <math.h>

#include "common/minmax.h"
#include "ipu/compile/ipu_trace.h"
#include "model/layers/layer.h"

#define US_PER_S 1e6

static enum run_mode mode_of(const struct plan_run *plan)
{
	enum run_mode mode = RUN_TRAIN;

	while (mode < RUN_PREDICT && !plan->device->timeline[mode])
		mode++;
	return mode;
}

static double us_of(const struct plan_figures *figures, double cycles)
{
	return cycles / (double)figures->clock_hz * US_PER_S;
}

static int64_t update_cycles(const struct ipu_timeline *timeline)
{
	int64_t first = INT64_MAX, last = 0;

	for (int i = 0; i < timeline->count; i++) {
		const struct ipu_event *event = &timeline->events[i];

		if (event->phase != IPU_PHASE_U)
			continue;
		if (event->start_cycle < first)
			first = event->start_cycle;
		if (event->start_cycle + event->cycles > last)
			last = event->start_cycle + event->cycles;
	}
	return last > first ? last - first : 0;
}

/* Cycles of collectives in a step: the update's share and those of a micro-batch, on the IPU that
 * takes longest. */
static double collective_cycles(const struct plan_run *plan)
{
	double most = 0;

	for (int s = 0; s < plan->layout->stages; s++) {
		const struct ipu_code *code = plan->device->executable->code[s];
		double cycles = (double)code[IPU_FUNCTION_U].collective /
				(double)plan->layout->accumulation;

		for (int f = 0; f < IPU_FUNCTION_EVALUATE; f++)
			cycles += f == IPU_FUNCTION_U ? 0 : (double)code[f].collective;
		most = fmax(most, cycles);
	}
	return most;
}

/* An execution takes the device's time plus the fixed host cost, or the input's time if longer. */
static void set_execution(struct plan_figures *out, const struct plan_run *plan)
{
	const struct ipu_target *target = &plan->device->target;
	const int64_t replicas = max(target->ipus_host / out->ipus_per_replica, 1);
	const double steps = (double)out->steps_per_execution;
	const double device = out->device_step_us * steps;
	const double fixed = target->execution_host_ns / 1e3;

	out->input_us = plan->run->host.input_us * (double)min(replicas, out->replicas);
	out->waits_for_input = out->input_us * steps > device + fixed;
	out->execution_us = out->waits_for_input ? out->input_us * steps : device + fixed;
	out->step_us = out->execution_us / steps;
	out->device_busy = device / out->execution_us;
}

/* Set the fractions of the cycles of all IPUs of a replica. */
static void set_split(struct plan_figures *out, const struct ipu_timeline *timeline, int ipus)
{
	struct ipu_split sum = {0};
	double all = (double)timeline->cycles * ipus;

	for (int i = 0; i < ipus; i++) {
		const struct ipu_split *split = &timeline->split[i];

		sum.compute += split->compute;
		sum.exchange += split->exchange;
		sum.sync += split->sync;
		sum.host_io += split->host_io;
		sum.idle += split->idle;
	}
	out->compute_fraction = (double)sum.compute / all;
	out->exchange_fraction = (double)sum.exchange / all;
	out->sync_fraction = (double)sum.sync / all;
	out->host_io_fraction = (double)sum.host_io / all;
	out->wait_fraction = (double)sum.idle / all;
}

static int64_t flops_of(const struct plan_device *device, bool training)
{
	double flops = 0;

	for (int n = 0; n < device->graph.node_count; n++) {
		const char phase = device->graph.nodes[n].op.phase;

		if (phase == IPU_PHASE_F || (training && phase != IPU_PHASE_U))
			flops += (double)device->executable->plans[n]->flops;
	}
	return flops < 0x1p62 ? (int64_t)flops : INT64_MAX;
}

void plan_figures_get(struct plan_figures *out, const struct plan_run *plan)
{
	const struct run_layout *layout = plan->layout;
	const struct plan_device *device = plan->device;
	const enum run_mode mode = mode_of(plan);
	const struct plan_program *program = &plan->program[mode];
	const struct ipu_timeline *timeline = device->timeline[mode];
	const int64_t microbatches = program->schedule->microbatches;
	const struct ipu_bubble *bubble = &program->bubble.measured;

	*out = (struct plan_figures){
		.mode = mode,
		.clock_hz = llround(device->target.clock_hz),
		.ipus = (int64_t)layout->replicas * layout->ipus_per_replica,
		.replicas = layout->replicas,
		.stages = layout->stages,
		.ipus_per_replica = layout->ipus_per_replica,
		.batch = plan->run->data.batch_size,
		.accumulation = layout->accumulation,
		.steps_per_execution = program->steps_per_execution,
		.operations = device->graph.node_count,
		.programs = device->executable->program_count,
		.cycles_per_step = timeline->cycles / microbatches,
		.idle_fraction = bubble->idle_fraction,
		.bubble_rate = bubble->bubble_rate,
		.bubble_over_ideal = bubble->bubble_over_ideal,
		.flops_per_step = flops_of(device, mode == RUN_TRAIN),
		.memory_bytes_per_ipu = ipu_memory_peak(device->memory),
		.memory_fits = ipu_memory_fits(device->memory),
	};
	for (int i = 0; i < device->memory->ipu_count; i++)
		if (device->memory->ipus[i].worst_bytes > out->memory_bytes_per_tile)
			out->memory_bytes_per_tile = device->memory->ipus[i].worst_bytes;
	out->effective_batch = out->batch * out->accumulation * out->replicas;
	out->device_step_us = us_of(out, (double)timeline->cycles / (double)microbatches);
	out->keras_step_us = out->device_step_us / (double)out->replicas;
	out->update_us = us_of(out, (double)update_cycles(timeline));
	if (mode == RUN_TRAIN)
		out->all_reduce_us = us_of(out, collective_cycles(plan));
	set_execution(out, plan);
	out->items_second = (double)(out->batch * out->replicas * out->steps_per_execution) /
			    out->execution_us * US_PER_S;
	out->tflops = (double)out->flops_per_step * (double)out->replicas / out->device_step_us /
		      US_PER_S;
	set_split(out, timeline, program->schedule->ipus);
}

/* ---- size of the report ---------------------------------------------------------------------- */

/* Bytes in the file, measured with dbstat in reports of the examples. */
enum {
	EMPTY_REPORT = 720 * 1024,
	TRACE_STEP = 60,
	TRACE_RUN = 45,
	PROGRAM = 95,
	OPERATION = 330,              /* with its plan and its compute sets */
	TENSOR = 260,                 /* with its ranges of tiles */
	SPAN = 31,                    /* with its share of the levels */
	STAGE_RUN = 31 + 2 * 26 + 57, /* a span, timings on both clocks, keys */
	PIPELINE_RUN = 400,           /* bubbles on both clocks, the position of the trace */
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

/* Totals of a mode. */
struct forecast_mode {
	int64_t executions, steps, runs; /* of all executions; runs: of the pipeline */
	double passes;                   /* per layer and step: 1 forward, 2 with backward */
};

static struct forecast_mode forecast_mode_of(const struct plan_run *plan, enum run_mode mode)
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

/* Number of layers that have spans on the host: those that compute. */
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

/* Number of spans of a traced run on the device's tracks: operations, functions, transfers. */
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

static double device_bytes(const struct plan_run *plan, enum run_mode mode,
			   const struct forecast_mode *of, int64_t traced)
{
	const double runs = of->executions > 0 ? (double)(of->runs * traced / of->executions) : 0;
	int64_t steps, starts;
	const struct ipu_timeline *timeline;
	struct ipu_trace_part parts[IPU_TRACE_PARTS];
	int count;

	if (traced == 0 || of->runs == 0)
		return 0;

	/* The number of steps of the mode's trace, and how often its parts run in a pipeline run. */
	timeline = plan->device->timeline[mode];
	count = ipu_trace_parts(parts, plan->program[mode].schedule, timeline);
	steps = 0;
	starts = 0;
	for (int i = 0; i < count; i++) {
		ipu_trace_part(plan->device->executable, timeline, &parts[i], count_step, &steps);
		starts += parts[i].repeats;
	}
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
		int64_t mode_traced;

		of[mode] = forecast_mode_of(plan, (enum run_mode)mode);
		mode_traced = min(traced, of[mode].executions);
		traced -= mode_traced;
		bytes +=
			replicas * host_bytes(plan, &of[mode]) +
			replicas * device_bytes(plan, (enum run_mode)mode, &of[mode], mode_traced) +
			(double)of[mode].steps * METRIC * (1 + plan->program[mode].metrics.count);
	}
	bytes += looking;
	return bytes < 0x1p62 ? (int64_t)bytes : INT64_MAX;
}
