/*
 * The terminal: input and output by ncurses; the key sequences of xterm, rxvt, the Linux console
 * and VT220; and the bytes that leave the alternate screen after a crash.
 *
 * Threading: one thread; crash handlers call async-signal-safe functions only. Ownership: the
 * process's one terminal.
 */
#include "viewer/view_command.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termcap.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "viewer/view_keys.h"

/* ---- key sequences --------------------------------------------------------------------------- */

static const struct {
	const char *text;
	uint32_t key;
} view_escapes[] = {
	{"[A", VIEW_KEY_UP},
	{"[B", VIEW_KEY_DOWN},
	{"[C", VIEW_KEY_RIGHT},
	{"[D", VIEW_KEY_LEFT},
	{"OA", VIEW_KEY_UP},
	{"OB", VIEW_KEY_DOWN},
	{"OC", VIEW_KEY_RIGHT},
	{"OD", VIEW_KEY_LEFT},
	{"[H", VIEW_KEY_HOME},
	{"OH", VIEW_KEY_HOME},
	{"[1~", VIEW_KEY_HOME},
	{"[7~", VIEW_KEY_HOME},
	{"[F", VIEW_KEY_END},
	{"OF", VIEW_KEY_END},
	{"[4~", VIEW_KEY_END},
	{"[8~", VIEW_KEY_END},
	{"[3~", VIEW_KEY_DELETE},
	{"[5~", VIEW_KEY_PAGE_UP},
	{"[6~", VIEW_KEY_PAGE_DOWN},
	{"[Z", VIEW_KEY_BACK_TAB},
	{"[1;2C", VIEW_KEY_SHIFT_RIGHT},
	{"[1;2D", VIEW_KEY_SHIFT_LEFT},
	{"[c", VIEW_KEY_SHIFT_RIGHT},
	{"[d", VIEW_KEY_SHIFT_LEFT},
	{"OP", VIEW_KEY_F1},
	{"[11~", VIEW_KEY_F1},
	{"[[A", VIEW_KEY_F1},
	{"OR", VIEW_KEY_F3},
	{"[13~", VIEW_KEY_F3},
	{"[[C", VIEW_KEY_F3},
	{"OS", VIEW_KEY_F4},
	{"[14~", VIEW_KEY_F4},
	{"[[D", VIEW_KEY_F4},
	{"[15~", VIEW_KEY_F5},
	{"[[E", VIEW_KEY_F5},
	{"[17~", VIEW_KEY_F6},
	{"[21~", VIEW_KEY_F10},
	{"OM", VIEW_KEY_ENTER},
};

uint32_t view_escape_key(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(view_escapes); i++)
		if (strcmp(view_escapes[i].text, text) == 0)
			return view_escapes[i].key;
	return VIEW_KEY_NONE;
}

/* ---- crashes --------------------------------------------------------------------------------- */

#define BYTES_SIZE 256

static const int view_crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static struct {
	struct termios before;
	char bytes[BYTES_SIZE]; /* to the terminal */
	size_t length;
	bool guarding;
	struct sigaction old[ARRAY_LEN(view_crash_signals)];
} view_crash;

static void view_on_crash(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (write(STDOUT_FILENO, view_crash.bytes, view_crash.length) >= 0)
		tcsetattr(STDIN_FILENO, TCSANOW, &view_crash.before);
	for (size_t i = 0; i < ARRAY_LEN(view_crash_signals); i++)
		if (view_crash_signals[i] == number)
			sigaction(number, &view_crash.old[i], NULL);
	/* The instruction that failed runs again, so that the earlier action learns what failed. */
	if (info->si_code <= 0) /* the signal was sent */
		raise(number);
}

/* For a signal handler: restore the terminal without blocking on its output, and exit with
 * @code. */
static void view_crash_leave(int code)
{
	const int flags = fcntl(STDOUT_FILENO, F_GETFL);

	/* The shell shares the open file description: restore its flags. */
	if (view_crash.guarding && fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK) == 0) {
		if (write(STDOUT_FILENO, view_crash.bytes, view_crash.length) < 0)
			view_crash.length = 0;
		fcntl(STDOUT_FILENO, F_SETFL, flags);
		tcsetattr(STDIN_FILENO, TCSANOW, &view_crash.before);
	}
	_exit(code);
}

/* Compose the bytes: attributes off, cursor on, keypad off, main screen, mouse reports off. */
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
	/* Only terminals with a mouse know these; the others ignore them. */
	length = strlen(view_crash.bytes);
	if (tigetstr("kmous") && tigetstr("kmous") != (char *)-1)
		str_copy(view_crash.bytes + length, BYTES_SIZE - length,
			 "\033[?1000l\033[?1002l\033[?1006l");
	view_crash.length = strlen(view_crash.bytes);
}

static void view_crash_guard(const struct termios *before)
{
	struct sigaction action;

	view_crash.before = *before;
	view_crash_bytes();
	view_crash.guarding = true;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = view_on_crash;
	action.sa_flags = (int)(SA_SIGINFO | SA_RESETHAND | SA_NODEFER);
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < ARRAY_LEN(view_crash_signals); i++)
		sigaction(view_crash_signals[i], &action, &view_crash.old[i]);
}

/* ---- the terminal ---------------------------------------------------------------------------- */

#define SEQUENCE_SIZE 24
#define TICK_MS       250
#define CANCEL_MS     10
#define ESCAPE_MS     25
#define KEYS_AT_ONCE  64
#define RUN_MOST      256
#ifdef BUTTON5_PRESSED
#define WHEEL_DOWN BUTTON5_PRESSED
#else
#define WHEEL_DOWN 0 /* ncurses built for four buttons */
#endif
/* A button pressed and released before the event is read is one click event. */
#define MOUSE_CLICK  (BUTTON1_PRESSED | BUTTON1_CLICKED)
#define MOUSE_EVENTS (MOUSE_CLICK | BUTTON1_RELEASED | BUTTON4_PRESSED | WHEEL_DOWN)

static volatile sig_atomic_t view_end_signal, view_stop_signal, view_wake_signal;

static int view_pipe[2] = {-1, -1};

struct view_term {
	SCREEN *screen;
	attr_t attributes[VIEW_STYLES_ALL];
	short pairs[VIEW_STYLES_ALL];
	int colours;             /* 256, 16, 8 or 0 */
	struct view_cell *shown; /* what ncurses displays; NULL: unknown */
	int width, height;       /* of it */
};

bool view_term_unicode(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* ---- signals --------------------------------------------------------------------------------- */

/* The first signal ends the loop. If the loop hangs, in a terminal that accepts no output or a job
 * that does not stop, a signal at least a second later ends the program. */
static void view_on_end_signal(int number)
{
	static struct timespec first;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!view_end_signal)
		first = now;
	else if (now.tv_sec > first.tv_sec + 1 ||
		 (now.tv_sec == first.tv_sec + 1 && now.tv_nsec >= first.tv_nsec))
		view_crash_leave(128 + number);
	view_end_signal = number;
}

static void view_on_signal(int number)
{
	const int kept = errno;
	const char byte = 0;

	if (number == SIGTSTP)
		view_stop_signal = 1;
	else if (number == SIGCONT || number == SIGWINCH)
		view_wake_signal = 1;
	else
		view_on_end_signal(number);
	if (write(view_pipe[1], &byte, 1) < 0)
		errno = 0; /* a full pipe wakes as well */
	errno = kept;
}

static const int view_signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE, SIGALRM,
				   SIGUSR1, SIGUSR2, SIGXCPU, SIGTSTP, SIGCONT, SIGWINCH};

static enum status view_install_handlers(struct sigaction *old, struct err *err)
{
	struct sigaction action;

	view_end_signal = view_stop_signal = view_wake_signal = 0;
	if (pipe2(view_pipe, O_NONBLOCK | O_CLOEXEC))
		return err_set(err, ST_IO, "pipe: %s", strerror(errno));
	memset(&action, 0, sizeof(action));
	action.sa_handler = view_on_signal;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < ARRAY_LEN(view_signals); i++)
		sigaction(view_signals[i], &action, &old[i]);
	return ST_OK;
}

/* ---- colours --------------------------------------------------------------------------------- */

static attr_t view_attributes(const char *letters)
{
	static const struct {
		char letter;
		attr_t attribute;
	} table[] = {{'B', A_BOLD}, {'R', A_REVERSE}, {'U', A_UNDERLINE}, {'D', A_DIM}};
	attr_t out = A_NORMAL;

	for (; *letters; letters++)
		for (size_t i = 0; i < ARRAY_LEN(table); i++)
			if (table[i].letter == *letters)
				out |= table[i].attribute;
	return out;
}

/* The number of usable colours; 256 only with a pair for each style. */
static int view_count_colours(bool colour)
{
	if (!colour || !has_colors() || start_color() != OK || COLORS < 8)
		return 0;
	if (COLORS >= 256 && COLOR_PAIRS > VIEW_STYLES_ALL)
		return 256;
	return COLORS >= 16 ? 16 : 8;
}

static void view_make_styles(struct view_term *term, enum view_theme theme, bool colour)
{
	const int colours = view_count_colours(colour);
	const bool own = colours > 0 && use_default_colors() == OK;
	const bool dark = theme == VIEW_DARK;

	term->colours = colours;
	for (int i = 0; i < VIEW_STYLES_ALL; i++) {
		const struct view_paint paint = view_style_paint((unsigned)i, theme, colours);
		short text = paint.text, ground = paint.ground;

		term->pairs[i] = 0;
		term->attributes[i] = view_attributes(paint.attributes);
		if (colours == 0 || i >= COLOR_PAIRS - 1 || (text < 0 && ground < 0))
			continue;
		/* Without default colours use those of the theme. */
		if (text < 0 && !own)
			text = dark ? COLOR_WHITE : COLOR_BLACK;
		if (ground < 0 && !own)
			ground = dark ? COLOR_BLACK : COLOR_WHITE;
		if (init_pair((short)(i + 1), text, ground) == OK)
			term->pairs[i] = (short)(i + 1);
	}
}

/* ---- output ---------------------------------------------------------------------------------- */

/* One row of cells, and what ncurses displays there; NULL: unknown. */
struct view_line {
	const struct view_cell *cells, *shown;
	int y, width;
};

static bool view_is_changed(const struct view_line *line, int x)
{
	return !line->shown || line->cells[x].character != line->shown[x].character ||
	       line->cells[x].style != line->shown[x].style;
}

/* Write the changed cells of one style from @x on in one call; return where they end. The right
 * half of a wide character is written with the left one. */
static int view_flush_run(const struct view_term *term, const struct view_line *line, int x)
{
	const struct view_cell *row = line->cells;
	const uint16_t style = row[x].style;
	wchar_t text[RUN_MOST + 1];
	int count = 0, from = x;

	do {
		if (row[x].character != 0)
			text[count++] = (wchar_t)row[x].character;
		x++;
	} while (x < line->width && count < RUN_MOST &&
		 (row[x].character == 0 || (row[x].style == style && view_is_changed(line, x))));
	text[count] = L'\0';
	attr_set(term->attributes[style], term->pairs[style], NULL);
	mvaddnwstr(line->y, from, text, count);
	return x;
}

static void view_flush(struct view_term *term, struct view_session *session)
{
	const struct view_canvas *canvas = &session->canvas;
	const size_t count = (size_t)canvas->width * (size_t)canvas->height;

	if (session->redraw || term->width != canvas->width || term->height != canvas->height) {
		mem_free(term->shown);
		term->shown = NULL;
		clearok(stdscr, session->redraw);
	}
	session->redraw = false;
	if (!term->shown)
		erase();
	for (int y = 0; y < canvas->height; y++) {
		const size_t first = (size_t)y * (size_t)canvas->width;
		const struct view_line line = {&canvas->cells[first],
					       term->shown ? &term->shown[first] : NULL, y,
					       canvas->width};

		for (int x = 0; x < line.width;) {
			if (!view_is_changed(&line, x)) {
				x++;
				continue;
			}
			if (line.cells[x].character == 0 && x > 0)
				x--;
			x = view_flush_run(term, &line, x);
		}
	}
	/* Store what ncurses displays now; without memory for it, every flush writes everything. */
	if (!term->shown)
		term->shown = mem_calloc(count, sizeof(*term->shown));
	if (term->shown)
		memcpy(term->shown, canvas->cells, count * sizeof(*term->shown));
	term->width = canvas->width;
	term->height = canvas->height;
	refresh();
}

/* ---- input ----------------------------------------------------------------------------------- */

static uint32_t view_special_key(wint_t key)
{
	static const struct {
		int curses;
		uint32_t ours;
	} table[] = {{KEY_UP, VIEW_KEY_UP},
		     {KEY_DOWN, VIEW_KEY_DOWN},
		     {KEY_LEFT, VIEW_KEY_LEFT},
		     {KEY_RIGHT, VIEW_KEY_RIGHT},
		     {KEY_SLEFT, VIEW_KEY_SHIFT_LEFT},
		     {KEY_SRIGHT, VIEW_KEY_SHIFT_RIGHT},
		     {KEY_PPAGE, VIEW_KEY_PAGE_UP},
		     {KEY_NPAGE, VIEW_KEY_PAGE_DOWN},
		     {KEY_HOME, VIEW_KEY_HOME},
		     {KEY_END, VIEW_KEY_END},
		     {KEY_BTAB, VIEW_KEY_BACK_TAB},
		     {KEY_ENTER, VIEW_KEY_ENTER},
		     {KEY_BACKSPACE, VIEW_KEY_BACKSPACE},
		     {KEY_DC, VIEW_KEY_DELETE},
		     {KEY_F(1), VIEW_KEY_F1},
		     {KEY_F(3), VIEW_KEY_F3},
		     {KEY_F(4), VIEW_KEY_F4},
		     {KEY_F(5), VIEW_KEY_F5},
		     {KEY_F(6), VIEW_KEY_F6},
		     {KEY_F(10), VIEW_KEY_F10},
		     {KEY_RESIZE, VIEW_KEY_RESIZE}};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].curses == (int)key)
			return table[i].ours;
	return VIEW_KEY_NONE;
}

void view_mouse(struct view_session *session, int x, int y, unsigned long bits)
{
	if (bits & (BUTTON4_PRESSED | WHEEL_DOWN))
		view_session_wheel(session, x, y,
				   bits & BUTTON4_PRESSED ? VIEW_KEY_WHEEL_UP
							  : VIEW_KEY_WHEEL_DOWN);
	if (bits & MOUSE_CLICK)
		view_session_click(session, x, y);
	if (bits & BUTTON1_RELEASED)
		view_session_release(session, x, y);
}

/* Decode the input after Esc: Esc alone, Esc before another key (Alt), or a sequence unknown to
 * TERM, all of which is consumed. */
static uint32_t view_read_escape(void)
{
	char text[SEQUENCE_SIZE] = "";
	wint_t code = 0;
	size_t length = 0;
	int kind = ERR;

	while (length + 1 < sizeof(text) && (kind = get_wch(&code)) == OK && code < 0x7f) {
		if (length == 0 && code != '[' && code != 'O') {
			unget_wch((wchar_t)code);
			return VIEW_KEY_ESCAPE;
		}
		text[length++] = (char)code;
		/* The Linux console has two brackets before the letter of F1 to F5. */
		if (length > 1 && code >= '@' && code <= '~' && !(length == 2 && code == '['))
			return view_escape_key(text);
	}
	/* What is no part of a sequence is the next key. */
	if (kind == KEY_CODE_YES)
		ungetch((int)code);
	else if (kind == OK && code >= 0x7f)
		unget_wch((wchar_t)code);
	if (length == 1)
		unget_wch((wchar_t)text[0]);
	return length <= 1 ? VIEW_KEY_ESCAPE : VIEW_KEY_NONE;
}

/* Pass the next key or click to the session; false: no input. */
static bool view_read_input(struct view_session *session)
{
	wint_t code = 0;
	const int kind = get_wch(&code);
	uint32_t key = VIEW_KEY_NONE;
	MEVENT event;

	if (kind == ERR)
		return false;
	if (kind == KEY_CODE_YES && code == KEY_MOUSE) {
		if (getmouse(&event) == OK)
			view_mouse(session, event.x, event.y, event.bstate);
	} else if (kind == KEY_CODE_YES)
		key = view_special_key(code);
	else if (code == '\n')
		key = VIEW_KEY_ENTER;
	else if (code == VIEW_KEY_ESCAPE)
		key = view_read_escape();
	else if ((uint32_t)code < 0x110000)
		key = (uint32_t)code;
	if (key != VIEW_KEY_NONE && key != VIEW_KEY_RESIZE)
		view_session_key(session, key);
	return true;
}

/* ---- entering and leaving -------------------------------------------------------------------- */

static enum status view_enter_screen(struct view_term *term, struct view_session *session,
				     const struct view_term_params *params, struct err *err)
{
	struct termios before;

	if (tcgetattr(STDIN_FILENO, &before) != 0)
		return err_set(err, ST_UNSUPPORTED, "standard input is no terminal");
	/* Check the terminal first: newterm() leaks memory when it fails. */
	if (tgetent(NULL, getenv("TERM") ? getenv("TERM") : "") == 1)
		term->screen = newterm(NULL, stdout, stdin);
	if (!term->screen)
		return err_set(
			err, ST_UNSUPPORTED,
			"the terminal type is unknown (set TERM, or use --view NAME --text)");
	view_crash_guard(&before);
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	view_make_styles(term, session->theme, params->colour);
	session->canvas.colours = term->colours;
	if (params->mouse) {
		mouseinterval(0); /* report a press at once, without waiting for a click */
		if (mousemask(MOUSE_EVENTS, NULL) == 0)
			view_message(&session->context, "this type of terminal reports no mouse",
				     NULL);
	}
	return ST_OK;
}

/* The only place that restores the terminal. */
static void view_leave_screen(struct view_term *term)
{
	curs_set(1);
	mousemask(0, NULL);
	endwin();
	view_crash.guarding = false;
	for (size_t i = 0; i < ARRAY_LEN(view_crash_signals); i++)
		sigaction(view_crash_signals[i], &view_crash.old[i], NULL);
	delscreen(term->screen);
	term->screen = NULL;
	mem_free(term->shown);
	term->shown = NULL;
}

static void view_suspend(struct view_session *session)
{
	struct sigaction old, standard;

	view_stop_signal = 0;
	def_prog_mode();
	endwin();
	memset(&standard, 0, sizeof(standard));
	standard.sa_handler = SIG_DFL;
	sigaction(SIGTSTP, &standard, &old);
	raise(SIGTSTP); /* the process stops here until SIGCONT */
	sigaction(SIGTSTP, &old, NULL);
	reset_prog_mode();
	session->redraw = true;
}

/* Resize the session if the terminal's size differs from the canvas's. */
static enum status view_follow_size(struct view_session *session, struct err *err)
{
	struct winsize size;
	int width = COLS, height = LINES;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
		width = size.ws_col;
		height = size.ws_row;
	}
	if (width == session->canvas.width && height == session->canvas.height)
		return ST_OK;
	if (is_term_resized(height, width))
		resize_term(height, width);
	session->redraw = true;
	return view_session_size(session, width, height, err);
}

/* Wait for a key, a signal or the next tick; false: the terminal is gone. */
static bool view_wait(const struct view_session *session, int milliseconds)
{
	/* A nudge cancels the job; the poll after its end consumes the nudge. */
	const bool busy = view_session_busy(session) && view_cancelled(&session->context);
	const int source = busy ? -1 : session->source.watch;
	const int target = busy || !session->context.target ? -1 : session->target.watch;
	struct pollfd wait[] = {{STDIN_FILENO, POLLIN, 0},
				{view_pipe[0], POLLIN, 0},
				{source, POLLIN, 0},
				{target, POLLIN, 0}};
	char bytes[64];

	if (poll(wait, ARRAY_LEN(wait), milliseconds) < 0)
		return errno == EINTR;
	while (read(view_pipe[0], bytes, sizeof(bytes)) > 0)
		;
	return !(wait[0].revents & (POLLHUP | POLLERR | POLLNVAL)) || (wait[0].revents & POLLIN);
}

/* The poll timeout in ms. A cancelled job is interrupted repeatedly: each interrupt ends one
 * query. */
static int view_poll_timeout(const struct view_session *session)
{
	if (view_session_busy(session))
		return view_cancelled(&session->context) ? CANCEL_MS : TICK_MS;
	/* Nothing is loaded while the terminal is too small. */
	if (session->frame.too_small)
		return TICK_MS;
	/* The result of a key or a job is drawn before the next wait. */
	return session->stale || (session->context.more && !session->paused && session->source.db)
		       ? 0
		       : TICK_MS;
}

static enum status view_loop(struct view_term *term, struct view_session *session, struct err *err)
{
	bool draw = true;
	enum status status;

	while (!session->quit && !view_end_signal) {
		status = view_follow_size(session, err);
		if (status != ST_OK)
			return status;
		if (session->stale || session->redraw || draw) {
			view_session_draw(session);
			view_flush(term, session);
		}
		draw = view_wake_signal;
		view_wake_signal = 0;
		if (!view_wait(session, view_poll_timeout(session)))
			return ST_OK;
		if (view_stop_signal)
			view_suspend(session);
		for (int i = 0; i < KEYS_AT_ONCE && !session->quit; i++) {
			if (!view_read_input(session))
				break;
			draw = true;
		}
		draw = view_session_tick(session, clock_ns()) || draw;
	}
	return ST_OK;
}

enum status view_term_run(struct view_session *session, const struct view_term_params *params,
			  int *signal_number, struct err *err)
{
	struct sigaction old[ARRAY_LEN(view_signals)];
	struct view_term term = {0};

	*signal_number = 0;
	if (view_install_handlers(old, err) != ST_OK)
		return err->status;
	if (view_session_background(session, view_pipe[1], err) == ST_OK &&
	    view_enter_screen(&term, session, params, err) == ST_OK) {
		view_loop(&term, session, err);
		view_leave_screen(&term);
	}
	*signal_number = view_end_signal;
	view_session_foreground(session);
	for (size_t i = 0; i < ARRAY_LEN(view_signals); i++)
		sigaction(view_signals[i], &old[i], NULL);
	close(view_pipe[0]);
	close(view_pipe[1]);
	view_pipe[0] = view_pipe[1] = -1;
	return err->status;
}
