/*
 * The loop behind --watch. Signals are received between two drawings, so that the terminal is
 * restored at a single point. Threading and ownership: see report_watch.h.
 */
#include "reports/monitor/report_watch.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/mem.h"

/* Alternate screen, no wrapping of long lines, no cursor. */
#define SCREEN_ENTER "\033[?1049h\033[?7l\033[?25l"
#define SCREEN_LEAVE "\033[?7h\033[?25h\033[?1049l"

bool report_watch_screen(void)
{
	const char *term = getenv("TERM");

	return term && term[0] && strcmp(term, "dumb") != 0 && isatty(STDOUT_FILENO) == 1;
}

static int terminal_rows(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 ? size.ws_row : 24;
}

static int count_lines(const char *text)
{
	int lines = 0;

	for (; (text = strchr(text, '\n')); text++)
		lines++;
	return lines;
}

/* If the terminal has too few rows, omit the top: the changing part is at the end. */
static void draw_text(const char *text)
{
	const int rows = terminal_rows();
	int skip = count_lines(text) - rows;

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

static enum status draw_frame(const struct report_watch *watch, struct str *frame, struct err *err)
{
	enum status status;

	str_clear(frame);
	status = watch->draw(watch->user, frame, err);
	if (status == ST_OK && frame->failed)
		status = err_nomem(err);
	if (status != ST_OK)
		return status;
	if (watch->screen)
		draw_text(str_peek(frame));
	else
		fputs(str_peek(frame), stdout);
	if (fflush(stdout) != 0)
		return err_set(err, ST_IO, "the output was refused: %s", strerror(errno));
	return ST_OK;
}

static void write_control(const struct report_watch *watch, const char *control)
{
	if (!watch->screen)
		return;
	fputs(control, stdout);
	fflush(stdout);
}

/* Ctrl-Z: restore the shell's screen while stopped. */
static void suspend(const struct report_watch *watch)
{
	write_control(watch, SCREEN_LEAVE);
	raise(SIGSTOP);
	write_control(watch, SCREEN_ENTER);
}

/* Wait for the interval or a signal. Return the terminating signal, or 0. */
static int wait_for_signal(const struct report_watch *watch, const sigset_t *signals)
{
	const double whole = floor(watch->seconds);
	const struct timespec pause = {.tv_sec = (time_t)whole,
				       .tv_nsec = (long)((watch->seconds - whole) * 1e9)};
	const int number = sigtimedwait(signals, NULL, &pause);

	if (number == SIGTSTP)
		suspend(watch);
	return number == SIGINT || number == SIGTERM || number == SIGHUP ? number : 0;
}

enum status report_watch_run(const struct report_watch *watch, int *number, struct err *err)
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
	write_control(watch, SCREEN_ENTER);
	do
		status = draw_frame(watch, &frame, err);
	while (status == ST_OK && (*number = wait_for_signal(watch, &signals)) == 0);
	write_control(watch, SCREEN_LEAVE);
	sigprocmask(SIG_SETMASK, &before, NULL);
	str_free(&frame);
	return status;
}
