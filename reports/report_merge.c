/*
 * The verb `merge`: parse its command line, write the merged file, print a summary.
 *
 * Threading: none. Ownership: the sources' array lives as long as the command. The file is written
 * to a temporary name and then renamed: the target is complete or untouched.
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
#include "profiler/prof_merge.h"
#include "reports/report_find.h"
#include "reports/report_output.h"
#include "reports/report_verbs.h"
#include "profiler/prof_db.h"

#define PROGRESS_NS UINT64_C(200000000)

struct merge_line {
	struct prof_merge_source *sources;
	size_t count, capacity;
	const char *file;
	bool force;
	struct prof_merge_params params;
};

static const struct cli_option merge_options[] = {
	{.name = "--output",
	 .letter = 'o',
	 .argument = "FILE",
	 .help = "The database to write.",
	 .field = CLI_FIELD(TEXT, struct merge_line, file)},
	{.name = "--force",
	 .help = "Replace FILE if it is there.",
	 .field = CLI_FIELD(SWITCH, struct merge_line, force)},
	{.name = "--ranks",
	 .argument = "WHICH",
	 .choices = "auto keep order",
	 .help = "keep: those recorded, which must all differ; order: 0, 1, ... as "
		 "the reports are given; auto (default): keep where all differ, else "
		 "order.",
	 .field = CLI_FIELD(CHOICE, struct merge_line, params.ranks)},
	{.name = "--align",
	 .argument = "HOW",
	 .choices = "wall steps none",
	 .help = "How host times come together. wall (default): by the wall clock "
		 "of each recording's start; steps: then by the median of what is "
		 "left between executions of equal number, for processes that wait "
		 "for each other on hosts whose clocks differ; none: all start at "
		 "0.",
	 .field = CLI_FIELD(CHOICE, struct merge_line, params.align)},
	REPORT_OPTION_UNLIMITED,
};

/* Choices are numbered in the order of the options' lists. */
_Static_assert(PROF_MERGE_RANKS_AUTO == 0 && PROF_MERGE_RANKS_KEEP == 1 &&
		       PROF_MERGE_RANKS_ORDER == 2 && PROF_MERGE_ALIGN_WALL == 0 &&
		       PROF_MERGE_ALIGN_STEPS == 1 && PROF_MERGE_ALIGN_NONE == 2,
	       "choices out of step");

const struct cli_command report_merge_cli = {
	.name = "ipu-report merge",
	.synopsis = "REPORT REPORT [REPORT ...] -o FILE",
	.summary = "reports of several processes as one database, by rank",
	.about = "Put the reports of the processes of a job into one database, told apart by the "
		 "column `rank`. ipu-view, ipu-report and sqlite3 read it as any other.\n\n"
		 "Host times are moved to one start; what is left between moments that two ranks "
		 "share (the starts of equal executions) is shown as the residual. A large one "
		 "means clocks that differ: --align steps takes its median away. Simulated device "
		 "clocks each start at 0 and stay so.\n\n"
		 "What was compiled (layers, programs, memory) is kept once where it is the same. "
		 "Killed runs, runs that are still recorded (what they have committed), imported "
		 "traces and merged files can all be given.",
	.options = merge_options,
	.option_count = ARRAY_LEN(merge_options),
	.examples = "ipu-report merge a/profile.db b/profile.db -o both.db\tTwo processes side by "
		    "side.\n"
		    "ipu-report merge rank*/ -o job.db --align steps\tThe ranks of a job on hosts "
		    "whose clocks differ.\n",
	.words = "FILE",
};

/* ---- the command line ------------------------------------------------------------------------ */

static enum status merge_parse(struct merge_line *line, int argc, char **argv, struct err *err)
{
	struct cli_argument argument;
	struct cli_walk walk;
	bool more;

	cli_begin(&walk, &report_merge_cli, argc, argv, false);
	while (cli_next(&walk, &argument, &more, err) == ST_OK && more) {
		if (argument.option) {
			cli_set(&argument, line, err);
			continue;
		}
		if (mem_grow(&line->sources, &line->capacity, line->count + 1,
			     sizeof(*line->sources)))
			return err_nomem(err);
		line->sources[line->count++] = (struct prof_merge_source){.path = argument.value};
	}
	return err->status;
}

static enum status merge_check(const struct merge_line *line, struct err *err)
{
	if (!line->count)
		return report_find_suggest(".", "ipu-report merge", "no report given", err);
	for (size_t i = 0; i < line->count; i++)
		if (report_find_resolve(&line->sources[i].path, "ipu-report merge", err) != ST_OK)
			return err->status;
	if (line->count < 2)
		return err_set(err, ST_INVALID, "one report is whole already; give two or more");
	if (!line->file)
		return err_set(err, ST_INVALID, "no file to write given (-o FILE)");
	if (!strcmp(line->file, "-"))
		return err_set(
			err, ST_INVALID,
			"--output: a database cannot go to the standard output; name a file");
	if (fs_is_dir(line->file))
		return err_set(err, ST_INVALID, "%s: is a folder (-o %s/profile.db?)", line->file,
			       line->file);
	for (size_t i = 0; i < line->count; i++)
		if (report_output_check_source(line->sources[i].path, line->file, err) != ST_OK)
			return err->status;
	return report_output_check(line->file, line->force, err);
}

/* ---- progress -------------------------------------------------------------------------------- */

struct merge_progress {
	bool shown, drawn;
	size_t count;
	uint64_t next_ns;
};

static bool merge_on_progress(void *user, size_t source, const char *what)
{
	struct merge_progress *progress = user;
	const uint64_t now = progress->shown ? clock_ns() : 0;

	if (progress->shown && now >= progress->next_ns) {
		progress->next_ns = now + PROGRESS_NS;
		progress->drawn = true;
		fprintf(stderr, "\r%zu of %zu: %s\033[K",
			source < progress->count ? source + 1 : progress->count, progress->count,
			what);
	}
	return !report_interrupted();
}

/* ---- summary --------------------------------------------------------------------------------- */

static const char *merge_state_text(const struct prof_merge_source *source)
{
	if (source->state == PROF_COMPLETE)
		return source->ranks > 1 ? "merged" : "complete";
	if (source->alive)
		return "recording";
	return source->failed ? "failed" : "killed";
}

static void merge_print(const struct merge_line *line, FILE *out)
{
	const struct prof_merge_source *sources = line->sources;
	bool differ = false;
	size_t ranks = 0;

	for (size_t i = 0; i < line->count; i++)
		ranks += sources[i].ranks;
	cli_print(out, "%s: %zu ranks\n", line->file, ranks);
	for (size_t i = 0; i < line->count; i++) {
		const struct prof_merge_source *source = &sources[i];
		char spans[FMT_SIZE], shift[FMT_SIZE], median[FMT_SIZE], greatest[FMT_SIZE];
		char anchors[FMT_SIZE];
		const int64_t last = source->rank + (int64_t)source->ranks - 1;

		cli_print(out, "rank %-4" PRId64 " %s\n", source->rank, source->path);
		fprintf(out, "          %s, %s spans, shifted by %s\n", merge_state_text(source),
			fmt_count(spans, source->spans), fmt_ns(shift, source->shift_ns));
		if (source->anchors > 0)
			fprintf(out, "          residual %s (greatest %s), anchors: %s\n",
				fmt_ns(median, source->residual_ns),
				fmt_ns(greatest, source->greatest_ns),
				fmt_count(anchors, source->anchors));
		else if (i > 0)
			fputs("          no step in common with the first: no residual\n", out);
		if (source->ranks > 1)
			fprintf(out, "          merged before: ranks %" PRId64 " to %" PRId64 "\n",
				source->rank, last);
		if (source->state != PROF_COMPLETE)
			fprintf(out, "          %s\n",
				source->alive    ? "still being recorded: what was committed by now"
				: source->failed ? "recording failed: what came after is missing"
						 : "its writer died: open spans have no end");
		if (source->after_rank >= 0)
			fprintf(out,
				"          part %" PRId64
				" of a training: goes on after rank %" PRId64 "\n",
				source->part, source->after_rank);
		else if (source->part > 1)
			fprintf(out,
				"          part %" PRId64 " of a training; no report among these "
				"is in the folder of the part before\n",
				source->part);
		if (!source->has_clock)
			fputs("          does not say when it started: placed at the start\n", out);
		differ |= sources[i].own_model;
	}
	if (differ)
		fputs("Their compiled models differ: layers, operations, programs and memory are "
		      "those of\nall, memory of later ones on IPUs of further numbers (meta: "
		      "merge.RANK.memory_first_ipu).\n",
		      out);
}

/* ---- writing --------------------------------------------------------------------------------- */

static enum status merge_write(struct merge_line *line, struct err *err)
{
	struct merge_progress progress = {.shown = isatty(STDERR_FILENO) != 0,
					  .count = line->count,
					  .next_ns = clock_ns() + 5 * PROGRESS_NS};
	struct fs_writer writer;
	enum status status;

	report_interrupt_install(); /* before a temporary file exists that an interrupt would leave */
	status = fs_writer_open(&writer, line->file, err);
	if (status != ST_OK)
		return status;
	line->params.command = "ipu-report merge";
	line->params.progress = merge_on_progress;
	line->params.user = &progress;
	status = prof_merge(writer.temporary, line->sources, line->count, &line->params, err);
	if (progress.drawn)
		fputs("\r\033[K", stderr);
	if (status == ST_OK)
		return fs_writer_close(&writer, err);
	fs_writer_drop(&writer);
	if (status == ST_INTERRUPTED)
		return err_set(err, status, "interrupted: nothing was written");
	return status == ST_NOSPACE ? err_prefix(err, "%s", line->file) : status;
}

enum status report_merge_run(int argc, char **argv, struct err *err)
{
	struct merge_line line = {0};

	if (merge_parse(&line, argc, argv, err) == ST_OK && merge_check(&line, err) == ST_OK &&
	    merge_write(&line, err) == ST_OK)
		merge_print(&line, stdout);
	mem_free(line.sources);
	return err->status;
}
