/*
 * Figures of a compiled run. Pure functions of the plan: one thread.
 */
#include "model/plan/plan_figures.h"

#include <math.h>

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

/* Where the cycles of all IPUs of a replica go. */
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
	out->execution_us = out->device_step_us * (double)out->steps_per_execution +
			    device->target.execution_host_ns / 1e3;
	out->items_second = (double)(out->batch * out->replicas * out->steps_per_execution) /
			    out->execution_us * US_PER_S;
	out->tflops = (double)out->flops_per_step * (double)out->replicas / out->device_step_us /
		      US_PER_S;
	set_split(out, timeline, program->schedule->ipus);
}

double plan_figures_single_step_ms(const struct plan_figures *figures,
				   const struct ipu_target *target)
{
	return figures->device_step_us / 1e3 + target->execution_host_ns / 1e6;
}
