/*
 * The verb `export`: its formats and its command line.
 *
 * Threading: none. Ownership: the database is open for one export. Prints to standard output.
 */
#include "reports/export/report_export.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/fmt.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "reports/report_find.h"
#include "reports/table/report_internal.h"
#include "popvision/popvision.h"
#include "reports/report_output.h"
#include "reports/report_verbs.h"
#include "profiler/prof_db.h"

#define BIT(option) (1u << REPORT_EXPORT_##option)
#define TIMELINE    (BIT(WINDOW) | BIT(EXECUTION) | BIT(CLOCK))

static const struct report_export export_table[] = {
	{"chrome", "Chrome's trace JSON", "trace.json", TIMELINE, true, report_export_chrome},
	{"folded", "stacks of spans, for flame graphs", "stacks.folded", TIMELINE, true,
	 report_export_folded},
	{"html", "a page of charts and tables", "run.html", 0, true, report_export_html},
	{"npz", "captured tensors, for numpy.load()", "captures.npz", BIT(KEYS) | BIT(STEPS), false,
	 report_export_npz},
	{"popvision", "a folder with graph.json, execution.json and debug.cbor", "popvision", 0,
	 false, report_export_popvision},
	{"speedscope", "speedscope's own file", "run.speedscope.json", TIMELINE, true,
	 report_export_speedscope},
	{"torch-csv", "a pipeline's schedule, for PyTorch", "schedule.csv",
	 BIT(WEIGHT_UPDATE) | BIT(CLOCK) | BIT(EXECUTION), true, report_export_torch_csv},
};

static enum status find_format(const struct report_export **out, const char *name, struct err *err)
{
	const char *names[ARRAY_LEN(export_table)], *near;
	struct str all = {0};

	*out = NULL;
	for (size_t i = 0; i < ARRAY_LEN(export_table); i++) {
		names[i] = export_table[i].name;
		str_addf(&all, "%s%s", i > 0 ? ", " : "", names[i]);
		if (name && strcmp(names[i], name) == 0)
			*out = &export_table[i];
	}
	near = !name ? NULL : str_nearest(name, names, ARRAY_LEN(names));
	if (!*out && !name)
		err_set(err, ST_INVALID, "no format given (%s)", str_peek(&all));
	else if (!*out && near)
		err_set(err, ST_INVALID, "unknown format \"%s\" (did you mean \"%s\"?)", name,
			near);
	else if (!*out)
		err_set(err, ST_INVALID, "unknown format \"%s\" (%s)", name, str_peek(&all));
	str_free(&all);
	return !*out ? ST_INVALID : ST_OK;
}

/* Check that the file can be written. */
static enum status check_file(const struct report_export *format, const char *report,
			      const char *path, bool force, struct err *err)
{
	struct stat info;

	if (strcmp(path, "-") == 0)
		return format->text ? ST_OK
				    : err_set(err, ST_INVALID,
					      "%s: needs a file (-o FILE), not the standard "
					      "output",
					      format->name);
	if (report_output_check_source(report, path, err) != ST_OK)
		return err->status;
	if (!force && fs_exists(path))
		return err_set(err, ST_INVALID, "%s: is there already (--force replaces it)", path);
	/* Reject a pipe: opening it would wait for its reader. */
	if (!stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
		return err_set(err, ST_INVALID, "%s: is a device or pipe, not a file%s", path,
			       format->text ? " (-o - writes to the standard output)" : "");
	return ST_OK;
}

/* ---- progress -------------------------------------------------------------------------------- */

#define PROGRESS_NS 200000000

struct report_progress {
	bool shown; /* on a terminal */
	bool drawn; /* a line is on the terminal */
	uint64_t next_ns;
};

enum status report_export_tick(const struct report_export_request *request, int64_t done,
			       int64_t total, struct err *err)
{
	struct report_progress *progress = request->progress;
	char count[FMT_SIZE], of[FMT_SIZE];

	if (!progress)
		return ST_OK;
	if (report_interrupted())
		return err_set(err, ST_INTERRUPTED, "interrupted: nothing was written");
	if (!progress->shown || clock_ns() < progress->next_ns)
		return ST_OK;
	progress->next_ns = clock_ns() + PROGRESS_NS;
	progress->drawn = true;
	fprintf(stderr, "\r%s%s%s\033[K", fmt_count(count, done), total > 0 ? " of " : "",
		total > 0 ? fmt_count(of, total) : "");
	return ST_OK;
}

static void end_progress(const struct report_progress *progress)
{
	if (progress->drawn)
		fputs("\r\033[K", stderr);
}

enum status report_export_print_result(const struct report_export_request *request,
				       const char *path, struct str *notes, struct err *err,
				       const char *format, ...)
{
	va_list args;

	if (notes && notes->failed && !err_stuck(err))
		err_nomem(err);
	if (!err_stuck(err)) {
		if (request->progress)
			end_progress(request->progress);
		cli_print(request->out, "%s%s", strcmp(path, "-") == 0 ? "" : path,
			  strcmp(path, "-") == 0 ? "" : ": ");
		va_start(args, format);
		cli_vprint(request->out, format, args);
		va_end(args);
		fprintf(request->out, "\n%s", notes ? str_peek(notes) : "");
		if (request->unfinished)
			fprintf(request->out, "%s\n", request->unfinished);
		if (fflush(request->out) != 0)
			err_set(err, ST_IO, "write: %s", strerror(errno));
	}
	if (notes)
		str_free(notes);
	return err->status;
}

/* ---- the command ----------------------------------------------------------------------------- */

struct export_line {
	const char *words[2];      /* REPORT, FORMAT */
	char newest[FS_PATH_SIZE]; /* default for REPORT */
	int word_count;
	const char *file, *keys;
	bool force, steps;
	const char *clock; /* NULL: both */
	int64_t from_ns, to_ns, execution, weight_update;
	const struct cli_option *given[REPORT_EXPORT_OPTIONS]; /* options of formats, by bit */
};

enum {
	OPTION_OUTPUT,
	OPTION_FORCE,
	OPTION_FROM,
	OPTION_TO,
	OPTION_EXECUTION,
	OPTION_CLOCK,
	OPTION_WEIGHT_UPDATE,
	OPTION_KEYS,
	OPTION_STEPS
};

static const struct cli_option export_options[] = {
	[OPTION_OUTPUT] = {.name = "--output",
			   .letter = 'o',
			   .argument = "FILE",
			   .help = "The file (popvision: the folder) to write; by default "
				   "trace.json, captures.npz and so on, here. - is the standard "
				   "output, and a name that ends in .gz is compressed (not npz, "
				   "popvision).",
			   .field = CLI_FIELD(TEXT, struct export_line, file)},
	[OPTION_FORCE] = {.name = "--force",
			  .help = "Replace FILE if it is there.",
			  .field = CLI_FIELD(SWITCH, struct export_line, force)},
	[OPTION_FROM] = {.name = "--from",
			 .argument = "NS",
			 .help = "Only what ends at or after this ns of its clock.",
			 .field = CLI_FIELD(NUMBER, struct export_line, from_ns)},
	[OPTION_TO] = {.name = "--to",
		       .argument = "NS",
		       .help = "Only what begins before this ns of its clock.",
		       .field = CLI_FIELD(NUMBER, struct export_line, to_ns)},
	[OPTION_EXECUTION] = {.name = "--execution",
			      .argument = "N",
			      .help = "Only what belongs to this execution (from 0).",
			      .field = CLI_FIELD(NUMBER, struct export_line, execution)},
	[OPTION_CLOCK] = {.name = "--clock",
			  .argument = "WHICH",
			  .choices = "host device",
			  .help = "Only what was measured on the host, or simulated on the "
				  "device.",
			  .field = CLI_FIELD(TEXT, struct export_line, clock)},
	[OPTION_WEIGHT_UPDATE] = {.name = "--weight-update",
				  .argument = "N",
				  .help = "torch-csv: this weight update; by default the first.",
				  .field = CLI_FIELD(NUMBER, struct export_line, weight_update)},
	[OPTION_KEYS] = {.name = "--keys",
			 .argument = "PATTERN",
			 .help = "npz: only tensors whose key fits this shell pattern "
				 "('Dense_1*').",
			 .field = CLI_FIELD(TEXT, struct export_line, keys)},
	[OPTION_STEPS] = {.name = "--steps",
			  .help = "npz: beside each array NAME also NAME@step, the step (of what "
				  "belongs to a weight update: the update) of each enqueue; -1: "
				  "unknown.",
			  .field = CLI_FIELD(SWITCH, struct export_line, steps)},
	REPORT_OPTION_UNLIMITED,
};

static const char *complete_format(size_t at)
{
	return at < ARRAY_LEN(export_table) ? export_table[at].name : NULL;
}

const struct cli_command report_export_cli = {
	.name = "ipu-report export",
	.synopsis = "[REPORT] FORMAT [-o FILE]",
	.summary = "what a run recorded, as a file for other programs",
	.about =
		"Write what a run recorded to a file that other programs read. `ipu-report REPORT "
		"export FORMAT` is the same.\n\n"
		"chrome: the timeline as Chrome's trace JSON: spans, instants, flows, counters "
		"and the steps of the simulated IPUs. Perfetto (ui.perfetto.dev), "
		"chrome://tracing and speedscope open it.\n\n"
		"speedscope: the spans of each track as speedscope's own file "
		"(www.speedscope.app): many more of them than it can take as Chrome's.\n\n"
		"folded: a line for each stack of spans, `track;outer;inner NS`, with the time "
		"spent in it alone: for flamegraph.pl, inferno and speedscope.\n\n"
		"torch-csv: the order of work of one weight update, a line for each IPU of a "
		"replica and cells such as 2F0 (stage, phase, micro-batch): what "
		"torch.distributed.pipelining reads as a compute_only schedule. Of the device's "
		"clock where it was recorded. Of a run without training: the first execution.\n\n"
		"html: one page, without scripts or network to be read: the summary, a Gantt chart "
		"of the pipeline, the memory of the tiles, liveness, metrics and statistics of "
		"tensors.\n\n"
		"npz: captured tensors, for numpy.load(): an array per tensor, named by its key, "
		"all enqueues stacked: (enqueues, [replicas,] shape). Captures of another shape "
		"(a last, short batch) are an array of their own, NAME@16x128. Values are stored "
		"as they were recorded.\n\n"
		"popvision: a folder with graph.json, execution.json and debug.cbor, as a run "
		"writes beside profile.db where its options ask for them: of a killed run, or of "
		"one that did not ask.",
	.options = export_options,
	.option_count = ARRAY_LEN(export_options),
	.examples =
		"ipu-report run.db export chrome\tThe timeline, as trace.json, for Perfetto.\n"
		"ipu-report run.db export chrome --execution 3 -o third.json.gz\tOf one execution, "
		"compressed.\n"
		"ipu-report run.db export folded -o - | flamegraph.pl > run.svg\tWhere the time "
		"went.\n"
		"ipu-report run.db export npz -o out.npz --keys 'Dense_128*'\tCaptured "
		"tensors of a layer, for numpy.\n",
	.words = "FILE",
	.second = complete_format,
};

/* The bit of an option that only some formats support, plus 1; 0: all do. */
static const int export_bits[ARRAY_LEN(export_options)] = {
	[OPTION_FROM] = 1 + REPORT_EXPORT_WINDOW,
	[OPTION_TO] = 1 + REPORT_EXPORT_WINDOW,
	[OPTION_EXECUTION] = 1 + REPORT_EXPORT_EXECUTION,
	[OPTION_CLOCK] = 1 + REPORT_EXPORT_CLOCK,
	[OPTION_WEIGHT_UPDATE] = 1 + REPORT_EXPORT_WEIGHT_UPDATE,
	[OPTION_KEYS] = 1 + REPORT_EXPORT_KEYS,
	[OPTION_STEPS] = 1 + REPORT_EXPORT_STEPS,
};

static enum status set_option(void *user, const struct cli_argument *argument, struct err *err)
{
	struct export_line *line = user;
	const int bit = export_bits[argument->option - export_options];

	if (bit > 0)
		line->given[bit - 1] = argument->option;
	return cli_set(argument, line, err);
}

/* Check that the format supports every given option. */
static enum status check_options(const struct export_line *line, const struct report_export *format,
				 struct err *err)
{
	struct str others = {0};

	for (int bit = 0; bit < REPORT_EXPORT_OPTIONS && !err_stuck(err); bit++) {
		if (!line->given[bit] || (format->options & 1u << bit) != 0)
			continue;
		for (size_t i = 0; i < ARRAY_LEN(export_table); i++)
			if ((export_table[i].options & 1u << bit) != 0)
				str_addf(&others, "%s%s", others.length > 0 ? ", " : "",
					 export_table[i].name);
		err_set(err, ST_INVALID, "%s: is of no use to export %s (it belongs to %s)",
			line->given[bit]->name, format->name, str_peek(&others));
	}
	str_free(&others);
	return err->status;
}

static enum status write_export(const struct export_line *line, const struct report_export *format,
				const char *file, struct err *err)
{
	struct report_progress progress = {.shown = isatty(STDERR_FILENO) != 0,
					   .next_ns = clock_ns() + 5 * PROGRESS_NS};
	struct report_export_request request = {
		.path = line->words[0],
		.keys = line->keys,
		.steps = line->steps,
		.from_ns = line->from_ns,
		.to_ns = line->to_ns,
		.execution = line->execution,
		.weight_update = line->weight_update,
		.clock = !line->clock ? -1 : strcmp(line->clock, "host") != 0,
		.progress = &progress,
		.out = strcmp(file, "-") == 0 ? stderr : stdout,
	};
	char unfinished[REPORT_UNFINISHED_SIZE];
	struct ips_report *report;
	enum status status = report_public_open(&report, request.path, err);

	if (status != ST_OK)
		return status;
	request.db = report_public_db(report);
	request.live = ips_report_info(report)->state == IPS_REPORT_RECORDING;
	request.unfinished = report__unfinished(request.db, unfinished);
	report_interrupt_install(); /* before a temporary file exists that an interrupt would leave */
	status = format->run(&request, file, err);
	end_progress(&progress);
	ips_report_close(report);
	return status;
}

enum status report_export_run(int argc, char **argv, struct err *err)
{
	const struct report_export *format;
	struct export_line line = {.from_ns = IPS_NULL,
				   .to_ns = INT64_MAX,
				   .execution = IPS_NULL,
				   .weight_update = IPS_NULL};
	const struct cli_words words = {line.words, ARRAY_LEN(line.words), &line.word_count,
					"REPORT and FORMAT are enough"};
	const char *file;

	if (cli_parse(&report_export_cli, argc, argv, set_option, &line, &words, err) != ST_OK)
		return err->status;
	if (line.from_ns >= line.to_ns)
		return err_set(err, ST_INVALID, "--from %lld: is not before --to %lld",
			       (long long)line.from_ns, (long long)line.to_ns);
	/* A single word is the format, unless such a file exists. */
	if (line.word_count == 1 && !fs_exists(line.words[0]) &&
	    find_format(&format, line.words[0], NULL) == ST_OK) {
		line.words[1] = line.words[0];
		line.words[0] = NULL;
	}
	if (report_find_report(&line.words[0], line.newest, report_export_cli.name, err) != ST_OK ||
	    find_format(&format, line.words[1], err) != ST_OK ||
	    check_options(&line, format, err) != ST_OK)
		return err->status;
	file = line.file ? line.file : format->file;
	if (check_file(format, line.words[0], file, line.force, err) != ST_OK)
		return err->status;
	return write_export(&line, format, file, err);
}
