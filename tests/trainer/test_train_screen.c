/*
 * The lines of training on a terminal that this test is: bars give way to other lines and come
 * back, from whatever thread those are, and nothing on the screen is cut short or wraps.
 */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "common/mem.h"
#include "ipu/plan/ipu_plan.h"
#include "support/math.h"
#include "support/support.h"
#include "trainer/train_screen.h"

#define WIDTH   80
#define WIDEST  150
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

/* ---- the last line of an epoch --------------------------------------------------------------- */

enum {
	PARTS = 8, /* figures, and the simulated time */
	LEAST = 40 /* columns; on a narrower terminal lines wrap */
};

static void set_width(const struct terminal *t, int width)
{
	const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)width};

	assert_int_equal(ioctl(fileno(t->out), TIOCSWINSZ, &size), 0);
}

/* The bar that a line shows, and its length. How long the epoch has taken is not known here: what
 * stands before the figures is read from the line. */
static int find_bar(const char *row, int *before_figures)
{
	const char *begin = strchr(row, '['), *end = strchr(row, ']'), *step = strstr(row, "/step");

	assert_true(begin && end && step && begin < end && end < step);
	*before_figures = (int)(step - row) + 5;
	return (int)(end - begin) - 1;
}

/* @done of @steps are done. A bar of 30 cells becomes one of 20 or 10 where the line is too narrow;
 * a part that the line has no room for then begins the next one. */
static void assert_last_line(const struct terminal *t, int width, char parts[PARTS][64], int count,
			     int done, int steps)
{
	const int cells = find_bar(t->row[0], &(int){0}), filled = done * cells / steps;
	char expected[1024] = "";
	int column, row = 0, room = width, most;

	find_bar(t->row[0], &column);
	room -= column - cells;
	for (int i = 0; i < count; i++)
		if (strncmp(parts[i], "IPU", 3) != 0)
			room -= 3 + (int)strlen(parts[i]);
	most = room >= 30 ? 30 : room >= 20 ? 20 : 10;
	if (cells != most)
		fail_msg("%d columns: \"%s\" has a bar of %d cells, not %d", width, t->row[0],
			 cells, most);
	for (int i = 0; i < cells; i++) {
		const char cell = i >= filled ? '.' : i == filled - 1 && filled < cells ? '>' : '=';

		assert_int_equal(strchr(t->row[0], '[')[1 + i], cell);
	}
	memcpy(expected, t->row[0], (size_t)column);
	for (int i = 0; i < count; i++) {
		if (column + 3 + (int)strlen(parts[i]) <= width) {
			column += sprintf(expected + column, " - %s", parts[i]);
			continue;
		}
		assert_string_equal(t->row[row], expected);
		row++;
		column = sprintf(expected, "    %s", parts[i]);
	}
	assert_string_equal(t->row[row], expected);
	assert_int_equal(t->rows, row + 2);
	assert_string_equal(t->row[row + 1], "");
}

static void test_the_last_line_goes_on_in_the_next_where_it_is_full(void **state)
{
	const char *names[PARTS - 1] = {"loss",     "accuracy",     "mean_absolute_error",
					"val_loss", "val_accuracy", "val_mean_absolute_error",
					"lr"};
	const double values[PARTS - 1] = {2.302585, 0.1062, 12.5, 0.5, 1.0, 1234.5678, 0.00001};
	static struct terminal t;
	char parts[PARTS][64];

	(void)state;
	open_terminal(&t);
	for (int i = 0; i < PARTS - 1; i++)
		sprintf(parts[i], "%s: %.4f", names[i], values[i]);
	for (int width = LEAST - 10; width <= WIDEST; width++) {
		for (int count = 0; count < PARTS; count++) {
			const struct train_figures figures = {count, names, (double *)values};
			const int steps = 400,
				  done = count > 0 ? (width * 37 + count) % 400 + 1 : 0;
			const bool device = (width + count) % 2;
			struct train_screen screen;
			char rest[64];

			set_width(&t, width);
			memset(t.row, 0, sizeof(t.row));
			t.rows = 1;
			t.column = 0;
			train_screen_init(&screen, t.out, false);
			train_screen_evaluate(&screen, IPS_EVALUATE, steps, &figures);
			if (done > 0)
				train_screen_executed(&screen, done);
			look(&t);
			memset(t.row, 0, sizeof(t.row));
			train_screen_end(&screen, device ? 153e3 : NAN);
			look(&t);
			memcpy(rest, parts[count], sizeof(rest));
			if (device)
				sprintf(parts[count], "IPU, simulated (%s): 153us/step",
					IPU_COST_MODEL);
			assert_last_line(&t, width > LEAST ? width : LEAST, parts, count + device,
					 done, steps);
			memcpy(parts[count], rest, sizeof(rest));
		}
	}
	close_terminal(&t);
}

/* ---- tables ---------------------------------------------------------------------------------- */

#define INPUT                                                                                      \
	"{'class_name': 'InputLayer', 'name': 'i', 'config': {'name': 'i', "                       \
	"'batch_input_shape': [null, 4]}, 'inbound_nodes': []}, "
#define DENSE(name, of)                                                                            \
	"{'class_name': 'Dense', 'name': '" name "', 'config': {'name': '" name                    \
	"', 'units': 3}, 'inbound_nodes': [[['" of "', 0, 0, {}]]]}"
#define ENDS(of)                                                                                   \
	"], 'input_layers': [['i', 0, 0]], 'output_layers': [['" of "', 0, 0]], 'name': 'm'"

/* A rule of 65 "_" is "_65"; lines have no blanks at their ends. */
static const struct tables {
	const char *name, *layers;
	int64_t batch; /* 0: any */
	const char *summary, *stages;
} tables[] = {
	{"layers one after the other",
	 "[{'class_name': 'Dense', 'config': {'name': 'a', 'units': 3}}, {'class_name': "
	 "'BatchNormalization', 'config': {'name': 'b'}}], 'name': 'm'",
	 0,
	 "Model: \"m\"\n"
	 "_65\n"
	 "Layer (type)                 Output Shape              Param #\n"
	 "=65\n"
	 "a (Dense)                    (None, 3)                 15\n"
	 "_65\n"
	 "b (BatchNormalization)       (None, 3)                 12\n"
	 "=65\n"
	 "Total params: 27\n"
	 "Trainable params: 21\n"
	 "Non-trainable params: 6\n"
	 "_65\n",
	 "Model: \"m\"\n"
	 "_60\n"
	 "Layer (type)                  Pipeline Stage\n"
	 "=60\n"
	 "a (Dense)                     0\n"
	 "_60\n"
	 "b (BatchNormalization)        1\n"
	 "=60\n"},
	{"a chain with an input",
	 "[" INPUT DENSE("a", "i") ", " DENSE("a_name_that_is_long_\\u00e4\\u00f6", "a")
		 ENDS("a_name_that_is_long_\\u00e4\\u00f6"),
	 0,
	 "Model: \"m\"\n"
	 "_65\n"
	 "Layer (type)                 Output Shape              Param #\n"
	 "=65\n"
	 "i (InputLayer)               [(None, 4)]               0\n"
	 "_65\n"
	 "a (Dense)                    (None, 3)                 15\n"
	 "_65\n"
	 "a_name_that_is_long_äö (Dens (None, 3)                 12\n"
	 "=65\n"
	 "Total params: 27\n"
	 "Trainable params: 27\n"
	 "Non-trainable params: 0\n"
	 "_65\n",
	 "Model: \"m\"\n"
	 "_89\n"
	 "Layer (type) (node index)          Input Layers                        Pipeline Stage\n"
	 "=89\n"
	 "a (Dense) (0)                      i                                   0\n"
	 "_89\n"
	 "a_name_that_is_long_äö (Dense) (0) a                                   1\n"
	 "=89\n"},
	{"two paths",
	 "[" INPUT DENSE("a", "i") ", " DENSE(
		 "b", "i") ", {'class_name': 'Add', 'name': 's', "
			   "'config': {'name': 's'}, 'inbound_nodes': [[['a', 0, 0, {}], ['b', 0, "
			   "0, {}]]]}" ENDS("s"),
	 8,
	 "Model: \"m\"\n"
	 "_98\n"
	 "Layer (type)                    Output Shape         Param #     Connected to\n"
	 "=98\n"
	 "i (InputLayer)                  [(8, 4)]             0\n"
	 "_98\n"
	 "a (Dense)                       (8, 3)               15          i[0][0]\n"
	 "_98\n"
	 "b (Dense)                       (8, 3)               15          i[0][0]\n"
	 "_98\n"
	 "s (Add)                         (8, 3)               0           a[0][0]\n"
	 "                                                                 b[0][0]\n"
	 "=98\n"
	 "Total params: 30\n"
	 "Trainable params: 30\n"
	 "Non-trainable params: 0\n"
	 "_98\n",
	 "Model: \"m\"\n"
	 "_89\n"
	 "Layer (type) (node index)          Input Layers                        Pipeline Stage\n"
	 "=89\n"
	 "a (Dense) (0)                      i                                   0\n"
	 "_89\n"
	 "b (Dense) (0)                      i                                   1\n"
	 "_89\n"
	 "s (Add) (0)                        a                                   2\n"
	 "                                   b\n"
	 "=89\n"},
	{"two outputs, of a layer and of the next but one",
	 "[" INPUT DENSE("a", "i") ", " DENSE("b", "a") ", " DENSE(
		 "c", "a") "], 'input_layers': [['i', 0, 0]], 'output_layers': [['b', 0, 0], ['c', "
			   "0, 0]], 'name': 'm'",
	 0,
	 "Model: \"m\"\n"
	 "_98\n"
	 "Layer (type)                    Output Shape         Param #     Connected to\n"
	 "=98\n"
	 "i (InputLayer)                  [(None, 4)]          0\n"
	 "_98\n"
	 "a (Dense)                       (None, 3)            15          i[0][0]\n"
	 "_98\n"
	 "b (Dense)                       (None, 3)            12          a[0][0]\n"
	 "_98\n"
	 "c (Dense)                       (None, 3)            12          a[0][0]\n"
	 "=98\n"
	 "Total params: 39\n"
	 "Trainable params: 39\n"
	 "Non-trainable params: 0\n"
	 "_98\n",
	 "Model: \"m\"\n"
	 "_89\n"
	 "Layer (type) (node index)          Input Layers                        Pipeline Stage\n"
	 "=89\n"
	 "a (Dense) (0)                      i                                   0\n"
	 "_89\n"
	 "b (Dense) (0)                      a                                   1\n"
	 "_89\n"
	 "c (Dense) (0)                      a                                   2\n"
	 "_89\n"
	 "outputs (Concatenate) (0)          b                                   3\n"
	 "                                   c\n"
	 "=89\n"},
};

/* Print the summary or the stages (a layer in each) as the texts above are. */
static void print_table(const struct tables *of, const struct model *model, bool stages, char *out)
{
	struct run_layout layout = {.stages = model->layer_count};
	int stage[PARTS];
	char line[256];
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_true(model->layer_count <= PARTS);
	for (int i = 0; i < model->layer_count; i++)
		stage[i] = i;
	layout.stage = stage;
	if (stages)
		train_summary_stages(file, model, &layout);
	else
		train_summary_model(file, model, of->batch);
	rewind(file);
	while (fgets(line, sizeof(line), file)) {
		size_t length = strlen(line) - 1;

		assert_int_equal(line[length], '\n');
		while (length > 0 && line[length - 1] == ' ')
			length--;
		if (length > 1 && strspn(line, (char[]){line[0], '\0'}) == length)
			out += sprintf(out, "%c%zu\n", line[0], length);
		else
			out += sprintf(out, "%.*s\n", (int)length, line);
	}
	*out = '\0';
	fclose(file);
}

static void test_tables_are_keras_s(void **state)
{
	static char text[8192];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		struct math_model m;

		math_model_open(&m, tables[i].layers, 1, (int64_t[]){4});
		print_table(&tables[i], m.model, false, text);
		if (strcmp(text, tables[i].summary) != 0)
			fail_msg("%s:\n%s", tables[i].name, text);
		print_table(&tables[i], m.model, true, text);
		if (strcmp(text, tables[i].stages) != 0)
			fail_msg("%s:\n%s", tables[i].name, text);
		math_model_close(&m);
	}
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
		cmocka_unit_test(test_the_last_line_goes_on_in_the_next_where_it_is_full),
		cmocka_unit_test(test_tables_are_keras_s),
		cmocka_unit_test(test_lines_of_threads_are_whole_beside_a_bar),
		cmocka_unit_test(test_a_log_elsewhere_has_lines_alone),
		cmocka_unit_test(test_a_line_is_one_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
