/*
 * What a recording begins with: facts, layers, operations and programs, the device's memory, tracks
 * and call sites.
 *
 * Threading: the main thread, before the first step of a mode.
 */
#include "trainer/train_record.h"

#include <stdio.h>
#include <string.h>

#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "ipu/ipu_schedule.h"
#include "model/layers/layer.h"
#include "trainer/train_session.h"
#include "trainer/train_tensors.h"

#define ROWS 512 /* appended at once */

/* ---- facts ----------------------------------------------------------------------------------- */

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

/* ---- layers, operations, programs ------------------------------------------------------------ */

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

/* ---- the device's memory: buffered rows ------------------------------------------------------ */

/* Buffered rows of one table. */
struct rows {
	struct ips_recording *recording;
	enum ips_table table;
	size_t size, count;
	unsigned char *items; /* ROWS of @size */
	int failed;
};

static void rows_flush(struct rows *rows)
{
	if (rows->count > 0)
		rows->failed |= ips_append(rows->recording, rows->table, rows->items, rows->count);
	rows->count = 0;
}

static void rows_add(struct rows *rows, const void *row)
{
	if (rows->count == ROWS)
		rows_flush(rows);
	memcpy(rows->items + rows->count * rows->size, row, rows->size);
	rows->count++;
}

/* ---- the device's memory: variables ---------------------------------------------------------- */

/* Format "(32, 128)", as Keras prints it. */
static const char *shape_text(const struct ipu_tensor *tensor, struct arena *arena)
{
	const char *text = "(";

	for (int d = 0; d < tensor->ndim && text; d++)
		text = arena_printf(arena, "%s%s%lld", text, d > 0 ? ", " : "",
				    (long long)tensor->dim[d]);
	return !text ? NULL : arena_printf(arena, "%s%s", text, tensor->ndim == 1 ? ",)" : ")");
}

/* Append a variable's row to @rows, and where it lies to @tiles. */
static int add_variable(struct rows *rows, struct rows *tiles, const struct ipu_variable *variable,
			int64_t id, struct arena *arena)
{
	const struct ipu_tensor *tensor = variable->tensor;
	const struct ips_variable row = {
		.variable_id = id,
		.variable = variable->name,
		.layer = variable->layer,
		.kind = variable->kind,
		.shape = !tensor ? NULL : shape_text(tensor, arena),
		.dtype = !tensor ? NULL : ipu_dtype_name(tensor->dtype),
		.bytes = variable->bytes,
		.ipu = variable->ipu,
		.always_live = variable->always_live,
		.first_program_step = variable->always_live ? IPS_NULL : variable->first_step,
		.last_program_step = variable->always_live ? IPS_NULL : variable->last_step,
	};

	if (tensor && !row.shape)
		return -1;
	rows_add(rows, &row);
	for (int i = 0; i < variable->run_count; i++) {
		const struct ipu_tile_run *run = &variable->runs[i];
		const struct ips_variable_tile tile = {id, variable->ipu, run->tile, run->bytes,
						       run->tiles - 1};

		rows_add(tiles, &tile);
	}
	return 0;
}

/* ---- the device's memory: tiles -------------------------------------------------------------- */

/* Merge consecutive tiles with the same bytes of a category in a region into one row. */
static void merge_tile(struct rows *rows, struct ips_tile_memory *row, int64_t tile, int64_t bytes,
		       int64_t capacity)
{
	if (row->bytes == bytes && row->capacity == capacity) {
		row->more_tiles++;
		return;
	}
	if (row->bytes > 0)
		rows_add(rows, row);
	row->tile = tile;
	row->bytes = bytes;
	row->capacity = capacity;
	row->more_tiles = 0;
}

static void add_tiles(struct rows *rows, const struct ipu_memory *memory, int ipu)
{
	struct ips_tile_memory row[IPU_MEMORY_CATEGORIES][IPU_MEMORY_REGIONS] = {{{0}}};
	int64_t bytes[IPU_MEMORY_CATEGORIES][IPU_MEMORY_REGIONS];

	for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++) {
		for (int r = 0; r < IPU_MEMORY_REGIONS; r++) {
			row[c][r].ipu = ipu;
			row[c][r].category = ipu_memory_category_name((enum ipu_memory_category)c);
			row[c][r].region = ipu_memory_region_name((enum ipu_memory_region)r);
		}
	}
	for (int64_t tile = 0; tile < memory->tiles; tile++) {
		ipu_memory_regions(memory, ipu, tile, bytes);
		for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++)
			for (int r = 0; r < IPU_MEMORY_REGIONS; r++)
				merge_tile(rows, &row[c][r], tile, bytes[c][r],
					   ipu_memory_tile_limit(memory, tile));
	}
	for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++)
		for (int r = 0; r < IPU_MEMORY_REGIONS; r++)
			if (row[c][r].bytes > 0)
				rows_add(rows, &row[c][r]);
}

/* ---- the device's memory: liveness ----------------------------------------------------------- */

/* Append a row for each step, and one after the last for what is always live. */
static void add_steps(struct rows *rows, const struct ipu_memory_ipu *of, int ipu)
{
	struct ips_liveness row = {.ipu = ipu, .always_live_bytes = of->always_live_bytes};

	for (int s = 0; s < of->step_count; s++) {
		row.program_step = s;
		row.program_id = of->steps[s].program;
		row.not_always_live_bytes = of->steps[s].not_always_live_bytes;
		rows_add(rows, &row);
	}
	row.program_step = of->step_count;
	row.program_id = IPS_NULL;
	row.not_always_live_bytes = 0;
	rows_add(rows, &row);
}

/* ---- the device's memory: all tables --------------------------------------------------------- */

static int append_all(const struct ipu_memory *memory, struct rows rows[4])
{
	struct arena shapes;
	int failed = 0;

	if (arena_init(&shapes, 0) != 0)
		return -1;
	for (int v = 0; v < memory->variable_count && failed == 0; v++)
		failed = add_variable(&rows[0], &rows[1], &memory->variables[v], v, &shapes);
	for (int i = 0; i < memory->ipu_count; i++) {
		add_tiles(&rows[2], memory, i);
		add_steps(&rows[3], &memory->ipus[i], i);
	}
	for (int i = 0; i < 4; i++) {
		rows_flush(&rows[i]);
		failed |= rows[i].failed;
	}
	arena_fini(&shapes);
	return failed;
}

static int record_memory(const struct train_session *session)
{
	struct rows rows[4] = {
		{.table = IPS_TABLE_variable, .size = sizeof(struct ips_variable)},
		{.table = IPS_TABLE_variable_tile, .size = sizeof(struct ips_variable_tile)},
		{.table = IPS_TABLE_tile_memory, .size = sizeof(struct ips_tile_memory)},
		{.table = IPS_TABLE_liveness, .size = sizeof(struct ips_liveness)},
	};
	int failed = 0;

	if (!session->device)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		rows[i].recording = session->recording;
		rows[i].items = mem_calloc(ROWS, rows[i].size);
		failed |= !rows[i].items;
	}
	if (failed == 0)
		failed = append_all(session->device->memory, rows);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		mem_free(rows[i].items);
	return failed;
}

/* ---- tracks and call sites ------------------------------------------------------------------- */

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

/* ---- the beginning --------------------------------------------------------------------------- */

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
	    make_sites(session) != 0 || record_memory(session) != 0 || open_tracks(session) != 0)
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
