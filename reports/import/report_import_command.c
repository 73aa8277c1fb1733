/*
 * The verb `import`: parse its command line, show progress, print a summary.
 *
 * Threading: a signal sets a flag that the import polls. Prints to standard output.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/fmt.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "reports/import/report_import_internal.h"
#include "reports/report_output.h"
#include "reports/report_verbs.h"
#include "profiler/prof_db.h"

#define PROGRESS_NS 100000000u /* interval of progress lines */

struct import_line {
	const char *trace, *output;
	bool force, quiet;
};

static const struct cli_option import_options[] = {
	{.name = "--output",
	 .letter = 'o',
	 .argument = "FILE",
	 .help = "The database to write; by default the trace's name with .db instead of .json, "
		 ".json.gz, .sqlite, .rpd, .pftrace or .xplane.pb, here.",
	 .field = CLI_FIELD(TEXT, struct import_line, output)},
	{.name = "--force",
	 .help = "Replace FILE if it is there.",
	 .field = CLI_FIELD(SWITCH, struct import_line, force)},
	{.name = "--quiet",
	 .letter = 'q',
	 .help = "Say nothing but errors.",
	 .field = CLI_FIELD(SWITCH, struct import_line, quiet)},
	REPORT_OPTION_UNLIMITED,
};

const struct cli_command report_import_cli = {
	.name = "ipu-report import",
	.synopsis = "TRACE [-o FILE]",
	.summary = "another program's recording as a database, for ipu-view, SQL and ipu-report",
	.about =
		"Make of another program's recording a database that ipu-view, ipu-report and "
		"sqlite3 read: of a trace in Chrome's JSON format, as the PyTorch profiler, "
		"Chrome, viztracer and many others write it; of Perfetto's protobuf traces; of the "
		"XPlane files of JAX, TensorFlow and PyTorch/XLA; of a database of Nsight Systems "
		"(nsys export --type sqlite), rocprofv3 (rocpd) or rocmProfileData (RPD); of "
		"folded stacks (perf, py-spy). The format is recognised by the content. TRACE may "
		"be compressed by gzip or zstd; - is standard input.\n\n"
		"The trace is read as a stream: memory does not grow with its length. Times are "
		"kept to the nanosecond. A file that breaks off (its writer was killed) is read as "
		"far as it goes, and the place is said.\n\n"
		"Spans (X, B and E), asynchronous spans (b and e, S and F), instants, counters, "
		"flows and the names of processes and threads have their places; spans that "
		"overlap others of their thread go to tracks of their own. Whatever has no place "
		"is counted, and the counts are printed at the end: none of the events is dropped "
		"without a word.\n\n"
		"Arguments of spans are in the view span_args. Those called step, epoch, "
		"microbatch, stage, phase, mode, replica, ipu, execution and weight_update are "
		"columns of the view spans.",
	.options = import_options,
	.option_count = ARRAY_LEN(import_options),
	.examples =
		"ipu-report import trace.json\tWrites trace.db.\n"
		"ipu-report import worker0.1234.pt.trace.json.gz -o run.db\tOf the PyTorch "
		"profiler.\n"
		"ipu-report import report1.sqlite\tOf Nsight Systems.\n"
		"xz -dc trace.json.xz | ipu-report import - -o trace.db\tFrom a pipe.\n"
		"ipu-view trace.db --view timeline\tLook at it.\n"
		"sqlite3 trace.db 'SELECT name, count(*), sum(dur_ns) FROM spans GROUP BY name'\t"
		"Ask it.\n",
	.words = "FILE",
};

/* ---- arguments ------------------------------------------------------------------------------- */

static enum status parse_line(struct import_line *line, int argc, char **argv, struct err *err)
{
	int count = 0;
	const struct cli_words words = {&line->trace, 1, &count,
					"a TRACE is enough; -o FILE says where to"};

	*line = (struct import_line){0};
	if (cli_parse(&report_import_cli, argc, argv, NULL, line, &words, err) != ST_OK)
		return err->status;
	if (!line->trace || !*line->trace)
		return err_set(err, ST_INVALID,
			       "no trace given (a file, or - for standard input; --help has "
			       "examples)");
	if (line->output && strcmp(line->output, "-") == 0)
		return err_set(
			err, ST_INVALID,
			"--output: a database cannot go to the standard output; name a file");
	return ST_OK;
}

/* Derive the output from the trace's name: "../x/trace.json.gz" gives "trace.db", and "results.db",
 * which may be here, "results.imported.db". */
static bool default_output(const char *trace, char out[FS_PATH_SIZE])
{
	static const char *const endings[] = {
		".gz", ".zst",    ".json",    ".sqlite",         ".rpd",   ".db",
		".pb", ".xplane", ".pftrace", ".perfetto-trace", ".folded"};
	const char *name = strrchr(trace, '/'), *dot = strrchr(trace, '.');
	char stem[FS_PATH_SIZE];

	name = !name ? trace : name + 1;
	str_copy(stem, sizeof(stem), strcmp(trace, "-") == 0 ? "trace" : name);
	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		size_t length = strlen(stem), ending = strlen(endings[i]);

		if (length > ending && strcmp(stem + length - ending, endings[i]) == 0)
			stem[length - ending] = 0;
	}
	return fs_path(out, dot && strcmp(dot, ".db") == 0 ? "%s.imported.db" : "%s.db", stem);
}

/* ---- progress -------------------------------------------------------------------------------- */

void report__import_begin_progress(struct import_progress *progress, bool quiet)
{
	*progress = (struct import_progress){.shown = isatty(STDERR_FILENO) == 1 && !quiet};
	report_interrupt_install();
}

enum status report__import_on_progress(void *user, int permille, uint64_t events)
{
	struct import_progress *progress = user;

	if (report_interrupted())
		return ST_INTERRUPTED;
	if (!progress->shown || clock_ns() < progress->next_ns)
		return ST_OK;
	progress->next_ns = clock_ns() + PROGRESS_NS;
	progress->any = true;
	if (permille < 0)
		fprintf(stderr, "\r%" PRIu64 " events\033[K", events);
	else
		fprintf(stderr, "\r%3d %%  %" PRIu64 " events\033[K", permille / 10, events);
	return ST_OK;
}

void report__import_end_progress(const struct import_progress *progress)
{
	if (progress->any)
		fprintf(stderr, "\r\033[K");
}

/* ---- summary --------------------------------------------------------------------------------- */

static void print_count(uint64_t count, const char *words)
{
	char text[FMT_SIZE];

	printf("%15s  %s", fmt_count(text, (int64_t)count), words);
}

static void print_left(const struct report_import_counts *counts)
{
	for (int i = 0; i < REPORT_IMPORT_LEFTS; i++) {
		if (counts->left[i] == 0)
			continue;
		print_count(counts->left[i], "nothing: ");
		printf("%s", report_import_left_text((enum report_import_left)i));
		for (int phase = 1; phase < 128 && i == REPORT_IMPORT_LEFT_PHASE; phase++) {
			if (counts->left_phases[phase] > 0)
				printf(", %c %" PRIu64, phase < 32 ? '?' : phase,
				       counts->left_phases[phase]);
		}
		for (int w = 0; w < REPORT_IMPORT_WHATS && i == REPORT_IMPORT_LEFT_KIND; w++) {
			if (counts->whats[w].count > 0)
				cli_print(stdout, ", %s %" PRIu64, counts->whats[w].what,
					  counts->whats[w].count);
		}
		if (counts->left_at[i] > 0)
			printf(" (the first at byte %" PRIu64 ")", counts->left_at[i]);
		printf("\n");
	}
}

static void print_summary(const struct import_line *line, const struct report_import_counts *counts,
			  double seconds)
{
	char bytes[FMT_SIZE];
	bool any = false;
	const struct {
		uint64_t count;
		const char *words;
	} rows[] = {
		{counts->spans, "spans\n"},
		{counts->instants, "instants\n"},
		{counts->counters, "samples of counters\n"},
		{counts->flows, "flows\n"},
		{counts->memory_events, "allocations and releases\n"},
		{counts->tracks, "tracks\n"},
	};

	fmt_bytes(bytes, counts->bytes);
	cli_print(stdout, "%s: %s in %.2f s, written to %s\n", line->trace, bytes, seconds,
		  line->output);
	printf("written\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].count > 0)
			print_count(rows[i].count, rows[i].words);
	}
	printf("events\n");
	print_count(counts->events, "read, of which became\n");
	for (int i = 0; i < REPORT_IMPORT_USES; i++) {
		if (counts->used[i] == 0)
			continue;
		print_count(counts->used[i], report_import_use_text((enum report_import_use)i));
		printf("\n");
	}
	print_left(counts);
	for (int i = 0; i < REPORT_IMPORT_NOTES; i++) {
		if (counts->notes[i] == 0)
			continue;
		if (!any)
			printf("notes\n");
		any = true;
		print_count(counts->notes[i], report_import_note_text((enum report_import_note)i));
		printf("\n");
	}
	if (counts->base_ns != 0)
		printf("time 0 is the trace's %" PRId64 ".%03d us\n", counts->base_ns / 1000,
		       (int)(counts->base_ns % 1000 < 0 ? -(counts->base_ns % 1000)
							: counts->base_ns % 1000));
}

enum status report_import_run(int argc, char **argv, struct err *err)
{
	struct import_progress progress;
	struct report_import_params params = {.progress = report__import_on_progress,
					      .user = &progress};
	struct report_import_counts counts;
	uint64_t started = clock_ns();
	char output[FS_PATH_SIZE];
	struct import_line line;
	enum status status;

	if (parse_line(&line, argc, argv, err) != ST_OK)
		return err->status;
	if (!line.output && !default_output(line.trace, output))
		return err_set(err, ST_INVALID, "%s: the name is too long", line.trace);
	line.output = line.output ? line.output : output;
	params.trace = line.trace;
	params.output = line.output;
	params.force = line.force;
	params.command = "ipu-report import";
	report__import_begin_progress(&progress, line.quiet);
	status = report_import(&params, &counts, err);
	report__import_end_progress(&progress);
	if (status == ST_INTERRUPTED)
		err_set(err, status, "interrupted: nothing was written to %s", line.output);
	if (status != ST_OK)
		return status;
	if (!line.quiet)
		print_summary(&line, &counts, (double)(clock_ns() - started) / 1e9);
	if (counts.broken)
		cli_print(stderr,
			  "ipu-report import: %s: byte %" PRIu64
			  ": %s; everything before it was taken\n",
			  line.trace, counts.broken_at, counts.why);
	return ST_OK;
}
