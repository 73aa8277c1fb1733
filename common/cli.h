/*
 * The command line of every command: one table of options makes parsing, --help, the completions
 * for bash and zsh, and the man page.
 *
 * Understood everywhere: -h --help, --version, --completion bash|zsh, --man (prints the page's
 * source), `--option value`, `--option=value`, `--` ends options.
 */
#ifndef COMMON_CLI_H
#define COMMON_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"

#define CLI_NAME_SIZE 256

/* What cli_set() puts into a field of the command's own struct. */
enum cli_kind {
	CLI_OWN,    /* nothing: the command looks at the value itself */
	CLI_SWITCH, /* bool: true */
	CLI_TEXT,   /* const char *: the value, which is argv's */
	CLI_NUMBER, /* int64_t: a number from 0, or as CLI_RANGE says */
	CLI_SIZE,   /* int: a number from 0 to CLI_SIZE_MOST, or as CLI_RANGE says */
	CLI_CHOICE, /* an enum or int: the value's place among the choices */
	CLI_VALUE   /* an enum or int: what CLI_IS says, of a switch */
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

/* .field = CLI_IS(struct line, color, WHEN_NEVER): the switch puts that value. */
#define CLI_IS(type, member, value)                                                                \
	{                                                                                          \
		.kind = CLI_VALUE, .offset = offsetof(type, member), .least = value                \
	}

struct cli_option {
	const char *name;     /* "--color" */
	char letter;          /* 'c' for -c; 0: none */
	const char *argument; /* "WHEN", or NULL for a switch */
	const char *choices;  /* "auto always never" for completion and checking, or NULL */
	const char *help;     /* a sentence or two; default included */
	struct {
		enum cli_kind kind;
		size_t offset;
		int64_t least, most; /* most 0: the greatest that the kind can have */
	} field;
};

struct cli_command {
	const char *name;     /* "ipu-train" */
	const char *synopsis; /* "RUN [--key value ...]" */
	const char *summary;  /* half a sentence, for the man page's NAME */
	const char *about;    /* paragraphs split by "\n\n" */
	const struct cli_option *options;
	size_t option_count;
	const char *examples; /* lines "command\texplanation\n" */
	const char *words; /* for completion: "FILE" or words of the first argument; NULL: none */
	/* For completion: a command whose lines begin with what the first argument may be beside a
	 * file ("ipu-train --list"); NULL: there is none. */
	const char *names;
	/* For completion: the words of the second argument, one by one, NULL past the last; and
	 * words that are commands of their own where they stand first or second ("ipu-report diff":
	 * the last word of their names). NULL: there are none. */
	const char *(*second)(size_t at);
	const struct cli_command *(*verb)(size_t at);
	const char *details; /* further man page paragraphs (FILES, ENVIRONMENT as "TITLE\ntext"),
				or NULL */
};

/* One parsed argument: option is NULL for a plain word. */
struct cli_argument {
	const struct cli_option *option; /* NULL: a word, or an option the table does not know */
	const char *name; /* as written without "=value", until the next cli_next(); NULL: a word */
	const char *value; /* the value or the word; NULL for a switch */
};

/*
 * Walk the arguments. cli_next() returns ST_OK with *@more true and *@out set, or *@more false at
 * the end. An option that the table lacks is ST_INVALID with the nearest named, unless @open is
 * true: then it comes out with option NULL, its name, and the following word as the value
 * ("--fit.epochs 5"); NULL where none follows or the next is an option. Who knows it to be a switch
 * gives the word back: at--.
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

/*
 * Take the characters of the user's locale, and nothing else of it: numbers have a point and
 * messages are English, as in files. Letters fold as in C: elsewhere I may not be i's capital.
 * Returns whether it is UTF-8.
 */
bool cli_locale(void);

/* Where argv asks for --help, --version, --completion or --man: print it and return true. */
bool cli_standard(const struct cli_command *command, int argc, char **argv, FILE *out);

/* The number that @value says, from @least to @greatest; @name is the option's. */
enum status cli_number(const char *name, const char *value, int64_t least, int64_t greatest,
		       int64_t *out, struct err *err);

/* Put the value of @argument, which has an option, into the option's field of the struct @into. */
enum status cli_set(const struct cli_argument *argument, void *into, struct err *err);

void cli_help(const struct cli_command *command, FILE *out);

/* Print "NAME: text" as one line on stderr and return the exit code for @err. */
int cli_fail(const struct cli_command *command, const struct err *err);

/* What main() returns: @code, unless that is 0 and the standard output was refused (a full disk):
 * then one line on stderr, and 1. */
int cli_finish(const char *name, int code);

/* Colour on @stream? NO_COLOR, CLICOLOR_FORCE, TERM=dumb and the terminal decide; @when is "auto",
 * "always", "never" or NULL. */
bool cli_colour(FILE *stream, const char *when);

/* Columns of the terminal that @stream is; 80 elsewhere. */
int cli_width(FILE *stream);

#endif /* COMMON_CLI_H */
