/*
 * The verb `what-if`: its command line, and printing predictions.
 *
 * Threading: none. Ownership: the database is open while inputs are read. Prints to standard
 * output.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/mem.h"
#include "common/str.h"
#include "popvision/popvision.h"
#include "reports/report_find.h"
#include "reports/table/report_internal.h"
#include "reports/table/report_render.h"
#include "reports/report_verbs.h"
#include "reports/whatif/report_whatif.h"
#include "profiler/prof_db.h"

#define STAGES_MOST    256 /* limit of pipeline.device_mapping */
#define INSTANCES_MOST 65536
#define DOUBLINGS_MOST 17 /* of one instance */
_Static_assert(DOUBLINGS_MOST < REPORT_WHATIF_ROWS_MAX, "rows of instances");

struct whatif_line {
	const char *path, *clock, *columns, *instances, *network;
	int64_t first, last; /* instances; 0: not given */
	struct report_whatif_change change;
	struct report_table_options table;
	struct report_render_params render;
};

static const struct cli_option whatif_options[] = {
	{.name = "--schedule",
	 .argument = "NAME",
	 .choices = IPU_SCHEDULE_NAMES,
	 .help = "Another order of work, as pipeline.schedule of a run file: " IPU_SCHEDULE_NAMES,
	 .field = CLI_FIELD(TEXT, struct whatif_line, change.schedule)},
	{.name = "--micro-batches",
	 .argument = "COUNT",
	 .help = "Micro-batches of a weight update: gradient_accumulation.steps_per_replica. "
		 "Grouped needs a multiple of 2 x stages, Interleaved of the stages.",
	 .field = CLI_RANGE(NUMBER, struct whatif_line, change.microbatches, 1, 1 << 20)},
	{.name = "--replicas",
	 .argument = "COUNT",
	 .help = "Replicas that train in parallel, each with its own batch.",
	 .field = CLI_RANGE(NUMBER, struct whatif_line, change.replicas, 1, 65536)},
	{.name = "--target",
	 .argument = "NAME",
	 .choices = "ipu1 ipu2 ipu21 bow c600",
	 .help = "Another machine: ipu1, ipu2, ipu21 (also called bow), c600.",
	 .field = CLI_FIELD(TEXT, struct whatif_line, change.target)},
	{.name = "--stages",
	 .argument = "COUNT",
	 .help = "So many stages, each on an IPU of its own; cut by --split auto unless said "
		 "otherwise.",
	 .field = CLI_RANGE(SIZE, struct whatif_line, change.stages, 1, STAGES_MOST)},
	{.name = "--split",
	 .argument = "WHERE",
	 .help = "Layers to stages: auto (the slowest stage as fast as can be); a stage for each "
		 "layer (0,0,1,1); or the layers that begin stages (Dense_128,Dense_10).",
	 .field = CLI_FIELD(TEXT, struct whatif_line, change.split)},
	{.name = "--chunks",
	 .argument = "COUNT",
	 .help = "1f1b-interleaved: stages of each IPU, dealt in turn (default 2); cut by --split "
		 "auto.",
	 .field = CLI_RANGE(SIZE, struct whatif_line, change.chunks, 2, 1024)},
	{.name = "--instances",
	 .argument = "COUNT",
	 .help = "So many processes, each with the replicas that one had, on hosts of their own; "
		 "2..1024: 2, 4, 8 and so on to 1024. Needs --network; on the host's clock.",
	 .field = CLI_FIELD(TEXT, struct whatif_line, instances)},
	{.name = "--network",
	 .argument = "LINK",
	 .help = "Between instances: bandwidth and latency of a link, 25Gbit,20us; with a third "
		 "value the time that a message takes its sender, and its receiver (1us). "
		 "recorded: "
		 "the bandwidth that explains how long the recorded ranks have waited.",
	 .field = CLI_FIELD(TEXT, struct whatif_line, network)},
	{.name = "--clock",
	 .argument = "NAME",
	 .choices = "device host",
	 .help = "Whose times: of the simulated device (default), or of the host (with "
		 "--instances).",
	 .field = CLI_FIELD(TEXT, struct whatif_line, clock)},
	{.name = "--columns",
	 .argument = "LIST",
	 .help = "These columns, in this order (step_ns,idle_fraction); all: every one, as in CSV "
		 "and JSON.",
	 .field = CLI_FIELD(TEXT, struct whatif_line, columns)},
	REPORT_OPTION_CSV(struct whatif_line, "Comma separated values (RFC 4180), all columns."),
	REPORT_OPTION_JSON(struct whatif_line, "JSON, all columns."),
	REPORT_OPTION_WIDTH(struct whatif_line),
	REPORT_OPTION_COLOR(struct whatif_line),
	REPORT_OPTION_UNLIMITED,
};

const struct cli_command report_whatif_cli = {
	.name = "ipu-report what-if",
	.synopsis =
		"[REPORT] [--schedule NAME] [--micro-batches COUNT] [--split WHERE] [--key value "
		"...]",
	.summary = "a recorded training under another schedule, split or machine",
	.about =
		"Predict how long a weight update would take, and how large the bubble would be, "
		"had "
		"the run of REPORT been made otherwise. Changes can be "
		"combined. Without one: every schedule, half and twice the micro-batches, other "
		"splits and targets.\n\n"
		"weight_update is the time from one weight update to the next, its micro-batches "
		"included; step that of one micro-batch. A bubble is idle time, by three "
		"definitions: idle_fraction is 1 - busy / (IPUs x makespan), bubble_rate the mean "
		"over stages by the longest span of one stage, bubble_over_ideal idle over busy "
		"time, which can exceed 1.\n\n"
		"On the device's clock the recorded run file is patched and planned again, as "
		"`ipu-plan model` does it, memory included. Any flag or key of the run file may be "
		"given (`ipu-train --help RUN`, docs/run-file.md); the options are names for some. "
		"What a figure rests on is listed below the table.",
	.options = whatif_options,
	.option_count = ARRAY_LEN(whatif_options),
	.examples =
		"ipu-report what-if run.db\tEvery schedule beside the recorded one.\n"
		"ipu-report what-if run.db --schedule Interleaved --micro-batches 16\tBoth at "
		"once.\n"
		"ipu-report what-if run.db --stages 4 --split auto\tFour IPUs, cut as well as can "
		"be.\n"
		"ipu-report what-if run.db --ipu.target ipu1 --data.batch_size 64\tOther keys of "
		"the run "
		"file.\n"
		"ipu-report what-if run.db --target bow --json\tOn a Bow IPU, for a program.\n"
		"ipu-report what-if ranks.db --instances 2..1024 --network 25Gbit,20us\tOn more "
		"machines.\n",
	.words = "FILE",
};

/* ---- arguments ------------------------------------------------------------------------------- */

/* Parse "8" or "2..1024", and the network. */
static enum status parse_instances(struct whatif_line *line, struct err *err)
{
	const char *dots = line->instances ? strstr(line->instances, "..") : NULL;
	char first[32] = "";

	if (!line->instances != !line->network)
		return err_set(err, ST_INVALID, "--instances and --network belong together");
	if (!line->instances)
		return ST_OK;
	if (line->clock && strcmp(line->clock, "host") != 0)
		return err_set(err, ST_INVALID,
			       "--instances: of the host's clock; simulated IPUs of several "
			       "replicas: ipu-plan scale");
	line->clock = "host";
	str_copy(first, sizeof(first), line->instances);
	if (dots && (size_t)(dots - line->instances) < sizeof(first))
		first[dots - line->instances] = '\0';
	cli_number("--instances", first, 1, INSTANCES_MOST, &line->first, err);
	line->last = line->first;
	if (!err_stuck(err) && dots)
		cli_number("--instances", dots + 2, line->first, INSTANCES_MOST, &line->last, err);
	if (!err_stuck(err))
		report_whatif_network_parse(&line->change.network, line->network, err);
	return err->status;
}

static enum status parse(struct whatif_line *line, int argc, char **argv, struct err *err)
{
	struct cli_argument argument;
	struct cli_walk walk;
	int from;
	bool more;

	*line = (struct whatif_line){.table = {.width = -1}};
	line->change.words = mem_calloc((size_t)argc + 1, sizeof(*line->change.words));
	if (!line->change.words)
		return err_nomem(err);
	cli_begin(&walk, &report_whatif_cli, argc, argv, true);
	for (from = walk.at;
	     !err_stuck(err) && cli_next(&walk, &argument, &more, err) == ST_OK && more;
	     from = walk.at) {
		if (argument.option) {
			cli_set(&argument, line, err);
		} else if (argument.name) {
			struct report_whatif_change *change = &line->change;

			/* A key or flag of the run file and the words after it: only the run file
			 * knows how many arguments it has. */
			change->words[change->count++] = argv[from++];
			/* A negative number is no option. */
			while (from < argc &&
			       (argv[from][0] != '-' ||
				(argv[from][1] != '-' && !isalpha((unsigned char)argv[from][1]))))
				change->words[change->count++] = argv[from++];
			walk.at = from;
		} else if (line->path) {
			err_set(err, ST_INVALID, "one word too many: \"%s\" (REPORT is enough)",
				argument.value);
		} else {
			line->path = argument.value;
		}
	}
	if (!err_stuck(err) && report_verb_render(&line->render, &line->table, err) == ST_OK)
		parse_instances(line, err);
	return err->status;
}

/* ---- predictions ----------------------------------------------------------------------------- */

struct rows {
	struct report_whatif *whatif;
	struct report_whatif_row *row;
	int count;
	double fitted;          /* bandwidth of the recorded network, Gbit/s; 0: not asked for */
	const char *unfinished; /* a sentence on missing data; NULL: none is missing */
};

static enum status predict_rows(struct rows *rows, const struct whatif_line *line, struct err *err)
{
	struct report_whatif_change change = line->change;
	/* No change was given; --chunks only modifies a schedule. */
	const bool all = !change.schedule && change.microbatches == 0 && change.replicas == 0 &&
			 !change.target && change.stages == 0 && !change.split &&
			 change.count == 0 && change.instances == 0 && !line->instances;

	if (line->instances && change.network.recorded)
		report_whatif_fit_network(&change.network, rows->whatif, err);
	rows->fitted = change.network.recorded ? change.network.bits_ns : 0;
	for (bool more = true; more && !err_stuck(err) && (all || rows->count < 1);) {
		report_whatif_row_at(&rows->row[rows->count], rows->whatif, rows->count, &more,
				     err);
		rows->count += more;
	}
	while (!all && !err_stuck(err)) {
		change.instances = (int)(change.instances ? 2 * change.instances : line->first);
		report_whatif_predict(&rows->row[rows->count++].prediction, rows->whatif, &change,
				      err);
		if (!change.instances || 2 * change.instances > line->last)
			break;
	}
	return err->status;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_notes(const struct rows *rows, int width)
{
	uint32_t assumptions = 0;
	bool legal = true;

	for (int i = 1; i < rows->count; i++) {
		assumptions |= rows->row[i].prediction.assumptions;
		legal &= !*rows->row[i].why_not;
	}
	if (*rows->row[rows->count - 1].prediction.split) {
		printf("Stages begin at:\n");
		report__fold(stdout, "", rows->row[rows->count - 1].prediction.split, width);
	}
	if (!legal)
		printf("Not legal:\n");
	for (int i = 1; i < rows->count; i++)
		if (*rows->row[i].why_not)
			report__fold(stdout, "", rows->row[i].why_not, width);
	if (rows->unfinished)
		printf("%s\n", rows->unfinished);
	if (rows->fitted > 0)
		printf("The recorded ranks have waited as with links of %.3g Mbit/s.\n",
		       rows->fitted * 1e3);
	printf("Assumed:\n");
	for (int i = 0; i < REPORT_WHATIF_ASSUMPTIONS; i++)
		if (assumptions & 1u << i)
			report__fold(stdout, "",
				     report_whatif_assumption((enum report_whatif_assumption)i),
				     width);
}

/* ---- the command ----------------------------------------------------------------------------- */

static enum status open_inputs(struct rows *rows, const struct whatif_line *line,
			       char unfinished[REPORT_UNFINISHED_SIZE], struct err *err)
{
	const enum report_whatif_clock clock = line->clock && !strcmp(line->clock, "host")
						       ? REPORT_WHATIF_HOST
						       : REPORT_WHATIF_DEVICE;
	const char *path = line->path;
	char newest[FS_PATH_SIZE];
	struct ips_report *report;

	if (report_find_report(&path, newest, report_whatif_cli.name, err) != ST_OK ||
	    report_public_open(&report, path, err) != ST_OK)
		return err->status;
	rows->unfinished = report__unfinished(report_public_db(report), unfinished);
	if (report_whatif_open(&rows->whatif, report_public_db(report), clock, err) == ST_OK &&
	    line->instances)
		report_whatif_read_ranks(rows->whatif, report_public_db(report), err);
	ips_report_close(report);
	return err->status;
}

enum status report_whatif_run(int argc, char **argv, struct err *err)
{
	struct rows rows = {.row = mem_calloc(REPORT_WHATIF_ROWS_MAX, sizeof(*rows.row))};
	char unfinished[REPORT_UNFINISHED_SIZE];
	struct report_table table = {0};
	struct whatif_line line = {0};

	if (!rows.row)
		err_nomem(err);
	if (!err_stuck(err) && parse(&line, argc, argv, err) == ST_OK &&
	    open_inputs(&rows, &line, unfinished, err) == ST_OK &&
	    predict_rows(&rows, &line, err) == ST_OK) {
		const bool text = line.render.format == REPORT_AS_TEXT;
		const char *columns = line.columns     ? line.columns
				      : !text          ? "all"
				      : line.instances ? REPORT_WHATIF_INSTANCES
						       : NULL;

		report_whatif_table(&table, rows.row, rows.count, columns, err);
		if (!err_stuck(err) && report_render(&table, &line.render, stdout, err) == ST_OK &&
		    text)
			print_notes(&rows, line.render.width);
	}
	report_table_free(&table);
	report_whatif_close(rows.whatif);
	mem_free(rows.row);
	mem_free(line.change.words);
	return err->status;
}
