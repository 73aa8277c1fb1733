/*
 * The verb `export`: its formats and its command line.
 *
 * Threading: none. Ownership: the database is open for one export. Prints, as the front end does.
 */
#include "reports/report_export.h"

#include <string.h>
#include <sys/stat.h>

#include "common/cli.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "reports/report_find.h"
#include "reports/report_verbs.h"

static const struct report_export export_table[] = {
	{"npz", "captured tensors, for numpy.load()", "captures.npz", report_export_npz},
};

const struct report_export *report_exports(int *count)
{
	*count = (int)ARRAY_LEN(export_table);
	return export_table;
}

static enum status export_find(const struct report_export **out, const char *name, struct err *err)
{
	const char *names[ARRAY_LEN(export_table)], *near;
	struct str all = {0};

	*out = NULL;
	for (size_t i = 0; i < ARRAY_LEN(export_table); i++) {
		names[i] = export_table[i].name;
		str_addf(&all, "%s%s", i > 0 ? ", " : "", names[i]);
		if (name != NULL && strcmp(names[i], name) == 0)
			*out = &export_table[i];
	}
	near = name == NULL ? NULL : str_nearest(name, names, ARRAY_LEN(names));
	if (*out == NULL && name == NULL)
		err_set(err, ST_INVALID, "export: no format given (%s)", str_peek(&all));
	else if (*out == NULL && near != NULL)
		err_set(err, ST_INVALID, "export: unknown format \"%s\" (did you mean \"%s\"?)",
			name, near);
	else if (*out == NULL)
		err_set(err, ST_INVALID, "export: unknown format \"%s\" (%s)", name,
			str_peek(&all));
	str_free(&all);
	return *out == NULL ? ST_INVALID : ST_OK;
}

/* Where the file goes, or why it cannot go there. */
static enum status export_check_file(const char *path, bool force, struct err *err)
{
	struct stat info;

	if (!force && fs_exists(path))
		return err_set(err, ST_INVALID, "%s: is there already (--force replaces it)", path);
	/* Opening a pipe would wait for its reader. */
	if (!stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
		return err_set(err, ST_INVALID, "%s: is a device or pipe, not a file", path);
	return ST_OK;
}

/* --- the command -------------------------------------------------------------------------------
 */

enum {
	OPTION_OUTPUT,
	OPTION_FORCE,
	OPTION_KEYS,
	OPTION_STEPS
};

static const struct cli_option export_options[] = {
	[OPTION_OUTPUT] = {.name = "--output",
			   .letter = 'o',
			   .argument = "FILE",
			   .help = "The file to write; by default captures.npz, here."},
	[OPTION_FORCE] = {.name = "--force", .help = "Replace FILE if it is there."},
	[OPTION_KEYS] = {.name = "--keys",
			 .argument = "PATTERN",
			 .help = "npz: only tensors whose key fits this shell pattern "
				 "('Dense_1*')."},
	[OPTION_STEPS] = {.name = "--steps",
			  .help = "npz: beside each array NAME also NAME@step, the step (of what "
				  "belongs to a weight update: the update) of each enqueue; -1: "
				  "unknown."},
};

const struct cli_command report_export_cli = {
	.name = "ipu-report export",
	.synopsis = "REPORT FORMAT [-o FILE]",
	.summary = "what a run recorded, as a file for other programs",
	.about = "Write what a run recorded to a file that other programs read. `ipu-report REPORT "
		 "export FORMAT` is the same.\n\n"
		 "npz: captured tensors, for numpy.load(): an array per tensor, named by its key, "
		 "all enqueues stacked: (enqueues, [replicas,] shape). Captures of another shape "
		 "(a last, short batch) are an array of their own, NAME@16x128. Values are stored "
		 "as they were recorded.",
	.options = export_options,
	.option_count = ARRAY_LEN(export_options),
	.examples = "ipu-report run.db export npz -o out.npz --keys 'Dense_128*'\tCaptured "
		    "tensors of a layer, for numpy.\n",
	.words = "FILE",
};

struct export_line {
	const char *words[2]; /* REPORT, FORMAT */
	int word_count;
	const char *file, *keys;
	bool force, steps;
};

static void export_option(struct export_line *line, const struct cli_argument *argument)
{
	switch (argument->option - export_options) {
	case OPTION_OUTPUT:
		line->file = argument->value;
		break;
	case OPTION_FORCE:
		line->force = true;
		break;
	case OPTION_KEYS:
		line->keys = argument->value;
		break;
	case OPTION_STEPS:
		line->steps = true;
		break;
	}
}

static enum status export_parse(struct export_line *line, int argc, char **argv, struct err *err)
{
	struct cli_argument argument;
	struct cli_walk walk;
	enum status status;
	bool more;

	*line = (struct export_line){0};
	cli_begin(&walk, &report_export_cli, argc, argv, false);
	while ((status = cli_next(&walk, &argument, &more, err)) == ST_OK && more) {
		if (argument.option)
			export_option(line, &argument);
		else if (line->word_count < (int)ARRAY_LEN(line->words))
			line->words[line->word_count++] = argument.value;
		else
			return err_set(err, ST_INVALID,
				       "one word too many: \"%s\" (REPORT and FORMAT are enough)",
				       argument.value);
	}
	return status;
}

static enum status export_run(const struct export_line *line, struct err *err)
{
	struct report_export_request request = {
		.path = line->words[0], .keys = line->keys, .steps = line->steps, .out = stdout};
	const struct report_export *format;
	const char *file;
	enum status status;

	if (!line->word_count)
		return report_find_suggest(".", "ipu-report export", "export: no report given",
					   err);
	status = report_find_check(request.path, "ipu-report export", err);
	if (status == ST_OK)
		status = export_find(&format, line->words[1], err);
	if (status != ST_OK)
		return status;
	file = line->file ? line->file : format->file;
	status = export_check_file(file, line->force, err);
	if (status == ST_OK)
		status = prof_db_open(&request.db, request.path, err);
	if (status != ST_OK)
		return status;
	status = format->run(&request, file, err);
	prof_db_close(request.db);
	return status;
}

int report_export_command(int argc, char **argv)
{
	struct export_line line;
	struct err err = {0};
	enum status status;

	if (cli_standard(&report_export_cli, argc, argv, stdout))
		return 0;
	status = export_parse(&line, argc, argv, &err);
	if (status == ST_OK)
		status = export_run(&line, &err);
	return status == ST_OK ? 0 : cli_fail(&report_export_cli, &err);
}
