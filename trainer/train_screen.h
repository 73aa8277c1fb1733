/*
 * The output of training: the model's summary, the pipeline stages, the compile progress bar, a
 * line per epoch. A terminal's line is redrawn; other outputs get one line per epoch. The same
 * calls update the announcement of the run for ipu-monitor (profiler/prof_announce.h), even if the
 * screen is silent.
 *
 * For the main thread, which polls the workers regularly; only train_screen_say() may be called on
 * any thread. A failed announcement changes nothing; with a zeroed struct nothing is announced.
 */
#ifndef TRAIN_SCREEN_H
#define TRAIN_SCREEN_H

#include <ipuscope/profiler.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/model.h"
#include "model/run/run_rules.h"
#include "profiler/prof_announce.h"

/* ---- figures --------------------------------------------------------------------------------- */

/* The loss comes first. Values are means over the completed steps; NaN before the first. */
struct train_figures {
	int count;
	const char **names; /* "loss", "accuracy" */
	double *values;
};

/* ---- announcements --------------------------------------------------------------------------- */

struct plan_device;

struct train_announce {
	struct prof_announce *out;
	struct report_progress progress;
	double utilisation[IPS_PREDICT + 1]; /* by enum ips_mode; 0 until the mode is compiled */
};

/* Attach to the IPUs of @layout, which has at least one. @command may be NULL, @directory "": no
 * report. Print an error's text as a warning, except for ST_NOTFOUND. */
enum status train_announce_open(struct train_announce *announce, const struct run_file *run,
				const struct run_layout *layout, const char *command,
				const char *directory, struct err *err);
void train_announce_close(struct train_announce *announce); /* accepts one that is not open */

/* Compute the device's utilisation: the fraction of an execution, including its fixed host time, in
 * which its IPUs compute or exchange. */
void train_announce_device(struct train_announce *announce, const struct plan_device *device,
			   const struct run_layout *layout);

/* ---- lines of the screen --------------------------------------------------------------------- */

#define TRAIN_SCREEN_BAR 256

struct train_screen {
	FILE *out; /* NULL: silent */
	FILE *log; /* for broken health rules and missing files; NULL: no log */
	bool terminal;
	pthread_mutex_t lock;       /* guards the terminal's last line */
	char bar[TRAIN_SCREEN_BAR]; /* the redrawn line; "": none */
	int64_t steps, done;
	int64_t start_ns; /* of the epoch */
	const struct train_figures *figures;
	struct train_announce announce;
};

void train_screen_init(struct train_screen *screen, FILE *out, bool quiet);

/* Print a line to @out (NULL: discard it). On a terminal a bar is cleared and redrawn below.
 * @format ends with "\n": a line reaches stderr in one write, so that lines of ranks do not mix. */
void train_screen_say(struct train_screen *screen, FILE *out, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Stop redrawing the bar: it stays, and further output appears below it. */
void train_screen_leave(struct train_screen *screen);

/* Draw the compile progress bar at the start of compilation step @step (0 .. 3); 4: finished. */
void train_screen_compile(struct train_screen *screen, const char *module, int step);

/* Draw a terminal's line: @done of a part's @files are decoded, initially 0. Cleared when all
 * are. */
void train_screen_decoded(struct train_screen *screen, int64_t done, int64_t files);

/* @figures is borrowed and read whenever a line is drawn. */
void train_screen_epoch(struct train_screen *screen, int64_t epoch, int64_t epochs, int64_t steps,
			const struct train_figures *figures);
/* @mode: IPS_EVALUATE or IPS_PREDICT. */
void train_screen_evaluate(struct train_screen *screen, enum ips_mode mode, int64_t steps,
			   const struct train_figures *figures);

/* Redraw a terminal's line. @done: steps of the current execution. */
void train_screen_progress(struct train_screen *screen, int64_t done);

/* Call after an execution of @steps, when the figures are up to date. */
void train_screen_executed(struct train_screen *screen, int64_t steps);

/* Print the line's final form. @device_step_ns: simulated; NaN: no device. */
void train_screen_end(struct train_screen *screen, double device_step_ns);

/* Print "loss: 0.1234 - accuracy: nan". */
void train_screen_figures(FILE *out, const struct train_figures *figures);

/* ---- tables ---------------------------------------------------------------------------------- */

/* @batch: of the input layer; 0: (None, ...). */
void train_summary_model(FILE *out, const struct model *model, int64_t batch);

/* Print layers and their stages; nothing without a pipeline. */
void train_summary_stages(FILE *out, const struct model *model, const struct run_layout *layout);

#endif /* TRAIN_SCREEN_H */
