/*
 * What every command prints of itself, from the table of its options: the help, the version, the
 * manual page, and the completions for bash and zsh.
 *
 * Threading: none. Ownership: tables are borrowed.
 */
#include "common/cli.h"

#include <ctype.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

#define HELP_WIDTH  80
#define HELP_COLUMN 26 /* where the help texts of options begin */
#define NAME_SIZE   64

/* ---- help ------------------------------------------------------------------------------------ */

/* Print @text wrapped at HELP_WIDTH with a final line feed; lines after the first are indented by
 * @indent. The cursor is at @column. Line feeds in @text are kept. */
static void cli_wrap(FILE *out, const char *text, size_t indent, size_t column)
{
	bool first = true;

	while (*text) {
		size_t blanks = strspn(text, " "), length, columns;

		text += blanks;
		if (*text == '\n') {
			fprintf(out, "\n%*s", text[1] && text[1] != '\n' ? (int)indent : 0, "");
			column = indent;
			first = true;
			text++;
			continue;
		}
		length = strcspn(text, " \n");
		if (!length)
			break;

		/* As many columns as characters of UTF-8. */
		columns = 0;
		for (size_t i = 0; i < length; i++)
			columns += ((unsigned char)text[i] & 0xc0) != 0x80;

		if (!first && column + 1 + columns > HELP_WIDTH) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
			first = true;
		}
		fprintf(out, "%s%.*s", first ? "" : " ", (int)length, text);
		column += columns + !first;
		first = false;
		text += length;
	}
	fputc('\n', out);
}

static void cli_help_option(FILE *out, const struct cli_option *option)
{
	char left[128];
	int used;

	if (option->letter)
		used = snprintf(left, sizeof(left), "  -%c, %s", option->letter, option->name);
	else
		used = snprintf(left, sizeof(left), "      %s", option->name);
	if (option->argument && (size_t)used < sizeof(left))
		snprintf(left + used, sizeof(left) - (size_t)used, " %s", option->argument);

	if (strlen(left) + 2 > HELP_COLUMN)
		fprintf(out, "%s\n%*s", left, HELP_COLUMN, "");
	else
		fprintf(out, "%-*s", HELP_COLUMN, left);
	cli_wrap(out, option->help, HELP_COLUMN, HELP_COLUMN);
}

/* Call @show for each "command\texplanation" line. */
static void cli_for_each_example(const char *examples, FILE *out,
				 void (*show)(FILE *out, const char *command, int length,
					      const char *why))
{
	while (examples && *examples) {
		size_t length = strcspn(examples, "\n");
		size_t command = strcspn(examples, "\t\n");
		char why[1024] = "";

		if (command < length)
			str_copy(why, min(length - command, sizeof(why)), examples + command + 1);
		if (length)
			show(out, examples, (int)command, why);
		examples += length + (examples[length] == '\n');
	}
}

static void cli_help_example(FILE *out, const char *command, int length, const char *why)
{
	fprintf(out, "  %.*s\n", length, command);
	if (*why) {
		fprintf(out, "      ");
		cli_wrap(out, why, 6, 6);
	}
}

void cli_help(const struct cli_command *command, FILE *out)
{
	const struct cli_option *row;
	int used = fprintf(out, "Usage: %s ", command->name);

	cli_wrap(out, command->synopsis ? command->synopsis : "", used > 0 ? (size_t)used : 0,
		 used > 0 ? (size_t)used : 0);
	if (command->about) {
		fputc('\n', out);
		cli_wrap(out, command->about, 0, 0);
	}

	fprintf(out, "\nOptions:\n");
	for (size_t i = 0; (row = cli__row(command, i)); i++)
		cli_help_option(out, row);

	if (command->examples) {
		fprintf(out, "\nExamples:\n");
		cli_for_each_example(command->examples, out, cli_help_example);
	}
	fprintf(out, "\nExit codes: 0 done, 1 the work failed, 2 the request was wrong.\n");
}

/* ---- manual page ----------------------------------------------------------------------------- */

/* Escape for roff: a point or quote that begins a line would be a request. */
static void cli_roff(FILE *out, const char *text, size_t length)
{
	bool start = true;

	for (size_t i = 0; i < length; i++) {
		char c = text[i];

		if (start && (c == '.' || c == '\''))
			fputs("\\&", out);
		if (c == '\\')
			fputs("\\e", out);
		else if (c == '-')
			fputs("\\-", out);
		else
			fputc(c, out);
		start = c == '\n';
	}
}

/* Return whether the first line of @text is a title like FILES with text below it. */
static bool cli_is_title(const char *text, size_t length, size_t *title)
{
	*title = 0;
	while (*title < length && (isupper((unsigned char)text[*title]) || text[*title] == ' '))
		++*title;
	return *title > 0 && *title < length && text[*title] == '\n';
}

/* Paragraphs are separated by blank lines; one that begins with a title starts a section. */
static void cli_man_paragraphs(FILE *out, const char *text)
{
	bool first = true;

	while (text && *text) {
		const char *end = strstr(text, "\n\n");
		size_t length = end ? (size_t)(end - text) : strlen(text), title;
		const char *next = end ? end + 2 : text + length;

		while (length > 0 && text[length - 1] == '\n')
			length--;
		if (cli_is_title(text, length, &title)) {
			fprintf(out, ".SH %c%.*s%c\n", '"', (int)title, text, '"');
			text += title + 1;
			length -= title + 1;
		} else if (!first) {
			fputs(".PP\n", out);
		}
		cli_roff(out, text, length);
		fputc('\n', out);
		first = false;
		text = next;
	}
}

static void cli_man_option(FILE *out, const struct cli_option *option)
{
	fputs(".TP\n", out);
	if (option->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
	fputs("\\fB", out);
	cli_roff(out, option->name, strlen(option->name));
	fputs("\\fR", out);
	if (option->argument) {
		fputs(" \\fI", out);
		cli_roff(out, option->argument, strlen(option->argument));
		fputs("\\fR", out);
	}
	fputc('\n', out);
	cli_roff(out, option->help, strlen(option->help));
	fputc('\n', out);
}

static void cli_man_example(FILE *out, const char *command, int length, const char *why)
{
	fputs(".TP\n\\fB", out);
	cli_roff(out, command, (size_t)length);
	fputs("\\fR\n", out);
	cli_roff(out, why, strlen(why));
	fputc('\n', out);
}

static void cli_man(const struct cli_command *command, FILE *out)
{
	const struct cli_option *row;
	char page[CLI_NAME_SIZE];

	/* The page of "ipu-report diff" is ipu-report-diff: page names contain no blank. */
	str_copy(page, sizeof(page), command->name);
	for (char *p = page; *p; p++)
		*p = *p == ' ' ? '-' : *p;

	fputs(".TH ", out);
	for (const char *p = page; *p; p++)
		fputc(toupper((unsigned char)*p), out);
	fprintf(out, " 1 \"\" \"ipuscope %s\" \"User Commands\"\n.SH NAME\n", IPUSCOPE_VERSION);
	cli_roff(out, page, strlen(page));
	fputs(" \\- ", out);
	cli_roff(out, command->summary, strlen(command->summary));
	fputs("\n.SH SYNOPSIS\n\\fB", out);
	cli_roff(out, command->name, strlen(command->name));
	fputs("\\fR ", out);
	cli_roff(out, command->synopsis, strlen(command->synopsis));
	fputs("\n.SH DESCRIPTION\n", out);
	cli_man_paragraphs(out, command->about);

	fputs(".SH OPTIONS\n", out);
	for (size_t i = 0; (row = cli__row(command, i)); i++)
		cli_man_option(out, row);
	if (command->examples) {
		fputs(".SH EXAMPLES\n", out);
		cli_for_each_example(command->examples, out, cli_man_example);
	}
	fputs(".SH \"EXIT STATUS\"\n"
	      ".TP\n0\nDone.\n"
	      ".TP\n1\nThe work failed, or a gate was exceeded.\n"
	      ".TP\n2\nThe request was wrong.\n",
	      out);
	if (command->details) {
		size_t title;

		/* Without a heading the text would belong to EXIT STATUS. */
		if (!cli_is_title(command->details, strlen(command->details), &title))
			fputs(".SH NOTES\n", out);
		cli_man_paragraphs(out, command->details);
	}
}

/* ---- completions ----------------------------------------------------------------------------- */

/* Name of the shell function: "ipu-train" is "_ipu_train". */
static void completion_function(const struct cli_command *command, char out[NAME_SIZE])
{
	snprintf(out, NAME_SIZE, "_%s", command->name);
	for (char *p = out; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
}

/* The verb of "ipu-report diff" is "diff". */
static const char *completion_verb(const struct cli_command *verb)
{
	const char *blank = strrchr(verb->name, ' ');

	return blank ? blank + 1 : verb->name;
}

/* Verb @at of @command; NULL past the last. */
static const struct cli_command *verb_at(const struct cli_command *command, size_t at)
{
	return command->verb ? command->verb(at) : NULL;
}

static bool wants_file(const char *argument)
{
	static const char *const words[] = {"FILE", "PATH", "DIR", "FOLDER", "RUN", "REPORT"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (argument && !strcmp(argument, words[i]))
			return true;
	return false;
}

/* Print the words of the second argument and the verbs, separated by blanks. */
static void print_second(const struct cli_command *command, FILE *out)
{
	const struct cli_command *verb;
	const char *word, *gap = "";

	for (size_t i = 0; command->second && (word = command->second(i)); i++) {
		fprintf(out, "%s%s", gap, word);
		gap = " ";
	}
	for (size_t i = 0; (verb = verb_at(command, i)); i++) {
		fprintf(out, "%s%s", gap, completion_verb(verb));
		gap = " ";
	}
}

static void print_verbs(const struct cli_command *command, const char *between, FILE *out)
{
	const struct cli_command *verb;

	for (size_t i = 0; (verb = verb_at(command, i)); i++)
		fprintf(out, "%s%s", i ? between : "", completion_verb(verb));
}

/* Print the shell pipeline that lists the first argument's names, up to the first empty line. */
static void print_names(const struct cli_command *command, FILE *out)
{
	fprintf(out, "%s 2>/dev/null | sed -e \"/./b\" -e q | cut -d \" \" -f 1", command->names);
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* A verb is the first word, or the second one after its argument: then its function completes as if
 * the verb came first. */
static void bash_verbs(const struct cli_command *command, FILE *out)
{
	const struct cli_command *verb;
	char function[NAME_SIZE];

	if (!verb_at(command, 0))
		return;
	fprintf(out, "\tlocal at\n\tfor at in 1 2; do\n"
		     "\t\t[[ $at -lt $COMP_CWORD ]] || break\n"
		     "\t\tcase \"${COMP_WORDS[at]}\" in\n");
	for (size_t i = 0; (verb = verb_at(command, i)); i++) {
		completion_function(verb, function);
		fprintf(out,
			"\t\t%s)\n\t\t\tCOMP_WORDS=(\"${COMP_WORDS[@]:at:1}\" "
			"\"${COMP_WORDS[@]:1:at-1}\" "
			"\"${COMP_WORDS[@]:at+1}\")\n"
			"\t\t\tCOMP_CWORD=$((COMP_CWORD - 1))\n"
			"\t\t\t%s\n\t\t\treturn\n\t\t\t;;\n",
			completion_verb(verb), function);
	}
	fprintf(out, "\t\tesac\n\tdone\n");
}

static void bash_words(const struct cli_command *command, FILE *out)
{
	bool first = command->words && !wants_file(command->words);

	if (first) {
		fprintf(out,
			"\tif [[ $COMP_CWORD -eq 1 ]]; then\n"
			"\t\tCOMPREPLY=($(compgen -W '%s' -- \"$cur\"))\n"
			"\telse\n"
			"\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
			"\tfi\n",
			command->words);
		return;
	}
	if (command->words)
		fprintf(out, "\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n");
	if (command->names) {
		fprintf(out, "\tif [[ $COMP_CWORD -eq 1 ]]; then\n"
			     "\t\tCOMPREPLY+=($(compgen -W \"$(");
		print_names(command, out);
		fprintf(out, ")\" -- \"$cur\"))\n\tfi\n");
	}
	if (verb_at(command, 0)) {
		fprintf(out, "\tif [[ $COMP_CWORD -eq 1 ]]; then\n"
			     "\t\tCOMPREPLY+=($(compgen -W '");
		print_verbs(command, " ", out);
		fprintf(out, "' -- \"$cur\"))\n\tfi\n");
	}
	if (command->second) {
		fprintf(out, "\tif [[ $COMP_CWORD -eq 2 ]]; then\n"
			     "\t\tCOMPREPLY=($(compgen -W '");
		print_second(command, out);
		fprintf(out, "' -- \"$cur\"))\n\tfi\n");
	}
}

static void bash_function(const struct cli_command *command, FILE *out)
{
	const struct cli_option *row;
	char function[NAME_SIZE];

	completion_function(command, function);
	fprintf(out, "%s()\n{\n", function);
	bash_verbs(command, out);
	fprintf(out,
		"\tlocal cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
		"\tCOMPREPLY=()\n"
		"\tif [[ $cur == '=' ]]; then\n"
		"\t\tcur=''\n"
		"\telif [[ $prev == '=' ]]; then\n"
		"\t\tprev=\"${COMP_WORDS[COMP_CWORD-2]}\"\n"
		"\tfi\n"
		"\tcase \"$prev\" in\n");
	for (size_t i = 0; (row = cli__row(command, i)); i++) {
		if (!row->argument)
			continue;

		fprintf(out, "\t%s", row->name);
		if (row->letter)
			fprintf(out, "|-%c", row->letter);
		fprintf(out, ")\n");
		if (row->choices)
			fprintf(out, "\t\tCOMPREPLY=($(compgen -W '%s' -- \"$cur\"))\n",
				row->choices);
		else if (wants_file(row->argument))
			fprintf(out, "\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n");
		fprintf(out, "\t\treturn\n\t\t;;\n");
	}
	fprintf(out, "\tesac\n\tif [[ $cur == -* ]]; then\n\t\tCOMPREPLY=($(compgen -W '");
	for (size_t i = 0; (row = cli__row(command, i)); i++)
		fprintf(out, "%s%s", i ? " " : "", row->name);
	fprintf(out, "' -- \"$cur\"))\n\t\treturn\n\tfi\n");
	bash_words(command, out);
	fprintf(out, "}\n");
}

/* One shell function for each verb and one for the command. */
static void completion_bash(const struct cli_command *command, FILE *out)
{
	const struct cli_command *verb;
	char function[NAME_SIZE];

	completion_function(command, function);
	fprintf(out, "# bash completion for %s\n", command->name);
	for (size_t i = 0; (verb = verb_at(command, i)); i++)
		bash_function(verb, out);
	bash_function(command, out);
	fprintf(out, "complete -o filenames -F %s %s\n", function, command->name);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* Print text inside single quotes of zsh's _arguments, with brackets and colons escaped. */
static void zsh_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (strchr("[]:\\", *text))
			fprintf(out, "\\%c", *text);
		else
			fputc(*text == '\n' ? ' ' : *text, out);
	}
}

static void zsh_option(const struct cli_option *option, FILE *out)
{
	const char *value = option->argument ? "=" : "";

	if (option->letter)
		fprintf(out, "\t'(-%c %s)'{-%c,%s%s}'[", option->letter, option->name,
			option->letter, option->name, value);
	else
		fprintf(out, "\t'%s%s[", option->name, value);
	zsh_text(out, option->help);
	fputc(']', out);
	if (option->argument) {
		fputc(':', out);
		zsh_text(out, option->argument);
		if (option->choices)
			fprintf(out, ":(%s)", option->choices);
		else
			fprintf(out, ":%s", wants_file(option->argument) ? "_files" : " ");
	}
	fprintf(out, "' \\\n");
}

static void zsh_verbs(const struct cli_command *command, FILE *out)
{
	const struct cli_command *verb;
	char function[NAME_SIZE];

	if (!verb_at(command, 0))
		return;
	fprintf(out, "\tlocal -i at\n\tfor at in 2 3; do\n\t\t(( at < CURRENT )) || break\n"
		     "\t\tcase ${words[at]} in\n");
	for (size_t i = 0; (verb = verb_at(command, i)); i++) {
		completion_function(verb, function);
		fprintf(out,
			"\t\t(%s)\n\t\t\twords=(\"${words[at]}\" \"${(@)words[2,at-1]}\" "
			"\"${(@)words[at+1,-1]}\")\n"
			"\t\t\t(( CURRENT -= 1 ))\n\t\t\t%s\n\t\t\treturn\n\t\t\t;;\n",
			completion_verb(verb), function);
	}
	fprintf(out, "\t\tesac\n\tdone\n");
}

static void zsh_function(const struct cli_command *command, FILE *out)
{
	const struct cli_option *row;
	char function[NAME_SIZE];

	completion_function(command, function);
	fprintf(out, "%s() {\n", function);
	zsh_verbs(command, out);
	fprintf(out, "\t_arguments -s \\\n");
	for (size_t i = 0; (row = cli__row(command, i)); i++)
		zsh_option(row, out);
	if (command->words && !wants_file(command->words)) {
		fprintf(out, "\t'1:word:(%s)' \\\n", command->words);
	} else if (verb_at(command, 0) || command->names) {
		fprintf(out, "\t'1: :{%scompadd -- ", command->words ? "_files; " : "");
		print_verbs(command, " ", out);
		if (command->names) {
			fprintf(out, " ${(f)\"$(");
			print_names(command, out);
			fprintf(out, ")\"}");
		}
		fprintf(out, "}' \\\n");
	}
	if (command->second) {
		fprintf(out, "\t'2:name:(");
		print_second(command, out);
		fprintf(out, ")' \\\n");
	}
	fprintf(out, "\t'*:file:_files'\n}\n");
}

static void completion_zsh(const struct cli_command *command, FILE *out)
{
	const struct cli_command *verb;
	char function[NAME_SIZE];

	completion_function(command, function);
	fprintf(out, "#compdef %s\n", command->name);
	for (size_t i = 0; (verb = verb_at(command, i)); i++)
		zsh_function(verb, out);
	zsh_function(command, out);
	/*
	 * When zsh autoloads the file from $fpath it calls the file as the function, which must
	 * complete at once. Otherwise the file was sourced.
	 */
	fprintf(out,
		"if [ \"$funcstack[1]\" = \"_%s\" ]; then\n\t%s \"$@\"\n"
		"else\n\tcompdef %s %s\nfi\n",
		command->name, function, function, command->name);
}

/* ---- standard options ------------------------------------------------------------------------ */

static void cli_version(const struct cli_command *command, FILE *out)
{
	fprintf(out, "%s %s\n", command->name, IPUSCOPE_VERSION);
}

static void cli_run_standard(const struct cli_command *command, const struct cli_option *standard,
			     const char *value, FILE *out)
{
	static void (*const shows[CLI__STANDARDS])(const struct cli_command *, FILE *) = {
		[CLI__HELP] = cli_help,
		[CLI__VERSION] = cli_version,
		[CLI__MAN] = cli_man,
	};
	const size_t row = (size_t)(standard - cli__standards);

	if (row != CLI__COMPLETION)
		shows[row](command, out);
	else if (!strcmp(value, "bash"))
		completion_bash(command, out);
	else
		completion_zsh(command, out); /* cli_next() accepts no other shell */
}

static bool cli_is_standard(const struct cli_option *option)
{
	for (size_t i = 0; i < CLI__STANDARDS; i++)
		if (option == &cli__standards[i])
			return true;
	return false;
}

bool cli_standard(const struct cli_command *command, int argc, char **argv, FILE *out)
{
	struct cli_argument argument;
	struct cli_walk walk;
	bool more;

	/* Ignore errors: `--colr --help` asks for help. */
	cli_begin(&walk, command, argc, argv, true);
	do {
		enum status status = cli_next(&walk, &argument, &more, NULL);

		if (more && status == ST_OK && cli_is_standard(argument.option)) {
			cli_run_standard(command, argument.option, argument.value, out);
			return true;
		}
	} while (more);
	return false;
}
