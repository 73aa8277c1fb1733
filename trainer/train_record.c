/*
 * The host's part of a recording: facts, layers, operations, tracks and call sites before the first
 * step; works, bubbles, executions and metrics during the run.
 *
 * Threading: see each function in train_record.h; a worker records only its own rows.
 */
#include "trainer/train_record.h"

#include <math.h>
#include <stdio.h>

#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "ipu/ipu_schedule.h"
#include "model/layers/layer.h"
#include "outfeed/outfeed_stats.h"
#include "trainer/train_session.h"
#include "trainer/train_tensors.h"

/* ---- before the first step ------------------------------------------------------------------- */

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

/* Record the target's properties besides its name: readers have no table of machines. */
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
	failed |= set_number(session, "peak_flops_per_cycle",
			     (int64_t)ipu_target_peak_flops_cycle(
				     target, model_policy(session->model) == MODEL_POLICY_MIXED));
	return failed;
}

/* Record the key of the tensor with token numbers, and for a text the tokens' names. */
static int record_tokens(struct train_session *session)
{
	const char *key = train_tensors_tokens(session);
	const struct dataset *set = session->train_set;
	struct str text = {0};
	struct jsonw w;
	int failed;

	if (!key)
		return 0;
	jsonw_init_str(&w, &text, 0);
	jsonw_begin_object(&w);
	jsonw_key_text(&w, "key", key);
	if (set->names && !set->labels && session->run->data.tokens == RUN_TOKENS_BYTES) {
		jsonw_key_text(&w, "names", "bytes");
	} else if (set->names && !set->labels) {
		jsonw_key(&w, "names");
		jsonw_begin_array(&w);
		for (int i = 0; i < set->classes; i++)
			jsonw_text(&w, set->names[i]);
		jsonw_end_array(&w);
	}
	jsonw_end_object(&w);
	failed = jsonw_end(&w, NULL) != ST_OK || text.failed
			 ? -1
			 : set_fact(session, "tokens", str_peek(&text));
	str_free(&text);
	return failed;
}

/* "mean_squared_error", with several outputs "class: sparse_categorical_crossentropy, box: ..." */
static int set_losses(struct train_session *session)
{
	const struct loss_list *losses = &session->program[IPS_TRAIN].measure.losses;
	struct str text = {0};
	int failed;

	for (int o = 0; o < losses->count; o++)
		if (losses->items[o].given)
			str_addf(&text, "%s%s%s%s", text.length ? ", " : "",
				 losses->count > 1 ? session->model->outputs[o].name : "",
				 losses->count > 1 ? ": " : "", loss_name(&losses->items[o].loss));
	failed = text.failed || set_fact(session, "loss", str_peek(&text));
	str_free(&text);
	return failed;
}

static int record_facts(struct train_session *session)
{
	const struct run_file *run = session->run;
	const struct run_layout *layout = session->layout;
	size_t slots = 0; /* floats of a slot, in all replicas of this process */
	int failed = 0;

	failed |= set_fact(session, "model", session->model->name);
	failed |= set_fact(session, "dataset", session->train_set->source);
	failed |= set_fact(session, "optimizer", optimizer_name(&session->optimizer));
	if (run->fit.wanted)
		failed |= set_losses(session);
	failed |=
		set_fact(session, "schedule",
			 run->pipeline.wanted ? ipu_schedule_name(run->pipeline.schedule) : "none");
	failed |= set_fact(session, "products",
			   run->host.products == RUN_PRODUCTS_OPENBLAS ? "openblas" : "tiles");
	failed |=
		set_fact(session, "dtype_policy", model_policy_name(model_policy(session->model)));
	failed |= set_number(session, "stages", layout->stages);
	failed |= set_number(session, "replicas", layout->replicas);
	failed |= set_number(session, "ipus", layout->ipus);
	failed |= set_number(session, "epochs", run->fit.epochs);
	failed |= set_number(session, "steps_per_epoch", layout->steps_per_epoch);
	failed |= set_number(session, "batch_size", run->data.batch_size);
	failed |= set_number(session, "gradient_accumulation", layout->accumulation);
	failed |= set_number(session, "seed", (int64_t)run->fit.seed);
	failed |= set_number(session, "workers", session->worker_count);
	for (int r = 0; r < session->replicas; r++)
		slots += session->replica[r].slot_stride;
	if (session->replica[0].slots)
		failed |= set_number(session, "optimizer_state_bytes",
				     (int64_t)(slots * sizeof(float)) *
					     optimizer_slots(&session->optimizer));
	failed |= set_number(session, "host_threads",
			     (int64_t)pool_helpers(session->pool) + session->worker_count);
	failed |= record_tokens(session);
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

/* The recording's own failure, such as a full disk, is the reason; without one it is memory. */
static enum status record_failed(const struct train_session *session, const char *what,
				 struct err *err)
{
	const int failed = ips_recording_flush(session->recording);

	return err_set(err, ST_FAILED, "recording %s failed: %s", what,
		       ips_status_text(failed != 0 ? failed : (int)ST_NOMEM));
}

enum status train_record_start(struct train_session *session, struct err *err)
{
	if (!session->recording)
		return ST_OK;
	if (record_facts(session) != 0 || record_layers(session) != 0 ||
	    record_operations(session) != 0 || record_executable(session) != 0 ||
	    make_sites(session) != 0 || train__append_memory(session) != ST_OK ||
	    open_tracks(session) != 0)
		return record_failed(session, "the model", err);
	return ST_OK;
}

enum status train_record_data(struct train_session *session, enum ips_mode mode, struct err *err)
{
	static const char *const names[TRAIN_MODES] = {[IPS_TRAIN] = "data",
						       [IPS_EVALUATE] = "data (evaluate)",
						       [IPS_PREDICT] = "data (predict)"};

	if (!session->recording || session->data_track[mode])
		return ST_OK;
	session->data_track[mode] =
		open_track(session, IPS_HOST, names[mode], names[mode], IPS_NULL);
	if (!session->data_track[mode] || set_fact(session, "decoding", "as needed") != 0)
		return record_failed(session, "the data", err);
	return ST_OK;
}

/* ---- during the run -------------------------------------------------------------------------- */

int64_t train__global_ipu(const struct train_session *session, int replica, int ipu)
{
	if (!session->device)
		return IPS_NULL;
	return (int64_t)replica * session->layout->ipus_per_replica + ipu;
}

struct train_worker *train__first_worker(struct train_session *session, int replica)
{
	return &session->worker[replica * session->workers_per_replica];
}

/* ---- works ----------------------------------------------------------------------------------- */

/* Phases have the same letters in the device's works and operations as in the recording's rows, so
 * they are passed without conversion. */
_Static_assert((int)IPU_PHASE_F == (int)IPS_FORWARD && (int)IPU_PHASE_B == (int)IPS_BACKWARD &&
		       (int)IPU_PHASE_W == (int)IPS_WEIGHTS &&
		       (int)IPU_PHASE_R == (int)IPS_RECOMPUTATION &&
		       (int)IPU_PHASE_U == (int)IPS_UPDATE,
	       "a phase has other letters on the device than in a recording");

struct ips_keys train_record_keys(const struct train_worker *worker, int stage, char phase,
				  int64_t run, int64_t microbatch)
{
	const struct train_session *session = worker->session;
	const struct train_execution *execution = &session->execution;
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = (uint8_t)execution->mode;
	keys.epoch = execution->epoch;
	keys.execution = execution->execution;
	keys.replica = worker->replica->number;
	keys.ipu = train__global_ipu(session, worker->replica->number, worker->ipu);
	keys.stage = stage;
	keys.phase = phase;
	if (execution->mode == IPS_TRAIN)
		keys.weight_update = execution->first_update + run;
	if (microbatch >= 0) {
		keys.step = execution->first_step + run * execution->microbatches + microbatch;
		keys.microbatch = execution->mode == IPS_TRAIN ? microbatch : IPS_NULL;
	}
	return keys;
}

enum status train_record_work(struct train_worker *worker, const struct ips_keys *keys,
			      int64_t start_ns, int64_t end_ns, int64_t cpu_ns)
{
	const struct ips_stage_timing row = {
		.keys = *keys,
		.clock = IPS_HOST,
		.start_ns = start_ns,
		.dur_ns = end_ns - start_ns,
		.cpu_ns = cpu_ns,
	};

	return (enum status)ips_append_stage_timing(worker->session->recording, &row);
}

/* ---- executions and metrics ------------------------------------------------------------------ */

static int record_host_split(struct train_session *session, int64_t dur_ns)
{
	int failed = 0;

	for (int i = 0; i < session->worker_count; i++) {
		const struct train_worker *worker = &session->worker[i];
		const int64_t busy = worker->compute_ns + worker->exchange_ns + worker->sync_ns +
				     worker->host_io_ns;
		const struct ips_time_split row = {
			.clock = IPS_HOST,
			.execution = session->execution.execution,
			.replica = worker->replica->number,
			.ipu = train__global_ipu(session, worker->replica->number, worker->ipu),
			.compute_ns = worker->compute_ns,
			.exchange_ns = worker->exchange_ns,
			.sync_ns = worker->sync_ns,
			.host_io_ns = worker->host_io_ns,
			.idle_ns = dur_ns > busy ? dur_ns - busy : 0,
		};

		failed |= ips_append_time_split(session->recording, &row);
	}
	return failed;
}

static int record_device_split(struct train_session *session)
{
	const struct train_execution *execution = &session->execution;
	int failed = 0;

	if (!execution->timeline)
		return 0;
	for (int i = 0; i < session->worker_count; i++) {
		const struct train_worker *worker = &session->worker[i];
		const struct ipu_split *split = &execution->timeline->split[worker->ipu];
		const struct ipu_target *target = &session->device->target;
		const struct ips_time_split row = {
			.clock = IPS_DEVICE,
			.execution = execution->execution,
			.replica = worker->replica->number,
			.ipu = train__global_ipu(session, worker->replica->number, worker->ipu),
			.compute_ns = ipu_target_ns(target, split->compute * execution->runs),
			.exchange_ns = ipu_target_ns(target, split->exchange * execution->runs),
			.sync_ns = ipu_target_ns(target, split->sync * execution->runs),
			.host_io_ns = ipu_target_ns(target, split->host_io * execution->runs),
			.idle_ns = ipu_target_ns(target, split->idle * execution->runs),
		};

		failed |= ips_append_time_split(session->recording, &row);
	}
	return failed;
}

enum status train_record_execution(struct train_session *session, int64_t start_ns, int64_t end_ns)
{
	const struct train_execution *execution = &session->execution;
	const bool device = execution->timeline != NULL;
	const int64_t cycles = device ? execution->timeline->cycles * execution->runs : IPS_NULL;
	const struct ips_execution row = {
		.mode = (int64_t)execution->mode,
		.epoch = execution->epoch,
		.execution = execution->execution,
		.first_step = execution->first_step,
		.steps = execution->steps,
		.updates = execution->mode == IPS_TRAIN ? execution->runs : IPS_NULL,
		.start_ns = start_ns,
		.dur_ns = end_ns - start_ns,
		.start_cycle = device ? execution->start_cycle : IPS_NULL,
		.cycles = cycles,
		.traced = execution->traced,
	};

	if (!session->recording)
		return ST_OK;
	if (ips_append_execution(session->recording, &row) != 0 ||
	    record_host_split(session, end_ns - start_ns) != 0 || record_device_split(session) != 0)
		return ST_FAILED;
	return ST_OK;
}

enum status train_record_metric(struct train_session *session, enum ips_mode mode, int64_t epoch,
				int64_t execution, int64_t step, const char *name, double value)
{
	const struct ips_metric row = {
		.mode = (int64_t)mode,
		.epoch = epoch,
		.execution = execution,
		.step = step,
		.time_ns = ips_recording_now_ns(session->recording),
		.name = name,
		.value = value,
	};

	return (enum status)ips_append_metric(session->recording, &row);
}

enum status train_record_confusion(struct train_session *session, enum ips_mode mode, int64_t epoch,
				   const struct metric *metric, const double *counts)
{
	const size_t count = (size_t)metric->states;
	float *values;
	char shape[64];
	const struct ips_tensor tensor = {.queue = "metrics",
					  .key = metric->name,
					  .kind = "metric",
					  .stage = IPS_NULL,
					  .shape = shape,
					  .dtype = "float32"};
	struct ips_tensor_stats stats = {
		.inactive = NAN, .update_ratio = NAN, .n_changed = IPS_NULL};
	struct outfeed_stats seen;
	struct ips_capture capture = {.keys = IPS_KEYS_NULL,
				      .dtype = "float32",
				      .shape = shape,
				      .bytes = (int64_t)(count * sizeof(*values))};
	int failed;

	if (!session->recording)
		return ST_OK;
	values = mem_alloc(count * sizeof(*values));
	if (!values)
		return ST_NOMEM;
	for (size_t i = 0; i < count; i++)
		values[i] = (float)counts[i];
	outfeed_stats_read(&seen, DTYPE_FLOAT32, values, count, NULL);
	OUTFEED_FILL_COLUMNS(&stats, &seen, true);
	snprintf(shape, sizeof(shape), "(%lld, %lld)", (long long)metric->classes,
		 (long long)metric->classes);
	capture.data = values;
	capture.keys.mode = (uint8_t)mode;
	capture.keys.epoch = epoch;
	capture.keys.step = session->steps[mode] - 1;
	if (mode == IPS_TRAIN)
		capture.keys.weight_update = session->updates - 1;
	stats.keys = capture.keys;
	stats.time_ns = ips_recording_now_ns(session->recording);
	capture.tensor_id = stats.tensor_id = ips_tensor_add(session->recording, &tensor);
	failed = ips_append_tensor_stats(session->recording, &stats);
	failed |= ips_append_capture(session->recording, &capture);
	mem_free(values);
	return failed ? ST_FAILED : ST_OK;
}

/* ---- bubbles --------------------------------------------------------------------------------- */

enum status train__append_bubble(const struct train_worker *worker, int64_t run,
				 enum ips_clock clock, const struct plan_bubble *bubble)
{
	const struct train_session *session = worker->session;
	const struct ipu_bubble *measured = &bubble->measured, *theory = &bubble->theory;
	struct ips_bubble row = {
		.keys = train_record_keys(worker, 0, 0, run, -1),
		.clock = clock,
		.schedule = session->run->pipeline.wanted
				    ? ipu_schedule_name(session->execution.schedule->kind)
				    : "none",
		.stages = session->layout->stages,
		.microbatches = session->execution.microbatches,
		.makespan_ns = measured->makespan_ns,
		.busy_ns = measured->busy_ns,
		.idle_fraction = measured->idle_fraction,
		.bubble_rate = measured->bubble_rate,
		.bubble_over_ideal = measured->bubble_over_ideal,
		.theory_idle_fraction = theory->idle_fraction,
		.theory_bubble_rate = theory->bubble_rate,
		.theory_bubble_over_ideal = theory->bubble_over_ideal,
		.ramp_up_ns = measured->ramp_up_ns,
		.ramp_down_ns = measured->ramp_down_ns,
		.imbalance_ns = measured->imbalance_ns,
		.communication_ns = measured->communication_ns,
		.oversubscribed = clock == IPS_HOST ? session->oversubscribed : IPS_NULL,
	};

	/* One stage is no pipeline: its idle time is no bubble. */
	if (session->layout->stages < 2)
		return ST_OK;
	row.keys.stage = row.keys.ipu = IPS_NULL;
	return (enum status)ips_append_bubble(session->recording, &row);
}

static enum status record_host_run(struct train_session *session, int replica, int64_t run)
{
	const struct ipu_schedule *schedule = session->execution.schedule;
	const int works = schedule->first[schedule->ipus];
	struct plan_bubble bubble;
	enum status status = plan_bubble_measure(
		&bubble, schedule, session->replica[replica].interval + run * works, works, false);

	if (status != ST_OK)
		return status;
	return train__append_bubble(train__first_worker(session, replica), run, IPS_HOST, &bubble);
}

enum status train_record_runs(struct train_session *session, bool all)
{
	if (!session->recording)
		return ST_OK;
	for (int r = 0; r < session->replicas; r++) {
		struct train_replica *replica = &session->replica[r];
		const int64_t done =
			all ? session->execution.runs : train_replica_runs_done(session, r);

		for (; replica->runs_recorded < done; replica->runs_recorded++) {
			enum status status = record_host_run(session, r, replica->runs_recorded);

			if (status != ST_OK)
				return status;
		}
	}
	return ST_OK;
}
