/*
 * The memory of the device as the tables have it: of the first replica, the others hold the same.
 * By the main thread, before there are others.
 */
#include <string.h>

#include "common/mem.h"
#include "trainer/train_record_internal.h"

#define ROWS 512 /* that are handed over at once */

/* Rows of one table that wait to be handed over. */
struct rows {
	struct ips_recording *recording;
	enum ips_table table;
	size_t size, count;
	unsigned char *items; /* ROWS of @size */
	int failed;
};

static void rows_hand_over(struct rows *rows)
{
	if (rows->count > 0)
		rows->failed |= ips_append(rows->recording, rows->table, rows->items, rows->count);
	rows->count = 0;
}

static void rows_add(struct rows *rows, const void *row)
{
	if (rows->count == ROWS)
		rows_hand_over(rows);
	memcpy(rows->items + rows->count * rows->size, row, rows->size);
	rows->count++;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* "(32, 128)", as Keras prints it. */
static const char *shape_text(const struct ipu_tensor *tensor, struct arena *arena)
{
	const char *text = "(";

	for (int d = 0; d < tensor->ndim && text; d++)
		text = arena_printf(arena, "%s%s%lld", text, d > 0 ? ", " : "",
				    (long long)tensor->dim[d]);
	return !text ? NULL : arena_printf(arena, "%s%s", text, tensor->ndim == 1 ? ",)" : ")");
}

static int add_variable(struct rows *rows, const struct ipu_variable *variable, int64_t id,
			struct arena *arena)
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
	return 0;
}

static void add_variable_tiles(struct rows *rows, const struct ipu_variable *variable, int64_t id)
{
	for (int i = 0; i < variable->run_count; i++) {
		const struct ipu_tile_run *run = &variable->runs[i];
		const struct ips_variable_tile row = {id, variable->ipu, run->tile, run->bytes,
						      run->tiles - 1};

		rows_add(rows, &row);
	}
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Tiles that have the same of a category in a region are one row. */
static void extend(struct rows *rows, struct ips_tile_memory *row, int64_t tile, int64_t bytes,
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
				extend(rows, &row[c][r], tile, bytes[c][r],
				       ipu_memory_tile_limit(memory, tile));
	}
	for (int c = 0; c < IPU_MEMORY_CATEGORIES; c++)
		for (int r = 0; r < IPU_MEMORY_REGIONS; r++)
			if (row[c][r].bytes > 0)
				rows_add(rows, &row[c][r]);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* After the last step there is what always lives. */
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

/* ---- all of it ------------------------------------------------------------------------------- */

static int append_all(const struct ipu_memory *memory, struct rows rows[4])
{
	struct arena shapes;
	int failed = 0;

	if (arena_init(&shapes, 0) != 0)
		return -1;
	for (int v = 0; v < memory->variable_count && failed == 0; v++) {
		failed = add_variable(&rows[0], &memory->variables[v], v, &shapes);
		add_variable_tiles(&rows[1], &memory->variables[v], v);
	}
	for (int i = 0; i < memory->ipu_count; i++) {
		add_tiles(&rows[2], memory, i);
		add_steps(&rows[3], &memory->ipus[i], i);
	}
	for (int i = 0; i < 4; i++) {
		rows_hand_over(&rows[i]);
		failed |= rows[i].failed;
	}
	arena_fini(&shapes);
	return failed;
}

enum status train__append_memory(const struct train_session *session)
{
	struct rows rows[4] = {
		{.table = IPS_TABLE_variable, .size = sizeof(struct ips_variable)},
		{.table = IPS_TABLE_variable_tile, .size = sizeof(struct ips_variable_tile)},
		{.table = IPS_TABLE_tile_memory, .size = sizeof(struct ips_tile_memory)},
		{.table = IPS_TABLE_liveness, .size = sizeof(struct ips_liveness)},
	};
	int failed = 0;

	if (!session->device)
		return ST_OK;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		rows[i].recording = session->recording;
		rows[i].items = mem_calloc(ROWS, rows[i].size);
		failed |= !rows[i].items;
	}
	if (failed == 0)
		failed = append_all(session->device->memory, rows);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		mem_free(rows[i].items);
	return failed == 0 ? ST_OK : ST_FAILED;
}
