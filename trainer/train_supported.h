/*
 * What a run file may name: the layers, losses, optimizers, schedules, metrics, callbacks and
 * applications that there are.
 */
#ifndef TRAIN_SUPPORTED_H
#define TRAIN_SUPPORTED_H

#include <stdio.h>

/* Every row of the tables, under a heading for each kind, in lines of at most 80 columns. Losses
 * and metrics go by their class or by the function in brackets. */
void train_supported_write(FILE *out);

#endif /* TRAIN_SUPPORTED_H */
