/*
 * Command lines of all programs. One table of options drives parsing, --help, the completions for
 * bash and zsh, and the man page.
 *
 * Every command accepts -h, --help, --version, --completion bash|zsh, --man (prints the source of
 * the page), `--option value`, `--option=value`, and `--`, which ends the options.
 */
#ifndef COMMON_CLI_H
#define COMMON_CLI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"

#define CLI_NAME_SIZE 256

/* What cli_set() stores into a field of the command's own struct. */
enum cli_kind {
	CLI_OWN,    /* nothing: the command evaluates the value itself */
	CLI_SWITCH, /* bool: true */
	CLI_TEXT,   /* const char *: the value, a pointer into argv */
	CLI_NUMBER, /* int64_t: a number from 0, or the range of CLI_RANGE */
	CLI_SIZE,   /* int: a number from 0 to CLI_SIZE_MOST, or the range of CLI_RANGE */
	CLI_CHOICE, /* an enum or int: the index of the value in the choices */
	CLI_VALUE   /* an enum or int: the constant that CLI_IS gives; for a switch */
};

#define CLI_SIZE_MOST 100000

/* .field = CLI_FIELD(TEXT, struct line, file) */
#define CLI_FIELD(what, type, member)                                                              \
	{                                                                                          \
		.kind = CLI_##what, .offset = offsetof(type, member)                               \
	}
/* .field = CLI_RANGE(SIZE, struct line, stages, 1, 256): from 1 to 256. */
#define CLI_RANGE(what, type, member, from, to)                                                    \
	{                                                                                          \
		.kind = CLI_##what, .offset = offsetof(type, member), .least = from, .most = to    \
	}

/* .field = CLI_IS(struct line, color, WHEN_NEVER): the switch stores that value. */
#define CLI_IS(type, member, value)                                                                \
	{                                                                                          \
		.kind = CLI_VALUE, .offset = offsetof(type, member), .least = value                \
	}

struct cli_option {
	const char *name;     /* "--color" */
	char letter;          /* 'c' for -c, or 0 */
	const char *argument; /* "WHEN", or NULL for a switch */
	const char *choices;  /* "auto always never": checked and completed; or NULL */
	void (*action)(
		void);    /* called where the option is given, which nobody else sees; or NULL */
	const char *help; /* one or two sentences, including the default */
	struct {
		enum cli_kind kind;
		size_t offset;
		int64_t least, most; /* inclusive; most 0: the greatest value of the kind */
	} field;
};

struct cli_command {
	const char *name;     /* "ipu-train" */
	const char *synopsis; /* "RUN [--key value ...]" */
	const char *summary;  /* a phrase for the NAME section of the man page */
	const char *about;    /* paragraphs separated by "\n\n" */
	const struct cli_option *options;
	size_t option_count;
	const char *examples; /* lines "command\texplanation\n" */
	const char *words;    /* completion: "FILE" or the words of the first argument, or NULL */
	/* Completion: a command whose output lines begin with further values of the first argument
	 * ("ipu-train --list"), or NULL. */
	const char *names;
	/* Completion, each may be NULL: second() returns the words of the second argument one by
	 * one; verb() returns subcommands, whose verb may be the first or second word ("ipu-report
	 * diff": the verb is the last word of the name). Both return NULL past the end. */
	const char *(*second)(size_t at);
	const struct cli_command *(*verb)(size_t at);
	const char *details; /* further man page paragraphs (FILES, ENVIRONMENT as "TITLE\ntext"),
				or NULL */
};

/* One parsed argument. */
struct cli_argument {
	const struct cli_option *option; /* NULL: a word, or an option that the table lacks */
	const char *name;  /* without "=value", valid until the next cli_next(); NULL: a word */
	const char *value; /* the value or the word; NULL for a switch */
};

/*
 * Iterate over the arguments. cli_next() returns ST_OK and sets *@more; at the end *@more is false,
 * otherwise *@out is set. An option that the table lacks is ST_INVALID; the message suggests the
 * nearest name. With @open set, such an option is returned instead: option NULL, its name, and the
 * following word as the value ("--fit.epochs 5"), or NULL if no word follows or the next one is an
 * option. A caller that knows it to be a switch returns the word to the iterator by at--.
 */
struct cli_walk {
	const struct cli_command *command;
	int argc;
	char **argv;
	int at;
	bool open;
	bool only_words;
	char name[CLI_NAME_SIZE]; /* of an option outside the table, written "--name=value" */
};

void cli_begin(struct cli_walk *walk, const struct cli_command *command, int argc, char **argv,
	       bool open);
enum status cli_next(struct cli_walk *walk, struct cli_argument *out, bool *more, struct err *err);

/* Words of a command line that are no options. */
struct cli_words {
	const char **list; /* pointers into argv */
	int most;
	int *count;         /* increased by the words that were stored */
	const char *enough; /* "REPORT and KEY are enough", for the error of a further word */
};

typedef enum status (*cli_read_fn)(void *line, const struct cli_argument *option, struct err *err);

/* Parse all arguments: call @read with @line for each option (NULL: cli_set()), and store words. */
enum status cli_parse(const struct cli_command *command, int argc, char **argv, cli_read_fn read,
		      void *line, const struct cli_words *words, struct err *err);

/*
 * Set LC_CTYPE from the user's locale, and no other category: numbers keep the decimal point and
 * messages stay English, as in files. Upper and lower case map as in C (in Turkish, the capital of
 * i is not I). Return whether the locale is UTF-8.
 */
bool cli_locale(void);

/* If argv contains --help, --version, --completion or --man, print it and return true. */
bool cli_standard(const struct cli_command *command, int argc, char **argv, FILE *out);

/* Parse @value as a number from @least to @greatest; @name is the option, for the message. */
enum status cli_number(const char *name, const char *value, int64_t least, int64_t greatest,
		       int64_t *out, struct err *err);

/* Store the value of @argument, whose option is not NULL, into the option's field of @into. */
enum status cli_set(const struct cli_argument *argument, void *into, struct err *err);

void cli_help(const struct cli_command *command, FILE *out);

/* Print as fprintf() does, but for characters of names that would control the terminal or hide in
 * the text: each is shown as '?'. Tabs are kept, and the line feeds of @format: one of a name would
 * forge a line. What there is no memory for is left out, and the command fails (cli_main()). */
void cli_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_vprint(FILE *out, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
/* The same for a text of several lines: its line feeds are kept. */
void cli_print_text(FILE *out, const char *text);

/* Print "NAME: text" as one line on stderr; return the exit code for @err. */
int cli_fail(const struct cli_command *command, const struct err *err);

/*
 * Run @command for main() and return its exit code, or 1 after one line on stderr if it is 0 and
 * writing to standard output failed (a full disk).
 *
 * The command is protected from what ends a process by a signal though it is an error: a write
 * beyond the limit of file sizes fails; a stack of less than 8 MB is replaced by a larger one; and
 * a file that another program shortens while it is mapped (SQLite maps the index of a write-ahead
 * log) ends it with one line and exit code 1.
 */
int cli_main(const char *name, int (*command)(int argc, char **argv), int argc, char **argv);

/* Return whether to colour @stream, from NO_COLOR, CLICOLOR_FORCE, TERM=dumb and the terminal.
 * @when is "auto", "always", "never" or NULL. */
bool cli_colour(FILE *stream, const char *when);

/* Columns of the terminal behind @stream; 80 if it is not a terminal. */
int cli_width(FILE *stream);

/*
 * Internal interface between the command-line files.
 */

/* The options of every command, in the order of the help. */
enum {
	CLI__HELP,
	CLI__VERSION,
	CLI__COMPLETION,
	CLI__MAN,
	CLI__STANDARDS
};
extern const struct cli_option cli__standards[CLI__STANDARDS];

/* Row @i of the command's options followed by the standard ones; NULL past the end. */
const struct cli_option *cli__row(const struct cli_command *command, size_t i);

#endif /* COMMON_CLI_H */
