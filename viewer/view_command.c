/*
 * The command ipu-view: arguments, batch mode, exit codes.
 *
 * Threading: one thread. This is a front end: it prints.
 */
#include "viewer/view_command.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/mem.h"
#include "common/str.h"
#include "viewer/view_term.h"

#define VIEW_SCREEN_WORD(screen, ops) #ops " "

static const struct cli_option view_options[] = {
	{.name = "--view",
	 .argument = "NAME",
	 .choices = VIEW_SCREEN_MAP(VIEW_SCREEN_WORD),
	 .help = "The screen to begin with, or to print. Default: summary."},
	{.name = "--text", .help = "Print the screen as text and leave."},
	{.name = "--csv", .help = "Print the screen's rows as CSV and leave."},
	{.name = "--json", .help = "Print the screen's rows as JSON and leave."},
	{.name = "--width",
	 .argument = "COLUMNS",
	 .help = "Width of the text, 40 to 1000. Default: the terminal's, else 100."},
	{.name = "--from",
	 .argument = "TIME",
	 .help = "Begin the timeline here: 1.5ms, 20us, 3s, or ns; of the device where it was "
		 "recorded, else of the host."},
	{.name = "--to", .argument = "TIME", .help = "End the timeline here."},
	{.name = "--color",
	 .argument = "WHEN",
	 .choices = "auto always never",
	 .help = "Use colours. Default: auto, which NO_COLOR and TERM=dumb turn off."},
	{.name = "--ascii",
	 .help = "Draw with ASCII only. Default: where the locale is not UTF-8."},
	{.name = "--follow", .help = "Keep the newest of a run that is still recording in view."},
};

/* Completed with the key table before use. */
static struct cli_command view_cli = {
	.name = "ipu-view",
	.synopsis = "[REPORT [TARGET]] [options]",
	.summary = "look at a recorded run in the terminal",
	.about =
		"Shows the report directory or database REPORT: a summary, the timeline of the "
		"simulated device and the host, and the statistics of tensors. Without REPORT: the "
		"newest tf_report__* of the working directory. With TARGET, the two are compared. "
		"A run that is still recording is followed live. Nothing is ever written to the "
		"report.\n\n"
		"When the output is not a terminal the summary is printed as text. Press ? for the "
		"keys.",
	.options = view_options,
	.option_count = ARRAY_LEN(view_options),
	.examples =
		"ipu-view\tthe newest report here\n"
		"ipu-view tf_report__*/ --view timeline --text --width 160\ta drawing to paste\n"
		"ipu-view run.db --view tensors --csv\tfor a spreadsheet\n",
	.words = "FILE",
};

struct view_arguments {
	const char *path, *target; /* target: compared with path */
	const char *color;
	int screen;
	bool batch, ascii, follow;
	enum report_format format;
	int width;
	bool from_set, to_set;
	int64_t from_ns, to_ns;
};

static enum status view_parse_width(const char *value, int *out, struct err *err)
{
	long long number;

	if (!str_to_int(value, &number) || number < VIEW_MIN_WIDTH || number > 1000)
		return err_set(err, ST_INVALID, "--width: %s is not a number from %d to 1000",
			       value, VIEW_MIN_WIDTH);
	*out = (int)number;
	return ST_OK;
}

/* "1.5ms": a number and its unit; ns where there is none. */
static enum status view_parse_time(const char *name, const char *value, int64_t *out,
				   struct err *err)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 1}};
	const size_t digits = strspn(value, "0123456789.+-eE");
	char number[64];
	double time;

	str_copy(number, digits + 1 < sizeof(number) ? digits + 1 : sizeof(number), value);
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(value + digits, units[i].unit) == 0 && str_to_double(number, &time) &&
		    time * units[i].ns > -9e18 && time * units[i].ns < 9e18) {
			*out = (int64_t)(time * units[i].ns);
			return ST_OK;
		}
	return err_set(err, ST_INVALID, "%s: \"%s\" is not a time (like 1.5ms)", name, value);
}

static enum status view_take(struct view_arguments *out, const struct cli_argument *argument,
			     struct err *err)
{
	static const struct {
		const char *name;
		enum report_format format;
	} formats[] = {
		{"--text", REPORT_AS_TEXT}, {"--csv", REPORT_AS_CSV}, {"--json", REPORT_AS_JSON}};
	const char *name = argument->option ? argument->option->name : "";

	if (!argument->option) {
		if (out->target)
			return err_set(err, ST_INVALID, "%s: two reports at most", argument->value);
		if (out->path)
			out->target = argument->value;
		else
			out->path = argument->value;
		return ST_OK;
	}
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (strcmp(name, formats[i].name) == 0) {
			out->batch = true;
			out->format = formats[i].format;
			return ST_OK;
		}
	if (strcmp(name, "--width") == 0)
		return view_parse_width(argument->value, &out->width, err);
	if (strcmp(name, "--from") == 0) {
		out->from_set = true;
		return view_parse_time(name, argument->value, &out->from_ns, err);
	}
	if (strcmp(name, "--to") == 0) {
		out->to_set = true;
		return view_parse_time(name, argument->value, &out->to_ns, err);
	}
	if (strcmp(name, "--view") == 0)
		out->screen = view_session_screen_of(argument->value);
	else if (strcmp(name, "--color") == 0)
		out->color = argument->value;
	else if (strcmp(name, "--ascii") == 0)
		out->ascii = true;
	else
		out->follow = true;
	return ST_OK;
}

static enum status view_parse(struct view_arguments *out, int argc, char **argv, struct err *err)
{
	struct cli_walk walk;
	struct cli_argument argument;
	enum status status = ST_OK;
	bool more = true;

	memset(out, 0, sizeof(*out));
	cli_begin(&walk, &view_cli, argc, argv, false);
	while (status == ST_OK) {
		status = cli_next(&walk, &argument, &more, err);
		if (status != ST_OK || !more)
			break;
		status = view_take(out, &argument, err);
	}
	if (!out->from_set)
		out->from_ns = INT64_MIN / 4;
	if (!out->to_set)
		out->to_ns = INT64_MAX / 4;
	if (status == ST_OK && out->from_ns >= out->to_ns)
		return err_set(err, ST_INVALID, "--from must be before --to");
	return status;
}

static bool view_is_dumb(void)
{
	const char *term = getenv("TERM");

	return !term || !term[0] || strcmp(term, "dumb") == 0;
}

/* A terminal that can do nothing, or none: text. */
static bool view_is_batch(const struct view_arguments *arguments)
{
	return arguments->batch || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO) ||
	       view_is_dumb();
}

static enum status view_print(struct view_session *session, const struct view_arguments *arguments,
			      struct err *err)
{
	enum status status;

	status = view_session_print(session, (enum view_screen)arguments->screen, arguments->format,
				    arguments->width, stdout, err);
	if (fflush(stdout) != 0 && status == ST_OK)
		status = err_set(err, ST_IO, "the output was refused");
	return status;
}

static int view_run(struct view_session *session, const struct view_arguments *arguments)
{
	struct err err = {0};
	enum status status;
	int signal_number = 0;

	session->context.ranged = arguments->from_set || arguments->to_set;
	session->context.from_ns = arguments->from_ns;
	session->context.to_ns = arguments->to_ns;
	if (view_is_batch(arguments)) {
		status = view_print(session, arguments, &err);
	} else {
		session->context.follow = arguments->follow;
		view_session_show(session, (enum view_screen)arguments->screen);
		status = view_term_run(session, cli_colour(stdout, arguments->color),
				       &signal_number, &err);
	}
	if (status != ST_OK)
		return cli_fail(&view_cli, &err);
	/* Ctrl-C is a way to leave; other signals are told to the parent as shells do. */
	return signal_number == 0 || signal_number == SIGINT ? 0 : 128 + signal_number;
}

static int view_start(const struct view_arguments *arguments)
{
	struct view_session session;
	char newest[FS_PATH_SIZE];
	struct err err = {0};
	const char *path = arguments->path;
	int code;

	if (!path) {
		if (view_source_newest(".", newest, &err) != ST_OK)
			return cli_fail(&view_cli, &err);
		path = newest;
	}
	if (view_session_open(&session, path, arguments->target,
			      arguments->ascii || !view_term_unicode(), &err) != ST_OK)
		return cli_fail(&view_cli, &err);
	code = view_run(&session, arguments);
	view_session_close(&session);
	return code;
}

int view_command(int argc, char **argv)
{
	struct view_arguments arguments;
	struct str keys = {0};
	struct err err = {0};
	int code = 0;

	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C");
	view_keys_manual(&keys);
	view_cli.details = keys.failed ? NULL : str_peek(&keys);
	if (!cli_standard(&view_cli, argc, argv, stdout))
		code = view_parse(&arguments, argc, argv, &err) == ST_OK
			       ? view_start(&arguments)
			       : cli_fail(&view_cli, &err);
	view_cli.details = NULL;
	str_free(&keys);
	return code;
}
