/*
 * The Summary's blocks from report_summary: what the run achieved (bubbles, stages, training,
 * health), and what it was: the run, the simulated machine, its compiled program, the files of the
 * report, and the settings.
 *
 * Threading: the session's. Ownership: the blocks own their texts.
 */
#include "viewer/summary/view_summary_internal.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/str.h"

#define SUMMARY_BLOCKS_NAME_WIDTH 16

/* ---- lines ----------------------------------------------------------------------------------- */

struct view_place *view__summary_link(struct view_summary *screen, enum view_screen leads)
{
	struct view_place *place = &screen->links[screen->link_count];

	view_place_clear(place);
	if (screen->link_count < VIEW_SUMMARY_LINKS) {
		screen->leads[screen->link_count++] = (int)leads;
		view_blocks_link(&screen->blocks, screen->link_count);
	}
	return place;
}

static void summary_link_metric(struct view_summary *screen, const char *metric, bool known)
{
	struct view_place *place;

	if (!known)
		return;
	place = view__summary_link(screen, VIEW_SCREENS);
	view_place_text(place->metric, metric);
	view_place_text(place->mode, "train");
}

static void summary_add_text(struct view_blocks *blocks, const char *name, const char *value)
{
	if (value && value[0])
		view_blocks_fact(blocks, name, VIEW_NORMAL, "%s", value);
}

static void summary_add_count(struct view_blocks *blocks, const char *name, int64_t value)
{
	char text[FMT_SIZE];

	if (value != IPS_NULL && value > 0)
		view_blocks_fact(blocks, name, VIEW_NORMAL, "%s", fmt_count(text, value));
}

/* @bad: the value is known to be NaN or infinite. */
static void summary_add_loss(struct view_blocks *blocks, const char *name, double value, bool bad)
{
	char text[FMT_SIZE];

	if (bad)
		view_blocks_fact(blocks, name, VIEW_BAD, "nan");
	else if (!isnan(value))
		view_blocks_fact(blocks, name, VIEW_BOLD, "%s", fmt_real(text, value));
}

static void summary_add_share(struct view_blocks *blocks, const char *name, double value,
			      double theory)
{
	char text[FMT_SIZE], ideal[FMT_SIZE];

	if (isnan(value))
		return;
	if (isnan(theory))
		view_blocks_bar(blocks, name, VIEW_BUBBLE, value, NAN, "%s",
				fmt_percent(text, value));
	else
		view_blocks_bar(blocks, name, VIEW_BUBBLE, value, theory, "%s theory %s",
				fmt_percent(text, value), fmt_percent(ideal, theory));
}

/* ---- what the run achieved ------------------------------------------------------------------- */

#define RULE_WIDTH 22 /* of "saturated_activation" */

static void summary_add_bubble_block(struct view_blocks *blocks,
				     const struct report_bubble_mean *bubble, const char *title)
{
	char text[FMT_SIZE];

	if (!bubble->known)
		return;
	view_blocks_begin(blocks, title, SUMMARY_BLOCKS_NAME_WIDTH);
	view_blocks_fact(blocks, "pipeline runs", VIEW_NORMAL, "%s together (mark: theory)",
			 fmt_count(text, bubble->runs));
	summary_add_share(blocks, "bubble", bubble->idle_fraction, bubble->theory_idle_fraction);
	summary_add_share(blocks, "  ramp-up", bubble->ramp_up, NAN);
	summary_add_share(blocks, "  ramp-down", bubble->ramp_down, NAN);
	summary_add_share(blocks, "  imbalance", bubble->imbalance, NAN);
	summary_add_share(blocks, "  communication", bubble->communication, NAN);
	summary_add_share(blocks, "bubble rate", bubble->bubble_rate, bubble->theory_bubble_rate);
	summary_add_share(blocks, "over ideal", bubble->bubble_over_ideal,
			  bubble->theory_bubble_over_ideal);
}

/* The greatest phase sum on a clock, which makes a full bar. */
static double summary_greatest_phase(const struct report_summary *summary, int clock)
{
	double greatest = 1;

	for (int64_t i = 0; i < summary->stages; i++) {
		greatest = fmax(greatest, (double)summary->stage[i].forward_ns[clock]);
		greatest = fmax(greatest, (double)summary->stage[i].backward_ns[clock]);
		greatest = fmax(greatest, (double)summary->stage[i].update_ns[clock]);
	}
	return greatest;
}

int64_t view__summary_slowest(const struct report_summary *summary, int clock)
{
	int64_t most = -1, slowest = -1;

	for (int64_t i = 0; i < summary->stages; i++) {
		const struct report_stage *stage = &summary->stage[i];
		const int64_t sum =
			sat_add(sat_add(stage->forward_ns[clock], stage->backward_ns[clock]),
				stage->update_ns[clock]);

		if (sum > most)
			slowest = i;
		most = max(sum, most);
	}
	return summary->stages > 1 ? slowest : -1;
}

static void summary_add_stages_block(struct view_summary *screen, int clock)
{
	const struct report_summary *summary = &screen->summary;
	struct view_blocks *blocks = &screen->blocks;
	const double greatest = summary_greatest_phase(summary, clock);
	const int64_t slowest = view__summary_slowest(summary, clock);
	char text[FMT_SIZE];

	if (summary->stages < 1 || !summary->stage || greatest <= 1)
		return;
	view_blocks_begin(blocks,
			  clock                 ? "Stages in training: device time (simulated)"
			  : summary->stages > 1 ? "Stages in training: host time"
						: "Passes in training: host time",
			  SUMMARY_BLOCKS_NAME_WIDTH);
	if (summary->replicas > 1)
		view_blocks_text(blocks, VIEW_NORMAL, "of %s replicas, added up; IPUs of the first",
				 fmt_count(text, summary->replicas));
	for (int64_t i = 0; i < summary->stages; i++) {
		const struct report_stage *stage = &summary->stage[i];
		const struct {
			const char *name;
			enum view_style style;
			int64_t ns;
		} phases[] = {{"  F forward", VIEW_FORWARD_TEXT, stage->forward_ns[clock]},
			      {"  B backward", VIEW_BACKWARD_TEXT, stage->backward_ns[clock]},
			      {"  U update", VIEW_UPDATE_TEXT, stage->update_ns[clock]}};
		struct view_place *place;

		if (stage->ipu != IPS_NULL)
			view_blocks_text(blocks, VIEW_BOLD, "stage %lld on IPU %lld%s",
					 (long long)stage->stage, (long long)stage->ipu,
					 i == slowest ? ", the slowest" : "");
		else
			view_blocks_text(blocks, VIEW_BOLD, "all layers, on this machine");
		place = view__summary_link(screen, VIEW_SCREENS);
		place->stage = stage->stage;
		place->ipu = stage->ipu;
		view_place_text(place->clock, clock ? "device" : "host");
		view_place_text(place->view, "stage_sums");
		snprintf(place->keys, sizeof(place->keys), "clock=%s stage=%lld",
			 clock ? "device" : "host", (long long)stage->stage);
		summary_add_text(blocks, "  layers", stage->layers);
		for (size_t p = 0; p < ARRAY_LEN(phases); p++)
			if (phases[p].ns > 0)
				view_blocks_bar(blocks, phases[p].name, phases[p].style,
						(double)phases[p].ns / greatest, NAN, "%s",
						fmt_ns(text, phases[p].ns));
	}
}

static void summary_add_training_block(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;
	struct view_blocks *blocks = &screen->blocks;
	char text[FMT_SIZE];

	if (!summary->loss_nan && !summary->evaluate_loss_nan && isnan(summary->loss) &&
	    isnan(summary->accuracy) && isnan(summary->evaluate_loss) &&
	    isnan(summary->evaluate_accuracy))
		return;
	view_blocks_begin(blocks, "Training", SUMMARY_BLOCKS_NAME_WIDTH);
	summary_add_loss(blocks, "loss", summary->loss, summary->loss_nan);
	summary_link_metric(screen, "loss", summary->loss_nan || !isnan(summary->loss));
	if (!isnan(summary->accuracy))
		view_blocks_bar(blocks, "accuracy", VIEW_GOOD, summary->accuracy, NAN, "%s",
				fmt_percent(text, summary->accuracy));
	summary_link_metric(screen, "accuracy", !isnan(summary->accuracy));
	summary_add_loss(blocks, "evaluation loss", summary->evaluate_loss,
			 summary->evaluate_loss_nan);
	if (!isnan(summary->evaluate_accuracy))
		view_blocks_bar(blocks, "evaluation acc.", VIEW_GOOD, summary->evaluate_accuracy,
				NAN, "%s", fmt_percent(text, summary->evaluate_accuracy));
}

static void summary_add_bad_number(struct view_summary *screen)
{
	const struct report_bad *bad = &screen->summary.bad;
	const bool stepped = bad->step != IPS_NULL;
	struct view_place *place;

	if (!bad->known)
		return;
	view_blocks_fact(&screen->blocks, "first bad number", VIEW_BAD, "%s in %s, %s %lld",
			 bad->value ? bad->value : "?", bad->key ? bad->key : "?",
			 stepped ? "step" : "weight update",
			 (long long)(stepped ? bad->step : bad->weight_update));
	place = view__summary_link(screen, VIEW_SCREENS);
	view_place_text(place->key, bad->key);
	view_place_text(place->layer, bad->layer);
	view_place_text(place->phase, bad->phase);
	place->step = bad->step;
	place->weight_update = bad->weight_update;
	place->microbatch = bad->microbatch;
	place->stage = bad->stage;
	place->replica = bad->replica;
	place->time_ns = bad->time_ns;
	view_place_text(place->clock, "host");
}

static void summary_add_health_block(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;

	if (summary->rules <= 0 && summary->broken_count == 0 && !summary->bad.known)
		return;
	view_blocks_begin(&screen->blocks, "Health", RULE_WIDTH);
	if (summary->broken_count == 0)
		view_blocks_fact(&screen->blocks, "rules", VIEW_GOOD, "%lld in force, none broken",
				 (long long)summary->rules);
	summary_add_bad_number(screen);
	for (int i = 0; i < summary->broken_count; i++) {
		const struct report_broken *broken = &summary->broken[i];
		const bool stepped = broken->step != IPS_NULL;
		char text[FMT_SIZE];
		struct view_place *place;

		view_blocks_fact(&screen->blocks, broken->rule, VIEW_WARN,
				 "%s hit%s, first in %s %lld%s%s", fmt_count(text, broken->hits),
				 broken->hits == 1 ? "" : "s", stepped ? "step" : "weight update",
				 (long long)(stepped ? broken->step : broken->weight_update),
				 broken->key ? ": " : "", broken->key ? broken->key : "");
		place = view__summary_link(screen, VIEW_SCREENS);
		view_place_text(place->rule, broken->rule);
		view_place_text(place->key, broken->key);
		place->step = broken->step;
		place->weight_update = broken->weight_update;
		place->time_ns = broken->first_ns;
		view_place_text(place->clock, "host");
	}
}

void view__summary_results(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;

	summary_add_bubble_block(&screen->blocks, &summary->bubble[1],
				 "Pipeline bubble: device (simulated)");
	summary_add_stages_block(screen, 1);
	summary_add_training_block(screen);
	summary_add_health_block(screen);
	summary_add_bubble_block(&screen->blocks, &summary->bubble[0], "Pipeline bubble: host");
	summary_add_stages_block(screen, 0);
}

/* ---- the machine and its program ------------------------------------------------------------- */

#define RUN_SETTINGS 400

/* Rows are never deleted, so max(row_id) is their count where row_id exists. */
static const char summary_machine_sql[] =
	"SELECT max(tile + coalesce(more_tiles, 0)) + 1, max(capacity), "
	"(SELECT CAST(value AS REAL) FROM meta WHERE key = 'clock_hz'), "
	"(SELECT count(*) FROM program_rows), (SELECT max(row_id) FROM operation_rows), "
	"(SELECT max(row_id) FROM compute_set_rows), (SELECT sum(vertices) FROM "
	"compute_set_rows), (SELECT count(*) FROM variable_rows), "
	"EXISTS (SELECT 1 FROM device_step_rows) FROM tile_memory_rows";

/* The run file as the trainer read it, one row per setting. */
static const char summary_run_sql[] =
	"SELECT replace(substr(j.fullkey, 3), '\"', '') AS key, CASE WHEN j.type IN ('true', "
	"'false') "
	"THEN j.type ELSE CAST(j.atom AS TEXT) END AS value FROM meta m, "
	"json_tree(CASE WHEN json_valid(m.value) THEN m.value ELSE 'null' END) j "
	"WHERE m.key = 'run' AND j.atom IS NOT NULL AND j.fullkey NOT LIKE '$.flags%'";

void view__summary_machine(struct view_summary *screen, struct prof_db *db, struct err *err)
{
	struct view_machine *machine = &screen->machine;
	struct report_table run;
	struct prof_query *query = view_query_open(db, summary_machine_sql, err);

	if (view_query_next(query, err)) {
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
	if (err_stuck(err) ||
	    report_table_query(&run, db, "run", summary_run_sql, RUN_SETTINGS, err) != ST_OK)
		return;
	report_table_free(&screen->run);
	screen->run = run;
}

static void summary_add_memory(struct view_blocks *blocks, const struct view_machine *machine,
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

static void summary_add_machine_block(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;
	const struct {
		const char *name;
		int64_t count;
	} parts[] = {{"IPUs", summary->ipus},
		     {"replicas", summary->replicas},
		     {"stages", summary->stages}};
	struct view_blocks *blocks = &screen->blocks;

	/* Recordings of other programs have no simulated machine. */
	if (!summary->target && summary->ipus <= 0 && screen->machine.tiles <= 0)
		return;
	view_blocks_begin(
		blocks, summary->ranks > 1 ? "Simulated machine of each rank" : "Simulated machine",
		SUMMARY_BLOCKS_NAME_WIDTH);
	summary_add_text(blocks, "target", summary->target);
	summary_add_text(blocks, "cost model", summary->cost_model);
	summary_add_text(blocks, "schedule", summary->schedule);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		summary_add_count(blocks, parts[i].name, parts[i].count);
	summary_add_memory(blocks, &screen->machine, &screen->glance);
	if (screen->machine.clock_hz > 0)
		view_blocks_fact(blocks, "clock", VIEW_NORMAL, "%.0f MHz",
				 screen->machine.clock_hz / 1e6);
	if (screen->glance.checked)
		view_blocks_fact(blocks, "instrumentation", VIEW_NORMAL, "%s",
				 screen->machine.traced
					 ? "by tile: steps of the device are recorded"
					 : "none: no step of the device is recorded");
	if (summary->oversubscribed)
		view_blocks_fact(blocks, "host times", VIEW_WARN,
				 "oversubscribed: more workers than processors");
}

static void summary_add_program_block(struct view_blocks *blocks,
				      const struct view_machine *machine)
{
	if (machine->programs <= 0 && machine->operations <= 0)
		return;
	view_blocks_begin(blocks, "Compiled program (simulated)", SUMMARY_BLOCKS_NAME_WIDTH);
	summary_add_count(blocks, "programs", machine->programs);
	summary_add_count(blocks, "operations", machine->operations);
	summary_add_count(blocks, "compute sets", machine->compute_sets);
	summary_add_count(blocks, "vertices", machine->vertices);
	summary_add_count(blocks, "variables", machine->variables);
}

/* ---- the run, its files and settings --------------------------------------------------------- */

#define RUN_WIDTH    44 /* "model.config.layers[3].config.final_outfeed" */
#define OPTION_BYTES 160

static void summary_add_run_block(struct view_summary *screen, enum view_state state)
{
	const struct report_summary *summary = &screen->summary;
	struct view_blocks *blocks = &screen->blocks;
	static const enum view_style styles[] = {[VIEW_RECORDING] = VIEW_WARN,
						 [VIEW_CLOSING] = VIEW_WARN,
						 [VIEW_KILLED] = VIEW_BAD,
						 [VIEW_COMPLETE] = VIEW_GOOD};
	char text[FMT_SIZE], more[FMT_SIZE];

	view_blocks_begin(blocks, "Run", SUMMARY_BLOCKS_NAME_WIDTH);
	summary_add_text(blocks, "model", summary->model);
	view_blocks_fact(blocks, "state", styles[state], "%s",
			 summary->state ? summary->state : view_state_text(state));
	summary_add_text(blocks, "command", summary->command);
	if (report_summary_started(summary->start_epoch_ns, text))
		view_blocks_fact(blocks, "started", VIEW_NORMAL, "%s (local)", text);
	if (summary->duration_ns > 0)
		view_blocks_fact(
			blocks, "duration", VIEW_NORMAL, "%s%s", fmt_ns(text, summary->duration_ns),
			summary->origin == PROF_FROM_TRACE ? ", an imported trace" : " (host)");
	if (summary->part > 1) {
		view_blocks_fact(blocks, "part", VIEW_NORMAL, "%s, goes on after step %s",
				 fmt_count(text, summary->part),
				 fmt_count(more, summary->after_step));
		summary_add_text(blocks, "continues", summary->continues);
	}
	if (summary->parts)
		summary_add_text(blocks, "parts", summary->parts);
	if (summary->ranks > 1)
		view_blocks_fact(blocks, "ranks", VIEW_NORMAL, "%s, counted and added up together",
				 fmt_count(text, summary->ranks));
	summary_add_count(blocks, "epochs", summary->epochs);
	summary_add_count(blocks, "executions", summary->executions);
	if (summary->traced > 0 && summary->untraced > 0)
		view_blocks_fact(blocks, "device lanes", VIEW_NORMAL,
				 summary->ranks > 1 ? "hold %s of them"
						    : "hold the first %s of them",
				 fmt_count(text, summary->traced));
	summary_add_count(blocks, "steps", summary->steps);
	summary_add_count(blocks, "weight updates", summary->weight_updates);
}

static void summary_add_recorded_block(struct view_blocks *blocks,
				       const struct report_summary *summary)
{
	char text[FMT_SIZE];

	view_blocks_begin(blocks, "Recorded", SUMMARY_BLOCKS_NAME_WIDTH);
	summary_add_count(blocks, "spans", summary->spans);
	summary_add_count(blocks, "events", summary->events);
	if (summary->dropped > 0)
		view_blocks_fact(blocks, "dropped", VIEW_BAD, "%s",
				 fmt_count(text, summary->dropped));
	else
		view_blocks_fact(blocks, "dropped", VIEW_NORMAL, "none");
	summary_add_count(blocks, "tensors", summary->tensors);
	summary_add_count(blocks, "tensor rows", summary->tensor_rows);
	if (summary->peak_resident_bytes > 0)
		view_blocks_fact(blocks, "host memory", VIEW_NORMAL, "%s at most, of the process",
				 fmt_bytes(text, (uint64_t)summary->peak_resident_bytes));
	if (summary->database_bytes > 0)
		view_blocks_fact(blocks, "database", VIEW_NORMAL, "%s",
				 fmt_bytes(text, (uint64_t)summary->database_bytes));
	if (!isnan(summary->overhead_fraction))
		view_blocks_fact(blocks, "own cost", VIEW_NORMAL, "%s of the run",
				 fmt_percent(text, summary->overhead_fraction));
}

/* List the files of a report directory, and mark those that are missing. */
static void summary_add_files_block(struct view_blocks *blocks, const char *folder)
{
	static const char *const names[] = {"profile.db",     "graph.json", "execution.json",
					    "framework.json", "app.json",   "debug.cbor"};
	char path[FS_PATH_SIZE], text[FMT_SIZE];
	struct stat info;

	if (!fs_is_dir(folder))
		return;
	view_blocks_begin(blocks, "Report files", SUMMARY_BLOCKS_NAME_WIDTH);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (fs_path(path, "%s/%s", folder, names[i]) && stat(path, &info) == 0)
			view_blocks_fact(blocks, names[i], VIEW_NORMAL, "%s",
					 fmt_bytes(text, (uint64_t)info.st_size));
		else
			view_blocks_fact(blocks, names[i], VIEW_DIM, "not there");
}

/* Other programs' options may be whole JSON documents: what blanks and newlines separate becomes
 * one line, and a long value is cut. */
static void summary_add_option(struct view_blocks *blocks, const struct report_fact *option)
{
	char text[OPTION_BYTES], line[OPTION_BYTES];
	size_t length = 0;

	str_copy(text, sizeof(text), option->value);
	if (strcmp(option->name, "host") == 0)
		text[strcspn(text, " ")] = '\0'; /* the boot's id is for merging, not for people */
	for (const char *from = text; *from; from += max(strspn(from, " \t\r\n"), (size_t)1))
		line[length++] = *from == '\t' || *from == '\r' || *from == '\n' ? ' ' : *from;
	line[length] = '\0';
	view_blocks_fact(blocks, option->name, VIEW_NORMAL, "%s%s", line,
			 strlen(option->value) >= sizeof(text) ? "…" : "");
}

static void summary_add_settings_block(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;
	const struct report_table *run = &screen->run;
	struct view_blocks *blocks = &screen->blocks;

	if (summary->option_count > 0)
		view_blocks_begin(blocks, "Options", 2 * SUMMARY_BLOCKS_NAME_WIDTH);
	for (int i = 0; i < summary->option_count; i++)
		/* These two only calibrate the recording's clocks. */
		if (strcmp(summary->options[i].name, "process_start") != 0 &&
		    strcmp(summary->options[i].name, "ticks_per_second") != 0)
			summary_add_option(blocks, &summary->options[i]);
	if (run->row_count > 0)
		view_blocks_begin(blocks, "Run file", RUN_WIDTH);
	for (int64_t i = 0; i < run->row_count; i++) {
		const struct report_cell *cells = &run->cells[i * run->column_count];

		summary_add_text(blocks, cells[0].text, cells[1].text);
	}
}

void view__summary_facts(struct view_summary *screen, const struct view_source *source)
{
	summary_add_run_block(screen, source->state);
	summary_add_recorded_block(&screen->blocks, &screen->summary);
	summary_add_machine_block(screen);
	summary_add_program_block(&screen->blocks, &screen->machine);
	summary_add_files_block(&screen->blocks, source->path);
	summary_add_settings_block(screen);
}
