/*
 * The Summary's blocks on the simulated machine, the program that was compiled for it, the files of
 * the report, and the settings of the run.
 *
 * Threading: the session's worker. Ownership: texts are the blocks' arena's, or the state's table.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "viewer/summary/view_summary_internal.h"

#define NAME_WIDTH   16
#define RUN_WIDTH    44 /* of "model.config.layers[3].config.final_outfeed" */
#define RUN_SETTINGS 400

/* Where rows have numbers, the last one's is their count: rows never go. */
static const char machine_sql[] =
	"SELECT max(tile + coalesce(more_tiles, 0)) + 1, max(capacity), "
	"(SELECT CAST(value AS REAL) FROM meta WHERE key = 'clock_hz'), "
	"(SELECT count(*) FROM program_rows), (SELECT max(row_id) FROM operation_rows), "
	"(SELECT max(row_id) FROM compute_set_rows), (SELECT sum(vertices) FROM "
	"compute_set_rows), (SELECT count(*) FROM variable_rows), "
	"EXISTS (SELECT 1 FROM device_step_rows) FROM tile_memory_rows";

/* The run file as the trainer took it, a setting each. */
static const char run_sql[] =
	"SELECT replace(substr(j.fullkey, 3), '\"', '') AS key, CASE WHEN j.type IN ('true', "
	"'false') "
	"THEN j.type ELSE CAST(j.atom AS TEXT) END AS value FROM meta m, "
	"json_tree(CASE WHEN json_valid(m.value) THEN m.value ELSE 'null' END) j "
	"WHERE m.key = 'run' AND j.atom IS NOT NULL AND j.fullkey NOT LIKE '$.flags%'";

enum status view__summary_machine(struct view_summary *screen, struct prof_db *db, struct err *err)
{
	struct view_machine *machine = &screen->machine;
	struct report_table run;
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, machine_sql, err);

	if (prof_query_next(query, &status, err)) {
		machine->tiles = prof_column_int(query, 0);
		machine->tile_bytes = prof_column_int(query, 1);
		machine->clock_hz = prof_column_real(query, 2);
		machine->programs = prof_column_int(query, 3);
		machine->operations = prof_column_int(query, 4);
		machine->compute_sets = prof_column_int(query, 5);
		machine->vertices = prof_column_int(query, 6);
		machine->variables = prof_column_int(query, 7);
		machine->traced = prof_column_int(query, 8) > 0;
	}
	prof_query_close(query);
	if (status == ST_OK)
		status = report_table_query(&run, db, "run", run_sql, RUN_SETTINGS, err);
	if (status != ST_OK)
		return status;
	report_table_free(&screen->run);
	screen->run = run;
	return ST_OK;
}

static void view_add_number(struct view_blocks *blocks, const char *name, int64_t value)
{
	char text[FMT_SIZE];

	if (value > 0)
		view_blocks_fact(blocks, name, VIEW_NORMAL, "%s", fmt_count(text, value));
}

static void view_add_memory(struct view_blocks *blocks, const struct view_machine *machine,
			    const struct view_glance *glance)
{
	char tile[FMT_SIZE], ipu[FMT_SIZE];

	if (machine->tiles <= 0 || machine->tile_bytes <= 0)
		return;
	if (glance->memory_tiles > machine->tiles)
		view_blocks_fact(blocks, "tiles", VIEW_NORMAL, "%s on each IPU, %s in all",
				 fmt_count(tile, machine->tiles),
				 fmt_count(ipu, glance->memory_tiles));
	else
		view_blocks_fact(blocks, "tiles", VIEW_NORMAL, "%s on each IPU",
				 fmt_count(tile, machine->tiles));
	view_blocks_fact(blocks, "memory", VIEW_NORMAL, "%s on each tile, %s on each IPU",
			 fmt_bytes(tile, (uint64_t)machine->tile_bytes),
			 fmt_bytes(ipu, (uint64_t)machine->tile_bytes * (uint64_t)machine->tiles));
	if (glance->memory_bytes > 0)
		view_blocks_fact(blocks, "used", VIEW_NORMAL, "%s of %s in all",
				 fmt_bytes(tile, (uint64_t)glance->memory_bytes),
				 fmt_bytes(ipu, (uint64_t)glance->memory_capacity));
}

static void view_block_machine(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;
	const struct {
		const char *name;
		int64_t count;
	} parts[] = {{"IPUs", summary->ipus},
		     {"replicas", summary->replicas},
		     {"stages", summary->stages}};
	struct view_blocks *blocks = &screen->blocks;

	/* A recording of something else was not made on one. */
	if (!summary->target && summary->ipus <= 0 && screen->machine.tiles <= 0)
		return;
	view_blocks_begin(
		blocks, summary->ranks > 1 ? "Simulated machine of each rank" : "Simulated machine",
		NAME_WIDTH);
	view__summary_fact(screen, "target", NAME_WIDTH, summary->target);
	view__summary_fact(screen, "cost model", NAME_WIDTH, summary->cost_model);
	view__summary_fact(screen, "schedule", NAME_WIDTH, summary->schedule);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		view_add_number(blocks, parts[i].name, parts[i].count);
	view_add_memory(blocks, &screen->machine, &screen->glance);
	if (screen->machine.clock_hz > 0)
		view_blocks_fact(blocks, "clock", VIEW_NORMAL, "%.0f MHz",
				 screen->machine.clock_hz / 1e6);
	if (screen->glance.looked)
		view_blocks_fact(blocks, "instrumentation", VIEW_NORMAL, "%s",
				 screen->machine.traced
					 ? "by tile: steps of the device are recorded"
					 : "none: no step of the device is recorded");
	if (summary->oversubscribed)
		view_blocks_fact(blocks, "host times", VIEW_WARN,
				 "oversubscribed: more workers than processors");
}

static void view_block_program(struct view_blocks *blocks, const struct view_machine *machine)
{
	if (machine->programs <= 0 && machine->operations <= 0)
		return;
	view_blocks_begin(blocks, "Compiled program (simulated)", NAME_WIDTH);
	view_add_number(blocks, "programs", machine->programs);
	view_add_number(blocks, "operations", machine->operations);
	view_add_number(blocks, "compute sets", machine->compute_sets);
	view_add_number(blocks, "vertices", machine->vertices);
	view_add_number(blocks, "variables", machine->variables);
}

/* What a report directory is made of, and which of that is there. */
static void view_block_files(struct view_blocks *blocks, const char *folder)
{
	static const char *const names[] = {"profile.db",     "graph.json", "execution.json",
					    "framework.json", "app.json",   "debug.cbor"};
	char path[FS_PATH_SIZE], text[FMT_SIZE];
	struct stat info;

	if (!fs_is_dir(folder))
		return;
	view_blocks_begin(blocks, "Report files", NAME_WIDTH);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (fs_path(path, "%s/%s", folder, names[i]) && stat(path, &info) == 0)
			view_blocks_fact(blocks, names[i], VIEW_NORMAL, "%s",
					 fmt_bytes(text, (uint64_t)info.st_size));
		else
			view_blocks_fact(blocks, names[i], VIEW_DIM, "not there");
}

/* What the clocks of the recording are taken from: nothing to read. */
static bool view_is_internal(const char *option)
{
	static const char *const names[] = {"process_start", "ticks_per_second"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(option, names[i]) == 0)
			return true;
	return false;
}

static void view_block_settings(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;
	const struct report_table *run = &screen->run;
	struct view_blocks *blocks = &screen->blocks;

	if (summary->option_count > 0)
		view_blocks_begin(blocks, "Options", 2 * NAME_WIDTH);
	for (int i = 0; i < summary->option_count; i++)
		if (!view_is_internal(summary->options[i].name))
			view_blocks_fact(blocks, summary->options[i].name, VIEW_NORMAL, "%s",
					 summary->options[i].value);
	if (run->row_count > 0)
		view_blocks_begin(blocks, "Run file", RUN_WIDTH);
	for (int64_t i = 0; i < run->row_count; i++) {
		const struct report_cell *cells = &run->cells[i * run->column_count];

		view__summary_fact(screen, cells[0].text, RUN_WIDTH, cells[1].text);
	}
}

void view__summary_made(struct view_summary *screen, const char *folder)
{
	view_block_machine(screen);
	view_block_program(&screen->blocks, &screen->machine);
	view_block_files(&screen->blocks, folder);
	view_block_settings(screen);
}
