/*
 * The verb `diff`: compare two runs as text, CSV or JSON, with a gate for scripts.
 *
 * Threading: none. Ownership: both databases are open for one comparison, which owns the texts.
 * Prints to standard output.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/fmt.h"
#include "common/mem.h"
#include "common/str.h"
#include "popvision/popvision.h"
#include "reports/report_find.h"
#include "reports/diff/report_diff.h"
#include "reports/report_verbs.h"
#include "reports/table/report_internal.h"
#include "profiler/prof_db.h"

/* How a comparison is shown, and what the gate accepts. */
struct diff_print {
	const char *source, *target; /* paths, as given on the command line */
	const char *unfinished[2];   /* sentences on missing data; NULL: none is missing */
	double gate;                 /* share of the larger value; negative: no gate */
	bool ignore_host;            /* the gate ignores host measurements */
	bool all;                    /* also show equal rows */
	int64_t limit;               /* rows per section of text; 0: all */
	struct report_render_params render;
};

/* Return true if @row exceeds the gate. */
static bool exceeds_gate(const struct report_diff_row *row, const struct diff_print *how)
{
	return how->gate >= 0 && !(how->ignore_host && row->measured) &&
	       report_diff_regressed(row, how->gate);
}

static struct report_cell to_cell(const struct report_diff_value *value)
{
	if (!value->known)
		return (struct report_cell){.type = PROF_NULL};
	if (value->text)
		return report_cell_of_text(value->text);
	return (struct report_cell){.type = PROF_REAL, .real = value->number};
}

/* ---- one table ------------------------------------------------------------------------------- */

/* Put a row, of @row or else of @part. */
static void put_row(struct report_table *table, const struct report_diff_row *row,
		    const struct report_diff_part *part, const struct diff_print *how,
		    struct err *err)
{
	static const struct report_diff_part none = {.epoch = IPS_NULL,
						     .weight_update = IPS_NULL,
						     .step = IPS_NULL,
						     .microbatch = IPS_NULL,
						     .replica = IPS_NULL,
						     .element = IPS_NULL};
	const struct report_diff_part *p = row ? &none : part;
	const struct report_value values[] = {
		{{"section", REPORT_TEXT},
		 report_cell_of_text(row ? row->section : "first_difference")},
		{{"key", REPORT_TEXT}, report_cell_of_text(row ? row->key : p->key)},
		{{"name", REPORT_TEXT},
		 report_cell_of_text(row         ? row->name
				     : p->column ? p->column
						 : p->what)},
		{{"source", REPORT_REAL},
		 row ? to_cell(&row->source) : report_cell_of_real(p->source)},
		{{"target", REPORT_REAL},
		 row ? to_cell(&row->target) : report_cell_of_real(p->target)},
		{{"diff", REPORT_REAL},
		 report_cell_of_real(row ? report_diff_amount(row) : p->target - p->source)},
		{{"diff_fraction", REPORT_FRACTION},
		 report_cell_of_real(row ? report_diff_fraction(row) : (double)NAN)},
		{{"measured", REPORT_BOOL}, report_cell_of_int(row ? row->measured : IPS_NULL)},
		{{"regressed", REPORT_BOOL},
		 report_cell_of_int(row ? exceeds_gate(row, how) : IPS_NULL)},
		{{"mode", REPORT_TEXT}, report_cell_of_text(p->mode)},
		{{"epoch", REPORT_NUMBER}, report_cell_of_int(p->epoch)},
		{{"weight_update", REPORT_NUMBER}, report_cell_of_int(p->weight_update)},
		{{"step", REPORT_NUMBER}, report_cell_of_int(p->step)},
		{{"microbatch", REPORT_NUMBER}, report_cell_of_int(p->microbatch)},
		{{"replica", REPORT_NUMBER}, report_cell_of_int(p->replica)},
		{{"layer", REPORT_TEXT}, report_cell_of_text(p->layer)},
		{{"kind", REPORT_TEXT}, report_cell_of_text(p->kind)},
		{{"phase", REPORT_TEXT}, report_cell_of_text(p->phase)},
		{{"element", REPORT_NUMBER}, report_cell_of_int(p->element)},
		{{"verdict", REPORT_TEXT},
		 report_cell_of_text(row ? report_diff_verdict(row) : "changed")},
	};

	report_table_put(table, values, ARRAY_LEN(values), err);
}

static void write_table(const struct report_diff *diff, const struct diff_print *how, FILE *out,
			struct err *err)
{
	struct report_table table;

	report_table_begin(&table, "diff", (int64_t)diff->count + 1, err);
	put_row(&table, NULL, &diff->part, how, err);
	table.row_count = diff->part.known; /* the columns are there in any case */
	for (size_t i = 0; i < diff->count; i++)
		if (how->all || !report_diff_same(&diff->rows[i]))
			put_row(&table, &diff->rows[i], NULL, how, err);
	if (!err_stuck(err))
		report_render(&table, &how->render, out, err);
	report_table_free(&table);
}

/* ---- text ------------------------------------------------------------------------------------ */

#define NUMBER_SIZE 256

/* Format a number with its unit, as a text cell. */
static struct report_cell format_cell(struct report_cell cell, enum report_quantity quantity,
				      char out[NUMBER_SIZE])
{
	const bool counts = quantity == REPORT_NS || quantity == REPORT_CYCLES ||
			    quantity == REPORT_BYTES || quantity == REPORT_COUNT;

	if (cell.type == PROF_REAL && fabs(cell.real) < 9e15 &&
	    (counts || (quantity != REPORT_REAL && cell.real == floor(cell.real))))
		cell = report_cell_of_int(llround(cell.real));
	return report_cell_of_text(report_cell_text(&cell, quantity, out, NUMBER_SIZE));
}

static void put_text_row(struct report_table *table, const struct report_diff_row *row,
			 const struct diff_print *how, struct err *err)
{
	const struct report_cell amount = report_cell_of_real(report_diff_amount(row));
	const enum report_quantity quantity = row->quantity;
	const char *gate = exceeds_gate(row, how) ? "worse" : NULL;
	char text[3][NUMBER_SIZE];
	const struct report_value values[] = {
		{{"what", REPORT_TEXT}, report_cell_of_text(row->key)},
		{{"value", REPORT_TEXT}, report_cell_of_text(row->name)},
		{{"source", REPORT_REAL}, format_cell(to_cell(&row->source), quantity, text[0])},
		{{"target", REPORT_REAL}, format_cell(to_cell(&row->target), quantity, text[1])},
		{{"diff", REPORT_REAL}, format_cell(amount, quantity, text[2])},
		{{"percent", REPORT_FRACTION}, report_cell_of_real(report_diff_fraction(row))},
		{{"verdict", REPORT_TEXT}, report_cell_of_text(report_diff_verdict(row))},
		{{"gate", REPORT_TEXT}, report_cell_of_text(gate)},
	};

	/* Without a gate its column is left out. */
	report_table_put(table, values, ARRAY_LEN(values) - (how->gate < 0), err);
}

static int compare_rows(const void *a, const void *b)
{
	const struct report_diff_row *x = *(const struct report_diff_row *const *)a;
	const struct report_diff_row *y = *(const struct report_diff_row *const *)b;
	const double p = fabs(report_diff_fraction(x)), q = fabs(report_diff_fraction(y));
	const double first = isnan(p) ? 1 : p, second = isnan(q) ? 1 : q;

	if (first != second)
		return first < second ? 1 : -1;
	return (x > y) - (x < y);
}

/* Print the rows of a section that are shown; if there are too many, those that differ most. Return
 * whether there are any. */
static bool print_section(const char *name, const struct report_diff *diff,
			  const struct diff_print *how, FILE *out, struct err *err)
{
	const struct report_diff_row **rows = mem_calloc(diff->count + 1, sizeof(*rows));
	size_t count = 0, shown;
	struct report_table table;

	if (!rows) {
		err_nomem(err);
		return false;
	}
	for (size_t i = 0; i < diff->count; i++)
		if (!strcmp(diff->rows[i].section, name) &&
		    (how->all || !report_diff_same(&diff->rows[i])))
			rows[count++] = &diff->rows[i];
	shown = count;
	if (how->limit > 0 && count > (size_t)how->limit) {
		shown = (size_t)how->limit;
		qsort(rows, count, sizeof(*rows), compare_rows);
	}
	report_table_begin(&table, name, (int64_t)shown, err);
	for (size_t i = 0; i < shown; i++)
		put_text_row(&table, rows[i], how, err);
	if (count > shown)
		table.note = arena_printf(&table.arena,
					  "The %zu that differ most of %zu (--limit 0: all).",
					  shown, count);
	if (shown > 0 && !err_stuck(err)) {
		fprintf(out, "\n%s\n", name);
		report_render(&table, &how->render, out, err);
	}
	report_table_free(&table);
	mem_free(rows);
	return shown > 0;
}

static void print_part(const struct report_diff *diff, FILE *out)
{
	const struct report_diff_part *part = &diff->part;
	char compared[FMT_SIZE], parted[FMT_SIZE];

	fmt_count(compared, diff->compared);
	if (part->known) {
		const struct {
			const char *name;
			int64_t value;
		} keys[] = {{"epoch", part->epoch},     {"weight update", part->weight_update},
			    {"step", part->step},       {"micro-batch", part->microbatch},
			    {"replica", part->replica}, {"element", part->element}};

		cli_print(out, "The numbers part; first, in order of execution:\n  %-7s %s",
			  part->what, part->key);
		if (part->kind && part->layer)
			cli_print(out, " (%s of %s)", part->kind, part->layer);
		fprintf(out, "\n");
		cli_print(out, "  where   %s", part->mode ? part->mode : "-");
		for (size_t i = 0; i < ARRAY_LEN(keys); i++)
			if (keys[i].value != IPS_NULL)
				fprintf(out, ", %s %" PRId64, keys[i].name, keys[i].value);
		fprintf(out, "\n");
		fprintf(out, "  %-7s %.17g in the source, %.17g in the target\n",
			part->column ? part->column : "value", part->source, part->target);
		fprintf(out, "%s of %s rows of tensors and metrics that both have differ.\n",
			fmt_count(parted, diff->parted), compared);
	} else if (diff->compared > 0) {
		fprintf(out, "All %s rows of tensors and metrics that both have are equal.\n",
			compared);
	} else {
		fprintf(out, "There are no rows of tensors or metrics that both have.\n");
	}
	if (diff->only_source > 0 || diff->only_target > 0)
		fprintf(out, "The source alone has %s rows of them, the target %s.\n",
			fmt_count(compared, diff->only_source),
			fmt_count(parted, diff->only_target));
}

static void print_run(const char *which, const char *path, const char *unfinished, FILE *out)
{
	cli_print(out, "%s  %s\n", which, path);
	if (unfinished)
		cli_print(out, "        %s\n", unfinished);
}

static void write_text(const struct report_diff *diff, const struct diff_print *how, FILE *out,
		       struct err *err)
{
	char glance[REPORT_GLANCE_SIZE];
	size_t count;
	const char *const *names = report_diff_sections(&count);
	bool printed = false;
	const char *const *digest;

	print_run("source", how->source, how->unfinished[0], out);
	print_run("target", how->target, how->unfinished[1], out);
	if (report_diff_glance(diff, glance)[0])
		fprintf(out, "\n%s\n", glance);
	fprintf(out, "\n");
	if (diff->numbers)
		print_part(diff, out);
	digest = diff->weights;
	if (digest[0] && digest[1]) {
		if (!strcmp(digest[0], digest[1]))
			fprintf(out, "The weights at the end are the same (XXH3 %s).\n", digest[0]);
		else
			fprintf(out, "The weights at the end differ (XXH3 %s, %s).\n", digest[0],
				digest[1]);
	}
	for (size_t i = 0; !err_stuck(err) && i < count; i++)
		printed |= print_section(names[i], diff, how, out, err);
	if (!err_stuck(err) && !printed)
		fprintf(out, "No other difference.\n");
	else if (!err_stuck(err) && report_diff_equal(diff))
		fprintf(out, "\nNothing differs but what was measured on the host.\n");
}

#define LIMIT_DEFAULT 20
#define NAMED_MAX     3   /* regressions named in the error */
#define NAMED_BYTES   120 /* of the name of one, which may be a kernel of thousands */

struct diff_line {
	const char *words[2];
	int word_count;
	const char *sections, *gate;
	struct report_table_options table;
	struct diff_print how;
};

static const struct cli_option diff_options[] = {
	{.name = "--gate",
	 .argument = "PERCENT",
	 .help = "Exit with 1 where B is worse than A by more than this (\"5%\"): "
		 "slower, larger, a longer bubble, a higher loss, more broken "
		 "health rules. Host times vary by themselves: give them room.",
	 .field = CLI_FIELD(TEXT, struct diff_line, gate)},
	{.name = "--ignore-host",
	 .help = "What was measured on the host passes the gate; what is "
		 "simulated and learnt does not.",
	 .field = CLI_FIELD(SWITCH, struct diff_line, how.ignore_host)},
	{.name = "--sections",
	 .argument = "LIST",
	 .help = "Only these, separated by commas: settings, totals, bubbles, "
		 "stages, time_split, layers, operations, memory, liveness, "
		 "metrics, health, tensors, spans.",
	 .field = CLI_FIELD(TEXT, struct diff_line, sections)},
	{.name = "--all",
	 .help = "Show what is the same too.",
	 .field = CLI_FIELD(SWITCH, struct diff_line, how.all)},
	{.name = "--limit",
	 .letter = 'n',
	 .argument = "ROWS",
	 .help = "At most so many rows of a section, 20 by default; 0: all. CSV "
		 "and JSON have all.",
	 .field = CLI_FIELD(NUMBER, struct diff_line, how.limit)},
	REPORT_OPTION_CSV(struct diff_line, "One table as comma separated values."),
	REPORT_OPTION_JSON(struct diff_line, "One table as a JSON object."),
	REPORT_OPTION_WIDTH(struct diff_line),
	REPORT_OPTION_COLOR(struct diff_line),
	REPORT_OPTION_UNLIMITED,
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

/* Parse a percentage: "5%", "5" and "0.5 %" are accepted. */
static enum status parse_gate(const char *text, double *out, struct err *err)
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

static enum status parse_line(struct diff_line *line, int argc, char **argv, struct err *err)
{
	const struct cli_words words = {line->words, ARRAY_LEN(line->words), &line->word_count,
					"two runs are enough"};

	*line = (struct diff_line){.table = {.width = -1},
				   .how = {.gate = -1, .limit = LIMIT_DEFAULT}};
	if (cli_parse(&report_diff_cli, argc, argv, NULL, line, &words, err) != ST_OK ||
	    (line->gate && parse_gate(line->gate, &line->how.gate, err) != ST_OK) ||
	    report_verb_render(&line->how.render, &line->table, err) != ST_OK)
		return err->status;
	if (line->word_count < 2)
		return err_set(err, ST_INVALID,
			       "two runs are needed: ipu-report diff A B (%s given)",
			       line->word_count == 1 ? "one" : "none");
	return ST_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Fail with ST_FAILED and the regressions if the gate is exceeded. */
static void check_gate(const struct report_diff *diff, const struct diff_print *how,
		       struct err *err)
{
	struct str names = {0};
	char key[NAMED_BYTES];
	size_t worse = 0;

	for (size_t i = 0; i < diff->count; i++) {
		const struct report_diff_row *row = &diff->rows[i];

		if (!exceeds_gate(row, how))
			continue;
		str_shorten(key, sizeof(key), row->key);
		if (worse++ < NAMED_MAX)
			str_addf(&names, "%s%s %s by %.3g %%", worse > 1 ? ", " : "", key,
				 row->name, fabs(report_diff_fraction(row)) * 100);
	}
	if (worse > 0)
		err_set(err, ST_FAILED, "the gate of %.6g %% is exceeded: %s%s", how->gate * 100,
			str_peek(&names), worse > NAMED_MAX ? ", ..." : "");
	str_free(&names);
}

enum status report_diff_run(int argc, char **argv, struct err *err)
{
	struct ips_report *reports[2] = {NULL, NULL};
	char unfinished[2][REPORT_UNFINISHED_SIZE];
	struct report_diff diff = {0};
	struct diff_line line;

	if (parse_line(&line, argc, argv, err) != ST_OK)
		return err->status;
	line.how.source = line.words[0];
	line.how.target = line.words[1];
	for (size_t i = 0; i < ARRAY_LEN(reports) && !err_stuck(err); i++)
		if (report_find_resolve(&line.words[i], "ipu-report diff", err) == ST_OK &&
		    report_public_open(&reports[i], line.words[i], err) == ST_OK)
			line.how.unfinished[i] =
				report__unfinished(report_public_db(reports[i]), unfinished[i]);
	if (!err_stuck(err))
		report_diff_get(&diff, report_public_db(reports[0]), report_public_db(reports[1]),
				line.sections, err);
	if (!err_stuck(err) && line.how.render.format == REPORT_AS_TEXT)
		write_text(&diff, &line.how, stdout, err);
	else if (!err_stuck(err))
		write_table(&diff, &line.how, stdout, err);
	if (!err_stuck(err))
		check_gate(&diff, &line.how, err);
	report_diff_free(&diff);
	ips_report_close(reports[0]);
	ips_report_close(reports[1]);
	return err->status;
}
