/*
 * The ipu-report command: parse arguments, open the database, run the selected report.
 *
 * Threading: none. Ownership: the database is open for one report. Prints to standard output.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "popvision/popvision.h"
#include "reports/report_find.h"
#include "reports/named/report_named.h"
#include "reports/report_registry.h"
#include "reports/report_verbs.h"
#include "profiler/prof_db.h"

enum {
	OPTION_CSV,
	OPTION_CSV_SAFE,
	OPTION_JSON,
	OPTION_COLUMNS,
	OPTION_SORT,
	OPTION_WHERE,
	OPTION_BY,
	OPTION_LIMIT,
	OPTION_SQL,
	OPTION_WIDTH,
	OPTION_COLOR,
	OPTION_REEVALUATE,
	OPTION_UNLIMITED,
	OPTIONS
};

/* The parsed command line. */
struct command_line {
	const char *words[2];      /* REPORT, NAME */
	char newest[FS_PATH_SIZE]; /* default for REPORT */
	int word_count;
	bool csv_safe;
	int64_t limit;
	struct report_table_options table;
	bool given[OPTIONS];
	const char *reevaluate; /* NULL: not given */
	struct report_choice choice;
};

static const struct cli_option command_options[] = {
	[OPTION_CSV] = REPORT_OPTION_CSV(struct command_line,
					 "Comma separated values (RFC 4180), all rows."),
	[OPTION_CSV_SAFE] =
		{.name = "--csv-safe",
		 .help = "With --csv: a text that begins with =, +, -, @ or a tab, which "
			 "a spreadsheet would evaluate, gets a ' before it.",
		 .field = CLI_FIELD(SWITCH, struct command_line, csv_safe)},
	[OPTION_JSON] = REPORT_OPTION_JSON(
		struct command_line, "A JSON object with tool, version, schema_version, report and "
				     "rows; all rows."),
	[OPTION_COLUMNS] = {.name = "--columns",
			    .argument = "NAMES",
			    .help = "These columns, as a,b,c; all: every one. Text shows the "
				    "most telling by default, CSV and JSON all.",
			    .field = CLI_FIELD(TEXT, struct command_line, choice.columns)},
	[OPTION_SORT] = {.name = "--sort",
			 .letter = 's',
			 .argument = "NAMES",
			 .help = "In the order of these columns; -NAME: greatest first.",
			 .field = CLI_FIELD(TEXT, struct command_line, choice.sort)},
	[OPTION_WHERE] = {.name = "--where",
			  .letter = 'w',
			  .argument = "CONDITION",
			  .help = "Only rows for which this holds, in SQL over the report's "
				  "columns; may be given again, then all must hold. Beside "
				  "SQLite's operators and pure functions there are ns('1.5 ms'), "
				  "bytes('64 kB') and percent('20 %'): \"dur_ns > ns('1 ms') AND "
				  "name GLOB 'SGD*'\"."},
	[OPTION_BY] = {.name = "--by",
		       .argument = "WHAT",
		       .help = "How rows are grouped; of reports that have a choice: see REPORTS "
			       "in the manual page.",
		       .field = CLI_FIELD(TEXT, struct command_line, choice.by)},
	[OPTION_LIMIT] = {.name = "--limit",
			  .letter = 'n',
			  .argument = "ROWS",
			  .help = "At most so many rows; 0: all. Text shows 1000 by default.",
			  .field = CLI_FIELD(NUMBER, struct command_line, limit)},
	[OPTION_SQL] = {.name = "--sql",
			.help = "Print the query instead of its rows, to be read, or pasted into "
				"sqlite3.",
			.field = CLI_FIELD(SWITCH, struct command_line, choice.sql)},
	[OPTION_WIDTH] = {.name = "--width",
			  .argument = "COLUMNS",
			  .help = "Fit text to so many columns; 0: as wide as needed, nothing cut. "
				  "The terminal's width by default, 80 elsewhere.",
			  .field = CLI_FIELD(SIZE, struct command_line, table.width)},
	[OPTION_COLOR] = REPORT_OPTION_COLOR(struct command_line),
	[OPTION_REEVALUATE] = {.name = "--reevaluate",
			       .argument = "FILE",
			       .help = "health: judge what was recorded again. "
				       "FILE is JSON, as health.rules in a run file, of what "
				       "differs from the run's own rules; recorded: those alone; "
				       "default: the defaults.",
			       .field = CLI_FIELD(TEXT, struct command_line, reevaluate)},
	[OPTION_UNLIMITED] = REPORT_OPTION_UNLIMITED,
};

/* Which entries an option applies to. */
static const struct {
	const char *entry; /* this entry only; NULL: any */
	bool selects;      /* only entries made of rows */
} option_entries[ARRAY_LEN(command_options)] = {
	[OPTION_COLUMNS] = {.selects = true}, [OPTION_SORT] = {.selects = true},
	[OPTION_WHERE] = {.selects = true},   [OPTION_BY] = {.selects = true},
	[OPTION_SQL] = {.selects = true},     [OPTION_REEVALUATE] = {.entry = "health"},
};

/* Completion of the word after REPORT. Skip a view whose name a report has: the report wins. */
static const char *complete_second(size_t at)
{
	const struct report_entry *entry, *meant;
	enum report_group group;

	for (int i = 0; (entry = report_entry_at(i, &group)); i++)
		if (report_entry_find(&meant, entry->name, NULL) == ST_OK && meant == entry &&
		    !at--)
			return entry->name;
	return NULL;
}

static const struct cli_command *complete_verb(size_t at)
{
	int count;
	const struct report_verb *verbs = report_verbs(&count);

	return at < (size_t)count ? verbs[at].command : NULL;
}

static const struct cli_command command_report = {
	.name = "ipu-report",
	.synopsis = "[REPORT] [NAME] [--csv|--json] | VERB ...",
	.summary = "what a run recorded, as text, CSV or JSON",
	.about =
		"Print a report on a recorded run. REPORT is a report directory (tf_report__...) "
		"or "
		"a database (profile.db), by default the newest report here, and of several "
		"(tf_report__*) the newest, or another program's recording (PyTorch, Nsight "
		"Systems, rocprofv3, Perfetto, JAX ...), which is imported into a cache; NAME is "
		"`summary`, which is the default, a view of the "
		"database such as `stage_timings`, or `list`, which names them all. A word that is "
		"a report's and a view's means the report; `view:NAME` is the view.\n\n"
		"A file is read the same way while it is written, after its writer was killed, and "
		"when it is complete; reading never changes it. `repair` finishes a file whose "
		"writer died.\n\n"
		"VERB is `export` (files for other programs), `import` (another program's "
		"recording "
		"as a database), `diff` (two runs side by side), `merge` (the processes of a job "
		"in one "
		"database) or `what-if` (a run under another schedule, split or machine); "
		"`ipu-report VERB --help` says more.",
	.options = command_options,
	.option_count = ARRAY_LEN(command_options),
	.examples = "ipu-report tf_report__2026-01-31__12-00-00.000__4711\tThe run at a glance.\n"
		    "ipu-report run.db bubbles --csv\tEvery bubble, for a spreadsheet.\n"
		    "ipu-report run.db spans --sort -dur_ns --limit 20\tThe 20 longest spans.\n"
		    "ipu-report run.db operations --by layer\tWhere the cycles go.\n"
		    "ipu-report run.db tensor_stats --where \"key GLOB '*_grad' AND n_nan > 0\"\t"
		    "Gradients with bad numbers.\n"
		    "ipu-report run.db health --reevaluate rules.json\tJudge it by other "
		    "thresholds.\n"
		    "ipu-report run.db repair\tFinish the file of a killed run.\n"
		    "ipu-report run.db export npz\tCaptured tensors, for numpy.\n"
		    "ipu-report run.db what-if\tEvery schedule beside the run's own.\n",
	.words = "FILE",
	.second = complete_second,
	.verb = complete_verb,
	.details = "ENVIRONMENT\nNO_COLOR: no bold headings. CLICOLOR_FORCE: bold headings even "
		   "where the output is not a terminal.",
};

/* ---- help ------------------------------------------------------------------------------------ */

/* cli_standard() with a list of all reports added to the page's details. */
static bool print_help(int argc, char **argv, FILE *out)
{
	struct cli_command described = command_report;
	const struct report_entry *entry;
	struct str details = {0};
	enum report_group group;
	bool shown;

	str_add(&details, "REPORTS\n");
	for (int i = 0; (entry = report_entry_at(i, &group)) && group == REPORT_GROUP_REPORTS;
	     i++) {
		char by[256];

		str_addf(&details, "%s: %s.", entry->name, entry->usage);
		if (entry->run == report_run_named) {
			report_named_groupings((const struct report_named *)entry, by, sizeof(by));
			str_addf(&details, "%s%s%s", *by ? " Groupings (--by): " : "", by,
				 *by ? "." : "");
		}
		str_add(&details, "\n\n");
	}
	str_add(&details, command_report.details);
	if (!details.failed)
		described.details = str_peek(&details);
	shown = cli_standard(&described, argc, argv, out);
	str_free(&details);
	return shown;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static enum status set_option(void *user, const struct cli_argument *argument, struct err *err)
{
	struct command_line *line = user;
	struct report_choice *choice = &line->choice;
	const ptrdiff_t at = argument->option - command_options;

	line->given[at] = true;
	if (at != OPTION_WHERE)
		return cli_set(argument, line, err);
	if (choice->where_count == REPORT_WHERES)
		return err_set(err, ST_LIMIT, "--where: more than %d conditions", REPORT_WHERES);
	choice->where[choice->where_count++] = argument->value;
	return ST_OK;
}

static enum status parse_command(struct command_line *line, struct report_render_params *render,
				 int argc, char **argv, struct err *err)
{
	const struct cli_words words = {line->words, ARRAY_LEN(line->words), &line->word_count,
					"REPORT and NAME are enough"};

	*line = (struct command_line){.limit = REPORT_LIMIT_DEFAULT, .table = {.width = -1}};
	if (cli_parse(&command_report, argc, argv, set_option, line, &words, err) == ST_OK &&
	    report_verb_render(render, &line->table, err) == ST_OK && line->csv_safe &&
	    !line->table.csv)
		err_set(err, ST_INVALID, "--csv-safe goes with --csv");
	render->csv_safe = line->csv_safe;
	return err->status;
}

/* ---- which report ---------------------------------------------------------------------------- */

/* Reject options that do not apply to @entry. */
static enum status check_entry_options(const struct command_line *line,
				       const struct report_entry *entry, struct err *err)
{
	const bool chooses = report_choice_selects(&line->choice) || line->choice.sql;

	for (size_t i = 0; i < ARRAY_LEN(option_entries); i++) {
		const char *only = option_entries[i].entry;

		if (line->given[i] && only && strcmp(only, entry->name) != 0)
			return err_set(err, ST_INVALID, "%s is an option of `%s`, not of `%s`",
				       command_options[i].name, only, entry->name);
		if (line->given[i] && option_entries[i].selects && !report_entry_selects(entry))
			return err_set(err, ST_INVALID,
				       "%s is for reports made of rows, not for `%s`",
				       command_options[i].name, entry->name);
	}
	if (line->reevaluate && chooses)
		return err_set(err, ST_INVALID,
			       "--reevaluate goes with --csv, --json and --limit only");
	return ST_OK;
}

/* Resolve the entry, and store the report's path in line->words[0]. */
static enum status resolve_entry(struct command_line *line, const struct report_entry **entry,
				 struct err *err)
{
	struct err unknown;
	char what[128];

	if (line->word_count == 1 && !fs_exists(line->words[0]) &&
	    report_entry_find(entry, line->words[0], NULL) == ST_OK) {
		if ((*entry)->needs == REPORT_NEEDS_NOTHING)
			return ST_OK;
		/* An entry that writes to the report requires an explicit path. */
		if ((*entry)->needs == REPORT_NEEDS_PATH) {
			snprintf(what, sizeof(what),
				 "%.32s is the name of a report: write REPORT before it",
				 line->words[0]);
			return report_find_suggest(".", command_report.name, what, err);
		}
		line->words[line->word_count++] = line->words[0];
		line->words[0] = NULL;
	}
	/* No entry and no file: unless the word looks like a path, it is a misspelt entry. */
	if (line->word_count == 1 && line->words[0] && !fs_exists(line->words[0]) &&
	    !strpbrk(line->words[0], "/.") && !str_starts_with(line->words[0], "tf_report__")) {
		report_entry_find(entry, line->words[0], &unknown);
		return err_set(err, unknown.status, "%s, and no file or folder of this name",
			       unknown.text);
	}
	if (!line->words[0]) {
		if (report_find_default(command_report.name, stderr, line->newest, err) != ST_OK)
			return err->status;
		line->words[0] = line->newest;
		line->word_count = line->word_count ? line->word_count : 1;
	}
	if (report_entry_find(entry, line->word_count > 1 ? line->words[1] : "summary", err) !=
		    ST_OK ||
	    check_entry_options(line, *entry, err) != ST_OK ||
	    (*entry)->needs == REPORT_NEEDS_NOTHING)
		return err->status;
	return report_find_resolve(&line->words[0], command_report.name, err);
}

static enum status run_entry(const struct report_entry *entry, struct report_request *request,
			     struct err *err)
{
	struct ips_report *report;
	enum status status;

	if (entry->needs != REPORT_NEEDS_DB)
		return entry->run(entry, request, err);

	if (report_public_open(&report, request->path, err) != ST_OK)
		return err->status;
	request->db = report_public_db(report);
	prof_db_read_through(request->db);
	status = entry->run(entry, request, err);
	ips_report_close(report);
	return status;
}

int report_command(int argc, char **argv)
{
	const struct report_verb *verb = report_verb_parse(&argc, &argv);
	const struct report_entry *entry;
	struct report_request request = {.out = stdout};
	struct command_line line;
	struct err err = {0};

	if (verb)
		return report_verb_run(verb, argc, argv);
	if (print_help(argc, argv, stdout))
		return 0;
	if (parse_command(&line, &request.render, argc, argv, &err) != ST_OK ||
	    resolve_entry(&line, &entry, &err) != ST_OK)
		return cli_fail(&command_report, &err);
	request.path = line.words[0];
	request.reevaluate = line.reevaluate;
	request.choice = line.choice;
	request.limit = line.limit;
	return run_entry(entry, &request, &err) == ST_OK ? 0 : cli_fail(&command_report, &err);
}
