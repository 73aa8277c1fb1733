/*
 * The names that a run file may use: the supported layers, losses, optimizers, schedules, metrics,
 * callbacks and applications.
 */
#ifndef TRAIN_SUPPORTED_H
#define TRAIN_SUPPORTED_H

#include <stdio.h>

/* Print every row of the tables under a heading for each kind, in lines of at most 80 columns.
 * Losses and metrics are named by their class, with the function's name in brackets. */
void train_supported_write(FILE *out);

#endif /* TRAIN_SUPPORTED_H */
