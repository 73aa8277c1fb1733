/*
 * The lines of training on a terminal that this test is: bars give way to other lines and come
 * back, from whatever thread those are, and nothing on the screen is cut short or wraps.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "support/support.h"
#include "trainer/train_screen.h"

#define WIDTH   80
#define ROWS    512
#define THREADS 4
#define LINES   20 /* of each thread */

struct terminal {
	int master;
	FILE *out;
	char row[ROWS][4 * WIDTH];
	int rows, column; /* of the cursor, in the last row */
	char text[1 << 14];
	size_t held; /* of it: what begins a sequence whose rest is still to come */
};

static void open_terminal(struct terminal *t)
{
	const struct winsize size = {.ws_row = 24, .ws_col = WIDTH};
	struct termios raw;
	char name[128];
	int slave;

	memset(t, 0, sizeof(*t));
	t->rows = 1;
	t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(t->master >= 0);
	assert_int_equal(grantpt(t->master) | unlockpt(t->master), 0);
	assert_int_equal(ptsname_r(t->master, name, sizeof(name)), 0);
	slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	assert_int_equal(tcgetattr(slave, &raw), 0);
	raw.c_oflag &= ~(tcflag_t)OPOST;
	assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
	assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
	assert_int_equal(fcntl(t->master, F_SETFL, O_NONBLOCK), 0);
	t->out = fdopen(slave, "w");
	assert_non_null(t->out);
}

static void close_terminal(struct terminal *t)
{
	fclose(t->out);
	close(t->master);
}

/* What has been written since, as a terminal shows it; CSI 2 K is the only sequence. */
static void look(struct terminal *t)
{
	ssize_t count;

	fflush(t->out);
	while ((count = read(t->master, t->text + t->held, sizeof(t->text) - t->held)) > 0) {
		const size_t end = t->held + (size_t)count;

		t->held = 0;
		for (size_t i = 0; i < end; i++) {
			char *row = t->row[t->rows - 1];

			if (t->text[i] == '\033' && i + 3 >= end) {
				t->held = end - i;
				memmove(t->text, t->text + i, t->held);
				break;
			}
			if (t->text[i] == '\033') {
				assert_memory_equal(t->text + i, "\033[2K", 4);
				memset(row, 0, sizeof(t->row[0]));
				i += 3;
			} else if (t->text[i] == '\r') {
				t->column = 0;
			} else if (t->text[i] == '\n') {
				assert_true(t->rows < ROWS);
				t->rows++;
				t->column = 0;
			} else {
				assert_true(t->column < (int)sizeof(t->row[0]) - 1);
				row[t->column++] = t->text[i];
			}
		}
	}
}

static void assert_row(const struct terminal *t, int from_last, const char *begin, const char *end)
{
	const char *row = t->row[t->rows - 1 - from_last];

	if (strncmp(row, begin, strlen(begin)) != 0 || strlen(row) < strlen(end) ||
	    strcmp(row + strlen(row) - strlen(end), end) != 0)
		fail_msg("\"%s\" is not \"%s ... %s\"", row, begin, end);
}

static void test_the_compile_bar_gives_way_to_a_line(void **state)
{
	struct train_screen screen;
	struct terminal t;

	(void)state;
	open_terminal(&t);
	train_screen_init(&screen, t.out, false);
	screen.log = t.out;
	for (int step = 0; step < 4; step++) {
		train_screen_compile(&screen, "model", step);
		train_screen_say(&screen, screen.log, "[HEALTH] rule=exploding\n");
		look(&t);
		assert_int_equal(t.rows, 3 + step);
		assert_row(&t, 0, "[", "]"); /* whole, with the time that has elapsed */
		assert_true(strlen(t.row[t.rows - 1]) < WIDTH);
		assert_row(&t, 1, "[HEALTH] rule=exploding", "exploding");
	}
	train_screen_compile(&screen, "model", 4);
	train_screen_say(&screen, screen.log, "behind it\n");
	look(&t);
	assert_row(&t, 2, "[", "]");
	assert_non_null(strstr(t.row[t.rows - 3], "100% Compilation Finished"));
	assert_row(&t, 1, "behind it", "it");
	assert_string_equal(t.row[t.rows - 1], "");
	close_terminal(&t);
}

/* A figure that there is no room for is left out: 0.10 for 0.1062 would be another number. */
static void test_figures_are_whole_or_not_there(void **state)
{
	const char *names[] = {"loss", "accuracy", "top_k_categorical_accuracy"};
	double values[] = {2.302585, 0.1062, 0.5};
	const struct train_figures figures = {3, names, values};
	struct train_screen screen;
	struct terminal t;

	(void)state;
	open_terminal(&t);
	train_screen_init(&screen, t.out, false);
	train_screen_epoch(&screen, 1, 1, 400, &figures);
	train_screen_executed(&screen, 100);
	look(&t);
	assert_row(&t, 0, "100/400 [======>.......................] - ETA: ", " - loss: 2.3026");
	assert_true(strlen(t.row[t.rows - 1]) < WIDTH);
	/* A run that ends here says more below. */
	train_screen_leave(&screen);
	fputs("ipu-train: no\n", t.out);
	look(&t);
	assert_row(&t, 2, "100/400 [", " - loss: 2.3026");
	assert_row(&t, 1, "ipu-train: no", "no");
	close_terminal(&t);
}

struct talker {
	struct train_screen *screen;
	FILE *out;
	int number;
	_Atomic int *ended;
};

static void *talk(void *user)
{
	const struct talker *talker = user;
	char line[64];

	for (int i = 0; i < LINES; i++) {
		snprintf(line, sizeof(line), "[HEALTH] thread=%d line=%d.", talker->number, i);
		train_screen_say(talker->screen, talker->out, "%s\n", line);
	}
	(*talker->ended)++;
	return NULL;
}

static void test_lines_of_threads_are_whole_beside_a_bar(void **state)
{
	const struct train_figures none = {0};
	struct talker talkers[THREADS];
	pthread_t threads[THREADS];
	struct train_screen screen;
	int lines = 0, bars = 0;
	_Atomic int ended = 0;
	struct terminal t;

	(void)state;
	open_terminal(&t);
	train_screen_init(&screen, t.out, false);
	train_screen_epoch(&screen, 1, 1, 400, &none);
	for (int i = 0; i < THREADS; i++) {
		talkers[i] = (struct talker){&screen, t.out, i, &ended};
		assert_int_equal(pthread_create(&threads[i], NULL, talk, &talkers[i]), 0);
	}
	/* A terminal that nobody reads stops its writers. */
	for (int i = 1; i <= 100 || ended < THREADS; i++) {
		train_screen_progress(&screen, i % 100);
		look(&t);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	train_screen_progress(&screen, 101);
	look(&t);
	for (int i = 0; i < t.rows; i++) {
		const char *row = t.row[i];
		int thread, line, length = 0;

		if (sscanf(row, "[HEALTH] thread=%d line=%d.%n", &thread, &line, &length) == 2) {
			assert_int_equal(row[length], '\0');
			lines++;
		}
		bars += strstr(row, "/400 [") != NULL;
	}
	assert_int_equal(lines, THREADS * LINES);
	assert_int_equal(bars, 1); /* the last row's: none was left behind */
	assert_row(&t, 0, "101/400 [", "s");
	close_terminal(&t);
}

/* Where a log is no terminal, nothing but its lines goes there. */
static void test_a_log_elsewhere_has_lines_alone(void **state)
{
	struct train_screen screen;
	struct terminal t;
	FILE *log = tmpfile();

	(void)state;
	assert_non_null(log);
	open_terminal(&t);
	train_screen_init(&screen, t.out, false);
	train_screen_compile(&screen, "model", 1);
	train_screen_say(&screen, log, "one\n");
	train_screen_say(&screen, NULL, "none\n");
	assert_int_equal(ftell(log), 4);
	look(&t);
	assert_row(&t, 0, "[", "]");
	fclose(log);
	close_terminal(&t);
}

/* Lines of several processes mix in a log that they share, unless each is one write. */
static void test_a_line_is_one_write(void **state)
{
	struct train_screen screen;
	char text[64] = "";
	FILE *log;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	log = fdopen(ends[0], "w");
	assert_non_null(log);
	assert_int_equal(setvbuf(log, NULL, _IONBF, 0), 0); /* as stderr */
	train_screen_init(&screen, NULL, true);
	train_screen_say(&screen, log, "ipu-train: %d of %s\n", 1, "two");
	assert_int_equal(recv(ends[1], text, sizeof(text) - 1, MSG_DONTWAIT), 20);
	assert_string_equal(text, "ipu-train: 1 of two\n");
	fclose(log);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_compile_bar_gives_way_to_a_line),
		cmocka_unit_test(test_figures_are_whole_or_not_there),
		cmocka_unit_test(test_lines_of_threads_are_whole_beside_a_bar),
		cmocka_unit_test(test_a_log_elsewhere_has_lines_alone),
		cmocka_unit_test(test_a_line_is_one_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
