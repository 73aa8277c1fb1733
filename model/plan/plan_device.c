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

static enum status compile(struct plan_device *device, const struct lower_request *lowered,
			   const struct ipu_schedule *const schedules[], struct err *err)
{
	const struct model *model = lowered->model;
	enum status status = lower_model(&device->graph, lowered, &device->arena, err);

	if (status != ST_OK)
		return status;
	device->graph.layout.schedule = schedules[RUN_TRAIN];
	device->graph.layout.forward =
		schedules[RUN_EVALUATE] ? schedules[RUN_EVALUATE] : schedules[RUN_PREDICT];
	device->graph.layout.evaluated = schedules[RUN_EVALUATE] != NULL;
	device->graph.layout.predicted = schedules[RUN_PREDICT] != NULL;
	/* Operations are planned for the tiles that are not I/O tiles. */
	device->compute = device->target;
	device->compute.tiles -= device->graph.layout.io_tiles;
	device->planner = plan_device_planner(lowered->like, &device->compute);
	device->lent = device->planner != NULL;
	if (!device->lent)
		status = ipu_planner_new(&device->planner, &device->compute, err);
	if (status == ST_OK)
		status = ipu_executable_new(&device->executable, &device->graph, device->planner,
					    &device->compute, err);
	if (status == ST_OK)
		status = ipu_costs_get(&device->costs, device->executable, &device->arena, err);
	/* A prediction streams out the output of the last stage, as float32. */
	if (status == ST_OK)
		device->costs.predicted[device->graph.layout.stages - 1].outfeed_bytes +=
			lowered->run->data.batch_size *
			model_shape_count(&model->layers[model->layer_count - 1].output) *
			(int64_t)sizeof(float);
	return status;
}

enum status plan_device_new(struct plan_device **out, const struct lower_request *lowered,
			    const struct ipu_schedule *const schedules[], struct err *err)
{
	const struct run_file *run = lowered->run;
	struct plan_device *device = mem_calloc(1, sizeof(*device));
	enum status status;

	*out = NULL;
	if (!device || arena_init(&device->arena, 0) != 0) {
		mem_free(device);
		return err_nomem(err);
	}
	status = ipu_target_get(run->ipu.target, run->ipu.tiles_per_ipu, &device->target, err);
	if (status == ST_OK)
		status = compile(device, lowered, schedules, err);
	if (status == ST_OK) {
		struct ipu_mode modes[] = {[RUN_TRAIN] = {.name = "train"},
					   [RUN_EVALUATE] = {.name = "evaluate"},
					   [RUN_PREDICT] = {.name = "predict"}};

		for (int mode = 0; mode < (int)ARRAY_LEN(modes) && status == ST_OK; mode++) {
			modes[mode].schedule = schedules[mode];
			modes[mode].runs = mode == RUN_TRAIN ? device->graph.layout.runs : 1;
			if (!schedules[mode])
				continue;
			status = run_timeline(device, mode, schedules[mode], err);
			modes[mode].timeline = device->timeline[mode];
		}
		if (status == ST_OK)
			status = ipu_control_add(device->executable, modes, (int)ARRAY_LEN(modes),
						 err);
	}
	if (status == ST_OK)
		status = ipu_memory_new(&device->memory, device->executable, &device->target, err);
	if (status != ST_OK) {
		plan_device_free(device);
		return status;
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
