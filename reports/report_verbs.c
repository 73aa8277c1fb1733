/*
 * The registry of verbs, and the render parameters of their tables. Threading: constant data only.
 * Ownership: literals.
 */
#include "reports/report_verbs.h"

#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "reports/report_find.h"

static const struct report_verb verb_table[] = {
	{"attention", &report_attention_cli, report_attention_run, .several = false},
	{"diff", &report_diff_cli, report_diff_run, .several = true},
	{"embeddings", &report_embeddings_cli, report_embeddings_run, .several = false},
	{"export", &report_export_cli, report_export_run, .several = false},
	{"import", &report_import_cli, report_import_run, .several = false},
	{"merge", &report_merge_cli, report_merge_run, .several = true},
	{"token-losses", &report_losses_cli, report_losses_run, .several = false},
	{"what-if", &report_whatif_cli, report_whatif_run, .several = false},
};

const struct report_verb *report_verbs(int *count)
{
	*count = (int)ARRAY_LEN(verb_table);
	return verb_table;
}

static const struct report_verb *verb_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(verb_table); i++)
		if (!strcmp(verb_table[i].name, name))
			return &verb_table[i];
	return NULL;
}

const struct report_verb *report_verb_parse(int *argc, char ***argv)
{
	const struct report_verb *verb;
	char **words = *argv;
	bool several = false;

	for (int i = 1; i < *argc; i++) {
		verb = verb_find(words[i]);
		several = several || (verb && verb->several);
	}
	if (!several)
		report_find_choose(argc, words, 1, "ipu-report", stderr);
	for (int at = 1; at < *argc && at <= 2; at++) {
		verb = verb_find(words[at]);
		if (!verb && words[at][0] == '-')
			return NULL;
		if (!verb)
			continue;
		if (at == 2) {
			char *report = words[1];

			words[1] = words[2];
			words[2] = report;
		}
		*argv = words + 1;
		*argc -= 1;
		return verb;
	}
	return NULL;
}

int report_verb_run(const struct report_verb *verb, int argc, char **argv)
{
	struct err err = {0};

	if (cli_standard(verb->command, argc, argv, stdout))
		return 0;
	return verb->run(argc, argv, &err) == ST_OK ? 0 : cli_fail(verb->command, &err);
}

enum status report_verb_render(struct report_render_params *out,
			       const struct report_table_options *options, struct err *err)
{
	if (options->csv && options->json)
		return err_set(err, ST_INVALID, "--csv and --json exclude each other");
	*out = (struct report_render_params){
		.format = options->csv    ? REPORT_AS_CSV
			  : options->json ? REPORT_AS_JSON
					  : REPORT_AS_TEXT,
		.width = options->width >= 0 ? options->width : cli_width(stdout),
		.tool = "ipu-report",
		.terminal = isatty(STDOUT_FILENO) == 1,
		.bold = cli_colour(stdout, options->color),
	};
	return ST_OK;
}
