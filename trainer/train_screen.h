/*
 * What a Keras user sees while training: the model's summary, the pipeline stages, the compile
 * progress bar, a line per epoch. A terminal redraws; anything else gets one line per epoch. What a
 * run says of itself to ipu-monitor while it goes on (profiler/prof_announce.h) goes the same way,
 * also where the screen is silent.
 *
 * The main thread's, which looks at the workers often enough; train_screen_say() alone is any
 * thread's. An announcement that cannot be made
 * changes nothing; a zeroed struct tells nobody.
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

/* The first is the loss. Means over what has been done; NaN before anything has. */
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
	double utilisation[IPS_PREDICT + 1]; /* by enum ips_mode; 0 until it is compiled */
};

/* Attach to the IPUs of @layout, of which there are some. @command may be NULL, @directory "": no
 * report. A failure's text is worth a warning; ST_NOTFOUND is not. */
enum status train_announce_open(struct train_announce *announce, const struct run_file *run,
				const struct run_layout *layout, const char *command,
				const char *directory, struct err *err);
void train_announce_close(struct train_announce *announce); /* accepts one that is not open */

/* How busy the device will be: the share of an execution, its fixed host time included, in which
 * its IPUs compute or exchange. */
void train_announce_device(struct train_announce *announce, const struct plan_device *device,
			   const struct run_layout *layout);

/* ---- lines of the screen --------------------------------------------------------------------- */

#define TRAIN_SCREEN_BAR 256

struct train_screen {
	FILE *out; /* NULL: silent */
	FILE *log; /* where broken health rules and missing files are told; NULL: nowhere */
	bool terminal;
	pthread_mutex_t lock;       /* of what stands on the terminal's last line */
	char bar[TRAIN_SCREEN_BAR]; /* "": none; it is drawn over */
	int64_t steps, done, replicas;
	int64_t start_ns; /* of the epoch */
	const struct train_figures *figures;
	struct train_announce announce;
};

void train_screen_init(struct train_screen *screen, FILE *out, bool quiet);

/* A line for @out (NULL: nowhere): a bar gives way to it on a terminal and is drawn again below. */
void train_screen_say(struct train_screen *screen, FILE *out, const char *line);
/* No bar is drawn over any more: one that stands there stays, and what follows is below it. */
void train_screen_leave(struct train_screen *screen);

/* The compile progress bar at the start of step @step (0 .. 3) of what compiling is here; 4:
 * finished. */
void train_screen_compile(struct train_screen *screen, const char *module, int step);

/* @done of a part's @files are decoded, at first 0: a line of a terminal, gone when all are. */
void train_screen_decoded(struct train_screen *screen, int64_t done, int64_t files);

/* @figures is borrowed: it shows what stands there when a line is drawn. */
void train_screen_epoch(struct train_screen *screen, int64_t epoch, int64_t epochs, int64_t steps,
			const struct train_figures *figures);
/* @mode: IPS_EVALUATE or IPS_PREDICT. */
void train_screen_evaluate(struct train_screen *screen, enum ips_mode mode, int64_t steps,
			   const struct train_figures *figures);

/* @done: steps of the execution under way. Redraws a terminal's line. */
void train_screen_progress(struct train_screen *screen, int64_t done);

/* An execution of @steps has ended; the figures are up to date. */
void train_screen_executed(struct train_screen *screen, int64_t steps);

/* The line's final form. @device_step_ns: simulated; NaN: no device. */
void train_screen_end(struct train_screen *screen, double device_step_ns);

/* "loss: 0.1234 - accuracy: nan" */
void train_screen_figures(FILE *out, const struct train_figures *figures);

/* ---- tables ---------------------------------------------------------------------------------- */

/* @batch: of the input layer; 0: (None, ...). */
void train_summary_model(FILE *out, const struct model *model, int64_t batch);

/* Layers and the stages they are in; nothing without a pipeline. */
void train_summary_stages(FILE *out, const struct model *model, const struct run_layout *layout);

#endif /* TRAIN_SCREEN_H */
