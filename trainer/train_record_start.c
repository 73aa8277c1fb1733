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

/* What the functions below add to. */
struct start {
	struct train_session *session;
	struct ips_recording *recording;
	int failed; /* not 0: something could not be added */
};

/* ---- facts ----------------------------------------------------------------------------------- */

static void set_fact(struct start *start, const char *key, const char *value)
{
	start->failed |= ips_meta_set(start->recording, key, value);
}

int train_record_number(struct ips_recording *recording, const char *key, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	return ips_meta_set(recording, key, text);
}

static void set_number(struct start *start, const char *key, int64_t value)
{
	start->failed |= train_record_number(start->recording, key, value);
}

/* Record the target's properties besides its name: readers have no table of machines. */
static void record_machine(struct start *start, const struct ipu_target *target)
{
	set_fact(start, "target", target->name);
	set_fact(start, "cost_model", IPU_COST_MODEL);
	set_fact(start, "architecture", target->architecture);
	set_number(start, "tiles_per_ipu", target->tiles);
	set_number(start, "bytes_per_tile", target->bytes_per_tile);
	set_number(start, "clock_hz", (int64_t)target->clock_hz);
	set_number(start, "sync_cycles", (int64_t)target->sync_cycles);
	set_number(start, "peak_flops_per_cycle",
		   (int64_t)ipu_target_peak_flops_cycle(
			   target, model_policy(start->session->model) == MODEL_POLICY_MIXED));
}

/* Record the key of the tensor with token numbers, and for a text the tokens' names. */
static void record_tokens(struct start *start)
{
	const struct train_session *session = start->session;
	const char *key = train_tensors_tokens(session);
	const struct dataset *set = session->train_set;
	struct str text = {0};
	struct jsonw w;

	if (!key)
		return;
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
	start->failed |= jsonw_end(&w, NULL) != ST_OK;
	set_fact(start, "tokens", str_peek(&text));
	str_free(&text);
}

/* "mean_squared_error", with several outputs "class: sparse_categorical_crossentropy, box: ..." */
static void set_losses(struct start *start)
{
	const struct train_session *session = start->session;
	const struct loss_list *losses = &session->plan->program[IPS_TRAIN].losses;
	struct str text = {0};

	for (int o = 0; o < losses->count; o++)
		if (losses->items[o].given)
			str_addf(&text, "%s%s%s%s", text.length ? ", " : "",
				 losses->count > 1 ? session->model->outputs[o].name : "",
				 losses->count > 1 ? ": " : "", loss_name(&losses->items[o].loss));
	start->failed |= text.failed;
	set_fact(start, "loss", str_peek(&text));
	str_free(&text);
}

static void record_facts(struct start *start)
{
	const struct train_session *session = start->session;
	const struct run_file *run = session->run;
	const struct run_layout *layout = session->layout;
	size_t slots = 0; /* floats of a slot, in all replicas of this process */

	set_fact(start, "model", session->model->name);
	set_fact(start, "dataset", session->train_set->source);
	set_fact(start, "optimizer", optimizer_name(&session->optimizer));
	if (run->fit.wanted)
		set_losses(start);
	set_fact(start, "schedule",
		 run->pipeline.wanted ? ipu_schedule_name(run->pipeline.schedule) : "none");
	set_fact(start, "products",
		 run->host.products == RUN_PRODUCTS_OPENBLAS ? "openblas" : "tiles");
	set_fact(start, "dtype_policy", model_policy_name(model_policy(session->model)));
	set_number(start, "stages", layout->stages);
	set_number(start, "replicas", layout->replicas);
	set_number(start, "ipus", layout->ipus);
	set_number(start, "epochs", run->fit.epochs);
	set_number(start, "steps_per_epoch", layout->steps_per_epoch);
	set_number(start, "batch_size", run->data.batch_size);
	set_number(start, "gradient_accumulation", layout->accumulation);
	set_number(start, "seed", (int64_t)run->fit.seed);
	set_number(start, "workers", session->worker_count);
	for (int r = 0; r < session->replicas; r++)
		slots += session->replica[r].slot_stride;
	if (session->replica[0].slots)
		set_number(start, "optimizer_state_bytes",
			   (int64_t)(slots * sizeof(float)) * optimizer_slots(&session->optimizer));
	set_number(start, "host_threads",
		   (int64_t)pool_helpers(session->pool) + session->worker_count);
	record_tokens(start);
	set_number(start, "oversubscribed", session->oversubscribed);
	if (session->device)
		record_machine(start, &session->device->target);
}

/* ---- layers, operations, programs ------------------------------------------------------------ */

static void record_layers(struct start *start)
{
	const struct train_session *session = start->session;
	const struct model *model = session->model;

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
		start->failed |= ips_append_layer(start->recording, &row);
	}
}

static void record_operations(struct start *start)
{
	const struct plan_device *device = start->session->device;

	for (int i = 0; i < device->graph.node_count; i++) {
		const struct ipu_op *op = &device->graph.nodes[i].op;
		const struct ipu_plan *plan = device->executable->plans[i];
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

		start->failed |= ips_append_operation(start->recording, &row);
	}
}

static void record_plans(struct start *start)
{
	const struct plan_device *device = start->session->device;

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

		start->failed |= ips_append_plan(start->recording, &row);
	}
}

static const char *operation_name(const struct plan_device *device, int node)
{
	return node < 0 ? NULL : device->graph.nodes[node].op.name;
}

static void record_programs(struct start *start)
{
	const struct plan_device *device = start->session->device;

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

		start->failed |= ips_append_program(start->recording, &row);
	}
}

static void record_code(struct start *start, const struct ipu_code *code)
{
	const struct plan_device *device = start->session->device;

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
			start->failed |= ips_append_compute_set(start->recording, &row);
	}
}

static void record_executable(struct start *start)
{
	const struct train_session *session = start->session;

	record_plans(start);
	record_programs(start);
	for (int s = 0; s < session->layout->stages; s++)
		for (int f = 0; f < IPU_FUNCTION_PHASES; f++)
			record_code(start, &session->device->executable->code[s][f]);
}

/* ---- the device's memory: buffered rows ------------------------------------------------------ */

/* Buffered rows of one table. */
struct rows {
	struct start *start;
	enum ips_table table;
	size_t size, count;
	unsigned char *items; /* ROWS of @size */
};

static void rows_flush(struct rows *rows)
{
	if (rows->count > 0)
		rows->start->failed |=
			ips_append(rows->start->recording, rows->table, rows->items, rows->count);
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
static void add_variable(struct rows *rows, struct rows *tiles, const struct ipu_variable *variable,
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

	rows->start->failed |= tensor && !row.shape;
	rows_add(rows, &row);
	for (int i = 0; i < variable->run_count; i++) {
		const struct ipu_tile_run *run = &variable->runs[i];
		const struct ips_variable_tile tile = {id, variable->ipu, run->tile, run->bytes,
						       run->tiles - 1};

		rows_add(tiles, &tile);
	}
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

static void record_memory(struct start *start)
{
	const struct ipu_memory *memory = start->session->device->memory;
	struct rows rows[4] = {
		{start, IPS_TABLE_variable, .size = sizeof(struct ips_variable)},
		{start, IPS_TABLE_variable_tile, .size = sizeof(struct ips_variable_tile)},
		{start, IPS_TABLE_tile_memory, .size = sizeof(struct ips_tile_memory)},
		{start, IPS_TABLE_liveness, .size = sizeof(struct ips_liveness)},
	};
	struct arena arena; /* the buffers, and the texts of shapes */

	if (arena_init(&arena, 0) != 0) {
		start->failed = -1;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		rows[i].items = arena_alloc(&arena, ROWS, rows[i].size);
		start->failed |= !rows[i].items;
	}
	for (int v = 0; v < memory->variable_count && start->failed == 0; v++)
		add_variable(&rows[0], &rows[1], &memory->variables[v], v, &arena);
	for (int i = 0; i < memory->ipu_count && start->failed == 0; i++) {
		add_tiles(&rows[2], memory, i);
		add_steps(&rows[3], &memory->ipus[i], i);
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		rows_flush(&rows[i]);
	arena_fini(&arena);
}

/* ---- tracks and call sites ------------------------------------------------------------------- */

static struct ips_track *open_track(struct start *start, enum ips_clock clock, const char *name,
				    int64_t ipu)
{
	const struct ips_track_params params = {.name = name, .ipu = ipu, .clock = clock};
	struct ips_track *track;
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", clock == IPS_HOST ? "host" : "device", name);
	track = ips_track_open(start->recording, path, &params);
	start->failed |= !track;
	return track;
}

static void open_tracks(struct start *start)
{
	struct train_session *session = start->session;
	const struct plan_device *device = session->device;
	char name[64];

	session->main_track = open_track(start, IPS_HOST, "Engine::run", IPS_NULL);
	if (device)
		session->engine_track = open_track(start, IPS_DEVICE, "Engine::run", IPS_NULL);
	for (int i = 0; i < session->worker_count; i++) {
		struct train_worker *worker = &session->worker[i];
		struct train_replica *replica = worker->replica;
		const int64_t ipu = train__global_ipu(session, replica->number, worker->ipu);

		snprintf(name, sizeof(name), !device ? "CPU" : "IPU %lld", (long long)ipu);
		worker->track = open_track(start, IPS_HOST, name, ipu);
		for (int s = 0; s < session->layout->stages; s++)
			if (session->layout->device[s] == worker->ipu)
				replica->stage[s].track = worker->track;
		if (!device)
			continue;
		replica->device_track[worker->ipu] = open_track(start, IPS_DEVICE, name, ipu);
		if (!device->graph.layout.place_ops_on_io_tiles)
			continue;
		snprintf(name, sizeof(name), "IPU %lld I/O", (long long)ipu);
		replica->io_track[worker->ipu] = open_track(start, IPS_DEVICE, name, ipu);
	}
}

static void make_sites(struct start *start)
{
	struct train_session *session = start->session;
	const size_t nodes = (size_t)session->device->graph.node_count + 1;
	const size_t programs = (size_t)session->device->executable->program_count + 1;
	struct train_sites *sites = &session->device_site;

	sites->node = arena_alloc(&session->arena, nodes, sizeof(*sites->node));
	sites->move = arena_alloc(&session->arena, programs, sizeof(*sites->move));
	sites->program = arena_alloc(&session->arena, programs, sizeof(*sites->program));
	start->failed |= !sites->node || !sites->move || !sites->program;
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* The recording's own failure, such as a full disk, is the reason; without one it is memory. */
static enum status end_start(const struct start *start, const char *what, struct err *err)
{
	int failed;

	if (start->failed == 0)
		return ST_OK;
	failed = ips_recording_flush(start->recording);
	return err_set(err, ST_FAILED, "recording %s failed: %s", what,
		       ips_status_text(failed != 0 ? failed : (int)ST_NOMEM));
}

enum status train_record_start(struct train_session *session, struct err *err)
{
	struct start start = {session, session->recording, 0};

	if (!session->recording)
		return ST_OK;
	record_facts(&start);
	record_layers(&start);
	if (session->device) {
		record_operations(&start);
		record_executable(&start);
		make_sites(&start);
		record_memory(&start);
	}
	open_tracks(&start);
	return end_start(&start, "the model", err);
}

enum status train_record_data(struct train_session *session, enum ips_mode mode, struct err *err)
{
	static const char *const names[TRAIN_MODES] = {[IPS_TRAIN] = "data",
						       [IPS_EVALUATE] = "data (evaluate)",
						       [IPS_PREDICT] = "data (predict)"};
	struct start start = {session, session->recording, 0};

	if (!session->recording || session->data_track[mode])
		return ST_OK;
	session->data_track[mode] = open_track(&start, IPS_HOST, names[mode], IPS_NULL);
	set_fact(&start, "decoding", "as needed");
	return end_start(&start, "the data", err);
}
