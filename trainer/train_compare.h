/*
 * The command `ipu-train compare`: the networks of keras.applications, a few training steps each,
 * on this machine beside the simulated IPU.
 */
#ifndef TRAIN_COMPARE_H
#define TRAIN_COMPARE_H

#include "common/cli.h"

extern const struct cli_command train_compare_cli;

/* Behind main(): @argv[0] is the word "compare". Returns the exit code. */
int train_compare_command(int argc, char **argv);

#endif /* TRAIN_COMPARE_H */
