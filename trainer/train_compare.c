/*
 * Each network is trained in a child process, one after the other: a child that takes too long is
 * killed, and one that exhausts the memory does not affect the others. The child sends its figures
 * through a pipe; the parent prints the table row by row and draws the picture at the end.
 *
 * Threading: the parent has one thread. Ownership: struct comparison owns its rows and lists.
 */
#include "trainer/train_command.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fmt.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "common/str.h"
#include "model/applications/application.h"
#include "trainer/train_job.h"

/* ---- the command line ------------------------------------------------------------------------ */

struct compare_line {
	int steps, seconds;
	const char *batches, *networks, *svg;
	int word_count; /* flags and keys passed to each run */
	char **words;
};

static const struct cli_option compare_options[] = {
	{.name = "--batches",
	 .argument = "LIST",
	 .help = "Batch sizes (default 1,32).",
	 .field = CLI_FIELD(TEXT, struct compare_line, batches)},
	{.name = "--networks",
	 .argument = "LIST",
	 .help = "Networks, as ResNet50,VGG16 (default: all; `ipu-train --list` names them).",
	 .field = CLI_FIELD(TEXT, struct compare_line, networks)},
	{.name = "--seconds",
	 .argument = "COUNT",
	 .help = "The most that the training of one network may take (default 1200).",
	 .field = CLI_RANGE(SIZE, struct compare_line, seconds, 1, CLI_SIZE_MOST)},
	{.name = "--steps",
	 .argument = "COUNT",
	 .help = "Steps of an epoch; the second of two epochs is measured (default 3).",
	 .field = CLI_RANGE(SIZE, struct compare_line, steps, 1, CLI_SIZE_MOST)},
	{.name = "--svg",
	 .argument = "FILE",
	 .help = "Draw the ratios as bars, in the order of arithmetic intensity, into FILE.",
	 .field = CLI_FIELD(TEXT, struct compare_line, svg)},
};

const struct cli_command train_compare_cli = {
	.name = "ipu-train compare",
	.synopsis = "[--networks LIST] [--batches LIST] [--svg FILE] [--key value ...]",
	.summary = "the networks of keras.applications, this machine beside the simulated IPU",
	.about =
		"Train each network of keras.applications for a few steps and print a table: what "
		"a training step takes on this machine (measured) and on the IPU (simulated), and "
		"how many times as long the first is. FLOPs/parameter is the arithmetic intensity: "
		"operations of a batch's forward pass for each parameter. Below the table stands "
		"what all that were trained take one after the other.\n\n"
		"Images are CIFAR-10's (or synthetic ones), enlarged to the side that each network "
		"is made for. What does not fit, or takes too long, is skipped, and the table says "
		"why. Any key of a run file may be given for all (`--ipu.target ipu21`).",
	.options = compare_options,
	.option_count = ARRAY_LEN(compare_options),
	.examples = "ipu-train compare --networks ResNet50,MobileNetV2 --batches 1\ttwo networks\n"
		    "ipu-train compare --svg compare.svg\tall of them, with a picture\n"
		    "ipu-train compare --ipu.target ipu21\ton a Bow IPU\n",
};

static void compare_parse(struct compare_line *line, int argc, char **argv, struct err *err)
{
	struct cli_argument argument;
	struct cli_walk walk;
	bool more = true;

	*line = (struct compare_line){.steps = 3, .seconds = 1200, .batches = "1,32"};
	line->words = mem_calloc((size_t)argc + 1, sizeof(*line->words));
	if (!line->words)
		err_nomem(err);
	cli_begin(&walk, &train_compare_cli, argc, argv, true);
	while (!err_stuck(err)) {
		int from = walk.at;

		if (cli_next(&walk, &argument, &more, err) != ST_OK || !more)
			break;
		if (argument.option)
			cli_set(&argument, line, err);
		else if (!argument.name)
			err_set(err, ST_INVALID, "unexpected word \"%s\" (--help says more)",
				argument.value);
		while (argument.name && !argument.option && from < walk.at)
			line->words[line->word_count++] = argv[from++];
	}
	if (line->svg && !err_stuck(err))
		fs_check_write(line->svg, err);
}

/* ---- one network in a child process ---------------------------------------------------------- */

/* The result of a training, sent as raw bytes: the reader is the same program. */
struct figures {
	int64_t params, flops;  /* of the model; of a batch's forward pass */
	double host_ns, ipu_ns; /* per training step; ipu_ns NaN: no IPU */
	char reason[192];       /* why the figures are missing; "": they are valid */
};

struct row {
	const char *network;
	int64_t batch;
	struct figures is;
};

static enum status parse_run(struct run_file **out, const struct compare_line *line,
			     const struct row *row, struct err *err)
{
	const int64_t side = application_side(row->network);
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"model\": {\"application\": \"%s\", \"config\": {\"weights\": null}}, "
		 "\"compile\": {\"optimizer\": \"sgd\", \"loss\": "
		 "\"sparse_categorical_crossentropy\", \"steps_per_execution\": \"epoch\"}, "
		 "\"data\": {\"name\": \"cifar10\", \"limit\": %" PRId64 ", "
		 "\"batch_size\": %" PRId64 ", \"resize\": [%" PRId64 ", %" PRId64 "]}, "
		 "\"fit\": {\"epochs\": 2, \"steps_per_epoch\": %d}}",
		 row->network, max(row->batch, INT64_C(64)), row->batch, side, side, line->steps);
	return run_file_parse(out, row->network, text, strlen(text), line->word_count, line->words,
			      &train_run_checks, err);
}

static void train_row(struct figures *out, const struct compare_line *line, const struct row *row)
{
	struct err err = {ST_OK, ""};
	struct train_job job;
	const struct plan_run *plan = &job.plan;

	train_job_init(&job, NULL, true);
	if (parse_run(&job.plan.run, line, row, &err) == ST_OK &&
	    callbacks_load(&job.callbacks, plan->run, &err) == ST_OK &&
	    train_job_prepare(&job, &err) == ST_OK)
		train_job_run(&job, &err);
	*out = (struct figures){.host_ns = job.result.step_ns, .ipu_ns = NAN};
	if (err_stuck(&err)) {
		/* Details follow the first semicolon, such as the largest variables: omit them. */
		str_copy(out->reason, min(sizeof(out->reason), strcspn(err.text, ";") + 1),
			 err.text);
		goto end;
	}
	for (int i = 0; i < plan->model->param_count; i++)
		out->params += (int64_t)plan->model->params[i].count;
	for (int i = 0; i < plan->model->layer_count; i++)
		out->flops += model_layer_flops(plan->model, i, plan->run->data.batch_size);
	/* The device's part only: a few steps do not show what the host adds to an execution. */
	if (plan->device)
		out->ipu_ns = (double)plan->device->timeline[IPS_TRAIN]->cycles /
			      (double)plan->layout->accumulation / plan->device->target.clock_hz *
			      1e9;
end:
	train_job_free(&job);
}

/* Read the child's figures into @out, or set the reason why it sent none. */
static void receive(struct figures *out, int fd, pid_t child, int seconds)
{
	const uint64_t end_ns = clock_ns() + (uint64_t)seconds * UINT64_C(1000000000);
	struct pollfd ready = {fd, POLLIN, 0};
	ssize_t got = -1;
	int state = 0, polled;

	do {
		const int64_t left_ms = ((int64_t)end_ns - (int64_t)clock_ns()) / 1000000;

		polled = poll(&ready, 1, (int)max(left_ms, INT64_C(0)));
	} while (polled < 0 && errno == EINTR);
	if (polled > 0)
		got = read(fd, out, sizeof(*out));
	else
		kill(child, SIGKILL);
	while (waitpid(child, &state, 0) < 0 && errno == EINTR)
		;
	if (got == (ssize_t)sizeof(*out))
		return;
	*out = (struct figures){.host_ns = NAN};
	if (polled == 0)
		snprintf(out->reason, sizeof(out->reason), "took more than %d s", seconds);
	else if (WIFEXITED(state))
		snprintf(out->reason, sizeof(out->reason), "the process ended with status %d",
			 WEXITSTATUS(state));
	else
		snprintf(out->reason, sizeof(out->reason), "the process ended by signal %d%s",
			 WTERMSIG(state), WTERMSIG(state) == SIGKILL ? " (out of memory?)" : "");
}

static enum status measure_row(struct row *row, const struct compare_line *line, struct err *err)
{
	int ends[2];
	pid_t child;

	if (fflush(stdout) != 0 || pipe(ends) != 0)
		return err_set(err, ST_FAILED, "cannot make a pipe: %s", strerror(errno));
	child = fork();
	if (child < 0) {
		close(ends[0]);
		close(ends[1]);
		return err_set(err, ST_FAILED, "cannot start a process: %s", strerror(errno));
	}
	if (child == 0) {
		ssize_t sent;

		close(ends[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		unsetenv("POPLAR_ENGINE_OPTIONS"); /* do not measure a recording */
		train_row(&row->is, line, row);
		sent = write(ends[1], &row->is, sizeof(row->is));
		_exit(sent == (ssize_t)sizeof(row->is) ? 0 : 1);
	}
	close(ends[1]);
	receive(&row->is, ends[0], child, line->seconds);
	close(ends[0]);
	return ST_OK;
}

/* ---- the rows -------------------------------------------------------------------------------- */

struct comparison {
	struct row *rows;
	int count;
	char *networks, *batches; /* working copies of the lists, split by strtok_r() */
};

/* Return the table's name of the network @word, or NULL after an error. */
static const char *find_network(const char *word, struct err *err)
{
	int count;
	const char *const *names = application_names(&count), *near;
	struct str list = {0};

	for (int i = 0; i < count; i++)
		if (strcmp(names[i], word) == 0)
			return names[i];
	near = str_nearest(word, names, (size_t)count);
	for (int i = 0; i < count; i++)
		str_addf(&list, "%s%s", i > 0 ? " " : "", names[i]);
	if (near)
		err_set(err, ST_INVALID,
			"--networks: unknown network \"%s\" (did you mean \"%s\"?)", word, near);
	else
		err_set(err, ST_INVALID, "--networks: unknown network \"%s\" (there is: %s)", word,
			str_peek(&list));
	str_free(&list);
	return NULL;
}

/* Make a row for each network and batch; check the given keys with the first row's run file. */
static void make_rows(struct comparison *out, const struct compare_line *line, struct err *err)
{
	struct str all = {0};
	size_t room = 1;
	char *at, *rest;
	int count;
	const char *const *names = application_names(&count), *network;
	struct run_file *run;

	for (int i = 0; i < count; i++)
		str_addf(&all, "%s,", names[i]);
	out->networks = mem_strdup(line->networks ? line->networks : str_peek(&all));
	str_free(&all);
	for (const char *c = out->networks; c && *c; c++)
		room += *c == ',';
	room *= strlen(line->batches) + 1;
	out->rows = mem_calloc(room, sizeof(*out->rows));
	out->batches = mem_alloc(strlen(line->batches) + 1);
	if (!out->networks || !out->rows || !out->batches) {
		err_nomem(err);
		return;
	}
	for (char *word = strtok_r(out->networks, ",", &at); word;
	     word = strtok_r(NULL, ",", &at)) {
		network = find_network(word, err);
		memcpy(out->batches, line->batches, strlen(line->batches) + 1);
		for (char *batch = strtok_r(out->batches, ",", &rest); batch && !err_stuck(err);
		     batch = strtok_r(NULL, ",", &rest)) {
			struct row *row = &out->rows[out->count++];

			row->network = network;
			cli_number("--batches", batch, 1, 1000000, &row->batch, err);
		}
		if (err_stuck(err))
			return;
	}
	if (out->count == 0)
		err_set(err, ST_INVALID, "--networks and --batches leave nothing to train");
	else if (parse_run(&run, line, &out->rows[0], err) == ST_OK)
		run_file_free(run);
}

/* ---- the table ------------------------------------------------------------------------------- */

static double intensity(const struct figures *is)
{
	return is->params > 0 ? (double)is->flops / (double)is->params : 0;
}

static void print_row(const struct row *row)
{
	const struct figures *is = &row->is;
	char count[FMT_SIZE];

	printf("%-14s %5" PRId64, row->network, row->batch);
	if (is->reason[0]) {
		printf("  skipped: %s\n", is->reason);
		return;
	}
	printf(" %11s %8.1f %12.2f", fmt_count(count, is->params), intensity(is),
	       is->host_ns * 1e-6);
	if (isnan(is->ipu_ns))
		printf(" %14s %7s\n", "-", "-");
	else
		printf(" %14.1f %7.0f\n", is->ipu_ns * 1e-3, is->host_ns / is->ipu_ns);
}

/* Print the sum over all networks, as in the tutorial. */
static void print_total(const struct comparison *comparison, int steps)
{
	double host_ns = 0, ipu_ns = 0;
	int trained = 0;

	for (int i = 0; i < comparison->count; i++) {
		const struct figures *is = &comparison->rows[i].is;

		if (is->reason[0])
			continue;
		trained++;
		host_ns += is->host_ns * steps;
		ipu_ns += is->ipu_ns * steps;
	}
	printf("Total: %d of %d trained, an epoch of %d step%s each: %.2f s on this machine",
	       trained, comparison->count, steps, steps == 1 ? "" : "s", host_ns * 1e-9);
	if (trained > 0 && !isnan(ipu_ns))
		printf(", %.4f s on the IPU (simulated)", ipu_ns * 1e-9);
	putchar('\n');
}

/* ---- the picture ----------------------------------------------------------------------------- */

#define SVG_LEFT  170
#define SVG_PLOT  480
#define SVG_RIGHT 130
#define SVG_LINE  18

static int by_intensity(const void *left, const void *right)
{
	const struct row *const *a = left, *const *b = right;
	const double x = -intensity(&(*a)->is), y = -intensity(&(*b)->is);
	const int order = SORTED_ORDER(x, y);

	/* Rows are elements of one array, so equal ones keep their original order. */
	return order != 0 ? order : (*a > *b) - (*a < *b);
}

/* Draw the ratios as bars on a logarithmic axis, the greatest intensity on top, with their
 * figures. */
static void draw_bars(FILE *out, const struct row *const *rows, int count)
{
	double least = 0, most = 1, scale;
	int height;

	for (int i = 0; i < count; i++) {
		const double power = log10(rows[i]->is.host_ns / rows[i]->is.ipu_ns);

		least = fmin(least, floor(power));
		most = fmax(most, ceil(power));
	}
	scale = SVG_PLOT / (most - least);
	height = (count + 4) * SVG_LINE;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"font-family=\"monospace\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
		"<text x=\"8\" y=\"14\">A training step on this machine (measured) as a multiple "
		"of "
		"the IPU's (simulated)</text>\n"
		"<text x=\"8\" y=\"32\">network_batch</text>"
		"<text x=\"%d\" y=\"32\">FLOPs/parameter</text>\n",
		SVG_LEFT + SVG_PLOT + SVG_RIGHT, height, SVG_LEFT + SVG_PLOT + 10);
	for (int power = (int)least; power <= (int)most; power++) {
		const double x = SVG_LEFT + (power - least) * scale;

		fprintf(out,
			"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"38\" y2=\"%d\" stroke=\"#cccccc\"/>"
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
			x, x, 40 + count * SVG_LINE, x, 54 + count * SVG_LINE, pow(10, power));
	}
	for (int i = 0; i < count; i++) {
		const double ratio = rows[i]->is.host_ns / rows[i]->is.ipu_ns;
		const double one = SVG_LEFT - least * scale, end = one + log10(ratio) * scale;
		const int y = 40 + i * SVG_LINE;

		fprintf(out,
			"<text x=\"8\" y=\"%d\">%s_%" PRId64 "</text>"
			"<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>"
			"<text x=\"%.1f\" y=\"%d\">%.3g</text><text x=\"%d\" "
			"y=\"%d\">%.1f</text>\n",
			y + 12, rows[i]->network, rows[i]->batch, fmin(one, end), y + 2,
			fabs(end - one), SVG_LINE - 4, ratio >= 1 ? "#4c78a8" : "#e08214",
			fmax(one, end) + 4, y + 12, ratio, SVG_LEFT + SVG_PLOT + 40, y + 12,
			intensity(&rows[i]->is));
	}
	fputs("</svg>\n", out);
}

static void write_picture(const struct comparison *comparison, const char *path, struct err *err)
{
	const struct row **rows = mem_calloc((size_t)comparison->count, sizeof(*rows));
	struct fs_writer writer;
	int count = 0;
	FILE *out;

	if (!rows) {
		err_nomem(err);
		return;
	}
	for (int i = 0; i < comparison->count; i++) {
		const struct figures *is = &comparison->rows[i].is;

		if (!is->reason[0] && is->ipu_ns > 0 && is->host_ns > 0)
			rows[count++] = &comparison->rows[i];
	}
	if (count > 1)
		qsort(rows, (size_t)count, sizeof(*rows), by_intensity);
	if (fs_writer_open(&writer, path, err) == ST_OK &&
	    fs_writer_stream(&writer, &out, err) == ST_OK) {
		draw_bars(out, rows, count);
		fs_writer_close(&writer, err);
	}
	mem_free(rows);
}

/* ---- the command ----------------------------------------------------------------------------- */

int train_compare_command(int argc, char **argv)
{
	struct compare_line line = {0};
	struct comparison comparison = {0};
	struct err err = {ST_OK, ""};

	if (cli_standard(&train_compare_cli, argc, argv, stdout))
		return 0;
	compare_parse(&line, argc, argv, &err);
	if (!err_stuck(&err))
		make_rows(&comparison, &line, &err);
	if (!err_stuck(&err))
		printf("%-14s %5s %11s %8s %12s %14s %7s\n%-14s %5s %11s %8s %12s %14s %7s\n", "",
		       "", "", "FLOPs/", "host", "simulated", "", "network", "batch", "parameters",
		       "param.", "ms/step", "us/step", "ratio");
	for (int i = 0; i < comparison.count && !err_stuck(&err); i++)
		if (measure_row(&comparison.rows[i], &line, &err) == ST_OK)
			print_row(&comparison.rows[i]);
	if (!err_stuck(&err))
		print_total(&comparison, line.steps);
	if (!err_stuck(&err) && line.svg)
		write_picture(&comparison, line.svg, &err);
	mem_free(comparison.rows);
	mem_free(comparison.networks);
	mem_free(comparison.batches);
	mem_free(line.words);
	return err_stuck(&err) ? cli_fail(&train_compare_cli, &err) : 0;
}
