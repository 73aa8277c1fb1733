/*
 * The command ipu-train: from a run file and a command line to a trained model and a report.
 */
#ifndef TRAIN_COMMAND_H
#define TRAIN_COMMAND_H

#include "common/cli.h"

/* Return the exit code: 0 success, 1 the work failed, 2 the request was invalid. */
int train_command(int argc, char **argv);

/* `ipu-train compare`: trains the networks of keras.applications for a few steps each and compares
 * this machine with the simulated IPU. @argv[0] is the word "compare". */
int train_compare_command(int argc, char **argv);
extern const struct cli_command train_compare_cli;

#endif /* TRAIN_COMMAND_H */
