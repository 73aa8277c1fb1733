/*
 * The command ipu-plan: dispatches subcommands; builds --help, man page and completions from their
 * tables.
 *
 * Threading: none. Prints, like the front end.
 */
#include "model/plan/plan_command.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/mem.h"
#include "common/str.h"
#include "model/run/run_file.h"

#define OPTIONS_MOST 128

/* Sorted by name. */
static const struct plan_subcommand *const SUBCOMMANDS[] = {
	&plan_convolution, &plan_product, &plan_model, &plan_kind, &plan_scale, &plan_schedule,
};

static const struct cli_command COMMAND = {
	.name = "ipu-plan",
	.synopsis = "SUBCOMMAND [OPTION ...]",
	.summary = "ask the simulated IPU without training",
	.about = "Says what something would cost, without doing it: every figure is simulated.",
	.details = "ENVIRONMENT\nNO_COLOR: no colours. CLICOLOR_FORCE: colours even where the "
		   "output is not a terminal.",
};

/* ---- the command of all subcommands ---------------------------------------------------------- */

static bool has_option(const struct cli_option *options, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(options[i].name, name) == 0)
			return true;
	return false;
}

/* Return "(model, schedule) HELP": the subcommands that have @option, and its text. */
static const char *option_help(const struct cli_option *option, struct arena *arena)
{
	const char *help = "";

	for (size_t i = 0; i < ARRAY_LEN(SUBCOMMANDS) && help; i++) {
		const struct cli_command *command = &SUBCOMMANDS[i]->command;

		if (has_option(command->options, command->option_count, option->name))
			help = arena_printf(arena, "%s%s%s", help, help[0] != '\0' ? ", " : "",
					    SUBCOMMANDS[i]->name);
	}
	return help ? arena_printf(arena, "(%s) %s", help, option->help) : NULL;
}

/* Collect the options of all subcommands, each name once. */
static size_t all_options(struct cli_option out[OPTIONS_MOST], struct arena *arena)
{
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_LEN(SUBCOMMANDS); i++) {
		const struct cli_command *command = &SUBCOMMANDS[i]->command;

		for (size_t k = 0; k < command->option_count && used < OPTIONS_MOST; k++) {
			struct cli_option option = command->options[k];

			if (has_option(out, used, option.name))
				continue;
			option.help = option_help(&option, arena);
			if (option.help)
				out[used++] = option;
		}
	}
	return used;
}

/* Build a text that lists the subcommands: @before, and what @put appends for each. */
static char *join(struct arena *arena, const char *before,
		  void (*put)(struct str *text, const struct plan_subcommand *sub))
{
	struct str text = {0};
	char *copy = NULL;

	str_add(&text, before);
	for (size_t i = 0; i < ARRAY_LEN(SUBCOMMANDS); i++)
		put(&text, SUBCOMMANDS[i]);
	if (!text.failed)
		copy = arena_strdup(arena, str_peek(&text));
	str_free(&text);
	return copy;
}

static void put_about(struct str *text, const struct plan_subcommand *sub)
{
	str_addf(text, "\n\n%s %s: %s. `%s --help` says more.", sub->command.name,
		 sub->command.synopsis, sub->command.summary, sub->command.name);
}

static void put_section(struct str *text, const struct plan_subcommand *sub)
{
	str_add(text, "\n\n");
	for (const char *c = sub->name; *c != '\0'; c++) {
		const char upper = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;

		str_add_bytes(text, &upper, 1);
	}
	str_addf(text, "\n%s", sub->command.about);
}

static void put_examples(struct str *text, const struct plan_subcommand *sub)
{
	str_add(text, sub->command.examples ? sub->command.examples : "");
}

static const struct cli_command *subcommand_at(size_t at)
{
	return at < ARRAY_LEN(SUBCOMMANDS) ? &SUBCOMMANDS[at]->command : NULL;
}

static bool asks_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Handle --help, --version, --man and --completion of the whole command; true if there was one. */
static bool standard_request(int argc, char **argv)
{
	struct cli_option options[OPTIONS_MOST];
	struct cli_command command;
	struct arena arena;
	bool done;
	const char *about, *details;

	if (arena_init(&arena, 0) != 0)
		return false;

	/* ipu-plan as a whole: for --help without the subcommands' options, for man page and
	 * completions with them. Texts are in arena; some are left out if memory runs out. */
	about = join(&arena, COMMAND.about, put_about);
	details = join(&arena, COMMAND.details, put_section);
	command = COMMAND;
	command.about = about ? about : COMMAND.about;
	command.details = details ? details : COMMAND.details;
	command.examples = join(&arena, "", put_examples);
	command.verb = subcommand_at;
	if (argc < 2 || !asks_help(argv[1])) {
		command.options = options;
		command.option_count = all_options(options, &arena);
	}

	done = cli_standard(&command, argc, argv, stdout);
	arena_fini(&arena);
	return done;
}

/* ---- subcommands ----------------------------------------------------------------------------- */

/* Report why argv[1] is not a subcommand. */
static enum status report_unknown(int argc, char **argv, struct err *err)
{
	const char *names[ARRAY_LEN(SUBCOMMANDS)], *nearest;
	struct cli_argument argument;
	struct cli_walk walk;
	struct str list = {0};
	bool more;
	enum status status = ST_OK;

	/* For an option, cli_next() gives the most precise error. */
	cli_begin(&walk, &COMMAND, argc, argv, false);
	if (argc > 1 && argv[1][0] == '-')
		status = cli_next(&walk, &argument, &more, err);
	if (status != ST_OK)
		return status;
	for (size_t i = 0; i < ARRAY_LEN(SUBCOMMANDS); i++) {
		names[i] = SUBCOMMANDS[i]->name;
		str_addf(&list, "%s%s", list.length > 0 ? " " : "", SUBCOMMANDS[i]->name);
	}
	nearest = argc > 1 ? str_nearest(argv[1], names, ARRAY_LEN(names)) : NULL;
	if (argc < 2)
		status = err_set(err, ST_INVALID, "a subcommand is missing: one of %s (see --help)",
				 str_peek(&list));
	else if (nearest)
		status =
			err_set(err, ST_INVALID, "unknown subcommand \"%s\" (did you mean \"%s\"?)",
				argv[1], nearest);
	else
		status = err_set(err, ST_INVALID, "unknown subcommand \"%s\" (one of: %s)", argv[1],
				 str_peek(&list));
	str_free(&list);
	return status;
}

static int finish(const struct cli_command *command, enum status status, struct err *err)
{
	if (status == ST_OK) {
		errno = 0;
		/* The output can be incomplete, for example on a full disk. */
		if (fflush(stdout) != 0 || ferror(stdout) != 0)
			status = err_set(err, errno == ENOSPC ? ST_NOSPACE : ST_IO,
					 "cannot write: %s",
					 errno != 0 ? strerror(errno) : status_text(ST_IO));
	}
	return status == ST_OK ? 0 : cli_fail(command, err);
}

static int run_subcommand(const struct plan_subcommand *sub, int argc, char **argv,
			  const struct plan_trainer *trainer)
{
	struct err err = {ST_OK, ""};

	for (int i = 1; i < argc; i++) {
		if (asks_help(argv[i])) {
			cli_help(&sub->command, stdout);
			return finish(&sub->command, ST_OK, &err);
		}
	}
	/* The other standard requests are for the whole command. */
	if (standard_request(argc, argv))
		return finish(&COMMAND, ST_OK, &err);
	return finish(&sub->command, sub->run(argc, argv, trainer, stdout, &err), &err);
}

int plan_command(int argc, char **argv, const struct plan_trainer *trainer)
{
	struct err err = {ST_OK, ""};

	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(SUBCOMMANDS); i++)
		if (strcmp(SUBCOMMANDS[i]->name, argv[1]) == 0)
			return run_subcommand(SUBCOMMANDS[i], argc - 1, argv + 1, trainer);
	if (standard_request(argc, argv))
		return finish(&COMMAND, ST_OK, &err);
	report_unknown(argc, argv, &err);
	return cli_fail(&COMMAND, &err);
}

enum status plan_read_words(const struct cli_command *command, int argc, char **argv,
			    struct plan_words *words, void *request, struct err *err)
{
	static char target_key[] = "--ipu.target";
	struct cli_walk walk;
	bool more = true;

	words->words = mem_calloc((size_t)argc * 2 + PLAN_WORDS_MORE, sizeof(*words->words));
	if (!words->words)
		return err_nomem(err);
	cli_begin(&walk, command, argc, argv, true);
	while (more) {
		struct cli_argument argument;
		const int from = walk.at;

		if (cli_next(&walk, &argument, &more, err) != ST_OK)
			return err->status;
		if (!more)
			break;
		if (argument.option && strcmp(argument.option->name, "--target") == 0) {
			words->words[words->count++] = target_key;
			words->words[words->count++] = (char *)(uintptr_t)argument.value;
		} else if (argument.option) {
			if (cli_set(&argument, request, err) != ST_OK)
				return err->status;
		} else if (!argument.name && !words->run_path) {
			words->run_path = argument.value;
		} else {
			/* Only the run file knows which of its flags take a value. */
			words->words[words->count++] = argv[from];
			walk.at = from + 1;
		}
	}
	if (!words->run_path)
		return err_set(err, ST_INVALID,
			       "a run file is missing: `%s RUN` (`ipu-train --list` lists "
			       "examples)",
			       command->name);
	return ST_OK;
}

enum status plan_read_run(struct plan_run *plan, struct run_data *data,
			  const struct plan_words *words, const struct plan_trainer *trainer,
			  struct err *err)
{
	char path[FS_PATH_SIZE];
	enum status status;

	if (run_example_find(path, words->run_path, err) != ST_OK ||
	    run_file_load(&plan->run, path, words->count, words->words, trainer->checks, err) !=
		    ST_OK)
		return err->status;
	if (!plan->run->data.path && strcmp(plan->run->data.name, "npz") == 0)
		status = plan_run_data(data, plan->run, err);
	else
		status = trainer->describe(data, plan->run, err);
	if (status != ST_OK || plan->run->ipu.wanted)
		return status;
	return err_set(err, ST_INVALID,
		       "%s: ipu: is null, so there is no device to ask: give "
		       "--ipu.auto_select_ipus 1 or one of the run file's flags",
		       words->run_path);
}

int plan_width(FILE *out, int given)
{
	return given > 0 ? given : cli_width(out);
}
