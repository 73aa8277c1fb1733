/*
 * The verbs of ipu-report: subcommands, each with its own options, --help, man page and
 * completions.
 *
 * `ipu-report VERB ...`; `ipu-report REPORT VERB ...` means `ipu-report VERB REPORT ...`.
 */
#ifndef REPORT_VERBS_H
#define REPORT_VERBS_H

#include <stdbool.h>

#include "common/cli.h"
#include "profiler/prof_db.h"
#include "reports/table/report_render.h"

struct report_verb {
	const char *name;
	const struct cli_command *command; /* called "ipu-report VERB" */
	/* Run the verb: @argv[0] is the verb, its arguments follow. */
	enum status (*run)(int argc, char **argv, struct err *err);
	bool several; /* accepts several reports, so tf_report__* is not narrowed to the newest */
};

const struct report_verb *report_verbs(int *count);

/* Find the verb on the command line, or return NULL. Afterwards @argv starts with the verb and
 * *@argc counts from it; a REPORT written before the verb is moved behind it. If the verb reads one
 * report and several are given, only the newest remains. */
const struct report_verb *report_verb_parse(int *argc, char ***argv);

/* Run the verb, or print its help or the failure. Return the exit code. */
int report_verb_run(const struct report_verb *verb, int argc, char **argv);

/* ---- options of several verbs ---------------------------------------------------------------- */

/* How a verb prints tables: the field `table` of its line. */
struct report_table_options {
	bool csv, json;
	int width;         /* -1: not given */
	const char *color; /* NULL: not given */
};

#define REPORT_OPTION_CSV(line, text)                                                              \
	{                                                                                          \
		.name = "--csv", .help = text, .field = CLI_FIELD(SWITCH, line, table.csv)         \
	}
#define REPORT_OPTION_JSON(line, text)                                                             \
	{                                                                                          \
		.name = "--json", .help = text, .field = CLI_FIELD(SWITCH, line, table.json)       \
	}
#define REPORT_OPTION_WIDTH(line)                                                                  \
	{                                                                                          \
		.name = "--width", .argument = "COLUMNS",                                          \
		.help = "Fit text to so many columns; 0: as wide as needed.",                      \
		.field = CLI_FIELD(SIZE, line, table.width)                                        \
	}
#define REPORT_OPTION_COLOR(line)                                                                  \
	{                                                                                          \
		.name = "--color", .argument = "WHEN", .choices = "auto always never",             \
		.help = "Bold headings: auto (on a terminal, unless NO_COLOR is set), always or "  \
			"never.",                                                                  \
		.field = CLI_FIELD(TEXT, line, table.color)                                        \
	}
#define REPORT_OPTION_UNLIMITED                                                                    \
	{                                                                                          \
		.name = "--unlimited", .action = prof_db_unlimited,                                \
		.help = "Lift the limits that keep a hostile file from taking all time and "       \
			"memory.",                                                                 \
	}

/* The render parameters for standard output. ST_INVALID if the options exclude each other. */
enum status report_verb_render(struct report_render_params *out,
			       const struct report_table_options *options, struct err *err);

/* ---- the verbs ------------------------------------------------------------------------------- */

extern const struct cli_command report_attention_cli, report_diff_cli, report_embeddings_cli,
	report_export_cli, report_import_cli, report_losses_cli, report_merge_cli,
	report_whatif_cli;
enum status report_attention_run(int argc, char **argv, struct err *err);
enum status report_diff_run(int argc, char **argv, struct err *err);
enum status report_embeddings_run(int argc, char **argv, struct err *err);
enum status report_export_run(int argc, char **argv, struct err *err);
enum status report_import_run(int argc, char **argv, struct err *err);
enum status report_losses_run(int argc, char **argv, struct err *err);
enum status report_merge_run(int argc, char **argv, struct err *err);
enum status report_whatif_run(int argc, char **argv, struct err *err);

/* ---- the command ----------------------------------------------------------------------------- */

/* Run the command with main()'s arguments. Return the exit code. */
int report_command(int argc, char **argv);

#endif /* REPORT_VERBS_H */
