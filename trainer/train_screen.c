/*
 * The lines printed during training: the progress of compilation, a bar that is redrawn on a
 * terminal, the figures of an epoch; tables as Keras prints them, with fixed columns and truncated
 * fields; and the announcement that ipu-monitor reads: the report's path, the device, the phase and
 * the completed steps.
 */
#include "trainer/train_screen.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "ipu/plan/ipu_plan.h"
#include "model/plan/plan_run.h"

#define EPOCH_BAR    30
#define BAR_LEAST    10 /* cells, if figures need the room */
#define SCREEN_LEAST 40 /* columns: lines wrap on a narrower terminal */
#define COMPILE_BAR  50
#define COMPILE_TEXT                                                                               \
	60 /* columns beside it: "[] 2% Step: Pre-Planning Operations [Elapsed: ...]" */
#define COLUMNS 4
#define FIELD   256

/* ---- announcements --------------------------------------------------------------------------- */

enum status train_announce_open(struct train_announce *announce, const struct run_file *run,
				const struct run_layout *layout, const char *command,
				const char *directory, struct err *err)
{
	struct prof_announcement what = {
		.ipus = layout->ipus,
		.replicas = layout->replicas,
		.stages = layout->stages,
	};
	struct ipu_target target;
	enum status status = ipu_target_get(run->ipu.target, 0, &target, err);

	if (status != ST_OK)
		return status;
	what.clock_mhz = llround(target.clock_hz * 1e-6);
	str_copy(what.command, sizeof(what.command), !command ? "" : command);
	str_copy(what.target, sizeof(what.target), target.name);
	/* ipu-monitor may run in another folder: make the path absolute. */
	if (directory[0] == '\0' || !realpath(directory, what.report))
		what.report[0] = '\0';
	return prof_announce_open(&announce->out, &what, err);
}

void train_announce_close(struct train_announce *announce)
{
	prof_announce_close(announce->out);
	announce->out = NULL;
}

void train_announce_device(struct train_announce *announce, const struct plan_device *device,
			   const struct run_layout *layout)
{
	for (int mode = 0; mode <= IPS_PREDICT; mode++) {
		const struct ipu_timeline *timeline = device->timeline[mode];
		const int64_t runs = mode == IPS_TRAIN ? layout->updates_per_execution : 1;
		double busy = 0, all;

		if (!timeline)
			continue;
		for (int ipu = 0; ipu < layout->ipus_used; ipu++)
			busy += (double)(timeline->split[ipu].compute +
					 timeline->split[ipu].exchange);
		all = (double)timeline->cycles * (double)runs + (double)device->host_cycles;
		/* IPUs that are attached only to reach a power of two are idle. */
		busy *= (double)runs / (double)layout->ipus_per_replica;
		announce->utilisation[mode] = all > 0 ? fmin(1, busy / all) : 0;
	}
}

/* Announce a new part of the run: an epoch of @epochs, or (both 0) the evaluation or prediction. */
static void announce_begin(struct train_announce *announce, enum ips_mode mode, int64_t epoch,
			   int64_t epochs)
{
	static const enum report_run_state states[] = {
		[IPS_TRAIN] = REPORT_RUN_TRAINING,
		[IPS_EVALUATE] = REPORT_RUN_EVALUATING,
		[IPS_PREDICT] = REPORT_RUN_PREDICTING,
	};

	announce->progress = (struct report_progress){
		.state = states[mode],
		.epoch = epoch,
		.epochs = epochs,
		.utilisation = announce->utilisation[mode],
	};
}

/* Announce the completed steps of the current part. */
static void announce_steps(struct train_announce *announce, int64_t done, int64_t steps)
{
	announce->progress.step = done;
	announce->progress.steps = steps;
	prof_announce_progress(announce->out, &announce->progress);
}

/* ---- lines of the screen --------------------------------------------------------------------- */

void train_screen_init(struct train_screen *screen, FILE *out, bool quiet)
{
	memset(screen, 0, sizeof(*screen));
	screen->out = quiet ? NULL : out;
	screen->terminal = !quiet && isatty(fileno(out));
	screen->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

#define CLEAR "\033[2K\r"

/* Print the bar. It must not wrap, so omit the last figures if there is no room for them. */
static void print_bar(const struct train_screen *screen)
{
	const int room = min(cli_width(screen->out) - 1, TRAIN_SCREEN_BAR);
	int length = (int)strlen(screen->bar);

	while (length > room) {
		int before = length - 1;

		while (before > 0 && strncmp(screen->bar + before, " - ", 3) != 0)
			before--;
		length = before > 0 ? before : room;
	}
	fprintf(screen->out, CLEAR "%.*s", length, screen->bar);
	fflush(screen->out);
}

/* Replace the terminal's last line. */
static void draw_over(struct train_screen *screen, const char *line)
{
	pthread_mutex_lock(&screen->lock);
	str_copy(screen->bar, sizeof(screen->bar), line);
	print_bar(screen);
	pthread_mutex_unlock(&screen->lock);
}

/* Replace the bar by its final line. */
static void end_bar(struct train_screen *screen, const char *line)
{
	pthread_mutex_lock(&screen->lock);
	fprintf(screen->out, "%s%s\n", screen->terminal ? CLEAR : "", line);
	fflush(screen->out);
	screen->bar[0] = '\0';
	pthread_mutex_unlock(&screen->lock);
}

void train_screen_say(struct train_screen *screen, FILE *out, const char *format, ...)
{
	va_list args;
	bool over;

	if (!out)
		return;
	pthread_mutex_lock(&screen->lock);
	over = screen->bar[0] != '\0' && isatty(fileno(out));
	if (over) {
		fputs(CLEAR, screen->out);
		fflush(screen->out);
	}
	va_start(args, format);
	cli_vprint(out, format, args);
	va_end(args);
	fflush(out);
	if (over)
		print_bar(screen);
	pthread_mutex_unlock(&screen->lock);
}

void train_screen_leave(struct train_screen *screen)
{
	pthread_mutex_lock(&screen->lock);
	if (screen->bar[0] != '\0')
		fprintf(screen->out, "\n");
	screen->bar[0] = '\0';
	pthread_mutex_unlock(&screen->lock);
}

/* ---- compile progress ------------------------------------------------------------------------ */

/* Texts of the stages and percentages of TensorFlow for IPU's progress bar. */
static const struct {
	const char *text;
	int percent; /* completed when the step begins */
} COMPILE_STEPS[] = {
	{"Step: Hlo Optimizations", 0},  {"Step: Pre-Planning Operations", 2},
	{"Step: Graph Construction", 4}, {"Step: Graph Compilation", 40},
	{"Compilation Finished", 100},
};

void train_screen_compile(struct train_screen *screen, const char *module, int step)
{
	const int last = (int)ARRAY_LEN(COMPILE_STEPS) - 1;
	const int percent = COMPILE_STEPS[step].percent;
	char cells[COMPILE_BAR + 1], line[160];
	int64_t tenths;
	int bar = COMPILE_BAR;

	if (!screen->out)
		return;
	if (step == 0) {
		screen->start_ns = (int64_t)clock_ns();
		cli_print(screen->out, "Compiling module %s:\n", module);
	}
	if (!screen->terminal && step != last)
		return;
	tenths = ((int64_t)clock_ns() - screen->start_ns) / 100000000;
	if (screen->terminal)
		bar = max(BAR_LEAST, min(cli_width(screen->out) - COMPILE_TEXT, COMPILE_BAR));
	memset(cells, ' ', sizeof(cells));
	memset(cells, '#', (size_t)(bar * percent / 100));
	cells[bar] = '\0';
	snprintf(line, sizeof(line), "[%s] %d%% %s [Elapsed: %02d:%02d:%02d.%d]", cells, percent,
		 COMPILE_STEPS[step].text, (int)(tenths / 36000), (int)(tenths / 600 % 60),
		 (int)(tenths / 10 % 60), (int)(tenths % 10));
	if (step != last)
		draw_over(screen, line);
	else
		end_bar(screen, line);
}

/* ---- data ------------------------------------------------------------------------------------ */

static void bar_cells(char cells[EPOCH_BAR + 1], int width, int64_t done, int64_t steps)
{
	const int64_t filled = steps > 0 ? done * width / steps : width;

	memset(cells, '.', (size_t)width);
	memset(cells, '=', (size_t)filled);
	if (filled > 0 && filled < width)
		cells[filled - 1] = '>';
	cells[width] = '\0';
}

void train_screen_decoded(struct train_screen *screen, int64_t done, int64_t files)
{
	char cells[EPOCH_BAR + 1], line[160];
	double elapsed;

	if (!screen->terminal)
		return;
	if (done == 0)
		screen->start_ns = (int64_t)clock_ns();
	elapsed = (double)((int64_t)clock_ns() - screen->start_ns) * 1e-9;
	bar_cells(cells, EPOCH_BAR, done, files);
	snprintf(line, sizeof(line), "Images: %lld/%lld [%s] - ETA: %.0fs", (long long)done,
		 (long long)files, cells,
		 done > 0 ? elapsed / (double)done * (double)(files - done) : 0.0);
	draw_over(screen, done < files ? line : "");
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static void begin_steps(struct train_screen *screen, int64_t steps,
			const struct train_figures *figures)
{
	screen->steps = steps;
	screen->done = 0;
	screen->start_ns = (int64_t)clock_ns();
	screen->figures = figures;
}

void train_screen_epoch(struct train_screen *screen, int64_t epoch, int64_t epochs, int64_t steps,
			const struct train_figures *figures)
{
	announce_begin(&screen->announce, IPS_TRAIN, epoch, epochs);
	begin_steps(screen, steps, figures);
	if (screen->out)
		fprintf(screen->out, "Epoch %lld/%lld\n", (long long)epoch, (long long)epochs);
}

void train_screen_evaluate(struct train_screen *screen, enum ips_mode mode, int64_t steps,
			   const struct train_figures *figures)
{
	announce_begin(&screen->announce, mode, 0, 0);
	begin_steps(screen, steps, figures);
}

/* Format in Keras's units: whole seconds, milliseconds or microseconds per step. */
static void per_step(double ns, char *out, size_t size)
{
	if (!(ns > 0))
		snprintf(out, size, "0s/step");
	else if (ns >= 1e9)
		snprintf(out, size, "%.0fs/step", ns * 1e-9);
	else if (ns >= 1e6)
		snprintf(out, size, "%.0fms/step", ns * 1e-6);
	else
		snprintf(out, size, "%.0fus/step", ns * 1e-3);
}

/* Format without the sign that C may print before nan; Python prints none. */
static void format_figure(char out[FIELD], const struct train_figures *figures, int i)
{
	if (isnan(figures->values[i]))
		snprintf(out, FIELD, "%s: nan", figures->names[i]);
	else
		snprintf(out, FIELD, "%s: %.4f", figures->names[i], figures->values[i]);
	out[utf8_show(out, strlen(out), "")] = '\0';
}

static void add_figures(struct str *line, const struct train_figures *figures)
{
	char text[FIELD];

	for (int i = 0; i < figures->count; i++) {
		format_figure(text, figures, i);
		str_addf(line, "%s%s", i > 0 ? " - " : "", text);
	}
}

void train_screen_figures(FILE *out, const struct train_figures *figures)
{
	struct str line = {0};

	add_figures(&line, figures);
	if (!line.failed && line.text)
		fputs(line.text, out);
	str_free(&line);
}

void train_screen_progress(struct train_screen *screen, int64_t done)
{
	const int64_t all = screen->done + done;
	const double elapsed = (double)((int64_t)clock_ns() - screen->start_ns) * 1e-9;
	char cells[EPOCH_BAR + 1];
	struct str line = {0};

	announce_steps(&screen->announce, all, screen->steps);
	if (!screen->out || !screen->terminal)
		return;
	bar_cells(cells, EPOCH_BAR, all, screen->steps);
	str_addf(&line, "%*lld/%lld [%s] - ETA: %.0fs",
		 snprintf(NULL, 0, "%lld", (long long)screen->steps), (long long)all,
		 (long long)screen->steps, cells,
		 all > 0 ? elapsed / (double)all * (double)(screen->steps - all) : 0.0);
	if (screen->done > 0 && screen->figures->count > 0) {
		str_add(&line, " - ");
		add_figures(&line, screen->figures);
	}
	if (!line.failed)
		draw_over(screen, line.text);
	str_free(&line);
}

void train_screen_executed(struct train_screen *screen, int64_t steps)
{
	screen->done += steps;
	if (screen->done < screen->steps)
		train_screen_progress(screen, 0);
	else
		announce_steps(&screen->announce, screen->done, screen->steps);
}

/* Add " - TEXT" to a line of at most @width columns, or start a new line; *@column is its end. */
static void add_part(struct str *line, int *column, int width, const char *text)
{
	const int length = (int)strlen(text);

	if (*column + 3 + length > width) {
		str_addf(line, "\n    %s", text);
		*column = 4 + length;
	} else {
		str_addf(line, " - %s", text);
		*column += 3 + length;
	}
}

/* Print Keras's line, as wide as the terminal (80 columns if it is none): the bar shrinks to make
 * room for the figures, down to BAR_LEAST cells; then they continue on the next line. */
void train_screen_end(struct train_screen *screen, double device_step_ns)
{
	const double elapsed = (double)((int64_t)clock_ns() - screen->start_ns);
	const struct train_figures *figures = screen->figures;
	const int count = screen->done > 0 ? figures->count : 0;
	char cells[EPOCH_BAR + 1], step[32], text[FIELD];
	struct str line = {0};
	int width, bar, column, shown = 0;

	if (!screen->out)
		return;
	per_step(screen->done > 0 ? elapsed / (double)screen->done : 0, step, sizeof(step));
	for (int i = 0; i < count; i++) {
		format_figure(text, figures, i);
		shown += (int)(strlen(" - ") + strlen(text));
	}
	width = max(cli_width(screen->out), SCREEN_LEAST);
	snprintf(text, sizeof(text), "%lld/%lld [] - %.0fs %s", (long long)screen->done,
		 (long long)screen->steps, elapsed * 1e-9, step);
	bar = width - (int)strlen(text) - shown;
	bar = max(BAR_LEAST, min(bar / 10 * 10, EPOCH_BAR)); /* a stable width over epochs */
	bar_cells(cells, bar, screen->done, screen->steps);
	str_addf(&line, "%lld/%lld [%s] - %.0fs %s", (long long)screen->done,
		 (long long)screen->steps, cells, elapsed * 1e-9, step);
	column = (int)strlen(str_peek(&line));
	for (int i = 0; i < count; i++) {
		format_figure(text, figures, i);
		add_part(&line, &column, width, text);
	}
	if (!isnan(device_step_ns)) {
		per_step(device_step_ns, step, sizeof(step));
		snprintf(text, sizeof(text), "IPU, simulated (%s): %s", IPU_COST_MODEL, step);
		add_part(&line, &column, width, text);
	}
	end_bar(screen, str_peek(&line));
	str_free(&line);
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct table {
	FILE *out;
	int columns, width;
	int ends[COLUMNS];
};

static void print_rule(const struct table *table, char character)
{
	for (int i = 0; i < table->width; i++)
		putc(character, table->out);
	putc('\n', table->out);
}

/* As Keras's print_row(): each field is truncated to its column, with a blank before the next.
 * NULL: an empty field. */
static void print_row(const struct table *table, const char *const *fields)
{
	for (int i = 0; i < table->columns; i++) {
		const int width = table->ends[i] - (i > 0 ? table->ends[i - 1] : 0);
		char field[FIELD];

		str_copy(field, sizeof(field), fields[i] ? fields[i] : "");
		field[utf8_show(field, strlen(field), "")] = '\0';
		field[utf8_cut(field, i + 1 < table->columns ? width - 1 : width)] = '\0';
		fprintf(table->out, "%s%*s", field, width - utf8_columns(field), "");
	}
	putc('\n', table->out);
}

static void print_head(const struct table *table, const char *name, const char *const *titles)
{
	cli_print(table->out, "Model: \"%s\"\n", name);
	print_rule(table, '_');
	print_row(table, titles);
	print_rule(table, '=');
}

/* ---- the model ------------------------------------------------------------------------------- */

/* Is the model a chain of layers, shown without the column of connections? */
static bool is_chain(const struct model *model)
{
	if (!model->functional)
		return true;
	for (int i = 0; i < model->row_count; i++)
		if (model->rows[i].input_count != (i > 0) ||
		    (i > 0 && model->rows[i].inputs[0] != i - 1))
			return false;
	return true;
}

static int64_t row_params(const struct model *model, int row, bool trainable_alone)
{
	int64_t count = 0;

	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		if (row < 0 ? model_layer_again(model, layer)
			    : layer->row != row || model_layer_again_in_row(model, layer))
			continue;
		for (int p = layer->first_param; p < layer->first_param + layer->param_count; p++)
			if (model->params[p].trainable || !trainable_alone)
				count += (int64_t)model->params[p].count;
	}
	return count;
}

static void print_model_row(const struct table *table, const struct model *model, int number,
			    int64_t batch)
{
	const struct model_row *row = &model->rows[number];
	const bool input = strcmp(row->class_name, "InputLayer") == 0;
	char name[FIELD], shape[FIELD - 2], output[FIELD], params[FMT_SIZE], from[FIELD] = "";
	const char *fields[COLUMNS] = {name, output, params, from};

	model_shape_text(&row->output, row->any_batch ? 0 : batch, shape, sizeof(shape));
	snprintf(name, sizeof(name), "%s (%s)", row->name, row->class_name);
	snprintf(output, sizeof(output), input ? "[%s]" : "%s", shape);
	snprintf(params, sizeof(params), "%lld", (long long)row_params(model, number, false));
	for (int i = 0; i == 0 || (table->columns > 3 && i < row->input_count); i++) {
		if (i < row->input_count)
			snprintf(from, sizeof(from), "%s[%d][0]", model->rows[row->inputs[i]].name,
				 row->calls[i]);
		print_row(table, fields);
		fields[0] = fields[1] = fields[2] = NULL;
	}
}

void train_summary_model(FILE *out, const struct model *model, int64_t batch)
{
	static const char *const titles[] = {"Layer (type)", "Output Shape", "Param #",
					     "Connected to"};
	const struct table chain = {out, 3, 65, {29, 55, 65}};
	const struct table graph = {out, 4, 98, {32, 53, 65, 98}};
	const struct table *table = is_chain(model) ? &chain : &graph;
	const int64_t total = row_params(model, -1, false);
	const int64_t trainable = row_params(model, -1, true);
	char count[FMT_SIZE];

	print_head(table, model->name, titles);
	for (int i = 0; i < model->row_count; i++) {
		print_model_row(table, model, i, batch);
		print_rule(table, i + 1 == model->row_count ? '=' : '_');
	}
	fprintf(out, "Total params: %s\n", fmt_count(count, total));
	fprintf(out, "Trainable params: %s\n", fmt_count(count, trainable));
	fprintf(out, "Non-trainable params: %s\n", fmt_count(count, total - trainable));
	print_rule(table, '_');
}

/* ---- stages ---------------------------------------------------------------------------------- */

static const char *input_name(const struct model *model, int position)
{
	if (position != MODEL_INPUT)
		return model->layers[position].name;
	return model->row_count > 0 ? model->rows[0].name : "input";
}

/* Print a nested model's name before the first of its layers. */
static void announce_nested(const struct table *table, const struct model *model, int position)
{
	const struct model_layer *layer = &model->layers[position];
	const struct model_row *row = &model->rows[layer->row];

	if (strcmp(row->name, layer->name) == 0 || (position > 0 && layer[-1].row == layer->row))
		return;
	cli_print(table->out, "Nested Model: \"%s\"\n", row->name);
	print_rule(table, '-');
}

void train_summary_stages(FILE *out, const struct model *model, const struct run_layout *layout)
{
	static const char *const titles[] = {"Layer (type) (node index)", "Input Layers",
					     "Pipeline Stage"};
	static const char *const chain_titles[] = {"Layer (type)", "Pipeline Stage"};
	const bool graph = model->functional;
	const struct table table = graph ? (struct table){out, 3, 89, {35, 71, 89}}
					 : (struct table){out, 2, 60, {30, 60}};

	if (layout->stages < 2)
		return;
	print_head(&table, model->name, graph ? titles : chain_titles);
	for (int i = 0; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];
		char name[FIELD], stage[FMT_SIZE];

		if (graph)
			announce_nested(&table, model, i);
		snprintf(name, sizeof(name), graph ? "%s (%s) (0)" : "%s (%s)", layer->name,
			 model_layer_class(layer));
		snprintf(stage, sizeof(stage), "%d", layout->stage[i]);
		print_row(&table,
			  graph ? (const char *[]){name, input_name(model, layer->inputs[0]), stage}
				: (const char *[]){name, stage});
		for (int k = 1; graph && k < layer->input_count; k++)
			print_row(&table, (const char *[]){
						  NULL, input_name(model, layer->inputs[k]), NULL});
		print_rule(&table, i + 1 == model->layer_count ? '=' : '_');
	}
}
