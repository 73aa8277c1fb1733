#include "trainer/train_device.h"

#include <string.h>

#include "common/mem.h"

static void cost_stage(struct train_device *device, int stage)
{
	struct ipu_stage_cost *cost = &device->costs[stage];
	const struct ipu_code *code = device->executable->code[stage];

	cost->forward = code[IPU_FUNCTION_F].cycles;
	cost->forward_exchange = code[IPU_FUNCTION_F].exchange_cycles;
	cost->forward_sync = code[IPU_FUNCTION_F].sync_cycles;
	cost->backward = code[IPU_FUNCTION_B].cycles;
	cost->backward_exchange = code[IPU_FUNCTION_B].exchange_cycles;
	cost->backward_sync = code[IPU_FUNCTION_B].sync_cycles;
	cost->update = code[IPU_FUNCTION_U].cycles;
	cost->update_exchange = code[IPU_FUNCTION_U].exchange_cycles;
	cost->update_sync = code[IPU_FUNCTION_U].sync_cycles;
}

/* Bytes per micro-batch: the first stage takes images in, the last one labels; a loss goes out. */
static enum status cost_stages(struct train_device *device, const struct run_layout *layout,
			       const struct model *model, int64_t batch, struct err *err)
{
	const int64_t float_bytes = (int64_t)sizeof(float);

	device->costs = arena_alloc(&device->arena, (size_t)layout->stages, sizeof(*device->costs));
	if (device->costs == NULL)
		return err_nomem(err);
	for (int s = 0; s < layout->stages; s++) {
		struct ipu_stage_cost *cost = &device->costs[s];

		cost_stage(device, s);
		if (s == 0)
			cost->host_bytes += batch * model_shape_count(&model->input) * float_bytes;
		if (s == layout->stages - 1)
			cost->host_bytes += batch * float_bytes + float_bytes;
	}
	for (int i = 0; i + 1 < model->layer_count; i++)
		if (layout->stage[i] != layout->stage[i + 1])
			device->costs[layout->stage[i]].output_bytes =
				batch * model_shape_count(&model->layers[i].output) * float_bytes;
	return ST_OK;
}

/* Evaluation and prediction run forward only. */
static enum status forward_timeline(struct train_device *device, const struct run_layout *layout,
				    const struct ipu_schedule *schedule, struct ipu_timeline **out,
				    struct err *err)
{
	struct ipu_stage_cost *costs =
		arena_alloc(&device->arena, (size_t)layout->stages, sizeof(*costs));

	if (costs == NULL)
		return err_nomem(err);
	for (int s = 0; s < layout->stages; s++) {
		costs[s] = device->costs[s];
		costs[s].backward = costs[s].backward_exchange = costs[s].backward_sync = 0;
		costs[s].update = costs[s].update_exchange = costs[s].update_sync = 0;
	}
	return ipu_timeline_new(out, &device->target, schedule, costs, err);
}

static enum status run_timelines(struct train_device *device, const struct run_layout *layout,
				 const struct ipu_schedule *const schedules[], struct err *err)
{
	enum status status = ST_OK;

	if (schedules[IPS_TRAIN] != NULL)
		status = ipu_timeline_new(&device->timeline[IPS_TRAIN], &device->target,
					  schedules[IPS_TRAIN], device->costs, err);
	for (int mode = IPS_EVALUATE; mode <= IPS_PREDICT && status == ST_OK; mode++)
		if (schedules[mode] != NULL)
			status = forward_timeline(device, layout, schedules[mode],
						  &device->timeline[mode], err);
	return status;
}

static enum status compile(struct train_device *device, const struct train_lowered *lowered,
			   const struct ipu_schedule *const schedules[], struct err *err)
{
	enum status status = ipu_planner_new(&device->planner, &device->target, err);

	if (status == ST_OK)
		status = train_lower(&device->graph, lowered, &device->arena, err);
	device->graph.layout.schedule = schedules[IPS_TRAIN];
	device->graph.layout.forward =
		schedules[IPS_EVALUATE] ? schedules[IPS_EVALUATE] : schedules[IPS_PREDICT];
	if (status == ST_OK)
		status = ipu_executable_new(&device->executable, &device->graph, device->planner,
					    &device->target, err);
	return status;
}

enum status train_device_new(struct train_device **out, const struct train_lowered *lowered,
			     const struct ipu_schedule *const schedules[], struct err *err)
{
	const struct run_file *run = lowered->run;
	struct train_device *device = mem_calloc(1, sizeof(*device));
	enum status status;

	*out = NULL;
	if (device == NULL || arena_init(&device->arena, 0) != 0) {
		mem_free(device);
		return err_nomem(err);
	}
	status = ipu_target_get(run->ipu.target, run->ipu.tiles_per_ipu, &device->target, err);
	if (status == ST_OK)
		status = compile(device, lowered, schedules, err);
	if (status == ST_OK)
		status = cost_stages(device, lowered->layout, lowered->model, run->data.batch_size,
				     err);
	if (status == ST_OK)
		status = run_timelines(device, lowered->layout, schedules, err);
	if (status != ST_OK) {
		train_device_free(device);
		return status;
	}
	device->host_cycles =
		(int64_t)(device->target.execution_host_ns * 1e-9 * device->target.clock_hz);
	*out = device;
	return ST_OK;
}

void train_device_free(struct train_device *device)
{
	if (device == NULL)
		return;
	for (size_t mode = 0; mode < ARRAY_LEN(device->timeline); mode++)
		ipu_timeline_free(device->timeline[mode]);
	ipu_executable_free(device->executable);
	ipu_planner_free(device->planner);
	arena_fini(&device->arena);
	mem_free(device);
}
