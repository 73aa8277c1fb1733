/*
 * What a Keras user sees while training: the model's summary, the pipeline stages, the compile
 * progress bar, a line per epoch. A terminal redraws; anything else gets one line per epoch. What
 * ipu-monitor is told of the progress goes the same way, also where the screen is silent.
 */
#ifndef TRAIN_SCREEN_H
#define TRAIN_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/model.h"
#include "model/run/run_rules.h"
#include "trainer/train_announce.h"
#include "trainer/train_figures.h"

struct train_screen {
	FILE *out; /* NULL: silent */
	bool terminal;
	int64_t steps, done, replicas;
	int64_t start_ns; /* of the epoch */
	const struct train_figures *figures;
	struct train_announce announce;
};

void train_screen_init(struct train_screen *screen, FILE *out, bool quiet);

/* The compile progress bar at the start of step @step (0 .. 3) of what compiling is here; 4:
 * finished. */
void train_screen_compile(struct train_screen *screen, const char *module, int step);

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

#endif /* TRAIN_SCREEN_H */
