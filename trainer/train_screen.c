/*
 * The lines of training: progress of compilation, a bar that is drawn over on a terminal, figures
 * of an epoch.
 */
#include "trainer/train_screen.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "ipu/plan/ipu_plan.h"

#define EPOCH_BAR   30
#define COMPILE_BAR 50

void train_screen_init(struct train_screen *screen, FILE *out, bool quiet)
{
	memset(screen, 0, sizeof(*screen));
	screen->out = quiet ? NULL : out;
	screen->terminal = !quiet && isatty(fileno(out));
}

/* Draw over the terminal's last line. What is drawn over must not wrap, so it is cut. */
static void draw_over(const struct train_screen *screen, const char *line)
{
	fprintf(screen->out, "\033[2K\r%.*s", cli_width(screen->out) - 1, line);
	fflush(screen->out);
}

/* ---- compile progress ------------------------------------------------------------------------ */

/* Stage texts and weights of the bar that TensorFlow for IPU draws. */
static const struct {
	const char *text;
	int percent; /* done when it begins */
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

	if (!screen->out)
		return;
	if (step == 0) {
		screen->start_ns = (int64_t)clock_ns();
		fprintf(screen->out, "Compiling module %s:\n", module);
	}
	if (!screen->terminal && step != last)
		return;
	tenths = ((int64_t)clock_ns() - screen->start_ns) / 100000000;
	memset(cells, ' ', sizeof(cells));
	memset(cells, '#', (size_t)(COMPILE_BAR * percent / 100));
	cells[COMPILE_BAR] = '\0';
	snprintf(line, sizeof(line), "[%s] %d%% %s [Elapsed: %02d:%02d:%02d.%d]", cells, percent,
		 COMPILE_STEPS[step].text, (int)(tenths / 36000), (int)(tenths / 600 % 60),
		 (int)(tenths / 10 % 60), (int)(tenths % 10));
	if (step != last)
		draw_over(screen, line);
	else
		fprintf(screen->out, "%s%s\n", screen->terminal ? "\033[2K\r" : "", line);
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static void begin(struct train_screen *screen, int64_t steps, const struct train_figures *figures)
{
	screen->steps = steps;
	screen->done = 0;
	screen->start_ns = (int64_t)clock_ns();
	screen->figures = figures;
}

void train_screen_epoch(struct train_screen *screen, int64_t epoch, int64_t epochs, int64_t steps,
			const struct train_figures *figures)
{
	train_announce_begin(&screen->announce, IPS_TRAIN, epoch, epochs);
	begin(screen, steps, figures);
	if (screen->out)
		fprintf(screen->out, "Epoch %lld/%lld\n", (long long)epoch, (long long)epochs);
}

void train_screen_evaluate(struct train_screen *screen, enum ips_mode mode, int64_t steps,
			   const struct train_figures *figures)
{
	train_announce_begin(&screen->announce, mode, 0, 0);
	begin(screen, steps, figures);
}

static void bar_cells(char cells[EPOCH_BAR + 1], int64_t done, int64_t steps)
{
	const int64_t filled = steps > 0 ? done * EPOCH_BAR / steps : EPOCH_BAR;

	memset(cells, '.', EPOCH_BAR);
	memset(cells, '=', (size_t)filled);
	if (filled > 0 && filled < EPOCH_BAR)
		cells[filled - 1] = '>';
	cells[EPOCH_BAR] = '\0';
}

/* Keras's units: whole seconds, milliseconds or microseconds per step. */
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

/* C may print a sign before nan; Python does not. */
static void add_figures(struct str *line, const struct train_figures *figures)
{
	for (int i = 0; i < figures->count; i++) {
		const char *gap = i > 0 ? " - " : "";

		if (isnan(figures->values[i]))
			str_addf(line, "%s%s: nan", gap, figures->names[i]);
		else
			str_addf(line, "%s%s: %.4f", gap, figures->names[i], figures->values[i]);
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

static int digits(int64_t value)
{
	int count = 1;

	for (; value >= 10; value /= 10)
		count++;
	return count;
}

void train_screen_progress(struct train_screen *screen, int64_t done)
{
	const int64_t all = screen->done + done;
	const double elapsed = (double)((int64_t)clock_ns() - screen->start_ns) * 1e-9;
	char cells[EPOCH_BAR + 1];
	struct str line = {0};

	train_announce_steps(&screen->announce, all, screen->steps);
	if (!screen->out || !screen->terminal)
		return;
	bar_cells(cells, all, screen->steps);
	str_addf(&line, "%*lld/%lld [%s] - ETA: %.0fs", digits(screen->steps), (long long)all,
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
		train_announce_steps(&screen->announce, screen->done, screen->steps);
}

void train_screen_end(struct train_screen *screen, double device_step_ns)
{
	const double elapsed = (double)((int64_t)clock_ns() - screen->start_ns);
	char cells[EPOCH_BAR + 1], host[32], device[32];

	if (!screen->out)
		return;
	bar_cells(cells, screen->done, screen->steps);
	per_step(screen->done > 0 ? elapsed / (double)screen->done : 0, host, sizeof(host));
	fprintf(screen->out, "%s%lld/%lld [%s] - %.0fs %s", screen->terminal ? "\033[2K\r" : "",
		(long long)screen->done, (long long)screen->steps, cells, elapsed * 1e-9, host);
	if (screen->done > 0 && screen->figures->count > 0) {
		fputs(" - ", screen->out);
		train_screen_figures(screen->out, screen->figures);
	}
	if (!isnan(device_step_ns)) {
		per_step(device_step_ns, device, sizeof(device));
		fprintf(screen->out, " - IPU, simulated (%s): %s", IPU_COST_MODEL, device);
	}
	fprintf(screen->out, "\n");
	fflush(screen->out);
}
