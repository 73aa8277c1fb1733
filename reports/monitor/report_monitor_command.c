/*
 * The ipu-monitor command: arguments, one snapshot or many, exit codes.
 *
 * With --watch, snapshots are drawn in place on a terminal's alternate screen, otherwise one after
 * the other. Threading: one thread, in a single-threaded process: signals are blocked but between
 * two drawings, so that the terminal is restored at a single point. Prints to standard output.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/mem.h"
#include "reports/monitor/report_monitor.h"

#define WATCH_SECONDS 2.0 /* between snapshots */
#define WATCH_LEAST   0.1
#define WATCH_MOST    86400.0

struct monitor_request {
	struct report_monitor_params params;
	const char *color;
	bool json, watch, colour, screen;
	double seconds;
	struct str notes; /* of the last snapshot */
};

static const struct cli_option monitor_options[] = {
	{.name = "--json",
	 .help = "Print JSON instead of tables: one line each time with --watch.",
	 .field = CLI_FIELD(SWITCH, struct monitor_request, json)},
	{.name = "--watch",
	 .letter = 'w',
	 .help = "Look again every SECONDS (0.1 to 86400, default 2) until Ctrl-C: in place on a "
		 "terminal, one after the other elsewhere.",
	 .field = CLI_FIELD(SWITCH, struct monitor_request, watch)},
	{.name = "--ipus",
	 .argument = "N",
	 .choices = "1 2 4 8 16 32 64 128 256",
	 .help = "IPUs of the partition, at least. Default: 4, or as many as runs have, as "
		 "machines "
		 "go.",
	 .field = CLI_FIELD(NUMBER, struct monitor_request, params.ipus)},
	{.name = "--target",
	 .argument = "NAME",
	 .choices = "ipu1 ipu2 ipu21 c600",
	 .help = "The kind of IPUs that no run has. Default: ipu2.",
	 .field = CLI_FIELD(TEXT, struct monitor_request, params.target)},
	{.name = "--color",
	 .argument = "WHEN",
	 .choices = "auto always never",
	 .help = "Bold titles: auto (on a terminal, unless NO_COLOR is set), always or never.",
	 .field = CLI_FIELD(TEXT, struct monitor_request, color)},
};

static const struct cli_command monitor_cli = {
	.name = "ipu-monitor",
	.synopsis = "[--watch [SECONDS]] [options]",
	.summary = "show the simulated IPUs and the runs attached to them",
	.about = "Prints the simulated partition and the running trainers that are attached to its "
		 "IPUs, laid out as gc-monitor does: wider than 80 columns.\n\n"
		 "Trainers with simulated IPUs announce themselves, recording or not. Under the "
		 "tables stands how far each has come, and how to look at the report that it "
		 "records.\n\n"
		 "The partition, temperatures and power are simulated. An ID with an asterisk has "
		 "more than one run.",
	.options = monitor_options,
	.option_count = ARRAY_LEN(monitor_options),
	.examples = "ipu-monitor --watch\tlook every two seconds\n"
		    "ipu-monitor --json\tfor a program\n"
		    "ipu-monitor --ipus 16 --target ipu21\ta partition as large as a Bow Pod16\n",
	.details =
		"FILES\n$XDG_RUNTIME_DIR/ipuscope/PID.json: what the trainer with that process "
		"number says of itself. It is removed when the run ends; ipu-monitor removes "
		"those of processes that were killed.\n\n"
		"ENVIRONMENT\nXDG_RUNTIME_DIR: must be a folder of yours with mode 0700. Where it "
		"is not set, ipuscope-UID in the system's temporary folder (TMPDIR, or /tmp) takes "
		"its place, which must be of that kind too.",
};

/* ---- the command line ------------------------------------------------------------------------ */

static enum status parse_line(struct monitor_request *request, int argc, char **argv,
			      struct err *err)
{
	const char *seconds = NULL;
	bool watched = false; /* the argument is --watch */
	struct cli_walk walk;
	struct cli_argument argument;
	enum status status;
	bool more = true;

	cli_begin(&walk, &monitor_cli, argc, argv, false);
	while ((status = cli_next(&walk, &argument, &more, err)) == ST_OK && more) {
		const bool before = watched;

		watched = argument.option && strcmp(argument.option->name, "--watch") == 0;
		if (argument.option)
			status = cli_set(&argument, request, err);
		else if (!before || seconds)
			status = err_set(err, ST_INVALID,
					 "%s: takes no words (--help lists the options)",
					 argument.value);
		else
			seconds = argument.value;
		if (status != ST_OK)
			return status;
	}
	if (status == ST_OK && seconds &&
	    (!str_to_double(seconds, &request->seconds) ||
	     !(request->seconds >= WATCH_LEAST && request->seconds <= WATCH_MOST)))
		return err_set(err, ST_INVALID, "--watch: %s is not a number from 0.1 to 86400",
			       seconds);
	request->colour = cli_colour(stdout, request->color);
	return status;
}

/* ---- a snapshot ------------------------------------------------------------------------------ */

static enum status draw_snapshot(struct monitor_request *request, struct str *out, struct err *err)
{
	struct report_monitor monitor = {0};
	struct prof_announcements runs;
	enum status status;
	struct jsonw w;

	str_clear(&request->notes);
	status = prof_announcements_read(&runs, true, &request->notes, err);
	if (status == ST_OK || status == ST_NOTFOUND) {
		request->params.now_ms = clock_epoch_ns() / 1000000;
		status = report_monitor_new(&monitor, &runs, &request->params, err);
		prof_announcements_free(&runs);
	}
	if (status != ST_OK)
		goto done;
	if (request->json) {
		jsonw_init_str(&w, out, request->watch ? 0 : 2);
		report_monitor_json(&monitor, &w);
		jsonw_end(&w, err);
	} else {
		report_monitor_text(&monitor, request->colour, out);
		/* On the alternate screen, stderr would be overdrawn. */
		if (request->screen)
			str_add(out, str_peek(&request->notes));
	}
	if (out->failed)
		status = err_nomem(err);
done:
	report_monitor_free(&monitor);
	if (!request->screen && request->notes.length > 0)
		fprintf(stderr, "%s", str_peek(&request->notes));
	return status;
}

/* ---- watching -------------------------------------------------------------------------------- */

/* Alternate screen, no wrapping of long lines, no cursor. */
#define SCREEN_ENTER "\033[?1049h\033[?7l\033[?25l"
#define SCREEN_LEAVE "\033[?7h\033[?25h\033[?1049l"

/* If the terminal has too few rows, omit the top: the changing part is at the end. */
static void draw_text(const char *text)
{
	struct winsize size;
	const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1;
	int skip = known ? -size.ws_row : -24;

	for (const char *at = text; (at = strchr(at, '\n')); at++)
		skip++;
	fputs("\033[H", stdout);
	if (skip > 0) {
		printf("... %d lines above\033[K\r\n", ++skip);
		for (; skip > 0; skip--)
			text = strchr(text, '\n') + 1;
	}
	for (const char *end; (end = strchr(text, '\n')); text = end + 1)
		printf("%.*s\033[K%s", (int)(end - text), text, end[1] ? "\r\n" : "");
	fputs("\033[J", stdout);
}

static enum status draw_frame(struct monitor_request *request, struct str *frame, struct err *err)
{
	enum status status;

	str_clear(frame);
	status = draw_snapshot(request, frame, err);
	if (status != ST_OK)
		return status;
	if (request->screen)
		draw_text(str_peek(frame));
	else
		fputs(str_peek(frame), stdout);
	if (fflush(stdout) != 0)
		return err_set(err, ST_IO, "the output was refused: %s", strerror(errno));
	return ST_OK;
}

static void write_control(const struct monitor_request *request, const char *control)
{
	if (!request->screen)
		return;
	fputs(control, stdout);
	fflush(stdout);
}

/* Wait for the interval or a signal. Return the terminating signal, or 0. */
static int wait_for_signal(const struct monitor_request *request, const sigset_t *signals)
{
	const double whole = floor(request->seconds);
	const struct timespec pause = {.tv_sec = (time_t)whole,
				       .tv_nsec = (long)((request->seconds - whole) * 1e9)};
	const int number = sigtimedwait(signals, NULL, &pause);

	if (number == SIGTSTP) {
		/* Ctrl-Z: restore the shell's screen while stopped. */
		write_control(request, SCREEN_LEAVE);
		raise(SIGSTOP);
		write_control(request, SCREEN_ENTER);
	}
	return number == SIGINT || number == SIGTERM || number == SIGHUP ? number : 0;
}

/* Run until a signal arrives or an error occurs. *@number: SIGINT, SIGTERM or SIGHUP; 0 after an
 * error. */
static enum status watch_snapshots(struct monitor_request *request, int *number, struct err *err)
{
	static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
	struct sigaction action;
	struct str frame = {0};
	enum status status;
	sigset_t signals, before;

	sigemptyset(&signals);
	/* Respect signals that are ignored, as in the background or under nohup(1). */
	for (size_t i = 0; i < ARRAY_LEN(handled); i++)
		if (sigaction(handled[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&signals, handled[i]);
	sigprocmask(SIG_BLOCK, &signals, &before);
	*number = 0;
	write_control(request, SCREEN_ENTER);
	do
		status = draw_frame(request, &frame, err);
	while (status == ST_OK && (*number = wait_for_signal(request, &signals)) == 0);
	write_control(request, SCREEN_LEAVE);
	sigprocmask(SIG_SETMASK, &before, NULL);
	str_free(&frame);
	return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

int report_monitor_command(int argc, char **argv)
{
	struct monitor_request request = {
		.params = {.ipus = 4, .target = "ipu2"},
		.seconds = WATCH_SECONDS,
	};
	const char *term = getenv("TERM");
	struct err err = {ST_OK, ""};
	enum status status;
	int number = 0;

	if (cli_standard(&monitor_cli, argc, argv, stdout))
		return 0;
	if (parse_line(&request, argc, argv, &err) != ST_OK)
		return cli_fail(&monitor_cli, &err);
	request.screen = request.watch && !request.json && term && term[0] &&
			 strcmp(term, "dumb") != 0 && isatty(STDOUT_FILENO) == 1;
	if (request.watch) {
		status = watch_snapshots(&request, &number, &err);
	} else {
		struct str out = {0};

		status = draw_snapshot(&request, &out, &err);
		if (status == ST_OK && (fputs(str_peek(&out), stdout) < 0 || fflush(stdout) != 0))
			status = err_set(&err, ST_IO, "write: %s", strerror(errno));
		str_free(&out);
	}
	str_free(&request.notes);
	if (status != ST_OK)
		return cli_fail(&monitor_cli, &err);
	/* Ctrl-C is a normal exit; report other signals to the parent as shells do. */
	return number == 0 || number == SIGINT ? 0 : 128 + number;
}
