/*
 * What a recording has before the first execution: facts, layers, operations, tracks. By the main
 * thread, before there are others.
 */
#include <stdio.h>

#include "model/layers/layer.h"
#include "trainer/train_record_internal.h"

static int set_fact(struct train_session *session, const char *key, const char *value)
{
	return ips_meta_set(session->recording, key, value);
}

static int set_number(struct train_session *session, const char *key, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	return set_fact(session, key, text);
}

/* What the target's name stands for is in the file too: who reads it knows no machines. */
static int record_machine(struct train_session *session, const struct ipu_target *target)
{
	int failed = 0;

	failed |= set_fact(session, "target", target->name);
	failed |= set_fact(session, "cost_model", IPU_COST_MODEL);
	failed |= set_fact(session, "architecture", target->architecture);
	failed |= set_number(session, "tiles_per_ipu", target->tiles);
	failed |= set_number(session, "bytes_per_tile", target->bytes_per_tile);
	failed |= set_number(session, "clock_hz", (int64_t)target->clock_hz);
	failed |= set_number(session, "sync_cycles", (int64_t)target->sync_cycles);
	return failed;
}

static int record_facts(struct train_session *session)
{
	const struct run_file *run = session->run;
	const struct run_layout *layout = session->layout;
	int failed = 0;

	failed |= set_fact(session, "model", session->model->name);
	failed |= set_fact(session, "dataset", session->train_set->source);
	failed |= set_fact(session, "optimizer", optimizer_name(&session->optimizer));
	if (run->fit.wanted)
		failed |= set_fact(session, "loss",
				   loss_name(&session->program[IPS_TRAIN].measure.loss));
	failed |=
		set_fact(session, "schedule",
			 run->pipeline.wanted ? ipu_schedule_name(run->pipeline.schedule) : "none");
	failed |= set_fact(session, "products",
			   run->host.products == RUN_PRODUCTS_OPENBLAS ? "openblas" : "tiles");
	failed |= set_fact(session, "dtype_policy",
			   model_any_half(session->model) ? "mixed_float16" : "float32");
	failed |= set_number(session, "stages", layout->stages);
	failed |= set_number(session, "replicas", layout->replicas);
	failed |= set_number(session, "ipus", layout->ipus);
	failed |= set_number(session, "epochs", run->fit.epochs);
	failed |= set_number(session, "steps_per_epoch", layout->steps_per_epoch);
	failed |= set_number(session, "batch_size", run->data.batch_size);
	failed |= set_number(session, "gradient_accumulation", layout->accumulation);
	failed |= set_number(session, "seed", (int64_t)run->fit.seed);
	failed |= set_number(session, "workers", session->worker_count);
	failed |= set_number(session, "host_threads",
			     (int64_t)pool_helpers(session->pool) + session->worker_count);
	failed |= set_number(session, "oversubscribed", session->oversubscribed);
	if (session->device)
		failed |= record_machine(session, &session->device->target);
	return failed;
}

static int record_layers(struct train_session *session)
{
	const struct model *model = session->model;
	int failed = 0;

	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];
		char shape[128];
		struct ips_layer row = {
			.layer = layer->name,
			.class_name = model_layer_class(layer),
			.position = i,
			.stage = session->layout->stage[i],
			.output_shape = shape,
			.params = model_layer_params(model, i),
			.trainable_params = model_layer_params(model, i),
			.flops = model_layer_flops(model, i, session->run->data.batch_size),
		};

		model_shape_text(&layer->output, session->run->data.batch_size, shape,
				 sizeof(shape));
		failed |= ips_append_layer(session->recording, &row);
	}
	return failed;
}

static int record_operations(struct train_session *session)
{
	int failed = 0;

	for (int i = 0; session->device && i < session->device->graph.node_count; i++) {
		const struct ipu_op *op = &session->device->graph.nodes[i].op;
		const struct ipu_plan *plan = session->device->executable->plans[i];
		const char phase[2] = {op->phase, '\0'};
		const struct ips_operation row = {
			.operation = op->name,
			.layer = op->layer,
			.kind = ipu_op_kind_name(op->kind),
			.phase = phase,
			.stage = op->stage,
			.flops = plan->flops,
			.cycles = plan->cycles,
			.compute_cycles = plan->compute_cycles,
			.exchange_cycles = plan->exchange_cycles,
			.sync_cycles = plan->sync_cycles,
			.bytes_exchanged = plan->bytes_exchanged,
			.tiles_used = plan->tiles_used,
			.tile_balance = plan->tile_balance,
			.code_bytes = plan->code_bytes,
		};

		failed |= ips_append_operation(session->recording, &row);
	}
	return failed;
}

static int record_plans(struct train_session *session)
{
	const struct plan_device *device = session->device;
	int failed = 0;

	for (int i = 0; i < device->graph.node_count; i++) {
		const struct ipu_plan *plan = device->executable->plans[i];
		const struct ips_plan row = {
			.operation = device->graph.nodes[i].op.name,
			.method = ipu_method_name(plan->method),
			.split_batch = plan->split_batch,
			.split_field = plan->split_field,
			.split_in = plan->split_in,
			.split_out = plan->split_out,
			.split_kernel = plan->split_kernel,
			.serial_splits = plan->serial_splits,
			.temporary_bytes = plan->temporary_bytes,
			.cycles = plan->cycles,
		};

		failed |= ips_append_plan(session->recording, &row);
	}
	return failed;
}

static const char *operation_name(const struct plan_device *device, int node)
{
	return node < 0 ? NULL : device->graph.nodes[node].op.name;
}

static int record_programs(struct train_session *session)
{
	const struct plan_device *device = session->device;
	int failed = 0;

	for (int i = 0; i < device->executable->program_count; i++) {
		const struct ipu_program *program = &device->executable->programs[i];
		const struct ips_program row = {
			.program_id = i,
			.parent_id = program->parent < 0 ? IPS_NULL : program->parent,
			.position = program->position,
			.type = ipu_program_type_name(program->type),
			.name = program->name,
			.operation = operation_name(device, program->node),
			.repeat_count = program->type == IPU_REPEAT ? program->repeats : IPS_NULL,
			.call_target = program->call_target < 0 ? IPS_NULL : program->call_target,
		};

		failed |= ips_append_program(session->recording, &row);
	}
	return failed;
}

static int record_code(struct train_session *session, const struct ipu_code *code)
{
	const struct plan_device *device = session->device;
	int failed = 0;

	for (int i = 0; i < code->step_count; i++) {
		const struct ipu_step *step = &code->steps[i];
		const struct ips_compute_set row = {
			.compute_set = device->executable->programs[step->program].name,
			.operation = operation_name(device, step->node),
			.program_id = step->program,
			.vertices = step->vertices,
			.tiles = step->tiles,
			.max_cycles = step->cycles,
			.mean_cycles = step->mean_cycles,
		};

		if (step->type == IPU_ON_TILE_EXECUTE)
			failed |= ips_append_compute_set(session->recording, &row);
	}
	return failed;
}

static int record_executable(struct train_session *session)
{
	const struct plan_device *device = session->device;
	int failed;

	if (!device)
		return 0;
	failed = record_plans(session) | record_programs(session);
	for (int s = 0; s < session->layout->stages; s++)
		for (int f = 0; f < IPU_FUNCTION_PHASES; f++)
			failed |= record_code(session, &device->executable->code[s][f]);
	return failed;
}

static struct ips_track *open_track(struct train_session *session, enum ips_clock clock,
				    const char *lane, const char *name, int64_t ipu)
{
	char track[160];
	const struct ips_track_params params = {.name = name, .ipu = ipu, .clock = clock};

	snprintf(track, sizeof(track), "%s/%s", clock == IPS_HOST ? "host" : "device", lane);
	return ips_track_open(session->recording, track, &params);
}

static int open_tracks(struct train_session *session)
{
	char name[64];

	session->main_track = open_track(session, IPS_HOST, "Engine::run", "Engine::run", IPS_NULL);
	if (session->device)
		session->engine_track =
			open_track(session, IPS_DEVICE, "Engine::run", "Engine::run", IPS_NULL);
	for (int i = 0; i < session->worker_count; i++) {
		struct train_worker *worker = &session->worker[i];
		const int replica = worker->replica->number;
		const int64_t ipu = train__global_ipu(session, replica, worker->ipu);

		snprintf(name, sizeof(name), !session->device ? "CPU" : "IPU %lld", (long long)ipu);
		worker->track = open_track(session, IPS_HOST, name, name, ipu);
		if (!worker->track)
			return -1;
		for (int s = 0; s < session->layout->stages; s++)
			if (session->layout->device[s] == worker->ipu)
				worker->replica->stage[s].track = worker->track;
		if (!session->device)
			continue;
		worker->replica->device_track[worker->ipu] =
			open_track(session, IPS_DEVICE, name, name, ipu);
		if (!worker->replica->device_track[worker->ipu])
			return -1;
		if (!session->device->graph.layout.place_ops_on_io_tiles)
			continue;
		snprintf(name, sizeof(name), "IPU %lld I/O", (long long)ipu);
		worker->replica->io_track[worker->ipu] =
			open_track(session, IPS_DEVICE, name, name, ipu);
		if (!worker->replica->io_track[worker->ipu])
			return -1;
	}
	return !session->main_track ? -1 : 0;
}

static int make_sites(struct train_session *session)
{
	const struct plan_device *device = session->device;
	struct train_sites *sites = &session->device_site;
	size_t nodes, programs;

	if (!device)
		return 0;
	nodes = (size_t)device->graph.node_count + 1;
	programs = (size_t)device->executable->program_count + 1;
	sites->node = arena_alloc(&session->arena, nodes, sizeof(*sites->node));
	sites->move = arena_alloc(&session->arena, programs, sizeof(*sites->move));
	sites->program = arena_alloc(&session->arena, programs, sizeof(*sites->program));
	return sites->node && sites->move && sites->program ? 0 : -1;
}

enum status train_record_start(struct train_session *session, struct err *err)
{
	if (!session->recording)
		return ST_OK;
	if (record_facts(session) != 0 || record_layers(session) != 0 ||
	    record_operations(session) != 0 || record_executable(session) != 0 ||
	    make_sites(session) != 0 || train__append_memory(session) != ST_OK ||
	    open_tracks(session) != 0)
		return err_set(err, ST_FAILED, "recording the model failed");
	return ST_OK;
}
