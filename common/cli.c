/*
 * Command lines of all programs: parsing from one table, running the command; and what the terminal
 * shows: colours, and how many columns.
 *
 * Threading: none. Ownership: arguments and tables are borrowed.
 */
#include "common/cli.h"

#include <ctype.h>
#include <inttypes.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

#define CLI_WIDTH       80 /* of what is no terminal */
#define CLI_STACK_BYTES (8u << 20)
#define CLI_NEAR_LIST   64 /* most names compared for a suggestion */

const struct cli_option cli__standards[CLI__STANDARDS] = {
	[CLI__HELP] = {.name = "--help", .letter = 'h', .help = "Print this text."},
	[CLI__VERSION] = {.name = "--version", .help = "Print the version."},
	[CLI__COMPLETION] = {.name = "--completion",
			     .argument = "SHELL",
			     .choices = "bash zsh",
			     .help = "Print the completion for a shell."},
	[CLI__MAN] = {.name = "--man", .help = "Print the source of the manual page."},
};

bool cli_locale(void)
{
	bool utf8;

	setlocale(LC_CTYPE, "");
	utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	setlocale(LC_CTYPE, utf8 ? "C.UTF-8" : "C");
	return utf8;
}

const struct cli_option *cli__row(const struct cli_command *command, size_t i)
{
	if (i < command->option_count)
		return &command->options[i];

	i -= command->option_count;
	return i < CLI__STANDARDS ? &cli__standards[i] : NULL;
}

static const struct cli_option *cli_find(const struct cli_command *command, const char *name,
					 size_t length)
{
	const struct cli_option *row;

	for (size_t i = 0; (row = cli__row(command, i)); i++)
		if (strlen(row->name) == length && !memcmp(row->name, name, length))
			return row;
	return NULL;
}

static const struct cli_option *cli_find_letter(const struct cli_command *command, char letter)
{
	const struct cli_option *row;

	for (size_t i = 0; (row = cli__row(command, i)); i++)
		if (row->letter && row->letter == letter)
			return row;
	return NULL;
}

/* Return whether @text is an option: not a word, "-" or a negative number. */
static bool cli_is_option(const char *text)
{
	return text[0] == '-' && text[1] != '\0' && !isdigit((unsigned char)text[1]) &&
	       text[1] != '.';
}

/* ---- words of a list "auto always never" ----------------------------------------------------- */

/* Advance *@list to its next word; return the length of the word, 0 at the end. */
static size_t cli_next_word(const char **list)
{
	*list += strspn(*list, " ");
	return strcspn(*list, " ");
}

static enum status cli_unknown_choice(const struct cli_option *option, const char *value,
				      struct err *err)
{
	char copy[1024];
	const char *words[CLI_NEAR_LIST], *near;
	char *rest = NULL;
	size_t count = 0, length = strlen(option->choices);

	/* Lists generated from a table end with a blank. */
	while (length > 0 && option->choices[length - 1] == ' ')
		length--;
	str_copy(copy, sizeof(copy), option->choices);
	for (char *word = strtok_r(copy, " ", &rest); word && count < ARRAY_LEN(words);
	     word = strtok_r(NULL, " ", &rest))
		words[count++] = word;

	near = str_nearest(value, words, count);
	if (near)
		return err_set(err, ST_INVALID, "%s: unknown %s \"%s\" (did you mean \"%s\"?)",
			       option->name, option->argument, value, near);
	return err_set(err, ST_INVALID, "%s: unknown %s \"%s\" (one of: %.*s)", option->name,
		       option->argument, value, (int)length, option->choices);
}

/* ---- parsing --------------------------------------------------------------------------------- */

void cli_begin(struct cli_walk *walk, const struct cli_command *command, int argc, char **argv,
	       bool open)
{
	*walk = (struct cli_walk){
		.command = command, .argc = argc, .argv = argv, .at = 1, .open = open};
}

static enum status cli_unknown_option(const struct cli_walk *walk, const char *name,
				      struct err *err)
{
	const char *names[CLI_NEAR_LIST], *near;
	const struct cli_option *row;
	size_t count = 0;

	for (; count < ARRAY_LEN(names) && (row = cli__row(walk->command, count)); count++)
		names[count] = row->name;

	near = str_nearest(name, names, count);
	if (near)
		return err_set(err, ST_INVALID, "unknown option %s (did you mean %s?)", name, near);
	return err_set(err, ST_INVALID, "unknown option %s (--help lists them)", name);
}

/* Fill @out with @option and its value: @attached ("--x=value"), else the next word. */
static enum status cli_parse_value(struct cli_walk *walk, const struct cli_option *option,
				   const char *attached, struct cli_argument *out, struct err *err)
{
	const char *next = walk->at < walk->argc ? walk->argv[walk->at] : NULL;
	const char *list;
	size_t length;

	out->option = option;
	out->name = option->name;
	out->value = attached;
	if (!option->argument)
		return attached ? err_set(err, ST_INVALID, "%s takes no value", option->name)
				: ST_OK;

	if (!attached) {
		/* "--out --json" is a forgotten value; "--out=--json" is explicit. */
		if (!next)
			return err_set(err, ST_INVALID, "%s needs a value: %s", option->name,
				       option->argument);
		if (str_starts_with(next, "--"))
			return err_set(err, ST_INVALID,
				       "%s needs a value: %s (%s='%s' where that is it)",
				       option->name, option->argument, option->name, next);
		out->value = next;
		walk->at++;
	}

	list = option->choices;
	if (!list)
		return ST_OK;
	for (; (length = cli_next_word(&list)) > 0; list += length)
		if (strlen(out->value) == length && !memcmp(list, out->value, length))
			return ST_OK;
	return cli_unknown_choice(option, out->value, err);
}

/* An option outside the table, in a walk that accepts those. */
static enum status cli_parse_unknown(struct cli_walk *walk, const char *text, const char *attached,
				     struct cli_argument *out, struct err *err)
{
	const char *next = walk->at < walk->argc ? walk->argv[walk->at] : NULL;

	out->name = text;
	if (attached) {
		size_t length = (size_t)(attached - text) - 1;

		if (length >= sizeof(walk->name))
			return err_set(err, ST_INVALID, "the option %.40s... is too long", text);
		memcpy(walk->name, text, length);
		walk->name[length] = '\0';
		out->name = walk->name;
		out->value = attached;
	} else if (next && !cli_is_option(next)) {
		out->value = next;
		walk->at++;
	}
	return ST_OK;
}

static enum status next_argument(struct cli_walk *walk, struct cli_argument *out, bool *more,
				 struct err *err)
{
	const struct cli_option *option;
	const char *text;

	*out = (struct cli_argument){0};
	*more = false;
	if (!walk->only_words && walk->at < walk->argc && !strcmp(walk->argv[walk->at], "--")) {
		walk->only_words = true;
		walk->at++;
	}
	if (walk->at >= walk->argc)
		return ST_OK;

	*more = true;
	text = walk->argv[walk->at++];
	if (walk->only_words || !cli_is_option(text)) {
		out->value = text;
		return ST_OK;
	}
	if (text[1] == '-') {
		size_t length = strcspn(text, "=");
		const char *attached = text[length] ? text + length + 1 : NULL;
		char name[CLI_NAME_SIZE];

		option = cli_find(walk->command, text, length);
		if (option)
			return cli_parse_value(walk, option, attached, out, err);
		if (walk->open)
			return cli_parse_unknown(walk, text, attached, out, err);

		str_copy(name, min(length + 1, sizeof(name)), text);
		return cli_unknown_option(walk, name, err);
	}
	/* "-c VALUE", "-cVALUE" or a switch. */
	option = cli_find_letter(walk->command, text[1]);
	if (!option || (!option->argument && text[2]))
		return cli_unknown_option(walk, text, err);
	return cli_parse_value(walk, option, text[2] ? text + 2 : NULL, out, err);
}

enum status cli_next(struct cli_walk *walk, struct cli_argument *out, bool *more, struct err *err)
{
	enum status status = next_argument(walk, out, more, err);

	while (status == ST_OK && *more && out->option && out->option->action) {
		out->option->action();
		status = next_argument(walk, out, more, err);
	}
	return status;
}

enum status cli_parse(const struct cli_command *command, int argc, char **argv, cli_read_fn read,
		      void *line, const struct cli_words *words, struct err *err)
{
	struct cli_argument argument;
	enum status status;
	struct cli_walk walk;
	bool more;

	cli_begin(&walk, command, argc, argv, false);
	while ((status = cli_next(&walk, &argument, &more, err)) == ST_OK && more) {
		if (argument.option)
			status = read ? read(line, &argument, err) : cli_set(&argument, line, err);
		else if (words->most > 0 && *words->count < words->most)
			words->list[(*words->count)++] = argument.value;
		else
			status = err_set(err, ST_INVALID, "one word too many: \"%s\" (%s)",
					 argument.value, words->enough);
		if (status != ST_OK)
			break;
	}
	return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

enum status cli_number(const char *name, const char *value, int64_t least, int64_t greatest,
		       int64_t *out, struct err *err)
{
	long long number;

	if (!str_to_int(value, &number) || number < least || number > greatest) {
		err_set(err, ST_INVALID, "%s: \"%s\" is not a number from %" PRId64, name, value,
			least);
		if (err && greatest != INT64_MAX) {
			const size_t length = strlen(err->text);

			snprintf(err->text + length, sizeof(err->text) - length, " to %" PRId64,
				 greatest);
		}
		return ST_INVALID;
	}
	*out = number;
	return ST_OK;
}

/* Index of @word among @choices, which contain it. */
static int cli_choice_index(const char *choices, const char *word)
{
	const size_t length = strlen(word);
	int place = 0;

	for (const char *at = choices;
	     strncmp(at, word, length) != 0 || (at[length] != ' ' && at[length] != '\0'); place++)
		at += strcspn(at, " ") + 1;
	return place;
}

enum status cli_set(const struct cli_argument *argument, void *into, struct err *err)
{
	void *field = (char *)into + argument->option->field.offset;
	const int64_t least = argument->option->field.least, most = argument->option->field.most;
	enum status status;
	int64_t size;

	switch (argument->option->field.kind) {
	case CLI_OWN:
		break;
	case CLI_SWITCH:
		*(bool *)field = true;
		break;
	case CLI_TEXT:
		*(const char **)field = argument->value;
		break;
	case CLI_NUMBER:
		return cli_number(argument->name, argument->value, least,
				  most > 0 ? most : INT64_MAX, field, err);
	case CLI_SIZE:
		status = cli_number(argument->name, argument->value, least,
				    most > 0 ? most : CLI_SIZE_MOST, &size, err);
		if (status == ST_OK)
			*(int *)field = (int)size;
		return status;
	case CLI_CHOICE:
		*(int *)field = cli_choice_index(argument->option->choices, argument->value);
		break;
	case CLI_VALUE:
		*(int *)field = (int)least;
		break;
	}
	return ST_OK;
}

/* ---- running a command ----------------------------------------------------------------------- */

int cli_fail(const struct cli_command *command, const struct err *err)
{
	fprintf(stderr, "%s: %s\n", command->name,
		err->text[0] ? err->text : status_text(err->status));
	return status_exit_code(err->status);
}

static atomic_bool cli_lost; /* what cli_print() had no memory for */

/* Return @code, or 1 after one line if it is 0 and writing to standard output failed. */
static int cli_finish(const char *name, int code)
{
	const bool refused = ferror(stdout) != 0 || cli_lost;
	const int failed = fflush(stdout) != 0 ? errno : 0;

	if (code != 0 || (!refused && !failed))
		return code;
	fprintf(stderr, "%s: write: %s\n", name, failed ? strerror(failed) : "output was lost");
	return 1;
}

struct cli_call {
	int (*command)(int argc, char **argv);
	int argc, code;
	char **argv;
};

static const char *cli_running; /* the command's name, for the handler of SIGBUS */

static void cli_on_bus(int number, siginfo_t *info, void *context)
{
	static const char text[] = ": a file became shorter while it was read: another program "
				   "has overwritten it\n";

	(void)context;
	if (info->si_code != BUS_ADRERR) {
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	if (write(STDERR_FILENO, cli_running, strlen(cli_running)) >= 0 &&
	    write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		errno = 0; /* nobody can be told */
	_exit(1);
}

static void *cli_call(void *user)
{
	struct cli_call *call = user;

	call->code = call->command(call->argc, call->argv);
	return NULL;
}

/* Threads get their stack's size from the limit, too, unless it is set. */
static void cli_call_on_large_stack(struct cli_call *call)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CLI_STACK_BYTES);
	pthread_setattr_default_np(&attr);
	if (pthread_create(&thread, &attr, cli_call, call) != 0) {
		cli_call(call);
	} else {
		/* The command handles signals, and a signal must interrupt its calls. */
		pthread_sigmask(SIG_SETMASK, &all, &before);
		pthread_join(thread, NULL);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attr);
}

int cli_main(const char *name, int (*command)(int argc, char **argv), int argc, char **argv)
{
	struct sigaction bus = {.sa_sigaction = cli_on_bus, .sa_flags = SA_SIGINFO};
	struct cli_call call = {command, argc, 0, argv};
	struct rlimit stack;

	cli_running = name;
	sigaction(SIGBUS, &bus, NULL);
	signal(SIGXFSZ, SIG_IGN);
	if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < CLI_STACK_BYTES)
		cli_call_on_large_stack(&call);
	else
		cli_call(&call);
	return cli_finish(name, call.code);
}

/* ---- the terminal ---------------------------------------------------------------------------- */

/* Show the @length bytes of @text, which are @format printed, in place. A line ends where the
 * format has a line feed: one in a name would forge a line. Return the new length; -1: no
 * memory. */
static long cli_show_lines(const char *format, va_list args, char *text, size_t length)
{
	size_t from = 0, shown = 0;

	for (const char *at = strchr(format, '\n'); at; at = strchr(at + 1, '\n')) {
		char *before = mem_printf("%.*s", (int)(at - format), format);
		va_list again;
		size_t to;

		if (!before)
			return -1;
		va_copy(again, args);
		to = (size_t)vsnprintf(NULL, 0, before, again);
		va_end(again);
		mem_free(before);
		/* With the line feed: behind it utf8_show() would find bytes of other lines. */
		memmove(text + shown, text + from, to + 1 - from);
		shown += utf8_show(text + shown, to - from, "\t");
		text[shown++] = '\n';
		from = to + 1;
	}
	memmove(text + shown, text + from, length + 1 - from);
	return (long)(shown + utf8_show(text + shown, length - from, "\t"));
}

void cli_vprint(FILE *out, const char *format, va_list args)
{
	char few[4096], *much = NULL;
	long length, shown = -1;
	va_list again;

	va_copy(again, args);
	length = vsnprintf(few, sizeof(few), format, again);
	va_end(again);
	if (length >= (long)sizeof(few))
		much = mem_alloc((size_t)length + 1);
	if (much) {
		va_copy(again, args);
		vsnprintf(much, (size_t)length + 1, format, again);
		va_end(again);
	}
	if (length >= 0 && (much || length < (long)sizeof(few)))
		shown = cli_show_lines(format, args, much ? much : few, (size_t)length);
	if (shown < 0)
		cli_lost = true;
	else
		/* At once: processes that share a log must not mix their lines. */
		fwrite(much ? much : few, 1, (size_t)shown, out);
	mem_free(much);
}

void cli_print(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	cli_vprint(out, format, args);
	va_end(args);
}

void cli_print_text(FILE *out, const char *text)
{
	for (const char *end; *text; text = *end ? end + 1 : end) {
		end = text + strcspn(text, "\n");
		cli_print(out, *end ? "%.*s\n" : "%.*s", (int)(end - text), text);
	}
}

bool cli_colour(FILE *stream, const char *when)
{
	const char *no_color = getenv("NO_COLOR");
	const char *force = getenv("CLICOLOR_FORCE");
	const char *term = getenv("TERM");

	if (when && !strcmp(when, "always"))
		return true;
	if (when && !strcmp(when, "never"))
		return false;

	/* Both conventions treat an empty variable as unset. */
	if (no_color && *no_color)
		return false;
	if (force && *force && strcmp(force, "0") != 0)
		return true;
	if (!term || !strcmp(term, "dumb"))
		return false;
	return isatty(fileno(stream)) == 1;
}

int cli_width(FILE *stream)
{
	struct winsize size;

	if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return CLI_WIDTH;
}
