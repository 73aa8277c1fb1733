/*
 * The simulated device of a run: lowering the model, compiling it, and running its timelines.
 *
 * Threads: none.
 */
#include "model/plan/plan_device.h"

#include "common/mem.h"

struct ipu_planner *plan_device_planner(const struct plan_device *like,
					const struct ipu_target *target)
{
	return like && ipu_planner_suits(like->planner, target) ? like->planner : NULL;
}

static enum status run_timeline(struct plan_device *device, int mode,
				const struct ipu_schedule *schedule, struct err *err)
{
	const struct ipu_layout *layout = &device->graph.layout;
	const struct ipu_stage_cost *const stages[] = {[RUN_TRAIN] = device->costs.stages,
						       [RUN_EVALUATE] = device->costs.forward,
						       [RUN_PREDICT] = device->costs.predicted};
	const struct ipu_timeline_params params = {
		.target = &device->target,
		.schedule = schedule,
		.stages = stages[mode],
		.forward = mode == RUN_TRAIN ? IPU_FUNCTION_F
					     : ipu_forward_function(layout, mode == RUN_PREDICT),
		.sends = device->costs.sends,
		.send_count = device->costs.send_count,
		.replicas = layout->replicas,
		/* Without place_ops_on_io_tiles the tiles are only reserved. */
		.io_tiles = layout->place_ops_on_io_tiles ? layout->io_tiles : 0,
		.prefetch_depth = layout->prefetch_depth,
		.recompute_late = layout->recompute == IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED,
		.outfeed_once = layout->accumulate_outfeed && mode == RUN_TRAIN,
	};

	return ipu_timeline_new(&device->timeline[mode], &params, err);
}

/* Run the timeline of each mode that has a schedule, and add the programs that control them. */
static enum status run_modes(struct plan_device *device,
			     const struct ipu_schedule *const schedules[], struct err *err)
{
	struct ipu_mode modes[] = {[RUN_TRAIN] = {.name = "train"},
				   [RUN_EVALUATE] = {.name = "evaluate"},
				   [RUN_PREDICT] = {.name = "predict"}};

	for (int mode = 0; mode < (int)ARRAY_LEN(modes); mode++) {
		modes[mode].schedule = schedules[mode];
		modes[mode].runs = mode == RUN_TRAIN ? device->graph.layout.runs : 1;
		if (schedules[mode] && run_timeline(device, mode, schedules[mode], err) != ST_OK)
			return err->status;
		modes[mode].timeline = device->timeline[mode];
	}
	return ipu_control_add(device->executable, modes, (int)ARRAY_LEN(modes), err);
}

static enum status compile(struct plan_device *device, const struct lower_request *lowered,
			   const struct ipu_schedule *const schedules[], struct err *err)
{
	const struct run_file *run = lowered->run;
	const struct model *model = lowered->model;
	struct ipu_layout *layout = &device->graph.layout;

	if (ipu_target_get(run->ipu.target, run->ipu.tiles_per_ipu, &device->target, err) !=
		    ST_OK ||
	    lower_model(&device->graph, lowered, &device->arena, err) != ST_OK)
		return err->status;
	layout->schedule = schedules[RUN_TRAIN];
	layout->forward =
		schedules[RUN_EVALUATE] ? schedules[RUN_EVALUATE] : schedules[RUN_PREDICT];
	layout->evaluated = schedules[RUN_EVALUATE] != NULL;
	layout->predicted = schedules[RUN_PREDICT] != NULL;
	/* Operations are planned for the tiles that are not I/O tiles. */
	device->compute = device->target;
	device->compute.tiles -= layout->io_tiles;
	device->planner = plan_device_planner(lowered->like, &device->compute);
	device->lent = device->planner != NULL;
	if (!device->lent && ipu_planner_new(&device->planner, &device->compute, err) != ST_OK)
		return err->status;
	if (ipu_executable_new(&device->executable, &device->graph, device->planner,
			       &device->compute, err) != ST_OK ||
	    ipu_costs_get(&device->costs, device->executable, &device->arena, err) != ST_OK)
		return err->status;
	/* A prediction streams out the output of the last stage, as float32. */
	device->costs.predicted[layout->stages - 1].outfeed_bytes +=
		run->data.batch_size *
		model_shape_count(&model->layers[model->layer_count - 1].output) *
		(int64_t)sizeof(float);
	return ST_OK;
}

enum status plan_device_new(struct plan_device **out, const struct lower_request *lowered,
			    const struct ipu_schedule *const schedules[], struct err *err)
{
	struct plan_device *device = mem_calloc(1, sizeof(*device));

	*out = NULL;
	if (!device || arena_init(&device->arena, 0) != 0) {
		mem_free(device);
		return err_nomem(err);
	}
	if (compile(device, lowered, schedules, err) != ST_OK ||
	    run_modes(device, schedules, err) != ST_OK ||
	    ipu_memory_new(&device->memory, device->executable, &device->target, err) != ST_OK) {
		plan_device_free(device);
		return err->status;
	}
	device->host_cycles =
		(int64_t)(device->target.execution_host_ns * device->target.clock_hz / 1e9);
	*out = device;
	return ST_OK;
}

void plan_device_free(struct plan_device *device)
{
	if (!device)
		return;
	for (size_t mode = 0; mode < ARRAY_LEN(device->timeline); mode++)
		ipu_timeline_free(device->timeline[mode]);
	ipu_memory_free(device->memory);
	ipu_executable_free(device->executable);
	if (!device->lent)
		ipu_planner_free(device->planner);
	arena_fini(&device->arena);
	mem_free(device);
}
