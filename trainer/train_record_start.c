/*
 * What a recording has before the first execution: facts, layers, operations, tracks. By the main
 * thread, before there are others.
 */
#include <stdio.h>

#include "trainer/layers/layer.h"
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
	if (session->device != NULL) {
		failed |= set_fact(session, "target", session->device->target.name);
		failed |= set_fact(session, "cost_model", IPU_COST_MODEL);
		failed |=
			set_number(session, "clock_hz", (int64_t)session->device->target.clock_hz);
	}
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

	for (int i = 0; session->device != NULL && i < session->device->graph.node_count; i++) {
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
	if (session->device != NULL)
		session->engine_track =
			open_track(session, IPS_DEVICE, "Engine::run", "Engine::run", IPS_NULL);
	for (int i = 0; i < session->worker_count; i++) {
		struct train_worker *worker = &session->worker[i];
		const int replica = worker->replica->number;
		const int64_t ipu = train__global_ipu(session, replica, worker->ipu);

		snprintf(name, sizeof(name), session->device == NULL ? "CPU" : "IPU %lld",
			 (long long)ipu);
		worker->track = open_track(session, IPS_HOST, name, name, ipu);
		if (worker->track == NULL)
			return -1;
		for (int s = 0; s < session->layout->stages; s++)
			if (session->layout->device[s] == worker->ipu)
				worker->replica->stage[s].track = worker->track;
		if (session->device == NULL)
			continue;
		worker->replica->device_track[worker->ipu] =
			open_track(session, IPS_DEVICE, name, name, ipu);
		if (worker->replica->device_track[worker->ipu] == NULL)
			return -1;
	}
	return session->main_track == NULL ? -1 : 0;
}

enum status train_record_start(struct train_session *session, struct err *err)
{
	if (session->recording == NULL)
		return ST_OK;
	if (record_facts(session) != 0 || record_layers(session) != 0 ||
	    record_operations(session) != 0 || open_tracks(session) != 0 ||
	    train__measure_bubbles(session) != ST_OK)
		return err_set(err, ST_FAILED, "recording the model failed");
	return ST_OK;
}
