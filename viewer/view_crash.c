/*
 * Crashes: what leaves the alternate screen is written and the modes are set back, then the signal
 * takes its course.
 *
 * Threading: see the header. Ownership: none.
 */
#include "viewer/view_crash.h"

#include <fcntl.h>
#include <ncurses.h>
#include <signal.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/str.h"

#define BYTES_SIZE 256

static const int view_crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static struct {
	struct termios before;
	char bytes[BYTES_SIZE]; /* to the terminal */
	size_t length;
	bool guarding;
	bool guarded[ARRAY_LEN(view_crash_signals)];
} view_crash;

static void view_on_crash(int number)
{
	if (write(STDOUT_FILENO, view_crash.bytes, view_crash.length) >= 0)
		tcsetattr(STDIN_FILENO, TCSANOW, &view_crash.before);
	raise(number); /* now as if nobody had looked */
}

void view_crash_leave(int code)
{
	const int flags = fcntl(STDOUT_FILENO, F_GETFL);

	/* The open file is the shell's as well: its flags are as before. */
	if (view_crash.guarding && fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK) == 0) {
		if (write(STDOUT_FILENO, view_crash.bytes, view_crash.length) < 0)
			view_crash.length = 0;
		fcntl(STDOUT_FILENO, F_SETFL, flags);
		tcsetattr(STDIN_FILENO, TCSANOW, &view_crash.before);
	}
	_exit(code);
}

/* Mouse reports off, colours off, cursor on, the screen from before. */
static void view_crash_bytes(void)
{
	static const char *const names[] = {"sgr0", "cnorm", "rmkx", "rmcup"};
	size_t length;

	str_copy(view_crash.bytes, BYTES_SIZE, "");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *bytes = tigetstr(names[i]);

		length = strlen(view_crash.bytes);
		if (bytes && bytes != (char *)-1 && length + strlen(bytes) < BYTES_SIZE)
			str_copy(view_crash.bytes + length, BYTES_SIZE - length, bytes);
	}
	/* Only a terminal that has a mouse knows them, and all others pass over them. */
	length = strlen(view_crash.bytes);
	if (tigetstr("kmous") && tigetstr("kmous") != (char *)-1)
		str_copy(view_crash.bytes + length, BYTES_SIZE - length,
			 "\033[?1000l\033[?1002l\033[?1006l");
	view_crash.length = strlen(view_crash.bytes);
}

void view_crash_guard(const struct termios *before)
{
	struct sigaction action, old;

	view_crash.before = *before;
	view_crash_bytes();
	view_crash.guarding = true;
	memset(&action, 0, sizeof(action));
	action.sa_handler = view_on_crash;
	action.sa_flags = (int)(SA_RESETHAND | SA_NODEFER);
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < ARRAY_LEN(view_crash_signals); i++) {
		view_crash.guarded[i] = sigaction(view_crash_signals[i], NULL, &old) == 0 &&
					old.sa_handler == SIG_DFL;
		if (view_crash.guarded[i])
			sigaction(view_crash_signals[i], &action, NULL);
	}
}

void view_crash_release(void)
{
	view_crash.guarding = false;
	for (size_t i = 0; i < ARRAY_LEN(view_crash_signals); i++)
		if (view_crash.guarded[i])
			signal(view_crash_signals[i], SIG_DFL);
}
