/*
 * The verbs of ipu-report: subcommands, each with its own options, --help, man page and
 * completions.
 *
 * `ipu-report VERB ...`; `ipu-report REPORT VERB ...` means `ipu-report VERB REPORT ...`.
 */
#ifndef REPORT_VERBS_H
#define REPORT_VERBS_H

#include "common/cli.h"
#include "reports/table/report_render.h"

struct report_verb {
	const char *name;
	const struct cli_command *command; /* called "ipu-report VERB" */
	/* Run the verb: @argv[0] is the verb, its arguments follow. Return the exit code. */
	int (*run)(int argc, char **argv);
	bool several; /* accepts several reports, so tf_report__* is not narrowed to the newest */
};

const struct report_verb *report_verbs(int *count);

/* Find the verb on the command line, or return NULL. Afterwards @argv starts with the verb and
 * *@argc counts from it; a REPORT written before the verb is moved behind it. If the verb reads one
 * report and several are given, only the newest remains. */
const struct report_verb *report_verb_parse(int *argc, char ***argv);

/* Options of verbs that print tables. @line needs the fields width and color. */
#define REPORT_OPTION_WIDTH(line)                                                                  \
	{                                                                                          \
		.name = "--width", .argument = "COLUMNS",                                          \
		.help = "Fit text to so many columns; 0: as wide as needed.",                      \
		.field = CLI_FIELD(SIZE, line, width)                                              \
	}
#define REPORT_OPTION_COLOR(line)                                                                  \
	{                                                                                          \
		.name = "--color", .argument = "WHEN", .choices = "auto always never",             \
		.help = "Bold headings: auto (on a terminal, unless NO_COLOR is set), always or "  \
			"never.",                                                                  \
		.field = CLI_FIELD(TEXT, line, color)                                              \
	}
/* Render parameters for standard output; @width -1 and @color NULL mean not given. */
struct report_render_params report_verb_render(enum report_format format, int width,
					       const char *color);

extern const struct cli_command report_diff_cli, report_export_cli;
int report_diff_command(int argc, char **argv);
int report_export_command(int argc, char **argv);
extern const struct cli_command report_merge_cli;
int report_merge_command(int argc, char **argv);
extern const struct cli_command report_whatif_cli;
int report_whatif_command(int argc, char **argv);
extern const struct cli_command report_attention_cli, report_losses_cli, report_embeddings_cli;
int report_attention_command(int argc, char **argv);
int report_losses_command(int argc, char **argv);
int report_embeddings_command(int argc, char **argv);
extern const struct cli_command report_import_cli;
int report_import_command(int argc, char **argv);

#endif /* REPORT_VERBS_H */
