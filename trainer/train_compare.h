/*
 * The command `ipu-train compare`: trains the networks of keras.applications for a few steps each
 * and compares this machine with the simulated IPU.
 */
#ifndef TRAIN_COMPARE_H
#define TRAIN_COMPARE_H

#include "common/cli.h"

extern const struct cli_command train_compare_cli;

/* Called by main(): @argv[0] is the word "compare". Return the exit code. */
int train_compare_command(int argc, char **argv);

#endif /* TRAIN_COMPARE_H */
