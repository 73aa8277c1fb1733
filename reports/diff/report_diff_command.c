/*
 * The verb `diff`: two runs beside each other, and a gate for scripts.
 *
 * Threading: none. Ownership: both databases are open for one comparison. Prints, as the front end
 * does.
 */
#include "reports/diff/report_diff_command.h"

#include <math.h>
#include <string.h>

#include "common/cli.h"
#include "common/mem.h"
#include "common/str.h"
#include "reports/report_find.h"
#include "reports/table/report_internal.h"
#include "popvision/public/report_public.h"
#include "reports/report_verbs.h"

#define LIMIT_DEFAULT 20
#define NAMED_MAX     3 /* regressions that the closing line names */

enum {
	OPTION_GATE,
	OPTION_IGNORE_HOST,
	OPTION_SECTIONS,
	OPTION_ALL,
	OPTION_LIMIT,
	OPTION_CSV,
	OPTION_JSON,
	OPTION_WIDTH,
	OPTION_COLOR
};

struct diff_line {
	const char *words[2];
	int word_count;
	const char *sections, *color;
	int width; /* -1: not given */
	struct report_diff_print how;
};

static const struct cli_option diff_options[] = {
	[OPTION_GATE] = {.name = "--gate",
			 .argument = "PERCENT",
			 .help = "Exit with 1 where B is worse than A by more than this (\"5%\"): "
				 "slower, larger, a longer bubble, a higher loss, more broken "
				 "health rules. Host times vary by themselves: give them room."},
	[OPTION_IGNORE_HOST] = {.name = "--ignore-host",
				.help = "What was measured on the host passes the gate; what is "
					"simulated and learnt does not.",
				.field = CLI_FIELD(SWITCH, struct diff_line, how.ignore_host)},
	[OPTION_SECTIONS] = {.name = "--sections",
			     .argument = "LIST",
			     .help = "Only these, separated by commas: settings, totals, bubbles, "
				     "stages, time_split, layers, operations, memory, liveness, "
				     "metrics, health, tensors, spans.",
			     .field = CLI_FIELD(TEXT, struct diff_line, sections)},
	[OPTION_ALL] = {.name = "--all",
			.help = "Show what is the same too.",
			.field = CLI_FIELD(SWITCH, struct diff_line, how.all)},
	[OPTION_LIMIT] = {.name = "--limit",
			  .letter = 'n',
			  .argument = "ROWS",
			  .help = "At most so many rows of a section, 20 by default; 0: all. CSV "
				  "and JSON have all.",
			  .field = CLI_FIELD(NUMBER, struct diff_line, how.limit)},
	[OPTION_CSV] = {.name = "--csv", .help = "One table as comma separated values."},
	[OPTION_JSON] = {.name = "--json", .help = "One table as a JSON object."},
	[OPTION_WIDTH] = REPORT_OPTION_WIDTH(struct diff_line),
	[OPTION_COLOR] = REPORT_OPTION_COLOR(struct diff_line),
};

const struct cli_command report_diff_cli = {
	.name = "ipu-report diff",
	.synopsis = "A B [--gate PERCENT] [--csv|--json]",
	.summary = "two runs beside each other, and where their numbers part",
	.about =
		"Compare run B with run A (the source with the target): settings, times, bubbles, "
		"stages, operations, memory, metrics, health, tensors and spans, aligned by what "
		"they are called. Percentages are of the larger of the two values.\n\n"
		"Where both recorded statistics of tensors, captures or metrics of steps, the "
		"first "
		"one that differs is named, in order of execution: forward through the layers, the "
		"loss, backward, and the weight update.\n\n"
		"What was measured on the host is never the same twice, and is not what makes two "
		"runs different.",
	.options = diff_options,
	.option_count = ARRAY_LEN(diff_options),
	.examples = "ipu-report diff before.db after.db\tWhat differs.\n"
		    "ipu-report diff base.db new.db --gate 5% --ignore-host\tFail where the "
		    "simulated run got worse by more than 5 %.\n"
		    "ipu-report diff a.db b.db --sections spans -n 0\tAll spans by name.\n",
	.words = "FILE",
};

/* ---- arguments ------------------------------------------------------------------------------- */

/* "5%", "5" and "0.5 %" alike. */
static enum status diff_gate(const char *text, double *out, struct err *err)
{
	char number[64];
	size_t length = strlen(text);

	while (length > 0 && (text[length - 1] == '%' || text[length - 1] == ' '))
		length--;
	if (length >= sizeof(number))
		length = 0;
	memcpy(number, text, length);
	number[length] = '\0';
	if (!str_to_double(number, out) || !isfinite(*out) || *out < 0)
		return err_set(err, ST_INVALID, "--gate: \"%s\" is not a percentage such as 5%%",
			       text);
	*out /= 100;
	return ST_OK;
}

static enum status diff_option(struct diff_line *line, const struct cli_argument *argument,
			       struct err *err)
{
	struct report_diff_print *how = &line->how;

	switch (argument->option - diff_options) {
	case OPTION_GATE:
		return diff_gate(argument->value, &how->gate, err);
	case OPTION_CSV:
	case OPTION_JSON:
		if (how->render.format != REPORT_AS_TEXT)
			return err_set(err, ST_INVALID, "--csv and --json exclude each other");
		how->render.format = argument->option - diff_options == OPTION_CSV ? REPORT_AS_CSV
										   : REPORT_AS_JSON;
		break;
	default:
		return cli_set(argument, line, err);
	}
	return ST_OK;
}

static enum status diff_parse(struct diff_line *line, int argc, char **argv, struct err *err)
{
	struct cli_argument argument;
	struct cli_walk walk;
	enum status status;
	bool more;

	*line = (struct diff_line){.width = -1, .how = {.gate = -1, .limit = LIMIT_DEFAULT}};
	cli_begin(&walk, &report_diff_cli, argc, argv, false);
	while ((status = cli_next(&walk, &argument, &more, err)) == ST_OK && more) {
		if (argument.option)
			status = diff_option(line, &argument, err);
		else if (line->word_count < (int)ARRAY_LEN(line->words))
			line->words[line->word_count++] = argument.value;
		else
			status = err_set(err, ST_INVALID,
					 "one word too many: \"%s\" (two runs are enough)",
					 argument.value);
		if (status != ST_OK)
			return status;
	}
	if (status == ST_OK && line->word_count < 2)
		return err_set(err, ST_INVALID,
			       "two runs are needed: ipu-report diff A B (%s given)",
			       line->word_count == 1 ? "one" : "none");
	return status;
}

/* ---- the work -------------------------------------------------------------------------------- */

bool report_diff_gated(const struct report_diff_row *row, const struct report_diff_print *how)
{
	return how->gate >= 0 && !(how->ignore_host && row->measured) &&
	       report_diff_regressed(row, how->gate);
}

/* ST_FAILED, and what is worse, where the gate is exceeded. */
static enum status diff_judge(const struct report_diff *diff, const struct report_diff_print *how,
			      struct err *err)
{
	struct str names = {0};
	size_t worse = 0;

	for (size_t i = 0; i < diff->count; i++) {
		const struct report_diff_row *row = &diff->rows[i];

		if (!report_diff_gated(row, how))
			continue;
		if (worse++ < NAMED_MAX)
			str_addf(&names, "%s%s %s by %.3g %%", worse > 1 ? ", " : "", row->key,
				 row->name, fabs(report_diff_fraction(row)) * 100);
	}
	if (worse > 0)
		err_set(err, ST_FAILED, "the gate of %.6g %% is exceeded: %s%s", how->gate * 100,
			str_peek(&names), worse > NAMED_MAX ? ", ..." : "");
	str_free(&names);
	return worse > 0 ? ST_FAILED : ST_OK;
}

static enum status diff_show(const struct diff_line *line, struct prof_db *source,
			     struct prof_db *target, struct err *err)
{
	struct report_diff diff;
	enum status status = report_diff_get(&diff, source, target, line->sections, err);

	if (status != ST_OK)
		return status;
	if (line->how.render.format == REPORT_AS_TEXT)
		status = report_diff_text(&diff, &line->how, stdout, err);
	else
		status = report_diff_stream(&diff, &line->how, stdout, err);
	if (status == ST_OK)
		status = diff_judge(&diff, &line->how, err);
	report_diff_free(&diff);
	return status;
}

static enum status diff_run(struct diff_line *line, struct err *err)
{
	struct ips_report *reports[2] = {NULL, NULL};
	char unfinished[2][REPORT_UNFINISHED_SIZE];
	enum status status = ST_OK;

	line->how.source = line->words[0];
	line->how.target = line->words[1];
	line->how.render = report_verb_render(line->how.render.format, line->width, line->color);
	for (size_t i = 0; status == ST_OK && i < ARRAY_LEN(reports); i++) {
		status = report_find_check(line->words[i], "ipu-report diff", err);
		if (status == ST_OK)
			status = report_public_open(&reports[i], line->words[i], err);
	}
	for (size_t i = 0; status == ST_OK && i < ARRAY_LEN(reports); i++)
		line->how.unfinished[i] =
			report__unfinished(report_public_db(reports[i]), unfinished[i]);
	if (status == ST_OK)
		status = diff_show(line, report_public_db(reports[0]), report_public_db(reports[1]),
				   err);
	ips_report_close(reports[0]);
	ips_report_close(reports[1]);
	return status;
}

int report_diff_command(int argc, char **argv)
{
	struct diff_line line;
	struct err err = {0};
	enum status status;

	if (cli_standard(&report_diff_cli, argc, argv, stdout))
		return 0;
	status = diff_parse(&line, argc, argv, &err);
	if (status == ST_OK)
		status = diff_run(&line, &err);
	return status == ST_OK ? 0 : cli_fail(&report_diff_cli, &err);
}
