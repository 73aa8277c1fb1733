/*
 * Completions for bash and zsh: one shell function per command and one per verb.
 *
 * Threading: none. Ownership: tables are borrowed.
 */
#include "common/cli.h"

#include <ctype.h>
#include <string.h>

#include "common/mem.h"

#define NAME_SIZE 64

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

bool cli__completion(const struct cli_command *command, const char *shell, FILE *out)
{
	if (shell && !strcmp(shell, "bash"))
		completion_bash(command, out);
	else if (shell && !strcmp(shell, "zsh"))
		completion_zsh(command, out);
	else
		return false;
	return true;
}
