/*
 * ipu-view in a terminal that this test is: given back whatever ends it, closed, stalled, resized
 * and suspended while a job runs, of unknown types and absurd sizes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "support/support.h"
#include "support/view_fixture.h"

#define LEAVES "\033[?1049l" /* the alternate screen, of an xterm */
#define ENDLESS                                                                                    \
	":WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM "   \
	"c;\r"
#define PATIENCE UINT64_C(120000000000) /* ns; a sanitizer on a busy machine */

struct terminal {
	char folder[SUPPORT_PATH_SIZE];
	char path[SUPPORT_PATH_SIZE + 16];
	const char *type;
	int fd; /* the master */
	pid_t pid;
	struct termios before;
	char text[1 << 16]; /* what came last */
	size_t length;
};

static int setup(void **state)
{
	struct terminal *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	support_tempdir(t->folder);
	snprintf(t->path, sizeof(t->path), "%s/run.db", t->folder);
	setenv("XDG_STATE_HOME", t->folder, 1);
	setenv("XDG_CONFIG_HOME", t->folder, 1);
	t->type = "xterm-256color";
	*state = t;
	return view_fixture_write(t->path, 0) ? 0 : -1;
}

static int teardown(void **state)
{
	struct terminal *t = *state;

	support_tempdir_remove(t->folder);
	free(t);
	return 0;
}

static void resize(const struct terminal *t, int width, int height)
{
	const struct winsize size = {.ws_row = (unsigned short)height,
				     .ws_col = (unsigned short)width};

	assert_int_equal(ioctl(t->fd, TIOCSWINSZ, &size), 0);
}

/* In the child: does not return. */
static void run_viewer(const struct terminal *t, const char *name)
{
	char program[SUPPORT_PATH_SIZE + 16];
	int fd;

	snprintf(program, sizeof(program), "%s/ipu-view", support_bin_dir());
	setsid();
	fd = open(name, O_RDWR); /* it becomes the controlling one */
	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	setenv("TERM", t->type, 1);
	execl(program, program, t->path, (char *)NULL);
	_exit(127);
}

static void start(struct terminal *t, int width, int height)
{
	char name[64];
	int slave;

	t->fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(t->fd >= 0);
	assert_int_equal(grantpt(t->fd), 0);
	assert_int_equal(unlockpt(t->fd), 0);
	assert_int_equal(ptsname_r(t->fd, name, sizeof(name)), 0);
	slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	resize(t, width, height);
	assert_int_equal(tcgetattr(slave, &t->before), 0);
	t->pid = fork();
	assert_true(t->pid >= 0);
	if (t->pid == 0)
		run_viewer(t, name);
	close(slave);
	t->length = 0;
	t->text[0] = '\0';
}

/* What comes within @ms; the oldest of too much is dropped. */
static bool take_some(struct terminal *t, int ms)
{
	struct pollfd wait = {t->fd, POLLIN, 0};
	ssize_t got;

	if (poll(&wait, 1, ms) <= 0)
		return false;
	if (t->length > sizeof(t->text) / 2) {
		memmove(t->text, t->text + t->length / 2, t->length - t->length / 2);
		t->length -= t->length / 2;
	}
	got = read(t->fd, t->text + t->length, sizeof(t->text) - 1 - t->length);
	if (got <= 0)
		return false;
	for (ssize_t i = 0; i < got; i++)
		if (t->text[t->length + (size_t)i] == '\0')
			t->text[t->length + (size_t)i] = ' ';
	t->length += (size_t)got;
	t->text[t->length] = '\0';
	return true;
}

static void see(struct terminal *t, const char *part)
{
	const uint64_t since = clock_ns();

	while (!strstr(t->text, part) && clock_ns() - since < PATIENCE)
		if (!take_some(t, 50))
			usleep(5000);
	assert_contains(t->text, part);
	t->length = 0;
	t->text[0] = '\0';
}

static void type_keys(const struct terminal *t, const char *keys)
{
	assert_int_equal(write(t->fd, keys, strlen(keys)), (ssize_t)strlen(keys));
}

/* How it ended: as a shell says it. @reads: what it still writes is read. */
static int end(struct terminal *t, bool reads)
{
	const uint64_t since = clock_ns();
	int state;

	while (waitpid(t->pid, &state, WNOHANG) == 0) {
		if (clock_ns() - since > PATIENCE) {
			kill(t->pid, SIGKILL);
			waitpid(t->pid, &state, 0);
			fail_msg("it does not end");
		}
		if (!reads || !take_some(t, 10))
			usleep(10000);
	}
	while (reads && take_some(t, 0))
		;
	return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

/* The modes are those from before. */
static void assert_given_back(const struct terminal *t)
{
	struct termios now;

	assert_int_equal(tcgetattr(t->fd, &now), 0);
	assert_int_equal(now.c_lflag, t->before.c_lflag);
	assert_int_equal(now.c_iflag, t->before.c_iflag);
	assert_int_equal(now.c_oflag, t->before.c_oflag);
}

static double processor_seconds(const struct terminal *t)
{
	char path[64], *text, *at;
	unsigned long user, system;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)t->pid);
	text = support_read_file(path, NULL);
	at = strrchr(text, ')');
	assert_int_equal(
		sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system),
		2);
	free(text);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void test_every_signal_that_ends_it_gives_the_terminal_back(void **state)
{
	static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE,
				      SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU};
	struct terminal *t = *state;

	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		start(t, 80, 24);
		see(t, "Pipeline bubble");
		kill(t->pid, signals[i]);
		assert_int_equal(end(t, true), signals[i] == SIGINT ? 0 : 128 + signals[i]);
		assert_contains(t->text, LEAVES);
		assert_given_back(t);
		close(t->fd);
	}
}

static void test_a_closed_terminal_ends_it_though_a_job_runs(void **state)
{
	struct terminal *t = *state;

	for (int ignored = 0; ignored < 2; ignored++) {
		signal(SIGHUP, ignored ? SIG_IGN : SIG_DFL);
		start(t, 80, 24);
		signal(SIGHUP, SIG_DFL);
		see(t, "Pipeline bubble");
		type_keys(t, ENDLESS);
		see(t, "Esc stops it");
		close(t->fd);
		end(t, false);
	}
}

static void test_a_job_goes_on_through_other_sizes(void **state)
{
	struct terminal *t = *state;

	start(t, 80, 24);
	see(t, "Pipeline bubble");
	type_keys(t, ENDLESS);
	see(t, "Esc stops it");
	resize(t, 1, 1);
	while (take_some(t, 300))
		;
	resize(t, 100, 30);
	see(t, "Esc stops it");
	type_keys(t, "\033");
	see(t, "stopped");
	type_keys(t, "\003");
	assert_int_equal(end(t, true), 0);
	assert_given_back(t);
	close(t->fd);
}

static void test_the_key_after_esc_counts(void **state)
{
	struct terminal *t = *state;

	start(t, 80, 24);
	see(t, "Pipeline bubble");
	type_keys(t, "/what");
	see(t, "what");
	type_keys(t, "\033\033OP"); /* Esc, F1 */
	see(t, "The screen Summary");
	type_keys(t, "\003");
	assert_int_equal(end(t, true), 0);
	assert_given_back(t);
	close(t->fd);
}

/* F1 as the Linux console sends it: an xterm's description lacks it. No part is another key. */
static void test_a_sequence_of_another_terminal_is_one_key(void **state)
{
	struct terminal *t = *state;

	start(t, 80, 24);
	see(t, "Pipeline bubble");
	type_keys(t, "\033[[A");
	see(t, "The screen Summary");
	type_keys(t, "\003");
	assert_int_equal(end(t, true), 0);
	assert_given_back(t);
	close(t->fd);
}

/* Nobody reads what it draws: as over a line that is cut. */
static void test_a_stalled_terminal_costs_nothing_and_can_be_left(void **state)
{
	struct terminal *t = *state;
	const uint64_t since = clock_ns();
	double before, now;

	start(t, 200, 60);
	see(t, "Pipeline bubble");
	type_keys(t, "7v2345678921738472918273918273");
	/* It comes to use less than a tenth of a processor. */
	now = processor_seconds(t);
	do {
		before = now;
		usleep(1000000);
		now = processor_seconds(t);
	} while (now - before > 0.1 && clock_ns() - since < PATIENCE);
	assert_true(now - before <= 0.1);
	kill(t->pid, SIGTERM);
	usleep(1200000);
	kill(t->pid, SIGTERM);
	assert_int_equal(end(t, false), 128 + SIGTERM);
	assert_given_back(t);
	close(t->fd);
}

static void test_a_terminal_of_no_known_type_is_one_line(void **state)
{
	struct terminal *t = *state;

	t->type = "no-such-terminal";
	start(t, 80, 24);
	assert_int_equal(end(t, true), 2);
	assert_contains(t->text, "set TERM, or use --view NAME --text");
	assert_null(strchr(strchr(t->text, '\n') + 1, '\n'));
	assert_given_back(t);
	close(t->fd);
}

/* Where the terminal says no size, its variables count, as far as they make sense. */
static void test_absurd_sizes_are_survived(void **state)
{
	static const char *const sizes[][2] = {
		{"-5", "0"}, {"99999999", "99999999"}, {"x", ""}, {"1", "1"}};
	struct terminal *t = *state;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		setenv("COLUMNS", sizes[i][0], 1);
		setenv("LINES", sizes[i][1], 1);
		start(t, 0, 0);
		take_some(t, PATIENCE / 1000000);
		while (take_some(t, 200))
			;
		type_keys(t, "Q");
		assert_true(end(t, true) <= 2);
		assert_given_back(t);
		close(t->fd);
	}
	unsetenv("COLUMNS");
	unsetenv("LINES");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_signal_that_ends_it_gives_the_terminal_back),
		TEST(test_a_closed_terminal_ends_it_though_a_job_runs),
		TEST(test_a_job_goes_on_through_other_sizes),
		TEST(test_the_key_after_esc_counts),
		TEST(test_a_sequence_of_another_terminal_is_one_key),
		TEST(test_a_stalled_terminal_costs_nothing_and_can_be_left),
		TEST(test_a_terminal_of_no_known_type_is_one_line),
		TEST(test_absurd_sizes_are_survived),
	};

	setenv("LC_ALL", "C.UTF-8", 1);
	unsetenv("NO_COLOR");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
